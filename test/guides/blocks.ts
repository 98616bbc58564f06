/** What a document asks to be run: its programs with their output, and the blocks that it excuses from being run. */
import type { Fence } from "./fences.ts"
import { parse } from "./fences.ts"

/** What a program prints, as the document shows it. */
export interface Output {
  readonly format: "text" | "json"
  readonly text: string
}

export interface Program {
  /** The file that shows it, as a path in the repository. */
  readonly path: string
  readonly line: number
  readonly language: "ts" | "sh"
  readonly text: string
  /** The file that a module is written to. */
  readonly file: string
  /** Whether the document names the file: then a later block runs or imports it. */
  readonly named: boolean
  readonly output: Output | undefined
  /** Why it is not run. */
  readonly excuse: string | undefined
}

export interface Document {
  /** Its path in the repository. */
  readonly path: string
  readonly programs: ReadonlyArray<Program>
  /** Blocks that are neither a program nor the output of one, each with why they need not be. */
  readonly shown: ReadonlyArray<Pick<Program, "path" | "line" | "text"> & { readonly excuse: string }>
  /** Blocks that break the rules, as `path:line: why`. */
  readonly faults: ReadonlyArray<string>
}

const excuseOf = ({ comment }: Fence): string | undefined =>
  /^not run: (?<why>\S.*)$/u.exec(comment ?? "")?.groups?.["why"]

const languageOf = ({ info }: Fence): Program["language"] | undefined =>
  info === "ts" || info === "sh" ? info : undefined

const formatOf = ({ info }: Fence): Output["format"] | undefined =>
  info === "text" || info === "json" ? info : undefined

const named = /^\/\/ (?<file>[\w-]+(?:\.test)?\.ts)\n/u

/** Reads a document; what is in it that nobody would run or compare is a fault. */
export const read = (path: string, markdown: string): Document => {
  const programs: Array<Program> = []
  const shown: Array<Document["shown"][number]> = []
  const faults: Array<string> = []
  // the output of a program is the block right after it
  let last: Program | undefined
  for (const fence of parse(markdown)) {
    const { comment, info, line, text } = fence
    const excuse = excuseOf(fence)
    const language = languageOf(fence)
    const format = formatOf(fence)
    if (comment !== undefined && excuse === undefined) {
      faults.push(`${path}:${line}: the comment is not of the form <!-- not run: reason -->`)
    }
    if (language !== undefined) {
      const file = named.exec(text)?.groups?.["file"]
      last = {
        path,
        line,
        language,
        text,
        file: file ?? `block-${line}.ts`,
        named: file !== undefined,
        output: undefined,
        excuse
      }
      programs.push(last)
    } else if (format !== undefined && last !== undefined && excuse === undefined) {
      programs[programs.length - 1] = { ...last, output: { format, text } }
      last = undefined
    } else {
      last = undefined
      if (excuse === undefined) {
        faults.push(
          format === undefined
            ? `${path}:${line}: "${info}" is no language of a guide: ts and sh are run, text and json are their output`
            : `${path}:${line}: the output of no program`
        )
      } else {
        shown.push({ path, line, text, excuse })
      }
    }
  }
  for (const [at, { file, line, named, output }] of programs.entries()) {
    if (!named) continue
    if (output !== undefined) faults.push(`${path}:${line}: ${file} is a file, so a later block has the output`)
    if (!programs.slice(at + 1).some(({ text }) => text.includes(file))) {
      faults.push(`${path}:${line}: no later block runs or imports ${file}`)
    }
  }
  return { path, programs, shown, faults }
}

/** The first line without the comment behind it. */
const firstLine = (text: string): string => (text.split("\n", 1)[0] ?? "").replace(/\s+#.*$/u, "")

/** Each block that is not run, as `path: first line (reason)`. */
export const excused = ({ programs, shown }: Document): ReadonlyArray<string> =>
  [...programs, ...shown].flatMap(({ excuse, path, text }) =>
    excuse === undefined ? [] : [`${path}: ${firstLine(text)} (${excuse})`]
  )
