/**
 * The path of a signed action alone: two replicas with a shared action log send orders to a venue that only records
 * them. A run takes a few milliseconds, so that a replica can be killed before each of its steps in turn.
 */
import { CurrentCaller, local } from "@trigate/domain/Caller"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import { unwrapReason } from "@trigate/domain/errors/GatewayError"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as Network from "@trigate/simulation/Network"
import type { Findings, Scenario } from "@trigate/simulation/Plan"
import * as Simulation from "@trigate/simulation/Simulation"
import * as StoreServer from "@trigate/simulation/StoreServer"
import * as PostgresActionLog from "@trigate/simulation/unstable/stores/PostgresActionLog"
import * as RedisActionLog from "@trigate/simulation/unstable/stores/RedisActionLog"
import * as Admission from "@trigate/trading/admission/Admission"
import { Exchange } from "@trigate/trading/Exchange"
import * as TradingUpstream from "@trigate/trading/TradingUpstream"
import * as OutlierDetection from "@trigate/upstream/attempts/OutlierDetection"
import * as ResponseCache from "@trigate/upstream/cache/ResponseCache"
import * as RateLimiter from "@trigate/upstream/limits/RateLimiter"
import * as Pipeline from "@trigate/upstream/Pipeline"
import { HttpTransport } from "@trigate/upstream/transport/HttpTransport"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import { type Account, type Attempt, type Signed, startsAt } from "./bots.ts"
import { checkActions, checkEnds, contentOf, nonceOf, type Processed } from "./properties.ts"

/**
 * A fault: how requests to the venue or operations of the store fail, the step before which the first replica ends, a
 * client that leaves before the response, a wall clock that jumps, or a store that is restored from an older state.
 */
export type Fault =
  | { readonly kind: "request"; readonly number: number; readonly fault: Network.HttpFault }
  | { readonly kind: "store"; readonly at: number; readonly lasts: number; readonly losesConfirmations: boolean }
  | { readonly kind: "kill"; readonly step: number }
  | { readonly kind: "leave"; readonly attempt: number; readonly after: number }
  | { readonly kind: "clock"; readonly at: number; readonly hours: number }
  | { readonly kind: "restore"; readonly from: number; readonly at: number }

const plan = (random: Simulation.NextRandom): ReadonlyArray<Fault> => {
  const faults: Array<Fault> = []
  while (random() < 0.7) {
    const kind = Simulation.pickBelow(random, 6)
    if (kind === 0) {
      const fault = Network.httpFaults[Simulation.pickBelow(random, Network.httpFaults.length)]
      if (fault !== undefined) faults.push({ kind: "request", number: Simulation.pickBelow(random, 12), fault })
    } else if (kind === 1) {
      faults.push({
        kind: "store",
        at: random() * 800,
        lasts: random() * 1000,
        losesConfirmations: random() < 0.5
      })
    } else if (kind === 2) {
      faults.push({ kind: "kill", step: 1 + Simulation.pickBelow(random, 40) })
    } else if (kind === 3) {
      faults.push({ kind: "leave", attempt: Simulation.pickBelow(random, 8), after: 1 + random() * 300 })
    } else if (kind === 4) faults.push({ kind: "clock", at: random() * 800, hours: random() < 0.5 ? -1 : 2 })
    else {
      const from = random() * 500
      faults.push({ kind: "restore", from, at: from + 100 + random() * 800 })
    }
  }
  return faults
}

const describe = (fault: Fault): string => {
  switch (fault.kind) {
    case "request":
      return `request ${fault.number} to the venue is ${fault.fault}`
    case "store":
      return `the store ${fault.losesConfirmations ? "loses confirmations" : "is away"} from ${
        fault.at.toFixed(0)
      } ms for ${fault.lasts.toFixed(0)} ms`
    case "kill":
      return `the first replica is killed before its step ${fault.step}, and restarted`
    case "leave":
      return `the client of attempt ${fault.attempt} leaves after ${fault.after.toFixed(0)} ms`
    case "clock":
      return `the clock of the first replica jumps by ${fault.hours} h at ${fault.at.toFixed(0)} ms`
    case "restore":
      return `the store is restored at ${fault.at.toFixed(0)} ms as it was at ${fault.from.toFixed(0)} ms`
  }
}

const addresses = { api: ["http://venue", "http://venue-b"] }

/** The orders that each run sends: an order of each account, some of them twice at once or with another content. */
const orders = (accounts: ReadonlyArray<Account>): ReadonlyArray<Signed> =>
  accounts.flatMap((account) => [account.sign(0), account.sign(0), account.sign(1), account.sign(1, 1)])

