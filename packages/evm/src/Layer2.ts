/** The service of an EVM layer 2: relayed JSON-RPC calls, receipts, and waiting for a receipt. */
import { Hash } from "@trigate/domain/encoding/Encoding"
import * as GatewayError from "@trigate/domain/errors/GatewayError"
import * as EvmProtocol from "@trigate/domain/evm/EvmProtocol"
import type { RpcResponse } from "@trigate/domain/evm/EvmProtocol"
import * as EvmResources from "@trigate/domain/evm/EvmResources"
import type { Receipt } from "@trigate/domain/evm/EvmResources"
import { layer2Operations, sendRawTransaction, serving } from "@trigate/domain/evm/Layer2Operations"
import type { Methods } from "@trigate/domain/operations/Operation"
import * as EvmStreams from "@trigate/domain/unstable/evm/EvmStreams"
import * as MemoryResponses from "@trigate/domain/unstable/operations/MemoryResponses"
import type { SetResponse } from "@trigate/domain/unstable/operations/MemoryResponses"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Ref from "effect/Ref"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"

/** Errors of a failed poll after which the next poll can still succeed. */
export const TransientFailure = Schema.Union([
  GatewayError.UpstreamUnavailable,
  GatewayError.UpstreamRateLimited,
  GatewayError.UpstreamTimeout,
  GatewayError.UpstreamMalformed,
  GatewayError.QuotaExceeded,
  GatewayError.Overloaded
])
export type TransientFailure = typeof TransientFailure.Type

/**
 * No receipt was found before the deadline, or before the polling schedule ended. `waited` is in milliseconds.
 *
 * The transaction might still be mined. `lastFailure` is present if the last poll failed; the cause of the timeout can
 * then be the node instead of the transaction. The error is raised locally and never sent over HTTP.
 */
export class ReceiptTimeout extends Schema.TaggedError<ReceiptTimeout>()("ReceiptTimeout", {
  hash: Hash,
  waited: Schema.Natural,
  lastFailure: Schema.optionalKey(TransientFailure)
}) {
  get group() {
    return "outcome-unknown" as const
  }
  override get message() {
    return `No receipt of ${this.hash} within ${this.waited} ms`
  }
}

/** The transaction whose receipt is awaited, and the limits of the wait. */
export interface WaitOptions {
  readonly hash: Hash
  /**
   * The pauses between polls. When the schedule ends, the wait ends. Default: starts at 200 ms and doubles up to 2 s.
   */
  readonly schedule?: Schedule.Schedule<unknown>
  /** Maximum time to wait. Default: 60 seconds. */
  readonly deadline?: Duration.Input
  /** Whether to accept a preconfirmed receipt, which may still change. Default: false. */
  readonly acceptPreconfirmed?: boolean
}

// no jitter is needed, because usually only the sender of a transaction polls for its receipt
const defaultSchedule = Schedule.min([Schedule.exponential("200 millis"), Schedule.spaced("2 seconds")])

const isTransient = Schema.is(TransientFailure)

/**
 * Polls for a receipt. Fails with `ReceiptTimeout`, or immediately with an error that would occur again in the next
 * poll.
 */
export const wait = Effect.fn("Layer2.waitForReceipt")(function*<E>(
  getReceipt: (request: { readonly hash: Hash }) => Effect.Effect<EvmResources.Receipt | null, E>,
  { acceptPreconfirmed = false, deadline = "60 seconds", hash, schedule = defaultSchedule }: WaitOptions
) {
  const start = yield* Clock.monotonicTimeNanos
  let lastFailure: TransientFailure | undefined
  const expired = Effect.flatMap(Clock.monotonicTimeNanos, (now) =>
    Effect.fail(
      new ReceiptTimeout({
        hash,
        waited: Number((now - start) / 1_000_000n),
        ...(lastFailure === undefined ? {} : { lastFailure })
      })
    ))
  const respond = Effect.map(getReceipt({ hash }), (receipt) => {
    lastFailure = undefined
    return receipt === null || (EvmResources.isPreconfirmed(receipt) && !acceptPreconfirmed) ? undefined : receipt
  })
  const poll = respond.pipe(Effect.catch((error) => {
    const reason: unknown = GatewayError.unwrapReason(error)
    if (!isTransient(reason)) return Effect.fail(error)
    lastFailure = reason
    return Effect.undefined
  }))
  const receipt = yield* Effect.repeat(poll, { schedule, until: Predicate.isNotUndefined }).pipe(
    Effect.timeoutOrElse({ duration: deadline, orElse: () => expired })
  )
  return receipt ?? (yield* expired)
})

/** The methods of the service. Typed methods are derived from the declared operations and subscriptions. */
export interface Layer2Methods
  extends Methods<typeof layer2Operations, GatewayError.CallFailure>, EvmStreams.Methods<EvmStreams.StreamFailure>
{
  /**
   * Relays a call. If its params are invalid, the call is refused and nothing is sent.
   *
   * A transaction is sent at most once; `OutcomeUnknown` means that the node might have accepted it.
   */
  readonly relay: (
    call: EvmProtocol.EvmCall
  ) => Effect.Effect<
    RpcResponse,
    GatewayError.CallFailure | GatewayError.OutcomeUnknown | GatewayError.UnsupportedBlock
  >
  /** Sends a signed transaction at most once, and returns its hash. */
  readonly sendRawTransaction: (
    signed: EvmProtocol.SignedTransaction
  ) => Effect.Effect<EvmProtocol.TransactionHash, GatewayError.CallFailure | GatewayError.OutcomeUnknown>
  /**
   * Polls until the receipt exists.
   *
   * Polling continues after upstream failures. It stops at an error that a retry cannot change (`InvalidRequest`,
   * `UnsupportedMethod`, `ChainNotConfigured`, …).
   */
  readonly waitForReceipt: (
    options: WaitOptions
  ) => Effect.Effect<EvmResources.Receipt, GatewayError.CallFailure | ReceiptTimeout>
}

