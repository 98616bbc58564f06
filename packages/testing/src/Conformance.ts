/**
 * One test suite for every implementation of the gateway's services: in-memory layers, live layers that call a sandbox
 * server, and clients.
 *
 * The target has to be a mainnet sandbox with the example state. The checks change this state and restore it as far as
 * possible, so run them one after the other.
 */
import type { ConformanceCheck } from "./ConformanceCheck.ts"
import * as ConformanceDeclared from "./ConformanceDeclared.ts"
import * as ConformanceExchange from "./ConformanceExchange.ts"
import * as ConformanceLayer2 from "./ConformanceLayer2.ts"
import * as ConformanceMarket from "./ConformanceMarket.ts"
import type { ConformanceTarget } from "./ConformanceTarget.ts"
import * as ConformanceTokens from "./ConformanceTokens.ts"

/** Options of the conformance suite. */
export interface Options {
  /**
   * Milliseconds from the clock's time to the first nonce. Default: 0. For two runs against one sandbox in quick
   * succession, use values that differ by at least 1000, so that no nonce is used twice.
   */
  readonly firstNonce?: number
}

/** Returns the checks, in order. A check fails with the expected and the actual value. */
export const conformance = (target: ConformanceTarget, options: Options = {}): ReadonlyArray<ConformanceCheck> => [
  ...ConformanceExchange.checks(target, options.firstNonce ?? 0),
  ...ConformanceMarket.checks(target),
  ...ConformanceTokens.checks(target),
  ...ConformanceLayer2.checks(target),
  ...ConformanceDeclared.checks(target)
]
