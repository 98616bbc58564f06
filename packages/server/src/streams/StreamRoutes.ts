/** The routes of streams: `GET /ws`, `GET /streams`, and the streams of transactions and jetton transfers. */
import * as Paths from "@trigate/api/Paths"
import { CallerKeys } from "@trigate/callers/CallerKeys"
import { Quotas } from "@trigate/callers/Quotas"
import { type Caller, CurrentCaller } from "@trigate/domain/Caller"
import * as Json from "@trigate/domain/encoding/Encoding"
import { ChainNotConfigured, GatewayError, unwrapReason } from "@trigate/domain/errors/GatewayError"
import { invalidRequest, type Need, notPermitted, operationNeed, permitted } from "@trigate/domain/operations/Operation"
import * as TokenData from "@trigate/domain/tokens/TokenData"
import { tokenRpcOperations } from "@trigate/domain/tokens/TokenOperations"
import * as ResumePosition from "@trigate/domain/unstable/streams/Subscription"
import * as Subscriptions from "@trigate/domain/unstable/streams/Subscriptions"
import { Layer2 } from "@trigate/evm/Layer2"
import { TokenChain } from "@trigate/tokens/TokenChain"
import { Exchange } from "@trigate/trading/Exchange"
import { Info } from "@trigate/trading/Info"
import { TradingEvm } from "@trigate/trading/TradingEvm"
import * as VenueProtocol from "@trigate/trading/unstable/streams/VenueProtocol"
import type { Topic } from "@trigate/upstream/unstable/streams/Topic"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Sse from "effect/encoding/Sse"
import * as Exit from "effect/Exit"
import * as Headers from "effect/http/Headers"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { FeedChain } from "../Chains.ts"
import { Load } from "../process/Load.ts"
import * as AccessLog from "../requests/Observe.ts"
import * as Request from "../requests/Request.ts"
import * as Session from "./Session.ts"
import { eventStreamHeaders, keepalive, quietFor } from "./Session.ts"
import type { ServedEvents } from "./Session.ts"
import { type Serving, Sessions, type StreamRequest } from "./Sessions.ts"
import type { Closing } from "./SocketSession.ts"

const badHandshake = Request.plainProblem(
  400,
  "Bad Request",
  "The handshake of a WebSocket needs Sec-WebSocket-Version: 13 and 16 bytes in base64 as Sec-WebSocket-Key (RFC 6455, section 4.1)"
)

