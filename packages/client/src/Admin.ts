/**
 * The operator's calls: the action log, callers' keys, rate limits, latest requests, metrics and settings. They require
 * a connection to the admin listener.
 */
import * as Paths from "@trigate/api/Paths"
import * as AdminApi from "@trigate/api/unstable/AdminApi"
import { HaltTarget } from "@trigate/domain/actions/Policy"
import type { CallFailure } from "@trigate/domain/errors/GatewayError"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Connection } from "./Connection.ts"
import { postOwn, readOwn } from "./internal/Served.ts"

// the routes about one action have no payload
const Nothing = Schema.Struct({})

const forgetAction = postOwn("forget", Nothing, AdminApi.Forgotten)
const resolveAction = postOwn("resolveAction", Nothing, AdminApi.ActionResolution)
const issueKey = postOwn("createKey", AdminApi.KeyCreation, AdminApi.IssuedKey)
const issueNext = postOwn("rotateKey", AdminApi.KeyRotation, AdminApi.IssuedKey)
const endKeys = postOwn("revokeKeys", AdminApi.KeyRevocation, Schema.Array(AdminApi.CallerKey))

const postHalt = postOwn("haltGuard", HaltTarget, AdminApi.GuardStatus)
const postResume = postOwn("resumeGuard", HaltTarget, AdminApi.Resumed)

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
export const actions = readOwn("actions", () => Paths.actions, Schema.Array(AdminApi.UnansweredAction))

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
export const forget = (id: string): Effect.Effect<boolean, CallFailure, Connection> =>
  Effect.map(forgetAction(of(Paths.forgetAction, id), {}), ({ forgotten }) => forgotten)

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
export const resolve = (id: string) => resolveAction(of(Paths.resolveAction, id), {})

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
export const keys = readOwn("keys", () => Paths.keys, AdminApi.KeyList)

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
export const createKey = (creation: AdminApi.KeyCreation) => issueKey(Paths.keys, creation)

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
export const rotateKey = (name: string, rotation: AdminApi.KeyRotation = {}) =>
  issueNext(of(Paths.rotateKey, name), rotation)

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
export const revokeKeys = (name: string, revocation: AdminApi.KeyRevocation = {}) =>
  endKeys(of(Paths.revokeKeys, name), revocation)

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
export const rateLimits = readOwn("rateLimits", () => Paths.rateLimits, Schema.Array(AdminApi.RateLimitUse))

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
export const requests = readOwn(
  "requests",
  (after?: number) => `${Paths.requests}${after === undefined ? "" : `?after=${after}`}`,
  Schema.Array(AdminApi.NotedRequest)
)

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
export const history = readOwn("history", () => Paths.history, Schema.Array(AdminApi.HistorySample))

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
export const minute = readOwn("minute", () => Paths.minute, Schema.Array(AdminApi.MinuteSample))

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
export const settings = readOwn("settings", () => Paths.settings, Schema.Array(AdminApi.SettingValue))

/**
 * Returns the guard's policies, the use of their limits by account, the halts, and the latest refusals.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Admin } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.flatMap(Admin.guard(), ({ policies }) => Console.log(policies.policies.length, "policies"))
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * 0 policies
 * ```
 */
export const guard = readOwn("guard", () => Paths.guard, AdminApi.GuardStatus)

/**
 * Stops the actions of an account, orders in a coin, or all actions, until {@link resumeGuard}. Cancels and reduce-only
 * orders still pass.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Admin } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { halts } = yield* Admin.haltGuard({ coin: "BTC" })
 *   const { resumed } = yield* Admin.resumeGuard({ coin: "BTC" })
 *   yield* Console.log(halts.length, "halt, then ended:", resumed)
 * })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * 1 halt, then ended: true
 * ```
 */
export const haltGuard = (target: HaltTarget) => postHalt(Paths.haltGuard, target)

/**
 * Ends a halt. Returns whether there was one.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Admin } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.flatMap(Admin.resumeGuard({ all: true }), ({ resumed }) => Console.log(resumed))
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * false
 * ```
 */
export const resumeGuard = (target: HaltTarget) => postResume(Paths.resumeGuard, target)
