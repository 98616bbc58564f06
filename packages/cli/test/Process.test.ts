import { assert, describe, it } from "@effect/vitest"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { gateway } from "@trigate/testing/Gateway"
import * as Effect from "effect/Effect"
import * as fs from "node:fs"
import { command, main, run, spawned, start } from "./run.ts"

const manifest: unknown = JSON.parse(fs.readFileSync(new URL("../../trigate/package.json", import.meta.url), "utf8"))

describe("trigate as a process", () => {
  it.live("prints its version, which is that of its package", () =>
    Effect.gen(function*() {
      assert.deepInclude(manifest, { version: "0.1.0", bin: { trigate: "./src/trigate.ts" } })
      assert.deepStrictEqual(yield* spawned(["--version"]), { code: 0, stdout: "trigate v0.1.0\n", stderr: "" })
    }))

  // a start costs half a second of processor time, and much more of a busy machine's
  it.live("ends without a word when whoever reads its output has gone", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const script = "\"$0\" info candles BTC 1m --from 3d --out csv | head -1; exit ${PIPESTATUS[0]}"
      const ended = yield* command("bash", ["-c", script, main()], { TRIGATE_GATEWAY_URL: url })
      assert.deepStrictEqual(ended, {
        code: 141,
        stdout: "open_time,close_time,open,high,low,close,volume,trades\n",
        stderr: ""
      })
    }))

  it.live("signs with the key of its environment and never prints it", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const { privateKey } = keys.trader
      const ended = yield* spawned(["big-blocks", "on", "--gateway", url], { TRIGATE_PRIVATE_KEY: privateKey })
      assert.strictEqual(ended.code, 0)
      assert.include(ended.stdout, "venue   accepted")
      assert.notInclude(`${ended.stdout}${ended.stderr}`, privateKey.slice(2))
    }))

  it.live("serves the gateway, names of the command line in its environment or not; a signal is its end", () =>
    Effect.gen(function*() {
      const serving = yield* start(["serve"], {
        TRIGATE_PORT: "0",
        TRIGATE_ACCESS_LOG: "off",
        TRIGATE_GATEWAY_URL: "http://127.0.0.1:1",
        TRIGATE_PRIVATE_KEY: keys.trader.privateKey
      })
      const banner = yield* serving.says("/health/ready")
      const url = /listens on (?<url>http:\/\/\S+)/u.exec(banner)?.groups?.["url"] ?? ""
      const receipt = yield* start(["receipt", "--wait", "--gateway", url, `0x${"1".repeat(64)}`])
      yield* receipt.says("waiting up to 60 s")
      receipt.signal("SIGINT")
      assert.strictEqual((yield* receipt.ended).code, 130)
      serving.signal("SIGTERM")
      const { code, stderr, stdout } = yield* serving.ended
      assert.deepStrictEqual([code, stderr], [0, ""])
      assert.notInclude(stdout, keys.trader.privateKey.slice(2))
    }))

  it.live("says that its output cannot be written, where nobody has gone", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const ended = yield* command("bash", ["-c", "\"$0\" evm gas > /dev/full", main()], { TRIGATE_GATEWAY_URL: url })
      assert.deepStrictEqual(ended, {
        code: 1,
        stdout: "",
        stderr: "trigate: Standard output cannot be written: ENOSPC: no space left on device, write\n"
      })
    }))
})

// their exit codes are those of the process: each of the others ends with one
describe("trigate", () => {
  it.live("exits with the class of an error of the gateway", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      assert.deepStrictEqual(
        yield* run(["info", "candles", "NOSUCHCOIN", "1h"], { environment: { TRIGATE_GATEWAY_URL: url } }),
        {
          code: 4,
          stdout: "",
          stderr: "trigate: The venue knows no coin \"NOSUCHCOIN\"\n"
        }
      )
    }))

  it.live("refuses a wrong flag in one line", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* run(["token", "--nope"]), {
        code: 2,
        stdout: "",
        stderr: "trigate: Unrecognized flag: --nope in command trigate token; see trigate token --help\n"
      })
    }))

  it.live("says in one line that there is no gateway", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* run(["evm", "gas", "--gateway", "http://127.0.0.1:1"]), {
        code: 5,
        stdout: "",
        stderr:
          "trigate: No gateway responds at http://127.0.0.1:1; start one with trigate serve, or name another with " +
          "--gateway\n"
      })
    }))
})
