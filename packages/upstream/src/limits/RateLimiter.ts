/**
 * Enforces the rate limit of each upstream: a call starts if there is capacity; otherwise it waits in a fair queue.
 * Refreshes of cached responses are paced.
 *
 * While all calls use the limit more slowly than it refills, a read that needs an upstream request is sent immediately.
 * Otherwise, reads receive the cached response, and the refreshes of cached responses take turns. The next turn goes to
 * the caller that was served longest ago. Of that caller's refreshes, the refresh with the highest score starts first.
 * Each read that receives a cached response adds the age of that response to a sum. The score is this sum, divided by
 * the cost of the refresh. A response that many callers poll therefore stays younger than a response that a single
 * caller polls.
 *
 * Refreshes receive nine tenths of the limit for reads at a constant rate, and can accumulate a burst of 8 % of that
 * limit. Refreshes alone therefore never exhaust a window.
 *
 * The next call to start is the call whose caller would then have the lowest use of the limit. The calls of one caller
 * start in the order of their arrival.
 *
 * A call reserves its maximum cost before it is sent, and refunds the unused part. The calls that start within one
 * window use at most the limit, and can use all of it. 5 % of the weight is reserved for actions. A call for which
 * there is no capacity waits in a fair queue, at most for its `maxWait`.
 *
 * `RateWindow` defines the share of a caller, and `FairQueue` the order of waiting calls.
 *
 * A call counts from its start in this process. Network delay and clock differences between replicas are not
 * considered: configure a limit slightly below the upstream's.
 */
import * as Caller from "@trigate/domain/Caller"
import { millisBetween, monotonicMillis, monotonicTime } from "@trigate/domain/encoding/Encoding"
import { QuotaExceeded, UpstreamRateLimited } from "@trigate/domain/errors/GatewayError"
import { quotaExceeded } from "@trigate/domain/unstable/DeclaredMetric"
import { freshnessSetting, staleWhenLimitedSetting } from "@trigate/domain/unstable/info/InfoQueries"
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Upstream from "../Upstream.ts"
import { type Ask, makeQueue, type Permits, type SharedWindow, worstCost } from "./FairQueue.ts"
import { type Bounds, Pacer } from "./RateWindow.ts"
import * as RateWindow from "./RateWindow.ts"

export { type Ask, type Permits, worstCost }

/**
 * The windows in which rate limiters count calls, by upstream and by the number and width of the windows' slots.
 *
 * @since 0.1.0
 * @category services
 */
export class Windows extends Context.Service<Windows, Map<string, RateWindow.RateWindow>>()(
  "@trigate/upstream/limits/RateLimiter/Windows"
) {}

/** The current use of an upstream's limit, in units: in total (including the program's own calls), and by caller. */
export interface Use {
  readonly upstream: Upstream.UpstreamLabel
  readonly all: number
  readonly callers: ReadonlyMap<string, number>
}

/** Returns the current use of the limits in this process. */
export const currentUses = (
  windows: ReadonlyMap<string, RateWindow.RateWindow>,
  clock: Clock.Clock
): ReadonlyArray<Use> => {
  const now = monotonicTime(clock)
  return Caller.upstreamLabels.flatMap((upstream) =>
    [...windows].filter(([key]) => key.startsWith(`${upstream} `)).map(([, window]) => {
      window.moveTo(now)
      return { upstream, all: window.all.held.read + window.all.held.once, callers: window.holders }
    })
  )
}

const ensureWindow = (windows: Map<string, RateWindow.RateWindow>, name: string, bounds: Bounds) => {
  const key = `${name} ${bounds.slots}x${bounds.width}`
  const window = windows.get(key) ?? new RateWindow.RateWindow(bounds)
  windows.set(key, window)
  return window
}

/**
 * Whether the current fiber refreshes a cached response.
 *
 * A refresh does not count against its caller's share and does not wait: the {@link Pacer} decides when it starts.
 */
export const IsRefresh = Context.Reference<boolean>("@trigate/upstream/limits/RateLimiter/IsRefresh", {
  defaultValue: () => false
})

/** Maximum milliseconds for which a call of the current fiber waits for its rate limit. Default: until its deadline. */
export const MaxWait = Context.Reference<number>("@trigate/upstream/limits/RateLimiter/MaxWait", {
  defaultValue: () => Number.POSITIVE_INFINITY
})

