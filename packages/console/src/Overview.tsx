/**
 * The console's first view: the traffic of the last hour; latencies, upstreams, errors and slow routes of the last
 * minute; and how to connect a program.
 */
import { signal } from "@preact/signals"
import { type HistorySample, sampleSeconds } from "@trigate/api/unstable/AdminApi"
import * as Admin from "@trigate/client/Admin"
import * as Info from "@trigate/client/Info"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { useEffect } from "preact/hooks"
import { modes, titles, upstreamFacts, upstreamsByChain } from "./Chains.tsx"
import * as Gateway from "./Gateway.ts"
import { lazily } from "./Lazy.tsx"
import * as Live from "./Live.ts"
import * as Table from "./Table.tsx"

interface Snippet {
  readonly title: string
  readonly text: (url: string) => string
}

/** The snippets, each a complete program. A test runs every snippet except the Python one, which needs a package. */
const snippets: { readonly [name: string]: Snippet } = {
  curl: {
    title: "curl",
    text: (url) => `curl -s ${url}/info -H 'content-type: application/json' -d '{"type":"allMids"}'`
  },
  nktkas: {
    title: "@nktkas/hyperliquid (TypeScript)",
    text: (url) =>
      `import { HttpTransport, InfoClient } from "@nktkas/hyperliquid"

const info = new InfoClient({ transport: new HttpTransport({ apiUrl: "${url}" }) })
console.log(await info.allMids())`
  },
  ccxt: {
    title: "ccxt (TypeScript)",
    text: (url) =>
      `import { hyperliquid } from "ccxt"

const gateway = "${url}"
const exchange = new hyperliquid({ urls: { api: { public: gateway, private: gateway } } })
console.log(await exchange.fetchTicker("ETH/USDC:USDC"))`
  },
  python: {
    title: "hyperliquid-python-sdk (Python)",
    text: (url) =>
      `from hyperliquid.info import Info

info = Info("${url}", skip_ws=True)
print(info.all_mids())`
  },
  viem: {
    title: "viem (HyperEVM and the layer 2)",
    text: (url) =>
      `import { createPublicClient, http } from "viem"

const hyperEvm = createPublicClient({ transport: http("${url}/evm") })
const layer2 = createPublicClient({ transport: http("${url}/l2") })
console.log(await hyperEvm.getGasPrice(), await layer2.getBlockNumber())`
  },
  ton: {
    title: "@ton/ton (TON)",
    text: (url) =>
      `import { Address } from "@ton/core"
import { TonClient } from "@ton/ton"

const ton = new TonClient({ endpoint: "${url}/api/v2/jsonRPC" })
console.log(await ton.getBalance(Address.parse("EQClb6WL4TgcNsmu7KdNii5mw330v-k_cl6jCKyPj9pWNfJz")))`
  }
}

const chosen = signal("curl")

/** The card with the snippets. */
export const Snippets = () => {
  const { text, title } = snippets[chosen.value] ?? { title: "", text: () => "" }
  const program = text(Gateway.address)
  return (
    <section class="card" aria-labelledby="connect-title">
      <h2 id="connect-title">Connect your client</h2>
      <div class="row">
        <label>
          Client{" "}
          <select value={chosen.value} onChange={({ currentTarget: { value } }) => (chosen.value = value)}>
            {Object.entries(snippets).map(([name, { title }]) => <option key={name} value={name}>{title}</option>)}
          </select>
        </label>
        <button type="button" aria-label={`Copy: ${title}`} onClick={() => void navigator.clipboard.writeText(program)}>
          Copy
        </button>
      </div>
      <pre tabIndex={0} aria-label={`Program: ${title}`}>{program}</pre>
      <p class="muted">
        {Gateway.hasKey.value
          ? "Callers send their key as Authorization: Bearer, or as the first segment of the path. "
          : ""}
        The program uses the address of this page. If the gateway has an admin listener, use the address of the other
        listener.
      </p>
    </section>
  )
}

const coins = ["BTC", "ETH", "HYPE", "SOL"] as const

/** Maximum number of stored prices of a coin. */
const most = 120

const prices = signal<{ readonly [coin: string]: ReadonlyArray<number> }>({})

const decodeFrame = Schema.decodeUnknownOption(
  Schema.fromJsonString(Schema.Struct({
    channel: Schema.Literal("allMids"),
    data: Schema.Struct({ mids: Schema.Record(Schema.String, Schema.String) })
  }))
)

