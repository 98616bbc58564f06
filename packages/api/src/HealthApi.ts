/** Liveness, readiness and metrics. */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import * as Paths from "./Paths.ts"
import { Problems } from "./RouteParts.ts"

/** The mode of one chain (live, sandbox or not configured), and its upstreams. */
export const ChainReadiness = Schema.Struct({
  mode: Schema.Literals(["live", "sandbox", "not-configured"]),
  upstreams: Schema.Record(Schema.String, Schema.Natural).annotate({
    description: "Number of configured addresses by upstream"
  })
}).annotate({ identifier: "ChainReadiness" })

/** The members of `Readiness` that `degraded` may name. */
export const degradable = ["actionLog", "callers", "redis", "eventLog"] as const

/** Whether the gateway accepts traffic, and the mode of each chain (live, sandbox or not configured). */
export const Readiness = Schema.Struct({
  status: Schema.Literals(["ready", "draining", "full", "without-keys"]),
  sandbox: Schema.Boolean,
  network: Schema.Literals(["mainnet", "testnet"]),
  chains: Schema.optionalKey(
    Schema.Struct({ trading: ChainReadiness, tokens: ChainReadiness, layer2: ChainReadiness })
  ).annotateKey({
    description:
      "If the gateway has an admin listener, only responses on that listener contain `chains` and all members after it"
  }),
  catalog: Schema.optionalKey(Schema.String).annotateKey({
    description: "The date of the catalog of actions, queries and subscriptions, such as `2026-11-28`"
  }),
  degraded: Schema.optionalKey(Schema.Array(Schema.Literals(degradable))).annotateKey({
    description:
      "The members below whose part of the gateway does not work, or not for every account; empty if everything works"
  }),
  actionLog: Schema.optionalKey(Schema.Struct({
    backing: Schema.Literals(["memory", "SQLite", "Postgres", "Redis"]),
    state: Schema.Literals(["up", "away"]),
    used: Schema.Struct({ familiar: Schema.Finite, strangers: Schema.Finite }).annotateKey({
      description:
        "Used fraction, from 0 to 1, of the two quotas for unanswered actions. `familiar`: the quota of signers " +
        "with an earlier accepted action, or on an allow-list. `strangers`: the quota of all other signers"
    }),
    room: Schema.Literals(["enough", "nearly full", "full"]).annotateKey({
      description:
        "`nearly full` if at least four fifths of one quota (`familiar` or `strangers`) are used, `full` if both " +
        "quotas are used up"
    })
  })).annotateKey({
    description:
      "Where the action log is stored, and whether that store is reachable. While a database is unreachable, signed " +
      "actions are refused. While Redis is unreachable, a nonce is compared only with nonces that this process received"
  }),
  callers: Schema.optionalKey(Schema.Literals(["up", "away", "unread"])).annotateKey({
    description:
      "Whether the keys of callers can be read; absent if no keys are required. `away`: the key store is unreachable, and the " +
      "keys that were read last remain valid. `unread`: the keys have never been read, so every caller is refused"
  }),
  redis: Schema.optionalKey(Schema.Literals(["up", "away"])).annotateKey({
    description:
      "Whether the Redis that is shared by replicas is reachable; absent if Redis is not configured. While it is " +
      "unreachable, the gateway still accepts traffic"
  }),
  eventLog: Schema.optionalKey(Schema.Struct({
    backing: Schema.Literals(["memory", "Redis", "Postgres"]),
    state: Schema.Literals(["up", "away"]),
    role: Schema.Literals(["writer", "reader", "alone"]).annotateKey({
      description:
        "`writer`: this replica writes the log. `reader`: another replica writes the log. `alone`: the store is " +
        "unreachable, and this replica writes its own log. A stream that read the shared log cannot resume in this " +
        "replica's own log, and vice versa"
    }),
    position: Schema.String.annotateKey({
      description:
        "`<epoch>:<seq>` of the newest event that this replica has. Replicas that share the log have the same position"
    }),
    accounts: Schema.Struct({
      waiting: Schema.Natural,
      subscribing: Schema.Natural,
      refilling: Schema.Natural,
      live: Schema.Natural
    })
      .annotateKey({
        description:
          "The number of watched accounts in each phase. `waiting`: the venue or a limit refused the subscriptions, which " +
          "are attempted again every 10 seconds; or the store is unreachable, and the last writer records the account. " +
          "`subscribing`: the venue has not accepted the subscriptions yet. " +
          "`refilling`: missed events are being queried. `live`: the log of the account is complete"
      }),
    unrecorded: Schema.Natural.annotateKey({
      description: "The number of accounts whose events should arrive at this replica, but do not: the accounts of " +
        "`TRIGATE_WATCH_ACCOUNTS`, and others whose log had begun"
    })
  })).annotateKey({
    description: "The log of account events, such as fills; absent if the venue is not configured"
  })
}).annotate({ identifier: "Readiness" })
export type Readiness = typeof Readiness.Type

/** The response of `GET /health/live`: the process is running. */
export const Liveness = Schema.Struct({ status: Schema.Literal("live") }).annotate({ identifier: "Liveness" })

export class HealthApi extends HttpApiGroup.make("health").add(
  HttpApiEndpoint.get("live", "/health/live", { success: Liveness })
    .annotateMerge(OpenApi.annotations({ summary: "Whether the process runs" })),
  HttpApiEndpoint.get("ready", Paths.ready, {
    success: [Readiness, Readiness.pipe(HttpApiSchema.status(503))]
  }).annotateMerge(OpenApi.annotations({
    summary: "Whether the gateway accepts traffic, and the mode of each chain",
    description:
      "Responds with 503 while the gateway drains after SIGTERM, while its action log is full for every caller, and until the " +
      "keys of its callers have been read for the first time."
  })),
  HttpApiEndpoint.get("metrics", Paths.metrics, {
    success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/plain; version=0.0.4; charset=utf-8" }))
  }).annotateMerge(OpenApi.annotations({ summary: "Metrics in Prometheus text" }))
).middleware(Problems).annotateMerge(
  OpenApi.annotations({ title: "Health", description: "Liveness, readiness and metrics" })
) {}
