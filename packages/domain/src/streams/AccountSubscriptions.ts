/** The subscriptions of an account: its state, orders, fills and transfers. */
import * as Schema from "effect/Schema"
import { OrderId } from "../actions/ActionOutcome.ts"
import { DecimalString } from "../candles/Candle.ts"
import { Millis, nullish, openStruct } from "../encoding/Encoding.ts"
import { ClearinghouseState, Fill, Order, OrderUpdate, SpotClearinghouseState } from "../info/Account.ts"
import { Coin, off, ofUser, ofUserInDex, subscription, User } from "./Subscription.ts"

/** An account that exists in every new sandbox. */
const user = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
const shownUser = { user: "user" } as const
const byUser = { about: "user", request: ofUser, shown: shownUser, example: { user } } as const
const byUserInDex = { ...byUser, request: ofUserInDex, shown: { user: "user", dex: "dex" } } as const

const Funding = openStruct({
  time: Millis,
  coin: Schema.String,
  usdc: DecimalString,
  szi: DecimalString,
  fundingRate: DecimalString
})

const SliceFill = openStruct({ fill: Fill, twapId: Schema.Natural })

const isSnapshot = nullish(Schema.Boolean)

/**
 * The key of a fill. `tid` is a hash of the buyer's and the seller's order, so a user who is both has two fills with one
 * `tid`, and two orders trade with each other once: the smaller one is then filled. A fill without a counterparty has
 * the `tid` 0, such as each "Spot Dust Conversion", and the `oid` of an order of its own. No two of 113 984 public fills
 * shared both (github.com/nautechsystems/nautilus_trader/issues/4325).
 */
const fillKey = ["oid", "tid"] as const

/**
 * The key of an order's update. `oid` is one order's for ever, and an order has a status at a time once, except that
 * several of its fills in one block leave it `open` with less and less of its size.
 */
const updateKey = ["order.oid", "status", "statusTimestamp", "order.sz"] as const

/**
 * Makes the schema of an item that lists rows of a user, such as fills. The member named `member` lists the rows; the
 * first item is a snapshot.
 */
const userRows = <Row extends Schema.Codec<unknown, unknown>>(member: string, row: Row) =>
  openStruct({ user: Schema.String, isSnapshot, [member]: Schema.Array(row) })

export const notification = subscription({
  name: "notification",
  summary: "Messages to a user",
  ...byUser,
  delivery: "events",
  item: openStruct({ notification: Schema.String }),
  shown: {}
})

export const webData3 = subscription({
  name: "webData3",
  summary: "The state of a user in all dexes, as in the venue's user interface",
  ...byUser,
  delivery: "state",
  item: openStruct({ userState: openStruct({ user: Schema.String }), perpDexStates: Schema.Array(Schema.Unknown) }),
  shown: { user: "userState.user" },
  isSteady: true
})

export const clearinghouseState = subscription({
  name: "clearinghouseState",
  summary: "Margin and positions of a user in a dex",
  ...byUserInDex,
  delivery: "state",
  item: openStruct({ dex: Schema.String, user: Schema.String, clearinghouseState: ClearinghouseState }),
  isSteady: true,
  servedQueries: [{
    query: "clearinghouseState",
    member: "clearinghouseState",
    compared: { rows: "assetPositions", members: ["position.coin", "position.szi"] }
  }]
})

export const allDexsClearinghouseState = subscription({
  name: "allDexsClearinghouseState",
  summary: "Margin and positions of a user in all dexes",
  ...byUser,
  delivery: "state",
  item: openStruct({
    user: Schema.String,
    clearinghouseStates: Schema.Array(Schema.Tuple([Schema.String, ClearinghouseState]))
  }),
  isSteady: true
})

export const openOrders = subscription({
  name: "openOrders",
  summary: "The open orders of a user in a dex",
  ...byUserInDex,
  delivery: "state",
  item: openStruct({ dex: Schema.String, user: Schema.String, orders: Schema.Array(Order) }),
  isSteady: true,
  servedQueries: [
    { query: "frontendOpenOrders", member: "orders", compared: { rows: "", members: ["oid", "sz"] } },
    { query: "openOrders", member: "orders", isBrief: true }
  ]
})

export const spotState = subscription({
  name: "spotState",
  summary: "Spot balances of a user",
  about: "user",
  delivery: "state",
  // the venue's documents name the first member; its acknowledgements and client libraries name the second
  request: Schema.Union([
    Schema.Struct({ user: User, isPortfolioMargin: Schema.Boolean }),
    Schema.Struct({ user: User, ignorePortfolioMargin: off })
  ]),
  item: openStruct({ user: Schema.String, spotState: SpotClearinghouseState }),
  shown: shownUser,
  isSteady: true,
  servedQueries: [{
    query: "spotClearinghouseState",
    member: "spotState",
    compared: { rows: "balances", members: ["coin", "total", "hold"] }
  }],
  example: { user }
})

