import { assert, describe, it } from "@effect/vitest"
import { CurrentCaller } from "@trigate/domain/Caller"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import { OutcomeUnknown, UpstreamUnavailable } from "@trigate/domain/errors/GatewayError"
import * as UpstreamResponse from "@trigate/domain/operations/Operation"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as ActionLog from "@trigate/trading/actionLog/ActionLog"
import * as ActionLogMemory from "@trigate/trading/actionLog/ActionLogMemory"
import * as Admission from "@trigate/trading/admission/Admission"
import { Exchange } from "@trigate/trading/Exchange"
import * as ExchangeMemory from "@trigate/trading/ExchangeMemory"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as TestClock from "effect/testing/TestClock"

const now = 1_795_230_000_000
const signer = keys.trader.address

/** An exchange in memory whose entries are collected. */
const audited = () => {
  const entries: Array<ActionLog.AttemptEntry> = []
  const log = ActionLog.layerAudited().pipe(
    Layer.provideMerge(ActionLogMemory.layer()),
    Layer.provide(
      Layer.succeed(ActionLog.AuditLog, { write: (entry) => void (entry.message === "action" && entries.push(entry)) })
    )
  )
  return {
    entries,
    exchange: ExchangeMemory.layerNoDeps().pipe(
      Layer.provide([log, Admission.layer()]),
      Layer.provideMerge(VenueProfile.layer("mainnet"))
    )
  }
}

const answerWith = (answer: Effect.Effect<UpstreamResponse.UpstreamResponse, OutcomeUnknown | UpstreamUnavailable>) =>
  ExchangeMemory.ExchangeState.use((state) => Ref.set(state.response, answer))

const relay = (nonce: number, requestId?: string) =>
  Effect.flatMap(
    Effect.orDie(
      SandboxSigner.signAction(keys.trader, { nonce, action: { type: "evmUserModify", usingBigBlocks: true } })
    ),
    (signed) =>
      Exchange.use((exchange) =>
        exchange.relay({
          body: Utf8.encode(JSON.stringify(signed)),
          surface: "gateway",
          ...(requestId === undefined ? {} : { requestId })
        })
      )
  )

const answers: ReadonlyArray<
  readonly [Parameters<typeof answerWith>[0], Pick<ActionLog.AttemptEntry, "outcome" | "status">]
> = [
  [Effect.succeed(ExchangeMemory.accepted), { outcome: "accepted", status: 200 }],
  [
    Effect.succeed(UpstreamResponse.json("trading-api", 200, `{"status":"err","response":"Unknown validator"}`)),
    { outcome: "refused", status: 200 }
  ],
  [
    Effect.succeed(UpstreamResponse.plain("trading-api", 422, "Failed to deserialize")),
    { outcome: "rejected", status: 422 }
  ],
  [Effect.succeed(UpstreamResponse.plain("trading-api", 403, "<html>")), { outcome: "released", status: 403 }],
  [Effect.succeed(UpstreamResponse.plain("trading-api", 502, "<html>")), { outcome: "unknown", status: 502 }],
  [
    Effect.fail(new OutcomeUnknown({ upstream: "trading-api", advice: "wait" })),
    { outcome: "unknown", status: undefined }
  ],
  [
    Effect.fail(new UpstreamUnavailable({ upstream: "trading-api", attempts: 1 })),
    { outcome: "released", status: undefined }
  ]
]

describe("the audit log", () => {
  it.effect("has an entry for each sending: who, what, and how it ended; nothing that is refused before, no signature", () => {
    const { entries, exchange } = audited()
    return Effect.gen(function*() {
      yield* TestClock.setTime(now)
      for (const [index, [answer]] of answers.entries()) {
        yield* answerWith(answer)
        yield* Effect.exit(relay(now + index, `request-${index}`))
      }
      yield* Effect.exit(relay(now))
      yield* Effect.exit(relay(1))
      assert.deepStrictEqual(
        entries.map(({ digest: _, ...entry }) => entry),
        answers.map(([, ended], index) => ({
          time: now,
          message: "action" as const,
          requestId: `request-${index}`,
          caller: "key:desk",
          signer,
          nonce: now + index,
          actionType: "evmUserModify",
          ...ended
        }))
      )
      assert.strictEqual(new Set(entries.map(({ digest }) => digest)).size, answers.length)
      const { r, s } = (yield* Effect.orDie(
        SandboxSigner.signAction(keys.trader, { nonce: now, action: { type: "evmUserModify", usingBigBlocks: true } })
      )).signature
      for (const part of [r, s]) assert.notInclude(JSON.stringify(entries), part.slice(2))
    }).pipe(
      Effect.provideService(CurrentCaller, { id: "key:desk", scope: {}, quota: {} }),
      Effect.provide(exchange)
    )
  })

  it.effect("has the sending of a caller that has left, when it ends", () => {
    const { entries, exchange } = audited()
    return Effect.gen(function*() {
      yield* TestClock.setTime(now)
      const gate = yield* Deferred.make<void>()
      yield* answerWith(Effect.as(Deferred.await(gate), ExchangeMemory.accepted))
      const fiber = yield* Effect.forkChild(relay(now), { startImmediately: true })
      const { received } = yield* ExchangeMemory.ExchangeState
      while ((yield* Ref.get(received)).length === 0) yield* Effect.yieldNow
      yield* Fiber.interrupt(fiber)
      assert.lengthOf(entries, 0)
      yield* TestClock.adjust(1500)
      yield* Deferred.succeed(gate, undefined)
      while (entries.length === 0) yield* Effect.yieldNow
      assert.deepStrictEqual(
        entries.map(({ caller, outcome, requestId, time }) => ({ caller, outcome, requestId, time })),
        [
          { caller: "local", outcome: "accepted", requestId: undefined, time: now + 1500 }
        ]
      )
    }).pipe(Effect.provide(exchange))
  })
})
