import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import {
  ChainNotConfigured,
  unwrapReason,
  UpstreamForbidden,
  UpstreamMalformed,
  UpstreamRateLimited,
  UpstreamUnavailable
} from "@trigate/domain/errors/GatewayError"
import { getTransactionReceipt } from "@trigate/domain/evm/Layer2Operations"
import { Layer2 } from "@trigate/evm/Layer2"
import * as Layer2Chain from "@trigate/evm/Layer2Chain"
import * as Layer2Upstream from "@trigate/evm/Layer2Upstream"
import * as EvmUpstream from "@trigate/evm/unstable/EvmUpstream"
import { flipReason } from "@trigate/testing/Reason"
import type { Sent } from "@trigate/testing/ScriptedTransport"
import * as ScriptedTransport from "@trigate/testing/ScriptedTransport"
import { response } from "@trigate/testing/ScriptedTransport"
import * as Pipeline from "@trigate/upstream/Pipeline"
import { TransportError } from "@trigate/upstream/transport/HttpTransport"
import * as HttpTransportUndici from "@trigate/upstream/transport/HttpTransportUndici"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as TestClock from "effect/testing/TestClock"
import * as Http from "node:http"
import anvil from "./fixtures/l2-anvil.json" with { type: "json" }
import errors from "./fixtures/l2-rpc-errors.json" with { type: "json" }
import { hash, otherHash, receipt, wireText } from "./receipts.ts"

const base = "https://node.example/SECRET"

const idOf = ({ body }: Sent): number => Number(/"id":(\d+)/u.exec(body)?.[1])

const result = (sent: Sent, text: string) => response(200, `{"jsonrpc":"2.0","id":${idOf(sent)},"result":${text}}`)

/** The layer 2 over a transport that answers every request the same. */
const answering = (react: (sent: Sent) => ReturnType<typeof response>, addresses: ReadonlyArray<string> = [base]) => {
  const { layer: calls, sent } = ScriptedTransport.make((request) => Effect.succeed(react(request)))
  return { sent, layer: Layer2Upstream.layerNoDeps({ addresses }).pipe(Layer.provide(calls)) }
}

const ask = Layer2.use((layer2) => layer2.getTransactionReceipt({ hash }))

