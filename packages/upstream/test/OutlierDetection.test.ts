import { assert, describe, it } from "@effect/vitest"
import type { OutlierDetection } from "@trigate/upstream/OutlierDetection"
import { AddressClosed, layerAlways } from "@trigate/upstream/OutlierDetection"
import * as OutlierDetectionMemory from "@trigate/upstream/OutlierDetectionMemory"
import * as Upstream from "@trigate/upstream/Upstream"
import * as Arr from "effect/Array"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as CircuitBreaker from "effect/persistence/CircuitBreaker"
import * as TestClock from "effect/testing/TestClock"
import { exchanges, targets } from "./exchanges.ts"

const places = (usable: { readonly targets: ReadonlyArray<Upstream.Target> }) =>
  usable.targets.map((target) => target.address)

const refusal = (retryAfter: number) => new AddressClosed({ upstream: "layer2", address: 0, retryAfter })

const isolated = Effect.provideService(Metric.MetricRegistry, new Map())
const memory = <A, E>(effect: Effect.Effect<A, E, OutlierDetection>) =>
  isolated(Effect.provide(effect, OutlierDetectionMemory.layer()))

describe("the circuit of an address", () => {
  it.effect("opens with the fifth fault in a row and refuses without running", () =>
    Effect.gen(function*() {
      const { faults, health, made, run } = yield* exchanges
      const [only] = targets(1)
      yield* faults(only, 4)
      assert.strictEqual(yield* run(only, "healthy"), "healthy")
      yield* faults(only, 4)
      assert.deepStrictEqual(yield* health.usable([only]), { targets: [only], retryAfter: undefined })
      yield* faults(only, 1)
      assert.strictEqual(made.count, 10)
      assert.deepStrictEqual(yield* Effect.flip(run(only, "healthy")), refusal(1000))
      yield* TestClock.adjust(999)
      assert.deepStrictEqual(yield* Effect.flip(run(only, "healthy")), refusal(1))
      assert.deepStrictEqual(yield* health.usable([only]), { targets: [], retryAfter: 1 })
      assert.strictEqual(made.count, 10)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* health.usable([only]), { targets: [only], retryAfter: undefined })
      assert.strictEqual(yield* run(only, "healthy"), "healthy")
      assert.strictEqual(made.count, 11)
    }).pipe(memory))

  it.effect("is one for all targets of an address, and another for another upstream's address", () =>
    Effect.gen(function*() {
      const { faults, run } = yield* exchanges
      const [layer2] = targets(1)
      const [evm] = Upstream.targets(Upstream.make("trading-node", ["http://node-0/SECRET-KEY"]), "/evm")
      const [info] = Upstream.targets(Upstream.make("trading-node", ["http://node-0/SECRET-KEY/"]), "/info")
      assert.isDefined(evm)
      assert.isDefined(info)
      yield* faults(evm, 5)
      const error = yield* Effect.flip(run(info, "healthy"))
      assert.deepStrictEqual(error, new AddressClosed({ upstream: "trading-node", address: 0, retryAfter: 1000 }))
      assert.strictEqual(yield* run(layer2, "healthy"), "healthy")
    }).pipe(memory))

  it.effect("counts neither neutral exchanges nor a caller that leaves", () =>
    Effect.gen(function*() {
      const { faults, run } = yield* exchanges
      const [only] = targets(1)
      yield* Effect.repeat(run(only, "neutral"), { times: 9 })
      yield* faults(only, 4)
      yield* run(only, "neutral")
      const leaving = yield* Effect.forkChild(run(only, "faulty", Effect.never), { startImmediately: true })
      yield* Fiber.interrupt(leaving)
      assert.strictEqual(yield* run(only, "healthy"), "healthy")
    }).pipe(memory))

  it.effect("is open 1, 2, 4, 8, 10 and 10 seconds while its probes fail", () =>
    Effect.gen(function*() {
      const { failProbe, faults, health } = yield* exchanges
      const [only] = targets(1)
      yield* faults(only, 5)
      const open: Array<number | undefined> = []
      for (let round = 0; round < 6; round++) {
        const { retryAfter } = yield* health.usable([only])
        open.push(retryAfter)
        yield* TestClock.adjust(retryAfter ?? 0)
        yield* failProbe(only)
      }
      assert.deepStrictEqual(open, [1000, 2000, 4000, 8000, 10_000, 10_000])
    }).pipe(memory))

  it.effect("lets one of a hundred concurrent calls probe", () =>
    Effect.gen(function*() {
      const { faults, health, made, run } = yield* exchanges
      const [only] = targets(1)
      yield* faults(only, 5)
      yield* TestClock.adjust("1 second")
      const answer = yield* Deferred.make<void>()
      const fibers = yield* Effect.forEach(
        Arr.makeBy(100, () => run(only, "healthy", Deferred.await(answer))),
        (call) => Effect.forkChild(Effect.result(call), { startImmediately: true })
      )
      assert.strictEqual(made.count, 6)
      assert.deepStrictEqual(yield* health.usable([only]), { targets: [], retryAfter: 1000 })
      yield* Deferred.succeed(answer, undefined)
      const results = yield* Fiber.joinAll(fibers)
      assert.strictEqual(results.filter((result) => result._tag === "Success").length, 1)
      assert.strictEqual(yield* run(only, "healthy"), "healthy")
    }).pipe(memory))

  it.effect("gives the place of a probe that was interrupted to the next call", () =>
    Effect.gen(function*() {
      const { faults, made, run } = yield* exchanges
      const [only] = targets(1)
      yield* faults(only, 5)
      yield* TestClock.adjust("1 second")
      const probe = yield* Effect.forkChild(run(only, "healthy", Effect.never), { startImmediately: true })
      assert.deepStrictEqual(yield* Effect.flip(run(only, "healthy")), refusal(1000))
      yield* Fiber.interrupt(probe)
      assert.strictEqual(yield* run(only, "healthy"), "healthy")
      assert.strictEqual(made.count, 7)
    }).pipe(memory))

  it.effect("is not moved by calls that began before it opened", () =>
    Effect.gen(function*() {
      const { faults, health, run } = yield* exchanges
      const [only] = targets(1)
      const answer = yield* Deferred.make<void>()
      const hold = Deferred.await(answer)
      const late = yield* Effect.forEach(
        [...Arr.makeBy(20, () => run(only, "faulty", hold)), ...Arr.makeBy(20, () => run(only, "healthy", hold))],
        (call) => Effect.forkChild(Effect.result(call), { startImmediately: true })
      )
      yield* faults(only, 5)
      yield* TestClock.adjust("1 second")
      // the next admission would be the probe: none of these may be taken for it
      yield* Deferred.succeed(answer, undefined)
      yield* Fiber.joinAll(late)
      assert.deepStrictEqual(yield* health.usable([only]), { targets: [only], retryAfter: undefined })
      assert.strictEqual(yield* run(only, "healthy"), "healthy")
      yield* faults(only, 4)
      assert.strictEqual(yield* run(only, "healthy"), "healthy")
    }).pipe(memory))

  it.effect("opens once when many calls that began together fail together", () =>
    Effect.gen(function*() {
      const { health, run } = yield* exchanges
      const [only] = targets(1)
      const answer = yield* Deferred.make<void>()
      const calls = yield* Effect.forEach(
        Arr.makeBy(100, () => run(only, "faulty", Deferred.await(answer))),
        (call) => Effect.forkChild(Effect.flip(call), { startImmediately: true })
      )
      yield* Deferred.succeed(answer, undefined)
      yield* Fiber.joinAll(calls)
      assert.deepStrictEqual(yield* health.usable([only]), { targets: [], retryAfter: 1000 })
    }).pipe(memory))

  it.effect("counts faults in the order of ends, successes that began clear included", () =>
    Effect.gen(function*() {
      const { faults, run } = yield* exchanges
      const [only] = targets(1)
      const answer = yield* Deferred.make<void>()
      const slow = yield* Effect.forkChild(run(only, "healthy", Deferred.await(answer)), { startImmediately: true })
      yield* faults(only, 4)
      yield* Deferred.succeed(answer, undefined)
      yield* Fiber.join(slow)
      yield* faults(only, 4)
      assert.strictEqual(yield* run(only, "healthy"), "healthy")
    }).pipe(memory))

  it.effect("costs a clear address no step of the store", () =>
    Effect.gen(function*() {
      const context = yield* Layer.build(CircuitBreaker.layerStoreMemory())
      const store = Context.get(context, CircuitBreaker.CircuitBreakerStore)
      let steps = 0
      const counted = <A, E, R>(step: Effect.Effect<A, E, R>) =>
        Effect.suspend(() => {
          steps += 1
          return step
        })
      const counting = Layer.succeed(
        CircuitBreaker.CircuitBreakerStore,
        CircuitBreaker.CircuitBreakerStore.of({
          admit: (key) => counted(store.admit(key)),
          record: (options) => counted(store.record(options)),
          state: (key) => counted(store.state(key))
        })
      )
      yield* Effect.gen(function*() {
        const { faults, health, run } = yield* exchanges
        const all = targets(2)
        yield* Effect.repeat(run(all[0], "healthy"), { times: 99 })
        const usable = yield* health.usable(all)
        assert.strictEqual(usable.targets, all)
        assert.strictEqual(steps, 0)
        yield* faults(all[0], 1)
        assert.strictEqual(steps, 2)
        yield* run(all[0], "healthy")
        assert.strictEqual(steps, 4)
        yield* Effect.repeat(run(all[0], "healthy"), { times: 99 })
        assert.strictEqual(steps, 4)
      }).pipe(Effect.provide(OutlierDetectionMemory.layerNoDeps().pipe(Layer.provide(counting))))
    }).pipe(Effect.scoped, isolated))
})

