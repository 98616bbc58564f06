/** `trigate info spot-meta`: the spot pairs and tokens of the trading chain. */
import * as SpotLookup from "@trigate/domain/SpotLookup"
import type { SpotMeta } from "@trigate/domain/SpotMeta"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as GatewayAccess from "./GatewayAccess.ts"
import * as Output from "./Output.ts"
import * as Table from "./Table.ts"

const left = (heading: string): Table.Column => ({ heading, align: "left" })
const right = (heading: string): Table.Column => ({ heading, align: "right" })

const pairsOf = (meta: SpotMeta): string => {
  const lookup = SpotLookup.make(meta)
  return Table.rows(
    [left("PAIR"), right("INDEX"), left("BASE"), left("QUOTE")],
    meta.universe.map((pair) => {
      const { base, quote } = lookup.tokensOf(pair)
      const name = (token: typeof base) =>
        Option.match(token, { onNone: () => "(unlisted)", onSome: ({ name }) => name })
      return [pair.name, String(pair.index), name(base), name(quote)]
    })
  )
}

const tokensOf = ({ tokens }: SpotMeta): string =>
  Table.rows(
    [
      left("TOKEN"),
      right("INDEX"),
      right("SIZE DECIMALS"),
      right("WEI DECIMALS"),
      left("TOKEN ID"),
      left("EVM CONTRACT")
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

/** The command. */
export const command = Command.make("spot-meta", {}, () =>
  Effect.gen(function*() {
    const meta = yield* GatewayAccess.ask(({ info }) => info.spotMeta())
    yield* Output.print({ json: meta, table: `${pairsOf(meta)}\n\n${tokensOf(meta)}` })
  })).pipe(Command.withDescription("Print all spot pairs and tokens"))
