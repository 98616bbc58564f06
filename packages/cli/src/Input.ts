/** What a command reads: a file, or standard input where the path is `-`. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import { UsageFault } from "./UsageFault.ts"

const bytesAt = Effect.fnUntraced(function*(path: string) {
  if (path !== "-") return yield* FileSystem.FileSystem.use((files) => files.readFile(path))
  const { stdin } = yield* Stdio.Stdio
  return Buffer.concat(yield* Stream.runCollect(stdin))
})

/** What a path is called to a person. */
export const nameOf = (path: string): string => path === "-" ? "Standard input" : path

/** The bytes; fails with one line that names the path. */
export const bytes = (path: string) =>
  Effect.mapError(
    bytesAt(path),
    () => new UsageFault({ message: `${nameOf(path)} cannot be read` })
  )

/** The text. */
export const text = (path: string) => Effect.map(bytes(path), (read) => new TextDecoder().decode(read))
