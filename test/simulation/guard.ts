/**
 * Two replicas behind one guard: bots of one account race over both, and the account's positions and orders at the venue
 * never exceed a limit, whichever replica is killed and whatever the store of the guards loses.
 */
import * as Policy from "@trigate/domain/actions/Policy"
import { CurrentCaller, local } from "@trigate/domain/Caller"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import { unwrapReason } from "@trigate/domain/errors/GatewayError"
import { serveVenue } from "@trigate/sandbox/Sandbox"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as Network from "@trigate/simulation/Network"
import type { Findings, Scenario } from "@trigate/simulation/Plan"
import * as Simulation from "@trigate/simulation/Simulation"
import * as StoreServer from "@trigate/simulation/StoreServer"
import * as GuardDocuments from "@trigate/simulation/unstable/stores/GuardDocuments"
import * as RedisActionLog from "@trigate/simulation/unstable/stores/RedisActionLog"
import * as Venue from "@trigate/simulation/Venue"
import * as JsonParts from "@trigate/testing/JsonParts"
import type { ActionLog } from "@trigate/trading/actionLog/ActionLog"
import { Exchange } from "@trigate/trading/Exchange"
import * as Trading from "@trigate/trading/Trading"
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
import { type Account, type Signed, startsAt } from "./bots.ts"

/** A fault: how requests to the venue or operations of the store fail, or when a replica ends. */
export type Fault =
  | { readonly kind: "request"; readonly number: number; readonly fault: Network.HttpFault }
  | { readonly kind: "store"; readonly at: number; readonly lasts: number; readonly losesConfirmations: boolean }
  | { readonly kind: "kill"; readonly replica: number; readonly step: number }

export const plan = (random: Simulation.NextRandom): ReadonlyArray<Fault> => {
  const faults: Array<Fault> = []
  while (random() < 0.8) {
    const kind = Simulation.pickBelow(random, 3)
    if (kind === 0) {
      const fault = Network.httpFaults[Simulation.pickBelow(random, Network.httpFaults.length)]
      if (fault !== undefined) faults.push({ kind: "request", number: Simulation.pickBelow(random, 60), fault })
    } else if (kind === 1) {
      faults.push({ kind: "store", at: random() * 15_000, lasts: random() * 3000, losesConfirmations: random() < 0.5 })
    } else {
      faults.push({
        kind: "kill",
        replica: Simulation.pickBelow(random, 2),
        step: 1 + Simulation.pickBelow(random, 400)
      })
    }
  }
  return faults
}

export const describe = (fault: Fault): string => {
  switch (fault.kind) {
    case "request":
      return `request ${fault.number} to the venue is ${fault.fault}`
    case "store":
      return `the store ${fault.losesConfirmations ? "loses confirmations" : "is away"} from ${
        fault.at.toFixed(0)
      } ms for ${fault.lasts.toFixed(0)} ms`
    case "kill":
      return `replica ${fault.replica} is killed before its step ${fault.step}, and restarted`
  }
}

/** The price of the coin that is traded. */
const price = 3000

const ask = Effect.fnUntraced(function*(state: SandboxState["Service"], query: object) {
  const { text } = yield* serveVenue("/info", Encoding.encode(JSON.stringify(query))).pipe(
    Effect.provideService(SandboxState, state),
    Effect.provideService(VenueProfile.Venue, VenueProfile.mainnet),
    Effect.provideService(Secp256k1.Secp256k1, Secp256k1.noble)
  )
  const found: unknown = JSON.parse(text)
  return found
})

/** Makes the network, in which the planned requests fail. */
export const makeNetwork = Effect.fnUntraced(function*(faults: ReadonlyArray<Fault>, reached: Set<string>) {
  const { log } = yield* Simulation.Simulation
  let requests = 0
  return yield* Network.make({
    fault: (from) => {
      const number = requests++
      const chosen = faults.find((fault) => fault.kind === "request" && fault.number === number)
      if (chosen?.kind !== "request") return undefined
      reached.add("request")
      log(from, `its request ${number} is ${chosen.fault}`)
      return chosen.fault
    }
  })
})

