/** The rows of the event log: a busy account loses its own oldest rows, and a position before them is not recovered. */
import { assert, describe, it } from "@effect/vitest"
import * as AccountEvents from "@trigate/trading/accounts/AccountEvents"

const epoch = "epoch"

/** A log of at most 100 rows of the last 1000 milliseconds, and the number of its newest entry. */
const makeLog = () => {
  const log = new AccountEvents.EventLog({ rows: 100, age: 1_000 })
  log.replace({ begun: new Map(), entries: [], epoch, seq: 0, start: 0 })
  let seq = 0
  const append = (kind: AccountEvents.EntryKind, user: string, rows = 0, at = 0, padding = ""): number => {
    seq += Math.max(1, rows)
    const made = Array.from({ length: rows }, (_, index) => ({
      id: `${seq} ${index}`,
      text: `{"time":${seq}}${padding}`,
      time: seq
    }))
    const name = kind === "event" ? "userFills" : ""
    log.append({ kind, user, name, rows: made, seq, at })
    return seq
  }
  return {
    log,
    append,
    recovers: (at: number, user: string) => log.covers({ epoch, seq: at }, [user]),
    countRows: (user: string) => log.after(0, user, "userFills").reduce((sum, { rows }) => sum + rows.length, 0)
  }
}

describe("the rows of the event log", () => {
  it("are those of a busy account that are dropped, and not those of others", () => {
    const { append, countRows, log, recovers } = makeLog()
    append("begin", "quiet")
    const quiet = append("event", "quiet", 10)
    append("begin", "busy")
    const first = append("event", "busy", 1)
    for (let index = 0; index < 1_000; index++) append("event", "busy", 3)
    assert.strictEqual(countRows("quiet"), 10)
    assert.strictEqual(countRows("busy"), 90)
    assert.isTrue(recovers(quiet - 5, "quiet"))
    assert.isTrue(recovers(first, "quiet"))
    assert.isFalse(recovers(first, "busy"))
    // exactly from the newest dropped row on, all events are there
    const since = log.since("busy") ?? 0
    assert.strictEqual(log.head.seq - since, 90)
    assert.isTrue(recovers(since, "busy"))
    assert.isFalse(recovers(since - 1, "busy"))
    assert.strictEqual(log.begunAt("busy"), since)
    assert.strictEqual(log.begunAt("quiet"), 0)
    assert.isFalse(log.covers({ epoch, seq: first }, ["quiet", "busy"]))
  })

  it("are named once to the store, and do not come back if the store did not drop them", () => {
    const { append, log } = makeLog()
    append("begin", "quiet")
    append("begin", "busy")
    const first = append("event", "busy", 60)
    append("event", "busy", 60)
    append("event", "busy", 60)
    const { begun, seqs } = log.takeDropped(10)
    assert.deepStrictEqual([seqs, begun.get("busy")?.seq], [[2, first, first + 60], first + 60])
    assert.deepStrictEqual(log.takeDropped(10), { seqs: [], begun: new Map() })
    const lost: AccountEvents.Entry = { kind: "event", user: "busy", name: "userFills", rows: [], seq: first, at: 0 }
    const past: AccountEvents.Entry = { ...lost, kind: "past", user: "quiet", seq: 3 }
    const start: AccountEvents.Entry = { ...lost, kind: "begin", user: "quiet", name: "", seq: 4 }
    const copy = new AccountEvents.EventLog({ rows: 100, age: 1_000 })
    copy.replace({
      begun: new Map([["busy", { seq: first + 60, at: 0 }], ["quiet", { seq: 4, at: 0 }]]),
      entries: [past, start, lost],
      epoch,
      seq: first + 120,
      start: 0
    })
    assert.deepStrictEqual([copy.after(0, "busy", "userFills"), copy.after(0, "quiet", "userFills")], [[], [past]])
  })

  it("are not appended again by a query of missed events when they were dropped", () => {
    const { append, log } = makeLog()
    append("begin", "busy")
    append("event", "busy", 60)
    append("event", "busy", 60)
    const times = log.after(0, "busy", "userFills").flatMap(({ rows }) => rows)
    const row = (time: number) => ({ id: `again ${time}`, text: `{"time":${time}}`, time })
    const newest = times.at(-1)?.time ?? 0
    const rows = [row(newest - 60), row(newest), row(newest + 1)]
    assert.deepStrictEqual(log.unseen("busy", "userFills", rows, true).map(({ time }) => time), [newest, newest + 1])
    assert.deepStrictEqual(log.unseen("busy", "userFills", rows).map(({ time }) => time), [
      newest - 60,
      newest,
      newest + 1
    ])
  })

  it("have a bounded number of characters, and those of the account with the longest are dropped", () => {
    const { append, countRows, log } = makeLog()
    append("begin", "quiet")
    append("event", "quiet", 50)
    append("begin", "long")
    for (let index = 0; index < 30; index++) append("event", "long", 1, 0, "p".repeat(10_000))
    assert.deepStrictEqual([countRows("quiet"), countRows("long")], [50, 10])
    assert.isAtMost(log.retained, 100 * AccountEvents.rowCharacters)
  })

  it("are shared equally between busy accounts", () => {
    const { append, countRows } = makeLog()
    const users = ["a", "b", "c", "d"]
    for (const user of users) append("begin", user)
    append("event", "a", 100)
    for (let index = 0; index < 100; index++) append("event", users[index % 3 + 1] ?? "", 1)
    assert.deepStrictEqual(users.map(countRows), [0, 34, 33, 33])
    for (let index = 0; index < 400; index++) append("event", users[index % 4] ?? "", 1)
    assert.deepStrictEqual(users.map(countRows), [25, 25, 25, 25])
  })

  it("are dropped after their age, account by account", () => {
    const { append, countRows, log, recovers } = makeLog()
    const begun = append("begin", "a", 0, 0)
    append("begin", "b", 0, 900)
    const old = append("event", "a", 2, 10)
    append("event", "b", 2, 950)
    log.expire(1_500)
    assert.deepStrictEqual([countRows("a"), countRows("b")], [0, 2])
    assert.isFalse(recovers(begun, "a"))
    assert.isTrue(recovers(old, "a"))
    assert.isTrue(recovers(2, "b"))
  })
})
