/** How old an answer the caller of the current request takes. */
import * as Context from "effect/Context"

/**
 * `declared`: as old as the operation's rule allows. `block`: one block old also where the rule keeps nothing unless asked.
 * `none`: read upstream after the request came; what comes is kept for others.
 */
export type Freshness = "declared" | "block" | "none"

/** Seconds that a kept answer may be old for the caller of the current request; as the rule has it when undefined. */
export const MaxAge = Context.Reference<number | undefined>("@trigate/upstream/Freshness/MaxAge", {
  defaultValue: () => undefined
})

/** The freshness that the current request asks for. */
export const Freshness = Context.Reference<Freshness>("@trigate/upstream/Freshness", {
  defaultValue: () => "declared"
})
