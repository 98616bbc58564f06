/**
 * Outlier detection: selects the addresses of an upstream to which calls are sent.
 *
 * Without a configured chain ID, the right chain is the chain of most addresses; in a tie, it is the chain of the most
 * preferred address. An address that does not respond still counts with its last known chain. Otherwise, addresses on a
 * wrong chain could become the majority while the other addresses are down.
 *
 * Five consecutive suspicious attempts start a probe, a cheap call that every healthy address serves. An address is
 * ejected only if it also fails its probe, so callers' requests alone cannot eject an address. An ejected address is
 * probed again after 1, 2, 4, 8 and then every 10 seconds, and is used again when a probe passes.
 *
 * Each process decides for itself, as in Envoy.
 */
import { background } from "@trigate/domain/Caller"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import * as JsonRpc from "@trigate/domain/evm/EvmProtocol"
import * as Operation from "@trigate/domain/operations/Operation"
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Layer from "effect/Layer"
import type * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Order from "effect/Order"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as RateLimiter from "../limits/RateLimiter.ts"
import * as HttpTransport from "../transport/HttpTransport.ts"
import { metrics, type Target, targetName, targets, type Upstream, type UpstreamLabel } from "../Upstream.ts"
import * as Attempts from "./Attempts.ts"

/** The cause of an ejection: the last suspicious result before the failed probe, or the wrong chain. */
export type EjectionCause = "not_sent" | "broken" | "timeout" | "server_fault" | "wrong_chain"

// limits the effect of a wrong `Retry-After`
const LONGEST_DEFERRAL = 3_600_000

/** The state of one address. */
export class AddressState {
  readonly target: Target
  /** The number of consecutive suspicious attempts (attempts whose failure may be the fault of the address). */
  suspicions = 0
  /** `suspect`: the probe of the address is running. `ejected`: the probe failed. */
  phase: "trusted" | "suspect" | "ejected" = "trusted"
  /** The time of the next probe of an ejected address. */
  ejectedUntil = Utf8.longAgo
  deferredUntil = Utf8.longAgo
  chainId: bigint | undefined
  isOnWrongChain = false
  readonly #context: Context.Context<never>
  readonly #labels: { readonly upstream: string; readonly address: string }
  readonly #ejected: Metric.Gauge<number>
  readonly #nextProbe: Metric.Gauge<number>

  constructor(target: Target, context: Context.Context<never>) {
    this.target = target
    this.#context = context
    this.#labels = { upstream: target.label, address: String(target.address) }
    this.#ejected = metrics.upstreamEjected.series(this.#labels)
    this.#ejected.updateUnsafe(0, context)
    this.#nextProbe = metrics.upstreamNextProbe.series(this.#labels)
    this.#nextProbe.updateUnsafe(0, context)
  }

  get isEjected(): boolean {
    return this.phase === "ejected" || this.isOnWrongChain
  }

  /** Sets the time of the next probe of an ejected address. */
  ejectFor(millis: number, clock: Clock.Clock) {
    this.ejectedUntil = Utf8.addMillis(Utf8.monotonicTime(clock), millis)
    this.#nextProbe.updateUnsafe((clock.currentTimeMillisUnsafe() + millis) / 1000, this.#context)
  }

  /** Ends the ejection of the address. */
  readmit() {
    this.ejectedUntil = Utf8.longAgo
    this.#nextProbe.updateUnsafe(0, this.#context)
  }

