/** Transactions whose cells share subtrees: n cells with 2^n entries. */
import { assert, describe, it } from "@effect/vitest"
import type { Builder } from "@ton/core"
import { Address, beginCell, Cell, serializeTuple } from "@ton/core"
import type { AccountTransaction } from "@trigate/domain/tokens/TokenData"
import * as TransactionCell from "@trigate/tokens/unstable/transactions/TransactionCell"
import * as Result from "effect/Result"

const hash = "a".repeat(64)
const account = { workchain: 0, hash } as const
const address = Address.parseRaw(`0:${hash}`)

/** Returns a tree of `levels` levels whose subtrees are all the same. */
const shared = (levels: number, leaf: Cell): Cell =>
  levels === 0 ? leaf : shared(levels - 1, beginCell().storeUint(0, 2).storeRef(leaf).storeRef(leaf).endCell())

/** Returns a dictionary of 2^levels entries with the same value. The remaining bits of each key are 0. */
const dictionary = (keyBits: number, levels: number, value: Builder): Cell => {
  const label = keyBits - levels
  return shared(
    levels,
    beginCell().storeUint(0b110, 3).storeUint(label, Math.ceil(Math.log2(label + 1))).storeBuilder(value).endCell()
  )
}

interface MessageParts {
  readonly body?: Cell
  readonly currencies?: Cell | null
  readonly libraries?: Cell | null
  readonly inline?: boolean
}

const message = ({ body = Cell.EMPTY, currencies = null, inline = false, libraries = null }: MessageParts): Cell => {
  const header = beginCell().storeUint(0, 4).storeAddress(address).storeAddress(address)
    .storeCoins(1).storeMaybeRef(currencies).storeCoins(0).storeCoins(0).storeUint(1, 96)
    .storeBit(1).storeBit(0).storeUint(0, 4).storeMaybeRef(libraries)
  return (inline ? header.storeBit(0).storeSlice(body.beginParse()) : header.storeBit(1).storeRef(body)).endCell()
}

const transaction = (
  { fees = null, received = message({}), sent = null }: {
    readonly fees?: Cell | null
    readonly received?: Cell
    readonly sent?: Cell | null
  }
): string =>
  beginCell().storeUint(7, 4).storeUint(BigInt(`0x${hash}`), 256).storeUint(2, 64).storeUint(0, 256).storeUint(1, 64)
    .storeUint(1_760_000_000, 32).storeUint(0, 15).storeUint(0b1010, 4)
    .storeRef(beginCell().storeBit(1).storeRef(received).storeMaybeRef(sent).endCell())
    .storeCoins(1).storeMaybeRef(fees)
    .storeRef(beginCell().storeUint(0x72, 8).storeUint(0, 256).storeUint(0, 256).endCell())
    // an ordinary transaction whose computation was skipped
    .storeRef(beginCell().storeUint(0, 4).storeUint(0, 3).storeUint(0, 3).storeUint(0, 4).endCell())
    .endCell().toBoc().toString("base64")

const currencies = (levels: number): Cell => dictionary(32, levels, beginCell().storeUint(1, 5).storeUint(9, 8))

const libraries = (levels: number): Cell => dictionary(256, levels, beginCell().storeBit(1).storeRef(Cell.EMPTY))

const sent = (levels: number, body: Cell): Cell => dictionary(15, levels, beginCell().storeRef(message({ body })))

/** Returns `length` cells, each of which refers to the next one. */
const chain = (length: number): Cell => {
  let cell = Cell.EMPTY
  for (let index = 1; index < length; index++) cell = beginCell().storeUint(index, 32).storeRef(cell).endCell()
  return cell
}

const read = (data: string): Result.Result<AccountTransaction, string> => TransactionCell.read(data, account)

const tooLarge = "Expected a transaction that expands to at most 32768 cells"

