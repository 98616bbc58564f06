/**
 * The routes whose requests and responses are relayed: `POST /exchange`, `POST /info` and the token chain's REST API,
 * and the endpoints of all relaying routes.
 *
 * A route that relays has nothing to decode or encode. It is therefore registered directly on the router, with its HTTP
 * method and path in the API definition. HttpApiBuilder would add 10 microseconds to each request, a fifth of the
 * request's total time, to merge the context of the endpoint's group.
 */
import { GatewayApi } from "@trigate/api/GatewayApi"
import { KeyedPath } from "@trigate/api/unstable/RouteParts"
import { endpointPaths } from "@trigate/api/unstable/TokensApi"
import { ActionPath, ById, ByIdentity } from "@trigate/api/unstable/TradingApi"
import * as Json from "@trigate/domain/encoding/Encoding"
import { Address } from "@trigate/domain/encoding/Encoding"
import { UnsupportedMethod, unwrapReason, wrapReason } from "@trigate/domain/errors/GatewayError"
import type { CallError, InvalidRequest } from "@trigate/domain/errors/GatewayError"
import * as InfoProtocol from "@trigate/domain/info/InfoOperations"
import * as Operation from "@trigate/domain/operations/Operation"
import { tokenRestPosts, tokenRestReads } from "@trigate/domain/tokens/TokenOperations"
import type { TokenRpcOperation, TokenSendOperation } from "@trigate/domain/tokens/TokenOperations"
import { type RestCall, TokenChain } from "@trigate/tokens/TokenChain"
import { Exchange } from "@trigate/trading/Exchange"
import { Info } from "@trigate/trading/Info"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as ErrorReporter from "effect/ErrorReporter"
import * as Exit from "effect/Exit"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpRouter from "effect/http/HttpRouter"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Callers from "../requests/Callers.ts"
import * as FastLane from "../requests/Listener.ts"
import * as RequestSpan from "../requests/Observe.ts"
import * as Request from "../requests/Request.ts"
import { CurrentRequestRecord, foreignRefusal, fromAdapter, header } from "../requests/Request.ts"
import type { IncomingRequest } from "../requests/Request.ts"
import * as StreamRoutes from "../streams/StreamRoutes.ts"
import type * as AdminRoutes from "./AdminRoutes.ts"
import type * as HttpApiRoutes from "./HttpApiRoutes.ts"
import { notOffered, otherApi } from "./NotFoundRoutes.ts"
import * as RpcRoutes from "./Rpc.ts"

const expectedSignerHeader = "x-trigate-expected-signer"

const decodeAddress = Schema.decodeUnknownEffect(Address)

const namedIn = (request: IncomingRequest): string | undefined =>
  header(request, expectedSignerHeader) ??
    new URLSearchParams(/\?(.*)$/u.exec(request.url)?.[1]).get(expectedSignerHeader) ?? undefined

/**
 * Returns the expected signer from the header or query parameter `x-trigate-expected-signer`.
 *
 * A value that is not an address is refused rather than ignored.
 */
export const expectedSigner = (request: IncomingRequest): Effect.Effect<Address | undefined, InvalidRequest> => {
  const named = namedIn(request)
  return named === undefined ? Effect.undefined : Effect.mapError(
    decodeAddress(named),
    () => Operation.invalidRequest([{ path: [expectedSignerHeader], message: "Expected a 20-byte address in 0x hex" }])
  )
}

/**
 * Fails with the error of a refusal by the venue's rate limit without a message: the venue sends `null` or no body with
 * HTTP 429. Every other response is relayed unchanged.
 */
const describeLimit = (answer: Operation.UpstreamResponse): Effect.Effect<void, CallError> =>
  /^(?:null)?$/u.test(answer.excerpt().trim())
    ? Effect.fail(wrapReason(Operation.failureOfStatus(answer)))
    : Effect.void

