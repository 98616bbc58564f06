import { assert, describe, it } from "@effect/vitest"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import { Exchange } from "@trigate/trading/Exchange"
import { TradingEvm } from "@trigate/trading/TradingEvm"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { actionTypes, body, isActionType } from "../src/bodies.ts"

const now = 1_795_230_000_000

describe("sandbox-actions", () => {
  for (const type of actionTypes) {
    it.effect(`the sandbox takes its ${type}`, () =>
      Effect.gen(function*() {
        yield* TestClock.setTime(now)
        const exchange = yield* Exchange
        assert.isTrue(isActionType(type))
        if (!isActionType(type)) return
        const text = yield* body(type, now)
        const { response, warnings } = yield* exchange.relay({ body: Utf8.encode(text), surface: "gateway" })
        assert.strictEqual(response.text, "{\"status\":\"ok\",\"response\":{\"type\":\"default\"}}")
        assert.deepStrictEqual(warnings, [])
        if (type === "evmUserModify") {
          const evm = yield* TradingEvm
          assert.isTrue(yield* evm.usingBigBlocks({ address: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266" }))
        }
      }).pipe(Effect.provide(Sandbox.layer())))
  }
})
