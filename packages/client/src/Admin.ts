/**
 * The operator's calls: the action log, callers' keys, rate limits, latest requests, metrics and settings. They require
 * a connection to the admin listener.
 */
import * as Paths from "@trigate/api/Paths"
import {
  ActionResolution,
  CallerKey,
  Forgotten,
  HistorySample,
  IssuedKey,
  KeyCreation,
  KeyList,
  KeyRevocation,
  KeyRotation,
  MinuteSample,
  NotedRequest,
  RateLimitUse,
  SettingValue,
  UnansweredAction
} from "@trigate/api/unstable/AdminApi"
import { wrapReason } from "@trigate/domain/errors/GatewayError"
import type { CallFailure } from "@trigate/domain/errors/GatewayError"
import { encodeRequest } from "@trigate/domain/operations/Operation"
import type { AnyCodec } from "@trigate/domain/operations/Operation"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Connection } from "./Connection.ts"
import { ask, ownReader } from "./internal/Served.ts"

const readActions = ownReader(Schema.Array(UnansweredAction))
const readForgotten = ownReader(Forgotten)
const readResolution = ownReader(ActionResolution)

const readKeys = ownReader(KeyList)
const readIssued = ownReader(IssuedKey)
const readEnded = ownReader(Schema.Array(CallerKey))

const readUses = ownReader(Schema.Array(RateLimitUse))
const readHistory = ownReader(Schema.Array(HistorySample))
const readMinute = ownReader(Schema.Array(MinuteSample))
const readSettings = ownReader(Schema.Array(SettingValue))
const readRequests = ownReader(Schema.Array(NotedRequest))

const makeWriter = <S extends AnyCodec>(schema: S) => {
  const encode = encodeRequest(schema)
  return (request: S["Type"]) => Effect.mapError(encode(request), wrapReason)
}

const writeCreation = makeWriter(KeyCreation)
const writeRotation = makeWriter(KeyRotation)
const writeRevocation = makeWriter(KeyRevocation)

const of = (path: string, id: string): string => path.replace(/:[a-z]+/u, encodeURIComponent(id))

/**
 * Returns the signed actions of unknown outcome, oldest first.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Admin } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.flatMap(Admin.actions(), (actions) => Console.log(actions.length, "without an outcome"))
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * 0 without an outcome
 * ```
 */
export const actions: () => Effect.Effect<ReadonlyArray<UnansweredAction>, CallFailure, Connection> = Effect.fn(
  "GatewayClient.actions"
)(function*() {
  return yield* readActions(yield* ask(({ own }) => own.get(Paths.actions)))
})

/**
 * Removes an action from the log; use it only if you know the outcome of the action. Returns whether the action was in
 * the log. The action's nonce remains used.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Admin } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const id = "0xe96687078e0d81d63281ba712b0b246c5df4571362b83c0259d64808482ec366"
 * const program = Effect.flatMap(Admin.forget(id), (wasThere) => Console.log(wasThere))
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * false
 * ```
 */
export const forget: (id: string) => Effect.Effect<boolean, CallFailure, Connection> = Effect.fn(
  "GatewayClient.forget"
)(function*(id) {
  const { forgotten } = yield* readForgotten(yield* ask(({ own }) => own.post(of(Paths.forgetAction, id), "{}")))
  return forgotten
})

/**
 * Makes the gateway send an action again, byte for byte. Returns the outcome that the resend shows, or `StillUnknown`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Admin } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const id = "0xe96687078e0d81d63281ba712b0b246c5df4571362b83c0259d64808482ec366"
 * const program = Effect.flatMap(Admin.resolve(id), ({ _tag }) => Console.log(_tag))
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * Absent
 * ```
 */
export const resolve: (id: string) => Effect.Effect<ActionResolution, CallFailure, Connection> = Effect.fn(
  "GatewayClient.resolveAction"
)(function*(id) {
  return yield* readResolution(yield* ask(({ own }) => own.post(of(Paths.resolveAction, id), "{}")))
})

/**
 * Returns the keys of callers, including expired and revoked ones; an empty list if the gateway requires no keys.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Admin } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.flatMap(Admin.keys(), ({ keys }) => Console.log(keys.length, "keys"))
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * 0 keys
 * ```
 */
export const keys: () => Effect.Effect<KeyList, CallFailure, Connection> = Effect.fn("GatewayClient.keys")(
  function*() {
    return yield* readKeys(yield* ask(({ own }) => own.get(Paths.keys)))
  }
)

/**
 * Creates a key for a caller that has no valid key. Fails with `InvalidRequest` if the caller has a valid key.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Admin } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * // a gateway without a store of keys refuses
 * const program = Admin.createKey({ name: "desk", scope: { classes: ["read"] }, quota: { requestsPerSecond: 20 } }).pipe(
 *   Effect.flatMap(({ key }) => Console.log(key)),
 *   Effect.catchTag("RequestError", ({ reason }) => Console.log(reason._tag))
 * )
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * InvalidRequest
 * ```
 */
