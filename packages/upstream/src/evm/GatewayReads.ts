/** The methods that the gateway derives from reads of an EVM node: logs of any range, filters and subscriptions. */
import type { Serving } from "@trigate/domain/evm/EvmMethods"
import type { EvmBackend, StreamingBackend } from "@trigate/domain/evm/EvmProtocol"
import * as EvmReads from "@trigate/domain/evm/EvmReads"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import type { Settings } from "../UpstreamSettings.ts"
import * as EvmFeed from "./EvmFeed.ts"
import * as Filters from "./Filters.ts"
import * as FilterStore from "./FilterStore.ts"
import * as LogSearch from "./LogSearch.ts"
import * as NodeReads from "./NodeReads.ts"

/** The limits of log queries, filters and subscriptions. */
export interface Bounds {
  /** Maximum number of blocks that the nodes serve in one `eth_getLogs`. Default: learned from their errors. */
  readonly logBlocks?: number | undefined
  /** Maximum number of upstream requests for one `eth_getLogs`. Default: 40. */
  readonly logRequests?: number | undefined
  /** Maximum number of filters of one caller. Default: 100. */
  readonly filters?: number | undefined
  /** The WebSocket URLs of the chain's nodes, for subscriptions. Default: new blocks are polled. */
  readonly sockets?: ReadonlyArray<Redacted.Redacted> | undefined
}

/** The chain, and the limits of its log queries, filters and subscriptions. */
export interface Options extends Bounds {
  readonly serving: Serving
  /** The name of the upstream in errors. */
  readonly label: string
}

/** Converts settings to limits. The second argument contains settings that apply to one chain only. */
export const toBounds = (
  { callerFilters, logsMaxRequests }: Pick<Settings, "callerFilters" | "logsMaxRequests">,
  { logBlocks, sockets }: {
    readonly logBlocks: Option.Option<number>
    readonly sockets: ReadonlyArray<Redacted.Redacted>
  }
): Bounds => ({
  sockets,
  logBlocks: Option.getOrUndefined(logBlocks),
  logRequests: logsMaxRequests,
  filters: callerFilters
})

/**
 * Makes a backend that implements logs, filters and subscriptions over another backend. Subscriptions end with the
 * scope. Filters are stored in the `FilterStore` of the context, or in memory if there is none.
 */
export const make = Effect.fnUntraced(
  function*(backend: EvmBackend, { filters, label, logBlocks, logRequests, serving, sockets = [] }: Options) {
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
    const getBlock = EvmReads.getBlockByNumber(serving).name
    /** Reads a block for the gateway itself, such as for its block feed, and stores the block's header. */
    const readBlock: EvmBackend["read"] = (call) =>
      Effect.tap(backend.read(call), (answer) => {
        const header = answer._tag === "Result" ? NodeReads.readHeader(answer.result.valueOrUndefined) : undefined
        return header === undefined ? Effect.void : Effect.sync(() => reads.remember(header))
      })
    const read: EvmBackend["read"] = (call) => {
      if (call.operation.name === getBlock && call.surface === "gateway") return readBlock(call)
      return (own.get(call.operation.name) ?? backend.read)(call)
    }
    const { subscribe } = yield* EvmFeed.make({ serving, ask: read, reads, addresses: () => sockets })
    const gateway: StreamingBackend = { once: backend.once, read, subscribe }
    return gateway
  }
)