  /** Updates the gauge of the address's state. If `cause` is set, also counts an ejection. */
  report(cause?: EjectionCause) {
    this.#ejected.updateUnsafe(this.isEjected ? 1 : 0, this.#context)
    if (cause === undefined) return
    metrics.upstreamEjections.series({ ...this.#labels, cause }).updateUnsafe(1, this.#context)
  }

  /** Defers the address for some milliseconds, at most one hour: calls prefer other addresses until then. */
  defer(millis: number, now: Utf8.MonotonicTime) {
    if (this.deferredUntil <= now) {
      metrics.upstreamDeferrals.series(this.#labels).updateUnsafe(1, this.#context)
    }
    this.deferredUntil = Utf8.latest(this.deferredUntil, Utf8.addMillis(now, Math.min(millis, LONGEST_DEFERRAL)))
  }
}

/**
 * Makes the function that looks up the state of a target's address; two targets with the same base URL share one state.
 */
export const states = (context: Context.Context<never>): (target: Target) => AddressState => {
  const byAddress = new Map<string, AddressState>()
  // each target is made once and reused for every call, so this lookup does not hash the URL
  const byTarget = new WeakMap<Target, AddressState>()
  return (target) => {
    const found = byTarget.get(target)
    if (found !== undefined) return found
    const identity = `${target.label} ${Redacted.value(target.base)}`
    const state = byAddress.get(identity) ?? new AddressState(target, context)
    byAddress.set(identity, state)
    byTarget.set(target, state)
    return state
  }
}

/** An upstream whose addresses must be on one chain. */
export interface Checked {
  readonly upstream: Upstream
  /**
   * The expected chain ID. Without it, the addresses are compared with each other, and a single address is not checked.
   */
  readonly chainId?: bigint
}

const majority = (ids: ReadonlyArray<bigint>): bigint | undefined => {
  const votes = new Map<bigint, number>()
  for (const id of ids) votes.set(id, (votes.get(id) ?? 0) + 1)
  const most = Math.max(...votes.values())
  return [...votes].find(([, count]) => count === most)?.[0]
}

/** The addresses of one upstream whose chains are compared with each other. */
export class ChainGroup {
  readonly addresses: ReadonlyArray<AddressState>
  readonly #expected: bigint | undefined
  /** The signal that every address has been checked once. */
  readonly firstRound = Deferred.makeUnsafe<void>()

  constructor(addresses: ReadonlyArray<AddressState>, expected: bigint | undefined) {
    this.addresses = addresses
    this.#expected = expected
  }

  get isChecked(): boolean {
    return Deferred.isDoneUnsafe(this.firstRound)
  }

  /**
   * Compares the known chains of the addresses. Returns the addresses that have moved between the right chain and a
   * wrong chain, each with the right chain ID.
   */
  compare(): ReadonlyArray<{ readonly address: AddressState; readonly right: bigint }> {
    const right = this.#expected ?? majority(this.addresses.flatMap(({ chainId }) => chainId ?? []))
    if (right === undefined) return []
    return this.addresses.flatMap((address) => {
      const isWrong = address.chainId !== undefined && address.chainId !== right
      if (address.chainId === undefined || isWrong === address.isOnWrongChain) return []
      address.isOnWrongChain = isWrong
      address.report(isWrong ? "wrong_chain" : undefined)
      return [{ address, right }]
    })
  }
}

/** The result of a probe. */
export interface Probed {
  readonly outcome: Attempts.AttemptOutcome
  /**
   * Whether the address itself responded. A response with a 4xx status counts, a response with a 5xx status does not.
   */
  readonly passed: boolean
  /** The chain ID that an EVM node returned, if any. */
  readonly chainId: bigint | undefined
}

const rpc = (method: string, params: string) => Utf8.encode(JsonRpc.requestText(1, method, params))

const chainId = rpc("eth_chainId", "[]")

/**
 * The probe request of each upstream. Nodes and the venue's API both serve `exchangeStatus`, which costs 2 units of
 * weight.
 */
const probes: { readonly [L in UpstreamLabel]: { readonly path: string; readonly body: Uint8Array } } = {
  "trading-api": { path: "/info", body: Utf8.encode(`{"type":"exchangeStatus"}`) },
  "trading-node": { path: "/evm", body: chainId },
  "token-chain": { path: "/api/v2/jsonRPC", body: rpc("getMasterchainInfo", "{}") },
  layer2: { path: "", body: chainId }
}

const cost = { weight: 2, requestUnits: 1 }
const prober = background("probe")
const TIMEOUT = 5000
const MAX_ANSWER_BYTES = 64 * 1024

const decodeChainId = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ result: Utf8.Quantity })))

