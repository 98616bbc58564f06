/** Reads of blocks that the gateway itself needs to search logs, to serve filters, and to follow new blocks. */
import { Hash, Quantity } from "@trigate/domain/encoding/Hex"
import * as Json from "@trigate/domain/encoding/Json"
import type { CommonFailure } from "@trigate/domain/errors/GatewayError"
import type { Serving } from "@trigate/domain/evm/EvmMethods"
import type { CheckedRead } from "@trigate/domain/evm/EvmProtocol"
import * as EvmReads from "@trigate/domain/evm/EvmReads"
import { makeRead } from "@trigate/domain/evm/EvmTypedCalls"
import type { RpcAnswer } from "@trigate/domain/operations/JsonRpc"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"

/** Sends a call to a node under the gateway's read policies. */
export type AskNode = (call: CheckedRead) => Effect.Effect<RpcAnswer, CommonFailure>

/** A block number or tag. */
export type BlockName = bigint | "latest" | "safe" | "finalized" | "earliest" | "pending"

const Head = Schema.Struct({
  number: Quantity,
  hash: Hash,
  parentHash: Hash,
  logsBloom: Schema.optionalKey(Schema.NullOr(Schema.String)),
  gasUsed: Schema.optionalKey(Schema.Unknown),
  timestamp: Schema.optionalKey(Schema.Unknown)
})

/** The members of a block header that are needed to follow a chain. */
export interface Header {
  readonly number: bigint
  readonly hash: string
  readonly parentHash: string
  /** The bloom filter of the block's logs; `undefined` if the node does not send one. */
  readonly logsBloom: string | undefined
  /** The time of the block, in seconds; several blocks can have the same. `undefined` if the node does not send it. */
  readonly timestamp: number | undefined
  /** The header as the node encoded it, without the members that subscriptions to heads omit. */
  readonly text: string
}

const isZero = /^0x0*$/u

const inHeads = new Set(["transactions", "uncles", "withdrawals"])

const decodeQuantity = Schema.decodeUnknownOption(Quantity)
const decodeHead = Schema.decodeUnknownOption(Head)

/** Decodes a header from the JSON of a block or of a head; `undefined` if it is neither. */
export const readHeader = (value: unknown): Header | undefined => {
  const head = decodeHead(value)
  if (head._tag === "None" || !Predicate.isObject(value)) return undefined
  const { gasUsed, hash, logsBloom, number, parentHash, timestamp } = head.value
  // some nodes send an empty bloom filter for every block
  const isUnknown = logsBloom === undefined || logsBloom === null || (isZero.test(logsBloom) && gasUsed !== "0x0")
  return {
    number,
    hash: hash.toLowerCase(),
    parentHash: parentHash.toLowerCase(),
    logsBloom: isUnknown ? undefined : logsBloom,
    timestamp: Option.getOrUndefined(Option.map(decodeQuantity(timestamp), Number)),
    text: Json.stringify(Object.fromEntries(Object.entries(value).filter(([name]) => !inHeads.has(name))))
  }
}

/** The reads of one chain. */
export interface NodeReads {
  /** Returns the header of a block; `undefined` while the node does not have it. */
  readonly header: (block: BlockName) => Effect.Effect<Header | undefined, CommonFailure>
  /** Returns the ID of the chain. */
  readonly chainId: Effect.Effect<bigint, CommonFailure>
  /** Returns the transaction hashes of the pending block; empty if the node has no such block. */
  readonly pending: Effect.Effect<ReadonlyArray<string>, CommonFailure>
  /** Returns the header with a given hash (in lower case), if it was among the latest headers read or announced. */
  readonly known: (hash: string) => Header | undefined
  /** Stores a header that a node announced. */
  readonly remember: (header: Header) => void
}

/** Maximum number of stored headers. */
const mostKnown = 256

/** Makes the reads of a chain; `label` names its upstream. */
export const make = (serving: Serving, label: string, ask: AskNode): NodeReads => {
  const askOwn = (call: Omit<CheckedRead, "surface">) => ask({ ...call, surface: "gateway" })
  const block = makeRead({ ...EvmReads.getBlockByNumber(serving), response: Schema.Unknown })(label, askOwn)
  const headers = new Map<string, Header>()
  const remember = (header: Header): void => {
    headers.set(header.hash, header)
    if (headers.size > mostKnown) { for (const hash of headers.keys().take(1)) headers.delete(hash) }
  }
  return {
    header: (name) =>
      Effect.map(block({ block: name }), (value) => {
        const header = readHeader(value)
        if (header !== undefined) remember(header)
        return header
      }),
    known: (hash) => headers.get(hash),
    remember,
    chainId: makeRead(EvmReads.chainId(serving))(label, askOwn)(),
    pending: Effect.map(block({ block: "pending" }), (value) => {
      const transactions: unknown = Predicate.hasProperty(value, "transactions") ? value.transactions : []
      return Array.isArray(transactions) ? transactions.filter(Predicate.isString) : []
    })
  }
}
