/**
 * The typed streams of an EVM chain. This module decodes the notifications of the chain's subscriptions, and makes
 * typed streams from a shared source of blocks and logs.
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
import type { Hash } from "../encoding/Hex.ts"
import * as Json from "../encoding/Json.ts"
import { type CallFailure, type CommonFailure, unwrapReason, wrapReason } from "../errors/GatewayError.ts"
import type { LogRangeTooWide } from "../errors/RequestError.ts"
import * as JsonRpc from "../operations/JsonRpc.ts"
import { malformed } from "../operations/Protocol.ts"
import { SlowConsumer } from "../streams/StreamError.ts"
import { type Serving, typedRead } from "./EvmMethods.ts"
import * as EvmReads from "./EvmReads.ts"
import * as EvmSubscriptions from "./EvmSubscriptions.ts"
import type { EvmFrame, EvmSubscription, Subscribe } from "./EvmSubscriptions.ts"
import * as EvmTypedCalls from "./EvmTypedCalls.ts"
import { isPreconfirmed } from "./Receipt.ts"
import type { Receipt } from "./Receipt.ts"

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

type Subscriptions = typeof EvmSubscriptions.evmSubscriptions

/** The typed methods for all subscriptions, and a method that waits for a receipt. */
export type Methods<E> = { readonly [Name in keyof Subscriptions]: Method<Subscriptions[Name], E> } & {
  /**
   * Waits until a transaction is in a block, and returns its receipt. Polls immediately, and again after each block.
   *
   * `Effect.timeout` limits the wait. A reorg can replace the block later.
   */
  readonly receipt: (transaction: { readonly hash: Hash }) => Effect.Effect<Receipt, E>
}

const errorIn = (error: unknown): JsonRpc.RpcAnswer => {
  const code = JsonRpc.member(error, "code")
  const message = JsonRpc.member(error, "message")
  return {
    _tag: "Error",
    code: Predicate.isNumber(code) ? code : -32000,
    message: Predicate.isString(message) ? message : "the subscription ended",
    error: Json.write(error)
  }
}

/** A decoded notification: an item of the subscription, or the position up to which its logs were sent. */
export type Notice<Item> = { readonly item: Item } | typeof EvmSubscriptions.LogPosition.Type

/**
 * Decodes the notifications of a subscription; `label` names the upstream or gateway that sent them.
 *
 * Fails with the error that ended the subscription, and with `UpstreamMalformed` for a notification that does not decode.
 */
export const reader = <S extends EvmSubscription>({ item }: S, serving: Serving, label: string) => {
  const decodeItem = Schema.decodeUnknownEffect<S["item"]>(item)
  const decodePosition = Schema.decodeUnknownOption(EvmSubscriptions.LogPosition)
  const readError = EvmTypedCalls.makeReader(EvmReads.getLogs(serving))
  return (notification: unknown): Effect.Effect<Notice<S["item"]["Type"]>, CommonFailure | LogRangeTooWide> => {
    const params = JsonRpc.member(notification, "params")
    const error = JsonRpc.member(params, "error")
    if (error !== undefined) {
      return Effect.flatMap(readError(label, errorIn(error)), () => Effect.fail(malformed(label, "Expected an error")))
    }
    const result = JsonRpc.member(params, "result")
    const position = decodePosition(result)
    if (Option.isSome(position)) return Effect.succeed(position.value)
    return Effect.mapBoth(decodeItem(result), {
      onFailure: ({ message }) => malformed(label, message),
      onSuccess: (value) => ({ item: value })
    })
  }
}

/** The operation `eth_subscribe`. Its params are the name of a subscription and the subscription's parameter. */
export const subscribeOperation = (serving: Serving) =>
  typedRead(serving, {
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
  readonly serving: Serving
  /** The name of the upstream in errors. */
  readonly label: string
  readonly subscribe: Subscribe
  readonly methods: {
    readonly blockNumber: () => Effect.Effect<bigint, CallFailure>
    readonly getTransactionReceipt: (
      transaction: { readonly hash: Hash }
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

const isTransient = (error: unknown): boolean => JsonRpc.member(unwrapReason(error), "group") === "retry-later"

/**
 * Requests a receipt. Returns `undefined` if the transaction is not in a block yet, or if the request failed and can be
 * retried.
 */
export const pollReceipt = <E, R>(ask: Effect.Effect<Receipt | null, E, R>): Effect.Effect<Receipt | undefined, E, R> =>
  ask.pipe(
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
    EvmSubscriptions.evmSubscriptions,
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
