/** Authenticates the key of a request. Returns the caller and the scope of the key. */
import type { Caller } from "@trigate/domain/Caller"
import { Unauthorized, UpstreamUnavailable } from "@trigate/domain/errors/GatewayError"
import { gauge } from "@trigate/domain/unstable/DeclaredMetric"
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
import * as Key from "./KeyStore.ts"

/** The metrics, by member name. */
export const metrics = {
  callerKeysDegraded: gauge(
    "trigate_caller_keys_degraded",
    "1 while the keys of callers cannot be read, otherwise 0; keys that were read before remain valid"
  )
} as const

/**
 * The keys of callers.
 *
 * Provided by `CallerKeys.layerStored` or `CallerKeys.layerOpen`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { CallerKeys, KeyStore } from "@trigate/callers"
 * import { Console, Effect, Layer } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const keys = yield* KeyStore.KeyStore
 *   const { key } = yield* keys.create({ name: "desk" })
 *   const { check } = yield* CallerKeys.CallerKeys
 *   if (check === undefined) return
 *   const caller = yield* check(key)
 *   yield* Console.log(caller.id)
 * })
 *
 * const layer = Layer.provideMerge(CallerKeys.layerStored({ interval: "1 second" }), KeyStore.layerMemory)
 *
 * await Effect.runPromise(Effect.provide(program, layer))
 * ```
 * ```text
 * key:desk
 * ```
 */
export class CallerKeys extends Context.Service<CallerKeys, {
  /**
   * Returns the caller of a key. This member is absent if the gateway requires no keys.
   *
   * Fails with `Unauthorized` for an unknown, expired or revoked key, and with `UpstreamUnavailable` if the keys cannot
   * be read. Neither error contains the key.
   */
  readonly check?: (key: Redacted.Redacted) => Effect.Effect<Caller, Unauthorized | UpstreamUnavailable>
  /**
   * Returns the state of the key store. This member is absent if the gateway requires no keys.
   *
   * `up`: the keys can be read. `away`: the keys cannot be read, but the keys read earlier remain in use. `unread`: the
   * keys have never been read, so every caller is refused.
   */
  readonly state?: Effect.Effect<"up" | "away" | "unread">
}>()("@trigate/callers/CallerKeys") {}

/**
 * Provides `CallerKeys` without keys: every client can use the gateway.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerOpen: Layer.Layer<CallerKeys> = Layer.succeed(CallerKeys, {})

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

const makeStored = Effect.fnUntraced(function*(options: Options) {
  const store = yield* Key.KeyStore
  const hasher = yield* Key.Hasher
  const deadline = options.deadline ?? "2 seconds"
  const wakeups = yield* Queue.sliding<void>(1)
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
    yield* Effect.timeoutOption(Queue.take(wakeups), options.interval ?? "1 second")
    const begun = reading
    reading = Deferred.makeUnsafe()
    yield* readAgain
    Deferred.doneUnsafe(begun, Effect.void)
    yield* Effect.sleep(options.spacing ?? "50 millis")
  })
  // waits for a read of the store that starts after this point
  const nextReading = Effect.suspend(() => {
    Queue.offerUnsafe(wakeups, undefined)
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
 * startup, the layerStored retries in the background. If the store becomes unreachable later, the keys from the latest
 * successful read remain in use.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { CallerKeys, KeyStoreFile } from "@trigate/callers"
 * import { NodeFileSystem } from "@effect/platform-node"
 * import { Layer } from "effect"
 *
 * export const keys = CallerKeys.layerStored().pipe(
 *   Layer.provide(KeyStoreFile.layer("keys.json")),
 *   Layer.provide(NodeFileSystem.layer)
 * )
 * ```
 */
export const layerStored = (options: Options = {}): Layer.Layer<CallerKeys, Key.KeyStoreFault, Key.KeyStore> =>
  Layer.effect(CallerKeys, makeStored(options))
