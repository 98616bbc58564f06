/** The JSON-RPC methods of `POST /l2`: any EVM layer 2. */
import * as Schema from "effect/Schema"
import * as Operation from "../operations/Operation.ts"
import * as EvmMethods from "./EvmMethods.ts"
import { evmReads, filterMethods, hashParam, standardMethods } from "./EvmMethods.ts"
import { Receipt } from "./EvmResources.ts"

/** The route of the layer 2. Its nodes serve the requested block, or fail if they do not have the block. */
export const serving: EvmMethods.Serving = { chain: "layer2", protocol: "layer2", latestOnly: false }

/** The receipt of a transaction; `null` if the transaction is unknown or not yet in a block. */
export const getTransactionReceipt = Operation.read({
  ...EvmMethods.served(serving),
  name: "eth_getTransactionReceipt",
  summary: "The receipt of a transaction, with the layer 2's fields; `null` if none exists",
  cheap: true,
  request: hashParam,
  response: Schema.NullOr(Receipt),
  failures: [],
  example: ["0xffbd8fdbaf5800e2f7df0d5a73efee4fe8a9ef54d53f10798bbb76f7bb08c39e"]
})

/** The typed methods, by their names in the service and the client. */
export const layer2Operations = { ...EvmMethods.on(serving, evmReads), getTransactionReceipt } as const

const typed: ReadonlySet<string> = new Set(Object.values(layer2Operations).map(({ name }) => name))

/** Sends a signed transaction. */
export const sendRawTransaction = EvmMethods.rawTransaction(serving)

/** Sends a signed transaction and waits for its receipt. */
export const sendRawTransactionSync = EvmMethods.rawTransactionSync(serving)

/** Any method of `POST /l2`. */
export type Layer2Operation = Operation.Operation<string, "read"> | Operation.OnceOperation

/** All methods of `POST /l2`. */
export const layer2Methods: ReadonlyArray<Layer2Operation> = [
  ...Object.values(layer2Operations),
  sendRawTransaction,
  sendRawTransactionSync,
  ...EvmMethods.relayedReads({ ...standardMethods, ...filterMethods }, serving).filter(({ name }) => !typed.has(name))
]