/** A replica of the trading services, which can be killed. `use` returns its services; `undefined` until it serves. */
interface Replica<A> {
  readonly node: Simulation.Node
  readonly start: () => Fiber.Fiber<void>
  readonly use: () => A | undefined
}

/** Starts two replicas over shared stores: the services of the venue, those of `more`, and what `select` takes. */
export const startReplicas = Effect.fnUntraced(function*<B, A>(
  { network, policies, store }: {
    readonly network: Network.Network
    readonly store: Effect.Success<ReturnType<typeof StoreServer.make>>
    readonly policies?: Policy.Policies
  },
  more: Layer.Layer<B, never, ActionLog | Exchange>,
  select: (services: Context.Context<B | Exchange>) => A
) {
  const { node: makeNode } = yield* Simulation.Simulation
  const actions = RedisActionLog.make()
  const documents = GuardDocuments.make()
  const replicas = ["gateway-1", "gateway-2"].map((name): Replica<A> => {
    const node = makeNode(name)
    let selected: A | undefined
    const start = () =>
      node.start(Effect.gen(function*() {
        selected = undefined
        const scope = yield* Scope.make()
        const services = yield* Layer.build(
          Layer.fresh(Layer.provideMerge(
            more,
            Trading.layerNoDeps({ network: "mainnet", addresses: { api: ["http://venue"] }, policies })
          )).pipe(
            Layer.provide(RedisActionLog.layer(actions, store.access, { lease: "25 seconds" })),
            Layer.provide(GuardDocuments.layer(documents, store.access)),
            Layer.provide(Pipeline.layerNoDeps({ owner: local, onceDeadline: "10 seconds" })),
            Layer.provide([
              RateLimiter.layerUnlimited,
              OutlierDetection.layerAlways,
              ResponseCache.layer(),
              Layer.succeed(HttpTransport, network.http(node))
            ])
          )
        ).pipe(Scope.provide(scope))
        selected = select(services)
      }))
    return { node, start, use: () => selected }
  })
  for (const replica of replicas) yield* Fiber.join(replica.start())
  return replicas
})

