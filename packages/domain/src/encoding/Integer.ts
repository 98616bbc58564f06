/** JSON integers of any size. */
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"

const UINT64_MAX = 2n ** 64n - 1n

const inJsonSchema = { jsonSchema: { type: "integer", minimum: 0, exclusiveMaximum: 2 ** 64 } } as const

/**
 * An unsigned 64-bit integer written as a JSON integer, read as a `bigint` without passing through a double.
 *
 * The encoded form is what `Json.parse` gives and `Json.stringify` writes: a number where it is a safe integer,
 * a `bigint` above.
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

/** The same as `Json.parse` gives it: a number where it is a safe integer, a `bigint` above. */
export const Natural64 = Schema.Union([
  Schema.Natural,
  Schema.BigInt.check(Schema.isBetweenBigInt({ minimum: BigInt(Number.MAX_SAFE_INTEGER) + 1n, maximum: UINT64_MAX }))
]).annotate(inJsonSchema)
