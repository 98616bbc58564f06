/** Whether `/info` relays queries of types beyond the documented ones. */
import * as Context from "effect/Context"

/** It does, unless a gateway is configured not to. */
export const RelayInfo = Context.Reference<boolean>("@trigate/server/RelayInfo", { defaultValue: () => true })
