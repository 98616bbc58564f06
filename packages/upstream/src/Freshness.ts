/** How old an answer the caller of the current request takes. */
import * as Context from "effect/Context"

/**
 * `declared`: as old as the operation's rule allows. `block`: one block old also where the rule keeps nothing unless asked.
 * `none`: read upstream after the request came; what comes is kept for others.
 */
export type Freshness = "declared" | "block" | "none"

/** The freshness that the current request asks for. */
export const Freshness = Context.Reference<Freshness>("@trigate/upstream/Freshness", {
  defaultValue: () => "declared"
})
