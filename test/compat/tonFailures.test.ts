/** What `@ton/ton` is told when something is wrong, and what becomes of the keys that it sends. */
import { assert, describe, it } from "@effect/vitest"
import { Address } from "@ton/core"
import { TonClient } from "@ton/ton"
import { messageAdvice } from "@trigate/domain/tokens/TokenOperations"
import { guardedGateway, known } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import type { Reply } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import { rejection } from "./rejection.ts"
import { session } from "./session.ts"
import * as Ton from "./tonChain.ts"

const client = "@ton/ton 16.3.0"

/** The library over a gateway whose upstream answers everything in one way. */
const answered = Effect.fnUntraced(function*(name: string, reply: Reply) {
  const chain = yield* Ton.answering(reply)
  const url = yield* session({ name: `ton/${name}`, client, upstreams: { tokens: chain.url } })
  return { chain, ton: new TonClient({ endpoint: `${url}/api/v2/jsonRPC` }) }
})

/** The envelope of a failure, as the library quotes it. */
const quoted = (error: unknown): string => {
  const [, envelope] = /^Error: Received error: (?<envelope>\{.*\})$/u.exec(String(error)) ?? []
  assert(envelope !== undefined, String(error))
  return envelope
}

describe("@ton/ton is told", () => {
  const failures: ReadonlyArray<readonly [name: string, reply: Reply, error: string, code: number, asked: number]> = [
    ["limit", { status: 429, body: `{"ok":false,"result":"Ratelimit exceed","code":429}` }, "Ratelimit exceed", 429, 1],
    [
      "no-liteserver",
      { status: 503, body: `{"ok":false,"error":"No working liteservers with ls_index=None","code":503}` },
      "No working liteservers with ls_index=None",
      503,
      1
    ],
    [
      "not-ready",
      { status: 500, body: `{"ok":false,"error":"LITE_SERVER_NOTREADY: block is not applied","code":500}` },
      "LITE_SERVER_NOTREADY: block is not applied",
      500,
      1
    ],
    [
      "unknown-method",
      { status: 404, body: `{"ok":false,"error":"Not Found","code":404,"@extra":"_"}` },
      "Not Found",
      404,
      1
    ]
  ]
  for (const [name, reply, error, code, asked] of failures) {
    it.live(`what the chain says, in words and code: ${name}`, () =>
      Effect.gen(function*() {
        const { chain, ton } = yield* answered(name, reply)
        const told = quoted(yield* rejection(() => ton.getBalance(Ton.wallet)))
        assert.deepStrictEqual(
          {
            ok: JsonParts.value(told, "ok"),
            error: JsonParts.value(told, "error"),
            code: JsonParts.value(told, "code")
          },
          { ok: false, error, code }
        )
        assert.isFalse(told.includes(`"result"`))
        assert.strictEqual(chain.seen.length, asked)
      }))
  }

  it.live("that the gateway cannot read an answer, and reads one without ok", () =>
    Effect.gen(function*() {
      const { chain, ton } = yield* answered("without-ok", { body: `{"id":"1"}` })
      const told = quoted(yield* rejection(() => ton.getBalance(Ton.wallet)))
      assert.strictEqual(JsonParts.value(told, "data", "_tag"), "UpstreamMalformed")
      const information = Ton.informationOf(14n)
      chain.respond = () => ({ body: `{"jsonrpc":"2.0","id":1,"result":${information}}` })
      assert.strictEqual(yield* Effect.promise(() => ton.getBalance(Ton.wallet)), 14n)
      assert.strictEqual(chain.seen.length, 2)
    }))

  it.live("that an address is none, and nothing is sent", () =>
    Effect.gen(function*() {
      const { chain, ton } = yield* answered("malformed-address", { body: "{}" })
      const told = quoted(yield* rejection(() => ton.getBalance(new Address(5, Buffer.alloc(32)))))
      assert.strictEqual(
        JsonParts.value(told, "error"),
        "Not a token-chain address: workchain is neither 0 nor -1"
      )
      assert.strictEqual(JsonParts.value(told, "data", "_tag"), "InvalidAddress")
      assert.deepStrictEqual(chain.seen, [])
    }))

  const cut: ReadonlyArray<readonly [name: string, reply: Reply]> = [
    ["message-cut", "hang-up"],
    ["message-not-known", { status: 504, body: `{"ok":false,"error":"Liteserver timeout","code":504}` }]
  ]
  for (const [name, reply] of cut) {
    it.live(`that it is not known what became of a message, which is sent once: ${name}`, () =>
      Effect.gen(function*() {
        const { chain, ton } = yield* answered(name, reply)
        const told = quoted(yield* rejection(() => ton.sendFile(Buffer.from("b5ee9c72", "hex"))))
        assert.strictEqual(JsonParts.value(told, "data", "_tag"), "OutcomeUnknown")
        assert.strictEqual(JsonParts.value(told, "data", "advice"), messageAdvice)
        assert.deepStrictEqual(chain.seen.map(({ body }) => JsonParts.value(body, "params")), [{ boc: "te6ccg==" }])
      }))
  }

  it.live("that a contract refused a message, in the chain's words, after one request", () =>
    Effect.gen(function*() {
      const error = "LITE_SERVER_UNKNOWN: cannot apply external message to current state"
      const { chain, ton } = yield* answered("message-refused", {
        status: 500,
        body: JSON.stringify({ ok: false, error, code: 500 })
      })
      const told = quoted(yield* rejection(() => ton.sendFile(Buffer.from("b5ee9c72", "hex"))))
      assert.strictEqual(JsonParts.value(told, "error"), error)
      assert.strictEqual(chain.seen.length, 1)
    }))
})

