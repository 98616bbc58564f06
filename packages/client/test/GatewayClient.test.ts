import { assert, describe, it } from "@effect/vitest"
import { GatewayApi } from "@trigate/api/GatewayApi"
import type * as GatewayClient from "@trigate/client/GatewayClient"
import { resendAdvice } from "@trigate/domain/actions/Action"
import { tokenRpcOperations } from "@trigate/domain/tokens/TokenOperations"
import { flipReason } from "@trigate/testing/Reason"
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Tracer from "effect/Tracer"
import { methods, nonce, signed } from "./methods.ts"
import type { Sent } from "./scripted.ts"
import { baseUrl, idOf, withClient } from "./scripted.ts"

const key = "secret-key_1"

const methodNames = (client: object): ReadonlyArray<string> =>
  Object.entries(client).flatMap(([group, calls]: [string, object]) =>
    Object.keys(calls).map((name) => `${group}.${name}`)
  )

describe("methods", () => {
  it.effect("are all in the table of these tests", () =>
    withClient(
      () => "refused",
      (client) => Effect.sync(() => assert.sameMembers([...methodNames(client)], Object.keys(methods)))
    ))

  for (const [name, method] of Object.entries(methods)) {
    const answer = () => ({ status: method.status ?? 200, body: method.answer })

    it.effect(`${name} sends exactly its request and reads its answer`, () =>
      withClient(answer, (client, sent) =>
        Effect.gen(function*() {
          yield* TestClock.setTime(100_000)
          assert.deepStrictEqual(yield* method.call(client), method.result)
          assert.deepStrictEqual(sent, [{ ...method.sent, url: `${baseUrl}${method.path}` }])
        })))

    it.effect(`${name} goes ${method.keyed ? "behind" : "without"} the endpoint key, which no span tells`, () =>
      withClient(answer, (client, sent) =>
        Effect.gen(function*() {
          const spans: Array<Tracer.NativeSpan> = []
          const tracer = Tracer.make({
            span: (options) => {
              const span = new Tracer.NativeSpan(options)
              spans.push(span)
              return span
            }
          })
          yield* Effect.provideService(method.call(client), Tracer.Tracer, tracer)
          const path = method.keyed ? `/${key}${method.path}` : method.path
          assert.deepStrictEqual(sent, [{ ...method.sent, url: `${baseUrl}${path}` }])
          // a stream has no span of its own
          if (!method.resumes) assert.isAbove(spans.length, 0)
          for (const { attributes, name } of spans) {
            assert.notInclude(JSON.stringify([name, Array.from(attributes)]), key)
          }
        }), { endpointKey: key }))
  }

  it("go to routes of the contract, with and without a key", () => {
    const routes = new Set<string>()
    HttpApi.reflect(GatewayApi, {
      onGroup: () => {},
      onEndpoint: ({ endpoint }) => {
        routes.add(`${endpoint.method} ${endpoint.path}`)
      }
    })
    for (const { keyed, path, sent } of Object.values(methods)) {
      const plain = (path.split("?")[0] ?? "").replace(/\/0x[0-9a-f]{64}(?=\/)/u, "/:id")
        .replace("/actions/0xab", "/actions/:id")
        .replace(/\/desk(?=\/|$)/u, "/:name")
        .replace(/(?<=\/candles)\/[^/]+\/[^/]+$/u, "/:coin/:interval")
      assert.include([...routes], `${sent.method} ${plain}`)
      if (keyed) assert.include([...routes], `${sent.method} /:endpointKey${plain}`)
    }
  })

  it.effect("escape an endpoint key that is no plain segment", () =>
    withClient(() => ({ body: "{}" }), (client, sent) =>
      Effect.gen(function*() {
        yield* Effect.ignore(client.info.spotMeta())
        assert.strictEqual(sent[0]?.url, `${baseUrl}/a%2F..%2Fb%3Fc/info`)
      }), { endpointKey: "a/../b?c" }))

  for (const url of ["http://127.0.0.1:8080", "http://127.0.0.1:8080/", new URL("http://127.0.0.1:8080")]) {
    it.effect(`are found below the base URL ${JSON.stringify(url)} given as ${typeof url}`, () =>
      withClient(() => ({ body: "{}" }), (client, sent) =>
        Effect.gen(function*() {
          yield* Effect.ignore(client.info.spotMeta())
          assert.deepStrictEqual(sent.map((one) => one.url), ["http://127.0.0.1:8080/info"])
        }), { baseUrl: url }))
  }
})

