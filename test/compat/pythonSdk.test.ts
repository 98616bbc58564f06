/**
 * What the venue's own Python library sends: the bodies in its layout and under its headers, made without it; and the
 * library itself, where Python has it.
 *
 * It prints JSON with a space after each comma and colon, sends `null` for a vault and an expiry that are not there, trims
 * the halves of a signature, and puts the chain's two members at the end of what a user signs (0.23.0).
 */
import { assert, describe, it } from "@effect/vitest"
import { UsdSendTypes, Withdraw3Types } from "@nktkas/hyperliquid/api/exchange"
import { signL1Action, signUserSignedAction } from "@nktkas/hyperliquid/signing"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { send } from "@trigate/testing/Gateway"
import { hostedGateway } from "@trigate/testing/HostedGateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { spawn, spawnSync } from "node:child_process"
import * as fs from "node:fs"
import { privateKeyToAccount } from "viem/accounts"
import { session } from "./session.ts"
import { venue } from "./venue.ts"

const headers = {
  "user-agent": "python-requests/2.32.3",
  "accept-encoding": "gzip, deflate",
  accept: "*/*",
  "content-type": "application/json"
}

const wallet = privateKeyToAccount(keys.trader.privateKey)

/** A JSON text as Python's `json.dumps` prints it; none of the texts in it holds what separates its members. */
const dumps = (value: unknown): string =>
  JSON.stringify(value).replaceAll(/(?<=["\d\]}el]),(?=["[{])/gu, ", ").replaceAll(/":(?=\S)/gu, `": `)

interface Signature {
  readonly r: `0x${string}`
  readonly s: `0x${string}`
  readonly v: number
}

const trim = (half: string): string => `0x${half.slice(2).replace(/^0+/u, "")}`

const bodyOf = (
  action: unknown,
  nonce: number,
  { r, s, v }: Signature,
  vaultAddress: string | null = null,
  expiresAfter: number | null = null
): string => dumps({ action, nonce, signature: { r: trim(r), s: trim(s), v }, vaultAddress, expiresAfter })

const order = {
  type: "order",
  orders: [{ a: 1, b: true, p: "1100", s: "0.2", r: false, t: { limit: { tif: "Gtc" } } }],
  grouping: "na",
  builder: { b: keys.stranger.address, f: 10 }
}

type Body = (nonce: number) => Promise<string>

const l1 = (action: Record<string, unknown>, vaultAddress?: `0x${string}`, expiresAfter?: number): Body => (nonce) =>
  signL1Action({
    wallet,
    action,
    nonce,
    ...(vaultAddress === undefined ? {} : { vaultAddress }),
    ...(expiresAfter === undefined ? {} : { expiresAfter })
  }).then((signature) => bodyOf(action, nonce, signature, vaultAddress, expiresAfter))

const chain = { signatureChainId: "0x66eee", hyperliquidChain: "Mainnet" } as const

const bodies: ReadonlyArray<readonly [what: string, body: Body]> = [
  ["an order with a builder", l1(order)],
  ["an order of a vault that expires", l1(order, keys.multiSigUser.address, 1_892_000_000_000)],
  ["a cancellation", l1({ type: "cancel", cancels: [{ a: 1, o: 77_738_308 }] })],
  ["a leverage", l1({ type: "updateLeverage", asset: 1, isCross: true, leverage: 20 })],
  ["the size of blocks", l1({ type: "evmUserModify", usingBigBlocks: true })],
  ["a validator's own freedom", l1({ type: "CSignerAction", unjailSelf: null })],
  ["a transfer", (nonce) => {
    const action = { destination: keys.stranger.address, amount: "1.0", time: nonce, type: "usdSend", ...chain }
    return signUserSignedAction({ wallet, action, types: UsdSendTypes }).then((signed) => bodyOf(action, nonce, signed))
  }],
  ["a withdrawal", (nonce) => {
    const action = { destination: keys.stranger.address, amount: "2.0", time: nonce, type: "withdraw3", ...chain }
    return signUserSignedAction({ wallet, action, types: Withdraw3Types }).then((signed) =>
      bodyOf(action, nonce, signed)
    )
  }]
]

describe("the Python library's requests", () => {
  it("are laid out as it lays them out", () => {
    assert.strictEqual(
      dumps({ a: [{ b: true, c: [1, 2] }, { d: null }], e: "0x1", f: {}, g: 5 }),
      `{"a": [{"b": true, "c": [1,2]}, {"d": null}], "e": "0x1", "f": {}, "g": 5}`
    )
  })

  it.live("are relayed as they are, and their signer is told", () =>
    Effect.gen(function*() {
      const upstream = yield* venue()
      const url = yield* session({
        name: "python-sdk/actions",
        client: "hyperliquid-python-sdk 0.23.0, by hand",
        upstreams: { api: upstream.url },
        environment: { TRIGATE_RELAY_ACTIONS: "*", TRIGATE_SIGNERS: keys.trader.address }
      })
      const now = yield* Clock.currentTimeMillis
      for (const [index, [what, body]] of bodies.entries()) {
        upstream.seen.length = 0
        const text = yield* Effect.promise(() => body(now + index))
        assert.include(text, `, "vaultAddress": `, what)
        const answer = yield* send(`${url}/exchange`, { method: "POST", headers, body: text })
        assert.strictEqual(answer.text, `{"status":"ok","response":{"type":"default"}}`, what)
        assert.strictEqual(answer.headers.get("x-trigate-signer"), keys.trader.address, what)
        assert.deepStrictEqual(upstream.seen.map((seen) => seen.body), [text], what)
      }
    }))

  it.live("are refused where they are signed for testnet, with what the library reads", () =>
    Effect.gen(function*() {
      const upstream = yield* venue()
      const { url } = yield* hostedGateway({
        TRIGATE_TRADING_API_URL: upstream.url,
        TRIGATE_RELAY_ACTIONS: "*",
        TRIGATE_SIGNERS: keys.trader.address
      })
      const nonce = yield* Clock.currentTimeMillis
      const signature = yield* Effect.promise(() => signL1Action({ wallet, action: order, nonce, isTestnet: true }))
      const answer = yield* send(`${url}/exchange`, { method: "POST", headers, body: bodyOf(order, nonce, signature) })
      assert.strictEqual(answer.status, 422)
      assert.deepNestedInclude(answer.json, { _tag: "InvalidSignature", code: 422, expected: keys.trader.address })
      assert.match(String(JsonParts.at(answer.json, "msg")), /: signed for testnet; this gateway sends to mainnet\./u)
      assert.deepStrictEqual(upstream.seen, [])
    }))

  it.live("are answered with what they asked for", () =>
    Effect.gen(function*() {
      const upstream = yield* venue()
      const url = yield* session({
        name: "python-sdk/reads",
        client: "hyperliquid-python-sdk 0.23.0, by hand",
        upstreams: { api: upstream.url }
      })
      const reads = [`{"type": "spotMeta"}`, `{"type": "openOrders", "user": "${keys.trader.address}", "dex": ""}`]
      for (const body of reads) {
        upstream.seen.length = 0
        const answer = yield* send(`${url}/info`, { method: "POST", headers, body })
        assert.strictEqual(answer.status, 200)
        assert.deepStrictEqual(upstream.seen.map((seen) => seen.body), [body])
      }
    }))
})

const Listed = Schema.Struct({ name: Schema.String, szDecimals: Schema.Natural })
const PerpMeta = Schema.Struct({ universe: Schema.Array(Listed) })
const SpotTokens = Schema.Struct({
  universe: Schema.Array(Schema.Struct({
    name: Schema.String,
    index: Schema.Natural,
    tokens: Schema.Tuple([Schema.Natural, Schema.Natural])
  })),
  tokens: Schema.Array(Schema.Struct({ ...Listed.fields, index: Schema.Natural }))
})
const PerpDexs = Schema.TupleWithRest(Schema.Tuple([Schema.Null]), [Schema.Struct({ name: Schema.String })])

/** Queries the metadata that the constructor of `Info` queries, in the library's layout. */
const metadata = Effect.fnUntraced(function*(url: string) {
  const info = (query: unknown) =>
    Effect.map(send(`${url}/info`, { method: "POST", headers, body: dumps(query) }), ({ json }) => json)
  return {
    spotMeta: yield* Effect.flatMap(info({ type: "spotMeta" }), Schema.decodeUnknownEffect(SpotTokens)),
    perpDexs: yield* Effect.flatMap(info({ type: "perpDexs" }), Schema.decodeUnknownEffect(PerpDexs)),
    meta: (dex: string) => Effect.flatMap(info({ type: "meta", dex }), Schema.decodeUnknownEffect(PerpMeta))
  }
})

/** The asset of a coin of each kind, as the library numbers them. */
const assets = {
  BTC: 0,
  "PURR/USDC": 10_000,
  "HYPE/USDC": 10_107,
  "@107": 10_107,
  "xyz:XYZ100": 110_000,
  "xyz:GOLD": 110_001,
  "flx:TSLA": 120_000
}

describe("the Python library's constructor", () => {
  it.live.each(["index", "position"])("finds every token of the sandbox by %s", (by) =>
    Effect.gen(function*() {
      const { url } = yield* hostedGateway({})
      const { meta, perpDexs, spotMeta } = yield* metadata(url)
      const coinToAsset = new Map<string, number>()
      const nameToCoin = new Map<string, string>()
      // from 0.23.0 on it finds a token by its index, before that by its position
      const tokens = new Map(spotMeta.tokens.map((token, position) => [by === "index" ? token.index : position, token]))
      assert.strictEqual(tokens.size, spotMeta.tokens.length)
      for (const { index, name, tokens: [base, quote] } of spotMeta.universe) {
        coinToAsset.set(name, 10_000 + index)
        nameToCoin.set(name, name)
        const [baseToken, quoteToken] = [tokens.get(base), tokens.get(quote)]
        assert.deepStrictEqual([baseToken?.index, quoteToken?.index], [base, quote], name)
        const pair = `${baseToken?.name}/${quoteToken?.name}`
        if (!nameToCoin.has(pair)) nameToCoin.set(pair, name)
      }
      const [, ...builders] = perpDexs
      const offsets = builders.map(({ name }, at) => [name, 110_000 + 10_000 * at] as const)
      for (const [dex, offset] of [["", 0] as const, ...offsets]) {
        for (const [position, { name }] of (yield* meta(dex)).universe.entries()) {
          coinToAsset.set(name, offset + position)
          nameToCoin.set(name, name)
        }
      }
      assert.deepStrictEqual(
        Object.fromEntries(Object.keys(assets).map((coin) => [coin, coinToAsset.get(nameToCoin.get(coin) ?? "")])),
        assets
      )
      assert.strictEqual(coinToAsset.size, spotMeta.universe.length + 236)
    }))
})

/**
 * An action by the library itself: its base URL, a key, and whether its constant is set to the URL. With coins it
 * queries the metadata and prints a line with their assets; without, it gets empty metadata. Prints the outcome last.
 */
const program = `
import json, sys
import eth_account
import hyperliquid.exchange
from hyperliquid.exchange import Exchange
url, key, repaired, *coins = sys.argv[1:]
if repaired == "repaired":
    hyperliquid.exchange.MAINNET_API_URL = url
wallet = eth_account.Account.from_key(key)
if coins:
    exchange = Exchange(wallet, url, perp_dexs=["", "xyz", "flx"])
    print(json.dumps({coin: exchange.info.name_to_asset(coin) for coin in coins}))
else:
    exchange = Exchange(wallet, url, meta={"universe": []}, spot_meta={"universe": [], "tokens": []})
try:
    print(json.dumps({"answer": exchange.use_big_blocks(True)}))
except Exception as error:
    names = ["status_code", "error_code", "error_message"]
    print(json.dumps({"error": type(error).__name__, **{name: getattr(error, name, None) for name in names}}))
`

const found = spawnSync("python3", ["-c", "import eth_account, hyperliquid.exchange"], { encoding: "utf8" })

/** Why the library cannot be run here; `undefined` where it can. */
const missing = found.error?.message ?? (found.status === 0 ? undefined : found.stderr.trim().split("\n").at(-1))

if (missing !== undefined) console.log(`Not run here: hyperliquid-python-sdk itself (${missing})`)

const Printed = Schema.Array(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown)))

/** Runs a program; returns the JSON of each line that it prints. */
const python = (...args: ReadonlyArray<string>) =>
  Effect.callback<string>((resume) => {
    const child = spawn("python3", ["-c", ...args], { stdio: "pipe" })
    let printed = ""
    child.stdout.on("data", (chunk: Buffer) => (printed += chunk.toString("utf8")))
    child.stderr.on("data", (chunk: Buffer) => (printed += chunk.toString("utf8")))
    child.once("close", () => resume(Effect.succeed(printed)))
    return Effect.sync(() => child.kill())
  }).pipe(Effect.flatMap((printed) => Schema.decodeUnknownEffect(Printed)(printed.trimEnd().split("\n"))))

const run = (url: string, repaired: "repaired" | "asItIs", coins: ReadonlyArray<string> = []) =>
  python(program, url, keys.trader.privateKey, repaired, ...coins)

const accepted = { status: "ok", response: { type: "default" } }

describe.runIf(missing === undefined)("the Python library itself", () => {
  it.live("signs for testnet until its constant is the gateway, and reads the refusal", () =>
    Effect.gen(function*() {
      const upstream = yield* venue()
      const { url } = yield* hostedGateway({
        TRIGATE_TRADING_API_URL: upstream.url,
        TRIGATE_SIGNERS: keys.trader.address
      })
      const [refused] = yield* run(url, "asItIs")
      assert.deepInclude(refused, { error: "ClientError", status_code: 422, error_code: 422 })
      assert.match(String(refused?.["error_message"]), /signed for testnet; this gateway sends to mainnet/u)
      assert.deepStrictEqual(upstream.seen, [])
      assert.deepStrictEqual<unknown>(yield* run(url, "repaired"), [{ answer: accepted }])
      assert.strictEqual(upstream.seen.length, 1)
    }))

  it.live("reads the sandbox's metadata in its constructor, and acts there", () =>
    Effect.gen(function*() {
      const { url } = yield* hostedGateway({})
      assert.deepStrictEqual<unknown>(yield* run(url, "repaired", Object.keys(assets)), [assets, { answer: accepted }])
    }))
})

/** The function `place_once` of the guide, and a call of it that posts a body and prints what it returns or raises. */
const placeOnce = `${
  /```python\n(?<code>import json\n[^]*?)```/u.exec(
    fs.readFileSync(new URL("../../docs/guides/from-python-go-rust.md", import.meta.url), "utf8")
  )?.groups?.["code"]
}
import sys
url, user, cloid, expires, body = sys.argv[1:]
def send():
    request = urllib.request.Request(f"{url}/exchange", body.encode(), {"content-type": "application/json"})
    return json.load(urllib.request.urlopen(request))
try:
    print(json.dumps({"got": place_once(url, user, cloid, int(expires), send)}))
except Exception as error:
    print(json.dumps({"lost": error.code}))
`

const isPythonInstalled = spawnSync("python3", ["--version"]).status === 0

describe.runIf(isPythonInstalled)("place_once of the guide", () => {
  it.live("returns the reply, or the order that it finds, and raises the error once the order has expired", () =>
    Effect.gen(function*() {
      const { url } = yield* hostedGateway({})
      const control = (what: string, body: object) =>
        send(`${url}/admin/sandbox/${what}`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify(body)
        })
      const place = Effect.fnUntraced(function*(price: string, faults: object = {}) {
        const nonce = yield* Clock.currentTimeMillis
        const [expires, cloid] = [nonce + 10_000, `0x${nonce.toString(16).padStart(32, "0")}`]
        const orders = [{ a: 1, b: true, p: price, s: "0.2", r: false, t: { limit: { tif: "Gtc" } }, c: cloid }]
        const action = { type: "order", orders, grouping: "na" }
        const signature = yield* Effect.promise(() => signL1Action({ wallet, action, nonce, expiresAfter: expires }))
        yield* control("faults", { lostReplies: 0, lostRequests: 0, ...faults })
        const body = bodyOf(action, nonce, signature, null, expires)
        return yield* python(placeOnce, url, keys.trader.address, cloid, String(expires), body)
      })
      assert.isDefined(JsonParts.at((yield* place("1100"))[0], "got", "response"))
      const status = (printed: ReadonlyArray<unknown>) => JsonParts.at(printed[0], "got", "status")
      assert.strictEqual(status(yield* place("1100", { lostReplies: 1 })), "open")
      yield* control("prices", { coin: "ETH", points: [{ time: 0, price: 2000 }] })
      assert.strictEqual(status(yield* place("2100", { lostReplies: 1 })), "filled")
      // the venue's time passes the expiry at once
      yield* control("clock", { advance: 60_000 })
      assert.deepStrictEqual<unknown>(yield* place("1100", { lostRequests: 1 }), [{ lost: 504 }])
      const orders = yield* send(`${url}/info`, {
        method: "POST",
        headers,
        body: `{"type":"historicalOrders","user":"${keys.trader.address}"}`
      })
      const Rows = Schema.Array(Schema.Struct({ status: Schema.String }))
      const statuses = (yield* Schema.decodeUnknownEffect(Rows)(orders.json)).map(({ status }) => status)
      assert.deepStrictEqual(statuses.toSorted(), ["filled", "open", "open", "open"])
    }))
})
