/**
 * Rows that share any members, sent live, in snapshots, in replays and by queries, over lost connections and restarts of
 * the gateway: each reader receives each row exactly once.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import * as InfoProtocol from "@trigate/domain/info/InfoOperations"
import * as UpstreamResponse from "@trigate/domain/operations/Operation"
import * as Subscription from "@trigate/domain/unstable/streams/Subscription"
import type { ResumePosition } from "@trigate/domain/unstable/streams/Subscription"
import * as Subscriptions from "@trigate/domain/unstable/streams/Subscriptions"
import { sampleRuns } from "@trigate/testing/Sample"
import * as EventStore from "@trigate/trading/accounts/AccountEvents"
import * as Streams from "@trigate/trading/streams/Streams"
import type { Queries } from "@trigate/trading/streams/Streams"
import * as ResumableSubscriber from "@trigate/trading/unstable/streams/ResumableSubscriber"
import * as VenueProtocol from "@trigate/trading/unstable/streams/VenueProtocol"
import { SocketLost, SocketTransport } from "@trigate/upstream/streams/SocketTransport"
import type { Frame, Subscriber, Topic } from "@trigate/upstream/unstable/streams/Topic"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"

const user = `0x${"aa".repeat(20)}`

/** A row as the venue encodes it in one place; the places list its members in another order, or add some. */
type Row = Readonly<Record<string, unknown>>

/** The content of a row: each bit selects one of two values of a member. */
type Bits = number

const most = 2 ** 8

const bit = <A>(bits: Bits, place: number, one: A, other: A): A => (bits >> place) % 2 === 0 ? one : other

const hashes = [`0x${"00".repeat(32)}`, `0x${"12".repeat(32)}`] as const

const fill = (bits: Bits, time: number): Row => ({
  coin: bit(bits, 0, "@1", "BTC"),
  px: bit(bits, 1, "1.0", "2.0"),
  sz: bit(bits, 2, "1.0", "2.0"),
  side: bit(bits, 3, "A", "B"),
  time,
  hash: bit(bits, 4, ...hashes),
  oid: bit(bits, 5, 1, 2),
  tid: bit(bits, 6, 0, 7),
  fee: bit(bits, 7, "0.0", "0.1")
})

const update = (bits: Bits, statusTimestamp: number): Row => ({
  order: {
    coin: bit(bits, 0, "@1", "BTC"),
    side: bit(bits, 1, "A", "B"),
    limitPx: bit(bits, 2, "1.0", "2.0"),
    sz: bit(bits, 3, "1.0", "2.0"),
    oid: bit(bits, 4, 1, 2),
    timestamp: bit(bits, 5, 1, 2),
    origSz: bit(bits, 6, "3.0", "4.0")
  },
  status: bit(bits, 7, "open", "filled"),
  statusTimestamp
})

interface Kind {
  readonly name: string
  readonly request?: Readonly<Record<string, string>>
  /** The name under which the venue lists the rows; kinds with one name list the same rows. */
  readonly list: string
  readonly row: (bits: Bits, time: number) => Row
  /** The row in the response to a query. */
  readonly queried?: (row: Row) => Row
}

const kinds: ReadonlyArray<Kind> = [
  { name: "userFills", list: "fills", row: fill, queried: (row) => ({ twapId: null, builderFee: "0.1", ...row }) },
  { name: "userEvents", list: "fills", row: fill },
  {
    name: "orderUpdates",
    list: "orders",
    row: update,
    queried: ({ order, ...row }) => ({
      ...row,
      order: { children: [], tif: null, isTrigger: false, cloid: null, ...Object(order) }
    })
  },
  { name: "userHistoricalOrders", list: "orders", row: update },
  {
    name: "userFundings",
    list: "fundings",
    row: (bits, time) => ({
      time,
      coin: bit(bits, 0, "@1", "BTC"),
      usdc: bit(bits, 1, "1.0", "2.0"),
      szi: bit(bits, 2, "1.0", "2.0"),
      fundingRate: bit(bits, 3, "0.1", "0.2")
    }),
    queried: ({ time, ...delta }) => ({ time, hash: hashes[0], delta: { type: "funding", ...delta, nSamples: null } })
  },
  {
    name: "userNonFundingLedgerUpdates",
    list: "ledger",
    row: (bits, time) => ({
      time,
      hash: bit(bits, 0, ...hashes),
      delta: { type: bit(bits, 1, "deposit", "send"), usdc: bit(bits, 2, "1.0", "2.0"), to: bit(bits, 3, "a", "b") }
    }),
    queried: ({ delta, ...row }) => ({ ...row, delta: { ...Object(delta), nonce: 5 } })
  },
  {
    name: "userTwapSliceFills",
    list: "slices",
    row: (bits, time) => ({ twapId: bit(bits, 0, 1, 2), fill: fill(bits, time) })
  },
  {
    name: "userTwapHistory",
    list: "twaps",
    row: (bits, time) => ({
      time: Math.floor(time / 1000),
      state: { coin: bit(bits, 0, "@1", "BTC"), sz: bit(bits, 1, "1.0", "2.0") },
      status: { status: bit(bits, 2, "activated", "finished") }
    }),
    queried: (row) => ({ ...row, twapId: 3 })
  },
  {
    name: "trades",
    request: { coin: "BTC" },
    list: "trades",
    row: (bits, time) => ({ ...fill(bits, time), coin: "BTC" })
  }
]

