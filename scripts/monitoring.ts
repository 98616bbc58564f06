/**
 * The dashboard and the alert rules, made from the table of metrics, and the check that they name nothing else.
 *
 * `npm run docs:generate` writes them into deploy/; `npm run docs:check` compares them.
 */
import * as Subscriptions from "@trigate/domain/streams/Subscriptions"
import { metrics, rows } from "@trigate/server/process/Metrics"

interface Panel {
  readonly title: string
  readonly unit: "reqps" | "s" | "percentunit" | "bytes" | "short" | "ops"
  /** What each line shows: its legend, and an expression. */
  readonly lines: ReadonlyArray<readonly [legend: string, expression: string]>
}

interface Row {
  readonly title: string
  readonly panels: ReadonlyArray<Panel>
}

const chosen = "job=~\"$job\",instance=~\"$instance\""

type Named = Pick<(typeof rows)[number], "name" | "meaning">

const select = (name: string, matchers = ""): string => `${name}{${chosen}${matchers === "" ? "" : `,${matchers}`}}`

const rate = ({ name }: Named, by: string, matchers = ""): string =>
  `sum by (${by}) (rate(${select(name, matchers)}[$__rate_interval]))`

const quantile = (share: number, { name }: Named, by = ""): string =>
  `histogram_quantile(${share}, sum by (${by === "" ? "le" : `le, ${by}`}) (rate(${
    select(`${name}_bucket`)
  }[$__rate_interval])))`

const now = ({ name }: Named, by: string): string => `max by (${by}) (${select(name)})`

const all = ({ name }: Named): string => select(name)

const m = metrics

/** The subscriptions that the venue sends at a steady interval. */
const steadyStreams = Subscriptions.table.filter(({ isSteady }) => isSteady === true).map(({ name }) => name).join("|")

