/**
 * The bars of the coin and interval in the page's URL: the newest bars, older bars on demand, and the changes of the
 * forming bar (the bar that has not closed).
 */
import { computed, signal } from "@preact/signals"
import * as Info from "@trigate/client/Info"
import { Candle, CandleInterval } from "@trigate/domain/candles/Candle"
import * as CandleWindow from "@trigate/domain/candles/CandleWindow"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Events from "../Events.ts"
import * as Gateway from "../Gateway.ts"
import { place } from "../Place.ts"

/** The number of bars that one query requests. */
const stretch = 500

/** The number of bars that the venue retains for a coin and interval. It is also the maximum in one response. */
const longest = 5000

/** Milliseconds between two queries for the forming bar while the stream is not connected. */
const pollEvery = 2000

/** Milliseconds without a frame after which the forming bar is queried although the stream is connected. */
const silence = 10_000

/** The loaded bars, oldest first. */
export const shown = signal<ReadonlyArray<Candle>>([])

const hasBars = computed(() => shown.value.length > 0)

/** The error of the latest query. */
export const failure = signal<string | undefined>(undefined)

/** Whether the venue has no bars before the loaded ones. */
export const isOldest = signal(false)

const isInterval = (text: string | undefined): text is CandleInterval =>
  CandleInterval.literals.some((interval) => interval === text)

/** Returns the coin and interval in the page's URL. */
export const wanted = () => {
  const { coin = "BTC", interval } = place.value.params
  return { coin, interval: isInterval(interval) ? interval : "15m" } as const
}

const isWanted = (coin: string, interval: string): boolean => wanted().coin === coin && wanted().interval === interval

/** Merges bars by open time. If several bars have the same open time, the last one wins. */
const joined = (...parts: ReadonlyArray<ReadonlyArray<Candle>>): ReadonlyArray<Candle> =>
  [...new Map(parts.flat().map((bar) => [bar.t, bar])).values()].toSorted((one, other) => one.t - other.t)

const windowBefore = (interval: CandleInterval, instant: number, bars: number) => {
  const last = CandleWindow.barAt(interval, instant)
  return { startTime: Math.max(0, CandleWindow.openTime(interval, last - bars + 1)), endTime: instant }
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
  shown.value = joined(shown.value, candles)
}

/** Replaces the loaded bars with the newest bars of the coin and interval in the page's URL. */
export const begin = (): void => {
  wanted()
  shown.value = []
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
    if (Option.isNone(frame)) return
    updatedAt = Date.now()
    shown.value = joined(shown.value, [frame.value.data])
  }
  const source = hasBars.value ? Events.follow([{ type: "candle", coin, interval }], onFrame) : undefined
  const timer = setInterval(() => {
    const isStreaming = source?.isOpen() === true
    if (document.hidden || Date.now() - updatedAt < (isStreaming ? silence : pollEvery)) return
    updatedAt = Date.now()
    // two bars, because the previous one could have closed since the last update
    void load(updatedAt, 2)
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
  const from = CandleWindow.barAt(interval, first.t)
  const count = CandleWindow.barAt(interval, last.t) - from + 1
  return Array.from({ length: count }, (_, at) => CandleWindow.openTime(interval, from + at)).filter((t) =>
    !there.has(t)
  )
}
