/**
 * The quota of a caller: requests per second, a burst, and concurrent requests.
 *
 * Requests are counted by the generic cell rate algorithm. Each request advances the caller's theoretical arrival time
 * by the interval between two requests. The theoretical arrival time can be ahead of the current time by at most the
 * time that a burst takes at the allowed rate. It is the only number that the rate limit stores for a caller; the time
 * until the next allowed request is also computed from it. The number of requests in flight is counted separately.
 *
 * Independently of quotas, the rate limiter counts the upstream cost of calls when they are sent.
 */
import type { Caller, Quota } from "@trigate/domain/Caller"
import { addMillis, longAgo, millisBetween, type MonotonicTime, monotonicTime } from "@trigate/domain/encoding/Encoding"
import { QuotaExceeded } from "@trigate/domain/errors/GatewayError"
import { quotaExceeded } from "@trigate/domain/unstable/DeclaredMetric"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"

/** The remaining quota of a caller. */
export interface Standing {
  /** The number of requests that the caller can send immediately. */
  readonly remaining: number
  /** Milliseconds until the quota allows a whole burst again. */
  readonly reset: number
}

/** A counted request. */
export interface Counted extends Standing {
  /** Marks the request as ended, so that it no longer counts as concurrent. Must be called once. */
  readonly end: () => void
}

/**
 * A refused request: the exceeded quota, and the milliseconds after which the request can be repeated. If the limit of
 * concurrent requests is exceeded, the wait is 0, because it is unknown when a running request ends.
 */
export interface Beyond {
  readonly quota: "requests" | "concurrent"
  readonly wait: number
}

/** The parameters of the algorithm, in milliseconds. */
export interface Rate {
  /** The interval between two requests at the allowed rate. */
  readonly interval: number
  /** Maximum time by which the theoretical arrival time can be ahead of the current time. */
  readonly tolerance: number
  /** The value of the `RateLimit-Policy` header. */
  readonly policy: string
}

/** Returns the burst size of a quota. Default: the quota's requests per second, rounded up. */
export const maxBurst = ({ burst, requestsPerSecond = 1 }: Quota): number =>
  burst ?? Math.max(1, Math.ceil(requestsPerSecond))

const rates = new WeakMap<Quota, Rate>()

/** Returns the parameters of the algorithm for a quota; `undefined` if the quota does not limit requests per second. */
export const quotaRate = (quota: Quota): Rate | undefined => {
  if (quota.requestsPerSecond === undefined) return undefined
  const known = rates.get(quota)
  if (known !== undefined) return known
  const burst = maxBurst(quota)
  const interval = 1000 / quota.requestsPerSecond
  const rate = {
    interval,
    tolerance: (burst - 1) * interval,
    policy: `"requests";q=${burst};w=${Math.max(1, Math.ceil(burst * interval / 1000))}`
  }
  rates.set(quota, rate)
  return rate
}

/** Returns the remaining requests of a caller whose theoretical arrival time is `ahead` milliseconds in the future. */
export const rateStanding = (rate: Rate | undefined, ahead: number): Standing =>
  rate === undefined
    ? { remaining: Number.POSITIVE_INFINITY, reset: 0 }
    : {
      remaining: Math.max(0, Math.floor((rate.tolerance - ahead) / rate.interval + 1 + 1e-9)),
      // without rounding to milliseconds, a floating-point error could add a whole second to the header `RateLimit`
      reset: Math.round(ahead)
    }

/**
 * Counts the requests of callers against their quotas.
 *
 * Provided by `Quotas.layerMemory`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { Quotas } from "@trigate/callers"
 * import { Console, Effect } from "effect"
 *
 * const caller = { id: "desk", scope: {}, quota: { requestsPerSecond: 1, burst: 1 } }
 *
 * const program = Effect.gen(function*() {
 *   const { count } = yield* Quotas.Quotas
 *   yield* count(caller)
 *   yield* count(caller)
 * }).pipe(Effect.catchTag("QuotaExceeded", ({ retryAfter }) => Console.log(`in ${retryAfter} s`)))
 *
 * await Effect.runPromise(Effect.provide(program, Quotas.layerMemory))
 * ```
 * ```text
 * in 1 s
 * ```
 */
export class Quotas extends Context.Service<Quotas, {
  /**
   * Counts a request of a caller, or `calls` requests together. If the quota does not allow all of them, fails with
   * `QuotaExceeded` and counts none.
   */
  readonly count: (caller: Caller, calls?: number) => Effect.Effect<Counted, QuotaExceeded>
}>()("@trigate/callers/Quotas") {}

const exceeded = ({ quota, wait }: Beyond, calls: number) => {
  const retryAfter = Math.max(1, Math.ceil(Math.round(wait) / 1000))
  return new QuotaExceeded({
    retryAfter,
    detail: calls > 1
      ? `The batch was refused: ${calls} of its calls exceed the caller's quota of ${
        quota === "requests" ? `requests; retry in ${retryAfter} s` : "concurrent requests"
      }`
      : quota === "requests"
      ? `The caller has used up its quota of requests; the next one is allowed in ${retryAfter} s`
      : "The caller has reached its quota of concurrent requests: retry after one of them has ended"
  })
}