const dashboardRows: ReadonlyArray<Row> = [
  {
    title: "Requests",
    panels: [
      { title: "Requests by route", unit: "reqps", lines: [["{{route}}", rate(m.requests, "route")]] },
      {
        title: "Share of requests that failed with a 5xx status",
        unit: "percentunit",
        lines: [["failed", `${rate(m.requests, "job", "status=~\"5..\"")} / ${rate(m.requests, "job")}`]]
      },
      {
        title: "Duration of requests",
        unit: "s",
        lines: [
          ["50 %", quantile(0.5, m.requestSeconds)],
          ["95 %", quantile(0.95, m.requestSeconds)],
          ["99 %", quantile(0.99, m.requestSeconds)]
        ]
      },
      {
        title: "Requests by group of callers",
        unit: "reqps",
        lines: [
          ["{{group}}", rate(m.callerRequests, "group")],
          ["{{group}} limited", rate(m.callerRequests, "group", "limited=\"yes\"")]
        ]
      },
      { title: "Calls by operation", unit: "ops", lines: [["{{operation}}", rate(m.operations, "operation")]] },
      {
        title: "Calls that did not end well, by outcome",
        unit: "ops",
        lines: [["{{outcome}}", rate(m.operations, "outcome", "outcome!=\"ok\"")]]
      }
    ]
  },
  {
    title: "Streams",
    panels: [
      { title: "WebSockets of callers", unit: "short", lines: [["open", now(m.streamSockets, "instance")]] },
      {
        title: "WebSockets opened and ended",
        unit: "ops",
        lines: [["opened", rate(m.streamSocketsOpened, "job")], ["{{reason}}", rate(m.streamClosed, "reason")]]
      },
      {
        title: "At the venue",
        unit: "short",
        lines: [
          ["connections", now(m.streamConnections, "instance")],
          ["subscriptions", now(m.streamSubscriptions, "instance")],
          ["users", now(m.streamUsers, "instance")],
          ["other replicas: {{limit}}", now(m.streamOtherReplicas, "instance, limit")]
        ]
      },
      { title: "Frames of the venue", unit: "ops", lines: [["{{channel}}", rate(m.streamFrames, "channel")]] },
      {
        title: "Frames that callers were given",
        unit: "ops",
        lines: [["{{channel}}", rate(m.streamDeliveries, "channel")]]
      },
      {
        title: "Frames that were not delivered as they came",
        unit: "ops",
        lines: [
          ["replaced by later states", rate(m.streamConflated, "job")],
          ["of unknown channels", rate(m.streamUnknownFrames, "job")]
        ]
      },
      {
        title: "Lost connections and silent streams",
        unit: "ops",
        lines: [["{{cause}}", rate(m.streamReconnects, "cause")]]
      },
      {
        title: "What lost connections missed",
        unit: "ops",
        lines: [
          ["refilled: {{channel}}", rate(m.streamRefilled, "channel")],
          ["missing: {{channel}}", rate(m.streamGaps, "channel")]
        ]
      },
      { title: "Age of the most silent stream", unit: "s", lines: [["{{channel}}", now(m.streamAge, "channel")]] },
      {
        title: "Watched accounts",
        unit: "short",
        lines: [
          ["watched by {{instance}}", all(m.accountsWatched)],
          ["being refilled by {{instance}}", all(m.accountsRefilling)],
          ["epochs ended by {{instance}}", `increase(${all(m.accountEpochsEnded)}[$__rate_interval])`],
          ["comparisons, {{outcome}}", `increase(${all(m.accountComparisons)}[$__rate_interval])`]
        ]
      },
      { title: "Heads of the EVM chains", unit: "short", lines: [["{{chain}}", now(m.evmHead, "chain")]] },
      { title: "Age of the heads of the EVM chains", unit: "s", lines: [["{{chain}}", now(m.evmHeadAge, "chain")]] },
      {
        title: "Subscriptions to the EVM chains",
        unit: "short",
        lines: [["{{chain}}", now(m.evmSubscriptions, "chain")]]
      },
      {
        title: "Polls and reorganisations of the EVM chains",
        unit: "ops",
        lines: [
          ["polls: {{chain}}", rate(m.evmPolls, "chain")],
          ["reorganisations: {{chain}}", rate(m.evmReorganisations, "chain")],
          ["failed reads of logs: {{chain}}", rate(m.evmLogFailures, "chain")]
        ]
      }
    ]
  },
  {
    title: "Upstreams",
    panels: [
      {
        title: "Attempts by upstream and outcome",
        unit: "ops",
        lines: [["{{upstream}} {{outcome}}", rate(m.upstreamCalls, "upstream, outcome")]]
      },
      {
        title: "Duration of attempts, 95 %",
        unit: "s",
        lines: [["{{upstream}}", quantile(0.95, m.upstreamSeconds, "upstream")]]
      },
      {
        title: "Attempts that followed another one, by cause",
        unit: "ops",
        lines: [["{{upstream}} {{cause}}", rate(m.upstreamRetries, "upstream, cause")]]
      },
      { title: "Hedged reads, by winner", unit: "ops", lines: [["{{won}}", rate(m.upstreamHedges, "won")]] },
      {
        title: "Ejected addresses",
        unit: "short",
        lines: [
          ["{{upstream}}#{{address}}", now(m.upstreamEjected, "upstream, address")],
          ["{{upstream}}#{{address}} next probe", now(m.upstreamNextProbe, "upstream, address")]
        ]
      },
      {
        title: "Ejections and deferrals",
        unit: "ops",
        lines: [
          ["{{upstream}}#{{address}} {{cause}}", rate(m.upstreamEjections, "upstream, address, cause")],
          ["{{upstream}}#{{address}} deferred", rate(m.upstreamDeferrals, "upstream, address")]
        ]
      },
      {
        title: "What the rate limit leaves",
        unit: "short",
        lines: [["{{upstream}} {{share}}", now(m.rateLimitAvailable, "upstream, share")]]
      },
      {
        title: "Callers that share a rate limit",
        unit: "short",
        lines: [["{{upstream}}", now(m.rateLimitCallers, "upstream")]]
      },
      {
        title: "Calls that the rate limit delayed or refused",
        unit: "ops",
        lines: [
          ["{{upstream}} waited", rate(m.rateLimitWaits, "upstream")],
          ["{{upstream}} refused", rate(m.rateLimitRefused, "upstream")],
          ["{{upstream}} beyond share", rate(m.rateLimitBeyondShare, "upstream")],
          ["waited for quota of {{quota}}", rate(m.quotaWaits, "quota")],
          ["beyond quota of {{quota}}", rate(m.quotaExceeded, "quota")]
        ]
      },
      {
        title: "Weight and request units spent",
        unit: "short",
        lines: [
          ["{{upstream}} weight", rate(m.upstreamWeight, "upstream")],
          ["{{upstream}} request units", rate(m.upstreamRequestUnits, "upstream")]
        ]
      },
      {
        title: "Weight that sharing saved, by what answered instead",
        unit: "short",
        lines: [["{{upstream}} {{outcome}}", rate(m.upstreamWeightSaved, "upstream, outcome")]]
      }
    ]
  },
  {
    title: "Cache",
    panels: [
      {
        title: "Reads without an attempt, by outcome",
        unit: "ops",
        lines: [["{{outcome}}", rate(m.cache, "outcome")]]
      },
      { title: "Bytes of cached responses", unit: "bytes", lines: [["{{instance}}", all(m.cacheBytes)]] }
    ]
  },
  {
    title: "Signed actions and shared state",
    panels: [
      {
        title: "Signed actions of unknown outcome",
        unit: "short",
        lines: [["{{state}}", now(m.actionLogEntries, "state")]]
      },
      {
        title: "Age of the oldest action of unknown outcome",
        unit: "s",
        lines: [["oldest", `time() - (min(${all(m.actionLogOldest)} > 0))`]]
      },
      {
        title: "Stores that are away",
        unit: "short",
        lines: [
          ["action log of {{instance}}", all(m.actionLogDegraded)],
          ["keys of callers of {{instance}}", all(m.callerKeysDegraded)],
          ["candle archive of {{instance}}", all(m.archiveDegraded)],
          ["{{use}} of {{instance}}", all(m.sharedStateDegraded)]
        ]
      },
      {
        title: "Signed actions whose nonce no other replica was asked about",
        unit: "ops",
        lines: [["{{instance}}", rate(m.actionLogUnshared, "instance")]]
      },
      {
        title: "Unknown outcomes that the venue's state settled",
        unit: "ops",
        lines: [["{{state}}", rate(m.actionLogSettled, "state")]]
      },
      {
        title: "Lost lines of the audit log",
        unit: "ops",
        lines: [["{{instance}}", rate(m.auditLogLost, "instance")]]
      }
    ]
  },
  {
    title: "Candle history",
    panels: [
      {
        title: "Recorded bars, by interval",
        unit: "ops",
        lines: [["{{interval}}", rate(m.archiveBars, "interval")]]
      },
      {
        title: "Bars that the venue has otherwise",
        unit: "ops",
        lines: [
          ["{{interval}} corrected", rate(m.archiveCorrections, "interval")],
          ["{{interval}} built", rate(m.archiveDifferences, "interval")]
        ]
      },
      { title: "Which gateway records", unit: "short", lines: [["{{instance}}", all(m.recording)]] },
      { title: "How far the recorder is behind", unit: "s", lines: [["{{instance}}", all(m.archiveBehind)]] }
    ]
  },
  {
    title: "Process",
    panels: [
      {
        title: "Processor",
        unit: "percentunit",
        lines: [
          ["{{instance}}", rate(m.processCpu, "instance")],
          ["{{instance}} program", rate(m.processCpuUser, "instance")],
          ["{{instance}} kernel", rate(m.processCpuSystem, "instance")]
        ]
      },
      {
        title: "Memory",
        unit: "bytes",
        lines: [
          ["{{instance}} resident", all(m.processResidentMemory)],
          ["{{instance}} heap", all(m.heapTotal)],
          ["{{instance}} heap in use", all(m.heapUsed)],
          ["{{instance}} outside of the heap", all(m.externalMemory)]
        ]
      },
      {
        title: "Memory in flight",
        unit: "bytes",
        lines: [["{{instance}} bodies", all(m.bodyBytes)], ["{{instance}} unread answers", all(m.unreadBytes)]]
      },
      {
        title: "Delay of the event loop",
        unit: "s",
        lines: [
          ["{{instance}} average", all(m.eventLoopLag)],
          ["{{instance}} 99 %", all(m.eventLoopLagP99)],
          ["{{instance}} longest", all(m.eventLoopLagMax)]
        ]
      },
      {
        title: "Open files, sockets, timers",
        unit: "short",
        lines: [
          ["{{instance}} files and sockets", all(m.processOpenFds)],
          ["{{instance}} resources", all(m.activeResources)]
        ]
      },
      {
        title: "Whether the last settings were refused",
        unit: "short",
        lines: [["{{instance}}", all(m.settingsRefused)]]
      },
      { title: "Time since the start", unit: "s", lines: [["{{instance}}", `time() - ${all(m.processStart)}`]] },
      {
        title: "Versions",
        unit: "short",
        lines: [["Trigate {{version}}, Node {{node}}", `sum by (version, node) (${all(m.buildInfo)})`]]
      }
    ]
  }
]

