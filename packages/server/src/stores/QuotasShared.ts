/**
 * `Quotas` that several processes count together in a store: one question for each request.
 *
 * A request that ends is taken out in the background; one whose process has died leaves by itself. While the store is unreachable each
 * process counts alone.
 */
import * as Quotas from "@trigate/callers/Quotas"
import type { Caller } from "@trigate/domain/Caller"
import * as SharedState from "@trigate/upstream/SharedState"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Random from "effect/Random"

/** Milliseconds after which a request in flight does not count any more: longer than any request takes. */
export const givenUpAfter = 120_000

/**
 * A request that is to be counted now, by the store's own clock: those of the processes differ, and can be set back.
 *
 * Times are milliseconds, as {@link Quotas.Rate} has them.
 */
export interface Asked {
  readonly caller: string
  /** No other request of any process has this name; it ends with `*` and the number of its calls. */
  readonly request: string
  readonly calls: number
  /** 0 where the caller has no requests a second. */
  readonly interval: number
  readonly tolerance: number
  /** Calls in flight at the same time; 0 where the caller may have any number. */
  readonly most: number
}

/** Whether a request was counted, and milliseconds: how far the next time is ahead, or until the request may come again. */
export type QuotaAnswer = readonly [word: "counted" | "requests" | "concurrent", millis: number]

/** Where the counts are. */
export interface Store {
  /** What the store is called in log lines. */
  readonly name: string
  /** How long a request waits for it; 250 milliseconds when not given. */
  readonly deadline?: Duration.Input
  readonly count: (asked: Asked) => Effect.Effect<QuotaAnswer, SharedState.SharedAway>
  readonly end: (caller: string, request: string) => Effect.Effect<unknown, SharedState.SharedAway>
}

/** The quotas over a store. */
export const make = Effect.fnUntraced(function*({ deadline, name, ...store }: Store) {
  const state = yield* SharedState.make({ use: "quotas", store: name, ...(deadline === undefined ? {} : { deadline }) })
  const process = (yield* Random.nextIntBetween(0, 36 ** 8)).toString(36)
  const count = Quotas.counting()
  // an end that does not fit into the queue is lost: the request then counts until it expires
  const ends = yield* Queue.dropping<Effect.Effect<void>>(4096)
  yield* Effect.forkScoped(Effect.forever(Effect.flatten(Queue.take(ends))))
  let last = 0

  const shared = ({ id, quota }: Caller, rate: Quotas.Rate | undefined, calls: number, here: Quotas.CountedHere) => {
    const request = `${process}-${(last++).toString(36)}*${calls}`
    const most = quota.concurrentCalls ?? 0
    const { interval, tolerance } = rate ?? { interval: 0, tolerance: 0 }
    return Effect.map(
      store.count({ caller: id, request, calls, interval, tolerance, most }),
      ([word, millis]): Quotas.Counted | Quotas.Beyond => {
        if (word !== "counted") {
          here.undo()
          return { quota: word, wait: millis }
        }
        const end = () => {
          here.end()
          if (most === 0) return
          Queue.offerUnsafe(ends, state.orElse(Effect.asVoid(store.end(id, request)), Effect.void))
        }
        return { ...Quotas.rateStanding(rate, millis), end }
      }
    )
  }

  return Quotas.make((caller, rate, now, calls) => {
    // what this process alone has counted is never more than all have: a flood of refused requests costs the store nothing
    const here = count(caller, rate, now, calls)
    return "wait" in here
      ? Effect.succeed(here)
      : state.orElse<Quotas.Counted | Quotas.Beyond, never, never>(
        shared(caller, rate, calls, here),
        Effect.succeed(here)
      )
  })
})
