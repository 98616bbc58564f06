/** The action log, for whoever runs the gateway: the connection is to its admin listener. */
import { ActionResolution, Forgotten, UnansweredAction } from "@trigate/api/AdminApi"
import * as Paths from "@trigate/api/Paths"
import type { ServedFailure } from "@trigate/domain/GatewayError"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Connection } from "./Connection.ts"
import { ask, ownReaderOf } from "./internal/Served.ts"

const readActions = ownReaderOf(Schema.Array(UnansweredAction))
const readForgotten = ownReaderOf(Forgotten)
const readResolution = ownReaderOf(ActionResolution)

const of = (path: string, id: string): string => path.replace(":id", encodeURIComponent(id))

/** The signed actions without an answer, oldest first. */
export const actions: () => Effect.Effect<ReadonlyArray<UnansweredAction>, ServedFailure, Connection> = Effect.fn(
  "GatewayClient.actions"
)(function*() {
  return yield* readActions(yield* ask(({ own }) => own.get(Paths.actions)))
})

/** Removes an action whose outcome is known; answers whether there was one. Its nonce stays used. */
export const forget: (id: string) => Effect.Effect<boolean, ServedFailure, Connection> = Effect.fn(
  "GatewayClient.forget"
)(function*(id) {
  const { forgotten } = yield* readForgotten(yield* ask(({ own }) => own.post(of(Paths.forgetAction, id), "{}")))
  return forgotten
})

/** Has an action sent again, byte for byte, and tells what the answer means. */
export const resolve: (id: string) => Effect.Effect<ActionResolution, ServedFailure, Connection> = Effect.fn(
  "GatewayClient.resolveAction"
)(function*(id) {
  return yield* readResolution(yield* ask(({ own }) => own.post(of(Paths.resolveAction, id), "{}")))
})