/**
 * An EVM layer 2, with a method for each of `layer2Operations` and `evmSubscriptions`.
 *
 * Provided by `Trigate.layer`, `Layer2Chain.layer`, `Layer2Upstream.layerFetch` or `Layer2.layerMemory`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { Layer2, Layer2Upstream } from "@trigate/evm"
 * import { Console, Effect } from "effect"
 *
 * const hash = "0xffbd8fdbaf5800e2f7df0d5a73efee4fe8a9ef54d53f10798bbb76f7bb08c39e"
 *
 * const program = Layer2.Layer2.use(({ waitForReceipt }) => waitForReceipt({ hash })).pipe(
 *   Effect.flatMap(({ status }) => Console.log(status))
 * )
 *
 * await Effect.runPromise(Effect.provide(program, Layer2Upstream.layerFetch({ url: "http://localhost:8080/l2" })))
 * ```
 * ```text
 * success
 * ```
 */
export class Layer2 extends Context.Service<Layer2, Layer2Methods>()("@trigate/evm/Layer2") {}

/** Makes the `Layer2` service over a backend. */
export const make = (backend: EvmProtocol.StreamingBackend): Layer2["Service"] => {
  const label = "layer2"
  const methods = EvmProtocol.makeMethods(layer2Operations, "Layer2", label, backend)
  return Layer2.of({
    ...methods,
    ...EvmStreams.make({ serving, label, methods, subscribe: backend.subscribe }),
    relay: EvmProtocol.relay(backend),
    sendRawTransaction: EvmProtocol.makeSend(sendRawTransaction)(
      "Layer2",
      label,
      (call) => backend.once({ ...call, surface: "gateway" })
    ),
    waitForReceipt: (options) => wait(methods.getTransactionReceipt, options)
  })
}

/**
 * The stage of a transaction. `pending`: not in a block and without a receipt. `preconfirmed`: confirmed by the
 * sequencer, with a receipt that contains zeros as the block hash. `mined`: in a block.
 */
export type Stage = "pending" | "preconfirmed" | "mined"

/**
 * The state of the layerMemory 2 in memory. Hashes can have any letter case.
 *
 * Provided by `Layer2.layerMemory`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { layer2Operations } from "@trigate/domain/evm/Layer2Operations"
 * import { Layer2 } from "@trigate/evm"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { respond } = yield* Layer2.Layer2State
 *   yield* respond(layer2Operations.blockNumber, () => Effect.succeed(7n))
 *   const { blockNumber } = yield* Layer2.Layer2
 *   yield* Console.log(yield* blockNumber())
 * })
 *
 * await Effect.runPromise(Effect.provide(program, Layer2.layerMemory()))
 * ```
 * ```text
 * 7n
 * ```
 */
export class Layer2State extends Context.Service<
  Layer2State,
  MemoryResponses.SentItems & {
    /**
     * Sets the receipt and the stage of a transaction, and replaces the earlier receipt and stage. Default stage:
     * `mined`.
     */
    readonly set: (receipt: Receipt, stage?: Stage) => Effect.Effect<void>
    /** Removes a transaction, as a reorg does. */
    readonly remove: (hash: Hash) => Effect.Effect<void>
    /** Returns the current receipt of a transaction; `null` if the receipt does not exist yet. */
    readonly get: (hash: Hash) => Effect.Effect<Receipt | null>
    /**
     * Sets the response to any method of `layer2Operations` except `getTransactionReceipt`:
     * `respond(layer2Operations.blockNumber, () => Effect.succeed(1n))`.
     */
    readonly respond: SetResponse
  }
>()("@trigate/evm/Layer2/Layer2State") {}

const unsealed: Hash = `0x${"0".repeat(64)}`

const atStage = (receipt: Receipt, stage: Stage): Receipt | null => {
  if (stage === "pending") return null
  return stage === "mined" ? receipt : {
    ...receipt,
    blockHash: unsealed,
    logs: receipt.logs.map((log) => ({ ...log, blockHash: unsealed }))
  }
}

const hashKey = (hash: Hash): string => hash.toLowerCase()

const makeMemory = Effect.gen(function*() {
  const { respond, backend, sent } = yield* MemoryResponses.makeEvm(serving)
  const receipts = yield* Ref.make<ReadonlyMap<string, Receipt | null>>(new Map())
  const state = Layer2State.of({
    ...sent,
    respond,
    set: (receipt, stage = "mined") =>
      Ref.update(receipts, (known) => new Map(known).set(hashKey(receipt.transactionHash), atStage(receipt, stage))),
    remove: (hash) => Ref.update(receipts, (known) => new Map([...known].filter(([key]) => key !== hashKey(hash)))),
    get: (hash) => Effect.map(Ref.get(receipts), (known) => known.get(hashKey(hash)) ?? null)
  })
  yield* respond(layer2Operations.getTransactionReceipt, ({ hash }) => state.get(hash))
  return Context.make(Layer2, make(backend)).pipe(Context.add(Layer2State, state))
})

/**
 * Provides a layerMemory 2 without transactions, and its state.
 *
 * Each call returns a new layerMemory with separate state.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerMemory = (): Layer.Layer<Layer2 | Layer2State> => Layer.effectContext(makeMemory)
