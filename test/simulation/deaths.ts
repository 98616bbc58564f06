/**
 * Programs that die: each has left signed cancels at two replicas. Once its heartbeats have stopped, each of its actions
 * arrives at the venue, and none twice, whichever replica is killed and whatever the store loses.
 */
import { CurrentCaller, local } from "@trigate/domain/Caller"
import type { Findings, Scenario } from "@trigate/simulation/Plan"
import * as Simulation from "@trigate/simulation/Simulation"
import * as StoreServer from "@trigate/simulation/StoreServer"
import * as Venue from "@trigate/simulation/Venue"
import * as DeadMansSwitch from "@trigate/trading/guard/DeadMansSwitch"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import { type Account, startsAt } from "./bots.ts"
import { describe, disturb, type Fault, makeNetwork, plan, startReplicas } from "./guard.ts"

/** The programs of a run, and the actions that each leaves. */
const programs = 10
const perProgram = 3

/** Seconds without a heartbeat after which a switch fires. */
const after = 5

/** Makes the scenario for an account with whose key the actions are signed. */
export const make = ({ address, signCancel }: Account): Scenario<Fault> => ({
  plan,
  describe,
  mustReach: ["armed", "fired", "kill", "request", "store", "notArmed"],
  options: (seed) => ({ startsAt: startsAt + 500, yields: seed % 3 === 0 ? 0.02 : 0 }),
  run: Effect.fnUntraced(function*(faults) {
    const { log, now, random } = yield* Simulation.Simulation
    const reached = new Set<string>()
    const violations: Array<string> = []
    const network = yield* makeNetwork(faults, reached)
    const venue = yield* Venue.make({ network })
    yield* venue.run(({ trading }) => Effect.ignore(trading.depositUsd(address, "1000000")))
    const store = yield* StoreServer.make("store")
    const replicas = yield* startReplicas(
      { network, store },
      DeadMansSwitch.layer(),
      (services) => Context.get(services, DeadMansSwitch.DeadMansSwitch)
    )
    yield* disturb(faults, replicas, store, reached)

    /** Calls a replica. Returns `undefined` if it is not alive, is killed meanwhile, or fails. */
    const call = <A, E>(
      at: number,
      use: (switches: DeadMansSwitch.DeadMansSwitch["Service"]) => Effect.Effect<A, E>
    ) =>
      Effect.suspend(() => {
        const replica = replicas[at]
        const switches = replica?.use()
        if (replica?.node.isAlive() !== true || switches === undefined) return Effect.undefined
        return Simulation.callback<A | undefined, never>((resume) => {
          const fiber: Fiber.Fiber<Result.Result<A, E>> = replica.node.start(
            Effect.provideService(Effect.result(use(switches)), CurrentCaller, local)
          )
          fiber.addObserver((exit) =>
            resume(Exit.succeed(
              Exit.isSuccess(exit) && Result.isSuccess(exit.value) ? exit.value.success : undefined
            ))
          )
          return replica.node.onKilled(() => resume(Exit.succeed(undefined)))
        })
      })

    const arrivals = (body: string): number => venue.arrivals.filter((arrival) => arrival.body === body).length

    /** Arms a switch, notes heartbeats for a while, and dies. Returns the bodies if the switch was armed at last. */
    const live = Effect.fnUntraced(function*(program: number) {
      yield* Effect.sleep(random() * 5000)
      const name = `bot-${program}`
      const bodies = Array.from({ length: perProgram }, (_, index) => signCancel(program * perProgram + index))
      const actions = bodies.map(({ body: text, nonce }) => ({ text, nonce, signer: address, actionType: "cancel" }))
      const at = () => Simulation.pickBelow(random, 2)
      let lastBeat = Number.NEGATIVE_INFINITY
      let isArmed = false
      const arm = Effect.fnUntraced(function*() {
        const armed = yield* call(at(), (switches) => switches.arm(name, { after, actions }))
        isArmed = armed?.state === "armed"
        if (isArmed) lastBeat = now()
      })
      const dies = now() + 3000 + random() * 12_000
      yield* arm()
      while (now() < dies) {
        yield* Effect.sleep(1000 + random() * 1000)
        const beaten = isArmed ? yield* call(at(), (switches) => switches.beat(name)) : undefined
        if (beaten?.state === "armed") lastBeat = now()
        else if (beaten === undefined) {
          reached.add("notArmed")
          // a program that does not know whether its switch is armed arms it again
          if (!bodies.some(({ body }) => arrivals(body) > 0)) yield* arm()
        } else break
      }
      if (isArmed) reached.add("armed")
      log(name, isArmed ? "dies" : "gives up")
      return { name, bodies, isArmed, lastBeat }
    })
    const lives = yield* Effect.forEach(Array.from({ length: programs }, (_, index) => index), live, {
      concurrency: "unbounded"
    })
    store.fault.isAway = false
    store.fault.lostConfirmations = 0
    // the venue answers within ten seconds, and a replica continues for a killed one after a minute
    yield* Effect.sleep("150 seconds")
    for (const { bodies, isArmed, lastBeat, name } of lives) {
      const counts = bodies.map(({ body }) => arrivals(body))
      if (counts.some((count) => count > 1)) violations.push(`${name}: an action arrived twice: ${counts.join(" ")}`)
      const first = venue.arrivals.find(({ body }) => body === bodies[0]?.body)
      if (first !== undefined && isArmed && first.at < lastBeat + after * 1000 - 1500) {
        violations.push(`${name}: fired ${first.at - lastBeat} ms after its last heartbeat`)
      }
      if (!isArmed) continue
      const state = yield* call(0, (switches) => switches.find(name))
      const outcomes = state?.actions.map(({ outcome = "none" }) => outcome) ?? []
      if (state?.state !== "fired") violations.push(`${name}: is ${state?.state} long after its death`)
      else reached.add("fired")
      for (const [index, outcome] of outcomes.entries()) {
        if (outcome !== "unknown" && counts[index] !== 1) {
          violations.push(`${name}: action ${index} is ${outcome}, and arrived ${counts[index]} times`)
        }
      }
      // a request of unknown outcome can arrive late
      const order = venue.arrivals.map(({ body }) => bodies.findIndex((each) => each.body === body)).filter((at) =>
        at >= 0 && outcomes[at] !== "unknown"
      )
      if (order.some((at, index) => at < (order[index - 1] ?? 0))) {
        violations.push(`${name}: sent in the order ${order.join()}`)
      }
    }
    return { violations, reached } satisfies Findings
  })
})
