/** The streams of the EVM chains of a gateway, over its WebSockets: blocks, logs and receipts. */
import * as Paths from "@trigate/api/Paths"
import { nodeLabels } from "@trigate/domain/Caller"
import * as Json from "@trigate/domain/encoding/Encoding"
import { encodeQuantity } from "@trigate/domain/encoding/Encoding"
import {
  type CallFailure,
  type LogRangeTooWide,
  unwrapReason,
  type UpstreamMalformed,
  type WrapReason,
  wrapReason
} from "@trigate/domain/errors/GatewayError"
import * as EvmProtocol from "@trigate/domain/evm/EvmProtocol"
import type { BlockHeader, ReceiptLog } from "@trigate/domain/evm/EvmResources"
import * as Layer2Operations from "@trigate/domain/evm/Layer2Operations"
import { encodeRequest } from "@trigate/domain/operations/Operation"
import * as EvmMethods from "@trigate/domain/unstable/evm/EvmMethods"
import * as EvmStreams_ from "@trigate/domain/unstable/evm/EvmStreams"
import type { blocks, logs } from "@trigate/domain/unstable/evm/EvmStreams"
import type { StreamLost } from "@trigate/domain/unstable/streams/Subscription"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Queue from "effect/Queue"
import * as Socket from "effect/socket/Socket"
import * as Stream from "effect/Stream"
import { label, type Options } from "./Connection.ts"
import * as GatewaySocket from "./internal/GatewaySocket.ts"

/** The errors of an EVM chain's stream. */
export type EvmStreamFailure = CallFailure | WrapReason<LogRangeTooWide> | StreamLost

/** The streams of one chain, with a method for each of `evmSubscriptions`. */
export type Methods = EvmStreams_.Methods<EvmStreamFailure>

/**
 * The streams of the EVM chains of a gateway.
 *
 * Each running stream has its own WebSocket. If the connection is lost, the stream reconnects and continues without
 * gaps or duplicates, and reports a reorg of up to 64 blocks that occurred during the outage. It fails with
 * `StreamLost` if the gateway is unreachable for more than two minutes, and with the gateway's error if the outage
 * lasted for too many blocks.
 *
 * Provided by `EvmStreams.layerWebSocket` or `EvmStreams.layer`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { EvmStreams } from "@trigate/client"
 * import { Console, Effect, Stream } from "effect"
 *
 * const program = EvmStreams.EvmStreams.use(({ evm }) =>
 *   evm.blocks().pipe(Stream.take(2), Stream.runCollect)
 * ).pipe(
 *   Effect.flatMap(([one, next]) => Console.log(next?.parentHash === one?.hash))
 * )
 *
 * await Effect.runPromise(Effect.provide(program, EvmStreams.layerWebSocket({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * true
 * ```
 */
export class EvmStreams extends Context.Service<EvmStreams, {
  /** The streams of HyperEVM. */
  readonly evm: Methods
  /** The streams of the layer 2. */
  readonly layer2: Methods
}>()("@trigate/client/EvmStreams") {}

type SocketFailure = StreamLost | UpstreamMalformed

/** A JSON-RPC WebSocket of a gateway. */
interface RpcSocket {
  readonly send: EvmProtocol.Send<SocketFailure>
  /** The notifications of the subscription on this socket. */
  readonly notifications: Stream.Stream<unknown, StreamLost>
}

const connect = Effect.fnUntraced(
  function*(construct: Socket.WebSocketConstructor["Service"], options: Options, path: string) {
    const { texts, write } = yield* GatewaySocket.open(construct, options, path)
    const notifications = yield* Queue.unbounded<unknown, StreamLost>()
    const calls = new Map<number, Deferred.Deferred<EvmProtocol.RpcResponse, SocketFailure>>()
    let ids = 0
    const receive = (text: string): void => {
      const json = Json.of(text)
      const id = EvmProtocol.member(json.valueOrUndefined, "id")
      if (!Predicate.isNumber(id)) return void Queue.offerUnsafe(notifications, json.valueOrUndefined)
      const call = calls.get(id)
      calls.delete(id)
      if (call !== undefined) Deferred.doneUnsafe(call, Effect.fromResult(EvmProtocol.readResponse(label, json, id)))
    }
    yield* Stream.runForEach(texts, (text) => Effect.sync(() => receive(text))).pipe(
      Effect.catch((error) =>
        Effect.sync(() => {
          for (const call of calls.values()) Deferred.doneUnsafe(call, Effect.fail(error))
          Queue.failCauseUnsafe(notifications, Cause.fail(error))
        })
      ),
      Effect.forkScoped
    )
    const socket: RpcSocket = {
      send: Effect.fnUntraced(function*(call) {
        const id = ++ids
        const response = Deferred.makeUnsafe<EvmProtocol.RpcResponse, SocketFailure>()
        calls.set(id, response)
        yield* write(EvmProtocol.body(id, call))
        return yield* Deferred.await(response)
      }),
      notifications: Stream.fromQueue(notifications)
    }
    return socket
  }
)

