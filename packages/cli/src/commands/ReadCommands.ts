/** `trigate info`, `evm`, `token` and `receipt`: queries of the three chains. */
import * as Evm from "@trigate/client/Evm"
import * as Info from "@trigate/client/Info"
import * as Layer2 from "@trigate/client/Layer2"
import * as Tokens from "@trigate/client/Tokens"
import * as Candle from "@trigate/domain/candles/Candle"
import { type Address, Hash, parseStrict, printable } from "@trigate/domain/encoding/Encoding"
import * as EvmResources from "@trigate/domain/evm/EvmResources"
import type { ClearinghouseState, Order, Position, SpotClearinghouseState } from "@trigate/domain/info/Account"
import * as SpotLookup from "@trigate/domain/info/Market"
import type { TokenData } from "@trigate/domain/tokens/TokenData"
import * as CandleText from "@trigate/domain/unstable/candles/CandleText"
import * as ReceiptWait from "@trigate/evm/Layer2"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Clock from "effect/Clock"
import * as Console from "effect/Console"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as MutableRef from "effect/MutableRef"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as GatewayAccess from "../GatewayAccess.ts"
import * as Output from "../Output.ts"
import * as SignedSending from "../SignedSending.ts"

const instant = (millis: number): string => DateTime.formatIso(DateTime.makeUnsafe(millis))

const table = (candles: ReadonlyArray<Candle.Candle>): string => {
  const bars = rows(candles)
  return candles.length < fewest ? bars : `${bars}\n\n${line(candles)}`
}

const marks = "▁▂▃▄▅▆▇█"
const widest = 72

/** Minimum number of bars for a chart; fewer are easier to read as numbers. */
const fewest = 8

/**
 * Draws the closing prices as one line of characters, scaled from the lowest to the highest price. Several bars can
 * share a character.
 */
const line = (candles: ReadonlyArray<Candle.Candle>): string => {
  const perMark = Math.ceil(candles.length / widest)
  const closes = candles.filter((_, at) => at % perMark === perMark - 1 || at === candles.length - 1).map(({ c }) => c)
  const [low = "", ...others] = closes.toSorted((one, other) => Number(one) - Number(other))
  const high = others.at(-1) ?? low
  const range = Number(high) - Number(low)
  const sparkMark = (close: string) =>
    marks[range === 0 ? 0 : Math.round((Number(close) - Number(low)) / range * (marks.length - 1))] ?? ""
  return `${closes.map(sparkMark).join("")}  closes from ${low} to ${high}`
}

const rows = (candles: ReadonlyArray<Candle.Candle>): string =>
  Output.rows(
    [Output.left("OPEN TIME"), ...["OPEN", "HIGH", "LOW", "CLOSE", "VOLUME", "TRADES"].map(Output.right)],
    candles.map(({ c, h, l, n, o, t, v }) => [instant(t), o, h, l, c, v, String(n)])
  )

const fileFormats = ["csv", "json", "ndjson"] as const

type Format = (typeof fileFormats)[number] | "table"

/** The printer of an output format. It prints each bar as a line when it arrives, or all bars at the end. */
type Printer =
  | { readonly header?: string; readonly line: (candle: Candle.Candle) => string }
  | { readonly all: (candles: ReadonlyArray<Candle.Candle>) => string }

const printers: { readonly [F in Format]: Printer } = {
  csv: { header: CandleText.csvHeadings, line: CandleText.csv },
  ndjson: { line: CandleText.ndjson },
  json: { all: (candles) => `[${candles.map(CandleText.ndjson).join(",\n ")}]` },
  table: { all: table }
}

/** Returns the maximum number of bars that the venue can return for a time window. */
const expectedBars = ({ endTime, interval, startTime }: Candle.CandleWindowRequest, now: number): number => {
  const first = Math.max(Candle.barAt(interval, startTime), Candle.oldestRetainedBar(interval, now))
  return Math.max(0, Candle.barAt(interval, Math.min(endTime ?? now, now)) - first + 1)
}

interface Found {
  readonly bars: number
  readonly stretches: ReadonlyArray<Candle.CandleStretch>
}

const allBars = ({ stretches }: Found): ReadonlyArray<Candle.Candle> => stretches.flatMap(({ candles }) => candles)

/**
 * Returns remarks about the bars of a time window: which bars are missing, and whether the last bar is still forming.
 */
