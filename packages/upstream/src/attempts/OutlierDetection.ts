/**
 * Outlier detection: selects the addresses of an upstream to which calls are sent.
 *
 * Five consecutive suspicious attempts start a probe, a cheap call that every healthy address serves. An address is
 * ejected only if it also fails its probe, so callers' requests alone cannot eject an address. An ejected address is
 * probed again after 1, 2, 4, 8 and then every 10 seconds, and is used again when a probe passes.
 *
 * Each process decides for itself, as in Envoy.
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
 * The evidence of one attempt about the health of its address.
 *
 * `healthy`: the upstream itself responded. `none`: no evidence, such as an HTTP 500, a response that is too long, HTTP
 * 429, or the timeout of a call that may be slow. All other values are suspicious: no connection, a broken connection,
 * the timeout of a cheap call, and HTTP 502 to 504 without the upstream's own JSON.
 */
export type HealthSignal = "healthy" | "none" | Exclude<EjectionCause, "wrong_chain">

/** The usable addresses for one call. */
export interface Usable<T extends Target> {
  /** The usable addresses, best first; empty if the call has to fail immediately. */
  readonly targets: ReadonlyArray<T>
  /** Milliseconds until the next probe if `targets` is empty; `undefined` if that is unknown. */
  readonly retryAfter: number | undefined
}

/**
 * Orders the addresses for calls, and learns from the results of attempts. All members except `ready` are synchronous.
 *
 * @since 0.1.0
 * @category services
 */
export class OutlierDetection extends Context.Service<OutlierDetection, {
  /**
   * Returns the targets to try, best first. Targets whose address is neither ejected nor deferred come first.
   *
   * At most half of the addresses, rounded down, are excluded because they are ejected or deferred. The remaining
   * ejected or deferred addresses follow as a last resort: deferred addresses before ejected ones, each group ordered
   * by the time at which the addresses become usable again. A single address is excluded only while it is ejected. An
   * address on a wrong chain is always excluded.
   */
  readonly choose: <T extends Target>(targets: NonEmptyReadonlyArray<T>) => Usable<T>
  /**
   * Waits, at most 200 ms, for the first comparison of the chain IDs of the targets' addresses. Returns `undefined` if
   * no first comparison is pending.
   */
  readonly ready: (targets: ReadonlyArray<Target>) => Effect.Effect<void> | undefined
  /** Records what an attempt showed about the health of its address. Starts a probe in the background if needed. */
  readonly report: (target: Target, signal: HealthSignal) => void
  /** Defers an address for some milliseconds, at most one hour, because a response from it contained `Retry-After`. */
  readonly defer: (target: Target, millis: number) => void
}>()("@trigate/upstream/attempts/OutlierDetection") {}

/**
 * Disables outlier detection: every address is always usable.
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
  /** Number of consecutive suspicious attempts at an address after which the address is probed. Default: 5. */
  readonly failures?: number
  /** Time from an ejection to the next probe. The time doubles after each failed probe. Default: 1 second. */
  readonly shortest?: Duration.Input
  /** Maximum time between two probes of an ejected address. Default: 10 seconds. */
  readonly longest?: Duration.Input
  /** EVM upstreams whose URLs must all lead to the same chain. */
  readonly oneChain?: ReadonlyArray<Checked>
  /** Time between two comparisons of chains, with a jitter of one fifth. Default: 1 minute. */
  readonly compareEvery?: Duration.Input
}

interface Candidate<T> {
  readonly target: T
  readonly isEjected: boolean
  /** The time at which the address becomes usable, in milliseconds; a time in the past if it is usable now. */
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
  const shortest = Duration.toMillis(options.shortest ?? "1 second")
  const longest = Duration.toMillis(options.longest ?? "10 seconds")
  const clock = yield* Clock.Clock
  const findState = states(yield* Effect.context())
  const send = Probe.make(yield* HttpTransport)
  const run = yield* FiberSet.makeRuntime()
  const groups = new Map<AddressState, ChainGroup>()

  const compare = (group: ChainGroup) =>
    Effect.forEach(group.compare(), ({ address, right }) =>
      address.isOnWrongChain
        ? Effect.logWarning(
          `${
            targetName(address.target)
          } reports the chain ID ${address.chainId}, expected ${right}: it receives no calls until it reports ${right}`
        )
        : Effect.logInfo(`${targetName(address.target)} is on chain ${right} again`), { discard: true })

  const probe = Effect.fnUntraced(function*(address: AddressState, onNewConnection: boolean) {
    const { chainId, passed } = yield* send(address.target, onNewConnection)
    address.chainId = chainId ?? address.chainId
    return passed
  })

  /** Probes a suspect address. Probes an ejected address repeatedly until a probe passes. */
  const judge = Effect.fnUntraced(function*(address: AddressState, cause: EjectionCause) {
    const group = groups.get(address)
    const passes = Effect.tap(
      probe(address, true),
      () => group?.isChecked === true ? compare(group) : Effect.void
    )
    const isSound = yield* passes
    // an attempt that succeeded in the meantime is better evidence than the probe
    if (!isSound && address.suspicions >= failures) {
      address.phase = "ejected"
      address.report(cause)
      const name = targetName(address.target)
      yield* Effect.logWarning(`${name} is ejected: ${address.suspicions} consecutive attempts and its probe failed`)
      for (let pause = shortest;; pause = Math.min(2 * pause, longest)) {
        address.ejectedUntil = clock.currentTimeMillisUnsafe() + pause
        yield* Effect.sleep(pause)
        if (yield* passes) break
      }
      address.ejectedUntil = 0
      yield* Effect.logInfo(`${name} passed its probe and is used again`)
    }
    address.phase = "trusted"
    address.suspicions = 0
    address.report()
  })

  const round = Effect.fnUntraced(function*(group: ChainGroup) {
    // addresses that are not trusted are already being probed
    const asked = group.addresses.filter(({ phase }) => phase === "trusted")
    yield* Effect.forEach(asked, (address) => probe(address, false), { concurrency: "unbounded", discard: true })
    yield* compare(group)
  })

  /**
   * The groups with several addresses whose chain IDs have not been compared yet; calls wait for their first
   * comparison.
   */
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
      // the usual case is checked first, because this function runs for every call
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
 * Provides outlier detection. Sends probes over the transport of the context.
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