/** The handler of `/exchange`. */
export const relayExchange = Effect.map(
  Exchange,
  ({ relay }) =>
    Effect.fnUntraced(function*(request: IncomingRequest, surface: Operation.Surface) {
      const record = yield* CurrentRequestRecord
      const refusal = foreignRefusal(record)
      if (refusal !== undefined) return yield* refusal
      const body = yield* Request.bytes(request, Request.signedLimit)
      const expected = yield* expectedSigner(request)
      const { response: answer, operation, signer, warnings } = yield* relay({
        body,
        surface,
        ...(expected === undefined ? {} : { expectedSigner: expected }),
        ...(record.id === undefined ? {} : { requestId: record.id })
      })
      if (answer.status === 429) yield* describeLimit(answer)
      return Request.relayedIn(record, operation, answer, {
        ...(signer === undefined ? {} : { [Operation.signerHeader]: signer }),
        ...(warnings.length === 0 ? {} : { "x-trigate-warning": warnings.join("; ") })
      })
    })
)

const decodeById = Operation.decodeValue(Schema.Struct({ ...ActionPath, ...ById }))
const decodeByIdentity = Operation.decodeValue(Schema.Struct(ByIdentity))

const incomplete = Operation.invalidRequest([{
  path: [],
  message: "Expected the path /actions/{id}, the query parameters signer and nonce, or the query parameter cloid"
}])

/** Returns the path without its query, and the query parameters without the caller's key. */
const urlParts = ({ url }: IncomingRequest) => {
  const end = url.indexOf("?")
  const query = [...new URLSearchParams(end < 0 ? "" : url.slice(end))].filter(([name]) => !Callers.isQueryName(name))
  return { path: end < 0 ? url : url.slice(0, end), query }
}

const parseReference = Effect.fnUntraced(function*(request: IncomingRequest) {
  const { path, query } = urlParts(request)
  const last = path.slice(path.lastIndexOf("/") + 1)
  const members = Object.fromEntries(query)
  if (last !== "actions") {
    const { id, wait = 0 } = yield* decodeById({ ...members, id: last })
    return { reference: { id }, wait }
  }
  const { cloid, nonce, signer, wait = 0 } = yield* decodeByIdentity(members)
  if (cloid !== undefined && nonce === undefined) {
    return { reference: { cloid, ...(signer === undefined ? {} : { signer }) }, wait }
  }
  return signer === undefined || nonce === undefined ? yield* incomplete : { reference: { signer, nonce }, wait }
})

/** The handler of `/actions`. */
export const relayOutcome = Effect.map(
  Exchange,
  (exchange) =>
    Effect.fnUntraced(function*(request: IncomingRequest) {
      yield* Operation.permitted({ chain: "trading", class: "read" })
      const { reference, wait } = yield* parseReference(request)
      const record = yield* exchange.outcome(reference, { wait: Duration.seconds(wait) })
      return HttpServerResponse.text(Json.stringify(record), { contentType: "application/json" })
    })
)

/** The preference (RFC 7240) for the oldest bars of a time window instead of the newest, for forward pagination. */
const oldestBars = "candles=oldest"

const prefersOldest = (request: IncomingRequest): boolean =>
  header(request, "prefer")?.split(",").some((preference) => preference.trim() === oldestBars) === true

/** Matches the body of a query without parameters. */
const bareQuery = /^\{"type":"[A-Za-z]{1,64}"\}$/u

/** Maximum number of cached queries without parameters; the venue has about forty types. */
const MAX_BARE = 64

