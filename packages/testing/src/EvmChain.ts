/**
 * A model of an EVM chain for tests: blocks with logs, reorgs, and a node that serves JSON-RPC reads of the chain.
 *
 * The seed that {@link make} receives determines all data. Bloom filters are not computed: the filter of a block with
 * logs matches every log, and the filter of a block without logs matches none.
 */
import * as Schema from "effect/Schema"
import { createHash } from "node:crypto"

/** A log of the model, in a node's form. */
export interface ModelLog {
  readonly address: string
  readonly topics: ReadonlyArray<string>
  readonly data: string
  readonly blockNumber: string
  readonly blockHash: string
  readonly transactionHash: string
  readonly transactionIndex: string
  readonly logIndex: string
  readonly removed: boolean
}

/** A block of the model. */
export interface ModelBlock {
  readonly number: number
  readonly hash: string
  readonly parentHash: string
  readonly logs: ReadonlyArray<ModelLog>
}

const hex = (value: number): string => `0x${value.toString(16)}`
const digest = (text: string): string => `0x${createHash("sha256").update(text).digest("hex")}`

/** The contracts that emit the model's logs. */
export const contracts = ["a", "b", "c"].map((name) => digest(name).slice(0, 42))
/** The event hashes that the model's logs have as their first topic. */
export const events = ["x", "y"].map(digest)

/** A JSON-RPC error of the node, for example for a log request with too long a block range. */
export interface RpcError {
  readonly code: number
  readonly message: string
}

const Call = Schema.Struct({ id: Schema.Unknown, method: Schema.String, params: Schema.Array(Schema.Unknown) })
const decodeRequest = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Union([Call, Schema.Array(Call)])))

/** A model of an EVM chain: its blocks, and a node that serves JSON-RPC reads. */
export class EvmChain {
  readonly #seed: string
  #blocks: Array<ModelBlock> = []
  #branch = 0
  /** Maximum number of blocks in one log request. */
  span: number
  /** The number of blocks in each log request that the node has received. */
  readonly ranges: Array<number> = []
  /** The number of blocks with one timestamp. */
  perSecond = 1
  /** Whether the node serves log requests by block hash. */
  servesHashes = true
  refusal: (span: number) => RpcError = (span) => ({ code: -32602, message: `query exceeds max block range ${span}` })

  constructor(
    seed: string,
    { blocks = 1, span = Number.MAX_SAFE_INTEGER }: { readonly blocks?: number; readonly span?: number } = {}
  ) {
    this.#seed = seed
    this.span = span
    this.extend(blocks)
  }

  get head(): ModelBlock {
    const head = this.#blocks.at(-1)
    if (head === undefined) throw new Error("The model chain has no blocks")
    return head
  }

  get blocks(): ReadonlyArray<ModelBlock> {
    return this.#blocks
  }

  /** Adds blocks. */
  extend(count: number): void {
    for (let each = 0; each < count; each++) {
      const number = this.#blocks.length
      const hash = digest(`${this.#seed} ${this.#branch} ${number}`)
      const parentHash = this.#blocks.at(-1)?.hash ?? `0x${"0".repeat(64)}`
      const random = Number.parseInt(hash.slice(2, 10), 16)
      // most blocks have no log, and some have several
      const logs = Array.from({ length: Math.max(0, random % 7 - 3) }, (_, index): ModelLog => ({
        address: contracts[(random + index) % contracts.length] ?? "",
        topics: [events[(random >>> 3) % events.length] ?? "", digest(`${random % 5}`)],
        data: "0x",
        blockNumber: hex(number),
        blockHash: hash,
        transactionHash: digest(`${hash} ${index}`),
        transactionIndex: hex(index),
        logIndex: hex(index),
        removed: false
      }))
      this.#blocks.push({ number, hash, parentHash, logs })
    }
  }

