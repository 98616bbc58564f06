/** The queries of `POST /info`. */
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { cachePolicy, Candle, CandleWindowRequest, maxBars, retainedBars } from "../candles/Candle.ts"
import * as CandleText from "../candles/CandleText.ts"
import { Address } from "../encoding/Hex.ts"
import { Natural64 } from "../encoding/Integer.ts"
import type { Json } from "../encoding/Json.ts"
import { UnknownAsset } from "../errors/ResourceError.ts"
import * as Operation from "../operations/Operation.ts"
import type * as UpstreamResponse from "../operations/UpstreamResponse.ts"
import { ClearinghouseState, ExtraAgent, SpotClearinghouseState, UserFees, UserRateLimit, UserRole } from "./Account.ts"
import type { InfoQuery } from "./InfoQueryTable.ts"
import { passthroughQueries as table, rowsOfOrders, rowsOfTime, rowsPerWeight } from "./InfoQueryTable.ts"
import {
  AllMids,
  AllPerpetualMetas,
  Book,
  FundingRate,
  Meta,
  MetaAndAssetContexts,
  OutcomeMeta,
  PerpDex,
  Trade
} from "./Market.ts"
import { Cloid, Fill, OpenOrder, Order, OrderRecord, OrderStatus } from "./Order.ts"
import { SpotMeta } from "./SpotMeta.ts"

const second = 1000
const minute = 60 * second

/**
 * Returns whether a response is HTTP 500 `null`, which the venue sends for an unknown coin or any other unknown name.
 */
const isNothing = (answer: UpstreamResponse.UpstreamResponse): boolean =>
  answer.status === 500 && answer.text.trim() === "null"

const isSomething = (_request: unknown, answer: Json): boolean => answer.text.trim() !== "null"

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
 * official API does.
 */
const relayed = ({ about, fresh, rows, weight }: InfoQuery) => ({
  about,
  ...(fresh === undefined ? {} : { fresh, cachePolicy: () => ({ fresh, staleIfError: 0 }) }),
  sources: ["official-api", "node"],
  sourceOfSurface: true,
  cost: { weight, ...(rows === undefined ? {} : { rowsPerWeight, maxRows: rows }), requestUnits: 1 },
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
const ofUser = Schema.Struct({ user: Address })
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
const since = { startTime: Natural64, endTime: Schema.optionalKey(Schema.NullOr(Natural64)) }

/** An account that exists in every new sandbox. */
const user = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
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
  response: SpotMeta,
  failures: [],
  cachePolicy: () => ({ fresh: 5 * minute, refreshAfter: 4 * minute, staleIfError: 60 * minute }),
  isCacheable: Operation.decodes(SpotMeta),
  example: {}
})

export const candleSnapshot = query({
  ...unknownCoin,
  name: "candleSnapshot",
  summary: "Bars of one coin and interval, at most the newest 5000",
  about: "market",
  sources: ["official-api"],
  cost: { weight: 20, rowsPerWeight: 60, maxRows: retainedBars, requestUnits: 1 },
  request: Schema.Struct({ req: CandleWindowRequest }).pipe(
    Schema.decodeTo(
      Schema.toType(CandleWindowRequest),
      SchemaTransformation.transform({ decode: ({ req }) => req, encode: (req) => ({ req }) })
    )
  ),
  response: Schema.Array(Candle),
  recognized: CandleText.countRows,
  mostRows: maxBars,
  cachePolicy,
  isCacheable: CandleText.isCacheable,
  example: { req: { coin: "BTC", interval: "1d", startTime: instant, endTime: instant + 30 * 1440 * minute } }
})

export const meta = query({
  ...relayed({ ...market, fresh: minute }),
  name: "meta",
  summary: "The perpetuals of a dex",
  request: ofDex,
  response: Meta,
  failures: [],
  example: {}
})

export const allPerpMetas = query({
  ...relayed({ ...market, fresh: minute }),
  name: "allPerpMetas",
  summary: "The perpetuals of all dexes, in the order of `perpDexs`",
  request: Schema.Struct({}),
  response: AllPerpetualMetas,
  failures: [],
  example: {}
})

export const outcomeMeta = query({
  // outcomes of recurring questions are listed and settled every 15 minutes
  ...relayed({ ...market, fresh: 10 * second }),
  name: "outcomeMeta",
  summary: "The outcomes of prediction markets, and their questions",
  request: Schema.Struct({}),
  response: OutcomeMeta,
  failures: [],
  example: {}
})

export const metaAndAssetCtxs = query({
  ...relayed({ ...market, fresh: second }),
  name: "metaAndAssetCtxs",
  summary: "The perpetuals of a dex, and their prices in the same order",
  request: ofDex,
  response: MetaAndAssetContexts,
  failures: [],
  example: {}
})

export const perpDexs = query({
  ...relayed({ ...market, fresh: minute }),
  name: "perpDexs",
  summary: "The dexes of perpetuals: `null` for the venue's own, then the builder-deployed ones",
  request: Schema.Struct({}),
  response: Schema.Array(Schema.NullOr(PerpDex)),
  failures: [],
  example: {}
})