describe("what goes out", () => {
  it.effect("is a POST of the envelope to the base address itself", () =>
    Effect.gen(function*() {
      const { layer, sent } = answering((request) => result(request, wireText(receipt)), [`${base}/`])
      assert.deepStrictEqual(yield* Effect.provide(ask, layer), receipt)
      assert.deepStrictEqual(sent, [{
        method: "POST",
        url: base,
        headers: { accept: "application/json", "content-type": "application/json" },
        body: `{"jsonrpc":"2.0","id":1,"method":"eth_getTransactionReceipt","params":["${hash}"]}`
      }])
    }))

  it.effect("has an id of ours, a new one for each call, and the caller's params as they came", () =>
    Effect.gen(function*() {
      const { layer, sent } = answering((request) => result(request, "null"))
      yield* Effect.gen(function*() {
        const layer2 = yield* Layer2
        yield* layer2.getTransactionReceipt({ hash })
        yield* layer2.relay({
          operation: getTransactionReceipt,
          params: Json.strict(`[ "${otherHash}" ]`),
          surface: "node"
        })
        yield* layer2.getTransactionReceipt({ hash })
      }).pipe(Effect.provide(layer))
      assert.deepStrictEqual(sent.map(({ body }) => body), [
        `{"jsonrpc":"2.0","id":1,"method":"eth_getTransactionReceipt","params":["${hash}"]}`,
        `{"jsonrpc":"2.0","id":2,"method":"eth_getTransactionReceipt","params":[ "${otherHash}" ]}`,
        `{"jsonrpc":"2.0","id":3,"method":"eth_getTransactionReceipt","params":["${hash}"]}`
      ])
    }))

  it.effect("goes to the next address when one fails", () =>
    Effect.gen(function*() {
      const { layer: calls, sent } = ScriptedTransport.make((request) =>
        request.url === "http://a/K"
          ? Effect.fail(new TransportError({ sent: "no", reason: "Connect", detail: "ECONNREFUSED" }))
          : Effect.succeed(result(request, "null"))
      )
      const layer = Layer2Upstream.layerNoDeps({ addresses: ["http://a/K", "http://b/K"] }).pipe(Layer.provide(calls))
      assert.isNull(yield* Effect.provide(ask, layer))
      assert.deepStrictEqual(sent.map(({ url }) => url), ["http://a/K", "http://b/K"])
      assert.strictEqual(sent[0]?.body, sent[1]?.body)
    }))

  it.effect("a receipt that is asked for in batches is kept once it is final", () =>
    Effect.gen(function*() {
      const { layer: calls, sent } = ScriptedTransport.make((request) => {
        const isBlock = request.body.includes("eth_getBlockByNumber")
        const { blockHash, blockNumber } = receipt
        const block = `{"number":"0x${blockNumber.toString(16)}","hash":"${blockHash}","extraData":"0x"}`
        return Effect.delay(Effect.succeed(result(request, isBlock ? block : wireText(receipt))), "10 millis")
      })
      const call = Layer2.use((layer2) =>
        layer2.relay({ operation: getTransactionReceipt, params: Json.strict(`["${hash}"]`), surface: "gateway" })
      )
      const asked = Effect.gen(function*() {
        const fiber = yield* Effect.forkChild(EvmUpstream.batched(call), { startImmediately: true })
        yield* TestClock.adjust("10 millis")
        const { age } = yield* Fiber.join(fiber)
        // what is looked up about the receipt has no caller who waits for it
        yield* TestClock.adjust("20 millis")
        return age
      })
      const ages = Effect.all([asked, asked, asked]).pipe(
        Effect.provide(Layer2Upstream.layerNoDeps({ addresses: [base] }).pipe(Layer.provide(calls)))
      )
      assert.deepStrictEqual(yield* ages, [undefined, undefined, 0])
      assert.deepStrictEqual(sent.map(({ body }) => /"method":"([^"]+)"/u.exec(body)?.[1]), [
        "eth_getTransactionReceipt",
        "eth_getTransactionReceipt",
        "eth_getBlockByNumber",
        "eth_getBlockByNumber"
      ])
    }))

  it.live("reaches a real socket byte for byte", () =>
    Effect.gen(function*() {
      const seen: Array<readonly [method: string | undefined, url: string | undefined, body: string]> = []
      const server = Http.createServer((request, response) => {
        let body = ""
        request.setEncoding("utf8").on("data", (chunk: string) => body += chunk).on("end", () => {
          seen.push([request.method, request.url, body])
          response.setHeader("content-type", "application/json").end(`{"jsonrpc":"2.0","id":1,"result":null}`)
        })
      })
      yield* Effect.acquireRelease(
        Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
        () => Effect.sync(() => server.close())
      )
      const address = server.address()
      const port = address !== null && typeof address === "object" ? address.port : 0
      const calls = Pipeline.layer().pipe(Layer.provide(HttpTransportUndici.layer()))
      const layer = Layer2Upstream.layerNoDeps({ addresses: [`http://127.0.0.1:${port}/KEY`] }).pipe(
        Layer.provide(calls)
      )
      assert.isNull(yield* Effect.provide(ask, layer))
      assert.deepStrictEqual(seen, [
        ["POST", "/KEY", `{"jsonrpc":"2.0","id":1,"method":"eth_getTransactionReceipt","params":["${hash}"]}`]
      ])
    }).pipe(Effect.scoped))
})

