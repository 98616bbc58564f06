/** `trigate token`: what the token chain knows about a token. */
import type * as TokenData from "@trigate/domain/TokenData"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as GatewayAccess from "./GatewayAccess.ts"
import * as Output from "./Output.ts"
import * as Table from "./Table.ts"

const yesNo = (value: boolean): string => value ? "yes" : "no"

/** Units of the smallest kind as an amount. */
const amount = (units: string, decimals: number): string => {
  if (decimals === 0) return units
  const digits = units.padStart(decimals + 1, "0")
  const fraction = digits.slice(-decimals).replace(/0+$/u, "")
  return `${digits.slice(0, -decimals)}${fraction === "" ? "" : `.${fraction}`}`
}

const tableOf = (token: TokenData.TokenData): string =>
  Table.facts([
    ["name", token.name ?? "(unresolved)"],
    ["symbol", token.symbol ?? "(unresolved)"],
    ["address", token.address],
    ["supply", amount(token.totalSupply, token.decimals)],
    ["units", `${token.totalSupply} (${token.decimals} decimals)`],
    ["mintable", yesNo(token.mintable)],
    ["burnable", yesNo(token.burnable)],
    ["metadata", token.metadata]
  ])

/** The command. */
export const command = Command.make("token", {
  address: Argument.String("address").pipe(
    Argument.withDescription("Master contract of a jetton: 48 characters of base64url, or 0: and 64 hex digits")
  )
}, ({ address }) =>
  Effect.gen(function*() {
    const token = yield* GatewayAccess.ask(({ tokens }) => tokens.getTokenData({ address }))
    yield* Output.print({ json: token, table: tableOf(token) })
  })).pipe(
    Command.withDescription("Print name, symbol, decimals and supply of a token of the token chain"),
    Command.withExamples([{ command: "trigate token EQClb6WL4TgcNsmu7KdNii5mw330v-k_cl6jCKyPj9pWNfJz" }]),
    GatewayAccess.options
  )
