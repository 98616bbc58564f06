/**
 * The typed streams of an EVM chain: the declarations of its subscriptions, and the decoding of their notifications.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Struct from "effect/Struct"
import { type Caller, CurrentCaller } from "../Caller.ts"
import * as Json from "../encoding/Encoding.ts"
import { unwrapReason, wrapReason } from "../errors/GatewayError.ts"
import type { CallFailure, CommonFailure, LogRangeTooWide } from "../errors/GatewayError.ts"
import { type AnyCodec, malformed } from "../operations/Operation.ts"
import { SlowConsumer } from "../streams/Subscription.ts"
import * as EvmReads from "./EvmMethods.ts"
import * as EvmProtocol from "./EvmProtocol.ts"
import { BlockHeader, isPreconfirmed, LogFilter, type Receipt, ReceiptLog } from "./EvmResources.ts"

/** The subject of a caller's subscription, such as new blocks or the logs that match a filter. */
export type Interest =
  | { readonly kind: "newPendingTransactions" }
  | { readonly kind: "syncing" }
  /** `fromBlock` also requests the blocks from that block on; they are sent before new blocks. */
  | { readonly kind: "newHeads"; readonly fromBlock?: bigint | "latest" }
  /** `fromBlock` also requests the logs from that block on; they are sent before new logs. */
  | {
    readonly kind: "logs"
    readonly filter: Pick<LogFilter, "address" | "topics">
    readonly fromBlock?: bigint
    /** Whether to send each {@link LogPosition}. The first position is sent after the logs since `fromBlock`. */
    readonly hasPositions?: true
  }

/** A notification, built once and sent to all callers that subscribed to it. */
export interface EvmFrame {
  readonly text: string
  /** The encoded bytes for the transport, cached when the first caller receives them. */
  wire: Uint8Array | undefined
}

/** Delivers one caller's notifications. */
export interface EvmSink {
  /** The owner of the reads of past blocks and logs. */
  readonly caller: Caller
  readonly deliver: (frame: EvmFrame) => void
  /** Called after all notifications of one poll of the node have been delivered. */
  readonly flush: () => void
}

/** A subscription of one caller. */
export interface Subscribed {
  /** A 128-bit ID; equal subscriptions of different callers have the same ID. */
  readonly id: string
  readonly end: () => void
}

/** Subscribes to the new blocks or logs of a chain. The sink receives the notifications in the order of the blocks. */
export type Subscribe = (interest: Interest, sink: EvmSink) => Subscribed

/** The declaration of one subscription. */
export interface EvmSubscription<
  Name extends "newHeads" | "logs" = "newHeads" | "logs",
  Request extends AnyCodec = AnyCodec,
  Item extends AnyCodec = AnyCodec
> {
  /** The name in `eth_subscribe`. */
  readonly name: Name
  /** The items that the subscription sends, described in one sentence for the documentation. */
  readonly summary: string
  /** The schema of the subscription's parameter, which follows the name in `eth_subscribe`. */
  readonly request: Request
  /** The schema of the member `result` of notifications. */
  readonly item: Item
  /**
   * Returns the subject of the subscription that a request starts. This is a method, not a property, so that a
   * subscription with any request type is assignable to `EvmSubscription`.
   */
  interest(request: Request["Type"]): Interest
  readonly example: Request["Encoded"]
}

const declare = <const Name extends "newHeads" | "logs", Request extends AnyCodec, Item extends AnyCodec>(
  declaration: EvmSubscription<Name, Request, Item>
): EvmSubscription<Name, Request, Item> => declaration

/** New blocks by ascending number, beginning with the latest; after a reorg, the blocks of the new branch. */
export const blocks = declare({
  name: "newHeads",
  summary: "Each block by ascending number, beginning with the newest; after a reorg, the blocks of the new branch",
  request: Schema.Struct({
    fromBlock: Schema.optionalKey(Json.Quantity.annotate({
      description: "The first block. Default: the newest. At most 1024 blocks before the newest"
    }))
  }),
  item: BlockHeader,
  interest: ({ fromBlock }) => ({ kind: "newHeads", fromBlock: fromBlock ?? "latest" }),
  example: {}
})