const queries: Readonly<Record<string, { readonly list: string; readonly isNewestFirst?: true }>> = {
  userFillsByTime: { list: "fills" },
  historicalOrders: { list: "orders", isNewestFirst: true },
  userFunding: { list: "fundings" },
  userNonFundingLedgerUpdates: { list: "ledger" },
  userTwapSliceFillsByTime: { list: "slices" },
  twapHistory: { list: "twaps", isNewestFirst: true }
}

const subscriptionOf = ({ name, request = { user } }: Kind) =>
  Result.getOrThrow(Subscriptions.read({ type: name, ...request }))

/** The time in a row, in milliseconds. */
const timeIn = (row: Row): number =>
  Number(row["time"] ?? row["statusTimestamp"] ?? Subscription.valueAt(row, "fill.time")) *
  (row["state"] === undefined ? 1 : 1000)

/** The members of `known` that a received row has, with their values: places add members to a row. */
const pick = (received: unknown, known: unknown): unknown =>
  typeof known === "object" && known !== null
    ? Object.fromEntries(
      Object.entries(known).map(([name, value]) => [name, pick(Subscription.valueAt(received, name), value)])
    )
    : received

const reversed = (row: Row): Row => Object.fromEntries(Object.entries(row).toReversed())

/** A venue in memory. Its snapshots list up to six rows. */
const makeVenue = () => {
  const lists = new Map<string, Array<Row>>()
  const connections = new Set<{ readonly texts: Queue.Queue<string, SocketLost>; readonly keys: Set<string> }>()
  const listOf = (list: string) => lists.get(list) ?? []

  const encode = (kind: Kind, rows: ReadonlyArray<Row>, isSnapshot = false): string => {
    const subscription = subscriptionOf(kind)
    const { rows: declared } = subscription.declaration
    const channel = VenueProtocol.channelName(subscription)
    const name = Subscription.channelNames(subscription.declaration)[0] ?? channel
    const data = declared?.member === undefined
      ? rows
      : { ...(isSnapshot ? { isSnapshot } : {}), user, [declared.member]: rows }
    return VenueProtocol.dataFrame(name, JSON.stringify(data))
  }

  const snapshot = (kind: Kind): string | undefined => {
    const { delivery, rows } = subscriptionOf(kind).declaration
    const latest = listOf(kind.list).slice(-6).map(reversed)
    if (delivery === "snapshot") return encode(kind, latest.toReversed(), true)
    return rows?.replayed === 0 || latest.length === 0 ? undefined : encode(kind, latest)
  }

  const transport = SocketTransport.of({
    open: () =>
      Effect.gen(function*() {
        const texts = yield* Queue.unbounded<string, SocketLost>()
        const connection = { texts, keys: new Set<string>() }
        connections.add(connection)
        yield* Effect.addFinalizer(() => Effect.sync(() => connections.delete(connection)))
        const send = (text: string): Effect.Effect<void> =>
          Effect.sync(() => {
            const message = Result.getOrUndefined(Json.parse(text))
            const read = Subscriptions.read(Subscription.valueAt(message, "subscription"))
            if (Result.isFailure(read)) return void Queue.offerUnsafe(texts, VenueProtocol.pong)
            const { key } = read.success
            const isEnd = Subscription.valueAt(message, "method") === "unsubscribe"
            connection.keys[isEnd ? "delete" : "add"](key)
            Queue.offerUnsafe(texts, VenueProtocol.acknowledgement(isEnd ? "unsubscribe" : "subscribe", key))
            const kind = kinds.find((each) => subscriptionOf(each).key === key)
            const first = isEnd || kind === undefined ? undefined : snapshot(kind)
            if (first !== undefined) Queue.offerUnsafe(texts, first)
          })
        return { receive: Queue.takeAll(texts), send }
      })
  })

  const info: Queries = {
    allMids: () => Effect.die("not used"),
    meta: () => Effect.die("not used"),
    outcomeMeta: () => Effect.die("not used"),
    perpDexs: () => Effect.die("not used"),
    spotMeta: () => Effect.die("not used"),
    relay: (call) =>
      Effect.gen(function*() {
        yield* Effect.sleep("100 millis")
        const { isNewestFirst, list: of } = queries[InfoProtocol.queryType(call)] ?? assert.fail("an unexpected query")
        const since = Number(Subscription.valueAt(call.body.valueOrUndefined, "startTime") ?? 0)
        const { queried = (row: Row) => row } = kinds.find((kind) => kind.list === of) ?? {}
        const rows = listOf(of).filter((row) => timeIn(row) >= since).map(queried)
        return UpstreamResponse.json("trading-api", 200, JSON.stringify(isNewestFirst ? rows.toReversed() : rows))
      })
  }

  /** Adds rows to all lists, without those that a list already contains. Returns what sends them: a frame of each kind. */
  const list = (contents: ReadonlyArray<Bits>) =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      const added = new Map<string, ReadonlyArray<Row>>()
      for (const { list, row } of kinds) {
        if (added.has(list)) continue
        const known = listOf(list)
        const rows = contents.map((bits) => row(bits, now)).filter((each, place, all) =>
          ![...known, ...all.slice(0, place)].some((other) => JSON.stringify(other) === JSON.stringify(each))
        )
        added.set(list, rows)
        lists.set(list, [...known, ...rows])
      }
      return Effect.sync(() => {
        for (const { keys, texts } of connections) {
          for (const kind of kinds) {
            const rows = added.get(kind.list) ?? []
            if (rows.length > 0 && keys.has(subscriptionOf(kind).key)) Queue.offerUnsafe(texts, encode(kind, rows))
          }
        }
      })
    })

  return {
    transport,
    info,
    listOf,
    list,
    happen: (contents: ReadonlyArray<Bits>) => Effect.flatten(list(contents)),
    cut: Effect.sync(() => {
      for (const { texts } of connections) {
        Queue.failCauseUnsafe(texts, Cause.fail(new SocketLost({ code: 1006, reason: "" })))
      }
      connections.clear()
    })
  }
}

