/** How old a response may be for the current caller. */
import * as Context from "effect/Context"

/**
 * The age of a response that the current caller accepts.
 *
 * - `declared`: the age that the operation's cache policy allows.
 * - `block`: one block, even if the operation caches nothing by default.
 * - `none`: no cached response is accepted. The response is read upstream, and cached for other callers.
 */
export type Freshness = "declared" | "block" | "none"

/** The response age that the current request accepts. */
export const Freshness = Context.Reference<Freshness>("@trigate/upstream/cache/Freshness", {
  defaultValue: () => "declared"
})

/**
 * Maximum age of a cached response for the current caller, in seconds; `undefined` means the maximum age in the
 * operation's cache policy.
 */
export const MaxAge = Context.Reference<number | undefined>("@trigate/upstream/cache/Freshness/MaxAge", {
  defaultValue: () => undefined
})
