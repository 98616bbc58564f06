/** The positions, open orders, fills and balances of an account, and their tables. */
import { signal } from "@preact/signals"
import * as Info from "@trigate/client/Info"
import type { Address } from "@trigate/domain/encoding/Encoding"
import { ClearinghouseState, Fill, Order, type Position, SpotClearinghouseState } from "@trigate/domain/info/Account"
import type { Side } from "@trigate/domain/info/Market"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { ComponentChildren } from "preact"
import * as Gateway from "../Gateway.ts"
import * as Live from "../Live.ts"
import * as Table from "../Table.tsx"
import { label, quote } from "../trade/Coins.tsx"

/** The state of an account. */
export interface AccountState {
  readonly perpetuals: ClearinghouseState
  readonly spot: SpotClearinghouseState
  readonly orders: ReadonlyArray<Order>
  /** The account's fills, newest first. */
  readonly fills: ReadonlyArray<Fill>
  /** The time of the latest query response or stream frame that contained this state, in milliseconds since 1970. */
  readonly confirmedAt: number
}

/** The state of the followed account; `undefined` before the response to the first query. */
export const current = signal<AccountState | undefined>(undefined)

/** The error of the latest query. */
export const accountFailure = signal<string | undefined>(undefined)

/** Maximum number of stored fills. */
const mostFills = 500

const Frame = Schema.fromJsonString(Schema.Union([
  Schema.Struct({
    channel: Schema.Literal("clearinghouseState"),
    data: Schema.Struct({ clearinghouseState: ClearinghouseState })
  }),
  Schema.Struct({ channel: Schema.Literal("spotState"), data: Schema.Struct({ spotState: SpotClearinghouseState }) }),
  Schema.Struct({ channel: Schema.Literal("openOrders"), data: Schema.Struct({ orders: Schema.Array(Order) }) }),
  Schema.Struct({ channel: Schema.Literal("userFills"), data: Schema.Struct({ fills: Schema.Array(Fill) }) })
]))

const decodeFrame = Schema.decodeUnknownOption(Frame)

/** Returns the key of a fill. Fills without a counterparty, such as conversions of spot dust, all have the `tid` 0. */
export const fillKey = ({ oid, tid, time }: Fill): string => `${oid} ${tid ?? time}`

const merge = (fills: ReadonlyArray<Fill>, others: ReadonlyArray<Fill>): ReadonlyArray<Fill> =>
  [...new Map([...others, ...fills].map((fill) => [fillKey(fill), fill])).values()]
    .toSorted((one, other) => other.time - one.time).slice(0, mostFills)

const apply = (text: string): void => {
  const frame = decodeFrame(text)
  const state = current.value
  if (Option.isNone(frame) || state === undefined) return
  const confirmedAt = Gateway.now()
  const { channel, data } = frame.value
  switch (channel) {
    case "clearinghouseState":
      current.value = { ...state, confirmedAt, perpetuals: data.clearinghouseState }
      break
    case "spotState":
      current.value = { ...state, confirmedAt, spot: data.spotState }
      break
    case "openOrders":
      current.value = { ...state, confirmedAt, orders: data.orders }
      break
    case "userFills":
      current.value = { ...state, confirmedAt, fills: merge(data.fills, state.fills) }
  }
}

/** Queries the state of an account. */
export const read = async (user: Address): Promise<void> => {
  const outcome = await Gateway.run(Effect.all({
    perpetuals: Info.clearinghouseState({ user }),
    spot: Info.spotClearinghouseState({ user }),
    orders: Info.frontendOpenOrders({ user }),
    fills: Info.userFills({ user })
  }, { concurrency: "unbounded" }))
  accountFailure.value = "failure" in outcome ? outcome.failure : undefined
  if ("value" in outcome) {
    const { fills, ...state } = outcome.value
    current.value = { ...state, fills: merge(fills, []), confirmedAt: Gateway.now() }
  }
}

/**
 * Follows an account through the stream until the returned function is called. Also queries the account until the
 * stream has sent the account's state.
 */
export const follow = (user: Address): () => void => {
  current.value = undefined
  accountFailure.value = undefined
  const events = Gateway.follow(
    ["clearinghouseState", "spotState", "openOrders", "userFills"].map((type) => ({ type, user })),
    apply
  )
  const stopPolls = Live.whileVisible(async () => {
    if (!events.isOpen() || current.value === undefined) await read(user)
  })
  return () => {
    events.stop()
    stopPolls()
  }
}

const sides: { readonly [S in Side]: string } = { A: "sell", B: "buy" }

const fillsShown = 20

const sideName = (side: Side) => <span key="side" class={side === "B" ? "good" : "bad"}>{sides[side]}</span>

const usd = (text: string): string => Table.fixed(Number(text))

/** Returns the price at which an order waits: its limit price, or its trigger price. */
export const waitingPrice = ({ isTrigger, limitPx, triggerPx }: Order): string => isTrigger ? triggerPx : limitPx