export const allMids = query({
  ...relayed({ ...market, weight: 2, fresh: second }),
  name: "allMids",
  summary: "Mid prices of all coins of a dex; for the venue's own dex, also those of spot pairs",
  request: ofDex,
  response: AllMids,
  failures: [],
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
  response: Schema.NullOr(Book),
  failures: [],
  example: { coin: "BTC" }
})

export const recentTrades = query({
  ...relayed({ ...market, fresh: second, rows: rowsOfTime }),
  ...unknownCoin,
  name: "recentTrades",
  summary: "The newest trades of a coin",
  request: Schema.Struct({ coin: Schema.String }),
  response: Schema.Array(Trade),
  example: { coin: "BTC" }
})

export const fundingHistory = query({
  ...relayed({ ...market, rows: rowsOfTime }),
  ...unknownCoin,
  name: "fundingHistory",
  summary: "Hourly funding rates of a perpetual in a time range, oldest first",
  request: Schema.Struct({ coin: Schema.String, ...since }),
  response: Schema.Array(FundingRate),
  example: { coin: "BTC", startTime: instant, endTime: instant + 180 * minute }
})

export const clearinghouseState = query({
  ...relayed({ ...ofAccount, weight: 2 }),
  name: "clearinghouseState",
  summary: "Margin and positions of a user in the perpetuals of a dex",
  request: ofUserInDex,
  response: ClearinghouseState,
  failures: [],
  example: { user }
})

export const spotClearinghouseState = query({
  ...relayed({ ...ofAccount, weight: 2 }),
  name: "spotClearinghouseState",
  summary: "Spot balances of a user",
  request: ofUser,
  response: SpotClearinghouseState,
  failures: [],
  example: { user }
})

export const openOrders = query({
  ...relayed(ofAccount),
  name: "openOrders",
  summary: "Open orders of a user in a dex",
  request: ofUserInDex,
  response: Schema.Array(OpenOrder),
  failures: [],
  example: { user }
})

export const frontendOpenOrders = query({
  ...relayed(ofAccount),
  name: "frontendOpenOrders",
  summary: "Open orders of a user in a dex, with trigger conditions and time in force",
  request: ofUserInDex,
  response: Schema.Array(Order),
  failures: [],
  example: { user }
})

export const orderStatus = query({
  ...relayed({ about: "action", weight: 2 }),
  name: "orderStatus",
  summary: "An order of a user by its order ID or client order ID",
  request: Schema.Struct({ ...ofUser.fields, oid: Schema.Union([Natural64, Cloid]) }),
  response: OrderStatus,
  failures: [],
  example: { user, oid: 1 }
})

export const historicalOrders = query({
  ...relayed({ ...ofAccount, rows: rowsOfOrders }),
  name: "historicalOrders",
  summary: "The newest orders of a user, at most 2000, with their status",
  request: ofUser,
  response: Schema.Array(OrderRecord),
  failures: [],
  example: { user }
})

export const userFills = query({
  ...relayed({ ...ofAccount, rows: rowsOfOrders }),
  name: "userFills",
  summary: "The newest fills of a user, at most 2000",
  request: fillsOfUser,
  response: Schema.Array(Fill),
  failures: [],
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
  response: Schema.Array(Fill),
  failures: [],
  example: { user, startTime: instant }
})

export const userRole = query({
  ...relayed({ ...ofAccount, weight: 60 }),
  name: "userRole",
  summary: "The role of an address: `user`, `agent`, `vault`, `subAccount` or `missing`",
  request: ofUser,
  response: UserRole,
  failures: [],
  example: { user }
})

export const userRateLimit = query({
  ...relayed(ofAccount),
  name: "userRateLimit",
  summary: "The number of actions that a user has sent, and the maximum number",
  request: ofUser,
  response: UserRateLimit,
  failures: [],
  example: { user }
})

export const userFees = query({
  ...relayed(ofAccount),
  name: "userFees",
  summary: "Fee rates of a user, and the volumes that determine them",
  request: ofUser,
  response: UserFees,
  failures: [],
  example: { user }
})

export const userAbstraction = query({
  ...relayed(ofAccount),
  name: "userAbstraction",
  summary: "How a user's balances are combined: `default`, `disabled`, `unifiedAccount` or `portfolioMargin`",
  request: ofUser,
  response: Schema.String,
  failures: [],
  example: { user }
})

export const extraAgents = query({
  ...relayed(ofAccount),
  name: "extraAgents",
  summary: "The named API wallets of a user",
  request: ofUser,
  response: Schema.Array(ExtraAgent),
  failures: [],
  example: { user }
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
    failures: [],
    verbatim: true
  })

/**
 * A relayed query of an unknown type. All such types share one operation name, because the name is a metric label, and
 * a label needs a bounded set of values.
 */
export const passthroughQuery = passthrough("info", { about: "user", weight: 20 })

/** The relayed queries that have their own operation name; all other types use `info`. */
export const passthroughQueries: ReadonlyArray<typeof passthroughQuery> = Object.entries(table).map(([type, row]) =>
  passthrough(type, row)
)
