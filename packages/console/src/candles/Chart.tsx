/**
 * The chart: bars with their volume, shading where bars are missing, and the orders, fills and entry price of an
 * account.
 */
import { computed, effect, signal } from "@preact/signals"
import { barAt, type Candle, CandleInterval, openTime } from "@trigate/domain/candles/Candle"
import type * as Charts from "lightweight-charts"
import type { ComponentChildren } from "preact"
import { useEffect, useRef } from "preact/hooks"
import { current, waitingPrice } from "../account/AccountState.tsx"
import { linkTo, place } from "../Gateway.ts"
import * as Words from "../Table.tsx"
import * as Bars from "./Bars.ts"

/** The open time of the bar under the pointer. */
const pointed = signal<number | undefined>(undefined)

/** The open times of the first and the last bar in view. */
const visible = signal<{ readonly from: number; readonly to: number } | undefined>(undefined)

/** Whether the price scale is logarithmic. */
export const isLogarithmic = signal(false)

// the library's own type for seconds since 1970 is a branded number
const isTime = (seconds: number): seconds is Charts.UTCTimestamp => Number.isFinite(seconds)
const at = (millis: number): ReadonlyArray<Charts.UTCTimestamp> => [millis / 1000].filter(isTime)

interface Chart {
  readonly chart: Charts.IChartApi
  readonly prices: Charts.ISeriesApi<"Candlestick">
  readonly volumes: Charts.ISeriesApi<"Histogram">
  /** The series that shades the times of missing bars. */
  readonly holes: Charts.ISeriesApi<"Histogram">
  readonly fills: Charts.ISeriesMarkersPluginApi<Charts.Time>
  /** Modes of the price scale. */
  readonly modes: { readonly normal: number; readonly logarithmic: number }
}

const colour = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

