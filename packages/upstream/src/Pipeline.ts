/**
 * The only path to upstreams: every call of a declared operation passes through here, step by step.
 *
 * A read goes through the response cache and single flight ({@link ResponseCache}), then batching, then its attempts, each
 * through rate limiter, outlier detection and transport ({@link Attempts}). A call that is sent at most once goes straight to
 * its attempts ({@link AtMostOnce}). The method class is in the types: `reads` takes read operations only, `once` takes once
 * operations only, and no other module sends.
 */
import type { CommonFailure } from "@trigate/domain/errors/GatewayError"
import type { OnceFailure } from "@trigate/domain/errors/TransportFailure"
import * as Continuation from "@trigate/domain/operations/Continuation"
import type { CachePolicy } from "@trigate/domain/operations/Operation"
import type { ReadOperation, ReadProtocol } from "@trigate/domain/operations/Protocol"
import type { UpstreamResponse } from "@trigate/domain/operations/UpstreamResponse"
import { monotonicMillis } from "@trigate/domain/Time"
import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Digest from "effect/crypto/Digest"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as AtMostOnce from "./attempts/AtMostOnce.ts"
import * as Attempts from "./attempts/Attempts.ts"
import * as OutlierDetection_ from "./attempts/OutlierDetection.ts"
import { OutlierDetection } from "./attempts/OutlierDetection.ts"
import type * as Batching from "./Batching.ts"
import type { AccountVersions } from "./cache/AccountVersions.ts"
import * as ResponseCache from "./cache/ResponseCache.ts"
import type { Refresh } from "./limits/Pacer.ts"
import * as RateLimiter_ from "./limits/RateLimiter.ts"
import { RateLimiter } from "./limits/RateLimiter.ts"
import { HttpTransport } from "./transport/HttpTransport.ts"
import type { Target, Upstream, UpstreamLabel } from "./Upstream.ts"
import { cacheSpace } from "./Upstream.ts"
import { settings } from "./UpstreamSettings.ts"

/** Bounds of every call. */
export interface Options {
  /** Whole-call deadline of a read, over all addresses; 10 seconds when not given. */
  readonly readDeadline?: Duration.Input
  /** Whole-call deadline of a once call; 20 seconds when not given. */
  readonly onceDeadline?: Duration.Input
  /** Bytes of answer accepted; 16 MiB when not given (the longest documented answer is 700 KB). */
  readonly maxAnswerBytes?: number
  /** Attempts of one read at most, or one for each address where there are more of those; 3 when not given. */
  readonly attempts?: number
  /** How much more than its traffic each upstream may get by sending reads again; a fifth and 10 a second when not given. */
  readonly retries?: Attempts.RetryOptions
  /**
   * Whether requests carry the W3C `traceparent` of their attempt, if the program has a tracer. Default: false.
   *
   * It lets the operator of the upstream correlate calls.
   */
  readonly traceUpstream?: boolean
}

/** The reads of one protocol, and the targets of each. */
export interface Reads<Call extends { readonly operation: ReadOperation }, A, E, F> {
  readonly protocol: ReadProtocol<Call, A, E>
  /** The upstream of the responses: readers of the same addresses share cached responses, also with other replicas. */
  readonly upstream: Upstream
  /** Where a call can go, in order of preference. */
  readonly targetsOf: (call: Call) => Result.Result<NonEmptyReadonlyArray<Target>, F>
  /** How a call is asked; by default each is one request. */
  readonly ask?: (call: Call, targets: NonEmptyReadonlyArray<Target>) => Effect.Effect<A, E | CommonFailure>
  /** See {@link ResponseCache.Query}. */
  readonly confirm?: (call: Call, answer: A) => Effect.Effect<CachePolicy | undefined> | undefined
}

/**
 * Sends calls of declared operations.
 *
 * @since 0.1.0
 * @category services
 */
export class Pipeline extends Context.Service<Pipeline, {
  /** Builds the reads of a protocol; build them once for each upstream, since only they are coalesced with each other. */
  readonly reads: <Call extends { readonly operation: ReadOperation }, A, E, F>(
    reads: Reads<Call, A, E, F>
  ) => Effect.Effect<{
    readonly read: (call: Call) => Effect.Effect<A, E | F | CommonFailure>
    /** Caches an answer that the upstream sent unasked. */
    readonly put: (call: Call, answer: A, receipt: ResponseCache.Receipt) => Effect.Effect<void>
  }>
  /** The versions of the accounts whose state is read. */
  readonly accounts: AccountVersions["Service"]
  /** Makes attempts until one succeeds; for a protocol that batches calls itself. */
  readonly attempt: Batching.Ask
  /** Makes a read of the gateway's own in the background when the pacer of an upstream has a turn for it, before refreshes. */
  readonly inTurn: (upstream: UpstreamLabel, read: Refresh) => Effect.Effect<void>
  /** Sends a call at most once, in the fibre of its caller; see {@link AtMostOnce}, and `detached` of `Caller`. */
  readonly once: (
    call: AtMostOnce.OnceCall,
    identity: AtMostOnce.OnceIdentity
  ) => Effect.Effect<UpstreamResponse, OnceFailure>
}>()("@trigate/upstream/Pipeline") {}

