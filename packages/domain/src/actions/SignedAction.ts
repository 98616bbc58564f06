/** The body of `POST /exchange`: an action, its nonce and its signature. */
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { Address } from "../encoding/Hex.ts"
import * as Json from "../encoding/Json.ts"
import { openStruct } from "../encoding/OpenStruct.ts"
import type { InvalidRequest } from "../errors/RequestError.ts"
import { decodeFaults, invalidRequest } from "../operations/Operation.ts"
import { Millis } from "../Time.ts"
import { Action, actionForms, type DecodedActionType } from "./Action.ts"
import { isSentAction, legCount } from "./ActionCatalog.ts"
import { Signature } from "./Signature.ts"

/** The vault or sub-account on whose behalf an action is signed. The 0x prefix is optional, because ccxt omits it. */
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
  nonce: Millis.annotateKey({
    description: "Milliseconds since the Unix epoch, between 2 days before and 1 day after now; unique per signer"
  }),
  signature: Signature,
  vaultAddress: Schema.optionalKey(Schema.NullOr(VaultAddress)),
  expiresAfter: Schema.optionalKey(Schema.NullOr(Millis)),
  isFrontend: Schema.optionalKey(Schema.Boolean).annotateKey({
    description: "Set by the venue's own web page and similar clients; not covered by the signature"
  })
}

/** A signed action whose members the gateway decodes: an {@link Action} with its nonce and signature. */
export const SignedAction = Schema.Struct({ action: Action, ...envelope }).annotate({ identifier: "SignedAction" })
export type SignedAction = typeof SignedAction.Type

/** The members of every `/exchange` body. */
export const SignedEnvelope = Schema.Struct({
  action: openStruct({ type: Schema.String }),
  ...envelope
})
export type SignedEnvelope = typeof SignedEnvelope.Type

/** Returns the schema of a signed action of one type. Its decoding errors describe that type only. */
export const signedActionSchema = <Type extends DecodedActionType>(type: Type) =>
  Schema.Struct({ action: actionForms[type], ...envelope })

/** A signed action of any type: the action as it was signed, and the members beside it, such as the nonce. */
export interface AnySignedAction extends Omit<SignedEnvelope, "action"> {
  // the first type accepts values whose type is an interface, the second accepts object literals with additional
  // members
  readonly action: { readonly type: string } | SignedEnvelope["action"]
}

const encodeEnvelope = Schema.encodeEffect(Schema.Struct(envelope), { errors: "all" })

/**
 * Encodes a signed action as a request body. Integers keep all digits, and the action's members keep their order,
 * because the signed hash can depend on that order.
 *
 * Fails with `InvalidRequest` if a value beside the action, such as the nonce, is out of range. The members of the
 * action are not checked.
 */
export const write = ({ action, ...envelope }: AnySignedAction): Effect.Effect<string, InvalidRequest> =>
  Effect.mapBoth(encodeEnvelope(envelope), {
    onFailure: (error) => invalidRequest(decodeFaults(error)),
    onSuccess: (encoded) => Json.stringify({ action, ...encoded })
  })

/** Returns the number of legs ({@link legCount}) of the action in a request body; 1 if the body is not valid. */
export const legCountIn = (body: string): number => {
  const value = Json.of(body).valueOrUndefined
  return Predicate.hasProperty(value, "action") && isSentAction(value.action) ? legCount(value.action) : 1
}
