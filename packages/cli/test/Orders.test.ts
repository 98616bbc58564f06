/** `trigate order`, `cancel`, `positions` and `watch`, in a sandbox. */
import { assert, layer } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import { gateway, post } from "@trigate/testing/Gateway"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import type { Surroundings } from "./run.ts"
import { epoch, fileWith, run } from "./run.ts"

class Url extends Context.Service<Url, string>()("test/Url") {}

const sandbox = Layer.effect(
  Url,
  Effect.andThen(TestClock.setTime(epoch), Effect.map(gateway({}), ({ url }) => url))
)

const { agent, stranger, trader } = keys

const secrets = Object.values(keys).map(({ privateKey }) => privateKey.slice(2))

/** Runs a command line with the key of the trader, or another; no key may be printed. */
const trigate = Effect.fnUntraced(function*(
  line: string,
  { key = trader, ...surroundings }: Surroundings & { readonly key?: { readonly privateKey: string } } = {}
) {
  const ended = yield* run(line.split(" "), {
    ...surroundings,
    environment: { TRIGATE_GATEWAY_URL: yield* Url, TRIGATE_PRIVATE_KEY: key.privateKey }
  })
  for (const secret of secrets) assert.notInclude(`${ended.stdout}${ended.stderr}`.toLowerCase(), secret)
  return ended
})

/** Each action needs a nonce of its own, and the nonce is the time. */
const tick = TestClock.adjust("1 second")

const cloid = `0x${"ab".repeat(16)}`

const decodePositions = Schema.decodeSync(Schema.fromJsonString(Schema.Struct({
  account: Schema.String,
  perpetuals: Schema.Struct({
    assetPositions: Schema.Array(Schema.Struct({ position: Schema.Struct({ szi: Schema.String }) }))
  })
})))

const decodeOrders = Schema.decodeSync(Schema.fromJsonString(Schema.Struct({
  action: Schema.Struct({
    orders: Schema.Tuple([Schema.Struct({
      a: Schema.Int,
      b: Schema.Boolean,
      p: Schema.String,
      s: Schema.String,
      r: Schema.Boolean,
      t: Schema.Unknown,
      c: Schema.String
    })])
  })
})))

const decodeCoin = Schema.decodeSync(Schema.fromJsonString(Schema.Struct({ coin: Schema.String })))

const restingId = (stdout: string): string => /order (?<id>\d+) is resting/u.exec(stdout)?.groups?.["id"] ?? "none"

