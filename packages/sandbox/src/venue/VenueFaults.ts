/** Injects faults between the venue and its callers. The seed determines which requests are affected. */
import * as UpstreamResponse from "@trigate/domain/operations/UpstreamResponse"
import type { SandboxFaults } from "@trigate/domain/SandboxFaults"
import { none } from "@trigate/domain/SandboxFaults"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Seed } from "../Seed.ts"
import * as Random from "../Seed.ts"

/** The faults that have a probability. */
export type SharedFault = Exclude<keyof SandboxFaults, "latency">

/** Reads and sets the faults of a sandbox. */
export interface VenueFaults {
  readonly get: () => SandboxFaults
  /** Sets the faults in `faults`. Other faults do not change. */
  readonly set: (faults: Partial<SandboxFaults>) => Effect.Effect<void>
  /**
   * Returns whether a fault affects the next request. The result depends on the seed and on the fault's probability.
   */
  readonly happens: (fault: SharedFault) => boolean
  /**
   * Runs a request after the venue's latency. If the rate-limit fault affects the request, returns HTTP 429 without
   * running it.
   */
  readonly ask: <E, R>(
    venue: Effect.Effect<UpstreamResponse.UpstreamResponse, E, R>
  ) => Effect.Effect<UpstreamResponse.UpstreamResponse, E, R>
}

const rateLimited = UpstreamResponse.json("trading-api", 429, "null")

/** Makes the fault injection of a sandbox. `seed` determines which requests are affected. */
export const make = (seed: Seed, initial: Partial<SandboxFaults> = {}): VenueFaults => {
  let faults: SandboxFaults = { ...none, ...initial }
  const cases = new Map<SharedFault, number>()
  const happens = (fault: SharedFault): boolean => {
    const share = faults[fault]
    if (share === 0) return false
    const at = cases.get(fault) ?? 0
    cases.set(fault, at + 1)
    return Random.fraction(Random.series(seed, `fault/${fault}`), at) < share
  }
  return {
    get: () => faults,
    set: (changed) =>
      Effect.sync(() => {
        faults = { ...faults, ...changed }
      }),
    happens,
    ask: (venue) =>
      Effect.suspend(() => {
        const asked = () => happens("rateLimited") ? Exit.succeed(rateLimited) : venue
        return faults.latency === 0 ? asked() : Effect.delay(Effect.suspend(asked), faults.latency)
      })
  }
}
