/** The subscriptions of the venue's WebSocket, and of `GET /ws`. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import { Candle, CandleInterval, DecimalString } from "../candles/Candle.ts"
import { Address, lowerCase } from "../encoding/Hex.ts"
import { openStruct } from "../encoding/OpenStruct.ts"
import { ClearinghouseState, SpotClearinghouseState } from "../info/Account.ts"
import { AllMids, AssetContext, BookLevel, Side, Trade } from "../info/Market.ts"
import { Fill, Order } from "../info/Order.ts"
import { Millis } from "../Time.ts"
import { reader, subscription } from "./Subscription.ts"
import type { Subscription } from "./Subscription.ts"

const orElse = <S extends Schema.Top & Schema.Codec<unknown, unknown>>(schema: S, value: S["Encoded"]) =>
  schema.pipe(Schema.withDecodingDefaultKey(Effect.succeed(value)))

/** The venue answers for addresses in lower case, whatever the letter case of the request. */
const User = Address.pipe(
  Schema.decodeTo(Schema.toType(Address), {
    decode: SchemaGetter.transform(lowerCase),
    encode: SchemaGetter.passthrough()
  })
)

const Coin = Schema.String.check(Schema.isBetweenLength(1, 64))

const dex = orElse(
  Schema.NullOr(Schema.String.check(Schema.isMaxLength(32))).pipe(
    Schema.decodeTo(Schema.String, {
      decode: SchemaGetter.transform((name) => name ?? ""),
      encode: SchemaGetter.passthrough()
    })
  ),
  ""
)

/** A switch that is off unless it is on. */
const off = orElse(
  Schema.NullOr(Schema.Boolean).pipe(
    Schema.decodeTo(Schema.Boolean, {
      decode: SchemaGetter.transform((isOn) => isOn ?? false),
      encode: SchemaGetter.passthrough()
    })
  ),
  false
)

const nothing = Schema.Struct({})
const ofCoin = Schema.Struct({ coin: Coin })
const ofUser = Schema.Struct({ user: User })
const ofUserInDex = Schema.Struct({ user: User, dex })
const ofDex = Schema.Struct({ dex })

/** An account of every new sandbox. */
const user = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"

const shownUser = { user: "user" } as const

/** An order as `orderUpdates` has it. */
export const OrderUpdate = openStruct({
  order: openStruct({
    coin: Schema.String,
    side: Side,
    limitPx: DecimalString,
    sz: DecimalString.annotateKey({ description: "Size that is not filled yet" }),
    oid: Schema.Natural,
    timestamp: Millis,
    origSz: DecimalString,
    cloid: Schema.optionalKey(Schema.NullOr(Schema.String)),
    reduceOnly: Schema.optionalKey(Schema.Boolean)
  }),
  status: Schema.String,
  statusTimestamp: Millis
}).annotate({ identifier: "OrderUpdate" })
export type OrderUpdate = typeof OrderUpdate.Type

const Funding = openStruct({
  time: Millis,
  coin: Schema.String,
  usdc: DecimalString,
  szi: DecimalString,
  fundingRate: DecimalString
})

const SliceFill = openStruct({ fill: Fill, twapId: Schema.Natural })

const isSnapshot = Schema.optionalKey(Schema.NullOr(Schema.Boolean))

/** The rows of a user, which begin with a snapshot. */
const rowsOf = <Row extends Schema.Codec<unknown, unknown>>(member: string, row: Row) =>
  openStruct({ user: Schema.String, isSnapshot, [member]: Schema.Array(row) })

export const allMids = subscription({
  name: "allMids",
  summary: "Middle prices of all coins of a dex",
  about: "market",
  delivery: "state",
  request: ofDex,
  item: openStruct({ mids: AllMids, dex: Schema.optionalKey(Schema.NullOr(Schema.String)) }),
  shown: { dex: "dex" },
  isSteady: true,
  example: {}
})