/** Makes a budget for the queries of the gateway itself that are sent before those of callers, in weight per minute. */
export const makePriorityWeight = (weight: number) => {
  let minute = 0
  let left = weight
  return {
    /** Takes the weight of a query, and returns whether it was left. */
    take: (cost: number): Effect.Effect<boolean> =>
      Effect.clockWith((clock) => {
        const now = Math.floor(monotonicMillis(monotonicTime(clock)) / 60_000)
        if (now !== minute) left = weight
        minute = now
        const isLeft = cost <= left
        if (isLeft) left -= cost
        return Effect.succeed(isLeft)
      }),
    /** Returns the weight of a query that was not sent. */
    giveBack: (cost: number): void => {
      left = Math.min(weight, left + cost)
    }
  }
}

/**
 * Starts calls within their upstream's rate limit.
 *
 * @since 0.1.0
 * @category services
 */
export class RateLimiter extends Context.Service<RateLimiter, {
  /**
   * Takes the maximum cost of a call synchronously.
   *
   * Returns `undefined` and takes nothing if the call has to wait, or if a shared window has to be queried first.
   */
  readonly tryTake: (ask: Ask, clock: Clock.Clock) => Permits | undefined
  /**
   * Takes the maximum cost of a call, after waiting at most `maxWait`.
   *
   * Fails as soon as it is certain that the wait would exceed `maxWait`: with `QuotaExceeded` if the caller is above
   * its share, otherwise with `UpstreamRateLimited`. In the error, `retryAfter` is the wait in whole seconds, provided
   * that no further call arrives.
   */
  readonly take: (ask: Ask) => Effect.Effect<Permits, QuotaExceeded | UpstreamRateLimited>
  /**
   * Returns the pacer of an upstream, which limits refreshes of cached responses; `undefined` if the upstream has no
   * limit.
   */
  readonly pacerOf: (upstream: Upstream.UpstreamLabel) => Pacer | undefined
}>()("@trigate/upstream/limits/RateLimiter") {}

/**
 * Weight per minute for the official API, request units per second for node providers. An upstream without a value is
 * not limited.
 */
export type Limits = { readonly [Label in Upstream.UpstreamLabel]?: number | undefined }

/** The venue's limit for one IP address, in weight per minute. */
export const defaultWeight = Upstream.settings.tradingApiWeight.fallback

/** Registers a gauge whose value `read` returns at each scrape, until the scope closes. */
const report = (gauge: Metric.Gauge<number>, read: (clock: Clock.Clock) => number) =>
  Effect.acquireRelease(
    Effect.map(Effect.context(), (registered) =>
      Metric.registerUnsafe(gauge, registered, {
        get: (context) => ({ value: read(Context.get(context, Clock.Clock)) }),
        update: () => {},
        modify: () => {}
      })),
    (registration) => Effect.sync(registration.remove)
  )

const roomIn = (wait: number) => {
  const retryAfter = Math.max(1, Math.ceil(wait / 1000))
  return { retryAfter, room: `it has capacity for this call in ${retryAfter} s` }
}

/** Advice to the operator about an exhausted limit. */
const advice: { readonly [Label in Upstream.UpstreamLabel]: string } = {
  "trading-api": `${freshnessSetting} and ${staleWhenLimitedSetting} allow more reads to share a response, ` +
    `${Upstream.settings.tradingApiWeight.env} sets the limit`,
  "trading-node": `${Upstream.settings.tradingNodeRps.env} sets the limit`,
  "token-chain": `${Upstream.settings.tokenChainRps.env} sets the limit`,
  layer2: `${Upstream.settings.layer2Rps.env} sets the limit`
}

