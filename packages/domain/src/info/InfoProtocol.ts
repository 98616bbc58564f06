/** The protocol of `POST /info`: validates and encodes queries, and classifies and decodes responses. */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { memoize } from "effect/Function"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import type { CandleWindowRequest } from "../candles/Candle.ts"
import { fromSnapshot, oldestPart, readSources } from "../candles/Candle.ts"
import { isInWindow } from "../candles/CandleText.ts"
import * as Json from "../encoding/Json.ts"
import * as Utf8 from "../encoding/Utf8.ts"
import { type CommonFailure, wrapReason } from "../errors/GatewayError.ts"
import type { InvalidRequest } from "../errors/RequestError.ts"
import type { ReadFailure } from "../errors/TransportFailure.ts"
import {
  cachedForGood,
  decodeValue,
  encodeRequest,
  invalidRequest,
  requestCost as operationCost,
  typedMethodMapper as typedMethod
} from "../operations/Operation.ts"
import type { AnyCodec, CachePolicy, Cost, Methods as Table, Operation, Surface } from "../operations/Operation.ts"
import { answered, makeReader, ofForeign, retryable, unavailable, unreadable } from "../operations/Protocol.ts"
import type { AttemptResult, CacheCodec, ReadOperation, ReadProtocol } from "../operations/Protocol.ts"
import * as UpstreamResponse from "../operations/UpstreamResponse.ts"
import { queryTopic, relayedQueries } from "./InfoFreshness.ts"
import { candleSnapshot, infoOperations, passthroughQueries, passthroughQuery } from "./InfoOperations.ts"
import { accountMembers, finalOrderStates, staleWhenLimitedDefault } from "./InfoQueryTable.ts"
import type { Freshness } from "./InfoQueryTable.ts"

/** A query to relay: operation, decoded request, body, and the `Surface` (group of routes) that received it. */
export interface InfoCall {
  readonly operation: ReadOperation
  readonly request: unknown
  readonly body: Json.Json
  readonly surface: Surface
}

/** A query for bars. */
export interface CandleCall extends InfoCall {
  readonly request: CandleWindowRequest
}

/** Returns whether a query is for bars. The request of such a query is the window of the bars. */
export const isCandleCall = (call: InfoCall): call is CandleCall => call.operation.name === candleSnapshot.name

/**
 * Returns the type of a query. For an unknown type, it differs from the operation's name, because all unknown types
 * share one operation.
 */
export const queryType = ({ operation, request }: InfoCall): string =>
  operation === passthroughQuery && isTyped(request) ? request.type : operation.name

const isTyped = Schema.is(passthroughQuery.request)

const operations: ReadonlyMap<unknown, ReadOperation> = new Map<string, ReadOperation>(
  Object.values(infoOperations).map((operation) => [operation.name, operation])
)
const passthroughs: ReadonlyMap<unknown, ReadOperation> = new Map(
  passthroughQueries.map((operation) => [operation.name, operation])
)

const requestDecoder = memoize((operation: ReadOperation) => decodeValue(operation.request))

/**
 * Decodes a query from a body. Refuses a query without a typed declaration if the gateway does not relay such queries.
 */
export const parseCall = (
  body: Json.Json,
  surface: Surface,
  passesThrough: boolean
): Effect.Effect<InfoCall, InvalidRequest> => {
  const value = body.valueOrUndefined
  const type = Predicate.hasProperty(value, "type") ? value.type : undefined
  const operation = operations.get(type) ?? (passesThrough ? passthroughs.get(type) ?? passthroughQuery : undefined)
  return operation === undefined
    ? Effect.fail(invalidRequest([{ path: ["type"], message: `Expected one of ${[...operations.keys()].join(", ")}` }]))
    : Effect.mapEager(requestDecoder(operation)(value), (request) => ({ operation, request, body, surface }))
}

/** Encodes a query as JSON: its type, then its other members. */
const writeAs = (type: string) => (members: unknown): Json.Json =>
  Json.write(Predicate.isObject(members) ? { type, ...members } : { type })

/** Narrows a candle query to the oldest bars of its window that fit into one response. Returns `undefined` for other queries. */
export const forOldest = (call: InfoCall): CandleCall | undefined => {
  if (!isCandleCall(call)) return undefined
  const req = oldestPart(call.request)
  return { ...call, request: req, body: writeAs(candleSnapshot.name)({ req }) }
}

/** Sends a query on behalf of a service. */
export type Send<E, R = never> = (
  call: Omit<InfoCall, "surface">
) => Effect.Effect<UpstreamResponse.UpstreamResponse, E, R>