const remarks = (found: Found, { coin, interval, startTime }: Candle.CandleWindowRequest): ReadonlyArray<string> => {
  const [first] = allBars(found)
  const isCut = found.stretches.some(({ coverage }) => coverage !== "complete")
  const forming = found.stretches.at(-1)?.forming
  const missing = first === undefined
    ? "aged out: the venue retains the newest 5000 bars, and this window is older"
    : `truncated: no bars from ${instant(startTime)} to ${instant(first.t)}; the venue retains the newest 5000 bars`
  return [
    `${found.bars} bars of ${coin} ${interval}`,
    ...(isCut ? [missing] : []),
    ...(forming === undefined ? [] : [`the bar of ${instant(forming.t)} is still forming`])
  ]
}

const outputFormat = (out: Option.Option<Format>, json: boolean): Effect.Effect<Format, Output.UsageFault> =>
  Option.match(out, {
    onNone: () => Effect.succeed(json ? "json" : "table"),
    onSome: (format) =>
      json && format !== "json"
        ? Effect.fail(Output.fault(`--json and --out ${format} contradict each other; omit one`))
        : Effect.succeed(format)
  })

/**
 * The number of bars that one request queries. A response could contain 5000 bars; smaller requests make the progress
 * visible.
 */
const barsPerStretch = 1000

const printWindow = Effect.fnUntraced(function*(request: Candle.CandleWindowRequest, format: Format) {
  const total = expectedBars(request, yield* Clock.currentTimeMillis)
  const printer = printers[format]
  const access = yield* GatewayAccess.connect
  const fetch = (window: Candle.CandleWindowRequest) => GatewayAccess.over(access, Info.candleSnapshot(window))
  const printStretch = (candles: ReadonlyArray<Candle.Candle>, isFirst: boolean) => {
    if ("all" in printer) return Effect.void
    const header = isFirst && printer.header !== undefined ? [printer.header] : []
    const lines = [...header, ...candles.map(printer.line)]
    return lines.length === 0 ? Effect.void : Output.printText(lines.join("\n"))
  }
  const found = yield* Output.withProgress(Effect.fnUntraced(function*(show) {
    yield* show(Output.bar(0, total))
    return yield* Candle.walk(request, fetch, { barsPerStretch }).pipe(
      Stream.runFoldEffect(
        (): Found => ({ bars: 0, stretches: [] }),
        Effect.fnUntraced(function*(found, stretch) {
          const bars = found.bars + stretch.candles.length
          yield* show("")
          yield* printStretch(stretch.candles, found.stretches.length === 0)
          yield* show(Output.bar(bars, total))
          return { bars, stretches: [...found.stretches, stretch] }
        })
      )
    )
  }))
  if ("all" in printer) yield* Output.printText(printer.all(allBars(found)))
  yield* Console.error(`trigate: ${printable(remarks(found, request).join("; "))}`)
})

const momentFlag = (name: string, fallback: string, meaning: string) =>
  Flag.String(name).pipe(
    Flag.withMetavar("time"),
    Flag.withDefault(fallback),
    Flag.filterMap(Output.readMoment, () => Output.expectedMoment),
    Flag.withDescription(`${meaning}: a date, a date and time, milliseconds, or how long ago (default: ${fallback})`)
  )

/** `trigate info candles`. */
export const candles = Command.make("candles", {
  coin: Output.coin,
  interval: Output.interval,
  from: momentFlag("from", "24h", "First instant"),
  to: momentFlag("to", "now", "Last instant"),
  out: Flag.Literals("out", fileFormats).pipe(
    Flag.optional,
    Flag.withDescription("Print the bars in this file format instead of as a table")
  )
}, ({ coin, from, interval, out, to }) =>
  Effect.gen(function*() {
    const format = yield* outputFormat(out, yield* Output.AsJson)
    const now = yield* Clock.currentTimeMillis
    const request = { coin, interval, startTime: Output.toInstant(from, now), endTime: Output.toInstant(to, now) }
    if (request.startTime > request.endTime) {
      return yield* Output.fault(
        `--from (${instant(request.startTime)}) is after --to (${instant(request.endTime)})`
      )
    }
    return yield* printWindow(request, format)
  })).pipe(
    Command.withDescription(
      "Print open, high, low, close and volume of a coin. Missing bars of the window are reported on standard error"
    ),
    Command.withShortDescription("Print the bars of a coin"),
    Command.withExamples([
      { command: "trigate info candles BTC 1h", description: "The last 24 hours, as a table" },
      {
        command: "trigate info candles PURR/USDC 1m --from 2d --to 1d --out csv > purr.csv",
        description: "The one-minute bars from 48 to 24 hours ago, as a file"
      },
      { command: "trigate info candles BTC 1d --from 2026-01-01 --to 2026-01-31 --out ndjson", description: "A month" }
    ])
  )

