/** Building blocks of generated documents in Markdown. */

const note = "<!-- Written by `npm run docs:generate` from the code; change the code, not this file. -->"

/** A generated document. */
export const document = (title: string, ...blocks: ReadonlyArray<string>): string =>
  `${[`# ${title}`, note, ...blocks].join("\n\n")}\n`

/** A text as code. */
export const code = (text: string): string => `\`${text}\``
/** Texts as code, in a list. */
export const codes = (words: ReadonlyArray<string>): string => words.map(code).join(", ")

const pad = (cells: ReadonlyArray<string>, widths: ReadonlyArray<number>): string =>
  `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`

/** A table as the formatter lays it out. */
export const table = (head: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const escaped = rows.map((row) => row.map((cell) => cell.replaceAll("|", "\\|")))
  const widths = head.map((name, column) => Math.max(3, name.length, ...escaped.map((row) => row[column]?.length ?? 0)))
  return [pad(head, widths), `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`]
    .concat(escaped.map((row) => pad(row, widths))).join("\n")
}