const sending = <Request extends AnyCodec>(operation: Operation<string, "read", Request>) => {
  const write = encodeRequest(operation.request, [], writeAs(operation.name))
  return <E, R>(send: Send<E, R>, request: Request["Type"] | undefined) =>
    Effect.flatMap(write(request), (body) => send({ operation, request, body }))
}

/** Makes a service's typed method for one query. */
export const makeMethod = <
  Request extends AnyCodec,
  Response extends AnyCodec,
  const Failures extends ReadonlyArray<AnyCodec>
>(operation: Operation<string, "read", Request, Response, Failures>) => {
  const ask = sending(operation)
  const read = makeReader<Request, Response, Failures>(operation)
  return <E, R>(service: string, send: Send<E, R>) =>
    Effect.fn(`${service}.${operation.name}`)((request?: Request["Type"]) =>
      Effect.mapError(Effect.flatMap(ask(send, request), (response) => read(request, response)), wrapReason)
    )
}

const plain = Struct.omit(infoOperations, ["candleSnapshot"])

/** The typed methods of all queries except `candleSnapshot`, whose method also reports missing bars. */
export type Methods<E, R = never> = Table<typeof plain, CommonFailure | E, R>

/** Makes a service's typed methods for its queries. */
export const makeMethods = <E, R>(service: string, send: Send<E, R>): Methods<E, R> =>
  Struct.map(plain, typedMethod<CommonFailure | E, R>((operation) => makeMethod(operation)(service, send)))

/** Makes the typed method of a candle query: returns the bars, and whether the window is complete. */
export const makeCandlesMethod = <const Failures extends ReadonlyArray<AnyCodec>>(
  operation: Operation<string, "read", typeof candleSnapshot.request, typeof candleSnapshot.response, Failures>
) => {
  const ask = sending(operation)
  const read = makeReader(operation)
  return <E, R>(service: string, send: Send<E, R>) =>
    Effect.fn(`${service}.${operation.name}`)(function*(request: CandleWindowRequest) {
      const response = yield* ask(send, request)
      const bars = yield* read(request, response)
      // uses the time after the response, so that bars that expired during the request count as missing
      return fromSnapshot(request, bars, yield* Clock.currentTimeMillis, readSources(response.candles))
    }, Effect.mapError(wrapReason))
}

/** Classifies a response that is relayed unchanged. */
export const judge = (operation: Pick<ReadOperation, "isFinal" | "recognized" | "refusal">) =>
(
  response: UpstreamResponse.UpstreamResponse
): AttemptResult<UpstreamResponse.UpstreamResponse, ReadFailure> => {
  if (operation.refusal?.matches(response) === true || operation.isFinal?.(response) === true) {
    return answered(response)
  }
  const foreign = ofForeign(response)
  if (foreign !== undefined) return foreign
  const { retryAfter, status, upstream } = response
  if (status === 429 || status >= 500) {
    return retryable(
      status === 429 ? "rate_limited" : "server_fault",
      unavailable(upstream, `${upstream} responded with HTTP ${status}`),
      { answer: response, retryAfter }
    )
  }
  if (status !== 200) return answered(response)
  const rows = operation.recognized?.(response.pieces)
  if (rows !== undefined) return answered(response, rows)
  if (Option.isNone(response.utf8)) return unreadable(upstream, "a body that is not UTF-8 (HTTP 200)")
  const { value } = response.json
  if (Result.isFailure(value)) return unreadable(upstream, "a body that is not JSON (HTTP 200)")
  return answered(response, Array.isArray(value.success) ? value.success.length : 0)
}

/**
 * The cache encoding of responses with status 200: the upstream's label, the content type, the source of the candles,
 * and the bytes as received.
 */
export const codec: CacheCodec<UpstreamResponse.UpstreamResponse> = {
  store: ({ body, candles, contentType, status, upstream }) =>
    status === 200
      ? {
        head: candles === undefined ? `${upstream} ${contentType}` : `${upstream} ${contentType}\n${candles}`,
        body: Utf8.owned(body)
      }
      : undefined,
  restore: ({ body, head }, age) => {
    const end = head.indexOf(" ")
    const [contentType = "", candles] = head.slice(end + 1).split("\n")
    return UpstreamResponse.make({
      upstream: head.slice(0, end),
      status: 200,
      contentType,
      body: typeof body === "string" ? Utf8.encode(body) : body,
      age,
      ...(candles === undefined ? {} : { candles })
    })
  },
  faultOf: ({ status }) => status >= 500 || status === 429 ? "upstream" : status >= 400 ? "caller" : undefined,
  isRateLimited: ({ status }) => status === 429
}

