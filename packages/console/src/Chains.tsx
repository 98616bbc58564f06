/** The chains and their addresses: mode, latency, failures and ejections; the newest blocks of the EVM chains. */
import * as Live from "./Live.ts"
import * as Table from "./Table.tsx"

/** The upstreams of each chain. */
export const upstreamsByChain: { readonly [chain: string]: ReadonlyArray<string> } = {
  trading: ["trading-api", "trading-node"],
  tokens: ["token-chain"],
  layer2: ["layer2"]
}

/** The title of each chain. */
export const titles: { readonly [chain: string]: string } = {
  trading: "Venue",
  tokens: "Token chain",
  layer2: "Layer 2"
}

/** The name of each mode of a chain. */
export const modes = { live: "live", sandbox: "sandbox", "not-configured": "not configured" }

const causes: { readonly [cause: string]: string } = {
  not_sent: "no connection",
  broken: "connections broke",
  timeout: "timeouts",
  server_fault: "HTTP 502 to 504",
  wrong_chain: "on another chain"
}

/** Returns an upstream's statistics of the last minute. */
export const upstreamFacts = (upstream: string) => {
  if (Live.lastMinute.value === undefined) return undefined
  const calls = Live.growth("trigate_upstream_calls_total", { upstream })
  const isOwn = ({ labels }: Live.Series): boolean => labels["upstream"] === upstream
  // neither a refusal, which is the caller's mistake, nor an abandoned attempt is a failure of the upstream
  const sound = ["ok", "refused", "abandoned"].reduce(
    (sum, outcome) => sum + Live.growth("trigate_upstream_calls_total", { upstream, outcome }),
    0
  )
  return {
    perSecond: Live.perSecond(calls),
    calls,
    failed: calls === 0 ? 0 : (calls - sound) / calls,
    p50: Live.quantile("trigate_upstream_call_seconds", 0.5, isOwn),
    p95: Live.quantile("trigate_upstream_call_seconds", 0.95, isOwn),
    ejected: Live.of("trigate_upstream_ejected", { upstream }).filter(({ value }) => value === 1).map(
      ({ labels }) => {
        const at = { upstream, address: labels["address"] ?? "" }
        const all = Live.of("trigate_upstream_ejections_total", at).map(({ labels }) => labels["cause"] ?? "")
        const recent = all.filter((cause) => Live.growth("trigate_upstream_ejections_total", { ...at, cause }) > 0)
        const why = recent.length > 0 ? recent : all
        return {
          address: at.address,
          why: [...new Set(why)].map((cause) => causes[cause] ?? cause).join(", "),
          nextProbe: Live.sum("trigate_upstream_next_probe_seconds", at)
        }
      }
    )
  }
}

const upstream = (name: string, addresses: number) => {
  const facts = upstreamFacts(name)
  return {
    key: name,
    cells: [
      name,
      addresses,
      facts === undefined ? "–" : `${facts.perSecond.toFixed(1)} /s`,
      Table.duration(facts?.p50),
      Table.duration(facts?.p95),
      <span key="failed" class={facts !== undefined && facts.failed > 0 ? "bad" : ""}>
        {facts === undefined || facts.calls === 0 ? "–" : Table.percent(facts.failed)}
      </span>,
      facts === undefined || facts.ejected.length === 0
        ? <span key="ejected" class="good">none ejected</span>
        : facts.ejected.map(({ address, nextProbe, why }) => (
          <div key={address}>
            <span class="tag bad">address {address} ejected: {why}</span>
            {nextProbe === 0 ? null : ` tried again at ${Table.clock(nextProbe * 1000).slice(0, 8)} UTC`}
          </div>
        ))
    ]
  }
}

/** Returns a row for each EVM chain on which clients have subscribed to new blocks or logs. */
const heads = () =>
  Live.of("trigate_evm_subscriptions").map(({ labels, value: subscriptions }) => {
    const chain = labels["chain"] ?? ""
    const isFollowed = subscriptions > 0
    return {
      key: chain,
      cells: [
        titles[chain] ?? chain,
        isFollowed ? Table.count(Live.sum("trigate_evm_head", { chain })) : "not followed",
        isFollowed ? Table.duration(Live.sum("trigate_evm_head_age_seconds", { chain })) : "–",
        Table.count(Live.sum("trigate_evm_reorganisations_total", { chain })),
        Table.count(subscriptions),
        Table.count(Live.growth("trigate_evm_head_polls_total", { chain }))
      ]
    }
  })

/** The console's panel of chains. */
export const Chains = () => {
  const now = Live.readiness.value
  if (now === undefined) return <p class="muted">Reading …</p>
  return (
    <>
      {Object.entries(now.chains ?? {}).map(([chain, { mode, upstreams }]) => (
        <section class="card" key={chain} aria-labelledby={`chain-${chain}`}>
          <h2 id={`chain-${chain}`}>
            {titles[chain]} <span class={`tag ${mode === "live" ? "good" : ""}`}>{modes[mode]}</span>
          </h2>
          {mode !== "live"
            ? (
              <p class="muted">
                {mode === "sandbox"
                  ? "Served by a chain in memory; nothing here is real."
                  : "No address is configured: calls to this chain are refused."}
              </p>
            )
            : (
              <Table.Grid
                label={titles[chain] ?? chain}
                columns={["Upstream", "Addresses", "Attempts", "p50", "p95", "Failed", "Outlier detection"]}
                rows={(upstreamsByChain[chain] ?? []).filter((name) => (upstreams[name] ?? 0) > 0)
                  .map((name) =>
                    upstream(name, upstreams[name] ?? 0)
                  )}
              />
            )}
        </section>
      ))}
      <Table.Table
        title="Heads of the EVM chains"
        columns={["Chain", "Head", "Age", "Reorganisations", "Subscriptions", "Polls, last minute"]}
        rows={heads()}
        empty="No chain is followed: no client has subscribed to heads or logs."
      />
      {now.actionLog === undefined ? null : (
        <p class="muted">
          The action log is stored in {now.actionLog.backing} and is{" "}
          <span class={now.actionLog.state === "up" ? "good" : "bad"}>{now.actionLog.state}</span>.
        </p>
      )}
    </>
  )
}
