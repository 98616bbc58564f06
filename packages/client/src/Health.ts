/** The gateway itself. */
import { Readiness } from "@trigate/api/HealthApi"
import * as Paths from "@trigate/api/Paths"
import { type CallFailure, wrapReason } from "@trigate/domain/errors/GatewayError"
import * as Protocol from "@trigate/domain/operations/Protocol"
import * as Effect from "effect/Effect"
import type { Connection } from "./Connection.ts"
import { ask, ownReaderOf } from "./internal/Served.ts"

const read = ownReaderOf(Readiness)

/** Whether it takes traffic, and how each chain is served; a gateway that drains is an answer, too. */
export const ready: () => Effect.Effect<Readiness, CallFailure, Connection> = Effect.fn("GatewayClient.ready")(
  function*() {
    return yield* read(yield* ask(({ own }) => own.get(Paths.ready)))
  }
)

/** Its metrics, as Prometheus reads them. */
export const metrics: () => Effect.Effect<string, CallFailure, Connection> = Effect.fn("GatewayClient.metrics")(
  function*() {
    const answer = yield* ask(({ own }) => own.get(Paths.metrics))
    return answer.status === 200 ? answer.text : yield* wrapReason(Protocol.servedFailureOf(answer))
  }
)
