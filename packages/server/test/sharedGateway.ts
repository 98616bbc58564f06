/** Live gateways that the cases of a file share, one for each set of settings. */
import type { Environment } from "@trigate/testing/Gateway"
import * as Effect from "effect/Effect"
import type { Responses } from "./liveGateway.ts"
import { liveGateway, unexpected } from "./liveGateway.ts"
import { oncePerFile } from "./oncePerFile.ts"

/**
 * Returns a function with the parameters of `liveGateway` that starts a gateway once for each environment. Each call
 * replaces the responses of its upstreams and forgets the requests that they saw. The gateways stop after the file.
 *
 * A gateway keeps its caches, counts and ejections between the cases. A case in which an upstream fails, or that asks
 * what another case asked before, starts its own gateway with `liveGateway`.
 */
export const sharedGateways = () => {
  const start = oncePerFile((environment: Environment) => liveGateway({}, environment))
  return Effect.fnUntraced(function*(responses: Responses = {}, environment: Environment = {}) {
    const live = yield* start(environment)
    for (const label of ["api", "node", "tokens", "layer2"] as const) {
      live[label].respond = responses[label] ?? unexpected
      live[label].seen.length = 0
    }
    return live
  })
}