describe("never more than half", () => {
  for (const [count, expected] of [[1, 1], [2, 1], [3, 2], [4, 2], [5, 3]] as const) {
    it.effect(`of ${count} are passed over: ${expected} are asked when all are benched, the soonest first`, () =>
      Effect.gen(function*() {
        const { health } = yield* exchanges
        const all = targets(count)
        // the last one comes back first
        yield* Effect.forEach(all, (target, index) => health.bench(target, 10_000 - index))
        const soonest = Arr.makeBy(expected, (index) => count - 1 - index)
        assert.deepStrictEqual(places(yield* health.usable(all)), soonest)
        yield* TestClock.adjust("10 seconds")
        assert.deepStrictEqual(places(yield* health.usable(all)), all.map((target) => target.address))
      }).pipe(memory))
  }

  it.effect("passes one of three over, then two are out and the one that comes back first follows", () =>
    Effect.gen(function*() {
      const { health } = yield* exchanges
      const all = targets(3)
      const usable = health.usable(all)
      assert.deepStrictEqual(places(yield* usable), [0, 1, 2])
      yield* health.bench(all[0], 5000)
      // the same effect, run again
      assert.deepStrictEqual(places(yield* usable), [1, 2])
      yield* health.bench(all[1] ?? all[0], 3000)
      assert.deepStrictEqual(places(yield* health.usable(all)), [2, 1])
      yield* health.bench(all[1] ?? all[0], 6000)
      assert.deepStrictEqual(places(yield* health.usable(all)), [2, 0])
    }).pipe(memory))

  it.effect("asks an address outside of its open circuit, and what it answers moves nothing", () =>
    Effect.gen(function*() {
      const { faults, health, made, run } = yield* exchanges
      const all = targets(2)
      const second = all[1] ?? all[0]
      yield* faults(all[0], 5)
      assert.deepStrictEqual(places(yield* health.usable(all)), [1])
      yield* TestClock.adjust(500)
      yield* faults(second, 5)
      const usable = yield* health.usable(all)
      assert.deepStrictEqual(places(usable), [0])
      const [forced] = usable.targets
      assert.isDefined(forced)
      assert.strictEqual(made.count, 10)
      assert.strictEqual(yield* run(forced, "healthy"), "healthy")
      assert.strictEqual(made.count, 11)
      assert.deepStrictEqual(yield* Effect.flip(run(all[0], "healthy")), refusal(500))
    }).pipe(memory))
})