export const l2Book = subscription({
  name: "l2Book",
  summary: "The order book of a coin: 20 prices a side, or 5 at ten times the pace with `fast`",
  about: "market",
  delivery: "state",
  request: Schema.Struct({
    coin: Coin,
    nSigFigs: orElse(
      Schema.NullOr(
        Schema.Literals([2, 3, 4, 5]).annotate({ description: "Joins prices that share their first digits" })
      ),
      null
    ),
    mantissa: orElse(
      Schema.NullOr(Schema.Literals([2, 5]).annotate({ description: "With 5 digits: the step of the last one" })),
      null
    ),
    fast: off
  }).check(
    Schema.makeFilter(({ mantissa, nSigFigs }) =>
      mantissa === null || nSigFigs === 5 ? undefined : "mantissa only with nSigFigs 5"
    )
  ),
  item: openStruct({
    coin: Schema.String,
    time: Millis,
    levels: Schema.Tuple([Schema.Array(BookLevel), Schema.Array(BookLevel)]),
    spread: Schema.optionalKey(DecimalString)
  }),
  shown: { coin: "coin" },
  isSteady: true,
  example: { coin: "BTC" }
})

export const bbo = subscription({
  name: "bbo",
  summary: "The best bid and ask of a coin, when they change",
  about: "market",
  delivery: "state",
  request: ofCoin,
  item: openStruct({
    coin: Schema.String,
    time: Millis,
    bbo: Schema.Tuple([Schema.NullOr(BookLevel), Schema.NullOr(BookLevel)])
  }),
  shown: { coin: "coin" },
  example: { coin: "BTC" }
})

export const trades = subscription({
  name: "trades",
  summary: "Trades of a coin, the latest ones first",
  about: "market",
  delivery: "events",
  request: ofCoin,
  item: Trade,
  isList: true,
  shown: { coin: "0.coin" },
  rows: { id: ["time", "coin", "tid"], time: "time", replayed: 30 },
  example: { coin: "BTC" }
})

export const candle = subscription({
  name: "candle",
  summary: "The bar of a coin and interval that is forming, when it changes",
  about: "market",
  delivery: "state",
  request: Schema.Struct({ coin: Coin, interval: CandleInterval }),
  item: Candle,
  shown: { coin: "s", interval: "i" },
  stateAt: "t",
  refill: { query: "candleSnapshot", rank: 4 },
  example: { coin: "BTC", interval: "1m" }
})

export const activeAssetCtx = subscription({
  name: "activeAssetCtx",
  channels: ["activeAssetCtx", "activeSpotAssetCtx"],
  summary: "Prices, volume and funding of a coin",
  about: "market",
  delivery: "state",
  request: ofCoin,
  item: openStruct({
    coin: Schema.String,
    ctx: openStruct({
      prevDayPx: DecimalString,
      dayNtlVlm: DecimalString,
      markPx: DecimalString,
      midPx: Schema.NullOr(DecimalString)
    })
  }),
  shown: { coin: "coin" },
  isSteady: true,
  example: { coin: "BTC" }
})

export const assetCtxs = subscription({
  name: "assetCtxs",
  summary: "Prices of all perpetuals of a dex, in the order of its listing",
  about: "market",
  delivery: "state",
  request: ofDex,
  item: openStruct({ dex: Schema.optionalKey(Schema.NullOr(Schema.String)), ctxs: Schema.Array(AssetContext) }),
  shown: { dex: "dex" },
  example: {}
})

export const spotAssetCtxs = subscription({
  name: "spotAssetCtxs",
  summary: "Prices of all spot pairs, in the order of their listing",
  about: "market",
  delivery: "state",
  request: nothing,
  item: Schema.Unknown,
  shown: {},
  example: {}
})

export const allDexsAssetCtxs = subscription({
  name: "allDexsAssetCtxs",
  summary: "Prices of the perpetuals of all dexes, in the order of their listing",
  about: "market",
  delivery: "state",
  request: nothing,
  item: openStruct({ ctxs: Schema.Array(Schema.Tuple([Schema.String, Schema.Array(AssetContext)])) }),
  shown: {},
  isSteady: true,
  example: {}
})

export const fastAssetCtxs = subscription({
  name: "fastAssetCtxs",
  summary: "Mark and middle prices of all coins as base64 of raw DEFLATE: all of them at first, then the changed ones",
  about: "market",
  delivery: "events",
  request: nothing,
  item: Schema.String,
  shown: {},
  isUnshared: true,
  example: {}
})

