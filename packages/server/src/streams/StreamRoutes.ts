/**
 * The routes `GET /ws` and `GET /streams`. Their path can begin with an endpoint key (a caller's key). Authorizes a
 * stream before it begins.
 */
import * as Paths from "@trigate/api/Paths"
import { CallerKeys } from "@trigate/callers/CallerKeys"
import { Quotas } from "@trigate/callers/Quotas"
import { CurrentCaller } from "@trigate/domain/Caller"
import * as Json from "@trigate/domain/encoding/Json"
import { ChainNotConfigured } from "@trigate/domain/errors/RequestError"
import { invalidRequest, permitted } from "@trigate/domain/operations/Operation"
import * as ResumePosition from "@trigate/domain/streams/ResumePosition"
import * as Subscriptions from "@trigate/domain/streams/Subscriptions"
import { Layer2 } from "@trigate/layer2/Layer2"
import { Exchange } from "@trigate/trading/Exchange"
import { Info } from "@trigate/trading/Info"
import * as VenueProtocol from "@trigate/trading/streams/VenueProtocol"
import { TradingEvm } from "@trigate/trading/TradingEvm"
import type { Topic } from "@trigate/upstream/streams/Topic"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Headers from "effect/http/Headers"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Result from "effect/Result"
import type { FeedChain } from "../Chains.ts"
import { Load } from "../process/Load.ts"
import * as AccessLog from "../requests/AccessLog.ts"
import { header } from "../requests/IncomingRequest.ts"
import type { IncomingRequest } from "../requests/IncomingRequest.ts"
import * as ProblemResponse from "../requests/ProblemResponse.ts"
import * as RequestRecord from "../requests/RequestRecord.ts"
import { eventStreamHeaders } from "./EventStream.ts"
import * as Session from "./Session.ts"
import { Sessions } from "./Sessions.ts"
import type { Opener, Serving, Speech } from "./Sessions.ts"

const badHandshake = ProblemResponse.plainProblem(
  400,
  "Bad Request",
  "The handshake of a WebSocket needs Sec-WebSocket-Version: 13 and 16 bytes in base64 as Sec-WebSocket-Key (RFC 6455, section 4.1)"
)

const subprotocols = /^[!#$%&'*+.^_`|~\w-]+(?:\s*,\s*[!#$%&'*+.^_`|~\w-]+)*$/u

/**
 * Returns whether the headers of a handshake are valid. Without this check, the WebSocket library would refuse an
 * invalid handshake without notifying the gateway, and the gateway's request would never end.
 */
const isHandshake = (request: IncomingRequest): boolean => {
  const names = header(request, "sec-websocket-protocol")
  return header(request, "sec-websocket-version") === "13" &&
    /^[+/0-9A-Za-z]{22}==$/u.test(header(request, "sec-websocket-key") ?? "") &&
    (names === undefined ||
      (subprotocols.test(names) && new Set(names.split(/\s*,\s*/u)).size === names.split(",").length))
}

const noUpgrade = ProblemResponse.plainProblem(
  426,
  "Upgrade Required",
  "This route is a WebSocket: connect to it with ws:// or wss://",
  // without `close`, a client that requested an upgrade would wait for more data on the connection
  { headers: { upgrade: "websocket", connection: "Upgrade, close" } }
)

/** Maximum number of characters of a subscription that an error message quotes. */
const mostQuoted = 200

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
  /**
   * Fails if the origin of the requesting page is not allowed, or if the caller's scope does not allow reads of the
   * chain.
   */
  const admitted = (chain: FeedChain) =>
    Effect.contextWith((context: Context.Context<never>) => {
      const record = Context.get(context, RequestRecord.CurrentRequestRecord)
      const refusal = RequestRecord.foreignRefusal(record)
      return refusal === undefined
        ? Effect.map(
          permitted({ chain, class: "read" }),
          () => ({ record, caller: Context.get(context, CurrentCaller) })
        )
        : Exit.fail(refusal)
    })

  /** Fails if no official API of the trading chain is configured. */
  const sharedStreams = () => {
    const streams = sessions.streams()
    return streams === undefined
      ? Exit.fail(
        new ChainNotConfigured({
          chain: "trading",
          detail: "No official API of the trading chain is configured"
        })
      )
      : Exit.succeed(streams)
  }

  const open = (request: IncomingRequest, by: Opener, speech: Speech) => {
    const { upgrade } = request
    if (upgrade === undefined) return Exit.succeed(noUpgrade)
    if (!isHandshake(request)) return Exit.succeed(badHandshake)
    return Effect.flatMap(sessions.admit(by.caller), () => sessions.run({ ...by, request, upgrade }, speech))
  }

  const socket = (request: IncomingRequest) =>
    Effect.flatMap(
      admitted("trading"),
      (by) => Effect.flatMap(sharedStreams(), (streams) => open(request, by, { protocol: "venue", streams }))
    )

  /** Serves a chain's JSON-RPC route over a WebSocket. */
  const rpc = (chain: FeedChain) => (request: IncomingRequest) => {
    const surface = request.keyInPath === undefined ? "gateway" : "node"
    return Effect.flatMap(
      admitted(chain),
      (by) => open(request, by, { protocol: "jsonrpc", chain, surface })
    )
  }

  const events = Effect.fnUntraced(function*(request: IncomingRequest) {
    const { caller, record } = yield* admitted("trading")
    const streams = yield* sharedStreams()
    const query = new URLSearchParams(/\?(.*)$/u.exec(request.url)?.[1])
    const asked = query.getAll(Paths.subscribe)
    if (asked.length === 0 || asked.length > sessions.mostSubscriptions) {
      return yield* invalidRequest([{
        path: [Paths.subscribe],
        message:
          `Expected 1 to ${sessions.mostSubscriptions} subscriptions, such as ${Paths.subscribe}={"type":"trades","coin":"BTC"}`
      }])
    }
    const topics = new Map<string, Topic>()
    for (const [index, text] of asked.entries()) {
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
    yield* sessions.admit(caller)
    const from = ResumePosition.parse(header(request, "last-event-id") ?? query.get(Paths.resume) ?? "")
    if (from !== undefined) yield* streams.events.catchUp(from)
    const stream = yield* sessions.events(
      {
        topics: [...topics.values()],
        from,
        headers: request.adapted?.headers ?? Headers.empty
      },
      caller,
      record
    )
    return HttpServerResponse.stream(stream, {
      contentType: "text/event-stream",
      headers: eventStreamHeaders
    })
  })

  return { socket, events, rpc }
})