describe("what /metrics tells", () => {
  const series = Effect.map(Metric.snapshot, (all) =>
    all.flatMap((each) => {
      const at = `${each.id} ${Object.values(each.attributes ?? {}).join(" ")}`
      return each.type === "Gauge" ? [[at, each.state.value]] : each.type === "Counter" ? [[at, each.state.count]] : []
    }))

  it.effect("shows circuits and benches by upstream and place, and no URL", () =>
    Effect.gen(function*() {
      const { faults, health, run } = yield* exchanges
      const [only] = targets(1)
      const state = "trigate_upstream_circuit_state layer2 0"
      yield* run(only, "healthy")
      assert.deepStrictEqual(yield* series, [[state, 0]])
      yield* health.bench(only, 1000)
      yield* health.bench(only, 2000)
      yield* faults(only, 5)
      const benches = [
        ["trigate_upstream_benches_total layer2 0 retry_after", 1],
        ["trigate_upstream_benches_total layer2 0 circuit", 1]
      ]
      assert.deepStrictEqual(yield* series, [[state, 2], ...benches])
      yield* TestClock.adjust("1 second")
      const probe = yield* Effect.forkChild(run(only, "neutral", Effect.never), { startImmediately: true })
      assert.deepStrictEqual(yield* series, [[state, 1], ...benches])
      yield* Fiber.interrupt(probe)
      yield* run(only, "healthy")
      assert.deepStrictEqual(yield* series, [[state, 0], ...benches])
    }).pipe(Effect.provide(OutlierDetectionMemory.layer()), Effect.provideService(Metric.MetricRegistry, new Map())))
})

describe("layerAlways", () => {
  it.effect("never passes an address over", () =>
    Effect.gen(function*() {
      const { faults, health, run } = yield* exchanges
      const all = targets(2)
      yield* faults(all[0], 9)
      yield* health.bench(all[0], 1000)
      assert.strictEqual((yield* health.usable(all)).targets, all)
      assert.strictEqual(yield* run(all[0], "healthy"), "healthy")
    }).pipe(Effect.provide(layerAlways)))
})
