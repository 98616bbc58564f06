/** `trigate info spot-meta`: the spot pairs and tokens of the trading chain. */
import * as SpotLookup from "@trigate/domain/SpotLookup"
import type { SpotMeta } from "@trigate/domain/SpotMeta"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as GatewayAccess from "./GatewayAccess.ts"
import * as Output from "./Output.ts"
import * as Table from "./Table.ts"

/** No pair and no token has the name. */
export class NothingNamed extends Schema.TaggedError<NothingNamed>()("NothingNamed", { name: Schema.String }) {
  override get message() {
    return `No spot pair and no token is named ${this.name}`
  }
}

const left = (heading: string): Table.Column => ({ heading, align: "left" })
const right = (heading: string): Table.Column => ({ heading, align: "right" })

const pairsOf = (whole: SpotMeta, meta: SpotMeta): string => {
  const lookup = SpotLookup.make(whole)
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

/** The part of the answer that a name stands in; letter case does not matter. */
const named = (meta: SpotMeta, name: string): SpotMeta => {
  const wanted = name.toLowerCase()
  const is = (given: string) => given.toLowerCase() === wanted
  const tokens = meta.tokens.filter((token) => is(token.name))
  const indexes = new Set(tokens.map(({ index }) => index))
  const universe = meta.universe.filter((pair) => is(pair.name) || pair.tokens.some((index) => indexes.has(index)))
  return { ...meta, universe, tokens }
}

/** The command. */
export const command = Command.make("spot-meta", {
  name: Argument.String("name").pipe(
    Argument.optional,
    Argument.withDescription("Token (PURR) or pair (PURR/USDC, @107) to look for; names are not unique")
  )
}, ({ name }) =>
  Effect.gen(function*() {
    const whole = yield* GatewayAccess.ask(({ info }) => info.spotMeta())
    const meta = Option.match(name, { onNone: () => whole, onSome: (wanted) => named(whole, wanted) })
    if (meta.universe.length === 0 && meta.tokens.length === 0) {
      return yield* new NothingNamed({ name: Option.getOrElse(name, () => "") })
    }
    return yield* Output.print({ json: meta, table: `${pairsOf(whole, meta)}\n\n${tokensOf(meta)}` })
  })).pipe(
    Command.withDescription("Print spot pairs and tokens, all of them or those of one name"),
    Command.withExamples([{ command: "trigate info spot-meta PURR" }])
  )
