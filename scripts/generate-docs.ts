/**
 * Writes what repeats the code: the contract, operations, errors, metrics and settings, and the entry module of each package.
 *
 * `npm run docs:generate` writes them; with `--check`, as `npm run docs:check` runs it, nothing is written and every
 * file that differs from the code is named.
 */
import * as fs from "node:fs"
import * as path from "node:path"
import { clientModules } from "./client-calls.ts"
import { configurationText } from "./docs/configuration.ts"
import { errorsText } from "./docs/errors.ts"
import { limitsText } from "./docs/limits.ts"
import { metricsText } from "./docs/metrics.ts"
import { openApiText } from "./docs/openapi.ts"
import { operationsText } from "./docs/operations.ts"
import { sandboxText } from "./docs/sandbox.ts"
import { subscriptionsText } from "./docs/subscriptions.ts"
import { alertRules } from "./monitoring/alerts.ts"
import * as monitoring from "./monitoring/check.ts"
import { dashboard } from "./monitoring/dashboard.ts"
import { entryModules } from "./packages/entries.ts"
import { root } from "./packages/manifest.ts"

const documents: ReadonlyMap<string, string> = new Map([
  ["docs/subscriptions.md", subscriptionsText],
  ["deploy/grafana/trigate.json", dashboard()],
  ["deploy/prometheus/alerts.yaml", alertRules()],
  ["docs/configuration.md", configurationText],
  ["docs/errors.md", errorsText],
  ["docs/limits.md", limitsText],
  ["docs/metrics.md", metricsText],
  ["docs/openapi.json", openApiText()],
  ["docs/operations.md", operationsText],
  ["docs/sandbox.md", sandboxText()],
  ...clientModules,
  ...entryModules
])

const isChecking = process.argv.includes("--check")
const isCurrent = (file: string, text: string): boolean => {
  const target = path.join(root, file)
  return fs.existsSync(target) && fs.readFileSync(target, "utf8") === text
}
const outdated = [...documents].filter(([file, text]) => !isCurrent(file, text))

for (const [file, text] of outdated) {
  if (isChecking) console.error(`${file}: differs from the code; write it with npm run docs:generate`)
  else fs.writeFileSync(path.join(root, file), text)
}
console.log(`docs: ${documents.size} generated files, ${outdated.length} ${isChecking ? "outdated" : "written"}`)
const mistakes = monitoring.mistakes()
for (const mistake of mistakes) console.error(`deploy: ${mistake}`)
process.exitCode = (isChecking && outdated.length > 0) || mistakes.length > 0 ? 1 : 0
