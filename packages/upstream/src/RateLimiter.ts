/**
 * Keeps each upstream's rate limit: weight a minute of the official API, request units a second of a node's plan.
 *
 * A call takes its worst case before it goes out and refunds what it did not use. In any minute (second) the calls that
 * start use no more than the limit, and they can use all of it. Reads leave 5 % of the weight to actions. A call that finds
 * no room waits in a fair queue, for at most its max wait.
 *
 * Time is cut into slots. The current slot and the `slots` before it cover every window that ends now.
 *
 * A call counts at the time at which it starts here. Network delay and differences between the clocks of replicas are not
 * covered: to leave room for them, set a limit somewhat below the upstream's.
 */
import { metrics } from "@trigate/domain/Metrics"
import type { Cost, MethodClass } from "@trigate/domain/Operation"
import { worstWeightOf } from "@trigate/domain/Operation"
import type { Settings } from "@trigate/domain/Settings"
import { settings } from "@trigate/domain/Settings"
import { UpstreamRateLimited } from "@trigate/domain/UpstreamError"
import * as Clock from "effect/Clock"
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import type { UpstreamLabel } from "./Upstream.ts"

/** The limit of a window that is `slots` times `width` milliseconds long. */
export interface Bounds {
  /** Units that all calls in a window may take. */
  readonly limit: number
  /** Units of the limit that reads may take; the rest is for actions alone. */
  readonly readLimit: number
  readonly slots: number
  readonly width: number
}

/** Units by method class: what calls hold, or what waiting calls want. */
export type Units = { [Class in MethodClass]: number }

/** What the calls hold that started in a slot. */
export interface Slot extends Units {
  readonly index: number
}

/** A call and the units that it takes. */
export interface Call {
  readonly class: MethodClass
  readonly cost: number
}

/** Bounds for `limit` units in `window` milliseconds; a limit below 1 is one unit in a window longer by that factor. */
export const boundsOf = (limit: number, window: number, slots: number, reservedPart: number): Bounds => {
  const whole = Math.max(1, Math.floor(limit))
  const reserved = reservedPart === 0 || whole < 2 ? 0 : Math.max(1, Math.floor(whole * reservedPart))
  return { limit: whole, readLimit: whole - reserved, slots, width: Math.ceil(window / Math.min(1, limit) / slots) }
}

export const slotAt = ({ width }: Pick<Bounds, "width">, now: number): number => Math.floor(now / width)

/** The most that reads may hold for a call to start after those `ahead` of it; any number for an action. */
export const mostReads = ({ readLimit }: Bounds, methodClass: MethodClass, cost: number, ahead: Units): number =>
  methodClass === "once" ? Number.MAX_SAFE_INTEGER : readLimit - ahead.read - Math.min(cost, readLimit)

/** The most that all calls may hold for a call to start after those `ahead` of it. Actions do not wait for reads. */
export const mostUnits = ({ limit }: Bounds, methodClass: MethodClass, cost: number, ahead: Units): number =>
  // a call that costs more than the limit starts alone
  limit - ahead.once - (methodClass === "once" ? 0 : ahead.read) - Math.min(cost, limit)

/**
 * Milliseconds from `now` until a call may start if no other call comes; 0 when it may start now.
 *
 * `slots` are in the order of time. Calls ahead take each unit as soon as it leaves the window, and hold it for a window.
 */
export const waitOf = (bounds: Bounds, slots: ReadonlyArray<Slot>, call: Call, ahead: Units, now: number): number => {
  const until = (limit: number, most: number, unitsOf: (slot: Units) => number) => {
    const held = slots.reduce((sum, slot) => sum + unitsOf(slot), 0)
    if (held <= most) return 0
    // the units that a call holds beyond the limit are not given to the next call when it leaves
    const rounds = Math.max(1, Math.ceil((held - most - Math.max(0, held - limit)) / limit))
    const leaves = (slot: number) => (slot + rounds * (bounds.slots + 1)) * bounds.width - now
    let rest = held - most - (rounds - 1) * limit
    for (const slot of slots) {
      rest -= unitsOf(slot)
      if (rest <= 0) return leaves(slot.index)
    }
    return leaves(slotAt(bounds, now))
  }
  return Math.max(
    until(bounds.readLimit, mostReads(bounds, call.class, call.cost, ahead), ({ read }) => read),
    until(bounds.limit, mostUnits(bounds, call.class, call.cost, ahead), ({ once, read }) => read + once)
  )
}

