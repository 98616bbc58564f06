import { assert, describe, it, layer } from "@effect/vitest"
import { coins, contracts, tokens, transactions } from "@trigate/sandbox/SandboxExamples"
import { advancingClock } from "@trigate/testing/AdvancingClock"
import { gateway } from "@trigate/testing/Gateway"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import type { Surroundings } from "./run.ts"
import { epoch, run } from "./run.ts"

class Url extends Context.Service<Url, string>()("test/Url") {}

// what a sandbox makes up follows from its clock, so that every digit below is always the same
const sandbox = Layer.effect(
  Url,
  Effect.andThen(TestClock.setTime(epoch), Effect.map(gateway({}), ({ url }) => url))
)

const trigate = (args: string, surroundings: Surroundings = {}) =>
  Effect.flatMap(Url, (url) => run(args.split(" "), { environment: { TRIGATE_GATEWAY_URL: url }, ...surroundings }))

const printed = (args: string, stdout: string, stderr = "") =>
  Effect.map(trigate(args), (ended) => assert.deepStrictEqual(ended, { code: 0, stdout, stderr }, args))

const refused = (args: string, code: number, line: string) =>
  Effect.map(trigate(args), (ended) => assert.deepStrictEqual(ended, { code, stdout: "", stderr: `${line}\n` }, args))

