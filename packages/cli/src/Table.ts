/** Tables for people: aligned columns, two spaces between them. */
import { displayWidth } from "effect/cli/CliOutput"
import { printable } from "./PlainText.ts"

/** A column: its heading, and the side on which its cells stand. */
export interface Column {
  readonly heading: string
  readonly align: "left" | "right"
}

const padded = (cell: string, width: number, align: Column["align"]): string => {
  const space = " ".repeat(width - displayWidth(cell))
  return align === "left" ? `${cell}${space}` : `${space}${cell}`
}

/** Rows under headings; cells may hold any text. */
export const rows = (columns: ReadonlyArray<Column>, cells: ReadonlyArray<ReadonlyArray<string>>): string => {
  const lines = [columns.map(({ heading }) => heading), ...cells.map((row) => row.map(printable))]
  const widths = columns.map((_, at) => Math.max(...lines.map((line) => displayWidth(line[at] ?? ""))))
  return lines.map((line) =>
    columns.map(({ align }, at) => padded(line[at] ?? "", widths[at] ?? 0, align)).join("  ").trimEnd()
  ).join("\n")
}

/** Names and values, one pair a line. */
export const facts = (pairs: ReadonlyArray<readonly [name: string, value: string]>): string => {
  const width = Math.max(...pairs.map(([name]) => name.length))
  return pairs.map(([name, value]) => `${name.padEnd(width)}  ${printable(value)}`.trimEnd()).join("\n")
}
