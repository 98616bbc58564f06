/** Milliseconds of a clock that never goes back, for measuring how much of a time is left. */
import type * as Clock from "effect/Clock"

/** The time by now; only differences mean something. */
export const millisOf = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
