/** HyperEVM. Written by `npm run docs:generate` from the operations; change the operations, not this file. */
import * as Paths from "@trigate/api/Paths"
import * as EvmOperations from "@trigate/domain/evm/EvmProtocol"
import * as EvmReads from "@trigate/domain/unstable/evm/EvmMethods"
import { callAt, sendAt } from "./internal/Served.ts"

const method = callAt(Paths.evm, EvmOperations.serving.chain)
const send = sendAt(Paths.evm, EvmOperations.serving.chain)

/**
 * Sends a signed transaction once, and returns its hash. Fails with `OutcomeUnknown` if the response is lost.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Evm } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const program = Evm.sendRawTransaction({ transaction: "0x02" }).pipe(
 *   Effect.flatMap(Console.log),
 *   Effect.catchTag("RequestError", ({ reason }) => Console.log(reason._tag))
 * )
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * InvalidRequest
 * ```
 */
export const sendRawTransaction = send(EvmOperations.sendRawTransaction)

/**
 * Number of the newest block.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Evm } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Evm.blockNumber()
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const blockNumber = method(EvmReads.blockNumber(EvmOperations.serving))

/**
 * Chain id.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Evm } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Evm.chainId()
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const chainId = method(EvmReads.chainId(EvmOperations.serving))

/**
 * A block by number or tag; `null` if the block does not exist yet.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Evm } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Evm.getBlockByNumber({ block: "latest", full: false })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const getBlockByNumber = method(EvmReads.getBlockByNumber(EvmOperations.serving))

/**
 * A block by hash; `null` if the node does not know the block.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Evm } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Evm.getBlockByHash({ hash: "0x0000000000000000000000000000000000000000000000000000000000000000", full: false })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const getBlockByHash = method(EvmReads.getBlockByHash(EvmOperations.serving))

/**
 * Logs of a block range, which is split into ranges that the nodes serve.
 *
 * Fails with `CallFailure` or `LogRangeTooWide`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Evm } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Evm.getLogs({ fromBlock: "latest" })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const getLogs = method(EvmReads.getLogs(EvmOperations.serving))

/**
 * Return data of a contract call.
 *
 * Fails with `CallFailure` or `UnsupportedBlock` or `CallReverted`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Evm } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Evm.call({ to: "0x5555555555555555555555555555555555555555", data: "0x06fdde03", block: "latest" })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const call = method(EvmReads.call(EvmOperations.serving))

/**
 * Balance of an account, in wei.
 *
 * Fails with `CallFailure` or `UnsupportedBlock`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Evm } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Evm.getBalance({ address: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266", block: "latest" })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const getBalance = method(EvmReads.getBalance(EvmOperations.serving))

/**
 * Number of transactions that an account has sent.
 *
 * Fails with `CallFailure` or `UnsupportedBlock`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Evm } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Evm.getTransactionCount({ address: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266", block: "latest" })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const getTransactionCount = method(EvmReads.getTransactionCount(EvmOperations.serving))

/**
 * The receipt of a transaction; `null` if none exists.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Evm } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Evm.getTransactionReceipt({ hash: "0x0000000000000000000000000000000000000000000000000000000000000000" })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const getTransactionReceipt = method(EvmOperations.getTransactionReceipt)

/**
 * A storage word of a contract, at the latest block.
 *
 * Fails with `CallFailure` or `UnsupportedBlock`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Evm } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Evm.getStorageAt({ address: "0x5555555555555555555555555555555555555555", slot: "0x2" })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const getStorageAt = method(EvmOperations.getStorageAt)

/**
 * Base fee of the next small block, in wei.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Evm } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Evm.gasPrice()
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const gasPrice = method(EvmOperations.gasPrice)

/**
 * Base fee of the next big block, in wei.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Evm } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Evm.bigBlockGasPrice()
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const bigBlockGasPrice = method(EvmOperations.bigBlockGasPrice)

/**
 * Whether an account's transactions use big blocks.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Evm } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Evm.usingBigBlocks({ address: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266" })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const usingBigBlocks = method(EvmOperations.usingBigBlocks)
