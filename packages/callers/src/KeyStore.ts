/**
 * The store of a gateway's keys and their format: creates, lists, rotates and revokes keys.
 *
 * The characters of a key need no escaping in a path, a header or a query. Only the SHA-256 of a key is stored. A slow
 * hash is not needed, because 256 random bits cannot be guessed.
 *
 * A name identifies one caller, which can have several keys. This module computes all changes from the records; a
 * backend only stores the result.
 */
import { sha256 } from "@noble/hashes/sha2"
import { bytesToHex } from "@noble/hashes/utils"
import { CallerName, Quota, Scope } from "@trigate/domain/Caller"
import { Millis } from "@trigate/domain/encoding/Encoding"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as DateTime from "effect/DateTime"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import * as Struct from "effect/Struct"

/** The parts of a key, in hex. */
export interface Parts {
  /** Identifies the key in logs and lists; 10 digits. */
  readonly prefix: string
  /** The secret part of the key; 64 digits. */
  readonly secret: string
}

/** Formats a key. */
export const format = ({ prefix, secret }: Parts): string => `tg_${prefix}_${secret}`

/** The length of a key in characters. */
export const length = format({ prefix: "0".repeat(10), secret: "0".repeat(64) }).length

const pattern = /^tg_(?<prefix>[0-9a-f]{10})_(?<secret>[0-9a-f]{64})$/u

/** Parses a key; `undefined` if the text is not a key. */
export const parse = (text: string): Parts | undefined => {
  const { prefix, secret } = pattern.exec(text)?.groups ?? {}
  return prefix === undefined || secret === undefined ? undefined : { prefix, secret }
}

/** Returns the SHA-256 of a key's text in hex. */
export const hashKey = (key: string): string => bytesToHex(sha256(key))

/**
 * Returns the SHA-256 of a text in hex, without caching. Default: {@link hashKey}. A program can replace it, for
 * example with Node's faster implementation.
 */
export const Hasher = Context.Reference<(text: string) => string>("@trigate/callers/KeyStore/Hasher", {
  defaultValue: () => hashKey
})

/** A new key, with the prefix and the hash to store for it. */
export interface Generated {
  readonly key: Redacted.Redacted
  readonly prefix: string
  readonly hash: string
}

/** Generates a key from random bytes. */
export const generate: Effect.Effect<Generated, never, SecureRandom.SecureRandom> = Effect.map(
  SecureRandom.SecureRandom.use(({ randomBytes }) => randomBytes(37)),
  (bytes) => {
    const prefix = bytesToHex(bytes.subarray(0, 5))
    const key = format({ prefix, secret: bytesToHex(bytes.subarray(5)) })
    return { key: Redacted.make(key), prefix, hash: hashKey(key) }
  }
)

const Hex = (digits: number) => Schema.String.check(Schema.isPattern(new RegExp(`^[0-9a-f]{${digits}}$`, "u")))

/** Milliseconds since 1970, encoded as a date and time in UTC. */
const Instant = Schema.DateTimeUtcFromString.pipe(
  Schema.decodeTo(
    Millis,
    SchemaTransformation.transform({
      decode: DateTime.toEpochMillis,
      encode: (millis: number) => DateTime.makeUnsafe(millis)
    })
  )
)

/** The stored record of a key. */
export const KeyRecord = Schema.Struct({
  name: CallerName,
  prefix: Hex(10),
  /** SHA-256 of the whole key, in hex. */
  hash: Hex(64),
  scope: Schema.optionalKey(Scope),
  quota: Schema.optionalKey(Quota),
  createdAt: Instant,
  expiresAt: Schema.optionalKey(Instant),
  revokedAt: Schema.optionalKey(Instant),
  /**
   * The time at which the key was last used. It can be out of date, because it is written only periodically; some
   * backends never write it.
   */
  lastUsedAt: Schema.optionalKey(Instant)
})
export type KeyRecord = typeof KeyRecord.Type

type Ends = Pick<KeyRecord, "expiresAt" | "revokedAt">

/** Returns whether a key is valid at the time `now`: neither expired nor revoked. */
export const isValid = ({ expiresAt, revokedAt }: Ends, now: number): boolean =>
  revokedAt === undefined && (expiresAt === undefined || expiresAt > now)

/** Returns the state of a key at the time `now`. */
export const keyState = (key: Ends, now: number): "valid" | "expired" | "revoked" =>
  isValid(key, now) ? "valid" : key.revokedAt === undefined ? "expired" : "revoked"

/** The keys cannot be read or written; the message is one line. */
export class KeyStoreFault extends Schema.TaggedError<KeyStoreFault>()("KeyStoreFault", {
  /**
   * `away`: the store is unreachable. `malformed`: the stored keys cannot be decoded. `newer`: a later version of the
   * program wrote the keys, so a retry does not help.
   */
  reason: Schema.Literals(["away", "malformed", "newer"]),
  message: Schema.String
}) {}

