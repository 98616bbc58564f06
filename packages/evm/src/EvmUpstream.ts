/**
 * The backend of an EVM chain over the nodes of an upstream, and the batches of its reads: the JSON-RPC reads of one
 * caller's batch are sent together.
 *
 * Every request has its own ID, so that a response that belongs to a different request is detected.
 */
import { detached } from "@trigate/domain/Caller"
import { addMillis, longAgo, type MonotonicTime } from "@trigate/domain/encoding/Encoding"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import type { CommonFailure } from "@trigate/domain/errors/GatewayError"
import * as EvmProtocol from "@trigate/domain/evm/EvmProtocol"
import type * as Operation from "@trigate/domain/operations/Operation"
import * as Pipeline from "@trigate/upstream/Pipeline"
import type { AttemptedRead, Attempts } from "@trigate/upstream/unstable/attempts/Attempts"
import { type Batch, CurrentBatch, type Target, type Upstream } from "@trigate/upstream/unstable/Upstream"
import * as Arr from "effect/Array"
import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Request from "effect/Request"
import * as RequestResolver from "effect/RequestResolver"
import * as Result from "effect/Result"

/** How long a limit is used after it was learned, in milliseconds. Another node may not have it. */
const learnedFor = Duration.toMillis("1 hour")

/** A limit that was learned from a node's response, and that expires. Times are in milliseconds. */
export class Learned<A> {
  #value: A | undefined
  #until = longAgo

  /** Returns the limit; `undefined` if none was learned, or if it has expired. */
  at(now: MonotonicTime): A | undefined {
    return now < this.#until ? this.#value : undefined
  }

  /** Replaces the limit, and starts its period anew. */
  learn(value: A, now: MonotonicTime): void {
    this.#value = value
    this.#until = addMillis(now, learnedFor)
  }
  /** Removes the limit. */
  forget(): void {
    this.#until = longAgo
  }
}

/**
 * Runs an effect whose JSON-RPC reads are sent as one batch to each upstream. A read that needs the result of an
 * earlier read is sent in a later batch.
 */
export const batched = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.scopedWith((scope) => Effect.provideService(effect, CurrentBatch, { scope }))

/** Maximum number of calls in one outgoing batch. Some node providers accept fewer calls than nodes do by default. */
const longest = 100

/** Makes attempts to read from upstream addresses until one succeeds. */
export type Send = Attempts["send"]

/** Sends JSON-RPC reads to an upstream's addresses, each read alone or in a batch. */
export type BatchedRead = (
  call: EvmProtocol.CheckedRead,
  targets: AttemptedRead["targets"]
) => Effect.Effect<EvmProtocol.RpcResponse, CommonFailure>

class RpcRead extends Request.Class<
  { readonly call: EvmProtocol.CheckedRead; readonly targets: AttemptedRead["targets"] },
  EvmProtocol.RpcResponse,
  CommonFailure
> {}

const total = (calls: ReadonlyArray<EvmProtocol.CheckedRead>, unit: "weight" | "requestUnits"): number =>
  calls.reduce((sum, { operation }) => sum + operation.cost[unit], 0)

/**
 * Describes a batch to the pipeline as one operation. Its cost is the sum of the costs of its calls; it is cheap if all
 * of its calls are cheap.
 */
const batchOperation = (calls: ReadonlyArray<EvmProtocol.CheckedRead>): AttemptedRead["operation"] => ({
  name: "batch",
  class: "read",
  cost: { weight: total(calls, "weight"), requestUnits: total(calls, "requestUnits") },
  ...(calls.every(({ operation }) => operation.cheap === true) ? { cheap: true } : {})
})

