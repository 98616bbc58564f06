/** The kernel: seeds, nodes, clocks, kills at every step, and plans of faults. */
import { assert, describe, it } from "@effect/vitest"
import * as Plan from "@trigate/simulation/Plan"
import * as Simulation from "@trigate/simulation/Simulation"
import * as StoreServer from "@trigate/simulation/StoreServer"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Random from "effect/Random"

const sim = Simulation.Simulation

const value = <A, E>({ exit }: Simulation.Report<A, E>): A => {
  assert(Exit.isSuccess(exit), String(exit))
  return exit.value
}

/** Two nodes that log random numbers at random times. */
const chatter = Effect.gen(function*() {
  const { log, node } = yield* sim
  const fibers = ["one", "two"].map((name) =>
    node(name).start(Effect.gen(function*() {
      for (let count = 0; count < 5; count++) {
        yield* Effect.sleep(yield* Random.nextIntBetween(1, 100))
        yield* Effect.yieldNow
        log(name, `says ${yield* Random.nextIntBetween(0, 1000)}`)
      }
    }))
  )
  yield* Effect.forEach(fibers, Fiber.join, { discard: true })
})

describe("a seed", () => {
  it("determines the whole run", () => {
    const digests = new Set<string>()
    for (let seed = 0; seed < 20; seed++) {
      const [one, other] = [0, 1].map(() => Simulation.run(chatter, { seed, yields: 0.2 }))
      assert.lengthOf(one?.timeline ?? [], 10)
      assert.deepStrictEqual(one, other)
      digests.add(one?.digest ?? "")
    }
    assert.strictEqual(digests.size, 20)
  })

  it("determines the order of fibers that are ready at the same time", () => {
    const program = Effect.gen(function*() {
      const { node } = yield* sim
      const order: Array<string> = []
      const fibers = ["a", "b", "c"].map((name) =>
        node(name).start(Effect.andThen(Effect.yieldNow, Effect.sync(() => order.push(name))))
      )
      yield* Effect.forEach(fibers, Fiber.join, { discard: true })
      return order.join("")
    })
    const orders = new Set(Array.from({ length: 100 }, (_, seed) => value(Simulation.run(program, { seed }))))
    assert.deepStrictEqual([...orders].toSorted(), ["abc", "acb", "bac", "bca", "cab", "cba"])
  })

  it("makes a generator whose numbers are the same on every machine", () => {
    const random = Simulation.makeRandom(7)
    assert.deepStrictEqual([random(), random()], [0.011704753153026104, 0.06195825757458806])
    const picked = Array.from({ length: 8 }, () => Simulation.pickBelow(random, 3))
    assert.deepStrictEqual(picked, [2, 2, 1, 1, 1, 0, 1, 2])
  })
})

