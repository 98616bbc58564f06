/**
 * The queries of `POST /info`: their types with rate-limit weight, topic and maximum age, the operations with their
 * schemas, and the protocol that encodes, classifies and decodes them.
 *
 * By default, market data that bots poll is cached for one second, and market data that changes rarely for one minute.
 * A cached response about the state of a user is served only while the rate limit is exhausted (see {@link
 * staleWhenLimitedSetting}), or if the account is watched. The setting {@link freshnessSetting} changes these ages.
 * Only equal queries share a response, so a user's responses are never returned for another user.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { memoize } from "effect/Function"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import * as Struct from "effect/Struct"
import { Cloid, OrderId } from "../actions/ActionOutcome.ts"
import * as Candle from "../candles/Candle.ts"
import * as CandleText from "../candles/CandleText.ts"
import * as Encoding from "../encoding/Encoding.ts"
import { UnknownAsset, wrapReason } from "../errors/GatewayError.ts"
import type { CommonFailure, InvalidRequest, ReadFailure } from "../errors/GatewayError.ts"
import * as Operation from "../operations/Operation.ts"
import * as Account from "./Account.ts"
import {
  accountMembers,
  minute,
  oldest,
  passthroughQueries,
  rowsOfOrders,
  rowsOfTime,
  rowsPerWeight,
  second,
  staleWhenLimitedDefault
} from "./InfoQueries.ts"
import type { About, InfoQuery } from "./InfoQueries.ts"
import * as Market from "./Market.ts"

/** The final states of orders, as the venue's client libraries list them. */
export const finalOrderStates: ReadonlySet<unknown> = new Set([
  "filled",
  "canceled",
  "rejected",
  "marginCanceled",
  "vaultWithdrawalCanceled",
  "openInterestCapCanceled",
  "selfTradeCanceled",
  "reduceOnlyCanceled",
  "siblingFilledCanceled",
  "delistedCanceled",
  "liquidatedCanceled",
  "outcomeSettledCanceled",
  "scheduledCancel",
  "internalCancel",
  "tickRejected",
  "minTradeNtlRejected",
  "perpMarginRejected",
  "reduceOnlyRejected",
  "badAloPxRejected",
  "iocCancelRejected",
  "badTriggerPxRejected",
  "marketOrderNoLiquidityRejected",
  "positionIncreaseAtOpenInterestCapRejected",
  "positionFlipAtOpenInterestCapRejected",
  "tooAggressiveAtOpenInterestCapRejected",
  "openInterestIncreaseRejected",
  "insufficientSpotBalanceRejected",
  "oracleRejected",
  "perpMaxPositionRejected",
  "tooManyOpenOrdersRejected"
])

/** The maximum age of the responses to a query type; 0 disables caching. */
export interface Freshness {
  readonly type: string
  readonly fresh: Duration.Duration
}

/**
 * Returns whether a response is HTTP 500 `null`, which the venue sends for an unknown coin or any other unknown name.
 */
const isNothing = (response: Operation.UpstreamResponse): boolean =>
  response.status === 500 && response.text.trim() === "null"

const isSomething = (_request: unknown, response: Encoding.Json): boolean => response.text.trim() !== "null"

/**
 * The declaration of a query. `request` contains the query's members except `type`, because the type is the operation's
 * name.
 */
export interface QueryOperation<
  Name extends string = string,
  Request extends Operation.AnyCodec = Operation.AnyCodec,
  Response extends Operation.AnyCodec = Operation.AnyCodec,
  Failures extends ReadonlyArray<Operation.AnyCodec> = ReadonlyArray<Operation.AnyCodec>
> extends Operation.Operation<Name, "read", Request, Response, Failures>, Pick<InfoQuery, "about" | "fresh"> {
  readonly example: Request["Encoded"]
}

/** Declares a query. */
const query = <
  const Name extends string,
  Request extends Operation.AnyCodec,
  Response extends Operation.AnyCodec,
  const Failures extends ReadonlyArray<Operation.AnyCodec>
