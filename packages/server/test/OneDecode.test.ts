/** How often the text of a request and the text of an upstream's answer are parsed as JSON, route by route. */
import { assert, describe, it } from "@effect/vitest"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Recordings from "@trigate/testing/Recordings"
import type { Seen, StatusReply } from "@trigate/testing/RecordingUpstream"
import { rpcReply } from "@trigate/testing/RecordingUpstream"
import * as ScriptedTransport from "@trigate/testing/ScriptedTransport"
import { Info } from "@trigate/trading/Info"
import { TradingEvm } from "@trigate/trading/TradingEvm"
import * as TradingUpstream from "@trigate/trading/TradingUpstream"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { vi } from "vitest"
import { bigBlocks, bodyOf, delegate } from "./bodies.ts"
import type { Responses } from "./liveGateway.ts"
import { liveGateway } from "./liveGateway.ts"

interface Parses {
  /** How often the whole text was parsed. */
  readonly whole: number
  /** How often a string, an object or an array that is a part of it was. */
  readonly parts: number
}

const never: Parses = { whole: 0, parts: 0 }
const once: Parses = { whole: 1, parts: 0 }
/** The envelope is recognised from its text, and the result in it is parsed. */
const resultOnly: Parses = { whole: 0, parts: 1 }

// other tests of this process leave no parses behind, but a gateway parses more than these texts
const parsesOf = (parsed: ReadonlyArray<string>, texts: ReadonlyArray<string>): Parses => ({
  whole: parsed.filter((text) => texts.includes(text)).length,
  parts:
    parsed.filter((part) =>
      /^\s*["[{]./u.test(part) && texts.some((text) => part.length < text.length && text.includes(part))
    ).length
})

/** Every text that is parsed while an effect runs. */
const parsedIn = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => vi.spyOn(JSON, "parse")),
    (spy) => Effect.map(effect, (value) => ({ value, parsed: spy.mock.calls.map(([text]) => text) })),
    (spy) => Effect.sync(() => spy.mockRestore())
  )

/** Asks, and reads the answer as text only: the helpers of other tests parse it. */
const ask = (url: string, body: string | undefined) =>
  Effect.promise(async () => {
    const init = body === undefined ? {} : { method: "POST", body, headers: { "content-type": "application/json" } }
    const response = await fetch(url, init)
    return { status: response.status, text: await response.text() }
  })

interface Route {
  readonly what: string
  readonly path: string
  /** None for a GET. */
  readonly body?: (now: number) => string
  readonly upstream: keyof Responses
  readonly respond: (request: Seen) => StatusReply
  readonly answer: Parses
  /** Of the same question and its answer once more, where that comes from the cache. */
  readonly repeated?: { readonly request: Parses; readonly answer: Parses }
}

const ok = `{"status":"ok","response":{"type":"default"}}`
const address = "EQClb6WL4TgcNsmu7KdNii5mw330v-k_cl6jCKyPj9pWNfJz"
const account = "0x2222222222222222222222222222222222222222"
const hash = `0x${"ab".repeat(32)}`
const hour = 3_600_000
// a window that is closed and that the venue still keeps, so that its bars are cached
const candleQuery = (now: number) => {
  const startTime = now - (now % hour) - 48 * hour
  const req = `{"coin":"ETH","interval":"1h","startTime":${startTime},"endTime":${startTime + 2 * hour - 1}}`
  return `{"type":"candleSnapshot","req":${req}}`
}
const bar = (t: number) =>
  `{"t":${t},"T":${t + hour - 1},"s":"ETH","i":"1h","o":"1.0","c":"1.5","h":"2.0","l":"0.5","v":"10.0","n":3}`
const candles = ({ body }: Seen) => {
  const start = Number(/"startTime":(?<start>\d+)/u.exec(body)?.groups?.["start"])
  return { body: `[${bar(start)},${bar(start + hour)}]` }
}
const spotMeta = Recordings.text("spotMeta-testnet-full.json")
const receipt = JsonParts.raw(
  JsonParts.rows(Recordings.text("l2-op-stack.json"), ["receipts"])[0] ?? "",
  ["response", "result"]
)
const call = (method: string, params: string) =>
  `{"jsonrpc":"2.0","id":"the caller's","method":"${method}","params":${params}}`
// a metadata URI of this scheme is never fetched
const token = JsonParts.raw(Recordings.text("ton-getTokenData-usdt.json"), ["body"]).replaceAll("https://", "http://")
const tokens = (result: string) => () => ({ body: `{"ok":true,"result":${result},"@extra":"1:2:3"}` })

