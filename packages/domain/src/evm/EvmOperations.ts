/** The JSON-RPC methods of `POST /evm`: the trading chain's EVM. */
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { Address, Quantity, StorageSlot } from "../encoding/Hex.ts"
import { UnsupportedBlock } from "../errors/RequestError.ts"
import * as Operation from "../operations/Operation.ts"
import * as EvmMethods from "./EvmMethods.ts"
import { filterMethods, standardMethods } from "./EvmMethodTable.ts"
import * as EvmReads from "./EvmReads.ts"

/**
 * The default route. Its nodes have no history: for an older block, they would return the latest state.
 */
export const serving: EvmMethods.Serving = { chain: "trading", protocol: "evm", latestOnly: true }

/** The route over archive nodes, which serve the state at every block. */
export const archiveServing: EvmMethods.Serving = { ...serving, latestOnly: false }

const storageParams = Schema.Tuple([Address, StorageSlot, Schema.optionalKey(Schema.Literal("latest"))]).pipe(
  Schema.decodeTo(
    Schema.toType(Schema.Struct({ address: Address, slot: StorageSlot })),
    SchemaTransformation.transform({
      decode: ([address, slot]) => ({ address, slot }),
      encode: ({ address, slot }) => [address, slot, "latest"] as const
    })
  )
)

const addressParam = Schema.Tuple([Address]).pipe(
  Schema.decodeTo(
    Schema.toType(Schema.Struct({ address: Address })),
    SchemaTransformation.transform({
      decode: ([address]) => ({ address }),
      encode: ({ address }) => [address] as const
    })
  )
)

/** The time between two small blocks of the trading chain, in milliseconds. */
const blockMillis = 1000

const oneBlock = (): Operation.CachePolicy => ({ fresh: blockMillis, staleIfError: 10 * blockMillis })

/**
 * A storage word of a contract, at `latest` only, because nodes without history would return the latest state for any
 * other block.
 */
export const getStorageAt = Operation.read({
  ...EvmMethods.served(serving),
  name: "eth_getStorageAt",
  summary: "A storage word of a contract, at the latest block",
  cheap: true,
  request: storageParams,
  response: StorageSlot,
  failures: [UnsupportedBlock],
  blockParam: { position: 2, supported: ["latest"] },
  cachePolicyOnRequest: () => ({ fresh: blockMillis, staleIfError: 0 }),
  isCacheable: Operation.decodes(StorageSlot),
  example: ["0x5555555555555555555555555555555555555555", "0x2", "latest"]
})

const baseFee = <const Name extends string>(name: Name, kind: "small" | "big") =>
  Operation.read({
    ...EvmMethods.served(serving),
    name,
    summary: `Base fee of the next ${kind} block, in wei`,
    cheap: true,
    request: EvmMethods.noParams,
    response: Quantity,
    failures: [],
    cachePolicy: oneBlock,
    isCacheable: Operation.decodes(Quantity),
    example: []
  })

/** Returns the base fee of the next small block, in wei. */
export const gasPrice = baseFee("eth_gasPrice", "small")

/** Returns the base fee of the next big block, in wei. */
export const bigBlockGasPrice = baseFee("eth_bigBlockGasPrice", "big")

/** Whether an account's transactions use big blocks, as set by `evmUserModify`. */
export const usingBigBlocks = Operation.read({
  ...EvmMethods.served(serving),
  name: "eth_usingBigBlocks",
  summary: "Whether an account's transactions use big blocks",
  cheap: true,
  request: addressParam,
  response: Schema.Boolean,
  failures: [],
  example: ["0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"]
})

/** The receipt of a transaction; `null` if the transaction is unknown or not yet in a block. */
export const getTransactionReceipt = EvmReads.getTransactionReceipt(serving)

/** Makes the typed methods of a route, by their names in the services and the client. */
export const makeOperations = (serving: EvmMethods.Serving) =>
  ({
    ...EvmMethods.on(serving, EvmReads.evmReads),
    getTransactionReceipt,
    getStorageAt,
    gasPrice,
    bigBlockGasPrice,
    usingBigBlocks
  }) as const

/** The typed methods of `POST /evm` for nodes without history. */
export const evmOperations = makeOperations(serving)

const systemMethods = {
  eth_getSystemTxsByBlockHash: { summary: "System transactions of a block, created by the trading chain" },
  eth_getSystemTxsByBlockNumber: { summary: "System transactions of a block, created by the trading chain" }
}

/** Sends a signed transaction. */
export const sendRawTransaction = EvmMethods.rawTransaction(serving)

/** Sends a signed transaction and waits for its receipt. */
export const sendRawTransactionSync = EvmMethods.rawTransactionSync(serving)

/** Any method of `POST /evm`. */
export type EvmOperation = Operation.Operation<string, "read"> | Operation.OnceOperation

/**
 * Returns all methods of `POST /evm`. Over archive nodes, a method is relayed without decoding if its schema allows only the
 * latest block.
 */
export const makeMethods = (serving: EvmMethods.Serving): ReadonlyArray<EvmOperation> => {
  const typed = serving.latestOnly
    ? Object.values<EvmOperation>(evmOperations)
    : Object.values<EvmOperation>(makeOperations(serving)).filter(({ blockParam }) => blockParam === undefined)
  const names = new Set(typed.map(({ name }) => name))
  return [
    ...typed,
    sendRawTransaction,
    sendRawTransactionSync,
    ...EvmMethods.relayedReads({ ...standardMethods, ...systemMethods, ...filterMethods }, serving).filter(({ name }) =>
      !names.has(name)
    )
  ]
}

/** The methods of `POST /evm` for nodes without history, which is the default. */
export const evmMethods: ReadonlyArray<EvmOperation> = makeMethods(serving)
