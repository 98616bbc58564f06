/** The tools of `trigate mcp`, in a sandbox whose policies apply to all accounts but one. */
import { assert, layer } from "@effect/vitest"
import * as GatewayAccess from "@trigate/cli/GatewayAccess"
import * as McpTools from "@trigate/cli/McpTools"
import * as Json from "@trigate/domain/encoding/Encoding"
import { keys, type TestKey } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import * as NonceSource from "@trigate/signing/NonceSource"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as Signer from "@trigate/signing/Signer"
import { type Gateway, gateway } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as McpProtocol from "effect/ai/McpProtocol"
import * as McpSchema from "effect/ai/McpSchema"
import * as McpTest from "effect/ai/McpTest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Stdio from "effect/Stdio"
import * as TestClock from "effect/testing/TestClock"
import * as fs from "node:fs"
import * as Net from "node:net"
import * as path from "node:path"
import { epoch, folder, run } from "./run.ts"

const { agent, multiSigUser, trader } = keys

const policies = `policies:
  - name: agent
    accounts: ["${trader.address}"]
    coins: [BTC, ETH]
    orderNotional: 5000
    expiresWithin: 30 seconds
`

const signerOf = ({ privateKey }: Pick<TestKey, "privateKey">) =>
  Effect.provide(Signer.makePrivateKey(Redacted.make(privateKey)), Secp256k1.layer)

/** A client of the tools at a gateway, which signs with the key of an API wallet; no answer may contain the key. */
const connect = Effect.fnUntraced(function*(
  url: string,
  { elicitation = false, signs = true }: { readonly elicitation?: boolean; readonly signs?: boolean } = {}
) {
  const signer = yield* signerOf(agent)
  const trading = { signer, account: trader.address, network: "mainnet", approveAbove: 1000 } as const
  const client = yield* McpTest.makeClient(
    McpTools.layer(signs ? { own: trading, trading } : { own: undefined, trading: undefined }),
    {
      protocols: [McpProtocol.v2025_11_25],
      clientCapabilities: new McpSchema.ClientCapabilities(elicitation ? { elicitation: {} } : {})
    }
  ).pipe(
    Effect.provideService(GatewayAccess.Gateway, url),
    Effect.provide([FetchHttpClient.layer, NonceSource.layerMemory()])
  )
  const call = Effect.fnUntraced(function*(name: string, given: { readonly [parameter: string]: unknown } = {}) {
    // each action needs a nonce of its own, and the nonce is the time
    yield* TestClock.adjust("1 millis")
    const { content: [part], isError = false, structuredContent } = yield* client.callTool({ name, arguments: given })
    const text = part?.type === "text" ? part.text : ""
    assert.notInclude(text, agent.privateKey.slice(2))
    return { isError, text, json: structuredContent }
  })
  return { call, list: client.listTools() }
})

class Sandbox extends Context.Service<Sandbox, {
  readonly gateway: Gateway
  readonly guard: { readonly TRIGATE_GUARD: string }
  readonly agent: Effect.Success<ReturnType<typeof connect>>
}>()("test/Sandbox") {}

const sandbox = Layer.effect(
  Sandbox,
  Effect.gen(function*() {
    yield* TestClock.setTime(epoch)
    const guard = { TRIGATE_GUARD: path.join(yield* folder, "policies.yaml") }
    fs.writeFileSync(guard.TRIGATE_GUARD, policies)
    const running = yield* gateway(guard)
    return { gateway: running, guard, agent: yield* connect(running.url) }
  })
)

const small = { coin: "ETH", side: "buy", size: "0.05", price: "1500" } as const
const large = { coin: "BTC", side: "buy", size: "0.02", price: "60000" } as const
const tooLarge = { coin: "BTC", side: "buy", size: "1" } as const

const freePort = Effect.callback<number>((resume) => {
  const server = Net.createServer().listen(0, "127.0.0.1", () => {
    const address = server.address()
    server.close(() => resume(Effect.succeed(address !== null && typeof address === "object" ? address.port : 0)))
  })
})