const isRetried = (error: unknown): boolean =>
  Predicate.isTagged(error, "StreamLost") || EvmProtocol.member(unwrapReason(error), "group") === "retry-later"

/** Makes the streams of the chain at a path. */
const streamsAt = (
  construct: Socket.WebSocketConstructor["Service"],
  options: Options,
  path: string,
  serving: EvmMethods.Serving
): Methods => {
  const blockNumber = EvmProtocol.makeRead(EvmMethods.blockNumber(serving))
  const subscribe = EvmProtocol.makeRead(EvmStreams_.subscribeOperation(serving))
  const getReceipt = EvmProtocol.makeRead(EvmMethods.getTransactionReceipt(serving))

  /** Streams the items of a subscription, each converted by the function `each`. */
  const stream = <S extends EvmStreams_.EvmSubscription, A>(
    declaration: S,
    resume: (request: S["request"]["Type"]) => Resumption<S["item"]["Type"]>,
    each: (item: S["item"]["Type"], socket: RpcSocket) => Effect.Effect<A, CallFailure | StreamLost>
  ) => {
    const read = EvmStreams_.reader(declaration, serving, nodeLabels[serving.chain])
    const check = encodeRequest(declaration.request, ["params", 1])

    const running = (request: S["request"]["Type"]) => {
      const { begin, reach, receive } = resume(request)
      let hasBegun = false
      const connection = Stream.unwrap(Effect.gen(function*() {
        yield* check(request)
        const socket = yield* connect(construct, options, path)
        // makes a call before the first subscription, so that a stream that cannot begin fails with the errors of an
        // ordinary call
        if (!hasBegun) yield* blockNumber(nodeLabels[serving.chain], socket.send)()
        yield* subscribe(nodeLabels[serving.chain], socket.send)([declaration.name, begin()])
        hasBegun = true
        const received = socket.notifications.pipe(
          Stream.mapEffect(read),
          Stream.map((notice) => "item" in notice ? receive(notice.item) : reach(notice.position)),
          Stream.mapEffect((items) => Effect.forEach(items, (item) => each(item, socket)))
        )
        // every element resets the retry schedule, so this empty element makes the next retry count as the first
        return Stream.concat(Stream.succeed<ReadonlyArray<A>>([]), received)
      }))
      return connection.pipe(
        Stream.retry(GatewaySocket.retrying((error) => hasBegun && isRetried(error))),
        Stream.flattenIterable
      )
    }
    return (request: S["request"]["Type"] = {}) => Stream.mapError(Stream.suspend(() => running(request)), wrapReason)
  }

  return {
    blocks: stream(EvmStreams_.blocks, resumeBlocks, Effect.succeed),
    logs: stream(EvmStreams_.logs, resumeLogs, Effect.succeed),
    receipt: (transaction) =>
      EvmStreams_.firstReceipt(
        stream(EvmStreams_.blocks, resumeBlocks, (_, { send }) =>
          EvmStreams_.pollReceipt(
            Effect.mapError(getReceipt(nodeLabels[serving.chain], send)(transaction), wrapReason)
          ))()
      )
  }
}

/**
 * Provides the streams of the gateway that `options` names, with the `WebSocketConstructor` of the context.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { EvmStreams } from "@trigate/client"
 * import { Console, Effect, Layer, Stream } from "effect"
 * import { Socket } from "effect/socket"
 *
 * const program = EvmStreams.EvmStreams.use(({ layer2 }) =>
 *   layer2.blocks().pipe(Stream.take(1), Stream.runForEach(({ gasLimit }) => Console.log(gasLimit > 0n)))
 * )
 *
 * const streams = EvmStreams.layer({ baseUrl: "http://localhost:8080" }).pipe(
 *   Layer.provide(Socket.layerWebSocketConstructorGlobal)
 * )
 *
 * await Effect.runPromise(Effect.provide(program, streams))
 * ```
 * ```text
 * true
 * ```
 */
export const layer = (options: Options): Layer.Layer<EvmStreams, never, Socket.WebSocketConstructor> =>
  Layer.effect(
    EvmStreams,
    Effect.map(Socket.WebSocketConstructor, (construct) =>
      EvmStreams.of({
        evm: streamsAt(construct, options, Paths.evm, EvmProtocol.serving),
        layer2: streamsAt(construct, options, Paths.layer2, Layer2Operations.serving)
      }))
  )

