/**
 * Outlier detection: which addresses of an upstream a call should go to.
 *
 * Five suspicious attempts in a row start a probe, a cheap call that every healthy address serves. Only an address that
 * also fails its probe is ejected, so no caller can have an address ejected by its requests. An ejected address is
 * probed again after 1, 2, 4, 8 and then every 10 seconds, and returns when a probe passes.
 *
 * Each process decides for itself, as Envoy does.
 */
import * as Arr from "effect/Array"
import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Layer from "effect/Layer"
import * as Order from "effect/Order"
import * as Schedule from "effect/Schedule"
import { HttpTransport } from "../transport/HttpTransport.ts"
import { targetName, targets } from "../Upstream.ts"
import type { Target } from "../Upstream.ts"
import { states } from "./AddressState.ts"
import type { AddressState, EjectionCause } from "./AddressState.ts"
import type { Checked } from "./ChainCheck.ts"
import { ChainGroup } from "./ChainCheck.ts"
import * as Probe from "./Probe.ts"

/**
 * The evidence of one attempt about its address.
 *
 * `healthy`: the upstream sent a response of its own. `none`: no evidence either way, such as an HTTP 500, a response that is too
 * long, HTTP 429, or the timeout of a call that may be slow by itself. The rest is suspicious: no connection, a broken
 * connection, the timeout of a cheap call, and HTTP 502 to 504 that are not the upstream's own JSON.
 */
export type HealthSignal = "healthy" | "none" | Exclude<EjectionCause, "wrong_chain">

/** The addresses of one call that may be asked. */
export interface Usable<T extends Target> {
  /** Best first; empty when the call has to fail at once. */
  readonly targets: ReadonlyArray<T>
  /** Milliseconds until the next probe where `targets` is empty; `undefined` when no time is known. */
  readonly retryAfter: number | undefined
}

/**
 * Orders the addresses that calls go to, and learns from the results of attempts. All members but `ready` are synchronous.
 *
 * @since 0.1.0
 * @category services
 */
export class OutlierDetection extends Context.Service<OutlierDetection, {
  /**
   * The targets to ask: first those that are neither ejected nor deferred.
   *
   * Of two or more addresses at most half, rounded down, are left out. The others follow as a last resort: deferred
   * before ejected ones, the soonest back first. A single address is left out only while it is ejected. An address on a
   * wrong chain is always left out.
   */
  readonly choose: <T extends Target>(targets: NonEmptyReadonlyArray<T>) => Usable<T>
  /** Waits, 200 ms at most, until the chains of these addresses were compared once; `undefined` where nothing is awaited. */
  readonly ready: (targets: ReadonlyArray<Target>) => Effect.Effect<void> | undefined
  /** Takes note of an attempt; starts a probe in the background when there is reason to. */
  readonly report: (target: Target, signal: HealthSignal) => void
  /** Leaves an address alone for some milliseconds, one hour at most, as its `Retry-After` asks. */
  readonly defer: (target: Target, millis: number) => void
}>()("@trigate/upstream/attempts/OutlierDetection") {}

/**
 * Every address is always usable.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerAlways: Layer.Layer<OutlierDetection> = Layer.succeed(
  OutlierDetection,
  OutlierDetection.of({
    choose: (targets) => ({ targets, retryAfter: undefined }),
    ready: () => undefined,
    report: () => {},
    defer: () => {}
  })
)

/** The conditions for ejecting an address, and the upstreams whose addresses must be on one chain. */
export interface Options {
  /** Suspicious attempts in a row before a probe; 5 when not given. */
  readonly failures?: number
  /** The first ejection; each further one is twice as long. 1 second when not given. */
  readonly shortest?: Duration.Input
  /** The longest time between two probes of an ejected address; 10 seconds when not given. */
  readonly longest?: Duration.Input
  /** EVM upstreams whose addresses must be on one chain. */
  readonly oneChain?: ReadonlyArray<Checked>
  /** Time between two comparisons of chains, give or take a fifth; 1 minute when not given. */
  readonly compareEvery?: Duration.Input
}

const toMillis = (input: Duration.Input): number => Duration.toMillis(Duration.fromInputUnsafe(input))

interface Candidate<T> {
  readonly target: T
  readonly isEjected: boolean
  /** When the address is back, in milliseconds; not after the present where it is there. */
  readonly back: number
}

const lastResort = Order.combine(
  Order.mapInput(Order.Boolean, (candidate: Candidate<unknown>) => candidate.isEjected),
  Order.mapInput(Order.Number, (candidate: Candidate<unknown>) => candidate.back)
)

const chooseFrom = <T extends Target>(all: ReadonlyArray<Candidate<T>>, now: number): Usable<T> => {
  const [first, ...others] = all
  if (first === undefined) return { targets: [], retryAfter: undefined }
  if (others.length === 0) {
    return first.isEjected
      ? { targets: [], retryAfter: Math.max(0, first.back - now) }
      : { targets: [first.target], retryAfter: undefined }
  }
  const isPresent = ({ back, isEjected }: Candidate<T>) => !isEjected && back <= now
  const out = all.filter((each) => !isPresent(each))
  const needed = Math.max(0, out.length - Math.floor(all.length / 2))
  const admitted = Arr.sort(out, lastResort).slice(0, needed)
  return { targets: [...all.filter(isPresent), ...admitted].map(({ target }) => target), retryAfter: undefined }
}

