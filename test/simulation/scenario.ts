/**
 * The scenario of the simulation: two replicas of a gateway share stores and one venue, clients trade, read and
 * subscribe, and the faults of a plan occur. After the last fault the system has time to recover. Then its properties are
 * checked against the venue's own account.
 */
import * as Gateway from "@trigate/simulation/Gateway"
import * as HttpServing from "@trigate/simulation/HttpServing"
import * as Network from "@trigate/simulation/Network"
import type { Findings, Scenario } from "@trigate/simulation/Plan"
import * as Simulation from "@trigate/simulation/Simulation"
import * as StoreServer from "@trigate/simulation/StoreServer"
import * as Venue from "@trigate/simulation/Venue"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import { type Account, type Attempt, makeClient, makeSubscriber, startsAt } from "./bots.ts"
import { checkActions, checkEnds, checkOutcomes, checkSubscriber, checkWeight, contentOf } from "./properties.ts"
import { makeStores } from "./stores.ts"

/** A fault of a plan: what fails, from when, and for how many milliseconds. */
export interface Fault {
  readonly kind: FaultKind
  /** Milliseconds since the start. */
  readonly at: number
  readonly lasts: number
  /** The replica, if the fault concerns one. */
  readonly replica: number
  /** The probability with which requests are affected while the fault lasts. */
  readonly share: number
}

/** The kinds of faults; a seed switches a random subset of them on. */
export const kinds = [
  "kill",
  "stop",
  "redisAway",
  "redisEmptied",
  "postgresAway",
  "storesSlow",
  "storesLoseConfirmations",
  "storesLoseOperations",
  "venueLimited",
  "venueBroken",
  "venueSlow",
  "requestsRefused",
  "requestsLost",
  "requestsUnanswered",
  "responsesSilent",
  "responsesCut",
  "requestsLate",
  "socketsClosed",
  "socketsSilent",
  "clockShifted",
  "clientsLeave"
] as const
export type FaultKind = (typeof kinds)[number]

/** Milliseconds in which faults begin, and in which clients trade. */
const active = 40_000
/** Milliseconds after the faults in which the system recovers. */
const recovery = 80_000
/** The weight per minute of the replicas together. */
export const weightLimit = 1200

const httpFaults: { readonly [Kind in FaultKind]?: Network.HttpFault } = {
  requestsRefused: "refused",
  requestsLost: "lost",
  requestsUnanswered: "unanswered",
  responsesSilent: "silent",
  responsesCut: "cut",
  requestsLate: "late"
}

const storeFaults = {
  storesSlow: "slowness",
  storesLoseConfirmations: "lostConfirmations",
  storesLoseOperations: "lostOperations"
} as const

const names = ["gateway-1", "gateway-2"] as const

const plan = (random: Simulation.NextRandom): ReadonlyArray<Fault> => {
  const chosen = kinds.filter(() => random() < 0.3)
  const count = chosen.length === 0 ? 0 : 1 + Simulation.pickBelow(random, 6)
  return Array.from({ length: count }, (): Fault => ({
    kind: chosen[Simulation.pickBelow(random, chosen.length)] ?? "kill",
    at: Math.floor(1000 + random() * (active - 5000)),
    lasts: Math.floor(200 + random() ** 2 * 12_000),
    replica: Simulation.pickBelow(random, names.length),
    share: 0.2 + 0.8 * random()
  })).toSorted((one, other) => one.at - other.at)
}

/** A seed's load: how often clients send, and which of them read. */
const environment = {
  // two addresses of one venue
  TRIGATE_TRADING_API_URL: "http://venue,http://venue-b",
  TRIGATE_TRADING_API_WEIGHT: String(weightLimit)
}

const light = new Set([
  "l2Book",
  "allMids",
  "clearinghouseState",
  "orderStatus",
  "spotClearinghouseState",
  "exchangeStatus"
])

/** The weight of a request at the venue, by its documentation; without the items of long responses. */
const weightOf = (path: string, body: string): number => {
  if (path === "/exchange") return 1
  const type = /"type":"(?<type>\w+)"/u.exec(body)?.groups?.["type"] ?? ""
  return light.has(type) ? 2 : type === "userRole" ? 60 : 20
}

