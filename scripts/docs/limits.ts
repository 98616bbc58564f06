/** docs/limits.md: the bounds that no setting changes. */
import { mostStored } from "@trigate/evm/unstable/Filters"
import * as Heads from "@trigate/evm/unstable/Heads"
import * as LogDelivery from "@trigate/evm/unstable/LogDelivery"
import * as Load from "@trigate/server/unstable/process/Load"
import { mostBars } from "@trigate/server/unstable/stores/ArchiveStore"
import { mostFilters, mostUnread } from "@trigate/server/unstable/streams/Sessions"
import { defaultBounds, rowCharacters } from "@trigate/trading/accounts/AccountEvents"
import { mostLogged } from "@trigate/trading/actionLog/ActionLog"
import { mostCached } from "@trigate/upstream/cache/ResponseCache"
import { maxReading } from "@trigate/upstream/transport/HttpTransportUndici"
import * as fs from "node:fs"
import * as path from "node:path"
import { root } from "../packages/manifest.ts"
import { document, table } from "./markdown.ts"

const firstSentence = (meaning: string): string =>
  (/^[^]*?\.(?=\s|$)/u.exec(meaning)?.[0] ?? meaning).replaceAll(/\s+/gu, " ")

/** The bounds that no setting changes: the file of each constant, its name and its unit. */
const fixedLimits: ReadonlyArray<readonly [file: string, name: string, unit: "bytes" | "" | "milliseconds"]> = [
  ["server/src/requests/Request", "bodyLimit", "bytes"],
  ["server/src/requests/Request", "signedLimit", "bytes"],
  ["server/src/requests/Listener", "maxHeaderBytes", "bytes"],
  ["server/src/requests/Request", "maxFrameBytes", "bytes"],
  ["server/src/requests/Listener", "maxParked", ""],
  ["server/src/requests/Listener", "maxWaiting", ""],
  ["server/src/LiveChains", "maxPayload", "bytes"],
  ["server/src/streams/Sessions", "mostUnread", "bytes"],
  ["upstream/src/transport/HttpTransportUndici", "maxReading", "bytes"],
  ["server/src/requests/Observe", "most", ""],
  ["server/src/requests/Callers", "maxCached", ""],
  ["signing/src/actions/ActionHash", "maxDepth", ""],
  ["signing/src/actions/CanonicalAction", "maxSigners", ""],
  ["signing/src/inspection/SignedReading", "maxHashed", "bytes"],
  ["signing/src/inspection/SignedReading", "maxSearched", "bytes"],
  ["trading/src/SignatureDiagnosis", "maxRecoveries", ""],
  ["trading/src/actionLog/LoggedAction", "maxSigners", ""],
  ["trading/src/accounts/AccountEvents", "mostPending", ""],
  ["tokens/src/transactions/Transactions", "maxPages", ""],
  ["tokens/src/transactions/Transactions", "maxAccounts", ""],
  ["tokens/src/transactions/TransactionCell", "maxCells", ""],
  ["domain/src/evm/EvmResources", "maxAlternatives", ""],
  ["evm/src/Heads", "maxHeader", "bytes"],
  ["evm/src/EvmFeed", "mostBlocks", ""],
  ["evm/src/Filters", "mostWaiting", ""],
  ["evm/src/Filters", "depth", ""],
  ["evm/src/Filters", "mostCharacters", "bytes"],
  ["evm/src/Filters", "mostBlocks", ""],
  ["evm/src/Filters", "mostPending", ""],
  ["sandbox/src/evm/EvmChain", "gasLimit", ""],
  ["sandbox/src/evm/EvmNode", "maxSeconds", ""],
  ["sandbox/src/tokens/TokenMachine", "maxTransactions", ""],
  ["sandbox/src/tokens/TokenExecutor", "maxSeconds", ""]
]

const grouping = (value: number): string => String(value).replaceAll(/\B(?=(?:\d{3})+$)/gu, " ")

const bytesText = (value: number): string =>
  value % 1_048_576 === 0 ? `${value / 1_048_576} MiB` : value % 1024 === 0 ? `${value / 1024} KiB` : `${value} bytes`

/** The bounds of everything that callers, nodes and the venue can enlarge in memory, with the default settings. */
const retained = [
  2 * Load.defaults.memory,
  mostUnread,
  mostFilters,
  mostCached,
  mostLogged,
  mostBars,
  defaultBounds.rows * rowCharacters,
  2 * (Heads.mostCharacters + LogDelivery.mostCharacters),
  mostStored,
  maxReading
].reduce((sum, bytes) => sum + bytes, 0)

/** The docstring and the value of a constant that is a number, or a product of numbers. */
const fixedLimit = ([file, name, unit]: (typeof fixedLimits)[number]): ReadonlyArray<string> => {
  const source = fs.readFileSync(path.join(root, `packages/${file}.ts`), "utf8")
  const found = new RegExp(
    `/\\*\\*((?:(?!\\*/)[^])*)\\*/\\n(?:export )?const ${name}(?::[^=]+)? = ([\\d_n* ]+)\\n`,
    "u"
  ).exec(source)
  if (found === null) throw new Error(`packages/${file}.ts has no constant ${name} with a docstring and a number`)
  const [, comment = "", factors = ""] = found
  const value = factors.split("*").reduce((product, factor) => product * Number(factor.replaceAll(/[_n ]/gu, "")), 1)
  const limit = unit === "bytes" ? bytesText(value) : grouping(value)
  const meaning = firstSentence(comment.replaceAll(/^ *\* ?/gmu, "").trim()).replace(/\.$/u, "")
    .replace(/^Maximum (?:number of )?(?:bytes of )?/u, "").replace(`: ${limit}`, "")
    .replaceAll(/\{@link ([^}]+)\}/gu, "`$1`")
  return [meaning, limit]
}

/** The document. */
export const limitsText = document(
  "Limits",
  "These bounds are fixed. Others: [settings](configuration.md#limits), [the venue](upstreams.md#rate-limit),\n" +
    "[streams](streams.md#limits).",
  table(["Bounds", "At most"], fixedLimits.map(fixedLimit)),
  `With default settings, others can fill ${
    Math.ceil(retained / 1_048_576)
  } MiB, and the process takes at most 1.5 GiB\n` +
    "([Memory](../packages/server/test/attacks/Memory.slow.test.ts)). A response of 16 MiB delays the event loop by 0.4 seconds,\n" +
    "all attacks of that test together by 2.3 at load average 6. Beside the stream attacks of `npm run bench -- attacks`, an honest\n" +
    "caller was served, with delays of at most 0.9 (0.8 without, at load average 8); only new connections wait longer,\n" +
    "up to 18 seconds, while callers open 1 200 with 20 subscriptions each. 24 000 subscriptions take\n" +
    "0.06 seconds of processor time at once, their end 0.13."
)