layer(sandbox)("orders in a sandbox", (it) => {
  it.effect("a limit order rests, is listed, and is cancelled by its id or by its cloid", () =>
    Effect.gen(function*() {
      yield* tick
      const placed = yield* trigate(`order buy 0.05 ETH --price 1500 --cloid ${cloid}`)
      const nonce = epoch + 1000
      assert.strictEqual(placed.code, 0, placed.stderr)
      assert.match(
        placed.stdout,
        /^venue {3}accepted\nsigner {2}0xf39f\w+\nnonce {3}\d+\nleg 1 {3}order \d+ is resting\n$/u
      )
      assert.strictEqual(
        placed.stderr,
        `On mainnet, ${trader.address} buys 0.05 ETH at 1500 (Gtc), cloid ${cloid}, nonce ${nonce}.\n` +
          `The action is sent to ${yield* Url}: the sandbox, with simulated funds.\n`
      )
      const id = restingId(placed.stdout)
      const listed = yield* trigate(`positions ${trader.address}`)
      assert.include(listed.stdout, `${id}  ETH   buy   0.05  1500.0  Limit  2026-01-02 03:04:06\n`)
      yield* tick
      const cancelled = yield* trigate(`cancel ${cloid}`)
      assert.strictEqual(cancelled.code, 0, cancelled.stderr)
      assert.include(cancelled.stderr, `cancels the order ${id} (buy 0.05 ETH at 1500.0), nonce`)
      assert.include((yield* trigate("positions")).stdout, "\nNo open orders.\n")
      yield* tick
      const again = restingId((yield* trigate("order buy 0.05 ETH --price 1500 --tif alo")).stdout)
      yield* tick
      assert.strictEqual((yield* trigate(`cancel ${again}`)).code, 0)
      assert.deepStrictEqual(yield* trigate(`cancel ${again}`), {
        code: 4,
        stdout: "",
        stderr:
          `trigate: ${trader.address} has no open order ${again}; nothing was sent. To list the open orders, run trigate positions ${trader.address}\n`
      })
    }))

  it.effect("cancels every open order at once, of several coins, for the account of an API wallet", () =>
    Effect.gen(function*() {
      yield* tick
      const first = restingId((yield* trigate("order buy 0.05 ETH --price 1500")).stdout)
      yield* tick
      const second = restingId((yield* trigate("order sell 0.001 BTC --price 90000", { key: agent })).stdout)
      yield* tick
      const { code, stderr } = yield* trigate("cancel --all", { key: agent })
      assert.strictEqual(code, 0, stderr)
      assert.include(stderr, `${agent.address} cancels 2 orders:`)
      assert.include(stderr, `${first} (buy 0.05 ETH at 1500.0)`)
      assert.include(stderr, `${second} (sell 0.001 BTC at 90000.0)`)
      assert.deepStrictEqual(yield* trigate("cancel --all", { key: agent }), {
        code: 4,
        stdout: "",
        stderr: `trigate: ${trader.address} has no open orders; nothing was sent\n`
      })
    }))

  it.effect("an order at the market opens a position within its slippage, and one closes it", () =>
    Effect.gen(function*() {
      yield* tick
      const bought = yield* trigate("order buy 0.01 BTC --slippage 1")
      assert.strictEqual(bought.code, 0, bought.stderr)
      assert.match(bought.stdout, /\nleg 1 {3}order \d+ is filled: 0\.01 at [\d.]+\n$/u)
      assert.match(
        bought.stderr,
        /buys 0\.01 BTC at the market price, now [\d.]+, with at most 1 % slippage, cloid 0x[0-9a-f]{32},/u
      )
      const open = yield* trigate("positions --json", { key: agent })
      const { account, perpetuals } = decodePositions(open.stdout)
      assert.strictEqual(account, trader.address)
      assert.deepStrictEqual(perpetuals.assetPositions.map(({ position }) => position.szi), ["0.01"])
      yield* tick
      assert.strictEqual((yield* trigate("order sell 0.01 BTC --reduce-only")).code, 0)
      assert.include((yield* trigate("positions")).stdout, "\nNo positions.\n")
    }))

  it.effect("finds positions and orders on the dexes of builders", () =>
    Effect.gen(function*() {
      yield* tick
      const nonce = epoch + 100_000
      yield* TestClock.setTime(nonce)
      const signed = yield* SandboxSigner.signAction(trader, {
        nonce,
        action: {
          type: "sendAsset",
          signatureChainId: "0x66eee",
          hyperliquidChain: "Mainnet",
          destination: trader.address,
          sourceDex: "",
          destinationDex: "xyz",
          token: "USDC",
          amount: "2000",
          fromSubAccount: "",
          nonce
        }
      })
      const moved = yield* post(`${yield* Url}/exchange`, Json.stringify(signed))
      assert.strictEqual(moved.text, `{"status":"ok","response":{"type":"default"}}`)
      yield* tick
      assert.strictEqual((yield* trigate("order buy 0.05 xyz:XYZ100")).code, 0)
      yield* tick
      const id = restingId((yield* trigate("order buy 0.05 xyz:XYZ100 --price 23000")).stdout)
      const { stdout } = yield* trigate("positions")
      assert.match(stdout, /^value on xyz +(?:19|20)\d\d\.\d+ USDC$/mu)
      assert.match(stdout, /^xyz:XYZ100 +0\.05 /mu)
      assert.match(stdout, new RegExp(`^${id} +xyz:XYZ100 +buy +0\\.05 +23000\\.0 `, "mu"))
      assert.notInclude((yield* trigate("positions --dex xyz")).stdout, "value on xyz  0.0")
      for (const command of ["positions --dex XYZ", "cancel --all --dex XYZ", "watch mids --dex XYZ"]) {
        assert.deepStrictEqual(yield* trigate(command), {
          code: 4,
          stdout: "",
          stderr: "trigate: Unknown dex \"XYZ\": did you mean \"xyz\"?\n"
        })
      }
      const mistaken = yield* trigate("order buy 0.01 XYZ:XYZ100")
      assert.deepStrictEqual([mistaken.code, mistaken.stdout], [4, ""])
      assert.include(mistaken.stderr, "Unknown dex \"XYZ\"")
      yield* tick
      assert.strictEqual((yield* trigate("cancel --all")).code, 0)
      yield* tick
      assert.strictEqual((yield* trigate("order sell 0.05 xyz:XYZ100 --reduce-only")).code, 0)
      const closed = (yield* trigate("positions")).stdout
      assert.include(closed, "\nNo positions.\n\nNo open orders.\n")
    }))

  it.effect("reports a refusal in the venue's words, with its reason", () =>
    Effect.gen(function*() {
      yield* tick
      const small = yield* trigate("order buy 0.001 ETH --price 1500")
      assert.strictEqual(small.code, 6)
      assert.match(small.stdout, /^venue {3}rejected\n/u)
      assert.include(
        small.stderr,
        "trigate: The venue rejected legs of the action (MinimumNotional): Order must have minimum value of $10. asset=1\n"
      )
    }))

  it.effect.each(
    [
      ["order buy 0.01 btc", 4, "Unknown coin \"btc\": did you mean \"BTC\"?"],
      ["order buy 1 PURR/USDT --price 1", 4, "Unknown coin \"PURR/USDT\": did you mean \"PURR/USDC\"?"],
      ["order buy 0.0000001 BTC", 2, "0.0000001 has too many decimal places: sizes of BTC have at most 5"],
      [
        "order buy 1 BTC --price 5 --slippage 1",
        2,
        "--slippage is for market orders; omit it with --price"
      ],
      ["order buy 1 BTC --tif alo", 2, "--tif requires --price: a market order never rests on the book"],
      ["cancel", 2, "Name the orders to cancel, or use --all for every open order"],
      ["cancel 5 --all", 2, "Name the orders to cancel, or use --all for every open order"]
    ] as const
  )(
    "%s is refused before anything is signed",
    ([line, code, message]) =>
      Effect.map(
        trigate(line),
        (ended) => assert.deepStrictEqual(ended, { code, stdout: "", stderr: `trigate: ${message}\n` })
      )
  )

  it.effect("--dry-run looks the coin up, and sends nothing", () =>
    Effect.gen(function*() {
      yield* tick
      const dry = yield* trigate("order sell 3 PURR/USDC --price 5 --tif ioc --dry-run", { key: stranger })
      assert.strictEqual(dry.code, 0, dry.stderr)
      const { action: { orders: [{ c, ...order }] } } = decodeOrders(dry.stdout)
      assert.match(c, /^0x[0-9a-f]{32}$/u)
      assert.deepStrictEqual(order, {
        a: 10_000,
        b: false,
        p: "5",
        s: "3",
        r: false,
        t: { limit: { tif: "Ioc" } }
      })
    }))

  it.effect("positions stand one below another where the table is wider than the terminal", () =>
    Effect.gen(function*() {
      yield* tick
      yield* trigate("order buy 0.01 BTC")
      const wide = yield* trigate("positions", { columns: 80 })
      assert.include(wide.stdout, "\nCOIN  SIZE    ENTRY ")
      const { stdout } = yield* trigate("positions", { columns: 40 })
      assert.match(stdout, /\ncoin {9}BTC\nsize {9}0\.01\nentry {8}[\d.]+\n/u)
      for (const text of stdout.split("\n").slice(2)) assert.isAtMost(text.length, 40, text)
      yield* tick
      yield* trigate("order sell 0.01 BTC --reduce-only")
    }))

  it.effect("a lost reply leads to the outcome, which the cloid finds", () =>
    Effect.gen(function*() {
      yield* tick
      const url = yield* Url
      const lostCloid = `0x${"cd".repeat(16)}`
      const show = `actions show ${lostCloid}`
      yield* post(`${url}/admin/sandbox/faults`, `{"lostReplies":1}`)
      const lost = yield* trigate(`order buy 0.05 ETH --cloid ${lostCloid}`)
      yield* post(`${url}/admin/sandbox/faults`, `{"lostReplies":0}`)
      assert.strictEqual(lost.code, 7)
      assert.include(lost.stderr, `\nThe gateway looks up the outcome; to see it: trigate ${show}\n`)
      // the gateway looks an action up after a second
      yield* tick
      yield* tick
      const { stdout } = yield* trigate(show)
      assert.match(
        stdout,
        /^0x[0-9a-f]+: accepted\n {2}signer 0xf39f\w+, nonce \d+\n {2}determined by orderStatus\n {2}leg 1: order \d+ is filled: 0\.05 at [\d.]+\n$/u
      )
      yield* trigate("order sell 0.05 ETH --reduce-only")
    }))

  it.effect("a key comes from a file too, never from the command line", () =>
    Effect.gen(function*() {
      const file = yield* fileWith(agent.privateKey)
      const url = yield* Url
      const { stdout } = yield* run(["positions", "--gateway", url, "--key-file", file])
      assert.match(stdout, new RegExp(`^account +${trader.address}$`, "mu"))
      const none = yield* run(["positions", "--gateway", url])
      assert.deepStrictEqual({ code: none.code, stdout: none.stdout }, { code: 2, stdout: "" })
      assert.include(none.stderr, "No private key: set TRIGATE_PRIVATE_KEY")
    }))
})

