/** `trigate sandbox`: a venue in memory, whatever the environment names, with prices of files and faults on purpose. */
import { assert, describe, it } from "@effect/vitest"
import { get, post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import { once } from "node:events"
import * as fs from "node:fs"
import * as path from "node:path"
import { folder, run, start } from "./run.ts"

const bar = "1700000040000,1700000099999,31234,31234,31234,31234,1.5,3"
const csv = `open_time,close_time,open,high,low,close,volume,trades\n${bar}\n`

const urlIn = (printed: string): string => /listens on (?<url>\S+)/u.exec(printed)?.groups?.["url"] ?? ""

describe("trigate sandbox", () => {
  it.live("plays the prices of a file and its faults, and leaves out the addresses of the environment", () =>
    Effect.gen(function*() {
      const file = path.join(yield* folder, "btc.csv")
      fs.writeFileSync(file, csv)
      const running = yield* start(
        ["sandbox", "--port", "0", "--seed", "monday", "--prices", `BTC:1m=${file}`, "--rejected-legs", "1"],
        { TRIGATE_TRADING_API_URL: "http://127.0.0.1:9", TRIGATE_SANDBOX_SEED: "tuesday" }
      )
      const printed = yield* running.says("console:")
      const url = urlIn(printed)
      assert.include(printed, `(sandbox), ready after`)
      assert.include(printed, "\n  serving the sandbox: nothing here is real\n")
      assert.include(
        printed,
        `\n  venue: ${url}/exchange, ${url}/info, ${url.replace("http", "ws")}/ws  control: ${url}/admin/sandbox\n`
      )
      const { json } = yield* get(`${url}/admin/sandbox`)
      assert.deepStrictEqual([JsonParts.at(json, "seed"), JsonParts.at(json, "faults", "rejectedLegs")], ["monday", 1])
      const mids = yield* post(`${url}/info`, `{"type":"allMids"}`)
      assert.strictEqual(JsonParts.at(mids.json, "BTC"), "31234.0")
      running.signal("SIGTERM")
      assert.strictEqual((yield* running.ended).code, 0)
    }))

  it.live("cuts the WebSockets of callers without a close frame", () =>
    Effect.gen(function*() {
      const running = yield* start(["sandbox", "--port", "0", "--dropped-sockets", "1"])
      const url = urlIn(yield* running.says("console:"))
      const socket = new WebSocket(`${url.replace("http", "ws")}/ws`)
      const opened = once(socket, "open")
      const closed = new Promise<number>((resolve) => socket.addEventListener("close", ({ code }) => resolve(code)))
      yield* Effect.promise(() => opened)
      assert.strictEqual(yield* Effect.promise(() => closed), 1006)
    }))

  it.effect("names a flag as it was written, and never quotes its value", () =>
    Effect.gen(function*() {
      const { code, stderr } = yield* run(["sandbox", "--speed", "2000"])
      assert.deepStrictEqual([code, stderr], [
        2,
        "trigate: --speed is not valid: expected a number from 1 to 1000\n"
      ])
      const missing = yield* run(["sandbox", "--prices", "BTC:1m=nowhere.csv", "--port", "0"])
      assert.deepStrictEqual([missing.code, missing.stderr], [
        2,
        "trigate: TRIGATE_SANDBOX_PRICES: nowhere.csv cannot be read\n"
      ])
    }))
})
