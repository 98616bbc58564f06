/** The shared stores under the kernel: replicas that reach them over connections with latency, restarts and losses. */
import { assert, describe, it } from "@effect/vitest"
import { local } from "@trigate/domain/Caller"
import { candleSnapshot } from "@trigate/domain/info/InfoOperations"
import * as Simulation from "@trigate/simulation/Simulation"
import type { Access } from "@trigate/simulation/unstable/stores/Access"
import * as EventLogs from "@trigate/simulation/unstable/stores/EventLogs"
import * as PostgresActionLog from "@trigate/simulation/unstable/stores/PostgresActionLog"
import * as RedisActionLog from "@trigate/simulation/unstable/stores/RedisActionLog"
import * as RedisRateLimits from "@trigate/simulation/unstable/stores/RedisRateLimits"
import * as AccountEvents from "@trigate/trading/accounts/AccountEvents"
import { ActionLog } from "@trigate/trading/actionLog/ActionLog"
import { RateLimiter } from "@trigate/upstream/limits/RateLimiter"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Result from "effect/Result"

/** Reaches a store in up to 20 ms, and receives its result in up to 20 ms. */
const distant = Effect.map(
  Simulation.Simulation,
  ({ after, now, random }): Access => (operation) =>
    Simulation.callback((resume) =>
      after(20 * random(), () => {
        const result = operation(1_767_225_600_000 + now())
        after(20 * random(), () => resume(Exit.succeed(result)))
      })
    )
)

/** Runs a program in each of two replicas, and returns the results. */
const inReplicas = <A, E, S>(layer: () => Layer.Layer<S>, program: Effect.Effect<A, E, S>) =>
  Effect.gen(function*() {
    const { node } = yield* Simulation.Simulation
    const fibers = ["one", "two"].map((name) =>
      node(name).start(program.pipe(Effect.provide(layer()), Effect.result, Effect.provide(Logger.layer([]))))
    )
    return yield* Effect.forEach(fibers, Fiber.join)
  })

const run = <A, E>(seed: number, program: Effect.Effect<A, E, Simulation.Simulation>) => {
  const { digest, exit } = Simulation.run(program, { seed, yields: 0.1 })
  assert(Exit.isSuccess(exit), String(exit))
  return { value: exit.value, digest }
}

const claim = ActionLog.use((log) =>
  Effect.flatMap(
    log.claim({
      caller: "local",
      isListed: true,
      signer: `0x${"ab".repeat(20)}`,
      nonce: 1_767_225_600_000,
      actionType: "order",
      fingerprint: "0x01",
      body: new Uint8Array(3)
    }),
    ({ settle }) => Effect.andThen(Effect.sleep(50), settle("accepted"))
  )
)

const actionLogs = {
  Postgres: (access: Access) => {
    const store = PostgresActionLog.make()
    return () => PostgresActionLog.layer(store, access)
  },
  Redis: (access: Access) => {
    const store = RedisActionLog.make()
    return () => RedisActionLog.layer(store, access)
  }
}

describe("simulated stores", () => {
  for (const [name, over] of Object.entries(actionLogs)) {
    it(`let one of two replicas claim a nonce in ${name}, whatever the order of their steps`, () => {
      const program = Effect.flatMap(distant, (access) => inReplicas(over(access), claim))
      for (let seed = 0; seed < 20; seed++) {
        const { digest, value } = run(seed, program)
        assert.lengthOf(value.filter(Result.isSuccess), 1, `seed ${seed}`)
        assert.strictEqual(run(seed, program).digest, digest)
      }
    })
  }

  it("let two replicas use a rate limit together, and no more of it", () => {
    const asked = {
      upstream: "trading-api",
      class: "read",
      cost: candleSnapshot.cost,
      caller: local,
      maxWait: 0
    } as const
    const starts = RateLimiter.use(({ take }) =>
      Effect.map(
        Effect.all(Array.from({ length: 10 }, () => Effect.result(take(asked)))),
        (all) => all.filter(Result.isSuccess).length
      )
    )
    const program = Effect.flatMap(distant, (access) => {
      const store = RedisRateLimits.make()
      return inReplicas(() => RedisRateLimits.layer(store, access, { "trading-api": 1200 }), starts)
    })
    for (let seed = 0; seed < 20; seed++) {
      const counts = run(seed, program).value.map(Result.getOrThrow)
      // each of them costs 104 of the 1140 units that reads may use
      assert.strictEqual(counts.reduce((sum, count) => sum + count, 0), 10, `seed ${seed}`)
    }
  })

  it("are restored from a snapshot and emptied, and an event log in Redis then begins a new epoch", () => {
    const store = EventLogs.makeRedis()
    const lease = AccountEvents.EventStore.use((events) => Effect.andThen(events.lease("one"), events.readAfter(0)))
    const program = Effect.gen(function*() {
      const access = yield* distant
      const acquired = Effect.provide(lease, EventLogs.layerRedis(store, access))
      const first = yield* acquired
      const saved = store.snapshot()
      store.current().seq = 5
      store.restore(saved)
      const restored = yield* acquired
      store.clear()
      return [first, restored, yield* acquired]
    })
    const found = run(1, program).value
    assert.deepStrictEqual(found.map(({ seq }) => seq), [0, 0, 0])
    assert.strictEqual(new Set(found.map(({ epoch }) => epoch)).size, 3)
  })
})
