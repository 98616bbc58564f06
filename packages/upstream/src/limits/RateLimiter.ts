/**
 * Enforces the rate limit of each upstream: a call starts if there is capacity; otherwise it waits in a fair queue.
 * Refreshes of cached responses are paced by a `Pacer`.
 *
 * The next call to start is the call whose caller would then have the lowest use of the limit. The calls of one caller
 * start in the order of their arrival.
 *
 * A call reserves its maximum cost before it is sent, and refunds the unused part. The calls that start within one
 * window use at most the limit, and can use all of it. 5 % of the weight is reserved for actions. A call for which
 * there is no capacity waits in a fair queue, at most for its `maxWait`.
 *
 * `RateWindow` defines the share of a caller, and {@link makeQueue} the order of waiting calls.
 *
 * A call counts from its start in this process. Network delay and clock differences between replicas are not
 * considered: configure a limit slightly below the upstream's.
 */
import * as Caller from "@trigate/domain/Caller"
import { addMillis, longAgo, millisBetween, type MonotonicTime, monotonicTime } from "@trigate/domain/encoding/Encoding"
import { QuotaExceeded, UpstreamRateLimited } from "@trigate/domain/errors/GatewayError"
import * as Operation from "@trigate/domain/operations/Operation"
import { quotaExceeded } from "@trigate/domain/unstable/DeclaredMetric"
import { freshnessSetting, staleWhenLimitedSetting } from "@trigate/domain/unstable/info/InfoQueries"
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Upstream from "../Upstream.ts"
import { type Bounds, Pacer, type Slot, type Taken, type Units, type WindowCall } from "./RateWindow.ts"
import * as RateWindow from "./RateWindow.ts"

/** A call that requests units of a rate limit. */
export interface PermitRequest {
  readonly upstream: Upstream.UpstreamLabel
  /** The method class. A part of the limit is reserved for actions (`once`), and actions do not wait for reads. */
  readonly class: Operation.MethodClass
  readonly cost: Operation.Cost
  readonly caller: Caller.Caller
  /** Maximum milliseconds that the call can wait. */
  readonly maxWait: number
  /** Whether the call refreshes a cached response; see `RateLimiter.IsRefresh`. */
  readonly isRefresh?: boolean | undefined
}

/** The units that a call has taken from a rate limit. */
export interface Permits {
  /** Refunds unused units of the call, at most all of its units. */
  readonly refund: (unused: number) => void
}

/** Returns the units that a call takes before it is sent: weight for the venue's API, request units for a node. */
export const worstCost = (upstream: Upstream.UpstreamLabel, call: { readonly cost: Operation.Cost }): number =>
  upstream === "trading-api" ? Operation.worstWeight(call) : call.cost.requestUnits

/**
 * Counts a call in the window that replicas share, if the window has capacity for the call and for the units `ahead`,
 * which are the units of the calls before this call in the queue.
 *
 * `own` returns the use of this process by slot, except for calls whose request to the shared window is pending. If the
 * shared window has lost this use, it is restored from `own`.
 */
export type SharedWindow = (
  call: WindowCall,
  ahead: Units,
  callers: number,
  own: () => ReadonlyArray<Slot>
) => Effect.Effect<SharedPermits | Alone>

/**
 * The result of counting a call while the shared window is unreachable: the replica is allowed only a part of the
 * limit, such as one half.
 */
export interface Alone {
  readonly part: number
  /** The use that the shared window last reported while no call needed it. */
  readonly reported?: ReportedUnits
  /**
   * Records a call that starts while the shared window is unreachable, so that the call can be reported to the window
   * later.
   */
  readonly started: (call: WindowCall) => void
}

/** The use of a shared window, and the use of this process in it, at a point in time. */
export interface ReportedUnits {
  readonly at: MonotonicTime
  readonly held: Units
  readonly own: Units
}

