import { assert, describe, it } from "@effect/vitest"
import { SignedAction } from "@trigate/domain/actions/Action"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import { OutcomeUnknown, unwrapReason } from "@trigate/domain/errors/GatewayError"
import * as UpstreamResponse from "@trigate/domain/operations/Operation"
import { testnet } from "@trigate/signing/VenueProfile"
import { flipReason } from "@trigate/testing/Reason"
import * as ScriptedTransport from "@trigate/testing/ScriptedTransport"
import * as ActionLogMemory from "@trigate/trading/actionLog/ActionLogMemory"
import * as Exchange from "@trigate/trading/Exchange"
import * as ExchangeMemory from "@trigate/trading/ExchangeMemory"
import * as TradingUpstream from "@trigate/trading/TradingUpstream"
import * as Pipeline from "@trigate/upstream/Pipeline"
import * as HttpTransportUndici from "@trigate/upstream/transport/HttpTransportUndici"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as Http from "node:http"

import vectors from "../../signing/test/fixtures/signing-vectors.json" with { type: "json" }
import * as admission from "./admission.ts"
import recorded from "./fixtures/exchange-bodies.json" with { type: "json" }

const now = 1_705_234_567_890
const address = "0x0123456789abcdef0123456789abcdef01234567"
const api = "https://api.test"
const node = "https://node.test/KEY"
const json = { accept: "application/json", "content-type": "application/json" }

const ok = ScriptedTransport.response(200, "{\"status\":\"ok\",\"response\":{\"type\":\"default\"}}")

const bigBlocks: SignedAction = {
  action: { type: "evmUserModify", usingBigBlocks: true },
  nonce: now,
  signature: { r: "0x1", s: "0x2", v: 27 }
}
const delegate: SignedAction = {
  ...bigBlocks,
  action: {
    type: "tokenDelegate",
    signatureChainId: "0x66eee",
    venueChain: "Mainnet",
    validator: address,
    wei: 2n ** 64n - 1n,
    isUndelegate: false,
    nonce: now
  }
}
const bigBlocksText = JSON.stringify(bigBlocks)

const over = (
  transport: ReturnType<typeof ScriptedTransport.make>,
  addresses: TradingUpstream.Addresses = { api: [api] },
  options: admission.Options = {}
) =>
  TradingUpstream.layerExchange(addresses).pipe(
    Layer.provide([admission.layer(options), ActionLogMemory.layer(), transport.layer])
  )

const at = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.andThen(TestClock.setTime(now), effect)
const relay = (body: string | Uint8Array, surface: "gateway" | "node" = "gateway") =>
  at(
    Exchange.Exchange.use((exchange) =>
      exchange.relay({ body: typeof body === "string" ? Encoding.encode(body) : body, surface })
    )
  )
const submit = (signed: SignedAction) => at(Exchange.Exchange.use((exchange) => exchange.submit(signed)))