/** Makes the scenario. `steps` receives the number of steps that the first replica ran. */
export const make = (accounts: ReadonlyArray<Account>, steps: (count: number) => void = () => {}): Scenario<Fault> => ({
  plan,
  describe,
  mustReach: ["answered", "unknown", "refused", "kill", "request", "store", "leave", "clock", "restore"],
  options: (seed) => ({ startsAt: startsAt + 500, yields: seed % 3 === 0 ? 0.02 : 0 }),
  run: Effect.fnUntraced(function*(faults) {
    const { after, log, node: makeNode, now, random } = yield* Simulation.Simulation
    const reached = new Set<string>()
    const processed: Array<Processed> = []
    const violations: Array<string> = []
    let requests = 0
    /** The number of requests for each content that arrived and were answered, and the contents of the others. */
    const undisturbed = new Map<string, number>()
    const disturbed = new Set<string>()
    /** The content that each process sent with a nonce. */
    const sentBy = new Map<string, string>()
    const lives = new Map<string, number>()
    /** Checks that a process sends a nonce with one content, whatever the store has forgotten. */
    const depart = (from: string, sent: string): void => {
      const nonce = `${from} ${lives.get(from)} ${nonceOf(sent)}`
      const earlier = sentBy.get(nonce) ?? contentOf(sent)
      if (earlier !== contentOf(sent)) violations.push(`${from} sent nonce ${nonceOf(sent)} with two contents`)
      sentBy.set(nonce, earlier)
    }
    const network = yield* Network.make({
      fault: (from, _to, { body }) => {
        const number = requests++
        const sent = new TextDecoder().decode(body)
        const chosen = faults.find((fault) => fault.kind === "request" && fault.number === number)
        // a refused connection sends nothing, so the nonce stays unused
        if (chosen?.kind !== "request" || chosen.fault !== "refused") depart(from, sent)
        if (chosen?.kind !== "request") {
          undisturbed.set(contentOf(sent), (undisturbed.get(contentOf(sent)) ?? 0) + 1)
          return undefined
        }
        disturbed.add(contentOf(sent))
        reached.add("request")
        log(from, `its request ${number} is ${chosen.fault}`)
        return chosen.fault
      }
    })
    const venueNode = makeNode("venue")
    const used = new Set<string>()
    const attempts: Array<Attempt> = []
    const inFlight: Array<string> = []
    const isRestored = faults.some(({ kind }) => kind === "restore")
    const isUncertain = faults.some(({ kind }) => kind === "restore" || kind === "clock")
    /** Checks that a content does not arrive while another attempt to send it is in flight. */
    const arrive = (sent: string): void => {
      const own = attempts.filter(({ body }) => contentOf(body) === contentOf(sent))
      const isInProgress = ({ until }: Attempt) => until === undefined
      inFlight.push(contentOf(sent))
      // the venue may still process a request whose connection was lost
      const lost = own.filter(({ known }) => known === "unknown").length
      const together = inFlight.filter((content) => content === contentOf(sent)).length - lost
      // a replica does not know what the other one sends if the store has forgotten it, or if the clocks are apart by
      // more than the lease
      if (!isUncertain && together > 1 && own.filter(isInProgress).length >= together) {
        violations.push(`sent again while it is in flight: ${sent.slice(0, 60)}`)
      }
    }
    const serve: Network.HttpHandler = Effect.fnUntraced(function*({ body }) {
      const sent = new TextDecoder().decode(body)
      arrive(sent)
      yield* Effect.sleep(random() * 400)
      inFlight.splice(inFlight.indexOf(contentOf(sent)), 1)
      const isNew = !used.has(nonceOf(sent))
      used.add(nonceOf(sent))
      const answer = isNew
        ? `{"status":"ok","response":{"type":"order","data":{"statuses":[{"resting":{"oid":${used.size}}}]}}}`
        : `{"status":"err","response":"Invalid nonce: duplicate nonce 1"}`
      processed.push({ body: sent, at: now(), response: answer })
      log("venue", sent.slice(0, 120))
      return { status: 200, headers: { "content-type": "application/json" }, body: new TextEncoder().encode(answer) }
    })
    venueNode.start(Effect.never)
    for (const address of addresses.api) network.serve(address, { node: venueNode, http: serve })

    const store = yield* StoreServer.make("store")
    // an operator who restores a database is to resend nothing; of Redis, each process checks its own memory first
    const inPostgres = random() < 0.5 && !isRestored
    const postgres = PostgresActionLog.make()
    const redis = RedisActionLog.make()
    const actionLog = () =>
      inPostgres
        ? PostgresActionLog.layer(postgres, store.access, { lease: "25 seconds" })
        : RedisActionLog.layer(redis, store.access, { lease: "25 seconds" })
    const replicas = ["gateway-1", "gateway-2"].map((name) => {
      const node = makeNode(name)
      let exchange: typeof Exchange.Service | undefined
      const start = () =>
        node.start(Effect.gen(function*() {
          exchange = undefined
          lives.set(name, (lives.get(name) ?? 0) + 1)
          const scope = yield* Scope.make()
          const services = yield* Layer.build(
            Layer.fresh(TradingUpstream.layerExchange(addresses)).pipe(
              Layer.provide(Layer.fresh(Admission.layer())),
              Layer.provide(VenueProfile.layer("mainnet")),
              Layer.provide(actionLog()),
              Layer.provide(Pipeline.layerNoDeps({ owner: local, onceDeadline: "10 seconds" })),
              Layer.provide([
                RateLimiter.layerUnlimited,
                OutlierDetection.layerAlways,
                ResponseCache.layer(),
                Layer.succeed(HttpTransport, network.http(node))
              ])
            )
          ).pipe(Scope.provide(scope))
          exchange = Context.get(services, Exchange)
        }))
      return { node, start, exchange: () => exchange }
    })
    for (const replica of replicas) yield* Fiber.join(replica.start())
    const [first] = replicas
    for (const fault of faults) {
      if (fault.kind === "kill") {
        first?.node.killAtStep(first.node.steps() + fault.step)
        first?.node.onKilled(() => {
          reached.add("kill")
          log("gateway-1", "is killed")
          after(700, () => void first.start())
        })
      } else if (fault.kind === "clock") {
        after(fault.at, () => {
          reached.add("clock")
          first?.node.shiftClock(fault.hours * 3_600_000)
        })
      } else if (fault.kind === "restore") {
        after(fault.from, () => {
          const snapshot = redis.snapshot()
          after(fault.at - fault.from, () => {
            reached.add("restore")
            redis.restore(snapshot)
          })
        })
      } else if (fault.kind === "store") {
        after(fault.at, () => {
          reached.add("store")
          if (fault.losesConfirmations) store.fault.lostConfirmations = 1
          else store.fault.isAway = true
        })
        after(fault.at + fault.lasts, () => {
          store.fault.lostConfirmations = 0
          store.fault.isAway = false
        })
      }
    }

    const attempt = Effect.fnUntraced(function*({ body, nonce, signer }: Signed) {
      yield* Effect.sleep(random() * 600)
      const replica = replicas[Simulation.pickBelow(random, 2)]
      const relay = replica?.exchange()?.relay
      if (replica?.node.isAlive() !== true || relay === undefined) return
      const made: Attempt = {
        signer,
        nonce,
        body,
        replica: replica.node.name,
        from: now(),
        until: undefined,
        known: undefined,
        hasLeft: false,
        text: ""
      }
      const leaving = faults.find((fault) => fault.kind === "leave" && fault.attempt === attempts.length)
      attempts.push(made)
      const sent = yield* Simulation.callback<Result.Result<unknown, unknown>, never>((resume) => {
        const fiber = replica.node.start(Effect.provideService(
          Effect.result(relay({ body: new TextEncoder().encode(body), surface: "gateway" })),
          CurrentCaller,
          local
        ))
        fiber.addObserver((exit) => resume(made.hasLeft ? Exit.succeed(Result.fail("left")) : exit))
        if (leaving?.kind === "leave") {
          after(leaving.after, () => {
            if (made.until !== undefined) return
            reached.add("leave")
            made.hasLeft = true
            fiber.currentDispatcher.scheduleTask(() => fiber.interruptUnsafe(), 0)
          })
        }
        // the connection breaks with the replica
        const cancel = replica.node.onKilled(() => resume(Exit.succeed(Result.fail("killed"))))
        return cancel
      })
      made.until = now()
      const reason = Result.isFailure(sent) ? unwrapReason(sent.failure) : undefined
      made.known = reason === undefined
        ? "answered"
        : reason === "killed" || reason === "left" || Predicate.isTagged(reason, "OutcomeUnknown")
        ? "unknown"
        : "refused"
      reached.add(made.known)
      log(replica.node.name, `${made.known}: ${Predicate.hasProperty(reason, "_tag") ? String(reason._tag) : ""}`)
    })
    // each action is attempted, and attempted again unless it was answered
    yield* Effect.forEach(orders(accounts), (signed) => Effect.andThen(attempt(signed), attempt(signed)), {
      concurrency: "unbounded",
      discard: true
    })
    yield* Effect.sleep("60 seconds")
    // the venue's response is recorded, also if the client has left
    const find = replicas[1]?.exchange()?.outcome
    if (find !== undefined && faults.every(({ kind }) => kind === "request" || kind === "leave")) {
      for (const { body, nonce, signer } of orders(accounts)) {
        const count = undisturbed.get(contentOf(body)) ?? 0
        if (count === 0 || disturbed.has(contentOf(body))) continue
        if (count > 1) violations.push(`sent ${count} times, although the venue had answered: ${body.slice(0, 60)}`)
        const found = yield* Effect.result(
          Effect.provideService(find({ signer: Encoding.lowerCase(signer), nonce }), CurrentCaller, local)
        )
        const state = Result.isSuccess(found) ? found.success.state : found.failure._tag
        if (state !== "accepted") violations.push(`answered by the venue, and ${state}: ${body.slice(0, 60)}`)
      }
    }
    yield* Effect.forEach(orders(accounts), attempt, { discard: true })
    steps(first?.node.steps() ?? 0)

    violations.push(
      ...checkActions(
        attempts,
        processed,
        (content) => attempts.find(({ body }) => contentOf(body) === content)?.signer ?? ""
        // a store that has forgotten a nonce lets it arrive again, and the venue refuses it
      ).filter((text) => !isRestored || !text.startsWith("nonce ")),
      ...checkEnds(attempts, 15_000)
    )
    return { violations, reached } satisfies Findings
  })
})