/** The window of one process. It allocates a slot at a time, and nothing for a call. */
export class SlidingWindow {
  readonly #bounds: Pick<Bounds, "slots" | "width">
  #current = 0
  /** What started in the window, in the order of time. */
  readonly slots: Array<Slot> = []
  /** What the slots hold together. */
  readonly held: Units = { read: 0, once: 0 }

  constructor(bounds: Pick<Bounds, "slots" | "width">) {
    this.#bounds = bounds
  }

  /** Moves the window to a time and drops the slots that have left it. */
  moveTo(now: number): void {
    this.#current = Math.max(this.#current, slotAt(this.#bounds, now))
    for (let oldest = this.slots[0]; oldest !== undefined && !this.#covers(oldest); oldest = this.slots[0]) {
      this.slots.shift()
      this.held.read -= oldest.read
      this.held.once -= oldest.once
    }
  }

  /** Whether a call may start after those `ahead` of it. */
  fits(bounds: Bounds, methodClass: MethodClass, cost: number, ahead: Units): boolean {
    const { once, read } = this.held
    return read <= mostReads(bounds, methodClass, cost, ahead) &&
      read + once <= mostUnits(bounds, methodClass, cost, ahead)
  }

  /** Counts a call in the current slot, which it answers. */
  take(methodClass: MethodClass, cost: number): Slot {
    let slot = this.slots.at(-1)
    if (slot?.index !== this.#current) this.slots.push(slot = { index: this.#current, read: 0, once: 0 })
    slot[methodClass] += cost
    this.held[methodClass] += cost
    return slot
  }

  /** Takes units out of the slot in which they were counted, while the window holds it. */
  refund(slot: Slot, methodClass: MethodClass, units: number): void {
    if (!this.#covers(slot)) return
    slot[methodClass] -= units
    this.held[methodClass] -= units
  }

  #covers(slot: Slot): boolean {
    return slot.index >= this.#current - this.#bounds.slots
  }
}

/**
 * The windows in which limiters count, by upstream and shape.
 *
 * A limiter has its own where none are provided. A limiter that replaces another one under other limits gets the same ones, so
 * that what has started is not forgotten.
 */
export const Windows = Context.Reference<Map<string, SlidingWindow> | undefined>(
  "@trigate/upstream/RateLimiter/Windows",
  {
    defaultValue: () => undefined
  }
)

const windowOf = (upstream: UpstreamLabel, bounds: Bounds) =>
  Effect.map(Windows, (windows = new Map()) => {
    const key = `${upstream} ${bounds.slots}x${bounds.width}`
    const window = windows.get(key) ?? new SlidingWindow(bounds)
    windows.set(key, window)
    return window
  })

/** A call that wants to start. */
export interface Ask {
  readonly upstream: UpstreamLabel
  /** Actions (`once`) have a share that reads cannot take, and do not wait for reads. */
  readonly class: MethodClass
  readonly cost: Cost
  /** Milliseconds that the call can wait. */
  readonly maxWait: number
}

/** What a call has taken. */
export interface Permits {
  /** Returns what the call did not use, in units of what it took; never more than that. */
  readonly refund: (unused: number) => void
}

/** Lets calls start when their upstream's rate limit has room for them. */
export class RateLimiter extends Context.Service<RateLimiter, {
  /**
   * Takes the worst case of a call now.
   *
   * Answers undefined and takes nothing where the call has to wait, or where a window shared by replicas has to be asked.
   */
  readonly tryTake: (ask: Ask, clock: Clock.Clock) => Permits | undefined
  /**
   * Takes the worst case of a call, and waits for it up to `maxWait`.
   *
   * Fails with `UpstreamRateLimited` as soon as it knows that the wait would be longer. `retryAfter` is that wait in whole
   * seconds, if no other call comes.
   */
  readonly take: (ask: Ask) => Effect.Effect<Permits, UpstreamRateLimited>
}>()("@trigate/upstream/RateLimiter") {}

/** Weight a minute of the official API, request units a second of the others; an upstream without a limit has none. */
export type Limits = { readonly [Label in UpstreamLabel]?: number | undefined }

/** Milliseconds of a clock that never goes back; only differences mean something. */
export const monotonicMillis = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6

/** Weight a minute that the venue grants an IP address. */
export const defaultWeight = settings.tradingApiWeight.fallback

/** What a call takes before it goes out: weight of the official API, request units of a node. */
export const worstOf = (upstream: UpstreamLabel, call: { readonly cost: Cost }): number =>
  upstream === "trading-api" ? worstWeightOf(call) : call.cost.requestUnits

/** Counts a call in a window that replicas share if it may start after those `ahead`; undefined while that is away. */
export type SharedWindow = (call: Call, ahead: Units) => Effect.Effect<SharedAnswer | undefined>

/** What a shared window answers a call. */
export interface SharedAnswer extends Permits {
  /** What the window holds now. */
  readonly held: Units
  /** Milliseconds that the call has to wait; 0 if it is counted. */
  readonly wait: number
}

interface Waiter extends Call {
  /** Units that the call still wants; 0 while it tries to take them. */
  wants: number
  readonly changed: Latch.Latch
}

const none: Units = { read: 0, once: 0 }

// refunds of other replicas come unannounced: a call that waits for a shared window asks again after so many milliseconds
const recheckAfter = 250

/** Reports what `read` answers while the scope is open. It is asked when somebody looks, so that no call pays for it. */
const report = (upstream: UpstreamLabel, share: "common" | "actions", read: (clock: Clock.Clock) => number) => {
  const gauge = metrics.rateLimitAvailable.series({ upstream, share })
  return Effect.acquireRelease(
    Effect.map(Effect.context(), (registered) =>
      Metric.registerUnsafe(gauge, registered, {
        get: (context) => ({ value: read(Context.get(context, Clock.Clock)) }),
        update: () => {},
        modify: () => {}
      })),
    (registration) => Effect.sync(registration.remove)
  )
}

/** Keeps the limit of one upstream in this process, and in the shared window where there is one. */
const makeOne = Effect.fnUntraced(function*(upstream: UpstreamLabel, bounds: Bounds, shared: SharedWindow | undefined) {
  const window = yield* windowOf(upstream, bounds)
  const queues: { readonly [Class in MethodClass]: Set<Waiter> } = { read: new Set(), once: new Set() }
  /** What the queued calls want. */
  const wanted = { read: 0, once: 0 }
  /** What other replicas hold, as far as the shared window has told. */
  let others = none
  const longestPause = shared === undefined ? Number.POSITIVE_INFINITY : recheckAfter
  const waits = metrics.rateLimitWaits.series({ upstream })
  const refused = metrics.rateLimitRefused.series({ upstream })

  const waitFor = (call: Call, ahead: Units, now: number) => waitOf(bounds, window.slots, call, ahead, now)

  const refusal = (wait: number) => {
    const retryAfter = Math.max(1, Math.ceil(wait / 1000))
    const detail = `The rate limit of ${upstream} is used up; it has room for this call in ${retryAfter} s`
    return new UpstreamRateLimited({ upstream, retryAfter, detail })
  }

  const want = (waiter: Waiter, units: number) => {
    wanted[waiter.class] += units - waiter.wants
    waiter.wants = units
  }

  const aheadOf = (waiter: Waiter): Units => {
    let own = 0
    for (const other of queues[waiter.class]) {
      if (other === waiter) break
      own += other.wants
    }
    return { ...wanted, [waiter.class]: own }
  }

  const firsts = () => [queues.once, queues.read].flatMap(([first]) => first ?? [])

  const permits = (slot: Slot, methodClass: MethodClass, cost: number, refundShared?: Permits["refund"]): Permits => {
    let held = cost
    const refund = (unused: number) => {
      const units = Math.max(0, Math.min(held, unused))
      if (units === 0) return
      held -= units
      window.refund(slot, methodClass, units)
      refundShared?.(units)
      for (const { changed } of firsts()) changed.openUnsafe()
    }
    return { refund }
  }

  const tryTake = (ask: Ask, clock: Clock.Clock): Permits | undefined => {
    if (shared !== undefined) return undefined
    const cost = worstOf(upstream, ask)
    window.moveTo(monotonicMillis(clock))
    return window.fits(bounds, ask.class, cost, wanted)
      ? permits(window.take(ask.class, cost), ask.class, cost)
      : undefined
  }

  /** Takes the units of a call if it may start after those `ahead`, or else fails with the milliseconds to wait. */
  const attempt = (call: Call, ahead: Units, clock: Clock.Clock): Effect.Effect<Permits, number> =>
    Effect.uninterruptibleMask((restore) => {
      const now = monotonicMillis(clock)
      window.moveTo(now)
      if (!window.fits(bounds, call.class, call.cost, ahead)) return Effect.fail(waitFor(call, ahead, now))
      const slot = window.take(call.class, call.cost)
      if (shared === undefined) return Effect.succeed(permits(slot, call.class, call.cost))
      return Effect.flatMap(shared(call, ahead), (answer): Effect.Effect<Permits, number> => {
        const { held, wait } = answer ?? { held: none, wait: 0 }
        if (wait > 0) window.refund(slot, call.class, call.cost)
        others = { read: Math.max(0, held.read - window.held.read), once: Math.max(0, held.once - window.held.once) }
        if (wait > 0) return Effect.fail(wait)
        const taken = permits(slot, call.class, call.cost, answer?.refund)
        // a caller that left while the window was asked takes nothing
        return Effect.onInterrupt(restore(Effect.succeed(taken)), () => Effect.sync(() => taken.refund(call.cost)))
      })
    })

  /** Waits to be the first of the queue, then for room, until the wait would end after `giveUp`. */
  const waitForTurn = (waiter: Waiter, giveUp: number, clock: Clock.Clock): Effect.Effect<Permits, number> =>
    Effect.suspend(() => {
      const again = (pause: number) =>
        Effect.andThen(
          Effect.timeoutOption(waiter.changed.await, Math.ceil(pause)),
          waitForTurn(waiter, giveUp, clock)
        )
      waiter.changed.closeUnsafe()
      const now = monotonicMillis(clock)
      const [first] = queues[waiter.class]
      if (waiter !== first) {
        // one millisecond longer: in the last one, the calls before may start and this call after them
        return now <= giveUp ? again(giveUp + 1 - now) : Effect.fail(waitFor(waiter, aheadOf(waiter), now))
      }
      want(waiter, 0)
      return attempt(waiter, aheadOf(waiter), clock).pipe(Effect.catch((wait) => {
        want(waiter, waiter.cost)
        return monotonicMillis(clock) + wait > giveUp ? Effect.fail(wait) : again(Math.min(wait, longestPause))
      }))
    })

  const enqueue = (call: Call, maxWait: number, clock: Clock.Clock) =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        const waiter: Waiter = { ...call, wants: 0, changed: Latch.makeUnsafe(false) }
        queues[call.class].add(waiter)
        want(waiter, call.cost)
        return waiter
      }),
      (waiter) => waitForTurn(waiter, monotonicMillis(clock) + maxWait, clock),
      (waiter) =>
        Effect.suspend(() => {
          want(waiter, 0)
          queues[call.class].delete(waiter)
          // not at once: a thousand calls that start together would start within each other
          return Effect.forEach(firsts(), ({ changed }) => changed.open, { discard: true })
        })
    )

  const take = (ask: Ask): Effect.Effect<Permits, UpstreamRateLimited> =>
    Effect.withFiber((fiber) => {
      const clock = fiber.getRef(Clock.Clock)
      const taken = tryTake(ask, clock)
      if (taken !== undefined) return Effect.succeed(taken)
      const call: Call = { class: ask.class, cost: worstOf(upstream, ask) }
      return attempt(call, { ...wanted }, clock).pipe(
        Effect.catchIf((wait) => wait <= ask.maxWait, () => {
          waits.updateUnsafe(1, fiber.context)
          return enqueue(call, ask.maxWait, clock)
        }),
        Effect.mapError((wait) => {
          refused.updateUnsafe(1, fiber.context)
          return refusal(wait)
        })
      )
    })

  const available = (clock: Clock.Clock): number => {
    window.moveTo(monotonicMillis(clock))
    return Math.max(0, bounds.limit - window.held.read - window.held.once - others.read - others.once)
  }
  yield* report(upstream, "common", (clock) => {
    const all = available(clock)
    return Math.max(0, Math.min(all, bounds.readLimit - window.held.read - others.read))
  })
  if (bounds.readLimit < bounds.limit) yield* report(upstream, "actions", available)

  return RateLimiter.of({ tryTake, take })
})