describe("time", () => {
  it("advances to the next timer, in the order of the timers", () => {
    const program = Effect.gen(function*() {
      const { after, log, now } = yield* sim
      for (const [at, delay] of [50, 10, 30, 10, 20, 40, 10].entries()) after(delay, () => log(`timer-${at}`, ""))
      const cancel = after(15, () => log("timer", "canceled"))
      cancel()
      yield* Effect.sleep(25)
      log("program", `at ${now()}`)
      yield* Effect.sleep("1 day")
      return yield* Clock.currentTimeMillis
    })
    const report = Simulation.run(program, { startsAt: 1000 })
    assert.deepStrictEqual(report.timeline.map((line) => line.trim().replaceAll(/ +/gu, " ")), [
      "10.000 timer-1",
      "10.000 timer-3",
      "10.000 timer-6",
      "20.000 timer-4",
      "25.000 program at 25",
      "30.000 timer-2",
      "40.000 timer-5",
      "50.000 timer-0"
    ])
    assert.strictEqual(report.elapsed, 86_400_025)
    assert.strictEqual(value(report), 86_401_025)
  })

  it("of the wall can be shifted for a node, without its timers and its monotonic clock", () => {
    const read = Effect.zip(Clock.currentTimeMillis, Clock.monotonicTimeNanos)
    const program = Effect.gen(function*() {
      const { node, now } = yield* sim
      const [shifted, other] = [node("shifted"), node("other")]
      shifted.shiftClock(5000)
      const first = yield* Fiber.join(shifted.start(read))
      shifted.shiftClock(-6000)
      const second = yield* Fiber.join(shifted.start(Effect.andThen(Effect.sleep(100), read)))
      return { first, second, other: yield* Fiber.join(other.start(read)), now: now() }
    })
    assert.deepStrictEqual(value(Simulation.run(program, { startsAt: 1_000_000 })), {
      first: [1_005_000, 0n],
      second: [999_100, 100_000_000n],
      other: [1_000_100, 100_000_000n],
      now: 100
    })
  })

  it("does not pass when nothing is left to run, and the program ends as stuck", () => {
    const { elapsed, exit, steps } = Simulation.run(Effect.andThen(Effect.sleep(5), Effect.never))
    assert.deepStrictEqual(
      exit,
      Exit.fail(
        new Simulation.Stuck({
          detail: "Nothing is left to run, but the program waits, such as for a promise that was not awaited before"
        })
      )
    )
    assert.deepStrictEqual([elapsed, steps], [5, 1])
  })

  it("ends after the maximum number of steps", () => {
    const { exit, steps } = Simulation.run(Effect.forever(Effect.sleep(1)), { maxSteps: 100 })
    assert.deepStrictEqual(
      exit,
      Exit.fail(new Simulation.Stuck({ detail: "The program has not ended after 100 steps" }))
    )
    assert.strictEqual(steps, 100)
  })
})

describe("a killed node", () => {
  it("runs no finalizer and no further step, and a restart has no memory of it", () => {
    const done: Array<string> = []
    const program = Effect.gen(function*() {
      const { after, node } = yield* sim
      const worker = node("worker")
      const work = Effect.gen(function*() {
        done.push("begins")
        yield* Effect.sleep(100)
        done.push("works")
        yield* Effect.forkChild(Effect.andThen(Effect.sleep(50), Effect.sync(() => done.push("child"))))
        yield* Effect.sleep(100)
        done.push("ends")
      }).pipe(Effect.ensuring(Effect.sync(() => done.push("cleans up"))))
      worker.onKilled(() => done.push("not yet started"))
      worker.start(work)
      worker.onKilled(() => done.push("killed"))
      const cancel = worker.onKilled(() => done.push("canceled"))
      cancel()
      after(120, worker.kill)
      yield* Effect.sleep(1000)
      assert.isFalse(worker.isAlive())
      worker.kill()
      assert.deepStrictEqual(done, ["begins", "works", "killed"])
      yield* Fiber.join(worker.start(work))
      assert.isTrue(worker.isAlive())
      assert.deepStrictEqual(done.slice(3), ["begins", "works", "child", "ends", "cleans up"])
    })
    value(Simulation.run(program))
  })

  it("ends before a given step of its fibers", () => {
    const program = (step: number) =>
      Effect.gen(function*() {
        const { node } = yield* sim
        const worker = node("worker")
        let done = 0
        const fiber = worker.start(Effect.gen(function*() {
          for (; done < 4; done++) yield* Effect.sleep(10)
        }))
        worker.killAtStep(step)
        yield* Effect.timeoutOption(Fiber.join(fiber), 1000)
        return [done, worker.steps(), worker.isAlive()]
      })
    // the end of each sleep is a step
    const ends = [1, 2, 3, 4, 100].map((step) => value(Simulation.run(program(step))))
    assert.deepStrictEqual(ends, [[0, 1, false], [1, 2, false], [2, 3, false], [3, 4, false], [4, 4, true]])
  })
})

/** The claims in a store, and the messages that two senders have sent. */
interface Sent {
  readonly claims: Map<string, "claimed" | "sent">
  count: number
}

/**
 * Two nodes send a message once, and the first is killed before a step and started again. A claim reads the store and
 * then writes it, or does both in one operation.
 */