export const twapStates = subscription({
  name: "twapStates",
  summary: "The active TWAP orders of a user in a dex",
  ...byUserInDex,
  delivery: "state",
  item: openStruct({
    dex: Schema.String,
    user: Schema.String,
    states: Schema.Array(Schema.Tuple([Schema.Natural, Schema.Unknown]))
  }),
  isSteady: true
})

export const orderUpdates = subscription({
  name: "orderUpdates",
  summary: "Orders of a user, when their status changes",
  ...byUser,
  delivery: "events",
  item: OrderUpdate,
  isList: true,
  shown: {},
  rows: { id: updateKey, time: "statusTimestamp", replayed: 0 },
  refill: { query: "historicalOrders", rank: 1, isBrief: true },
  isLogged: true
})

export const userEvents = subscription({
  name: "userEvents",
  channels: ["user"],
  summary: "Fills, funding, liquidations and cancels of a user",
  ...byUser,
  delivery: "events",
  item: openStruct({
    fills: nullish(Schema.Array(Fill)),
    funding: nullish(Funding),
    liquidation: nullish(Schema.Unknown),
    nonUserCancel: nullish(Schema.Array(openStruct({ coin: Schema.String, oid: OrderId }))),
    twapHistory: nullish(Schema.Array(Schema.Unknown)),
    twapSliceFills: nullish(Schema.Array(SliceFill))
  }),
  shown: {},
  rows: { member: "fills", id: fillKey, time: "time", replayed: 0 },
  // of the rows of this subscription, only fills can be queried later
  refill: { query: "userFillsByTime", rank: 0, isPartial: true }
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
  item: openStruct({ user: Schema.String, isSnapshot, fills: Schema.Array(Fill) }),
  shown: shownUser,
  rows: { member: "fills", id: fillKey, time: "time", replayed: 2000 },
  refill: { query: "userFillsByTime", rank: 0 },
  isLogged: true,
  servedQueries: [{ query: "userFills" }],
  example: { user }
})

export const userFundings = subscription({
  name: "userFundings",
  summary: "Funding that a user paid or received",
  ...byUser,
  delivery: "snapshot",
  item: userRows("fundings", Funding),
  // a position, of which an account has one in each coin, is charged once an hour
  rows: { member: "fundings", id: ["time", "coin"], time: "time", replayed: 500 },
  refill: { query: "userFunding", rank: 2 },
  isLogged: true
})

export const userNonFundingLedgerUpdates = subscription({
  name: "userNonFundingLedgerUpdates",
  summary: "Deposits, withdrawals and transfers of a user",
  ...byUser,
  delivery: "snapshot",
  item: userRows(
    "nonFundingLedgerUpdates",
    openStruct({ time: Millis, hash: Schema.String, delta: openStruct({ type: Schema.String }) })
  ),
  // no key: one transaction can make several updates of one type, and some updates have a hash of zeros
  rows: { member: "nonFundingLedgerUpdates", id: [], time: "time", replayed: 500 },
  refill: { query: "userNonFundingLedgerUpdates", rank: 3 },
  isLogged: true
})

export const userHistoricalOrders = subscription({
  name: "userHistoricalOrders",
  summary: "Orders of a user with their status",
  ...byUser,
  delivery: "snapshot",
  item: userRows("orderHistory", OrderUpdate),
  rows: {
    member: "orderHistory",
    id: updateKey,
    time: "statusTimestamp",
    replayed: 2000
  },
  refill: { query: "historicalOrders", rank: 1 }
})

export const userTwapHistory = subscription({
  name: "userTwapHistory",
  summary: "TWAP orders of a user with their status; their time is in seconds",
  ...byUser,
  delivery: "snapshot",
  item: userRows("history", openStruct({ time: Schema.Natural, state: Schema.Unknown, status: Schema.Unknown })),
  // no key: only newer rows have a `twapId`, and several orders can end in one second
  rows: { member: "history", id: [], time: "time", isInSeconds: true, replayed: 500 },
  refill: { query: "twapHistory", rank: 2 }
})

export const userTwapSliceFills = subscription({
  name: "userTwapSliceFills",
  summary: "Fills of the TWAP orders of a user",
  ...byUser,
  delivery: "snapshot",
  item: userRows("twapSliceFills", SliceFill),
  rows: { member: "twapSliceFills", id: fillKey.map((path) => `fill.${path}`), time: "fill.time", replayed: 2000 },
  refill: { query: "userTwapSliceFillsByTime", rank: 2 },
  isLogged: true
})

export const activeAssetData = subscription({
  name: "activeAssetData",
  summary: "Leverage of a user in a perpetual, and the amounts that the user can trade",
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
  servedQueries: [{ query: "activeAssetData", member: "" }],
  example: { user, coin: "BTC" }
})
