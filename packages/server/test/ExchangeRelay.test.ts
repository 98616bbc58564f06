import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import { post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Recordings from "@trigate/testing/Recordings"
import type { StatusReply } from "@trigate/testing/RecordingUpstream"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { bigBlocks, bodyOf, delegate, multiSig, multiSigBody, validator } from "./bodies.ts"
import { sharedGateways } from "./sharedGateway.ts"

const shared = sharedGateways()

const recorded = Recordings.text("exchange-bodies.json")
const ok = `{"status":"ok","response":{"type":"default"}}`
const utf8 = new TextEncoder()

/** An entry as the venue sends it: its own text where it has one, else its JSON with the spacing of the recording. */
const replyOf = (entry: string): { readonly id: string; readonly reply: StatusReply & { readonly status: number } } => {
  const members = Json.members(entry)
  const value = (key: string): unknown => members.has(key) ? JSON.parse(JsonParts.raw(entry, [key])) : undefined
  const type = value("contentType")
  return {
    id: String(value("id")),
    reply: {
      status: Number(value("http")),
      type: typeof type === "string" ? type : members.has("text") ? null : "application/json",
      body: members.has("text") ? String(value("text")) : JsonParts.raw(entry, ["body"])
    }
  }
}

describe("the venue's answer", () => {
  const entries = JsonParts.rows(recorded, ["bodies"]).map(replyOf)

  it("is told in all its statuses by the recordings", () => {
    assert.deepStrictEqual(new Set(entries.map(({ reply }) => reply.status)), new Set([200, 422, 429, 500]))
    assert.strictEqual(entries.length, 32)
  })

  it.live("comes back with its status, its content type and its bytes, after one request", () =>
    Effect.gen(function*() {
      const live = yield* shared()
      for (const { id, reply } of entries) {
        live.api.seen.length = 0
        live.api.respond = () => reply
        const now = yield* Clock.currentTimeMillis
        const answer = yield* post(`${live.url}/exchange`, bodyOf(now, bigBlocks))
        assert.strictEqual(answer.status, reply.status, id)
        if (reply.status === 429) {
          // the venue's `null` says nothing
          assert.strictEqual(JsonParts.value(answer.text, "_tag"), "UpstreamRateLimited", id)
          continue
        }
        assert.strictEqual(answer.type, reply.type ?? "application/octet-stream", id)
        assert.strictEqual(answer.text, reply.body, id)
        const hasUsualCause = answer.text.includes("nonce too low")
        assert.strictEqual(answer.headers.get("x-trigate-warning") !== null, hasUsualCause, id)
        assert.deepStrictEqual(live.seen(), ["api POST /exchange"], id)
      }
    }))

  it.live("comes with the usual cause if the venue does not know the signer", () =>
    Effect.gen(function*() {
      const live = yield* shared()
      const now = yield* Clock.currentTimeMillis
      const { address } = keys.trader
      const refusal = { body: `{"status":"err","response":"User or API Wallet ${address} does not exist."}` }
      live.api.respond = () => refusal
      const action = { type: "noop" }
      const signed = yield* Effect.orDie(SandboxSigner.signAction(keys.trader, { nonce: now, action }))
      const { headers } = yield* post(`${live.url}/exchange`, JSON.stringify(signed))
      assert.strictEqual(
        headers.get("x-trigate-warning"),
        `If ${address} is an API wallet, it has expired, or a newer one of the same name has replaced it: approve a new one`
      )
    }))

  const bare: ReadonlyArray<readonly [what: string, reply: StatusReply]> = [
    ["a 429 with words", { status: 429, type: "text/plain", body: "slow down", headers: { "retry-after": "12" } }],
    ["bytes that are no UTF-8", { status: 200, type: "application/json", body: Uint8Array.of(0x22, 0xff, 0xfe, 0x22) }],
    ["a refusal in HTML", { status: 403, type: "text/html", body: "<html>blocked</html>" }]
  ]
  for (const [what, reply] of bare) {
    it.live(`comes back as it is: ${what}`, () =>
      Effect.gen(function*() {
        const live = yield* shared({ api: () => reply })
        const answer = yield* post(`${live.url}/exchange`, bodyOf(yield* Clock.currentTimeMillis, bigBlocks))
        assert.strictEqual(answer.status, reply.status)
        assert.deepStrictEqual(
          answer.bytes,
          typeof reply.body === "string" ? utf8.encode(reply.body) : reply.body
        )
        assert.strictEqual(answer.headers.get("retry-after"), reply.headers?.["retry-after"] ?? null)
        assert.deepStrictEqual(live.seen(), ["api POST /exchange"])
      }))
  }
})

describe("a 429 of the venue", () => {
  for (const body of ["", "null"]) {
    it.live(`is described to the caller: ${body === "" ? "empty" : body}`, () =>
      Effect.gen(function*() {
        const live = yield* shared({ api: () => ({ status: 429, type: null, body, headers: { "retry-after": "12" } }) })
        const answer = yield* post(`${live.url}/exchange`, bodyOf(yield* Clock.currentTimeMillis, bigBlocks))
        assert.strictEqual(answer.status, 429)
        assert.strictEqual(JsonParts.value(answer.text, "detail"), "trading-api responded with HTTP 429")
        assert.strictEqual(JsonParts.value(answer.text, "retryAfter"), 12)
        assert.strictEqual(answer.headers.get("retry-after"), "12")
        assert.deepStrictEqual(live.seen(), ["api POST /exchange"])
      }))
  }
})

describe("the bytes that leave", () => {
  const spellings: ReadonlyArray<readonly [what: string, body: (now: number) => string]> = [
    ["compact", (now) => bodyOf(now, bigBlocks)],
    [
      "odd whitespace, key order, escapes, members that nobody documents",
      (now) =>
        ` {\r\n\t"vaultAddress" :null , "signature":{"v":28,"s":"0x02","r":"0x1"},` +
        `"\\u0061ction": { "memo":"caf\\u00e9 é \\ud83d\\ude00 \\/","usingBigBlocks":true ,"type":"evm\\u0055serModify"` +
        `, "n":1.50e+1,"big":123456789012345678901234567890 },"nonce":${now}\n}\n `
    ],
    [
      "a multi-sig with an order inside",
      (now) => multiSigBody(now, `{"type":"order","orders":[{"a":1,"b":true,"p":"1.10","s":"2.0"}], "grouping":"na"}`)
    ],
    ["the real name of the chain", (now) => bodyOf(now, delegate(now))],
    [
      "the documents' name of the chain as a value",
      (now) => bodyOf(now, `{"type":"evmUserModify","usingBigBlocks":true,"note":"venueChain"}`)
    ],
    ["the mark of the venue's own page", (now) => bodyOf(now, bigBlocks, `,"isFrontend":true`)]
  ]
  for (const [what, body] of spellings) {
    it.live(`are those that came: ${what}`, () =>
      Effect.gen(function*() {
        const live = yield* shared({ api: () => ({ body: ok }) })
        const sent = utf8.encode(body(yield* Clock.currentTimeMillis))
        const answer = yield* post(`${live.url}/exchange`, sent)
        assert.strictEqual(answer.text, ok)
        assert.deepStrictEqual(live.api.seen.map(({ bytes }) => bytes), [sent])
        assert.strictEqual(live.api.seen[0]?.headers["content-type"], "application/json")
      }))
  }

  const respelled: ReadonlyArray<readonly [what: string, key: string, (chain: string, now: number) => string]> = [
    ["an action", `"venueChain"`, (chain, now) => bodyOf(now, delegate(now, "1", `${chain} :\t"Mainnet"`))],
    ["an escaped key", `"venue\\u0043hain"`, (chain, now) => bodyOf(now, delegate(now, "1", `${chain}:"Mainnet"`))],
    [
      "a wrapped action",
      `"venueChain"`,
      (chain, now) => multiSigBody(now, delegate(now, "1", `"note":"venueChain", ${chain}: "Mainnet"`))
    ]
  ]
  for (const [what, key, body] of respelled) {
    it.live(`have the real name of the chain and no other change: ${what}`, () =>
      Effect.gen(function*() {
        const live = yield* shared({ api: () => ({ body: ok }) })
        const now = yield* Clock.currentTimeMillis
        const answer = yield* post(`${live.url}/exchange`, body(key, now))
        assert.strictEqual(answer.text, ok)
        assert.isNull(answer.headers.get("x-trigate-warning"))
        assert.deepStrictEqual(live.api.seen.map((seen) => seen.body), [body(`"hyperliquidChain"`, now)])
      }))
  }

  it.live("are the plain ones of a body that came compressed", () =>
    Effect.gen(function*() {
      const live = yield* shared({ api: () => ({ body: ok }) })
      const body = bodyOf(yield* Clock.currentTimeMillis, bigBlocks)
      const zipped = yield* Effect.promise(() =>
        new Response(new Blob([body]).stream().pipeThrough(new CompressionStream("gzip"))).arrayBuffer()
      )
      const answer = yield* post(`${live.url}/exchange`, new Uint8Array(zipped), { "content-encoding": "gzip" })
      assert.strictEqual(answer.text, ok)
      assert.deepStrictEqual(live.api.seen.map((seen) => seen.body), [body])
      assert.isUndefined(live.api.seen[0]?.headers["content-encoding"])
    }))
})

describe("the forms that only the documents show", () => {
  const forms: ReadonlyArray<readonly [what: string, action: (now: number) => string, warning: string]> = [
    [
      "tokenDelegate with amount",
      () => `{"type":"tokenDelegate","validator":"${validator}","amount":"1.5","isUndelegate":false}`,
      "tokenDelegate takes an integer `wei` (HYPE x 10^8), not `amount`"
    ],
    [
      "CSignerAction with payload",
      () => `{"type":"CSignerAction","payload":"unjailSelf"}`,
      "CSignerAction takes `unjailSelf: null` or `jailSelf: null`, not `payload`"
    ],
    [
      "evmUserModify with modifications",
      () => `{"type":"evmUserModify","modifications":[{"usingBigBlocks":true}]}`,
      "evmUserModify takes `usingBigBlocks`, not `modifications`"
    ],
    [
      "one that a multi-sig wraps",
      () => multiSig(`{"type":"CSignerAction","payload":{}}`),
      "CSignerAction takes `unjailSelf: null` or `jailSelf: null`, not `payload`"
    ]
  ]
  for (const [what, action, warning] of forms) {
    it.live(`are relayed with a warning: ${what}`, () =>
      Effect.gen(function*() {
        const live = yield* shared({ api: () => ({ body: ok }) })
        const now = yield* Clock.currentTimeMillis
        const answer = yield* post(`${live.url}/exchange`, bodyOf(now, action(now)))
        assert.strictEqual(answer.text, ok)
        assert.strictEqual(answer.headers.get("x-trigate-warning"), warning)
        assert.deepStrictEqual(live.api.seen.map((seen) => seen.body), [bodyOf(now, action(now))])
      }))

    it.live(`are refused in strict mode, before anything is sent: ${what}`, () =>
      Effect.gen(function*() {
        const live = yield* shared({}, { TRIGATE_STRICT: "on" })
        const now = yield* Clock.currentTimeMillis
        const answer = yield* post(`${live.url}/exchange`, bodyOf(now, action(now)))
        assert.strictEqual(answer.status, 400)
        assert.include(answer.json, { _tag: "InvalidRequest" })
        assert.include(answer.text, JSON.stringify(warning).slice(1, -1))
        assert.deepStrictEqual(live.seen(), [])
      }))
  }

  const real: ReadonlyArray<readonly [what: string, body: (now: number) => string]> = [
    ["tokenDelegate", (now) => bodyOf(now, delegate(now))],
    ["CSignerAction that unjails", (now) => bodyOf(now, `{"type":"CSignerAction","unjailSelf":null}`)],
    ["CSignerAction that jails", (now) => bodyOf(now, `{"type":"CSignerAction","jailSelf":null}`)],
    ["evmUserModify", (now) => bodyOf(now, bigBlocks)],
    ["multiSig", (now) => multiSigBody(now, delegate(now))]
  ]
  for (const [what, body] of real) {
    it.live(`are not the real ones, which strict mode takes without a word: ${what}`, () =>
      Effect.gen(function*() {
        const live = yield* shared({ api: () => ({ body: ok }) }, { TRIGATE_STRICT: "on" })
        const now = yield* Clock.currentTimeMillis
        const answer = yield* post(`${live.url}/exchange`, body(now))
        assert.strictEqual(answer.text, ok)
        assert.isNull(answer.headers.get("x-trigate-warning"))
        assert.deepStrictEqual(live.seen(), ["api POST /exchange"])
      }))
  }
})
