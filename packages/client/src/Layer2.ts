/** The layer 2. Written by `npm run docs:generate` from the operations; change those, not this file. */
import * as Paths from "@trigate/api/Paths"
import * as EvmReads from "@trigate/domain/evm/EvmReads"
import * as Layer2Operations from "@trigate/domain/evm/Layer2Operations"
import { callAt } from "./internal/JsonRpc.ts"

const method = callAt(Paths.layer2)

/** Number of the newest block. */
export const blockNumber = method(EvmReads.blockNumber(Layer2Operations.serving))

/** Chain id. */
export const chainId = method(EvmReads.chainId(Layer2Operations.serving))

/** A block by number or tag; `null` for one that is not there yet. */
export const getBlockByNumber = method(EvmReads.getBlockByNumber(Layer2Operations.serving))

/** A block by hash; `null` for one that the node does not know. */
export const getBlockByHash = method(EvmReads.getBlockByHash(Layer2Operations.serving))

/** Logs of a range of blocks, split by what the nodes serve. */
export const getLogs = method(EvmReads.getLogs(Layer2Operations.serving))

/** What a call of a contract would return. */
export const call = method(EvmReads.call(Layer2Operations.serving))

/** The receipt of a transaction, with its logs and the fields that its layer 2 adds. */
export const getTransactionReceipt = method(Layer2Operations.getTransactionReceipt)
