import { availableParallelism } from "node:os"
import { configDefaults, defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["packages/*/test/**/*.test.ts", "examples/*/test/**/*.test.ts", "test/**/*.test.ts"],
    // a run of the guides that was killed leaves its folder, with the examples in it
    exclude: [...configDefaults.exclude, "test/guides/.blocks/**"],
    setupFiles: ["scripts/vitest.setup.ts"],
    // files share a process, since each would spend a second on the same modules: what a file replaces in it, it puts back
    isolate: false,
    maxWorkers: Math.max(2, availableParallelism()),
    // nothing waits that long unless it hangs: no test is about how fast the machine is
    testTimeout: 300_000,
    hookTimeout: 300_000
  }
})
