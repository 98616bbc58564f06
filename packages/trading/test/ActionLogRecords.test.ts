import * as NodeRedis from "@effect/platform-node/NodeRedis"
import { assert, describe, it } from "@effect/vitest"
import * as SqliteClient from "@trigate/archive/SqliteClient"
import type { ActionReference } from "@trigate/domain/actions/ActionOutcome"
import { isInstalled, redisServer } from "@trigate/testing/RedisServer"
import { ActionLog } from "@trigate/trading/actionLog/ActionLog"
import * as ActionLogRedis from "@trigate/trading/actionLog/ActionLogRedis"
import * as ActionLogSql from "@trigate/trading/actionLog/ActionLogSql"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redis from "effect/persistence/Redis"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { cloid, oneOfEach, readRedis, readSqlite, writeRedis, writeSqlite } from "./actionLogRecords.ts"
import { now, open, other, refusalOf, sending, settled, settledAs, signer } from "./actionLogSuite.ts"

/** What version 0.1.0 wrote for one action in each state. Replicas of that version share a store with this one. */
const fixture = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Struct({
    redis: Schema.Array(
      Schema.Struct({ key: Schema.String, write: Schema.Array(Schema.String), minutes: Schema.Number })
    ),
    sqlite: Schema.Array(Schema.String)
  }))
)(Fs.readFileSync(Path.join(import.meta.dirname, "fixtures/action-log-records.json"), "utf8"))

/** The time of the last attempt in the fixture. */
const last = now + 10_000

const find = (reference: ActionReference) => ActionLog.use((log) => log.find(reference))
const stateOf = (text: string) => Effect.map(find({ id: sending({ text }).fingerprint }), ([found]) => found?.state)

/** The records of version 0.1.0 mean what they meant. */
const readsThem = Effect.gen(function*() {
  const log = yield* ActionLog
  const texts = ["accepted", "rejected", "stranger", "unknown", "again", "sent", "concluded neverArrived", "released"]
  assert.deepStrictEqual(
    Object.fromEntries(yield* Effect.forEach(texts, (text) => Effect.map(stateOf(text), (state) => [text, state]))),
    {
      accepted: "accepted",
      rejected: "rejected",
      stranger: "rejected",
      unknown: "unknown",
      again: "sent",
      sent: "sent",
      "concluded neverArrived": "neverArrived",
      released: undefined
    }
  )
  assert.deepStrictEqual(yield* find({ signer, nonce: now + 1 }), [{
    fingerprint: sending({ text: "accepted" }).fingerprint,
    nonce: now + 1,
    signer,
    state: "accepted",
    settled: {
      by: "response",
      entries: [{ _tag: "Resting", oid: 7, cloid: cloid(1) }, {
        _tag: "Rejected",
        reason: "TickSize",
        message: "Price must be divisible by tick size. \"\u{1F600}\""
      }]
    },
    vault: `0x${"cc".repeat(20)}`
  }])
  const named = yield* find({ cloid: cloid(1) })
  assert.sameMembers(named.map(({ nonce }) => nonce - now), [1, 3])
  assert.include(yield* refusalOf({ text: "accepted", nonce: now + 1 }), "its outcome is known")
  assert.include(yield* refusalOf({ text: "sent", nonce: now + 5 }), "is being sent right now")
  assert.include(yield* refusalOf({ text: "two", nonce: now + 3 }), "only the same signed content")
  const again = yield* open({ text: "unknown", nonce: now + 3 })
  assert.isTrue(again.isRepeat)
  yield* again.settle("released")
  assert.strictEqual(yield* stateOf("unknown"), "unknown")
  // the attempts of replicas that ended
  yield* TestClock.adjust("1 minute")
  assert.strictEqual(yield* stateOf("sent"), "unknown")
  const due = yield* log.takeUnknown
  assert.includeMembers(due.map(({ nonce }) => nonce - now), [3, 4, 5])
  const fingerprint = sending({ text: "sent" }).fingerprint
  assert.isTrue(yield* log.conclude(fingerprint, { state: "neverArrived", settled: { by: "expiry" } }))
  assert.strictEqual(yield* stateOf("sent"), "neverArrived")
})

const file = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "records-"))),
    (folder) => Effect.sync(() => Fs.rmSync(folder, { recursive: true, force: true }))
  ),
  (folder) => Path.join(folder, "actions.sqlite")
)

