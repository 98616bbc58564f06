/** `POST /info`: queries of the trading chain. */
import { Candle } from "@trigate/domain/Candle"
import { servedFailures } from "@trigate/domain/GatewayError"
import { candleSnapshot, passthroughQuery, spotMeta } from "@trigate/domain/InfoOperations"
import { SpotMeta } from "@trigate/domain/SpotMeta"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import * as Examples from "./Examples.ts"
import * as Paths from "./Paths.ts"
import { Problems } from "./Problems.ts"

/** Errors of a query. */
export const infoErrors = [...candleSnapshot.failures, ...servedFailures] as const

/** A query as it is sent; `type` tells the branches apart. */
export const InfoRequest = Schema.Union([
  Schema.toEncoded(spotMeta.request),
  Schema.toEncoded(candleSnapshot.request),
  passthroughQuery.request.annotate({ description: "A query of another type, with whatever members it has" })
]).annotate({ examples: Examples.queries })

export class InfoApi extends HttpApiGroup.make("info").add(
  HttpApiEndpoint.post("query", Paths.info, {
    disableCodecs: true,
    payload: InfoRequest,
    success: [SpotMeta, Schema.Array(Candle), passthroughQuery.response],
    error: infoErrors
  }).annotateMerge(OpenApi.annotations({
    summary: "Query the trading chain",
    description:
      "The official API serves `spotMeta` with the node as fallback, and is the only one that serves `candleSnapshot`. The " +
      "upstream's answer comes back as it is, with one exception: its 500 `null` for an unknown coin becomes " +
      "UnknownAsset. A query of any other type is relayed to the official API without a check of its fields. A refusal " +
      "also has `code`, the status, and `msg`, the detail, as the venue's SDKs read them."
  }))
).middleware(Problems).annotateMerge(OpenApi.annotations({
  title: "Info",
  description: "Queries of the trading chain: spotMeta, candleSnapshot, and any other type as it is"
})) {}