describe("bars that come as a stream", () => {
  const bar = (at: number) =>
    `{"t":${at},"T":${at + 59_999},"s":"@107","i":"1m","o":"1.0","c":"2.50","h":"3","l":"0.5","v":"0.0","n":0}\n`

  it.effect("are read line by line, and a line that is no bar ends them", () =>
    withClient(
      () => ({ body: `${bar(0)}${bar(60_000)}{"t":120000}\n${bar(180_000)}` }),
      ({ candles }, sent) =>
        Effect.gen(function*() {
          const seen: Array<number> = []
          const bars = Stream.tap(
            candles.bars({ coin: "@107", interval: "1m" }),
            ({ t }) => Effect.sync(() => seen.push(t))
          )
          const failed = yield* flipReason(Stream.runDrain(bars))
          assert.strictEqual(failed._tag, "UpstreamMalformed")
          assert.deepStrictEqual([seen, sent[0]?.url], [[0, 60_000], `${baseUrl}/candles/%40107/1m?format=ndjson`])
        })
    ))

  it.effect("end with an answer that breaks off", () =>
    withClient(() => "half a body", ({ candles }) =>
      Effect.gen(function*() {
        const failed = yield* flipReason(Stream.runDrain(candles.bars({ coin: "BTC", interval: "1d", from: 5 })))
        assert.deepStrictEqual([failed._tag, failed.message], [
          "UpstreamUnavailable",
          "The gateway closed the connection during its response"
        ])
      })))
})

describe("JSON-RPC ids", () => {
  const echo = (result: string) => (sent: Sent) => ({ body: `{"jsonrpc":"2.0","id":${idOf(sent)},"result":${result}}` })

  it.effect("differ between calls of a route", () =>
    withClient(echo(`"0x1"`), ({ evm }, sent) =>
      Effect.gen(function*() {
        yield* Effect.all([evm.gasPrice(), evm.bigBlockGasPrice(), evm.gasPrice()])
        assert.deepStrictEqual(sent.map(idOf), ["1", "2", "3"])
      })))

  it.effect("have to come back", () =>
    withClient(() => ({ body: `{"jsonrpc":"2.0","id":7,"result":"0x1"}` }), ({ evm }) =>
      Effect.gen(function*() {
        const error = yield* flipReason(evm.gasPrice())
        assert.strictEqual(error._tag, "UpstreamMalformed")
      })))
})

describe("what is refused before anything is sent", () => {
  const nothing = () => "refused" as const
  const bad = "EQDXZ2c5LnA12Eum-DlguTmfYkMOvNeFCh4rBD0tgmwjcFI_"

  it.effect("a token-chain address with a wrong checksum, by every method that takes one", () =>
    withClient(nothing, ({ tokens }, sent) =>
      Effect.gen(function*() {
        for (
          const call of [
            tokens.getTokenData({ address: bad }),
            tokens.getTokenContract({ address: bad }),
            tokens.packAddress({ address: bad }),
            tokens.unpackAddress({ address: bad }),
            tokens.detectAddress({ address: bad }),
            tokens.call(tokenRpcOperations.getAddressBalance, { address: bad })
          ]
        ) {
          const error = yield* flipReason(Effect.asVoid(call))
          assert.strictEqual(error._tag, "InvalidAddress")
          if (error._tag === "InvalidAddress") {
            assert.strictEqual(error.address, bad)
            assert.strictEqual(error.reason, "checksum differs")
          }
        }
        assert.deepStrictEqual(sent, [])
      })))

  it.effect("numbers outside their ranges, all of them with their paths", () =>
    withClient(nothing, ({ exchange, info }, sent) =>
      Effect.gen(function*() {
        const window = yield* flipReason(info.candleSnapshot({ coin: "", interval: "1m", startTime: -1 }))
        assert.strictEqual(window._tag, "InvalidRequest")
        if (window._tag === "InvalidRequest") {
          assert.deepStrictEqual(window.errors.map(({ path }) => path), [["coin"], ["startTime"]])
        }
        const action = yield* flipReason(exchange.submit({ ...signed, nonce: -1 }))
        assert.strictEqual(action._tag, "InvalidRequest")
        if (action._tag === "InvalidRequest") assert.deepStrictEqual(action.errors.map(({ path }) => path), [["nonce"]])
        assert.deepStrictEqual(sent, [])
      })))
})

