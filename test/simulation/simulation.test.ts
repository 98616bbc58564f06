import { assert, beforeAll, describe, it } from "@effect/vitest"
import { background } from "@trigate/domain/Caller"
import * as Plan from "@trigate/simulation/Plan"
import * as Simulation from "@trigate/simulation/Simulation"
import * as StoreServer from "@trigate/simulation/StoreServer"
import * as RedisRateLimits from "@trigate/simulation/unstable/stores/RedisRateLimits"
import { isExhaustive } from "@trigate/testing/Sample"
import * as ActionLogMemory from "@trigate/trading/actionLog/ActionLogMemory"
import { RateLimiter } from "@trigate/upstream/limits/RateLimiter"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import { type Account, makeAccounts } from "./bots.ts"
import * as Once from "./once.ts"
import { checkWeight } from "./properties.ts"
import * as Replicas from "./scenario.ts"
import * as Streams from "./streams.ts"

/** The first seed: another one for each commit, the same for everyone who runs that commit. */
const first = Number.parseInt((process.env["TEST_SEED"] ?? "").replace(/[^0-9a-f]/gu, "").slice(0, 6), 16) || 0

/** A run of two replicas takes more than a second. */
const replicaSeeds = isExhaustive ? 8 : 2

/** A run of the streams alone takes a tenth of a second. */
const streamSeeds = isExhaustive ? 100 : 3

const seeds = (count: number): ReadonlyArray<number> => Array.from({ length: count }, (_, at) => first + at)

/** Fails with the necessary faults and the timeline of the first failed run. */
const passes = <Fault>(scenario: Plan.Scenario<Fault>, { failures }: Plan.Campaign<Fault>): void => {
  const [failed] = failures
  if (failed !== undefined) assert.fail(Plan.format(scenario, Plan.shrink(scenario, failed)))
}

let accounts: ReadonlyArray<Account> = []
beforeAll(async () => {
  accounts = await Effect.runPromise(makeAccounts(["alice", "bob", "carol"]))
})

describe("a signed action between two replicas", () => {
  it(`is sent at most once under the faults of 200 seeds, from ${first}`, () => {
    const scenario = Once.make(accounts.slice(0, 1))
    // and of two in which properties took a refused request for a sent one, and a lost one for one in flight
    const campaign = Plan.campaign(scenario, [...seeds(200), 1_000_266, 1_011_085])
    passes(scenario, campaign)
    assert.deepStrictEqual(campaign.missed, [])
  })

  it("is sent at most once when a replica is killed before any of its steps", () => {
    let steps = 0
    const scenario = Once.make(accounts.slice(0, 1), (count) => {
      steps = count
    })
    // without yields, a step is what runs between two awaits; the log is in Postgres for one seed, in Redis for the other
    for (const seed of [1, 4]) {
      Plan.run(scenario, seed, [])
      const count = steps
      assert.isAbove(count, 15)
      for (let step = 1; step <= count; step++) {
        const run = Plan.run(scenario, seed, [{ kind: "kill", step }])
        if (run.violations.length > 0) assert.fail(Plan.format(scenario, run))
      }
    }
  })
})

describe("the streams of accounts between two replicas", () => {
  it(`lose no event without notice under the faults of ${streamSeeds} seeds, from ${first}`, () => {
    const scenario = Streams.make()
    // and of two in which a stream without rows began under a wrong wall clock, and was refilled from that time on: by
    // the replica itself after a lost connection, and by the next writer of the log
    passes(scenario, Plan.campaign(scenario, [...seeds(streamSeeds), 700_536, 15_187_754]))
  })
})

/** Returns whether two replicas exceed their shared limit, while the clock of one jumps, and back if it is not for good. */
const exceeded = Effect.fnUntraced(function*(hours: number, isForGood: boolean) {
  const { after, node: makeNode, now, random } = yield* Simulation.Simulation
  const redis = yield* StoreServer.make("redis")
  const store = RedisRateLimits.make()
  const departures: Array<{ readonly at: number; readonly weight: number }> = []
  const caller = background("caller")
  const call = {
    upstream: "trading-api",
    class: "once",
    caller,
    cost: { weight: 20, requestUnits: 1 },
    maxWait: 0
  } as const
  const [first] = ["gateway-1", "gateway-2"].map((name) => {
    const node = makeNode(name)
    node.start(
      RateLimiter.use(({ take }) =>
        Effect.forever(Effect.gen(function*() {
          yield* Effect.sleep(200 + random() * 200)
          const taken = yield* Effect.result(take(call))
          if (Result.isSuccess(taken)) departures.push({ at: now(), weight: 20 })
        }))
      ).pipe(Effect.provide(RedisRateLimits.layer(store, redis.access, { "trading-api": 1200 })))
    )
    return node
  })
  after(70_000, () => first?.shiftClock(hours * 3_600_000))
  if (!isForGood) after(90_000, () => first?.shiftClock(-hours * 3_600_000))
  yield* Effect.sleep("5 minutes")
  return checkWeight(departures, 1200)
})

/** Returns the seconds at which an unknown outcome is looked up, if the wall clock jumps after the first look-up. */
const lookUps = Effect.fnUntraced(function*(hours: number) {
  const { node: makeNode, now } = yield* Simulation.Simulation
  const node = makeNode("gateway")
  const found: Array<number> = []
  node.start(Effect.scoped(Effect.gen(function*() {
    const { claim, takeUnknown } = yield* ActionLogMemory.make()
    const signer = "0x14791697260e4c9a71f18484c9f997b308e59325"
    const action = {
      caller: "local",
      isListed: false,
      signer,
      nonce: 1,
      actionType: "order",
      fingerprint: "0x01"
    } as const
    const { settle } = yield* claim({ ...action, body: new Uint8Array(1), trace: { legs: [] } })
    yield* settle("unknown")
    for (;;) {
      if ((yield* takeUnknown).length > 0) found.push(Math.round(now() / 1000))
      if (found.length === 1 && now() < 500) node.shiftClock(hours * 3_600_000)
      yield* Effect.sleep("1 second")
    }
  })))
  yield* Effect.sleep("10 seconds")
  return found.slice(0, 2)
})

describe("an action of unknown outcome", () => {
  it("is looked up again on time when the wall clock jumps back an hour, or forward two", () => {
    const { exit: expected } = Simulation.run(lookUps(0))
    for (const hours of [-1, 2]) {
      const { exit } = Simulation.run(lookUps(hours))
      assert.deepStrictEqual(exit, expected)
    }
  })
})

describe("a limit that two replicas share", () => {
  it("is not exceeded when the wall clock of one jumps back an hour, or forward two, for a while or for good", () => {
    for (const [hours, isForGood] of [[-1, false], [2, false], [-1, true], [2, true]] as const) {
      const { exit } = Simulation.run(exceeded(hours, isForGood), { seed: first })
      assert.deepStrictEqual(exit, Exit.succeed([]))
    }
  })
})

describe("two replicas of a gateway", () => {
  it(`keep their promises under the faults of ${replicaSeeds} seeds, from ${first}, and run equally for equal seeds`, () => {
    const scenario = Replicas.make(accounts)
    const runs: Array<ReturnType<typeof Plan.run>> = []
    passes(scenario, Plan.campaign(scenario, seeds(replicaSeeds), (run) => runs.push(run) > 0))
    const [one, next] = runs
    const other = Plan.run(scenario, first)
    assert.deepStrictEqual(one?.timeline, other.timeline)
    assert.strictEqual(one?.digest, other.digest)
    assert.notStrictEqual(next?.digest, other.digest)
  })
})