/** Makes the scenario for accounts whose keys are loaded. */
export const make = (accounts: ReadonlyArray<Account>): Scenario<Fault> => ({
  plan,
  describe: ({ at, kind, lasts, replica, share }) =>
    `${(at / 1000).toFixed(3)} s: ${kind} for ${(lasts / 1000).toFixed(3)} s, replica ${replica + 1}, share ${
      share.toFixed(2)
    }`,
  mustReach: [
    ...kinds,
    "ordersRead",
    "streamCompared",
    "outcome accepted",
    "outcome rejected",
    "outcome neverArrived",
    "outcome missing"
  ],
  options: (seed) => ({ startsAt, yields: seed % 2 === 0 ? 0 : 0.01 }),
  run: Effect.fnUntraced(function*(faults) {
    const simulation = yield* Simulation.Simulation
    const { after, log, node: makeNode, now, random } = simulation
    const reached = new Set<string>()
    const violations: Array<string> = []
    const departures: Array<{ readonly at: number; readonly weight: number }> = []
    /** The faults that last now. */
    const current = new Set<Fault>()
    const happens = (kind: FaultKind): boolean => {
      for (const fault of current) if (fault.kind === kind && random() < fault.share) return true
      return false
    }

    const network = yield* Network.make({
      fault: (from, to, { body, url }) => {
        if (!to.startsWith("venue") || from === "elsewhere") return undefined
        const choose = (): Network.HttpFault | undefined => {
          for (const fault of current) {
            const chosen = httpFaults[fault.kind]
            if (chosen === undefined || random() >= fault.share) continue
            reached.add(fault.kind)
            log(from, `its request to the venue is ${chosen}`)
            return chosen
          }
          return undefined
        }
        const chosen = choose()
        // the venue counts requests that arrive
        if (chosen !== "refused" && chosen !== "lost" && chosen !== "swallowed") {
          const sent = body === undefined ? "" : new TextDecoder().decode(body)
          departures.push({ at: now(), weight: weightOf(new URL(Redacted.value(url)).pathname, sent) })
        }
        return chosen
      }
    })
    const venue = yield* Venue.make({
      network,
      addresses: ["http://venue", "http://venue-b"],
      seed: "simulation",
      fault: () => {
        if (happens("venueLimited")) {
          reached.add("venueLimited")
          return { status: 429 }
        }
        if (happens("venueBroken")) {
          reached.add("venueBroken")
          return { status: 502 }
        }
        if (happens("venueSlow")) {
          reached.add("venueSlow")
          return { delay: random() * 8000 }
        }
        return undefined
      }
    })
    for (const { address } of accounts) {
      yield* venue.run(({ trading }) => Effect.orDie(trading.depositUsd(address, "100000")))
    }

    const redis = yield* StoreServer.make("redis")
    const postgres = yield* StoreServer.make("postgres")
    // an emptied Redis forgets the used nonces, so it has no action log in plans that empty it
    const inPostgres = random() < 0.5 || faults.some(({ kind }) => kind === "redisEmptied")
    /** Whether a replica ended or started while Redis was away, so that not all replicas know what was used. */
    let isForgotten = false
    const isRedisUncertain = (): boolean =>
      redis.fault.isAway || redis.fault.lostOperations > 0 || redis.fault.lostConfirmations > 0
    const shared = makeStores(redis, inPostgres ? postgres : undefined)
    log("program", `the action log is in ${inPostgres ? "Postgres" : "Redis"}`)
    const replicas = names.map((name) => {
      const node = makeNode(name)
      let scope: Scope.Closeable | undefined
      const start = Effect.gen(function*() {
        const own = yield* Scope.make()
        scope = own
        isForgotten ||= isRedisUncertain()
        log(name, "starts")
        yield* Scope.provide(
          Effect.orDie(Gateway.make({
            network,
            node,
            address: `http://${name}`,
            stores: shared.forReplica(),
            environment
          })),
          own
        )
        log(name, "serves")
      })
      return {
        name,
        node,
        begin: () => node.start(start),
        /** Starts the replica again after a delay, or when it has stopped. */
        restartAfter: (delay: number) => {
          const restart = (): void => node.isAlive() ? void after(1000, restart) : void node.start(start)
          after(delay, restart)
        },
        kill: () => node.kill(),
        /** Ends the replica as SIGTERM does, and then its process. */
        stop: () => {
          const ending = scope
          if (ending === undefined || !node.isAlive()) return
          const stopping = node.start(Scope.close(ending, Exit.void))
          stopping.addObserver(() => node.kill())
        }
      }
    })
    for (const replica of replicas) yield* Fiber.join(replica.begin())

    // the faults
    const beginFault = (fault: Fault): void => {
      const replica = replicas[fault.replica]
      log("fault", `${fault.kind} begins`)
      current.add(fault)
      const end = (run: () => void = () => {}): void =>
        void after(fault.lasts, () => {
          current.delete(fault)
          log("fault", `${fault.kind} ends`)
          run()
        })
      switch (fault.kind) {
        case "kill":
        case "stop":
          if (replica?.node.isAlive() === true) {
            reached.add(fault.kind)
            isForgotten ||= isRedisUncertain()
            if (fault.kind === "kill") replica.kill()
            else replica.stop()
            replica.restartAfter(fault.lasts)
          }
          return end()
        case "redisAway":
        case "postgresAway":
        case "redisEmptied": {
          const server = fault.kind === "postgresAway" ? postgres : redis
          reached.add(fault.kind)
          server.fault.isAway = true
          if (fault.kind === "redisEmptied") shared.emptyRedis()
          return end(() => {
            server.fault.isAway = false
          })
        }
        case "storesSlow":
        case "storesLoseConfirmations":
        case "storesLoseOperations": {
          reached.add(fault.kind)
          const member = storeFaults[fault.kind]
          const value = fault.kind === "storesSlow" ? fault.share * 2000 : fault.share
          for (const server of [redis, postgres]) server.fault[member] = value
          return end(() => {
            for (const server of [redis, postgres]) server.fault[member] = 0
          })
        }
        case "socketsClosed":
        case "socketsSilent":
          if (network.breakSockets(fault.share, fault.kind === "socketsSilent") > 0) reached.add(fault.kind)
          return end()
        case "clockShifted": {
          reached.add(fault.kind)
          const shift = fault.share * (fault.lasts % 2 === 0 ? 1500 : -1500)
          replica?.node.shiftClock(shift)
          return end(() => replica?.node.shiftClock(-shift))
        }
        default:
          return end()
      }
    }
    for (const fault of faults) after(fault.at, () => beginFault(fault))

    // the clients
    const addresses = names.map((name) => `http://${name}`)
    const attempts: Array<Attempt> = []
    const alive = (): ReadonlyArray<string> =>
      replicas.filter(({ node }) => node.isAlive()).map(({ name }) => `http://${name}`)
    const any = (): string => {
      const [known, all] = [alive(), addresses]
      const list = known.length === 0 ? all : known
      return list[Simulation.pickBelow(random, list.length)] ?? ""
    }
    const subscribers = accounts.map(({ address }, at) => {
      const node = makeNode(`reader-${at + 1}`)
      const made = makeSubscriber(simulation, network, node, address, addresses)
      node.start(made.run)
      return made.subscriber
    })
    /** Reads the open orders at the replica whose stream has shown one: the response must not be older. */
    const [watched] = accounts
    const watcher = makeNode("watcher")
    const watching = makeClient(network, watcher)
    const shown = new Set<string>()
    const compare = Effect.fnUntraced(function*(replica: string) {
      const expected = [...shown]
      const body = JSON.stringify({ type: "openOrders", user: watched?.address })
      const read = yield* watching.send(`${replica}/info`, "POST", body)
      if (Result.isFailure(read) || read.success.status !== 200) return
      reached.add("streamCompared")
      const orders = HttpServing.bodyText(read.success)
      const missing = expected.find((oid) => !orders.includes(`"oid":${oid}`))
      if (missing !== undefined) {
        violations.push(`${replica} served orders without ${missing}, which its stream had shown`)
        log(replica, `serves orders without ${missing}, which its stream had shown`)
      }
    })
    if (watched !== undefined) {
      watcher.start(
        makeSubscriber(simulation, network, watcher, watched.address, addresses, "orderUpdates", (text, replica) => {
          if (!text.startsWith(`{"channel":"orderUpdates"`)) return
          // an order that rests stays open
          for (const { groups } of text.matchAll(/"oid":(?<oid>\d+)[^}]*\},"status":"(?<status>\w+)"/gu)) {
            if (groups?.["status"] === "open") shown.add(groups["oid"] ?? "")
            else shown.delete(groups?.["oid"] ?? "")
          }
          if (shown.size > 0) watcher.start(compare(replica))
        }).run
      )
    }
    // another program places orders of the account without a gateway
    const direct = new Set<string>()
    const elsewhere = makeNode("elsewhere")
    const { send: sendDirect } = makeClient(network, elsewhere)
    if (watched !== undefined) {
      elsewhere.start(Effect.gen(function*() {
        for (let number = 5000; now() < active; number += 3) {
          yield* Effect.sleep(500 + random() * 3000)
          // an order that rests
          const { body } = watched.sign(number - number % 3 + 2)
          direct.add(body)
          yield* sendDirect("http://venue/exchange", "POST", body)
        }
      }))
    }
    /** Reads the orders after one was placed: a response from before the action must not be served. */
    const readBack = Effect.fnUntraced(function*(
      { send }: ReturnType<typeof makeClient>,
      { replica, text }: Attempt,
      user: string
    ) {
      const oid = /"resting":\{"oid":(?<oid>\d+)/u.exec(text)?.groups?.["oid"]
      if (oid === undefined) return
      // replicas drop the cached state of an account together, unless Redis is away: then queries go to the venue
      const read = yield* send(
        `${random() < 0.5 ? replica : any()}/info`,
        "POST",
        JSON.stringify({ type: "openOrders", user })
      )
      if (Result.isFailure(read) || read.success.status !== 200) return
      reached.add("ordersRead")
      const orders = HttpServing.bodyText(read.success)
      if (!orders.includes(`"oid":${oid}`)) {
        violations.push(`${replica} served orders without ${oid}, which it had placed`)
      }
    })
    const bots = accounts.map((account, at) => {
      const node = makeNode(`bot-${at + 1}`)
      const client = makeClient(network, node)
      const send = Effect.fnUntraced(function*(number: number, variant: number) {
        const signed = account.sign(number, variant)
        for (let tries = 0; tries < 4; tries++) {
          const leaves = happens("clientsLeave")
          if (leaves) reached.add("clientsLeave")
          const attempt = yield* client.attempt(any(), signed, attempts, now, leaves ? 1 + random() * 50 : undefined)
          log(node.name, `${attempt.known} ${number}/${variant}: ${attempt.text.slice(0, 160)}`)
          if (attempt.known === "answered" && random() < 0.3) yield* readBack(client, attempt, account.address)
          if (attempt.known === "answered" || attempt.text.includes("NonceAlreadyUsed")) return
          yield* Effect.sleep(500 + random() * 3000)
        }
      })
      return node.start(Effect.gen(function*() {
        for (let number = 0; now() < active; number++) {
          yield* Effect.sleep(500 + random() * 5000)
          const mistake = random()
          yield* Effect.all([
            send(number, 0),
            // the same content, or another one with the same nonce, at the same time
            ...(mistake < 0.15 ? [send(number, 0)] : mistake < 0.3 ? [send(number, 1)] : [])
          ], { concurrency: "unbounded" })
        }
      }))
    })
    const reader = makeNode("reader")
    const { send: query } = makeClient(network, reader)
    const reading = reader.start(Effect.gen(function*() {
      while (now() < active) {
        yield* Effect.sleep(random() * 2500)
        const user = accounts[Simulation.pickBelow(random, accounts.length)]?.address
        const type =
          ["userFills", "openOrders", "clearinghouseState", "historicalOrders"][Simulation.pickBelow(random, 4)]
        yield* query(`${any()}/info`, "POST", JSON.stringify({ type, user }))
      }
    }))

    yield* Effect.forEach([...bots, reading], Fiber.join, { concurrency: "unbounded" })
    yield* Effect.sleep(recovery)
    log("check", "the faults are over")

    // after the faults: every replica serves
    for (const [at, account] of accounts.entries()) {
      const client = makeClient(network, makeNode(`check-${at + 1}`))
      for (const replica of addresses) {
        const signed = account.sign(9000 + addresses.indexOf(replica))
        const attempt = yield* client.attempt(replica, signed, attempts, now)
        if (attempt.known !== "answered") violations.push(`not healthy: ${replica} ${attempt.text.slice(0, 200)}`)
      }
    }
    yield* Effect.sleep("10 seconds")

    const named = new Map(attempts.map(({ nonce, signer }) => [`${signer}:${nonce}`, { nonce: String(nonce), signer }]))
    const outcomes = makeClient(network, makeNode("check-outcomes"))
    const recorded = yield* Effect.forEach(
      named.values(),
      ({ nonce, signer }) =>
        Effect.map(outcomes.send(`${any()}/actions?signer=${signer}&nonce=${nonce}`, "GET", undefined), (found) => {
          const text = Result.isFailure(found) ? found.failure.detail : HttpServing.bodyText(found.success)
          const state = /"state":"(?<state>\w+)"/u.exec(text)?.groups?.["state"] ??
            (text.includes("ActionNotFound") ? "missing" : text.slice(0, 200))
          reached.add(`outcome ${state}`)
          return { nonce, signer, state }
        })
    )
    const processed = venue.arrivals.filter(({ body, path, status }) =>
      path === "/exchange" && status === 200 && !direct.has(body)
    )
    const ledgers = yield* Effect.forEach(
      accounts,
      ({ address }) =>
        Effect.map(
          venue.fills(address),
          (fills) => fills.map(({ oid, sz, tid, time }) => ({ id: `${oid}/${tid}/${sz}`, at: time - startsAt }))
        )
    )
    violations.push(
      ...checkActions(
        attempts,
        processed,
        (content) => attempts.find(({ body }) => contentOf(body) === content)?.signer ?? ""
      ),
      ...checkOutcomes(recorded, processed, attempts),
      ...checkEnds(attempts, 25_000),
      ...checkWeight(departures, isForgotten ? 1.5 * weightLimit : weightLimit),
      ...subscribers.flatMap((subscriber, at) => checkSubscriber(subscriber, ledgers[at] ?? []))
    )
    return { violations, reached } satisfies Findings
  })
})
