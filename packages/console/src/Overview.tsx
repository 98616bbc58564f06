/**
 * The console's first view: traffic, errors and slow routes of the last minute, the traffic of the last hour, and how
 * to connect a client.
 */
import { modes, titles } from "./Chains.tsx"
import { History } from "./History.tsx"
import { lastMinute, readiness, snapshots } from "./Live.ts"
import { Market } from "./Market.tsx"
import * as Metrics from "./Metrics.ts"
import { linkTo } from "./Place.ts"
import { Snippets } from "./Snippets.tsx"
import { Table } from "./Table.tsx"
import * as Words from "./Words.ts"

const requests = "trigate_requests_total"
const requestSeconds = "trigate_request_seconds"
const upstream = "trading-api"

/** Matches the routes that the console itself uses. Their requests are not counted as callers' traffic. */
const ownRoutes = /^(?:health|admin|sandbox)\.|^other$/u

const isTraffic = ({ labels }: Metrics.Series): boolean => !ownRoutes.test(labels["route"] ?? "")

const trafficAt = (snapshot: Metrics.Snapshot): number =>
  Metrics.of(snapshot, requests).filter(isTraffic).reduce((sum, { value }) => sum + value, 0)

const Tile = ({ name, note, value }: { readonly name: string; readonly value: string; readonly note?: string }) => (
  <div>
    <dt>{name}</dt>
    <dd>
      <strong>{value}</strong> {note === undefined ? null : <span class="muted">{note}</span>}
    </dd>
  </div>
)

const perSecond = (count: number, { from, to }: { readonly from: Metrics.Snapshot; readonly to: Metrics.Snapshot }) =>
  `${(count / ((to.time - from.time) / 1000)).toFixed(1)} /s`

const Tiles = () => {
  const last = snapshots.value.at(-1)
  if (last === undefined) return <p class="muted">Reading …</p>
  const span = lastMinute.value ?? { from: last, to: last }
  const { from, to } = span
  const isSpan = lastMinute.value !== undefined
  const grown = (name: string, labels = {}) => Metrics.growth(from, to, name, labels)
  const cached = (labels = {}) => grown("trigate_response_cache_total", labels)
  const hits = cached() - cached({ outcome: "refreshed" }) - cached({ outcome: "refresh_failed" })
  const attempts = grown("trigate_upstream_calls_total")
  const [left] = Metrics.of(to, "trigate_upstream_rate_limit_available", { upstream, share: "common" })
  const [build] = Metrics.of(to, "trigate_build_info")
  const started = Metrics.sum(to, "process_start_time_seconds")
  return (
    <dl class="tiles">
      <Tile name="Requests" value={isSpan ? perSecond(trafficAt(to) - trafficAt(from), span) : "–"} />
      <Tile
        name="From cache"
        value={hits + attempts === 0 ? "–" : Words.percent(hits / (hits + attempts))}
        note={hits === 0 ? "" : `${Words.count(hits)} reads`}
      />
      {left === undefined ? null : (
        <Tile
          name="Weight left"
          value={Words.count(left.value)}
          note={`${Words.count(grown("trigate_upstream_weight_saved_total"))} saved`}
        />
      )}
      <Tile name="WebSockets" value={Words.count(Metrics.sum(to, "trigate_stream_sockets"))} />
      <Tile name="Deliveries" value={isSpan ? perSecond(grown("trigate_stream_deliveries_total"), span) : "–"} />
      <Tile name="Up for" value={started === 0 ? "–" : Words.age(started * 1000)} />
      <Tile name="Version" value={build?.labels["version"] ?? "–"} />
    </dl>
  )
}

/** Returns the number of failed requests in the last minute by route and error tag, highest number first. */
const errors = () => {
  const span = lastMinute.value
  if (span === undefined) return []
  return Metrics.of(span.to, requests)
    .filter((series) => isTraffic(series) && series.labels["outcome"] !== "ok")
    .map(({ labels }) => ({
      route: labels["route"] ?? "",
      outcome: labels["outcome"] ?? "",
      count: Metrics.growth(span.from, span.to, requests, labels)
    }))
    .filter(({ count }) => count > 0)
    .toSorted((one, other) => other.count - one.count)
    .slice(0, 6)
}

/** Returns the routes with the highest latency (95th percentile) in the last minute. */
const slowest = () => {
  const span = lastMinute.value
  if (span === undefined) return []
  const { from, to } = span
  return Metrics.of(to, `${requestSeconds}_count`)
    .filter(isTraffic)
    .flatMap(({ labels: { route = "" } }) => {
      const p95 = Metrics.quantile(from, to, requestSeconds, 0.95, { route })
      return p95 === undefined
        ? []
        : [{ route, p95, count: Metrics.growth(from, to, `${requestSeconds}_count`, { route }) }]
    })
    .toSorted((one, other) => other.p95 - one.p95)
    .slice(0, 6)
}

const ejectedAt = (upstreams: { readonly [name: string]: number }): number => {
  const last = snapshots.value.at(-1)
  return last === undefined
    ? 0
    : Object.keys(upstreams).reduce(
      (sum, name) => sum + Metrics.sum(last, "trigate_upstream_ejected", { upstream: name }),
      0
    )
}

/**
 * Returns a text about the number and age of an EVM chain's newest block. The text is empty if no client subscribes to
 * the chain.
 */
const describeHead = (chain: string): string => {
  const last = snapshots.value.at(-1)
  if (last === undefined || Metrics.sum(last, "trigate_evm_subscriptions", { chain }) === 0) return ""
  const [head, age] = ["trigate_evm_head", "trigate_evm_head_age_seconds"].map((name) =>
    Metrics.sum(last, name, { chain })
  )
  return ` block ${Words.count(head ?? 0)}, ${Words.duration(age)} old`
}

const ChainLines = () => (
  <p class="chains">
    {Object.entries(readiness.value?.chains ?? {}).map(([chain, { mode, upstreams }]) => {
      const ejected = ejectedAt(upstreams)
      return (
        <a key={chain} href={linkTo("chains")}>
          {titles[chain]}{" "}
          <span class={`tag ${ejected > 0 ? "bad" : mode === "live" ? "good" : ""}`}>
            {modes[mode]}
            {ejected > 0 ? `, ${ejected} ejected` : ""}
          </span>
          {describeHead(chain)}
        </a>
      )
    })}
  </p>
)

/** The console's overview panel. */
export const Overview = () => (
  <>
    <section class="card" aria-labelledby="now-title">
      <h2 id="now-title">The last minute</h2>
      <Tiles />
      <ChainLines />
      <p class="muted">The requests of this page are not counted.</p>
    </section>
    {readiness.value?.sandbox === true ? <Market /> : null}
    <History />
    <Snippets />
    <div class="pair">
      <Table
        title="Errors of the last minute"
        columns={["Route", "Error", "Number"]}
        rows={errors().map(({ count, outcome, route }) => ({
          key: `${route} ${outcome}`,
          cells: [route, outcome, Words.count(count)]
        }))}
        empty="None."
      />
      <Table
        title="Slowest routes of the last minute"
        columns={["Route", "p95", "Requests"]}
        rows={slowest().map(({ count, p95, route }) => ({
          key: route,
          cells: [route, Words.duration(p95), Words.count(count)]
        }))}
        empty="No requests yet."
      />
    </div>
  </>
)