/** No spot pair or token has the given name. */
export class NothingNamed extends Schema.TaggedError<NothingNamed>()("NothingNamed", { name: Schema.String }) {
  override get message() {
    return `No spot pair or token is named ${this.name}`
  }
}

const pairsTable = (whole: SpotLookup.SpotMeta, meta: SpotLookup.SpotMeta): string => {
  const lookup = SpotLookup.make(whole)
  return Output.rows(
    [Output.left("PAIR"), Output.right("INDEX"), Output.left("BASE"), Output.left("QUOTE")],
    meta.universe.map((pair) => {
      const { base, quote } = lookup.tokensOf(pair)
      const name = (token: typeof base) =>
        Option.match(token, { onNone: () => "(unlisted)", onSome: ({ name }) => name })
      return [pair.name, String(pair.index), name(base), name(quote)]
    })
  )
}

const tokensTable = ({ tokens }: SpotLookup.SpotMeta): string =>
  Output.rows(
    [
      Output.left("TOKEN"),
      ...["INDEX", "SIZE DECIMALS", "WEI DECIMALS"].map(Output.right),
      ...["TOKEN ID", "EVM CONTRACT"].map(Output.left)
    ],
    tokens.map(({ evmContract, index, name, szDecimals, tokenId, weiDecimals }) => [
      name,
      String(index),
      String(szDecimals),
      String(weiDecimals),
      tokenId,
      evmContract?.address ?? ""
    ])
  )

/**
 * Looks up a name in any letter case: returns the tokens with this name, and the pairs that have this name or contain
 * one of these tokens.
 */
const named = (meta: SpotLookup.SpotMeta, name: string): SpotLookup.SpotMeta => {
  const wanted = name.toLowerCase()
  const is = (given: string) => given.toLowerCase() === wanted
  const tokens = meta.tokens.filter((token) => is(token.name))
  const indexes = new Set(tokens.map(({ index }) => index))
  const universe = meta.universe.filter((pair) => is(pair.name) || pair.tokens.some((index) => indexes.has(index)))
  return { ...meta, universe, tokens }
}

const spotMeta = Command.make("spot-meta", {
  name: Argument.String("name").pipe(
    Argument.optional,
    Argument.withDescription("Token (PURR) or pair (PURR/USDC, @107) to look for; names are not unique")
  )
}, ({ name }) =>
  Effect.gen(function*() {
    const whole = yield* GatewayAccess.send(Info.spotMeta())
    const meta = Option.match(name, { onNone: () => whole, onSome: (wanted) => named(whole, wanted) })
    if (meta.universe.length === 0 && meta.tokens.length === 0) {
      return yield* new NothingNamed({ name: Option.getOrElse(name, () => "") })
    }
    return yield* Output.print({ json: meta, table: `${pairsTable(whole, meta)}\n\n${tokensTable(meta)}` })
  })).pipe(
    Command.withDescription("Print all spot pairs and tokens, or those with the given name"),
    Command.withExamples([{ command: "trigate info spot-meta PURR" }])
  )

const readQuery = Schema.decodeUnknownOption(
  Schema.StructWithRest(Schema.Struct({ type: Schema.String }), [Schema.Record(Schema.String, Schema.Unknown)])
)

const raw = Command.make("raw", {
  query: Argument.String("query").pipe(
    Argument.withDescription("The query as JSON, such as '{\"type\":\"allMids\"}', or - to read it from standard input")
  )
}, ({ query }) =>
  Effect.gen(function*() {
    const parsed = parseStrict(query === "-" ? yield* Output.text(query) : query)
    if (Result.isFailure(parsed)) return yield* Output.fault(`The query cannot be read: ${parsed.failure.message}`)
    const request = yield* Effect.fromOption(
      readQuery(parsed.success),
      () => Output.fault("The query must be a JSON object with a type, such as {\"type\":\"allMids\"}")
    )
    yield* Output.printJson(yield* GatewayAccess.send(Info.raw(request)))
  })).pipe(
    Command.withDescription("Send any query to /info and print its response as JSON, with all digits of integers"),
    Command.withShortDescription("Send any query to /info and print its response as JSON"),
    Command.withExamples([
      { command: "trigate info raw '{\"type\":\"allMids\"}'" },
      {
        command: "trigate info raw '{\"type\":\"l2Book\",\"coin\":\"BTC\"}'",
        description: "The best 20 levels of each side of a book"
      }
    ])
  )

