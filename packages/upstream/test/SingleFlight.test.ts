import { assert, describe, it } from "@effect/vitest"
import { QuotaExceeded } from "@trigate/domain/errors/GatewayError"
import * as SingleFlight from "@trigate/upstream/cache/ResponseCache"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"

/** An upstream whose answers a test gives one after the other; it knows how often it was asked and left. */
const upstream = Effect.sync(() => {
  const asked: Array<Deferred.Deferred<string, string>> = []
  let left = 0
  const send = Effect.suspend(() => {
    const answer = Deferred.makeUnsafe<string, string>()
    asked.push(answer)
    return Effect.onInterrupt(Deferred.await(answer), () =>
      Effect.sync(() => {
        left += 1
      }))
  })
  const nth = (index: number) => {
    const found = asked[index]
    assert.isDefined(found)
    return found
  }
  return {
    send,
    asked: () => asked.length,
    left: () => left,
    succeed: (index: number, value: string) => Deferred.succeed(nth(index), value),
    fail: (index: number, error: string) => Deferred.fail(nth(index), error)
  }
})

const settled = TestClock.adjust(0)

const herd = (size: number, run: Effect.Effect<string, string>) =>
  Effect.forEach(Array.from({ length: size }), () => Effect.forkChild(Effect.exit(run), { startImmediately: true }))

