/** The types that `@nktkas/hyperliquid` declares for the venue's answers and frames, checked by the compiler. */
import * as Effect from "effect/Effect"
import { execFile } from "node:child_process"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

/** A value that the library's type should describe. */
export interface Sample {
  readonly name: string
  readonly type: string
  readonly value: unknown
}

export const capitalised = (name: string): string => `${name.charAt(0).toUpperCase()}${name.slice(1)}`

/** Where values differ from the library's types, by the name of the sample. */
export const runCompiler = Effect.fnUntraced(
  function*(of: "exchange" | "info" | "subscription", samples: ReadonlyArray<Sample>) {
    const directory = Fs.mkdtempSync(Path.join(Os.tmpdir(), "reads-"))
    const file = Path.join(directory, "samples.ts")
    const types = fileURLToPath(import.meta.resolve(`@nktkas/hyperliquid/api/${of}`)).replace(/\.js$/u, ".d.ts")
    const lines = samples.map(({ type, value }, at) => `export const s${at}: Nktkas.${type} = ${JSON.stringify(value)}`)
    Fs.writeFileSync(file, [`import type * as Nktkas from ${JSON.stringify(types)}`, ...lines].join("\n"))
    const flags = "--noEmit --ignoreConfig --strict --skipLibCheck --module nodenext --target esnext --types".split(" ")
    const tsc = fileURLToPath(new URL("../../node_modules/.bin/tsc", import.meta.url))
    const { stdout } = yield* Effect.promise(() =>
      promisify(execFile)(tsc, [...flags, "", file]).catch((error: { readonly stdout: string }) => error)
    )
    Fs.rmSync(directory, { recursive: true })
    const named = stdout.split("\n").filter((line) => line !== "").map((line) =>
      line.replace(
        /^.*samples\.ts\((\d+),\d+\): error TS\d+/u,
        (_, at: string) => samples[Number(at) - 2]?.name ?? ""
      )
    )
    return [...new Set(named)]
  }
)
