import { configDefaults, defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["packages/*/test/**/*.test.ts", "examples/*/test/**/*.test.ts", "test/**/*.test.ts"],
    // a run of the guides that was killed leaves its folder, with the examples in it
    exclude: [...configDefaults.exclude, "test/guides/.blocks/**"],
    setupFiles: ["scripts/vitest.setup.ts"],
    maxWorkers: 2,
    testTimeout: 20_000
  }
})