  /** Replaces the newest `depth` blocks with `count` other blocks, as a reorg does. */
  reorganise(depth: number, count: number = depth): void {
    this.#blocks = this.#blocks.slice(0, Math.max(1, this.#blocks.length - depth))
    this.#branch++
    this.extend(count)
  }

  /** Returns the logs of canonical blocks that match a filter. */
  logs(filter: { readonly [name: string]: unknown }, from = 0, to = this.head.number): ReadonlyArray<ModelLog> {
    const addresses = [filter["address"] ?? []].flat()
    const topics: ReadonlyArray<unknown> = Array.isArray(filter["topics"]) ? filter["topics"] : []
    return this.#blocks.slice(from, to + 1).flatMap(({ logs }) => logs).filter((log) =>
      (addresses.length === 0 || addresses.includes(log.address)) &&
      topics.every((topic, index) => topic === null || [topic].flat().includes(log.topics[index]))
    )
  }

  /**
   * Returns a second node with a copy of this node's blocks. Later blocks and reorgs of this node do not change the
   * copy.
   */
  copy(): EvmChain {
    const copy = new EvmChain(this.#seed, { span: this.span })
    copy.#blocks = [...this.#blocks]
    copy.servesHashes = this.servesHashes
    copy.perSecond = this.perSecond
    return copy
  }

  #number(name: unknown): number {
    if (name === "earliest") return 0
    return typeof name === "string" && name.startsWith("0x") ? Number(name) : this.head.number
  }

  /** Encodes the header of a block as a node does. */
  header({ hash, logs, number, parentHash }: ModelBlock): object {
    return {
      number: hex(number),
      hash,
      parentHash,
      timestamp: hex(1_700_000_000 + Math.floor(number / this.perSecond)),
      logsBloom: `0x${(logs.length === 0 ? "0" : "f").repeat(512)}`,
      gasLimit: "0x1c9c380",
      gasUsed: "0x0",
      baseFeePerGas: "0x7"
    }
  }

  /** Returns a node's response to a call: a result, or an error. */
  call(method: string, params: ReadonlyArray<unknown>): { readonly result: unknown } | { readonly error: RpcError } {
    const [first] = params
    switch (method) {
      case "eth_chainId":
        return { result: "0x3e7" }
      case "eth_blockNumber":
        return { result: hex(this.head.number) }
      case "eth_getBlockByNumber": {
        const block = this.#blocks[this.#number(first)]
        return { result: block === undefined ? null : { ...this.header(block), transactions: [] } }
      }
      case "eth_getBlockByHash": {
        const block = this.#blocks.find(({ hash }) => hash === first)
        return { result: block === undefined ? null : { ...this.header(block), transactions: [] } }
      }
      case "eth_getLogs": {
        const filter: { readonly [name: string]: unknown } = typeof first === "object" && first !== null
          ? { ...first }
          : {}
        if ("blockHash" in filter) {
          if (!this.servesHashes) return { error: { code: -32602, message: "unknown field blockHash" } }
          const block = this.#blocks.find(({ hash }) => hash === filter["blockHash"])
          if (block === undefined) return { error: { code: -32000, message: "unknown block" } }
          this.ranges.push(1)
          return { result: this.logs(filter, block.number, block.number) }
        }
        const from = this.#number(filter["fromBlock"])
        const to = this.#number(filter["toBlock"])
        this.ranges.push(to - from + 1)
        return to - from + 1 > this.span ? { error: this.refusal(this.span) } : { result: this.logs(filter, from, to) }
      }
    }
    return { error: { code: -32601, message: `the method ${method} does not exist` } }
  }

  /** Encodes the response to a request or a batch. */
  respond(body: string): string {
    const one = ({ id, method, params }: typeof Call.Type) => ({ jsonrpc: "2.0", id, ...this.call(method, params) })
    const request = decodeRequest(body)
    return JSON.stringify("method" in request ? one(request) : request.map(one))
  }
}