export const outcomeMetaUpdates = subscription({
  name: "outcomeMetaUpdates",
  summary: "Changes of the listed outcomes",
  about: "market",
  delivery: "events",
  request: nothing,
  item: Schema.Unknown,
  shown: {},
  example: {}
})

export const notification = subscription({
  name: "notification",
  summary: "Messages to a user",
  about: "user",
  delivery: "events",
  request: ofUser,
  item: openStruct({ notification: Schema.String }),
  shown: {},
  example: { user }
})

export const webData3 = subscription({
  name: "webData3",
  summary: "What a user interface shows of a user in all dexes",
  about: "user",
  delivery: "state",
  request: ofUser,
  item: openStruct({ userState: openStruct({ user: Schema.String }), perpDexStates: Schema.Array(Schema.Unknown) }),
  shown: { user: "userState.user" },
  isSteady: true,
  example: { user }
})

export const clearinghouseState = subscription({
  name: "clearinghouseState",
  summary: "Margin and positions of a user in a dex",
  about: "user",
  delivery: "state",
  request: ofUserInDex,
  item: openStruct({ dex: Schema.String, user: Schema.String, clearinghouseState: ClearinghouseState }),
  shown: { user: "user", dex: "dex" },
  isSteady: true,
  example: { user }
})

export const allDexsClearinghouseState = subscription({
  name: "allDexsClearinghouseState",
  summary: "Margin and positions of a user in all dexes",
  about: "user",
  delivery: "state",
  request: ofUser,
  item: openStruct({
    user: Schema.String,
    clearinghouseStates: Schema.Array(Schema.Tuple([Schema.String, ClearinghouseState]))
  }),
  shown: shownUser,
  isSteady: true,
  example: { user }
})

export const openOrders = subscription({
  name: "openOrders",
  summary: "The open orders of a user in a dex",
  about: "user",
  delivery: "state",
  request: ofUserInDex,
  item: openStruct({ dex: Schema.String, user: Schema.String, orders: Schema.Array(Order) }),
  shown: { user: "user", dex: "dex" },
  isSteady: true,
  example: { user }
})

export const spotState = subscription({
  name: "spotState",
  summary: "Spot balances of a user",
  about: "user",
  delivery: "state",
  request: Schema.Struct({
    user: User,
    ignorePortfolioMargin: off
  }),
  item: openStruct({ user: Schema.String, spotState: SpotClearinghouseState }),
  shown: shownUser,
  isSteady: true,
  example: { user }
})

export const twapStates = subscription({
  name: "twapStates",
  summary: "The TWAP orders of a user that are running in a dex",
  about: "user",
  delivery: "state",
  request: ofUserInDex,
  item: openStruct({
    dex: Schema.String,
    user: Schema.String,
    states: Schema.Array(Schema.Tuple([Schema.Natural, Schema.Unknown]))
  }),
  shown: { user: "user", dex: "dex" },
  isSteady: true,
  example: { user }
})

export const orderUpdates = subscription({
  name: "orderUpdates",
  summary: "Orders of a user, when their status changes",
  about: "user",
  delivery: "events",
  request: ofUser,
  item: OrderUpdate,
  isList: true,
  shown: {},
  rows: { id: ["order.oid", "status", "statusTimestamp"], time: "statusTimestamp", replayed: 0 },
  refill: { query: "historicalOrders", rank: 1 },
  example: { user }
})

export const userEvents = subscription({
  name: "userEvents",
  channels: ["user"],
  summary: "Fills, funding, liquidations and cancels of a user",
  about: "user",
  delivery: "events",
  request: ofUser,
  item: openStruct({
    fills: Schema.optionalKey(Schema.Array(Fill)),
    funding: Schema.optionalKey(Funding),
    liquidation: Schema.optionalKey(Schema.Unknown),
    nonUserCancel: Schema.optionalKey(Schema.Array(openStruct({ coin: Schema.String, oid: Schema.Natural }))),
    twapHistory: Schema.optionalKey(Schema.Array(Schema.Unknown)),
    twapSliceFills: Schema.optionalKey(Schema.Array(SliceFill))
  }),
  shown: {},
  rows: { member: "fills", id: ["tid"], time: "time", replayed: 0 },
  // its fills alone can be read later
  refill: { query: "userFillsByTime", rank: 0, isPartial: true },
  example: { user }
})