describe("what comes back", () => {
  const sessions = anvil.records.flatMap(({ body, name, request }) =>
    "method" in request && request.method === "eth_getTransactionReceipt" && Predicate.isObject(body) && "id" in body
      ? [{ name, text: JSON.stringify(body), result: "result" in body ? JSON.stringify(body.result) : undefined }]
      : []
  )

  it("replays every recorded receipt call", () => {
    assert.deepStrictEqual(sessions.map(({ name }) => name), [
      "contract creation",
      "call with 3 logs",
      "failed transaction (status 0x0)",
      "unknown hash",
      "pending transaction",
      "same transaction, mined",
      "same transaction after a reorganisation of depth 1",
      "no params",
      "short hash",
      "hash that is not hex",
      "hash with upper-case hex",
      "params as an object"
    ])
  })

  it.effect.each(sessions)("recorded: $name", ({ result, text }) =>
    Effect.gen(function*() {
      const { layer } = answering(() => response(200, text))
      const outcome = yield* Effect.result(Effect.provide(ask, layer))
      if (result === undefined) {
        assert.strictEqual(
          outcome._tag === "Failure" ? unwrapReason(outcome.failure)._tag : outcome._tag,
          "InvalidRequest"
        )
      } else {
        assert.isTrue(outcome._tag === "Success")
        if (outcome._tag === "Success") {
          assert.deepStrictEqual(JSON.parse(wireText(outcome.success)), JSON.parse(result))
        }
      }
    }))

  const bodyRows: ReadonlyArray<readonly [tag: string, detail: string]> = [
    ["UpstreamUnavailable", "layer2 returned error 3: execution reverted"],
    ["UnsupportedMethod", "layer2 returned error -32601: Method not found"],
    ["InvalidRequest", "layer2 returned error -32600: Invalid request"],
    ["UnsupportedMethod", "layer2 returned error -32004: Method eth_noSuch is not supported"],
    [
      "InvalidRequest",
      "layer2 returned error -32700: Parse error: Expected property name or '}' in JSON at position 1 (line 1 column 2)"
    ],
    [
      "UpstreamMalformed",
      "layer2 sent a response that does not decode: The response has a different id than the request"
    ],
    [
      "UpstreamMalformed",
      "layer2 sent a response that does not decode: The response has a different id than the request"
    ]
  ]

  it("has a row for every recorded error body", () => {
    assert.strictEqual(errors.bodies.length, bodyRows.length)
  })

  it.effect.each(errors.bodies.map((body, index) => ({ ...body, row: bodyRows[index] })))(
    "$from: $row.0",
    ({ body, row }) =>
      Effect.gen(function*() {
        const { layer } = answering(() => response(200, JSON.stringify(body)))
        const error = yield* flipReason(Effect.provide(ask, layer))
        assert.deepStrictEqual<ReadonlyArray<string | undefined> | undefined>([error._tag, error.detail], row)
      })
  )

  const codeRows: { readonly [code: number]: string } = {
    [-32700]: "InvalidRequest",
    [-32600]: "InvalidRequest",
    [-32601]: "UnsupportedMethod",
    [-32602]: "InvalidRequest",
    [-32603]: "UpstreamUnavailable",
    [-32000]: "UpstreamUnavailable",
    [-32001]: "UpstreamUnavailable",
    [-32002]: "UpstreamUnavailable",
    [-32003]: "UpstreamUnavailable",
    [-32004]: "UnsupportedMethod",
    [-32005]: "UpstreamRateLimited",
    [-32006]: "UpstreamUnavailable",
    [3]: "UpstreamUnavailable",
    [-32612]: "UpstreamUnavailable"
  }

  for (const status of [200, 400, 500]) {
    it.effect.each(errors.codes)(`code $code with HTTP ${status}`, ({ code, name }) =>
      Effect.gen(function*() {
        const { layer } = answering(() =>
          response(status, `{"jsonrpc":"2.0","id":1,"error":{"code":${code},"message":"${name}"}}`)
        )
        const error = yield* flipReason(Effect.provide(ask, layer))
        assert.strictEqual(error._tag, codeRows[code])
        assert.include(error.detail, `${code}: ${name}`)
      }))
  }

  it.effect.each(
    [
      ["another id", `{"jsonrpc":"2.0","id":2,"result":null}`],
      ["the id as a string", `{"jsonrpc":"2.0","id":"1","result":null}`],
      ["no id", `{"jsonrpc":"2.0","result":null}`],
      ["a null id on a result", `{"jsonrpc":"2.0","id":null,"result":null}`],
      ["both result and error", `{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}}`],
      ["neither result nor error", `{"jsonrpc":"2.0","id":1}`],
      ["another error's id", `{"jsonrpc":"2.0","id":9,"error":{"code":-32000,"message":""}}`],
      ["an array", `[{"jsonrpc":"2.0","id":1,"result":null}]`],
      ["a string", `"ok"`],
      ["half a body", `{"jsonrpc":"2.0","id":1,"res`],
      ["a receipt without its status", `{"jsonrpc":"2.0","id":1,"result":{"transactionHash":"${hash}"}}`],
      ["a receipt as text", `{"jsonrpc":"2.0","id":1,"result":"null"}`],
      ["HTML", "<html>busy</html>"]
    ] as const
  )("%s is malformed", ([, text]) =>
    Effect.gen(function*() {
      const { layer } = answering(() => response(200, text))
      const error = yield* flipReason(Effect.provide(ask, layer))
      assert.instanceOf(error, UpstreamMalformed)
      assert.strictEqual(error.upstream, "layer2")
    }))

  it.effect("a result beside a null error is a result", () =>
    Effect.gen(function*() {
      const { layer } = answering(() => response(200, `{"jsonrpc":"2.0","id":1,"result":null,"error":null}`))
      assert.isNull(yield* Effect.provide(ask, layer))
    }))

  it.effect.each(
    [
      [400, "InvalidRequest"],
      [401, "UpstreamForbidden"],
      [403, "UpstreamForbidden"],
      [404, "UpstreamUnavailable"],
      [413, "UpstreamUnavailable"],
      [499, "UpstreamUnavailable"],
      [500, "UpstreamUnavailable"],
      [502, "UpstreamUnavailable"],
      [503, "UpstreamUnavailable"],
      [504, "UpstreamUnavailable"]
    ] as const
  )("HTTP %i that is no JSON-RPC is %s", ([status, tag]) =>
    Effect.gen(function*() {
      const { layer } = answering(() => response(status, `{"message":"no such plan"}`))
      const error = yield* flipReason(Effect.provide(ask, layer))
      assert.strictEqual(error._tag, tag)
      assert.strictEqual(error.detail, `layer2 responded with HTTP ${status}: {"message":"no such plan"}`)
    }))

  it.effect("HTTP 429 is a reached rate limit whatever its body, with the time to wait", () =>
    Effect.gen(function*() {
      const { layer } = answering(() =>
        response(429, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"slow down"}}`, { "retry-after": "7" })
      )
      const error = yield* flipReason(Effect.provide(ask, layer))
      assert.instanceOf(error, UpstreamRateLimited)
      assert.strictEqual(error.retryAfter, 7)
    }))

  const problem = (status: number, members: string) =>
    answering(() => response(status, `{"status":${status},${members}}`, { "content-type": "application/problem+json" }))

  it.effect("a problem document of a gateway upstream comes back as the error it was", () =>
    Effect.gen(function*() {
      const { layer } = problem(
        501,
        `"type":"urn:trigate:problem:chain-not-configured","title":"Chain not configured",` +
          `"_tag":"ChainNotConfigured","chain":"layer2"`
      )
      const error = yield* flipReason(Effect.provide(ask, layer))
      assert.instanceOf(error, ChainNotConfigured)
    }))

  it.effect("the refusal of this program's key by a gateway upstream is no refusal of this program's callers", () =>
    Effect.gen(function*() {
      const { layer } = problem(
        401,
        `"type":"urn:trigate:problem:unauthorized","title":"Unauthorized","_tag":"Unauthorized"`
      )
      const error = yield* flipReason(Effect.provide(ask, layer))
      assert.instanceOf(error, UpstreamForbidden)
      assert.match(error.detail ?? "", /^layer2 responded with HTTP 401: /u)
    }))

  it.effect("an error of ours that travelled through a gateway comes back as itself", () =>
    Effect.gen(function*() {
      const data = `{"type":"urn:trigate:problem:chain-not-configured","title":"Chain not configured","status":501,` +
        `"_tag":"ChainNotConfigured","chain":"layer2"}`
      const { layer } = answering(() =>
        response(200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32004,"message":"x","data":${data}}}`)
      )
      const error = yield* flipReason(Effect.provide(ask, layer))
      assert.instanceOf(error, ChainNotConfigured)
    }))

  it.effect("no error text holds an address", () =>
    Effect.gen(function*() {
      const { layer: calls } = ScriptedTransport.make(() =>
        Effect.fail(new TransportError({ sent: "maybe", reason: "Broken", detail: "ECONNRESET" }))
      )
      const layer = Layer2Upstream.layerNoDeps({ addresses: [base] }).pipe(Layer.provide(calls))
      const error = yield* flipReason(Effect.provide(ask, layer))
      assert.instanceOf(error, UpstreamUnavailable)
      assert.notInclude(JSON.stringify(error), "SECRET")
    }))
})

