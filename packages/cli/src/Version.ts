/** The version of the command line, as its package names it. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Schema from "effect/Schema"

const decode = Schema.decodeEffect(Schema.fromJsonString(Schema.Struct({ version: Schema.String })))

/** The version. */
export const read = FileSystem.FileSystem.use((files) => files.readFileString(`${import.meta.dirname}/../package.json`))
  .pipe(Effect.flatMap(decode), Effect.map(({ version }) => version), Effect.orDie)