const unlimitedPermits: Permits = { refund: () => {} }
const unlimitedTake = Effect.succeed(unlimitedPermits)
const unlimited = RateLimiter.of({ tryTake: () => unlimitedPermits, take: () => unlimitedTake })

/** A rate limiter that counts in the window that `share` answers, too. */
export const make = Effect.fnUntraced(function*(
  limits: Limits,
  share: (upstream: UpstreamLabel, bounds: Bounds) => SharedWindow | undefined
) {
  const limiter = (upstream: UpstreamLabel) => {
    const limit = limits[upstream]
    if (limit === undefined) return Effect.succeed(unlimited)
    const bounds = upstream === "trading-api"
      ? boundsOf(limit, 60_000, 60, 0.05)
      : boundsOf(limit, 1000, 20, 0)
    return makeOne(upstream, bounds, share(upstream, bounds))
  }
  const limiters = yield* Effect.all({
    "trading-api": limiter("trading-api"),
    "trading-node": limiter("trading-node"),
    "token-chain": limiter("token-chain"),
    layer2: limiter("layer2")
  })
  return RateLimiter.of({
    tryTake: (ask, clock) => limiters[ask.upstream].tryTake(ask, clock),
    take: (ask) => limiters[ask.upstream].take(ask)
  })
})

/** No limits: every call starts at once. */
export const layerUnlimited: Layer.Layer<RateLimiter> = Layer.succeed(RateLimiter, unlimited)

/** The limits of this process alone. */
export const layerMemory = (limits: Limits): Layer.Layer<RateLimiter> =>
  Layer.effect(RateLimiter, make(limits, () => undefined))

/** The limits that the settings name. */
export const limitsOf = (
  named: Pick<Settings, "tradingApiWeight" | "tradingNodeRps" | "tokenChainRps" | "layer2Rps">
): Limits => ({
  "trading-api": named.tradingApiWeight,
  "trading-node": Option.getOrUndefined(named.tradingNodeRps),
  "token-chain": Option.getOrUndefined(named.tokenChainRps),
  layer2: Option.getOrUndefined(named.layer2Rps)
})

const { layer2Rps, tokenChainRps, tradingApiWeight, tradingNodeRps } = settings

/** The limits of `TRIGATE_TRADING_API_WEIGHT` and of the three settings `TRIGATE_…_RPS`. */
export const config: Config.Config<Limits> = Config.map(
  Config.all({ layer2Rps, tokenChainRps, tradingApiWeight, tradingNodeRps }),
  limitsOf
)