const make = Effect.fnUntraced(function*(options: Options) {
  const { compareEvery = "1 minute", failures = 5, oneChain = [] } = options
  const shortest = toMillis(options.shortest ?? "1 second")
  const longest = toMillis(options.longest ?? "10 seconds")
  const clock = yield* Clock.Clock
  const findState = states(yield* Effect.context())
  const send = Probe.make(yield* HttpTransport)
  const run = yield* FiberSet.makeRuntime()
  const groups = new Map<AddressState, ChainGroup>()

  const compare = (group: ChainGroup) =>
    Effect.forEach(group.compare(), ({ address, right }) =>
      address.isOnWrongChain
        ? Effect.logWarning(
          `${targetName(address.target)} is on chain ${address.chainId}, not on ${right}: it gets no calls until it is`
        )
        : Effect.logInfo(`${targetName(address.target)} is on chain ${right} again`), { discard: true })

  const probe = Effect.fnUntraced(function*(address: AddressState, onNewConnection: boolean) {
    const { chainId, passed } = yield* send(address.target, onNewConnection)
    address.chainId = chainId ?? address.chainId
    return passed
  })

  /** Probes a suspect, and an ejected address until a probe passes. */
  const judge = Effect.fnUntraced(function*(address: AddressState, cause: EjectionCause) {
    const group = groups.get(address)
    const passes = Effect.tap(
      probe(address, true),
      () => group?.isChecked === true ? compare(group) : Effect.void
    )
    const isSound = yield* passes
    // an attempt that succeeded beside the probe says more than the probe
    if (!isSound && address.suspicions >= failures) {
      address.phase = "ejected"
      address.tell(cause)
      const name = targetName(address.target)
      yield* Effect.logWarning(`${name} is ejected: ${address.suspicions} attempts in a row failed, and its probe too`)
      for (let pause = shortest;; pause = Math.min(2 * pause, longest)) {
        address.ejectedUntil = clock.currentTimeMillisUnsafe() + pause
        yield* Effect.sleep(pause)
        if (yield* passes) break
      }
      yield* Effect.logInfo(`${name} passes its probe again and gets calls`)
    }
    address.phase = "trusted"
    address.suspicions = 0
    address.tell()
  })

  const round = Effect.fnUntraced(function*(group: ChainGroup) {
    // the others are being probed already
    const asked = group.addresses.filter(({ phase }) => phase === "trusted")
    yield* Effect.forEach(asked, (address) => probe(address, false), { concurrency: "unbounded", discard: true })
    yield* compare(group)
  })

  /** Groups whose first round is worth waiting for: another address could be asked. */
  const awaited = new Set<ChainGroup>()
  for (const { chainId, upstream } of oneChain) {
    const addresses = targets(upstream, "").map(findState)
    if (addresses.length < 2 && chainId === undefined) continue
    const group = new ChainGroup(addresses, chainId)
    for (const address of addresses) groups.set(address, group)
    if (addresses.length > 1) awaited.add(group)
    const over = Effect.sync(() => {
      awaited.delete(group)
      Deferred.doneUnsafe(group.firstRound, Effect.void)
    })
    yield* round(group).pipe(
      Effect.ensuring(over),
      Effect.repeat(Schedule.jittered(Schedule.spaced(compareEvery))),
      Effect.forkScoped
    )
  }

  const isPresent = (target: Target): boolean => {
    const address = findState(target)
    return !address.isEjected && address.deferredUntil === 0
  }

  return OutlierDetection.of({
    choose: (targets) => {
      // the usual case, and the only one that is on the path of every call
      if (targets.every(isPresent)) return { targets, retryAfter: undefined }
      const now = clock.currentTimeMillisUnsafe()
      const candidates = targets.flatMap((target) => {
        const address = findState(target)
        if (address.deferredUntil <= now) address.deferredUntil = 0
        const isEjected = address.phase === "ejected"
        const back = Math.max(address.deferredUntil, isEjected ? address.ejectedUntil : 0)
        return address.isOnWrongChain ? [] : [{ target, isEjected, back }]
      })
      return chooseFrom(candidates, now)
    },
    ready: (targets) => {
      if (awaited.size === 0) return undefined
      const rounds = targets.flatMap((target) => {
        const group = groups.get(findState(target))
        return group !== undefined && awaited.has(group) ? Deferred.await(group.firstRound) : []
      })
      return rounds.length === 0
        ? undefined
        : Effect.asVoid(Effect.timeoutOption(Effect.all(rounds, { discard: true }), "200 millis"))
    },
    report: (target, signal) => {
      if (signal === "none") return
      const address = findState(target)
      address.suspicions = signal === "healthy" ? 0 : address.suspicions + 1
      if (signal === "healthy" || address.suspicions < failures || address.phase !== "trusted") return
      address.phase = "suspect"
      run(judge(address, signal))
    },
    defer: (target, millis) => findState(target).defer(millis, clock.currentTimeMillisUnsafe())
  })
})

/**
 * Outlier detection over the transport of the context, which its probes go through.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { OutlierDetection, TransportLayers } from "@trigate/upstream"
 * import { Layer } from "effect"
 *
 * export const detection = Layer.provide(OutlierDetection.layer(), TransportLayers.layerUndici())
 * ```
 */
export const layer = (options: Options = {}): Layer.Layer<OutlierDetection, never, HttpTransport> =>
  Layer.effect(OutlierDetection, make(options))
