/**
 * No word that the glossary of docs/architecture.md replaced occurs in code, tests, documents or metrics any more.
 *
 * Run it with `npm run names`: it names each place with the word to use instead.
 */
import * as fs from "node:fs"
import * as path from "node:path"

interface OldName {
  readonly old: RegExp
  /** The word to use. */
  readonly use: string
  /** Where the old word means what was replaced; it is fine elsewhere. All files unless given. */
  readonly in?: RegExp
  /** Looks at code only: comments and strings are prose, in which the word is fine. */
  readonly codeOnly?: boolean
}

const source = /^packages\/(?!testing\/)[^/]+\/src\//u
const sourceOrTest = /^packages\//u
/** The sandbox has words of its own: the wire format of its nodes, the journal of an EVM, nonces that the venue keeps. */
const outsideSandbox = /^(?!packages\/(?:sandbox|signing)\/)/u
const upstream = /^packages\/upstream\//u
const chains = /^packages\/(?:layer2|tokens|trading|upstream)\//u
const callsUpstream = /^packages\/(?:layer2|trading|upstream)\//u
const overTransport = /^packages\/(?:upstream\/|(?:layer2|tokens|trading)\/test\/)/u
const aboutLimits = /^docs\/(?!guides)|^packages\/upstream\/(?:src|test)\/RateLimiter/u

const oldNames: ReadonlyArray<OldName> = [
  { old: /SharedReads/gu, use: "ResponseCache" },
  {
    old: /\bKept\b|[a-z]Kept\b|\bkept[A-Z]\w*|\bkeepable\b/gu,
    use: "cached response",
    in: outsideSandbox,
    codeOnly: true
  },
  { old: /\bkept answers?\b|\banswers? (?:that|which) (?:is|are|was|were) kept\b/giu, use: "cached response" },
  { old: /\bKeeping\b|\bkeeping\b/gu, use: "CachePolicy, cachePolicy", in: source, codeOnly: true },
  { old: /\brenew(?:s|ed|ing|al)?\b.{0,10}\bahead\b/giu, use: "stale-while-revalidate" },
  { old: /\bInFlight\b/gu, use: "SingleFlight" },
  { old: /\bshar(?:es?|ed|ing) (?:no |what |calls? )?.{0,12}\bunder way\b/giu, use: "coalescing, single flight" },
  { old: /address.?health/giu, use: "OutlierDetection" },
  { old: /\b(?:un)?bench(?:es|ed|ing)(?![a-z])|_benches_/giu, use: "eject, ejection" },
  { old: /\bbench\b/gu, use: "eject, ejection", in: sourceOrTest },
  { old: /half.?rule/giu, use: "maxEjectionPercent" },
  { old: /\bBudgets\b/gu, use: "RateLimiter" },
  { old: /\bBudgetLine\b|\bUpstreamBudget\b|\bbudget lines?\b/gu, use: "rate limiter" },
  { old: /\bgiveBack\b/gu, use: "refund" },
  { old: /\bgiv(?:en?|es|ing) back\b/giu, use: "refund", in: aboutLimits },
  { old: /\bpatience\b/giu, use: "maxWait" },
  {
    old: /\b\w*Wire(?:Undici|HttpClient|Answer|Error|Memory)\b|\b(?:fake|Fake|scripted)Wire\b/gu,
    use: "HttpTransport"
  },
  { old: /\bWire\b/gu, use: "HttpTransport", in: outsideSandbox },
  { old: /\bwire\b/gu, use: "transport", in: overTransport, codeOnly: true },
  { old: /\b[Ee]xchanges\b/gu, use: "Attempts, attempts", in: callsUpstream, codeOnly: true },
  { old: /\b[Jj]udged\b/gu, use: "AttemptResult", codeOnly: true },
  { old: /\b\w*[Vv]erdict\b/gu, use: "AttemptResult", in: /^packages\/(?:layer2|tokens|upstream)\//u },
  { old: /\bVerdict\b/gu, use: "AttemptResult", in: /^docs\/(?!errors|openapi)/u },
  { old: /\bPassing\w*\b|\bpassing[A-Z]\w*\b/gu, use: "retryable", in: source },
  { old: /\bpassing\b/gu, use: "retryable", in: source, codeOnly: true },
  { old: /\bSign\b|\bsignOf\b/gu, use: "HealthSignal", in: upstream, codeOnly: true },
  { old: /domain\/Relayed\b|\bRelayed(?=\.\w)/gu, use: "UpstreamResponse" },
  { old: /\bRelayed\b/gu, use: "UpstreamResponse", codeOnly: true },
  { old: /\b(?:is)?[Dd]oubtful\b/gu, use: "unanswered, or unknown" },
  { old: /"known"/gu, use: "settled", in: /^packages\/trading\//u },
  { old: /\bow(?:e|ed|es|ing)\b/gu, use: "deferred writes" },
  { old: /\bpay(?:One|s)?\b/gu, use: "deferred writes", in: chains, codeOnly: true },
  {
    old: /\b(?:apart|together)\b/gu,
    use: "unbatched, batched",
    in: /^packages\/(?:domain|server|upstream)\/src\//u,
    codeOnly: true
  },
  {
    old: /\bfurther (?:actions?|action types?|quer(?:y|ies)|methods?)\b|further(?:Action|Method|Of\b|Quer|Read)\w*/giu,
    use: "pass-through, passthrough"
  },
  { old: /(?<![a-z])used.?nonces/giu, use: "action log" },
  { old: /Claimed-?Sending/giu, use: "ActionLog" },
  { old: /journal(?!_mode|_size|ctl)/giu, use: "action log", in: outsideSandbox },
  { old: /\bta(?:ken|ke|kes|king) (?:it |them )?down\b/giu, use: "recorded in the action log" },
  { old: /\bas reads, unread\b|\brelay(?:s|ed)? unread\b/giu, use: "pass-through" }
]

const root = path.resolve(import.meta.dirname, "..")

const files = fs.globSync([
  "*.md",
  "docs/**/*.{md,json}",
  "packages/*/README.md",
  "packages/*/{src,test}/**/*.ts",
  "{benchmarks,examples,scripts,test}/**/*.{md,ts}"
], { cwd: root, exclude: ["**/node_modules/**", "**/fixtures/**", "**/.blocks/**", "scripts/check-names.ts"] })

/** The text with comments and strings blanked out; every character keeps its place. */
const codeOf = (text: string): string =>
  text.replace(
    /\/\*[\s\S]*?\*\/|\/\/[^\n]*|"(?:\\.|[^"\\\n])*"/gu,
    (prose) => prose.replaceAll(/[^\n]/gu, " ")
  )

let count = 0

const report = (place: string, found: string, use: string): void => {
  count++
  console.error(`${place}: ${found} -> ${use}`)
}

for (const file of files.toSorted()) {
  const text = fs.readFileSync(path.join(root, file), "utf8")
  const code = file.endsWith(".ts") ? codeOf(text) : ""
  for (const { codeOnly = false, in: place, old, use } of oldNames) {
    if (place !== undefined && !place.test(file)) continue
    if (!codeOnly) { for (const [found] of file.matchAll(old)) report(file, found, use) }
    for (const { 0: found, index } of (codeOnly ? code : text).matchAll(old)) {
      report(`${file}:${text.slice(0, index).split("\n").length}`, found, use)
    }
  }
}

console.log(count === 0 ? "names: no old name is left" : `names: ${count} old names are left`)
process.exitCode = count === 0 ? 0 : 1
