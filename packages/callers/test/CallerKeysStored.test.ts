import { assert, describe, it } from "@effect/vitest"
import * as CallerKeys from "@trigate/callers/CallerKeys"
import * as Key from "@trigate/callers/KeyStore"
import { KeyStore, KeyStoreFault, layerMemory } from "@trigate/callers/KeyStore"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/testing/TestClock"

/** A store in memory that counts how often it is asked, and can be away. */
const watched = Effect.gen(function*() {
  const store = yield* Effect.provide(KeyStore, layerMemory)
  const state = { asked: 0, fault: undefined as KeyStoreFault | undefined, noted: [] as Array<ReadonlyArray<unknown>> }
  const reach = <A>(effect: Effect.Effect<A, KeyStoreFault>) =>
    Effect.suspend(() => state.fault === undefined ? effect : Effect.fail(state.fault))
  const watching = KeyStore.of({
    ...store,
    since: (known) =>
      Effect.suspend(() => {
        state.asked++
        return reach(store.since(known))
      }),
    noteUses: (uses) =>
      reach(Effect.sync(() => {
        state.noted.push([...uses])
      }))
  })
  return { store, state, layer: Layer.succeed(KeyStore, watching) }
})

const checkOf = (layer: Layer.Layer<KeyStore>, options: CallerKeys.Options = {}) =>
  Effect.gen(function*() {
    const context = yield* Layer.build(Layer.provide(CallerKeys.layerStored(options), layer))
    const { check } = yield* Effect.provideContext(CallerKeys.CallerKeys, context)
    assert(check !== undefined)
    return (key: Redacted.Redacted) =>
      Effect.match(check(key), { onFailure: ({ _tag, detail }) => `${_tag}: ${detail}`, onSuccess: (caller) => caller })
  })

const unknown = "Unauthorized: The key is unknown, expired or revoked"
const away = new KeyStoreFault({ reason: "away", message: "gone for a walk" })
const strange = Redacted.make(Key.format({ prefix: "0".repeat(10), secret: "0".repeat(64) }))
const quiet = Effect.provide(Logger.layer([]))

