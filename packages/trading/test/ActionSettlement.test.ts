/** Actions whose response was lost: what the venue's state and its time make of them, without a second sending. */
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, it } from "@effect/vitest"
import * as SqliteClient from "@trigate/archive/SqliteClient"
import { type ActionRecord, type ActionReference, isOpen } from "@trigate/domain/actions/ActionOutcome"
import { type Caller, local } from "@trigate/domain/Caller"
import { keys } from "@trigate/sandbox/SandboxExamples"
import type { TestKey } from "@trigate/sandbox/SandboxExamples"
import * as ActionBuilder from "@trigate/signing/actions/ActionBuilder"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as Signer from "@trigate/signing/Signer"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import { advancingClock } from "@trigate/testing/AdvancingClock"
import * as PostgresServer from "@trigate/testing/PostgresServer"
import * as RedisServer from "@trigate/testing/RedisServer"
import * as ScriptedTransport from "@trigate/testing/ScriptedTransport"
import * as AccountEvents from "@trigate/trading/accounts/AccountEvents"
import { EventLog } from "@trigate/trading/accounts/AccountEvents"
import * as ActionLog from "@trigate/trading/actionLog/ActionLog"
import * as ActionLogMemory from "@trigate/trading/actionLog/ActionLogMemory"
import * as ActionLogRedis from "@trigate/trading/actionLog/ActionLogRedis"
import * as ActionLogSql from "@trigate/trading/actionLog/ActionLogSql"
import * as ActionSettlement from "@trigate/trading/actionLog/ActionSettlement"
import { Exchange } from "@trigate/trading/Exchange"
import * as TradingUpstream from "@trigate/trading/TradingUpstream"
import * as OutlierDetection from "@trigate/upstream/attempts/OutlierDetection"
import * as ResponseCache from "@trigate/upstream/cache/ResponseCache"
import * as RateLimiter from "@trigate/upstream/limits/RateLimiter"
import * as Pipeline from "@trigate/upstream/Pipeline"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { now } from "./actionLogSuite.ts"
import * as admission from "./admission.ts"

const trader = keys.trader.address
const cloidOf = (index: number) => `0x${index.toString(16).padStart(32, "0")}` as const
const leg = { asset: 0, side: "buy", priceInQuote: "60000", sizeInBase: "0.001" } as const

/** What the venue's state shows of an order. */
interface Shown {
  readonly status: string
  readonly oid: number
  /** Members of the order that differ from what was signed. */
  readonly order?: object
}

const readObject = Schema.decodeUnknownSync(Schema.Record(Schema.String, Schema.Unknown))
const Query = Schema.Struct({
  type: Schema.String,
  oid: Schema.optionalKey(Schema.String),
  user: Schema.optionalKey(Schema.String)
})
const readQuery = Schema.decodeUnknownSync(Query)

/** A venue that loses each response to an action. */
const makeVenue = (orders: () => { readonly [cloid: string]: Shown } = () => ({})) => {
  const state = {
    orders,
    clock: now,
    actions: 0,
    /** The response to an action; without one, it is lost. */
    response: undefined as object | undefined,
    /** The masters of agents. */
    masters: new Map<string, string>(),
    /** The number of further queries that the venue refuses with 429. */
    refusals: 0
  }
  const answer = (value: unknown) => ScriptedTransport.response(200, JSON.stringify(value))
  const recordOf = (cloid: string, { oid, order, status }: Shown) => ({
    order: {
      coin: "BTC",
      side: "B",
      limitPx: "60000.0",
      sz: status === "filled" ? "0.0" : "0.001",
      origSz: "0.001",
      oid,
      timestamp: state.clock,
      cloid,
      reduceOnly: false,
      orderType: "Limit",
      tif: "Gtc",
      isTrigger: false,
      triggerPx: "0.0",
      triggerCondition: "N/A",
      isPositionTpsl: false,
      children: [],
      ...order
    },
    status,
    statusTimestamp: state.clock
  })
  const react = (query: typeof Query.Type) => {
    switch (query.type) {
      case "exchangeStatus":
        return answer({ time: state.clock, specialStatuses: null })
      case "userRole": {
        const master = state.masters.get(query.user ?? "")
        return answer(master === undefined ? { role: "user" } : { role: "agent", data: { user: master } })
      }
      case "orderStatus": {
        const shown = query.oid === undefined ? undefined : state.orders()[query.oid]
        return answer(
          shown === undefined || query.oid === undefined
            ? { status: "unknownOid" }
            : { status: "order", order: recordOf(query.oid, shown) }
        )
      }
      case "userFillsByTime":
        return answer([["59000", "0.0004"], ["60000", "0.0006"]].map(([px, sz], tid) => ({
          coin: "BTC",
          px,
          sz,
          tid,
          side: "B",
          time: state.clock,
          startPosition: "0.0",
          dir: "Open Long",
          closedPnl: "0.0",
          hash: `0x${"0".repeat(64)}`,
          oid: 7,
          crossed: true,
          fee: "0.0"
        })))
      default:
        return assert.fail(query.type)
    }
  }
  const transport = ScriptedTransport.make(({ body, url }) => {
    if (!url.endsWith("/exchange")) {
      if (state.refusals === 0) return react(readQuery(JSON.parse(body)))
      state.refusals -= 1
      return ScriptedTransport.response(429, "null")
    }
    state.actions += 1
    return state.response === undefined ? ScriptedTransport.broken : answer(state.response)
  })
  return { state, transport }
}