/** The handler of `/info`; `relaysAnyType` means that undocumented query types are relayed too. */
export const relayInfo = (relaysAnyType: boolean) =>
  Effect.map(Info, ({ relay }) => {
    /**
     * The cached queries without parameters: by surface (the gateway's own routes or the node routes), then by the text
     * of the body.
     */
    const bare = { gateway: new Map<string, InfoProtocol.InfoCall>(), node: new Map<string, InfoProtocol.InfoCall>() }

    /** Decodes the query in a body, and caches a query without parameters. */
    const decodeCall = Effect.fnUntraced(function*(text: string, body: Uint8Array, surface: Operation.Surface) {
      const json = yield* Operation.parseRequest(text, body)
      const call = yield* InfoProtocol.parseCall(json, surface, relaysAnyType)
      if (bareQuery.test(text) && bare[surface].size < MAX_BARE) {
        // caches the text instead of the received bytes, which are a view of a larger socket buffer
        bare[surface].set(text, { ...call, body: Json.parsed(text, json.valueOrUndefined) })
      }
      return call
    })

    return Effect.fnUntraced(function*(request: IncomingRequest, surface: Operation.Surface) {
      const body = yield* Request.bytes(request)
      const text = yield* Request.decodeText(body)
      const call = bare[surface].get(text) ?? (yield* decodeCall(text, body, surface))
      yield* Operation.permitted(Operation.operationNeed(call.operation, InfoProtocol.queryType(call)))
      const oldest = prefersOldest(request) ? InfoProtocol.forOldest(call) : undefined
      const response = yield* relay(oldest ?? call)
      if (response.status === 429) yield* describeLimit(response)
      const relayed = Request.relayedIn(request.record, call.operation.name, response)
      return oldest === undefined
        ? relayed
        : HttpServerResponse.setHeaders(relayed, { "preference-applied": oldestBars })
    })
  })

const tokenReads: ReadonlyMap<string, TokenRpcOperation> = new Map(tokenRestReads.map((each) => [each.name, each]))
const tokenPosts: ReadonlyMap<string, TokenRpcOperation | TokenSendOperation> = new Map(
  tokenRestPosts.map((each) => [each.name, each])
)

// the last segment of the path is the name of the token chain's method; each method has its own route
const parseTokenCall = Effect.fnUntraced(function*(request: IncomingRequest, surface: Operation.Surface) {
  const { path, query: asked } = urlParts(request)
  const name = path.slice(path.lastIndexOf("/") + 1)
  if (request.method === "POST") {
    const operation = tokenPosts.get(name)
    const asked = yield* Request.json(request)
    if (operation?.class === "once") {
      const refusal = foreignRefusal(yield* CurrentRequestRecord)
      return refusal === undefined ? { operation, asked, surface } : yield* refusal
    }
    if (operation !== undefined) return { operation, asked, surface }
  } else {
    const operation = tokenReads.get(name)
    if (operation !== undefined) return { operation, asked, surface }
  }
  return yield* new UnsupportedMethod({ method: name.slice(0, 128), detail: "No such method" })
})

/** The handler of the token chain's methods over REST. */
export const relayTokenRest = Effect.map(
  TokenChain,
  ({ rest }) =>
    Effect.fnUntraced(function*(request: IncomingRequest, surface: Operation.Surface) {
      const call: RestCall = yield* parseTokenCall(request, surface)
      yield* Operation.permitted(Operation.operationNeed(call.operation))
      return yield* Request.relayed(call.operation.name, yield* rest(call))
    })
)

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
  | NameIn<typeof AdminRoutes.SandboxApi.groups>
  | NameIn<typeof HttpApiRoutes.CandlesApi.groups>
>

/**
 * Handles a request on a surface, which is either the gateway's own routes or the node routes behind an endpoint key.
 */
type Handle = (
  request: IncomingRequest,
  surface: Operation.Surface
) => Effect.Effect<HttpServerResponse.HttpServerResponse, CallError>

const endpointKey = HttpRouter.schemaPathParams(Schema.Struct(KeyedPath)).pipe(
  Effect.mapBoth({
    onFailure: (error) => Operation.invalidRequest(Operation.decodeFaults(error, ["path"])),
    onSuccess: ({ endpointKey }) => Redacted.make(endpointKey)
  })
)

type Handler = (request: IncomingRequest) => Effect.Effect<HttpServerResponse.HttpServerResponse, CallError>

