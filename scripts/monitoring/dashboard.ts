/**
 * The Grafana dashboard, made from the table of metrics. `npm run docs:generate` writes it into deploy/; `npm run docs:check`
 * compares it.
 */
import { metrics as m, rows } from "@trigate/server/unstable/process/Metrics"
import { panelRows } from "./panels.ts"
import { namesIn } from "./promql.ts"

const width = 12
const height = 8

const panelsOf = () => {
  const panels: Array<unknown> = []
  let y = 0
  for (const { panels: own, title } of panelRows) {
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
