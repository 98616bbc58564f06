/** The reads of an EVM node that the gateway derives from other reads: logs of any range, and filters. */
import type { Serving } from "@trigate/domain/evm/EvmMethods"
import type { EvmBackend } from "@trigate/domain/evm/EvmProtocol"
import * as EvmReads from "@trigate/domain/evm/EvmReads"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Settings } from "../UpstreamSettings.ts"
import * as Filters from "./Filters.ts"
import * as FilterStore from "./FilterStore.ts"
import * as LogSearch from "./LogSearch.ts"
import * as NodeReads from "./NodeReads.ts"

/** What these reads may take. */
export interface Bounds {
  /** Blocks that the nodes serve in one `eth_getLogs`; learned from their refusals when not given. */
  readonly logBlocks?: number | undefined
  /** Upstream requests of one `eth_getLogs`; 40 when not given. */
  readonly logRequests?: number | undefined
  /** Filters that one caller may have; 100 when not given. */
  readonly filters?: number | undefined
  /** See `EvmUpstream.Options`. */
  readonly batch?: number | undefined
}

/** Which chain, and what these reads may take. */
export interface Options extends Bounds {
  readonly serving: Serving
  /** The name of the upstream in errors. */
  readonly label: string
}

/** The bounds that the settings name; the second ones are those of one chain. */
export const toBounds = (
  { callerFilters, logsMaxRequests }: Pick<Settings, "callerFilters" | "logsMaxRequests">,
  { batch, logBlocks }: { readonly logBlocks: Option.Option<number>; readonly batch: number }
): Bounds => ({
  batch,
  logBlocks: Option.getOrUndefined(logBlocks),
  logRequests: logsMaxRequests,
  filters: callerFilters
})

/** A backend that serves these reads itself, over the reads of another one. Filters are in the `FilterStore` of the context, or in memory. */
export const make = Effect.fnUntraced(
  function*(backend: EvmBackend, { filters, label, logBlocks, logRequests, serving }: Options) {
    const stored = yield* Effect.serviceOption(FilterStore.FilterStore)
    const store = Option.isSome(stored) ? stored.value : yield* FilterStore.makeMemory
    const reads = NodeReads.make(serving, label, backend.read)
    const { search } = LogSearch.make({
      serving,
      reads,
      ask: backend.read,
      blocks: logBlocks,
      ...(logRequests === undefined ? {} : { bounds: { requests: logRequests } })
    })
    const own = new Map(Object.entries({
      [EvmReads.getLogs(serving).name]: search,
      ...Filters.make({ serving, reads, search, store, ...(filters === undefined ? {} : { most: filters }) })
    }))
    const gateway: EvmBackend = {
      once: backend.once,
      read: (call) => (own.get(call.operation.name) ?? backend.read)(call)
    }
    return gateway
  }
)
