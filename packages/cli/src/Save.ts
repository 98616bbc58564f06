/** Where a document goes that others read: standard output, or a new file. */
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import { UsageFault } from "./UsageFault.ts"

/** The option. */
export const flag = Flag.String("save").pipe(
  Flag.withMetavar("path"),
  Flag.optional,
  Flag.withDescription("Write to a new file instead of standard output")
)

/** Puts a document there; a file that exists is left as it is. */
export const save = Effect.fnUntraced(function*(path: Option.Option<string>, document: string) {
  if (Option.isNone(path)) return yield* Console.log(document)
  const files = yield* FileSystem.FileSystem
  yield* Effect.mapError(
    files.writeFileString(path.value, `${document}\n`, { flag: "wx" }),
    () => new UsageFault({ message: `${path.value} exists or cannot be written; nothing was changed` })
  )
  return yield* Console.error(`trigate: written to ${path.value}`)
})
