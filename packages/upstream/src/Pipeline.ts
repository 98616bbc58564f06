/**
 * The only path to upstreams: every call of a declared operation passes through this pipeline.
 *
 * A read passes the response cache and request coalescing ({@link ResponseCache}), then batching, then its attempts.
 * Each attempt passes rate limiter, outlier detection and transport ({@link Attempts}). A call that is sent at most
 * once goes directly to its attempts (`makeAtMostOnce`). The types ensure that only reads are repeated: `reads`
 * accepts only read operations, and `once` accepts only once-only operations. No other module sends calls of declared
 * operations; the probes of addresses use the transport directly.
 */
import { type Caller, local } from "@trigate/domain/Caller"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import type { CommonFailure, OnceFailure } from "@trigate/domain/errors/GatewayError"
import type * as Operation from "@trigate/domain/operations/Operation"
import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Attempts from "./attempts/Attempts.ts"
import * as OutlierDetection_ from "./attempts/OutlierDetection.ts"
import { OutlierDetection } from "./attempts/OutlierDetection.ts"
import type { AccountVersions } from "./cache/AccountVersions.ts"
import * as ResponseCache from "./cache/ResponseCache.ts"
import * as RateLimiter_ from "./limits/RateLimiter.ts"
import { RateLimiter } from "./limits/RateLimiter.ts"
import type { Pacer, Refresh } from "./limits/RateWindow.ts"
import { HttpTransport } from "./transport/HttpTransport.ts"
import { cacheSpace, settings, type Target, type Upstream, type UpstreamLabel } from "./Upstream.ts"

/** The limits of every call. */
export interface Options {
  /** Deadline of a read, over all addresses. Default: 10 seconds. */
  readonly readDeadline?: Duration.Input
  /** Deadline of a once-only call, over all addresses. Default: 20 seconds. */
  readonly onceDeadline?: Duration.Input
  /** Maximum number of bytes of a response. Default: 16 MiB (the longest documented response has 700 KB). */
  readonly maxAnswerBytes?: number
  /** Maximum number of attempts of one read; at least one for each address. Default: 3. */
  readonly attempts?: number
  /** The retry budget of each upstream. Default: one retry for every five reads, plus 10 per second. */
  readonly retries?: Attempts.RetryOptions
  /**
   * Whether requests contain the W3C `traceparent` of their attempt, if the program has a tracer. Default: false.
   *
   * The header allows the operator of the upstream to correlate calls.
   */
  readonly traceUpstream?: boolean
  /** The owner of calls without a `CurrentCaller`. Default: such a call is a defect, and nothing is sent. */
  readonly owner?: Caller
}

/** The reads of one protocol, and the upstream addresses for each read. */
export interface Reads<Call extends { readonly operation: Operation.ReadOperation }, A, E, F> {
  readonly protocol: Operation.ReadProtocol<Call, A, E>
  /**
   * The upstream that is read. Readers of upstreams with equal addresses share cached responses, even across replicas.
   */
  readonly upstream: Upstream
  /** Returns the targets (upstream addresses with a path) of a call, in order of preference. */
  readonly targetsOf: (call: Call) => Result.Result<NonEmptyReadonlyArray<Target>, F>
  /** Sends a call. Default: one request for each call. */
  readonly send?: (call: Call, targets: NonEmptyReadonlyArray<Target>) => Effect.Effect<A, E | CommonFailure>
  /** Determines by further reads how long a response can be cached; see {@link ResponseCache.Query}. */
  readonly confirm?: (call: Call, answer: A) => Effect.Effect<Operation.CachePolicy | undefined> | undefined
}

/**
 * Sends calls of declared operations.
 *
 * Provided by `Pipeline.layer` or `Pipeline.layerNoDeps`.
 *
 * @since 0.1.0
 * @category services
 */
