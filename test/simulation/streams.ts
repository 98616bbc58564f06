/**
 * The streams of accounts alone: two replicas record the events of a venue in one log, and subscribers resume at either.
 * The venue is a ledger of rows, so that a run takes a fraction of a second and each row is known.
 */
import { local } from "@trigate/domain/Caller"
import * as Subscription from "@trigate/domain/unstable/streams/Subscription"
import * as Subscriptions from "@trigate/domain/unstable/streams/Subscriptions"
import * as Network from "@trigate/simulation/Network"
import type { Findings, Scenario } from "@trigate/simulation/Plan"
import * as Simulation from "@trigate/simulation/Simulation"
import * as StoreServer from "@trigate/simulation/StoreServer"
import * as EventLogs from "@trigate/simulation/unstable/stores/EventLogs"
import { Info } from "@trigate/trading/Info"
import * as Streams from "@trigate/trading/streams/Streams"
import * as StreamsMemory from "@trigate/trading/streams/StreamsMemory"
import * as TradingUpstream from "@trigate/trading/TradingUpstream"
import * as ResumableSubscriber from "@trigate/trading/unstable/streams/ResumableSubscriber"
import * as OutlierDetection from "@trigate/upstream/attempts/OutlierDetection"
import * as ResponseCache from "@trigate/upstream/cache/ResponseCache"
import * as RateLimiter from "@trigate/upstream/limits/RateLimiter"
import * as Pipeline from "@trigate/upstream/Pipeline"
import { SocketTransport } from "@trigate/upstream/streams/SocketTransport"
import { HttpTransport } from "@trigate/upstream/transport/HttpTransport"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { makeReceiver, startsAt } from "./bots.ts"
import { checkSubscriber, type LedgerRow } from "./properties.ts"

/** The kinds of faults; a seed switches a random subset of them on. */
const kinds = [
  "kill",
  "stop",
  "pause",
  "storeAway",
  "storeSlow",
  "storeLosesConfirmations",
  "storeLosesOperations",
  "storeRestored",
  "storeEmptied",
  "venueCloses",
  "venueSilent",
  "queriesFail",
  "killedInOutage",
  "clockShifted"
] as const

const storeFaults = {
  storeSlow: "slowness",
  storeLosesConfirmations: "lostConfirmations",
  storeLosesOperations: "lostOperations"
} as const

/** A fault: what fails, from when, and for how many milliseconds. */
export interface Fault {
  readonly kind: (typeof kinds)[number]
  readonly at: number
  readonly lasts: number
  readonly replica: number
}

/** Milliseconds in which events happen and faults begin, and milliseconds in which the system recovers. */
const active = 25_000
const recovery = 35_000

/** Milliseconds of an outage in which each attempt of a query fails. */
const outage = 35_000

const plan = (random: Simulation.NextRandom): ReadonlyArray<Fault> => {
  const chosen = kinds.filter(() => random() < 0.3)
  const count = chosen.length === 0 ? 0 : 1 + Simulation.pickBelow(random, 5)
  return Array.from({ length: count }, (): Fault => ({
    kind: chosen[Simulation.pickBelow(random, chosen.length)] ?? "kill",
    at: Math.floor(2000 + random() * (active - 8000)),
    lasts: Math.floor(200 + random() ** 2 * 10_000),
    replica: Simulation.pickBelow(random, 2)
  })).toSorted((one, other) => one.at - other.at)
}

const users = ["0x00000000000000000000000000000000000000a1", "0x00000000000000000000000000000000000000b2"] as const
const addresses = { api: ["http://venue"] }

/** A row of the ledger, as the venue sends it. */
interface Row extends LedgerRow {
  readonly time: number
  readonly row: object
}

/** The most fills in a snapshot, so that a long loss leaves a hole before it. */
const mostInSnapshot = 8

