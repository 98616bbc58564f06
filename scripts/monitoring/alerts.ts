/**
 * The Prometheus alert rules, made from the table of metrics. `npm run docs:generate` writes them into deploy/; `npm run docs:check`
 * compares them.
 */
import * as Subscriptions from "@trigate/domain/unstable/streams/Subscriptions"
import { metrics as m } from "@trigate/server/unstable/process/Metrics"
import type { Named } from "./promql.ts"

/** The subscriptions that the venue sends at a steady interval. */
const steadyStreams = Subscriptions.table.filter(({ isSteady }) => isSteady === true).map(({ name }) => name).join("|")

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

/** The rules. */
export const alerts: ReadonlyArray<Alert> = [
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
    name: "TrigateAccountsUnrecorded",
    severity: "page",
    for: "1m",
    expression: `max by (job, instance) (${m.accountsUnrecorded.name}) > 0`,
    summary: "{{ $labels.instance }} does not receive the events of {{ $value }} watched accounts",
    whatToDo:
      "Streams of these accounts end, and queries about them go to the venue. See in /health/ready whether the store of the event log is away, and whether the venue's limits of users or connections are used up."
  },
  {
    name: "TrigateAccountEventsLate",
    severity: "ticket",
    // one minute longer than the summary says: the maximum of a minute bridges the restart of the replica that writes
    for: "3m",
    expression: `max by (job) (max_over_time(${m.accountsRefilling.name}[1m])) > 0`,
    summary: "Missed events of a watched account have been waiting for two minutes to be queried",
    whatToDo:
      "The subscriptions that miss them deliver nothing until then. Callers and actions leave no room in the rate limit of the venue: see which of them use it."
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
    "# Written by `npm run docs:generate` from the table of metrics; change scripts/monitoring/alerts.ts, not this file.",
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