export class Pipeline extends Context.Service<Pipeline, {
  /**
   * Makes the functions that read over a protocol. Make them only once for each upstream, because only reads through
   * the same functions are coalesced.
   */
  readonly reads: <Call extends { readonly operation: Operation.ReadOperation }, A, E, F>(
    reads: Reads<Call, A, E, F>
  ) => Effect.Effect<{
    readonly read: (call: Call) => Effect.Effect<A, E | F | CommonFailure>
    /** Caches a response that the upstream pushed. */
    readonly put: (call: Call, answer: A, receipt: ResponseCache.Receipt) => Effect.Effect<void>
  }>
  /** The versions of accounts. The cache keys of account state contain these versions. */
  readonly accounts: AccountVersions["Service"]
  /** Makes attempts until one succeeds, for a protocol that makes its own batches. */
  readonly attempt: Attempts.Attempts["send"]
  /**
   * Runs a read of the gateway itself in the background, as soon as the upstream's rate limit has capacity for
   * background reads. The read takes precedence over refreshes of cached responses.
   */
  readonly inTurn: (upstream: UpstreamLabel, read: Refresh) => Effect.Effect<void>
  /** Sends a call at most once, in its caller's fiber; see `makeAtMostOnce` of `Attempts`, and `detached` of `Caller`. */
  readonly once: (
    call: Attempts.OnceCall,
    identity: Attempts.OnceIdentity
  ) => Effect.Effect<Operation.UpstreamResponse, OnceFailure>
}>()("@trigate/upstream/Pipeline") {}

const defaults = {
  readDeadline: settings.readDeadline.fallback,
  onceDeadline: settings.onceDeadline.fallback,
  attempts: 3,
  maxAnswerBytes: 16 * 1024 * 1024
} as const

/** Returns a generator of request IDs, starting at 1. No ID of a generator is repeated. */
export const requestIds = () => {
  let last = 0
  return () => last = last % Number.MAX_SAFE_INTEGER + 1
}

/** The functions that the reads over one protocol share. */
interface Kind<Call extends { readonly operation: Operation.ReadOperation }, A, E> {
  readonly protocol: Operation.ReadProtocol<Call, A, E>
  readonly send: (call: Call, targets: NonEmptyReadonlyArray<Target>) => Effect.Effect<A, E | CommonFailure>
  readonly confirm: Reads<Call, A, E, unknown>["confirm"]
  readonly pacerOf: RateLimiter["Service"]["pacerOf"]
}

