/** Help as a terminal takes it: in lines that are not wider than it, with what is shown only once. */
import * as CliOutput from "effect/cli/CliOutput"
import type { FlagDoc, HelpDoc } from "effect/cli/HelpDoc"

// oxlint-disable-next-line no-control-regex -- the escape that begins a colour
const colour = /\u001B\[[0-9;]*m/gu

// a description beside a column that leaves it less than this would be a column of words
const narrowest = 24

/** What stands before the text of a line: the names of a row, or its indentation. */
const before = /^ {2,}(?:\S+(?: \S+)* {2,})?/u

const wrapped = (line: string, width: number): string => {
  const visible = line.replaceAll(colour, "")
  const head = before.exec(visible)?.[0] ?? ""
  const text = visible.slice(head.length)
  const room = width - head.length
  // copied lines stay whole: they begin at the margin, or have colours in them
  if (visible.length <= width || room < narrowest || head === "" || !line.endsWith(text)) return line
  const lines: Array<string> = []
  for (const word of text.split(" ")) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= room) lines[lines.length - 1] = `${last} ${word}`
    else lines.push(word)
  }
  return `${line.slice(0, line.length - text.length)}${lines.join(`\n${" ".repeat(head.length)}`)}`
}

const heading = /^(?<title>[A-Z][A-Z ]+):?$/u

/** Lays a formatted help out for a width; commands to copy are never broken. */
export const layout = (help: string, width: number): string => {
  let section = ""
  const lines: Array<string> = []
  for (const line of help.split("\n")) {
    const title = heading.exec(line.replaceAll(colour, ""))?.groups?.["title"]
    if (title !== undefined) {
      section = title
      if (lines.length > 0 && lines.at(-1) !== "") lines.push("")
    }
    lines.push(section === "EXAMPLES" || section === "USAGE" ? line : wrapped(line, width))
  }
  return lines.join("\n")
}

// the choices stand in the description already
const said = (flag: FlagDoc): FlagDoc => flag.name === "completions" ? { ...flag, type: "shell" } : flag

/** The help of a command, for a width. */
export const format = (doc: HelpDoc, width: number, colors: boolean): string =>
  layout(
    CliOutput.defaultFormatter({ colors }).formatHelpDoc({
      ...doc,
      ...(doc.globalFlags === undefined ? {} : { globalFlags: doc.globalFlags.map(said) })
    }),
    width
  )
