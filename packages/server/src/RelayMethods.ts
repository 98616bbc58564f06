/** JSON-RPC reads that `/evm` and `/l2` relay beside the declared methods: none, unless a gateway is configured to. */
import * as Context from "effect/Context"

/** Their exact names. */
export const RelayMethods = Context.Reference<ReadonlyArray<string>>("@trigate/server/RelayMethods", {
  defaultValue: () => []
})
