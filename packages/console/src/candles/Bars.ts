/** The bars of the coin and interval in the page's URL, and the orders and fills of an account that the chart marks. */
import { computed, signal } from "@preact/signals"
import * as Info from "@trigate/client/Info"
import { barAt, Candle, CandleInterval, openTime } from "@trigate/domain/candles/Candle"
import { Address } from "@trigate/domain/encoding/Encoding"
import type { Fill, OpenOrder } from "@trigate/domain/info/Account"
import { trader } from "@trigate/domain/unstable/Sandbox"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Gateway from "../Gateway.ts"
import * as Live from "../Live.ts"

/** Milliseconds between two queries, each of which costs API weight. */
const pollAccountEvery = 10_000

/** The account's orders and fills in all coins. */
export const marked = signal<{ readonly orders: ReadonlyArray<OpenOrder>; readonly fills: ReadonlyArray<Fill> }>({
  orders: [],
  fills: []
})

/** The default account: the sandbox's trader in a sandbox, otherwise an empty string. */
export const byDefault = computed(() => Live.readiness.value?.sandbox === true ? trader.address : "")

/** The account in the page's URL, or the default account. It might not be an address, because it is not validated. */
export const account = computed(() => Gateway.place.value.params["account"] ?? byDefault.value)

const isAddress = Schema.is(Address)

/** Polls the orders and fills of the account in the page's URL. Returns a function that stops the polling. */
export const followAccount = (): () => void => {
  const user = account.value
  marked.value = { orders: [], fills: [] }
  if (!isAddress(user)) return () => undefined
  const read = async (): Promise<void> => {
    if (document.hidden) return
    const outcome = await Gateway.run(
      Effect.all({ orders: Info.openOrders({ user }), fills: Info.userFills({ user }) })
    )
    if ("value" in outcome && account.value === user) marked.value = outcome.value
  }
  void read()
  const timer = setInterval(() => void read(), pollAccountEvery)
  return () => clearInterval(timer)
}

/** The number of bars that one query requests. */
const stretch = 500

/** The number of bars that the venue retains for a coin and interval. It is also the maximum in one response. */
const longest = 5000

/** Milliseconds between two queries for the forming bar while the stream is not connected. */
const pollEvery = 2000

/** Milliseconds without a frame after which the forming bar is queried although the stream is connected. */
const silence = 10_000

/** The error of the latest query. */
export const failure = signal<string | undefined>(undefined)

/** Whether the venue has no bars before the loaded ones. */
export const isOldest = signal(false)

const isInterval = (text: string | undefined): text is CandleInterval =>
  CandleInterval.literals.some((interval) => interval === text)

/** Returns the coin and interval in the page's URL. */
export const wanted = () => {
  const { coin = "BTC", interval } = Gateway.place.value.params
  return { coin, interval: isInterval(interval) ? interval : "15m" } as const
}

const isWanted = (coin: string, interval: string): boolean => wanted().coin === coin && wanted().interval === interval

/** Bars, and the coin and interval to which they belong. */
interface Loaded {
  readonly coin: string
  readonly interval: string
  readonly bars: ReadonlyArray<Candle>
}

const loaded = signal<Loaded>({ coin: "", interval: "", bars: [] })

/**
 * The loaded bars of the coin and interval in the page's URL, oldest first. Empty until the bars of a new coin or
 * interval have been read.
 */
export const shown = computed(() => isWanted(loaded.value.coin, loaded.value.interval) ? loaded.value.bars : [])

const hasBars = computed(() => shown.value.length > 0)

/** Merges bars by open time. If several bars have the same open time, the last one wins. */
const joined = (...parts: ReadonlyArray<ReadonlyArray<Candle>>): ReadonlyArray<Candle> =>
  [...new Map(parts.flat().map((bar) => [bar.t, bar])).values()].toSorted((one, other) => one.t - other.t)

/** Adds bars of the coin and interval in the page's URL to the loaded ones. */
const add = (coin: string, interval: string, bars: ReadonlyArray<Candle>): void => {
  loaded.value = { coin, interval, bars: joined(shown.value, bars) }
}

const windowBefore = (interval: CandleInterval, instant: number, bars: number) => {
  const last = barAt(interval, instant)
  return { startTime: Math.max(0, openTime(interval, last - bars + 1)), endTime: instant }
}

const load = async (instant: number, bars: number): Promise<void> => {
  const { coin, interval } = wanted()
  const outcome = await Gateway.run(Info.candleSnapshot({ coin, interval, ...windowBefore(interval, instant, bars) }))
  if (!isWanted(coin, interval)) return
  if ("failure" in outcome) {
    failure.value = outcome.failure
    return
  }
  failure.value = undefined
  const { candles } = outcome.value
  if (candles.length === 0 && shown.value.length > 0) {
    if (bars < longest) return load(instant, longest)
    isOldest.value = true
  }
  add(coin, interval, candles)
}

/** Replaces the loaded bars with the newest bars of the coin and interval in the page's URL. */
export const begin = (): void => {
  loaded.value = { ...wanted(), bars: [] }
  isOldest.value = false
  void load(Date.now(), stretch)
}

let isLoadingOlder = false

/** Loads the bars before the oldest loaded one. */
export const loadOlder = async (): Promise<void> => {
  const [first] = shown.value
  if (first === undefined || isLoadingOlder || isOldest.value) return
  isLoadingOlder = true
  await load(first.t - 1, stretch)
  isLoadingOlder = false
}

const decodeFrame = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Struct({ data: Candle })))

/**
 * Follows the forming bar through the gateway's stream of bars until the returned function is called. Queries the bar
 * while the stream is silent.
 */
export const follow = (): () => void => {
  const { coin, interval } = wanted()
  let updatedAt = Date.now()
  const onFrame = (text: string) => {
    const frame = decodeFrame(text)
    if (Option.isNone(frame) || !isWanted(coin, interval)) return
    updatedAt = Date.now()
    add(coin, interval, [frame.value.data])
  }
  const source = hasBars.value ? Gateway.follow([{ type: "candle", coin, interval }], onFrame) : undefined
  const timer = setInterval(() => {
    const isStreaming = source?.isOpen() === true
    if (document.hidden || Date.now() - updatedAt < (isStreaming ? silence : pollEvery)) return
    updatedAt = Date.now()
    // two bars, because the previous one could have closed since the last update; all of them if none was read
    void load(updatedAt, hasBars.peek() ? 2 : stretch)
  }, pollEvery)
  return () => {
    clearInterval(timer)
    source?.stop()
  }
}

/**
 * Returns the open times of bars that are missing between the loaded bars. Such a bar had no trades, or was not
 * recorded.
 */
export const findHoles = (interval: CandleInterval, bars: ReadonlyArray<Candle>): ReadonlyArray<number> => {
  const [first] = bars
  const last = bars.at(-1)
  if (first === undefined || last === undefined) return []
  const there = new Set(bars.map(({ t }) => t))
  const from = barAt(interval, first.t)
  const count = barAt(interval, last.t) - from + 1
  return Array.from({ length: count }, (_, at) => openTime(interval, from + at)).filter((t) => !there.has(t))
}
