import { assert, describe, it } from "@effect/vitest"
import { Layer2 } from "@trigate/evm/Layer2"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import * as Conformance from "@trigate/testing/Conformance"
import { TokenChain } from "@trigate/tokens/TokenChain"
import { Exchange } from "@trigate/trading/Exchange"
import { Info } from "@trigate/trading/Info"
import { TradingEvm } from "@trigate/trading/TradingEvm"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as TestClock from "effect/testing/TestClock"
import { start } from "./venue.ts"

const target = Effect.gen(function*() {
  return {
    exchange: yield* Exchange,
    info: yield* Info,
    evm: yield* TradingEvm,
    tokens: yield* TokenChain,
    layer2: yield* Layer2
  }
})

describe("the sandbox conforms", () => {
  it.effect("every check, one after the other, on one state", () =>
    TestClock.setTime(start).pipe(
      Effect.andThen(Effect.provide(
        Effect.gen(function*() {
          const failed: Array<string> = []
          for (const check of Conformance.conformance(yield* target)) {
            const result = yield* Effect.result(check.effect)
            if (Result.isFailure(result)) failed.push(`${check.name}: ${result.failure.message}`)
          }
          assert.deepStrictEqual(failed, [])
        }),
        Sandbox.layer()
      ))
    ))

  it.effect("twice on one state, with nonces apart", () =>
    TestClock.setTime(start).pipe(
      Effect.andThen(Effect.provide(
        Effect.gen(function*() {
          const services = yield* target
          for (const firstNonce of [0, 1_000]) {
            yield* Effect.forEach(Conformance.conformance(services, { firstNonce }), ({ effect }) => effect)
          }
        }),
        Sandbox.layer()
      ))
    ))

  it.effect("and notices chains that behave otherwise", () =>
    TestClock.setTime(start).pipe(
      Effect.andThen(Effect.provide(
        Effect.gen(function*() {
          const state = yield* SandboxState
          yield* state.info.delistCoin("BTC")
          yield* state.venue.makeMultiSig("0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266", {
            authorizedUsers: ["0x15d34aaf54267db7d7c367839aaf71a00a2c6a65"],
            threshold: 1
          })
          const failed: Array<string> = []
          for (const { effect, name } of Conformance.conformance(yield* target)) {
            if (Result.isFailure(yield* Effect.result(effect))) failed.push(name)
          }
          assert.includeMembers(failed, [
            "BTC has hourly bars, and the last bar has not closed",
            "stake is delegated and undelegated"
          ])
          assert.notInclude(failed, "a validator unjails itself")
        }),
        Sandbox.layer()
      ))
    ))
})