const probeOutcome = (response: Operation.UpstreamResponse): Attempts.AttemptOutcome => {
  if (response.status === 429) return "rate_limited"
  if (response.status >= 500) return "server_fault"
  if (Operation.foreign(response) !== undefined) return "malformed"
  if (response.status !== 200) return "refused"
  return Result.isSuccess(response.json.value) ? "ok" : "malformed"
}

const broken = ({ reason, sent }: HttpTransport.TransportError): Attempts.AttemptOutcome => {
  if (sent === "no") return "not_sent"
  if (reason === "Timeout") return "timeout"
  return reason === "Broken" ? "broken" : "malformed"
}

const soundOutcomes: ReadonlySet<Attempts.AttemptOutcome> = new Set(["ok", "refused", "rate_limited"])

/** Makes probes over a transport. Each probe ends within 5 seconds, and is counted as operation `probe`. */
export const makeProbe = (transport: HttpTransport.HttpTransport["Service"], context: Context.Context<never>) => {
  const findMeter = Attempts.meters(context)
  /**
   * Probes an address. If `onNewConnection` is set, the probe does not use pooled connections: callers' slow queries
   * may occupy all of them although the address is healthy.
   */
  return (target: Target, onNewConnection: boolean): Effect.Effect<Probed> =>
    Effect.withFiber((fiber) => {
      const { body, path } = probes[target.label]
      const clock = fiber.getRef(Clock.Clock)
      const start = Utf8.monotonicTime(clock)
      const count = (outcome: Attempts.AttemptOutcome) => {
        const took = Utf8.millisBetween(start, Utf8.monotonicTime(clock))
        findMeter(target.label, "probe").attempted(cost, outcome, took, 0)
      }
      const sent = transport.send({
        owner: prober,
        method: "POST",
        url: Redacted.make(`${Redacted.value(target.base)}${path}`, { label: target.label }),
        headers: { accept: "application/json", "content-type": "application/json" },
        body,
        maxAnswerBytes: MAX_ANSWER_BYTES,
        timeout: TIMEOUT,
        onNewConnection
      })
      return Effect.match(sent, {
        onFailure: (error) => {
          const outcome = broken(error)
          count(outcome)
          return { outcome, passed: false, chainId: undefined }
        },
        onSuccess: (response) => {
          const received = HttpTransport.receive(target, response)
          const outcome = probeOutcome(received)
          count(outcome)
          const decoded = body === chainId ? decodeChainId(received.text) : Option.none()
          return { outcome, passed: soundOutcomes.has(outcome), chainId: Option.getOrUndefined(decoded)?.result }
        }
      })
    })
}

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
 * Provided by `OutlierDetection.layer` or `OutlierDetection.layerAlways`.
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
  readonly choose: <T extends Target>(targets: Arr.NonEmptyReadonlyArray<T>) => Usable<T>
  /**
   * Waits, at most 200 ms, for the first comparison of the chain IDs of the targets' addresses. Returns `undefined` if
   * no first comparison is pending.
   */
  readonly ready: (targets: ReadonlyArray<Target>) => Effect.Effect<void> | undefined
  /**
   * Records what an attempt showed about the health of its address. Starts a probe in the background if needed, which
   * takes its cost from the rate limiter.
   */
  readonly report: (target: Target, signal: HealthSignal, limiter: RateLimiter.RateLimiter["Service"]) => void
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
  /** The time at which the address becomes usable; a time in the past if it is usable now. */
  readonly back: Utf8.MonotonicTime
}

const lastResort = Order.combine(
  Order.mapInput(Order.Boolean, (candidate: Candidate<unknown>) => candidate.isEjected),
  Order.mapInput(Order.Number, (candidate: Candidate<unknown>) => Utf8.monotonicMillis(candidate.back))
)