describe("SingleFlight", () => {
  it.effect("asks once for a herd of 50, and again for whoever comes after the answer", () =>
    Effect.gen(function*() {
      const peer = yield* upstream
      const flights = SingleFlight.makeSingleFlight<string, string>()
      let shared = 0
      const run = flights.run({
        key: "a",
        send: peer.send,
        onCoalesced: () => {
          shared += 1
        }
      })
      const fibers = yield* herd(50, run)
      yield* settled
      assert.strictEqual(peer.asked(), 1)
      assert.isTrue(flights.has("a"))
      yield* peer.succeed(0, "one")
      const exits = yield* Fiber.joinAll(fibers)
      assert.deepStrictEqual(exits, Array.from({ length: 50 }, () => Exit.succeed("one")))
      assert.strictEqual(shared, 49)
      assert.isFalse(flights.has("a"))
      const later = yield* herd(1, run)
      yield* peer.succeed(1, "two")
      assert.deepStrictEqual(yield* Fiber.joinAll(later), [Exit.succeed("two")])
      assert.strictEqual(peer.asked(), 2)
    }))

  it.effect("shares nothing between keys", () =>
    Effect.gen(function*() {
      const peer = yield* upstream
      const flights = SingleFlight.makeSingleFlight<string, string>()
      yield* herd(1, flights.run({ key: "a", send: peer.send }))
      yield* herd(1, flights.run({ key: "b", send: peer.send }))
      assert.strictEqual(peer.asked(), 2)
    }))

  it.effect("the others send once more after the leader failed, and get that answer", () =>
    Effect.gen(function*() {
      const peer = yield* upstream
      const flights = SingleFlight.makeSingleFlight<string, string>()
      const fibers = yield* herd(50, flights.run({ key: "a", send: peer.send }))
      yield* settled
      yield* peer.fail(0, "broken")
      yield* settled
      assert.strictEqual(peer.asked(), 2)
      yield* peer.succeed(1, "answer")
      const [first, ...others] = yield* Fiber.joinAll(fibers)
      assert.deepStrictEqual(first, Exit.fail("broken"))
      assert.deepStrictEqual(others, Array.from({ length: 49 }, () => Exit.succeed("answer")))
      assert.strictEqual(peer.asked(), 2)
    }))

  it.effect("a dead upstream is asked twice for a herd, not once for each of it", () =>
    Effect.gen(function*() {
      const peer = yield* upstream
      const flights = SingleFlight.makeSingleFlight<string, string>()
      const fibers = yield* herd(50, flights.run({ key: "a", send: peer.send }))
      yield* settled
      yield* peer.fail(0, "first")
      yield* settled
      yield* peer.fail(1, "second")
      const [first, ...others] = yield* Fiber.joinAll(fibers)
      assert.deepStrictEqual(first, Exit.fail("first"))
      assert.deepStrictEqual(others, Array.from({ length: 49 }, () => Exit.fail("second")))
      assert.strictEqual(peer.asked(), 2)
      assert.isFalse(flights.has("a"))
    }))

  it.effect("a caller who takes failures, or who waited longer than the maxWait, fails with the leader", () =>
    Effect.gen(function*() {
      const peer = yield* upstream
      const flights = SingleFlight.makeSingleFlight<string, string>({ maxWait: "5 seconds" })
      const old = yield* herd(2, flights.run({ key: "a", send: peer.send }))
      const content = yield* herd(1, flights.run({ key: "a", send: peer.send, takesFailure: true }))
      yield* TestClock.adjust(1)
      const young = yield* herd(1, flights.run({ key: "a", send: peer.send }))
      yield* TestClock.adjust(5000)
      yield* peer.fail(0, "late")
      assert.deepStrictEqual(yield* Fiber.joinAll([...old, ...content]), [
        Exit.fail("late"),
        Exit.fail("late"),
        Exit.fail("late")
      ])
      yield* settled
      assert.strictEqual(peer.asked(), 2)
      yield* peer.succeed(1, "answer")
      assert.deepStrictEqual(yield* Fiber.joinAll(young), [Exit.succeed("answer")])
    }))

  it.effect("a leader who leaves takes nobody along, however often that happens", () =>
    Effect.gen(function*() {
      const peer = yield* upstream
      const flights = SingleFlight.makeSingleFlight<string, string>()
      const fibers = yield* herd(4, flights.run({ key: "a", send: peer.send }))
      yield* settled
      for (const [index, fiber] of fibers.slice(0, 3).entries()) {
        assert.strictEqual(peer.asked(), index + 1)
        yield* Fiber.interrupt(fiber)
        yield* settled
        assert.strictEqual(peer.left(), index + 1)
      }
      assert.strictEqual(peer.asked(), 4)
      yield* peer.succeed(3, "answer")
      assert.deepStrictEqual(yield* Fiber.joinAll(fibers.slice(3)), [Exit.succeed("answer")])
    }))

  it.effect("a follower who leaves changes nothing; when all leave the upstream call is aborted", () =>
    Effect.gen(function*() {
      const peer = yield* upstream
      const flights = SingleFlight.makeSingleFlight<string, string>()
      const fibers = yield* herd(3, flights.run({ key: "a", send: peer.send }))
      yield* settled
      for (const fiber of fibers.toReversed()) yield* Fiber.interrupt(fiber)
      assert.strictEqual(peer.asked(), 1)
      assert.strictEqual(peer.left(), 1)
      assert.isFalse(flights.has("a"))
    }))

  it.effect("a defect of the leader is its own: the others send again", () =>
    Effect.gen(function*() {
      const flights = SingleFlight.makeSingleFlight<string, string>()
      const gate = yield* Deferred.make<void>()
      let asked = 0
      const send = Effect.suspend(() => {
        asked += 1
        return asked === 1 ? Effect.andThen(Deferred.await(gate), Effect.die("bug")) : Effect.succeed("answer")
      })
      const fibers = yield* herd(3, flights.run({ key: "a", send }))
      yield* Deferred.succeed(gate, undefined)
      const [first, ...others] = yield* Fiber.joinAll(fibers)
      assert.deepStrictEqual(first, Exit.die("bug"))
      assert.deepStrictEqual(others, [Exit.succeed("answer"), Exit.succeed("answer")])
    }))

  it.effect("lets each caller read by itself after a refusal that the leader earned, also one with another answer at hand", () =>
    Effect.gen(function*() {
      const peer = yield* upstream
      const flights = SingleFlight.makeSingleFlight<string, string>(
        {},
        (answer) => answer === "refused" ? "caller" : answer === "down" ? "upstream" : undefined
      )
      const fibers = [
        ...(yield* herd(3, flights.run({ key: "a", send: peer.send }))),
        ...(yield* herd(1, flights.run({ key: "a", send: peer.send, takesFailure: true })))
      ]
      yield* settled
      assert.strictEqual(peer.asked(), 1)
      yield* peer.succeed(0, "refused")
      yield* settled
      assert.strictEqual(peer.asked(), 4)
      yield* peer.succeed(1, "one")
      yield* peer.succeed(2, "refused")
      yield* peer.succeed(3, "down")
      const exits = yield* Fiber.joinAll(fibers)
      assert.deepStrictEqual(exits, ["refused", "one", "refused", "down"].map(Exit.succeed))
      assert.strictEqual(peer.asked(), 4)
    }))

  it.effect("does not share the failure of a leader that has no share of the rate limit left", () =>
    Effect.gen(function*() {
      const flights = SingleFlight.makeSingleFlight<string, QuotaExceeded>()
      const refused = new QuotaExceeded({ retryAfter: 60 })
      const leaders: Array<Deferred.Deferred<string, QuotaExceeded>> = []
      const send = Effect.suspend(() => {
        const answer = Deferred.makeUnsafe<string, QuotaExceeded>()
        leaders.push(answer)
        return Deferred.await(answer)
      })
      const run = flights.run({ key: "a", send, takesFailure: true })
      const fibers = yield* Effect.forEach(
        [1, 2, 3, 4],
        () => Effect.forkChild(Effect.exit(run), { startImmediately: true })
      )
      for (const index of [0, 1, 2]) {
        yield* settled
        yield* Deferred.fail(leaders[index] ?? assert.fail(), refused)
      }
      yield* settled
      yield* Deferred.succeed(leaders[3] ?? assert.fail(), "answer")
      const exits = yield* Fiber.joinAll(fibers)
      assert.deepStrictEqual(exits.map(Exit.isSuccess), [false, false, false, true])
      assert.strictEqual(leaders.length, 4)
    }))
})
