/**
 * The endpoints whose requests and responses are relayed.
 *
 * A route that relays has nothing to decode or encode. It is therefore registered directly on the router, with its HTTP
 * method and path in the API definition. HttpApiBuilder would add 10 microseconds to each request, a fifth of the
 * request's total time, to merge the context of the endpoint's group.
 */
import { KeyedPath } from "@trigate/api/EndpointKey"
import { GatewayApi } from "@trigate/api/GatewayApi"
import { endpointPaths } from "@trigate/api/TokensApi"
import { type CallError, unwrapReason } from "@trigate/domain/errors/GatewayError"
import { decodeFaults, invalidRequest } from "@trigate/domain/operations/Operation"
import type { Surface } from "@trigate/domain/operations/Operation"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as ErrorReporter from "effect/ErrorReporter"
import * as Exit from "effect/Exit"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpRouter from "effect/http/HttpRouter"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import type { HttpServerResponse } from "effect/http/HttpServerResponse"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as FastLane from "../requests/FastLane.ts"
import { fromAdapter } from "../requests/IncomingRequest.ts"
import type { IncomingRequest } from "../requests/IncomingRequest.ts"
import * as ProblemResponse from "../requests/ProblemResponse.ts"
import * as RequestCaller from "../requests/RequestCaller.ts"
import * as RequestSpan from "../requests/RequestSpan.ts"
import * as StreamRoutes from "../streams/StreamRoutes.ts"
import * as TransactionRoutes from "../streams/TransactionRoutes.ts"
import type * as AdminRoutes from "./AdminRoutes.ts"
import type * as CandleRoutes from "./CandleRoutes.ts"
import type * as HttpApiRoutes from "./HttpApiRoutes.ts"
import { notOffered, otherApi } from "./NotFoundRoutes.ts"
import * as RelayRoutes from "./RelayRoutes.ts"
import * as RpcRoutes from "./RpcRoutes.ts"
import type * as SandboxRoutes from "./SandboxRoutes.ts"

/** The relay options: undocumented operations to relay, and the maximum size of a batch. */
export interface Options extends RpcRoutes.Options {
  /** Whether `/info` relays queries of any type. */
  readonly anyInfo: boolean
}

/** The default relay options, equal to the defaults of the settings. */
export const relayDefaults: Options = { anyInfo: true, methods: [], maxBatch: 100 }

type NameIn<Groups extends { readonly [group: string]: { readonly endpoints: object } }> = {
  [Group in keyof Groups & string]: `${Group}.${keyof Groups[Group]["endpoints"] & string}`
}[keyof Groups & string]

type RelayedName = Exclude<
  NameIn<typeof GatewayApi.groups>,
  | NameIn<typeof HttpApiRoutes.EncodedApi.groups>
  | NameIn<typeof HttpApiRoutes.HealthApi.groups>
  | NameIn<typeof AdminRoutes.AdminApi.groups>
  | NameIn<typeof SandboxRoutes.SandboxApi.groups>
  | NameIn<typeof CandleRoutes.CandlesApi.groups>
>

/**
 * Handles a request on a surface, which is either the gateway's own routes or the node routes behind an endpoint key.
 */
type Handle = (request: IncomingRequest, surface: Surface) => Effect.Effect<HttpServerResponse, CallError>

const endpointKey = HttpRouter.schemaPathParams(Schema.Struct(KeyedPath)).pipe(
  Effect.mapBoth({
    onFailure: (error) => invalidRequest(decodeFaults(error, ["path"])),
    onSuccess: ({ endpointKey }) => Redacted.make(endpointKey)
  })
)

type Handler = (request: IncomingRequest) => Effect.Effect<HttpServerResponse, CallError>