describe("cells of a transaction that share subtrees", () => {
  const refused: ReadonlyArray<readonly [what: string, data: string]> = [
    ["currencies of the fees", transaction({ fees: currencies(15) })],
    ["currencies of the received message", transaction({ received: message({ currencies: currencies(15) }) })],
    ["libraries of the received message", transaction({ received: message({ libraries: libraries(15) }) })],
    [
      "libraries of a sent message",
      transaction({
        sent: dictionary(15, 0, beginCell().storeRef(message({ libraries: libraries(15) })))
      })
    ],
    ["sent messages", transaction({ sent: sent(14, Cell.EMPTY) })],
    ["a body that sent messages share", transaction({ sent: sent(7, chain(300)) })]
  ]
  for (const [what, data] of refused) {
    it(`are refused in ${what}`, () => {
      assert.isBelow(data.length, 20_000)
      assert.deepStrictEqual(read(data), Result.fail(tooLarge))
    })
  }

  it("are refused in a deep dictionary without being visited", () => {
    // 2^200 entries: decoding does not end
    const forks = beginCell().storeUint(0, 2)
    assert.deepStrictEqual(
      read(transaction({ received: message({ libraries: shared(200, forks.endCell()) }) })),
      Result.fail(tooLarge)
    )
  })

  it("are decoded within the limit", () => {
    const { outMessages } = Result.getOrThrow(read(transaction({
      fees: currencies(8),
      received: message({ currencies: currencies(8), libraries: libraries(8) }),
      sent: sent(8, chain(20))
    })))
    assert.strictEqual(outMessages.length, 256)
  })

  it("are returned in the body of a message, which is not expanded", () => {
    for (const inline of [false, true]) {
      const body = shared(60, beginCell().storeUint(7, 32).endCell())
      const { inMessage } = Result.getOrThrow(read(transaction({ received: message({ body, inline }) })))
      assert.strictEqual(inMessage?.body, body.toBoc().toString("base64"))
    }
  })
})

describe("stacks whose tuples share entries", () => {
  /** A stack entry: a tuple of the same tuple twice, and so on. Its cells are shared. */
  const pair = (levels: number, leaf: Cell): Cell =>
    levels === 0
      ? leaf
      : pair(levels - 1, beginCell().storeUint(7, 8).storeUint(2, 16).storeRef(leaf).storeRef(leaf).endCell())

  const stack = (entry: Cell): Cell =>
    beginCell().storeUint(1, 24).storeRef(Cell.EMPTY).storeSlice(entry.beginParse()).endCell()

  const nothing = beginCell().storeUint(0, 8).endCell()
  const large = beginCell().storeUint(3, 8)
    .storeRef(beginCell().storeRef(Cell.EMPTY).storeRef(beginCell().storeBit(1).endCell()).endCell()).endCell()

  it("are counted as often as they are decoded", () => {
    const isBounded = (entry: Cell) => TransactionCell.isBoundedStack(stack(entry), 1_023)
    assert.isTrue(isBounded(pair(9, nothing)))
    assert.isFalse(isBounded(pair(10, nothing)))
    assert.isFalse(isBounded(pair(200, nothing)))
    // an entry with a cell counts with the three cells beneath
    assert.isTrue(isBounded(pair(7, large)))
    assert.isFalse(isBounded(pair(8, large)))
  })

  it("are counted in lists of any length", () => {
    const tuple = (length: number) =>
      serializeTuple([
        { type: "int", value: 1n },
        { type: "tuple", items: Array.from({ length }, () => ({ type: "int", value: 7n })) }
      ])
    for (const length of [0, 1, 2, 3, 255]) {
      assert.isTrue(TransactionCell.isBoundedStack(tuple(length), length + 2))
      assert.isFalse(TransactionCell.isBoundedStack(tuple(length), length + 1))
    }
  })
})

it("the header of a bag of cells contains the number of its cells", () => {
  const cells = transaction({})
  assert.strictEqual(TransactionCell.countCells(cells), 6)
  assert.strictEqual(TransactionCell.countCells(` ${cells}`), 6)
  assert.strictEqual(TransactionCell.countCells(""), 0)
})
