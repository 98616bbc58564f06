/**
 * `Quotas` that all processes with the same Postgres database share. Each request runs one statement.
 *
 * The database has one row for each caller: the time at which the caller's next request is allowed, and the expiry of
 * each of the caller's requests in flight. The table is unlogged: if the database server crashes, Postgres empties the
 * table, and every caller has its full burst again.
 */
import * as Quotas from "@trigate/callers/Quotas"
import * as SqlStore from "@trigate/stores/unstable/SqlStore"
import { SharedStoreUnreachable } from "@trigate/upstream/unstable/SharedState"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as SqlClient from "effect/sql/SqlClient"
import * as QuotasShared from "./QuotasShared.ts"

/** The prefix of callers' names in the table, and the timeout. */
export interface Options {
  /** Prefix of callers' names. Default: empty. Processes with the same prefix share counters. */
  readonly prefix?: string
  /** Timeout of one statement. Default: 250 milliseconds. */
  readonly deadline?: Duration.Input
}

const createTable = `CREATE UNLOGGED TABLE trigate_quotas (
  caller TEXT NOT NULL PRIMARY KEY,
  next DOUBLE PRECISION NOT NULL,
  running JSONB NOT NULL
)`

const decodeCounted = Schema.decodeUnknownEffect(Schema.Array(Schema.Struct({ ahead: Schema.Finite })))
const decodeFound = Schema.decodeUnknownEffect(
  Schema.Tuple([Schema.Struct({ ahead: Schema.Finite, is_full: Schema.Boolean })])
)

const make = Effect.fnUntraced(function*({ prefix = "", ...options }: Options) {
  const { sql, step } = yield* SqlStore.make({
    table: "trigate_quotas_migrations",
    migrations: () => ({ "0001_create_quotas": [createTable] }),
    toError: ({ tag }) => new SharedStoreUnreachable({ detail: tag })
  })

  const now = sql.literal("(extract(epoch FROM statement_timestamp()) * 1000)::float8")

  /** Returns the SQL for the number of concurrent calls: the sum of the numbers at the end of the requests' names. */
  const runningIn = (column: string) =>
    sql`(SELECT coalesce(sum(coalesce(substring(key FROM '[*]([0-9]+)$'), '1')::int), 0)
      FROM jsonb_each(${sql.literal(column)}) WHERE value::float8 > ${now})`

  const counted = ({ calls, caller, interval, most, request, tolerance }: Quotas.CountRequest) => {
    const maxAhead = interval === 0 ? Number.MAX_VALUE : tolerance - (calls - 1) * interval + Quotas.rounding
    const until = sql`jsonb_build_object(${request}::text, ${now} + ${Quotas.givenUpAfter}::float8)`
    return sql`INSERT INTO trigate_quotas AS held (caller, next, running)
      VALUES (${prefix + caller}, ${now} + ${calls * interval}::float8, ${most > 0 ? until : sql`'{}'::jsonb`})
      ON CONFLICT (caller) DO UPDATE SET
        next = greatest(held.next, ${now}) + ${calls * interval}::float8,
        running = excluded.running || coalesce(
          (SELECT jsonb_object_agg(key, value) FROM jsonb_each(held.running) WHERE value::float8 > ${now}), '{}'
        )
      WHERE greatest(held.next - ${now}, 0) <= ${maxAhead}::float8
        AND (${most}::int = 0 OR ${runningIn("held.running")} + ${calls}::int <= ${most}::int)
      RETURNING greatest(next - ${now}, 0) AS ahead`
  }

  const found = ({ calls, caller, most }: Quotas.CountRequest) =>
    sql`SELECT greatest(next - ${now}, 0) AS ahead,
        ${most}::int > 0 AND ${runningIn("running")} + ${calls}::int > ${most}::int AS is_full
      FROM trigate_quotas WHERE caller = ${prefix + caller}`

  return yield* QuotasShared.make({
    ...options,
    name: "Postgres",
    count: (request) =>
      step(Effect.gen(function*() {
        const [row] = yield* decodeCounted(yield* counted(request))
        if (row !== undefined) return ["counted", row.ahead] as const
        const [{ ahead, is_full: isFull }] = yield* decodeFound(yield* found(request))
        return isFull
          ? ["concurrent", 0] as const
          : ["requests", Math.max(0, ahead + (request.calls - 1) * request.interval - request.tolerance)] as const
      })),
    end: (caller, request) =>
      step(sql`UPDATE trigate_quotas SET running = running - ${request}::text WHERE caller = ${prefix + caller}`)
  })
})

/**
 * Quotas shared through Postgres. Creates the table at the first use.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options = {}): Layer.Layer<Quotas.Quotas, never, SqlClient.SqlClient> =>
  Layer.effect(Quotas.Quotas, make(options))
