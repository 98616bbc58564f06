/** Authenticates the key of a request: its caller, and the scope of the key. */
import type { Caller } from "@trigate/domain/Caller"
import type { Unauthorized } from "@trigate/domain/errors/CallerError"
import type { UpstreamUnavailable } from "@trigate/domain/errors/UpstreamError"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"

/**
 * The keys of callers.
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
   * The caller whose key it is. Absent where the gateway is open: keys then say nothing, and a request needs none.
   *
   * Fails with `Unauthorized` for a key that is not known, has expired or was revoked, and with `UpstreamUnavailable` where
   * the keys cannot be read. Neither holds the key.
   */
  readonly check?: (key: Redacted.Redacted) => Effect.Effect<Caller, Unauthorized | UpstreamUnavailable>
  /**
   * Whether the keys can be read: `unread` if that never succeeded, so that every caller is refused, and `away` if the keys that
   * were read earlier count for now. Absent for an open gateway.
   */
  readonly state?: Effect.Effect<"up" | "away" | "unread">
}>()("@trigate/callers/CallerKeys") {}

/**
 * No keys: every client may use the gateway.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerOpen: Layer.Layer<CallerKeys> = Layer.succeed(CallerKeys, {})
