/** The queries of `POST /info`: how they are checked and written, and how their answers are judged and read. */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { CandleWindowRequest } from "../Candle.ts"
import { readSources } from "../CandleAnswer.ts"
import { fromSnapshot, oldestPart } from "../CandleWindow.ts"
import {
  candleSnapshot,
  type infoOperations,
  passthroughQuery,
  passthroughQueryOf,
  spotMeta
} from "../InfoOperations.ts"
import {
  aboutOf,
  accountMembers,
  finalOrderStates,
  passthroughQueries as table,
  staleWhenLimitedDefault
} from "../InfoQueryTable.ts"
import type { Freshness } from "../InfoQueryTable.ts"
import * as Json from "../Json.ts"
import { costOf as operationCost, decodeValue, encodeRequest, invalidRequest } from "../Operation.ts"
import type { AnyCodec, CachePolicy, Cost, Operation, Request, Surface } from "../Operation.ts"
import type { InvalidRequest } from "../RequestError.ts"
import type { ReadFailure } from "../TransportFailure.ts"
import * as UpstreamResponse from "../UpstreamResponse.ts"
import * as Utf8 from "../Utf8.ts"
import { answered, ofForeign, readerOf, retryable, unavailable, unreadable } from "./Protocol.ts"
import type { AttemptResult, CacheCodec, ReadOperation, ReadProtocol } from "./Protocol.ts"

type Operations = typeof infoOperations & { readonly passthrough: typeof passthroughQuery }

/** A query to relay: its operation, the request that its body means, the body, and the surface that was asked. */
export type InfoCall = {
  readonly [Type in keyof Operations]: {
    readonly operation: Operations[Type]
    readonly request: Request<Operations[Type]>
    readonly body: Json.Json
    readonly surface: Surface
  }
}[keyof Operations]

/** The type of a call's query, which is not the operation's name where it passes through. */
export const typeOf = ({ operation, request }: InfoCall): string =>
  request !== undefined && "type" in request ? request.type : operation.name

const decodeSpotMeta = decodeValue(spotMeta.request)
const decodeCandleSnapshot = decodeValue(candleSnapshot.request)
const decodePassthrough = decodeValue(passthroughQuery.request)

const types = [spotMeta.name, candleSnapshot.name].join(", ")

/** The query that a body asks for; one of another type is refused unless the gateway passes such queries through. */
export const callOf = (
  body: Json.Json,
  surface: Surface,
  passesThrough: boolean
): Effect.Effect<InfoCall, InvalidRequest> => {
  const value = body.valueOrUndefined
  const type = Predicate.hasProperty(value, "type") ? value.type : undefined
  if (type === spotMeta.name) {
    return Effect.mapEager(decodeSpotMeta(value), (request) => ({ operation: spotMeta, request, body, surface }))
  }
  if (type === candleSnapshot.name) {
    return Effect.mapEager(
      decodeCandleSnapshot(value),
      (request) => ({ operation: candleSnapshot, request, body, surface })
    )
  }
  return passesThrough
    ? Effect.mapEager(decodePassthrough(value), (request) => ({
      operation: passthroughQueryOf(request.type, surface),
      request,
      body,
      surface
    }))
    : Effect.fail(invalidRequest([{ path: ["type"], message: `Expected one of ${types}` }]))
}

/** The same query for the oldest bars of its window that fit into an answer; undefined for what is no candle query. */
export const forOldest = ({ request, surface }: InfoCall): InfoCall | undefined => {
  if (request === undefined || !("coin" in request)) return undefined
  const req = oldestPart(request)
  return { operation: candleSnapshot, request: req, body: Json.write({ type: candleSnapshot.name, req }), surface }
}

/** The typed method of a query of a service, over some way to send its body. */
export const methodOf = <
  Request extends AnyCodec,
  Response extends AnyCodec,
  const Failures extends ReadonlyArray<AnyCodec>
>(operation: Operation<string, "read", Request, Response, Failures>) => {
  const write = encodeRequest(operation.request)
  const read = readerOf<Request, Response, Failures>(operation)
  return <E, R>(
    service: string,
    send: (body: Json.Json, request: Request["Type"]) => Effect.Effect<UpstreamResponse.UpstreamResponse, E, R>
  ) =>
    Effect.fn(`${service}.${operation.name}`)(function*(request: Request["Type"]) {
      return yield* read(request, yield* send(yield* write(request), request))
    })
}

/** The typed method of a candle query, over some way to send its body: the bars, and which of the window are missing. */
export const candlesOf = <const Failures extends ReadonlyArray<AnyCodec>>(
  operation: Operation<string, "read", typeof candleSnapshot.request, typeof candleSnapshot.response, Failures>
) => {
  const write = encodeRequest(operation.request)
  const read = readerOf(operation)
  return <E, R>(
    service: string,
    send: (body: Json.Json, request: CandleWindowRequest) => Effect.Effect<UpstreamResponse.UpstreamResponse, E, R>
  ) =>
    Effect.fn(`${service}.${operation.name}`)(function*(request: CandleWindowRequest) {
      const response = yield* send(yield* write(request), request)
      const bars = yield* read(request, response)
      // the clock after the response: what aged out on the way is told as missing
      return fromSnapshot(request, bars, yield* Clock.currentTimeMillis, readSources(response.candles))
    })
}