const add = (text: string): void => {
  const frame = decodeFrame(text)
  if (Option.isNone(frame)) return
  const { mids } = frame.value.data
  prices.value = Object.fromEntries(coins.flatMap((coin) => {
    const mid = mids[coin]
    return mid === undefined ? [] : [[coin, [...prices.value[coin] ?? [], Number(mid)].slice(-most)]]
  }))
}

const hour = 3_600_000

/** Reads the prices of the last hour. */
const readHour = async (): Promise<void> => {
  const outcome = await Gateway.run(Effect.forEach(
    coins,
    (coin) =>
      Effect.map(
        Info.candleSnapshot({ coin, interval: "1m", startTime: Gateway.now() - hour }),
        ({ candles }) => [coin, candles.slice(-60).map(({ c }) => Number(c))] as const
      ),
    { concurrency: "unbounded" }
  ))
  if ("value" in outcome) prices.value = Object.fromEntries(outcome.value.filter(([, closes]) => closes.length > 0))
}

/** The card with the prices of the last hour, which a stream continues. */
export const Market = () => {
  useEffect(() => {
    void readHour()
    return Gateway.follow([{ type: "allMids" }], add).stop
  }, [])
  const shown = Object.entries(prices.value)
  return (
    <section class="card" aria-labelledby="market-title">
      <h2 id="market-title">The market now</h2>
      {shown.length === 0 ? <p class="muted">Waiting for the first prices …</p> : (
        <dl class="tiles market">
          {shown.map(([coin, values]) => {
            const bottom = Math.min(...values)
            const height = Math.max(...values) - bottom
            const last = values.at(-1) ?? 0
            const percent = (last / (values[0] ?? last) - 1) * 100
            return (
              <div key={coin}>
                <dt>
                  <a href={Gateway.linkTo("trade", { coin, interval: "15m" })}>{coin}</a>
                </dt>
                <dd>
                  <strong>{Table.decimal(String(last))}</strong>{" "}
                  <span class={Table.tone(percent)}>{Table.signed(percent)} %</span>
                  <Table.Spark
                    label={`Mid price of ${coin}`}
                    top={height === 0 ? 1 : height}
                    values={values.map((value) => value - bottom)}
                  />
                </dd>
              </div>
            )
          })}
        </dl>
      )}
      <p>
        <a href={Gateway.linkTo("trade")}>Place a paper order</a>{" "}
        <span class="muted">
          The sandbox checks the order's signature, and fills or refuses the order. Its messages are the venue's.
        </span>
      </p>
    </section>
  )
}

const found = signal<Gateway.CallResult<ReadonlyArray<HistorySample>> | undefined>(undefined)

type Step = readonly [from: HistorySample, to: HistorySample]

/**
 * Returns the growth of a total per second. If the total is smaller than before, a restart of the gateway has reset it.
 */
const rate = (name: "requests" | "failed" | "deliveries") => ([from, to]: Step): number =>
  Math.max(0, to[name] - from[name]) / Math.max(1, (to.time - from.time) / 1000)

const savedWeight = ([from, to]: Step): number => Math.max(0, to.weightSaved - from.weightSaved)

const cachedShare = ([from, to]: Step): number => {
  const cached = Math.max(0, to.cached - from.cached)
  const all = cached + Math.max(0, to.attempts - from.attempts)
  return all === 0 ? 0 : cached / all
}

const samplesPerSecond = (value: number): string => `${value.toFixed(1)} /s`

interface Line {
  readonly title: string
  readonly value: (step: Step) => number
  readonly format: (value: number) => string
  /** Whether the sum of the values is shown, instead of the last one. */
  readonly isSum?: boolean
  readonly isShown?: (last: HistorySample) => boolean
}

const formatLatency = (seconds: number): string => seconds === 0 ? "–" : Table.duration(seconds)

const lines: ReadonlyArray<Line> = [
  { title: "Requests", value: rate("requests"), format: samplesPerSecond },
  { title: "Failed requests", value: rate("failed"), format: samplesPerSecond },
  { title: "Latency, p50", value: ([, { p50 = 0 }]) => p50, format: formatLatency },
  { title: "Latency, p99", value: ([, { p99 = 0 }]) => p99, format: formatLatency },
  { title: "Weight saved", value: savedWeight, format: Table.count, isSum: true },
  { title: "Reads from cache", value: cachedShare, format: Table.percent },
  {
    title: "Weight left",
    value: ([, { weightLeft = 0 }]) => weightLeft,
    format: Table.count,
    isShown: ({ weightLeft }) => weightLeft !== undefined
  },
  { title: "WebSockets", value: ([, { sockets }]) => sockets, format: Table.count },
  { title: "Stream frames", value: rate("deliveries"), format: samplesPerSecond }
]