type Exchange = GatewayClient.GatewayClient["Service"]["exchange"]

const sendings = {
  OutcomeUnknown: (exchange: Exchange) => flipReason(exchange.submit(signed)),
  StillUnknown: (exchange: Exchange) => flipReason(exchange.resolve(signed))
}

describe("an exchange that breaks", () => {
  for (const how of ["refused", "half a body"] as const) {
    for (const [name, method] of Object.entries(methods)) {
      if (name === "exchange.submit" || name === "exchange.resolve" || method.resumes) continue
      // a transaction may have reached the node
      const tag = name.endsWith(".sendRawTransaction") ? "OutcomeUnknown" : "UpstreamUnavailable"
      it.effect(`is ${tag} for ${name}: ${how}`, () =>
        withClient(() => how, (client, sent) =>
          Effect.gen(function*() {
            const error = yield* flipReason(Effect.asVoid(method.call(client)))
            assert.strictEqual(error._tag, tag)
            assert.deepInclude(error, { upstream: "gateway", ...(tag === "OutcomeUnknown" ? {} : { attempts: 1 }) })
            assert.strictEqual(sent.length, 1)
          })))
    }

    for (const [tag, call] of Object.entries(sendings)) {
      it.effect(`is ${tag} for a signed action, sent once: ${how}`, () =>
        withClient(() => how, ({ exchange }, sent) =>
          Effect.gen(function*() {
            const error = yield* call(exchange)
            assert.strictEqual(error._tag, tag)
            assert.deepInclude(error, { nonce, upstream: "gateway", advice: resendAdvice })
            assert.strictEqual(sent.length, 1)
          })))
    }
  }

  it.effect("is resolved by the identical bytes, of what was submitted or of what was sent", () => {
    let asked = 0
    const duplicate = `{"status":"err","response":"Invalid nonce: duplicate nonce ${nonce}"}`
    return withClient(
      () => (asked += 1) === 1 ? "half a body" : { body: duplicate },
      ({ exchange }, sent) =>
        Effect.gen(function*() {
          assert.strictEqual((yield* flipReason(exchange.submit(signed)))._tag, "OutcomeUnknown")
          assert.strictEqual((yield* exchange.resolve(signed))._tag, "Landed")
          const body = new TextEncoder().encode(sent[0]?.body)
          assert.strictEqual((yield* exchange.resolve(body))._tag, "Landed")
          assert.strictEqual(new Set(sent.map(({ body }) => body)).size, 1)
          assert.strictEqual(sent.length, 3)
          const notText = yield* flipReason(exchange.resolve(new Uint8Array([0xff])))
          assert.deepStrictEqual([notText._tag, notText.reason._tag], ["StillUnknown", "InvalidRequest"])
          assert.strictEqual(sent.length, 3)
        })
    )
  })

  it.effect("is UpstreamUnavailable for a signed action that certainly was not sent", () =>
    withClient(() => "not encodable", (client) =>
      Effect.gen(function*() {
        assert.strictEqual((yield* flipReason(client.exchange.submit(signed)))._tag, "UpstreamUnavailable")
      })))

  for (
    const [what, answer] of [
      ["a fault of a proxy", { status: 502, type: "text/html", body: "<html>bad gateway</html>" }],
      ["a fault of the gateway", { status: 500, type: "application/problem+json", body: `{"type":"about:blank"}` }],
      ["HTML under 200", { status: 200, type: "text/html", body: "<html>welcome</html>" }]
    ] as const
  ) {
    it.effect(`${what} leaves a signed action's outcome unknown, and is told of a read`, () =>
      withClient(() => answer, ({ exchange, info }) =>
        Effect.gen(function*() {
          assert.strictEqual((yield* flipReason(exchange.submit(signed)))._tag, "OutcomeUnknown")
          const expected = answer.status === 200 ? "UpstreamMalformed" : "UpstreamUnavailable"
          assert.strictEqual((yield* flipReason(info.spotMeta()))._tag, expected)
        })))
  }
})
