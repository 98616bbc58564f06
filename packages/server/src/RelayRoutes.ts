/**
 * The endpoints of the contract that relay bytes, as routes of the router itself.
 *
 * HttpApiBuilder would merge the context of its group into that of every request, then decode and encode nothing: 10
 * microseconds, a fifth of what a whole request costs. Method and path are the contract's.
 */
import { KeyedPath } from "@trigate/api/EndpointKey"
import { GatewayApi } from "@trigate/api/GatewayApi"
import { pathsOf } from "@trigate/api/TokensApi"
import type { Unauthorized } from "@trigate/domain/CallerError"
import { faultsOf, invalidRequest } from "@trigate/domain/Decode"
import type { GatewayError } from "@trigate/domain/GatewayError"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as ErrorReporter from "effect/ErrorReporter"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpRouter from "effect/http/HttpRouter"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import type { HttpServerResponse } from "effect/http/HttpServerResponse"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as ApiKey from "./ApiKey.ts"
import { CallerKeys } from "./CallerKeys.ts"
import type { EncodedApi } from "./EncodedApi.ts"
import * as EvmHandlers from "./EvmHandlers.ts"
import * as ExchangeHandlers from "./ExchangeHandlers.ts"
import * as InfoHandlers from "./InfoHandlers.ts"
import * as Layer2Handlers from "./Layer2Handlers.ts"
import * as ProblemsMiddleware from "./ProblemsMiddleware.ts"
import * as RequestFacts from "./RequestFacts.ts"
import * as TokensHandlers from "./TokensHandlers.ts"

type NameIn<Groups extends { readonly [group: string]: { readonly endpoints: object } }> = {
  [Group in keyof Groups & string]: `${Group}.${keyof Groups[Group]["endpoints"] & string}`
}[keyof Groups & string]

type UpstreamResponse = Exclude<NameIn<typeof GatewayApi.groups>, NameIn<typeof EncodedApi.groups>>

type Handler = (
  request: HttpServerRequest
) => Effect.Effect<HttpServerResponse, GatewayError, HttpRouter.RouteContext>

const endpointKey = HttpRouter.schemaPathParams(Schema.Struct(KeyedPath)).pipe(
  Effect.mapBoth({
    onFailure: (error) => invalidRequest(faultsOf(error, ["path"])),
    onSuccess: ({ endpointKey }) => Redacted.make(endpointKey)
  })
)

const handlers = Effect.gen(function*() {
  const keys = yield* CallerKeys
  const exchange = yield* ExchangeHandlers.route
  const info = yield* InfoHandlers.route
  const evm = yield* EvmHandlers.route
  const layer2 = yield* Layer2Handlers.route
  const tokens = yield* TokensHandlers.rpcRoute
  const tokenRest = yield* TokensHandlers.restRoute
  /** A route behind the caller's key; a JSON-RPC route tells in its own words that the key is refused. */
  const keyed = (
    handle: (
      request: HttpServerRequest,
      admission: Effect.Effect<void, Unauthorized>
    ) => Effect.Effect<HttpServerResponse, GatewayError>
  ): Handler =>
  (request) => Effect.flatMap(endpointKey, (key) => handle(request, keys.check(key)))
  const unkeyedRest: Handler = (request) =>
    Effect.andThen(ApiKey.admission(keys, request), tokenRest(request, "gateway"))
  return new Map<string, Handler>(Object.entries<Handler>(
    {
      "exchange.submit": (request) => exchange(request, "gateway"),
      "info.query": (request) => info(request, "gateway"),
      "evm.rpc": (request) => evm(request, "gateway"),
      "tokens.rpc": (request) => tokens(request, "gateway", ApiKey.admission(keys, request)),
      "tokens.rest": unkeyedRest,
      "tokens.restPost": unkeyedRest,
      "layer2.rpc": (request) => layer2(request, "gateway"),
      "node.exchange": keyed((request, admission) => Effect.andThen(admission, exchange(request, "node"))),
      "node.info": keyed((request, admission) => Effect.andThen(admission, info(request, "node"))),
      "node.evm": keyed((request, admission) => evm(request, "node", admission)),
      "node.tokenRpc": keyed((request, admission) => tokens(request, "node", admission)),
      "node.tokenRest": keyed((request, admission) => Effect.andThen(admission, tokenRest(request, "node"))),
      "node.tokenRestPost": keyed((request, admission) => Effect.andThen(admission, tokenRest(request, "node"))),
      "node.layer2": keyed((request, admission) => layer2(request, "node", admission)),
      "node.root": keyed((request, admission) => layer2(request, "node", admission))
    } satisfies { readonly [Name in UpstreamResponse]: Handler }
  ))
})

/** A typed error is the answer; what nobody foresaw is reported, as HttpApiBuilder does, and goes on. */
const answerOf = (cause: Cause.Cause<GatewayError>) =>
  Result.match(Cause.findError(cause), {
    onSuccess: ProblemsMiddleware.answer,
    onFailure: (fault) => Effect.andThen(ErrorReporter.report(fault), Effect.failCause(fault))
  })

/** The routes, for a router that also has those of `EncodedApi`. */
export const layer = HttpRouter.addAll(Effect.map(handlers, (handlers) => {
  const routes: Array<HttpRouter.Route> = []
  HttpApi.reflect(GatewayApi, {
    onGroup: () => {},
    onEndpoint: ({ endpoint, group }) => {
      const name = `${group.identifier}.${endpoint.identifier}`
      const handle = handlers.get(name)
      if (handle === undefined) return
      const answered = Effect.catchCause(Effect.flatMap(HttpServerRequest, handle), answerOf)
      for (const path of pathsOf(endpoint)) {
        routes.push(HttpRouter.route(endpoint.method, `/${path.slice(1)}`, RequestFacts.named(name, answered)))
      }
    }
  })
  return routes
}))
