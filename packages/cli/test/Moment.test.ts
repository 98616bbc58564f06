import { assert, describe, it } from "@effect/vitest"
import * as Input from "@trigate/cli/Output"
import * as Option from "effect/Option"

const now = Date.UTC(2026, 10, 21, 12)

const read = (text: string) =>
  Option.getOrUndefined(Option.map(Input.readMoment(text), (at) => Input.toInstant(at, now)))

describe("Moment", () => {
  it("reads dates as midnight UTC, and times without a zone as UTC", () => {
    assert.strictEqual(read("2026-01-31"), Date.UTC(2026, 0, 31))
    assert.strictEqual(read("2026-01-31T12:30"), Date.UTC(2026, 0, 31, 12, 30))
    assert.strictEqual(read("2026-01-31T12:30:05.250Z"), Date.UTC(2026, 0, 31, 12, 30, 5, 250))
    assert.strictEqual(read("2026-01-31T12:30+02:00"), Date.UTC(2026, 0, 31, 10, 30))
  })

  it("reads milliseconds, and how long ago", () => {
    assert.strictEqual(read("1795262400000"), 1_795_262_400_000)
    assert.strictEqual(read("now"), now)
    assert.strictEqual(read("90s"), now - 90_000)
    assert.strictEqual(read("30m"), now - 1_800_000)
    assert.strictEqual(read("12h"), now - 43_200_000)
    assert.strictEqual(read("7d"), now - 604_800_000)
    assert.strictEqual(read("2w"), now - 1_209_600_000)
  })

  it("reads nothing else: seconds, days that do not exist, words, fractions", () => {
    for (
      const text of ["", "1795262400", "2026-02-30", "2026-13-01", "2026-01-31 12:00", "7", "7x", "-7d", "1.5h", "soon"]
    ) {
      assert.strictEqual(read(text), undefined, text)
    }
  })
})
