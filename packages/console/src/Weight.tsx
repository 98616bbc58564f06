/** The venue's weight: what is left of this minute, what was spent, and what caching and coalescing saved. */
import { lastMinute, snapshots } from "./Live.ts"
import * as Metrics from "./Metrics.ts"
import { Spark } from "./Spark.tsx"
import * as Words from "./Words.ts"

const upstream = "trading-api"
const available = "trigate_upstream_rate_limit_available"

/** The reads that were answered without an attempt of their own, by outcome. */
const saved = () => {
  const span = lastMinute.value
  if (span === undefined) return []
  const outcomes = [
    ...new Set(
      Metrics.of(span.to, "trigate_response_cache_total").map(({ labels }) => labels["outcome"] ?? "")
    )
  ]
  return outcomes.map((outcome) => ({
    outcome,
    reads: Metrics.growth(span.from, span.to, "trigate_response_cache_total", { outcome })
  })).filter(({ reads }) => reads > 0)
}

/** The operations that cost most attempts. */
const costly = () => {
  const span = lastMinute.value
  if (span === undefined) return []
  const operations = [
    ...new Set(
      Metrics.of(span.to, "trigate_upstream_calls_total", { upstream }).map(({ labels }) => labels["operation"] ?? "")
    )
  ]
  return operations.map((operation) => ({
    operation,
    attempts: Metrics.growth(span.from, span.to, "trigate_upstream_calls_total", { upstream, operation })
  })).filter(({ attempts }) => attempts > 0).toSorted((one, other) => other.attempts - one.attempts).slice(0, 8)
}

/** The panel. */
export const Weight = () => {
  const all = snapshots.value
  const now = all.at(-1)
  const left = now === undefined ? [] : Metrics.of(now, available, { upstream, share: "common" })
  if (left.length === 0) {
    return <p class="muted">No address of the official API is configured, so there is no weight to spend.</p>
  }
  const values = all.map((each) => Metrics.sum(each, available, { upstream, share: "common" }))
  const top = Math.max(...values)
  const last = values.at(-1) ?? 0
  const span = lastMinute.value
  const spent = span === undefined
    ? 0
    : Metrics.growth(span.from, span.to, "trigate_upstream_weight_total", { upstream })
  return (
    <>
      <section class="card" aria-labelledby="weight-left">
        <h2 id="weight-left">Weight that reads can take now</h2>
        <p class="figure">
          <meter min={0} max={top} low={top / 5} value={last} aria-labelledby="weight-left" /> {Words.count(last)}
        </p>
        <Spark label={`Weight left over the last minutes, now ${Words.count(last)}`} top={top} values={values} />
        <p class="muted">Spent within the last minute: {Words.count(spent)}</p>
      </section>
      <section class="card" aria-labelledby="weight-saved">
        <h2 id="weight-saved">Reads without an attempt of their own, last minute</h2>
        {saved().length === 0
          ? <p class="muted">None yet.</p>
          : (
            <dl>
              {saved().map(({ outcome, reads }) => (
                <div key={outcome}>
                  <dt>{outcome}</dt>
                  <dd>{Words.count(reads)}</dd>
                </div>
              ))}
            </dl>
          )}
      </section>
      <section class="card" aria-labelledby="weight-spent">
        <h2 id="weight-spent">Attempts by operation, last minute</h2>
        {costly().length === 0
          ? <p class="muted">None yet.</p>
          : (
            <dl>
              {costly().map(({ attempts, operation }) => (
                <div key={operation}>
                  <dt>{operation}</dt>
                  <dd>{Words.count(attempts)}</dd>
                </div>
              ))}
            </dl>
          )}
      </section>
    </>
  )
}
