/** The kinds of mistakes as a table in Markdown, from the table that makes their sentences. */
import type { Kind } from "@trigate/signing/inspection/SigningMistake"
import { bodiesOf } from "./confusion.ts"
import type { Row } from "./confusion.ts"

const recognised: { readonly [By in Kind["by"]]: string } = {
  body: "in the body",
  search: "by making it",
  signature: "by mending the signature",
  signers: "from who signed"
}

/** One row a kind, with the bodies that were broken so, and those of them that were not explained. */
export const kindTable = (kinds: { readonly [name: string]: Kind }, broken: ReadonlyArray<Row>): string => {
  const counts = (name: string): ReadonlyArray<string> => {
    const rows = broken.filter(({ mistake }) => mistake === name)
    const unnamed = rows.reduce((sum, row) => sum + row.unnamed, 0)
    return rows.length === 0 ? ["", ""] : [String(bodiesOf(rows)), String(unnamed)]
  }
  const rows = [
    ["Name", "What a program did", "Found", "Bodies", "Unnamed"],
    ...Object.entries(kinds).map(([name, { by, made }]) => [`\`${name}\``, made, recognised[by]].concat(counts(name)))
  ]
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const [head = [], ...body] = rows.map((row) => row.map((cell, at) => cell.padEnd(widths[at] ?? 0)))
  const line = (row: ReadonlyArray<string>) => `| ${row.join(" | ")} |`
  return [line(head), `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`, ...body.map(line)].join("\n")
}
