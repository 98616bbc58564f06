/** The documents whose blocks are run, and the gateways that they speak of. */
import { gatewayProcess } from "@trigate/testing/GatewayProcess"
import { hostedGateway } from "@trigate/testing/HostedGateway"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import * as path from "node:path"
import type { Document } from "./blocks.ts"
import { read } from "./blocks.ts"
import { docstrings } from "./docstrings.ts"
import type { Place } from "./run.ts"
import { needsFront, root, run } from "./run.ts"

const paths = [
  "README.md",
  "docs/cli.md",
  "docs/tutorial.md",
  ...fs.globSync(["docs/guides/*.md", "examples/*/README.md"], { cwd: root })
]

export const documents: ReadonlyArray<Document> = [
  ...paths.toSorted().map((file) => read(file, fs.readFileSync(path.join(root, file), "utf8"))),
  docstrings(root)
]

/** Runs a document; gives the blocks that do not do what it shows, as text. */
export const runWithGateways = Effect.fn(function*(document: Document, place: Place) {
  const { url: sandbox } = yield* hostedGateway({ TRIGATE_ACCESS_LOG: "off" })
  // a process of its own, because its metrics are shown
  const gateways = needsFront(document)
    ? {
      sandbox,
      front: (yield* gatewayProcess({ TRIGATE_ACCESS_LOG: "off", TRIGATE_TRADING_API_URL: sandbox })).url
    }
    : { sandbox }
  return (yield* run(document, gateways, place)).join("\n")
})
