/** Candles of any coin and interval: the chart, its controls, and a table of the newest bars. */
import { useSignalEffect } from "@preact/signals"
import type { Candle } from "@trigate/domain/candles/Candle"
import { closestWord } from "@trigate/domain/errors/Problem"
import * as CandleText from "@trigate/domain/unstable/candles/CandleText"
import type { RefObject } from "preact"
import { useEffect, useRef } from "preact/hooks"
import { coins, go, linkTo, loadCoins } from "../Gateway.ts"
import * as Table from "../Table.tsx"
import * as Bars from "./Bars.ts"
import { Chart, Intervals, isLogarithmic, Legend, linked } from "./Chart.tsx"

/** Formats the summary below the chart. Omits the number of missing bars if no bars could be read. */
const summarize = (bars: number, holes: number, isFailed: boolean): string => {
  if (bars === 0) return isFailed ? "No bars: the last query failed" : "Reading …"
  const missing = holes === 0
    ? "none missing between them"
    : `${holes} missing between them (shaded): no trades, or not recorded`
  return `${bars} bars${isFailed ? " as of the last successful query" : ""}, ${missing}; all times are UTC`
}

/** Suggests the most similar coin if the gateway has no bars of the requested coin. */
const Suggestion = () => {
  const { coin } = Bars.wanted()
  const meant = coins.value.includes(coin) ? undefined : closestWord(coin, coins.value)
  return meant === undefined
    ? null
    : (
      <p>
        Did you mean <a href={linkTo("candles", linked({ coin: meant }))}>{meant}</a>?
      </p>
    )
}

/** Saves the loaded bars as CSV. */
const download = (): void => {
  const { coin, interval } = Bars.wanted()
  const text = [CandleText.csvHeadings, ...Bars.shown.value.map(CandleText.csv), ""].join("\n")
  const url = URL.createObjectURL(new Blob([text], { type: CandleText.contentTypes.csv }))
  const link = document.createElement("a")
  link.href = url
  link.download = `${coin.replaceAll(/[^\w-]/gu, "_")}-${interval}.csv`
  link.click()
  URL.revokeObjectURL(url)
}

const Controls = ({ card }: { readonly card: RefObject<HTMLElement | null> }) => (
  <div class="row">
    <button type="button" class="plain" disabled={Bars.isOldest.value} onClick={() => void Bars.loadOlder()}>
      Older bars
    </button>
    <button
      type="button"
      class="plain"
      aria-pressed={isLogarithmic.value}
      onClick={() => (isLogarithmic.value = !isLogarithmic.value)}
    >
      Log scale
    </button>
    <button type="button" class="plain" onClick={() => void card.current?.requestFullscreen()}>Full screen</button>
    <button type="button" class="plain" disabled={Bars.shown.value.length === 0} onClick={download}>
      Download CSV
    </button>
  </div>
)

const Newest = ({ bars }: { readonly bars: ReadonlyArray<Candle> }) => (
  <>
    <h3>Newest bars</h3>
    <Table.Grid
      label="Newest bars"
      columns={["Open time (UTC)", "Open", "High", "Low", "Close", "Volume", "Trades"]}
      rows={bars.slice(-5).toReversed().map(({ c, h, l, n, o, t, v }) => ({
        key: t,
        cells: [Table.instant(t), ...[o, h, l, c, v].map(Table.decimal), Table.count(n)]
      }))}
    />
  </>
)

/** The console's panel of candles. */
export const Candles = () => {
  const { coin, interval } = Bars.wanted()
  const card = useRef<HTMLElement>(null)
  useSignalEffect(Bars.begin)
  useSignalEffect(Bars.follow)
  useSignalEffect(Bars.followAccount)
  useEffect(() => void loadCoins(), [])
  const bars = Bars.shown.value
  const holes = Bars.findHoles(interval, bars).length
  return (
    <section class="card" aria-labelledby="candles-title" ref={card}>
      <h2 id="candles-title">{coin} {interval}</h2>
      <form class="row" onSubmit={(event) => go("candles", linked(Table.formTexts(event)))}>
        <label>
          Coin <input name="coin" defaultValue={coin} key={coin} list="charted" required size={12} spellcheck={false} />
        </label>
        <datalist id="charted">{coins.value.map((each) => <option key={each} value={each} />)}</datalist>
        <label>
          Orders and fills of{" "}
          <input
            name="account"
            defaultValue={Bars.account.value}
            key={Bars.account.value}
            size={44}
            placeholder="0x…"
            spellcheck={false}
          />
        </label>
        <button type="submit">Show</button>
      </form>
      <Intervals />
      {Bars.failure.value === undefined
        ? null
        : (
          <div role="alert">
            <p class="bad">{Bars.failure.value}</p>
            <Suggestion />
          </div>
        )}
      <Legend />
      <Chart table="the table below has its newest bars" />
      <Controls card={card} />
      <p class="muted" aria-live="polite">
        {summarize(bars.length, holes, Bars.failure.value !== undefined)}
        {Bars.isOldest.value ? "; there are no older bars" : ""}
      </p>
      <Newest bars={bars} />
    </section>
  )
}