const width = 12
const height = 8

const panelsOf = () => {
  const panels: Array<unknown> = []
  let y = 0
  for (const { panels: own, title } of dashboardRows) {
    panels.push({
      id: panels.length + 1,
      type: "row",
      title,
      collapsed: false,
      gridPos: { h: 1, w: 2 * width, x: 0, y },
      panels: []
    })
    y += 1
    for (const [index, { lines, title, unit }] of own.entries()) {
      panels.push({
        id: panels.length + 1,
        type: "timeseries",
        title,
        description: rows.filter(({ name }) => lines.some(([, expression]) => namesIn(expression).has(name)))
          .map(({ meaning, name }) => `${name}: ${meaning}`).join("\n\n"),
        datasource: { type: "prometheus", uid: "${datasource}" },
        gridPos: { h: height, w: width, x: index % 2 * width, y: y + Math.floor(index / 2) * height },
        fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
        options: { legend: { displayMode: "list", placement: "bottom" }, tooltip: { mode: "multi", sort: "desc" } },
        targets: lines.map(([legendFormat, expr], target) => ({
          refId: String.fromCodePoint(65 + target),
          datasource: { type: "prometheus", uid: "${datasource}" },
          expr,
          legendFormat
        }))
      })
    }
    y += Math.ceil(own.length / 2) * height
  }
  return panels
}