>(
  declaration: Omit<QueryOperation<Name, Request, Response, Failures>, "chain" | "class" | "protocol">
): QueryOperation<Name, Request, Response, Failures> => ({
  chain: "trading",
  class: "read",
  protocol: "info",
  ...declaration
})

/**
 * Returns the common properties of relayed queries. Nodes respond to some of these queries differently than the
 * venue's API does.
 */
const relayed = ({ about, fresh, rows, weight }: InfoQuery) => ({
  about,
  ...(fresh === undefined ? {} : { fresh, cachePolicy: () => ({ fresh, staleIfError: 0 }) }),
  sources: ["official-api", "node"],
  sourceOfSurface: true,
  cost: { weight, ...(rows === undefined ? {} : { rowsPerWeight, maxRows: rows }), requestUnits: 1 },
  failures: [],
  isFinal: isNothing,
  isCacheable: isSomething
} as const)

const market = { about: "market", weight: 20 } as const
const ofAccount = { about: "user", weight: 20 } as const

/** The declared error for a query of one coin: the response HTTP 500 `null` means that the coin is unknown. */
const unknownCoin = {
  failures: [UnknownAsset],
  refusal: {
    matches: isNothing,
    failure: ({ coin }: { readonly coin: string }) =>
      new UnknownAsset({ coin, detail: `The venue knows no coin ${JSON.stringify(coin)}` })
  }
} as const

const ofDex = Schema.Struct({
  dex: Schema.optionalKey(
    Schema.NullOr(Schema.String).annotate({
      description: "A builder-deployed dex of perpetuals. Default: the venue's own dex"
    })
  )
})
const ofUser = Schema.Struct({ user: Encoding.Address })
const ofUserInDex = Schema.Struct({ ...ofUser.fields, ...ofDex.fields })
const fillsOfUser = Schema.Struct({
  ...ofUser.fields,
  aggregateByTime: Schema.optionalKey(
    Schema.NullOr(Schema.Boolean).annotate({
      description: "Whether to aggregate an order's partial fills that are in one block"
    })
  )
})
// the venue accepts 64-bit times, and clients send the maximum for an open end
const since = { startTime: Encoding.Natural64, endTime: Schema.optionalKey(Schema.NullOr(Encoding.Natural64)) }

/** An account that exists in every new sandbox. */
const user = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
const byUser = { request: ofUser, example: { user } } as const
const byUserInDex = { request: ofUserInDex, example: { user } } as const
/** A time before every sandbox starts, in milliseconds since 1970. */
const instant = 1_767_225_600_000

export const spotMeta = query({
  name: "spotMeta",
  summary: "All spot pairs and tokens",
  about: "market",
  sources: ["official-api", "node"],
  cost: { weight: 20, requestUnits: 1 },
  cheap: true,
  request: Schema.Struct({}),
  response: Market.SpotMeta,
  failures: [],
  cachePolicy: () => ({ fresh: 5 * minute, refreshAfter: 4 * minute, staleIfError: 60 * minute }),
  isCacheable: Operation.decodes(Market.SpotMeta),
  example: {}
})

export const candleSnapshot = query({
  ...unknownCoin,
  name: "candleSnapshot",
  summary: "Bars of one coin and interval, at most the newest 5000",
  about: "market",
  sources: ["official-api"],
  cost: { weight: 20, rowsPerWeight: 60, maxRows: Candle.retainedBars, requestUnits: 1 },
  request: Schema.Struct({ req: Candle.CandleWindowRequest }).pipe(
    Schema.decodeTo(
      Schema.toType(Candle.CandleWindowRequest),
      SchemaTransformation.transform({ decode: ({ req }) => req, encode: (req) => ({ req }) })
    )
  ),
  response: Schema.Array(Candle.Candle),
  cachePolicy: Candle.cachePolicy,
  isCacheable: CandleText.isCacheable,
  example: { req: { coin: "BTC", interval: "1d", startTime: instant, endTime: instant + 30 * 1440 * minute } }
})

export const meta = query({
  ...relayed({ ...market, fresh: minute }),
  name: "meta",
  summary: "The perpetuals of a dex",
  request: ofDex,
  response: Market.Meta,
  example: {}
})

