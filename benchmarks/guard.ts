/**
 * The cost of the guard: processor time of an order that a policy with every rule judges, and a thousand orders a minute
 * from each of a hundred bots of one account, whose limits two guards share in Redis.
 */
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import * as Policy from "@trigate/domain/actions/Policy"
import { CurrentCaller, local } from "@trigate/domain/Caller"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as RedisServer from "@trigate/testing/RedisServer"
import * as ActionLog from "@trigate/trading/actionLog/ActionLog"
import * as ActionLogMemory from "@trigate/trading/actionLog/ActionLogMemory"
import * as Admission from "@trigate/trading/admission/Admission"
import * as Guard from "@trigate/trading/guard/Guard"
import * as GuardStore from "@trigate/trading/guard/GuardStore"
import { Info } from "@trigate/trading/Info"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { plan } from "./harness/plan.ts"
import type { Row } from "./harness/results.ts"
import { median } from "./harness/statistics.ts"
import { run } from "./harness/suite.ts"

const huge = 1e12

/** A policy with every rule, all of which let the order pass. */
const document = {
  policies: [{
    name: "desk",
    accounts: [keys.trader.address],
    actions: ["trading"],
    coins: ["BTC", "ETH"],
    reduceOnly: false,
    cloidRequired: false,
    expiresWithin: "1 hour",
    hours: { from: "00:00", to: "00:00", zone: "Europe/Zurich" },
    destinations: [],
    builderFee: 10,
    leverage: 50,
    marginMode: "cross",
    orderNotional: huge,
    actionNotional: huge,
    priceBand: 9000,
    oracleBand: 9000,
    marketSlippage: 9000,
    ordersPerMinute: 1_000_000,
    openNotional: huge,
    positionNotional: { BTC: huge, "*": huge },
    totalNotional: huge,
    loss: { limit: huge, since: "00:00", zone: "UTC" }
  }]
}

const orders = [{ a: 0, b: true, p: "50000", s: "0.01", r: false, t: { limit: { tif: "Gtc" } } }]

/** An admitted order. */
const admitOrder = Effect.gen(function*() {
  const nonce = yield* Clock.currentTimeMillis
  const action = { type: "order", orders, grouping: "na" } as const
  const signed = yield* SandboxSigner.signAction(keys.trader, { nonce, expiresAfter: nonce + 600_000, action })
  return yield* Admission.Admission.use(({ admit }) => admit(Encoding.encode(Encoding.stringify(signed))))
})

/** Copies of an order, as if it had been signed with other nonces. */
const variant = (admitted: Admission.Admitted, index: number): Admission.Admitted => ({
  ...admitted,
  fingerprint: `0x${index.toString(16).padStart(64, "0")}`
})

const sandbox = Sandbox.layerNoDeps({ seed: "bench" }).pipe(
  Layer.provideMerge(Admission.layer()),
  Layer.provideMerge(Layer.merge(VenueProfile.layer("mainnet"), ActionLogMemory.layer()))
)

const makeGuard = Effect.fnUntraced(function*(store?: GuardStore.GuardStore["Service"]) {
  const policies = yield* Policy.decode(document)
  return yield* Guard.make({ policies, info: yield* Info, log: yield* ActionLog.ActionLog, store })
})

const count = plan.rounds > 3 ? 20_000 : 5000

/** A clock that stands still, so that the guard does not read from the sandbox, which takes most of a second's time. */
const stopped = Effect.map(Clock.Clock, (clock): Clock.Clock => {
  const millis = clock.currentTimeMillisUnsafe()
  const nanos = clock.monotonicTimeNanosUnsafe()
  return {
    currentTimeMillisUnsafe: () => millis,
    currentTimeMillis: Effect.succeed(millis),
    currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe(),
    currentTimeNanos: clock.currentTimeNanos,
    monotonicTimeNanosUnsafe: () => nanos,
    monotonicTimeNanos: Effect.succeed(nanos),
    sleep: (duration) => clock.sleep(duration)
  }
})

const costOfOrder = Effect.gen(function*() {
  const { reserve } = yield* makeGuard()
  const admitted = yield* admitOrder
  const values: Array<number> = []
  for (let round = 0; round <= plan.rounds; round++) {
    const all = Array.from({ length: count }, (_, index) => variant(admitted, round * count + index))
    const before = process.cpuUsage()
    for (const each of all) (yield* reserve(each))?.end("rejected")
    const { system, user } = process.cpuUsage(before)
    // the first one warms up
    if (round > 0) values.push((user + system) / count)
  }
  const value = median(values)
  const row: Row = {
    title: "an order judged by 20 rules and reserved, processor time",
    beside: "in memory",
    unit: "us",
    value,
    values,
    aim: "<= 30 us",
    met: value <= 30
  }
  return row
}).pipe(Effect.provideServiceEffect(Clock.Clock, stopped))

const bots = 100
const ordersOfBot = 20

const shared = Effect.gen(function*() {
  const { url } = yield* RedisServer.redisServer
  const connect = Effect.map(
    Layer.build(Layer.fresh(Layer.provide(GuardStore.layerRedis(), Layer.orDie(NodeRedis.layer({ url }))))),
    Context.get(GuardStore.GuardStore)
  )
  const guards = [yield* makeGuard(yield* connect), yield* makeGuard(yield* connect)] as const
  const admitted = yield* admitOrder
  const latencies: Array<number> = []
  const began = performance.now()
  yield* Effect.forEach(
    Array.from({ length: bots }, (_, bot) => bot),
    (bot) =>
      Effect.gen(function*() {
        for (let index = 0; index < ordersOfBot; index++) {
          const from = performance.now()
          const reservation = yield* guards[bot % 2 === 0 ? 0 : 1].reserve(
            variant(admitted, 1_000_000 + bot * 1000 + index)
          )
          latencies.push(performance.now() - from)
          reservation?.end("rejected")
        }
      }),
    { concurrency: "unbounded", discard: true }
  )
  const seconds = (performance.now() - began) / 1000
  const sorted = latencies.toSorted((one, other) => one - other)
  const rate = bots * ordersOfBot / seconds * 60
  const rows: ReadonlyArray<Row> = [
    {
      title: "orders a minute of one account, reserved together",
      beside: "two guards, a hundred bots at once, Redis",
      unit: "orders",
      value: rate,
      values: [rate],
      aim: ">= 1000",
      met: rate >= 1000
    },
    {
      title: "wait of an order among two hundred at once, median",
      beside: "two guards, a hundred bots at once, Redis",
      unit: "ms",
      value: sorted[Math.floor(sorted.length / 2)] ?? 0,
      values: []
    }
  ]
  return rows
})

await run("guard", () =>
  Effect.runPromise(
    Effect.gen(function*() {
      const rows = [yield* costOfOrder]
      if (RedisServer.isInstalled) rows.push(...yield* shared)
      return { rows }
    }).pipe(Effect.scoped, Effect.provideService(CurrentCaller, local), Effect.provide(sandbox))
  ))
