import { assert, describe, it } from "@effect/vitest"
import { background } from "@trigate/domain/Caller"
import * as Sessions from "@trigate/server/unstable/streams/Sessions"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

describe("the open sockets of a caller", () => {
  it.effect("count from the beginning of their opening, however long it waits", () =>
    Effect.gen(function*() {
      const use = Sessions.makeUse({ sockets: 2, bytesIn: 1, bytesOut: 1 })
      const caller = background("caller")
      const opened = yield* Deferred.make<void>()
      const opening = Effect.andThen(Deferred.await(opened), Effect.sync(() => void use.open(caller)))
      const first = yield* Effect.forkChild(use.admit(caller, opening), { startImmediately: true })
      const second = yield* Effect.forkChild(use.admit(caller, opening), { startImmediately: true })
      const refused = Effect.flip(use.admit(caller, Effect.void))
      assert.strictEqual((yield* refused)._tag, "QuotaExceeded")
      yield* use.admit(background("other"), Effect.void)
      // an opening that is abandoned counts no longer
      yield* Fiber.interrupt(first)
      yield* use.admit(caller, Effect.void)
      yield* Deferred.succeed(opened, undefined)
      yield* Fiber.join(second)
      yield* use.admit(caller, Effect.sync(() => void use.open(caller)))
      yield* refused
      use.close(caller)
      yield* use.admit(caller, Effect.void)
    }))
})

describe("the filters of open subscriptions", () => {
  it("take a quarter of their bytes for one caller at most, and all of them for all callers", () => {
    const { release, reserve } = Sessions.makeFilterUse()
    const quarter = Sessions.mostFilters / 4
    assert.isTrue(reserve("a", quarter))
    assert.isFalse(reserve("a", 1))
    for (const caller of ["b", "c", "d"]) assert.isTrue(reserve(caller, quarter))
    assert.isFalse(reserve("e", 1))
    release("a", 10)
    assert.isTrue(reserve("e", 10))
    assert.isFalse(reserve("a", 1))
  })
})

describe("the bytes that are retained for callers", () => {
  it("are those of their streams and filters, by the name of their key", () => {
    const filters = Sessions.makeFilterUse()
    filters.reserve("key:desk", 256)
    filters.reserve("address:127.0.0.1", 512)
    const stream = (id: string, pending: number) => ({ caller: { id, scope: {}, quota: {} }, pending })
    const streams = [stream("key:desk", 10), stream("address:127.0.0.2", 1), stream("address:127.0.0.3", 2)]
    assert.deepStrictEqual(
      [...Sessions.retainedByGroup(streams, filters.byCaller)],
      [["desk", 266], ["address", 515]]
    )
  })
})

describe("the unread bytes of all streams", () => {
  it("close the streams that have the most, until the others have few enough", () => {
    const closed: Array<string> = []
    const streams = Object.entries({ a: 30, b: 50, c: 10, d: 40 }).map(([name, pending]) => ({
      pending,
      close: (closing: string) => void closed.push(`${name} ${closing}`)
    }))
    assert.strictEqual(Sessions.limitPending(streams, 130), 130)
    assert.deepStrictEqual(closed, [])
    assert.strictEqual(Sessions.limitPending(streams, 79), 40)
    assert.deepStrictEqual(closed, ["b slow", "d slow"])
  })
})