type Venue = ReturnType<typeof makeVenue>

/** A store of the event log that outlives the gateway. `encode` writes the rows of an entry. */
const makeStore = (encode: (rows: EventStore.NewEntry["rows"]) => string): EventStore.EventStore["Service"] => {
  const decodeRows = Schema.decodeUnknownSync(EventStore.RowsText)
  const entries: Array<Omit<EventStore.Entry, "rows"> & { readonly text: string }> = []
  const begun = new Map<string, Pick<EventStore.Entry, "at" | "seq">>()
  let seq = 0
  return EventStore.EventStore.of({
    backing: "Redis",
    lease: () => Effect.succeed(1),
    release: () => Effect.void,
    append: (_token, _after, added) =>
      Effect.map(Clock.currentTimeMillis, (at) => {
        for (const { rows, ...entry } of added) {
          seq += EventStore.span({ ...entry, rows })
          entries.push({ ...entry, seq, at, text: encode(rows) })
          if (entry.kind === "begin") begun.set(entry.user, { seq, at })
        }
        return { epoch: "one", seq, at }
      }),
    readAfter: (after) =>
      Effect.sync(() => ({
        epoch: "one",
        seq,
        start: 0,
        begun,
        entries: entries.filter((entry) => entry.seq > after).map(({ text, ...entry }) =>
          EventStore.restored({ ...entry, rows: decodeRows(text) })
        )
      })),
    want: () => Effect.void,
    wanted: Effect.succeed([])
  })
}

const encodeRows = Schema.encodeSync(EventStore.RowsText)

/** Encodes rows as the first version did, which identified fills by their `tid` alone. */
const encodeOld: typeof encodeRows = (rows) =>
  JSON.stringify(rows.map(({ text }) => {
    const row = Result.getOrUndefined(Json.parse(text))
    return { id: Json.stringify(Subscription.valueAt(row, "tid") ?? text), text, time: 0 }
  }))

