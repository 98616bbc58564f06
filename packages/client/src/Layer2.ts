/** The layer 2. Written by `npm run docs:generate` from the operations; change the operations, not this file. */
import * as Paths from "@trigate/api/Paths"
import * as Layer2Operations from "@trigate/domain/evm/Layer2Operations"
import * as EvmReads from "@trigate/domain/unstable/evm/EvmMethods"
import { callAt, sendAt } from "./internal/Served.ts"

const method = callAt(Paths.layer2, Layer2Operations.serving.chain)
const send = sendAt(Paths.layer2, Layer2Operations.serving.chain)

/**
 * Sends a signed transaction once, and returns its hash. Fails with `OutcomeUnknown` if the response is lost.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Layer2 } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const program = Layer2.sendRawTransaction({ transaction: "0x02" }).pipe(
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
export const sendRawTransaction = send(Layer2Operations.sendRawTransaction)

/**
 * Number of the newest block.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Layer2 } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Layer2.blockNumber()
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const blockNumber = method(EvmReads.blockNumber(Layer2Operations.serving))

/**
 * Chain id.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Layer2 } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Layer2.chainId()
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const chainId = method(EvmReads.chainId(Layer2Operations.serving))

/**
 * A block by number or tag; `null` if the block does not exist yet.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Layer2 } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Layer2.getBlockByNumber({ block: "latest", full: false })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const getBlockByNumber = method(EvmReads.getBlockByNumber(Layer2Operations.serving))

/**
 * A block by hash; `null` if the node does not know the block.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Layer2 } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Layer2.getBlockByHash({ hash: "0x0000000000000000000000000000000000000000000000000000000000000000", full: false })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const getBlockByHash = method(EvmReads.getBlockByHash(Layer2Operations.serving))

/**
 * Logs of a block range, which is split into ranges that the nodes serve.
 *
 * Fails with `CallFailure` or `LogRangeTooWide`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Layer2 } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Layer2.getLogs({ fromBlock: "latest" })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const getLogs = method(EvmReads.getLogs(Layer2Operations.serving))

/**
 * Return data of a contract call.
 *
 * Fails with `CallFailure` or `CallReverted`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Layer2 } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Layer2.call({ to: "0x5555555555555555555555555555555555555555", data: "0x06fdde03", block: "latest" })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const call = method(EvmReads.call(Layer2Operations.serving))

/**
 * Balance of an account, in wei.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Layer2 } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Layer2.getBalance({ address: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266", block: "latest" })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const getBalance = method(EvmReads.getBalance(Layer2Operations.serving))

/**
 * Number of transactions that an account has sent.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Layer2 } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Layer2.getTransactionCount({ address: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266", block: "latest" })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const getTransactionCount = method(EvmReads.getTransactionCount(Layer2Operations.serving))

/**
 * The receipt of a transaction, with the layer 2's fields; `null` if none exists.
 *
 * Fails with `CallFailure`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Layer2 } from "@trigate/client"
 * import { Effect } from "effect"
 *
 * const program = Layer2.getTransactionReceipt({ hash: "0xffbd8fdbaf5800e2f7df0d5a73efee4fe8a9ef54d53f10798bbb76f7bb08c39e" })
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const getTransactionReceipt = method(Layer2Operations.getTransactionReceipt)
