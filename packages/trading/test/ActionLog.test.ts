import { assert, describe, it } from "@effect/vitest"
import * as ActionLog from "@trigate/trading/actionLog/ActionLog"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { now, sending, suite } from "./actionLogSuite.ts"

describe("the action log in memory", () => {
  suite((options) => Effect.succeed(ActionLog.layerMemory(options)))

  it.effect("claims in one synchronous step", () =>
    Effect.gen(function*() {
      const log = yield* ActionLog.makeMemory()
      const claimed = log.tryClaim(sending(), 0)
      assert(claimed !== undefined && Result.isSuccess(claimed))
      const again = log.tryClaim(sending(), 0)
      assert(again !== undefined && Result.isFailure(again))
      assert.strictEqual(again.failure._tag, "NonceAlreadyUsed")
      // what is too old has to be told in the log before it goes
      assert.isUndefined(log.tryClaim(sending({ nonce: now + 1 }), now))
    }))
})