/**
 * Provides {@link layer} with the platform's `WebSocket`: Node's or a browser's.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { EvmStreams } from "@trigate/client"
 * import { Console, Effect, Stream } from "effect"
 *
 * // prints the logs of a contract that are emitted within the first second
 * const program = EvmStreams.EvmStreams.use(({ evm }) =>
 *   evm.logs({ address: "0x5555555555555555555555555555555555555555" }).pipe(
 *     Stream.interruptWhen(Effect.sleep("1 second")),
 *     Stream.runForEach(({ topics }) => Console.log(topics))
 *   )
 * )
 *
 * await Effect.runPromise(Effect.provide(program, EvmStreams.layerWebSocket({ baseUrl: "http://localhost:8080" })))
 * ```
 */
export const layerWebSocket = (options: Options): Layer.Layer<EvmStreams> =>
  Layer.provide(layer(options), Socket.layerWebSocketConstructorGlobal)

/** One run of a stream over successive connections. */
export interface Resumption<Item> {
  /**
   * Called at the start of each connection. Returns the encoded parameter of the subscription request, including the
   * block at which to resume.
   */
  readonly begin: () => { readonly [member: string]: unknown }
  /** Returns the items to emit when an item is received. */
  readonly receive: (item: Item) => ReadonlyArray<Item>
  /** Returns the items to emit after all items up to a block have been received. */
  readonly reach: (block: bigint) => ReadonlyArray<Item>
}

/**
 * The number of newest blocks that are requested again and compared after a lost connection. A deeper reorg is not
 * detected.
 */
const depth = 64n

const resumeAt = (first: bigint, last: bigint): bigint => last - depth + 1n > first ? last - depth + 1n : first

/**
 * Resumes a stream of blocks: drops blocks that were already emitted, and emits a block number again only if a reorg
 * replaced that block.
 */
const resumeBlocks = (
  { fromBlock }: (typeof blocks)["request"]["Type"]
): Resumption<BlockHeader> => {
  const known = new Map<bigint, string>()
  let first: bigint | undefined
  let last: bigint | undefined
  return {
    begin: () => {
      if (first !== undefined && last !== undefined) return { fromBlock: encodeQuantity(resumeAt(first, last)) }
      return { fromBlock: fromBlock === undefined ? "latest" : encodeQuantity(fromBlock) }
    },
    receive: (header) => {
      const { hash, number } = header
      if (known.get(number) === hash) return []
      for (const each of known.keys()) if (each > number || each <= number - depth) known.delete(each)
      known.set(number, hash)
      first ??= number
      last = number
      return [header]
    },
    reach: () => []
  }
}

const logKey = ({ blockHash, logIndex }: ReceiptLog): string => `${blockHash.toLowerCase()}:${logIndex}`

/**
 * Resumes a stream of logs: drops logs that were already emitted. If the new connection does not repeat an emitted log,
 * a reorg has removed that log. Removals are emitted before new logs.
 */
const resumeLogs = (
  { fromBlock, ...filter }: (typeof logs)["request"]["Type"]
): Resumption<ReceiptLog> => {
  // a map iterates in insertion order: the order in which the logs were emitted
  const emitted = new Map<string, ReceiptLog>()
  /** Emitted logs that this connection has not repeated yet. */
  let unconfirmed = new Map<string, ReceiptLog>()
  /** New logs. They wait until the removals of earlier logs are known, and are emitted after the removals. */
  let waiting: Map<string, ReceiptLog> | undefined
  let first = fromBlock
  let position: bigint | undefined

  const emit = (logs: Iterable<ReceiptLog>): ReadonlyArray<ReceiptLog> => {
    for (const log of logs) emitted.set(logKey(log), log)
    return [...logs]
  }

  return {
    begin: () => {
      const from = first === undefined || position === undefined ? first : resumeAt(first, position)
      unconfirmed = new Map([...emitted].filter(([, { blockNumber }]) => from !== undefined && blockNumber >= from))
      waiting = unconfirmed.size === 0 ? undefined : new Map()
      return { ...filter, ...(from === undefined ? {} : { fromBlock: encodeQuantity(from) }), positions: true }
    },
    receive: (log) => {
      const key = logKey(log)
      if (log.removed === true) {
        unconfirmed.delete(key)
        waiting?.delete(key)
        return emitted.delete(key) ? [log] : []
      }
      if (emitted.has(key)) {
        unconfirmed.delete(key)
        return []
      }
      if (waiting === undefined) return emit([log])
      waiting.set(key, log)
      return []
    },
    reach: (block) => {
      const removed: Array<ReceiptLog> = []
      for (const [key, log] of [...unconfirmed].filter(([, { blockNumber }]) => blockNumber <= block).toReversed()) {
        unconfirmed.delete(key)
        emitted.delete(key)
        removed.push({ ...log, removed: true })
      }
      const added = emit([...(waiting?.values() ?? [])])
      waiting = undefined
      position = block
      first ??= block + 1n
      for (const [key, { blockNumber }] of emitted) {
        if (blockNumber > block - depth) break
        emitted.delete(key)
      }
      return [...removed, ...added]
    }
  }
}
