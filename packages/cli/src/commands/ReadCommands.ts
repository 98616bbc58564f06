/** `trigate info`, `evm`, `token` and `receipt`: queries of the three chains. */
import * as Evm from "@trigate/client/Evm"
import * as Info from "@trigate/client/Info"
import * as Layer2 from "@trigate/client/Layer2"
import * as Tokens from "@trigate/client/Tokens"
import { Hash } from "@trigate/domain/encoding/Hex"
import * as Json from "@trigate/domain/encoding/Json"
import * as Gas from "@trigate/domain/evm/Gas"
import * as Receipt from "@trigate/domain/evm/Receipt"
import * as SpotLookup from "@trigate/domain/info/SpotLookup"
import type { SpotMeta } from "@trigate/domain/info/SpotMeta"
import type { TokenData } from "@trigate/domain/tokens/TokenData"
import * as ReceiptWait from "@trigate/layer2/ReceiptWait"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as MutableRef from "effect/MutableRef"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as GatewayAccess from "../GatewayAccess.ts"
import * as Input from "../Input.ts"
import * as Output from "../Output.ts"
import * as CandlesCommand from "./CandlesCommand.ts"

/** No spot pair or token has the given name. */
export class NothingNamed extends Schema.TaggedError<NothingNamed>()("NothingNamed", { name: Schema.String }) {
  override get message() {
    return `No spot pair or token is named ${this.name}`
  }
}

const pairsTable = (whole: SpotMeta, meta: SpotMeta): string => {
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

const tokensTable = ({ tokens }: SpotMeta): string =>
  Output.rows(
    [
      Output.left("TOKEN"),
      Output.right("INDEX"),
      Output.right("SIZE DECIMALS"),
      Output.right("WEI DECIMALS"),
      Output.left("TOKEN ID"),
      Output.left("EVM CONTRACT")
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
const named = (meta: SpotMeta, name: string): SpotMeta => {
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
    const whole = yield* GatewayAccess.ask(Info.spotMeta())
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
    const parsed = Json.parseStrict(query === "-" ? yield* Input.text(query) : query)
    if (Result.isFailure(parsed)) return yield* Input.fault(`The query cannot be read: ${parsed.failure.message}`)
    const request = yield* Effect.fromOption(
      readQuery(parsed.success),
      () => Input.fault("The query must be a JSON object with a type, such as {\"type\":\"allMids\"}")
    )
    yield* Output.printJson(yield* GatewayAccess.ask(Info.raw(request)))
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
  Command.withDescription("Query the trading chain: pairs, tokens, bars, or any query as JSON"),
  Command.withSubcommands([spotMeta, CandlesCommand.command, raw]),
  GatewayAccess.options
)

const storage = Command.make("storage", {
  address: Input.address("address").pipe(Argument.withDescription("Contract: 20 bytes in hex")),
  slot: Input.slot("slot").pipe(Argument.withDescription("Storage slot: 0, 12, 0xb, or a 32-byte hash"))
}, ({ address, slot }) =>
  Effect.gen(function*() {
    const value = yield* GatewayAccess.ask(Evm.getStorageAt({ address, slot }))
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
    const [small, big] = yield* GatewayAccess.ask(
      Effect.all([Evm.gasPrice(), Evm.bigBlockGasPrice()], { concurrency: 2 })
    )
    const row = (name: string, wei: bigint) => [name, Gas.formatGwei(wei), String(wei)]
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
  Command.withDescription("Read the trading chain's EVM"),
  Command.withSubcommands([storage, gas]),
  GatewayAccess.options
)

const yesNo = (value: boolean): string => value ? "yes" : "no"

const tokenFacts = (token: TokenData): string =>
  Output.facts([
    ["name", token.name ?? "(unresolved)"],
    ["symbol", token.symbol ?? "(unresolved)"],
    ["address", token.address],
    ["supply", Gas.formatUnits(BigInt(token.totalSupply), token.decimals)],
    ["units", `${token.totalSupply} (${token.decimals} decimals)`],
    ["mintable", yesNo(token.mintable)],
    ["burnable", yesNo(token.burnable)],
    ["metadata", token.metadata]
  ])

/** `trigate token`. */
export const token = Command.make("token", {
  address: Input.tonAddress("address").pipe(
    Argument.withDescription("Master contract of a jetton: 48 characters of base64url, or 0: and 64 hex digits")
  )
}, ({ address }) =>
  Effect.gen(function*() {
    const token = yield* GatewayAccess.ask(Tokens.getTokenData({ address }))
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

const encodeReceipt = Schema.encodeEffect(Receipt.Receipt)

const feeFacts = (receipt: Receipt.Receipt): ReadonlyArray<readonly [name: string, value: string]> =>
  Option.match(Receipt.receiptFee(receipt), {
    onNone: () => [],
    onSome: ({ layer1, total }) => [
      ["fee", Gas.formatEther(total)],
      ...(layer1 === undefined ? [] : [["layer-1 fee", Gas.formatEther(layer1)] as const])
    ]
  })

const receiptFacts = (receipt: Receipt.Receipt): string => {
  const { blockHash, blockNumber, contractAddress, effectiveGasPrice, from, gasUsed, logs, status, to } = receipt
  return Output.facts([
    ["transaction", receipt.transactionHash],
    ["status", status],
    ["block", Receipt.isPreconfirmed(receipt) ? `${blockNumber} (not sealed yet)` : `${blockNumber} ${blockHash}`],
    ["from", from],
    ["to", to ?? "(none: creates a contract)"],
    ...(contractAddress === undefined || contractAddress === null ? [] : [["created", contractAddress] as const]),
    ["gas used", String(gasUsed)],
    ...(effectiveGasPrice === undefined || effectiveGasPrice === null
      ? []
      : [["gas price", `${Gas.formatGwei(effectiveGasPrice)} gwei`] as const]),
    ...feeFacts(receipt),
    ["logs", String(logs.length)]
  ])
}

const seconds = (duration: Duration.Duration): string => `${Duration.toSeconds(duration)} s`

const receiptWithin = Effect.fnUntraced(function*(hash: Hash, deadline: Duration.Duration) {
  const access = yield* GatewayAccess.connect
  const ask = (request: { readonly hash: Hash }) => GatewayAccess.over(access, Layer2.getTransactionReceipt(request))
  // continues to poll while the gateway is unreachable; a wrong URL is reported at once
  yield* Effect.catchIf(ask({ hash }), () => MutableRef.get(access.unreachable) === undefined, () => Effect.void)
  const wait = ReceiptWait.wait(ask, { hash, deadline })
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
  const receipt = yield* GatewayAccess.ask(Layer2.getTransactionReceipt({ hash }))
  return receipt === null ? yield* new ReceiptAbsent({ hash }) : receipt
})

const deadline = Flag.String("timeout").pipe(
  Flag.withMetavar("duration"),
  Flag.withDefault("60s"),
  Flag.filterMap(Input.readDuration, () => "a duration with its unit: 500ms, 30s, 5m"),
  Flag.withDescription("Maximum time to wait with --wait, such as 500ms, 30s or 5m (default: 60s)")
)

/** `trigate receipt`. */
export const receipt = Command.make("receipt", {
  hash: Input.hash("hash").pipe(Argument.withDescription("Hash of the transaction: 32 bytes in hex")),
  wait: Flag.Boolean("wait").pipe(
    Flag.withDefault(false),
    Flag.withDescription("Wait until the transaction is in a sealed block")
  ),
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