/** The result of counting a call in the rate window that replicas share. */
export interface SharedPermits extends Permits, Full {
  /** The current use of the shared window. */
  readonly held: Units
  /**
   * The part of the limit that this replica is allowed to use, such as 0.5, if the shared window does not know the use
   * of all other replicas; otherwise `undefined`.
   */
  readonly part?: number
  /** The units that refreshes of cached responses are allowed to use now, if a `Pacer` limits refreshes. */
  readonly level?: number
}

/** How long a call has to wait for capacity, and whether its caller stays within its share of the limit. */
export interface Full {
  /** Milliseconds to wait; 0 if the call can start. */
  readonly wait: number
  /** Whether the caller stays within its share of the limit if the call starts. */
  readonly isWithinShare: boolean
}

interface Waiter extends WindowCall {
  /** The units that the call requests; 0 while the call tries to take them. */
  wants: number
  readonly changed: Latch.Latch
}

/** The waiting calls of one caller and method class, in order of arrival. */
interface WaitingCall {
  readonly waiters: Set<Waiter>
  /** The sum of the units that the waiting calls request. */
  wants: number
}

/** The waiting calls of one method class, by caller. */
type Queue = Map<string | undefined, WaitingCall>

// The next waiting call checks for capacity again after this many milliseconds, because this process is not notified
// when other replicas refund units or when units expire.
const recheckAfter = 250

/** A rate limit: the window that counts its use, and the errors and metrics of waiting and refused calls. */
export interface Limited {
  readonly bounds: Bounds
  readonly window: RateWindow.RateWindow
  readonly shared: SharedWindow | undefined
  readonly pacer?: Pacer
  readonly refusal: (full: Full) => QuotaExceeded | UpstreamRateLimited
  readonly waits: Metric.Counter<number>
  readonly refused: (full: Full) => Metric.Counter<number>
}

