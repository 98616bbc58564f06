/** A replica that reads the event log: entries that were dropped before it read them are not skipped without notice. */
import { assert, describe, it } from "@effect/vitest"
import { longAgo } from "@trigate/domain/encoding/Encoding"
import * as EventStore from "@trigate/trading/accounts/AccountEvents"
import * as Streams from "@trigate/trading/streams/Streams"
import * as AccountMirror from "@trigate/trading/unstable/accounts/AccountMirror"
import * as AccountVersions from "@trigate/upstream/cache/AccountVersions"
import { SocketTransport } from "@trigate/upstream/streams/SocketTransport"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"

const user = `0x${"aa".repeat(20)}`

const printFill = (seq: number): string =>
  `{"coin":"BTC","px":"1","sz":"1","side":"B","time":${seq},"startPosition":"0","dir":"Buy","closedPnl":"0",` +
  `"hash":"0x${"00".repeat(32)}","oid":${seq},"crossed":true,"fee":"0","tid":${seq}}`

const fill = (seq: number): EventStore.Entry => ({
  kind: "event",
  user,
  name: "userFills",
  rows: [{ id: `${seq} ${seq}`, text: printFill(seq), time: seq }],
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

describe("a typed stream over a log that outlives the process", () => {
  /** Follows the fills after a position. Returns what it receives: the orders of fills, and positions. */
  const follow = Effect.fnUntraced(function*(store: EventStore.EventStore["Service"], resumeFrom: string) {
    const shared = yield* Effect.provideService(
      Streams.makeShared(undefined, { addresses: [] }),
      EventStore.EventStore,
      store
    )
    const received: Array<number | bigint | string> = []
    const onPosition = (position: string): void => void received.push(position)
    const reading = yield* Streams.make(shared).userFills({ user }, { resumeFrom, onPosition }).pipe(
      Stream.runForEach(({ fills }) => Effect.sync(() => received.push(...fills.map(({ oid }) => oid)))),
      Effect.flip,
      Effect.forkChild({ startImmediately: true })
    )
    yield* TestClock.adjust("1 second")
    return { received, reading }
  })

  it.effect("continues after a stored position, and reports each position after its items", () =>
    Effect.gen(function*() {
      let entries = [begin, fill(2), fill(3), fill(4)]
      const { reading, received } = yield* follow(storeOf(() => ({ begun: 1, entries })), "epoch:2")
      assert.deepStrictEqual(received, [3, "epoch:3", 4, "epoch:4"])
      entries = [...entries, fill(5)]
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(received, [3, "epoch:3", 4, "epoch:4", 5, "epoch:5"])
      assert.isUndefined(reading.pollUnsafe())
    }).pipe(Effect.provideService(SocketTransport, { open: () => Effect.never })))

  it.effect("fails with StreamLost if events after the position may be missing", () =>
    Effect.gen(function*() {
      for (const position of ["epoch:1", "other:3"]) {
        const entries = [begin, fill(2), fill(3), fill(4)]
        const { reading, received } = yield* follow(storeOf(() => ({ begun: 2, entries })), position)
        assert.isDefined(reading.pollUnsafe(), position)
        assert.isDefined(reading.pollUnsafe())
        assert.strictEqual((yield* Fiber.join(reading))._tag, "StreamLost")
        assert.deepStrictEqual(received, [])
      }
    }).pipe(Effect.provideService(SocketTransport, { open: () => Effect.never })))

  it.effect("fails with StreamLost if the log loses events while it is followed", () =>
    Effect.gen(function*() {
      let entries = [begin, fill(2), fill(3)]
      let begun = 1
      const { reading, received } = yield* follow(storeOf(() => ({ begun, entries })), "epoch:2")
      begun = 5
      entries = [fill(6), fill(7)]
      yield* TestClock.adjust("1 second")
      assert.isDefined(reading.pollUnsafe())
      assert.strictEqual((yield* Fiber.join(reading))._tag, "StreamLost")
      assert.deepStrictEqual(received, [3, "epoch:3"])
    }).pipe(Effect.provideService(SocketTransport, { open: () => Effect.never })))

  it.effect("refuses a text that is not a position", () =>
    Effect.gen(function*() {
      const { reading } = yield* follow(storeOf(() => ({ begun: 1, entries: [begin] })), "yesterday")
      const error = yield* Fiber.join(reading)
      assert.deepStrictEqual([error._tag, error.message], ["SubscriptionRefused", "resumeFrom is not a position"])
    }).pipe(Effect.provideService(SocketTransport, { open: () => Effect.never })))
})
