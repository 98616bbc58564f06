/** The typed reads that all EVM chains serve, as functions of the route. */
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { Address, Data, Hash, Quantity } from "../encoding/Hex.ts"
import { LogRangeTooWide } from "../errors/RequestError.ts"
import { CallReverted } from "../errors/UpstreamError.ts"
import * as Operation from "../operations/Operation.ts"
import { Block, BlockNumberOrTag, LogFilter } from "./Block.ts"
import { noParams, type Serving, stateAt, typedRead } from "./EvmMethods.ts"
import { Receipt, ReceiptLog } from "./Receipt.ts"

/** Number of the newest block. */
export const blockNumber = (serving: Serving) =>
  typedRead(serving, {
    name: "eth_blockNumber",
    summary: "Number of the newest block",
    cheap: true,
    request: noParams,
    response: Quantity,
    example: []
  })

/** Chain id. */
export const chainId = (serving: Serving) =>
  typedRead(serving, {
    name: "eth_chainId",
    summary: "Chain id",
    cheap: true,
    request: noParams,
    response: Quantity,
    example: []
  })

const full = Schema.optionalKey(Schema.Boolean.annotate({
  description: "Whether to return full transactions instead of their hashes"
}))
const numbered = Schema.toType(Schema.Struct({ block: BlockNumberOrTag, full }))
const hashed = Schema.toType(Schema.Struct({ hash: Hash, full }))

/** A block by number or tag; `null` if the block does not exist yet. */
export const getBlockByNumber = (serving: Serving) =>
  typedRead(serving, {
    name: "eth_getBlockByNumber",
    summary: "A block by number or tag; `null` if the block does not exist yet",
    request: Schema.Tuple([BlockNumberOrTag, Schema.Boolean]).pipe(
      Schema.decodeTo(
        numbered,
        SchemaTransformation.transform({
          decode: ([block, full]): typeof numbered.Type => ({ block, full }),
          encode: ({ block, full = false }) => [block, full] as const
        })
      )
    ),
    response: Schema.NullOr(Block),
    example: ["latest", false]
  })

/** A block by hash; `null` if the node does not know the block. */
export const getBlockByHash = (serving: Serving) =>
  typedRead(serving, {
    name: "eth_getBlockByHash",
    summary: "A block by hash; `null` if the node does not know the block",
    request: Schema.Tuple([Hash, Schema.Boolean]).pipe(
      Schema.decodeTo(
        hashed,
        SchemaTransformation.transform({
          decode: ([hash, full]): typeof hashed.Type => ({ hash, full }),
          encode: ({ full = false, hash }) => [hash, full] as const
        })
      )
    ),
    response: Schema.NullOr(Block),
    example: [`0x${"0".repeat(64)}`, false]
  })

/**
 * Logs that match a filter, over any block range: the gateway splits the block range into ranges that the nodes serve.
 */
export const getLogs = (serving: Serving) =>
  Operation.read({
    ...typedRead(serving, {
      name: "eth_getLogs",
      summary: "Logs of a block range, which is split into ranges that the nodes serve",
      request: Schema.Tuple([LogFilter]).pipe(
        Schema.decodeTo(
          Schema.toType(LogFilter),
          SchemaTransformation.transform({ decode: ([filter]) => filter, encode: (filter) => [filter] as const })
        )
      ),
      response: Schema.Array(ReceiptLog),
      example: [{ fromBlock: "latest" }]
    }),
    failures: [LogRangeTooWide]
  })

const message = Schema.Struct({
  to: Address,
  from: Schema.optionalKey(Address),
  gas: Schema.optionalKey(Quantity),
  value: Schema.optionalKey(Quantity.annotate({ description: "In wei" })),
  data: Schema.optionalKey(Data)
})
const messageAt = Schema.toType(Schema.Struct({ ...message.fields, block: Schema.optionalKey(BlockNumberOrTag) }))

/** The return data of a contract call. No transaction is sent. */
export const call = (serving: Serving) => {
  const state = stateAt(serving, 1)
  return Operation.read({
    ...typedRead(serving, {
      name: "eth_call",
      summary: "Return data of a contract call",
      request: Schema.Tuple([message, BlockNumberOrTag]).pipe(
        Schema.decodeTo(
          messageAt,
          SchemaTransformation.transform({
            decode: ([call, block]): typeof messageAt.Type => ({ ...call, block }),
            encode: ({ block = "latest", ...call }) => [call, block] as const
          })
        )
      ),
      response: Data,
      // the call `name()` of the contract of wrapped HYPE
      example: [{ to: "0x5555555555555555555555555555555555555555", data: "0x06fdde03" }, "latest"]
    }),
    ...state,
    failures: [...state.failures, CallReverted]
  })
}

/** The param of a method that takes a transaction's hash. */
export const hashParam = Schema.Tuple([Hash]).pipe(
  Schema.decodeTo(
    Schema.toType(Schema.Struct({ hash: Hash })),
    SchemaTransformation.transform({ decode: ([hash]) => ({ hash }), encode: ({ hash }) => [hash] as const })
  )
)

/** The receipt of a transaction; `null` if the transaction is unknown or not yet in a block. */
export const getTransactionReceipt = (serving: Serving) =>
  typedRead(serving, {
    name: "eth_getTransactionReceipt",
    summary: "The receipt of a transaction; `null` if none exists",
    cheap: true,
    request: hashParam,
    response: Schema.NullOr(Receipt),
    example: [`0x${"0".repeat(64)}`]
  })

/** The typed reads, by their names in the services and the client. */
export const evmReads = { blockNumber, chainId, getBlockByNumber, getBlockByHash, getLogs, call } as const
