/** `GET /ws`: the venue's WebSocket, shared by all callers. */
import { callerFailures } from "@trigate/domain/errors/GatewayError"
import { ChainNotConfigured } from "@trigate/domain/errors/RequestError"
import { UpstreamUnavailable } from "@trigate/domain/errors/UpstreamError"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Paths from "./Paths.ts"
import { Problems } from "./Problems.ts"

/** Errors with which an upgrade is refused. */
export const socketErrors = [ChainNotConfigured, UpstreamUnavailable, ...callerFailures] as const

/** The answer to an upgrade that was accepted. */
export const Upgraded = HttpApiSchema.Empty(101).annotate({ description: "The connection is a WebSocket from now on" })

export class StreamsApi extends HttpApiGroup.make("streams").add(
  HttpApiEndpoint.get("socket", Paths.socket, { disableCodecs: true, success: Upgraded, error: socketErrors })
    .annotateMerge(OpenApi.annotations({
      summary: "The venue's WebSocket",
      description:
        "Takes `subscribe`, `unsubscribe`, `ping` and `post` as the venue does. All callers share one subscription " +
        "at the venue for each that is the same. A request that asks for no WebSocket is answered with 426."
    }))
).middleware(Problems).annotateMerge(OpenApi.annotations({
  title: "Streams",
  description: "Trades, books, bars, orders and fills as they happen, and posts, over one WebSocket"
})) {}
