/** `trigate positions`: balances, positions and open orders of an account. */
import * as Info from "@trigate/client/Info"
import type { Address } from "@trigate/domain/encoding/Encoding"
import type { ClearinghouseState, Order, Position, SpotClearinghouseState } from "@trigate/domain/info/Account"
import * as Command from "effect/cli/Command"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as GatewayAccess from "../GatewayAccess.ts"
import * as Output from "../Output.ts"
import * as SignedSending from "../SignedSending.ts"

const { left, right } = Output

const positionColumns = [
  left("COIN"),
  ...["SIZE", "ENTRY", "VALUE", "PNL", "LIQUIDATION"].map(right),
  left("LEVERAGE")
]

const positionCells = (
  { coin, entryPx, leverage, liquidationPx, positionValue, szi, unrealizedPnl }: Position
): ReadonlyArray<string> => [
  coin,
  szi,
  entryPx ?? "",
  positionValue,
  unrealizedPnl,
  liquidationPx ?? "",
  `${leverage.value}x ${leverage.type}`
]

const orderColumns = [
  ...["ID", "COIN", "SIDE"].map(left),
  ...["SIZE", "PRICE"].map(right),
  ...["TYPE", "SINCE (UTC)"].map(left)
]

const orderCells = (
  { coin, isTrigger, limitPx, oid, orderType, side, sz, timestamp, triggerCondition }: Order
): ReadonlyArray<string> => [
  String(oid),
  coin,
  side === "B" ? "buy" : "sell",
  sz,
  limitPx,
  isTrigger ? `${orderType} (${triggerCondition})` : orderType,
  DateTime.formatIso(DateTime.makeUnsafe(timestamp)).slice(0, 19).replace("T", " ")
]

const balanceColumns = [left("TOKEN"), right("TOTAL"), right("IN ORDERS")]

/** The state of an account on one dex of perpetuals. */
interface DexState {
  /** The name of the dex; empty for the venue's own. */
  readonly dex: string
  readonly perpetuals: ClearinghouseState
  readonly orders: ReadonlyArray<Order>
}

/** The number of dexes that are queried at the same time. */
const concurrency = 4

const isUsed = ({ assetPositions, marginSummary }: ClearinghouseState): boolean =>
  assetPositions.length > 0 || Number(marginSummary.accountValue) !== 0

/**
 * Queries an account on dexes. Omits the dexes on which the account has nothing, except the first, and does not query
 * the orders there, because that costs ten times the weight.
 */
export const queryDexes = Effect.fnUntraced(function*(user: Address, [first = "", ...others]: ReadonlyArray<string>) {
  const ordersOn = (dex: string) => Info.frontendOpenOrders({ user, ...SignedSending.inDex(dex) })
  const stateOn = (dex: string) => Info.clearinghouseState({ user, ...SignedSending.inDex(dex) })
  const own = Effect.all({ dex: Effect.succeed(first), perpetuals: stateOn(first), orders: ordersOn(first) }, {
    concurrency
  })
  const other = Effect.fnUntraced(function*(dex: string) {
    const perpetuals = yield* stateOn(dex)
    return isUsed(perpetuals) ? [{ dex, perpetuals, orders: yield* ordersOn(dex) }] : []
  })
  const [shown, more] = yield* Effect.all([own, Effect.forEach(others, other, { concurrency })], { concurrency })
  return [shown, ...more.flat()] as const
})

const section = (
  width: number,
  columns: ReadonlyArray<Output.Column>,
  cells: ReadonlyArray<ReadonlyArray<string>>,
  empty: string
): string => cells.length === 0 ? empty : Output.rowsFor(width, columns, cells)

const summary = ({ dex, perpetuals }: DexState): Output.Facts => {
  const place = dex === "" ? "" : ` on ${dex}`
  return [
    [`value${place}`, `${perpetuals.marginSummary.accountValue} USDC`],
    [`margin used${place}`, `${perpetuals.marginSummary.totalMarginUsed} USDC`],
    [`withdrawable${place}`, `${perpetuals.withdrawable} USDC`]
  ]
}

const text = (
  width: number,
  account: string,
  dexes: ReadonlyArray<DexState>,
  spot: SpotClearinghouseState
): string =>
  [
    Output.facts([["account", account], ...dexes.flatMap(summary)]),
    section(
      width,
      positionColumns,
      dexes.flatMap(({ perpetuals }) => perpetuals.assetPositions.map(({ position }) => positionCells(position))),
      "No positions."
    ),
    section(width, orderColumns, dexes.flatMap(({ orders }) => orders.map(orderCells)), "No open orders."),
    section(
      width,
      balanceColumns,
      spot.balances.map(({ coin, hold, total }) => [coin, total, hold]),
      "No spot balances."
    )
  ].join("\n\n")

/** `trigate positions`. */
export const command = Command.make("positions", {
  account: SignedSending.accountArgument,
  dex: SignedSending.dexFlag("all, and the venue's own"),
  ...SignedSending.keyFlags
}, ({ account, dex, ...key }) =>
  Effect.gen(function*() {
    const user = yield* SignedSending.find(account, key)
    const covered = yield* SignedSending.dexes(dex)
    const state = yield* GatewayAccess.ask(
      Effect.all({ dexes: queryDexes(user, covered), spot: Info.spotClearinghouseState({ user }) }, { concurrency: 2 })
    )
    const { dexes: [{ orders, perpetuals }, ...others], spot } = state
    yield* Output.print({
      json: { account: user, perpetuals, orders, spot, dexes: others },
      table: text(yield* Output.terminalWidth, user, state.dexes, spot)
    })
  })).pipe(
    Command.withDescription(
      "Print an account: its value and margin, positions and open orders on every dex where it has value, and spot balances. " +
        "Without an address, prints the account of your private key, which may be an API wallet's key. Nothing is signed"
    ),
    Command.withShortDescription("Print balances, positions and open orders of an account"),
    Command.withExamples([
      { command: "trigate positions 0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266" },
      { command: "trigate positions --key-file key.txt --json" }
    ]),
    GatewayAccess.options
  )