const chooseFrom = <T extends Target>(all: ReadonlyArray<Candidate<T>>, now: Utf8.MonotonicTime): Usable<T> => {
  const [first, ...others] = all
  if (first === undefined) return { targets: [], retryAfter: undefined }
  if (others.length === 0) {
    return first.isEjected
      ? { targets: [], retryAfter: Math.max(0, Utf8.millisBetween(now, first.back)) }
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
  const context = yield* Effect.context()
  const findState = states(context)
  const send = makeProbe(yield* HttpTransport.HttpTransport, context)
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

  /** Probes an address within its rate limit. Returns `undefined` if the limit left no capacity for the probe. */
  const probeWithin = ({ take }: RateLimiter.RateLimiter["Service"], address: AddressState) =>
    Effect.matchEffect(
      take({ upstream: address.target.label, class: "read", cost, caller: prober, maxWait: TIMEOUT }),
      { onFailure: () => Effect.undefined, onSuccess: () => probe(address, true) }
    )

  /** Probes a suspect address. Probes an ejected address repeatedly until a probe passes. */
  const judge = Effect.fnUntraced(function*(
    address: AddressState,
    cause: EjectionCause,
    limiter: RateLimiter.RateLimiter["Service"]
  ) {
    const group = groups.get(address)
    const passes = Effect.tap(
      probeWithin(limiter, address),
      () => group?.isChecked === true ? compare(group) : Effect.void
    )
    const isSound = yield* passes
    // an attempt that succeeded in the meantime is better evidence than the probe
    if (isSound === false && address.suspicions >= failures) {
      address.phase = "ejected"
      address.report(cause)
      const name = targetName(address.target)
      yield* Effect.logWarning(`${name} is ejected: ${address.suspicions} consecutive attempts and its probe failed`)
      for (let pause = shortest;; pause = Math.min(2 * pause, longest)) {
        address.ejectFor(pause, clock)
        yield* Effect.sleep(pause)
        if ((yield* passes) === true) break
      }
      address.readmit()
      yield* Effect.logInfo(`${name} passed its probe and is used again`)
    }
    address.phase = "trusted"
    address.suspicions = 0
    address.report()
  })

  const round = Effect.fnUntraced(function*(group: ChainGroup) {
    // addresses that are not trusted are already being probed
    const trusted = group.addresses.filter(({ phase }) => phase === "trusted")
    yield* Effect.forEach(trusted, (address) => probe(address, false), { concurrency: "unbounded", discard: true })
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
    return !address.isEjected && address.deferredUntil === Utf8.longAgo
  }

  return OutlierDetection.of({
    choose: (targets) => {
      // the usual case is checked first, because this function runs for every call
      if (targets.every(isPresent)) return { targets, retryAfter: undefined }
      const now = Utf8.monotonicTime(clock)
      const candidates = targets.flatMap((target) => {
        const address = findState(target)
        if (address.deferredUntil <= now) address.deferredUntil = Utf8.longAgo
        const isEjected = address.phase === "ejected"
        const back = Utf8.latest(address.deferredUntil, isEjected ? address.ejectedUntil : Utf8.longAgo)
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
    report: (target, signal, limiter) => {
      if (signal === "none") return
      const address = findState(target)
      address.suspicions = signal === "healthy" ? 0 : address.suspicions + 1
      if (signal === "healthy" || address.suspicions < failures || address.phase !== "trusted") return
      address.phase = "suspect"
      run(judge(address, signal, limiter))
    },
    defer: (target, millis) => findState(target).defer(millis, Utf8.monotonicTime(clock))
  })
})

/**
 * Provides outlier detection. Sends probes over the transport of the context.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { HttpTransport, OutlierDetection } from "@trigate/upstream"
 * import { Layer } from "effect"
 *
 * export const detection = Layer.provide(OutlierDetection.layer(), HttpTransport.layerUndici())
 * ```
 */
export const layer = (options: Options = {}): Layer.Layer<OutlierDetection, never, HttpTransport.HttpTransport> =>
  Layer.effect(OutlierDetection, make(options))
