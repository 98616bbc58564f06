/** The panels of the dashboard, in rows: what each shows, as expressions over the table of metrics. */
import { metrics as m } from "@trigate/server/unstable/process/Metrics"
import { all, now, quantile, rate } from "./promql.ts"

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

/** The rows of the dashboard. */
export const panelRows: ReadonlyArray<Row> = [
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
          ["missing: {{channel}}", rate(m.streamGaps, "channel")],
          ["equal keys: {{channel}}", rate(m.streamRowCollisions, "channel")]
        ]
      },
      { title: "Age of the most silent stream", unit: "s", lines: [["{{channel}}", now(m.streamAge, "channel")]] },
      {
        title: "Watched accounts",
        unit: "short",
        lines: [
          ["watched by {{instance}}", all(m.accountsWatched)],
          ["being refilled by {{instance}}", all(m.accountsRefilling)],
          ["not received by {{instance}}", all(m.accountsUnrecorded)],
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
      { title: "Bytes stored for the EVM chains", unit: "bytes", lines: [["{{chain}}", now(m.evmRetained, "chain")]] },
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
        title: "Relayed actions that the catalog of this version lacks",
        unit: "ops",
        lines: [["{{instance}}", rate(m.actionsNotKnown, "instance")]]
      },
      {
        title: "Signed actions that the guard refused",
        unit: "ops",
        lines: [["{{rule}}", rate(m.guardRefusals, "rule")]]
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
        lines: [
          ["{{instance}} bodies", all(m.bodyBytes)],
          ["{{instance}} unread answers", all(m.unreadBytes)],
          ["{{instance}} unread events", all(m.streamUnread)],
          ["{{instance}} logged events", all(m.accountLogBytes)],
          ["{{channel}} frames", now(m.streamRetained, "channel")],
          ["{{group}}", now(m.callerRetained, "group")]
        ]
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
