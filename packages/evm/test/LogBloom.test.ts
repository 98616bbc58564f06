import { assert, describe, it } from "@effect/vitest"
import { selectionIn } from "@trigate/domain/evm/EvmResources"
import { mayHave } from "@trigate/evm/unstable/LogSearch"

const address = "0x5fbdb2315678afecb367f032d93f642f64180aa3"
const event = "0xc5cacf704baba5278faf9538c31064df714bebbd331915abfaf64a6b9e89d897"
const word = (value: number) => `0x${value.toString(16).padStart(64, "0")}` as const

/** The bloom filter of anvil's block with one log of `address`, with the topics `event` and 1: its bytes that are not zero. */
const bytes = new Map([[61, 0x04], [62, 0x40], [82, 0x04], [85, 0x04], [99, 0x40], [155, 0x02], [184, 0x01], [
  195,
  0x40
], [222, 0x40]])
const bloom = `0x${
  Array.from({ length: 256 }, (_, index) => (bytes.get(index) ?? 0).toString(16).padStart(2, "0")).join("")
}`

describe("a bloom filter", () => {
  it.each<readonly [may: boolean, filter: Parameters<typeof selectionIn>[0]]>([
    [true, {}],
    [true, { address }],
    [true, { topics: [event, word(1)] }],
    [true, { address: [`0x${"1".repeat(40)}`, address], topics: [null, [word(2), word(1)]] }],
    [false, { address: `0x${"1".repeat(40)}` }],
    [false, { topics: [word(2)] }],
    [false, { address, topics: [event, word(2)] }],
    [false, { address, topics: [event, [word(2), word(3)]] }]
  ])("may contain logs: %s, of %j", (may, filter) => {
    assert.strictEqual(mayHave(bloom, selectionIn(filter)), may)
  })

  it("that is missing or malformed excludes nothing", () => {
    const selection = selectionIn({ address: `0x${"1".repeat(40)}` })
    assert.deepStrictEqual([undefined, "0x", "0x00", `${bloom}00`].map((each) => mayHave(each, selection)), [
      true,
      true,
      true,
      true
    ])
    const empty = `0x${"0".repeat(512)}`
    assert.deepStrictEqual([mayHave(empty, selection), mayHave(empty, selectionIn({}))], [false, false])
  })
})
