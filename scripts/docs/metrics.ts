/** docs/metrics.md: every metric. */
import { passthroughOperations } from "@trigate/domain/info/InfoOperations"
import { labels } from "@trigate/domain/unstable/DeclaredMetric"
import { rows } from "@trigate/server/unstable/process/Metrics"
import { code, codes, document, table } from "./markdown.ts"

const isOwn = ({ name }: (typeof rows)[number]): boolean => name.startsWith("trigate_")

/** The document. */
export const metricsText = document(
  "Metrics",
  "`GET /metrics` prints these metrics in Prometheus text, and a gateway with a collector exports them over OTLP\n" +
    "([guide](guides/observability.md)). For a metric without a series, only the lines `# HELP` and `# TYPE` are printed. Every label has a\n" +
    "bounded set of values; none contains an address, a key, or a text of a caller.",
  table(
    ["Metric", "Kind", "Labels", "Meaning"],
    rows.filter(isOwn).map(({ kind, labels, meaning, name }) => [code(name), kind, codes(labels), meaning])
  ),
  `These metrics have the names and meanings of prom-client: ${
    rows.filter((row) => !isOwn(row)).map(({ name, onLinux }) => `${code(name)}${onLinux === true ? " (Linux)" : ""}`)
      .join(", ")
  }.`,
  "## The election of a recorder",
  "Where replicas share a Postgres and record candles, Effect's cluster adds `effect_cluster_…`. `effect_cluster_singletons` is 1 on the\n" +
    "replica that records, and `effect_cluster_runners_healthy` counts the replicas with a recent heartbeat in the database.",
  "## Labels",
  table(["Label", "Value"], Object.entries(labels).map(([name, value]) => [code(name), value])),
  "## Known queries",
  "A pass-through query of one of these types is counted under its type, any other one under `info`:",
  `${codes(passthroughOperations.map(({ name }) => name))}.`
)
