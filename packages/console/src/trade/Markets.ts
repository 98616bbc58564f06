/** The book, the trades and the prices of the coin in the page's URL. */
import { computed, signal } from "@preact/signals"
import { Book, type BookLevel, Trade } from "@trigate/domain/info/Market"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { wanted } from "../candles/Bars.ts"
import * as Gateway from "../Gateway.ts"
import { coins } from "./Coins.tsx"

/** The coin in the page's URL; `undefined` until the coins are loaded, and for an unknown coin. */
export const chosen = computed(() => {
  const { coin } = wanted()
  return coins.value.find((each) => each.coin === coin)
})

/** The prices of a coin. Those without a member of spot are absent for spot. */
const Context = Schema.Struct({
  markPx: Schema.String,
  prevDayPx: Schema.String,
  dayNtlVlm: Schema.String,
  midPx: Schema.optionalKey(Schema.NullOr(Schema.String)),
  oraclePx: Schema.optionalKey(Schema.String),
  funding: Schema.optionalKey(Schema.String),
  openInterest: Schema.optionalKey(Schema.String)
})
type Context = typeof Context.Type

/** The market of one coin. */
interface Market {
  readonly coin: string
  /** Bids, then asks, best price first. */
  readonly levels: readonly [ReadonlyArray<BookLevel>, ReadonlyArray<BookLevel>]
  /** The newest trades, newest first. */
  readonly trades: ReadonlyArray<Trade>
  readonly context: Context | undefined
}

const unread = (coin: string): Market => ({ coin, levels: [[], []], trades: [], context: undefined })

const current = signal(unread(""))

/** The market of the coin in the page's URL. It is empty until the first frames arrive. */
export const market = computed(() => current.value.coin === wanted().coin ? current.value : unread(wanted().coin))

/** The mid price of the coin in the page's URL; `undefined` until it is known. */
export const mid = computed(() => {
  const [[bid], [ask]] = market.value.levels
  return bid === undefined || ask === undefined ? undefined : (Number(bid.px) + Number(ask.px)) / 2
})

const decodeFrame = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Union([
  Schema.Struct({ channel: Schema.Literal("l2Book"), data: Book }),
  Schema.Struct({ channel: Schema.Literal("trades"), data: Schema.Array(Trade) }),
  Schema.Struct({
    channel: Schema.Literals(["activeAssetCtx", "activeSpotAssetCtx"]),
    data: Schema.Struct({ coin: Schema.String, ctx: Context })
  })
])))

/** Number of levels on each side in a fast frame of a book. */
const fastLevels = 5

/**
 * Merges the new levels of one side. A fast frame has only the best levels; behind these the levels of the last whole
 * book remain.
 */
const mergeSide = (
  before: ReadonlyArray<BookLevel>,
  now: ReadonlyArray<BookLevel>,
  isBehind: (price: number, last: number) => boolean
): ReadonlyArray<BookLevel> => {
  const last = now.at(-1)
  if (last === undefined || now.length > fastLevels) return now
  return [...now, ...before.filter(({ px }) => isBehind(Number(px), Number(last.px)))]
}

/** Maximum number of stored trades. */
const mostTrades = 60

const apply = (coin: string, text: string): void => {
  const frame = decodeFrame(text)
  if (Option.isNone(frame) || wanted().coin !== coin) return
  const before = market.value
  const { channel, data } = frame.value
  switch (channel) {
    case "l2Book": {
      const [bids, asks] = data.levels
      const levels = [
        mergeSide(before.levels[0], bids, (price, last) => price < last),
        mergeSide(before.levels[1], asks, (price, last) => price > last)
      ] as const
      current.value = { ...before, levels }
      break
    }
    case "trades": {
      const trades = [
        ...new Map([...before.trades, ...data].map((trade) => [`${trade.tid} ${trade.time}`, trade])).values()
      ]
        .toSorted((one, other) => other.time - one.time)
      current.value = { ...before, trades: trades.slice(0, mostTrades) }
      break
    }
    default:
      current.value = { ...before, context: data.ctx }
  }
}

/** Follows the market of the coin in the page's URL until the returned function is called. */
export const follow = (): () => void => {
  const { coin } = wanted()
  return Gateway.follow([
    { type: "l2Book", coin },
    { type: "l2Book", coin, fast: true },
    { type: "trades", coin },
    { type: "activeAssetCtx", coin }
  ], (text) => apply(coin, text)).stop
}