export const userFills = subscription({
  name: "userFills",
  summary: "Fills of a user",
  about: "user",
  delivery: "snapshot",
  request: Schema.Struct({
    user: User,
    aggregateByTime: off
  }),
  item: rowsOf("fills", Fill),
  shown: shownUser,
  rows: { member: "fills", id: ["tid"], time: "time", replayed: 2000 },
  example: { user }
})

export const userFundings = subscription({
  name: "userFundings",
  summary: "Funding that a user paid or received",
  about: "user",
  delivery: "snapshot",
  request: ofUser,
  item: rowsOf("fundings", Funding),
  shown: shownUser,
  rows: { member: "fundings", id: ["time", "coin"], time: "time", replayed: 500 },
  example: { user }
})

export const userNonFundingLedgerUpdates = subscription({
  name: "userNonFundingLedgerUpdates",
  summary: "Deposits, withdrawals and transfers of a user",
  about: "user",
  delivery: "snapshot",
  request: ofUser,
  item: rowsOf(
    "nonFundingLedgerUpdates",
    openStruct({ time: Millis, hash: Schema.String, delta: openStruct({ type: Schema.String }) })
  ),
  shown: shownUser,
  rows: { member: "nonFundingLedgerUpdates", id: [], time: "time", replayed: 500 },
  example: { user }
})

export const userHistoricalOrders = subscription({
  name: "userHistoricalOrders",
  summary: "Orders of a user with what became of them",
  about: "user",
  delivery: "snapshot",
  request: ofUser,
  item: rowsOf("orderHistory", OrderUpdate),
  shown: shownUser,
  rows: {
    member: "orderHistory",
    id: ["order.oid", "status", "statusTimestamp"],
    time: "statusTimestamp",
    replayed: 2000
  },
  example: { user }
})

export const userTwapHistory = subscription({
  name: "userTwapHistory",
  summary: "TWAP orders of a user with what became of them; their time is in seconds",
  about: "user",
  delivery: "snapshot",
  request: ofUser,
  item: rowsOf("history", openStruct({ time: Schema.Natural, state: Schema.Unknown, status: Schema.Unknown })),
  shown: shownUser,
  rows: { member: "history", id: [], time: "time", replayed: 500 },
  example: { user }
})

export const userTwapSliceFills = subscription({
  name: "userTwapSliceFills",
  summary: "Fills of the TWAP orders of a user",
  about: "user",
  delivery: "snapshot",
  request: ofUser,
  item: rowsOf("twapSliceFills", SliceFill),
  shown: shownUser,
  rows: { member: "twapSliceFills", id: ["fill.tid"], time: "fill.time", replayed: 2000 },
  example: { user }
})

export const activeAssetData = subscription({
  name: "activeAssetData",
  summary: "Leverage of a user in a perpetual, and what the user can trade of it",
  about: "user",
  delivery: "state",
  request: Schema.Struct({ user: User, coin: Coin }),
  item: openStruct({
    user: Schema.String,
    coin: Schema.String,
    leverage: Schema.Unknown,
    maxTradeSzs: Schema.Array(DecimalString),
    availableToTrade: Schema.Array(DecimalString)
  }),
  shown: { user: "user", coin: "coin" },
  example: { user, coin: "BTC" }
})

/** Every subscription by its name. */
export const subscriptions = {
  allMids,
  l2Book,
  bbo,
  trades,
  candle,
  activeAssetCtx,
  assetCtxs,
  spotAssetCtxs,
  allDexsAssetCtxs,
  fastAssetCtxs,
  outcomeMetaUpdates,
  notification,
  webData3,
  clearinghouseState,
  allDexsClearinghouseState,
  openOrders,
  spotState,
  twapStates,
  orderUpdates,
  userEvents,
  userFills,
  userFundings,
  userNonFundingLedgerUpdates,
  userHistoricalOrders,
  userTwapHistory,
  userTwapSliceFills,
  activeAssetData
} as const

/** Every subscription. */
export const table: ReadonlyArray<Subscription> = Object.values(subscriptions)

/** Reads a subscription as a client writes it, or as the venue acknowledges it. */
export const read = reader(table)
