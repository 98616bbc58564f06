/** Checks that the dashboard and the alert rules name nothing that the table of metrics does not have. */
import { rows } from "@trigate/server/unstable/process/Metrics"
import { alerts } from "./alerts.ts"
import { panelRows } from "./panels.ts"
import { labelsIn, namesIn } from "./promql.ts"

// what Prometheus adds to every series, and to a histogram's buckets
const added = ["job", "instance", "le"]

/** What is wrong with the dashboard and the rules: names and labels that the table does not have, metrics that nobody sees. */
export const mistakes = (): ReadonlyArray<string> => {
  const expressions = [
    ...panelRows.flatMap(({ panels }) =>
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
