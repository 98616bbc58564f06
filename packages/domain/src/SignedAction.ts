/** The body of `POST /exchange`: an action, its nonce and its signature. */
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { Action, actionForms, type DecodedActionType } from "./Action.ts"
import { Address } from "./Hex.ts"
import { openStruct } from "./OpenStruct.ts"
import { Signature } from "./Signature.ts"
import { Millis } from "./Time.ts"

/** A vault or sub-account that is acted for. The venue reads it without its 0x too, as some clients send it (ccxt). */
const VaultAddress = Schema.String.check(
  Schema.isPattern(/^(?:0x)?[0-9a-fA-F]{40}$/u, { expected: "a 20-byte address in hex" })
).annotate({ identifier: "VaultAddress", description: "a 20-byte address in hex, with 0x or without" }).pipe(
  Schema.decodeTo(
    Address,
    SchemaTransformation.transform({
      decode: (text) => text.startsWith("0x") ? text : `0x${text}`,
      encode: (address): string => address
    })
  )
)

const envelope = {
  nonce: Millis.annotateKey({ description: "Milliseconds; within (now - 2 days, now + 1 day), unique per signer" }),
  signature: Signature,
  vaultAddress: Schema.optionalKey(Schema.NullOr(VaultAddress)),
  expiresAfter: Schema.optionalKey(Schema.NullOr(Millis)),
  isFrontend: Schema.optionalKey(Schema.Boolean).annotateKey({
    description: "Marks an action of the venue's own page, as clients made after it do, too; nobody signs it"
  })
}

/** A signed action of any of the four types. */
export const SignedAction = Schema.Struct({ action: Action, ...envelope }).annotate({ identifier: "SignedAction" })
export type SignedAction = typeof SignedAction.Type

/** What every `/exchange` body has, whatever its action type. */
export const SignedEnvelope = Schema.Struct({
  action: openStruct({ type: Schema.String }),
  ...envelope
})
export type SignedEnvelope = typeof SignedEnvelope.Type

/** A signed action of one type: decoding against it gives faults that speak of that type only. */
export const signedActionOf = <Type extends DecodedActionType>(type: Type) =>
  Schema.Struct({ action: actionForms[type], ...envelope })
