/** The reservations of an account: rates that only grow, and changes that survive what other replicas write. */
import { assert, describe, it } from "@effect/vitest"
import { randomBy } from "@trigate/testing/SeededRandom"
import { Reservations, type Reserved } from "@trigate/trading/unstable/guard/GuardedAccounts"

const market = { coin: "BTC", dex: "", quote: "USDC" }

const entry = (size: number): Reserved => ({
  nonce: 1,
  signer: `0x${"ab".repeat(20)}`,
  orders: [{ market, isBuy: true, size, price: 100, isReduceOnly: false }],
  isOwn: true,
  state: "sent",
  since: 0,
  exposure: undefined
})

const list = ({ entries }: Reservations): ReadonlyArray<string> =>
  [...entries].map(([id, { state }]) => `${id} ${state}`)

describe("the new orders of an account", () => {
  it("count for 60 seconds, and say when more are allowed", () => {
    const reservations = new Reservations(false)
    reservations.countOrders(100, 3)
    reservations.countOrders(130, 2)
    assert.strictEqual(reservations.orders(160), 5)
    assert.strictEqual(reservations.wait(140, 1, 5), 21)
    assert.strictEqual(reservations.wait(140, 4, 5), 51)
    assert.isUndefined(reservations.wait(140, 6, 5))
    assert.strictEqual(reservations.wait(140, 0, 5), 0)
    // at 161, the orders of the second 100 are more than 60 seconds old
    assert.strictEqual(reservations.orders(161), 2)
    assert.strictEqual(reservations.orders(191), 0)
  })

  it("are never more than the limit in any 60 seconds", () => {
    for (let seed = 1; seed <= 50; seed++) {
      const below = randomBy(seed)
      const limit = 1 + below(20)
      const reservations = new Reservations(false)
      const sent: Array<number> = []
      for (let millis = 0; millis < 300_000; millis += 1 + below(4000)) {
        const second = Math.floor(millis / 1000)
        const more = 1 + below(4)
        if (reservations.orders(second) + more > limit) {
          const wait = reservations.wait(second, more, limit)
          if (wait === undefined) assert.isAbove(more, limit)
          else assert.isAtMost(reservations.orders(second + wait) + more, limit, `seed ${seed}`)
          continue
        }
        reservations.countOrders(second, more)
        for (let order = 0; order < more; order++) sent.push(millis)
      }
      for (const from of sent) {
        assert.isAtMost(sent.filter((at) => at >= from && at <= from + 60_000).length, limit, `seed ${seed}`)
      }
    }
  })
})

describe("reservations", () => {
  it("leave nothing behind in one process", () => {
    const reservations = new Reservations(false)
    for (let index = 0; index < 100; index++) {
      reservations.entries.set(String(index), entry(1))
      reservations.change(String(index), "gone", 0)
    }
    assert.isFalse(reservations.isChanged)
    assert.deepStrictEqual(list(reservations), [])
  })

  it("are those of all replicas, with the changes that are not stored yet", () => {
    const [one, other] = [new Reservations(true), new Reservations(true)]
    one.entries.set("a", entry(1))
    one.entries.set("b", entry(2))
    one.countOrders(5, 2)
    one.seen = 7
    const first = one.encode()
    first.stored()
    assert.strictEqual(one.version, 1)
    other.adopt({ version: 1, text: first.text }, 10, () => market)
    assert.deepStrictEqual(list(other), ["a sent", "b sent"])
    assert.deepStrictEqual(other.entries.get("b")?.orders, entry(2).orders)
    assert.deepStrictEqual([other.seen, other.version, other.orders(6), other.entries.get("a")?.isOwn], [
      7,
      1,
      2,
      false
    ])
    // both change; the other one stores first
    one.change("a", "settled", 20)
    other.change("b", "gone", 20)
    other.entries.set("c", entry(3))
    const second = other.encode()
    second.stored()
    one.adopt({ version: 2, text: second.text }, 30, () => market)
    assert.deepStrictEqual(list(one), ["a settled", "c sent"])
    assert.isTrue(one.isChanged)
    one.encode().stored()
    assert.isFalse(one.isChanged)
    assert.deepStrictEqual([one.version, one.entries.get("a")?.isOwn, one.entries.get("c")?.isOwn], [3, true, false])
  })

  it("of an unreadable document are refused, and those of a lost one end", () => {
    const reservations = new Reservations(true)
    reservations.entries.set("a", entry(1))
    reservations.version = 3
    reservations.seen = 7
    assert.isFalse(reservations.adopt({ version: 4, text: "{}" }, 0, () => market))
    assert.deepStrictEqual([list(reservations), reservations.version, reservations.seen], [["a sent"], 3, 7])
    assert.isTrue(reservations.adopt(undefined, 0, () => market))
    assert.deepStrictEqual([list(reservations), reservations.version, reservations.seen], [[], 0, 7])
  })
})
