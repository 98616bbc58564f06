/** The venue's API weight: how much remains in this minute, use by caller, and savings by caching and coalescing. */
import * as Admin from "@trigate/client/Admin"
import * as Live from "./Live.ts"
import * as Words from "./Table.tsx"
import { Spark, Table } from "./Table.tsx"

const upstream = "trading-api"
const available = "trigate_upstream_rate_limit_available"
const reads = "trigate_response_cache_total"
const weightSaved = "trigate_upstream_weight_saved_total"
const calls = "trigate_upstream_calls_total"

const servedBy: { readonly [outcome: string]: string } = {
  coalesced: "an identical read that was in flight",
  held: "stored closed bars",
  hit: "a cached response",
  limited: "a cached response, because the rate limit is used up",
  replica_hit: "a response that another replica cached",
  stale: "a stale response, because the upstream failed"
}

/**
 * Returns, for each source of responses (such as the cache), the number of reads that were served without an upstream
 * request, and the API weight saved.
 */
const saved = () =>
  [...new Set([reads, weightSaved].flatMap((name) => Live.of(name)).map(({ labels }) => labels["outcome"] ?? ""))]
    // a background refresh sends an upstream request, so it saves nothing
    .filter((outcome) => !outcome.startsWith("refresh"))
    .map((outcome) => ({
      outcome: servedBy[outcome] ?? outcome,
      reads: Live.growth(reads, { outcome }),
      weight: Live.growth(weightSaved, { outcome })
    }))
    .filter(({ reads, weight }) => reads > 0 || weight > 0)

/** Returns the operations with the most upstream attempts in the last minute. */
const costly = () =>
  [...new Set(Live.of(calls, { upstream }).map(({ labels }) => labels["operation"] ?? ""))]
    .map((operation) => ({ operation, attempts: Live.growth(calls, { upstream, operation }) }))
    .filter(({ attempts }) => attempts > 0).toSorted((one, other) => other.attempts - one.attempts).slice(0, 8)

const user = (name: string, units: number, all: number) => ({
  key: name,
  cells: [
    name,
    Words.count(units),
    Words.percent(all === 0 ? 0 : units / all),
    <meter key="share" min={0} max={Math.max(1, all)} value={units} aria-label={`Share of ${name}`} />
  ]
})

/** Shows how much of each upstream's rate limit each caller used. */
const Users = () => {
  const [last] = Live.usePolled(Admin.rateLimits)
  if (last === undefined) return null
  if ("failure" in last) return <p class="card bad" role="alert">{last.failure}</p>
  return (
    <>
      {last.value.map(({ all, callers, upstream }) => {
        const own = all - callers.reduce((sum, { units }) => sum + units, 0)
        return (
          <Table
            key={upstream}
            title={upstream === "trading-api"
              ? "Use of the API weight by caller, last minute"
              : `Use of the request units of ${upstream} by caller, last second`}
            columns={["Caller", "Used", "Of all", "Share"]}
            empty="Nobody."
            rows={all === 0 ? [] : [
              ...callers.slice(0, 10).map(({ caller, units }) => user(caller, units, all)),
              ...(own > 0 ? [user("the gateway itself", own, all)] : [])
            ]}
          />
        )
      })}
    </>
  )
}

const Savings = () => (
  <Table
    title="Savings by caching and coalescing, last minute"
    columns={["Answered by", "Reads", "Weight"]}
    empty="No savings in the last minute. Reads from the cache, and reads that share a request, appear here."
    rows={saved().map(({ outcome, reads, weight }) => ({
      key: outcome,
      cells: [outcome, Words.count(reads), Words.count(weight)]
    }))}
  />
)

/** The console's panel of the venue's API weight. */
export const Weight = () => {
  if (Live.of(available, { upstream, share: "common" }).length === 0) {
    return (
      <>
        <section class="card" aria-labelledby="no-weight">
          <h2 id="no-weight">API weight</h2>
          <p class="muted">No address of the venue's API is configured, so the gateway uses no API weight.</p>
          <p class="muted">With an address, the weight that is left and its use by caller appear here.</p>
        </section>
        <Savings />
      </>
    )
  }
  const values = Live.sums(available, { upstream, share: "common" })
  const top = Math.max(...values)
  const last = values.at(-1) ?? 0
  const spent = Live.growth("trigate_upstream_weight_total", { upstream })
  return (
    <>
      <section class="card" aria-labelledby="weight-left">
        <h2 id="weight-left">API weight available to reads now</h2>
        <p class="figure">
          <meter min={0} max={top} low={top / 5} value={last} aria-labelledby="weight-left" /> {Words.count(last)}
        </p>
        <Spark label={`Remaining API weight in the last minutes; now ${Words.count(last)}`} top={top} values={values} />
        <p class="muted">Weight used in the last minute: {Words.count(spent)}</p>
      </section>
      <Users />
      <Savings />
      <Table
        title="Upstream attempts by operation, last minute"
        columns={["Operation", "Attempts"]}
        empty="None yet."
        rows={costly().map(({ attempts, operation }) => ({
          key: operation,
          cells: [operation, Words.count(attempts)]
        }))}
      />
    </>
  )
}