export const allPerpMetas = query({
  ...relayed({ ...market, fresh: minute }),
  name: "allPerpMetas",
  summary: "The perpetuals of all dexes, in the order of `perpDexs`",
  request: Schema.Struct({}),
  response: Market.AllPerpetualMetas,
  example: {}
})

export const outcomeMeta = query({
  // outcomes of recurring questions are listed and settled every 15 minutes
  ...relayed({ ...market, fresh: 10 * second }),
  name: "outcomeMeta",
  summary: "The outcomes of prediction markets, and their questions",
  request: Schema.Struct({}),
  response: Market.OutcomeMeta,
  example: {}
})

export const metaAndAssetCtxs = query({
  ...relayed({ ...market, fresh: second }),
  name: "metaAndAssetCtxs",
  summary: "The perpetuals of a dex, and their prices in the same order",
  request: ofDex,
  response: Market.MetaAndAssetContexts,
  example: {}
})

export const perpDexs = query({
  ...relayed({ ...market, fresh: minute }),
  name: "perpDexs",
  summary: "The dexes of perpetuals: `null` for the venue's own, then the builder-deployed ones",
  request: Schema.Struct({}),
  response: Schema.Array(Schema.NullOr(Market.PerpDex)),
  example: {}
})

export const allMids = query({
  ...relayed({ ...market, weight: 2, fresh: second }),
  name: "allMids",
  summary: "Mid prices of all coins of a dex; for the venue's own dex, also those of spot pairs",
  request: ofDex,
  response: Market.AllMids,
  example: {}
})

export const l2Book = query({
  ...relayed({ ...market, weight: 2, fresh: second }),
  name: "l2Book",
  summary: "The order book of a coin, at most 20 prices per side; `null` for an unknown coin",
  request: Schema.Struct({
    coin: Schema.String,
    nSigFigs: Schema.optionalKey(
      Schema.NullOr(Schema.Natural).annotate({
        description: "Number of significant digits, from 2 to 5, to which prices are aggregated"
      })
    ),
    mantissa: Schema.optionalKey(
      Schema.NullOr(Schema.Natural).annotate({
        description: "If `nSigFigs` is 5, the step of the last digit, 2 or 5, to which prices are aggregated"
      })
    )
  }),
  response: Schema.NullOr(Market.Book),
  example: { coin: "BTC" }
})

export const recentTrades = query({
  ...relayed({ ...market, fresh: second, rows: rowsOfTime }),
  ...unknownCoin,
  name: "recentTrades",
  summary: "The newest trades of a coin",
  request: Schema.Struct({ coin: Schema.String }),
  response: Schema.Array(Market.Trade),
  example: { coin: "BTC" }
})

export const fundingHistory = query({
  ...relayed({ ...market, rows: rowsOfTime }),
  ...unknownCoin,
  name: "fundingHistory",
  summary: "Hourly funding rates of a perpetual in a time range, oldest first",
  request: Schema.Struct({ coin: Schema.String, ...since }),
  response: Schema.Array(Market.FundingRate),
  example: { coin: "BTC", startTime: instant, endTime: instant + 180 * minute }
})

export const clearinghouseState = query({
  ...relayed({ ...ofAccount, weight: 2 }),
  ...byUserInDex,
  name: "clearinghouseState",
  summary: "Margin and positions of a user in the perpetuals of a dex",
  response: Account.ClearinghouseState
})

export const spotClearinghouseState = query({
  ...relayed({ ...ofAccount, weight: 2 }),
  ...byUser,
  name: "spotClearinghouseState",
  summary: "Spot balances of a user",
  response: Account.SpotClearinghouseState
})

export const openOrders = query({
  ...relayed(ofAccount),
  ...byUserInDex,
  name: "openOrders",
  summary: "Open orders of a user in a dex",
  response: Schema.Array(Account.OpenOrder)
})

export const frontendOpenOrders = query({
  ...relayed(ofAccount),
  ...byUserInDex,
  name: "frontendOpenOrders",
  summary: "Open orders of a user in a dex, with trigger conditions and time in force",
  response: Schema.Array(Account.Order)
})

