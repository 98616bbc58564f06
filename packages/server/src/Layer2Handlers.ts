/** `POST /l2`. */
import { configuredRead } from "@trigate/domain/EvmMethods"
import { layer2Methods, serving } from "@trigate/domain/Layer2Operations"
import { Layer2 } from "@trigate/layer2/Layer2"
import * as Effect from "effect/Effect"
import { BatchLimit } from "./BatchLimit.ts"
import { RelayMethods } from "./RelayMethods.ts"
import * as RpcRoute from "./RpcRoute.ts"

/** The route's handler, shared with the keyed one. */
export const route = Effect.gen(function*() {
  const layer2 = yield* Layer2
  const further = yield* RelayMethods
  const longest = yield* BatchLimit
  return RpcRoute.make({
    // a declared method stays what it is declared to be
    operations: [...further.map((name) => configuredRead(name, serving)), ...layer2Methods],
    envelope: RpcRoute.jsonRpcEnvelope,
    longest,
    concurrency: longest,
    relay: (operation, params, surface) => layer2.relay({ operation, params, surface })
  })
})
