/** The parts of docs/sandbox.md that list what the sandbox does not support. The rest of the page is written by hand. */
import { actionCatalog } from "@trigate/domain/actions/Action"
import { playedTypes } from "@trigate/sandbox/unstable/venue/VenueExchange"
import { unplayedQueries } from "@trigate/sandbox/unstable/venue/VenueInfo"
import * as fs from "node:fs"
import * as path from "node:path"
import { root } from "../packages/manifest.ts"
import { codes, table } from "./markdown.ts"

const unplayedActions = Object.keys(actionCatalog).filter((type) => !playedTypes.has(type))

const parts: { readonly [name: string]: string } = {
  actions: `The sandbox supports all actions of the [catalog](operations.md)${
    unplayedActions.length === 0 ? "" : ` except ${codes(unplayedActions)}`
  }. It refuses others with HTTP 422, and the text names the action.`,
  queries: table(
    ["Topic", "Queries that return HTTP 422"],
    Object.entries(unplayedQueries).map(([topic, types]) => [topic, codes(types)])
  )
}

/** Returns the page with its generated parts, which are between comments that name them. */
export const sandboxText = (): string =>
  Object.entries(parts).reduce(
    (text, [name, part]) =>
      text.replace(
        new RegExp(`(<!-- generated: ${name} -->\n)[^]*?(\n<!-- /generated -->)`, "u"),
        (_, start: string, end: string) => `${start}\n${part}\n${end}`
      ),
    fs.readFileSync(path.join(root, "docs/sandbox.md"), "utf8")
  )
