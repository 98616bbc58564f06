/** How many calls a batch of `/evm` and `/l2` may have: 100, unless a gateway is configured to take more or fewer. */
import * as Context from "effect/Context"

/** Calls of one batch at most. */
export const BatchLimit = Context.Reference<number>("@trigate/server/BatchLimit", { defaultValue: () => 100 })
