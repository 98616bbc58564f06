/** `POST /info`: queries of the trading chain. */
import { Candle } from "@trigate/domain/Candle"
import { commonFailures } from "@trigate/domain/GatewayError"
import { candleSnapshot, passthroughQuery, spotMeta } from "@trigate/domain/InfoOperations"
import { SpotMeta } from "@trigate/domain/SpotMeta"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { Problems } from "./Problems.ts"

/** Errors of a query. */
export const infoErrors = [...candleSnapshot.failures, ...commonFailures] as const

/** A query as the wire carries it, told apart by `type`. */
export const InfoRequest = Schema.Union([
  Schema.toEncoded(spotMeta.request),
  Schema.toEncoded(candleSnapshot.request),
  passthroughQuery.request.annotate({ description: "A query of another type, with whatever members it has" })
])

export class InfoApi extends HttpApiGroup.make("info").add(
  HttpApiEndpoint.post("query", "/info", {
    disableCodecs: true,
    payload: InfoRequest,
    success: [SpotMeta, Schema.Array(Candle), passthroughQuery.response],
    error: infoErrors
  }).annotateMerge(OpenApi.annotations({
    summary: "Query the trading chain",
    description:
      "`spotMeta` is served by the official API with the node as fallback, `candleSnapshot` by the official API only. " +
      "The upstream's answer comes back as it is, except that its 500 `null` for an unknown coin of a candle query is " +
      "UnknownAsset. A query of any other type is relayed unread to the official API."
  }))
).middleware(Problems).annotateMerge(OpenApi.annotations({
  title: "Info",
  description: "Queries of the trading chain: spotMeta, candleSnapshot, and any other type as it is"
})) {}
