/** Schemas of objects that can have unknown members, and leave out known ones. */
import * as Schema from "effect/Schema"

const others = [Schema.Record(Schema.String, Schema.Unknown)] as const

/** Makes a struct that preserves unknown members. */
export const openStruct = <const Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.StructWithRest(Schema.Struct(fields), others)

/**
 * Makes the schema of a member that a response may lack or set to `null`. An upstream does either, and changes from one
 * to the other.
 */
export const nullish = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))