export const orderStatus = query({
  ...relayed({ about: "action", weight: 2 }),
  name: "orderStatus",
  summary: "An order of a user by its order ID or client order ID",
  request: Schema.Struct({ ...ofUser.fields, oid: Schema.Union([OrderId, Cloid]) }),
  response: Account.OrderStatus,
  example: { user, oid: 1 }
})

export const historicalOrders = query({
  ...relayed({ ...ofAccount, rows: rowsOfOrders }),
  ...byUser,
  name: "historicalOrders",
  summary: "The newest orders of a user, at most 2000, with their status",
  response: Schema.Array(Account.OrderRecord)
})

export const userFills = query({
  ...relayed({ ...ofAccount, rows: rowsOfOrders }),
  name: "userFills",
  summary: "The newest fills of a user, at most 2000",
  request: fillsOfUser,
  response: Schema.Array(Account.Fill),
  example: { user }
})

export const userFillsByTime = query({
  ...relayed({ ...ofAccount, rows: rowsOfOrders }),
  name: "userFillsByTime",
  summary: "Fills of a user in a time range, at most 2000",
  request: Schema.Struct({
    ...fillsOfUser.fields,
    ...since,
    reversed: Schema.optionalKey(
      Schema.NullOr(Schema.Boolean).annotate({ description: "Whether to return the newest fills first" })
    )
  }),
  response: Schema.Array(Account.Fill),
  example: { user, startTime: instant }
})

export const userRole = query({
  ...relayed({ ...ofAccount, weight: 60 }),
  ...byUser,
  name: "userRole",
  summary: "The role of an address: `user`, `agent`, `vault`, `subAccount` or `missing`",
  response: Account.UserRole
})

export const userRateLimit = query({
  ...relayed(ofAccount),
  ...byUser,
  name: "userRateLimit",
  summary: "The number of actions that a user has sent, and the maximum number",
  response: Account.UserRateLimit
})

export const userFees = query({
  ...relayed(ofAccount),
  ...byUser,
  name: "userFees",
  summary: "Fee rates of a user, and the volumes that determine them",
  response: Account.UserFees
})

export const userAbstraction = query({
  ...relayed(ofAccount),
  ...byUser,
  name: "userAbstraction",
  summary: "How a user's balances are combined: `default`, `disabled`, `unifiedAccount` or `portfolioMargin`",
  response: Schema.String
})

export const extraAgents = query({
  ...relayed(ofAccount),
  ...byUser,
  name: "extraAgents",
  summary: "The named API wallets of a user",
  response: Schema.Array(Account.ExtraAgent)
})

/** The typed queries by their `type`. */
export const infoOperations = {
  spotMeta,
  candleSnapshot,
  meta,
  allPerpMetas,
  outcomeMeta,
  metaAndAssetCtxs,
  perpDexs,
  allMids,
  l2Book,
  recentTrades,
  fundingHistory,
  clearinghouseState,
  spotClearinghouseState,
  openOrders,
  frontendOpenOrders,
  orderStatus,
  historicalOrders,
  userFills,
  userFillsByTime,
  userRole,
  userRateLimit,
  userFees,
  userAbstraction,
  extraAgents
} as const

/** The `type` of a query. The venue validates the other members of the request. */
const passthroughRequest = Schema.Struct({
  type: Schema.String.check(Schema.isPattern(/^[A-Za-z][A-Za-z0-9_]{0,63}$/u, { expected: "the type of a query" }))
})

const passthrough = (name: string, row: InfoQuery) =>
  Operation.read({
    ...relayed(row),
    name,
    chain: "trading",
    protocol: "info",
    summary: "A query of any other type, relayed unchanged; some types have weight 2",
    request: passthroughRequest,
    response: Schema.Unknown,
    verbatim: true
  })

/**
 * A relayed query of an unknown type. All such types share one operation name, because the name is a metric label, and
 * a label needs a bounded set of values.
 */
export const passthroughQuery = passthrough("info", { about: "user", weight: 20 })

/** The relayed queries that have their own operation name; all other types use `info`. */
export const passthroughOperations: ReadonlyArray<typeof passthroughQuery> = Object.entries(passthroughQueries).map((
  [type, row]
) => passthrough(type, row))