const Lines = ({ samples }: { readonly samples: ReadonlyArray<HistorySample> }) => {
  const last = samples.at(-1)
  if (last === undefined) return <p class="muted">The first values appear in a few seconds.</p>
  const grown = samples.slice(1).flatMap((to, at): ReadonlyArray<Step> => {
    const from = samples[at]
    return from === undefined ? [] : [[from, to]]
  })
  const steps: ReadonlyArray<Step> = grown.length === 0 ? [[last, last]] : grown
  const [first = last] = samples
  return (
    <>
      <dl class="tiles hour">
        {lines.filter(({ isShown }) => isShown?.(last) ?? true).map(({ format, isSum, title, value }) => {
          const values = steps.map(value)
          const top = Math.max(...values)
          const shown = isSum === true ? values.reduce((sum, each) => sum + each, 0) : values.at(-1) ?? 0
          const note = isSum === true ? "in total" : `at most ${format(top)}`
          return (
            <div key={title}>
              <dt>{title}</dt>
              <dd>
                <strong>{format(shown)}</strong> <span class="muted">{note}</span>
                <Table.Spark label={`${title} in the last hour, at most ${format(top)}`} top={top} values={values} />
              </dd>
            </div>
          )
        })}
      </dl>
      <p class="muted">
        {Table.clock(first.time).slice(0, 5)} to {Table.clock(last.time).slice(0, 8)} UTC, a sample every{" "}
        {sampleSeconds} seconds, of this gateway only.
      </p>
    </>
  )
}

/** The card with the traffic of the last hour. */
export const History = () => {
  useEffect(() =>
    Live.whileVisible(async () => {
      found.value = await Gateway.run(Admin.history())
    }, sampleSeconds * 1000), [])
  const samples = found.value
  return (
    <section class="card" aria-labelledby="hour-title">
      <h2 id="hour-title">The last hour</h2>
      {samples === undefined
        ? <p class="muted">Reading …</p>
        : "failure" in samples
        ? <p class="bad" role="alert">{samples.failure}</p>
        : <Lines samples={samples.value} />}
    </section>
  )
}

const requests = "trigate_requests_total"
const requestSeconds = "trigate_request_seconds"
const upstream = "trading-api"

/** Matches the routes that the console itself uses. Their requests are not counted as callers' traffic. */
const ownRoutes = /^(?:health|admin|sandbox)\.|^other$/u

const isTraffic = ({ labels }: Live.Series): boolean => !ownRoutes.test(labels["route"] ?? "")

/** Returns the number of callers' requests in the last minute. */
const traffic = (): number =>
  Live.of(requests).filter(isTraffic).reduce((sum, { labels }) => sum + Live.growth(requests, labels), 0)

const perSecond = (count: number): string =>
  Live.lastMinute.value === undefined ? "–" : samplesPerSecond(Live.perSecond(count))

/**
 * Returns a percentile of the latency of callers' requests: of the last minute, or of all requests if there were none in
 * that minute.
 */
const latency = (share: number): number | undefined =>
  Live.quantile(requestSeconds, share, isTraffic) ??
    Live.quantile(requestSeconds, share, isTraffic, ({ value }) => value)

const Tiles = () => {
  if (Live.snapshots.value.length === 0) return <p class="muted">Reading …</p>
  const cached = (labels = {}) => Live.growth("trigate_response_cache_total", labels)
  const hits = cached() - cached({ outcome: "refreshed" }) - cached({ outcome: "refresh_failed" })
  const attempts = Live.growth("trigate_upstream_calls_total")
  const [left] = Live.of("trigate_upstream_rate_limit_available", { upstream, share: "common" })
  const [build] = Live.of("trigate_build_info")
  const started = Live.sum("process_start_time_seconds")
  return (
    <dl class="tiles">
      <Table.Tile name="Requests" value={perSecond(traffic())} />
      <Table.Tile name="Latency p50" value={Table.duration(latency(0.5))} />
      <Table.Tile name="Latency p95" value={Table.duration(latency(0.95))} />
      <Table.Tile name="Latency p99" value={Table.duration(latency(0.99))} />
      <Table.Tile
        name="From cache"
        value={hits + attempts === 0 ? "–" : Table.percent(hits / (hits + attempts))}
        note={hits === 0 ? "" : `${Table.count(hits)} reads`}
      />
      {left === undefined ? null : (
        <Table.Tile
          name="Weight left"
          value={Table.count(left.value)}
          note={`${Table.count(Live.growth("trigate_upstream_weight_saved_total"))} saved`}
        />
      )}
      <Table.Tile name="Up for" value={started === 0 ? "–" : Table.age(started * 1000)} />
      <Table.Tile name="Version" value={build?.labels["version"] ?? "–"} />
    </dl>
  )
}