/**
 * The requested change contradicts the existing keys, for example because the caller already has a valid key. The
 * message is one line.
 */
export class KeyRefusal extends Schema.TaggedError<KeyRefusal>()("KeyRefusal", { message: Schema.String }) {}

/** A new key with its full text. The store contains only the key's hash. */
export interface Issued {
  readonly key: Redacted.Redacted
  readonly record: KeyRecord
}

/** A key for a caller that has no valid key: the caller's name, and the key's scope, quota and lifetime. */
export interface Creation {
  readonly name: string
  readonly scope?: Scope
  readonly quota?: Quota
  /** The lifetime of the key. Default: unlimited. */
  readonly lifetime?: Duration.Input
}

/** The rotation of a caller's key. */
export interface Rotation {
  readonly name: string
  /** How long the caller's earlier keys remain valid. A key that expires earlier is not extended. */
  readonly overlap: Duration.Input
  /** The lifetime of the new key. Default: the lifetime of the caller's previous key. */
  readonly lifetime?: Duration.Input
}

/**
 * All keys, and the version of the store. Every change of a key changes the version, except an update of its last-use
 * time.
 */
export interface Snapshot {
  readonly version: string
  readonly records: ReadonlyArray<KeyRecord>
}

/**
 * The result of a change: new records, and replacements of existing records. A replacement has the same key prefix as
 * the record that it replaces.
 */
export interface Change {
  readonly added: ReadonlyArray<KeyRecord>
  readonly replaced: ReadonlyArray<KeyRecord>
}

/** The storage of records. */
export interface Backend {
  /** Returns all records and the version of the store; `undefined` if the version equals `known`. */
  readonly since: (known: string | undefined) => Effect.Effect<Snapshot | undefined, KeyStoreFault>
  /** Atomically reads the records, calls `change` with them, and stores the result. */
  readonly modify: <A extends Change>(
    change: (records: ReadonlyArray<KeyRecord>) => Result.Result<A, KeyRefusal>
  ) => Effect.Effect<A, KeyStoreFault | KeyRefusal>
  /** Stores the last-use times of keys, by the prefix of the key. */
  readonly noteUses: (uses: ReadonlyMap<string, number>) => Effect.Effect<void, KeyStoreFault>
}

/**
 * The keys of a gateway.
 *
 * Provided by `KeyStoreFile.layer`, `KeyStoreSql.layer` or `KeyStore.layerMemory`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { KeyStore } from "@trigate/callers"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { create, list, rotate } = yield* KeyStore.KeyStore
 *   yield* create({ name: "desk", quota: { requestsPerSecond: 20 }, lifetime: "90 days" })
 *   yield* rotate({ name: "desk", overlap: "12 hours" })
 *   yield* Console.log((yield* list).map(({ name }) => name))
 * })
 *
 * await Effect.runPromise(Effect.provide(program, KeyStore.layerMemory))
 * ```
 * ```text
 * [ 'desk', 'desk' ]
 * ```
 */
export class KeyStore extends Context.Service<
  KeyStore,
  Pick<Backend, "since" | "noteUses"> & {
    /** Returns all keys, including expired and revoked ones, in the order of creation. */
    readonly list: Effect.Effect<ReadonlyArray<KeyRecord>, KeyStoreFault>
    /**
     * Creates a key for a caller that has no valid key. Fails with `KeyRefusal` if the caller has a valid key, or if
     * the name is malformed.
     */
    readonly create: (creation: Creation) => Effect.Effect<Issued, KeyStoreFault | KeyRefusal>
    /**
     * Creates a new key with the scope and quota of a caller's existing key. The earlier keys of the caller expire
     * after the overlap.
     */
    readonly rotate: (rotation: Rotation) => Effect.Effect<Issued, KeyStoreFault | KeyRefusal>
    /** Immediately revokes all keys of a caller, or only the key with the given prefix. Returns the revoked keys. */
    readonly revoke: (
      caller: { readonly name: string; readonly prefix?: string }
    ) => Effect.Effect<ReadonlyArray<KeyRecord>, KeyStoreFault | KeyRefusal>
  }
>()("@trigate/callers/KeyStore") {}

const isName = Schema.is(CallerName)

const refuse = (message: string) => Result.fail(new KeyRefusal({ message }))

const parseLifetime = (input: Duration.Input | undefined) => input === undefined ? undefined : Duration.toMillis(input)