/** A gateway over a venue and a store, until it is stopped. */
const startGateway = Effect.fnUntraced(function*(
  { info, transport }: Venue,
  store: EventStore.EventStore["Service"],
  bounds: EventStore.Bounds = EventStore.defaultBounds
) {
  const scope = yield* Scope.make()
  const shared = yield* Streams.makeShared(info, {
    addresses: [Redacted.make("memory")],
    events: { accounts: [user], bounds }
  }).pipe(
    Effect.provideService(SocketTransport, transport),
    Effect.provideService(EventStore.EventStore, store),
    Scope.provide(scope)
  )
  return { ...shared, stop: Scope.close(scope, Exit.void) }
})

type Gateway = Effect.Success<ReturnType<typeof startGateway>>

/** What a reader of one subscription has received: rows that happened before, and rows that happened since. */
interface Reader {
  readonly kind: Kind
  /** How many rows the venue's list had when the reader subscribed. */
  readonly from: number
  readonly rows: Array<unknown>
  subscriber: Subscriber | undefined
  position: ResumePosition | undefined
}

const rowsIn = ({ declaration }: Subscription.Normalised, { text }: Frame): ReadonlyArray<unknown> => {
  const frame = Result.getOrUndefined(Json.parse(text))
  const member = declaration.rows?.member
  const list = Subscription.valueAt(frame, member === undefined ? "data" : `data.${member}`)
  return Array.isArray(list) ? list : []
}

const newReader = (kind: Kind, from: number): Reader => ({
  kind,
  from,
  rows: [],
  subscriber: undefined,
  position: undefined
})

const refused = (_topic: Topic, message: string) => assert.fail(message)

/** Lets a reader join, or resume after it left. */
const join = (gateway: Gateway, reader: Reader, isResumable: boolean): void => {
  const subscription = subscriptionOf(reader.kind)
  const topic = gateway.topicOf(subscription)
  const sink = { subscribed: () => {}, refused, flush: () => {} }
  const deliver = (frame: Frame, position?: ResumePosition) => {
    reader.rows.push(...rowsIn(subscription, frame))
    reader.position = position ?? reader.position
  }
  const isFirst = reader.position === undefined
  reader.subscriber = isResumable
    ? ResumableSubscriber.join(gateway, "reader", {
      ...sink,
      deliver,
      resumed: ({ recovered, ...position }) => {
        assert.strictEqual(recovered, !isFirst, `${reader.kind.name} was resumed`)
        reader.position = position
      }
    }, { from: reader.position, topics: [topic] })
    : gateway.join("reader", { ...sink, deliver })
  reader.subscriber.subscribe(topic)
}

/** Asserts that a reader received each row since it joined exactly once, and each row from before at most once. */
const assertOnce = ({ from, kind, rows }: Reader, venue: Venue, what: string): void => {
  const all = venue.listOf(kind.list)
  const counts = new Map(all.map((row) => [JSON.stringify(row), 0]))
  for (const received of rows) {
    const known = all.map((row) =>
      JSON.stringify(row)
    ).find((row, place) => row === JSON.stringify(pick(received, all[place]))) ??
      assert.fail(`${kind.name}: no row of the venue is ${JSON.stringify(received)}`)
    counts.set(known, (counts.get(known) ?? 0) + 1)
  }
  const found = all.map((row) => counts.get(JSON.stringify(row)))
  const expected = all.map((_, place) => place < from ? Math.min(1, found[place] ?? 0) : 1)
  assert.deepStrictEqual(found, expected, `${kind.name}, ${what}`)
}

const Step = Schema.Struct({
  do: Schema.Literals(["send", "send", "pass", "cut", "late", "join", "rejoin", "restart"]),
  rows: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: most - 1 }))).check(
    Schema.isMaxLength(3)
  )
})

const isLogged = (gateway: Gateway, kind: Kind): boolean =>
  gateway.events.isLogged(gateway.topicOf(subscriptionOf(kind)))