/** Returns the failed requests by route and error tag: those of the last minute, and those since the start. */
const errors = () =>
  Live.of(requests)
    .filter((series) => isTraffic(series) && series.labels["outcome"] !== "ok" && series.value > 0)
    .map(({ labels, value }) => ({
      route: labels["route"] ?? "",
      outcome: labels["outcome"] ?? "",
      recent: Live.growth(requests, labels),
      total: value
    }))
    .toSorted((one, other) => other.recent - one.recent || other.total - one.total)
    .slice(0, 6)

/** Returns the routes with the highest latency (95th percentile) in the last minute. */
const slowest = () =>
  Live.of(`${requestSeconds}_count`)
    .filter(isTraffic)
    .flatMap(({ labels: { route = "" } }) => {
      const p95 = Live.quantile(requestSeconds, 0.95, ({ labels }) => labels["route"] === route)
      return p95 === undefined ? [] : [{ route, p95, count: Live.growth(`${requestSeconds}_count`, { route }) }]
    })
    .toSorted((one, other) => other.p95 - one.p95)
    .slice(0, 6)

/** Returns a row for each upstream with an address, and for each chain without one. */
const upstreams = () =>
  Object.entries(Live.readiness.value?.chains ?? {}).flatMap(([chain, { mode, upstreams }]) => {
    const names = (upstreamsByChain[chain] ?? []).filter((name) => (upstreams[name] ?? 0) > 0)
    const title = <a href={Gateway.linkTo("chains")}>{titles[chain]}</a>
    const state = <span class={`tag ${mode === "live" ? "good" : ""}`}>{modes[mode]}</span>
    if (names.length === 0) {
      return [{ key: chain, cells: [title, mode === "sandbox" ? "in memory" : "–", state, "–", "–", "–"] }]
    }
    return names.map((name) => {
      const facts = upstreamFacts(name)
      const ejected = facts?.ejected.length ?? 0
      return {
        key: name,
        cells: [
          title,
          name,
          ejected === 0 ? state : <span class="tag bad">{ejected} of {upstreams[name]} ejected</span>,
          facts === undefined ? "–" : samplesPerSecond(facts.perSecond),
          Table.duration(facts?.p95),
          facts === undefined || facts.calls === 0 ? "–" : Table.percent(facts.failed)
        ]
      }
    })
  })

const Scenarios = lazily(() => import("./trade/Scenarios.tsx").then(({ Scenarios }) => Scenarios))

/** The console's overview panel. */
export const Overview = () => (
  <>
    <History />
    {Live.isSandbox.value === true ? <Scenarios /> : null}
    {Live.isSandbox.value === true ? <Market /> : null}
    <section class="card" aria-labelledby="now-title">
      <h2 id="now-title">The last minute</h2>
      <Tiles />
      <p class="muted">Requests to health and admin routes are not counted.</p>
    </section>
    <div class="pair">
      <Table.Table
        title="Upstreams"
        columns={["Chain", "Upstream", "State", "Requests", "p95", "Failed"]}
        text={["Upstream", "State"]}
        rows={upstreams()}
        empty="Reading …"
      />
      <div class="stack">
        <Table.Table
          title="Errors"
          columns={["Route", "Error", "Last minute", "Since the start"]}
          text={["Error"]}
          rows={errors().map(({ outcome, recent, route, total }) => ({
            key: `${route} ${outcome}`,
            cells: [route, outcome, Table.count(recent), Table.count(total)]
          }))}
          empty="None since the start. Failed requests appear here by route and error."
        />
        <Table.Table
          title="Slowest routes of the last minute"
          columns={["Route", "p95", "Requests"]}
          rows={slowest().map(({ count, p95, route }) => ({
            key: route,
            cells: [route, Table.duration(p95), Table.count(count)]
          }))}
          empty="No requests yet. Routes appear here with their latency."
        />
      </div>
    </div>
    <Snippets />
  </>
)
