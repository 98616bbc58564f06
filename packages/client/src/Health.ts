/** Readiness and metrics of the gateway. */
import * as Paths from "@trigate/api/Paths"
import { Readiness } from "@trigate/api/unstable/HealthApi"
import { type CallFailure, wrapReason } from "@trigate/domain/errors/GatewayError"
import * as Protocol from "@trigate/domain/operations/Operation"
import * as Effect from "effect/Effect"
import type { Connection } from "./Connection.ts"
import { readOwn, sendRequest } from "./internal/Served.ts"

/**
 * Returns whether the gateway accepts traffic, and the mode of each chain (live, sandbox or not configured). Also
 * succeeds while the gateway drains, that is, while it completes requests before it stops.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Health } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.flatMap(Health.ready(), ({ sandbox, status }) => Console.log(status, sandbox))
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * ready true
 * ```
 */
export const ready = readOwn("ready", () => Paths.ready, Readiness)

/**
 * Returns the gateway's metrics in the Prometheus text format.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Health } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.flatMap(Health.metrics(), (text) => Console.log(text.includes("trigate_requests_total")))
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * true
 * ```
 */
export const metrics: () => Effect.Effect<string, CallFailure, Connection> = Effect.fn("GatewayClient.metrics")(
  function*() {
    const response = yield* sendRequest(({ own }) => own.get(Paths.metrics))
    return response.status === 200 ? response.text : yield* wrapReason(Protocol.servedResponseFailure(response))
  }
)
