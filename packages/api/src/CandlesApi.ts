/** `GET /candles`: the candle history that the gateway stores. */
import { CandleInterval, CandleWindowRequest, coinsPerPage } from "@trigate/domain/candles/Candle"
import { CandleFormat, contentTypes } from "@trigate/domain/candles/CandleText"
import { ArchiveNotConfigured, ArchiveUnavailable } from "@trigate/domain/errors/ArchiveError"
import { callerFailures } from "@trigate/domain/errors/GatewayError"
import { UnknownAsset } from "@trigate/domain/errors/ResourceError"
import { UpstreamUnavailable } from "@trigate/domain/errors/UpstreamError"
import { Millis } from "@trigate/domain/Time"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import * as Examples from "./Examples.ts"
import * as Paths from "./Paths.ts"
import { Problems } from "./Problems.ts"

/** The stored candle history of one coin and interval. */
export const CandleSeries = Schema.Struct({
  coin: Schema.String,
  interval: CandleInterval,
  bars: Schema.Natural,
  bytes: Schema.Natural.annotateKey({
    description: "Size of the stored bars in bytes, without the database's overhead"
  }),
  known: Schema.Array(Schema.Struct({ from: Millis, to: Millis })).annotateKey({
    description:
      "The periods in which the history is complete, oldest first, each with its first and last millisecond. If a bar is " +
      "missing inside a period, no trade took place. The time between two periods is a gap"
  })
}).annotate({ identifier: "CandleSeries" })
export type CandleSeries = typeof CandleSeries.Type

/**
 * Makes the schema of a time parameter in a query. The schema has no identifier, because a named schema would lose its
 * example in the OpenAPI document.
 */
const time = (description: string, example: number) =>
  Schema.String.check(Schema.isPattern(/^[0-9]{1,16}$/u, { expected: "milliseconds since the Unix epoch" })).annotate({
    description,
    examples: [String(example)]
  }).pipe(
    Schema.decodeTo(Schema.Natural, SchemaTransformation.transform({ decode: Number, encode: String })),
    Schema.optionalKey
  )

/** Query parameters that limit the bars of a series by open time. */
const bounds = {
  from: time(
    "First open time, in milliseconds. Default: the open time of the first stored bar",
    Examples.candleFile.from
  ),
  to: time("Last open time, in milliseconds. Default: the open time of the last stored bar", Examples.candleFile.to)
}

/** The errors of a request for candle history. */
export const candleErrors = [ArchiveNotConfigured, ArchiveUnavailable, UpstreamUnavailable, ...callerFailures] as const

export class CandlesApi extends HttpApiGroup.make("candles").add(
  HttpApiEndpoint.get("list", Paths.candles, {
    query: {
      after: CandleWindowRequest.fields.coin.annotate({
        description: "The last coin of the previous page. If absent, the first page is returned",
        examples: [Examples.candleFile.coin]
      }).pipe(Schema.optionalKey)
    },
    success: Schema.Array(CandleSeries),
    error: candleErrors
  }).annotateMerge(OpenApi.annotations({
    summary: "List the stored candle history",
    description:
      `Each coin and interval with its complete periods, ordered by coin. A page has ${coinsPerPage} coins; request the next ` +
      "page with `after`. A page of fewer coins is the last."
  })),
  HttpApiEndpoint.get("file", Paths.candleFile, {
    params: {
      coin: CandleWindowRequest.fields.coin.annotate({ examples: [Examples.candleFile.coin] }),
      interval: Schema.Literals(CandleInterval.literals).annotate({ examples: [Examples.candleFile.interval] })
    },
    query: {
      ...bounds,
      format: Schema.optionalKey(
        Schema.Literals(CandleFormat.literals).annotate({ description: "Default: ndjson", examples: ["csv"] })
      )
    },
    success: HttpApiSchema.StreamUint8Array({ contentType: Object.values(contentTypes) }),
    error: [...candleErrors, UnknownAsset]
  }).annotateMerge(OpenApi.annotations({
    summary: "The bars of a coin and interval as a file, for a period of any length",
    description:
      "The file contains closed bars only, oldest first, with every number as the venue formatted it. In the path, " +
      "write a slash in a coin's name as `%2F`. To resume after a truncated response, drop an incomplete last line, " +
      "and request `from` = open time of the last bar plus 1. A parquet file can be read only after the whole file " +
      "is downloaded; its metadata entry `trigate:known` lists the periods that are completely recorded. In the " +
      "caller's quota, a file counts as one request for every 10 000 bars, and as a concurrent request until its transfer " +
      "ends. A caller can download 4 files at a time, and all callers together 8."
  }))
).middleware(Problems).annotateMerge(OpenApi.annotations({
  title: "Candles",
  description: "The candle history of the coins that `TRIGATE_ARCHIVE` selects"
})) {}
