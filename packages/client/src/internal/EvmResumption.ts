/** The state that a typed EVM stream needs to continue over another connection without gaps or duplicates. */
import { encodeQuantity } from "@trigate/domain/encoding/Encoding"
import type { BlockHeader, ReceiptLog } from "@trigate/domain/evm/EvmResources"
import type { blocks, logs } from "@trigate/domain/unstable/evm/EvmStreams"

/** One run of a stream over successive connections. */
export interface Resumption<Item> {
  /**
   * Called at the start of each connection. Returns the encoded parameter of the subscription request, including the
   * block at which to resume.
   */
  readonly begin: () => { readonly [member: string]: unknown }
  /** Returns the items to emit when an item is received. */
  readonly receive: (item: Item) => ReadonlyArray<Item>
  /** Returns the items to emit after all items up to a block have been received. */
  readonly reach: (block: bigint) => ReadonlyArray<Item>
}

/**
 * The number of newest blocks that are requested again and compared after a lost connection. A deeper reorg is not
 * detected.
 */
const depth = 64n

const resumeAt = (first: bigint, last: bigint): bigint => last - depth + 1n > first ? last - depth + 1n : first

/**
 * Resumes a stream of blocks: drops blocks that were already emitted, and emits a block number again only if a reorg
 * replaced that block.
 */
export const resumeBlocks = (
  { fromBlock }: (typeof blocks)["request"]["Type"]
): Resumption<BlockHeader> => {
  const known = new Map<bigint, string>()
  let first: bigint | undefined
  let last: bigint | undefined
  return {
    begin: () => {
      if (first !== undefined && last !== undefined) return { fromBlock: encodeQuantity(resumeAt(first, last)) }
      return { fromBlock: fromBlock === undefined ? "latest" : encodeQuantity(fromBlock) }
    },
    receive: (header) => {
      const { hash, number } = header
      if (known.get(number) === hash) return []
      for (const each of known.keys()) if (each > number || each <= number - depth) known.delete(each)
      known.set(number, hash)
      first ??= number
      last = number
      return [header]
    },
    reach: () => []
  }
}

const logKey = ({ blockHash, logIndex }: ReceiptLog): string => `${blockHash.toLowerCase()}:${logIndex}`

/**
 * Resumes a stream of logs: drops logs that were already emitted. If the new connection does not repeat an emitted log,
 * a reorg has removed that log. Removals are emitted before new logs.
 */
export const resumeLogs = (
  { fromBlock, ...filter }: (typeof logs)["request"]["Type"]
): Resumption<ReceiptLog> => {
  // a map iterates in insertion order: the order in which the logs were emitted
  const emitted = new Map<string, ReceiptLog>()
  /** Emitted logs that this connection has not repeated yet. */
  let unconfirmed = new Map<string, ReceiptLog>()
  /** New logs. They wait until the removals of earlier logs are known, and are emitted after the removals. */
  let waiting: Map<string, ReceiptLog> | undefined
  let first = fromBlock
  let position: bigint | undefined

  const emit = (logs: Iterable<ReceiptLog>): ReadonlyArray<ReceiptLog> => {
    for (const log of logs) emitted.set(logKey(log), log)
    return [...logs]
  }

  return {
    begin: () => {
      const from = first === undefined || position === undefined ? first : resumeAt(first, position)
      unconfirmed = new Map([...emitted].filter(([, { blockNumber }]) => from !== undefined && blockNumber >= from))
      waiting = unconfirmed.size === 0 ? undefined : new Map()
      return { ...filter, ...(from === undefined ? {} : { fromBlock: encodeQuantity(from) }), positions: true }
    },
    receive: (log) => {
      const key = logKey(log)
      if (log.removed === true) {
        unconfirmed.delete(key)
        waiting?.delete(key)
        return emitted.delete(key) ? [log] : []
      }
      if (emitted.has(key)) {
        unconfirmed.delete(key)
        return []
      }
      if (waiting === undefined) return emit([log])
      waiting.set(key, log)
      return []
    },
    reach: (block) => {
      const removed: Array<ReceiptLog> = []
      for (const [key, log] of [...unconfirmed].filter(([, { blockNumber }]) => blockNumber <= block).toReversed()) {
        unconfirmed.delete(key)
        emitted.delete(key)
        removed.push({ ...log, removed: true })
      }
      const added = emit([...(waiting?.values() ?? [])])
      waiting = undefined
      position = block
      first ??= block + 1n
      for (const [key, { blockNumber }] of emitted) {
        if (blockNumber > block - depth) break
        emitted.delete(key)
      }
      return [...removed, ...added]
    }
  }
}
