/** Selects from the settings where a gateway stores the action log, callers' keys and what replicas share. */
import type * as NodeRedis from "@effect/platform-node/NodeRedis"
import * as CallerKeys from "@trigate/callers/CallerKeys"
import * as Key from "@trigate/callers/KeyStore"
import type { KeyStore, KeyStoreFault } from "@trigate/callers/KeyStore"
import * as Quotas from "@trigate/callers/Quotas"
import * as FilterStore from "@trigate/evm/unstable/Filters"
import * as NonceSource from "@trigate/signing/NonceSource"
import * as EventStore from "@trigate/trading/accounts/AccountEvents"
import * as EventStoreRedis from "@trigate/trading/accounts/EventStoreRedis"
import type * as ActionLog from "@trigate/trading/actionLog/ActionLog"
import * as ActionLogMemory from "@trigate/trading/actionLog/ActionLogMemory"
import * as ActionLogRedis from "@trigate/trading/actionLog/ActionLogRedis"
import * as ActionLogSql from "@trigate/trading/actionLog/ActionLogSql"
import * as GuardStore from "@trigate/trading/guard/GuardStore"
import * as ResponseCache from "@trigate/upstream/cache/ResponseCache"
import * as ReplicaUse from "@trigate/upstream/streams/ReplicaUse"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type { FileSystem } from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as NetAddress from "effect/net/NetAddress"
import * as Option from "effect/Option"
import * as Redis from "effect/persistence/Redis"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
// @effect-diagnostics-next-line nodeBuiltinImport:off -- a hash without a promise, for each request
import { hash } from "node:crypto"
import { type Settings, settings as declared, toEventLog } from "../settings/Settings.ts"
import { SettingsError } from "../settings/SettingsSources.ts"
import * as QuotasRedis from "./QuotasShared.ts"

/** The location of a database. */
export type DatabaseLocation =
  | { readonly kind: "Postgres"; readonly url: Redacted.Redacted }
  | { readonly kind: "SQLite"; readonly file: string }

// a SQLite file is configured as `path`, `sqlite:path` or `file:path`
const parseLocation = (url: Redacted.Redacted): DatabaseLocation => {
  const text = Redacted.value(url)
  if (/^postgres(?:ql)?:/u.test(text)) return { kind: "Postgres", url }
  return { kind: "SQLite", file: text.replace(/^(?:sqlite|file):(?:\/\/(?=\/))?/u, "") }
}

/** Returns the action log's database; `None` if `TRIGATE_DATABASE_URL` is not set. */
export const findDatabase = (settings: Settings): Option.Option<DatabaseLocation> =>
  Option.map(settings.databaseUrl, parseLocation)

/** Returns the store of a live gateway's action log: the database if configured, otherwise Redis, otherwise memory. */
export const chooseBacking = (settings: Settings): ActionLog.Backing =>
  Option.match(findDatabase(settings), {
    onNone: () => Option.isSome(settings.redisUrl) ? "Redis" : "memory",
    onSome: ({ kind }) => kind
  })

// the maximum time that an action is in the state `sent`: the deadline of the action, and time to record its outcome
const leaseTime = (onceDeadline: Duration.Duration): Duration.Duration =>
  Duration.sum(onceDeadline, Duration.seconds(10))

/** Returns the options of an action log in a database. */
export const toSqlOptions = ({ network, onceDeadline }: Settings): ActionLogSql.Options => ({
  network,
  lease: leaseTime(onceDeadline)
})

