/**
 * The checks of `trigate serve --check`: whether each configured upstream URL and store responds, and to which chain
 * each URL belongs.
 */
import { isValid, KeyStore } from "@trigate/callers/KeyStore"
import { actionCatalog, isActionType } from "@trigate/domain/actions/Action"
import { printable } from "@trigate/domain/encoding/Encoding"
import { closestWord } from "@trigate/domain/errors/Problem"
import * as Subscriptions from "@trigate/domain/unstable/streams/Subscriptions"
import { profileFor } from "@trigate/signing/VenueProfile"
import { Info } from "@trigate/trading/Info"
import * as Streams from "@trigate/trading/streams/Streams"
import * as NodeArchive from "@trigate/trading/TradingUpstream"
import * as Probe from "@trigate/upstream/attempts/OutlierDetection"
import * as Pipeline from "@trigate/upstream/Pipeline"
import { HttpTransport } from "@trigate/upstream/transport/HttpTransport"
import * as HttpTransportUndici from "@trigate/upstream/transport/HttpTransportUndici"
import type { AttemptOutcome } from "@trigate/upstream/unstable/attempts/Attempts"
import * as Upstream from "@trigate/upstream/unstable/Upstream"
import type * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Redis from "effect/persistence/Redis"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { isSandbox } from "../Chains.ts"
import * as GatewayServer from "../GatewayServer.ts"
import * as Hosts from "../requests/Observe.ts"
import { type Settings as Decoded, settings as declared } from "../settings/Settings.ts"
import * as Settings from "../settings/SettingsSources.ts"
import * as Stores from "../stores/Stores.ts"

/** The result for one upstream URL or store. */
export interface Finding {
  /**
   * The name of the store, or the upstream's label and the position of the URL in the upstream's list, such as
   * `trading-api#0`. Never a URL.
   */
  readonly name: string
  readonly state: "answers" | "fails" | "wrong chain" | "configured" | "not configured"
  /** A short text with details; can be empty. */
  readonly detail: string
  readonly isSound: boolean
}

const sound = (name: string, detail: string): Finding => ({ name, state: "answers", detail, isSound: true })
const failing = (name: string, detail: string): Finding => ({ name, state: "fails", detail, isSound: false })
const absent = (name: string, detail: string): Finding => ({ name, state: "not configured", detail, isSound: true })

const faults: { readonly [O in AttemptOutcome]?: string } = {
  not_sent: "no connection",
  timeout: "no response in time",
  broken: "the connection broke",
  refused: "the probe was refused: check the endpoint key in the URL",
  server_fault: "the server reported an error (HTTP 5xx)",
  malformed: "unexpected response: check the URL"
}

/**
 * The chain to which all of an upstream's URLs must belong. `own`: the chain of the first URL that responds. `none`: the
 * upstream has no chain ID.
 */
type Chain = "none" | "own" | { readonly id: number; readonly of: string }

const checkUpstream = (upstream: Upstream.Upstream, chain: Chain, instead: string) =>
  Effect.gen(function*() {
    const targets = Upstream.targets(upstream, "")
    if (targets.length === 0) return [absent(upstream.label, instead)]
    const send = Probe.makeProbe(yield* HttpTransport, yield* Effect.context())
    const probed = yield* Effect.forEach(targets, (target) => send(target, true), { concurrency: "unbounded" })
    const first = probed.find(({ chainId }) => chainId !== undefined)?.chainId
    const wanted = chain === "none" || chain === "own" ? first : BigInt(chain.id)
    const wantedBy = chain === "none" || chain === "own" ? "another URL" : chain.of
    return targets.map((target, index): Finding => {
      const name = Upstream.targetName(target)
      const { chainId, outcome = "not_sent" } = probed[index] ?? {}
      const fault = faults[outcome]
      if (fault !== undefined) return failing(name, fault)
      if (outcome === "rate_limited") return sound(name, "the upstream's rate limit is used up")
      if (chain === "none") return sound(name, "")
      if (chainId === undefined) {
        return failing(name, "the node does not return its chain ID: check the endpoint key in the URL")
      }
      return chainId === wanted
        ? sound(name, `chain ${chainId}`)
        : {
          name,
          state: "wrong chain",
          detail: `chain ${chainId}, but ${wantedBy} is on chain ${wanted}`,
          isSound: false
        }
    })
  })