type Venue = ReturnType<typeof makeVenue>

const signing = Layer.mergeAll(
  Signer.layerPrivateKey(Redacted.make(keys.trader.privateKey)),
  VenueProfile.layer("mainnet"),
  Secp256k1.layer
)

const startTime = Effect.flatMap(Clock.currentTimeMillis, (at) => at < now ? TestClock.setTime(now) : Effect.void)

/** A gateway on a log: it sends, and it settles. */
const replica = <E>(
  venue: Venue,
  log: Layer.Layer<ActionLog.ActionLog, E>,
  orders = AccountEvents.make(),
  pipeline = venue.transport.layer
) => {
  const addresses = { api: ["https://venue.example"] }
  return Layer.mergeAll(
    TradingUpstream.layerExchange(addresses),
    ActionSettlement.layer({ orders }).pipe(Layer.provide(TradingUpstream.layerInfo(addresses)))
  ).pipe(
    Layer.provide([
      admission.layer({ relayActions: "all" }),
      pipeline
    ]),
    Layer.provideMerge(log),
    Layer.provideMerge(signing),
    Layer.provideMerge(Logger.layer([])),
    // before the first timer starts
    Layer.provideMerge(Layer.effectDiscard(startTime))
  )
}

const outcome = (reference: ActionReference) => Exchange.use((exchange) => exchange.outcome(reference))

/** The outcome once it is known, or what is known after a time of gateway and venue in seconds. */
const settledWithin = Effect.fnUntraced(function*({ state }: Venue, reference: ActionReference, seconds: number) {
  const start = yield* Clock.currentTimeMillis
  const clock = state.clock
  for (;;) {
    yield* TestClock.adjust(250)
    const at = yield* Clock.currentTimeMillis
    state.clock = clock + (at - start)
    const record = yield* outcome(reference)
    if (!isOpen(record) || at - start > seconds * 1000) return { at, record }
  }
})

const lose = Effect.fnUntraced(function*(signed: Effect.Success<ReturnType<typeof ActionBuilder.placeOrders>>) {
  const error = yield* Effect.flip(Exchange.use((exchange) => exchange.submit(signed)))
  assert.strictEqual(error._tag, "OutcomeUnknown")
})

const resting = (oid: number) => ({
  status: "ok",
  response: { type: "order", data: { statuses: [{ resting: { oid } }] } }
})

interface Submitted {
  readonly cloid: `0x${string}`
  readonly by: TestKey
  readonly nonce: number
  readonly vaultAddress?: `0x${string}`
}

/** Sends an order of a signer, whatever becomes of it. */
const submit = ({ by, cloid, ...options }: Submitted) =>
  ActionBuilder.placeOrders({ orders: [{ ...leg, cloid }] }, options).pipe(
    Effect.provide(Signer.layerPrivateKey(Redacted.make(by.privateKey))),
    Effect.orDie,
    Effect.flatMap((signed) => Exchange.use((exchange) => Effect.exit(exchange.submit(signed))))
  )