type Row = Pick<InfoQuery, "about" | "fresh">

/** The relayed queries by type: the topic of each query, and the default maximum age of its cached responses. */
export const relayedQueries: ReadonlyMap<string, Row> = new Map(
  Object.entries<Row>({ ...passthroughQueries, ...Struct.omit(infoOperations, ["spotMeta", "candleSnapshot"]) })
)

/** Returns the query types whose default maximum age is `time` milliseconds. */
export const freshByDefault = (time: number): ReadonlyArray<string> =>
  [...relayedQueries].flatMap(([type, { fresh }]) => fresh === time ? [type] : [])

const abouts: ReadonlyMap<string, About> = new Map(
  Object.entries<Row>({ ...passthroughQueries, ...infoOperations }).map(([type, { about }]) => [type, about])
)

/** Returns the topic of a query type; `undefined` for an unknown type. */
export const queryTopic = (type: string): About | undefined => abouts.get(type)

const whys: { readonly [Kind in About]: string } = {
  market: "market data is never cached for longer",
  user: "this query returns the state of one user",
  action: "this query reports the outcome of an action"
}

/** Checks a list of maximum ages. Returns the mistake as a message; `undefined` if the list is valid. */
export const mistakeIn = (list: ReadonlyArray<Freshness>): string | undefined => {
  const seen = new Set<string>()
  for (const { fresh, type } of list) {
    const about = queryTopic(type)
    if (about === undefined) return `${type} is not a known query type`
    if (seen.has(type)) return `${type} is listed twice`
    seen.add(type)
    if (Duration.isGreaterThan(fresh, oldest[about])) {
      return about === "action"
        ? `The maximum age of ${type} cannot be set, because ${whys[about]}: only final states are cached`
        : `The maximum age of ${type} is at most ${Duration.format(oldest[about])}, because ${whys[about]}`
    }
  }
  return undefined
}

/** A query to relay: operation, decoded request, body, and the `Surface` (group of routes) that received it. */
export interface InfoCall {
  readonly operation: Operation.ReadOperation
  readonly request: unknown
  readonly body: Encoding.Json
  readonly surface: Operation.Surface
}

