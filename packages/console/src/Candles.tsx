/**
 * A chart of candles of any coin and interval, with volume: the forming bar updates, gaps are marked, and scrolling loads older
 * bars.
 */
import { signal, useSignalEffect } from "@preact/signals"
import * as Info from "@trigate/client/Info"
import type { Candle, CandleInterval } from "@trigate/domain/candles/Candle"
import { CandleInterval as Intervals } from "@trigate/domain/candles/Candle"
import * as CandleWindow from "@trigate/domain/candles/CandleWindow"
import type { IChartApi, ISeriesApi, UTCTimestamp } from "lightweight-charts"
import { useEffect, useRef } from "preact/hooks"
import { formTexts } from "./Form.ts"
import * as Gateway from "./Gateway.ts"
import { go, place } from "./Place.ts"

/** The number of bars in one request. */
const stretch = 500

/** The maximum number of bars that the venue returns at a time, and retains. */
const longest = 5000

const shown = signal<ReadonlyArray<Candle>>([])
const failure = signal<string | undefined>(undefined)
const isOldest = signal(false)

const isInterval = (text: string | undefined): text is CandleInterval =>
  Intervals.literals.some((interval) => interval === text)

const wanted = () => {
  const { coin = "BTC", interval } = place.value.params
  return { coin, interval: isInterval(interval) ? interval : "15m" } as const
}

/** Merges bars by open time; later ones replace earlier ones. */
const joined = (...parts: ReadonlyArray<ReadonlyArray<Candle>>): ReadonlyArray<Candle> =>
  [...new Map(parts.flat().map((bar) => [bar.t, bar])).values()].toSorted((one, other) => one.t - other.t)

const windowBefore = (interval: CandleInterval, instant: number, bars: number) => {
  const last = CandleWindow.barAt(interval, instant)
  return { startTime: Math.max(0, CandleWindow.openTime(interval, last - bars + 1)), endTime: instant }
}

const load = async (instant: number, bars: number): Promise<void> => {
  const { coin, interval } = wanted()
  const outcome = await Gateway.run(Info.candleSnapshot({ coin, interval, ...windowBefore(interval, instant, bars) }))
  const { coin: coinNow, interval: intervalNow } = wanted()
  if (coinNow !== coin || intervalNow !== interval) return
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

/** Returns the missing bar numbers between the bars: without trades, or not recorded. */
const findHoles = (interval: CandleInterval, bars: ReadonlyArray<Candle>): ReadonlyArray<number> => {
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

// the library's own type for seconds since 1970 is a branded number
const isTime = (seconds: number): seconds is UTCTimestamp => Number.isFinite(seconds)
const at = (millis: number): ReadonlyArray<UTCTimestamp> => [millis / 1000].filter(isTime)

interface Chart {
  readonly chart: IChartApi
  readonly prices: ISeriesApi<"Candlestick">
  readonly volumes: ISeriesApi<"Histogram">
  /** A band that marks missing bars. */
  readonly holes: ISeriesApi<"Histogram">
}

const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

const make = async (element: HTMLElement): Promise<Chart> => {
  const { CandlestickSeries, createChart, HistogramSeries } = await import("lightweight-charts")
  const chart = createChart(element, {
    autoSize: true,
    layout: {
      attributionLogo: false,
      background: { color: "transparent" },
      textColor: colour("--text"),
      fontFamily: "inherit"
    },
    grid: { vertLines: { color: colour("--line") }, horzLines: { color: colour("--line") } },
    timeScale: { timeVisible: true }
  })
  const band = { priceScaleId: "holes", color: colour("--hole"), priceLineVisible: false, lastValueVisible: false }
  const holes = chart.addSeries(HistogramSeries, band)
  holes.priceScale().applyOptions({ scaleMargins: { top: 0, bottom: 0 } })
  const prices = chart.addSeries(CandlestickSeries, {
    upColor: colour("--good"),
    downColor: colour("--bad"),
    wickUpColor: colour("--good"),
    wickDownColor: colour("--bad"),
    borderVisible: false
  })
  const volumes = chart.addSeries(HistogramSeries, {
    priceFormat: { type: "volume" },
    priceScaleId: "",
    priceLineVisible: false,
    lastValueVisible: false
  })
  volumes.priceScale().applyOptions({ scaleMargins: { top: 0.8, bottom: 0 } })
  return { chart, holes, prices, volumes }
}

const draw = (
  { holes: bands, prices, volumes }: Chart,
  interval: CandleInterval,
  bars: ReadonlyArray<Candle>
): void => {
  const holes = findHoles(interval, bars).flatMap((t) => at(t).map((time) => ({ time })))
  bands.setData(holes.map(({ time }) => ({ time, value: 1 })))
  const byTime = (one: { readonly time: number }, other: { readonly time: number }) => one.time - other.time
  prices.setData([
    ...bars.flatMap(({ c, h, l, o, t }) =>
      at(t).map((time) => ({ time, open: Number(o), high: Number(h), low: Number(l), close: Number(c) }))
    ),
    ...holes
  ].toSorted(byTime))
  volumes.setData([
    ...bars.flatMap(({ c, o, t, v }) =>
      at(t).map((time) => ({ time, value: Number(v), color: colour(Number(c) < Number(o) ? "--down" : "--up") }))
    ),
    ...holes
  ].toSorted(byTime))
}

const countDecimals = (price: string): number => price.split(".")[1]?.replace(/0+$/u, "").length ?? 0

let isLoadingOlder = false

/** Requests the bars before the oldest loaded one. */
const loadOlder = async (): Promise<void> => {
  const [first] = shown.value
  if (first === undefined || isLoadingOlder || isOldest.value) return
  isLoadingOlder = true
  await load(first.t - 1, stretch)
  isLoadingOlder = false
}

/** Requests older bars when the user scrolls near the oldest one. */
const loadAhead = ({ chart }: Chart): void =>
  chart.timeScale().subscribeVisibleLogicalRangeChange((range) => {
    if (range !== null && range.from <= 20) void loadOlder()
  })

/** Draws the bars whenever they change, until it is stopped; scrolls to the newest bars of another coin or interval. */
const follow = (plot: Chart): () => void => {
  let fitted = ""
  // the chart begins with a default range, for which no bars must be fetched
  let isAhead = false
  return shown.subscribe((bars) => {
    const { coin, interval } = wanted()
    draw(plot, interval, bars)
    if (bars.length === 0 || fitted === `${coin} ${interval}`) return
    fitted = `${coin} ${interval}`
    const precision = Math.max(...bars.map(({ c }) => countDecimals(c)))
    plot.prices.applyOptions({ priceFormat: { type: "price", precision, minMove: 10 ** -precision } })
    plot.chart.timeScale().setVisibleLogicalRange({ from: bars.length - 120, to: bars.length + 5 })
    if (!isAhead) loadAhead(plot)
    isAhead = true
  })
}

const Plot = () => {
  const element = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const ended = new AbortController()
    const begin = async (place: HTMLElement): Promise<void> => {
      const plot = await make(place)
      if (ended.signal.aborted) return plot.chart.remove()
      const stop = follow(plot)
      ended.signal.addEventListener("abort", () => {
        stop()
        plot.chart.remove()
      })
    }
    if (element.current !== null) void begin(element.current)
    return () => ended.abort()
  }, [])
  return (
    <div class="plot" ref={element} role="img" aria-label="Candlestick chart; the table below has its newest bars" />
  )
}

