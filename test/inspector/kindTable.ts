/** The kinds of mistakes as a table in Markdown, from the table that makes their sentences. */
import type { Kind } from "@trigate/signing/inspection/SigningMistake"

const recognised: { readonly [By in Kind["by"]]: string } = {
  body: "body",
  search: "search",
  signature: "signature",
  signers: "signer"
}

/** One row for each kind. */
export const kindTable = (kinds: { readonly [name: string]: Kind }): string => {
  const rows = [
    ["Name", "What a program did", "Found"],
    ...Object.entries(kinds).map(([name, { by, made }]) => [`\`${name}\``, made, recognised[by]])
  ]
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const [head = [], ...body] = rows.map((row) => row.map((cell, at) => cell.padEnd(widths[at] ?? 0)))
  const line = (row: ReadonlyArray<string>) => `| ${row.join(" | ")} |`
  return [line(head), `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`, ...body.map(line)].join("\n")
}