/** Runs an effect with a layer, and closes the layer afterwards. */
const within = <A, E, R, Provided>(effect: Effect.Effect<A, E, R | Provided>, layer: Layer.Layer<Provided>) =>
  Effect.scoped(Effect.flatMap(Layer.build(layer), (context) => Effect.provideContext(effect, context)))

const upstreamFindings = (settings: Decoded) => {
  const { network } = settings
  const instead = isSandbox(settings) ? "served by the sandbox" : ""
  const evm = { id: profileFor(network).evmChainId, of: network }
  const all: ReadonlyArray<readonly [upstream: Upstream.Upstream, chain: Chain]> = [
    [Upstream.make("trading-api", settings.tradingApiUrl), "none"],
    [Upstream.make("trading-node", settings.tradingNodeUrl), evm],
    [Upstream.make("token-chain", settings.tokenChainUrl), "none"],
    [Upstream.make("layer2", settings.layer2Url), "own"]
  ]
  const found = Effect.forEach(all, (one) => checkUpstream(...one, instead), { concurrency: "unbounded" })
  return Effect.map(within(found, HttpTransportUndici.layer()), (rows) => rows.flat())
}

/** Checks the nodes that the settings declare to be archive nodes. */
const archiveFindings = ({ tradingNodeArchive, tradingNodeUrl }: Decoded) => {
  if (!tradingNodeArchive) return Effect.succeed([])
  const targets = Upstream.targets(Upstream.make("trading-node", tradingNodeUrl), "/evm")
  const found = Effect.flatMap(
    Pipeline.Pipeline,
    (pipeline) =>
      Effect.forEach(targets, (target) =>
        Effect.map(NodeArchive.checkNode(pipeline, target), (finding) => {
          const name = `${Upstream.targetName(target)} archive`
          return finding === undefined ? sound(name, "") : failing(name, finding)
        }), { concurrency: "unbounded" })
  )
  return within(found, Layer.provide(Pipeline.layer(), HttpTransportUndici.layer()))
}

const deadline = "3 seconds"

/** Returns whether an effect succeeds within the deadline. */
const works = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<boolean, never, R> =>
  Effect.isSuccess(Effect.timeout(effect, deadline))

const redisFinding = Effect.fnUntraced(function*({ redisUrl }: Decoded) {
  if (Option.isNone(redisUrl)) return absent("redis", "")
  const responds = yield* within(
    works(Redis.Redis.use(({ send }) => send("PING"))),
    Stores.layerRedis(redisUrl.value)
  )
  return responds ? sound("redis", "") : failing("redis", "no response to PING")
})

const databaseFinding = Effect.fnUntraced(function*(settings: Decoded) {
  const place = Stores.findDatabase(settings)
  if (Option.isNone(place)) return absent("database", "")
  const { kind } = place.value
  if (place.value.kind === "SQLite") {
    const { file } = place.value
    const files = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const exists = (name: string) => Effect.orElseSucceed(files.exists(name), () => false)
    if (!(yield* exists(file))) {
      return (yield* exists(path.dirname(path.resolve(file))))
        ? sound("database", "SQLite: the gateway will create the file")
        : failing("database", "SQLite: the folder of the file does not exist; create it")
    }
  }
  const connection = yield* Effect.result(within(
    Effect.timeout(SqlClient.use((sql) => sql`SELECT 1`), deadline),
    Stores.layerDatabase(place.value, "existing")
  ))
  return Result.isSuccess(connection)
    ? sound("database", kind)
    : failing("database", `${kind} does not respond to queries: ${databaseReason(connection.failure)}`)
})

/** Returns why a database refuses a connection or a query, in the words of the database or the operating system. */
const databaseReason = (error: SqlError | Cause.TimeoutError): string => {
  if (error._tag === "TimeoutError") return `no response within ${deadline}`
  const { _tag, cause } = error.reason
  return Predicate.isError(cause) && cause.message !== "" ? printable(cause.message) : _tag
}

