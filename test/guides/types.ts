/** Checks the types of all modules of some documents in one go, by the compiler options of the repository. */
import * as Effect from "effect/Effect"
import { execFile } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import type { Document, Program } from "./blocks.ts"
import { checkout, folderIn, root } from "./run.ts"

const slug = (document: string): string => document.replaceAll(/[^a-z0-9]+/giu, "-")

const diagnostic = /^(?<file>.+?\.ts)\((?<line>\d+),(?<column>\d+)\): (?<said>.*)$/su

const compile = (cwd: string) =>
  Effect.callback<string>((resume) => {
    const tsc = path.join(root, "node_modules/typescript/bin/tsc")
    const child = execFile(
      process.execPath,
      [tsc, "-p", cwd, "--pretty", "false"],
      { cwd, maxBuffer: 2 ** 26 },
      (error, stdout, stderr) =>
        resume(Effect.succeed(error === null ? "" : `${stdout}${stderr}`.trim() || error.message))
    )
    return Effect.sync(() => child.kill())
  })

const tsconfig = (files: ReadonlyArray<string>, references: ReadonlyArray<string>) => ({
  extends: path.join(root, "tsconfig.base.json"),
  compilerOptions: {
    types: ["node"],
    noEmit: true,
    composite: false,
    incremental: false,
    declaration: false,
    declarationMap: false,
    // what a block exports is for the reader
    isolatedDeclarations: false
  },
  files: [...files, ...fs.globSync(path.join(root, "packages/*/src/**/*.d.ts"))],
  references: references.map((folder) => ({ path: folder }))
})

/**
 * What the compiler says, each line with the document and the line in it. It reads the declarations that `tsc -b` wrote of the
 * packages in `references`, and the sources of the others.
 */
export const check = Effect.fn(function*(documents: ReadonlyArray<Document>, references: ReadonlyArray<string> = []) {
  const cwd = yield* folderIn(checkout.parent)
  const places = new Map<string, Program>()
  for (const document of documents) {
    for (const program of document.programs) {
      if (program.language !== "ts") continue
      const file = `${slug(document.path)}/${program.file}`
      places.set(file, program)
      const folder = path.join(cwd, path.dirname(file))
      if (fs.mkdirSync(folder, { recursive: true }) !== undefined) {
        fs.symlinkSync(path.join(root, "examples"), path.join(folder, "examples"))
      }
      fs.writeFileSync(path.join(cwd, file), program.text)
    }
  }
  fs.writeFileSync(path.join(cwd, "tsconfig.json"), JSON.stringify(tsconfig([...places.keys()], references)))
  const said = yield* compile(cwd)
  // what goes on in a second line is indented, or a sentence
  return said.split(/\n(?=\S+\(\d+,\d+\): )/u).filter((text) => text !== "").map((line) => {
    const groups = diagnostic.exec(line)?.groups ?? {}
    const place = places.get(groups["file"] ?? "")
    return place === undefined ? line : `${place.path}:${place.line + Number(groups["line"])}: ${groups["said"] ?? ""}`
  })
})