/**
 * Makes `Quotas` from a function that counts requests. Uses the monotonic clock, so that setting the system clock
 * back does not cause refusals.
 */
export const make = (
  count: (caller: Caller, rate: Rate | undefined, now: MonotonicTime, calls: number) => Effect.Effect<Counted | Beyond>
): Quotas["Service"] =>
  Quotas.of({
    count: (caller, calls = 1) =>
      Effect.contextWith((context: Context.Context<never>) => {
        const now = monotonicTime(Context.get(context, Clock.Clock))
        return Effect.flatMap(count(caller, quotaRate(caller.quota), now, calls), (counted) => {
          if (!("wait" in counted)) return Exit.succeed(counted)
          quotaExceeded.series({ quota: counted.quota }).updateUnsafe(1, context)
          return Exit.fail(exceeded(counted, calls))
        })
      })
  })

/** A request that was counted in this process. `undo` reverts the count. */
export interface CountedHere extends Counted {
  readonly undo: () => void
}

interface CallerUsage {
  /** The caller's theoretical arrival time. */
  next: MonotonicTime
  running: number
}

/** Tolerance for rounding errors in sums of intervals, in milliseconds. */
export const rounding = 1e-3

/** Makes the counters of this process. They contain one entry for each caller with a quota. */
export const counting = () => {
  const callers = new Map<string, CallerUsage>()
  return ({ id, quota }: Caller, rate: Rate | undefined, now: MonotonicTime, calls = 1): CountedHere | Beyond => {
    const held = callers.get(id) ?? { next: longAgo, running: 0 }
    callers.set(id, held)
    if (held.running + calls > (quota.concurrentCalls ?? Number.POSITIVE_INFINITY)) {
      return { quota: "concurrent", wait: 0 }
    }
    const ahead = Math.max(0, millisBetween(now, held.next))
    if (rate !== undefined) {
      const wait = ahead + (calls - 1) * rate.interval - rate.tolerance
      if (wait > rounding) return { quota: "requests", wait }
      held.next = addMillis(now, ahead + calls * rate.interval)
    }
    held.running += calls
    const end = () => {
      held.running -= calls
    }
    const undo = () => {
      end()
      held.next = addMillis(held.next, -calls * (rate?.interval ?? 0))
    }
    return { ...rateStanding(rate, Math.max(0, millisBetween(now, held.next))), end, undo }
  }
}

/**
 * Milliseconds after which a request no longer counts as in flight, even if its process did not report its end. Longer
 * than any request takes.
 */
export const givenUpAfter = 120_000

/**
 * A request to count. The store uses its own clock, because the clocks of the processes differ and can be set back.
 *
 * Times are in milliseconds, as in {@link Rate}.
 */
export interface CountRequest {
  readonly caller: string
  /** Unique name of the request. Ends with `*` and the number of calls in the request. */
  readonly request: string
  readonly calls: number
  /** Minimum interval between two requests, in milliseconds; 0 if requests per second are not limited. */
  readonly interval: number
  readonly tolerance: number
  /** Maximum number of concurrent calls; 0 if they are not limited. */
  readonly most: number
}

/**
 * The result of counting, and a time in milliseconds. After `counted`, the time until the caller's next request is
 * allowed. After a refusal (`requests` or `concurrent`), the time to wait before a retry.
 */
export type CountResult = readonly [word: "counted" | "requests" | "concurrent", millis: number]

/** The counters that processes share. Each operation is atomic. */
export interface Counters<E> {
  readonly count: (request: CountRequest) => Effect.Effect<CountResult, E>
  /** Marks a request as ended. */
  readonly end: (caller: string, request: string) => Effect.Effect<unknown, E>
}

/**
 * Provides the counters of this process, which are not shared with other replicas.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory: Layer.Layer<Quotas> = Layer.effect(
  Quotas,
  Effect.sync(() => {
    const count = counting()
    return make((caller, rate, now, calls) => Exit.succeed(count(caller, rate, now, calls)))
  })
)

/**
 * The values of the header fields `RateLimit-Policy` (the limit of requests per second) and `RateLimit` (the remaining
 * requests).
 */
export interface Fields {
  readonly policy: string
  readonly limit: string
}

/**
 * Returns the header fields of draft-ietf-httpapi-ratelimit-headers-10; `undefined` if the caller's requests per second
 * are not limited.
 */
export const rateLimitFields = (quota: Quota, standing: Standing): Fields | undefined => {
  const rate = quotaRate(quota)
  if (rate === undefined) return undefined
  return {
    policy: rate.policy,
    limit: `"requests";r=${standing.remaining};t=${Math.ceil(standing.reset / 1000)}`
  }
}