const relays = Effect.fnUntraced(function*(options: Options) {
  const { serve } = yield* RequestCaller.serving
  const exchange = yield* RelayRoutes.exchange
  const info = yield* RelayRoutes.info(options.anyInfo)
  const outcome = yield* RelayRoutes.outcome
  const evm = yield* RpcRoutes.evm(options)
  const layer2 = yield* RpcRoutes.layer2(options)
  const tokens = yield* RpcRoutes.tokens
  const tokenRest = yield* RelayRoutes.tokenRest
  const { events, rpc: rpcSocket, socket } = yield* StreamRoutes.make(options.anyInfo, { trading: evm, layer2 })
  const transactionRoutes = yield* TransactionRoutes.make
  const transactions: Handler = (request) => serve(request, transactionRoutes.transactions(request))
  const jettonTransfers: Handler = (request) => serve(request, transactionRoutes.jettonTransfers(request))
  const evmSocket = rpcSocket("trading")
  const layer2Socket = rpcSocket("layer2")
  const relay = (handle: Handle): Handler => (request) =>
    serve(request, handle(request, request.keyInPath === undefined ? "gateway" : "node"))
  const rpc = ({ handle, refuse }: RpcRoutes.Route): Handler => (request) =>
    Effect.catch(relay(handle)(request), refuse)
  return new Map<string, Handler>(Object.entries<Handler>(
    {
      "exchange.submit": relay(exchange),
      "actions.outcome": relay(outcome),
      "actions.find": relay(outcome),
      "info.query": relay(info),
      "evm.rpc": rpc(evm),
      "layer2.rpc": rpc(layer2),
      "tokens.rpc": rpc(tokens),
      "tokens.rest": relay(tokenRest),
      "tokens.restPost": relay(tokenRest),
      "streams.socket": (request) => serve(request, socket(request)),
      "node.socket": (request) => serve(request, socket(request)),
      "evm.socket": (request) => serve(request, evmSocket(request)),
      "layer2.socket": (request) => serve(request, layer2Socket(request)),
      "node.evmSocket": (request) => serve(request, evmSocket(request)),
      "node.layer2Socket": (request) => serve(request, layer2Socket(request)),
      "node.rootSocket": (request) => serve(request, layer2Socket(request)),
      "streams.events": (request) => serve(request, events(request)),
      "node.events": (request) => serve(request, events(request)),
      "node.exchange": relay(exchange),
      "node.outcome": relay(outcome),
      "node.findOutcome": relay(outcome),
      "node.info": relay(info),
      "node.evm": rpc(evm),
      "node.tokenRpc": rpc(tokens),
      "node.tokenRest": relay(tokenRest),
      "node.tokenRestPost": relay(tokenRest),
      "tokens.transactions": transactions,
      "tokens.jettonTransfers": jettonTransfers,
      "node.transactions": transactions,
      "node.jettonTransfers": jettonTransfers,
      "node.layer2": rpc(layer2),
      "node.root": rpc({ ...layer2, handle: layer2.handleCall })
    } satisfies { readonly [Name in RelayedName]: Handler }
  ))
})

/**
 * Responds to a typed error with a problem document. Any other cause remains a failure, as with HttpApiBuilder, and is
 * reported unless it is an interruption.
 */
const respondToError = (path: string) => (cause: Cause.Cause<CallError>) =>
  Result.match(Cause.findError(cause), {
    onSuccess: (error) => ProblemResponse.answerProblem(unwrapReason(error), path),
    onFailure: (fault) =>
      Cause.hasInterruptsOnly(fault)
        ? Exit.failCause(fault)
        : Effect.andThen(ErrorReporter.report(fault), Effect.failCause(fault))
  })

/**
 * The relaying routes. Adds each route to the `FastLane`, which serves requests without Effect's router.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options) =>
  HttpRouter.addAll(Effect.gen(function*() {
    const handlers = yield* relays(options)
    const lane = yield* FastLane.FastLane
    const routes: Array<HttpRouter.Route> = []
    HttpApi.reflect(GatewayApi, {
      onGroup: () => {},
      onEndpoint: ({ endpoint, group }) => {
        const name = `${group.identifier}.${endpoint.identifier}`
        const handle = handlers.get(name)
        if (handle === undefined) return
        const problems = respondToError(endpoint.path)
        const isKeyed = endpoint.path.startsWith("/:endpointKey")
        const answer: FastLane.RequestHandler = (request) =>
          RequestSpan.named(name, Effect.catchCause(handle(request), problems), endpoint.path)
        const adapted = Effect.flatMap(HttpServerRequest, (request) => {
          if (!isKeyed) return answer(fromAdapter(request))
          return Effect.matchCauseEffect(endpointKey, {
            onFailure: (cause) => RequestSpan.named(name, respondToError(endpoint.path)(cause), endpoint.path),
            onSuccess: (key) => {
              const sentence = otherApi(`/${Redacted.value(key)}`)
              return sentence === undefined ? answer(fromAdapter(request, key)) : Exit.succeed(notOffered(sentence))
            }
          })
        })
        for (const path of endpointPaths(endpoint)) {
          routes.push(HttpRouter.route(endpoint.method, `/${path.slice(1)}`, adapted))
          FastLane.add(lane, endpoint.method, path, answer)
        }
      }
    })
    return routes
  }))
