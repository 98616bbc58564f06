/** `trigate evm`: reads of the trading chain's EVM. */
import * as Gas from "@trigate/domain/Gas"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as GatewayAccess from "./GatewayAccess.ts"
import * as Output from "./Output.ts"
import * as Params from "./Params.ts"
import * as Table from "./Table.ts"

const storage = Command.make("storage", {
  address: Params.address("address").pipe(Argument.withDescription("Contract: 20 bytes in hex")),
  slot: Params.slot("slot").pipe(Argument.withDescription("Position of the word: 0, 12, 0xb, or a 32-byte hash"))
}, ({ address, slot }) =>
  Effect.gen(function*() {
    const value = yield* GatewayAccess.ask(({ evm }) => evm.getStorageAt({ address, slot }))
    yield* Output.print({ json: { address, slot, value }, table: value })
  })).pipe(
    Command.withDescription("Print one 32-byte storage word of a contract, at the latest block"),
    Command.withExamples([
      {
        command: "trigate evm storage 0x5555555555555555555555555555555555555555 2",
        description: "The third word of wrapped HYPE: its decimals"
      }
    ])
  )

const gas = Command.make("gas", {}, () =>
  Effect.gen(function*() {
    const [small, big] = yield* GatewayAccess.ask(({ evm }) =>
      Effect.all([evm.gasPrice(), evm.bigBlockGasPrice()], { concurrency: 2 })
    )
    const row = (name: string, wei: bigint) => [name, Gas.formatGwei(wei), String(wei)]
    yield* Output.print({
      json: { gasPrice: String(small), bigBlockGasPrice: String(big) },
      table: Table.rows(
        [{ heading: "BLOCK", align: "left" }, { heading: "GWEI", align: "right" }, { heading: "WEI", align: "right" }],
        [row("small", small), row("big", big)]
      )
    })
  })).pipe(
    Command.withDescription("Print the base fee of the next small and the next big block; --json prints wei"),
    Command.withExamples([{ command: "trigate evm gas --json" }])
  )

/** The command. */
export const command = Command.make("evm").pipe(
  Command.withDescription("Read the trading chain's EVM"),
  Command.withSubcommands([storage, gas]),
  GatewayAccess.options
)