export const createKey: (creation: KeyCreation) => Effect.Effect<IssuedKey, CallFailure, Connection> = Effect.fn(
  "GatewayClient.createKey"
)(function*(creation) {
  const { text } = yield* writeCreation(creation)
  return yield* readIssued(yield* ask(({ own }) => own.post(Paths.keys, text)))
})

/**
 * Creates a new key for a caller that has a valid key. The earlier keys remain valid for the overlap. Default overlap:
 * one day.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Admin } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * // a gateway without a store of keys refuses
 * const program = Admin.rotateKey("desk", { overlap: 3_600_000 }).pipe(
 *   Effect.flatMap(({ key }) => Console.log(key)),
 *   Effect.catchTag("RequestError", ({ reason }) => Console.log(reason._tag))
 * )
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * InvalidRequest
 * ```
 */
export const rotateKey: (
  name: string,
  rotation?: KeyRotation
) => Effect.Effect<IssuedKey, CallFailure, Connection> = Effect.fn("GatewayClient.rotateKey")(
  function*(name, rotation = {}) {
    const { text } = yield* writeRotation(rotation)
    return yield* readIssued(yield* ask(({ own }) => own.post(of(Paths.rotateKey, name), text)))
  }
)

/**
 * Immediately revokes the keys of a caller: all of them, or only the key that starts with `prefix`. Returns the revoked
 * keys.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Admin } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * // a gateway without a store of keys refuses
 * const program = Admin.revokeKeys("desk").pipe(
 *   Effect.flatMap((ended) => Console.log(ended.length)),
 *   Effect.catchTag("RequestError", ({ reason }) => Console.log(reason._tag))
 * )
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * InvalidRequest
 * ```
 */
export const revokeKeys: (
  name: string,
  revocation?: KeyRevocation
) => Effect.Effect<ReadonlyArray<CallerKey>, CallFailure, Connection> = Effect.fn("GatewayClient.revokeKeys")(
  function*(name, revocation = {}) {
    const { text } = yield* writeRevocation(revocation)
    return yield* readEnded(yield* ask(({ own }) => own.post(of(Paths.revokeKeys, name), text)))
  }
)

/**
 * Returns the current use of each rate limit, in total and by caller, as counted by the gateway that responds.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Admin } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.flatMap(Admin.rateLimits(), (uses) => Console.log(uses.length, "in use"))
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * 0 in use
 * ```
 */
export const rateLimits: () => Effect.Effect<ReadonlyArray<RateLimitUse>, CallFailure, Connection> = Effect.fn(
  "GatewayClient.rateLimits"
)(function*() {
  return yield* readUses(yield* ask(({ own }) => own.get(Paths.rateLimits)))
})

/**
 * Returns the latest requests of callers, or those after a sequence number, oldest first.
 *
 * The gateway records requests only while a client calls this method at least every ten seconds.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Admin, Info } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   yield* Admin.requests()
 *   yield* Info.allMids()
 *   const last = (yield* Admin.requests()).at(-1)
 *   yield* Console.log(last?.operations)
 * })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * [ 'allMids' ]
 * ```
 */
export const requests: (after?: number) => Effect.Effect<ReadonlyArray<NotedRequest>, CallFailure, Connection> = Effect
  .fn("GatewayClient.requests")(function*(after) {
    const query = after === undefined ? "" : `?after=${after}`
    return yield* readRequests(yield* ask(({ own }) => own.get(`${Paths.requests}${query}`)))
  })

/**
 * Returns samples of the gateway's main metrics from the last hour, oldest first. Counters are totals since the
 * gateway's start.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Admin } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.flatMap(Admin.history(), (samples) => Console.log(samples.length > 0))
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * true
 * ```
 */
export const history: () => Effect.Effect<ReadonlyArray<HistorySample>, CallFailure, Connection> = Effect.fn(
  "GatewayClient.history"
)(function*() {
  return yield* readHistory(yield* ask(({ own }) => own.get(Paths.history)))
})

/**
 * Returns samples of all the gateway's metrics from the last minute, oldest first.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Admin } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.flatMap(Admin.minute(), (samples) => Console.log(samples.length > 0))
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * true
 * ```
 */
export const minute: () => Effect.Effect<ReadonlyArray<MinuteSample>, CallFailure, Connection> = Effect.fn(
  "GatewayClient.minute"
)(function*() {
  return yield* readMinute(yield* ask(({ own }) => own.get(Paths.minute)))
})

/**
 * Returns the settings of the gateway and the source of each value (flag, environment variable or configuration file),
 * without the values of secrets.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Admin } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.flatMap(Admin.settings(), (settings) => Console.log(settings[0]?.name))
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * TRIGATE_HOST
 * ```
 */
export const settings: () => Effect.Effect<ReadonlyArray<SettingValue>, CallFailure, Connection> = Effect.fn(
  "GatewayClient.settings"
)(function*() {
  return yield* readSettings(yield* ask(({ own }) => own.get(Paths.settings)))
})