/** Makes the venue: the ledger of each account, its WebSocket and its queries. */
const makeVenue = Effect.fnUntraced(function*(network: Network.Network) {
  const { node: makeNode, now, random } = yield* Simulation.Simulation
  const node = makeNode("venue")
  node.start(Effect.never)
  const ledgers = new Map(
    users.map((user) => [user, { userFills: new Array<Row>(), orderUpdates: new Array<Row>() }] as const)
  )
  const readers = new Set<{ readonly user: unknown; readonly name: string; readonly send: (data: unknown) => void }>()
  let oid = 100
  const fill = (user: string, rows: ReadonlyArray<Row>, isSnapshot: boolean) => ({
    user,
    ...(isSnapshot ? { isSnapshot } : {}),
    fills: rows.map(({ row }) => row)
  })
  const sockets = StreamsMemory.makeSocket(({ declaration: { name, rows }, request: { user } }) =>
    Stream.unwrap(Effect.gen(function*() {
      const queue = yield* Queue.unbounded<unknown>()
      const reader = { user, name, send: (data: unknown) => void Queue.offerUnsafe(queue, data) }
      yield* Effect.acquireRelease(
        Effect.sync(() => readers.add(reader)),
        () => Effect.sync(() => readers.delete(reader))
      )
      const own = users.find((each) => each === user)
      if (own !== undefined && name === "userFills") {
        reader.send(fill(own, ledgers.get(own)?.userFills.slice(-mostInSnapshot).toReversed() ?? [], true))
      } else if (rows?.member !== undefined) reader.send({ user, isSnapshot: true, [rows.member]: [] })
      return Stream.fromQueue(queue)
    }))
  )
  const find = (body: string): ReadonlyArray<object> => {
    const query: unknown = JSON.parse(body)
    const ledger = ledgers.get(users.find((each) => each === Subscription.valueAt(query, "user")) ?? users[0])
    switch (Subscription.valueAt(query, "type")) {
      case "userFillsByTime": {
        const since = Number(Subscription.valueAt(query, "startTime"))
        return ledger?.userFills.filter(({ time }) => time >= since).map(({ row }) => row) ?? []
      }
      case "historicalOrders":
        return ledger?.orderUpdates.toReversed().map(({ row }) => row) ?? []
      default:
        return []
    }
  }
  network.serve("http://venue", {
    node,
    accept: (address) => sockets.open(address),
    http: ({ body }) =>
      Effect.sync(() => ({
        status: 200,
        headers: { "content-type": "application/json" },
        body: new TextEncoder().encode(JSON.stringify(find(new TextDecoder().decode(body))))
      }))
  })
  return {
    ledger: (user: (typeof users)[number]) => {
      const { orderUpdates = [], userFills = [] } = ledgers.get(user) ?? {}
      return { userFills, orderUpdates }
    },
    /** Fills orders of an account in one block: all rows have the same time. */
    trade: (user: (typeof users)[number]): void => {
      const ledger = ledgers.get(user)
      if (ledger === undefined) return
      const time = Math.floor(startsAt + now())
      const count = 1 + Simulation.pickBelow(random, 3)
      const traded = Array.from({ length: count }, () => {
        const order = { oid: ++oid, coin: "ETH", side: "B", limitPx: "3000", sz: "0.0", origSz: "1.0", timestamp: time }
        const fill: Row = {
          id: `${oid}/${oid}/1.0`,
          at: now(),
          time,
          row: { coin: "ETH", px: "3000", sz: "1.0", side: "B", time, oid, tid: oid, hash: "0x0", crossed: true }
        }
        const update: Row = {
          id: `${oid} filled`,
          at: now(),
          time,
          row: { order, status: "filled", statusTimestamp: time }
        }
        return { fill, update }
      })
      const isSplit = random() < 0.5
      ledger.userFills.push(...traded.map((each) => each.fill))
      ledger.orderUpdates.push(...traded.map(({ update }) => update))
      for (const reader of readers) {
        if (reader.user !== user) continue
        // the fills of one block come in one frame, or in several
        if (reader.name === "userFills") {
          for (const rows of isSplit ? traded.map((each) => [each.fill]) : [traded.map((each) => each.fill)]) {
            reader.send(fill(user, rows, false))
          }
        }
        if (reader.name === "orderUpdates") reader.send(traded.map(({ update: { row } }) => row))
      }
    }
  }
})