/** One read, as the cache sees it. A class, so that a cache hit makes no closures. */
class CallRead<Call extends { readonly operation: Operation.ReadOperation }, A, E>
  implements ResponseCache.Query<A, E | CommonFailure>
{
  readonly #kind: Kind<Call, A, E>
  readonly #call: Call
  readonly #targets: NonEmptyReadonlyArray<Target>

  constructor(kind: Kind<Call, A, E>, call: Call, targets: NonEmptyReadonlyArray<Target>) {
    this.#kind = kind
    this.#call = call
    this.#targets = targets
  }

  get operation(): string {
    return this.#call.operation.name
  }

  get upstream(): UpstreamLabel {
    return this.#targets[0].label
  }

  get key(): string {
    return this.#kind.protocol.key(this.#call)
  }

  get send(): Effect.Effect<A, E | CommonFailure> {
    return this.#kind.send(this.#call, this.#targets)
  }

  get accounts(): ReadonlyArray<string> | undefined {
    return this.#kind.protocol.accountsIn?.(this.#call)
  }

  get pacer(): Pacer | undefined {
    return this.#kind.pacerOf(this.upstream)
  }

  cachePolicy(now: number, freshness: ResponseCache.Freshness): Operation.CachePolicy | undefined {
    return this.#kind.protocol.cachePolicy(this.#call, now, freshness === "block")
  }

  isCacheable(answer: A): boolean {
    return this.#kind.protocol.isCacheable(this.#call, answer)
  }

  costOf(now: number): Operation.Cost | undefined {
    return this.#kind.protocol.costOf?.(this.#call, now)
  }

  get confirm(): ResponseCache.Query<A, never>["confirm"] {
    const { confirm } = this.#kind
    return confirm === undefined ? undefined : (answer) => confirm(this.#call, answer)
  }
}

const make = Effect.fnUntraced(function*(options: Options) {
  const cache = yield* ResponseCache.ResponseCache
  const parts = {
    transport: yield* HttpTransport,
    rateLimiter: yield* RateLimiter,
    outliers: yield* OutlierDetection,
    context: yield* Effect.context(),
    maxAnswerBytes: options.maxAnswerBytes ?? defaults.maxAnswerBytes,
    traceUpstream: options.traceUpstream ?? settings.traceUpstream.fallback,
    owner: options.owner
  }
  const attempts = Attempts.make(parts, {
    deadline: Duration.toMillis(options.readDeadline ?? defaults.readDeadline),
    attempts: options.attempts ?? defaults.attempts,
    retries: options.retries
  })
  const once = Attempts.makeAtMostOnce(parts, Duration.toMillis(options.onceDeadline ?? defaults.onceDeadline))
  const nextId = requestIds()

  return Pipeline.of({
    accounts: cache.accounts,
    attempt: attempts.send,
    inTurn: (upstream, read) =>
      Effect.clockWith((clock) => {
        const pacer = parts.rateLimiter.pacerOf(upstream)
        const now = Utf8.monotonicTime(clock)
        pacer?.wait(read, Number.MAX_SAFE_INTEGER, now)
        return (pacer === undefined ? read : pacer.next(now))?.start ?? Effect.void
      }),
    reads: <Call extends { readonly operation: Operation.ReadOperation }, A, E, F>(
      { confirm, protocol, targetsOf, upstream, ...reads }: Reads<Call, A, E, F>
    ) =>
      Effect.sync(() => {
        const reader = cache.reader<A, E | CommonFailure>({
          space: cacheSpace(upstream),
          codec: protocol.codec
        })
        const send = reads.send ??
          ((call, targets) =>
            Effect.suspend(() => attempts.send({ operation: call.operation, targets }, protocol.write(call, nextId()))))
        const kind: Kind<Call, A, E> = { protocol, send, confirm, pacerOf: parts.rateLimiter.pacerOf }
        return {
          put: (call: Call, answer: A, receipt: ResponseCache.Receipt) => {
            const found = targetsOf(call)
            return Result.isFailure(found)
              ? Effect.void
              : reader.put(new CallRead(kind, call, found.success), answer, receipt)
          },
          read: (call: Call) => {
            const found = targetsOf(call)
            return Result.isFailure(found)
              ? Effect.fail(found.failure)
              : reader.read(new CallRead(kind, call, found.success))
          }
        }
      }),
    once
  })
})

/**
 * Provides the pipeline over the transport, rate limiter, outlier detection and response cache of the context.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerNoDeps = (
  options: Options = {}
): Layer.Layer<Pipeline, never, HttpTransport | RateLimiter | OutlierDetection | ResponseCache.ResponseCache> =>
  Layer.effect(Pipeline, make(options))

/** The limits of every call, and the policies of one process, which owns its calls by default. */
export interface ProcessOptions extends Options {
  /** The rate limit of each upstream. Default: the venue's weight limit for an IP address, and no limit for nodes. */
  readonly limits?: RateLimiter_.Limits
  /** EVM upstreams whose URLs must all lead to the same chain. Default: none. */
  readonly oneChain?: OutlierDetection_.Options["oneChain"]
}

/**
 * Provides the pipeline over the transport of the context, for one process, with its own rate limits, outlier detection
 * and cache.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { InfoUpstream, TradingUpstream } from "@trigate/trading"
 * import { HttpTransport, Pipeline } from "@trigate/upstream"
 * import { Console, Effect, Layer } from "effect"
 *
 * const pipeline = Pipeline.layer({ readDeadline: "3 seconds", limits: { "trading-api": 600 } })
 *
 * const info = TradingUpstream.layerInfo({ api: ["http://localhost:8080"] }).pipe(
 *   Layer.provide(pipeline),
 *   Layer.provide(HttpTransport.layerFetch)
 * )
 *
 * const program = InfoUpstream.Info.use(({ allMids }) => Effect.flatMap(allMids(), (mids) => Console.log("BTC" in mids)))
 *
 * await Effect.runPromise(Effect.provide(program, info))
 * ```
 * ```text
 * true
 * ```
 */
export const layer = ({ limits, oneChain = [], ...options }: ProcessOptions = {}): Layer.Layer<
  Pipeline,
  never,
  HttpTransport
> =>
  Layer.provide(layerNoDeps({ owner: local, ...options }), [
    RateLimiter_.layerMemory({ "trading-api": RateLimiter_.defaultWeight, ...limits }),
    OutlierDetection_.layer({ oneChain }),
    ResponseCache.layer()
  ])

/** Reads the limits from the settings. */
export const config: Config.Config<Omit<ProcessOptions, "oneChain">> = Config.all({
  readDeadline: settings.readDeadline,
  onceDeadline: settings.onceDeadline,
  traceUpstream: settings.traceUpstream,
  limits: RateLimiter_.config
})