/** New logs; after a reorg, first the logs of the old branch with `removed: true`, then the logs of the new branch. */
export const logs = declare({
  name: "logs",
  summary:
    "Logs that match a filter; after a reorg, first the logs of the old branch with `removed: true`, newest first, then the logs of the new branch",
  request: Schema.Struct({
    address: LogFilter.fields.address,
    topics: LogFilter.fields.topics,
    fromBlock: Schema.optionalKey(Json.Quantity.annotate({
      description:
        "A past block. First, the logs from this block to the latest block are sent, then new logs. Default: only new logs"
    }))
  }),
  item: ReceiptLog,
  interest: ({ fromBlock, ...filter }) => ({ kind: "logs", filter, ...(fromBlock === undefined ? {} : { fromBlock }) }),
  example: { address: "0x5555555555555555555555555555555555555555" }
})

/** The subscriptions, by the names of their methods. */
export const evmSubscriptions = { blocks, logs } as const

/**
 * The number of the block up to which all logs of a subscription were sent.
 *
 * A caller that requests positions receives one after the logs of each block. After a lost connection, logs can be
 * missing only after the block of the last position.
 */
export const LogPosition = Schema.Struct({ position: Json.Quantity })

/** The errors of an embedded service's stream. */
export type StreamFailure = CallFailure | LogRangeTooWide | SlowConsumer

/** The typed method for a subscription. */
export type Method<S extends EvmSubscription, E> = (
  request?: S["request"]["Type"]
) => Stream.Stream<S["item"]["Type"], E>

/** The type-level function from a subscription to its typed method, whose error is `E`. */
export interface MethodOf<E> extends Struct.Lambda {
  <S extends EvmSubscription>(subscription: S): Method<S, E>
  readonly "~lambda.out": Method<Extract<this["~lambda.in"], EvmSubscription>, E>
}

type Subscriptions = typeof evmSubscriptions

/** The typed methods for all subscriptions, and a method that waits for a receipt. */
export type Methods<E> = { readonly [Name in keyof Subscriptions]: Method<Subscriptions[Name], E> } & {
  /**
   * Waits until a transaction is in a block, and returns its receipt. Polls immediately, and again after each block.
   *
   * `Effect.timeout` limits the wait. A reorg can replace the block later.
   */
  readonly receipt: (transaction: { readonly hash: Json.Hash }) => Effect.Effect<Receipt, E>
}

const errorIn = (error: unknown): EvmProtocol.RpcResponse => {
  const code = EvmProtocol.member(error, "code")
  const message = EvmProtocol.member(error, "message")
  return {
    _tag: "Error",
    code: Predicate.isNumber(code) ? code : -32000,
    message: Predicate.isString(message) ? message : "the subscription ended",
    error: Json.write(error)
  }
}

/** A decoded notification: an item of the subscription, or the position up to which its logs were sent. */
export type Notice<Item> = { readonly item: Item } | typeof LogPosition.Type

/**
 * Decodes the notifications of a subscription; `label` names the upstream or gateway that sent them.
 *
 * Fails with the error that ended the subscription, and with `UpstreamMalformed` for a notification that does not decode.
 */
export const reader = <S extends EvmSubscription>({ item }: S, serving: EvmReads.Serving, label: string) => {
  const decodeItem = Schema.decodeUnknownEffect<S["item"]>(item)
  const decodePosition = Schema.decodeUnknownOption(LogPosition)
  const readError = EvmProtocol.makeReader(EvmReads.getLogs(serving))
  return (notification: unknown): Effect.Effect<Notice<S["item"]["Type"]>, CommonFailure | LogRangeTooWide> => {
    const params = EvmProtocol.member(notification, "params")
    const error = EvmProtocol.member(params, "error")
    if (error !== undefined) {
      return Effect.flatMap(readError(label, errorIn(error)), () => Effect.fail(malformed(label, "Expected an error")))
    }
    const result = EvmProtocol.member(params, "result")
    const position = decodePosition(result)
    if (Option.isSome(position)) return Effect.succeed(position.value)
    return Effect.mapBoth(decodeItem(result), {
      onFailure: ({ message }) => malformed(label, message),
      onSuccess: (value) => ({ item: value })
    })
  }
}