const byNonce = (nonce: number): ActionReference => ({ signer: trader, nonce })

const withoutId = ({ id: _, ...record }: ActionRecord): object => record

interface Variant {
  readonly orders: { readonly [cloid: string]: Shown }
  readonly expiresAfter?: number
  readonly expected: Omit<ActionRecord, "id" | "signer" | "nonce">
}

const one = cloidOf(1)

const variants: { readonly [name: string]: Variant } = {
  "filled": {
    orders: { [one]: { status: "filled", oid: 7 } },
    expected: {
      state: "accepted",
      settled: {
        by: "orderStatus",
        entries: [{ _tag: "Filled", oid: 7, cloid: one, totalSz: "0.001", avgPx: "59600" }]
      }
    }
  },
  "resting": {
    orders: { [one]: { status: "open", oid: 8 } },
    expected: {
      state: "accepted",
      settled: { by: "orderStatus", entries: [{ _tag: "Resting", oid: 8, cloid: one }] }
    }
  },
  "rejected leg": {
    orders: { [one]: { status: "badAloPxRejected", oid: 9 } },
    expected: {
      state: "accepted",
      settled: {
        by: "orderStatus",
        entries: [{ _tag: "Rejected", reason: "PostOnlyWouldCross", message: "badAloPxRejected" }]
      }
    }
  },
  "refused as a whole": {
    orders: {},
    expiresAfter: now + 5000,
    expected: { state: "neverArrived", settled: { by: "expiry" } }
  },
  "never arrived, expires in 5 s": {
    orders: {},
    expiresAfter: now + 5000,
    expected: { state: "neverArrived", settled: { by: "expiry" } }
  },
  "no expiresAfter": { orders: {}, expected: { state: "unknown", mayLandUntil: now + 2 * 86_400_000 } }
}

type Store = Effect.Effect<() => Layer.Layer<ActionLog.ActionLog>, never, Scope.Scope>

const generous = { deadline: "1 hour", lease: "20 seconds" } as const
const sqlOptions = { ...generous, countEvery: "365 days" } as const

const stores: { readonly [name: string]: Store } = {
  memory: Effect.gen(function*() {
    const log = yield* ActionLogMemory.make()
    return () => Layer.succeed(ActionLog.ActionLog, log)
  }),
  SQLite: Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "settlement-"))),
      (folder) => Effect.sync(() => Fs.rmSync(folder, { recursive: true, force: true }))
    ),
    (folder) => () =>
      ActionLogSql.layer(sqlOptions).pipe(
        Layer.provide(SqliteClient.layer({ file: Path.join(folder, "log.sqlite"), mode: "create" }))
      )
  ),
  ...(PostgresServer.isInstalled
    ? {
      Postgres: Effect.map(PostgresServer.postgresDatabase, ({ url }) => () =>
        ActionLogSql.layer(sqlOptions).pipe(
          Layer.provide(Layer.orDie(PgClient.layer({ url: Redacted.make(url) })))
        ))
    }
    : {}),
  ...(RedisServer.isInstalled
    ? {
      Redis: Effect.map(
        RedisServer.redisServer,
        ({ url }) => () =>
          ActionLogRedis.layer(generous).pipe(
            Layer.provide(Layer.orDie(NodeRedis.layer({ url, disableOfflineQueue: true })))
          )
      )
    }
    : {})
}