class First extends Context.Service<First, Layer2["Service"]>()("@trigate/evm/test/First") {}
class Second extends Context.Service<Second, Layer2["Service"]>()("@trigate/evm/test/Second") {}

describe("addresses", () => {
  it.effect("two layer 2s in one program keep their own addresses and ids", () =>
    Effect.gen(function*() {
      const { layer: calls, sent } = ScriptedTransport.make((request) =>
        Effect.succeed(
          result(request, request.url.startsWith("http://first") ? wireText(receipt) : "null")
        )
      )
      const both = Layer.merge(
        Layer.effect(First, Layer2).pipe(Layer.provide(Layer2Upstream.layerNoDeps({ addresses: ["http://first/K"] }))),
        Layer.effect(Second, Layer2).pipe(Layer.provide(Layer2Upstream.layerNoDeps({ addresses: ["http://second/K"] })))
      ).pipe(Layer.provide(calls))
      const answers = yield* Effect.gen(function*() {
        const first = yield* First
        const second = yield* Second
        return [yield* first.getTransactionReceipt({ hash }), yield* second.getTransactionReceipt({ hash })]
      }).pipe(Effect.provide(both))
      assert.deepStrictEqual(answers, [receipt, null])
      assert.deepStrictEqual(sent.map((request) => [request.url, idOf(request)]), [
        ["http://first/K", 1],
        ["http://second/K", 1]
      ])
    }))

  const configured = (env: { readonly [name: string]: string }) => {
    const { layer: calls, sent } = ScriptedTransport.make((request) => Effect.succeed(result(request, "null")))
    const layer = Layer.unwrap(Effect.map(Layer2Chain.config, Layer2Upstream.layerNoDeps)).pipe(
      Layer.provide(calls),
      Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(env)))
    )
    return { sent, layer }
  }

  it.effect("come from TRIGATE_LAYER2_URL, the first one first", () =>
    Effect.gen(function*() {
      const { layer, sent } = configured({ TRIGATE_LAYER2_URL: "http://a.example/KEY/ , http://b.example/KEY" })
      assert.isNull(yield* Effect.provide(ask, layer))
      assert.deepStrictEqual(sent.map(({ url }) => url), ["http://a.example/KEY"])
    }))

  it.effect("none configured is ChainNotConfigured before anything is sent", () =>
    Effect.gen(function*() {
      const { layer, sent } = configured({})
      const error = yield* flipReason(Effect.provide(ask, layer))
      assert.instanceOf(error, ChainNotConfigured)
      assert.strictEqual(error.chain, "layer2")
      assert.strictEqual(sent.length, 0)
    }))

  it.effect("a wrong one stops the layer without being shown", () =>
    Effect.gen(function*() {
      const { layer } = configured({ TRIGATE_LAYER2_URL: "ftp://a.example/SECRET" })
      const error = yield* flipReason(Effect.provide(ask, layer))
      assert.strictEqual(error._tag, "ConfigError")
      assert.include(String(error), "TRIGATE_LAYER2_URL")
      assert.notInclude(String(error), "SECRET")
    }))
})