const sendOnce = (isAtomic: boolean, step: number) =>
  Effect.gen(function*() {
    const { node } = yield* sim
    const { access } = yield* StoreServer.make("store")
    const sent: Sent = { claims: new Map(), count: 0 }
    const claim = isAtomic
      ? access(() => sent.claims.has("message") ? false : sent.claims.set("message", "claimed").size > 0)
      : Effect.flatMap(access(() => sent.claims.has("message")), (isClaimed) =>
        isClaimed ? Effect.succeed(false) : Effect.as(
          access(() =>
            sent.claims.set("message", "claimed")
          ),
          true
        ))
    const send = Effect.orDie(Effect.flatMap(claim, (isOwn) =>
      isOwn
        ? Effect.andThen(
          Effect.sync(() => sent.count++),
          access(() => sent.claims.set("message", "sent"))
        )
        : Effect.void))
    const [first, second] = [node("first"), node("second")]
    first.start(send)
    first.killAtStep(step)
    second.start(send)
    yield* Effect.sleep(10)
    const steps = first.steps()
    first.kill()
    first.start(send)
    yield* Effect.sleep("1 minute")
    return { steps, count: sent.count }
  })

describe("a claim of two nodes, killed before each step", () => {
  const seeds = Array.from({ length: 50 }, (_, seed) => seed)
  const most = (isAtomic: boolean): number => {
    let found = 0
    for (const seed of seeds) {
      const { steps } = value(Simulation.run(sendOnce(isAtomic, Infinity), { seed }))
      for (let step = 1; step <= steps; step++) {
        found = Math.max(found, value(Simulation.run(sendOnce(isAtomic, step), { seed })).count)
      }
    }
    return found
  }

  it("sends twice if it reads and then writes", () => {
    assert.strictEqual(most(false), 2)
  })

  it("sends at most once with compare-and-set", () => {
    assert.strictEqual(most(true), 1)
  })
})

describe("a plan of faults", () => {
  const scenario: Plan.Scenario<number> = {
    plan: (random) => Array.from({ length: 20 }, () => Simulation.pickBelow(random, 10)),
    run: (plan) =>
      plan.includes(9)
        ? Effect.die("nine")
        : Effect.succeed({
          violations: plan.includes(3) && plan.includes(7) ? ["three and seven"] : [],
          reached: new Set(plan.map(String))
        }),
    describe: (fault) => `fault ${fault}`,
    mustReach: ["3", "10"]
  }

  it("is the same for equal seeds", () => {
    assert.deepStrictEqual(Plan.drawPlan(scenario, 1), Plan.drawPlan(scenario, 1))
    assert.notDeepEqual(Plan.drawPlan(scenario, 1), Plan.drawPlan(scenario, 2))
  })

  it("is reduced to the necessary faults", () => {
    const plan = [1, 2, 3, 4, 5, 3, 6, 7, 8, 7, 3]
    const failed = Plan.run(scenario, 1, plan)
    assert.deepStrictEqual(failed.violations, ["three and seven"])
    const reduced = Plan.shrink(scenario, failed)
    assert.deepStrictEqual(new Set(reduced.plan), new Set([3, 7]))
    assert.lengthOf(reduced.plan, 2)
    assert.strictEqual(
      Plan.format(scenario, reduced),
      [
        `seed 1, digest ${reduced.digest}, 0 steps, 0.0 s simulated`,
        "faults:",
        ...reduced.plan.map((fault) => `  fault ${fault}`),
        "violations:",
        "  three and seven",
        "timeline:"
      ].join("\n")
    )
    assert.deepStrictEqual(Plan.shrink(scenario, failed, 0).plan, plan)
  })

  it("fails if its scenario fails, and a campaign reports what no run reached", () => {
    assert.match(Plan.run(scenario, 1, [9]).violations[0] ?? "", /^the scenario failed: .*nine/u)
    const seen: Array<number> = []
    const campaign = Plan.campaign(scenario, [0, 1, 2, 3, 4], ({ seed }) => seen.push(seed) < 3)
    assert.deepStrictEqual(seen, [0, 1, 2])
    assert.strictEqual(campaign.runs, 3)
    assert.deepStrictEqual(campaign.missed.slice(-1), ["10"])
    assert.lengthOf(campaign.failures, 3)
  })
})
