import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { decodeRun } from "./answerSchemas.ts"
import { atStart } from "./venue.ts"

describe("days of random trading", () => {
  it.effect.each([1, 2])(
    "have answers and frames of the declared schemas only, run %i",
    (run) =>
      atStart(Effect.map(decodeRun(100 + run, 400, true), ({ mistakes }) => assert.deepStrictEqual(mistakes, []))),
    600_000
  )
})