layer(sandbox)("trigate watch", (it) => {
  it.effect("prints a book, prices and trades, each update once where there is no terminal", () =>
    Effect.gen(function*() {
      const book = yield* trigate("watch book BTC --count 1")
      assert.strictEqual(book.code, 0, book.stderr)
      const [title, heading, ...levels] = book.stdout.trimEnd().split("\n")
      assert.match(title ?? "", /^BTC {2}03:04:0\d\.\d{3} UTC$/u)
      assert.match(heading ?? "", /^ *SIZE +BID {2}ASK +SIZE$/u)
      assert.strictEqual(levels.length, 10)
      const mids = yield* trigate("watch mids BTC ETH --count 1")
      assert.match(mids.stdout, /^COIN +PRICE\nBTC +[\d.]+\nETH +[\d.]+\n$/u)
      const trades = yield* trigate("watch trades ETH --count 2 --json")
      const coins = trades.stdout.trimEnd().split("\n").map((text) => decodeCoin(text).coin)
      assert.deepStrictEqual(coins, ["ETH", "ETH"])
    }))

  it.effect("redraws in place on a terminal, and never beyond its size", () =>
    Effect.gen(function*() {
      const { stdout } = yield* trigate("watch book BTC --count 1", { columns: 24, rows: 6 })
      assert.isTrue(stdout.startsWith("\u001B[H\u001B[J"), JSON.stringify(stdout))
      const lines = stdout.slice("\u001B[H\u001B[J".length).trimEnd().split("\n")
      assert.strictEqual(lines.length, 5)
      for (const text of lines) assert.isAtMost(text.length, 24)
    }))

  it.effect("prints fills of before, then each as it happens", () =>
    Effect.gen(function*() {
      yield* tick
      yield* trigate("order buy 0.05 ETH")
      const listed = Promise.withResolvers<string>()
      const watching = yield* Effect.forkChild(
        trigate("watch fills --count 2", { key: agent, onOutput: listed.resolve })
      )
      // the second fill is no fill of before
      yield* Effect.raceFirst(Effect.promise(() => listed.promise), Fiber.join(watching))
      yield* tick
      yield* trigate("order sell 0.05 ETH --reduce-only")
      const { code, stdout } = yield* Fiber.join(watching)
      assert.strictEqual(code, 0)
      assert.match(
        stdout,
        /^03:04:06\.\d{3} {2}ETH {2}Open Long {2}0\.05 at [\d.]+ {2}fee [\d.]+ USDC {2}order \d+\n03:04:07\.\d{3} {2}ETH {2}Close Long /u
      )
    }))

  it.effect("an unknown coin is refused before a socket is opened", () =>
    Effect.map(
      trigate("watch book NOSUCHCOIN"),
      (ended) =>
        assert.deepStrictEqual(ended, { code: 4, stdout: "", stderr: "trigate: Unknown coin \"NOSUCHCOIN\"\n" })
    ))
})
