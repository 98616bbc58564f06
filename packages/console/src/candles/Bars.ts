/** The bars of the coin and interval in the page's URL, and the account that the chart marks. */
import { computed, signal } from "@preact/signals"
import * as Info from "@trigate/client/Info"
import * as Sandbox from "@trigate/client/Sandbox"
import { barAt, Candle, CandleInterval, openTime } from "@trigate/domain/candles/Candle"
import { Address, millisBetween } from "@trigate/domain/encoding/Encoding"
import { trader } from "@trigate/domain/unstable/Sandbox"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as AccountState from "../account/AccountState.tsx"
import * as Gateway from "../Gateway.ts"
import * as Live from "../Live.ts"

/** The account of a URL without one: the sandbox's trader in a sandbox, otherwise an empty string. */
export const byDefault = computed(() => Live.isSandbox.value === true ? trader.address : "")

/** The account in the page's URL, or the default account. It might not be an address, because it is not validated. */
export const account = computed(() => Gateway.place.value.params["account"] ?? byDefault.value)

const isAddress = Schema.is(Address)

/** Follows the account in the page's URL, if it is an address. Returns a function that ends this. */
export const followAccount = (): () => void => {
  const user = account.value
  return isAddress(user) ? AccountState.follow(user) : () => undefined
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
  const { coin = "ETH", interval } = Gateway.place.value.params
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

/** Milliseconds from the machine's time to the venue's, which is ahead in a sandbox whose clock was advanced. */
let ahead = 0

const now = (): number => Gateway.now() + ahead

const readAhead = async (): Promise<void> => {
  const outcome = await Gateway.run(Sandbox.status())
  ahead = "value" in outcome ? outcome.value.time - Gateway.now() : 0
}

/** Loads the newest bars of the coin and interval in the page's URL. */
export const loadNewest = async (): Promise<void> => {
  if (Live.isSandbox.peek() === true) await readAhead()
  await load(now(), stretch)
}

/** Replaces the loaded bars with the newest bars of the coin and interval in the page's URL. */
export const begin = (): void => {
  loaded.value = { ...wanted(), bars: [] }
  isOldest.value = false
  // a sandbox has a clock of its own
  if (Live.isSandbox.value !== undefined) void loadNewest()
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
  let updatedAt = Gateway.elapsed()
  const onFrame = (text: string) => {
    const frame = decodeFrame(text)
    if (Option.isNone(frame) || !isWanted(coin, interval)) return
    updatedAt = Gateway.elapsed()
    add(coin, interval, [frame.value.data])
  }
  const source = hasBars.value ? Gateway.follow([{ type: "candle", coin, interval }], onFrame) : undefined
  const timer = setInterval(() => {
    const isStreaming = source?.isOpen() === true
    if (document.hidden || millisBetween(updatedAt, Gateway.elapsed()) < (isStreaming ? silence : pollEvery)) return
    updatedAt = Gateway.elapsed()
    // two bars, because the previous one could have closed since the last update; all of them if none was read
    void load(now(), hasBars.peek() ? 2 : stretch)
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