const variable = (name: string, label: string, matchers: string) => ({
  name,
  label,
  type: "query",
  datasource: { type: "prometheus", uid: "${datasource}" },
  query: { query: `label_values(${m.buildInfo.name}${matchers}, ${name})`, refId: name },
  refresh: 2,
  multi: true,
  includeAll: true,
  current: { text: "All", value: "$__all" }
})

/** The Grafana dashboard. */
export const dashboard = (): string =>
  `${
    JSON.stringify(
      {
        uid: "trigate",
        title: "Trigate",
        description: "Written by npm run docs:generate from the table of metrics",
        tags: ["trigate"],
        schemaVersion: 39,
        editable: true,
        refresh: "30s",
        time: { from: "now-1h", to: "now" },
        templating: {
          list: [
            { name: "datasource", label: "Data source", type: "datasource", query: "prometheus" },
            variable("job", "Job", ""),
            variable("instance", "Instance", "{job=~\"$job\"}")
          ]
        },
        panels: panelsOf()
      },
      undefined,
      2
    )
  }\n`

interface Alert {
  readonly name: string
  /** Who has to look: `page` now, `ticket` on the next working day. */
  readonly severity: "page" | "ticket"
  readonly for: string
  readonly expression: string
  readonly summary: string
  readonly whatToDo: string
}

const recent = ({ name }: Named, by: string, matchers = ""): string =>
  `sum by (${by}) (rate(${name}${matchers === "" ? "" : `{${matchers}}`}[5m]))`

const faults = "outcome=~\"not_sent|broken|timeout|server_fault|malformed|mismatched\""

