/** `GET /health/live`, `GET /health/ready`, `GET /metrics`. */
import { Readiness } from "@trigate/api/HealthApi"
import * as Effect from "effect/Effect"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"
import * as Schema from "effect/Schema"
import { Drain } from "./Drain.ts"
import { EncodedApi } from "./EncodedApi.ts"
import { GatewayStatus } from "./GatewayStatus.ts"
import { RedisReadiness } from "./RedisReadiness.ts"
import * as Responses from "./Responses.ts"

const encodeReadiness = Schema.encodeEffect(Schema.fromJsonString(Readiness))

export const layer = HttpApiBuilder.group(
  EncodedApi,
  "health",
  Effect.fnUntraced(function*(handlers) {
    const drain = yield* Drain
    const status = yield* GatewayStatus
    const redis = yield* RedisReadiness
    return handlers
      .handle("live", () => Effect.succeed({ status: "live" as const }))
      .handleRaw("ready", () =>
        Effect.gen(function*() {
          const draining = drain.isDraining()
          const readiness = { status: draining ? "draining" as const : "ready" as const, ...status, ...(yield* redis) }
          const body = yield* Effect.orDie(encodeReadiness(readiness))
          return Responses.json(body, draining ? 503 : 200)
        }))
      .handleRaw(
        "metrics",
        () =>
          Effect.map(
            PrometheusMetrics.format(),
            (text) => HttpServerResponse.text(text, { contentType: "text/plain; version=0.0.4; charset=utf-8" })
          )
      )
  })
)