/** `trigate info`. */
export const info = Command.make("info").pipe(
  Command.withDescription("Query the venue: pairs, tokens, bars, or any query as JSON"),
  Command.withSubcommands([spotMeta, candles, raw]),
  GatewayAccess.options
)

const storage = Command.make("storage", {
  address: Output.address("address").pipe(Argument.withDescription("Contract: 20 bytes in hex")),
  slot: Output.slot("slot").pipe(Argument.withDescription("Storage slot: 0, 12, 0xb, or a 32-byte hash"))
}, ({ address, slot }) =>
  Effect.gen(function*() {
    const value = yield* GatewayAccess.send(Evm.getStorageAt({ address, slot }))
    yield* Output.print({ json: { address, slot, value }, table: value })
  })).pipe(
    Command.withDescription("Print one 32-byte storage word of a contract, at the latest block"),
    Command.withExamples([
      {
        command: "trigate evm storage 0x5555555555555555555555555555555555555555 2",
        description: "The third storage word of the wrapped HYPE contract: the token's decimals"
      }
    ])
  )

const gas = Command.make("gas", {}, () =>
  Effect.gen(function*() {
    const [small, big] = yield* GatewayAccess.send(
      Effect.all([Evm.gasPrice(), Evm.bigBlockGasPrice()], { concurrency: 2 })
    )
    const row = (name: string, wei: bigint) => [name, EvmResources.formatGwei(wei), String(wei)]
    yield* Output.print({
      json: { gasPrice: String(small), bigBlockGasPrice: String(big) },
      table: Output.rows(
        [Output.left("BLOCK"), Output.right("GWEI"), Output.right("WEI")],
        [row("small", small), row("big", big)]
      )
    })
  })).pipe(
    Command.withDescription("Print the base fee of the next small and the next big block; --json prints wei"),
    Command.withExamples([{ command: "trigate evm gas --json" }])
  )

/** `trigate evm`. */
export const evm = Command.make("evm").pipe(
  Command.withDescription("Read HyperEVM"),
  Command.withSubcommands([storage, gas]),
  GatewayAccess.options
)

const yesNo = (value: boolean): string => value ? "yes" : "no"

const tokenFacts = (token: TokenData): string =>
  Output.facts([
    ["name", token.name ?? "(unresolved)"],
    ["symbol", token.symbol ?? "(unresolved)"],
    ["address", token.address],
    ["supply", EvmResources.formatUnits(BigInt(token.totalSupply), token.decimals)],
    ["units", `${token.totalSupply} (${token.decimals} decimals)`],
    ["mintable", yesNo(token.mintable)],
    ["burnable", yesNo(token.burnable)],
    ["metadata", token.metadata]
  ])

/** `trigate token`. */
export const token = Command.make("token", {
  address: Output.tonAddress("address").pipe(
    Argument.withDescription("Master contract of a jetton: 48 characters of base64url, or 0: and 64 hex digits")
  )
}, ({ address }) =>
  Effect.gen(function*() {
    const token = yield* GatewayAccess.send(Tokens.getTokenData({ address }))
    yield* Output.print({ json: token, table: tokenFacts(token) })
  })).pipe(
    Command.withDescription("Print name, symbol, decimals and supply of a token of the token chain"),
    Command.withExamples([{ command: "trigate token EQClb6WL4TgcNsmu7KdNii5mw330v-k_cl6jCKyPj9pWNfJz" }]),
    GatewayAccess.options
  )

/** The receipt does not exist: the transaction is unknown, or not yet in a block. */
export class ReceiptAbsent extends Schema.TaggedError<ReceiptAbsent>()("ReceiptAbsent", { hash: Hash }) {
  override get message() {
    return `No receipt of ${this.hash}: the transaction is unknown or not yet in a block; --wait waits for it`
  }
}

const encodeReceipt = Schema.encodeEffect(EvmResources.Receipt)

