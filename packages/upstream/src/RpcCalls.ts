/**
 * JSON-RPC reads: single ones, and those of one caller's batch as one batch.
 *
 * Every exchange has ids of its own, so that an answer that belongs to another one is told.
 */
import type { CommonFailure } from "@trigate/domain/GatewayError"
import * as JsonRpc from "@trigate/domain/JsonRpc"
import type { RpcAnswer } from "@trigate/domain/JsonRpc"
import type { Cost } from "@trigate/domain/Operation"
import * as Utf8 from "@trigate/domain/Utf8"
import * as Arr from "effect/Array"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Request from "effect/Request"
import * as RequestResolver from "effect/RequestResolver"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { Read } from "./Attempts.ts"
import type { Calls } from "./Calls.ts"
import * as RpcAttemptResult from "./RpcAttemptResult.ts"
import * as RpcIds from "./RpcIds.ts"

/** The calls that one caller sent together; what goes out for them is given up with the scope. */
interface Together {
  readonly scope: Scope.Scope
}

const CurrentBatch = Context.Reference<Together | undefined>("@trigate/upstream/RpcCalls/CurrentBatch", {
  defaultValue: () => undefined
})

/** Sends the JSON-RPC reads of an effect that have not to wait for anything else as one batch to each upstream. */
export const batched = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.scopedWith((scope) => Effect.provideService(effect, CurrentBatch, { scope }))

/** Sends the reads of an effect on their own: for work that goes on when the caller of the batch has its answers. */
export const unbatched = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(effect, CurrentBatch, undefined)

/** Calls that go out in one batch at most: providers take fewer than nodes do. */
const longest = 100

/** One call to an upstream; `params` is raw JSON text. */
export type Ask = (read: Read, params: string) => Effect.Effect<RpcAnswer, CommonFailure>

class RpcAsk extends Request.Class<{ readonly read: Read; readonly params: string }, RpcAnswer, CommonFailure> {}

const sum = (reads: ReadonlyArray<Read>): Cost => ({
  weight: reads.reduce((total, { operation }) => total + operation.cost.weight, 0),
  requestUnits: reads.reduce((total, { operation }) => total + operation.cost.requestUnits, 0)
})

/** A batch is cheap when all of its calls are. */
const batchOf = (reads: ReadonlyArray<Read>): Read["operation"] => ({
  name: "batch",
  class: "read",
  cost: sum(reads),
  ...(reads.every(({ operation }) => operation.cheap === true) ? { cheap: true } : {})
})

/** The JSON-RPC reads over some calls. */
export const make = (calls: Calls["Service"]): Ask => {
  const nextId = RpcIds.make()

  const single: Ask = (read, params) =>
    Effect.suspend(() => {
      const id = nextId()
      return calls.read(read, {
        body: Utf8.encode(JsonRpc.requestText(id, read.operation.name, params)),
        read: RpcAttemptResult.ofCall(id)
      })
    })

  const batch = (asks: ReadonlyArray<RpcAsk>, targets: Read["targets"]) =>
    Effect.suspend(() => {
      const ids = asks.map(nextId)
      const texts = asks.map(({ params, read }, index) =>
        JsonRpc.requestText(ids[index] ?? 0, read.operation.name, params)
      )
      return calls.read(
        { operation: batchOf(asks.map(({ read }) => read)), targets },
        { body: Utf8.encode(`[${texts.join(",")}]`), read: RpcAttemptResult.ofBatch(ids) }
      )
    })

  const one = (entry: Request.Entry<RpcAsk>) =>
    Effect.map(Effect.exit(single(entry.request.read, entry.request.params)), (exit) => entry.completeUnsafe(exit))

  const all = Effect.fnUntraced(function*(entries: ReadonlyArray<Request.Entry<RpcAsk>>, targets: Read["targets"]) {
    const outcome = yield* Effect.exit(batch(entries.map(({ request }) => request), targets))
    if (Exit.isFailure(outcome)) {
      for (const entry of entries) entry.completeUnsafe(Exit.failCause(outcome.cause))
    } else if (outcome.value._tag === "NoBatches") {
      yield* Effect.forEach(entries, one, { concurrency: 8, discard: true })
    } else {
      for (const [index, answer] of outcome.value.answers.entries()) {
        entries[index]?.completeUnsafe(
          Result.isSuccess(answer) ? Exit.succeed(answer.success) : Exit.fail(answer.failure)
        )
      }
    }
  })

  // one resolver for each batch and each list of addresses
  const resolvers = new WeakMap<Together, Map<Read["targets"], RequestResolver.RequestResolver<RpcAsk>>>()
  const resolverOf = (batch: Together, targets: Read["targets"]) => {
    const known = resolvers.get(batch) ?? new Map<Read["targets"], RequestResolver.RequestResolver<RpcAsk>>()
    resolvers.set(batch, known)
    const found = known.get(targets)
    if (found !== undefined) return found
    const made = RequestResolver.make<RpcAsk>((entries) => {
      const asked = Effect.forEach(
        Arr.chunksOf(entries, longest),
        ([first, ...others]) => others.length === 0 ? one(first) : all([first, ...others], targets),
        { concurrency: 4, discard: true }
      )
      // a resolver does not hear that its callers have left
      return Effect.flatMap(Effect.forkIn(asked, batch.scope, { startImmediately: true }), Fiber.join)
    })
    known.set(targets, made)
    return made
  }

  return (read, params) =>
    Effect.withFiber((fiber) => {
      const batch = fiber.getRef(CurrentBatch)
      return batch === undefined
        ? single(read, params)
        : Effect.request(new RpcAsk({ read, params }), resolverOf(batch, read.targets))
    })
}