/** Judges a response that is relayed as it came. */
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
      unavailable(upstream, `${upstream} answered HTTP ${status}`),
      { answer: response, retryAfter }
    )
  }
  if (status !== 200) return answered(response)
  const rows = operation.recognized?.(response.pieces)
  if (rows !== undefined) return answered(response, rows)
  if (Option.isNone(response.utf8)) return unreadable(upstream, "what is not UTF-8 (HTTP 200)")
  const { value } = response.json
  if (Result.isFailure(value)) return unreadable(upstream, "what is not JSON (HTTP 200)")
  return answered(response, Array.isArray(value.success) ? value.success.length : 0)
}

/**
 * Responses of status 200 are cached: the label of the upstream, the content type, what a candle answer was made of, and the
 * bytes as they came.
 */
export const codec: CacheCodec<UpstreamResponse.UpstreamResponse> = {
  store: ({ body, candles, contentType, status, upstream }) =>
    status === 200
      // a small body may be a view of a large receive buffer, which would be stored with it
      ? {
        head: candles === undefined ? `${upstream} ${contentType}` : `${upstream} ${contentType}\n${candles}`,
        body: body.byteLength === body.buffer.byteLength ? body : new Uint8Array(body)
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

interface AnyCall {
  readonly operation: ReadOperation
  readonly request: unknown
}

/** What the answer to a query can cost that is sent at `now`. */
export const costOf = ({ operation, request }: AnyCall, now: number): Cost => operationCost(operation, request, now)

const accountPattern = /^0x[0-9a-f]{40}$/u

/** The accounts whose state a query reads; undefined for one that is about no user. */
const accountsIn = (call: InfoCall): ReadonlyArray<string> | undefined => {
  const about = aboutOf(typeOf(call))
  if (about === "market") return undefined
  const query = call.body.valueOrUndefined
  const accounts = accountMembers.flatMap((member) => {
    const account = Predicate.hasProperty(query, member) && Predicate.isString(query[member])
      ? query[member].toLowerCase()
      : ""
    return accountPattern.test(account) ? [account] : []
  })
  return about === undefined && accounts.length === 0 ? undefined : accounts
}

/** The queries of a venue or a node. */
export const reads: ReadProtocol<InfoCall, UpstreamResponse.UpstreamResponse, ReadFailure> = {
  // a body may have more members than its operation declares
  key: ({ body, surface }) => `${surface} ${body.canonical}`,
  cachePolicy: ({ operation, request }: AnyCall, now) => operation.cachePolicy?.(request, now),
  isCacheable: ({ operation, request }: AnyCall, response) => operation.isCacheable?.(request, response.json) ?? true,
  costOf,
  accountsIn,
  codec,
  write: ({ body, operation }) => ({ body: body.bytes, judge: judge(operation) })
}

/** How old answers may be. */
export interface CacheOptions {
  /** By type of query; the times of the table for types that it does not name. */
  readonly freshness?: ReadonlyArray<Freshness> | undefined
  /** How old answers may be while the rate limit is used up; 5 seconds when not given. */
  readonly staleWhenLimited?: Duration.Input | undefined
}

/** The cache policy of answers that are fresh for some milliseconds, and older while the rate limit is used up. */
export const cachePolicyWith = ({ staleWhenLimited = staleWhenLimitedDefault }: CacheOptions) => {
  const oldest = Duration.toMillis(Duration.fromInputUnsafe(staleWhenLimited))
  return (fresh: number): CachePolicy | undefined =>
    Math.max(fresh, oldest) > 0
      ? { fresh, staleIfError: 0, staleIfLimited: Math.max(0, oldest - fresh) }
      : undefined
}

const finalOrder: CachePolicy = { fresh: 3_600_000, staleIfError: 0 }

/** A number names one order; what a client calls its order it may call another one later. */
const namesOrder = ({ body: { valueOrUndefined: query } }: InfoCall): boolean =>
  Predicate.hasProperty(query, "oid") && Predicate.isNumber(query.oid)

const isFinalOrder = ({ json: { valueOrUndefined: answer } }: UpstreamResponse.UpstreamResponse): boolean =>
  Predicate.hasProperty(answer, "order") && Predicate.hasProperty(answer.order, "status") &&
  finalOrderStates.has(answer.order.status)

/** The reads with cache policies by options. A window of bars is cached once all of them have closed, and held. */
export const readsWith = (options: CacheOptions = {}): typeof reads => {
  const policyOf = cachePolicyWith(options)
  const chosen = (options.freshness ?? []).filter(({ type }) => type !== candleSnapshot.name)
  const policies = new Map<string, CachePolicy | undefined>([
    ...Object.entries(table).flatMap(([type, { about, fresh = 0 }]) =>
      about === "action" ? [] : [[type, policyOf(fresh)] as const]
    ),
    ...chosen.map(({ fresh, type }) => [type, policyOf(Duration.toMillis(fresh))] as const)
  ])
  return {
    ...reads,
    cachePolicy: (call, now, onRequest) => {
      const type = typeOf(call)
      if (type === "orderStatus") return namesOrder(call) ? finalOrder : undefined
      return policies.has(type) ? policies.get(type) : reads.cachePolicy(call, now, onRequest)
    },
    isCacheable: (call, response) =>
      typeOf(call) === "orderStatus" ? isFinalOrder(response) : reads.isCacheable(call, response)
  }
}