describe("relay", () => {
  it.effect("posts the bytes once to /exchange and gives back the venue's own answer and the warnings", () => {
    const transport = ScriptedTransport.make(() =>
      ScriptedTransport.response(200, "{ \"status\":\"err\",\"response\":\"Nonce mismatch.\"}")
    )
    return Effect.gen(function*() {
      const text =
        `{"nonce":${now},\n"signature":{"v":28,"r":"0x1","s":"0x2"},"action":{"modifications":[ ],"type":"evmUserModify"}}`
      const { response: answer, warnings } = yield* relay(text)
      assert.deepStrictEqual(transport.sent, [{ method: "POST", url: `${api}/exchange`, headers: json, body: text }])
      assert.strictEqual(answer.status, 200)
      assert.strictEqual(answer.text, "{ \"status\":\"err\",\"response\":\"Nonce mismatch.\"}")
      assert.strictEqual(answer.upstream, "trading-api")
      assert.deepStrictEqual(warnings, ["evmUserModify takes `usingBigBlocks`, not `modifications`"])
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("says what a refused body shows to be wrong with it beside the venue's own text, submit in the log alone", () => {
    const refusal =
      "{\"status\":\"err\",\"response\":\"User or API Wallet 0x0123456789abcdef0123456789abcdef01234567 does not exist.\"}"
    const transport = ScriptedTransport.make(() => ScriptedTransport.response(200, refusal))
    const sentence =
      "action.orders.0.p has a trailing zero: it reads \"2000.0\" and has to be signed and sent as \"2000\""
    const logged: Array<unknown> = []
    const collected = Logger.layer([Logger.make(({ message }) => void logged.push(message))])
    return Effect.gen(function*() {
      const order = { a: 1, b: true, p: "2000.0", s: "1", r: false, t: { limit: { tif: "Gtc" } } }
      const signed = { ...bigBlocks, action: { type: "order", orders: [order], grouping: "na" } }
      const { response: answer, warnings } = yield* relay(JSON.stringify(signed))
      assert.deepStrictEqual([answer.text, warnings], [refusal, [sentence]])
      const next = { ...signed, nonce: now + 1 }
      const rejected = yield* Effect.flip(at(Exchange.Exchange.use((exchange) => exchange.submit(next))))
      assert.strictEqual(rejected._tag, "ActionRejected")
      assert.deepStrictEqual(logged.flat(), Array.from({ length: 2 }, () => `The venue refused order: ${sentence}`))
    }).pipe(Effect.provide(Layer.merge(over(transport), collected)))
  })

  it.effect("every recorded answer comes back with its status and bytes", () =>
    Effect.forEach(
      recorded.bodies.filter(({ http }) => http !== 500),
      ({ body, contentType = "application/json", http, text }) => {
        const bytes = text ?? JSON.stringify(body)
        const transport = ScriptedTransport.make(() =>
          ScriptedTransport.response(http, bytes, { "content-type": contentType })
        )
        return Effect.gen(function*() {
          const { response: answer } = yield* relay(bigBlocksText)
          assert.deepStrictEqual([answer.status, answer.text], [http, bytes])
        }).pipe(Effect.provide(over(transport)))
      }
    ))

  it.effect("every recorded body reaches the wire byte for byte, and the signer is told", () => {
    const transport = ScriptedTransport.make(() => ok)
    return Effect.gen(function*() {
      for (const { isMainnet, nonce, outerSigner, requestBody, signer } of vectors.vectors) {
        yield* TestClock.setTime(nonce)
        const options = { relayActions: "all", ...(isMainnet ? {} : { profile: testnet }) } as const
        const relayed = yield* Exchange.Exchange.use((exchange) =>
          exchange.relay({ body: Encoding.encode(requestBody), surface: "gateway" })
        ).pipe(Effect.provide(over(transport, { api: [api] }, options)))
        assert.strictEqual(transport.sent.at(-1)?.body, requestBody)
        assert.strictEqual(relayed.signer, (signer ?? outerSigner)?.toLowerCase())
      }
      assert.strictEqual(transport.sent.length, vectors.vectors.length)
    })
  })

  it.effect("refusals of admission send nothing", () => {
    const transport = ScriptedTransport.make(() => ok)
    return Effect.gen(function*() {
      for (
        const [body, tag] of [
          ["{", "InvalidRequest"],
          [bigBlocksText.replace("evmUserModify", "fromTheFuture"), "UnsupportedAction"],
          [bigBlocksText.replace(String(now), "1"), "NonceOutOfWindow"],
          [bigBlocksText.replace("{\"type\"", "{\"nonce\":5,\"type\""), "NonceMismatch"]
        ] as const
      ) {
        assert.strictEqual((yield* flipReason(relay(body)))._tag, tag)
      }
      assert.deepStrictEqual(transport.sent, [])
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect("on the node surface it is unavailable, before the body is looked at", () => {
    const transport = ScriptedTransport.make(() => ok)
    return Effect.gen(function*() {
      for (const body of [bigBlocksText, "not json"]) {
        const error = yield* flipReason(relay(body, "node"))
        assert.strictEqual(error._tag, "UnavailableOnNode")
        if (error._tag === "UnavailableOnNode") {
          assert.deepStrictEqual([error.operation, error.availableOn], ["exchange", ["official-api"]])
        }
      }
      assert.deepStrictEqual(transport.sent, [])
    }).pipe(Effect.provide(over(transport, { api: [api], node: [node] })))
  })

  it.effect("with a node only it is unavailable there, with nothing it is not configured", () => {
    const transport = ScriptedTransport.make(() => ok)
    return Effect.gen(function*() {
      const onNode = yield* flipReason(relay(bigBlocksText)).pipe(Effect.provide(over(transport, { node: [node] })))
      assert.strictEqual(onNode._tag, "UnavailableOnNode")
      if (onNode._tag === "UnavailableOnNode") assert.strictEqual(onNode.operation, "evmUserModify")
      const nowhere = yield* flipReason(relay(bigBlocksText)).pipe(Effect.provide(over(transport, {})))
      assert.strictEqual(nowhere._tag, "ChainNotConfigured")
      if (nowhere._tag === "ChainNotConfigured") assert.strictEqual(nowhere.chain, "trading")
      assert.deepStrictEqual(transport.sent, [])
    })
  })

  it.effect("moves to the next address only while nothing was sent, and never sends twice", () => {
    const dead = ScriptedTransport.make(({ url }) =>
      url.startsWith("https://dead") ? ScriptedTransport.unreachable : ok
    )
    const half = ScriptedTransport.make(({ url }) => url.startsWith("https://dead") ? ScriptedTransport.broken : ok)
    const addresses = { api: ["https://dead.test", api] }
    return Effect.gen(function*() {
      yield* relay(bigBlocksText).pipe(Effect.provide(over(dead, addresses)))
      assert.deepStrictEqual(dead.sent.map(({ url }) => url), ["https://dead.test/exchange", `${api}/exchange`])
      const error = yield* flipReason(relay(bigBlocksText)).pipe(Effect.provide(over(half, addresses)))
      assert.strictEqual(error._tag, "OutcomeUnknown")
      if (error._tag === "OutcomeUnknown") assert.strictEqual(error.nonce, now)
      assert.strictEqual(half.sent.length, 1)
    })
  })
})

describe("submit", () => {
  it.effect("wei keeps every digit up to 2^64-1, and venueChain leaves as the venue spells it", () => {
    const transport = ScriptedTransport.make(() => ok)
    return Effect.gen(function*() {
      assert.deepStrictEqual(yield* submit(delegate), {
        status: "ok",
        response: { type: "default" },
        entries: [{ _tag: "Done" }]
      })
      assert.strictEqual(
        transport.sent[0]?.body,
        `{"action":{"type":"tokenDelegate","signatureChainId":"0x66eee","hyperliquidChain":"Mainnet",` +
          `"validator":"${address}","wei":18446744073709551615,"isUndelegate":false,"nonce":${now}},` +
          `"nonce":${now},"signature":{"r":"0x1","s":"0x2","v":27}}`
      )
    }).pipe(Effect.provide(over(transport)))
  })

  it.live("the digits are on the socket, too", () =>
    Effect.gen(function*() {
      const received: Array<string> = []
      const server = yield* Effect.acquireRelease(
        Effect.callback<Http.Server>((resume) => {
          const listening = Http.createServer((request, response) => {
            const chunks: Array<Buffer> = []
            request.on("data", (chunk: Buffer) => chunks.push(chunk))
            request.on("end", () => {
              received.push(Buffer.concat(chunks).toString())
              response.setHeader("content-type", "application/json")
              response.end("{\"status\":\"ok\",\"response\":{\"type\":\"default\"}}")
            })
          }).listen(0, "127.0.0.1", () => resume(Effect.succeed(listening)))
        }),
        (listening) => Effect.sync(() => listening.close())
      )
      const bound = server.address()
      const port = typeof bound === "object" && bound !== null ? bound.port : assert.fail("no port")
      const live = TradingUpstream.layerExchange({ api: [`http://127.0.0.1:${port}/`] }).pipe(
        Layer.provide([
          admission.layer({ nonceWindow: { past: "36500 days", future: "1 day" } }),
          ActionLogMemory.layer(),
          Pipeline.layer().pipe(Layer.provide(HttpTransportUndici.layer()))
        ])
      )
      yield* Exchange.Exchange.use((exchange) => exchange.submit(delegate)).pipe(Effect.provide(live))
      assert.strictEqual(received.length, 1)
      assert.include(received[0] ?? "", "\"wei\":18446744073709551615,")
    }).pipe(Effect.scoped))

  it.effect("a refusal, an error inside an ok, a limit and a lost answer are told apart", () =>
    Effect.forEach(
      [
        [ScriptedTransport.response(200, "{\"status\":\"err\",\"response\":\"Unknown validator\"}"), "ActionRejected"],
        [ScriptedTransport.response(200, "{\"status\":\"error\"}"), "ActionRejected"],
        [ScriptedTransport.response(422, "Failed to deserialize", { "content-type": "text/plain" }), "ActionRejected"],
        [ScriptedTransport.response(429, "", { "content-type": "text/plain" }), "UpstreamRateLimited"],
        [ScriptedTransport.response(429, "null"), "UpstreamRateLimited"],
        [ScriptedTransport.response(500, "null"), "OutcomeUnknown"],
        [ScriptedTransport.response(502, "<html></html>", { "content-type": "text/html" }), "OutcomeUnknown"],
        [ScriptedTransport.response(200, "half"), "OutcomeUnknown"],
        [ScriptedTransport.unreachable, "UpstreamUnavailable"],
        [ScriptedTransport.broken, "OutcomeUnknown"]
      ] as const,
      ([reaction, tag]) => {
        const transport = ScriptedTransport.make(() => reaction)
        return Effect.gen(function*() {
          const error = yield* flipReason(submit(delegate))
          assert.strictEqual(error._tag, tag)
          if (error._tag === "OutcomeUnknown") assert.strictEqual(error.nonce, now)
          assert.strictEqual(transport.sent.length, 1)
        }).pipe(Effect.provide(over(transport)))
      }
    ))

  it.effect("an action waits for the rate limit at most until its expiresAfter", () => {
    const transport = ScriptedTransport.make(() => ok)
    const limited = Layer.provide(Pipeline.layer({ limits: { "trading-api": 2 } }), transport.transport)
    return Effect.gen(function*() {
      const { submit } = yield* Exchange.Exchange
      const signed = (nonce: number, expiresAfter?: number): SignedAction => ({
        ...bigBlocks,
        nonce: now + nonce,
        ...(expiresAfter === undefined ? {} : { expiresAfter: now + expiresAfter })
      })
      yield* TestClock.setTime(now)
      for (const nonce of [1, 2]) yield* submit(signed(nonce))
      yield* TestClock.adjust("55 seconds")
      const expired = yield* flipReason(submit(signed(3, 58_000)))
      assert.strictEqual(expired._tag, "UpstreamRateLimited")
      const waiting = yield* Effect.forkChild(submit(signed(4, 64_000)), { startImmediately: true })
      yield* TestClock.adjust("7 seconds")
      yield* Fiber.join(waiting)
      assert.strictEqual(transport.sent.length, 3)
    }).pipe(Effect.provide(
      TradingUpstream.layerExchange({ api: [api] }).pipe(
        Layer.provide([admission.layer(), ActionLogMemory.layer(), limited])
      )
    ))
  })

  it.effect("a value outside its range is refused here", () => {
    const transport = ScriptedTransport.make(() => ok)
    return Effect.gen(function*() {
      const error = yield* flipReason(submit({ ...bigBlocks, nonce: -1 }))
      assert.strictEqual(error._tag, "InvalidRequest")
      if (error._tag === "InvalidRequest") assert.deepStrictEqual(error.errors[0]?.path, ["nonce"])
      assert.deepStrictEqual(transport.sent, [])
    }).pipe(Effect.provide(over(transport)))
  })

  it.effect.prop("whatever is submitted reads back from the wire as it was", [SignedAction], ([signed]) => {
    const transport = ScriptedTransport.make(() => ok)
    return Effect.gen(function*() {
      const result = yield* Effect.andThen(
        TestClock.setTime(signed.nonce),
        Effect.result(Exchange.Exchange.use((exchange) => exchange.submit(signed)))
      )
      if (Result.isFailure(result)) {
        return assert.include(
          ["InvalidRequest", "InvalidSignature", "NonceMismatch"],
          unwrapReason(result.failure)._tag
        )
      }
      const encode = Schema.encodeSync(SignedAction)
      const sent = transport.sent[0]?.body ?? assert.fail("nothing sent")
      // V8 13.6 misreads a key of one character that is an escape
      if (/"\\(?:u[0-9a-f]{4}|.)":/u.test(sent)) return
      const read = Schema.decodeUnknownSync(SignedAction)(Result.getOrThrow(Encoding.parse(sent)))
      return assert.strictEqual(
        Encoding.stringify(encode(read)),
        Encoding.stringify(encode(signed)).replaceAll("\"venueChain\"", "\"hyperliquidChain\"")
      )
    }).pipe(Effect.provide(over(transport, { api: [api] }, { relayActions: "all" })))
  })
})

describe("in memory", () => {
  it.effect("records the bodies that passed and answers what it was told to", () =>
    Effect.gen(function*() {
      const state = yield* ExchangeMemory.ExchangeState
      assert.deepStrictEqual(yield* submit(bigBlocks), {
        status: "ok",
        response: { type: "default" },
        entries: [{ _tag: "Done" }]
      })
      yield* Ref.set(
        state.response,
        Effect.succeed(
          UpstreamResponse.json("trading-api", 200, "{\"status\":\"err\",\"response\":\"Multi-sig required\"}")
        )
      )
      const rejected = yield* flipReason(submit(delegate))
      assert.strictEqual(rejected._tag === "ActionRejected" && rejected.reason, "MultiSig")
      yield* Ref.set(
        state.response,
        Effect.fail(new OutcomeUnknown({ upstream: "trading-api", advice: "wait", nonce: now }))
      )
      assert.strictEqual((yield* flipReason(submit({ ...bigBlocks, nonce: now + 1 })))._tag, "OutcomeUnknown")
      yield* flipReason(relay("{"))
      yield* flipReason(relay(bigBlocksText, "node"))
      const received = yield* Ref.get(state.received)
      assert.strictEqual(received.length, 3)
      assert.strictEqual(new TextDecoder().decode(received[0]), bigBlocksText)
    }).pipe(Effect.provide(ExchangeMemory.layer())))

  it.effect("takes the options of admission", () =>
    Effect.gen(function*() {
      const order = bigBlocksText.replace("evmUserModify", "order")
      const { response: answer } = yield* relay(order)
      assert.strictEqual(answer, ExchangeMemory.accepted)
    }).pipe(Effect.provide(ExchangeMemory.layer({ relayActions: ["order"] }))))
})

class Second extends Context.Service<Second, Exchange.Exchange["Service"]>()("@trigate/trading/test/Second") {}

describe("two exchanges in one program", () => {
  it.effect("send to their own addresses", () => {
    const transport = ScriptedTransport.make(() => ok)
    const second = Layer.effect(Second, Exchange.Exchange).pipe(
      Layer.provide(over(transport, { api: ["https://two.test"] }))
    )
    return Effect.gen(function*() {
      const call = { body: Encoding.encode(bigBlocksText), surface: "gateway" as const }
      yield* at(Exchange.Exchange.use((exchange) => exchange.relay(call)))
      yield* at(Second.use((exchange) => exchange.relay(call)))
      assert.deepStrictEqual(transport.sent.map(({ url }) => url), [
        "https://one.test/exchange",
        "https://two.test/exchange"
      ])
    }).pipe(Effect.provide(Layer.merge(over(transport, { api: ["https://one.test"] }), second)))
  })

  it.effect("in memory have their own state", () => {
    const second = Layer.effect(Second, Exchange.Exchange).pipe(Layer.provide(ExchangeMemory.layer()))
    return Effect.gen(function*() {
      const { received } = yield* ExchangeMemory.ExchangeState
      yield* at(Second.use((exchange) => exchange.submit(bigBlocks)))
      assert.deepStrictEqual(yield* Ref.get(received), [])
      yield* submit(bigBlocks)
      assert.strictEqual((yield* Ref.get(received)).length, 1)
    }).pipe(Effect.provide(Layer.merge(ExchangeMemory.layer(), second)))
  })
})

describe("the addresses of the configuration", () => {
  it.effect("are asked in their order", () => {
    const transport = ScriptedTransport.make(() => ok)
    const environment = { TRIGATE_TRADING_API_URL: "https://one.test/, https://two.test" }
    return Effect.gen(function*() {
      yield* relay(bigBlocksText)
      assert.strictEqual(transport.sent[0]?.url, "https://one.test/exchange")
    }).pipe(
      Effect.provide(
        Layer.unwrap(Effect.map(TradingUpstream.config, TradingUpstream.layerExchange)).pipe(
          Layer.provide([
            admission.layer(),
            ActionLogMemory.layer(),
            transport.layer,
            ConfigProvider.layer(ConfigProvider.fromUnknown(environment))
          ])
        )
      )
    )
  })
})
