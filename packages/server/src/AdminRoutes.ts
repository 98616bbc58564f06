/** The routes of whoever runs the gateway: what is in its action log, and what became of it. */
import { GatewayApi } from "@trigate/api/GatewayApi"
import { CallerKeys } from "@trigate/callers/CallerKeys"
import type { Quotas } from "@trigate/callers/Quotas"
import { CurrentCaller } from "@trigate/domain/Caller"
import { NotPermitted } from "@trigate/domain/CallerError"
import type { Overloaded, QuotaExceeded, Unauthorized } from "@trigate/domain/CallerError"
import type { UpstreamUnavailable } from "@trigate/domain/UpstreamError"
import { ActionLog } from "@trigate/trading/ActionLog"
import type { Unanswered } from "@trigate/trading/ActionLog"
import { Exchange } from "@trigate/trading/Exchange"
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Layer from "effect/Layer"
import * as EncodedRoutes from "./EncodedRoutes.ts"
import * as RequestCaller from "./RequestCaller.ts"
import * as RequestFacts from "./RequestFacts.ts"

/** The part of the contract that these routes serve. */
export class AdminApi extends HttpApi.make("gateway").add(GatewayApi.groups.admin) {}

const administers = Effect.flatMap(
  CurrentCaller,
  ({ scope }) =>
    scope.classes?.includes("admin") === true ? Effect.void : Effect.fail(
      new NotPermitted({
        missing: "classes",
        needed: "admin",
        detail: "The scope of this caller has no admin among its classes"
      })
    )
)

/** Serves a request for whoever runs the gateway, who is the `CurrentCaller` meanwhile. */
export type Administering = <A, E, R>(
  request: HttpServerRequest,
  handled: Effect.Effect<A, E, R>
) => Effect.Effect<A, E | NotPermitted | Overloaded | QuotaExceeded | Unauthorized | UpstreamUnavailable, R>

/**
 * Serves a request for whoever runs the gateway: where it asks for keys, for a caller whose scope names `admin`.
 *
 * A gateway without keys serves whoever reaches the routes, so nobody else may.
 */
export const guarding: Effect.Effect<Administering, never, CallerKeys | Quotas> = Effect.gen(function*() {
  const { check } = yield* CallerKeys
  const serve = yield* RequestCaller.serving
  return (request, handled) =>
    serve(request, undefined, check === undefined ? handled : Effect.andThen(administers, handled))
})

// the bytes hold the signature
const listed = ({ body: _, fingerprint, ...entry }: Unanswered) => ({ id: fingerprint, ...entry })

/** Fails if a foreign page asks. */
const ownPage = Effect.flatMap(RequestFacts.CurrentRequestFacts, (facts) => {
  const refusal = RequestFacts.refusalOf(facts)
  return refusal === undefined ? Effect.void : Effect.fail(refusal)
})

const admin = HttpApiBuilder.group(
  AdminApi,
  "admin",
  Effect.fnUntraced(function*(handlers) {
    const log = yield* ActionLog
    const exchange = yield* Exchange
    const serve = yield* guarding

    const resolve = Effect.fnUntraced(function*(id: string) {
      const entry = (yield* log.unanswered).find(({ fingerprint }) => fingerprint === id)
      if (entry === undefined) return { _tag: "Absent" as const }
      return yield* Effect.match(exchange.resolve(entry.body), {
        onFailure: ({ advice, message }) => ({ _tag: "StillUnknown" as const, message, advice }),
        onSuccess: (found) =>
          found._tag === "Accepted"
            ? { _tag: found._tag }
            : { _tag: found._tag, message: found.rejection.message }
      })
    })

    return handlers
      .handle(
        "actions",
        ({ request }) => serve(request, Effect.map(log.unanswered, (entries) => entries.map(listed)))
      )
      .handle("forget", ({ params, request }) =>
        serve(
          request,
          Effect.andThen(ownPage, Effect.map(log.forget(params.id), (forgotten) => ({ forgotten })))
        ))
      .handle("resolve", ({ params, request }) => serve(request, Effect.andThen(ownPage, resolve(params.id))))
  })
)

/** The routes, for an `HttpRouter`. */
export const layer = HttpApiBuilder.layer(AdminApi).pipe(Layer.provide(admin), Layer.provide(EncodedRoutes.problems))