const routes: ReadonlyArray<Route> = [
  {
    what: "POST /exchange with an L1 action",
    path: "/exchange",
    body: (now) => bodyOf(now, bigBlocks),
    upstream: "api",
    respond: () => ({ body: ok }),
    answer: once
  },
  {
    what: "POST /exchange with a user-signed action",
    path: "/exchange",
    body: (now) => bodyOf(now, delegate(now)),
    upstream: "api",
    respond: () => ({ body: ok }),
    answer: once
  },
  {
    what: "POST /info candleSnapshot",
    path: "/info",
    body: candleQuery,
    upstream: "api",
    respond: candles,
    // its bars are recognised in its text and cached as bytes
    answer: never,
    repeated: { request: once, answer: never }
  },
  {
    what: "POST /info spotMeta",
    path: "/info",
    body: () => `{"type":"spotMeta"}`,
    upstream: "api",
    respond: () => ({ body: spotMeta }),
    answer: once,
    // a query without parameters is kept as it was read
    repeated: { request: never, answer: never }
  },
  {
    what: "POST /info of another type",
    path: "/info",
    body: () => `{"type":"spotMetaAndAssetCtxs"}`,
    upstream: "api",
    respond: () => ({ body: `[{"tokens":[]},[]]` }),
    answer: once
  },
  {
    what: "POST /evm eth_gasPrice",
    path: "/evm",
    body: () => call("eth_gasPrice", "[]"),
    upstream: "node",
    respond: rpcReply(`"0x1"`),
    answer: resultOnly
  },
  {
    what: "POST /evm eth_getStorageAt",
    path: "/evm",
    body: () => call("eth_getStorageAt", `["${account}","0x0","latest"]`),
    upstream: "node",
    respond: rpcReply(`"${hash}"`),
    // a string without escapes needs no parser
    answer: never
  },
  {
    what: "POST /l2 eth_getTransactionReceipt",
    path: "/l2",
    body: () => call("eth_getTransactionReceipt", `["${hash}"]`),
    upstream: "layer2",
    respond: rpcReply(receipt.replace(/("transactionHash":\s*)"0x[0-9a-f]{64}"/u, `$1"${hash}"`)),
    // recognised from its text
    answer: never
  },
  {
    what: "GET /api/v2/getMasterchainInfo",
    path: "/api/v2/getMasterchainInfo",
    upstream: "tokens",
    respond: tokens(`{"last":{"seqno":1}}`),
    answer: once
  },
  {
    what: "GET /api/v2/getTokenData",
    path: `/api/v2/getTokenData?address=${address}`,
    upstream: "tokens",
    respond: () => ({ body: token }),
    answer: once
  },
  {
    what: "POST /api/v2/jsonRPC packAddress",
    path: "/api/v2/jsonRPC",
    body: () => call("packAddress", `{"address":"${address}"}`),
    upstream: "tokens",
    respond: tokens(`"${address}"`),
    answer: once,
    // what is cached is the server's envelope, which is read to write the caller's
    repeated: { request: once, answer: once }
  },
  {
    what: "POST /api/v2/sendBoc",
    path: "/api/v2/sendBoc",
    body: () => `{"boc":"te6cckEBAQEA"}`,
    upstream: "tokens",
    respond: tokens(`{"@type":"ok"}`),
    answer: once
  }
]

describe("a request and an answer are parsed once at most", () => {
  for (const { answer, body, path, repeated, respond, upstream, what } of routes) {
    it.live(what, () =>
      Effect.gen(function*() {
        const answers: Array<string> = []
        const live = yield* liveGateway({
          [upstream]: (request: Seen) => {
            const reply = respond(request)
            answers.push(String(reply.body))
            return reply
          }
        })
        const question = body?.(yield* Clock.currentTimeMillis)
        const questions = question === undefined ? [] : [question]
        const parsesWhile = Effect.gen(function*() {
          const { parsed, value } = yield* parsedIn(ask(`${live.url}${path}`, question))
          assert.strictEqual(value.status, 200, value.text)
          return { request: parsesOf(parsed, questions), answer: parsesOf(parsed, answers) }
        })
        const request = question === undefined ? never : once
        assert.deepStrictEqual(yield* parsesWhile, { request, answer })
        assert.strictEqual(answers.length, 1)
        if (repeated === undefined) return
        assert.deepStrictEqual(yield* parsesWhile, repeated)
        assert.strictEqual(answers.length, 1)
      }))
  }
})

describe("an answer to a typed call of an embedded service is parsed once", () => {
  it.effect("Info.spotMeta", () =>
    Effect.gen(function*() {
      const { layer, sent } = ScriptedTransport.make(() => ScriptedTransport.response(200, spotMeta))
      yield* Effect.gen(function*() {
        const info = yield* Info
        const first = yield* parsedIn(info.spotMeta())
        assert.deepStrictEqual(parsesOf(first.parsed, [spotMeta]), once)
      }).pipe(Effect.provide(Layer.provide(TradingUpstream.layerInfo({ api: ["http://api.test"] }), layer)))
      assert.strictEqual(sent.length, 1)
    }))

  it.effect("TradingEvm.getStorageAt", () =>
    Effect.gen(function*() {
      const answers: Array<string> = []
      const { layer } = ScriptedTransport.make(({ body }) => {
        const id = JsonParts.raw(body, ["id"])
        const text = `{"jsonrpc":"2.0","id":${id},"result":"${hash}"}`
        answers.push(text)
        return ScriptedTransport.response(200, text)
      })
      yield* Effect.gen(function*() {
        const evm = yield* TradingEvm
        const { parsed } = yield* parsedIn(evm.getStorageAt({ address: account, slot: "0x0" }))
        assert.deepStrictEqual(parsesOf(parsed, answers), resultOnly)
      }).pipe(Effect.provide(Layer.provide(TradingUpstream.layerEvm({ node: ["http://node.test"] }), layer)))
      assert.strictEqual(answers.length, 1)
    }))
})
