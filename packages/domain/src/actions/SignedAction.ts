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
import { batchEntries, isSentAction, type SentAction } from "./ActionCatalog.ts"
import { Signature } from "./Signature.ts"

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
    description: "Marks an action of the venue's own page, and of clients modelled on it; not signed"
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
export const signedActionSchema = <Type extends DecodedActionType>(type: Type) =>
  Schema.Struct({ action: actionForms[type], ...envelope })

/** A signed action of any type, such as an order: an action with its members as they were signed, and its envelope. */
export interface AnySignedAction extends Omit<SignedEnvelope, "action"> {
  // without the first, values of interfaces would not be assignable; without the second, literals with further members
  readonly action: { readonly type: string } | SignedEnvelope["action"]
}

const encodeEnvelope = Schema.encodeEffect(Schema.Struct(envelope), { errors: "all" })

/**
 * Writes the body of a signed action: the members of the action in the order in which they are given, since the venue may hash
 * them in that order, and integers with all their digits.
 *
 * Fails with `InvalidRequest` for an envelope outside its ranges; the action itself is not checked.
 */
export const write = ({ action, ...envelope }: AnySignedAction): Effect.Effect<string, InvalidRequest> =>
  Effect.mapBoth(encodeEnvelope(envelope), {
    onFailure: (error) => invalidRequest(decodeFaults(error)),
    onSuccess: (encoded) => Json.stringify({ action, ...encoded })
  })

/** Returns the number of legs of an action: the entries of its batch, also inside a multi-sig; 1 for any other action. */
export const legCount = (action: SentAction): number => batchEntries(action)?.length ?? 1

/** Returns {@link legCount} of the action in a body; 1 for a text that is not a body. */
export const legCountIn = (body: string): number => {
  const value = Json.of(body).valueOrUndefined
  return Predicate.hasProperty(value, "action") && isSentAction(value.action) ? legCount(value.action) : 1
}
