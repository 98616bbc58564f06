import { assert, describe, it } from "@effect/vitest"
import { agree, RowSet } from "@trigate/upstream/unstable/streams/Topic"
import type { Row } from "@trigate/upstream/unstable/streams/Topic"

const row = (content: object, id = "1"): Row => ({ id, text: JSON.stringify(content), time: 0 })

describe("the contents of two rows", () => {
  for (
    const [one, other, expected] of [
      [{ oid: 1, tid: 0 }, { tid: 0, oid: 1 }, true],
      [{ oid: 1 }, { oid: 1, feeToken: "USDC" }, true],
      [{ oid: 1, twapId: null }, { oid: 1 }, true],
      [{ oid: 1, twapId: null }, { oid: 1, twapId: 5, builderFee: "0.1" }, true],
      [{ delta: { type: "send" }, time: 1 }, { delta: { type: "send", fee: "0" }, time: 1 }, true],
      [{ order: { oid: 1 }, children: [{ a: 1 }] }, { order: { oid: 1 }, children: [{ a: 1, b: 2 }] }, true],
      [{ oid: 9007199254740993n }, { oid: 9007199254740993n }, true],
      [{ oid: 1, sz: "1.0" }, { oid: 1, sz: "2.0" }, false],
      [{ oid: 1, sz: "1.0" }, { oid: 1, sz: "1.00" }, false],
      [{ oid: 1, cloid: "0x1" }, { oid: 1, twapId: 5 }, false],
      [{ oid: 1, twapId: 4, a: null }, { oid: 1, twapId: 5 }, false],
      [{ delta: { type: "send" } }, { delta: { type: "deposit" } }, false],
      [{ delta: {} }, { delta: [] }, false],
      [{ list: [1] }, { list: [1, 2] }, false],
      [{ oid: "1" }, { oid: 1 }, false]
    ] as const
  ) {
    it(`${expected ? "agree" : "differ"}: ${String(Object.entries(one))} and ${String(Object.entries(other))}`, () => {
      assert.deepStrictEqual([agree(one, other), agree(other, one)], [expected, expected])
    })
  }
})

describe("a set of rows", () => {
  it("finds the rows of a frame that repeat no known row", () => {
    const set = new RowSet([row({ oid: 1, sz: "1" }), row({ oid: 1, sz: "2" })])
    const [changed, longer, keyed] = [
      row({ oid: 1, sz: "3" }),
      row({ sz: "2", oid: 1, fee: "0" }),
      row({ oid: 1, sz: "1" }, "2")
    ]
    assert.deepStrictEqual(set.unseen([changed, longer, keyed]), [changed, keyed])
    assert.deepStrictEqual([set.hasAnyOf([changed, longer]), set.hasAnyOf([changed])], [true, false])
  })

  it("takes equal rows of one frame for different events, and an equal row of a later frame for the same", () => {
    const set = new RowSet([row({ oid: 1 })])
    assert.deepStrictEqual(set.unseen([row({ oid: 1 }), row({ oid: 1 })]).length, 1)
    assert.deepStrictEqual(set.unseen([row({ oid: 1 })]), [])
  })

  it("matches equal texts before texts that agree", () => {
    const set = new RowSet([row({ oid: 1 })])
    const longer = row({ oid: 1, twapId: 2 })
    assert.deepStrictEqual(set.unseen([longer, row({ oid: 1 })]), [longer])
    assert.deepStrictEqual(set.unseen([longer]), [])
  })

  it("compares rows that are not JSON by their text", () => {
    const set = new RowSet([{ id: "1", text: "{", time: 0 }])
    assert.deepStrictEqual(set.unseen([{ id: "1", text: "{", time: 0 }]), [])
    assert.strictEqual(set.unseen([{ id: "1", text: "[", time: 0 }]).length, 1)
  })

  it("tells whether an ID is known, and forgets the rows that are deleted or taken", () => {
    const [one, other] = [row({ sz: "1" }), row({ sz: "2" })]
    const set = new RowSet()
    assert.deepStrictEqual([set.add(one), set.add(other), set.size], [false, true, 2])
    set.delete(one)
    set.delete(one)
    assert.deepStrictEqual([set.unseen([one]), set.size], [[one], 1])
    assert.deepStrictEqual([set.take([one, row({ sz: "2" })]), set.size], [[one], 0])
    assert.isFalse(set.add(one))
    set.clear()
    assert.deepStrictEqual([set.size, set.unseen([one])], [0, [one]])
  })
})
