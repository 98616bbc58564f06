/**
 * `GET /ws`: the venue's WebSocket, shared by all callers, and `GET /streams`: the same subscriptions as Server-Sent
 * Events.
 */
import { callerFailures } from "@trigate/domain/errors/GatewayError"
import { ChainNotConfigured, InvalidRequest } from "@trigate/domain/errors/RequestError"
import { UpstreamUnavailable } from "@trigate/domain/errors/UpstreamError"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import * as Paths from "./Paths.ts"
import { Problems } from "./Problems.ts"

/** The errors of a refused WebSocket handshake. */
export const socketErrors = [ChainNotConfigured, UpstreamUnavailable, ...callerFailures] as const

/** The response to an accepted WebSocket handshake. */
export const Upgraded = HttpApiSchema.Empty(101).annotate({ description: "The connection is now a WebSocket" })

/** The errors of a refused event stream. */
export const eventErrors = [InvalidRequest, ...socketErrors] as const

/** The event stream. */
export const Events = HttpApiSchema.StreamUint8Array({ contentType: "text/event-stream" })

/** The query parameters of an event stream. */
export const eventQuery = {
  [Paths.subscribe]: Schema.Array(Schema.String).annotate({
    description: "A subscription in JSON, as `/ws` accepts it; the parameter can be repeated",
    examples: [["{\"type\":\"trades\",\"coin\":\"BTC\"}"]]
  }),
  [Paths.resume]: Schema.optionalKey(Schema.String.annotate({
    description:
      "The id of the last event that the client received, for a client that cannot send the header `Last-Event-ID`"
  }))
}

export class StreamsApi extends HttpApiGroup.make("streams").add(
  HttpApiEndpoint.get("events", Paths.streams, {
    disableCodecs: true,
    query: eventQuery,
    success: Events,
    error: eventErrors
  })
    .annotateMerge(OpenApi.annotations({
      summary: "Streams as Server-Sent Events, which can be resumed",
      description:
        "The data of each event is a frame as `/ws` sends it. The first event is called `resume`. If its data has `recovered: true`, all events " +
        "since `Last-Event-ID` follow; if `recovered: false`, a snapshot follows. Events of accounts have an id `<epoch>:<seq>`. A comment " +
        "every 15 seconds keeps the connection open. If `Last-Event-ID` is unknown or malformed, a snapshot follows."
    })),
  HttpApiEndpoint.get("socket", Paths.socket, { disableCodecs: true, success: Upgraded, error: socketErrors })
    .annotateMerge(OpenApi.annotations({
      summary: "The venue's WebSocket",
      description:
        "Accepts `subscribe`, `unsubscribe`, `ping` and `post` as the venue does. Callers with equal subscriptions share one subscription " +
        "at the venue. A request without a WebSocket upgrade gets a 426."
    }))
).middleware(Problems).annotateMerge(OpenApi.annotations({
  title: "Streams",
  description: "Trades, books, bars, orders and fills as they happen, and `post` requests, over one WebSocket"
})) {}