/** Refuses action types that are probably misspelled. Other unknown types may be later ones of the venue. */
const relayFindings = ({ relayActions }: Decoded): ReadonlyArray<Finding> => {
  const types = Option.getOrElse(relayActions, () => "none" as const)
  if (Predicate.isString(types)) return []
  return types.flatMap((type) => {
    const known = isActionType(type) ? undefined : closestWord(type, Object.keys(actionCatalog))
    return known === undefined
      ? []
      : [failing(declared.relayActions.env, `${type} is not an action type (did you mean ${known}?)`)]
  })
}

/** Checks whether the venue lists the coins whose candles are recorded. */
const recordedFindings = ({ archive, tradingApiUrl }: Decoded) => {
  const coins = archive.map(({ coin }) => coin).filter((coin) => coin !== "*")
  if (coins.length === 0 || tradingApiUrl.length === 0) return Effect.succeed([])
  const found = Effect.flatMap(Info, (info) => {
    const { find } = Streams.makeCatalog(info)
    return Effect.forEach(coins, (coin) =>
      Effect.map(
        Effect.flatMap(Effect.fromResult(Subscriptions.read({ type: "bbo", coin })), find),
        (state) => state === "unknown" ? [failing(declared.archive.env, `the venue does not list ${coin}`)] : []
      ))
  })
  const info = NodeArchive.layerInfo({ api: tradingApiUrl }).pipe(
    Layer.provide(Pipeline.layer()),
    Layer.provide(HttpTransportUndici.layer())
  )
  return Effect.orElseSucceed(Effect.map(within(found, info), (rows) => rows.flat()), () => [])
}

/**
 * Checks whether callers' keys can be read, and counts the valid ones. Returns no finding if the gateway does not
 * require keys.
 */
const callersFinding = Effect.fnUntraced(function*(settings: Decoded) {
  const place = yield* Effect.fromResult(Stores.findLocation(settings))
  if (Option.isNone(place)) return []
  const name = Stores.describeLocation(place.value)
  const files = yield* FileSystem.FileSystem
  const found = yield* Effect.result(
    within(
      Effect.timeout(KeyStore.use(({ list }) => list), deadline),
      Layer.provide(Stores.layerStore(place.value, "existing"), Layer.succeed(FileSystem.FileSystem, files))
    )
  )
  if (Result.isFailure(found)) return [failing("callers", found.failure.message)]
  const now = yield* Clock.currentTimeMillis
  return [sound("callers", `${name}: ${found.success.filter((record) => isValid(record, now)).length} valid keys`)]
})

/** Returns the location of the admin routes and the console. */
const adminFinding = Effect.fnUntraced(function*(settings: Decoded) {
  const place = yield* Effect.fromResult(GatewayServer.adminAddress(settings))
  const found = (detail: string): Finding => ({ name: "admin", state: "configured", detail, isSound: true })
  if (place !== undefined) {
    return found(`${place.host}:${place.port}${place.isGuarded ? ", requires a key with the class admin" : ""}`)
  }
  const { host, port } = settings
  return Hosts.isOwnMachine(host)
    ? found(`${host}:${port}, on the callers' listener`)
    : absent("admin", `set ${declared.adminPort.env} to serve the admin routes`)
})

/**
 * Reads the settings, and probes each configured upstream URL and store once. Fails with `SettingsError`. Does not
 * listen.
 */
export const findings = Effect.fnUntraced(function*(sources: Settings.Sources) {
  const settings = yield* Settings.read(sources)
  const [upstreams, archives, recorded, redis, database, admin, callers] = yield* Effect.all([
    upstreamFindings(settings),
    archiveFindings(settings),
    recordedFindings(settings),
    redisFinding(settings),
    databaseFinding(settings),
    adminFinding(settings),
    callersFinding(settings)
  ], { concurrency: "unbounded" })
  return [...upstreams, ...archives, redis, database, admin, ...callers, ...relayFindings(settings), ...recorded]
})
