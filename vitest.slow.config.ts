/**
 * The tests that `npm test` has no time for: files named `*.slow.test.ts`, those from which it draws long tests, every row of the
 * tables of which it runs a sample, and every run of the property tests.
 */
// @effect-diagnostics-next-line nodeBuiltinImport:off -- vitest reads its configuration outside of any Effect
import * as fs from "node:fs"
import { defineConfig } from "vitest/config"
import { longTests } from "./scripts/longTests.ts"
import quick from "./vitest.workspace.ts"

const sampling = fs.globSync(["packages/*/test/**/*.test.ts", "examples/*/test/**/*.test.ts", "test/**/*.test.ts"], {
  cwd: import.meta.dirname,
  exclude: (name) => name === "node_modules" || name === ".blocks"
}).filter((file) =>
  file.endsWith(".slow.test.ts") || longTests[file] !== undefined ||
  /"@trigate\/testing\/Sample"|\.prop\(/u.test(fs.readFileSync(`${import.meta.dirname}/${file}`, "utf8"))
)

export default defineConfig({
  test: { ...quick.test, include: sampling, exclude: [], env: { ...quick.test?.env, TRIGATE_TEST_ROWS: "all" } }
})
