/** The trading chain's EVM. Written by `npm run docs:generate` from the operations; change those, not this file. */
import * as Paths from "@trigate/api/Paths"
import * as EvmOperations from "@trigate/domain/evm/EvmOperations"
import * as EvmReads from "@trigate/domain/evm/EvmReads"
import { callAt } from "./internal/JsonRpc.ts"

const method = callAt(Paths.evm)

/** Number of the newest block. */
export const blockNumber = method(EvmReads.blockNumber(EvmOperations.serving))

/** Chain id. */
export const chainId = method(EvmReads.chainId(EvmOperations.serving))

/** A block by number or tag; `null` for one that is not there yet. */
export const getBlockByNumber = method(EvmReads.getBlockByNumber(EvmOperations.serving))

/** A block by hash; `null` for one that the node does not know. */
export const getBlockByHash = method(EvmReads.getBlockByHash(EvmOperations.serving))

/** Logs of a range of blocks, split by what the nodes serve. */
export const getLogs = method(EvmReads.getLogs(EvmOperations.serving))

/** What a call of a contract would return. */
export const call = method(EvmReads.call(EvmOperations.serving))

/** One storage word of a contract, at the latest block. */
export const getStorageAt = method(EvmOperations.getStorageAt)

/** Base fee of the next small block, in wei. */
export const gasPrice = method(EvmOperations.gasPrice)

/** Base fee of the next big block, in wei. */
export const bigBlockGasPrice = method(EvmOperations.bigBlockGasPrice)

/** Whether an account's transactions go to big blocks. */
export const usingBigBlocks = method(EvmOperations.usingBigBlocks)
