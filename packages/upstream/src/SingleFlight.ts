/**
 * Shares calls that are under way: who asks for what somebody is asking for gets that answer.
 *
 * The first asker leads and asks in its own fiber; a call that nobody else wants costs a map entry. Where the leader fails
 * or leaves, the others choose a new one among themselves; the failure of the second leader is theirs too, so that many
 * waiting for a dead upstream do not ask it one after the other.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { constFalse } from "effect/Function"

/** How callers wait for each other. */
export interface Options {
  /**
   * How long a caller may have waited for a leader that fails, to ask again instead of failing with it; 5 seconds when not
   * given. With the deadline of a call it bounds how long a caller waits in all.
   */
  readonly maxWait?: Duration.Input
}

/** One call to share. */
export interface Call<A, E> {
  readonly key: string
  readonly ask: Effect.Effect<A, E>
  /** Takes the first leader's failure instead of asking again: for a caller who has another answer at hand. */
  readonly takesFailure?: boolean
  /** Called when the caller is given the answer of another's call. */
  readonly onShared?: () => void
}

/** Calls of one kind that are under way. */
export interface SingleFlight<A, E> {
  readonly run: (call: Call<A, E>) => Effect.Effect<A, E>
  /** Whether a call with this key is under way. */
  readonly has: (key: string) => boolean
}

interface Flight<A, E> {
  /** How the leader's call ended; there when somebody waits for it. */
  ended: Deferred.Deferred<Exit.Exit<A, E>> | undefined
}

/** Calls that have nothing to do with those of another `make`; an answer that is a fault is shared like a failure. */
export const make = <A, E>(
  options: Options = {},
  isFault: (answer: A) => boolean = constFalse
): SingleFlight<A, E> => {
  const maxWait = Duration.toMillis(Duration.fromInputUnsafe(options.maxWait ?? "5 seconds"))
  const flights = new Map<string, Flight<A, E>>()

  const shared = (exit: Exit.Exit<A, E>, { onShared }: Call<A, E>): Exit.Exit<A, E> => {
    if (Exit.isSuccess(exit)) onShared?.()
    return exit
  }

  const follow = (flight: Flight<A, E>, call: Call<A, E>, asksAgain: boolean): Effect.Effect<A, E> =>
    Effect.flatMap(Clock.currentTimeMillis, (since) => {
      flight.ended ??= Deferred.makeUnsafe<Exit.Exit<A, E>>()
      return Effect.flatMap(Deferred.await(flight.ended), (exit) => {
        // a leader who left says nothing about the upstream
        if (Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause)) return run(call, asksAgain)
        if (!asksAgain || (Exit.isSuccess(exit) && !isFault(exit.value))) return shared(exit, call)
        return Effect.flatMap(
          Clock.currentTimeMillis,
          (now) => now - since > maxWait ? shared(exit, call) : run(call, false)
        )
      })
    })

  const run = (call: Call<A, E>, asksAgain: boolean): Effect.Effect<A, E> =>
    Effect.suspend(() => {
      const mine: Flight<A, E> = { ended: undefined }
      return Effect.onExitPrimitive(
        // under the finalizer, so that no interruption falls between the two
        Effect.suspend(() => {
          const flight = flights.get(call.key)
          if (flight !== undefined) return follow(flight, call, asksAgain)
          flights.set(call.key, mine)
          return call.ask
        }),
        (exit) => {
          if (flights.get(call.key) !== mine) return undefined
          flights.delete(call.key)
          if (mine.ended !== undefined) Deferred.doneUnsafe(mine.ended, Effect.succeed(exit))
          return undefined
        }
      )
    })

  return { run: (call) => run(call, call.takesFailure !== true), has: (key) => flights.has(key) }
}
