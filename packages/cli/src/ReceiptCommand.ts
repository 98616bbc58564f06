/** `trigate receipt`: the receipt of a transaction on the layer 2. */
import * as Gas from "@trigate/domain/Gas"
import { Hash } from "@trigate/domain/Hex"
import * as Receipt from "@trigate/domain/Receipt"
import * as ReceiptWait from "@trigate/layer2/ReceiptWait"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as MutableRef from "effect/MutableRef"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as GatewayAccess from "./GatewayAccess.ts"
import * as Output from "./Output.ts"
import * as Params from "./Params.ts"
import * as Progress from "./Progress.ts"
import * as Table from "./Table.ts"

/** There is no receipt: the transaction is unknown, or not yet in a block. */
export class ReceiptAbsent extends Schema.TaggedError<ReceiptAbsent>()("ReceiptAbsent", { hash: Hash }) {
  override get message() {
    return `No receipt of ${this.hash}: the transaction is unknown or not yet in a block; --wait waits for it`
  }
}

const encode = Schema.encodeEffect(Receipt.Receipt)

const tableOf = (receipt: Receipt.Receipt): string => {
  const { blockHash, blockNumber, contractAddress, effectiveGasPrice, from, gasUsed, logs, status, to } = receipt
  return Table.facts([
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
    ["logs", String(logs.length)]
  ])
}

const seconds = (duration: Duration.Duration): string => `${Duration.toSeconds(duration)} s`

const waited = Effect.fnUntraced(function*(hash: Hash, deadline: Duration.Duration) {
  const connection = yield* GatewayAccess.connect
  const ask = (request: { readonly hash: Hash }) =>
    GatewayAccess.over(connection, ({ layer2 }) => layer2.getTransactionReceipt(request))
  // a poll that finds no gateway would wait for one; who has mistyped its address should not
  yield* Effect.catchIf(ask({ hash }), () => !MutableRef.get(connection.unreachable), () => Effect.void)
  const wait = ReceiptWait.wait(ask, { hash, deadline })
  yield* Console.error(`trigate: waiting up to ${seconds(deadline)} for the receipt of ${hash}`)
  return yield* Progress.during((show) => {
    const ticks = Effect.repeat(
      Effect.void,
      Schedule.spaced("1 second").pipe(Schedule.tap(({ output }) => show(`waiting for ${output} s`)))
    )
    return Effect.raceFirst(wait, Effect.andThen(ticks, Effect.never))
  })
})

const now = Effect.fnUntraced(function*(hash: Hash) {
  const receipt = yield* GatewayAccess.ask(({ layer2 }) => layer2.getTransactionReceipt({ hash }))
  return receipt === null ? yield* new ReceiptAbsent({ hash }) : receipt
})

const deadline = Flag.String("timeout").pipe(
  Flag.withMetavar("duration"),
  Flag.withDefault("60s"),
  Flag.filterMap(Params.readDuration, () => "a duration with its unit: 500ms, 30s, 5m"),
  Flag.withDescription("How long --wait waits: 500ms, 30s, 5m (default: 60s)")
)

/** The command. */
export const command = Command.make("receipt", {
  hash: Params.hash("hash").pipe(Argument.withDescription("Hash of the transaction: 32 bytes in hex")),
  wait: Flag.Boolean("wait").pipe(
    Flag.withDefault(false),
    Flag.withDescription("Wait until the transaction is in a sealed block")
  ),
  timeout: deadline
}, ({ hash, timeout, wait }) =>
  Effect.gen(function*() {
    const receipt = yield* wait ? waited(hash, timeout) : now(hash)
    yield* Output.print({ json: yield* Effect.orDie(encode(receipt)), table: tableOf(receipt) })
  })).pipe(
    Command.withDescription(
      "Print the receipt of a layer-2 transaction; a transaction that failed has one, too (status: failure)"
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
