/** The account of a command: from an argument, or from a private key, which can belong to an API wallet. */
import * as Info from "@trigate/client/Info"
import { closestWord } from "@trigate/domain/ClosestWord"
import type { Address } from "@trigate/domain/encoding/Hex"
import { UnknownAsset } from "@trigate/domain/errors/ResourceError"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as GatewayAccess from "./GatewayAccess.ts"
import * as SignedSending from "./SignedSending.ts"

/** Declares the option `--dex`. */
export const dexFlag = (otherwise: string) =>
  Flag.String("dex").pipe(
    Flag.withMetavar("name"),
    Flag.optional,
    Flag.withDescription(`A builder-deployed dex of perpetuals (default: ${otherwise})`)
  )

/**
 * Returns the dexes of perpetuals that a command covers: the one in {@link dexFlag}, or all, the venue's own first. The
 * name of the venue's own is empty. Fails with `UnknownAsset` for a dex that the venue does not list.
 */
export const dexes = Effect.fnUntraced(function*(dex: Option.Option<string>) {
  const listed = (yield* GatewayAccess.ask(Info.perpDexs())).flatMap((each) => each?.name ?? [])
  if (Option.isNone(dex)) return ["", ...listed]
  if (listed.includes(dex.value)) return [dex.value]
  const meant = closestWord(dex.value, listed)
  const hint = meant === undefined ? "" : `: did you mean "${meant}"?`
  return yield* new UnknownAsset({ coin: dex.value, detail: `Unknown dex "${dex.value}"${hint}` })
})

/** Returns the query field that selects a dex; an empty object for the venue's own. */
export const inDex = (dex: string): { readonly dex?: string } => dex === "" ? {} : { dex }

/** Returns the account for which a key signs: the key's own account, or the master account of an API wallet. */
export const ofSigner = Effect.fnUntraced(function*(signer: Address) {
  const { data, role } = yield* GatewayAccess.ask(Info.userRole({ user: signer }))
  return role === "agent" ? data?.user ?? signer : signer
})

/** Returns the account in the argument; without an argument, the account of the private key in the options. */
export const find = Effect.fnUntraced(function*(
  address: Option.Option<Address>,
  key: SignedSending.KeyOptions
) {
  if (Option.isSome(address)) return address.value
  return yield* ofSigner((yield* SignedSending.loadSigner(key)).address)
})