/** The operation `eth_subscribe`. Its params are the name of a subscription and the subscription's parameter. */
export const subscribeOperation = (serving: EvmReads.Serving) =>
  EvmReads.typedRead(serving, {
    name: "eth_subscribe",
    summary: "Subscribe",
    request: Schema.Array(Schema.Unknown),
    response: Schema.String,
    example: ["newHeads"]
  })

/** Maximum number of notifications that are queued for the reader of a stream. */
const maxBehind = 10_000

/** The dependencies of {@link make}. */
export interface Options {
  readonly serving: EvmReads.Serving
  /** The name of the upstream in errors. */
  readonly label: string
  readonly subscribe: Subscribe
  readonly methods: {
    readonly blockNumber: () => Effect.Effect<bigint, CallFailure>
    readonly getTransactionReceipt: (
      transaction: { readonly hash: Json.Hash }
    ) => Effect.Effect<Receipt | null, CallFailure>
  }
}

const typed = ({ label, methods, serving, subscribe }: Options) => (declaration: EvmSubscription) => {
  const read = reader(declaration, serving, label)
  return (request: unknown = {}): Stream.Stream<unknown, StreamFailure> =>
    Stream.unwrap(Effect.gen(function*() {
      yield* methods.blockNumber()
      const frames = yield* Queue.dropping<EvmFrame, SlowConsumer | Cause.Done>(maxBehind)
      const slow = new SlowConsumer({
        message: `The reader is more than ${maxBehind} notifications behind: read faster, then subscribe again`
      })
      const sink = {
        caller: yield* CurrentCaller,
        deliver: (frame: EvmFrame) => {
          if (!Queue.offerUnsafe(frames, frame)) Queue.failCauseUnsafe(frames, Cause.fail(slow))
        },
        flush: () => {}
      }
      yield* Effect.acquireRelease(
        Effect.sync(() => subscribe(declaration.interest(request), sink)),
        ({ end }) => Effect.sync(end)
      )
      return Stream.fromQueue(frames).pipe(
        Stream.mapEffect(({ text }) => Effect.mapError(read(Json.of(text).valueOrUndefined), wrapReason)),
        Stream.filterMap((notice) => "item" in notice ? Result.succeed(notice.item) : Result.failVoid)
      )
    }))
}

const isTransient = (error: unknown): boolean => EvmProtocol.member(unwrapReason(error), "group") === "retry-later"

/**
 * Requests a receipt. Returns `undefined` if the transaction is not in a block yet, or if the request failed and can be
 * retried.
 */
export const pollReceipt = <E, R>(
  request: Effect.Effect<Receipt | null, E, R>
): Effect.Effect<Receipt | undefined, E, R> =>
  request.pipe(
    Effect.catchIf(isTransient, () => Effect.succeed(null)),
    Effect.map((receipt) => receipt === null || isPreconfirmed(receipt) ? undefined : receipt)
  )

/** Returns the first receipt that an endless stream of polls emits. */
export const firstReceipt = <E, R>(polls: Stream.Stream<Receipt | undefined, E, R>): Effect.Effect<Receipt, E, R> =>
  polls.pipe(
    Stream.filter(Predicate.isNotUndefined),
    Stream.runHead,
    Effect.flatMap(Option.match({ onNone: () => Effect.never, onSome: Effect.succeed }))
  )

/** Makes the typed streams of a service from its chain's shared source of blocks and logs. */
export const make = (options: Options): Methods<StreamFailure> => {
  const methods = Struct.map(
    evmSubscriptions,
    Struct.lambda<MethodOf<StreamFailure>>(typed(options))
  )
  return {
    ...methods,
    receipt: (transaction) =>
      firstReceipt(
        Stream.mapEffect(methods.blocks(), () => pollReceipt(options.methods.getTransactionReceipt(transaction)))
      )
  }
}