const make = async (element: HTMLElement): Promise<Chart> => {
  const { CandlestickSeries, createChart, createSeriesMarkers, HistogramSeries, PriceScaleMode } = await import(
    "lightweight-charts"
  )
  const chart = createChart(element, {
    autoSize: true,
    layout: {
      attributionLogo: false,
      background: { color: "transparent" },
      textColor: colour("--soft"),
      fontFamily: "inherit",
      fontSize: 11
    },
    rightPriceScale: { borderColor: colour("--line") },

    grid: { vertLines: { color: colour("--line") }, horzLines: { color: colour("--line") } },
    timeScale: { timeVisible: true, borderColor: colour("--line") }
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
  // the volume has the lowest fifth of the chart to itself
  prices.priceScale().applyOptions({ scaleMargins: { top: 0.06, bottom: 0.24 } })
  const volumes = chart.addSeries(HistogramSeries, {
    priceFormat: { type: "volume" },
    priceScaleId: "",
    priceLineVisible: false,
    lastValueVisible: false
  })
  volumes.priceScale().applyOptions({ scaleMargins: { top: 0.8, bottom: 0 } })
  chart.subscribeCrosshairMove(({ time }) => {
    pointed.value = typeof time === "number" ? time * 1000 : undefined
  })
  chart.timeScale().subscribeVisibleTimeRangeChange((range) => {
    visible.value = typeof range?.from === "number" && typeof range.to === "number"
      ? { from: range.from * 1000, to: range.to * 1000 }
      : undefined
  })
  const modes = { normal: PriceScaleMode.Normal, logarithmic: PriceScaleMode.Logarithmic }
  return { chart, holes, prices, volumes, fills: createSeriesMarkers(prices), modes }
}

const drawBars = (
  { holes: bands, prices, volumes }: Chart,
  interval: CandleInterval,
  bars: ReadonlyArray<Candle>
): void => {
  const holes = Bars.findHoles(interval, bars).flatMap((t) => at(t).map((time) => ({ time })))
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

/** The open orders, the fills and the entry prices of the followed account. */
const marks = computed(() => {
  const { fills, orders, perpetuals } = current.value ?? { fills: [], orders: [], perpetuals: { assetPositions: [] } }
  return {
    fills,
    orders,
    entries: perpetuals.assetPositions.map(({ position: { coin, entryPx, szi } }) => ({
      coin,
      price: entryPx ?? "",
      size: szi
    }))
  }
})

/** Describes what the chart marks for the coin in the page's URL. */
const describeMarks = (): string => {
  const { coin } = Bars.wanted()
  const { entries, fills, orders } = marks.value
  const of = <A extends { readonly coin: string }>(all: ReadonlyArray<A>) => all.filter((each) => each.coin === coin)
  const count = of(fills).length
  return [
    ...of(entries).map(({ price, size }) => `; entry of ${Words.size(size)} at ${Words.decimal(price)}`),
    ...of(orders).map((order) =>
      `; order to ${order.side === "B" ? "buy" : "sell"} ${Words.size(order.sz)} at ${
        Words.decimal(waitingPrice(order))
      }`
    ),
    count === 0 ? "" : `; ${count} ${count === 1 ? "fill" : "fills"}`
  ].join("")
}

/** Marks the account's fills of the coin at their bars: buys below, sells above. */
const drawFills = ({ fills }: Chart, coin: string, interval: CandleInterval, bars: ReadonlyArray<Candle>): void => {
  const there = new Set(bars.map(({ t }) => t))
  fills.setMarkers(
    marks.value.fills.filter((fill) => fill.coin === coin)
      .map(({ side, sz, time }) => ({
        isBuy: side === "B",
        sz,
        open: openTime(interval, barAt(interval, time))
      }))
      .filter(({ open }) => there.has(open))
      .toSorted((one, other) => one.open - other.open)
      .flatMap(({ isBuy, open, sz }) =>
        at(open).map((time): Charts.SeriesMarker<Charts.Time> => ({
          time,
          position: isBuy ? "belowBar" : "aboveBar",
          shape: isBuy ? "arrowUp" : "arrowDown",
          color: colour("--accent"),
          text: Words.size(sz)
        }))
      )
  )
}

/** Draws a line for each open order of the coin, and for the entry price of its position; returns the lines. */
const drawLines = ({ prices }: Chart, coin: string): ReadonlyArray<Charts.IPriceLine> => [
  ...marks.value.orders.filter((order) => order.coin === coin).map((order) =>
    prices.createPriceLine({
      price: Number(waitingPrice(order)),
      color: colour(order.side === "B" ? "--good" : "--bad"),
      lineWidth: 1,
      lineStyle: 2,
      title: `${order.side === "B" ? "buy" : "sell"} ${Words.size(order.sz)}`
    })
  ),
  ...marks.value.entries.filter((entry) => entry.coin === coin).map(({ price, size }) =>
    prices.createPriceLine({
      price: Number(price),
      color: colour("--accent"),
      lineWidth: 1,
      lineStyle: 0,
      title: `entry ${Words.size(size)}`
    })
  )
]

const countDecimals = (price: string): number => price.split(".")[1]?.replace(/0+$/u, "").length ?? 0

/** Requests older bars when the user scrolls near the oldest one. */
const loadAhead = ({ chart }: Chart): void =>
  chart.timeScale().subscribeVisibleLogicalRangeChange((range) => {
    if (range !== null && range.from <= 20) void Bars.loadOlder()
  })

/**
 * Redraws the chart when its data change. Returns a function that stops the redrawing. Scrolls to the newest bars when
 * the bars of another coin or interval have been read.
 */
const follow = (plot: Chart): () => void => {
  let isFitted = false
  // the chart starts with a default range; older bars are not loaded for this range
  let isAhead = false
  const stopBars = effect(() => {
    const bars = Bars.shown.value
    drawBars(plot, Bars.wanted().interval, bars)
    const isShown = isFitted
    // a new coin or interval has no bars at first
    isFitted = bars.length > 0
    if (isShown || !isFitted) return
    const precision = Math.max(...bars.map(({ c }) => countDecimals(c)))
    plot.prices.applyOptions({ priceFormat: { type: "price", precision, minMove: 10 ** -precision } })
    plot.chart.applyOptions({ localization: { priceFormatter: (price: number) => Words.fixed(price, precision) } })
    plot.chart.timeScale().setVisibleLogicalRange({ from: bars.length - 120, to: bars.length + 5 })
    if (!isAhead) loadAhead(plot)
    isAhead = true
  })
  const stopFills = effect(() => {
    const { coin, interval } = Bars.wanted()
    drawFills(plot, coin, interval, Bars.shown.value)
  })
  const stopLines = effect(() => {
    const lines = drawLines(plot, Bars.wanted().coin)
    return () => {
      for (const line of lines) plot.prices.removePriceLine(line)
    }
  })
  const stopScale = effect(() => {
    plot.prices.priceScale().applyOptions({ mode: isLogarithmic.value ? plot.modes.logarithmic : plot.modes.normal })
  })
  return () => {
    for (const stop of [stopBars, stopFills, stopLines, stopScale]) stop()
  }
}

const scheme = matchMedia("(prefers-color-scheme: dark)")
const isDark = signal(scheme.matches)
scheme.addEventListener("change", () => {
  isDark.value = scheme.matches
})

const Plot = ({ children, table }: { readonly table: string; readonly children?: ComponentChildren }) => {
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
  const range = visible.value
  const view = range === undefined ? "" : ` from ${Words.instant(range.from)} to ${Words.instant(range.to)} UTC`
  return (
    <>
      <div class="plot" ref={element} role="img" aria-label={`Candlestick chart${view}${describeMarks()}; ${table}`} />
      <p class="muted credit">
        {children} Chart: <a href="https://www.tradingview.com/" rel="noreferrer">TradingView Lightweight Charts™</a>
      </p>
    </>
  )
}

/**
 * Renders the chart in its own element, anew when the colour scheme changes. `table` states where its values are as
 * text; `children` are shown below it.
 */
export const Chart = (props: Parameters<typeof Plot>[0]) => <Plot key={String(isDark.value)} {...props} />

/** Returns the parameters of the page's URL with the changes in `changed`. */
export const linked = (changed: { readonly [name: string]: string }) => {
  const { account, ...bars } = { ...Bars.wanted(), account: Bars.account.value, ...changed }
  return account === Bars.byDefault.value ? bars : { ...bars, account }
}

/** The links to the intervals, in the same panel. */
export const Intervals = ({ intervals = CandleInterval.literals }: {
  readonly intervals?: ReadonlyArray<CandleInterval>
}) => (
  <nav class="intervals" aria-label="Interval">
    {intervals.map((each) => (
      <a
        key={each}
        href={linkTo(place.value.panel, linked({ interval: each }))}
        aria-current={each === Bars.wanted().interval ? "true" : undefined}
      >
        {each}
      </a>
    ))}
  </nav>
)

const change = ({ c, o }: Candle): string => {
  const percent = (Number(c) / Number(o) - 1) * 100
  return `${Words.signed(percent)} %`
}

/** Shows the bar under the pointer. If there is no such bar, shows the newest bar. */
export const Legend = () => {
  const bars = Bars.shown.value
  const bar = bars.find(({ t }) => t === pointed.value) ?? bars.at(-1)
  if (bar === undefined) return null
  const { c, h, l, o, t, v } = bar
  return (
    <p class="legend">
      <span class="muted">{Words.instant(t)} UTC</span>
      {Object.entries({ O: o, H: h, L: l, C: c, V: v }).map(([name, value]) => (
        <span key={name}>
          <span class="muted">{name}</span> {name === "V" ? Words.size(value) : Words.decimal(value)}
        </span>
      ))}
      <span class={Number(c) < Number(o) ? "bad" : "good"}>{change(bar)}</span>
    </p>
  )
}
