/** What every store of keys does, whatever keeps it. */
import { assert } from "@effect/vitest"
import * as Key from "@trigate/callers/KeyStore"
import { KeyStore } from "@trigate/callers/KeyStore"
import type { Issued, KeyRefusal, KeyStoreFault } from "@trigate/callers/KeyStore"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/testing/TestClock"

const hour = 3_600_000
const day = 24 * hour
const signer = "0x17281460228691b044e080a5f5257dce8e47f79c"

const refusalOf = <A>(effect: Effect.Effect<A, { readonly _tag: string; readonly message: string }>) =>
  Effect.map(Effect.orDie(Effect.flip(effect)), ({ _tag, message }) => `${_tag}: ${message}`)

const assertIssued = ({ key, record }: Issued) => {
  const text = Redacted.value(key)
  assert.strictEqual(Key.parse(text)?.prefix, record.prefix)
  assert.strictEqual(Key.hashKey(text), record.hash)
}

export const checks: ReadonlyArray<
  readonly [what: string, check: Effect.Effect<void, KeyRefusal | KeyStoreFault, KeyStore>]
> = [
  [
    "has no keys at first",
    Effect.gen(function*() {
      const store = yield* KeyStore
      assert.deepStrictEqual(yield* store.list, [])
    })
  ],
  [
    "keeps what a key was made with, and nothing of the key but its hash",
    Effect.gen(function*() {
      const store = yield* KeyStore
      yield* TestClock.adjust(day)
      const scope = {
        chains: ["trading"],
        classes: ["read", "sign"],
        operations: ["spotMeta"],
        signers: [signer]
      } as const
      const quota = { requestsPerSecond: 5, burst: 10, weightPerMinute: 0.5, unitsPerSecond: 7, concurrentCalls: 2 }
      const plain = yield* store.create({ name: "alice" })
      const full = yield* store.create({ name: "bob", scope, quota, lifetime: "90 days" })
      for (const issued of [plain, full]) assertIssued(issued)
      const listed = yield* store.list
      assert.deepStrictEqual(listed.toSorted((one, other) => one.name.localeCompare(other.name)), [
        { name: "alice", prefix: plain.record.prefix, hash: plain.record.hash, createdAt: day },
        {
          name: "bob",
          prefix: full.record.prefix,
          hash: full.record.hash,
          scope,
          quota,
          createdAt: day,
          expiresAt: 91 * day
        }
      ])
      assert.notInclude(JSON.stringify(listed), Redacted.value(full.key).slice(14))
    })
  ],
  [
    "makes the first key of a caller once",
    Effect.gen(function*() {
      const store = yield* KeyStore
      yield* store.create({ name: "alice", lifetime: "1 hour" })
      assert.strictEqual(
        yield* refusalOf(store.create({ name: "alice" })),
        "KeyRefusal: alice already has a key: rotate it, or revoke it first"
      )
      yield* TestClock.adjust(hour)
      // it has expired
      yield* store.create({ name: "alice" })
      for (const name of ["", "a b", "-a", "a/b", "ä", "a".repeat(65)]) {
        assert.strictEqual(
          yield* refusalOf(store.create({ name })),
          "KeyRefusal: A name consists of 1 to 64 letters, digits, dots, dashes and underscores"
        )
      }
      assert.strictEqual((yield* store.list).length, 2)
    })
  ],
  [
    "rotates: the new key has scope, quota and lifetime of the one before it, which ends after the overlap",
    Effect.gen(function*() {
      const store = yield* KeyStore
      const scope = { classes: ["read"] } as const
      const first = yield* store.create({ name: "alice", scope, quota: { burst: 3 }, lifetime: "30 days" })
      yield* store.create({ name: "bob" })
      yield* TestClock.adjust(day)
      const second = yield* store.rotate({ name: "alice", overlap: "2 days" })
      assertIssued(second)
      assert.notStrictEqual(second.record.prefix, first.record.prefix)
      assert.deepStrictEqual(second.record, {
        name: "alice",
        prefix: second.record.prefix,
        hash: second.record.hash,
        scope,
        quota: { burst: 3 },
        createdAt: day,
        expiresAt: 31 * day
      })
      const expiries = Effect.map(
        store.list,
        (records) => new Map(records.map(({ expiresAt, prefix }) => [prefix, expiresAt]))
      )
      assert.strictEqual((yield* expiries).get(first.record.prefix), 3 * day)
      // a second rotation makes nothing last longer
      const third = yield* store.rotate({ name: "alice", overlap: "5 days", lifetime: "1 hour" })
      const after = yield* expiries
      assert.deepStrictEqual(
        [first, second, third].map(({ record }) => after.get(record.prefix)),
        [3 * day, 6 * day, day + hour]
      )
      assert.strictEqual(after.size, 4)
      assert.strictEqual(
        yield* refusalOf(store.rotate({ name: "carol", overlap: 0 })),
        "KeyRefusal: carol has no valid key: create one"
      )
    })
  ],
  [
    "revokes all keys of a caller, or one",
    Effect.gen(function*() {
      const store = yield* KeyStore
      const first = yield* store.create({ name: "alice" })
      const second = yield* store.rotate({ name: "alice", overlap: "1 day" })
      const third = yield* store.rotate({ name: "alice", overlap: "1 day" })
      const bob = yield* store.create({ name: "bob" })
      yield* TestClock.adjust(hour)
      const one = yield* store.revoke({ name: "alice", prefix: second.record.prefix })
      assert.deepStrictEqual(one.map(({ prefix, revokedAt }) => [prefix, revokedAt]), [[second.record.prefix, hour]])
      assert.strictEqual(
        yield* refusalOf(store.revoke({ name: "alice", prefix: second.record.prefix })),
        `KeyRefusal: alice has no valid key ${second.record.prefix}`
      )
      assert.strictEqual(
        yield* refusalOf(store.revoke({ name: "alice", prefix: bob.record.prefix })),
        `KeyRefusal: alice has no valid key ${bob.record.prefix}`
      )
      const others = yield* store.revoke({ name: "alice" })
      assert.sameMembers(others.map(({ prefix }) => prefix), [first.record.prefix, third.record.prefix])
      assert.strictEqual(yield* refusalOf(store.revoke({ name: "alice" })), "KeyRefusal: alice has no valid key")
      const left = (yield* store.list).filter(({ revokedAt }) => revokedAt === undefined)
      assert.deepStrictEqual(left.map(({ name }) => name), ["bob"])
      // the name is free again
      yield* store.create({ name: "alice" })
    })
  ],
  [
    "tells whether keys have changed since a version",
    Effect.gen(function*() {
      const store = yield* KeyStore
      yield* store.create({ name: "alice" })
      const one = yield* store.since(undefined)
      assert.strictEqual(one?.records.length, 1)
      assert.isUndefined(yield* store.since(one?.version))
      yield* refusalOf(store.create({ name: "alice" }))
      assert.isUndefined(yield* store.since(one?.version))
      yield* store.create({ name: "bob" })
      const two = yield* store.since(one?.version)
      assert.deepStrictEqual(two?.records, yield* store.list)
      yield* store.revoke({ name: "bob" })
      assert.strictEqual((yield* store.since(two?.version))?.records.length, 2)
    })
  ],
  [
    "loses no change of several at a time",
    Effect.gen(function*() {
      const store = yield* KeyStore
      const names = Array.from({ length: 12 }, (_, index) => `caller-${index}`)
      yield* Effect.forEach(names, (name) => Effect.retry(store.create({ name }), { times: 1000 }), {
        concurrency: "unbounded"
      })
      assert.sameMembers((yield* store.list).map(({ name }) => name), names)
    })
  ]
]

/** Notes uses where a store keeps them. */
export const noteUses = Effect.gen(function*() {
  const store = yield* KeyStore
  const { record } = yield* store.create({ name: "alice" })
  const version = (yield* store.since(undefined))?.version
  const now = yield* Clock.currentTimeMillis
  yield* store.noteUses(new Map([[record.prefix, now + 5], ["ffffffffff", now]]))
  assert.deepStrictEqual((yield* store.list).map(({ lastUsedAt }) => lastUsedAt), [now + 5])
  return { record, store, version }
})
