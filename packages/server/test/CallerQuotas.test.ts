import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, it } from "@effect/vitest"
import * as CallerKeys from "@trigate/callers/CallerKeys"
import * as Quotas from "@trigate/callers/Quotas"
import type { Caller, Quota } from "@trigate/domain/Caller"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import * as Gateway from "@trigate/server/Gateway"
import * as QuotasRedis from "@trigate/server/unstable/stores/QuotasShared"
import * as QuotasSql from "@trigate/server/unstable/stores/QuotasSql"
import * as Access from "@trigate/simulation/unstable/stores/Access"
import * as QuotaCounters from "@trigate/simulation/unstable/stores/QuotaCounters"
import { get, post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import { isInstalled as isPostgresInstalled, postgresDatabase, postgresServer } from "@trigate/testing/PostgresServer"
import { isInstalled as isRedisInstalled, redisServer } from "@trigate/testing/RedisServer"
import { sampleRuns, seed } from "@trigate/testing/Sample"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { formatAddress, HttpServer } from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Redis from "effect/persistence/Redis"
import * as Random from "effect/Random"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import * as TestClock from "effect/testing/TestClock"
import * as Http from "node:http"

const gasCall = `{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}`

/** A sandbox gateway whose callers are named by their keys and have such quotas. */
const guarded = Effect.fnUntraced(function*(quotas: { readonly [key: string]: Quota }) {
  const keys = Layer.succeed(CallerKeys.CallerKeys, {
    check: (key) =>
      Effect.succeed({ id: `key:${Redacted.value(key)}`, scope: {}, quota: quotas[Redacted.value(key)] ?? {} })
  })
  const routes = Gateway.layer().pipe(
    Layer.provide(Sandbox.layer()),
    Layer.provide(keys),
    Layer.provide(Gateway.layerDefaults({ sandbox: true }))
  )
  const server = NodeHttpServer.layer(() => Http.createServer(), { port: 0, host: "127.0.0.1" })
  const context = yield* Layer.build(
    HttpRouter.serve(routes, { disableLogger: true, disableListenLog: true }).pipe(Layer.provideMerge(server))
  )
  return formatAddress(Context.get(context, HttpServer).address)
})

const slow: Quota = { requestsPerSecond: 0.01, burst: 2 }

const fieldsOf = ({ headers }: { readonly headers: Headers }) => [
  headers.get("ratelimit-policy"),
  headers.get("ratelimit"),
  headers.get("retry-after")
]

describe("a caller's quota of requests", () => {
  it.live("is told with each answer, and the request beyond it is refused before its body is read", () =>
    Effect.gen(function*() {
      const url = yield* guarded({ slow })
      const info = (body: string) => post(`${url}/slow/info`, body)
      const first = yield* info(`{"type":"spotMeta"}`)
      assert.strictEqual(first.status, 200)
      assert.deepStrictEqual(fieldsOf(first), [`"requests";q=2;w=200`, `"requests";r=1;t=100`, null])
      const second = yield* post(`${url}/info`, "{", { "x-api-key": "slow" })
      assert.strictEqual(second.status, 400)
      assert.match(String(second.headers.get("ratelimit")), /^"requests";r=0;t=\d+$/u)
      const third = yield* info("{")
      assert.strictEqual(third.status, 429)
      assert.strictEqual(JsonParts.at(third.json, "_tag"), "QuotaExceeded")
      const retryAfter = JsonParts.at(third.json, "retryAfter")
      assert.isNumber(retryAfter)
      assert.deepStrictEqual(fieldsOf(third), [
        `"requests";q=2;w=200`,
        `"requests";r=0;t=${String(retryAfter)}`,
        String(retryAfter)
      ])
    }))

  it.live("is answered as JSON-RPC on a JSON-RPC route", () =>
    Effect.gen(function*() {
      const url = yield* guarded({ slow: { requestsPerSecond: 0.01 } })
      assert.strictEqual((yield* post(`${url}/slow/evm`, gasCall)).status, 200)
      const refused = yield* post(`${url}/slow/evm`, gasCall)
      assert.strictEqual(refused.status, 429)
      assert.strictEqual(JsonParts.at(refused.json, "error", "code"), -32005)
      assert.strictEqual(JsonParts.at(refused.json, "error", "data", "_tag"), "QuotaExceeded")
      assert.match(String(refused.headers.get("retry-after")), /^\d+$/u)
    }))

  it.live("is another caller's own, and none says nothing", () =>
    Effect.gen(function*() {
      const url = yield* guarded({ slow: { requestsPerSecond: 0.01 } })
      yield* post(`${url}/slow/evm`, gasCall)
      assert.strictEqual((yield* post(`${url}/slow/evm`, gasCall)).status, 429)
      const other = yield* post(`${url}/other/evm`, gasCall)
      assert.strictEqual(other.status, 200)
      assert.deepStrictEqual(fieldsOf(other), [null, null, null])
      assert.strictEqual((yield* get(`${url}/health/live`)).status, 200)
    }))

  it.live("of concurrent calls frees its place when an answer was written", () =>
    Effect.gen(function*() {
      const url = yield* guarded({ one: { concurrentCalls: 1 } })
      for (let n = 0; n < 3; n++) assert.strictEqual((yield* post(`${url}/one/evm`, gasCall)).status, 200)
    }))
})

const replicaOf = <R>(quotas: Layer.Layer<Quotas.Quotas, never, R>, store: Layer.Layer<R>) =>
  Effect.map(
    Layer.build(Layer.fresh(quotas.pipe(Layer.provide(store), Layer.provide(Logger.layer([]))))),
    (context) => Context.get(context, Quotas.Quotas)
  )

const callerOf = (quota: Quota): Caller => ({ id: "key:desk", scope: {}, quota })

const later = "later"

const outcomes = (count: number, quotas: ReadonlyArray<Quotas.Quotas["Service"]>, caller: Caller) =>
  Effect.forEach(
    Array.from({ length: count }, (_, n) => n),
    (n) =>
      Effect.match((quotas[n % quotas.length] ?? assert.fail()).count(caller), {
        onFailure: ({ retryAfter }) => retryAfter > 1 ? later : retryAfter,
        onSuccess: ({ remaining }) => remaining
      })
  )

/** A store of the counters, as a test starts it. */
interface Server {
  readonly replica: Effect.Effect<Quotas.Quotas["Service"], never, Scope.Scope>
  readonly kill: Effect.Effect<void>
  /** Returns the number of requests in flight. */
  readonly inFlight: Effect.Effect<unknown>
  /** Lets every call in flight be one of a process that has died two minutes ago. */
  readonly giveUp: Effect.Effect<unknown>
}

const key = "test:{quota}:key:desk"

const overRedis = (
  { kill = Effect.void, url }: { readonly url: string; readonly kill?: Effect.Effect<void> }
): Server => {
  const run = <A, E>(use: (redis: Redis.Redis["Service"]) => Effect.Effect<A, E>) =>
    Effect.orDie(Effect.provide(Redis.Redis.use(use), NodeRedis.layer({ url })))
  return {
    kill,
    replica: replicaOf(
      QuotasRedis.layer({ prefix: "test:{quota}:" }),
      Layer.orDie(NodeRedis.layer({ url, disableOfflineQueue: true }))
    ),
    inFlight: run((redis) => redis.send<number>("HLEN", key)),
    giveUp: run((redis) =>
      Effect.gen(function*() {
        const calls = yield* redis.send<ReadonlyArray<string>>("HKEYS", key)
        for (const call of calls) yield* redis.send("HSET", key, call, "1")
      })
    )
  }
}

const overPostgres = (
  { kill = Effect.void, url }: { readonly url: string; readonly kill?: Effect.Effect<void> }
): Server => {
  const run = <A, E>(use: (sql: SqlClient.SqlClient) => Effect.Effect<A, E>) =>
    Effect.orDie(Effect.provide(SqlClient.SqlClient.use(use), PgClient.layer({ url: Redacted.make(url) })))
  return {
    kill,
    replica: replicaOf(QuotasSql.layer({ prefix: "test:" }), Layer.orDie(PgClient.layer({ url: Redacted.make(url) }))),
    inFlight: run((sql) =>
      Effect.map(
        sql`SELECT count(*)::int AS calls FROM trigate_quotas, jsonb_each(running) WHERE caller = ${"test:key:desk"}`,
        ([row]) => row?.["calls"]
      )
    ),
    giveUp: run((sql) =>
      sql`UPDATE trigate_quotas SET running = (SELECT jsonb_object_agg(key, 1) FROM jsonb_each(running))
          WHERE caller = ${"test:key:desk"}`
    )
  }
}

const simulated = Effect.sync((): Server => {
  const store = QuotaCounters.make()
  const { access, kill } = Access.makeSwitched()
  // the time is the store's, as in the real ones
  const clock = Clock.Clock.defaultValue()
  const counters = QuotaCounters.makeCounters(
    store,
    (operation) => Effect.provideService(access(operation), Clock.Clock, clock)
  )
  const running = Effect.sync(() => store.current().get("key:desk")?.value.running ?? new Map<string, number>())
  return {
    kill,
    replica: replicaOf(Layer.effect(Quotas.Quotas, QuotasRedis.make({ name: "Redis", ...counters })), Layer.empty),
    inFlight: Effect.map(running, ({ size }) => size),
    giveUp: Effect.map(running, (requests) => requests.forEach((_, request) => requests.set(request, 1)))
  }
})

const stores = [
  {
    name: "Redis",
    isInstalled: isRedisInstalled,
    start: Effect.map(redisServer, overRedis),
    killable: Effect.map(redisServer, overRedis)
  },
  {
    name: "Postgres",
    isInstalled: isPostgresInstalled,
    start: Effect.map(postgresDatabase, overPostgres),
    killable: Effect.map(postgresServer, overPostgres)
  },
  { name: "a simulated Redis", isInstalled: true, start: simulated, killable: simulated }
] as const

for (const { isInstalled, killable, name, start } of stores) {
  describe.runIf(isInstalled)(`quotas over ${name}`, () => {
    it.effect("are counted by two replicas together, and by each alone while the store is away", () =>
      Effect.gen(function*() {
        const store = yield* killable
        const replicas = [yield* store.replica, yield* store.replica]
        const caller = callerOf({ requestsPerSecond: 0.0001, burst: 4 })
        assert.deepStrictEqual(yield* outcomes(6, replicas, caller), [3, 2, 1, 0, later, later])
        // the time is the store's: a process whose clock runs ahead gains nothing
        yield* TestClock.adjust("1 day")
        assert.deepStrictEqual(yield* outcomes(2, replicas, caller), [later, later])
        yield* store.kill
        assert.deepStrictEqual(yield* outcomes(4, replicas, caller), [3, 3, 2, 2])
      }))

    it.live("come back in the store's own time", () =>
      Effect.gen(function*() {
        const replica = yield* (yield* start).replica
        const caller = callerOf({ requestsPerSecond: 10 })
        const isRefused = Effect.map(Effect.result(replica.count(caller)), ({ _tag }) => _tag === "Failure")
        yield* Effect.repeat(isRefused, { until: (refused) => refused })
        yield* Effect.repeat(Effect.delay(isRefused, "20 millis"), { until: (refused) => !refused })
      }))

    it.effect("count every request once where both replicas count at the same time", () =>
      Effect.gen(function*() {
        const store = yield* start
        const replicas = [yield* store.replica, yield* store.replica]
        const caller = callerOf({ requestsPerSecond: 0.001, burst: 20 })
        const counted = yield* Effect.forEach(
          Array.from({ length: 40 }, (_, n) => replicas[n % 2] ?? assert.fail()),
          (quotas) => Effect.match(quotas.count(caller), { onFailure: () => 0, onSuccess: () => 1 }),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(counted.reduce<number>((sum, one) => sum + one, 0), 20)
      }))

    it.effect("count the calls of a batch, all of them or none", () =>
      Effect.gen(function*() {
        const store = yield* start
        const [one, two] = [yield* store.replica, yield* store.replica]
        const caller = callerOf({ requestsPerSecond: 0.0001, burst: 10, concurrentCalls: 6 })
        const first = yield* one.count(caller, 4)
        assert.strictEqual(first.remaining, 6)
        assert.strictEqual((yield* Effect.flip(two.count(caller, 3))).retryAfter, 1)
        assert.strictEqual((yield* two.count(caller, 2)).remaining, 4)
        first.end()
        const free = Effect.map(Effect.result(two.count(caller, 4)), ({ _tag }) => _tag === "Success")
        yield* Effect.repeat(free, { until: (isFree) => isFree })
        assert.isAbove(
          (yield* Effect.flip(one.count(callerOf({ requestsPerSecond: 0.0001, burst: 10 }), 2))).retryAfter,
          1
        )
      }))

    it.effect("let so many calls run at the same time, and forget those of a process that has died", () =>
      Effect.gen(function*() {
        const store = yield* start
        const [one, two] = [yield* store.replica, yield* store.replica]
        const caller = callerOf({ concurrentCalls: 2 })
        const first = yield* one.count(caller)
        yield* two.count(caller)
        assert.strictEqual((yield* Effect.flip(two.count(caller))).retryAfter, 1)
        first.end()
        const isFree = Effect.map(Effect.result(one.count(caller)), ({ _tag }) => _tag === "Success")
        yield* Effect.repeat(isFree, { until: (free) => free })
        assert.strictEqual((yield* Effect.flip(one.count(caller)))._tag, "QuotaExceeded")
        assert.strictEqual(yield* store.inFlight, 2)
        yield* store.giveUp
        const other = yield* store.replica
        yield* other.count(caller)
        assert.strictEqual(yield* store.inFlight, 1)
      }))
  })
}

it.effect.runIf(isRedisInstalled)(
  "quotas are counted in Redis as in a simulated one, whatever the order of requests",
  () =>
    Effect.gen(function*() {
      const { url } = yield* redisServer
      const redis = Context.get(yield* Layer.build(NodeRedis.layer({ url })), Redis.Redis)
      const reached = new Set<string>()
      for (let run = 0; run < sampleRuns(40); run++) {
        const stores = [
          QuotasRedis.countersIn(redis, `run-${run}:`),
          // hardly any time passes in the real Redis
          QuotaCounters.makeCounters(QuotaCounters.make(), (operation) => Effect.sync(() => operation(0)))
        ]
        // so long that the time of this test does not count
        const interval = run % 2 === 0 ? 0 : 10_000_000
        const tolerance = 12 * interval
        const most = run % 4 < 2 ? 0 : 8
        const running: Array<string> = []
        for (let step = 0; step < 60; step++) {
          const caller = yield* Random.choice(["one", "two"])
          const [ended] = yield* Random.shuffle(running)
          if (ended !== undefined && (yield* Random.choice([true, false, false]))) {
            yield* Effect.forEach(stores, (store) => store.end(caller, ended))
            continue
          }
          const calls = yield* Random.nextIntBetween(1, 4)
          const request = `${step}*${calls}`
          const asked = { caller, request, calls, interval, tolerance, most }
          const [expected, found] = yield* Effect.forEach(
            stores,
            (store) => Effect.map(store.count(asked), ([word, millis]) => `${word} ${Math.round(millis / 1_000_000)}`)
          )
          assert.strictEqual(found, expected, `step ${step} of run ${run}`)
          running.push(request)
          reached.add(String(found?.split(" ")[0]))
        }
      }
      assert.sameMembers([...reached], ["counted", "requests", "concurrent"])
    }).pipe(Random.withSeed(seed))
)
