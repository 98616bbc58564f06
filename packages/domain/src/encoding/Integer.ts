/** JSON integers of any size. */
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"

const UINT64_MAX = 2n ** 64n - 1n

const inJsonSchema = { jsonSchema: { type: "integer", minimum: 0, exclusiveMaximum: 2 ** 64 } } as const

/**
 * An unsigned 64-bit integer written as a JSON integer, decoded as a `bigint` without conversion to a double.
 *
 * The encoded form is the one that `Json.parse` and `Json.stringify` use: a number if it is a safe integer, otherwise a `bigint`.
 */
export const Uint64 = Schema.Union([Schema.Int, Schema.BigInt]).annotate(inJsonSchema).pipe(
  Schema.decodeTo(
    Schema.BigInt.check(Schema.isBetweenBigInt({ minimum: 0n, maximum: UINT64_MAX })),
    SchemaTransformation.transform({
      decode: (value) => BigInt(value),
      encode: (value) => value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value
    })
  )
)

/** An unsigned 64-bit integer in the form of `Json.parse`: a number if it is a safe integer, otherwise a `bigint`. */
export const Natural64 = Schema.Union([
  Schema.Natural,
  Schema.BigInt.check(Schema.isBetweenBigInt({ minimum: BigInt(Number.MAX_SAFE_INTEGER) + 1n, maximum: UINT64_MAX }))
]).annotate(inJsonSchema)
