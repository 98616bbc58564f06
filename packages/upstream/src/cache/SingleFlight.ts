/**
 * Coalesces calls: a call that equals a call in flight receives the response of that call.
 *
 * The first caller (the leader) makes the call in its own fiber, and later callers (followers) wait for its result. A
 * call without followers therefore costs only one map entry. If the leader fails or disconnects, the followers choose a
 * new leader. If the new leader fails too, all followers fail with its error, so that callers do not retry a failed
 * upstream one after another.
 *
 * The call counts only against the leader's share of the rate limit. A leader that has used up its share fails alone.
 *
 * A refusal caused by the form of the leader's request is not shared: calls with equal keys are equivalent, but may be
 * formatted differently. After such a refusal, every follower sends its own call.
 */
import type { FaultOwner } from "@trigate/domain/operations/Protocol"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { constUndefined } from "effect/Function"
import * as Predicate from "effect/Predicate"

/** Options of coalescing. */
export interface Options {
  /**
   * If a shared call fails, a caller that has waited for it at most this long makes the call itself. A caller that has
   * waited longer fails with the same error. Default: 5 seconds. Together with the deadline of a call, this limits a
   * caller's total wait.
   */
  readonly maxWait?: Duration.Input
}

/** A call that is coalesced with the calls that have the same key. */
export interface FlightCall<A, E> {
  readonly key: string
  readonly ask: Effect.Effect<A, E>
  /**
   * Whether to fail as soon as the shared call fails, instead of making the call again, because the caller has an
   * alternative such as a stale response.
   */
  readonly takesFailure?: boolean
  /** Called when the caller receives a response to a call that a different caller made. */
  readonly onCoalesced?: () => void
}

/** A group of calls in flight that are coalesced with each other. */
export interface SingleFlight<A, E> {
  readonly run: (call: FlightCall<A, E>) => Effect.Effect<A, E>
  /** Returns whether a call with this key is in flight. */
  readonly has: (key: string) => boolean
}

interface Flight<A, E> {
  /** The result of the call in flight. Created when a second caller starts to wait for it. */
  ended: Deferred.Deferred<Exit.Exit<A, E>> | undefined
}

/**
 * Returns whether a failure concerns only the leader (the caller that made the shared call): the leader disconnected,
 * or had used up its share of the rate limit.
 */
const isOfLeader = (cause: Cause.Cause<unknown>): boolean =>
  Cause.hasInterrupts(cause) ||
  cause.reasons.some((reason) => reason._tag === "Fail" && Predicate.isTagged(reason.error, "QuotaExceeded"))

/** Makes a group of calls that are coalesced with each other. A response with an error counts as a failure. */
export const make = <A, E>(
  options: Options = {},
  faultOf: (answer: A) => FaultOwner | undefined = constUndefined
): SingleFlight<A, E> => {
  const maxWait = Duration.toMillis(options.maxWait ?? "5 seconds")
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
    Effect.suspend(() => {
      let mine: Flight<A, E> | undefined
      // the cleanup also surrounds the choice of the leader, so that no interruption can prevent it
      return Effect.onExitPrimitive(
        Effect.suspend(() => {
          const flight = flights.get(call.key)
          if (flight !== undefined) return follow(flight, call, asksAgain)
          mine = { ended: undefined }
          flights.set(call.key, mine)
          return call.ask
        }),
        (exit) => {
          if (mine === undefined) return undefined
          flights.delete(call.key)
          if (mine.ended !== undefined) Deferred.doneUnsafe(mine.ended, Effect.succeed(exit))
          return undefined
        }
      )
    })

  return { run: (call) => run(call, call.takesFailure !== true), has: (key) => flights.has(key) }
}
