/**
 * Declarations of the typed subscriptions of an EVM chain; the methods of the services, the client and the memory layers are
 * derived from them.
 */
import * as Schema from "effect/Schema"
import { Quantity } from "../encoding/Hex.ts"
import type { AnyCodec } from "../operations/Operation.ts"
import { BlockHeader, LogFilter } from "./Block.ts"
import { ReceiptLog } from "./Receipt.ts"

/** The subject of a caller's subscription, such as new blocks or the logs that match a filter. */
export type Interest =
  | { readonly kind: "newPendingTransactions" }
  | { readonly kind: "syncing" }
  /** `fromBlock` also requests the blocks from that block on; they are sent before new blocks. */
  | { readonly kind: "newHeads"; readonly fromBlock?: bigint | "latest" }
  /** `fromBlock` also requests the logs from that block on; they are sent before new logs. */
  | {
    readonly kind: "logs"
    readonly filter: Pick<LogFilter, "address" | "topics">
    readonly fromBlock?: bigint
    /** Whether to send each {@link LogPosition}. The first position is sent after the logs since `fromBlock`. */
    readonly hasPositions?: true
  }

/** A notification, built once and sent to all callers that subscribed to it. */
export interface EvmFrame {
  readonly text: string
  /** The encoded bytes for the transport, cached when the first caller receives them. */
  wire: Uint8Array | undefined
}

/** Delivers one caller's notifications. */
export interface EvmSink {
  readonly deliver: (frame: EvmFrame) => void
  /** Called after all notifications of one poll of the node have been delivered. */
  readonly flush: () => void
}

/** A subscription of one caller. */
export interface Subscribed {
  /** A 128-bit ID; equal subscriptions of different callers have the same ID. */
  readonly id: string
  readonly end: () => void
}

/** Subscribes to the new blocks or logs of a chain. The sink receives the notifications in the order of the blocks. */
export type Subscribe = (interest: Interest, sink: EvmSink) => Subscribed

/** The declaration of one subscription. */
export interface EvmSubscription<
  Name extends "newHeads" | "logs" = "newHeads" | "logs",
  Request extends AnyCodec = AnyCodec,
  Item extends AnyCodec = AnyCodec
> {
  /** The name in `eth_subscribe`. */
  readonly name: Name
  /** The items that the subscription sends, described in one sentence for the documentation. */
  readonly summary: string
  /** The schema of the subscription's parameter, which follows the name in `eth_subscribe`. */
  readonly request: Request
  /** The schema of the member `result` of notifications. */
  readonly item: Item
  /**
   * Returns the subject of the subscription that a request starts. This is a method, not a property, so that a
   * subscription with any request type is assignable to `EvmSubscription`.
   */
  interest(request: Request["Type"]): Interest
  readonly example: Request["Encoded"]
}

const declare = <const Name extends "newHeads" | "logs", Request extends AnyCodec, Item extends AnyCodec>(
  declaration: EvmSubscription<Name, Request, Item>
): EvmSubscription<Name, Request, Item> => declaration

/** New blocks by ascending number, beginning with the latest; after a reorg, the blocks of the new branch. */
export const blocks = declare({
  name: "newHeads",
  summary: "Each block by ascending number, beginning with the newest; after a reorg, the blocks of the new branch",
  request: Schema.Struct({
    fromBlock: Schema.optionalKey(Quantity.annotate({
      description: "The first block. Default: the newest. At most 1024 blocks before the newest"
    }))
  }),
  item: BlockHeader,
  interest: ({ fromBlock }) => ({ kind: "newHeads", fromBlock: fromBlock ?? "latest" }),
  example: {}
})

/** New logs; after a reorg, first the logs of the old branch with `removed: true`, then the logs of the new branch. */
export const logs = declare({
  name: "logs",
  summary:
    "Logs that match a filter; after a reorg, first the logs of the old branch with `removed: true`, newest first, then the logs of the new branch",
  request: Schema.Struct({
    address: LogFilter.fields.address,
    topics: LogFilter.fields.topics,
    fromBlock: Schema.optionalKey(Quantity.annotate({
      description:
        "A past block. First, the logs from this block to the latest block are sent, then new logs. Default: only new logs"
    }))
  }),
  item: ReceiptLog,
  interest: ({ fromBlock, ...filter }) => ({ kind: "logs", filter, ...(fromBlock === undefined ? {} : { fromBlock }) }),
  example: { address: "0x5555555555555555555555555555555555555555" }
})

/** The subscriptions, by the names of their methods. */
export const evmSubscriptions = { blocks, logs } as const

/**
 * The number of the block up to which all logs of a subscription were sent.
 *
 * A caller that requests positions receives one after the logs of each block. After a lost connection, logs can be
 * missing only after the block of the last position.
 */
export const LogPosition = Schema.Struct({ position: Quantity })
