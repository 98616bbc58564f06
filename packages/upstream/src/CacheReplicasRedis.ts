/** `CacheReplicas` in Redis: one key for each answer, gone when the answer is of no use any more. */
import * as Utf8 from "@trigate/domain/Utf8"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redis from "effect/persistence/Redis"
import * as Schema from "effect/Schema"
import type { CachedResponse } from "./CachedResponse.ts"
import { useLeft } from "./CachedResponse.ts"
import { CacheReplicas } from "./CacheReplicas.ts"
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
  cachePolicy: Schema.Struct({ fresh: Millis, refreshAfter: Schema.optionalKey(Millis), stale: Millis }),
  head: Schema.String,
  form: Schema.Literals(["text", "bytes"]),
  body: Schema.String
}))
const decode = Schema.decodeUnknownOption(Stored)
const encode = Schema.encodeEffect(Stored)

const toKept = ({ body, form, head, cachePolicy, readAt }: typeof Stored.Type): CachedResponse => ({
  readAt,
  cachePolicy,
  content: { head, body: form === "text" ? body : Utf8.encode(body) }
})

// bytes that are no text could not come back as they were
const toStored = (
  { content: { body, head }, cachePolicy, readAt }: CachedResponse
): Option.Option<typeof Stored.Type> =>
  typeof body === "string"
    ? Option.some({ readAt, cachePolicy, head, form: "text", body })
    : Option.map(
      Utf8.decode(body),
      (text) => ({ readAt, cachePolicy, head, form: "bytes" as const, body: text })
    )

const away = (error: Redis.RedisError) => new SharedState.SharedAway({ detail: String(error.cause) })

const make = Effect.fnUntraced(function*({ deadline, prefix = "trigate:cache:" }: Options) {
  const redis = yield* Redis.Redis
  const shared = yield* SharedState.make({ use: "cache", ...(deadline === undefined ? {} : { deadline }) })

  const get = (key: string): Effect.Effect<CachedResponse | undefined> =>
    Effect.map(
      shared.orElse(Effect.mapError(redis.send("GET", `${prefix}${key}`), away), Effect.succeed(null)),
      // what another version of the gateway wrote is no answer
      (stored) => Option.getOrUndefined(Option.map(decode(stored), toKept))
    )

  const put = Effect.fnUntraced(function*(key: string, kept: CachedResponse) {
    const left = Math.floor(useLeft(kept, yield* Clock.currentTimeMillis))
    const stored = toStored(kept)
    if (left < 1 || Option.isNone(stored)) return
    const text = yield* Effect.orDie(encode(stored.value))
    yield* shared.orElse(
      Effect.mapError(redis.send("SET", `${prefix}${key}`, text, "PX", String(left)), away),
      Effect.void
    )
  })

  return CacheReplicas.of({ get, put, isShared: true })
})

/** The answers of everybody with the same Redis and prefix. */
export const layer = (options: Options = {}): Layer.Layer<CacheReplicas, never, Redis.Redis> =>
  Layer.effect(CacheReplicas, make(options))