/** The buttons in the rows of an account's tables. */
export interface RowActions {
  readonly position: (position: Position) => ComponentChildren
  readonly order: (order: Order) => ComponentChildren
}

/** The tables of an account. Rows have buttons if `actions` is set. */
export const tables = ({ fills, orders, perpetuals, spot }: AccountState, actions?: RowActions) => [
  {
    title: "Positions",
    total: perpetuals.assetPositions.length,
    columns: [
      "Coin",
      "Size",
      "Value, USDC",
      "Entry price",
      "PnL, USDC",
      "Liquidation",
      ...actions === undefined ? [] : ["Close"]
    ],
    text: ["Close"],
    empty: `No positions yet: each one appears here with its profit. The account is worth ${
      usd(perpetuals.marginSummary.accountValue)
    } USDC.`,
    rows: perpetuals.assetPositions.map(({ position }) => ({
      key: position.coin,
      cells: [
        <>
          {label(position.coin)} <span class="muted">{position.leverage.value}× {position.leverage.type}</span>
        </>,
        <span key="size" class={Table.tone(Number(position.szi))}>{Table.size(position.szi)}</span>,
        usd(position.positionValue),
        Table.decimal(position.entryPx ?? "–"),
        <span key="pnl" class={Table.tone(Number(position.unrealizedPnl))}>
          {Table.signed(Number(position.unrealizedPnl))} ({Table.signed(Number(position.returnOnEquity) * 100)} %)
        </span>,
        Table.decimal(position.liquidationPx ?? "–"),
        ...actions === undefined ? [] : [actions.position(position)]
      ]
    }))
  },
  {
    title: "Open orders",
    total: orders.length,
    columns: [
      "Time (UTC)",
      "Coin",
      "Side",
      "Type",
      "Size",
      "Price",
      "Value",
      "Order",
      ...actions === undefined ? [] : ["Cancel"]
    ],
    text: ["Coin", "Side", "Type", "Cancel"],
    empty: "No open orders. An order that rests on the book appears here until it is filled or cancelled.",
    rows: orders.map((order) => ({
      key: String(order.oid),
      cells: [
        Table.clock(order.timestamp).slice(0, 8),
        label(order.coin),
        sideName(order.side),
        order.orderType,
        Table.size(order.sz),
        Table.decimal(waitingPrice(order)),
        `${Table.fixed(Number(order.sz) * Number(waitingPrice(order)))} ${quote(order.coin)}`,
        order.oid,
        ...actions === undefined ? [] : [actions.order(order)]
      ]
    }))
  },
  {
    title: "Latest fills",
    total: fills.length,
    columns: ["Time (UTC)", "Coin", "Direction", "Size", "Price", "Value", "Fee", "Closed PnL"],
    text: ["Coin", "Direction"],
    empty: "No fills yet: each one appears here as it happens, newest first.",
    rows: fills.slice(0, fillsShown).map((fill) => ({
      key: fillKey(fill),
      cells: [
        Table.clock(fill.time).slice(0, 8),
        label(fill.coin),
        <span key="direction" class={fill.side === "B" ? "good" : "bad"}>{fill.dir}</span>,
        Table.size(fill.sz),
        Table.decimal(fill.px),
        `${Table.fixed(Number(fill.sz) * Number(fill.px))} ${quote(fill.coin)}`,
        `${Table.fixed(Number(fill.fee), 4)} ${fill.feeToken ?? "USDC"}`,
        <span key="pnl" class={Table.tone(Number(fill.closedPnl))}>{Table.signed(Number(fill.closedPnl))}</span>
      ]
    }))
  },
  {
    title: "Balances",
    total: spot.balances.length + 1,
    columns: ["Asset", "Total", "Available", "In use"],
    empty: "No balances.",
    rows: [
      {
        key: "perpetuals",
        cells: [
          "USDC (perpetuals)",
          usd(perpetuals.marginSummary.accountValue),
          usd(perpetuals.withdrawable),
          usd(perpetuals.marginSummary.totalMarginUsed)
        ]
      },
      ...spot.balances.map(({ coin, hold, total }) => ({
        key: coin,
        cells: [
          `${coin} (spot)`,
          ...[Number(total), Number(total) - Number(hold), Number(hold)].map((value) => Table.fixed(value, 4))
        ]
      }))
    ]
  }
]

/** The time of the account's state. */
export const AsOf = () =>
  current.value === undefined
    ? null
    : <p class="muted">As of {Table.clock(current.value.confirmedAt).slice(0, 8)} UTC.</p>

/** Renders the tables of an account, one below the other. */
export const AccountTables = () => {
  const state = current.value
  const failure = accountFailure.value
  const alert = failure === undefined ? null : <p class="card bad" role="alert">{failure}</p>
  if (state === undefined) return alert ?? <p class="muted">Reading …</p>
  return (
    <>
      {alert}
      {tables(state).map(({ total: _, ...table }) => <Table.Table key={table.title} {...table} />)}
      <AsOf />
    </>
  )
}
