import { availableParallelism } from "node:os"
import { configDefaults, defineConfig } from "vitest/config"
import type { TestSpecification } from "vitest/node"
import { BaseSequencer } from "vitest/node"

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
    setupFiles: [`${import.meta.dirname}/scripts/vitest.setup.ts`],
    // the programs that tests start load the same modules; those of the repository keep what was compiled there, too
    env: { NODE_COMPILE_CACHE: `${import.meta.dirname}/node_modules/.cache/trigate` },
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
