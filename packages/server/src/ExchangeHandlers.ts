/** `POST /exchange`. */
import { GatewayApi } from "@trigate/api/GatewayApi"
import type { Surface } from "@trigate/domain/Operation"
import { Exchange } from "@trigate/trading/Exchange"
import * as Effect from "effect/Effect"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as RequestBody from "./RequestBody.ts"
import { CurrentRequestFacts } from "./RequestFacts.ts"
import * as Responses from "./Responses.ts"

/** The route's handler, shared with the keyed one. */
export const route = Effect.map(
  Exchange,
  (exchange) =>
    Effect.fnUntraced(function*(request: HttpServerRequest.HttpServerRequest, surface: Surface) {
      const body = yield* RequestBody.bytes(request)
      const facts = yield* CurrentRequestFacts
      const relayed = yield* exchange.relay({ body, surface })
      facts.operations.push({
        operation: relayed.operation,
        outcome: relayed.answer.status === 200 ? "ok" : "upstream_error"
      })
      return Responses.relayed(
        relayed.answer,
        relayed.warnings.length === 0 ? {} : { "x-trigate-warning": relayed.warnings.join("; ") }
      )
    })
)

export const layer = HttpApiBuilder.group(
  GatewayApi,
  "exchange",
  Effect.fnUntraced(function*(handlers) {
    const handle = yield* route
    const exchange = yield* Exchange
    return handlers
      .handleRaw("submit", ({ request }) => handle(request, "gateway"))
      .handleRaw("inspect", ({ request }) => Effect.flatMap(RequestBody.bytes(request), exchange.inspect))
  })
)
