/** Authenticates the key of a request. Returns the caller and the scope of the key. */
import type { Caller } from "@trigate/domain/Caller"
import type { Unauthorized, UpstreamUnavailable } from "@trigate/domain/errors/GatewayError"
import { gauge } from "@trigate/domain/unstable/DeclaredMetric"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"

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
 * Provided by `CallerKeysStored.layer` or `CallerKeys.layerOpen`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { CallerKeys, CallerKeysStored, KeyStore } from "@trigate/callers"
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
 * const layer = Layer.provideMerge(CallerKeysStored.layer({ interval: "1 second" }), KeyStore.layerMemory)
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
