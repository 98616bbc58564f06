/** Expressions of PromQL over the table of metrics, for the series that the variables of the dashboard select. */
import { rows } from "@trigate/server/unstable/process/Metrics"

const chosen = "job=~\"$job\",instance=~\"$instance\""

/** A metric of the table. */
export type Named = Pick<(typeof rows)[number], "name" | "meaning">

const select = (name: string, matchers = ""): string => `${name}{${chosen}${matchers === "" ? "" : `,${matchers}`}}`

/** The rate of a counter, by labels. */
export const rate = ({ name }: Named, by: string, matchers = ""): string =>
  `sum by (${by}) (rate(${select(name, matchers)}[$__rate_interval]))`

/** A quantile of a histogram, by labels. */
export const quantile = (share: number, { name }: Named, by = ""): string =>
  `histogram_quantile(${share}, sum by (${by === "" ? "le" : `le, ${by}`}) (rate(${
    select(`${name}_bucket`)
  }[$__rate_interval])))`

/** The value of a gauge, by labels. */
export const now = ({ name }: Named, by: string): string => `max by (${by}) (${select(name)})`

/** All series of a metric. */
export const all = ({ name }: Named): string => select(name)

/** The metrics that an expression names, a histogram without what its series add to its name. */
export const namesIn = (expression: string): ReadonlySet<string> =>
  new Set(
    [...expression.matchAll(/\b(?:trigate|process|nodejs)_[a-z0-9_]+/gu)].map(([name]) =>
      rows.find((row) => row.kind === "histogram" && name === `${row.name}_bucket`)?.name ?? name
    )
  )

/** The labels that an expression selects or groups by. */
export const labelsIn = (expression: string): ReadonlySet<string> =>
  new Set([
    ...[...expression.matchAll(/(?<label>\w+)\s*(?:=~|!=|!~|=)\s*"/gu)].map((match) => match.groups?.["label"] ?? ""),
    ...[...expression.matchAll(/\bby \((?<labels>[^)]*)\)/gu)]
      .flatMap((match) => match.groups?.["labels"]?.split(",").map((label) => label.trim()) ?? [])
  ])
