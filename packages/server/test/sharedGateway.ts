/** Live gateways that the cases of a file share, one for each set of settings. */
import type { Environment } from "@trigate/testing/Gateway"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { afterAll } from "vitest"
import type { LiveGateway, Responses } from "./liveGateway.ts"
import { liveGateway, unexpected } from "./liveGateway.ts"

/**
 * Returns a function with the parameters of `liveGateway` that starts a gateway once for each environment. Each call
 * replaces the responses of its upstreams and forgets the requests that they saw. The gateways stop after the file.
 *
 * A gateway keeps its caches, counts and ejections between the cases. A case in which an upstream fails, or that asks
 * what another case asked before, starts its own gateway with `liveGateway`.
 */
export const sharedGateways = () => {
  const scope = Effect.runSync(Scope.make())
  const started = new Map<string, LiveGateway>()
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  return Effect.fnUntraced(function*(responses: Responses = {}, environment: Environment = {}) {
    const key = JSON.stringify(environment)
    const live = started.get(key) ?? (yield* Scope.provide(liveGateway({}, environment), scope))
    started.set(key, live)
    for (const label of ["api", "node", "tokens", "layer2"] as const) {
      live[label].respond = responses[label] ?? unexpected
      live[label].seen.length = 0
    }
    return live
  })
}