/** Enforces one rate limit in this process, and in the shared window, if any. */
export const makeQueue = ({ bounds, pacer, refusal, refused, shared, waits, window }: Limited) => {
  const queues: { readonly [Class in Operation.MethodClass]: Queue } = { read: new Map(), once: new Map() }
  /** The use of other replicas, as last reported by the shared window, and the time until which the report is valid. */
  let others = RateWindow.none
  let othersUntil = longAgo
  /** The use of this process at the time of that report. */
  let ownThen = RateWindow.none
  /** Units of the calls with a pending request to the shared window. */
  const requested: Units = { read: 0, once: 0 }

  const fullFor = (call: WindowCall, ahead: Units): Full => ({
    wait: window.waitOf(bounds, call, ahead),
    isWithinShare: window.isWithinShare(bounds, call)
  })

  const want = (waiter: Waiter, units: number) => {
    const waiting = queues[waiter.class].get(waiter.caller)
    if (waiting !== undefined) waiting.wants += units - waiter.wants
    waiter.wants = units
  }

  const wantedBy = (methodClass: Operation.MethodClass, caller: string | undefined): number =>
    queues[methodClass].get(caller)?.wants ?? 0

  /**
   * Returns a caller's use of the limit; the calls of callers with the lowest use start first. For reads, includes the
   * units of the caller's waiting actions, because actions start before reads.
   */
  const heldBefore = (methodClass: Operation.MethodClass, caller: string | undefined): number =>
    window.heldBy(caller) + (methodClass === "read" ? wantedBy("once", caller) : 0)

  /**
   * Returns the function that converts the units of a call to the units that determine its place in the queue. A call
   * that costs more than a caller's share counts as one share. A call of the program itself starts before others.
   */
  const counted = () => {
    const { limit } = RateWindow.callerShare(bounds, Math.max(1, window.callers))
    return ({ caller }: Pick<WindowCall, "caller">, units: number) => caller === undefined ? 0 : Math.min(units, limit)
  }

  /** Returns the next call of a method class to start: the call whose caller would then have the lowest use. */
  const nextWaiter = (methodClass: Operation.MethodClass): Waiter | undefined => {
    const count = counted()
    let next: Waiter | undefined
    let least = Number.POSITIVE_INFINITY
    for (const [caller, { waiters: [first] }] of queues[methodClass]) {
      if (first === undefined) continue
      const held = heldBefore(methodClass, caller) + count(first, first.cost)
      if (held >= least) continue
      next = first
      least = held
    }
    return next
  }

  /**
   * Returns the total units of the other callers' waiting calls that start before a given call. `caller` is the caller
   * of the given call, and `held` is that caller's use, including the given call.
   */
  const aheadOfOthers = (methodClass: Operation.MethodClass, caller: string | undefined, held: number): number => {
    const count = counted()
    let ahead = 0
    // ties are resolved by the order of the callers' arrival
    let cameBefore = true
    for (const [other, { waiters }] of queues[methodClass]) {
      if (other === caller) {
        cameBefore = false
        continue
      }
      let theirs = heldBefore(methodClass, other)
      for (const waiter of waiters) {
        const after = theirs + count(waiter, waiter.wants)
        if (cameBefore ? after > held : after >= held) break
        theirs += waiter.wants
        ahead += waiter.wants
      }
    }
    return ahead
  }

  /**
   * Returns the units of the waiting calls that start before `call`. `waiter` is the queue entry of `call`, if it has
   * one.
   */
  const unitsAhead = (call: WindowCall, waiter?: Waiter): Units => {
    const { caller, class: methodClass } = call
    if (queues.once.size === 0 && queues.read.size === 0) return RateWindow.none
    let own = 0
    if (waiter === undefined) own = wantedBy(methodClass, caller)
    else {
      for (const other of queues[methodClass].get(caller)?.waiters ?? []) {
        if (other === waiter) break
        own += other.wants
      }
    }
    const held = heldBefore(methodClass, caller) + own + counted()(call, call.cost)
    const once = aheadOfOthers("once", caller, held)
    return methodClass === "once"
      ? { read: 0, once: own + once }
      : { read: own + aheadOfOthers("read", caller, held), once: wantedBy("once", caller) + once }
  }

  const wakeNext = () => {
    if (queues.once.size === 0 && queues.read.size === 0) return
    nextWaiter("once")?.changed.openUnsafe()
    nextWaiter("read")?.changed.openUnsafe()
  }

  const take = (call: WindowCall): Taken => {
    pacer?.use(call.cost, window.now)
    return window.take(call)
  }

  const giveBack = (taken: Taken, call: WindowCall, units: number) => {
    pacer?.use(-units, window.now)
    window.refund(taken, call, units)
  }

  const permits = (taken: Taken, call: WindowCall, refundShared?: Permits["refund"]): Permits => {
    let held = call.cost
    const refund = (unused: number) => {
      const units = Math.max(0, Math.min(held, unused))
      if (units === 0) return
      held -= units
      giveBack(taken, call, units)
      refundShared?.(units)
      wakeNext()
    }
    return { refund }
  }

  const toWindowCall = (
    { caller, class: methodClass, cost, isRefresh = false, upstream }: PermitRequest
  ): WindowCall => ({
    class: methodClass,
    cost: worstCost(upstream, { cost }),
    // refreshes are not counted by caller, because the pacer divides them between callers
    caller: isRefresh && pacer !== undefined ? undefined : window.nameOf(caller),
    isRefresh
  })

  const tryTake = (request: PermitRequest, clock: Clock.Clock): Permits | undefined => {
    if (shared !== undefined) return undefined
    window.moveTo(monotonicTime(clock))
    const call = toWindowCall(request)
    return window.fits(bounds, call, unitsAhead(call)) ? permits(take(call), call) : undefined
  }

  /**
   * Takes the units of a call if there is capacity for the call and for the units `ahead` of the calls before it in the
   * queue. Otherwise fails with the time to wait.
   */
  const attempt = (call: WindowCall, ahead: Units, clock: Clock.Clock): Effect.Effect<Permits, Full> =>
    Effect.uninterruptibleMask((restore) => {
      window.moveTo(monotonicTime(clock))
      if (!window.fits(bounds, call, ahead)) return Effect.fail(fullFor(call, ahead))
      const taken = take(call)
      if (shared === undefined) return Effect.succeed(permits(taken, call))
      requested[call.class] += call.cost
      const sharedWindow = Effect.ensuring(
        shared(call, ahead, window.callers, settled),
        Effect.sync(() => requested[call.class] -= call.cost)
      )
      return Effect.flatMap(sharedWindow, (granted): Effect.Effect<Permits, Full> => {
        const now = monotonicTime(clock)
        const given = "started" in granted
          ? startAlone(granted, taken, call, ahead, now)
          : startShared(granted, taken, call, ahead, now)
        // if the caller disconnected during the request to the shared window, the units are refunded
        return Effect.flatMap(
          given,
          (own) => Effect.onInterrupt(restore(Effect.succeed(own)), () => Effect.sync(() => own.refund(call.cost)))
        )
      })
    })

  /**
   * Refunds the units of a call, because the use of other replicas is unknown. Takes them again only if they fit into
   * this process's part of the limit.
   */
  const withinPart = (
    part: number,
    taken: Taken,
    call: WindowCall,
    ahead: Units,
    now: MonotonicTime
  ): Effect.Effect<Taken, Full> => {
    if (now >= othersUntil) others = ownThen = RateWindow.none
    const own = RateWindow.partBounds(bounds, part, ownThen, others)
    window.moveTo(now)
    giveBack(taken, call, call.cost)
    return window.fits(own, call, ahead)
      ? Effect.succeed(take(call))
      : Effect.fail({ wait: window.waitOf(own, call, ahead), isWithinShare: window.isWithinShare(own, call) })
  }

  const startAlone = (
    alone: Alone,
    taken: Taken,
    call: WindowCall,
    ahead: Units,
    now: MonotonicTime
  ): Effect.Effect<Permits, Full> => {
    if (alone.reported !== undefined) hear(alone.reported)
    return Effect.map(withinPart(alone.part, taken, call, ahead, now), (again) => {
      alone.started(call)
      return permits(again, call)
    })
  }

  const startShared = (
    granted: SharedPermits,
    taken: Taken,
    call: WindowCall,
    ahead: Units,
    now: MonotonicTime
  ): Effect.Effect<Permits, Full> => {
    if (granted.level !== undefined) pacer?.set(granted.level, now)
    if (granted.wait > 0) {
      window.refund(taken, call, call.cost)
      if (granted.part === undefined) hear({ at: now, held: granted.held, own: window.all.held })
      return Effect.fail(granted)
    }
    if (granted.part !== undefined) {
      return withinPart(granted.part, taken, call, ahead, now).pipe(
        Effect.map((again) => permits(again, call, granted.refund)),
        Effect.tapError(() => Effect.sync(() => granted.refund(call.cost)))
      )
    }
    hear({ at: now, held: granted.held, own: window.all.held })
    return Effect.succeed(permits(taken, call, granted.refund))
  }

  const hear = ({ at, held, own }: ReportedUnits): void => {
    const until = addMillis(at, (bounds.slots + 1) * bounds.width)
    if (until < othersUntil) return
    others = { read: Math.max(0, held.read - own.read), once: Math.max(0, held.once - own.once) }
    ownThen = { ...own }
    othersUntil = until
  }

  /**
   * Returns this process's use by slot. Excludes the calls whose request to the shared window is pending; these are the
   * newest calls.
   */
  const settled = (): ReadonlyArray<Slot> => {
    const rest = { ...requested }
    return window.all.slots.toReversed().map(({ index, ...units }) => {
      const without = (methodClass: Operation.MethodClass): number => {
        const pending = Math.min(rest[methodClass], units[methodClass])
        rest[methodClass] -= pending
        return units[methodClass] - pending
      }
      return { index, read: without("read"), once: without("once") }
    })
  }

  /** Waits until the call is next in the queue, and then until there is capacity, at most until the time `giveUp`. */
  const waitForTurn = (
    waiter: Waiter,
    giveUp: MonotonicTime,
    clock: Clock.Clock,
    wasNext: boolean
  ): Effect.Effect<Permits, Full> =>
    Effect.suspend(() => {
      const again = (pause: number, isNext: boolean) =>
        Effect.andThen(
          Effect.timeoutOption(waiter.changed.await, Math.ceil(pause)),
          waitForTurn(waiter, giveUp, clock, isNext)
        )
      waiter.changed.closeUnsafe()
      const now = monotonicTime(clock)
      window.moveTo(now)
      const next = nextWaiter(waiter.class)
      if (waiter !== next) {
        // another call has become the next call; it may still be asleep, so it is woken to check for capacity
        if (wasNext) next?.changed.openUnsafe()
        // waits one millisecond past `giveUp`: if the calls ahead start in the last millisecond, this call can still
        // start
        return now <= giveUp
          ? again(millisBetween(now, giveUp) + 1, false)
          : Effect.fail(fullFor(waiter, unitsAhead(waiter, waiter)))
      }
      want(waiter, 0)
      return attempt(waiter, unitsAhead(waiter, waiter), clock).pipe(Effect.catch((full) => {
        want(waiter, waiter.cost)
        if (full.wait > millisBetween(monotonicTime(clock), giveUp)) return Effect.fail(full)
        const isAlone = shared === undefined && queues[waiter.class].size === 1
        return again(isAlone ? full.wait : Math.min(full.wait, recheckAfter), true)
      }))
    })

  const enqueue = (call: WindowCall, maxWait: number, clock: Clock.Clock) =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        const waiter: Waiter = { ...call, wants: 0, changed: Latch.makeUnsafe(false) }
        const queue = queues[call.class]
        const waiting = queue.get(call.caller) ?? { waiters: new Set(), wants: 0 }
        queue.set(call.caller, waiting)
        waiting.waiters.add(waiter)
        want(waiter, call.cost)
        return waiter
      }),
      (waiter) => waitForTurn(waiter, addMillis(monotonicTime(clock), maxWait), clock, false),
      (waiter) =>
        Effect.suspend(() => {
          want(waiter, 0)
          const waiters = queues[call.class].get(call.caller)?.waiters
          waiters?.delete(waiter)
          if (waiters?.size === 0) queues[call.class].delete(call.caller)
          // wakes the next calls asynchronously, because the wake-ups of a thousand calls would otherwise nest
          const firsts = [nextWaiter("once"), nextWaiter("read")].filter(Predicate.isNotUndefined)
          return Effect.forEach(firsts, ({ changed }) => changed.open, { discard: true })
        })
    )

  const takeOrWait = (request: PermitRequest): Effect.Effect<Permits, QuotaExceeded | UpstreamRateLimited> =>
    Effect.withFiber((fiber) => {
      const clock = fiber.getRef(Clock.Clock)
      const taken = tryTake(request, clock)
      if (taken !== undefined) return Effect.succeed(taken)
      window.moveTo(monotonicTime(clock))
      const call = toWindowCall(request)
      const first = attempt(call, unitsAhead(call), clock)
      if (pacer !== undefined && call.isRefresh === true) {
        return Effect.mapError(first, (full) => {
          pacer.pause(monotonicTime(clock))
          return refusal(full)
        })
      }
      return first.pipe(
        Effect.catchIf(({ wait }) => wait <= request.maxWait, () => {
          waits.updateUnsafe(1, fiber.context)
          return enqueue(call, request.maxWait, clock)
        }),
        Effect.mapError((full) => {
          refused(full).updateUnsafe(1, fiber.context)
          return refusal(full)
        })
      )
    })

  const available = (clock: Clock.Clock): number => {
    window.moveTo(monotonicTime(clock))
    return Math.max(0, bounds.limit - window.all.held.read - window.all.held.once - others.read - others.once)
  }
  const availableToReads = (clock: Clock.Clock): number => {
    const all = available(clock)
    return Math.max(0, Math.min(all, bounds.readLimit - window.all.held.read - others.read))
  }
  return { tryTake, take: takeOrWait, available, availableToReads }
}

