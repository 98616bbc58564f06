import { assert, describe, it } from "@effect/vitest"
import type { SignedAction } from "@trigate/domain/actions/Action"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import { flipReason } from "@trigate/testing/Reason"
import * as ScriptedTransport from "@trigate/testing/ScriptedTransport"
import * as ActionLog from "@trigate/trading/actionLog/ActionLog"
import * as ActionLogMemory from "@trigate/trading/actionLog/ActionLogMemory"
import { Exchange } from "@trigate/trading/Exchange"
import * as ExchangeMemory from "@trigate/trading/ExchangeMemory"
import * as TradingUpstream from "@trigate/trading/TradingUpstream"
import type { TransportError, TransportResponse } from "@trigate/upstream/transport/HttpTransport"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as TestClock from "effect/testing/TestClock"
import { now, states, unanswered } from "./actionLogSuite.ts"
import * as admission from "./admission.ts"

const action = Effect.orDie(
  SandboxSigner.signAction(keys.trader, { nonce: now, action: { type: "evmUserModify", usingBigBlocks: true } })
)

const submit = (signed: SignedAction) => Exchange.use((exchange) => exchange.submit(signed))

const refused = (text: string) => ScriptedTransport.response(200, JSON.stringify({ status: "err", response: text }))

const duplicate = refused(`Invalid nonce: duplicate nonce ${now}`)
const ok = ScriptedTransport.response(200, `{"status":"ok","response":{"type":"default"}}`)

/** A gateway before a venue that reacts to one request after the other. */
const venue = (...reactions: ReadonlyArray<TransportResponse | TransportError>) => {
  let at = 0
  const transport = ScriptedTransport.make(() => reactions[at++] ?? assert.fail("one request too many"))
  const gateway = TradingUpstream.layerExchange({ api: ["https://venue.example"] }).pipe(
    Layer.provide([admission.layer(), transport.layer]),
    Layer.provideMerge(ActionLogMemory.layer())
  )
  return { transport, run: Effect.provide(gateway) }
}

const outcomes: ReadonlyArray<readonly [answer: TransportResponse | TransportError, word: string, left: number]> = [
  [duplicate, "Landed", 0],
  [ok, "Accepted", 0],
  [refused("Nonce mismatch."), "Rejected", 0],
  [refused("Action already expired"), "StillUnknown ActionRejected", 1],
  [refused("Too many cumulative requests sent (2 > 1)"), "StillUnknown ActionRejected", 1],
  [ScriptedTransport.response(429, "null"), "StillUnknown UpstreamRateLimited", 1],
  [ScriptedTransport.unreachable, "StillUnknown UpstreamUnavailable", 1],
  [ScriptedTransport.broken, "StillUnknown OutcomeUnknown", 1]
]

describe("resolve", () => {
  for (const [response, word, left] of outcomes) {
    const title = "sent" in response
      ? `a transport that is ${response.detail}`
      : new TextDecoder().decode(Buffer.concat([response.body].flat()))
    it.effect(`${word}, by the identical bytes and not before it is called: ${title}`, () => {
      const { run, transport } = venue(ScriptedTransport.broken, response, duplicate)
      return Effect.gen(function*() {
        yield* TestClock.setTime(now)
        const signed = yield* action
        assert.strictEqual((yield* flipReason(submit(signed)))._tag, "OutcomeUnknown")
        const [entry] = yield* unanswered
        assert(entry !== undefined)
        assert.deepInclude(entry, { signer: keys.trader.address, nonce: now, actionType: "evmUserModify" })
        yield* TestClock.adjust("1 hour")
        assert.lengthOf(transport.sent, 1)

        const resolve = (by: Uint8Array | SignedAction) =>
          Effect.match(Exchange.use((exchange) => exchange.resolve(by)), {
            onSuccess: ({ _tag }): string => _tag,
            onFailure: ({ _tag, nonce, reason, signer }): string => {
              assert.deepStrictEqual([signer, nonce], [keys.trader.address, now])
              return `${_tag} ${reason._tag}`
            }
          })
        assert.strictEqual(yield* resolve(entry.body), word)
        assert.lengthOf(yield* unanswered, left)
        assert.lengthOf(transport.sent, 2)
        // what is still in doubt can be asked again; what is decided is known here, and what was taken has landed
        assert.strictEqual(yield* resolve(signed), word === "Rejected" ? "StillUnknown NonceAlreadyUsed" : "Landed")
        assert.lengthOf(yield* unanswered, 0)
        assert.strictEqual(new Set(transport.sent.map(({ body }) => body)).size, 1)
        assert.strictEqual(transport.sent[0]?.body, new TextDecoder().decode(entry.body))
      }).pipe(run)
    })
  }
})

