/** The account of a command: from an argument, or from a private key, which can belong to an API wallet. */
import * as Info from "@trigate/client/Info"
import type { Address } from "@trigate/domain/encoding/Hex"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as GatewayAccess from "./GatewayAccess.ts"
import * as SignedSending from "./SignedSending.ts"

/** The option `--dex`. */
export const dexFlag = Flag.String("dex").pipe(
  Flag.withMetavar("name"),
  Flag.optional,
  Flag.withDescription("A builder-deployed dex of perpetuals (default: the venue's own)")
)

/** Returns the query field that selects the dex in {@link dexFlag}; an empty object without the flag. */
export const inDex = (dex: Option.Option<string>): { readonly dex?: string } =>
  Option.match(dex, { onNone: () => ({}), onSome: (name) => ({ dex: name }) })

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
