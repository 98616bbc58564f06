/** Schemas for the members of subscription requests, with the venue's defaults. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import { Address, lowerCase } from "../encoding/Hex.ts"

/** Makes the schema of a member that has a default value. */
export const orElse = <S extends Schema.Top & Schema.Codec<unknown, unknown>>(schema: S, value: S["Encoded"]) =>
  schema.pipe(Schema.withDecodingDefaultKey(Effect.succeed(value)))

/** An address, converted to lower case as in the venue's acknowledgements. */
export const User = Address.pipe(
  Schema.decodeTo(Schema.toType(Address), {
    decode: SchemaGetter.transform(lowerCase),
    encode: SchemaGetter.passthrough()
  })
)

export const Coin = Schema.String.check(Schema.isBetweenLength(1, 64))

const dex = orElse(
  Schema.NullOr(Schema.String.check(Schema.isMaxLength(32))).pipe(
    Schema.decodeTo(Schema.String, {
      decode: SchemaGetter.transform((name) => name ?? ""),
      encode: SchemaGetter.passthrough()
    })
  ),
  ""
)

/** A boolean member with default `false`. */
export const off = orElse(
  Schema.NullOr(Schema.Boolean).pipe(
    Schema.decodeTo(Schema.Boolean, {
      decode: SchemaGetter.transform((isOn) => isOn ?? false),
      encode: SchemaGetter.passthrough()
    })
  ),
  false
)

export const nothing = Schema.Struct({})
export const ofCoin = Schema.Struct({ coin: Coin })
export const ofUser = Schema.Struct({ user: User })
export const ofUserInDex = Schema.Struct({ user: User, dex })
export const ofDex = Schema.Struct({ dex })
