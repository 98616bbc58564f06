/** Quotas over a store that answers late, which a caller may bring about by asking much. */
import * as NodeRedis from "@effect/platform-node/NodeRedis"
import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, it } from "@effect/vitest"
import * as Quotas from "@trigate/callers/Quotas"
import type { Caller } from "@trigate/domain/Caller"
import * as QuotasRedis from "@trigate/server/unstable/stores/QuotasShared"
import * as QuotasSql from "@trigate/server/unstable/stores/QuotasSql"
import { isInstalled as isPostgresInstalled, postgresDatabase } from "@trigate/testing/PostgresServer"
import { isInstalled as isRedisInstalled, redisServer } from "@trigate/testing/RedisServer"
import { sample } from "@trigate/testing/Sample"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import { lateProxy } from "./lateProxy.ts"

/** The longest delay of an answer in milliseconds: longer than a store is waited for. */
const longest = 1000

const burst = 20

const caller: Caller = { id: "key:desk", scope: {}, quota: { requestsPerSecond: 0.0001, burst } }

const stores = [
  {
    name: "Redis",
    isInstalled: isRedisInstalled,
    server: redisServer,
    over: (_url: string, port: number) =>
      Layer.provide(
        QuotasRedis.layer({ prefix: "test:{quota}:" }),
        Layer.orDie(NodeRedis.layer({ url: `redis://127.0.0.1:${port}`, disableOfflineQueue: true }))
      )
  },
  {
    name: "Postgres",
    isInstalled: isPostgresInstalled,
    server: postgresDatabase,
    over: (url: string, port: number) => {
      const late = new URL(url)
      late.port = String(port)
      return Layer.provide(
        QuotasSql.layer({ prefix: "test:" }),
        Layer.orDie(PgClient.layer({ url: Redacted.make(late.href) }))
      )
    }
  }
] as const

for (const { isInstalled, name, over, server } of sample("stores that answer late", stores, 1)) {
  describe.runIf(isInstalled)(`quotas over a ${name} that answers late`, () => {
    it.live(
      "let each replica alone serve at most the caller's burst besides what the store grants",
      () =>
        Effect.gen(function*() {
          const { url } = yield* server
          const port = yield* lateProxy(url, longest)
          const replica = Effect.map(
            Layer.build(Layer.fresh(Layer.provide(over(url, port), Logger.layer([])))),
            (context) => Context.get(context, Quotas.Quotas)
          )
          const replicas = [yield* replica, yield* replica]
          const counted = yield* Effect.forEach(
            Array.from({ length: 200 }, (_, index) => replicas[index % 2] ?? assert.fail()),
            (quotas) => Effect.map(Effect.result(quotas.count(caller)), ({ _tag }) => _tag === "Success"),
            { concurrency: 16 }
          )
          const served = counted.filter(Boolean).length
          // what the store granted, and besides it what each process grants alone
          assert.isAtLeast(served, burst)
          assert.isAtMost(served, 3 * burst)
        }),
      30_000
    )
  })
}
