/** `POST /l2`. */
import { batchLimit } from "@trigate/api/JsonRpcSchema"
import { layer2Operations } from "@trigate/domain/Layer2Operations"
import { Layer2 } from "@trigate/layer2/Layer2"
import * as Effect from "effect/Effect"
import * as RpcRoute from "./RpcRoute.ts"

/** The route's handler, shared with the keyed one. */
export const route = Effect.map(Layer2, (layer2) =>
  RpcRoute.make({
    operations: Object.values(layer2Operations),
    envelope: RpcRoute.jsonRpcEnvelope,
    concurrency: batchLimit,
    relay: (operation, params, surface) => layer2.relay({ operation, params, surface })
  }))