/** Returns the maximum cost of a query that is sent at `now`. */
export const callCost = ({ operation, request }: Pick<InfoCall, "operation" | "request">, now: number): Cost =>
  operationCost(operation, request, now)

const accountPattern = /^0x[0-9a-f]{40}$/u

/**
 * Returns the accounts that a query names and whose state it reads; empty if a query about a user's state names none.
 * Returns `undefined` for market data, and for an unknown query type that names no account.
 */
const accountsIn = (call: InfoCall): ReadonlyArray<string> | undefined => {
  const about = queryTopic(queryType(call))
  if (about === "market") return undefined
  const query = call.body.valueOrUndefined
  const accounts = accountMembers.flatMap((member) => {
    const named = Predicate.hasProperty(query, member) ? query[member] : undefined
    return (Array.isArray(named) ? named : [named]).flatMap((each) => {
      const account = Predicate.isString(each) ? each.toLowerCase() : ""
      return accountPattern.test(account) ? [account] : []
    })
  })
  return about === undefined && accounts.length === 0 ? undefined : accounts
}

/** The read protocol of `POST /info`, for the official API and for nodes. */
export const reads: ReadProtocol<InfoCall, UpstreamResponse.UpstreamResponse, ReadFailure> = {
  // the whole body is the cache key, because it may have members that the operation does not declare
  key: ({ body, surface }) => `${surface} ${body.canonical}`,
  cachePolicy: ({ operation, request }: InfoCall, now) => operation.cachePolicy?.(request, now),
  isCacheable: (call: InfoCall, response) =>
    (isCandleCall(call) ? isInWindow(call.request, response.pieces) : undefined) ??
      call.operation.isCacheable?.(call.request, response.json) ?? true,
  costOf: callCost,
  accountsIn,
  codec,
  write: ({ body, operation }) => ({ body: body.bytes, judge: judge(operation) })
}

/** The maximum ages of cached responses. */
export interface CacheOptions {
  /** Maximum ages by query type. Default: the ages in the table of queries. */
  readonly freshness?: ReadonlyArray<Freshness> | undefined
  /** The maximum age of a response while the rate limit is exhausted. Default: 5 seconds. */
  readonly staleWhenLimited?: Duration.Input | undefined
}

/**
 * Returns the cache policy for a maximum age in milliseconds. The maximum age is longer while the rate limit is
 * exhausted.
 */
export const cachePolicyWith = ({ staleWhenLimited = staleWhenLimitedDefault }: CacheOptions) => {
  const oldest = Duration.toMillis(staleWhenLimited)
  return (fresh: number): CachePolicy | undefined =>
    Math.max(fresh, oldest) > 0
      ? { fresh, staleIfError: 0, staleIfLimited: Math.max(0, oldest - fresh) }
      : undefined
}

/**
 * Returns whether a query identifies an order by the venue's order ID. Returns `false` for a client order ID, because a
 * client can reuse that ID for a second order.
 */
const namesOrder = ({ body: { valueOrUndefined: query } }: InfoCall): boolean =>
  Predicate.hasProperty(query, "oid") && Predicate.isNumber(query.oid)

const isFinalOrder = ({ json: { valueOrUndefined: answer } }: UpstreamResponse.UpstreamResponse): boolean =>
  Predicate.hasProperty(answer, "order") && Predicate.hasProperty(answer.order, "status") &&
  finalOrderStates.has(answer.order.status)

/**
 * Returns the read protocol with the cache policies of `options`. A window of bars is cached only after all of its bars
 * have closed, and only while the venue still retains them.
 */
export const readsWith = (options: CacheOptions = {}): typeof reads => {
  const resolvePolicy = cachePolicyWith(options)
  const chosen = (options.freshness ?? []).filter(({ type }) => type !== candleSnapshot.name)
  const policies = new Map<string, CachePolicy | undefined>([
    ...[...relayedQueries].flatMap(([type, { about, fresh = 0 }]) =>
      about === "action" ? [] : [[type, resolvePolicy(fresh)] as const]
    ),
    ...chosen.map(({ fresh, type }) => [type, resolvePolicy(Duration.toMillis(fresh))] as const)
  ])
  return {
    ...reads,
    cachePolicy: (call, now, onRequest) => {
      const type = queryType(call)
      if (type === "orderStatus") return namesOrder(call) ? cachedForGood : undefined
      return policies.has(type) ? policies.get(type) : reads.cachePolicy(call, now, onRequest)
    },
    isCacheable: (call, response) =>
      queryType(call) === "orderStatus" ? isFinalOrder(response) : reads.isCacheable(call, response)
  }
}
