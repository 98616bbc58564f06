/** The tables of an account: positions, open orders and the latest fills. */
import type { Side } from "@trigate/domain/info/Market"
import type { ComponentChildren } from "preact"
import { Table } from "../Table.tsx"
import * as Words from "../Words.ts"
import * as AccountState from "./AccountState.ts"

const sides: { readonly [S in Side]: string } = { A: "sell", B: "buy" }

const fillsShown = 10

/** Renders the tables of an account. If `orderActions` is set, the open orders have a column with its results. */
export const AccountTables = ({ orderActions }: {
  readonly orderActions?: (coin: string, oid: number) => ComponentChildren
}) => {
  const state = AccountState.current.value
  const failure = AccountState.failure.value
  const alert = failure === undefined ? null : <p class="card bad" role="alert">{failure}</p>
  if (state === undefined) return alert ?? <p class="muted">Reading …</p>
  const { confirmedAt, fills, orders, perpetuals } = state
  const columns = ["Order", "Coin", "Side", "Size", "Price"]
  return (
    <>
      {alert}
      <Table
        title="Open orders"
        columns={orderActions === undefined ? columns : [...columns, "Cancel"]}
        empty="No open orders."
        rows={orders.map(({ coin, limitPx, oid, side, sz }) => ({
          key: oid,
          cells: [oid, coin, sides[side], sz, limitPx, ...(orderActions === undefined ? [] : [orderActions(coin, oid)])]
        }))}
      />
      <Table
        title="Positions"
        columns={["Coin", "Size", "Entry", "Value", "PnL", "Liquidation"]}
        empty={`No positions. The account is worth ${perpetuals.marginSummary.accountValue} USDC.`}
        rows={perpetuals.assetPositions.map(({ position }) => ({
          key: position.coin,
          cells: [
            position.coin,
            position.szi,
            position.entryPx ?? "",
            position.positionValue,
            <span key="pnl" class={position.unrealizedPnl.startsWith("-") ? "bad" : "good"}>
              {position.unrealizedPnl}
            </span>,
            position.liquidationPx ?? "–"
          ]
        }))}
      />
      <Table
        title="Latest fills"
        columns={["Time (UTC)", "Coin", "Direction", "Size", "Price", "Fee"]}
        empty="No fills."
        rows={fills.slice(0, fillsShown).map((fill) => ({
          key: AccountState.fillKey(fill),
          cells: [Words.clock(fill.time), fill.coin, fill.dir, fill.sz, fill.px, fill.fee]
        }))}
      />
      <p class="muted">As of {Words.clock(confirmedAt).slice(0, 8)} UTC.</p>
    </>
  )
}
