/** `trigate watch`: follows prices, a book, trades, orders and fills through a gateway. */
import * as Info from "@trigate/client/Info"
import * as Streams from "@trigate/client/Streams"
import { type Address, printable, stringify } from "@trigate/domain/encoding/Encoding"
import type { Fill, OrderUpdate } from "@trigate/domain/info/Account"
import type { BookLevel, Trade } from "@trigate/domain/info/Market"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as Terminal from "effect/Terminal"
import * as GatewayAccess from "../GatewayAccess.ts"
import * as Output from "../Output.ts"
import * as ExitCode from "../Report.ts"
import * as SignedSending from "../SignedSending.ts"

const { left, right } = Output

/** The maximum value of `--count`, the number of updates after which the command ends. */
const maxUpdates = 9999

const flags = {
  count: Output.countFlag("count", maxUpdates).pipe(
    Flag.optional,
    Flag.withDescription("End after this number of updates (default: run until interrupted)")
  )
}

const homeAndErase = "\u001B[H\u001B[J"

const screen = Terminal.Terminal.use(({ columns, rows }) => Effect.all({ columns, rows }))

/**
 * On a terminal, replaces the shown text with `text`, cut to the terminal's height. Otherwise prints `text` after the
 * previous texts.
 */
const show = Effect.fnUntraced(function*(text: string) {
  const { columns, rows } = yield* screen
  if (columns <= 0) return yield* Console.log(text)
  const lines = Output.cutAt(columns, text).split("\n").slice(0, Math.max(1, rows - 1))
  return yield* Terminal.Terminal.use(({ display }) => display(`${homeAndErase}${lines.join("\n")}\n`)).pipe(
    Effect.orDie
  )
})

const line = Effect.fnUntraced(function*(text: string) {
  yield* Console.log(Output.cutAt(yield* Output.terminalWidth, printable(text)))
})

/**
 * Follows a stream of the gateway until the stream ends or the command is interrupted. With `--json`, each item is
 * printed as a line of JSON.
 */
const follow = Effect.fnUntraced(function*<A, B, R>(
  { count }: Command.Command.Config.Infer<typeof flags>,
  open: (streams: Streams.Methods) => Stream.Stream<A, Streams.StreamFailure>,
  items: (item: A) => Iterable<B>,
  print: (item: B) => Effect.Effect<void, never, R>
) {
  const asJson = yield* Output.AsJson
  const context = yield* Layer.build(Streams.layerWebSocket(yield* GatewayAccess.streamOptions))
  const all = Stream.flatMap(open(Context.get(context, Streams.Streams)), (item) => Stream.fromIterable(items(item)))
  const some = Option.match(count, { onNone: () => all, onSome: (most) => Stream.take(all, most) })
  yield* ExitCode.endByInterruption
  return yield* Stream.runForEach(some, (item) => asJson ? Console.log(printable(stringify(item))) : print(item))
}, Effect.scoped)

/** Formats the time of day of an event, in UTC. */
const clockTime = (millis: number): string => DateTime.formatIso(DateTime.makeUnsafe(millis)).slice(11, 23)

const sides = { A: "sell", B: "buy" } as const

const mids = Command.make("mids", {
  coins: Argument.String("coin").pipe(
    Argument.variadic(),
    Argument.withDescription("Coins to show (default: all)")
  ),
  dex: SignedSending.dexFlag("the venue's own"),
  ...flags
}, ({ coins, dex, ...options }) =>
  Effect.gen(function*() {
    yield* Effect.forEach(coins, (coin) => GatewayAccess.send(Info.asset(coin)))
    const [name = ""] = Option.isNone(dex) ? [""] : yield* SignedSending.dexes(dex)
    yield* follow(
      options,
      (streams) => streams.allMids(SignedSending.inDex(name)),
      ({ mids }) => [coins.length === 0 ? mids : Object.fromEntries(coins.map((coin) => [coin, mids[coin] ?? ""]))],
      (mids) => show(Output.rows([left("COIN"), right("PRICE")], Object.entries(mids)))
    )
  })).pipe(
    Command.withDescription("Show the mid prices of all coins, or of the named coins"),
    Command.withExamples([{ command: "trigate watch mids BTC ETH" }])
  )

const levelsShown = 10

