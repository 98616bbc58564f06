import { assert, describe, it } from "@effect/vitest"
import { oneLine, printable, printableLines } from "@trigate/domain/encoding/Encoding"

/** What a terminal acts on, with its escape. */
const acting: ReadonlyArray<readonly [what: string, text: string, escaped: string]> = [
  ["a colour", "\u001B[31m", "\\u001b[31m"],
  ["the beginning of a sequence in one byte", "\u009B2J", "\\u009b2J"],
  ["a bell", "\u0007", "\\u0007"],
  ["a deletion", "\u007F", "\\u007f"],
  ["a carriage return", "\r", "\\u000d"],
  ["a reversed direction", "\u202E", "\\u202e"],
  ["an isolated direction", "\u2066", "\\u2066"],
  ["a character without width", "\u200B", "\\u200b"],
  ["a byte order mark", "\uFEFF", "\\ufeff"],
  ["a line separator", "\u2028", "\\u2028"],
  ["a tag beyond the first plane", "\u{E0041}", "\\udb40\\udc41"]
]

describe("TerminalEscape", () => {
  for (const [what, text, escaped] of acting) {
    it(`escapes ${what}`, () => {
      assert.strictEqual(printable(`a${text}b`), `a${escaped}b`)
      assert.strictEqual(printableLines(`a${text}\nb`), `a${escaped}\nb`)
      // an escape in a string of a JSON document stands for what it replaces
      const document = JSON.stringify({ text }, undefined, 2)
      assert.deepStrictEqual(JSON.parse(printableLines(document)), { text })
    })
  }

  it("leaves other texts as they are", () => {
    for (const text of ["", "{\"a\":1}", "代币 é €", "\u{1F600}", "a\\u0007"]) {
      assert.strictEqual(printable(text), text)
      assert.strictEqual(printableLines(text), text)
    }
  })

  it("makes one line of many", () => {
    assert.strictEqual(oneLine(" a\n\n  b\tc\u0007 "), "a b c\\u0007")
    assert.strictEqual(printable("a\nb"), "a\\u000ab")
  })
})
