/** A replica that reads the event log: entries that were dropped before it read them are not skipped without notice. */
import { assert, describe, it } from "@effect/vitest"
import { longAgo } from "@trigate/domain/encoding/Encoding"
import * as EventStore from "@trigate/trading/accounts/AccountEvents"
import * as Streams from "@trigate/trading/streams/Streams"
import * as AccountMirror from "@trigate/trading/unstable/accounts/AccountMirror"
import * as AccountVersions from "@trigate/upstream/cache/AccountVersions"
import { SocketTransport } from "@trigate/upstream/streams/SocketTransport"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"

const user = `0x${"aa".repeat(20)}`

const fill = (seq: number): EventStore.Entry => ({
  kind: "event",
  user,
  name: "userFills",
  rows: [{ id: `${seq} ${seq}`, text: `{"oid":${seq},"tid":${seq},"time":${seq}}`, time: seq }],
  seq,
  at: 0
})

const begin: EventStore.Entry = { kind: "begin", user, name: "", rows: [], seq: 1, at: 0 }

/** A store whose log another replica writes. */
const storeOf = (read: () => { readonly entries: ReadonlyArray<EventStore.Entry>; readonly begun: number }) =>
  EventStore.EventStore.of({
    backing: "Redis",
    lease: () => Effect.undefined,
    release: () => Effect.void,
    append: () => Effect.die("a reader does not write"),
    readAfter: (after) =>
      Effect.sync(() => {
        const { begun, entries } = read()
        return {
          epoch: "epoch",
          seq: entries.at(-1)?.seq ?? 0,
          start: 0,
          begun: new Map([[user, { seq: begun, at: 0 }]]),
          entries: entries.filter(({ seq }) => seq > after)
        }
      }),
    want: () => Effect.void,
    wanted: Effect.succeed([])
  })

describe("a replica that reads the event log", () => {
  it.effect("appends the next entries, and reads the whole log again if some between them were dropped", () =>
    Effect.gen(function*() {
      let entries = [begin, fill(2)]
      let begun = 1
      const store = storeOf(() => ({ begun, entries }))
      const { events: { log } } = yield* Effect.provideService(
        Streams.makeShared(undefined, { addresses: [] }),
        EventStore.EventStore,
        store
      )
      let replaced = 0
      log.listen({ appended: () => {}, replaced: () => replaced++ })
      const read = () => log.after(0, user, "userFills").map(({ seq }) => seq)
      assert.deepStrictEqual(read(), [2])
      entries = [...entries, fill(3)]
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual([replaced, read()], [0, [2, 3]])
      // the account has so many rows that all up to 5 were dropped
      begun = 5
      entries = [fill(6), fill(7)]
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual([replaced, read()], [1, [6, 7]])
      assert.isFalse(log.covers({ epoch: "epoch", seq: 3 }, [user]))
      entries = [...entries, fill(8)]
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual([replaced, read()], [1, [6, 7, 8]])
    }).pipe(Effect.provideService(SocketTransport, { open: () => Effect.never })))

  it.effect("sets a new version of the account with each event, because the writer may set it later", () =>
    Effect.gen(function*() {
      let entries = [begin, fill(2)]
      const accounts = yield* AccountVersions.AccountVersions
      const mirror = yield* AccountMirror.make(10_000)
      mirror.connect({ put: () => Effect.void, accounts })
      const { events } = yield* Effect.provideService(
        Streams.makeShared(undefined, { addresses: [], mirror }),
        EventStore.EventStore,
        storeOf(() => ({ begun: 1, entries }))
      )
      events.watch(user, { caller: "caller", refused: () => {} })
      assert.isTrue(events.isLive(user))
      const before = yield* accounts.version([user], longAgo)
      entries = [...entries, fill(3)]
      yield* TestClock.adjust("1 second")
      assert.notStrictEqual(yield* accounts.version([user], longAgo), before)
    }).pipe(
      Effect.provide(AccountVersions.layerMemory()),
      Effect.provideService(SocketTransport, { open: () => Effect.never })
    ))
})
