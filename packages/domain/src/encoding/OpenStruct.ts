/** Objects of a wire that may have more members than are known here. */
import * as Schema from "effect/Schema"

const others = [Schema.Record(Schema.String, Schema.Unknown)] as const

/** A struct that keeps the members which it does not name. */
export const openStruct = <const Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.StructWithRest(Schema.Struct(fields), others)