/** Plays steps, and asserts what each reader received. */
const play = Effect.fnUntraced(
  function*(steps: ReadonlyArray<typeof Step.Type>, store: EventStore.EventStore["Service"]) {
    const venue = makeVenue()
    yield* venue.happen([0, 64, 255])
    yield* TestClock.adjust("10 seconds")
    let gateway = yield* startGateway(venue, store)
    yield* Effect.addFinalizer(() => Effect.suspend(() => gateway.stop))
    const settle = TestClock.adjust("4 seconds")
    yield* settle
    let readers: Array<Reader> = []
    const resuming = kinds.filter((kind) => isLogged(gateway, kind))
      .map((kind) => newReader(kind, venue.listOf(kind.list).length))
    const joinAll = Effect.suspend(() => {
      for (const kind of kinds) {
        const reader = newReader(kind, venue.listOf(kind.list).length)
        readers.push(reader)
        join(gateway, reader, false)
      }
      return settle
    })
    const resumeAll = () => {
      for (const reader of resuming) join(gateway, reader, true)
    }
    const leaveAll = () => {
      for (const { subscriber } of resuming) subscriber?.leave()
    }
    resumeAll()
    yield* joinAll
    for (const { do: what, rows } of steps) {
      switch (what) {
        case "send":
          yield* venue.happen(rows)
          break
        case "pass":
          yield* TestClock.adjust("1 second")
          yield* venue.happen(rows)
          break
        case "cut":
          // the first of the rows are sent, and the others are missed
          yield* venue.happen(rows.slice(0, 1))
          yield* TestClock.adjust(0)
          yield* venue.cut
          yield* venue.happen(rows.slice(1))
          yield* TestClock.adjust("1 second")
          yield* venue.happen(rows.map((bits) => most - 1 - bits))
          yield* settle
          break
        case "late": {
          // queries list the rows before they are sent, one by one
          yield* venue.cut
          const sending = yield* Effect.forEach(rows, (bits) => venue.list([bits]))
          yield* settle
          yield* Effect.all(sending)
          break
        }
        case "join":
          yield* settle
          yield* joinAll
          yield* venue.happen(rows)
          break
        case "rejoin":
          yield* settle
          leaveAll()
          yield* venue.happen(rows)
          yield* settle
          resumeAll()
          break
        case "restart":
          yield* settle
          for (const reader of readers) assertOnce(reader, venue, "before a restart")
          readers = []
          leaveAll()
          yield* venue.happen(rows.slice(0, 1))
          yield* TestClock.adjust(0)
          yield* gateway.stop
          yield* venue.happen(rows.slice(1))
          gateway = yield* startGateway(venue, store)
          yield* settle
          resumeAll()
          yield* joinAll
      }
    }
    yield* settle
    for (const reader of readers) assertOnce(reader, venue, "shared")
    for (const reader of resuming) assertOnce(reader, venue, "resumed")
    const gaps = [...gateway.counts.gaps.keys()].filter((name) => name !== "trades" && name !== "userEvents")
    assert.deepStrictEqual(gaps, [])
  },
  Effect.scoped
)

const steps = Schema.Array(Step).check(Schema.isMinLength(4), Schema.isMaxLength(10))

describe("each row of the venue", () => {
  it.effect.prop(
    "arrives once, live, over cuts and restarts, in snapshots, replays and refills, whatever it shares with others",
    { steps },
    (script) => play(script.steps, makeStore(encodeRows)),
    { arbitrary: { runs: sampleRuns(100) } }
  )

  it.effect.prop(
    "arrives once after an upgrade, when the event log has the rows of a version that identified fills by their tid",
    { steps },
    (script) => play([...script.steps, { do: "restart", rows: [0, 1] }], makeStore(encodeOld)),
    { arbitrary: { runs: sampleRuns(40) } }
  )

  it.effect("that the event log has dropped does not arrive again after a restart", () =>
    Effect.gen(function*() {
      const venue = makeVenue()
      const store = makeStore(encodeRows)
      const bounds = { ...EventStore.defaultBounds, age: 60_000 }
      yield* venue.happen([0, 1])
      yield* TestClock.adjust("10 seconds")
      const first = yield* startGateway(venue, store, bounds)
      yield* TestClock.adjust("4 seconds")
      const readers = kinds.filter((kind) => isLogged(first, kind))
        .map((kind) => newReader(kind, venue.listOf(kind.list).length))
      for (const reader of readers) join(first, reader, true)
      yield* venue.happen([2])
      yield* TestClock.adjust("2 minutes")
      for (const reader of readers) {
        reader.subscriber?.leave()
        // the position of a caller that reads all of these subscriptions
        reader.position = first.events.log.head
      }
      yield* first.stop
      yield* venue.happen([3])
      const second = yield* startGateway(venue, store, bounds)
      yield* Effect.addFinalizer(() => second.stop)
      yield* TestClock.adjust("4 seconds")
      for (const reader of readers) join(second, reader, true)
      yield* TestClock.adjust("4 seconds")
      for (const reader of readers) assertOnce(reader, venue, "resumed")
    }).pipe(Effect.scoped))
})