/** Makes the function that sends JSON-RPC reads; `send` makes the attempts. */
export const makeBatched = (send: Send, nextId: () => number): BatchedRead => {
  const single: BatchedRead = (call, targets) =>
    send({ operation: call.operation, targets }, EvmProtocol.reads.write(call, nextId()))

  const batch = (
    calls: ReadonlyArray<EvmProtocol.CheckedRead>,
    targets: AttemptedRead["targets"]
  ) =>
    Effect.suspend(() =>
      send({ operation: batchOperation(calls), targets }, EvmProtocol.writeBatch(calls, calls.map(nextId)))
    )

  const one = (entry: Request.Entry<RpcRead>) =>
    Effect.map(
      Effect.exit(Effect.suspend(() => single(entry.request.call, entry.request.targets))),
      (exit) => entry.completeUnsafe(exit)
    )

  const all = Effect.fnUntraced(
    function*(entries: ReadonlyArray<Request.Entry<RpcRead>>, targets: AttemptedRead["targets"]) {
      const outcome = yield* Effect.exit(batch(entries.map(({ request }) => request.call), targets))
      if (Exit.isFailure(outcome)) {
        for (const entry of entries) entry.completeUnsafe(Exit.failCause(outcome.cause))
      } else if (outcome.value._tag === "NoBatches") {
        yield* Effect.forEach(entries, one, { concurrency: 8, discard: true })
      } else {
        for (const [index, response] of outcome.value.responses.entries()) {
          entries[index]?.completeUnsafe(
            Result.isSuccess(response) ? Exit.succeed(response.success) : Exit.fail(response.failure)
          )
        }
      }
    }
  )

  // there is one resolver for each batch and each list of addresses
  const resolvers = new WeakMap<Batch, Map<AttemptedRead["targets"], RequestResolver.RequestResolver<RpcRead>>>()
  const ensureResolver = (current: Batch, targets: AttemptedRead["targets"]) => {
    const known = resolvers.get(current) ??
      new Map<AttemptedRead["targets"], RequestResolver.RequestResolver<RpcRead>>()
    resolvers.set(current, known)
    const found = known.get(targets)
    if (found !== undefined) return found
    const made = RequestResolver.make<RpcRead>((entries) => {
      const attempts = Effect.forEach(
        Arr.chunksOf(entries, longest),
        ([first, ...others]) => others.length === 0 ? one(first) : all([first, ...others], targets),
        { concurrency: 4, discard: true }
      )
      // a resolver is not interrupted when its callers disconnect
      return Effect.flatMap(Effect.forkIn(attempts, current.scope, { startImmediately: true }), Fiber.join)
    })
    known.set(targets, made)
    return made
  }

  return (call, targets) =>
    Effect.contextWith((context: Context.Context<never>) => {
      const current = Context.get(context, CurrentBatch)
      return current === undefined
        ? single(call, targets)
        : Effect.request(new RpcRead({ call, targets }), ensureResolver(current, targets))
    })
}

/** The nodes of a chain, and the policies of its calls. */
export interface EvmOptions {
  readonly upstream: Upstream
  readonly targetsOf: (call: EvmProtocol.EvmCall) => Result.Result<NonEmptyReadonlyArray<Target>, CommonFailure>
  /**
   * Determines, with further reads, how long a response can be cached. Used for operations that do not declare this
   * duration.
   */
  readonly confirm?: (
    read: BatchedRead
  ) => (
    call: EvmProtocol.CheckedRead,
    response: EvmProtocol.RpcResponse
  ) => Effect.Effect<Operation.CachePolicy | undefined> | undefined
}

/** Makes the backend of an EVM chain over the nodes of `upstream`. */
export const make = Effect.fnUntraced(function*({ confirm, targetsOf, upstream }: EvmOptions) {
  const pipeline = yield* Pipeline.Pipeline
  // each instance has its own counter, because test recordings contain the request IDs
  const nextId = Pipeline.requestIds()
  const nextOnceId = Pipeline.requestIds()
  const send = makeBatched(pipeline.attempt, nextId)
  const { read } = yield* pipeline.reads({
    protocol: EvmProtocol.reads,
    upstream,
    targetsOf,
    send,
    ...(confirm === undefined ? {} : { confirm: confirm(send) })
  })
  const once: EvmProtocol.EvmBackend["once"] = (call) => {
    const targets = targetsOf(call)
    if (Result.isFailure(targets)) return Effect.fail(targets.failure)
    const id = nextOnceId()
    const body = Utf8.encode(EvmProtocol.body(id, call))
    return Effect.flatMap(
      detached(pipeline.once({ operation: call.operation, targets: targets.success, body }, {})),
      (response) => EvmProtocol.readOnce(call, response, id)
    )
  }
  const backend: EvmProtocol.EvmBackend = { read, once }
  return backend
})
