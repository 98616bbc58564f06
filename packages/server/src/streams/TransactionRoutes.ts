/**
 * The routes that stream transactions and jetton transfers as Server-Sent Events. Their path can begin with an endpoint
 * key (a caller's key).
 */
import type { Caller } from "@trigate/domain/Caller"
import { CurrentCaller } from "@trigate/domain/Caller"
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import { GatewayError, unwrapReason } from "@trigate/domain/errors/GatewayError"
import { invalidRequest, notPermitted, operationNeed, permitted } from "@trigate/domain/operations/Operation"
import type { Position } from "@trigate/domain/tokens/AccountTransaction"
import {
  AccountTransaction,
  formatPosition,
  genesis,
  JettonTransfer,
  parsePosition
} from "@trigate/domain/tokens/AccountTransaction"
import { tokenRpcOperations } from "@trigate/domain/tokens/TokenOperations"
import { TokenChain } from "@trigate/tokens/TokenChain"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Sse from "effect/encoding/Sse"
import * as Headers from "effect/http/Headers"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { header } from "../requests/IncomingRequest.ts"
import type { IncomingRequest } from "../requests/IncomingRequest.ts"
import * as RequestRecord from "../requests/RequestRecord.ts"
import { eventStreamHeaders, keepalive, quietFor } from "./EventStream.ts"
import type { ServedEvents } from "./EventStream.ts"
import { Sessions } from "./Sessions.ts"
import type { Closing } from "./SocketSession.ts"

const encodeTransaction = Schema.encodeSync(Schema.fromJsonString(AccountTransaction))
const encodeTransfer = Schema.encodeSync(Schema.fromJsonString(JettonTransfer))
const encodeProblem = Schema.encodeSync(Schema.fromJsonString(GatewayError))

const need = operationNeed(tokenRpcOperations.getTransactions)

const eventText = (event: string, data: string, position?: Position): string =>
  Sse.encoder.write({
    _tag: "Event",
    event,
    id: position === undefined ? undefined : formatPosition(position),
    data
  })

/** An event stream of items, such as transactions. Writes a comment every {@link quietFor} milliseconds. */
class ItemEvents implements ServedEvents {
  readonly conflated = 0
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
      Stream.map(Utf8.encode)
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
const startIn = (request: IncomingRequest, query: URLSearchParams) => {
  const last = header(request, "last-event-id")
  const text = last ?? query.get("after") ?? undefined
  if (text === undefined) return Effect.undefined
  if (text === "genesis") return Effect.succeed(genesis)
  return Effect.mapError(Effect.fromOption(parsePosition(text)), () =>
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

const queryIn = ({ url }: IncomingRequest): URLSearchParams => new URLSearchParams(/\?(.*)$/u.exec(url)?.[1])

/** The stream that a route serves: how to open it, and how to encode its items. */
interface Served<Item> {
  /** The address of the account or jetton wallet. An event has the position of a transaction of this address. */
  readonly account: string
  readonly event: string
  readonly encode: (item: Item) => string
  readonly open: (after: Position) => Stream.Stream<Item, ChainFailure>
}

type ChainFailure = Stream.Error<ReturnType<TokenChain["Service"]["jettonTransfers"]>>

/** The handlers of the routes. */
export const make = Effect.gen(function*() {
  const sessions = yield* Sessions
  const { jettonTransfers, jettonWallet, latestPosition, transactions } = yield* TokenChain

  const serve = Effect.fnUntraced(function*<Item extends Position>(
    request: IncomingRequest,
    query: URLSearchParams,
    { account, encode, event, open }: Served<Item>
  ) {
    const start = yield* startIn(request, query)
    const record = yield* RequestRecord.CurrentRequestRecord
    const caller = yield* CurrentCaller
    yield* sessions.admit(caller)
    // read before the response begins, so that a failure is still sent with an HTTP status
    const newest = yield* Effect.mapError(latestPosition({ address: account }), unwrapReason)
    const after = start ?? newest
    const texts = open(after).pipe(
      Stream.map((item) => eventText(event, encode(item), item)),
      Stream.catch((error) => Stream.succeed(eventText("problem", encodeProblem(unwrapReason(error))))),
      (items) => Stream.concat(Stream.succeed(eventText("start", JSON.stringify(after), after)), items)
    )
    const stream = sessions.serve(new ItemEvents(caller, texts), request.adapted?.headers ?? Headers.empty, record)
    return HttpServerResponse.stream(stream, { contentType: "text/event-stream", headers: eventStreamHeaders })
  })

  /**
   * Fails if the origin of the requesting page is not allowed, or if the caller's scope does not allow reads of the
   * chain.
   */
  const admitted = Effect.gen(function*() {
    const refusal = RequestRecord.foreignRefusal(yield* RequestRecord.CurrentRequestRecord)
    if (refusal !== undefined) return yield* refusal
    yield* permitted(need)
  })

  return {
    transactions: Effect.fnUntraced(function*(request: IncomingRequest) {
      yield* admitted
      const query = queryIn(request)
      const address = yield* parameter(query, "address")
      return yield* serve(request, query, {
        account: address,
        event: "transaction",
        encode: encodeTransaction,
        open: (after) => transactions({ address, after })
      })
    }),
    jettonTransfers: Effect.fnUntraced(function*(request: IncomingRequest) {
      yield* admitted
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