/** Plans the kills of the replicas and the faults of their store. */
export const disturb = Effect.fnUntraced(function*(
  faults: ReadonlyArray<Fault>,
  replicas: ReadonlyArray<Pick<Replica<unknown>, "node" | "start">>,
  store: Effect.Success<ReturnType<typeof StoreServer.make>>,
  reached: Set<string>
) {
  const { after, log } = yield* Simulation.Simulation
  for (const fault of faults) {
    if (fault.kind === "kill") {
      const replica = replicas[fault.replica]
      replica?.node.killAtStep(replica.node.steps() + fault.step)
      replica?.node.onKilled(() => {
        reached.add("kill")
        log(replica.node.name, "is killed")
        after(700, () => void replica.start())
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
})

/** What the venue says of an account: the notional of its open orders, and of its position if all orders fill. */
const measure = (user: string) =>
  Effect.fnUntraced(function*(state: SandboxState["Service"]) {
    const clearing = yield* ask(state, { type: "clearinghouseState", user })
    const orders = yield* ask(state, { type: "frontendOpenOrders", user })
    const position = price * Number(JsonParts.at(clearing, "assetPositions", 0, "position", "szi") ?? 0)
    const sums = { A: 0, B: 0 }
    for (const order of Array.isArray(orders) ? orders : []) {
      const side = JsonParts.at(order, "side") === "B" ? "B" : "A"
      sums[side] += Number(JsonParts.at(order, "sz")) * Math.max(Number(JsonParts.at(order, "limitPx")), price)
    }
    return {
      open: sums.A + sums.B,
      position: Math.max(Math.max(position, 0) + sums.B, Math.max(-position, 0) + sums.A)
    }
  })

/** Makes the scenario for an account whose bots race. */
export const make = ({ address, sign }: Account): Scenario<Fault> => ({
  plan,
  describe,
  mustReach: ["answered", "refused", "unknown", "kill", "request", "store"],
  options: (seed) => ({ startsAt: startsAt + 500, yields: seed % 3 === 0 ? 0.02 : 0 }),
  run: Effect.fnUntraced(function*(faults) {
    const { log, random } = yield* Simulation.Simulation
    const reached = new Set<string>()
    const violations: Array<string> = []
    const network = yield* makeNetwork(faults, reached)
    const venue = yield* Venue.make({ network })
    yield* venue.run(({ trading }) =>
      Effect.andThen(
        Effect.ignore(trading.depositUsd(address, "1000000")),
        trading.playPrices("ETH", [{ time: 0, price }])
      )
    )
    const limits = {
      openNotional: 500 + 100 * Simulation.pickBelow(random, 15),
      positionNotional: 700 + 100 * Simulation.pickBelow(random, 15)
    }
    const policies = yield* Effect.orDie(
      Policy.decode({ policies: [{ name: "desk", accounts: "*", coins: ["ETH"], ...limits }] })
    )
    log("guard", JSON.stringify(limits))
    const store = yield* StoreServer.make("store")
    const replicas = yield* startReplicas(
      { network, store, policies },
      Layer.empty,
      (services) => Context.get(services, Exchange)
    )
    yield* disturb(faults, replicas, store, reached)

    const attempt = Effect.fnUntraced(function*({ body }: Signed, at: number = Simulation.pickBelow(random, 2)) {
      const replica = replicas[at]
      const relay = replica?.use()?.relay
      if (replica?.node.isAlive() !== true || relay === undefined) return "away"
      const sent = yield* Simulation.callback<Result.Result<unknown, unknown>, never>((resume) => {
        const fiber = replica.node.start(Effect.provideService(
          Effect.result(relay({ body: new TextEncoder().encode(body), surface: "gateway" })),
          CurrentCaller,
          local
        ))
        fiber.addObserver(resume)
        return replica.node.onKilled(() => resume(Exit.succeed(Result.fail("killed"))))
      })
      const reason = Result.isFailure(sent) ? unwrapReason(sent.failure) : undefined
      const known = reason === undefined
        ? "answered"
        : Predicate.isTagged(reason, "PolicyViolation")
        ? "refused"
        : "unknown"
      reached.add(known)
      log(
        replica.node.name,
        `${known}: ${Predicate.hasProperty(reason, "message") ? String(reason.message) : ""}`
      )
      return known
    })

    const check = Effect.gen(function*() {
      const { open, position } = yield* venue.run(measure(address))
      if (open > limits.openNotional * (1 + 1e-9)) {
        violations.push(`open orders of ${open}, beyond ${limits.openNotional}`)
      }
      if (position > limits.positionNotional * (1 + 1e-9)) {
        violations.push(`a position of ${position}, beyond ${limits.positionNotional}`)
      }
      return { open, position }
    })
    const watch = yield* Effect.forkChild(Effect.forever(Effect.andThen(check, Effect.sleep(250))))
    const count = 40
    yield* Effect.forEach(
      Array.from({ length: count }, (_, number) => number),
      (number) =>
        Effect.sleep(random() * 20_000).pipe(
          Effect.andThen(Effect.suspend(() => attempt(sign(number, Simulation.pickBelow(random, 2)))))
        ),
      { concurrency: "unbounded", discard: true }
    )
    // faults end, outcomes become known, and reservations end
    store.fault.isAway = false
    store.fault.lostConfirmations = 0
    yield* Effect.sleep("20 seconds")
    yield* Fiber.interrupt(watch)
    yield* Effect.sleep("160 seconds")
    const { open, position } = yield* check
    const free = Math.min(limits.openNotional - open, limits.positionNotional - position)
    // resting buys of 0.1 coins; a killed replica's reservation ends a minute after another one has seen it
    if (free > price * 0.1) {
      let known = "refused"
      for (let again = 0; again < 25 && known === "refused"; again++) {
        if (again > 0) yield* Effect.sleep("3 seconds")
        known = yield* attempt(sign(count + 4 + 6 * again), 0)
      }
      if (known !== "answered") violations.push(`${known} although ${free} is free`)
    }
    return { violations, reached } satisfies Findings
  })
})