for (const [name, store] of Object.entries(stores)) {
  describe(`unknown outcomes on ${name}`, () => {
    it.effect("settle as the venue's state shows them, in six variants, and nothing is sent twice", () =>
      Effect.gen(function*() {
        const make = yield* store
        let nonce = now
        for (const [variant, { expected, expiresAfter, orders }] of Object.entries(variants)) {
          nonce += 1
          // a cloid of its own, so that no other action has it
          const cloid = cloidOf(nonce)
          const shown = Object.fromEntries(Object.values(orders).map((order) => [cloid, order] as const))
          const venue = makeVenue(() => shown)
          yield* TestClock.setTime(now)
          const found = yield* Effect.gen(function*() {
            const options = { nonce, ...(expiresAfter === undefined ? {} : { expiresAfter }) }
            yield* lose(yield* Effect.orDie(ActionBuilder.placeOrders({ orders: [{ ...leg, cloid }] }, options)))
            return yield* settledWithin(venue, byNonce(nonce), expected.state === "unknown" ? 30 : 3600)
          }).pipe(Effect.provide(replica(venue, make())))
          const named = readObject(JSON.parse(JSON.stringify(expected).replaceAll(one, cloid)))
          const until = expected.mayLandUntil === undefined ? {} : { mayLandUntil: nonce + 2 * 86_400_000 }
          assert.deepStrictEqual(withoutId(found.record), { signer: trader, nonce, ...named, ...until }, variant)
          if (expiresAfter !== undefined) assert.isAbove(venue.state.clock, expiresAfter)
          // where the store is another process, time passes while it answers
          else if (name === "memory" && expected.state === "accepted") assert.isAtMost(found.at - now, 3000, variant)
          assert.strictEqual(venue.state.actions, 1, variant)
        }
      }))

    it.effect("settle although an order of another account has the same cloid and the same oid", () =>
      Effect.gen(function*() {
        const make = yield* store
        const cloid = cloidOf(4)
        const venue = makeVenue(() => ({ [cloid]: { status: "open", oid: 8 } }))
        yield* TestClock.setTime(now)
        const found = yield* Effect.gen(function*() {
          venue.state.response = resting(8)
          yield* submit({ cloid, by: keys.validator, nonce: now + 1 })
          venue.state.response = undefined
          yield* submit({ cloid, by: keys.trader, nonce: now + 2 })
          return yield* settledWithin(venue, byNonce(now + 2), 3600)
        }).pipe(Effect.provide(replica(venue, make())))
        assert.deepStrictEqual(withoutId(found.record), {
          signer: trader,
          nonce: now + 2,
          state: "accepted",
          settled: { by: "orderStatus", entries: [{ _tag: "Resting", oid: 8, cloid }] }
        })
      }))

    if (name === "memory") return
    it.effect("settle at another replica after the one that sent was killed", () =>
      Effect.gen(function*() {
        const make = yield* store
        yield* TestClock.setTime(now)
        const cloid = cloidOf(2)
        const venue = makeVenue(() => ({ [cloid]: { status: "open", oid: 8 } }))
        // never ends: what a killed process leaves is a claim that nobody settles
        const killed = yield* Scope.make()
        const action = yield* Effect.orDie(
          Effect.provide(ActionBuilder.placeOrders({ orders: [{ ...leg, cloid }] }, { nonce: now }), signing)
        )
        const log = yield* Layer.buildWithScope(make(), killed)
        const { fingerprint, nonce, signer } = yield* admission.make().admit(
          new TextEncoder().encode(JSON.stringify(action))
        )
        yield* ActionLog.ActionLog.use((each) =>
          each.claim({
            caller: "local",
            isListed: true,
            ...(signer === undefined ? {} : { signer }),
            nonce,
            actionType: "order",
            fingerprint,
            body: new TextEncoder().encode(JSON.stringify(action)),
            trace: { legs: [{ cloid, isBuy: true, price: "60000", size: "0.001" }] }
          })
        ).pipe(Effect.provide(log), Effect.orDie)
        const found = yield* settledWithin(venue, { cloid }, 3600).pipe(Effect.provide(replica(venue, make())))
        assert.strictEqual(found.record.state, "accepted")
        // SQLite belongs to one process, so that what an earlier one left is unknown at once
        if (name !== "SQLite") assert.isAtLeast(found.at - now, 20_000)
        assert.strictEqual(venue.state.actions, 0)
        yield* Scope.close(killed, Exit.void)
      }))
  })
}