/** A query for bars. */
export interface CandleCall extends InfoCall {
  readonly request: Candle.CandleWindowRequest
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

const operations: ReadonlyMap<unknown, Operation.ReadOperation> = new Map<string, Operation.ReadOperation>(
  Object.values(infoOperations).map((operation) => [operation.name, operation])
)
const passthroughs: ReadonlyMap<unknown, Operation.ReadOperation> = new Map(
  passthroughOperations.map((operation) => [operation.name, operation])
)

const requestDecoder = memoize((operation: Operation.ReadOperation) => Operation.decodeValue(operation.request))

/**
 * Decodes a query from a body. Refuses a query without a typed declaration if the gateway does not relay such queries.
 */
export const parseCall = (
  body: Encoding.Json,
  surface: Operation.Surface,
  passesThrough: boolean
): Effect.Effect<InfoCall, InvalidRequest> => {
  const value = body.valueOrUndefined
  const type = Predicate.hasProperty(value, "type") ? value.type : undefined
  const operation = operations.get(type) ?? (passesThrough ? passthroughs.get(type) ?? passthroughQuery : undefined)
  return operation === undefined
    ? Effect.fail(
      Operation.invalidRequest([{ path: ["type"], message: `Expected one of ${[...operations.keys()].join(", ")}` }])
    )
    : Effect.mapEager(requestDecoder(operation)(value), (request) => ({ operation, request, body, surface }))
}

/** Encodes a query as JSON: its type, then its other members. */
const writeAs = (type: string) => (members: unknown): Encoding.Json =>
  Encoding.write(Predicate.isObject(members) ? { type, ...members } : { type })

/** Narrows a candle query to the oldest bars of its window that fit into one response. Returns `undefined` for other queries. */
export const forOldest = (call: InfoCall): CandleCall | undefined => {
  if (!isCandleCall(call)) return undefined
  const req = Candle.oldestPart(call.request)
  return { ...call, request: req, body: writeAs(candleSnapshot.name)({ req }) }
}

/** Sends a query on behalf of a service. */
export type Send<E, R = never> = (
  call: Omit<InfoCall, "surface">
) => Effect.Effect<Operation.UpstreamResponse, E, R>

const sending = <Request extends Operation.AnyCodec>(operation: Operation.Operation<string, "read", Request>) => {
  const write = Operation.encodeRequest(operation.request, [], writeAs(operation.name))
  return <E, R>(send: Send<E, R>, request: Request["Type"] | undefined) =>
    Effect.flatMap(write(request), (body) => send({ operation, request, body }))
}

/** Makes a service's typed method for one query. */
export const makeMethod = <
  Request extends Operation.AnyCodec,
  Response extends Operation.AnyCodec,
  const Failures extends ReadonlyArray<Operation.AnyCodec>
>(operation: Operation.Operation<string, "read", Request, Response, Failures>) => {
  const sendRequest = sending(operation)
  const read = Operation.makeReader<Request, Response, Failures>(operation)
  return <E, R>(service: string, send: Send<E, R>) =>
    Effect.fn(`${service}.${operation.name}`)((request?: Request["Type"]) =>
      Effect.mapError(Effect.flatMap(sendRequest(send, request), (response) => read(request, response)), wrapReason)
    )
}

const plain = Struct.omit(infoOperations, ["candleSnapshot"])

/** The typed methods of all queries except `candleSnapshot`, whose method also reports missing bars. */
export type Methods<E, R = never> = Operation.Methods<typeof plain, CommonFailure | E, R>

/** Makes a service's typed methods for its queries. */
export const makeMethods = <E, R>(service: string, send: Send<E, R>): Methods<E, R> =>
  Struct.map(
    plain,
    Operation.typedMethodMapper<CommonFailure | E, R>((operation) => makeMethod(operation)(service, send))
  )

/** Makes the typed method of a candle query: returns the bars, and whether the window is complete. */
export const makeCandlesMethod = <const Failures extends ReadonlyArray<Operation.AnyCodec>>(
  operation: Operation.Operation<
    string,
    "read",
    typeof candleSnapshot.request,
    typeof candleSnapshot.response,
    Failures
  >
) => {
  const sendRequest = sending(operation)
  const read = Operation.makeReader(operation)
  return <E, R>(service: string, send: Send<E, R>) =>
    Effect.fn(`${service}.${operation.name}`)(function*(request: Candle.CandleWindowRequest) {
      const response = yield* sendRequest(send, request)
      const bars = yield* read(request, response)
      // uses the time after the response, so that bars that expired during the request count as missing
      return Candle.fromSnapshot(request, bars, yield* Clock.currentTimeMillis, Candle.readSources(response.candles))
    }, Effect.mapError(wrapReason))
}

/** Classifies a response that is relayed unchanged. */
export const judge = (operation: Pick<Operation.ReadOperation, "isFinal" | "refusal"> & { readonly name?: string }) =>
(
  response: Operation.UpstreamResponse
): Operation.AttemptResult<Operation.UpstreamResponse, ReadFailure> => {
  if (operation.refusal?.matches(response) === true || operation.isFinal?.(response) === true) {
    return Operation.answered(response)
  }
  const foreign = Operation.ofForeign(response)
  if (foreign !== undefined) return foreign
  const { retryAfter, status, upstream } = response
  if (status === 429 || status >= 500) {
    return Operation.retryable(
      status === 429 ? "rate_limited" : "server_fault",
      Operation.unavailable(upstream, `${upstream} responded with HTTP ${status}`),
      { answer: response, retryAfter }
    )
  }
  if (status !== 200) return Operation.answered(response)
  // not a member of the operation, because the typed client would load the function
  const rows = operation.name === candleSnapshot.name ? CandleText.countRows(response.pieces) : undefined
  if (rows !== undefined) return Operation.answered(response, rows)
  if (Option.isNone(response.utf8)) return Operation.unreadable(upstream, "a body that is not UTF-8 (HTTP 200)")
  const { value } = response.json
  if (Result.isFailure(value)) return Operation.unreadable(upstream, "a body that is not JSON (HTTP 200)")
  return Operation.answered(response, Array.isArray(value.success) ? value.success.length : 0)
}

/**
 * The cache encoding of responses with status 200: the upstream's label, the content type, the source of the candles,
 * and the bytes as received.
 */
export const codec: Operation.CacheCodec<Operation.UpstreamResponse> = {
  store: ({ body, candles, contentType, status, upstream }) =>
    status === 200
      ? {
        head: candles === undefined ? `${upstream} ${contentType}` : `${upstream} ${contentType}\n${candles}`,
        body: Encoding.owned(body)
      }
      : undefined,
  restore: ({ body, head }, age) => {
    const end = head.indexOf(" ")
    const [contentType = "", candles] = head.slice(end + 1).split("\n")
    return Operation.make({
      upstream: head.slice(0, end),
      status: 200,
      contentType,
      body: typeof body === "string" ? Encoding.encode(body) : body,
      age,
      ...(candles === undefined ? {} : { candles })
    })
  },
  faultOf: ({ status }) => status >= 500 || status === 429 ? "upstream" : status >= 400 ? "caller" : undefined,
  isRateLimited: ({ status }) => status === 429
}

/** Returns the maximum cost of a query that is sent at `now`. */
export const callCost = (call: InfoCall, now: number): Operation.Cost =>
  isCandleCall(call) ? { ...call.operation.cost, maxRows: Candle.maxBars(call.request, now) } : call.operation.cost

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

/** The read protocol of `POST /info`, for the venue's API and for nodes. */
export const reads: Operation.ReadProtocol<InfoCall, Operation.UpstreamResponse, ReadFailure> = {
  // the whole body is the cache key, because it may have members that the operation does not declare
  key: ({ body, surface }) => `${surface} ${Encoding.canonical(body.text)}`,
  cachePolicy: ({ operation, request }: InfoCall, now) => operation.cachePolicy?.(request, now),
  isCacheable: (call: InfoCall, response) =>
    (isCandleCall(call) ? CandleText.isInWindow(call.request, response.pieces) : undefined) ??
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
  return (fresh: number): Operation.CachePolicy | undefined =>
    Math.max(fresh, oldest) > 0
      ? { fresh, staleIfError: 0, staleIfLimited: Math.max(0, oldest - fresh) }
      : undefined
}

/**
 * Returns whether a query identifies an order by the venue's order ID. Returns `false` for a client order ID, because a
 * client can reuse that ID for a second order.
 */
const namesOrder = ({ body: { valueOrUndefined: query } }: InfoCall): boolean =>
  Predicate.hasProperty(query, "oid") && !Predicate.isString(query.oid)

const isFinalOrder = ({ json: { valueOrUndefined: response } }: Operation.UpstreamResponse): boolean =>
  Predicate.hasProperty(response, "order") && Predicate.hasProperty(response.order, "status") &&
  finalOrderStates.has(response.order.status)

/**
 * Returns the read protocol with the cache policies of `options`. A window of bars is cached only after all of its bars
 * have closed, and only while the venue still retains them.
 */
export const readsWith = (options: CacheOptions = {}): typeof reads => {
  const resolvePolicy = cachePolicyWith(options)
  const chosen = (options.freshness ?? []).filter(({ type }) => type !== candleSnapshot.name)
  const policies = new Map<string, Operation.CachePolicy | undefined>([
    ...[...relayedQueries].flatMap(([type, { about, fresh = 0 }]) =>
      about === "action" ? [] : [[type, resolvePolicy(fresh)] as const]
    ),
    ...chosen.map(({ fresh, type }) => [type, resolvePolicy(Duration.toMillis(fresh))] as const)
  ])
  return {
    ...reads,
    cachePolicy: (call, now, onRequest) => {
      const type = queryType(call)
      if (type === "orderStatus") return namesOrder(call) ? Operation.cachedForGood : undefined
      return policies.has(type) ? policies.get(type) : reads.cachePolicy(call, now, onRequest)
    },
    isCacheable: (call, response) =>
      queryType(call) === "orderStatus" ? isFinalOrder(response) : reads.isCacheable(call, response)
  }
}
