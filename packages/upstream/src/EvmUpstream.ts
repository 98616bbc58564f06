/**
 * The backend of an EVM chain over the chain's nodes. Sends the reads of one caller's batch as a batch, and each
 * transaction at most once.
 */
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

/** The nodes of a chain, and the policies of its calls. */
export interface Options {
  readonly upstream: Upstream
  readonly targetsOf: (call: EvmProtocol.EvmCall) => Result.Result<NonEmptyReadonlyArray<Target>, CommonFailure>
  /**
   * Determines, with further reads, how long a response can be cached. Used for operations that do not declare this
   * duration.
   */
  readonly confirm?: (
    read: Batching.BatchedRead
  ) => (call: EvmProtocol.CheckedRead, answer: RpcAnswer) => Effect.Effect<CachePolicy | undefined> | undefined
}

/** Makes the backend of an EVM chain over the nodes of `upstream`. */
export const make = Effect.fnUntraced(function*({ confirm, targetsOf, upstream }: Options) {
  const pipeline = yield* Pipeline
  // each instance has its own counter, because test recordings contain the request IDs
  const nextId = requestIds()
  const nextOnceId = requestIds()
  const ask = Batching.make(pipeline.attempt, nextId)
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