const bookText = (
  coin: string,
  time: number,
  [bids, asks]: readonly [ReadonlyArray<BookLevel>, ReadonlyArray<BookLevel>]
): string => {
  const shown = Array.from({ length: Math.min(levelsShown, Math.max(bids.length, asks.length)) }, (_, at) => at)
  const cells = shown.map((at) => [bids[at]?.sz ?? "", bids[at]?.px ?? "", asks[at]?.px ?? "", asks[at]?.sz ?? ""])
  const table = Output.rows([right("SIZE"), right("BID"), left("ASK"), left("SIZE")], cells)
  return `${printable(coin)}  ${clockTime(time)} UTC\n${table}`
}

/** Makes the command that follows a stream of one coin. */
const coinCommand = <Name extends string, A, B, R>(
  name: Name,
  open: (streams: Streams.Methods, coin: string) => Stream.Stream<A, Streams.StreamFailure>,
  items: (item: A) => Iterable<B>,
  print: (item: B, coin: string) => Effect.Effect<void, never, R>
) =>
  Command.make(name, { coin: SignedSending.coin, ...flags }, ({ coin, ...options }) =>
    Effect.gen(function*() {
      const asset = yield* GatewayAccess.send(Info.asset(coin))
      yield* follow(options, (streams) => open(streams, asset.coin), items, (item) => print(item, coin))
    }))

const book = coinCommand(
  "book",
  (streams, coin) => streams.l2Book({ coin }),
  (state) => [state],
  ({ levels, time }, coin) => show(bookText(coin, time, levels))
).pipe(
  Command.withDescription("Show the order book of a coin: ten levels a side"),
  Command.withExamples([{ command: "trigate watch book BTC" }])
)

const tradeText = ({ px, side, sz, time }: Trade): string =>
  `${clockTime(time)}  ${sides[side].padEnd(4)}  ${sz} at ${px}`

const trades = coinCommand(
  "trades",
  (streams, coin) => streams.trades({ coin }),
  (trade) => [trade],
  (trade) => line(tradeText(trade))
).pipe(
  Command.withDescription("Print the trades of a coin: time (UTC), side of the taker, size and price"),
  Command.withExamples([{ command: "trigate watch trades ETH --count 10 --json" }])
)

/** Makes the command that follows a stream of one account. */
const accountCommand = <Name extends string, A, B>(
  name: Name,
  open: (streams: Streams.Methods, user: Address) => Stream.Stream<A, Streams.StreamFailure>,
  items: (item: A) => Iterable<B>,
  text: (item: B) => string
) =>
  Command.make(
    name,
    { account: SignedSending.accountArgument, ...SignedSending.keyFlags, ...flags },
    ({ account, count, ...key }) =>
      Effect.gen(function*() {
        const user = yield* SignedSending.find(account, key)
        yield* follow({ count }, (streams) => open(streams, user), items, (item) => line(text(item)))
      })
  )

const fillText = ({ coin, dir, fee, feeToken, oid, px, sz, time }: Fill): string =>
  `${clockTime(time)}  ${coin}  ${dir}  ${sz} at ${px}  fee ${fee} ${feeToken ?? "USDC"}  order ${oid}`

const fills = accountCommand(
  "fills",
  (streams, user) => streams.userFills({ user }),
  ({ fills }) => fills,
  fillText
).pipe(
  Command.withDescription("Print the fills of an account: first the latest ones, then each as it happens"),
  Command.withExamples([{ command: "trigate watch fills 0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266" }])
)

const updateText = ({ order: { coin, limitPx, oid, side, sz }, status, statusTimestamp }: OrderUpdate): string =>
  `${clockTime(statusTimestamp)}  ${oid}  ${status}  ${sides[side]} ${sz} ${coin} at ${limitPx}`

const orders = accountCommand(
  "orders",
  (streams, user) => streams.orderUpdates({ user }),
  (update) => [update],
  updateText
).pipe(
  Command.withDescription(
    "Print each change of an account's orders as it happens; the printed size is the unfilled part of the order"
  ),
  Command.withExamples([{ command: "trigate watch orders --key-file key.txt" }])
)

/** `trigate watch`. */
export const command = Command.make("watch").pipe(
  Command.withDescription(
    "Follow prices, a book, trades, or the orders and fills of an account over a WebSocket, until interrupted. " +
      "On a terminal, mids and book replace the shown text at each update. In all other cases, each update is printed below the previous " +
      "one. With --json, each update is printed as a line of JSON"
  ),
  Command.withShortDescription("Follow prices, books, trades, orders and fills"),
  Command.withSubcommands([mids, book, trades, orders, fills]),
  GatewayAccess.options
)
