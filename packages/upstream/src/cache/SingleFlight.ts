/**
 * Coalesces calls: a caller with a call equal to one in flight shares its response.
 *
 * The first caller leads and calls in its own fiber, so that a call without followers costs one map entry. When the
 * leader fails or leaves, the others choose a new one. They take the failure of the second leader as theirs: many callers
 * that wait for a dead upstream do not ask it one after the other.
 *
 * The leader pays for the call, and a follower pays nothing. A leader that has no share of the rate limit left fails alone.
 *
 * A refusal that the leader's own request earned is the leader's alone. Calls with one key mean the same, but may be written
 * differently, so every other caller then asks for itself.
 */
import * as Continuation from "@trigate/domain/operations/Continuation"
import type { FaultOwner } from "@trigate/domain/operations/Protocol"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { constUndefined } from "effect/Function"
import * as Predicate from "effect/Predicate"

/** How long callers wait for each other. */
export interface Options {
  /**
   * A caller that has waited longer than this for a leader that fails takes the failure instead of asking again; 5 seconds
   * when not given. Together with the deadline of a call it bounds how long a caller waits.
   */
  readonly maxWait?: Duration.Input
}

/** One call to coalesce. */
export interface FlightCall<A, E> {
  readonly key: string
  readonly ask: Effect.Effect<A, E>
  /** Take the first leader's failure instead of asking again: for a caller who has another answer at hand. */
  readonly takesFailure?: boolean
  /** Called when the caller gets the answer of another call. */
  readonly onCoalesced?: () => void
}

/** Calls of one kind that are under way. */
export interface SingleFlight<A, E> {
  readonly run: (call: FlightCall<A, E>) => Effect.Effect<A, E>
  /** Whether a call with this key is under way. */
  readonly has: (key: string) => boolean
}

interface Flight<A, E> {
  /** How the leader's call ended; made when the first caller waits for it. */
  ended: Deferred.Deferred<Exit.Exit<A, E>> | undefined
}

/** Whether a failure says nothing about the upstream: the leader left, or had no share of the rate limit left. */
const isOfLeader = (cause: Cause.Cause<unknown>): boolean =>
  Cause.hasInterrupts(cause) ||
  cause.reasons.some((reason) => reason._tag === "Fail" && Predicate.isTagged(reason.error, "QuotaExceeded"))

/** A group of calls that are coalesced only with each other. A response that reports a fault counts as a failure. */
export const make = <A, E>(
  options: Options = {},
  faultOf: (answer: A) => FaultOwner | undefined = constUndefined
): SingleFlight<A, E> => {
  const maxWait = Duration.toMillis(Duration.fromInputUnsafe(options.maxWait ?? "5 seconds"))
  const flights = new Map<string, Flight<A, E>>()

  const shared = (exit: Exit.Exit<A, E>, { onCoalesced }: FlightCall<A, E>): Exit.Exit<A, E> => {
    if (Exit.isSuccess(exit)) onCoalesced?.()
    return exit
  }

  const follow = (flight: Flight<A, E>, call: FlightCall<A, E>, asksAgain: boolean): Effect.Effect<A, E> =>
    Effect.flatMap(Clock.currentTimeMillis, (since) => {
      flight.ended ??= Deferred.makeUnsafe<Exit.Exit<A, E>>()
      return Effect.flatMap(Deferred.await(flight.ended), (exit) => {
        if (Exit.isFailure(exit) && isOfLeader(exit.cause)) return run(call, asksAgain)
        const fault = Exit.isSuccess(exit) ? faultOf(exit.value) : "upstream"
        if (fault === "caller") return call.ask
        if (!asksAgain || fault === undefined) return shared(exit, call)
        return Effect.flatMap(
          Clock.currentTimeMillis,
          (now) => now - since > maxWait ? shared(exit, call) : run(call, false)
        )
      })
    })

  const run = (call: FlightCall<A, E>, asksAgain: boolean): Effect.Effect<A, E> =>
    Continuation.withContext(() => {
      let mine: Flight<A, E> | undefined
      // around the choice of the leader, so that no interruption comes between the two
      return Continuation.onExit(
        Continuation.withContext(() => {
          const flight = flights.get(call.key)
          if (flight !== undefined) return follow(flight, call, asksAgain)
          mine = { ended: undefined }
          flights.set(call.key, mine)
          return call.ask
        }),
        (exit) => {
          if (mine === undefined) return
          flights.delete(call.key)
          if (mine.ended !== undefined) Deferred.doneUnsafe(mine.ended, Effect.succeed(exit))
        }
      )
    })

  return { run: (call) => run(call, call.takesFailure !== true), has: (key) => flights.has(key) }
}
