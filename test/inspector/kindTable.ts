/** The kinds of mistakes as a table in Markdown, from the table that makes their sentences. */
import type { Kind } from "@trigate/signing/unstable/inspection/SigningMistake"
import { table } from "../../scripts/docs/markdown.ts"

const recognised: { readonly [By in Kind["by"]]: string } = {
  body: "body",
  search: "search",
  signature: "signature",
  signers: "signer"
}

/** One row for each kind. */
export const kindTable = (kinds: { readonly [name: string]: Kind }): string =>
  table(
    ["Name", "What a program did", "Found"],
    Object.entries(kinds).map(([name, { by, made }]) => [`\`${name}\``, made, recognised[by]])
  )