const alerts: ReadonlyArray<Alert> = [
  {
    name: "TrigateDown",
    severity: "page",
    for: "2m",
    expression: `absent(${m.buildInfo.name})`,
    summary: "No gateway is scraped",
    whatToDo: "See whether a gateway runs, and whether Prometheus reaches its /metrics."
  },
  {
    name: "TrigateReplicaGone",
    severity: "ticket",
    for: "5m",
    // the median of an hour: a third replica during an upgrade is none too many
    expression:
      `count by (job) (${m.buildInfo.name}) < quantile_over_time(0.5, count by (job) (${m.buildInfo.name})[1h:1m])`,
    summary: "Fewer gateways of {{ $labels.job }} are scraped than an hour ago",
    whatToDo:
      "See whether one has ended, and whether Prometheus reaches it. If you run fewer on purpose, it ends by itself."
  },
  {
    name: "TrigateRequestsFail",
    severity: "page",
    for: "5m",
    expression: `${recent(m.requests, "job", "status=~\"5..\"")} / ${recent(m.requests, "job")} > 0.05`,
    summary: "More than 5 % of the requests end with a 5xx status",
    whatToDo: `Look at the outcomes of ${m.requests.name}; a 5xx tag names the upstream or store that fails.`
  },
  {
    name: "TrigateSlow",
    severity: "ticket",
    for: "10m",
    expression: `histogram_quantile(0.99, sum by (le, job) (rate(${m.requestSeconds.name}_bucket[5m]))) > 5`,
    summary: "One request in a hundred takes more than 5 seconds",
    whatToDo: `Compare ${m.upstreamSeconds.name} by upstream, and calls that waited for a rate limit.`
  },
  {
    name: "TrigateUpstreamFails",
    severity: "ticket",
    for: "5m",
    expression: `${recent(m.upstreamCalls, "job, upstream", faults)} / ${
      recent(m.upstreamCalls, "job, upstream")
    } > 0.2`,
    summary: "More than 20 % of the attempts at {{ $labels.upstream }} fail",
    whatToDo: "Ask the provider, or add an address of another one to the setting."
  },
  {
    name: "TrigateAddressEjected",
    severity: "ticket",
    for: "10m",
    expression: `${m.upstreamEjected.name} == 1`,
    summary: "Address {{ $labels.address }} of {{ $labels.upstream }} gets no calls",
    whatToDo: "It failed its probes or is on another chain; the log says which."
  },
  {
    name: "TrigateRateLimitRefuses",
    severity: "ticket",
    for: "5m",
    expression: `${recent(m.rateLimitRefused, "job, upstream")} > 0`,
    summary: "Calls to {{ $labels.upstream }} are refused by its rate limit",
    whatToDo: "Callers ask more than the plan grants: raise the plan and its setting, or cache more."
  },
  {
    name: "TrigateUpstreamLimitsRate",
    severity: "ticket",
    for: "5m",
    expression: `${recent(m.upstreamCalls, "job, upstream", "outcome=\"rate_limited\"")} > 0`,
    summary: "{{ $labels.upstream }} answers HTTP 429",
    whatToDo: "It grants less than its setting says, or others use the same key or IP address."
  },
  {
    name: "TrigateAccountEventsMissing",
    severity: "ticket",
    for: "0m",
    expression: `increase(${m.accountEpochsEnded.name}[10m]) > 0`,
    summary: "Events of a watched account are missing in its log",
    whatToDo:
      "Read the account's fills and orders again where a program counts on them. The log names the account; look for 429 of the venue, or for a long time without it."
  },
  {
    name: "TrigateAccountEventsLate",
    severity: "ticket",
    for: "2m",
    expression: `max by (job) (${m.accountsRefilling.name}) > 0`,
    summary: "Missed events of a watched account have been waiting for two minutes to be queried",
    whatToDo:
      "Its streams deliver nothing until then. Callers and actions leave no room in the rate limit of the venue: see which of them use it."
  },
  {
    name: "TrigateStreamSilent",
    severity: "ticket",
    for: "1m",
    expression: `max by (job, channel) (${m.streamAge.name}{channel=~"${steadyStreams}"}) > 60`,
    summary: "The venue has sent nothing of {{ $labels.channel }} for a minute",
    whatToDo:
      "The gateway subscribes again by itself. If the silence lasts, see whether the venue is reachable, and read its status."
  },
  {
    name: "TrigateAccountStatesDiffer",
    severity: "page",
    for: "0m",
    expression: `increase(${m.accountComparisons.name}{outcome="drift"}[10m]) > 0`,
    summary: "The streams of a watched account differ from the venue's responses",
    whatToDo:
      "Responses from streams were wrong until now: the mirror was emptied and serves the next states. If it happens again, set TRIGATE_MIRROR_AGE=0s and compare the account's fills and orders with the venue."
  },
  {
    name: "TrigateAgentExpires",
    severity: "page",
    for: "0m",
    expression: `max by (job) (${m.accountAgentsExpiring.name}{within="1 hour"}) > 0`,
    summary: "An agent of a watched account expires within an hour",
    whatToDo: "Approve it again with the account's own key, or its bot stops trading. The log names account and agent."
  },
  {
    name: "TrigateAgentExpiresSoon",
    severity: "ticket",
    for: "0m",
    expression: `max by (job) (${m.accountAgentsExpiring.name}{within="7 days"}) > 0`,
    summary: "An agent of a watched account expires within 7 days",
    whatToDo: "Approve it again with the account's own key. The log names account and agent."
  },
  {
    name: "TrigateAccountUnchecked",
    severity: "ticket",
    for: "30m",
    expression: `max by (job, operation) (${m.accountChecksFailing.name}) > 0`,
    summary: "The query {{ $labels.operation }} about a watched account has failed for half an hour",
    whatToDo:
      "Nothing is reported of agents that expire or actions that run out. The log names the account and the error."
  },
  {
    name: "TrigateActionsRunLow",
    severity: "ticket",
    for: "0m",
    expression: `max by (job) (${m.accountsLowOnActions.name}) > 0`,
    summary: "A watched account has less than a tenth of its address's actions left",
    whatToDo:
      "The venue then accepts one action in ten seconds. Trade with fewer orders and cancels, or buy actions (reserveRequestWeight). The log names the account."
  },
  {
    name: "TrigateActionsUnknown",
    severity: "page",
    for: "5m",
    // of all replicas together, so that the end of one does not begin the five minutes anew
    expression: `max by (job) (${m.actionLogEntries.name}{state="unknown"}) > 0`,
    summary: "{{ $value }} signed actions have an unknown outcome",
    whatToDo: "List and resolve them with trigate actions; do not sign them again under a new nonce."
  },
  {
    name: "TrigateActionLogAway",
    severity: "page",
    for: "1m",
    expression: `${m.actionLogDegraded.name} == 1`,
    summary: "The action log cannot be written: signed actions are refused",
    whatToDo: "Bring its database or Redis back; nothing was sent meanwhile."
  },
  {
    name: "TrigateCallersRefused",
    severity: "page",
    for: "2m",
    expression: `${m.callerKeysDegraded.name} == 1`,
    summary: "{{ $labels.instance }} cannot read the keys of its callers",
    whatToDo:
      "Bring the database or the key file back. A gateway that has read them once serves by them, one that has not refuses everybody."
  },
  {
    name: "TrigateSettingsRefused",
    severity: "ticket",
    for: "0m",
    expression: `${m.settingsRefused.name} == 1`,
    summary: "{{ $labels.instance }} refused the settings that it read last, and serves by older ones",
    whatToDo:
      "The log says which setting is wrong; correct it and send SIGHUP again, before a restart refuses to start."
  },
  {
    name: "TrigateCallerLimited",
    severity: "ticket",
    for: "15m",
    expression: `${recent(m.callerRequests, "job, group", "limited=\"yes\"")} / ${
      recent(m.callerRequests, "job, group")
    } > 0.2`,
    summary: "More than 20 % of the requests of {{ $labels.group }} end with HTTP 429",
    whatToDo: "See which limit refuses them: the quota of the key, or the rate limit of an upstream."
  },
  {
    name: "TrigateActionsUnshared",
    severity: "ticket",
    for: "0m",
    expression: `increase(${m.actionLogUnshared.name}[15m]) > 0`,
    summary: "Signed actions were sent without comparing their nonces with other replicas",
    whatToDo: "Bring Redis back, or keep the action log in a database."
  },
  {
    name: "TrigateAuditLogLost",
    severity: "ticket",
    for: "0m",
    expression: `increase(${m.auditLogLost.name}[15m]) > 0`,
    summary: "Lines of the audit log were lost: it could not be written",
    whatToDo: "Make room on the disk of its file; the gateway's log says why."
  },
  {
    name: "TrigateSharedStateDegraded",
    severity: "ticket",
    for: "5m",
    expression: `${m.sharedStateDegraded.name} == 1`,
    summary: "Replicas do not share {{ $labels.use }}",
    whatToDo: "Bring Redis back; until then each replica works alone."
  },
  {
    name: "TrigateNoRecorder",
    severity: "ticket",
    for: "5m",
    expression: `max by (job) (${m.recording.name}) == 0`,
    summary: "No gateway of {{ $labels.job }} records candles",
    whatToDo: "The logs say why the election or the recording failed; most often the database is away."
  },
  {
    name: "TrigateCandlesBehind",
    severity: "ticket",
    for: "1h",
    expression: `${m.archiveDegraded.name} == 1 or ${m.archiveBehind.name} > 86400`,
    summary: "Candle history of {{ $labels.instance }} is a day behind, or its database is away",
    whatToDo:
      "Bring the database back, record fewer coins, or give the gateway more weight, before the venue drops bars."
  },
  {
    name: "TrigateEventLoopLags",
    severity: "ticket",
    for: "5m",
    expression: `${m.eventLoopLagP99.name} > 0.2`,
    summary: "The event loop of {{ $labels.instance }} is late by more than 200 ms",
    whatToDo: "The process has too little processor time: add a replica."
  }
]

