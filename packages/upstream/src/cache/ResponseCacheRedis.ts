/** The cached responses that the replicas of a gateway share: one Redis key each, with an expiry. */
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redis from "effect/persistence/Redis"
import * as Schema from "effect/Schema"
import * as SharedState from "../SharedState.ts"
import type { CachedResponse } from "./CacheStore.ts"
import { useLeft } from "./CacheStore.ts"

/**
 * Shared responses by key. While the store is unreachable, every lookup misses, and no call waits longer than the
 * store's deadline.
 */
export interface Replicas {
  readonly get: (key: string) => Effect.Effect<CachedResponse | undefined>
  readonly put: (key: string, cached: CachedResponse) => Effect.Effect<void>
}

/**
 * Maximum milliseconds for which Redis stores a response that can no longer change. Without this limit, such responses
 * would accumulate.
 */
const finalFor = 3_600_000

/** The Redis key prefix of the responses, and the timeout of operations. */
export interface Options {
  /** Prefix of the keys. Default: `trigate:cache:`. */
  readonly prefix?: string
  /** Timeout of one operation in Redis. Default: 250 milliseconds. */
  readonly deadline?: Duration.Input
}

const Millis = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))

const Stored = Schema.fromJsonString(Schema.Struct({
  readAt: Millis,
  policy: Schema.Struct({
    fresh: Millis,
    refreshAfter: Schema.optionalKey(Millis),
    staleIfError: Millis,
    staleIfLimited: Schema.optionalKey(Millis)
  }),
  head: Schema.String,
  form: Schema.Literals(["text", "bytes"]),
  body: Schema.String
}))
const decode = Schema.decodeUnknownOption(Stored)
const encode = Schema.encodeEffect(Stored)

const fromStored = ({ body, form, head, policy, readAt }: typeof Stored.Type): CachedResponse => ({
  readAt,
  policy,
  content: { head, body: form === "text" ? body : Utf8.encode(body) }
})

// a body that is not valid UTF-8 is not stored, because it could not be restored from text
const toStored = ({ content: { body, head }, policy, readAt }: CachedResponse): Option.Option<typeof Stored.Type> =>
  typeof body === "string"
    ? Option.some({ readAt, policy, head, form: "text", body })
    : Option.map(Utf8.decode(body), (text) => ({ readAt, policy, head, form: "bytes" as const, body: text }))

/** Makes the shared responses of all replicas with the same Redis and prefix. */
export const make = Effect.fnUntraced(function*({ deadline, prefix = "trigate:cache:" }: Options) {
  const redis = yield* Redis.Redis
  const shared = yield* SharedState.make({ use: "cache", ...(deadline === undefined ? {} : { deadline }) })

  const get = (key: string): Effect.Effect<CachedResponse | undefined> =>
    Effect.map(
      shared.orElse(
        Effect.mapError(redis.send("GET", `${prefix}${key}`), SharedState.unreachable),
        Effect.succeed(null)
      ),
      // an entry that a different version of the gateway stored may not decode, and then counts as missing
      (stored) => Option.getOrUndefined(Option.map(decode(stored), fromStored))
    )

  const put = Effect.fnUntraced(function*(key: string, cached: CachedResponse) {
    const useful = Math.floor(useLeft(cached, yield* Clock.currentTimeMillis))
    const left = cached.policy.isFinal === true ? Math.min(useful, finalFor) : useful
    const stored = toStored(cached)
    if (left < 1 || Option.isNone(stored)) return
    const text = yield* Effect.orDie(encode(stored.value))
    yield* shared.orElse(
      Effect.mapError(redis.send("SET", `${prefix}${key}`, text, "PX", String(left)), SharedState.unreachable),
      Effect.void
    )
  })

  const replicas: Replicas = { get, put }
  return replicas
})
