import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const main = fileURLToPath(new URL("../src/main.ts", import.meta.url))

describe("main.ts", () => {
  it.live("runs the backend over the sandbox", () =>
    Effect.gen(function*() {
      const { stdout } = yield* Effect.promise(() => promisify(execFile)(process.execPath, [main]))
      assert.deepStrictEqual(stdout.trim().split("\n"), ["1180591620717411.303424123 TRIG", "staked"])
    }))
})