/** The summary under the chart; it does not mention missing bars if none could be read. */
const summarize = (bars: number, holes: number, isFailed: boolean): string => {
  if (bars === 0) return isFailed ? "No bars: the last query failed" : "Reading …"
  const missing = holes === 0
    ? "none missing between them"
    : `${holes} missing between them (shaded): no trades, or not recorded`
  return `${bars} bars${isFailed ? " as of the last query that succeeded" : ""}, ${missing}; all times are UTC`
}

const scheme = matchMedia("(prefers-color-scheme: dark)")
const isDark = signal(scheme.matches)
scheme.addEventListener("change", () => {
  isDark.value = scheme.matches
})

/** The panel. */
export const Candles = () => {
  const { coin, interval } = wanted()
  useSignalEffect(() => {
    wanted()
    shown.value = []
    isOldest.value = false
    void load(Date.now(), stretch)
  })
  useEffect(() => {
    // the forming bar and the previous one, which may have closed meanwhile
    const timer = setInterval(() => document.hidden ? undefined : void load(Date.now(), 2), 2000)
    return () => clearInterval(timer)
  }, [])
  const bars = shown.value
  const holes = findHoles(interval, bars).length
  const newest = bars.slice(-5).toReversed()
  return (
    <section class="card" aria-labelledby="candles-title">
      <h2 id="candles-title">{coin} {interval}</h2>
      <form
        class="row"
        onSubmit={(event) => go("candles", formTexts(event))}
      >
        <label>
          Coin <input name="coin" defaultValue={coin} key={coin} required size={12} spellcheck={false} />
        </label>
        <label>
          Interval{" "}
          <select name="interval" value={interval} onChange={(event) => event.currentTarget.form?.requestSubmit()}>
            {Intervals.literals.map((each) => <option key={each} value={each}>{each}</option>)}
          </select>
        </label>
        <button type="submit">Show</button>
        <button type="button" class="plain" disabled={isOldest.value} onClick={() => void loadOlder()}>
          Older bars
        </button>
      </form>
      {failure.value === undefined ? null : <p class="bad" role="alert">{failure.value}</p>}
      <Plot key={String(isDark.value)} />
      <p class="muted credit">
        Chart: <a href="https://www.tradingview.com/" rel="noreferrer">TradingView Lightweight Charts™</a>
      </p>
      <p class="muted" aria-live="polite">
        {summarize(bars.length, holes, failure.value !== undefined)}
        {isOldest.value ? "; there are no older ones" : ""}
      </p>
      <div class="scroll" tabIndex={0} role="region" aria-label="Newest bars">
        <table>
          <caption>Newest bars, times in UTC</caption>
          <thead>
            <tr>
              {["Open time", "Open", "High", "Low", "Close", "Volume", "Trades"].map((name) => (
                <th scope="col" key={name}>{name}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {newest.map(({ c, h, l, n, o, t, v }) => (
              <tr key={t}>
                <th scope="row">{new Date(t).toISOString().slice(0, 16).replace("T", " ")}</th>
                {[o, h, l, c, v, String(n)].map((cell, index) => <td key={index}>{cell}</td>)}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}
