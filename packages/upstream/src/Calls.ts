/**
 * Sends the calls of declared operations: a read until it is answered, a once call at most once.
 *
 * The method class is in the type: `read` takes read operations only, `once` takes once operations only. No other way out
 * exists.
 */
import { settings } from "@trigate/domain/Settings"
import type { OnceFailure, ReadFailure } from "@trigate/domain/TransportFailure"
import type * as UpstreamResponse from "@trigate/domain/UpstreamResponse"
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as AtMostOnce from "./AtMostOnce.ts"
import * as Attempts from "./Attempts.ts"
import { HttpTransport } from "./HttpTransport.ts"
import type * as Retries from "./internal/Retries.ts"
import * as OutlierDetection_ from "./OutlierDetection.ts"
import { OutlierDetection } from "./OutlierDetection.ts"
import * as Budgets_ from "./RateLimiter.ts"
import { RateLimiter } from "./RateLimiter.ts"
import * as ResponseCache from "./ResponseCache.ts"

/** Bounds of every call. */
export interface Options {
  /** Whole-call deadline of a read, over all addresses; 10 seconds when not given. */
  readonly readDeadline?: Duration.Input
  /** Whole-call deadline of a once call; 20 seconds when not given. */
  readonly onceDeadline?: Duration.Input
  /** Bytes of answer accepted; 16 MiB when not given (the longest documented answer is 700 KB). */
  readonly maxAnswerBytes?: number
  /** Attempts of one read at most, or one for each address where there are more of those; 3 when not given. */
  readonly exchanges?: number
  /** How much more than its traffic each upstream may get by sending reads again; a fifth and 10 a second when not given. */
  readonly retries?: Retries.Options
}

/** Sends calls of declared operations. */
export class Calls extends Context.Service<Calls, {
  /** Asks the addresses until one answers; see {@link Attempts}. */
  readonly read: <A, E>(read: Attempts.Read, question: Attempts.Question<A, E>) => Effect.Effect<A, E | ReadFailure>
  /** Sends a call at most once; see {@link AtMostOnce}. */
  readonly once: (
    call: AtMostOnce.OnceCall,
    identity: AtMostOnce.OnceIdentity
  ) => Effect.Effect<UpstreamResponse.UpstreamResponse, OnceFailure>
}>()("@trigate/upstream/Calls") {}

const defaults = {
  readDeadline: settings.readDeadline.fallback,
  onceDeadline: settings.onceDeadline.fallback,
  exchanges: 3,
  maxAnswerBytes: 16 * 1024 * 1024
} as const

const millisOf = (input: Duration.Input): number => Duration.toMillis(Duration.fromInputUnsafe(input))

const make = Effect.fnUntraced(function*(options: Options) {
  const parts = {
    transport: yield* HttpTransport,
    rateLimiter: yield* RateLimiter,
    outliers: yield* OutlierDetection,
    maxAnswerBytes: options.maxAnswerBytes ?? defaults.maxAnswerBytes
  }
  return Calls.of({
    read: Attempts.make(parts, {
      deadline: millisOf(options.readDeadline ?? defaults.readDeadline),
      attempts: options.exchanges ?? defaults.exchanges,
      retries: options.retries
    }),
    once: AtMostOnce.make(parts, millisOf(options.onceDeadline ?? defaults.onceDeadline))
  })
})

/** Calls over the `HttpTransport`, the rate limiter and the outlier detection of the context. */
export const layerNoDeps = (
  options: Options = {}
): Layer.Layer<Calls, never, HttpTransport | RateLimiter | OutlierDetection> => Layer.effect(Calls, make(options))

/** What one process needs that shares nothing with others. */
const policies = Layer.merge(
  Budgets_.layerMemory({ "trading-api": Budgets_.defaultWeight }),
  OutlierDetection_.layer()
)

/**
 * Calls over the `HttpTransport` of the context, and the sharing of their answers, for one process: its budget is the weight that
 * the venue grants an IP address, its outlier detection and cached responses are its own.
 */
export const layer = (options: Options = {}): Layer.Layer<Calls | ResponseCache.ResponseCache, never, HttpTransport> =>
  Layer.merge(Layer.provide(layerNoDeps(options), policies), ResponseCache.layer())

/** The same with the deadlines of `TRIGATE_READ_DEADLINE` and `TRIGATE_ONCE_DEADLINE`. */
export const layerConfig: Layer.Layer<Calls | ResponseCache.ResponseCache, Config.ConfigError, HttpTransport> = Layer
  .unwrap(
    Effect.map(
      Config.all({
        readDeadline: settings.readDeadline,
        onceDeadline: settings.onceDeadline
      }),
      layer
    )
  )
