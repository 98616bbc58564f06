import { assert, describe, it } from "@effect/vitest"
import { infoOperations } from "@trigate/domain/info/InfoOperations"
import { get, post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import { rawUpstream } from "@trigate/testing/RawUpstream"
import * as Recordings from "@trigate/testing/Recordings"
import type { Reply } from "@trigate/testing/RecordingUpstream"
import { refusingUrl } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import { liveGateway, upstreamKeys } from "./liveGateway.ts"
import { exchange, headOf } from "./rawHttp.ts"
import { sharedGateways } from "./sharedGateway.ts"

const shared = sharedGateways()

const spotMeta = Recordings.text("spotMeta-testnet-full.json")
const question = ` {"type" : "spotMeta"}\n`
const nodeInfo = `node POST /${upstreamKeys.node}/info`

describe("spotMeta", () => {
  it.live("comes back byte for byte from the venue's API, asked with the very bytes that came", () =>
    Effect.gen(function*() {
      const live = yield* shared({ api: () => ({ body: spotMeta }) })
      const answer = yield* post(`${live.url}/info`, question)
      assert.strictEqual(answer.status, 200)
      assert.strictEqual(answer.type, "application/json")
      assert.strictEqual(answer.bytes.length, 388_497)
      assert.isTrue(answer.text === spotMeta)
      assert.strictEqual(answer.headers.get("x-trigate-upstream"), "trading-api")
      assert.deepStrictEqual(live.seen(), ["api POST /info"])
      assert.deepStrictEqual(live.api.seen.map(({ body }) => body), [question])
    }))

  const faults: ReadonlyArray<readonly [what: string, reply: Reply]> = [
    ["503", { status: 503, body: `{"error":"overloaded"}` }],
    ["500 null", { status: 500, body: "null" }],
    ["429", { status: 429, body: "null" }],
    ["an empty 429", { status: 429, type: null, body: "" }],
    ["HTML in a 200", { type: "text/html", body: "<html>maintenance</html>" }],
    ["HTML in a 502 that says it is JSON", { status: 502, body: " <!doctype html><html></html>" }],
    ["an empty body", { body: "" }],
    ["a redirect", { status: 302, headers: { location: "http://127.0.0.1:9/info" }, body: "moved" }],
    ["a broken exchange", "hang-up"]
  ]
  for (const [what, reply] of faults) {
    it.live(`comes from the node when the venue's API answers ${what}`, () =>
      Effect.gen(function*() {
        const live = yield* liveGateway({ api: () => reply, node: () => ({ body: spotMeta }) })
        const answer = yield* post(`${live.url}/info`, question)
        assert.strictEqual(answer.status, 200)
        assert.isTrue(answer.text === spotMeta)
        assert.strictEqual(answer.headers.get("x-trigate-upstream"), "trading-node")
        assert.deepStrictEqual(live.seen(), ["api POST /info", nodeInfo])
        assert.deepStrictEqual(live.node.seen.map(({ body }) => body), [question])
      }))
  }

  it.live("comes from the node when nobody listens at the venue's API", () =>
    Effect.gen(function*() {
      const live = yield* shared({ node: () => ({ body: spotMeta }) }, {
        TRIGATE_TRADING_API_URL: yield* refusingUrl
      })
      const answer = yield* post(`${live.url}/info`, question)
      assert.isTrue(answer.text === spotMeta)
      assert.deepStrictEqual(live.seen(), [nodeInfo])
    }))

  it.live("is what the last one said when both refuse, the first of them twice", () =>
    Effect.gen(function*() {
      const live = yield* liveGateway({
        api: () => ({ status: 503, body: "{}" }),
        node: () => ({ status: 429, headers: { "retry-after": "7" }, body: `{"error":"slow down"}` })
      })
      const answer = yield* post(`${live.url}/info`, question)
      assert.strictEqual(answer.status, 503)
      assert.strictEqual(answer.text, "{}")
      assert.deepStrictEqual(live.seen().toSorted(), ["api POST /info", "api POST /info", nodeInfo])
    }))

  it.live("is not asked of anyone else when the venue's API refuses it for its shape", () =>
    Effect.gen(function*() {
      const live = yield* liveGateway({
        api: () => ({ status: 422, type: "text/plain", body: "Failed to deserialize" })
      })
      const answer = yield* post(`${live.url}/info`, question)
      assert.strictEqual(answer.status, 422)
      assert.strictEqual(answer.type, "text/plain")
      assert.strictEqual(answer.text, "Failed to deserialize")
      assert.deepStrictEqual(live.seen(), ["api POST /info"])
    }))
})

describe("candleSnapshot", () => {
  const body =
    `{"req": {"interval":"1h","coin":"kPEPE","startTime":1689544800000,"endTime":1689630000000},"type":"candleSnapshot"}`

  for (const name of ["kPEPE-1h", "ETH-1h", "BTC-15m-docs"]) {
    it.live(`comes back byte for byte: ${name}`, () =>
      Effect.gen(function*() {
        const rows = JsonParts.raw(Recordings.text(`candleSnapshot-${name}.json`), ["response"])
        const live = yield* shared({ api: () => ({ body: rows }) })
        const answer = yield* post(`${live.url}/info`, body)
        assert.strictEqual(answer.status, 200)
        assert.strictEqual(answer.text, rows)
        assert.deepStrictEqual(live.seen(), ["api POST /info"])
        assert.deepStrictEqual(live.api.seen.map((seen) => seen.body), [body])
      }))
  }

  it.live("is UnknownAsset where the venue answers 500 null, after one request", () =>
    Effect.gen(function*() {
      const live = yield* shared({ api: () => ({ status: 500, body: "null" }) })
      const answer = yield* post(`${live.url}/info`, body)
      assert.strictEqual(answer.status, 404)
      assert.strictEqual(answer.type, "application/problem+json")
      assert.include(answer.json, { _tag: "UnknownAsset", coin: "kPEPE" })
      assert.deepStrictEqual(live.seen(), ["api POST /info"])
    }))

  const limits = [{ status: 429, body: "null" }, { status: 429, body: "" }] as const
  for (const reply of limits) {
    it.live(`is refused with a description where the venue's API answers 429 with ${reply.body || "no body"}`, () =>
      Effect.gen(function*() {
        const live = yield* liveGateway({ api: () => reply })
        const answer = yield* post(`${live.url}/info`, body)
        assert.strictEqual(answer.status, 429)
        assert.include(answer.json, {
          _tag: "UpstreamRateLimited",
          detail: "trading-api responded with HTTP 429"
        })
        assert.deepStrictEqual(live.seen(), ["api POST /info"])
      }))
  }

  const refusals = [[3, { status: 503, body: "{}" }], [1, { status: 429, body: `"slow down"` }]] as const
  for (const [times, reply] of refusals) {
    it.live(`is asked of the venue's API only, also when that answers ${reply.status}`, () =>
      Effect.gen(function*() {
        const live = yield* liveGateway({ api: () => reply })
        const answer = yield* post(`${live.url}/info`, body)
        assert.strictEqual(answer.status, reply.status)
        assert.strictEqual(answer.text, reply.body)
        assert.deepStrictEqual(live.seen(), Array.from({ length: times }, () => "api POST /info"))
      }))
  }

  it.live("moves on to a second address of the venue's API", () =>
    Effect.gen(function*() {
      const dead = yield* refusingUrl
      const first = yield* liveGateway({ api: () => ({ body: "[]" }) })
      const live = yield* liveGateway({}, { TRIGATE_TRADING_API_URL: `${dead}/, ${first.api.url}/` })
      const answer = yield* post(`${live.url}/info`, body)
      assert.strictEqual(answer.text, "[]")
      assert.deepStrictEqual(first.seen(), ["api POST /info"])
      assert.deepStrictEqual(live.seen(), [])
    }))
})

describe("a query of another type", () => {
  const body = ` {"coin":"BTC","n":123456789012345678901234567890 , "type":"l2Book"}`
  const book = `{ "levels":[[],[]],"time":1.50 }`
  const weight = (metrics: string): number =>
    Number(/^trigate_upstream_weight_total\{upstream="trading-api"\} (\d+)$/mu.exec(metrics)?.[1] ?? 0)

  it.live("goes to the venue's API with the very bytes that came, and its answer comes back as it is", () =>
    Effect.gen(function*() {
      const live = yield* liveGateway({ api: () => ({ body: book }) })
      const answer = yield* post(`${live.url}/info`, body)
      assert.strictEqual(answer.status, 200)
      assert.strictEqual(answer.type, "application/json")
      assert.strictEqual(answer.text, book)
      assert.deepStrictEqual(live.seen(), ["api POST /info"])
      assert.deepStrictEqual(live.api.seen.map((seen) => seen.body), [body])
    }))

  it.live("goes to the node alone where a node was asked", () =>
    Effect.gen(function*() {
      const live = yield* shared({ node: () => ({ body: book }) })
      const answer = yield* post(`${live.url}/caller-key-1/info`, body)
      assert.strictEqual(answer.text, book)
      assert.deepStrictEqual(live.seen(), [nodeInfo])
      assert.deepStrictEqual(live.node.seen.map((seen) => seen.body), [body])
    }))

  it.live("goes to nobody else when the venue's API fails, and may be sent again there", () =>
    Effect.gen(function*() {
      const live = yield* liveGateway({ api: () => ({ status: 503, body: "{}" }) })
      const answer = yield* post(`${live.url}/info`, body)
      assert.strictEqual(answer.status, 503)
      assert.strictEqual(answer.text, "{}")
      assert.deepStrictEqual(live.seen(), Array.from({ length: 3 }, () => "api POST /info"))
    }))

  for (
    const [what, reply] of [
      ["500 null", { status: 500, body: "null" }],
      ["422", { status: 422, type: "text/plain", body: "Failed to deserialize" }]
    ] as const
  ) {
    it.live(`that is answered ${what} is answered so, after one request`, () =>
      Effect.gen(function*() {
        const live = yield* liveGateway({ api: () => reply })
        const answer = yield* post(`${live.url}/info`, body)
        assert.strictEqual(answer.status, reply.status)
        assert.strictEqual(answer.text, reply.body)
        assert.deepStrictEqual(live.seen(), ["api POST /info"])
      }))
  }

  it.live("is never kept unless it is polled", () =>
    Effect.gen(function*() {
      const live = yield* liveGateway({ api: () => ({ body: book }) })
      for (const _ of [1, 2, 3]) yield* post(`${live.url}/info`, `{"type":"predictedFundings"}`)
      assert.strictEqual(live.api.seen.length, 3)
    }))

  it.live("shares a call in flight with its like only", () =>
    Effect.gen(function*() {
      const live = yield* liveGateway({ api: () => ({ body: book }) })
      yield* Effect.forEach(
        ["BTC", "BTC", "ETH"],
        (coin) => post(`${live.url}/info`, `{"type":"l2Book","coin":"${coin}"}`),
        { concurrency: "unbounded" }
      )
      assert.include([2, 3], live.api.seen.length)
      assert.strictEqual(new Set(live.api.seen.map((seen) => seen.body)).size, 2)
    }))

  for (
    const [type, expected, label] of [
      ["l2Book", 2, "l2Book"],
      ["allMids", 2, "allMids"],
      ["clearinghouseState", 2, "clearinghouseState"],
      ["orderStatus", 2, "orderStatus"],
      ["spotClearinghouseState", 2, "spotClearinghouseState"],
      ["exchangeStatus", 2, "exchangeStatus"],
      ["userRole", 60, "userRole"],
      ["meta", 20, "meta"],
      ["constructor", 20, "info"],
      ["newToUs", 20, "info"]
    ] as const
  ) {
    it.live(`costs what the venue asks for it, under a known label: ${type}`, () =>
      Effect.gen(function*() {
        const live = yield* shared({ api: () => ({ body: "{}" }) })
        const before = weight((yield* get(`${live.url}/metrics`)).text)
        const members = { type, coin: "BTC", oid: 1, user: `0x${"0".repeat(40)}` }
        yield* post(`${live.url}/info`, JSON.stringify(members))
        const after = (yield* get(`${live.url}/metrics`)).text
        assert.strictEqual(weight(after) - before, expected)
        assert.include(after, `\ntrigate_operations_total{operation="${label}",outcome="ok"} `)
        if (label !== type) assert.notInclude(after, `operation="${type}"`)
      }))
  }

  it.live("is refused without a type, and a documented one is still checked", () =>
    Effect.gen(function*() {
      const live = yield* shared()
      for (
        const wrong of [
          "{}",
          "[]",
          `{"type":5}`,
          `{"type":""}`,
          `{"type":"__proto__"}`,
          `{"type":"l2 Book"}`,
          `{"type":"\\ud800"}`,
          `{"type":"candleSnapshot"}`,
          `{"type":"l2Book","coin":5}`,
          `{"type":"openOrders","user":"0x1"}`,
          `{"type":"a","type":"b"}`
        ]
      ) {
        const answer = yield* post(`${live.url}/info`, wrong)
        assert.strictEqual(answer.status, 400, wrong)
        assert.include(answer.json, { _tag: "InvalidRequest" })
      }
      const long = yield* post(`${live.url}/info`, `{"type":"${"a".repeat(1024 * 1024)}"}`)
      assert.strictEqual(long.status, 413)
      assert.deepStrictEqual(live.seen(), [])
    }))

  it.live("that is answered with more than 16 MiB is refused", () =>
    Effect.gen(function*() {
      const live = yield* liveGateway({ api: () => ({ body: `"${"a".repeat(16 * 1024 * 1024)}"` }) })
      const answer = yield* post(`${live.url}/info`, body)
      assert.strictEqual(answer.status, 502)
      assert.include(answer.json, { _tag: "UpstreamMalformed" })
      assert.deepStrictEqual(live.seen(), ["api POST /info"])
    }))

  it.live("is UnavailableOnNode where there is no address of the venue's API", () =>
    Effect.gen(function*() {
      const live = yield* shared({}, { TRIGATE_TRADING_API_URL: "" })
      const answer = yield* post(`${live.url}/info`, body)
      assert.strictEqual(answer.status, 501)
      assert.include(answer.json, { _tag: "UnavailableOnNode", operation: "l2Book" })
      assert.deepStrictEqual(live.seen(), [])
    }))

  it.live("is refused by a gateway that is told so", () =>
    Effect.gen(function*() {
      const live = yield* shared({ api: () => ({ body: book }) }, { TRIGATE_RELAY_INFO: "off" })
      const answer = yield* post(`${live.url}/info`, `{"type":"exchangeStatus"}`)
      assert.strictEqual(answer.status, 400)
      assert.strictEqual(
        JsonParts.value(answer.text, "errors", 0, "message"),
        `Expected one of ${Object.keys(infoOperations).join(", ")}`.slice(0, 240)
      )
      assert.deepStrictEqual(live.seen(), [])
      yield* post(`${live.url}/info`, body)
      assert.deepStrictEqual(live.seen(), ["api POST /info"])
    }))
})

describe("concurrent queries that differ in how a number is spelled", () => {
  const user = `0x${"ab".repeat(20)}`
  const queryOf = (oid: string) => `{"type":"orderStatus","user":"${user}","oid":${oid}}`
  const status = `{"status":"unknownOid"}`

  // requests on one connection are read in their order: when the last one is upstream, the others have been looked at
  const last = "9"
  const pipelined = (oids: ReadonlyArray<string>): string =>
    oids.map((oid, index) => {
      const body = queryOf(oid)
      const head = headOf("POST", "/info", [["content-type", "application/json"], ["content-length", `${body.length}`]])
      return (index === oids.length - 1 ? head : head.replace("connection: close\r\n", "")) + body
    }).join("")

  const cases: ReadonlyArray<readonly [what: string, asked: ReadonlyArray<string>, sent: ReadonlyArray<string>]> = [
    ["are two requests: 1.0 and 1", ["1.0", "1"], ["1", "1.0"]],
    ["are two requests: 1e0 and 1", ["1e0", "1"], ["1", "1e0"]],
    ["are one where the spelling is the same: 1 and 1", ["1", "1"], ["1"]],
    ["are one where the spelling is the same: 1.0 and 1.0", ["1.0", "1.0"], ["1.0"]]
  ]
  for (const [what, asked, sent] of cases) {
    it.live(what, () =>
      Effect.gen(function*() {
        const held = Promise.withResolvers<void>()
        const api = yield* rawUpstream((body) => {
          if (body === queryOf(last)) held.resolve()
          return { body: status, until: held.promise }
        })
        const live = yield* shared({}, { TRIGATE_TRADING_API_URL: api.url })
        const answers = yield* exchange(live.url, [pipelined([...asked, last])])
        assert.strictEqual(answers.status, 200)
        assert.strictEqual(answers.body.split(status).length - 1, asked.length + 1)
        assert.deepStrictEqual(api.bodies.toSorted(), [...sent, last].map(queryOf).toSorted())
      }))
  }
})