/**
 * The windows in which rate limiters count calls, by upstream and by the number and width of the windows' slots.
 *
 * Provided by `Layer.succeed`.
 *
 * @since 0.1.0
 * @category services
 */
export class Windows extends Context.Service<Windows, Map<string, RateWindow.RateWindow>>()(
  "@trigate/upstream/limits/RateLimiter/Windows"
) {}

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

/**
 * Starts calls within their upstream's rate limit.
 *
 * Provided by `RateLimiter.layerMemory`, `RateLimiter.layerUnlimited` or `RateLimiterRedis.layer`.
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
  readonly tryTake: (request: PermitRequest, clock: Clock.Clock) => Permits | undefined
  /**
   * Takes the maximum cost of a call, after waiting at most `maxWait`.
   *
   * Fails as soon as it is certain that the wait would exceed `maxWait`: with `QuotaExceeded` if the caller is above
   * its share, otherwise with `UpstreamRateLimited`. In the error, `retryAfter` is the wait in whole seconds, provided
   * that no further call arrives.
   */
  readonly take: (request: PermitRequest) => Effect.Effect<Permits, QuotaExceeded | UpstreamRateLimited>
  /**
   * Returns the pacer of an upstream, which limits refreshes of cached responses; `undefined` if the upstream has no
   * limit.
   */
  readonly pacerOf: (upstream: Upstream.UpstreamLabel) => Pacer | undefined
}>()("@trigate/upstream/limits/RateLimiter") {}