const defaults = {
  readDeadline: settings.readDeadline.fallback,
  onceDeadline: settings.onceDeadline.fallback,
  attempts: 3,
  maxAnswerBytes: 16 * 1024 * 1024
} as const

const toMillis = (input: Duration.Input): number => Duration.toMillis(Duration.fromInputUnsafe(input))

/** Ids that tell the requests of one sender apart. */
export const requestIds = () => {
  let last = 0
  return () => last = last % Number.MAX_SAFE_INTEGER + 1
}

const make = Effect.fnUntraced(function*(options: Options) {
  const digest = yield* Digest.Digest
  const cache = yield* ResponseCache.ResponseCache
  const parts = {
    transport: yield* HttpTransport,
    rateLimiter: yield* RateLimiter,
    outliers: yield* OutlierDetection,
    maxAnswerBytes: options.maxAnswerBytes ?? defaults.maxAnswerBytes,
    traceUpstream: options.traceUpstream ?? settings.traceUpstream.fallback
  }
  const attempts = Attempts.make(parts, {
    deadline: toMillis(options.readDeadline ?? defaults.readDeadline),
    attempts: options.attempts ?? defaults.attempts,
    retries: options.retries
  })
  const once = AtMostOnce.make(parts, toMillis(options.onceDeadline ?? defaults.onceDeadline))
  const nextId = requestIds()

  return Pipeline.of({
    accounts: cache.accounts,
    attempt: attempts.ask,
    inTurn: (upstream, read) =>
      Effect.clockWith((clock) => {
        const pacer = parts.rateLimiter.pacerOf(upstream)
        const now = monotonicMillis(clock)
        pacer?.wait(read, Number.MAX_SAFE_INTEGER, now)
        return (pacer === undefined ? read : pacer.next(now))?.start ?? Effect.void
      }),
    reads: Effect.fnUntraced(function*<Call extends { readonly operation: ReadOperation }, A, E, F>(
      { confirm, protocol, targetsOf, upstream, ...reads }: Reads<Call, A, E, F>
    ) {
      const reader = cache.reader<A, E | CommonFailure>({
        space: yield* Effect.provideService(cacheSpace(upstream), Digest.Digest, digest),
        codec: protocol.codec
      })
      const { costOf } = protocol
      const ask = reads.ask ??
        ((call, targets) => attempts.ask({ operation: call.operation, targets }, protocol.write(call, nextId())))
      const makeQuery = (
        call: Call,
        targets: NonEmptyReadonlyArray<Target>
      ): ResponseCache.Query<A, E | CommonFailure> => ({
        operation: call.operation.name,
        upstream: targets[0].label,
        key: protocol.key(call),
        cachePolicy: (now, freshness) => protocol.cachePolicy(call, now, freshness === "block"),
        isCacheable: (answer) => protocol.isCacheable(call, answer),
        ask: Continuation.withContext(() => ask(call, targets)),
        accounts: protocol.accountsIn?.(call),
        pacer: parts.rateLimiter.pacerOf(targets[0].label),
        ...(costOf === undefined ? {} : { costOf: (now: number) => costOf(call, now) }),
        ...(confirm === undefined ? {} : { confirm: (answer: A) => confirm(call, answer) })
      })
      return {
        put: (call: Call, answer: A, receipt: ResponseCache.Receipt) => {
          const found = targetsOf(call)
          return Result.isFailure(found) ? Effect.void : reader.put(makeQuery(call, found.success), answer, receipt)
        },
        read: (call: Call) => {
          const found = targetsOf(call)
          return Result.isFailure(found) ? Effect.fail(found.failure) : reader.read(makeQuery(call, found.success))
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
  Layer.effect(Pipeline, make(options)).pipe(Layer.provide(Digest.layerWebCrypto))

/** Bounds of every call, and the policies of one process. */
export interface ProcessOptions extends Options {
  /** What each upstream grants; the weight that the venue grants an IP address, and no limit of a node, when not given. */
  readonly limits?: RateLimiter_.Limits
  /** EVM upstreams whose addresses have to be on one chain; none when not given. */
  readonly oneChain?: OutlierDetection_.Options["oneChain"]
}

/**
 * The pipeline over the transport of the context, for one process: its rate limits, its outlier detection and its cached
 * responses are its own.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { InfoUpstream, TradingUpstream } from "@trigate/trading"
 * import { Pipeline, TransportLayers } from "@trigate/upstream"
 * import { Console, Effect, Layer } from "effect"
 *
 * const pipeline = Pipeline.layer({ readDeadline: "3 seconds", limits: { "trading-api": 600 } })
 *
 * const info = TradingUpstream.layerInfo({ api: ["http://localhost:8080"] }).pipe(
 *   Layer.provide(pipeline),
 *   Layer.provide(TransportLayers.layerFetch)
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
  Layer.provide(layerNoDeps(options), [
    RateLimiter_.layerMemory({ "trading-api": RateLimiter_.defaultWeight, ...limits }),
    OutlierDetection_.layer({ oneChain }),
    ResponseCache.layer()
  ])

/** The bounds and the limits that the settings name. */
export const config: Config.Config<Omit<ProcessOptions, "oneChain">> = Config.all({
  readDeadline: settings.readDeadline,
  onceDeadline: settings.onceDeadline,
  traceUpstream: settings.traceUpstream,
  limits: RateLimiter_.config
})
