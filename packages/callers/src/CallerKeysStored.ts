/**
 * `CallerKeys` that checks keys against a `KeyStore`.
 *
 * The valid keys are cached in memory, so checking a key reads neither a file nor a database. The store is queried for
 * changes every second, and immediately after a request with an unknown key. Therefore a new key works immediately.
 */
import type { Caller } from "@trigate/domain/Caller"
import { Unauthorized, UpstreamUnavailable } from "@trigate/domain/errors/GatewayError"
import * as SharedStore from "@trigate/stores/unstable/SharedStore"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import { CallerKeys, metrics } from "./CallerKeys.ts"
import * as Key from "./KeyStore.ts"

/** The intervals and the timeout of reads from the store. */
export interface Options {
  /**
   * Time between two queries for changed keys. While the store is reachable, a revoked key is refused after at most
   * this time. Default: 1 second.
   */
  readonly interval?: Duration.Input
  /**
   * Minimum time between two queries for changed keys, if the queries are caused by requests with unknown keys.
   * Default: 50 milliseconds.
   */
  readonly spacing?: Duration.Input
  /** Timeout of a query to the store. Default: 2 seconds. */
  readonly deadline?: Duration.Input
  /** Time between two updates of the keys' last-use times in the store. Default: 1 minute. */
  readonly usesEvery?: Duration.Input
}

interface Known {
  readonly caller: Caller
  readonly prefix: string
  readonly expiresAt: number
}

const toKnown = ({ expiresAt = Infinity, name, prefix, quota = {}, scope = {} }: Key.KeyRecord): Known => ({
  caller: { id: `key:${name}`, key: prefix, scope, quota },
  prefix,
  expiresAt
})

const unknown = Effect.suspend(() =>
  Effect.fail(new Unauthorized({ detail: "The key is unknown, expired or revoked" }))
)

const unreadable = Effect.suspend(() =>
  Effect.fail(
    new UpstreamUnavailable({
      upstream: "caller-keys",
      attempts: 1,
      detail: "The keys of callers cannot be read; try again later"
    })
  )
)

const make = Effect.fnUntraced(function*(options: Options) {
  const store = yield* Key.KeyStore
  const hasher = yield* Key.Hasher
  const deadline = options.deadline ?? "2 seconds"
  const asked = yield* Queue.sliding<void>(1)
  let known: ReadonlyMap<string, Known> = new Map()
  let version: string | undefined
  let reading = Deferred.makeUnsafe<void>()

  const inTime = SharedStore.within(deadline, (message) => new Key.KeyStoreFault({ reason: "away", message }))
  const read = Effect.gen(function*() {
    const snapshot = yield* inTime(store.since(version))
    if (snapshot === undefined) return
    const now = yield* Clock.currentTimeMillis
    known = new Map(
      snapshot.records.filter((record) => Key.isValid(record, now)).map((record) => [record.hash, toKnown(record)])
    )
    version = snapshot.version
  })
  const outage = SharedStore.makeOutage<Key.KeyStoreFault>(metrics.callerKeysDegraded.series({}), {
    away: ({ message }) =>
      Effect.logError(
        version === undefined
          ? `The keys of callers cannot be read, so every caller is refused: ${message}`
          : `The keys of callers cannot be read, so the previous ones stay in use: ${message}`
      ),
    back: Effect.logInfo("The keys of callers can be read")
  })
  const readAgain = Effect.ignore(outage.observe(read))
  const round = Effect.gen(function*() {
    yield* Effect.timeoutOption(Queue.take(asked), options.interval ?? "1 second")
    const begun = reading
    reading = Deferred.makeUnsafe()
    yield* readAgain
    Deferred.doneUnsafe(begun, Effect.void)
    yield* Effect.sleep(options.spacing ?? "50 millis")
  })
  // waits for a read of the store that starts after this point
  const nextReading = Effect.suspend(() => {
    Queue.offerUnsafe(asked, undefined)
    return Deferred.await(reading)
  })

  let uses = new Map<string, number>()
  const writeUses = Effect.suspend(() => {
    const noted = uses
    if (noted.size === 0) return Effect.void
    uses = new Map()
    const keep = Effect.sync(() => {
      uses = new Map([...noted, ...uses])
    })
    return store.noteUses(noted).pipe(Effect.timeout(deadline), Effect.catch(() => keep))
  })

  const valid = (hash: string, now: number): Caller | undefined => {
    const one = known.get(hash)
    if (one === undefined || one.expiresAt <= now) return undefined
    uses.set(one.prefix, now)
    return one.caller
  }

  // fails at startup if the key store is malformed, but retries if it is unreachable
  yield* Effect.catchIf(read, ({ reason }) => reason === "away", () => readAgain)
  yield* Effect.forkScoped(Effect.forever(round))
  yield* Effect.forkScoped(Effect.forever(Effect.delay(writeUses, options.usesEvery ?? "1 minute")))
  yield* Effect.addFinalizer(() => writeUses)

  return CallerKeys.of({
    state: Effect.sync(() => version === undefined ? "unread" : outage.isAway() ? "away" : "up"),
    check: (key) =>
      Effect.contextWith((context: Context.Context<never>) => {
        const text = Redacted.value(key)
        if (Key.parse(text) === undefined) return unknown
        const hash = hasher(text)
        const clock = Context.get(context, Clock.Clock)
        const caller = valid(hash, clock.currentTimeMillisUnsafe())
        if (caller !== undefined) return Exit.succeed(caller)
        if (known.has(hash)) return unknown
        return Effect.flatMap(nextReading, (): Effect.Effect<Caller, Unauthorized | UpstreamUnavailable> => {
          const caller = valid(hash, clock.currentTimeMillisUnsafe())
          if (caller !== undefined) return Effect.succeed(caller)
          return outage.isAway() && !known.has(hash) ? unreadable : unknown
        })
      })
  })
})

/**
 * Provides `CallerKeys` that checks keys against a `KeyStore`.
 *
 * Fails if the keys are malformed or were written by a later version of the program. If the store is unreachable at
 * startup, the layer retries in the background. If the store becomes unreachable later, the keys from the latest
 * successful read remain in use.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { CallerKeysStored, KeyStoreFile } from "@trigate/callers"
 * import { NodeFileSystem } from "@effect/platform-node"
 * import { Layer } from "effect"
 *
 * export const keys = CallerKeysStored.layer().pipe(
 *   Layer.provide(KeyStoreFile.layer("keys.json")),
 *   Layer.provide(NodeFileSystem.layer)
 * )
 * ```
 */
export const layer = (options: Options = {}): Layer.Layer<CallerKeys, Key.KeyStoreFault, Key.KeyStore> =>
  Layer.effect(CallerKeys, make(options))