const subprotocols = /^[!#$%&'*+.^_`|~\w-]+(?:\s*,\s*[!#$%&'*+.^_`|~\w-]+)*$/u

/**
 * Returns whether the headers of a handshake are valid. Without this check, the WebSocket library would refuse an
 * invalid handshake without notifying the gateway, and the gateway's request would never end.
 */
const isHandshake = (request: Request.IncomingRequest): boolean => {
  const names = Request.header(request, "sec-websocket-protocol")
  return Request.header(request, "sec-websocket-version") === "13" &&
    /^[+/0-9A-Za-z]{22}==$/u.test(Request.header(request, "sec-websocket-key") ?? "") &&
    (names === undefined ||
      (subprotocols.test(names) && new Set(names.split(/\s*,\s*/u)).size === names.split(",").length))
}

const noUpgrade = Request.plainProblem(
  426,
  "Upgrade Required",
  "This route is a WebSocket: connect to it with ws:// or wss://",
  // without `close`, a client that requested an upgrade would wait for more data on the connection
  { headers: { upgrade: "websocket", connection: "Upgrade, close" } }
)

/** Maximum number of characters of a subscription that an error message quotes. */
const mostQuoted = 200

const queryIn = ({ url }: Request.IncomingRequest): URLSearchParams => new URLSearchParams(/\?(.*)$/u.exec(url)?.[1])

/** Responds with an event stream. */
const eventResponse = (stream: Stream.Stream<Uint8Array>) =>
  HttpServerResponse.stream(stream, { contentType: "text/event-stream", headers: eventStreamHeaders })

/** Fails if the origin of the requesting page is not allowed, or if the caller's scope does not permit the operation. */
const admitted = Effect.fnUntraced(function*(need: Need) {
  const record = yield* Request.CurrentRequestRecord
  const refusal = Request.foreignRefusal(record)
  if (refusal !== undefined) return yield* refusal
  yield* permitted(need)
  return { record, caller: yield* CurrentCaller }
})

/** Makes the handlers of the routes from the services of the context, and the JSON-RPC routes of the chains. */
export const make = Effect.fnUntraced(function*(anyInfo: boolean, rpcRoutes: Serving["rpc"]) {
  const sessions = yield* Sessions
  sessions.use({
    exchange: yield* Exchange,
    info: yield* Info,
    evm: yield* TradingEvm,
    layer2: yield* Layer2,
    anyInfo,
    rpc: rpcRoutes,
    load: yield* Load,
    quotas: yield* Quotas,
    keys: yield* CallerKeys,
    log: yield* AccessLog.AccessLog
  })
  /** Fails if no address of the venue's API is configured. */
  const sharedStreams = () => {
    const streams = sessions.streams()
    return streams === undefined
      ? Exit.fail(
        new ChainNotConfigured({ chain: "trading", detail: "No address of the venue's API is configured" })
      )
      : Exit.succeed(streams)
  }

  const open = (given: Omit<StreamRequest, "upgrade">) => {
    const { caller, request } = given
    const { upgrade } = request
    if (upgrade === undefined) return Exit.succeed(noUpgrade)
    if (!isHandshake(request)) return Exit.succeed(badHandshake)
    return sessions.admit(caller, sessions.run({ ...given, upgrade }))
  }

  const socket = (request: Request.IncomingRequest) =>
    Effect.flatMap(
      admitted({ chain: "trading", class: "read" }),
      (by) =>
        Effect.flatMap(sharedStreams(), (streams) => open({ ...by, request, serves: { protocol: "venue", streams } }))
    )

  /** Serves a chain's JSON-RPC route over a WebSocket. */
  const rpc = (chain: FeedChain) => (request: Request.IncomingRequest) => {
    const surface = request.keyInPath === undefined ? "gateway" : "node"
    return Effect.flatMap(
      admitted({ chain, class: "read" }),
      (by) => open({ ...by, request, serves: { protocol: "jsonrpc", chain, surface } })
    )
  }

  const events = Effect.fnUntraced(function*(request: Request.IncomingRequest) {
    const { caller, record } = yield* admitted({ chain: "trading", class: "read" })
    const streams = yield* sharedStreams()
    const query = queryIn(request)
    const parameters = query.getAll(Paths.subscribe)
    if (parameters.length === 0 || parameters.length > sessions.mostSubscriptions) {
      return yield* invalidRequest([{
        path: [Paths.subscribe],
        message:
          `Expected 1 to ${sessions.mostSubscriptions} subscriptions, such as ${Paths.subscribe}={"type":"trades","coin":"BTC"}`
      }])
    }
    const topics = new Map<string, Topic>()
    for (const [index, text] of parameters.entries()) {
      const parsed = Json.parseStrict(text, Session.frameLimits)
      const read = Subscriptions.read(Result.getOrUndefined(parsed))
      const subscription = Result.getOrUndefined(read)
      const refusal = Result.isFailure(read)
        ? VenueProtocol.unreadableSubscription(read.failure, text.slice(0, mostQuoted))
        : yield* streams.check(read.success)
      if (subscription === undefined || refusal !== undefined) {
        return yield* invalidRequest([{ path: [Paths.subscribe, index], message: refusal ?? "" }])
      }
      yield* permitted({ chain: "trading", class: "read", name: subscription.declaration.name })
      topics.set(subscription.key, streams.topicOf(subscription))
    }
    const from = ResumePosition.parse(Request.header(request, "last-event-id") ?? query.get(Paths.resume) ?? "")
    const options = { ...sessions.eventOptions, streams, topics: [...topics.values()], from }
    const headers = request.adapted?.headers ?? Headers.empty
    return yield* sessions.admit(
      caller,
      Effect.map(
        from === undefined ? Effect.void : streams.events.catchUp(from),
        () => eventResponse(sessions.serve(new Session.EventStream(caller, options), headers, record))
      )
    )
  })

  return { socket, events, rpc }
})

const encodeTransaction = Schema.encodeSync(Schema.fromJsonString(TokenData.AccountTransaction))
const encodeTransfer = Schema.encodeSync(Schema.fromJsonString(TokenData.JettonTransfer))
const encodeProblem = Schema.encodeSync(Schema.fromJsonString(GatewayError))

const need = operationNeed(tokenRpcOperations.getTransactions)

const eventText = (event: string, data: string, position?: TokenData.Position): string =>
  Sse.encoder.write({
    _tag: "Event",
    event,
    id: position === undefined ? undefined : TokenData.formatPosition(position),
    data
  })

/** An event stream of items, such as transactions. Writes a comment every {@link quietFor} milliseconds. */
class ItemEvents implements ServedEvents {
  readonly conflated = 0
  /** Items are read only when the client reads. */
  readonly pending = 0
  caller: Caller
  page: HttpServerRequest["headers"] | undefined
  closing: Closing | undefined
  isThrottled = false
  readonly texts: Stream.Stream<Uint8Array>
  readonly #over = Deferred.makeUnsafe<void>()

  constructor(caller: Caller, texts: Stream.Stream<string>) {
    this.caller = caller
    this.texts = texts.pipe(
      Stream.merge(Stream.as(Stream.drop(Stream.tick(quietFor), 1), keepalive), { haltStrategy: "left" }),
      Stream.interruptWhen(Deferred.await(this.#over)),
      Stream.map(Json.encode)
    )
  }

  isCoveredBy({ scope }: Caller): boolean {
    return notPermitted(scope, need) === undefined
  }

  close(closing: Closing): void {
    this.closing ??= closing
    this.end()
  }

  end(): void {
    Deferred.doneUnsafe(this.#over, Effect.void)
  }

  /** Does nothing: the stream's own timer writes comments. */
  keepAlive(): void {}
}

/**
 * Returns the position after which a stream begins: the position in `Last-Event-ID`, otherwise the position in the
 * query.
 */
const startIn = (request: Request.IncomingRequest, query: URLSearchParams) => {
  const last = Request.header(request, "last-event-id")
  const text = last ?? query.get("after") ?? undefined
  if (text === undefined) return Effect.undefined
  if (text === "genesis") return Effect.succeed(TokenData.genesis)
  return Effect.mapError(Effect.fromOption(TokenData.parsePosition(text)), () =>
    invalidRequest([{
      path: [last === undefined ? "after" : "last-event-id"],
      message: "Expected genesis, or a position: a logical time, a colon and 64 hex digits"
    }]))
}

const parameter = (query: URLSearchParams, name: string) => {
  const value = query.get(name)
  return value === null
    ? Effect.fail(invalidRequest([{ path: [name], message: "Expected an address of the token chain" }]))
    : Effect.succeed(value)
}

/** The stream that a route serves: how to open it, and how to encode its items. */
interface Served<Item> {
  /** The address of the account or jetton wallet. An event has the position of a transaction of this address. */
  readonly account: string
  readonly event: string
  readonly encode: (item: Item) => string
  readonly open: (after: TokenData.Position) => Stream.Stream<Item, ChainFailure>
}

type ChainFailure = Stream.Error<ReturnType<TokenChain["Service"]["jettonTransfers"]>>

/** The handlers of the routes. */
export const makeTransactions = Effect.gen(function*() {
  const sessions = yield* Sessions
  const { jettonTransfers, jettonWallet, latestPosition, transactions } = yield* TokenChain

  const serve = Effect.fnUntraced(function*<Item extends TokenData.Position>(
    request: Request.IncomingRequest,
    query: URLSearchParams,
    { account, encode, event, open }: Served<Item>
  ) {
    const start = yield* startIn(request, query)
    const record = yield* Request.CurrentRequestRecord
    const caller = yield* CurrentCaller
    const headers = request.adapted?.headers ?? Headers.empty
    // read before the response begins, so that a failure is still sent with an HTTP status
    const newest = Effect.mapError(latestPosition({ address: account }), unwrapReason)
    return yield* sessions.admit(
      caller,
      Effect.map(newest, (position) => {
        const after = start ?? position
        const texts = open(after).pipe(
          Stream.map((item) => eventText(event, encode(item), item)),
          Stream.catch((error) => Stream.succeed(eventText("problem", encodeProblem(unwrapReason(error))))),
          (items) => Stream.concat(Stream.succeed(eventText("start", JSON.stringify(after), after)), items),
          Stream.provideService(CurrentCaller, caller)
        )
        return eventResponse(sessions.serve(new ItemEvents(caller, texts), headers, record))
      })
    )
  })

  return {
    transactions: Effect.fnUntraced(function*(request: Request.IncomingRequest) {
      yield* admitted(need)
      const query = queryIn(request)
      const address = yield* parameter(query, "address")
      return yield* serve(request, query, {
        account: address,
        event: "transaction",
        encode: encodeTransaction,
        open: (after) => transactions({ address, after })
      })
    }),
    jettonTransfers: Effect.fnUntraced(function*(request: Request.IncomingRequest) {
      yield* admitted(need)
      const query = queryIn(request)
      const owner = yield* parameter(query, "owner")
      const master = yield* parameter(query, "master")
      const wallet = yield* Effect.mapError(jettonWallet({ owner, master }), unwrapReason)
      return yield* serve(request, query, {
        account: wallet,
        event: "transfer",
        encode: encodeTransfer,
        open: (after) => jettonTransfers({ owner, master, after })
      })
    })
  }
})
