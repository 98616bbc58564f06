/**
 * Records candle history from the venue's streams and from queries of `Info`. The queries use only the part of the
 * venue's rate limit that callers leave unused.
 */
import { CandleArchive } from "@trigate/archive/CandleArchive"
import * as CandleRecorder from "@trigate/archive/unstable/CandleRecorder"
import { background, CurrentCaller } from "@trigate/domain/Caller"
import type { CandleWindowRequest } from "@trigate/domain/candles/Candle"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import * as InfoProtocol from "@trigate/domain/info/InfoOperations"
import { candleSnapshot } from "@trigate/domain/info/InfoOperations"
import { worstWeight } from "@trigate/domain/operations/Operation"
import { Freshness } from "@trigate/upstream/cache/ResponseCache"
import { defaultWeight, RateLimiter } from "@trigate/upstream/limits/RateLimiter"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Info } from "../Info.ts"
import type { Streams } from "../streams/Streams.ts"

/** The series to record, and the venue's rate limit. */
export interface Options extends CandleRecorder.Options {
  /**
   * The venue's rate limit, in weight per minute. Default: 1200. The recorder leaves a third of the limit unused for
   * callers.
   */
  readonly weight?: number
  /** Returns the stream of a coin's bars. If this function is absent, each bar is queried after the bar has closed. */
  readonly candles?: Streams["Service"]["candle"]
}

/**
 * The election of the one process that records, among processes that share an archive. Without this service, every
 * process records.
 *
 * Provided by `Layer.succeed`.
 *
 * @since 0.1.0
 * @category services
 */
export class Election extends Context.Service<Election, {
  /** Runs a recording while this process is the elected recorder, and suspends the recording while another process is. */
  readonly whileElected: (recording: Effect.Effect<void>) => Effect.Effect<void>
}>()("@trigate/trading/candles/CandleRecording/Election") {}

/** The recorder's identity as a caller. The rate limiter divides the limit among callers. */
export const recorder = background("recorder")

const recordingGauge = CandleRecorder.metrics.recording.series({})

const Markets = Schema.Struct({
  universe: Schema.Array(Schema.Struct({ name: Schema.String, isDelisted: Encoding.nullish(Schema.Boolean) }))
})
const decodeMarkets = Schema.decodeUnknownEffect(Markets)

const errorDetail = (error: { readonly message: string; readonly detail?: string | undefined }): string =>
  error.detail ?? error.message

const make = Effect.fnUntraced(function*({ candles, weight = defaultWeight }: Options) {
  const info = yield* Info
  const limiter = yield* RateLimiter

  /**
   * Waits until the rate limit has capacity for a request of weight `worst`, plus a third of the limit as a reserve for
   * callers.
   *
   * The permits taken for this check are refunded immediately, because the request takes its own permits.
   */
  const leftover = (worst: number) => {
    const cost = { weight: worst + Math.floor(weight / 3), requestUnits: 1 }
    return limiter.take({ upstream: "trading-api", class: "read", caller: recorder, cost, maxWait: 0 }).pipe(
      Effect.tapError(({ retryAfter = 1 }) => Effect.sleep(retryAfter * 1000)),
      Effect.eventually,
      Effect.map(({ refund }) => refund(Number.POSITIVE_INFINITY))
    )
  }

  // sends the recorder's requests to the venue, rather than serving them from its own recordings
  const asRecorder = <A, E>(effect: Effect.Effect<A, E>) =>
    effect.pipe(Effect.provideService(CurrentCaller, recorder), Effect.provideService(Freshness, "none"))

  const listMarkets = Effect.fnUntraced(function*(type: string) {
    const call = yield* InfoProtocol.parseCall(Encoding.write({ type }), "gateway", true)
    yield* leftover(worstWeight(call.operation))
    const { json } = yield* asRecorder(info.relay(call))
    const { universe } = yield* decodeMarkets(json.valueOrUndefined)
    return universe.flatMap(({ isDelisted, name }) => isDelisted === true ? [] : [name])
  })

  const source: CandleRecorder.Source = {
    ...(candles === undefined
      ? {}
      : {
        listen: ({ coin, interval }) => Stream.provideService(candles({ coin, interval }), CurrentCaller, recorder)
      }),
    bars: (request: CandleWindowRequest) =>
      Effect.andThen(leftover(worstWeight(candleSnapshot)), asRecorder(info.candleSnapshot(request))).pipe(
        Effect.map(({ candles }) => candles),
        Effect.catchTag("UnknownAsset", () => Effect.undefined),
        Effect.mapError(errorDetail)
      ),
    coins: Effect.zipWith(
      listMarkets("meta"),
      listMarkets("spotMeta"),
      (perpetuals, pairs) => [...perpetuals, ...pairs]
    )
      .pipe(
        Effect.mapError(errorDetail)
      )
  }
  return source
})

/**
 * Records bars in the archive of the context while the layer is open.
 *
 * If this program is not allowed to write to the archive, logs an error and stops.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { CandleArchive } from "@trigate/archive"
 * import { CandleRecording, InfoUpstream } from "@trigate/trading"
 * import { RateLimiter } from "@trigate/upstream"
 * import { Layer } from "effect"
 *
 * export const recording = CandleRecording.layer({ wishes: [{ coin: "BTC", interval: "1m" }] }).pipe(
 *   Layer.provide(InfoUpstream.layerUndici({ url: "https://api.hyperliquid.xyz" })),
 *   Layer.provide(RateLimiter.layerMemory({ "trading-api": 1200 })),
 *   Layer.provide(CandleArchive.layer())
 * )
 * ```
 */
export const layer = (options: Options): Layer.Layer<never, never, CandleArchive | Info | RateLimiter> =>
  Layer.effectDiscard(Effect.gen(function*() {
    const archive = yield* CandleArchive
    const source = yield* make(options)
    const election = yield* Effect.serviceOption(Election)
    yield* Metric.update(recordingGauge, 0)
    const recording = Effect.acquireUseRelease(
      Metric.update(recordingGauge, 1),
      () => CandleRecorder.record(source, options),
      () => Metric.update(recordingGauge, 0)
    ).pipe(
      Effect.provideService(CandleArchive, archive),
      Effect.catch(({ message }) => Effect.logError(`Nothing is recorded: ${message}`))
    )
    yield* Effect.forkScoped(Option.match(election, {
      onNone: () => recording,
      onSome: ({ whileElected }) => whileElected(recording)
    }))
  }))
