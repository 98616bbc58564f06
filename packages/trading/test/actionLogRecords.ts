/** One action in each state, and the records of them in Redis and in SQLite. */
import { ActionLog } from "@trigate/trading/actionLog/ActionLog"
import * as Effect from "effect/Effect"
import * as Redis from "effect/persistence/Redis"
import * as TestClock from "effect/testing/TestClock"
import type { SQLOutputValue } from "node:sqlite"
import { DatabaseSync } from "node:sqlite"
import { now, open, openAs, other, sending, settled, settledAs, unsigned } from "./actionLogSuite.ts"

export const cloid = (index: number) => `0x${index.toString(16).padStart(32, "0")}` as const

const order = (index: number) => ({ cloid: cloid(index), isBuy: index % 2 === 0, price: "1100.5", size: "0.2" })
const vault = `0x${"cc".repeat(20)}` as const

/** Leaves one action in each state. */
export const oneOfEach = Effect.gen(function*() {
  const log = yield* ActionLog
  const accepted = yield* open({
    text: "accepted",
    nonce: now + 1,
    trace: { vault, expiresAfter: now + 5000, legs: [order(1), order(2)] }
  })
  yield* accepted.settle("accepted", 200, [{ _tag: "Resting", oid: 7, cloid: cloid(1) }, {
    _tag: "Rejected",
    reason: "TickSize",
    message: "Price must be divisible by tick size. \"\u{1F600}\""
  }])
  yield* settled("rejected", { text: "rejected", nonce: now + 2 })
  yield* settledAs("refused", sending({ text: "stranger", signer: other(1), caller: "address:1" }))
  yield* settledAs("accepted", sending({ text: "listed", signer: other(2), isListed: true }))
  yield* settled("unknown", { text: "unknown", nonce: now + 3, trace: { legs: [order(1)] } })
  yield* settled("unknown", { text: "again", nonce: now + 4, trace: { expiresAfter: now + 60_000, legs: [order(4)] } })
  yield* settled("released", { text: "released", nonce: now + 7, trace: { legs: [order(7)] } })
  for (const state of ["accepted", "neverArrived"] as const) {
    const text = `concluded ${state}`
    yield* settled("unknown", { text, nonce: now + text.length, trace: { legs: [order(5)] } })
    yield* log.conclude(sending({ text }).fingerprint, {
      state,
      settled: state === "accepted" ? { by: "orderStatus", entries: [{ _tag: "Done" }] } : { by: "expiry" }
    })
  }
  yield* settledAs("unknown", unsigned({ text: "unsigned" }))
  yield* settledAs("unknown", sending({ text: "forgotten", signer: other(3) }))
  yield* log.forget(sending({ text: "forgotten" }).fingerprint)
  yield* TestClock.adjust(10_000)
  yield* open({ text: "again", nonce: now + 4, trace: { expiresAfter: now + 60_000, legs: [order(4)] } })
  yield* openAs(sending({ text: "sent", nonce: now + 5, trace: { legs: [order(6)] } }))
  yield* log.takeUnknown
})

/** A key of Redis, and the commands that write it again. */
export interface Stored {
  readonly key: string
  readonly write: ReadonlyArray<string>
  /** The minutes for which Redis keeps it. */
  readonly minutes: number
}

/** The token of an attempt differs in each run. */
const masked = (value: string): string => value.replace(/^(\S+ 0x\S+ \d+ \d+) \S+$/u, "$1 token")

type Scored = ReadonlyArray<readonly [member: string, score: number]>

const scored = (found: Scored) => found.flatMap(([member, score]) => [String(score), member])

/** Everything in Redis, with tokens replaced. */
export const readRedis = Effect.gen(function*() {
  const redis = yield* Redis.Redis
  const keys = yield* redis.send<ReadonlyArray<string>>("KEYS", "*")
  return yield* Effect.forEach(keys.toSorted(), (key) =>
    Effect.gen(function*() {
      const type = yield* redis.send<string>("TYPE", key)
      const write = type === "zset"
        ? ["ZADD", key, ...scored(yield* redis.send<Scored>("ZRANGE", key, "0", "-1", "WITHSCORES"))]
        : type === "set"
        ? ["SADD", key, ...(yield* redis.send<ReadonlyArray<string>>("SMEMBERS", key)).toSorted()]
        : ["SET", key, masked(yield* redis.send<string>("GET", key))]
      const minutes = Math.round((yield* redis.send<number>("PTTL", key)) / 60_000)
      return { key, write, minutes } satisfies Stored
    }))
})

/** Writes keys of Redis. */
export const writeRedis = (stored: ReadonlyArray<Stored>) =>
  Effect.gen(function*() {
    const redis = yield* Redis.Redis
    for (const { key, minutes, write: [command = "", ...args] } of stored) {
      yield* redis.send(command, ...args)
      yield* redis.send("PEXPIRE", key, String(minutes * 60_000))
    }
  })

const quoted = (value: SQLOutputValue): string =>
  value === null
    ? "NULL"
    : value instanceof Uint8Array
    ? `X'${Buffer.from(value).toString("hex")}'`
    : typeof value === "number"
    ? String(value)
    : `'${String(value).replaceAll("'", "''")}'`

/** The statements that create the tables of a SQLite file again, with tokens replaced. */
export const readSqlite = (file: string): ReadonlyArray<string> => {
  const database = new DatabaseSync(file)
  const objects = database.prepare(`SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL
    AND name NOT LIKE 'sqlite%' ORDER BY rowid`).all()
  const tables = objects.flatMap(({ name, type }) => type === "table" ? [String(name)] : [])
  const inserts = tables.flatMap((name) =>
    database.prepare(`SELECT * FROM ${name} ORDER BY 1, 2, 3`).all().map((row) => {
      const members = Object.entries(row)
        .map(([column, value]) =>
          [column, column === "token" ? "token" : column === "created_at" ? "" : value] as const
        )
      return `INSERT INTO ${name} (${members.map(([column]) => column).join(", ")}) VALUES (${
        members.map(([, value]) => quoted(value)).join(", ")
      })`
    })
  )
  database.close()
  return [...objects.map(({ sql }) => String(sql).replaceAll(/\s+/gu, " ")), ...inserts]
}

/** Executes statements in a SQLite file. */
export const writeSqlite = (file: string, statements: ReadonlyArray<string>): void => {
  const database = new DatabaseSync(file)
  database.exec(statements.join(";\n"))
  database.close()
}
