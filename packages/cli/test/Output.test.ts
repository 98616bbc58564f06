import { assert, describe, it } from "@effect/vitest"
import * as Output from "@trigate/cli/Output"

const name = { heading: "NAME", align: "left" } as const
const size = { heading: "SIZE", align: "right" } as const

describe("Tables", () => {
  it("aligns columns and leaves no space at the end of a line", () => {
    assert.strictEqual(
      Output.rows([size, name], [["1", "a"], ["12345", "bcdef"]]),
      " SIZE  NAME\n    1  a\n12345  bcdef"
    )
    assert.strictEqual(Output.rows([name, size], []), "NAME  SIZE")
  })

  it("counts what a terminal shows, not code units", () => {
    assert.strictEqual(Output.rows([name, size], [["代币", "1"], ["é", "22"]]), "NAME  SIZE\n代币     1\né       22")
  })

  it("shows what would move the cursor instead of moving it", () => {
    assert.strictEqual(Output.facts([["name", "a\u001B[2Jb\nc"], ["x", ""]]), "name  a\\u001b[2Jb\\u000ac\nx")
    assert.strictEqual(Output.rows([name], [["a\u202Eb"]]), "NAME\na\\u202eb")
  })
})

describe("Text of others", () => {
  it("cuts out what may be a private key, and leaves addresses", () => {
    const key = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
    assert.strictEqual(Output.withoutKeys(`a 0x${key} b ${key}0`), "a <64 hex digits> b <64 hex digits>")
    assert.strictEqual(Output.withoutKeys(`0x${key.slice(0, 40)}`), `0x${key.slice(0, 40)}`)
  })
})
