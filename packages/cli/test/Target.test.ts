import { assert, describe, it } from "@effect/vitest"
import { CandleInterval } from "@trigate/domain/candles/Candle"
import { gateway } from "@trigate/testing/Gateway"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { runFully } from "./run.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "target-"))),
  (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
)

describe("what a command works on", () => {
  it.live("is found in the files of a gateway's settings, and told on standard error", () =>
    Effect.gen(function*() {
      const path = yield* folder
      const database = Path.join(path, "own.sqlite")
      const secret = Path.join(path, "trigate.env")
      const config = Path.join(path, "other.json")
      Fs.writeFileSync(secret, `TRIGATE_DATABASE_URL=${database}\n`)
      Fs.writeFileSync(config, JSON.stringify({ network: "testnet" }))
      const files = ["--env-file", secret, "--config", config]
      const made = yield* runFully(["keys", "create", "bot", ...files])
      assert.strictEqual(made.stderr.split("\n")[0], `keys: ${database} (testnet)`)
      const listed = yield* runFully(["actions", "list", ...files])
      assert.strictEqual(listed.stderr.split("\n")[0], `actions: ${database} (testnet)`)
      const file = Path.join(path, "none.csv")
      Fs.writeFileSync(file, "")
      const taken = yield* runFully(["candles", "import", "BTC", "1m", file, ...files])
      assert.strictEqual(taken.stderr.split("\n")[0], `candles: ${database} (testnet)`)
    }))

  it.live("is a gateway that runs", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const actions = yield* runFully(["actions", "list", "--admin", `${url}/`])
      assert.deepStrictEqual([actions.code, actions.stderr], [0, `actions: the gateway at ${url}\n`])
      const candles = yield* runFully(["candles", "status", "--gateway", url])
      assert.strictEqual(candles.stderr.split("\n")[0], `candles: the gateway at ${url}`)
      // the sandbox has every coin in every interval
      assert.strictEqual(candles.stdout.split("\n").length, CandleInterval.literals.length + 3)
      const { line = "" } = /^\d{4} series; for those of a coin: trigate (?<line>.*)$/mu.exec(candles.stdout)?.groups ??
        {}
      const ofCoin = yield* runFully([...line.split(" "), "--gateway", url])
      assert.deepStrictEqual([ofCoin.code, ofCoin.stdout.split("\n").length], [0, CandleInterval.literals.length + 2])
    }))

  it.live("of candles import is the database alone: a gateway is refused in words", () =>
    Effect.gen(function*() {
      for (const flag of ["--gateway", "--admin"]) {
        const refused = yield* runFully(["candles", "import", "BTC", "1m", "bars.csv", flag, "http://127.0.0.1:1"])
        assert.strictEqual(refused.code, 2)
        assert.include(
          refused.stderr,
          `candles import writes to the database of TRIGATE_DATABASE_URL, not through a gateway: omit ${flag}`
        )
      }
    }))
})
