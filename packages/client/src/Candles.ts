/** The candle history that a gateway stores. */
import * as Paths from "@trigate/api/Paths"
import { type Candle, type CandleInterval, CandleSeries, coinsPerPage } from "@trigate/domain/candles/Candle"
import {
  ArchiveNotConfigured,
  ArchiveUnavailable,
  servedFailures,
  UnknownAsset,
  wrapReason
} from "@trigate/domain/errors/GatewayError"
import type { CallFailure } from "@trigate/domain/errors/GatewayError"
import * as Protocol from "@trigate/domain/operations/Operation"
import type { UpstreamResponse } from "@trigate/domain/operations/Operation"
import { type CandleFormat, readNdjson } from "@trigate/domain/unstable/candles/CandleText"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { type Connection, label } from "./Connection.ts"
import { sendRequest, unreachable } from "./internal/Served.ts"

export type { CandleSeries }

/** The errors of a request for candle history. */
export type CandlesFailure = CallFailure | ArchiveNotConfigured | ArchiveUnavailable

const readProblem = Protocol.problemReader(Schema.Union([...servedFailures, ArchiveNotConfigured, ArchiveUnavailable]))
const readFileProblem = Protocol.problemReader(
  Schema.Union([...servedFailures, ArchiveNotConfigured, ArchiveUnavailable, UnknownAsset])
)
const readSeries = Protocol.decodeJson(Schema.Array(CandleSeries))

const toFailure = <E>(read: (response: UpstreamResponse) => Option.Option<E>, response: UpstreamResponse) =>
  Option.getOrElse(read(response), () => Protocol.failureOfStatus(response))

const page = Effect.fnUntraced(function*(after: string | undefined) {
  const query = after === undefined ? "" : `?after=${encodeURIComponent(after)}`
  const response = yield* sendRequest(({ own }) => own.get(`${Paths.candles}${query}`))
  return yield* response.status === 200
    ? readSeries(response.upstream, response.json)
    : Effect.fail(toFailure(readProblem, response))
}, Effect.mapError(wrapReason))

/**
 * Returns the stored series, ordered by coin and interval. Sends one request for each 100 coins.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Candles } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const program = Candles.list().pipe(
 *   Effect.flatMap((series) => Console.log(series.some(({ coin }) => coin === "BTC"))),
 *   Effect.catchTag("ArchiveNotConfigured", () => Console.log("no archive"))
 * )
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * true
 * ```
 */
export const list: () => Effect.Effect<ReadonlyArray<CandleSeries>, CandlesFailure, Connection> = Effect.fn(
  "GatewayClient.candleSeries"
)(function*() {
  const all: Array<CandleSeries> = []
  for (let after: string | undefined;;) {
    const series = yield* page(after)
    all.push(...series)
    const coins = new Set(series.map(({ coin }) => coin))
    const last = series.at(-1)?.coin
    if (coins.size < coinsPerPage || last === after) return all
    after = last
  }
})

/**
 * The coin and interval of a candle file, and the range of its bars by open time. Both ends are included, in
 * milliseconds.
 */
export interface CandleFileRequest {
  readonly coin: string
  readonly interval: CandleInterval
  /** The open time of the first bar. Default: the first stored bar. */
  readonly from?: number
  /** The open time of the last bar. Default: the last stored bar. */
  readonly to?: number
}

const filePath = ({ coin, from, interval, to }: CandleFileRequest, format: CandleFormat): string => {
  const query = Object.entries({ from, to, format }).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${value}`]
  )
  const path = Paths.candleFile.replace(":coin", encodeURIComponent(coin)).replace(":interval", interval)
  return `${path}?${query.join("&")}`
}

/**
 * Streams the stored bars of a coin as a file of any length.
 *
 * If the stream is interrupted, the gateway stops reading its archive.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Candles } from "@trigate/client"
 * import { Console, Effect, Stream } from "effect"
 *
 * const program = Candles.file({ coin: "BTC", interval: "1d" }, "csv").pipe(
 *   Stream.decodeText(),
 *   Stream.splitLines,
 *   Stream.take(1),
 *   Stream.runForEach(Console.log),
 *   Effect.catchTag("ArchiveNotConfigured", () => Console.log("no archive"))
 * )
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * open_time,close_time,open,high,low,close,volume,trades
 * ```
 */
export const file = (
  request: CandleFileRequest,
  format: CandleFormat
): Stream.Stream<Uint8Array, CandlesFailure | UnknownAsset, Connection> =>
  Stream.unwrap(
    Effect.map(sendRequest(({ own }) => own.open(filePath(request, format))), ({ refusal, stream }) =>
      refusal === undefined
        ? Stream.mapError(stream, (error) =>
          wrapReason(unreachable(error)))
        : Stream.fail(wrapReason(toFailure(readFileProblem, refusal))))
  )

/**
 * Streams the stored bars of a coin, oldest first. To continue after a failure, pass the open time of the last bar plus
 * 1 as `from`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Candles } from "@trigate/client"
 * import { Console, Effect, Stream } from "effect"
 *
 * const program = Candles.bars({ coin: "BTC", interval: "1d", from: Date.UTC(2026, 0, 1) }).pipe(
 *   Stream.take(2),
 *   Stream.runForEach(({ i }) => Console.log(i)),
 *   Effect.catchTag("ArchiveNotConfigured", () => Console.log("no archive"))
 * )
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * 1d
 * 1d
 * ```
 */
export const bars = (
  request: CandleFileRequest
): Stream.Stream<Candle, CandlesFailure | UnknownAsset, Connection> =>
  file(request, "ndjson").pipe(
    Stream.decodeText(),
    Stream.splitLines,
    Stream.mapEffect((line) =>
      Result.match(readNdjson(line), {
        onFailure: (issue) => Effect.fail(wrapReason(Protocol.malformed(label, issue))),
        onSuccess: Effect.succeed
      })
    )
  )
