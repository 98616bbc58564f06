/** The nodes of an EVM chain as a backend: reads in batches where their caller sent them so, transactions at most once. */
import { detached } from "@trigate/domain/Caller"
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import type { CommonFailure } from "@trigate/domain/errors/GatewayError"
import * as EvmProtocol from "@trigate/domain/evm/EvmProtocol"
import type { RpcAnswer } from "@trigate/domain/operations/JsonRpc"
import type { CachePolicy } from "@trigate/domain/operations/Operation"
import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Batching from "./Batching.ts"
import { Pipeline, requestIds } from "./Pipeline.ts"
import type { Target, Upstream } from "./Upstream.ts"

/** Where the calls of a chain go. */
export interface Options {
  readonly upstream: Upstream
  readonly targetsOf: (call: EvmProtocol.EvmCall) => Result.Result<NonEmptyReadonlyArray<Target>, CommonFailure>
  /** Cheap reads of different callers that are sent as one batch at most; each is sent by itself when not given. */
  readonly batch?: number | undefined
  /** Finds out, by further reads, how long an answer may be cached whose operation does not say so. */
  readonly confirm?: (
    read: Batching.BatchedRead
  ) => (call: EvmProtocol.CheckedRead, answer: RpcAnswer) => Effect.Effect<CachePolicy | undefined> | undefined
}

/** The backend of some nodes. */
export const make = Effect.fnUntraced(function*({ batch, confirm, targetsOf, upstream }: Options) {
  const pipeline = yield* Pipeline
  // each counts for itself: recordings of what nodes are sent hold these ids
  const nextId = requestIds()
  const nextOnceId = requestIds()
  const ask = Batching.make(
    pipeline.attempt,
    nextId,
    batch === undefined ? undefined : { most: batch, context: yield* Effect.context() }
  )
  const { read } = yield* pipeline.reads({
    protocol: EvmProtocol.reads,
    upstream,
    targetsOf,
    ask,
    ...(confirm === undefined ? {} : { confirm: confirm(ask) })
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