/** Enforces the limit of one upstream, and reports the remaining units. */
const ofUpstream = Effect.fnUntraced(function*(
  upstream: Upstream.UpstreamLabel,
  bounds: Bounds,
  window: RateWindow.RateWindow,
  shared: SharedWindow | undefined
) {
  const refused = Upstream.metrics.rateLimitRefused.series({ upstream })
  const beyondShare = Upstream.metrics.rateLimitBeyondShare.series({ upstream })
  const pacer = new Pacer(bounds)
  const limiter = makeQueue({
    bounds,
    window,
    shared,
    pacer,
    waits: Upstream.metrics.rateLimitWaits.series({ upstream }),
    refused: ({ isWithinShare }) => isWithinShare ? refused : beyondShare,
    refusal: ({ isWithinShare, wait }) => {
      const { retryAfter, room } = roomIn(wait)
      const texts = (usedUp: string) => ({ retryAfter, detail: `${usedUp}; ${room} (${advice[upstream]})` })
      if (isWithinShare) {
        return new UpstreamRateLimited({ upstream, ...texts(`The rate limit of ${upstream} is used up`) })
      }
      return new QuotaExceeded(texts(
        window.callers > 1
          ? `The caller's share of the rate limit of ${upstream} is used up`
          : `The rate limit of ${upstream} is used up, except for a quarter that is reserved for other callers`
      ))
    }
  })
  yield* report(Upstream.metrics.rateLimitAvailable.series({ upstream, share: "common" }), limiter.availableToReads)
  if (bounds.readLimit < bounds.limit) {
    yield* report(Upstream.metrics.rateLimitAvailable.series({ upstream, share: "actions" }), limiter.available)
  }
  yield* report(Upstream.metrics.rateLimitCallers.series({ upstream }), (clock) => {
    window.moveTo(monotonicTime(clock))
    return window.callers
  })
  return { ...limiter, pacer }
})

/** The functions that take units of one rate limit. */
type Takes = Pick<RateLimiter["Service"], "take" | "tryTake">

/**
 * Makes the limits that operators configure for each caller (quotas): weight per minute, and request units per second
 * over all nodes.
 */
const ofQuotas = (
  windows: Map<string, RateWindow.RateWindow>,
  share: (name: string, bounds: Bounds, isPaced: boolean) => SharedWindow | undefined
) => {
  const limiters = new Map<string, Takes>()
  // nested maps, because a combined key would have to be built for each call
  const known = {
    weight: new WeakMap<Caller.Caller, Takes>(),
    units: new WeakMap<Caller.Caller, Takes>()
  }
  const make = (quota: "weight" | "units", caller: string, limit: number): Takes => {
    const name = `quota ${quota} ${caller}`
    const bounds = quota === "weight"
      ? RateWindow.windowBounds(limit, 60_000, 60, 0)
      : RateWindow.windowBounds(limit, 1000, 20, 0)
    const refused = quotaExceeded.series({ quota })
    const limiter = makeQueue({
      bounds,
      window: ensureWindow(windows, name, bounds),
      shared: share(name, bounds, false),
      waits: Upstream.metrics.quotaWaits.series({ quota }),
      refused: () => refused,
      refusal: ({ wait }) => {
        const { retryAfter, room } = roomIn(wait)
        const what = quota === "weight" ? "weight per minute" : "request units per second"
        return new QuotaExceeded({ retryAfter, detail: `The caller's quota of ${what} is used up; ${room}` })
      }
    })
    // a quota belongs to one caller, so it is not divided into shares
    const quotaLimiter: Takes = {
      tryTake: (ask, clock) => limiter.tryTake({ ...ask, caller: Caller.local }, clock),
      take: (ask) => limiter.take({ ...ask, caller: Caller.local })
    }
    return quotaLimiter
  }
  return ({ caller, upstream }: Ask): Takes | undefined => {
    const name = upstream === "trading-api" ? "weight" : "units"
    const limit = name === "weight" ? caller.quota.weightPerMinute : caller.quota.unitsPerSecond
    if (limit === undefined) return undefined
    const own = known[name].get(caller)
    if (own !== undefined) return own
    const key = `${name} ${limit} ${caller.id}`
    const limiter = limiters.get(key) ?? make(name, caller.id, limit)
    limiters.set(key, limiter)
    known[name].set(caller, limiter)
    return limiter
  }
}

/** Combines the permits of a quota and of an upstream's limit. */
const both = (one: Permits, other: Permits): Permits => ({
  refund: (unused) => {
    one.refund(unused)
    other.refund(unused)
  }
})

const unlimitedPermits: Permits = { refund: () => {} }
const unlimitedTake = Effect.succeed(unlimitedPermits)
const unlimitedTakes: Takes & { readonly pacer?: Pacer } = {
  tryTake: () => unlimitedPermits,
  take: () => unlimitedTake
}
const unlimited = RateLimiter.of({ ...unlimitedTakes, pacerOf: () => undefined })