const receiptFacts = (receipt: EvmResources.Receipt): string => {
  const { blockHash, blockNumber, contractAddress, effectiveGasPrice, from, gasUsed, logs, status, to } = receipt
  const fee = Option.getOrUndefined(EvmResources.receiptFee(receipt))
  return Output.facts([
    ["transaction", receipt.transactionHash],
    ["status", status],
    ["block", EvmResources.isPreconfirmed(receipt) ? `${blockNumber} (not sealed yet)` : `${blockNumber} ${blockHash}`],
    ["from", from],
    ["to", to ?? "(none: creates a contract)"],
    ["created", contractAddress ?? undefined],
    ["gas used", String(gasUsed)],
    [
      "gas price",
      Predicate.isNullish(effectiveGasPrice) ? undefined : `${EvmResources.formatGwei(effectiveGasPrice)} gwei`
    ],
    ["fee", fee && EvmResources.formatEther(fee.total)],
    ["layer-1 fee", fee?.layer1 === undefined ? undefined : EvmResources.formatEther(fee.layer1)],
    ["logs", String(logs.length)]
  ])
}

const seconds = (duration: Duration.Duration): string => `${Duration.toSeconds(duration)} s`

const receiptWithin = Effect.fnUntraced(function*(hash: Hash, deadline: Duration.Duration) {
  const access = yield* GatewayAccess.connect
  const readReceipt = (request: { readonly hash: Hash }) =>
    GatewayAccess.over(access, Layer2.getTransactionReceipt(request))
  // continues to poll while the gateway is unreachable; a wrong URL is reported at once
  yield* Effect.catchIf(
    readReceipt({ hash }),
    () => MutableRef.get(access.unreachable) === undefined,
    () => Effect.void
  )
  const wait = ReceiptWait.wait(readReceipt, { hash, deadline })
  yield* Console.error(`trigate: waiting up to ${seconds(deadline)} for the receipt of ${hash}`)
  return yield* Output.withProgress((show) => {
    const ticks = Effect.repeat(
      Effect.void,
      Schedule.spaced("1 second").pipe(Schedule.tap(({ output }) => show(`waiting for ${output} s`)))
    )
    return Effect.raceFirst(wait, Effect.andThen(ticks, Effect.never))
  })
})

const receiptNow = Effect.fnUntraced(function*(hash: Hash) {
  const receipt = yield* GatewayAccess.send(Layer2.getTransactionReceipt({ hash }))
  return receipt === null ? yield* new ReceiptAbsent({ hash }) : receipt
})

const deadline = Flag.String("timeout").pipe(
  Flag.withMetavar("duration"),
  Flag.withDefault("60s"),
  Flag.filterMap(Output.readDuration, () => "a duration with its unit: 500ms, 30s, 5m"),
  Flag.withDescription("Maximum time to wait with --wait, such as 500ms, 30s or 5m (default: 60s)")
)

/** `trigate receipt`. */
export const receipt = Command.make("receipt", {
  hash: Output.hash("hash").pipe(Argument.withDescription("Hash of the transaction: 32 bytes in hex")),
  wait: Output.booleanFlag("wait", "Wait until the transaction is in a sealed block"),
  timeout: deadline
}, ({ hash, timeout, wait }) =>
  Effect.gen(function*() {
    const receipt = yield* wait ? receiptWithin(hash, timeout) : receiptNow(hash)
    yield* Output.print({ json: yield* Effect.orDie(encodeReceipt(receipt)), table: receiptFacts(receipt) })
  })).pipe(
    Command.withDescription(
      "Print the receipt of a layer-2 transaction. A failed transaction also has a receipt (status: failure)"
    ),
    Command.withShortDescription("Print the receipt of a layer-2 transaction"),
    Command.withExamples([
      {
        command:
          "trigate receipt --wait --timeout 2m 0xffbd8fdbaf5800e2f7df0d5a73efee4fe8a9ef54d53f10798bbb76f7bb08c39e"
      }
    ]),
    GatewayAccess.options
  )

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
export const positions = Command.make("positions", {
  account: SignedSending.accountArgument,
  dex: SignedSending.dexFlag("all, and the venue's own"),
  ...SignedSending.keyFlags
}, ({ account, dex, ...key }) =>
  Effect.gen(function*() {
    const user = yield* SignedSending.find(account, key)
    const covered = yield* SignedSending.dexes(dex)
    const state = yield* GatewayAccess.send(
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
