import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["packages/*/test/**/*.test.ts", "examples/*/test/**/*.test.ts", "test/**/*.test.ts"],
    setupFiles: ["scripts/vitest.setup.ts"],
    maxWorkers: 2,
    testTimeout: 20_000
  }
})