/** Signs anew where an action was not sent, and asks what became of it where that is unknown. */
const signsAnew = {
  "by tags": (first: SignedAction, anew: Effect.Effect<SignedAction>) =>
    Exchange.use(({ resolve, submit }) =>
      submit(first).pipe(
        Effect.catchTag("OutcomeUnknown", () => resolve(first)),
        Effect.catchTag(["UpstreamError", "RequestError", "NonceOutOfWindow"], () => Effect.flatMap(anew, submit))
      )
    ),
  "by groups": (first: SignedAction, anew: Effect.Effect<SignedAction>) =>
    Exchange.use(({ resolve, submit }) =>
      submit(first).pipe(
        Effect.catchTag("OutcomeUnknown", () => resolve(first)),
        Effect.catchIf(({ group }) => group !== "outcome-unknown", () => Effect.flatMap(anew, submit))
      )
    )
}

describe("a program that signs anew what was not sent", () => {
  for (const [how, program] of Object.entries(signsAnew)) {
    for (
      const [response, reason] of [
        [ScriptedTransport.unreachable, "UpstreamUnavailable"],
        [ScriptedTransport.response(429, "null"), "UpstreamRateLimited"],
        [refused("Action already expired"), "ActionRejected"]
      ] as const
    ) {
      it.effect(`does not sign again after a resolution that ended in ${reason}: ${how}`, () => {
        const { run, transport } = venue(ScriptedTransport.broken, response, ok)
        return Effect.gen(function*() {
          yield* TestClock.setTime(now)
          let signatures = 0
          const anew = Effect.suspend(() => {
            signatures += 1
            return action
          })
          const error = yield* flipReason(program(yield* action, anew))
          assert.strictEqual(error._tag, "StillUnknown")
          if (error._tag === "StillUnknown") assert.strictEqual(error.reason._tag, reason)
          assert.strictEqual(signatures, 0)
          assert.strictEqual(new Set(transport.sent.map(({ body }) => body)).size, 1)
          assert.lengthOf(transport.sent, 2)
        }).pipe(run)
      })
    }

    it.effect(`signs again what was certainly not sent: ${how}`, () => {
      const { run, transport } = venue(ScriptedTransport.unreachable, ok)
      return Effect.gen(function*() {
        yield* TestClock.setTime(now)
        assert.deepInclude(yield* program(yield* action, action), { status: "ok" })
        assert.lengthOf(transport.sent, 2)
      }).pipe(run)
    })
  }
})

/** What the action log holds at the moment of the sending, and the sending held up until the gate opens. */
const watched = Effect.gen(function*() {
  const log = yield* ActionLog.ActionLog
  const gate = yield* Deferred.make<void>()
  const seen: Array<ReadonlyArray<string>> = []
  const { response } = yield* ExchangeMemory.ExchangeState
  yield* Ref.set(
    response,
    Effect.gen(function*() {
      seen.push((yield* log.unanswered).map(({ actionType, state }) => `${actionType} ${state}`))
      yield* Deferred.await(gate)
      return ExchangeMemory.accepted
    })
  )
  return { gate, seen }
})

