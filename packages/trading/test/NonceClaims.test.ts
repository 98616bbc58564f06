import { assert, describe, it } from "@effect/vitest"
import type { SignedAction } from "@trigate/domain/actions/Action"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import { OutcomeUnknown, unwrapReason, UpstreamUnavailable } from "@trigate/domain/errors/GatewayError"
import * as UpstreamResponse from "@trigate/domain/operations/Operation"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import { flipReason } from "@trigate/testing/Reason"
import { Exchange } from "@trigate/trading/Exchange"
import * as ExchangeMemory from "@trigate/trading/ExchangeMemory"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Ref from "effect/Ref"
import * as TestClock from "effect/testing/TestClock"

const now = 1_795_230_000_000
const signer = keys.trader.address

/** Two actions of one signer under one nonce. */
const action = (usingBigBlocks = true, nonce = now) =>
  SandboxSigner.signAction(keys.trader, { nonce, action: { type: "evmUserModify", usingBigBlocks } })

const body = (signed: SignedAction) => Utf8.encode(JSON.stringify(signed))

const relay = (usingBigBlocks = true, nonce = now) =>
  Effect.flatMap(
    Effect.orDie(action(usingBigBlocks, nonce)),
    (signed) => Exchange.use((exchange) => exchange.relay({ body: body(signed), surface: "gateway" }))
  )

const tagOf = (sending: ReturnType<typeof relay>) =>
  Effect.match(sending, { onSuccess: () => "relayed", onFailure: (error) => unwrapReason(error)._tag })

const answerWith = (answer: Effect.Effect<UpstreamResponse.UpstreamResponse, OutcomeUnknown | UpstreamUnavailable>) =>
  ExchangeMemory.ExchangeState.use((state) => Ref.set(state.response, answer))

const venue = (status: number, text: string) => Effect.succeed(UpstreamResponse.json("trading-api", status, text))

const unknown = Effect.fail(new OutcomeUnknown({ upstream: "trading-api", advice: "wait", nonce: now }))
const unsent = Effect.fail(new UpstreamUnavailable({ upstream: "trading-api", attempts: 1 }))

const received = ExchangeMemory.ExchangeState.use((state) =>
  Effect.map(Ref.get(state.received), ({ length }) => length)
)

const known: ReadonlyArray<readonly [what: string, answer: ReturnType<typeof venue>]> = [
  ["an acceptance", venue(200, `{"status":"ok","response":{"type":"default"}}`)],
  ["a refusal", venue(200, `{"status":"err","response":"Unknown validator"}`)],
  ["a refused shape", Effect.succeed(UpstreamResponse.plain("trading-api", 422, "Failed to deserialize"))]
]

const open: ReadonlyArray<readonly [what: string, answer: Parameters<typeof answerWith>[0]]> = [
  ["a broken exchange", unknown],
  ["a server fault", venue(500, "null")],
  ["an answer that says nothing", venue(200, "{}")],
  ...[408, 409, 460, 499, 502, 504, 302].map((status) =>
    [
      `HTTP ${status} of something in between, which may have passed the action on`,
      Effect.succeed(UpstreamResponse.plain("trading-api", status, "<html>"))
    ] as const
  ),
  [
    "a gateway upstream that has seen the nonce",
    Effect.succeed(
      UpstreamResponse.json(
        "trading-api",
        409,
        `{"_tag":"NonceAlreadyUsed","type":"urn:trigate:problem:nonce-already-used","title":"Nonce already used",` +
          `"status":409,"signer":"${signer}","nonce":${now}}`
      ).with({ contentType: "application/problem+json" })
    )
  ]
]

const free: ReadonlyArray<readonly [what: string, answer: Parameters<typeof answerWith>[0]]> = [
  ["nothing sent", unsent],
  ["a reached rate limit", venue(429, "null")],
  ...[400, 401, 403, 404, 405, 407, 411, 413, 415, 418, 421, 422, 425, 428, 431, 451].map((status) =>
    [
      `HTTP ${status} of something in between`,
      Effect.succeed(UpstreamResponse.make({
        upstream: "trading-api",
        status,
        contentType: "text/html",
        body: new TextEncoder().encode("<html>blocked</html>")
      }))
    ] as const
  ),
  [
    "a gateway upstream that refused",
    Effect.succeed(
      UpstreamResponse.json(
        "trading-api",
        403,
        `{"_tag":"SignerNotAllowed","type":"urn:trigate:problem:signer-not-allowed","title":"Signer not allowed",` +
          `"status":403,"signer":"${signer}"}`
      ).with({ contentType: "application/problem+json" })
    )
  ]
]

