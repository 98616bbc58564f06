/** `ReplicaCache` in Redis: one key for each answer, gone when the answer is of no use any more. */
import * as Relayed from "@trigate/domain/Relayed"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redis from "effect/persistence/Redis"
import * as Schema from "effect/Schema"
import type { Kept } from "./Kept.ts"
import { useLeft } from "./Kept.ts"
import { ReplicaCache } from "./ReplicaCache.ts"
import * as SharedState from "./SharedState.ts"

/** Where in Redis, and how long it is waited for. */
export interface Options {
  /** What the keys begin with; `trigate:cache:` when not given. */
  readonly prefix?: string
  /** How long Redis may take for one step; 250 milliseconds when not given. */
  readonly deadline?: Duration.Input
}

const Millis = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))

const Stored = Schema.fromJsonString(Schema.Struct({
  readAt: Millis,
  keeping: Schema.Struct({ fresh: Millis, renewAfter: Schema.optionalKey(Millis), stale: Millis }),
  head: Schema.String,
  form: Schema.Literals(["text", "bytes"]),
  body: Schema.String
}))
const decode = Schema.decodeUnknownOption(Stored)
const encode = Schema.encodeEffect(Stored)

const toKept = ({ body, form, head, keeping, readAt }: typeof Stored.Type): Kept => ({
  readAt,
  keeping,
  content: { head, body: form === "text" ? body : Relayed.bytes(body) }
})

// bytes that are no text could not come back as they were
const toStored = ({ content: { body, head }, keeping, readAt }: Kept): Option.Option<typeof Stored.Type> =>
  typeof body === "string"
    ? Option.some({ readAt, keeping, head, form: "text", body })
    : Option.map(Relayed.utf8(body), (text) => ({ readAt, keeping, head, form: "bytes" as const, body: text }))

const away = (error: Redis.RedisError) => new SharedState.SharedAway({ detail: String(error.cause) })

const make = Effect.fnUntraced(function*({ deadline, prefix = "trigate:cache:" }: Options) {
  const redis = yield* Redis.Redis
  const shared = yield* SharedState.make({ use: "cache", ...(deadline === undefined ? {} : { deadline }) })

  const get = (key: string): Effect.Effect<Kept | undefined> =>
    Effect.map(
      shared.orElse(Effect.mapError(redis.send("GET", `${prefix}${key}`), away), Effect.succeed(null)),
      // what another version of the gateway wrote is no answer
      (stored) => Option.getOrUndefined(Option.map(decode(stored), toKept))
    )

  const put = Effect.fnUntraced(function*(key: string, kept: Kept) {
    const left = Math.floor(useLeft(kept, yield* Clock.currentTimeMillis))
    const stored = toStored(kept)
    if (left < 1 || Option.isNone(stored)) return
    const text = yield* Effect.orDie(encode(stored.value))
    yield* shared.orElse(
      Effect.mapError(redis.send("SET", `${prefix}${key}`, text, "PX", String(left)), away),
      Effect.void
    )
  })

  return ReplicaCache.of({ get, put, isShared: true })
})

/** The answers of everybody with the same Redis and prefix. */
export const layer = (options: Options = {}): Layer.Layer<ReplicaCache, never, Redis.Redis> =>
  Layer.effect(ReplicaCache, make(options))