describe("the check of keys over a store", () => {
  it.effect("gives the caller of a key", () =>
    Effect.gen(function*() {
      const { layer, store } = yield* watched
      const { key, record } = yield* store.create({ name: "alice", scope: { classes: ["read"] }, quota: { burst: 3 } })
      const check = yield* checkOf(layer)
      assert.deepStrictEqual(yield* check(key), {
        id: "key:alice",
        key: record.prefix,
        scope: { classes: ["read"] },
        quota: { burst: 3 }
      })
    }))

  it.effect("asks the store for nothing that it knows, nor for what is no key", () =>
    Effect.gen(function*() {
      const { layer, state, store } = yield* watched
      const { key } = yield* store.create({ name: "alice" })
      const check = yield* checkOf(layer)
      for (let round = 0; round < 20; round++) {
        assert.notStrictEqual(yield* check(key), unknown)
        assert.strictEqual(yield* check(Redacted.make(`${Redacted.value(key)}0`)), unknown)
      }
      assert.strictEqual(state.asked, 1)
    }))

  it.effect("knows a new key with the next request", () =>
    Effect.gen(function*() {
      const { layer, store } = yield* watched
      const check = yield* checkOf(layer)
      const { key } = yield* store.create({ name: "alice" })
      assert.include(yield* check(key), { id: "key:alice" })
    }))

  it.effect("asks for unknown keys together, and not more often than the spacing allows", () =>
    Effect.gen(function*() {
      const { layer, state } = yield* watched
      const check = yield* checkOf(layer)
      const first = yield* Effect.forkChild(Effect.replicateEffect(check(strange), 1))
      yield* Fiber.join(first)
      assert.strictEqual(state.asked, 2)
      const many = yield* Effect.forkChild(Effect.forEach(Array.from({ length: 500 }), () => check(strange), {
        concurrency: "unbounded"
      }))
      yield* TestClock.adjust("49 millis")
      assert.strictEqual(state.asked, 2)
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual([...new Set(yield* Fiber.join(many))], [unknown])
      assert.strictEqual(state.asked, 3)
    }))

  it.effect("forgets a revoked key within a second", () =>
    Effect.gen(function*() {
      const { layer, store } = yield* watched
      const { key } = yield* store.create({ name: "alice" })
      const check = yield* checkOf(layer)
      yield* store.revoke({ name: "alice" })
      yield* TestClock.adjust("999 millis")
      assert.include(yield* check(key), { id: "key:alice" })
      yield* TestClock.adjust("1 millis")
      const refused = yield* Effect.forkChild(check(key))
      yield* TestClock.adjust("50 millis")
      assert.strictEqual(yield* Fiber.join(refused), unknown)
    }))

  it.effect("takes both keys of a caller while they overlap, and the new one after", () =>
    Effect.gen(function*() {
      const { layer, store } = yield* watched
      const first = yield* store.create({ name: "alice" })
      const check = yield* checkOf(layer)
      const second = yield* store.rotate({ name: "alice", overlap: "1 hour" })
      assert.include(yield* check(second.key), { id: "key:alice", key: second.record.prefix })
      yield* TestClock.adjust(3_599_999)
      assert.include(yield* check(first.key), { id: "key:alice", key: first.record.prefix })
      yield* TestClock.adjust(1)
      assert.strictEqual(yield* check(first.key), unknown)
      assert.include(yield* check(second.key), { id: "key:alice" })
    }))

  it.effect("goes on with what it knows while the store is away, and says of other keys that it cannot tell", () =>
    Effect.gen(function*() {
      const { layer, state, store } = yield* watched
      const { key } = yield* store.create({ name: "alice" })
      const check = yield* checkOf(layer)
      state.fault = away
      const { key: later } = yield* store.create({ name: "bob" })
      const cannotTell = "UpstreamUnavailable: The keys of callers cannot be read; try again later"
      assert.strictEqual(yield* check(later), cannotTell)
      assert.include(yield* check(key), { id: "key:alice" })
      state.fault = undefined
      yield* TestClock.adjust("2 seconds")
      assert.include(yield* check(later), { id: "key:bob" })
    }).pipe(quiet))

  it.effect("begins without a store that is away", () =>
    Effect.gen(function*() {
      const { layer, state, store } = yield* watched
      const { key } = yield* store.create({ name: "alice" })
      state.fault = away
      const check = yield* checkOf(layer)
      const early = yield* Effect.forkChild(check(key))
      yield* TestClock.adjust("50 millis")
      assert.strictEqual(
        yield* Fiber.join(early),
        "UpstreamUnavailable: The keys of callers cannot be read; try again later"
      )
      state.fault = undefined
      yield* TestClock.adjust("1 second")
      assert.include(yield* check(key), { id: "key:alice" })
    }).pipe(quiet))

  it.effect("does not begin with keys that no later reading makes better", () =>
    Effect.gen(function*() {
      const { layer, state } = yield* watched
      for (const reason of ["malformed", "newer"] as const) {
        state.fault = new KeyStoreFault({ reason, message: "no use" })
        assert.strictEqual(yield* Effect.flip(checkOf(layer)), state.fault)
      }
    }))

  it.effect("waits for the store no longer than the deadline", () =>
    Effect.gen(function*() {
      const { layer, store } = yield* watched
      const { key } = yield* store.create({ name: "alice" })
      const built = yield* Effect.forkChild(
        checkOf(
          Layer.effect(KeyStore, Effect.map(KeyStore, (keys) => ({ ...keys, since: () => Effect.never }))).pipe(
            Layer.provide(layer)
          )
        )
      )
      yield* TestClock.adjust("4 seconds")
      const check = yield* Fiber.join(built)
      const asked = yield* Effect.forkChild(check(key))
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(
        yield* Fiber.join(asked),
        "UpstreamUnavailable: The keys of callers cannot be read; try again later"
      )
    }).pipe(quiet))

  it.effect("writes uses once a minute and at the end, each key with its last", () =>
    Effect.gen(function*() {
      const { layer, state, store } = yield* watched
      const alice = yield* store.create({ name: "alice" })
      const bob = yield* store.create({ name: "bob" })
      yield* Effect.scoped(Effect.gen(function*() {
        const check = yield* checkOf(layer)
        for (let second = 0; second < 59; second++) {
          yield* check(alice.key)
          yield* TestClock.adjust("1 second")
        }
        yield* check(bob.key)
        assert.deepStrictEqual(state.noted, [])
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(state.noted, [[[alice.record.prefix, 58_000], [bob.record.prefix, 59_000]]])
        yield* TestClock.adjust("5 minutes")
        assert.strictEqual(state.noted.length, 1)
        // what could not be written is written later
        state.fault = away
        yield* check(alice.key)
        yield* TestClock.adjust("1 minute")
        state.fault = undefined
        yield* check(bob.key)
      }))
      assert.deepStrictEqual(state.noted[1], [[alice.record.prefix, 360_000], [bob.record.prefix, 420_000]])
    }).pipe(quiet))
})