describe("the keys of @ton/ton", () => {
  const secret = "caller-secret-41c7"

  for (const path of ["/api/v2/jsonRPC", `/${secret}/api/v2/jsonRPC`]) {
    it.live(`go no further than the gateway: ${path.replace(secret, "KEY")}`, () =>
      Effect.gen(function*() {
        const chain = yield* Ton.tonChain
        const name = path.startsWith("/api") ? "ton/key-in-header" : "ton/key-in-path"
        const url = yield* session({ name, client, upstreams: { tokens: chain.url } })
        const ton = new TonClient({ endpoint: url + path, apiKey: secret })
        assert.strictEqual(yield* Effect.promise(() => ton.getBalance(Ton.wallet)), 14_020_735n)
        yield* Effect.promise(() => ton.sendFile(Buffer.from("b5ee9c72", "hex")))
        assert.strictEqual(chain.seen.length, 2)
        for (const { body, headers, path } of chain.seen) {
          assert.notInclude(JSON.stringify([path, headers, body]), secret)
          assert.notProperty(headers, "x-api-key")
          assert.notProperty(headers, "x-ton-client-version")
        }
      }))
  }

  it.live("let the caller in, or do not, where the gateway knows its callers", () =>
    Effect.gen(function*() {
      const url = yield* guardedGateway
      const balance = (endpoint: string, apiKey: string) => () =>
        new TonClient({ endpoint, apiKey }).getBalance(Ton.wallet)
      const plain = `${url}/api/v2/jsonRPC`
      const keyed = `${url}/${known}/api/v2/jsonRPC`
      const admitted = yield* Effect.promise(balance(plain, known))
      assert.strictEqual(yield* Effect.promise(balance(keyed, known)), admitted)
      // of two keys nobody can tell whose request it is
      const wrong = [
        balance(plain, "another-key"),
        balance(keyed, "another-key"),
        balance(`${url}/another-key/api/v2/jsonRPC`, known)
      ]
      for (const refused of wrong) {
        const error = yield* rejection(refused)
        assert.strictEqual(JsonParts.at(error, "name"), "AxiosError")
        assert.strictEqual(JsonParts.at(error, "response", "status"), 401)
        assert.strictEqual(JsonParts.at(error, "response", "data", "data", "_tag"), "Unauthorized")
      }
    }))
})