/**
 * Provides the client of a database. In the mode `create`, a SQLite file that does not exist is created.
 *
 * The layer loads the driver when it is built, and connects on first use. A gateway can therefore start while its
 * database is unreachable.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerDatabase = (place: DatabaseLocation, mode: "create" | "existing"): Layer.Layer<SqlClient> =>
  Layer.unwrap(Effect.promise(() =>
    place.kind === "SQLite"
      ? import("@trigate/archive/SqliteClient").then((client) => client.layer({ file: place.file, mode }))
      : import("@effect/sql-pg/PgClient").then((client) =>
        Layer.orDie(client.layer({ url: place.url, applicationName: "trigate", connectTimeout: "2 seconds" }))
      )
  ))

/**
 * Provides the action log of a live gateway. `onceDeadline` returns the current deadline for a call that is sent at
 * most once.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  settings: Settings,
  redis: Option.Option<Layer.Layer<Redis.Redis>>,
  onceDeadline: () => Duration.Duration
): Layer.Layer<ActionLog.ActionLog> => {
  const { actionLogAlone, network } = settings
  const lease = () => leaseTime(onceDeadline())
  const inRedis = () =>
    Option.match(redis, {
      onNone: () => ActionLogMemory.layer(),
      onSome: (shared) =>
        ActionLogRedis.layer({ prefix: `trigate:{actions:${network}}:`, lease, alone: actionLogAlone }).pipe(
          Layer.provide(shared)
        )
    })
  return Option.match(findDatabase(settings), {
    onNone: inRedis,
    onSome: (place) => ActionLogSql.layer({ network, lease }).pipe(Layer.provide(layerDatabase(place, "create")))
  })
}

/** The location of the callers' keys: a file, or the database that also stores the action log. */
export type StoreLocation = { readonly kind: "file"; readonly file: string } | DatabaseLocation

const { env } = declared.callers

const wrong = (message: string): Result.Result<never, SettingsError> =>
  Result.fail(new SettingsError({ setting: env, message }))

const isLoopback = (host: string): boolean =>
  host === "localhost" || Result.match(NetAddress.ipFromString(host), {
    onFailure: () => false,
    onSuccess: (address) => NetAddress.isLoopback(NetAddress.toCanonical(address))
  })

/**
 * Returns the location of the required keys; `None` if the gateway requires no keys.
 *
 * Fails if the location of the keys is not configured. Also fails if other machines can reach the gateway and the
 * settings do not configure who is allowed to call.
 */
export const findLocation = (settings: Settings): Result.Result<Option.Option<StoreLocation>, SettingsError> => {
  const callers = Option.getOrUndefined(settings.callers)
  if (callers === "open") return Result.succeedNone
  if (callers === undefined) {
    return isLoopback(settings.host) ? Result.succeedNone : wrong(
      `other machines can reach ${settings.host}: set ${env} to \`keys\`, to the path of a key file, or to \`open\` (every client)`
    )
  }
  if (callers !== "keys") return Result.succeedSome({ kind: "file", file: callers })
  const database = findDatabase(settings)
  return Option.isSome(database)
    ? Result.succeed(database)
    : wrong(
      `${env}=keys requires a database: set ${declared.databaseUrl.env}, or set ${env} to the path of a key file`
    )
}

/** Returns the location at which new keys are stored, even if the gateway does not require keys yet. */
export const placeToChange = (settings: Settings): Option.Option<StoreLocation> =>
  Option.match(Option.filter(settings.callers, (callers) => callers !== "keys" && callers !== "open"), {
    onNone: () => findDatabase(settings),
    onSome: (file) => Option.some({ kind: "file", file })
  })

/**
 * Describes a key store in a message: a file by its path, a database only by its type, because its URL can contain a
 * password.
 */
export const describeLocation = (place: StoreLocation): string => place.kind === "file" ? place.file : place.kind

