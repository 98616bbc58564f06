/** The subscriptions of markets: prices, books, trades and bars. */
import * as Schema from "effect/Schema"
import { Candle, CandleInterval, DecimalString } from "../candles/Candle.ts"
import { Millis, nullish, openStruct } from "../encoding/Encoding.ts"
import { AllMids, AssetContext, BookLevel, Trade } from "../info/Market.ts"
import { Coin, nothing, ofCoin, ofDex, off, orElse, subscription } from "./Subscription.ts"

const byDex = { about: "market", request: ofDex, shown: { dex: "dex" }, example: {} } as const
const byCoin = { about: "market", request: ofCoin, shown: { coin: "coin" }, example: { coin: "BTC" } } as const
const withoutMembers = { about: "market", request: nothing, shown: {}, example: {} } as const

export const allMids = subscription({
  name: "allMids",
  summary: "Mid prices of all coins of a dex",
  ...byDex,
  delivery: "state",
  item: openStruct({ mids: AllMids, dex: nullish(Schema.String) }),
  isSteady: true
})

export const l2Book = subscription({
  name: "l2Book",
  summary: "The order book of a coin: 20 prices per side. If `fast` is set: 5 prices per side, at ten times the rate",
  about: "market",
  delivery: "state",
  request: Schema.Struct({
    coin: Coin,
    nSigFigs: orElse(
      Schema.NullOr(
        Schema.Literals([2, 3, 4, 5]).annotate({
          description: "Number of significant digits to which prices are aggregated"
        })
      ),
      null
    ),
    mantissa: orElse(
      Schema.NullOr(
        Schema.Literals([2, 5]).annotate({
          description: "Step of a price's last significant digit; allowed only if `nSigFigs` is 5"
        })
      ),
      null
    ),
    fast: off
  }).check(
    Schema.makeFilter(({ mantissa, nSigFigs }) =>
      mantissa === null || nSigFigs === 5 ? undefined : "mantissa requires nSigFigs 5"
    )
  ),
  item: openStruct({
    coin: Schema.String,
    time: Millis,
    levels: Schema.Tuple([Schema.Array(BookLevel), Schema.Array(BookLevel)]),
    spread: nullish(DecimalString)
  }),
  shown: { coin: "coin" },
  isSteady: true,
  example: { coin: "BTC" }
})

export const bbo = subscription({
  name: "bbo",
  summary: "The best bid and ask of a coin, sent when one of them changes",
  ...byCoin,
  delivery: "state",
  item: openStruct({
    coin: Schema.String,
    time: Millis,
    bbo: Schema.Tuple([Schema.NullOr(BookLevel), Schema.NullOr(BookLevel)])
  })
})

export const trades = subscription({
  name: "trades",
  summary: "The latest trades of a coin, then each new trade",
  ...byCoin,
  delivery: "events",
  item: Trade,
  isList: true,
  shown: { coin: "0.coin" },
  // the venue documents `tid` as a 50-bit hash of the buyer's and the seller's order, and this triple as unique
  rows: { id: ["time", "coin", "tid"], time: "time", replayed: 30 }
})

export const candle = subscription({
  name: "candle",
  summary: "The forming bar of a coin and interval, sent when the bar changes",
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
  ...byCoin,
  delivery: "state",
  item: openStruct({
    coin: Schema.String,
    ctx: openStruct({
      prevDayPx: DecimalString,
      dayNtlVlm: DecimalString,
      markPx: DecimalString,
      midPx: nullish(DecimalString)
    })
  }),
  isSteady: true
})

export const assetCtxs = subscription({
  name: "assetCtxs",
  summary: "Prices, funding and open interest of all perpetuals of a dex, in the order of the query `meta`",
  ...byDex,
  delivery: "state",
  item: openStruct({ dex: nullish(Schema.String), ctxs: Schema.Array(AssetContext) })
})

export const spotAssetCtxs = subscription({
  name: "spotAssetCtxs",
  summary: "Prices of all spot pairs, in the order of their listing",
  ...withoutMembers,
  delivery: "state",
  item: Schema.Unknown
})

export const allDexsAssetCtxs = subscription({
  name: "allDexsAssetCtxs",
  summary: "Prices of the perpetuals of all dexes, grouped by dex",
  ...withoutMembers,
  delivery: "state",
  item: openStruct({ ctxs: Schema.Array(Schema.Tuple([Schema.String, Schema.Array(AssetContext)])) }),
  isSteady: true
})

export const fastAssetCtxs = subscription({
  name: "fastAssetCtxs",
  summary: "Mark and mid prices as base64 of raw DEFLATE: all coins in the first frame, changed prices in later frames",
  ...withoutMembers,
  delivery: "events",
  item: Schema.String,
  isUnshared: true
})

export const outcomeMetaUpdates = subscription({
  name: "outcomeMetaUpdates",
  summary: "Changes in the list of outcome markets",
  ...withoutMembers,
  delivery: "events",
  item: Schema.Unknown
})