/** Makes the record of a key that is issued now; `lifetime` is in milliseconds, unlimited if `undefined`. */
const makeRecord = (
  { hash, name, prefix, quota, scope }: Pick<KeyRecord, "hash" | "name" | "prefix"> & {
    readonly scope?: Scope | undefined
    readonly quota?: Quota | undefined
  },
  now: number,
  lifetime: number | undefined
): KeyRecord => ({
  name,
  prefix,
  hash,
  ...(scope === undefined ? {} : { scope }),
  ...(quota === undefined ? {} : { quota }),
  createdAt: now,
  ...(lifetime === undefined ? {} : { expiresAt: now + lifetime })
})

/** Makes the service from a backend. */
export const make = ({ modify, noteUses, since }: Backend): Effect.Effect<
  KeyStore["Service"],
  never,
  SecureRandom.SecureRandom
> =>
  Effect.map(SecureRandom.SecureRandom, (random) => {
    const generated = Effect.zip(
      Effect.provideService(generate, SecureRandom.SecureRandom, random),
      Clock.currentTimeMillis
    )
    const list = Effect.map(since(undefined), (snapshot) => snapshot?.records ?? [])
    return KeyStore.of({
      since,
      noteUses,
      list,
      create: Effect.fn("KeyStore.create")(function*({ lifetime, name, quota, scope }) {
        const [{ hash, key, prefix }, now] = yield* generated
        const { record } = yield* modify((records) => {
          if (!isName(name)) return refuse("A name consists of 1 to 64 letters, digits, dots, dashes and underscores")
          if (records.some((each) => each.name === name && isValid(each, now))) {
            return refuse(`${name} already has a key: rotate it, or revoke it first`)
          }
          const record = makeRecord({ name, prefix, hash, scope, quota }, now, parseLifetime(lifetime))
          return Result.succeed({ added: [record], replaced: [], record })
        })
        return { key, record }
      }),
      rotate: Effect.fn("KeyStore.rotate")(function*({ lifetime, name, overlap }) {
        const [{ hash, key, prefix }, now] = yield* generated
        const until = now + (parseLifetime(overlap) ?? 0)
        const { record } = yield* modify((records) => {
          const valid = records.filter((each) => each.name === name && isValid(each, now))
          const last = valid.at(-1)
          if (last === undefined) return refuse(`${name} has no valid key: create one`)
          const meant = last.expiresAt === undefined ? undefined : last.expiresAt - last.createdAt
          const record = makeRecord({ ...last, prefix, hash }, now, parseLifetime(lifetime) ?? meant)
          const replaced = valid.map((each) =>
            Struct.assign(each, { expiresAt: Math.min(each.expiresAt ?? until, until) })
          )
          return Result.succeed({ added: [record], replaced, record })
        })
        return { key, record }
      }),
      revoke: Effect.fn("KeyStore.revoke")(function*({ name, prefix }) {
        const now = yield* Clock.currentTimeMillis
        const { replaced } = yield* modify((records) => {
          const ended = records.filter((each) =>
            each.name === name && (prefix === undefined || each.prefix === prefix) && isValid(each, now)
          )
          return ended.length === 0
            ? refuse(`${name} has no valid ${prefix === undefined ? "key" : `key ${prefix}`}`)
            : Result.succeed({ added: [], replaced: ended.map((each) => Struct.assign(each, { revokedAt: now })) })
        })
        return replaced
      })
    })
  })

/** Applies a change to records, and returns the resulting records. */
export const changed = (records: ReadonlyArray<KeyRecord>, { added, replaced }: Change): ReadonlyArray<KeyRecord> => {
  const others = new Map(replaced.map((record) => [record.prefix, record]))
  return [...records.map((record) => others.get(record.prefix) ?? record), ...added]
}

/**
 * Provides a store in memory. Its keys are lost when the process ends.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory: Layer.Layer<KeyStore> = Layer.effect(
  KeyStore,
  Effect.suspend(() => {
    let state: { readonly version: number; readonly records: ReadonlyArray<KeyRecord> } = { version: 0, records: [] }
    return make({
      since: (known) =>
        Effect.sync(() => {
          const version = String(state.version)
          return known === version ? undefined : { version, records: state.records }
        }),
      modify: (change) =>
        Effect.suspend(() => {
          const result = change(state.records)
          if (Result.isSuccess(result)) {
            state = { version: state.version + 1, records: changed(state.records, result.success) }
          }
          return Effect.fromResult(result)
        }),
      noteUses: (uses) =>
        Effect.sync(() => {
          const records = state.records.map((record) => {
            const lastUsedAt = uses.get(record.prefix)
            return lastUsedAt === undefined ? record : { ...record, lastUsedAt }
          })
          state = { ...state, records }
        })
    })
  })
).pipe(Layer.provide(SecureRandom.layerWebCrypto))