/** Makes a rate limiter that also counts calls in the shared windows that `share` returns. */
export const make = Effect.fnUntraced(function*(
  limits: Limits,
  share: (name: string, bounds: Bounds, isPaced: boolean) => SharedWindow | undefined,
  windows: Windows["Service"] = new Map()
) {
  const limiter = (upstream: Upstream.UpstreamLabel) => {
    const limit = limits[upstream]
    if (limit === undefined) return Effect.succeed(unlimitedTakes)
    const bounds = upstream === "trading-api"
      ? RateWindow.windowBounds(limit, 60_000, 60, 0.05)
      : RateWindow.windowBounds(limit, 1000, 20, 0)
    return ofUpstream(upstream, bounds, ensureWindow(windows, upstream, bounds), share(upstream, bounds, true))
  }
  const limiters = yield* Effect.all(Caller.perUpstream(limiter))
  const callerQuota = ofQuotas(windows, share)

  /**
   * Takes the units of a call from the caller's quota first. If the quota refuses the call, the call takes no units of
   * the upstream's limit.
   */
  const takeBoth = (ask: Ask, quota: Takes, clock: Clock.Clock) => {
    const start = monotonicTime(clock)
    return Effect.flatMap(quota.take(ask), (own) => {
      const maxWait = Math.max(0, ask.maxWait - millisBetween(start, monotonicTime(clock)))
      const taken = Effect.onExitPrimitive(limiters[ask.upstream].take({ ...ask, maxWait }), (exit) => {
        if (exit._tag === "Failure") own.refund(worstCost(ask.upstream, ask))
        return undefined
      })
      return Effect.map(taken, (permits) => both(own, permits))
    })
  }

  return RateLimiter.of({
    pacerOf: (upstream) => limiters[upstream].pacer,
    tryTake: (ask, clock) => {
      const quota = callerQuota(ask)
      if (quota === undefined) return limiters[ask.upstream].tryTake(ask, clock)
      const own = quota.tryTake(ask, clock)
      const permits = own === undefined ? undefined : limiters[ask.upstream].tryTake(ask, clock)
      if (own === undefined || permits === undefined) own?.refund(worstCost(ask.upstream, ask))
      else return both(own, permits)
      return undefined
    },
    take: (ask) => {
      const quota = callerQuota(ask)
      return quota === undefined
        ? limiters[ask.upstream].take(ask)
        : Effect.clockWith((clock) => takeBoth(ask, quota, clock))
    }
  })
})

/**
 * Provides a rate limiter without limits: every call starts immediately.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerUnlimited: Layer.Layer<RateLimiter> = Layer.succeed(RateLimiter, unlimited)

/**
 * Provides the limits of this process only.
 *
 * By default, each limiter has its own windows. A limiter that replaces an earlier one can use the earlier limiter's
 * windows, even if the limits differ, so that calls that have already started still count.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { RateLimiter } from "@trigate/upstream"
 *
 * // weight per minute of the official API, requests per second of a node
 * export const limits = RateLimiter.layerMemory({ "trading-api": 1200, "trading-node": 25 })
 * ```
 */
export const layerMemory = (limits: Limits, windows?: Windows["Service"]): Layer.Layer<RateLimiter> =>
  Layer.effect(RateLimiter, make(limits, () => undefined, windows))

/** Converts settings to limits. */
export const toLimits = (
  named: Pick<Upstream.Settings, "tradingApiWeight" | "tradingNodeRps" | "tokenChainRps" | "layer2Rps">
): Limits => ({
  "trading-api": named.tradingApiWeight,
  "trading-node": Option.getOrUndefined(named.tradingNodeRps),
  "token-chain": Option.getOrUndefined(named.tokenChainRps),
  layer2: Option.getOrUndefined(named.layer2Rps)
})

const { layer2Rps, tokenChainRps, tradingApiWeight, tradingNodeRps } = Upstream.settings

/** Reads `TRIGATE_TRADING_API_WEIGHT` and the three settings `TRIGATE_…_RPS`. */
export const config: Config.Config<Limits> = Config.map(
  Config.all({ layer2Rps, tokenChainRps, tradingApiWeight, tradingNodeRps }),
  toLimits
)
