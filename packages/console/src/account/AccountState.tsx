/** The positions, open orders and fills of an account, and their tables. */
import { signal } from "@preact/signals"
import * as Info from "@trigate/client/Info"
import type { Address } from "@trigate/domain/encoding/Encoding"
import { ClearinghouseState, Fill, type OpenOrder, Order } from "@trigate/domain/info/Account"
import type { Side } from "@trigate/domain/info/Market"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { ComponentChildren } from "preact"
import * as Gateway from "../Gateway.ts"
import * as Live from "../Live.ts"
import * as Table from "../Table.tsx"

/** The state of an account. */
export interface AccountState {
  readonly perpetuals: ClearinghouseState
  readonly orders: ReadonlyArray<OpenOrder | Order>
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
const mostFills = 100

const Frame = Schema.fromJsonString(Schema.Union([
  Schema.Struct({
    channel: Schema.Literal("clearinghouseState"),
    data: Schema.Struct({ clearinghouseState: ClearinghouseState })
  }),
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
  const confirmedAt = Date.now()
  const { channel, data } = frame.value
  switch (channel) {
    case "clearinghouseState":
      current.value = { ...state, confirmedAt, perpetuals: data.clearinghouseState }
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
    orders: Info.openOrders({ user }),
    fills: Info.userFills({ user })
  }, { concurrency: "unbounded" }))
  accountFailure.value = "failure" in outcome ? outcome.failure : undefined
  if ("value" in outcome) {
    const { fills, orders, perpetuals } = outcome.value
    current.value = { perpetuals, orders, fills: merge(fills, []), confirmedAt: Date.now() }
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
    ["clearinghouseState", "openOrders", "userFills"].map((type) => ({ type, user })),
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

const fillsShown = 10

/** Renders the tables of an account. If `orderActions` is set, the open orders have a column with its results. */
export const AccountTables = ({ orderActions }: {
  readonly orderActions?: (coin: string, oid: number) => ComponentChildren
}) => {
  const state = current.value
  const failure = accountFailure.value
  const alert = failure === undefined ? null : <p class="card bad" role="alert">{failure}</p>
  if (state === undefined) return alert ?? <p class="muted">Reading …</p>
  const { confirmedAt, fills, orders, perpetuals } = state
  const columns = ["Order", "Coin", "Side", "Size", "Price"]
  return (
    <>
      {alert}
      <Table.Table
        title="Open orders"
        columns={orderActions === undefined ? columns : [...columns, "Cancel"]}
        empty="No open orders."
        rows={orders.map(({ coin, limitPx, oid, side, sz }) => ({
          key: oid,
          cells: [oid, coin, sides[side], sz, limitPx, ...(orderActions === undefined ? [] : [orderActions(coin, oid)])]
        }))}
      />
      <Table.Table
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
      <Table.Table
        title="Latest fills"
        columns={["Time (UTC)", "Coin", "Direction", "Size", "Price", "Fee"]}
        empty="No fills."
        rows={fills.slice(0, fillsShown).map((fill) => ({
          key: fillKey(fill),
          cells: [Table.clock(fill.time), fill.coin, fill.dir, fill.sz, fill.px, fill.fee]
        }))}
      />
      <p class="muted">As of {Table.clock(confirmedAt).slice(0, 8)} UTC.</p>
    </>
  )
}
