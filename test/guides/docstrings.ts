/** The examples in the docstrings of the packages, as one document: its programs are run like those of a guide. */
import * as Struct from "effect/Struct"
import * as fs from "node:fs"
import * as path from "node:path"
import type { Document } from "./blocks.ts"
import { read } from "./blocks.ts"

const docstring = /^ *\/\*\*(?:(?!\*\/)[\s\S])*\*\//gmu

const withoutMargin = (line: string): string => line.replace(/^\s*\* ?/u, "")

/** The lines of a docstring that are an example, and an empty line for each other. */
const exampleLines = (text: string): ReadonlyArray<string> => {
  let isExample = false
  let isFenced = false
  return text.split("\n").map((line, at, lines) => {
    const shown = at === lines.length - 1 ? "" : withoutMargin(line)
    if (shown.startsWith("```")) isFenced = !isFenced
    // inside of a fence an `@` belongs to the program
    if (!isFenced && /^@\w/u.test(shown)) {
      isExample = shown.startsWith("@example")
      return ""
    }
    return isExample ? shown : ""
  })
}

/** The examples of a module as Markdown, each in the line where the module has it. */
export const examplesOf = (module: string): string => {
  const blank = (text: string): string => text.replaceAll(/[^\n]/gu, "")
  let end = 0
  let markdown = ""
  for (const { 0: text, index } of module.matchAll(docstring)) {
    markdown += blank(module.slice(end, index)) + exampleLines(text).join("\n")
    end = index + text.length
  }
  return markdown
}

const slug = (file: string): string => file.replaceAll(/[^a-z0-9]+/giu, "-")

/** Reads the examples of all modules. A docstring shows whole programs, so none of them is a file for another. */
export const docstrings = (root: string): Document => {
  const found = fs.globSync("packages/*/src/**/*.ts", { cwd: root }).toSorted()
    .map((file) => read(file, examplesOf(fs.readFileSync(path.join(root, file), "utf8"))))
  return {
    path: "docstrings",
    programs: found.flatMap(({ programs }) =>
      programs.map((program) => Struct.assign(program, { file: `${slug(program.path)}-${program.line}.ts` }))
    ),
    shown: found.flatMap(({ shown }) => shown),
    faults: found.flatMap(({ faults }) => faults)
  }
}