/**
 * Provides a `KeyStore` that stores the callers' keys in a file or a database. In the mode `create`, a SQLite file that
 * does not exist is created. The database driver is loaded when the layer is built.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerStore = (
  place: StoreLocation,
  mode: "create" | "existing"
): Layer.Layer<KeyStore, never, FileSystem> =>
  Layer.unwrap(Effect.promise(() =>
    place.kind === "file"
      ? import("@trigate/callers/KeyStoreFile").then(({ layer }) => layer(place.file))
      : import("@trigate/callers/KeyStoreSql").then(({ layer }) => Layer.provide(layer, layerDatabase(place, mode)))
  ))

// Node's hash function takes a tenth of the time of the default hasher
const hasher = Layer.succeed(Key.Hasher, (text) => hash("sha256", text))

const storeLayer = (place: StoreLocation): Layer.Layer<CallerKeys.CallerKeys | KeyStore, KeyStoreFault, FileSystem> =>
  CallerKeys.layerStored().pipe(Layer.provideMerge(layerStore(place, "create")), Layer.provide(hasher))

/**
 * The keys that callers must have, and the operations with which the operator changes those keys. Fails if the store
 * cannot be used.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerCallers = (
  place: Option.Option<StoreLocation>
): Layer.Layer<CallerKeys.CallerKeys, SettingsError, FileSystem> =>
  Option.match(place, {
    onNone: () => CallerKeys.layerOpen,
    onSome: (found) =>
      Layer.effectContext(
        Effect.mapError(
          Layer.build(storeLayer(found)),
          ({ message }) => new SettingsError({ setting: env, message: `${env}: ${message}` })
        )
      )
  })

const connection = (driver: typeof NodeRedis, url: Redacted.Redacted, signal: AbortSignal) =>
  driver.layer({
    url: Redacted.value(url),
    // a command without a connection fails at once instead of being queued
    disableOfflineQueue: true,
    // limits the memory of commands to which a hanging Redis does not respond
    commandsQueueMaxLength: 10_000,
    socket: { connectTimeout: 2000, signal }
  }).pipe(
    // the services that use Redis already log when it is unreachable, so connection attempts are not logged
    Layer.provide(Logger.layer([]))
  )

const connect = Effect.fnUntraced(function*(url: Redacted.Redacted, signal: AbortSignal) {
  // imported only here, so that a gateway without Redis starts faster
  const driver = yield* Effect.promise(() => import("@effect/platform-node/NodeRedis"))
  // an interruption would close the client, and closing waits for responses that a hanging Redis never sends; `signal`
  // ends the attempt instead
  const context = yield* Effect.uninterruptible(Layer.build(connection(driver, url, signal)))
  const { client } = Context.get(context, driver.NodeRedis)
  // closing would wait for responses that a hanging Redis never sends
  yield* Effect.addFinalizer(() => Effect.sync(() => client.destroy()))
  return Context.get(context, Redis.Redis)
})

const make = Effect.fnUntraced(function*(url: Redacted.Redacted) {
  const scope = yield* Effect.scope
  const connections = yield* Scope.make()
  const signal = yield* Scope.provide(Effect.abortSignal, connections)
  let connected: Redis.Redis["Service"] | undefined
  const attempt = Effect.gen(function*() {
    const own = yield* Scope.make()
    const close = (exit: Exit.Exit<unknown, unknown>) => Scope.close(own, exit)
    connected = yield* connect(url, signal).pipe(
      Scope.provide(own),
      Effect.onExit((exit) => Exit.isFailure(exit) ? close(exit) : Scope.addFinalizerExit(scope, close))
    )
  })
  const connecting = yield* Effect.forkScoped(
    Effect.retry(attempt, Schedule.min([Schedule.exponential("250 millis"), Schedule.spaced("5 seconds")]))
  )
  // finalizers run in reverse order: this one ends the connection attempts before the scope waits for the forked fiber
  yield* Effect.addFinalizer((exit) => Scope.close(connections, exit))
  // waits at most one second, in which the connection is usually made, so that the first request can use it
  yield* Effect.timeoutOption(Fiber.await(connecting), "1 second")
  const absent = new Redis.RedisError({ cause: "not connected yet" })
  const use = <A>(f: (redis: Redis.Redis["Service"]) => Effect.Effect<A, Redis.RedisError>) =>
    Effect.suspend(() => connected === undefined ? Effect.fail(absent) : f(connected))
  return Redis.Redis.of({
    send: (command, ...args) => use((redis) => redis.send(command, ...args)),
    eval: (script) => (...params) => use((redis) => redis.eval(script)(...params)),
    reserve: Effect.suspend(() => connected === undefined ? Effect.fail(absent) : connected.reserve),
    subscribe: (channel) =>
      Effect.suspend(() => connected === undefined ? Effect.die(absent) : connected.subscribe(channel))
  })
})

/**
 * Provides the client of the Redis at a URL. While the client is not connected, its commands fail with `RedisError`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerRedis = (url: Redacted.Redacted): Layer.Layer<Redis.Redis> => Layer.effect(Redis.Redis, make(url))

/**
 * The layer of the Redis server, if one is configured. All services that use Redis share it, and therefore one
 * connection.
 */
export type SharedBy = Option.Option<Layer.Layer<Redis.Redis>>

/**
 * Returns the layer of a service that all replicas share: through Redis if it is configured, otherwise through
 * Postgres. If neither is configured, each process has its own service.
 */