layer(sandbox)("commands that read", (it) => {
  it.effect("evm: gas and storage, as tables and as JSON", () =>
    Effect.gen(function*() {
      yield* printed(
        "evm gas",
        "BLOCK         GWEI        WEI\nsmall  0.096879974   96879974\nbig    0.850622927  850622927\n"
      )
      yield* printed(
        "evm gas --json",
        "{\n  \"gasPrice\": \"96879974\",\n  \"bigBlockGasPrice\": \"850622927\"\n}\n"
      )
      const word = `0x${"12".padStart(64, "0")}`
      yield* printed(`evm storage ${contracts.wrapped} 2`, `${word}\n`)
      yield* printed(`evm storage ${contracts.wrapped} 0x2`, `${word}\n`)
      yield* printed(
        `--json evm storage ${contracts.wrapped} 2`,
        `{\n  "address": "${contracts.wrapped}",\n  "slot": "0x2",\n  "value": "${word}"\n}\n`
      )
    }))

  it.effect("info candles: a table, CSV, lines of JSON and one JSON document, digits as they came", () =>
    Effect.gen(function*() {
      const window = "info candles BTC 1h --from 2026-01-02 --to 2026-01-02T01:00"
      yield* printed(
        window,
        `OPEN TIME                    OPEN     HIGH      LOW    CLOSE     VOLUME  TRADES
2026-01-02T00:00:00.000Z  72127.0  72433.0  72059.0  72281.0  794.51473   14446
2026-01-02T01:00:00.000Z  72281.0  72370.0  71699.0  72058.0  790.94022   14381
`,
        "trigate: 2 bars of BTC 1h\n"
      )
      yield* printed(
        `${window} --out csv`,
        `open_time,close_time,open,high,low,close,volume,trades
1767312000000,1767315599999,72127.0,72433.0,72059.0,72281.0,794.51473,14446
1767315600000,1767319199999,72281.0,72370.0,71699.0,72058.0,790.94022,14381
`,
        "trigate: 2 bars of BTC 1h\n"
      )
      const first = "{\"t\":1767312000000,\"T\":1767315599999,\"s\":\"BTC\",\"i\":\"1h\",\"o\":\"72127.0\"," +
        "\"c\":\"72281.0\",\"h\":\"72433.0\",\"l\":\"72059.0\",\"v\":\"794.51473\",\"n\":14446}"
      const second = "{\"t\":1767315600000,\"T\":1767319199999,\"s\":\"BTC\",\"i\":\"1h\",\"o\":\"72281.0\"," +
        "\"c\":\"72058.0\",\"h\":\"72370.0\",\"l\":\"71699.0\",\"v\":\"790.94022\",\"n\":14381}"
      yield* printed(`${window} --out ndjson`, `${first}\n${second}\n`, "trigate: 2 bars of BTC 1h\n")
      yield* printed(`${window} --out json`, `[${first},\n ${second}]\n`, "trigate: 2 bars of BTC 1h\n")
      yield* printed(`${window} --json`, `[${first},\n ${second}]\n`, "trigate: 2 bars of BTC 1h\n")
    }))

  it.effect("info candles: the last 24 hours when nothing else is asked for", () =>
    Effect.gen(function*() {
      const { code, stderr, stdout } = yield* trigate("info candles BTC 1h --out csv")
      assert.strictEqual(code, 0)
      assert.strictEqual(
        stderr,
        "trigate: 25 bars of BTC 1h; the bar of 2026-01-02T03:00:00.000Z is still forming\n"
      )
      assert.strictEqual(stdout.split("\n")[1]?.split(",")[0], String(Date.UTC(2026, 0, 1, 3)))
    }))

  it.effect("info candles: says what a window lacks", () =>
    Effect.gen(function*() {
      yield* printed(
        "info candles BTC 1m --from 2025-12-01 --to 2025-12-02 --out ndjson",
        "",
        "trigate: 0 bars of BTC 1m; aged out: the venue retains the newest 5000 bars, and this window is older\n"
      )
      const { stderr, stdout } = yield* trigate("info candles BTC 1m --from 7d --to 1m --out ndjson")
      assert.strictEqual(stdout.split("\n").length, 5000)
      assert.strictEqual(
        stderr,
        "trigate: 4999 bars of BTC 1m; truncated: no bars from 2025-12-26T03:04:05.000Z to 2025-12-29T15:45:00.000Z; " +
          "the venue retains the newest 5000 bars\n"
      )
    }))

  it.effect("info candles: a line of closes under a table of eight bars or more", () =>
    Effect.gen(function*() {
      const { stdout } = yield* trigate("info candles BTC 1h --from 2026-01-01 --to 2026-01-01T07:00")
      const [, ...bars] = stdout.split("\n")
      assert.deepStrictEqual(bars.slice(8), ["", "▂▁▃▃▅▁▃█  closes from 71308.0 to 71627.0", ""])
      const week = (yield* trigate("info candles BTC 1h --from 2025-12-20 --to 2025-12-26T23:00")).stdout
      assert.match(week, /\n\n[▁▂▃▄▅▆▇█]{56} {2}closes from [0-9.]+ to [0-9.]+\n$/u)
    }))

  it.effect("info candles: a bar that moves, on a terminal only, and gone at the end", () =>
    Effect.gen(function*() {
      const url = yield* Url
      const { stderr } = yield* trigate("info candles BTC 1m --from 25h --out csv", {
        environment: { TRIGATE_GATEWAY_URL: url },
        terminal: true
      })
      assert.deepStrictEqual(stderr.split("\r\u001B[2K").filter((shown) => shown !== ""), [
        "[------------------------] 0/1501",
        "[################--------] 1000/1501",
        "[########################] 1501/1501",
        "trigate: 1501 bars of BTC 1m; the bar of 2026-01-02T03:04:00.000Z is still forming\n"
      ])
    }))

  it.effect("info candles: refuses what cannot be meant", () =>
    Effect.gen(function*() {
      yield* refused(`info candles ${coins.unknown} 1h`, 4, "trigate: The venue knows no coin \"NOSUCHCOIN\"")
      yield* refused("info candles btc 1h", 4, "trigate: The venue knows no coin \"btc\"; names are case-sensitive")
      yield* refused(
        "info candles BTC 1h --from 1d --to 2d",
        2,
        "trigate: --from (2026-01-01T03:04:05.000Z) is after --to (2025-12-31T03:04:05.000Z)"
      )
      yield* refused(
        "info candles BTC 1h --json --out csv",
        2,
        "trigate: --json and --out csv contradict each other; omit one"
      )
      yield* refused(
        "info candles BTC 1h --from yesterday",
        2,
        "trigate: Invalid value for flag --from: \"yesterday\". Expected: a date (2026-01-31), a date and time " +
          "(2026-01-31T12:00Z; default zone: UTC), milliseconds since 1970, or how long ago (90s, 30m, 12h, 7d, " +
          "2w); see trigate info candles --help"
      )
    }))

  it.effect("info spot-meta: everything, or what has a name", () =>
    Effect.gen(function*() {
      yield* printed(
        "info spot-meta purr",
        `PAIR       INDEX  BASE  QUOTE
PURR/USDC      0  PURR  USDC

TOKEN  INDEX  SIZE DECIMALS  WEI DECIMALS  TOKEN ID                            EVM CONTRACT
PURR       1              0             5  0xc1fb593aeffbeb02f85e0308e9956a90  0x9b498c3c8a0b8cd8ba1d9851d40d186f1872b44e
`
      )
      yield* refused("info spot-meta nothing", 4, "trigate: No spot pair or token is named nothing")
      const whole: unknown = JSON.parse((yield* trigate("info spot-meta --json")).stdout)
      assert.hasAllKeys(whole, ["universe", "tokens"])
    }))

  it.effect("info raw: prints the response to a query of any type, from an argument or from standard input", () =>
    Effect.gen(function*() {
      const expected = `{\n  "time": ${epoch},\n  "specialStatuses": null\n}\n`
      yield* printed(`info raw {"type":"exchangeStatus"}`, expected)
      const environment = { TRIGATE_GATEWAY_URL: yield* Url }
      const read = yield* trigate("info raw -", { environment, stdin: `{ "type": "exchangeStatus" }\n` })
      assert.deepStrictEqual(read, { code: 0, stdout: expected, stderr: "" })
      const mids: unknown = JSON.parse((yield* trigate(`info raw {"type":"allMids","dex":"xyz"}`)).stdout)
      assert.hasAllKeys(mids, ["xyz:XYZ100", "xyz:GOLD", "xyz:TSLA", "xyz:NVDA"])
    }))

  it.effect("info raw: refuses what is not a query, and passes on what the gateway and the venue refuse", () =>
    Effect.gen(function*() {
      const shape = "trigate: The query must be a JSON object with a type, such as {\"type\":\"allMids\"}"
      yield* refused("info raw {type:meta}", 2, "trigate: The query cannot be read: Not a JSON document")
      yield* refused(`info raw {"type":"a","type":"b"}`, 2, "trigate: The query cannot be read: Duplicate key \"type\"")
      yield* refused("info raw []", 2, shape)
      yield* refused(`info raw {"coin":"BTC"}`, 2, shape)
      yield* refused(
        `info raw {"type":"candleSnapshot","req":{"coin":"BTC","interval":"1x","startTime":1}}`,
        3,
        "trigate: req.interval: Expected one of 1m, 3m, 5m, 15m, 30m, 1h, 2h, 4h, 8h, 12h, 1d, 3d, 1w, 1M"
      )
      yield* refused(
        `info raw {"type":"candleSnapshot","req":{"coin":"${coins.unknown}","interval":"1m","startTime":1}}`,
        4,
        "trigate: The venue knows no coin \"NOSUCHCOIN\""
      )
      yield* refused(
        `info raw {"type":"nope"}`,
        3,
        "trigate: trading-api responded with HTTP 422: Failed to deserialize the JSON body into the target type: the sandbox does not " +
          "support \"nope\", see docs/sandbox.md#what-it-does-not-support"
      )
    }))

  it.effect("token: a table with the supply as an amount, and JSON with every digit", () =>
    Effect.gen(function*() {
      yield* printed(
        `token ${tokens.onchain}`,
        `name      Trigate Sandbox
symbol    TRIG
address   ${tokens.onchain}
supply    1180591620717411.303424123
units     1180591620717411303424123 (9 decimals)
mintable  yes
burnable  yes
metadata  onchain
`
      )
      const { stdout } = yield* trigate(`token ${tokens.onchain} --json`)
      assert.deepStrictEqual(JSON.parse(stdout), {
        name: "Trigate Sandbox",
        symbol: "TRIG",
        decimals: 9,
        totalSupply: "1180591620717411303424123",
        mintable: true,
        burnable: true,
        address: tokens.onchain,
        metadata: "onchain"
      })
      assert.include((yield* trigate(`token ${tokens.semichainCpp}`)).stdout, "name      (unresolved)\n")
    }))

  it.effect("token: refuses a bad address, and says what it found instead of a token", () =>
    Effect.gen(function*() {
      yield* refused(
        "token nope",
        2,
        "trigate: Invalid value for argument <address>: \"nope\". Expected: an address of the token chain; a friendly " +
          "address has 48 characters, not 4; a raw address is <workchain>:<64 hex digits>; see trigate token --help"
      )
      yield* refused(
        `token ${tokens.wallet}`,
        4,
        "trigate: token-chain returned error 409: Smart contract is not Jetton or NFT"
      )
    }))

  it.effect("receipt: of a failure, of a creation, of a block that is not sealed, of nothing", () =>
    Effect.gen(function*() {
      yield* printed(
        `receipt ${transactions.creation}`,
        `transaction  ${transactions.creation}
status       success
block        20999940 0x33be1693728ff2649843f955eb4119dd8c8219a4f958296933916a8a01406f04
from         0x17281460228691b044e080a5f5257dce8e47f79c
to           (none: creates a contract)
created      0x4d11a23e4408ef08ae1216b3917560e0001cd000
gas used     892511
gas price    0.001641402 gwei
fee          0.000001467470653134
layer-1 fee  0.000000002501312712
logs         0
`
      )
      const arbitrum = (yield* trigate(`receipt ${transactions.arbitrum}`)).stdout
      assert.match(arbitrum, /^fee {10}[0-9.]+\nlayer-1 fee {2}[0-9.]+$/mu)
      assert.notInclude((yield* trigate(`receipt ${transactions.linea}`)).stdout, "layer-1")
      assert.include((yield* trigate(`receipt ${transactions.failed}`)).stdout, "status       failure\n")
      assert.include(
        (yield* trigate(`receipt ${transactions.preconfirmed}`)).stdout,
        "block        21000005 (not sealed yet)\n"
      )
      const json: unknown = JSON.parse((yield* trigate(`receipt ${transactions.failed} --json`)).stdout)
      assert.deepInclude(json, { transactionHash: transactions.failed, status: "0x0", gasUsed: "0xbc53" })
      yield* refused(
        `receipt ${transactions.unknown}`,
        4,
        `trigate: No receipt of ${transactions.unknown}: the transaction is unknown or not yet in a block; --wait waits for it`
      )
    }))

  it.effect("receipt --wait: takes what is there", () =>
    Effect.gen(function*() {
      const { code, stderr, stdout } = yield* trigate(`receipt --wait --timeout 5m ${transactions.failed}`)
      assert.strictEqual(code, 0)
      assert.strictEqual(stderr, `trigate: waiting up to 300 s for the receipt of ${transactions.failed}\n`)
      assert.include(stdout, "status       failure\n")
    }))
})

describe("receipt --wait", () => {
  it.effect("ends at its timeout, in a line that says so", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const { code, stderr, stdout } = yield* advancingClock(run(
        ["receipt", "--wait", "--timeout", "300ms", "--gateway", url, transactions.unknown],
        { terminal: true }
      ))
      assert.strictEqual(code, 5)
      assert.strictEqual(stdout, "")
      const [waiting, shown, gone, ...rest] = stderr.split("\r\u001B[2K")
      assert.match(waiting ?? "", /^trigate: waiting up to 0.3 s for the receipt of 0x0*deadbeef\n$/u)
      assert.strictEqual(shown, "waiting for 0 s")
      assert.match(gone ?? "", /^trigate: No receipt of 0x0*deadbeef within 300 ms\n$/u)
      assert.deepStrictEqual(rest, [])
    }))
})