describe("an unknown outcome", () => {
  const sent = (venue: Venue, cloids: ReadonlyArray<`0x${string}` | undefined>, expiresAfter?: number) =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      let nonce = now
      for (const cloid of cloids) {
        const order = { ...leg, ...(cloid === undefined ? {} : { cloid }) }
        const options = { nonce: nonce++, ...(expiresAfter === undefined ? {} : { expiresAfter }) }
        yield* lose(yield* Effect.orDie(ActionBuilder.placeOrders({ orders: [order] }, options)))
      }
      const records: Array<ActionRecord> = []
      for (const at of cloids.keys()) records.push((yield* settledWithin(venue, byNonce(now + at), 10)).record)
      assert.strictEqual(venue.state.actions, cloids.length)
      return records
    }).pipe(Effect.provide(replica(venue, ActionLogMemory.layer())))

  it.effect("without a cloid is never settled, and costs no query", () => {
    const venue = makeVenue(() => assert.fail("asked for an order"))
    return Effect.gen(function*() {
      const records = yield* sent(venue, [undefined, undefined], now + 5000)
      assert.deepStrictEqual(records.map(({ mayLandUntil, state }) => ({ mayLandUntil, state })), [
        { state: "unknown", mayLandUntil: now + 5000 },
        { state: "unknown", mayLandUntil: now + 5000 }
      ])
      assert.lengthOf(venue.transport.sent, 2)
    })
  })

  it.effect("of two orders under one cloid stays unknown: nothing tells whose order it is", () => {
    const venue = makeVenue(() => ({ [one]: { status: "open", oid: 8 } }))
    return Effect.map(
      sent(venue, [one, one]),
      (records) => assert.deepStrictEqual(records.map(({ state }) => state), ["unknown", "unknown"])
    )
  })

  const [agent, stranger] = [keys.leader, keys.validator]
  const vault = `0x${"cc".repeat(20)}` as const

  for (
    const [what, rival, response, expected] of [
      ["of the account was placed as another order", { by: keys.trader }, resting(5), "accepted"],
      ["of the account was placed as this order", { by: keys.trader }, resting(8), "unknown"],
      ["of an agent of the account has no known outcome", { by: agent }, undefined, "unknown"],
      ["of an agent of the account was rejected", { by: agent }, { status: "err", response: "No." }, "accepted"],
      ["of an agent for a vault has no known outcome", { by: agent, vaultAddress: vault }, undefined, "accepted"],
      ["of an agent of another account has no known outcome", { by: stranger }, undefined, "accepted"]
    ] as const
  ) {
    it.effect(`becomes ${expected} if an action with its cloid ${what}`, () => {
      const venue = makeVenue(() => ({ [one]: { status: "open", oid: 8 } }))
      venue.state.masters.set(agent.address, trader.toUpperCase().replace("0X", "0x"))
      venue.state.masters.set(stranger.address, `0x${"dd".repeat(20)}`)
      return Effect.gen(function*() {
        yield* TestClock.setTime(now)
        venue.state.response = response
        yield* submit({ cloid: one, nonce: now + 1, ...rival })
        venue.state.response = undefined
        yield* submit({ cloid: one, nonce: now + 2, by: keys.trader })
        assert.strictEqual((yield* settledWithin(venue, byNonce(now + 2), 10)).record.state, expected)
      }).pipe(Effect.provide(replica(venue, ActionLogMemory.layer())))
    })
  }

  it.effect("is looked up in the account of its vault, and otherwise in that of its signer", () => {
    const venue = makeVenue(() => ({ [one]: { status: "open", oid: 8 } }))
    return Effect.gen(function*() {
      yield* TestClock.setTime(now)
      for (const [index, options] of [{ vaultAddress: vault }, {}].entries()) {
        yield* submit({ cloid: one, nonce: now + index, by: keys.trader, ...options })
      }
      const records: Array<ActionRecord> = []
      for (const nonce of [now, now + 1]) records.push((yield* settledWithin(venue, byNonce(nonce), 10)).record)
      assert.deepStrictEqual(records.map(({ state }) => state), ["accepted", "accepted"])
      const asked = venue.transport.sent.filter(({ body }) => body.includes(`"orderStatus"`)).map(({ body }) => body)
      assert.deepStrictEqual(
        [vault, trader].map((user) => asked.some((body) => body.includes(user))),
        [true, true]
      )
    }).pipe(Effect.provide(replica(venue, ActionLogMemory.layer())))
  })

  for (
    const [what, order] of [
      ["another price", { limitPx: "60001.0" }],
      ["another size", { origSz: "0.002" }],
      ["another side", { side: "A" }],
      ["an earlier time", { timestamp: now - 3_600_000 }]
    ] as const
  ) {
    it.effect(`is not taken for an order under its cloid with ${what}`, () => {
      const venue = makeVenue(() => ({ [one]: { status: "filled", oid: 7, order } }))
      return Effect.map(
        sent(venue, [one], now + 3000),
        (records) => assert.deepStrictEqual(records.map(({ state }) => state), ["unknown"])
      )
    })
  }

  it.effect("does not settle by the gateway's own clock: the venue's stands still before expiresAfter", () => {
    const venue = makeVenue()
    // within the margin for servers of the venue that lag
    venue.state.clock = now + 5000 + 2000 - 10_000 - 500
    return Effect.gen(function*() {
      const [record] = yield* sent(venue, [one], now + 5000)
      assert.strictEqual(record?.state, "unknown")
      assert.isAbove(yield* Clock.currentTimeMillis, now + 5000)
    })
  })

  it.effect("of a batch names the leg that the venue's state does not show", () => {
    const venue = makeVenue(() => ({ [one]: { status: "open", oid: 8 } }))
    return Effect.gen(function*() {
      yield* TestClock.setTime(now)
      const orders = [{ ...leg, cloid: cloidOf(3) }, { ...leg, cloid: one }, leg]
      yield* lose(yield* Effect.orDie(ActionBuilder.placeOrders({ orders }, { nonce: now })))
      const { record } = yield* settledWithin(venue, { cloid: one }, 10)
      assert.deepStrictEqual(record.settled?.entries?.map(({ _tag }) => _tag), [
        "Unrecognised",
        "Resting",
        "Unrecognised"
      ])
    }).pipe(Effect.provide(replica(venue, ActionLogMemory.layer())))
  })

  it.effect("is known within seconds while reads leave nothing for the refreshes of cached responses", () => {
    const venue = makeVenue(() => ({ [one]: { status: "open", oid: 8 } }))
    return Effect.gen(function*() {
      yield* TestClock.setTime(now)
      const limiter = yield* Effect.map(
        Layer.build(RateLimiter.layerMemory({ "trading-api": 1200 })),
        (context) => Context.get(context, RateLimiter.RateLimiter)
      )
      const pipeline = Pipeline.layerNoDeps({ owner: local }).pipe(Layer.provide([
        Layer.succeed(RateLimiter.RateLimiter, limiter),
        OutlierDetection.layerAlways,
        ResponseCache.layer(),
        venue.transport.transport
      ]))
      const read = (caller: Caller, maxWait: number) =>
        limiter.take({
          upstream: "trading-api",
          class: "read",
          cost: { weight: 20, requestUnits: 1 },
          caller,
          maxWait
        })
      for (let second = 0; second < 57; second++) {
        yield* read(local, 0)
        yield* TestClock.adjust("1 second")
      }
      yield* Effect.gen(function*() {
        const callers = ["key:a", "key:b", "key:c", "key:d"].map((id) => ({ id, scope: {}, quota: {} }))
        // each second, one of a hundred waiting reads can start
        for (let count = 0; count < 100; count++) {
          yield* Effect.forkChild(Effect.ignore(read(callers[count % 4] ?? local, 100_000)))
        }
        const nonce = yield* Clock.currentTimeMillis
        yield* lose(yield* Effect.orDie(ActionBuilder.placeOrders({ orders: [{ ...leg, cloid: one }] }, { nonce })))
        const { record } = yield* settledWithin(venue, { cloid: one }, 20)
        assert.strictEqual(record.state, "accepted")
      }).pipe(Effect.provide(replica(venue, ActionLogMemory.layer(), AccountEvents.make(), pipeline)))
    })
  })

  it.effect("is looked up again each second while there is no weight for it", () => {
    const venue = makeVenue(() => ({ [one]: { status: "open", oid: 8 } }))
    return Effect.gen(function*() {
      yield* startTime
      const nonce = yield* Clock.currentTimeMillis
      yield* lose(yield* Effect.orDie(ActionBuilder.placeOrders({ orders: [{ ...leg, cloid: one }] }, { nonce })))
      // the first lookup is after a second, and would be followed by lookups after 1.5, 2.25, 3.4, 5.1, 7.6 and 11.4 seconds
      venue.state.refusals = 6
      const { at, record } = yield* settledWithin(venue, { cloid: one }, 30)
      assert.strictEqual(record.state, "accepted")
      assert.strictEqual(venue.state.refusals, 0)
      assert.isBelow(at - nonce, 9000)
    }).pipe(Effect.provide(replica(venue, ActionLogMemory.layer())))
  })

  it.effect("is looked up at once when the event log of the account has an event with its cloid", () => {
    const orders: { [cloid: string]: Shown } = {}
    const venue = makeVenue(() => orders)
    const events = AccountEvents.make()
    const log = new EventLog(AccountEvents.defaultBounds)
    events.follow(log)
    let seq = 0
    const append = (kind: AccountEvents.EntryKind, name: string, row: object, user: string = trader) => {
      seq += 1
      log.append({
        kind,
        user,
        name,
        rows: [{ id: `${seq}`, text: JSON.stringify(row), time: now }],
        seq,
        at: now
      })
      return TestClock.adjust(1)
    }
    const lookups = () => venue.transport.sent.filter(({ body }) => body.includes(`"orderStatus"`)).length
    return Effect.gen(function*() {
      yield* TestClock.setTime(now)
      yield* lose(
        yield* Effect.orDie(ActionBuilder.placeOrders({ orders: [{ ...leg, cloid: one }] }, { nonce: now }))
      )
      yield* settledWithin(venue, { cloid: one }, 60)
      const before = lookups()
      yield* append("event", "orderUpdates", { order: { cloid: cloidOf(2) } })
      yield* append("event", "userFills", {})
      yield* append("past", "orderUpdates", { order: { cloid: one } })
      yield* append("event", "orderUpdates", { order: { cloid: one } }, stranger.address)
      assert.strictEqual(lookups(), before)
      // the venue's queries do not show the order yet: the next lookup is periodic
      for (let count = 0; count < 3; count++) yield* append("event", "userFills", { cloid: one })
      assert.strictEqual(lookups(), before + 1)
      assert.strictEqual((yield* outcome({ cloid: one })).state, "unknown")
      yield* settledWithin(venue, { cloid: one }, 60)
      orders[one] = { status: "open", oid: 8 }
      const periodic = lookups()
      yield* append("refill", "orderUpdates", { order: { cloid: one } })
      assert.deepStrictEqual(withoutId(yield* outcome({ cloid: one })), {
        signer: trader,
        nonce: now,
        state: "accepted",
        settled: { by: "orderStatus", entries: [{ _tag: "Resting", oid: 8, cloid: one }] }
      })
      assert.isAbove(periodic, before + 1)
      assert.deepStrictEqual([lookups(), venue.state.actions], [periodic + 1, 1])
    }).pipe(Effect.provide(replica(venue, ActionLogMemory.layer(), events)))
  })

  it.effect("is waited for, and a foreign id is not found", () => {
    const venue = makeVenue(() => ({ [one]: { status: "open", oid: 8 } }))
    return Effect.gen(function*() {
      yield* TestClock.setTime(now)
      yield* lose(
        yield* Effect.orDie(ActionBuilder.placeOrders({ orders: [{ ...leg, cloid: one }] }, { nonce: now }))
      )
      const waited = yield* advancingClock(
        Exchange.use((exchange) => exchange.outcome({ cloid: one }, { wait: "1 hour" }))
      )
      assert.strictEqual(waited.state, "accepted")
      assert.isBelow(yield* Clock.currentTimeMillis, now + 5000)
      const byId = yield* outcome({ id: waited.id })
      assert.deepStrictEqual(byId, waited)
      for (const reference of [byNonce(now + 1), { id: "0xabc" }, { cloid: cloidOf(9) }]) {
        assert.strictEqual((yield* Effect.flip(outcome(reference)))._tag, "ActionNotFound")
      }
    }).pipe(Effect.provide(replica(venue, ActionLogMemory.layer())))
  })
})
