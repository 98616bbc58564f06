import { assert, describe, it } from "@effect/vitest"
import { makeMonotonicTime as time, type MonotonicTime } from "@trigate/domain/encoding/Encoding"
import { Pacer } from "@trigate/upstream/unstable/limits/RateWindow"
import * as RateWindow from "@trigate/upstream/unstable/limits/RateWindow"
import * as Effect from "effect/Effect"

/** 1140 units of reads in 61 seconds: 1026 flow back evenly, 91 may be used at once. */
const bounds = RateWindow.windowBounds(1200, 60_000, 60, 0.05)
const rate = 1026 / 61_000

const refresh = (key: string, caller = "one", cost = 2) => ({ key, caller, cost, start: Effect.void })

/** The keys that get a turn while units are there for so many of cost 2. */
const turns = (pacer: Pacer, now: MonotonicTime, count: number) =>
  Array.from({ length: count }, () => {
    const next = pacer.next(now)
    if (next !== undefined) pacer.use(next.cost, now)
    return next?.key
  })

/** A pacer that has used up all, and the time at which units for so many refreshes of cost 2 have flowed back. */
const spent = (count: number) => {
  const pacer = new Pacer(bounds)
  pacer.use(91.2, time(0))
  return { pacer, at: time((2 * count - 1) / rate) }
}

describe("Pacer", () => {
  it("lets 8 % of the limit start at once, then as much as flows back", () => {
    const pacer = new Pacer(bounds)
    let started = 0
    for (let millis = 0; millis < 61_000; millis += 100) {
      const now = time(millis)
      pacer.wait(refresh(`${millis}`), 1, now)
      for (let next = pacer.next(now); next !== undefined; next = pacer.next(now)) {
        pacer.use(2, now)
        started += 2
        pacer.wait(refresh(`${millis} ${started}`), 1, now)
      }
    }
    // the last one may use a unit more than there is
    assert.isAtMost(started, 1026 + 92 + 1)
    assert.isAtLeast(started, 1026 + 91 - 3)
  })

  it("gives the turn to the refresh for which reads have waited most, for each unit that it costs", () => {
    const { at, pacer } = spent(4)
    pacer.wait(refresh("short"), 1000, at)
    pacer.wait(refresh("long"), 2000, at)
    pacer.wait(refresh("twice"), 1500, at)
    pacer.wait(refresh("twice"), 1500, at)
    pacer.wait(refresh("dear", "one", 20), 9000, at)
    assert.deepStrictEqual(turns(pacer, at, 5), ["twice", "long", "short", "dear", undefined])
  })

  it("gives turns to callers one after the other, however many refreshes each waits for", () => {
    const { at, pacer } = spent(6)
    for (const key of ["a1", "a2", "a3", "a4"]) pacer.wait(refresh(key, "a"), 9000, at)
    for (const key of ["b1", "b2"]) pacer.wait(refresh(key, "b"), 1, at)
    assert.deepStrictEqual(turns(pacer, at, 6), ["a1", "b1", "a2", "b2", "a3", "a4"])
  })

  it("counts a refresh that several callers wait for as a turn of each", () => {
    const { at, pacer } = spent(3)
    for (const caller of ["a", "b"]) pacer.wait(refresh("both", caller), 500, at)
    pacer.wait(refresh("a1", "a"), 900, at)
    pacer.wait(refresh("c1", "c"), 1, at)
    assert.deepStrictEqual(turns(pacer, at, 3), ["both", "c1", "a1"])
  })

  it("forgets a refresh for which nobody asks any more, and one whose response was read", () => {
    const { pacer } = spent(1)
    pacer.wait(refresh("old"), 1, time(0))
    pacer.wait(refresh("read"), 1, time(9000))
    pacer.forget("read")
    assert.isUndefined(pacer.next(time(10_001)))
    assert.isTrue(pacer.isIdle(time(10_001)))
  })

  it("holds what one call uses at once against refreshes for five and a half seconds at most", () => {
    const pacer = new Pacer(bounds)
    pacer.use(1000, time(0))
    assert.isTrue(pacer.isSpent(time(91.2 / rate - 1)))
    assert.isFalse(pacer.isSpent(time(91.2 / rate + 1)))
  })

  it("waits a quarter of a second after a refresh that found no room", () => {
    const pacer = new Pacer(bounds)
    pacer.pause(time(0))
    assert.isTrue(pacer.isSpent(time(249)))
    assert.isFalse(pacer.isSpent(time(251)))
  })
})