describe("a nonce of a signer", () => {
  for (const [what, answer] of known) {
    it.effect(`is used up after ${what}`, () =>
      Effect.gen(function*() {
        yield* TestClock.setTime(now)
        yield* answerWith(answer)
        assert.strictEqual((yield* relay()).signer, signer)
        for (const again of [relay(), relay(false)]) {
          const error = yield* flipReason(again)
          assert(error._tag === "NonceAlreadyUsed")
          assert.deepStrictEqual([error.signer, error.nonce], [signer, now])
        }
        assert.strictEqual(yield* received, 1)
        assert.strictEqual(yield* tagOf(relay(false, now + 1)), "relayed")
      }).pipe(Effect.provide(ExchangeMemory.layer())))
  }

  for (const [what, answer] of open) {
    it.effect(`is kept for the identical bytes after ${what}`, () =>
      Effect.gen(function*() {
        yield* TestClock.setTime(now)
        yield* answerWith(answer)
        yield* tagOf(relay())
        assert.strictEqual(yield* tagOf(relay(false)), "NonceAlreadyUsed")
        assert.strictEqual(yield* received, 1)
        yield* answerWith(venue(200, `{"status":"err","response":"Invalid nonce: duplicate nonce ${now}"}`))
        assert.strictEqual(yield* tagOf(relay()), "relayed")
        assert.strictEqual(yield* tagOf(relay()), "NonceAlreadyUsed")
        assert.strictEqual(yield* received, 2)
      }).pipe(Effect.provide(ExchangeMemory.layer())))
  }

  for (const [what, answer] of free) {
    it.effect(`is free after ${what}`, () =>
      Effect.gen(function*() {
        yield* TestClock.setTime(now)
        yield* answerWith(answer)
        yield* tagOf(relay())
        yield* tagOf(relay())
        yield* answerWith(Effect.succeed(ExchangeMemory.accepted))
        assert.strictEqual(yield* tagOf(relay(false)), "relayed")
        assert.strictEqual(yield* received, 3)
      }).pipe(Effect.provide(ExchangeMemory.layer())))
  }

  it.effect("is in use while it is being sent, also when the caller has left, and settled by what came of it", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      const gate = yield* Deferred.make<void>()
      yield* answerWith(Effect.as(Deferred.await(gate), ExchangeMemory.accepted))
      const caller = yield* Effect.forkChild(relay(), { startImmediately: true })
      while ((yield* received) === 0) yield* Effect.promise(() => new Promise(setImmediate))
      assert.strictEqual(yield* tagOf(relay()), "NonceAlreadyUsed")
      yield* Fiber.interrupt(caller)
      const inFlight = yield* flipReason(relay())
      assert.include(inFlight._tag === "NonceAlreadyUsed" ? inFlight.detail : "", "is being sent right now")
      yield* Deferred.succeed(gate, undefined)
      yield* Effect.yieldNow
      const settled = yield* flipReason(relay())
      assert.include(settled._tag === "NonceAlreadyUsed" ? settled.detail : "", "its outcome is known")
      assert.strictEqual(yield* received, 1)
    }).pipe(Effect.provide(ExchangeMemory.layer())))

  it.effect("is one of many that arrive at once", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      const signed = yield* action()
      const tags = yield* Effect.forEach(
        Array.from({ length: 100 }),
        () => tagOf(Exchange.use((exchange) => exchange.relay({ body: body(signed), surface: "gateway" }))),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(tags.filter((tag) => tag === "relayed").length, 1)
      assert.strictEqual(yield* received, 1)
    }).pipe(Effect.provide(ExchangeMemory.layer())))

  it.effect("is not looked at where no signer can be told", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      const documented = { action: { type: "evmUserModify", modifications: [] }, nonce: now } as const
      const signature = { r: "0x1", s: "0x2", v: 27 } as const
      for (const _ of [1, 2]) {
        const relayed = yield* Exchange.use((exchange) =>
          exchange.relay({ body: body({ ...documented, signature }), surface: "gateway" })
        )
        assert.isUndefined(relayed.signer)
      }
      assert.strictEqual(yield* received, 2)
    }).pipe(Effect.provide(ExchangeMemory.layer())))
})