const inMemory = ExchangeMemory.layerNoDeps().pipe(
  Layer.provideMerge(ActionLogMemory.layer()),
  Layer.provide(admission.layer())
)

const documented = {
  action: { type: "evmUserModify", modifications: [] },
  nonce: now,
  signature: { r: "0x1", s: "0x2", v: 27 }
} as const

describe("the action log of a gateway", () => {
  for (
    const [who, signing] of [["a signer", action], [
      "an unknown signer",
      Effect.succeed(documented)
    ]] as const
  ) {
    it.effect(`holds an action of ${who} before it is sent, and until its response, though the caller has left`, () =>
      Effect.gen(function*() {
        yield* TestClock.setTime(now)
        const signed = yield* signing
        const { gate, seen } = yield* watched
        const caller = yield* Effect.forkChild(submit(signed), { startImmediately: true })
        while (seen.length === 0) yield* Effect.promise(() => new Promise(setImmediate))
        assert.deepStrictEqual(seen, [["evmUserModify sent"]])
        yield* Fiber.interrupt(caller)
        assert.deepStrictEqual(yield* states, ["sent"])
        yield* Deferred.succeed(gate, undefined)
        yield* Effect.yieldNow
        assert.deepStrictEqual(yield* states, [])
      }).pipe(Effect.provide(inMemory)))
  }

  it.effect("that is full refuses an action before a byte leaves, and takes it when there is room", () => {
    const transport = ScriptedTransport.make((request) =>
      request.body.includes(String(now)) ? ScriptedTransport.broken : ok
    )
    const gateway = TradingUpstream.layerExchange({ api: ["https://venue.example"] }).pipe(
      Layer.provideMerge(ActionLogMemory.layer({ capacity: 1 })),
      Layer.provide([admission.layer(), transport.layer])
    )
    return Effect.gen(function*() {
      yield* TestClock.setTime(now)
      assert.strictEqual((yield* flipReason(submit(yield* action)))._tag, "OutcomeUnknown")
      const next = yield* Effect.orDie(
        SandboxSigner.signAction(keys.trader, {
          nonce: now + 1,
          action: { type: "evmUserModify", usingBigBlocks: true }
        })
      )
      const error = yield* flipReason(submit(next))
      assert.strictEqual(error._tag, "UpstreamUnavailable")
      assert.deepInclude(error, { upstream: "action-log", attempts: 0 })
      assert.lengthOf(transport.sent, 1)
      const [entry] = yield* unanswered
      assert(entry !== undefined)
      assert.isTrue(yield* ActionLog.ActionLog.use((log) => log.forget(entry.fingerprint)))
      yield* submit(next)
      assert.lengthOf(transport.sent, 2)
    }).pipe(Effect.provide(gateway))
  })

  it.effect("compares what was signed: bytes beside it may change, and what was signed goes out once", () => {
    const { run, transport } = venue(ScriptedTransport.broken, duplicate)
    return Effect.gen(function*() {
      yield* TestClock.setTime(now)
      const signed = yield* action
      const spaced = Utf8.encode(JSON.stringify({ isFrontend: true, ...signed }, undefined, 2))
      assert.strictEqual((yield* flipReason(submit(signed)))._tag, "OutcomeUnknown")
      const [first] = yield* unanswered
      const resolved = yield* Exchange.use((exchange) => exchange.resolve(spaced))
      assert.strictEqual(resolved._tag, "Landed")
      assert.deepStrictEqual(transport.sent.map(({ body }) => body), [
        new TextDecoder().decode(first?.body),
        new TextDecoder().decode(spaced)
      ])
      for (const body of [spaced, Utf8.encode(JSON.stringify(signed))]) {
        const again = yield* flipReason(Exchange.use((exchange) => exchange.relay({ body, surface: "gateway" })))
        assert.strictEqual(again._tag, "NonceAlreadyUsed")
      }
      assert.lengthOf(transport.sent, 2)
    }).pipe(run)
  })
})