/** Makes the scenario. */
export const make = (): Scenario<Fault> => ({
  plan,
  describe: ({ at, kind, lasts, replica }) =>
    `${(at / 1000).toFixed(3)} s: ${kind} for ${(lasts / 1000).toFixed(3)} s, replica ${replica + 1}`,
  mustReach: [...kinds, "gap", "resumed"],
  options: (seed) => ({ startsAt, yields: seed % 2 === 0 ? 0 : 0.01 }),
  run: Effect.fnUntraced(function*(faults) {
    const simulation = yield* Simulation.Simulation
    const { after, log, node: makeNode, now, random } = simulation
    const reached = new Set<string>()
    const violations: Array<string> = []
    /** The probability with which a query fails. */
    let failing = 0
    const network = yield* Network.make({
      fault: () => {
        if (failing === 0 || random() >= failing) return undefined
        reached.add("queriesFail")
        // an outage lasts longer than the attempts of a query if each fails at once
        return failing === 1 ? "refused" : Network.httpFaults[Simulation.pickBelow(random, Network.httpFaults.length)]
      }
    })
    const venue = yield* makeVenue(network)
    const redis = yield* StoreServer.make("redis")
    const events = EventLogs.makeRedis()
    // a small log, so that callers come too late for an event
    const bounds = { rows: random() < 0.5 ? 30 : 50_000, age: 24 * 3_600_000 }
    log("program", `the log has ${bounds.rows} rows`)
    let snapshot = events.snapshot()

    const replicas = ["gateway-1", "gateway-2"].map((name) => {
      const node = makeNode(name)
      let scope: Scope.Closeable | undefined
      let shared: Streams.SharedStreams | undefined
      const layer = Layer.effect(
        Streams.Streams,
        Effect.gen(function*() {
          const info = Context.get(
            yield* Layer.build(
              TradingUpstream.layerInfo(addresses).pipe(
                Layer.provide(Pipeline.layerNoDeps({ owner: local })),
                Layer.provide([
                  RateLimiter.layerUnlimited,
                  OutlierDetection.layerAlways,
                  ResponseCache.layer(),
                  Layer.succeed(HttpTransport, network.http(node))
                ])
              )
            ),
            Info
          )
          return Streams.make(
            yield* Streams.makeShared(info, { addresses: [Redacted.make("ws://venue/ws")], events: { bounds } })
          )
        })
      ).pipe(
        Layer.provide(EventLogs.layerRedis(events, redis.access, bounds)),
        Layer.provide(Layer.succeed(SocketTransport, network.sockets(node)))
      )
      const start = Effect.gen(function*() {
        const own = yield* Scope.make()
        scope = own
        const services = yield* Layer.build(Layer.fresh(layer)).pipe(Scope.provide(own))
        shared = Context.get(services, Streams.Streams).shared
        log(name, "serves")
      })
      const end = (): void => {
        shared = undefined
        node.kill()
      }
      return {
        name,
        node,
        begin: () => node.start(start),
        shared: () => node.isAlive() ? shared : undefined,
        kill: end,
        stop: () => {
          const ending = scope
          shared = undefined
          if (ending !== undefined && node.isAlive()) node.start(Scope.close(ending, Exit.void)).addObserver(end)
        },
        restartAfter: (delay: number) => {
          const restart = (): void => node.isAlive() ? void after(1000, restart) : void node.start(start)
          after(delay, restart)
        }
      }
    })
    for (const replica of replicas) yield* Fiber.join(replica.begin())

    const beginFault = (fault: Fault): void => {
      const replica = replicas[fault.replica]
      log("fault", `${fault.kind} begins`)
      if (fault.kind !== "queriesFail") reached.add(fault.kind)
      const end = (run: () => void): void =>
        void after(fault.lasts, () => {
          log("fault", `${fault.kind} ends`)
          run()
        })
      switch (fault.kind) {
        case "killedInOutage":
          if (replica?.node.isAlive() !== true) return
          // until the lease has expired, and the next writer has given up its queries of missed events
          failing = 1
          after(outage, () => {
            failing = 0
          })
          replica.kill()
          return replica.restartAfter(outage)
        case "kill":
        case "stop":
          if (replica?.node.isAlive() !== true) return
          if (fault.kind === "kill") replica.kill()
          else replica.stop()
          return replica.restartAfter(fault.lasts)
        case "pause":
          return replica?.node.pause(fault.lasts)
        case "storeAway":
        case "storeRestored":
        case "storeEmptied":
          redis.fault.isAway = true
          if (fault.kind === "storeEmptied") events.clear()
          if (fault.kind === "storeRestored") events.restore(snapshot)
          return end(() => {
            redis.fault.isAway = false
          })
        case "storeSlow":
        case "storeLosesConfirmations":
        case "storeLosesOperations": {
          const member = storeFaults[fault.kind]
          redis.fault[member] = fault.kind === "storeSlow" ? 2000 : 0.7
          return end(() => {
            redis.fault[member] = 0
          })
        }
        case "venueCloses":
        case "venueSilent":
          network.breakSockets(1, fault.kind === "venueSilent")
          return
        case "queriesFail":
          failing = 0.8
          return end(() => {
            failing = 0
          })
        case "clockShifted": {
          const shift = fault.lasts % 2 === 0 ? 2 * 3_600_000 : -3_600_000
          replica?.node.shiftClock(shift)
          return end(() => replica?.node.shiftClock(-shift))
        }
      }
    }
    for (const fault of faults) after(fault.at, () => beginFault(fault))
    after(6000, () => {
      snapshot = events.snapshot()
    })

    /** Reads the events of an account at a replica until the connection ends, and resumes at any replica. */
    const subscribers = [
      { user: users[0], names: ["userFills"] },
      { user: users[0], names: ["orderUpdates"] },
      { user: users[0], names: ["userFills", "orderUpdates"] },
      { user: users[1], names: ["userFills"] }
    ].map(({ names, user }, at) => {
      const name = `reader-${at + 1}`
      const { connect, receive, subscriber } = makeReceiver(simulation, name, user, names.length > 1)
      const session = Effect.suspend(() => {
        const replica = replicas[Simulation.pickBelow(random, replicas.length)]
        const shared = replica?.shared()
        if (replica === undefined || shared === undefined) return Effect.void
        return Simulation.callback<void, never>((resume) => {
          let isOpen = true
          let last = 0
          const close = (): void => {
            if (!isOpen) return
            isOpen = false
            resume(Exit.void)
          }
          const send = (text: string): void => {
            last = Math.max(last, now() + 0.2 + random() * 5)
            after(last - now(), () => {
              if (isOpen) receive(text)
            })
          }
          const from = Subscription.parse(connect())
          if (from !== undefined) reached.add("resumed")
          const fiber = replica.node.start(
            Effect.gen(function*() {
              if (from !== undefined) yield* shared.events.catchUp(from)
              const joined = ResumableSubscriber.join(shared, name, {
                subscribed: () => send(`{"channel":"subscriptionResponse"}`),
                flush: () => {},
                deliver: ({ text }, position) =>
                  send(position === undefined ? text : Subscription.withPosition(text, position)),
                refused: () => void after(5, close),
                resumed: (resumption) => send(`{"channel":"resume","data":${Subscription.printResumption(resumption)}}`)
              }, { from })
              yield* Effect.addFinalizer(() => Effect.sync(() => joined.leave()))
              for (const name of names) {
                const read = Subscriptions.read({ type: name, user })
                if (Result.isSuccess(read)) joined.subscribe(shared.topicOf(read.success))
              }
              send(`{"channel":"pong"}`)
              return yield* Effect.never
            }).pipe(Effect.scoped)
          )
          replica.node.onKilled(() => after(1, close))
          fiber.addObserver(() => after(1, close))
          // a caller disconnects, too; after the faults it stays
          const stays = now() > active ? 1e9 : 1000 + random() * 12_000
          after(stays, () => {
            close()
            fiber.currentDispatcher.scheduleTask(() => fiber.interruptUnsafe(), 0)
          })
          return undefined
        })
      })
      makeNode(name).start(Effect.forever(Effect.andThen(
        session,
        Effect.suspend(() => Effect.sleep(now() > active ? 100 : 100 + random() ** 2 * 5000))
      )))
      return { subscriber, user, names }
    })

    while (now() < active) {
      yield* Effect.sleep(20 + random() * (random() < 0.2 ? 3000 : 300))
      venue.trade(users[random() < 0.8 ? 0 : 1])
    }
    yield* Effect.sleep(recovery)

    // after the faults, one replica owns the log, and remains the owner
    log("check", "the faults are over")
    const roles = (): string => replicas.map((replica) => replica.shared()?.events.status().role).join()
    const owner = roles()
    if (!["writer,reader", "reader,writer"].includes(owner)) violations.push(`the roles are ${owner}`)
    for (let second = 0; second < 15; second++) {
      venue.trade(users[second % 2] ?? users[0])
      yield* Effect.sleep(1000)
      if (roles() !== owner) {
        violations.push(`the roles change from ${owner} to ${roles()}`)
        break
      }
    }
    for (const { names, subscriber, user } of subscribers) {
      if (subscriber.gaps.length > 1) reached.add("gap")
      const { orderUpdates, userFills } = venue.ledger(user)
      for (const [name, ledger] of Object.entries({ userFills, orderUpdates })) {
        if (names.includes(name)) violations.push(...checkSubscriber(subscriber, ledger))
      }
      if (subscriber.heardAt < now() - 4000) {
        violations.push(`${subscriber.name} has received nothing since ${subscriber.heardAt.toFixed(0)}`)
      }
    }
    return { violations: [...new Set(violations)], reached } satisfies Findings
  })
})