const acrossReplicas = <S>(
  settings: Settings,
  redis: SharedBy,
  layers: {
    readonly memory: () => Layer.Layer<S>
    readonly redis: () => Layer.Layer<S, never, Redis.Redis>
    /**
     * Loads the Postgres implementation, if there is one. Called only if Postgres is configured and Redis is not.
     */
    readonly postgres?: () => Promise<Layer.Layer<S, never, SqlClient>>
  }
): Layer.Layer<S> => {
  const { memory, postgres } = layers
  const database = Option.filter(findDatabase(settings), ({ kind }) => kind === "Postgres")
  const inPostgres = () =>
    postgres === undefined || Option.isNone(database) ? memory() : Layer.provide(
      Layer.unwrap(Effect.promise(postgres)),
      layerDatabase(database.value, "existing")
    )
  return Option.match(redis, {
    onNone: inPostgres,
    onSome: (client) => Layer.provide(layers.redis(), client)
  })
}

/** Returns the service that counts callers' requests against their quotas. */
export const quotas = (settings: Settings, redis: SharedBy): Layer.Layer<Quotas.Quotas> =>
  acrossReplicas(settings, redis, {
    memory: () => Quotas.layerMemory,
    redis: () => QuotasRedis.layer({ prefix: `trigate:{quota:${settings.network}}:` }),
    postgres: () => import("./QuotasSql.ts").then(({ layer }) => layer({ prefix: `${settings.network}:` }))
  })

/** Returns the source of nonces: in Redis if it is configured, so that all replicas issue from one sequence. */
export const nonces = (settings: Settings, redis: SharedBy): Layer.Layer<NonceSource.NonceSource> =>
  acrossReplicas(settings, redis, {
    memory: () => NonceSource.layerMemory(),
    redis: () => NonceSource.layerRedis({ prefix: `trigate:{nonces:${settings.network}}:` })
  })

/**
 * Returns the store in which guards keep halts and reservations: Redis or the database, if one is configured. Otherwise
 * a guard keeps them in its process.
 */
export const guardStore = (settings: Settings, redis: SharedBy): Layer.Layer<GuardStore.GuardStore> | undefined => {
  const { network } = settings
  if (Option.isSome(redis)) {
    return Layer.provide(GuardStore.layerRedis({ prefix: `trigate:{guard:${network}}:` }), redis.value)
  }
  const database = findDatabase(settings)
  return Option.isNone(database) ? undefined : Layer.provide(
    Layer.unwrap(
      Effect.map(
        Effect.promise(() => import("@trigate/trading/guard/GuardStoreSql")),
        ({ layer }) => layer({ network })
      )
    ),
    layerDatabase(database.value, "create")
  )
}

/** Returns the store of account events. Clients that reconnect receive missed events from this store. */
const eventStore = (settings: Settings, redis: SharedBy): Layer.Layer<EventStore.EventStore> => {
  const { bounds } = toEventLog(settings)
  return acrossReplicas(settings, redis, {
    memory: EventStore.layerMemory,
    redis: () => EventStoreRedis.layer({ prefix: `trigate:{events:${settings.network}}:`, bounds }),
    postgres: () =>
      import("@trigate/trading/accounts/EventStoreSql").then(({ layer }) =>
        layer({ network: settings.network, bounds })
      )
  })
}

/** Returns the service through which replicas exchange how much of the venue's stream limits they use. */
const replicaUse = (settings: Settings, redis: SharedBy): Layer.Layer<ReplicaUse.ReplicaUse> =>
  acrossReplicas(settings, redis, {
    memory: () => ReplicaUse.layerMemory,
    redis: () => ReplicaUse.layerRedis({ key: `trigate:{streams:${settings.network}}:use` }),
    postgres: () =>
      import("@trigate/upstream/streams/ReplicaUseSql").then(({ layer }) => layer({ network: settings.network }))
  })

/**
 * Provides cached responses, account events, the use of the venue's stream limits, and callers' EVM filters.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerReplicas = (settings: Settings, redis: SharedBy) =>
  Layer.mergeAll(
    acrossReplicas(settings, redis, { memory: () => ResponseCache.layer(), redis: () => ResponseCache.layerRedis() }),
    acrossReplicas(settings, redis, {
      memory: () => FilterStore.layerMemory(),
      redis: () => FilterStore.layerRedis({ prefix: `trigate:{evm-filters:${settings.network}}:` })
    }),
    eventStore(settings, redis),
    replicaUse(settings, redis)
  )
