/** Schemas of objects that can have unknown members. */
import * as Schema from "effect/Schema"

const others = [Schema.Record(Schema.String, Schema.Unknown)] as const

/** Makes a struct that preserves unknown members. */
export const openStruct = <const Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.StructWithRest(Schema.Struct(fields), others)
