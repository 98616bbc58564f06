/** A corrected body that comes without a signature, signed by the trader with code that the inspector does not use. */
import * as Schema from "effect/Schema"
import { soundOf } from "./breaks.ts"
import { bodyOf, rightRecipe } from "./signingMistakes.ts"

const Unsigned = Schema.Struct({
  action: Schema.StructWithRest(Schema.Struct({ type: Schema.String }), [Schema.Record(Schema.String, Schema.Unknown)]),
  nonce: Schema.Int,
  vaultAddress: Schema.optional(Schema.NullOr(Schema.String)),
  expiresAfter: Schema.optional(Schema.NullOr(Schema.Int))
})

const decode = Schema.decodeUnknownSync(Unsigned)

/** Returns the whole body to send. */
export const signedAnew = (body: unknown): Promise<unknown> => {
  const { action, expiresAfter, nonce, vaultAddress } = decode(body)
  const sound = soundOf({ action, nonce })
  return bodyOf({
    ...rightRecipe(sound),
    ...(vaultAddress == null ? {} : { vaultAddress }),
    ...(expiresAfter == null ? {} : { expiresAfter })
  }, sound)
}
