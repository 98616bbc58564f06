/**
 * Trading in a sandbox, in one view: the chart with the account's orders, fills and entry price, the book, the trades,
 * the ticket, and the account's positions, orders, fills and balances.
 */
import { useSignal, useSignalEffect } from "@preact/signals"
import { trader } from "@trigate/domain/unstable/Sandbox"
import { useEffect } from "preact/hooks"
import * as AccountState from "../account/AccountState.tsx"
import * as Bars from "../candles/Bars.ts"
import { Chart, Intervals, Legend, linked } from "../candles/Chart.tsx"
import { go, linkTo } from "../Gateway.ts"
import * as Table from "../Table.tsx"
import { Change, CoinSearch, label, loadCoins, quote } from "./Coins.tsx"
import { Ladder, Tape } from "./Ladder.tsx"
import * as Markets from "./Markets.ts"
import * as Orders from "./Orders.ts"
import { Faults, Scenarios } from "./Scenarios.tsx"
import { change, Ticket } from "./Ticket.tsx"

const intervals = ["1m", "5m", "15m", "1h", "4h", "1d"] as const

/** Formats a large amount in thousands, millions or billions. */
const compact = (value: number): string => {
  const [unit = "", scale = 1] = ([["B", 1e9], ["M", 1e6], ["k", 1e3]] as const).find(([, scale]) => value >= scale) ??
    []
  return `${Table.fixed(value / scale, value >= 1000 ? 2 : 0)}${unit === "" ? "" : ` ${unit}`}`
}

/** The coin, its price, and the figures of its market. */
const Header = () => {
  const { coin } = Bars.wanted()
  const { context } = Markets.market.value
  const price = context?.midPx ?? context?.markPx
  const openInterest = context?.openInterest === undefined
    ? undefined
    : Number(context.openInterest) * Number(context.markPx)
  const figures: { readonly [name: string]: string | undefined } = {
    "Mark": context === undefined ? "–" : Table.decimal(context.markPx),
    "Oracle": context?.oraclePx === undefined ? undefined : Table.decimal(context.oraclePx),
    "Funding, 1 h": context?.funding === undefined ? undefined : `${(Number(context.funding) * 100).toFixed(4)} %`,
    "Volume, 24 h": context === undefined ? "–" : `${compact(Number(context.dayNtlVlm))} ${quote(coin)}`,
    "Open interest": openInterest === undefined ? undefined : `${compact(openInterest)} ${quote(coin)}`
  }
  return (
    <section class="card market-head" aria-label={`Market of ${label(coin)}`}>
      <CoinSearch coin={label(coin)} onChoose={(coin) => go("trade", linked({ coin }))} />
      <p class="price">
        <strong>{price === undefined || price === null ? "–" : Table.decimal(price)}</strong>{" "}
        <Change price={price ?? undefined} before={context?.prevDayPx} />
      </p>
      <dl>
        {Object.entries(figures).map(([name, value]) =>
          value === undefined ? null : (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          )
        )}
      </dl>
    </section>
  )
}

const ChartCard = () => (
  <section class="card chart" aria-label="Chart">
    <div class="chart-head">
      <Intervals intervals={intervals} />
      <Legend />
    </div>
    {Bars.failure.value === undefined ? null : <p class="bad" role="alert">{Bars.failure.value}</p>}
    <Chart table="the panel Candles has its bars as a table">
      <a href={linkTo("candles", linked({}))}>All bars</a>.
    </Chart>
  </section>
)

/** The tables of the account, one at a time. */
const Account = () => {
  const at = useSignal(0)
  const state = AccountState.current.value
  const failure = AccountState.accountFailure.value
  if (state === undefined) {
    return (
      <section class="card account">
        <p class="muted">{failure ?? "Reading …"}</p>
      </section>
    )
  }
  const all = AccountState.tables(state, {
    position: (position) => (
      <button
        key="close"
        type="button"
        class="plain"
        aria-label={`Close the position in ${label(position.coin)}`}
        onClick={() => void Orders.close(position)}
      >
        Close
      </button>
    ),
    order: (order) => (
      <button
        key="cancel"
        type="button"
        class="plain"
        aria-label={`Cancel order ${order.oid}`}
        onClick={() => void Orders.cancel([order])}
      >
        Cancel
      </button>
    )
  })
  const table = all[at.value]
  return (
    <section class="card account" aria-label="Account">
      {failure === undefined ? null : <p class="bad" role="alert">{failure}</p>}
      <div class="tabs">
        <div role="tablist" aria-label="Account">
          {all.map(({ title, total }, index) => (
            <button
              key={title}
              type="button"
              role="tab"
              id={`tab-${index}`}
              aria-selected={index === at.value}
              aria-controls="account-table"
              onClick={() => (at.value = index)}
            >
              {title} <span class="muted">{total}</span>
            </button>
          ))}
        </div>
        {state.orders.length > 0
          ? (
            <button type="button" class="plain" onClick={() => void Orders.cancel(state.orders)}>
              Cancel all
            </button>
          )
          : null}
      </div>
      <div id="account-table" role="tabpanel" aria-labelledby={`tab-${at.value}`}>
        {table === undefined || table.rows.length === 0
          ? <p class="muted">{table?.empty}</p>
          : <Table.Grid label={table.title} columns={table.columns} rows={table.rows} text={table.text ?? []} />}
      </div>
      <p class="muted">
        Account{" "}
        {Table.short(trader.address)}, whose key is public: orders are signed in this page, and checked and matched as
        the venue does.
      </p>
    </section>
  )
}

/** Handles the keys of the view, unless the focus is in a field. */
const onKey = (event: KeyboardEvent): void => {
  const { target } = event
  const isTyping = target instanceof HTMLElement && /^(?:INPUT|SELECT|TEXTAREA)$/u.test(target.tagName)
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return
  const focus = (selector: string): void => document.querySelector<HTMLInputElement>(selector)?.focus()
  if (event.key === "/") {
    event.preventDefault()
    focus("#coin-search")
  }
  if (event.key === "b" || event.key === "s") {
    event.preventDefault()
    change({ side: event.key === "b" ? "buy" : "sell" })
    focus(".ticket input[name=size]")
  }
}

/** The console's panel for trading in a sandbox. */
export const Trade = () => {
  useEffect(() => void loadCoins(), [])
  useEffect(() => AccountState.follow(trader.address), [])
  useSignalEffect(Bars.begin)
  useSignalEffect(Bars.follow)
  useSignalEffect(Markets.follow)
  useEffect(() => {
    document.addEventListener("keydown", onKey)
    return () => document.removeEventListener("keydown", onKey)
  }, [])
  return (
    <div class="desk">
      <Scenarios />
      <Header />
      <ChartCard />
      <Ladder />
      <Tape />
      <Ticket />
      <Account />
      <Faults />
    </div>
  )
}
