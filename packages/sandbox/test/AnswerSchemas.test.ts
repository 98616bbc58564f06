import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { decodeRun } from "./answerSchemas.ts"
import { atStart } from "./venue.ts"

describe("random trading", () => {
  it.effect("has answers and frames of the declared schemas only", () =>
    atStart(Effect.gen(function*() {
      const { answers, frames, mistakes } = yield* decodeRun(11, 20)
      assert.deepStrictEqual(mistakes, [])
      assert.isAbove(answers, 400)
      assert.isAbove(frames, 200)
    })))
})
