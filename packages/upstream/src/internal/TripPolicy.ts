/** When the circuit of an address opens: after faults in a row, for seconds that grow. */
import type * as Duration from "effect/Duration"
import * as CircuitBreaker from "effect/persistence/CircuitBreaker"
import * as Schedule from "effect/Schedule"

/** When a circuit opens, and for how long. */
export interface Options {
  /** Faults in a row, in order of their ends, that open the circuit; 5 when not given. */
  readonly faults?: number
  /** How long it is open the first time, twice as long each time after that; 1 second when not given. */
  readonly shortest?: Duration.Input
  /** How long it is open at most; 10 seconds when not given. */
  readonly longest?: Duration.Input
}

/** The policy of the breaker. */
export const of = (options: Options) => ({
  tripPolicy: CircuitBreaker.consecutive(options.faults ?? 5),
  openDuration: Schedule.min([
    Schedule.exponential(options.shortest ?? "1 second"),
    Schedule.spaced(options.longest ?? "10 seconds")
  ])
})