layer(sandbox)("trigate mcp", (it) => {
  it.effect("without a signer, the tools only read", () =>
    Effect.gen(function*() {
      const { gateway: { url } } = yield* Sandbox
      const { call, list } = yield* connect(url, { signs: false })
      const { tools } = yield* list
      assert.deepStrictEqual(
        tools.map(({ name }) => name),
        ["markets", "candles", "account", "fills", "action_outcome", "inspect"]
      )
      assert.isTrue(tools.every(({ annotations }) => annotations?.readOnlyHint === true))
      const markets = yield* call("markets", { coins: ["BTC", "ETH"], count: 1 })
      assert.strictEqual(JsonParts.at(markets.json, "omitted"), 1)
      assert.match(String(JsonParts.at(markets.json, "markets", 0, "mid")), /^[0-9.]+$/u)
      const candles = yield* call("candles", { coin: "BTC", interval: "1h", count: 500 })
      assert.strictEqual(JsonParts.at(candles.json, "candles", "length"), 500)
      assert.strictEqual(JsonParts.at(candles.json, "candles", 499, "open_time"), "2026-01-02T03:00:00.000Z")
      assert.deepInclude(yield* call("account"), {
        isError: true,
        text: "Name an account: this server has no signer"
      })
      const account = yield* call("account", { account: trader.address })
      assert.strictEqual(JsonParts.at(account.json, "margin", 0, "value"), "10000.0")
      assert.deepInclude(yield* call("candles", { coin: "NOSUCHCOIN", interval: "1h" }), {
        isError: true,
        text: "UnknownAsset: The venue knows no coin \"NOSUCHCOIN\""
      })
    }))

  it.effect("bounds what can be asked for, and refuses unknown parameters", () =>
    Effect.gen(function*() {
      const { agent: { call } } = yield* Sandbox
      const refusal = (name: string, given: { readonly [parameter: string]: unknown }) =>
        Effect.map(call(name, given), ({ isError, text }) => isError ? text : "accepted")
      assert.include(yield* refusal("candles", { coin: "BTC", interval: "1h", count: 501 }), "between 1 and 500")
      // otherwise it would be a market order
      assert.include(yield* refusal("place_order", { ...small, limitPrice: "3" }), "[\"limitPrice\"]")
      assert.include(yield* refusal("place_order", { ...small, price: "0" }), "a plain decimal above 0")
    }))

  it.effect("places, finds and cancels an order within the policy", () =>
    Effect.gen(function*() {
      const { agent: { call } } = yield* Sandbox
      const placed = yield* call("place_order", small)
      assert.match(String(JsonParts.at(placed.json, "result")), /^order \d+ is resting$/u)
      assert.strictEqual(JsonParts.at(placed.json, "signer"), agent.address)
      const open = yield* call("account")
      const cloid = JsonParts.at(placed.json, "cloid")
      assert.strictEqual(JsonParts.at(open.json, "orders", 0, "cloid"), cloid)
      const outcome = yield* call("action_outcome", { nonce: JsonParts.at(placed.json, "nonce") })
      assert.strictEqual(JsonParts.at(outcome.json, "state"), "accepted")
      assert.strictEqual(JsonParts.at(outcome.json, "results", 0), JsonParts.at(placed.json, "result"))
      const cancelled = yield* call("cancel_orders", { orders: [cloid] })
      assert.strictEqual(JsonParts.at(cancelled.json, "cancels", 0, "result"), "done")
      assert.strictEqual(JsonParts.at((yield* call("account")).json, "orders", "length"), 0)
      const bought = yield* call("place_order", { coin: "BTC", side: "buy", size: "0.001", slippagePercent: 1 })
      assert.match(String(JsonParts.at(bought.json, "result")), /is filled: 0\.001 at/u)
      assert.strictEqual(JsonParts.at((yield* call("fills", { count: 1 })).json, "fills", 0, "coin"), "BTC")
    }))

  it.effect("says which rule refuses an order, and asks nobody about it", () =>
    Effect.gen(function*() {
      const { agent: { call } } = yield* Sandbox
      const { isError, text } = yield* call("place_order", tooLarge)
      assert.isTrue(isError)
      assert.match(
        text,
        /^PolicyViolation: The notional of the order is [\d.]+ USDC; the policy allows 5000 \{"rule":"orderNotional","policy":"agent","measured":[\d.]+,"limit":5000,"unit":"USDC","leg":0\}$/u
      )
      assert.include(
        (yield* call("place_order", { ...small, coin: "SOL" })).text,
        "PolicyViolation: The policy does not name SOL {\"rule\":\"coins\""
      )
      assert.include((yield* call("place_order", { ...small, slippagePercent: 1 })).text, "omit it with price")
    }))

  it.effect("sends no order above the threshold without a person's approval", () =>
    Effect.gen(function*() {
      const { agent: unasked, gateway: { url } } = yield* Sandbox
      const needs = "NotApproved: The notional of the order is"
      const first = yield* unasked.call("place_order", large)
      assert.isTrue(first.isError)
      assert.include(first.text, needs)
      assert.include(
        first.text,
        "this client does not support elicitation, so no person can approve it. Nothing was sent"
      )
      // this client says that it can ask, and then cannot
      const { call } = yield* connect(url, { elicitation: true })
      const second = yield* call("place_order", large)
      assert.include(second.text, needs)
      assert.include(second.text, "which was not given. Nothing was sent")
      assert.strictEqual(JsonParts.at((yield* call("account")).json, "orders", "length"), 0)
    }))

  it.effect("reports whether the policies would refuse a signed body", () =>
    Effect.gen(function*() {
      const { agent: { call } } = yield* Sandbox
      const action = { type: "updateLeverage", asset: 0, isCross: true, leverage: 3 }
      const signed = yield* SandboxSigner.signAction(trader, { nonce: epoch, action })
      const { json } = yield* call("inspect", { body: Json.stringify(signed), expectedSigner: trader.address })
      assert.strictEqual(JsonParts.at(json, "signer"), trader.address)
      assert.include(String(JsonParts.at(json, "policyViolation")), "\"rule\":\"expiresWithin\"")
    }))

  it.effect("an order of unknown outcome is not to be placed again", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({ ...(yield* Sandbox).guard, TRIGATE_SANDBOX_LOST_REPLIES: "1" })
      const { call } = yield* connect(url)
      const { isError, text } = yield* call("place_order", small)
      assert.isTrue(isError)
      assert.match(text, /^OutcomeUnknown: .+\. Call action_outcome with the nonce \d+ before you send anything else$/u)
    }))

  it.effect("orders are refused once no policy applies", () =>
    Effect.gen(function*() {
      const { agent: { call }, gateway: { reload, url }, guard } = yield* Sandbox
      const unguarded = (key: TestKey) =>
        Effect.flatMap(signerOf(key), (signer) =>
          McpTools.findUnguarded({ signer, account: key.address, network: "mainnet" })).pipe(
            Effect.provideService(GatewayAccess.Gateway, url),
            Effect.provide(FetchHttpClient.layer)
          )
      assert.strictEqual(yield* unguarded(trader), undefined)
      assert.strictEqual(
        yield* unguarded(multiSigUser),
        `No policy of the gateway applies to the account ${multiSigUser.address}`
      )
      yield* reload({})
      assert.deepInclude(yield* call("place_order", small), {
        isError: true,
        text: `No policy of the gateway applies to the account ${trader.address}; nothing was sent`
      })
      yield* reload(guard)
      assert.isFalse((yield* call("place_order", small)).isError)
    }))

  it.effect("says why there are no tools that write, and ends with its input", () =>
    Effect.gen(function*() {
      const { gateway: { url }, guard } = yield* Sandbox
      const front = yield* gateway({ ...guard, TRIGATE_TRADING_API_URL: url })
      const notes = (
        address: string,
        key: { readonly privateKey: string } | undefined,
        ...args: ReadonlyArray<string>
      ) =>
        Effect.map(
          run(["mcp", "--gateway", address, ...args], {
            environment: key === undefined ? {} : { TRIGATE_PRIVATE_KEY: key.privateKey }
          }),
          ({ stderr, stdout }) => {
            assert.strictEqual(stdout, "")
            return stderr.split("\n")[1]
          }
        )
      assert.strictEqual(
        yield* notes(url, undefined),
        "The tools only read: there is no private key (TRIGATE_PRIVATE_KEY)."
      )
      assert.strictEqual(
        yield* notes(url, multiSigUser),
        `The tools only read: No policy of the gateway applies to the account ${multiSigUser.address}.`
      )
      const signs = `Orders are signed by ${agent.address} for the account ${trader.address}. Orders above 50 in the ` +
        "quote token need a person's approval."
      assert.strictEqual(yield* notes(url, agent, "--approve-above", "50"), signs)
      assert.strictEqual(
        yield* notes(front.url, agent),
        "The tools only read: the venue is real, and --live is not set."
      )
      assert.strictEqual(yield* notes(front.url, agent, "--live", "--approve-above", "50"), signs)
    }))

  it.effect("serves HTTP on the port to requests with the key, and refuses web pages", () =>
    Effect.gen(function*() {
      const { gateway: { url } } = yield* Sandbox
      const port = yield* freePort
      const http = { port, key: Redacted.make("sixteen-letters!") }
      yield* McpTools.serve({ own: undefined, trading: undefined, instructions: "", version: "1.2.3", http }).pipe(
        Effect.provideService(GatewayAccess.Gateway, url),
        Effect.provide([FetchHttpClient.layer, NonceSource.layerMemory(), Stdio.layerTest({})]),
        Effect.forkScoped
      )
      const initialize = {
        jsonrpc: "2.0",
        id: 1,
        method: "initialize",
        params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } }
      }
      const keyless = { accept: "application/json, text/event-stream", "content-type": "application/json" }
      const accept = { ...keyless, authorization: "Bearer sixteen-letters!" }
      const send = (headers: Record<string, string>, padding = 0) => {
        const body = JSON.stringify({ ...initialize, padding: "x".repeat(padding) })
        return Effect.tryPromise(() => fetch(`http://127.0.0.1:${port}/mcp`, { method: "POST", headers, body }))
      }
      // until it listens
      const opened = yield* Effect.eventually(send(accept))
      assert.deepInclude(yield* Effect.promise(() => opened.json()), { id: 1, jsonrpc: "2.0" })
      assert.isNotNull(opened.headers.get("mcp-session-id"))
      assert.strictEqual((yield* send({ ...accept, origin: "http://127.0.0.1" })).status, 403)
      const padded = (length: number) =>
        Effect.flatMap(send(accept, length), (response) => Effect.promise(() => response.text()))
      assert.include(yield* padded(1_000_000), `"protocolVersion"`)
      // a request above 1 MiB is not read
      assert.include(yield* padded(1_048_576), `"code":-32700`)
      const refused = yield* send(keyless)
      assert.strictEqual(refused.status, 401)
      assert.strictEqual(refused.headers.get("www-authenticate"), "Bearer")
      assert.strictEqual((yield* send({ ...keyless, authorization: "Bearer sixteen-letters?" })).status, 401)
    }))
})