const inFile = (path: string, layer: typeof ActionLogSql.layer) =>
  Layer.provide(layer({ countEvery: "365 days" }), SqliteClient.layer({ file: path, mode: "create" }))

describe("records in SQLite", () => {
  it.effect("are those of version 0.1.0, byte for byte", () =>
    Effect.gen(function*() {
      const path = yield* file
      yield* TestClock.setTime(now)
      yield* Effect.provide(oneOfEach, inFile(path, ActionLogSql.layer))
      assert.deepStrictEqual(readSqlite(path), fixture.sqlite)
    }))

  it.effect("are read if version 0.1.0 wrote them", () =>
    Effect.gen(function*() {
      const path = yield* file
      writeSqlite(path, fixture.sqlite)
      yield* TestClock.setTime(last)
      // a second process beside the one of version 0.1.0
      yield* Effect.provide(readsThem, inFile(path, ActionLogSql.layerExisting))
    }))
})

/** Counts the commands and scripts that are sent to Redis. */
const counting = (counted: { trips: number }) =>
  Layer.effect(
    Redis.Redis,
    Effect.map(Redis.Redis, (redis) =>
      Redis.Redis.of({
        ...redis,
        send: (command, ...args) => {
          counted.trips += 1
          return redis.send(command, ...args)
        },
        eval: (script) => {
          const evaluate = redis.eval(script)
          return (...params) => {
            counted.trips += 1
            return evaluate(...params)
          }
        }
      }))
  )

describe.runIf(isInstalled)("records in Redis", () => {
  const inRedis = (url: string) =>
    Layer.provideMerge(ActionLogRedis.layer(), NodeRedis.layer({ url, disableOfflineQueue: true }))

  it.effect("are those of version 0.1.0, byte for byte", () =>
    Effect.gen(function*() {
      const { url } = yield* redisServer
      yield* TestClock.setTime(now)
      const written = yield* Effect.provide(Effect.andThen(oneOfEach, readRedis), inRedis(url))
      assert.deepStrictEqual(written, fixture.redis)
    }))

  it.effect("are read if version 0.1.0 wrote them", () =>
    Effect.gen(function*() {
      const { url } = yield* redisServer
      yield* TestClock.setTime(last)
      yield* Effect.provide(Effect.andThen(writeRedis(fixture.redis), readsThem), inRedis(url))
    }))

  it.effect("are claimed and settled in one round trip, and one more for a signer that the process does not know", () =>
    Effect.gen(function*() {
      const { url } = yield* redisServer
      const counted = { trips: 0 }
      yield* TestClock.setTime(now)
      const redis = Layer.provide(counting(counted), NodeRedis.layer({ url, disableOfflineQueue: true }))
      const layer = Layer.provide(ActionLogRedis.layer(), redis)
      const trips = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
        Effect.suspend(() => {
          counted.trips = 0
          return Effect.map(effect, (value) => [value, counted.trips] as const)
        })
      const elsewhere = yield* Layer.build(Layer.fresh(layer))
      const there = <A, E>(effect: Effect.Effect<A, E, ActionLog>) => Effect.provide(effect, elsewhere)
      yield* Effect.gen(function*() {
        const [first, claimOfNew] = yield* trips(open())
        const [, settlementOfNew] = yield* trips(first.settle("accepted"))
        const [second, claim] = yield* trips(open({ nonce: now + 1 }))
        const [, refusalHere] = yield* trips(refusalOf({ nonce: now + 1 }))
        const [, settlement] = yield* trips(second.settle("unknown"))
        const [third, repeatedClaim] = yield* trips(open({ nonce: now + 1 }))
        yield* third.settle("rejected")
        yield* settledAs("unknown", sending({ signer: other(3), isListed: true }))
        const [, refusalThere] = yield* trips(there(refusalOf({ text: "two", signer: other(3), isListed: true })))
        const [, repeatedThere] = yield* trips(
          there(settledAs("unknown", sending({ signer: other(3), isListed: true })))
        )
        assert.deepStrictEqual(
          { claimOfNew, settlementOfNew, claim, refusalHere, settlement, repeatedClaim, refusalThere, repeatedThere },
          {
            claimOfNew: 2,
            settlementOfNew: 2,
            claim: 1,
            refusalHere: 0,
            settlement: 1,
            repeatedClaim: 1,
            refusalThere: 1,
            repeatedThere: 2
          }
        )
        yield* settled("released", { nonce: now + 2 })
      }).pipe(Effect.provide(layer))
    }))
})
