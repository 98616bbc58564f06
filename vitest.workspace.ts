// @effect-diagnostics-next-line nodeBuiltinImport:off -- vitest reads its configuration outside of any Effect
import { spawnSync } from "node:child_process"
import { availableParallelism } from "node:os"
import { configDefaults, defineConfig } from "vitest/config"
import type { TestSpecification } from "vitest/node"
import { BaseSequencer } from "vitest/node"

// selects the samples and the cases of property tests: others for each commit, the same for everyone who runs that commit
const commit = spawnSync("git", ["rev-parse", "--short=12", "HEAD"], { cwd: import.meta.dirname, encoding: "utf8" })
// @effect-diagnostics-next-line processEnv:off -- see above
const seed = process.env["TRIGATE_TEST_SEED"] ?? (commit.status === 0 ? commit.stdout.trim() : "trigate")

const isLong = ({ moduleId }: TestSpecification): boolean => moduleId.endsWith("/test/guides/guides.test.ts")

/**
 * Vitest begins with the files that took longest the last time. A fresh clone has no last time, and a long file that comes
 * last leaves all other cores idle.
 */
class LongestFirst extends BaseSequencer {
  override sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    // oxlint-disable-next-line unicorn/no-array-sort -- it is no array's
    return super.sort(files.filter((file) => !isLong(file))).then((others) => [...files.filter(isLong), ...others])
  }
}

export default defineConfig({
  test: {
    // the first is for readers, who save a test of the README or of a guide in the root
    include: ["*.test.ts", "packages/*/test/**/*.test.ts", "examples/*/test/**/*.test.ts", "test/**/*.test.ts"],
    // a run of the guides that was killed leaves its folder, with the examples in it
    // and the backend has packages of its own, see scripts/packages/backend.ts
    exclude: [...configDefaults.exclude, "test/guides/.blocks/**", "examples/backend/**", "**/*.slow.test.ts"],
    globalSetup: [`${import.meta.dirname}/scripts/vitest.global.ts`],
    runner: `${import.meta.dirname}/scripts/vitest.runner.ts`,
    setupFiles: [`${import.meta.dirname}/scripts/vitest.setup.ts`],
    // the programs that tests start load the same modules; those of the repository keep what was compiled there, too
    env: { NODE_COMPILE_CACHE: `${import.meta.dirname}/node_modules/.cache/trigate`, TEST_SEED: seed },
    sequence: { sequencer: LongestFirst },
    // files share a process, since each would spend a second on the same modules: what a file replaces in it, it puts back
    isolate: false,
    // a third of the time a test waits, for a child process or a socket: on two cores a third process has something to do
    maxWorkers: Math.ceil(1.5 * Math.max(2, availableParallelism())),
    // nothing waits that long unless it hangs: no test is about how fast the machine is
    testTimeout: 300_000,
    hookTimeout: 300_000
  }
})