/** Responds to a request that fails. */
type Refuse = (request: IncomingRequest, error: CallError) => HttpServerResponse.HttpServerResponse

interface Relayed {
  readonly handle: Handler
  /** Default: with a problem document. */
  readonly refuse?: Refuse
}

const relays = Effect.fnUntraced(function*(options: Options) {
  const { serve } = yield* Callers.serving
  const exchange = yield* relayExchange
  const info = yield* relayInfo(options.anyInfo)
  const outcome = yield* relayOutcome
  const evm = yield* RpcRoutes.evm(options)
  const layer2 = yield* RpcRoutes.layer2(options)
  const tokens = yield* RpcRoutes.tokens
  const tokenRest = yield* relayTokenRest
  const { events, rpc: rpcSocket, socket } = yield* StreamRoutes.make(options.anyInfo, { trading: evm, layer2 })
  const transactionRoutes = yield* StreamRoutes.makeTransactions
  const open = (handle: Handler): Relayed => ({ handle: (request) => serve(request, () => handle(request)) })
  const transactions = open(transactionRoutes.transactions)
  const jettonTransfers = open(transactionRoutes.jettonTransfers)
  const evmSocket = open(rpcSocket("trading"))
  const layer2Socket = open(rpcSocket("layer2"))
  const relay = (handle: Handle): Relayed =>
    open((request) => handle(request, request.keyInPath === undefined ? "gateway" : "node"))
  const rpc = ({ handle, refuse }: RpcRoutes.Route): Relayed => ({ ...relay(handle), refuse })
  return new Map<string, Relayed>(Object.entries<Relayed>(
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
      "streams.socket": open(socket),
      "node.socket": open(socket),
      "evm.socket": evmSocket,
      "layer2.socket": layer2Socket,
      "node.evmSocket": evmSocket,
      "node.layer2Socket": layer2Socket,
      "node.rootSocket": layer2Socket,
      "streams.events": open(events),
      "node.events": open(events),
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
    } satisfies { readonly [Name in RelayedName]: Relayed }
  ))
})

/**
 * Responds to a typed error. Any other cause remains a failure, as with HttpApiBuilder, and is reported unless it is an
 * interruption.
 */
const respondToError = (
  cause: Cause.Cause<CallError>,
  respond: (error: CallError) => Effect.Effect<HttpServerResponse.HttpServerResponse>
) =>
  Result.match(Cause.findError(cause), {
    onSuccess: respond,
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
        const relayed = handlers.get(name)
        if (relayed === undefined) return
        const { handle, refuse } = relayed
        const isKeyed = endpoint.path.startsWith("/:endpointKey")
        const problem = (error: CallError) => Request.answerProblem(unwrapReason(error), endpoint.path)
        const answer: FastLane.RequestHandler = (request, context) => {
          const answered = Effect.catchCause(handle(request), (cause) =>
            respondToError(
              cause,
              refuse === undefined ? problem : (error) => Exit.succeed(refuse(request, error))
            ))
          return RequestSpan.named(request.record, name, context, answered, endpoint.path)
        }
        const answerAdapted = (request: HttpServerRequest, key?: Redacted.Redacted) =>
          Effect.flatMap(fromAdapter(request, key), (incoming) =>
            Effect.contextWith((context: Context.Context<never>) => answer(incoming, context)))
        const adapted = Effect.flatMap(HttpServerRequest, (request) => {
          if (!isKeyed) {
            return answerAdapted(request)
          }
          return Effect.matchCauseEffect(endpointKey, {
            onFailure: (cause) =>
              Effect.contextWith((context: Context.Context<never>) =>
                RequestSpan.named(
                  Context.get(context, CurrentRequestRecord),
                  name,
                  context,
                  respondToError(cause, problem),
                  endpoint.path
                )
              ),
            onSuccess: (key) => {
              const sentence = otherApi(`/${Redacted.value(key)}`)
              return sentence === undefined ? answerAdapted(request, key) : Exit.succeed(notOffered(sentence))
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
