/** `trigate positions`: balances, positions and open orders of an account. */
import * as Info from "@trigate/client/Info"
import type { ClearinghouseState, Position, SpotClearinghouseState } from "@trigate/domain/info/Account"
import type { Order } from "@trigate/domain/info/Order"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Account from "../Account.ts"
import * as GatewayAccess from "../GatewayAccess.ts"
import * as Input from "../Input.ts"
import * as Output from "../Output.ts"
import * as SignedSending from "../SignedSending.ts"

const { left, right } = Output

const positionColumns = [
  left("COIN"),
  right("SIZE"),
  right("ENTRY"),
  right("VALUE"),
  right("PNL"),
  right("LIQUIDATION"),
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
  left("ID"),
  left("COIN"),
  left("SIDE"),
  right("SIZE"),
  right("PRICE"),
  left("TYPE"),
  left("SINCE (UTC)")
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

interface AccountState {
  readonly account: string
  readonly perpetuals: ClearinghouseState
  readonly spot: SpotClearinghouseState
  readonly orders: ReadonlyArray<Order>
}

const section = (
  width: number,
  columns: ReadonlyArray<Output.Column>,
  cells: ReadonlyArray<ReadonlyArray<string>>,
  empty: string
): string => cells.length === 0 ? empty : Output.rowsFor(width, columns, cells)

const text = (width: number, { account, orders, perpetuals, spot }: AccountState): string =>
  [
    Output.facts([
      ["account", account],
      ["value", `${perpetuals.marginSummary.accountValue} USDC`],
      ["margin used", `${perpetuals.marginSummary.totalMarginUsed} USDC`],
      ["withdrawable", `${perpetuals.withdrawable} USDC`]
    ]),
    section(
      width,
      positionColumns,
      perpetuals.assetPositions.map(({ position }) => positionCells(position)),
      "No positions."
    ),
    section(width, orderColumns, orders.map(orderCells), "No open orders."),
    section(
      width,
      balanceColumns,
      spot.balances.map(({ coin, hold, total }) => [coin, total, hold]),
      "No spot balances."
    )
  ].join("\n\n")

/** `trigate positions`. */
export const command = Command.make("positions", {
  account: Input.address("account").pipe(
    Argument.optional,
    Argument.withDescription("Account: 20 bytes in hex (default: the account of your private key)")
  ),
  dex: Account.dexFlag,
  ...SignedSending.keyFlags
}, ({ account, dex, ...key }) =>
  Effect.gen(function*() {
    const user = yield* Account.find(account, key)
    const inDex = Account.inDex(dex)
    const state = yield* GatewayAccess.ask(
      Effect.all({
        account: Effect.succeed(user),
        perpetuals: Info.clearinghouseState({ user, ...inDex }),
        orders: Info.frontendOpenOrders({ user, ...inDex }),
        spot: Info.spotClearinghouseState({ user })
      }, { concurrency: "unbounded" })
    )
    yield* Output.print({ json: state, table: text(yield* Output.terminalWidth, state) })
  })).pipe(
    Command.withDescription(
      "Print an account: its value and margin, positions, open orders and spot balances. Without an address, prints the account of " +
        "your private key, which may be an API wallet's key. Nothing is signed"
    ),
    Command.withShortDescription("Print balances, positions and open orders of an account"),
    Command.withExamples([
      { command: "trigate positions 0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266" },
      { command: "trigate positions --key-file key.txt --json" }
    ]),
    GatewayAccess.options
  )
