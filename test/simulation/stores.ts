/** The stores that the simulated replicas share. */
import type { Stores } from "@trigate/simulation/unstable/Gateway"
import * as Gateway from "@trigate/simulation/unstable/Gateway"
import type { Access } from "@trigate/simulation/unstable/stores/Access"
import * as RateLimitStore from "@trigate/simulation/unstable/stores/RateLimitStore"
import * as RateLimiter from "@trigate/upstream/limits/RateLimiter"

/** Makes the stores, and what a replica uses of them. */
export const makeStores = () => {
  const rateLimits = RateLimitStore.makeRateLimits()
  return {
    /** Empties the stores that production has in Redis, as a restart without data does. */
    clear: () => rateLimits.clear(),
    of: (access: Access): Stores => ({
      ...Gateway.memoryStores(),
      rateLimits: (settings, windows) =>
        RateLimitStore.rateLimiterLayer(rateLimits, access, { ...RateLimiter.toLimits(settings), windows })
    })
  }
}