/**
 * Weight per minute for the venue's API, request units per second for node providers. An upstream without a value is
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

const capacityIn = (wait: number) => {
  const retryAfter = Math.max(1, Math.ceil(wait / 1000))
  return { retryAfter, capacity: `it has capacity for this call in ${retryAfter} s` }
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
      const { capacity, retryAfter } = capacityIn(wait)
      const texts = (usedUp: string) => ({ retryAfter, detail: `${usedUp}; ${capacity} (${advice[upstream]})` })
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
        const { capacity, retryAfter } = capacityIn(wait)
        const what = quota === "weight" ? "weight per minute" : "request units per second"
        return new QuotaExceeded({ retryAfter, detail: `The caller's quota of ${what} is used up; ${capacity}` })
      }
    })
    // a quota belongs to one caller, so it is not divided into shares
    const quotaLimiter: Takes = {
      tryTake: (request, clock) => limiter.tryTake({ ...request, caller: Caller.local }, clock),
      take: (request) => limiter.take({ ...request, caller: Caller.local })
    }
    return quotaLimiter
  }
  return ({ caller, upstream }: PermitRequest): Takes | undefined => {
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
  const takeBoth = (request: PermitRequest, quota: Takes, clock: Clock.Clock) => {
    const start = monotonicTime(clock)
    return Effect.flatMap(quota.take(request), (own) => {
      const maxWait = Math.max(0, request.maxWait - millisBetween(start, monotonicTime(clock)))
      const taken = Effect.onExitPrimitive(limiters[request.upstream].take({ ...request, maxWait }), (exit) => {
        if (exit._tag === "Failure") own.refund(worstCost(request.upstream, request))
        return undefined
      })
      return Effect.map(taken, (permits) => both(own, permits))
    })
  }

  return RateLimiter.of({
    pacerOf: (upstream) => limiters[upstream].pacer,
    tryTake: (request, clock) => {
      const quota = callerQuota(request)
      if (quota === undefined) return limiters[request.upstream].tryTake(request, clock)
      const own = quota.tryTake(request, clock)
      const permits = own === undefined ? undefined : limiters[request.upstream].tryTake(request, clock)
      if (own === undefined || permits === undefined) own?.refund(worstCost(request.upstream, request))
      else return both(own, permits)
      return undefined
    },
    take: (request) => {
      const quota = callerQuota(request)
      return quota === undefined
        ? limiters[request.upstream].take(request)
        : Effect.clockWith((clock) => takeBoth(request, quota, clock))
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
 * // weight per minute of the venue's API, requests per second of a node
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