/** The Prometheus alert rules. JSON strings are YAML strings. */
export const alertRules = (): string =>
  [
    "# Written by `npm run docs:generate` from the table of metrics; change scripts/monitoring.ts, not this file.",
    "groups:",
    "  - name: trigate",
    "    rules:",
    ...alerts.flatMap((alert) => [
      `      - alert: ${alert.name}`,
      `        expr: ${JSON.stringify(alert.expression)}`,
      `        for: ${alert.for}`,
      "        labels:",
      `          severity: ${alert.severity}`,
      "        annotations:",
      `          summary: ${JSON.stringify(alert.summary)}`,
      `          description: ${JSON.stringify(alert.whatToDo)}`
    ]),
    ""
  ].join("\n")

/** The metrics that an expression names, a histogram without what its series add to its name. */
const namesIn = (expression: string): ReadonlySet<string> =>
  new Set(
    [...expression.matchAll(/\b(?:trigate|process|nodejs)_[a-z0-9_]+/gu)].map(([name]) =>
      rows.find((row) => row.kind === "histogram" && name === `${row.name}_bucket`)?.name ?? name
    )
  )

/** The labels that an expression selects or groups by. */
const labelsIn = (expression: string): ReadonlySet<string> =>
  new Set([
    ...[...expression.matchAll(/(?<label>\w+)\s*(?:=~|!=|!~|=)\s*"/gu)].map((match) => match.groups?.["label"] ?? ""),
    ...[...expression.matchAll(/\bby \((?<labels>[^)]*)\)/gu)]
      .flatMap((match) => match.groups?.["labels"]?.split(",").map((label) => label.trim()) ?? [])
  ])

// what Prometheus adds to every series, and to a histogram's buckets
const added = ["job", "instance", "le"]

/** What is wrong with the dashboard and the rules: names and labels that the table does not have, metrics that nobody sees. */
export const mistakes = (): ReadonlyArray<string> => {
  const expressions = [
    ...dashboardRows.flatMap(({ panels }) =>
      panels.flatMap(({ lines, title }) => lines.map(([, expression]) => [title, expression] as const))
    ),
    ...alerts.map(({ expression, name }) => [name, expression] as const)
  ]
  const seen = new Set<string>()
  const wrong = expressions.flatMap(([where, expression]) => {
    const named = [...namesIn(expression)]
    for (const name of named) seen.add(name)
    const found = rows.filter(({ name }) => named.includes(name))
    const labels = new Set<string>([...added, ...found.flatMap((row) => row.labels)])
    return named.filter((name) => !rows.some((row) => row.name === name)).map((name) => `${where}: no metric ${name}`)
      .concat([...labelsIn(expression).difference(labels)].map((label) => `${where}: no label ${label}`))
  })
  return [...wrong, ...rows.filter(({ name }) => !seen.has(name)).map(({ name }) => `the dashboard lacks ${name}`)]
}
