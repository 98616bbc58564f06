import { assert, describe, it } from "@effect/vitest"
import { gateway } from "@trigate/testing/Gateway"
import { rpcReply } from "@trigate/testing/RecordingUpstream"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { bigBlocks, bodyOf } from "../bodies.ts"
import { exchange, headOf } from "../rawHttp.ts"
import { sharedGateways } from "../sharedGateway.ts"

type Headers = ReadonlyArray<readonly [name: string, value: string]>

const app = "https://app.example"
const evil = "https://evil.example"

const rpc = (id: number, method: string, params: string): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`

const chainId = rpc(1, "eth_chainId", "[]")
const sending = rpc(2, "eth_sendRawTransaction", `["0x01"]`)
const message = `{"boc":"dGU="}`
const sendBoc = `{"id":"7","jsonrpc":"2.0","method":"sendBoc","params":${message}}`

const posted = (url: string, path: string, body: string, headers: Headers) =>
  exchange(url, [headOf("POST", path, [["content-length", String(body.length)], ...headers]), body])

const json: Headers = [["content-type", "application/json"]]
const from = (origin: string): Headers => [...json, ["origin", origin], ["sec-fetch-site", "cross-site"]]

const detail =
  "A page of another site is not allowed to sign or send; TRIGATE_CORS_ORIGINS lists the origins whose pages are allowed"

const problemOf = (needed: string) => ({
  type: "urn:trigate:problem:not-permitted",
  _tag: "NotPermitted",
  title: "Not permitted",
  status: 403,
  missing: "origins",
  needed,
  detail
})

const rpcError = (needed: string) => ({
  jsonrpc: "2.0",
  id: 2,
  error: { code: -32001, message: detail, data: problemOf(needed) }
})

const ofVenue = (needed: string) => ({ ...problemOf(needed), code: 403, msg: detail, error: detail })
const ofTokens = (needed: string) => ({ ...problemOf(needed), ok: false, error: detail, code: 403 })

/** What signs or sends, each with the answer that a foreign page gets. */
const spending = (now: number) =>
  [
    ["/exchange", bodyOf(now, bigBlocks), ofVenue],
    ["/caller-key/exchange", bodyOf(now, bigBlocks), ofVenue],
    ["/api/v2/sendBoc", message, ofTokens],
    ["/api/v2/sendBocReturnHash", message, ofTokens],
    ["/caller-key/api/v2/sendBoc", message, ofTokens],
    ["/evm", sending, rpcError],
    ["/l2", sending, rpcError],
    ["/caller-key", sending, rpcError]
  ] as const

const shared = sharedGateways()

const started = (origins: string) =>
  shared({
    api: () => ({ status: 200, body: `{"status":"ok","response":{"type":"default"}}` }),
    node: rpcReply(`"0x3e7"`),
    layer2: rpcReply(`"0x3e7"`),
    tokens: () => ({ status: 200, body: `{"ok":true,"result":{"@type":"ok"}}` })
  }, origins === "" ? {} : { TRIGATE_CORS_ORIGINS: origins })

describe("what signs or sends", () => {
  for (const [at, path] of spending(0).map(([path], at) => [at, path] as const)) {
    it.live(`is refused to a page of another site, and reaches nobody: ${path}`, () =>
      Effect.gen(function*() {
        const live = yield* started(app)
        const [, body, refusal] = spending(yield* Clock.currentTimeMillis)[at] ?? ["", "", problemOf]
        const others: ReadonlyArray<readonly [needed: string, headers: Headers]> = [
          [evil, from(evil)],
          [evil, [...json, ["origin", evil]]],
          ["null", [...json, ["origin", "null"]]],
          [`${app}.evil.example`, [...json, ["origin", `${app}.evil.example`]]],
          ["https://localhost:8080", [...json, ["origin", "https://localhost:8080"], ["sec-fetch-site", "same-site"]]],
          ["another site", [...json, ["sec-fetch-site", "cross-site"]]]
        ]
        for (const [needed, headers] of others) {
          const answer = yield* posted(live.url, path, body, headers)
          assert.deepStrictEqual(JSON.parse(answer.body), refusal(needed))
        }
        assert.deepStrictEqual(live.seen(), [])
      }))

    it.live(`is sent for others: ${path}`, () =>
      Effect.gen(function*() {
        const live = yield* started(app)
        const ways: ReadonlyArray<Headers> = [
          json,
          from(app),
          [...json, ["origin", "http://localhost"], ["sec-fetch-site", "same-origin"]],
          [...json, ["sec-fetch-site", "none"]]
        ]
        for (const [nonce, headers] of ways.entries()) {
          const [, body] = spending((yield* Clock.currentTimeMillis) + nonce)[at] ?? ["", ""]
          const answer = yield* posted(live.url, path, body, headers)
          assert.notInclude(answer.body, "NotPermitted", JSON.stringify(headers))
        }
        // no node serves what is signed for the venue's API
        assert.strictEqual(live.seen().length, path === "/caller-key/exchange" ? 0 : ways.length)
      }))
  }
})

describe("a batch of a page of another site", () => {
  it.live("is answered but for the calls that send", () =>
    Effect.gen(function*() {
      const live = yield* started("")
      const answer = yield* posted(live.url, "/l2", `[${chainId},${sending}]`, from(evil))
      assert.strictEqual(answer.status, 200)
      assert.deepStrictEqual(JSON.parse(answer.body), [
        { jsonrpc: "2.0", id: 1, result: "0x3e7" },
        rpcError(evil)
      ])
      assert.strictEqual(live.layer2.seen.length, 1)
      assert.notInclude(live.layer2.seen[0]?.body ?? "", "eth_sendRawTransaction")
    }))

  it.live("is answered but for the messages that it sends", () =>
    Effect.gen(function*() {
      const live = yield* started("")
      const answer = yield* posted(live.url, "/api/v2/jsonRPC", `[${sendBoc}]`, from(evil))
      assert.strictEqual(answer.status, 200)
      assert.include(answer.body, detail)
      assert.deepStrictEqual(live.seen(), [])
    }))
})

describe("a body without the type of JSON", () => {
  const types: ReadonlyArray<Headers> = [
    [],
    [["content-type", ""]],
    [["content-type", "text/plain"]],
    [["content-type", "text/plain;charset=UTF-8"]],
    [["content-type", "text/plain; application/json"]],
    [["content-type", "application/x-www-form-urlencoded"]],
    [["content-type", "multipart/form-data; boundary=json"]]
  ]

  it.live("is read on no route: a page of any site may send it without asking first", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const now = yield* Clock.currentTimeMillis
      const paths = [
        ...spending(now).map(([path, body]) => [path, body] as const),
        ["/evm", chainId] as const,
        [
          "/exchange/inspect",
          bodyOf(now, bigBlocks)
        ] as const,
        ["/info", `{"type":"spotMeta"}`] as const
      ]
      for (const [path, body] of paths) {
        for (const headers of types) {
          const answer = yield* posted(url, path, body, headers)
          assert.strictEqual(answer.status, 400, `${path} ${JSON.stringify(headers)}`)
          assert.include(answer.body, "The content type must be application/json", path)
        }
      }
    }))
})
