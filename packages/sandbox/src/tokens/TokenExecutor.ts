/**
 * Runs the token chain's virtual machine in a worker thread, so that the event loop does not wait for it, and ends the
 * thread if an execution takes too long.
 *
 * The thread has no state: an execution contains the account's state, and its result the next one.
 */
import { Cell, serializeTuple } from "@ton/core"
import type { IExecutor } from "@ton/sandbox"
import { countCells, isBoundedStack, isBoundedTransaction } from "@trigate/tokens/unstable/transactions/TransactionCell"
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { Worker } from "node:worker_threads"
import type { Execution, Reply } from "./TokenWorker.ts"

/** Maximum seconds of a get method or a message on the sandbox's token chain. */
const maxSeconds = 2

/** Maximum number of cells of a result, and of the cells that decoding it may visit. */
const maxCells = 4_096

const aborted = `execution aborted (timeout = ${maxSeconds}s)`

const file = import.meta.url.endsWith(".ts") ? "./TokenWorker.ts" : "./TokenWorker.js"

const encode = (cell: Cell): string => cell.toBoc().toString("base64")

/** Throws if decoding the cells of a result would take long. */
const check = (boc: string, isBounded: (cell: Cell, most: number) => boolean = () => true): void => {
  if (countCells(boc) > maxCells || !isBounded(Cell.fromBase64(boc), maxCells)) {
    throw new Error("the result has too many cells")
  }
}

/** A worker thread, and the promise of its next message. */
interface Thread {
  readonly worker: Worker
  readonly loaded: Promise<Reply>
  waiting: PromiseWithResolvers<Reply>
}

/**
 * Makes an executor, and the function that runs an effect with it. The effect's executions, one at a time, end together
 * after `maxSeconds`. The thread is started when it is needed.
 */
export const make = Effect.fnUntraced(function*() {
  let thread: Thread | undefined
  let isOver = false

  const start = (): Thread => {
    const worker = new Worker(new URL(file, import.meta.url))
    const waiting = Promise.withResolvers<Reply>()
    const started: Thread = { worker, loaded: waiting.promise, waiting }
    const end = (cause: unknown) => {
      if (thread === started) thread = undefined
      started.waiting.reject(cause)
    }
    worker.on("message", (reply: Reply) => {
      // an idle thread does not keep the process alive
      worker.unref()
      started.waiting.resolve(reply)
    })
    worker.on("error", end)
    worker.on("exit", () => end(new Error(aborted)))
    return started
  }

  const stop = Effect.promise(() => {
    const ending = thread?.worker.terminate()
    thread = undefined
    return Promise.resolve(ending)
  })
  yield* Effect.addFinalizer(() => stop)

  const run = (execution: Execution): Promise<Reply> => {
    if (isOver || thread === undefined) return Promise.reject(new Error(aborted))
    thread.waiting = Promise.withResolvers()
    thread.worker.ref()
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
    thread.worker.postMessage(execution)
    return thread.waiting.promise
  }

  const executor: IExecutor = {
    runGetMethod: ({ address, code, data, libs: _, randomSeed: __, stack, ...args }) =>
      run({
        args,
        code: encode(code),
        data: encode(data),
        stack: encode(serializeTuple(stack)),
        address: address.toString()
      }).then((reply) => {
        if (reply === "loaded" || !("output" in reply)) throw new Error("not the result of a get method")
        if (reply.output.success) check(reply.output.stack, isBoundedStack)
        return reply
      }),
    runTransaction: ({ libs: _, message, randomSeed: __, ...args }) =>
      run({ args, message: encode(message) }).then((reply) => {
        if (reply === "loaded" || !("result" in reply)) throw new Error("not the result of a transaction")
        if (reply.result.success) {
          check(reply.result.shardAccount)
          check(reply.result.transaction, isBoundedTransaction)
        }
        return reply
      }),
    runTickTock: () => Promise.reject(new Error("the sandbox has no tick-tock transactions"))
  }

  const load = Effect.tryPromise(() => {
    thread ??= start()
    return thread.loaded
  })

  const limited = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E | Cause.UnknownError> =>
    Effect.andThen(
      load,
      Effect.acquireUseRelease(
        Effect.suspend(() => {
          isOver = false
          return Effect.forkChild(Effect.delay(
            Effect.suspend(() => {
              isOver = true
              return stop
            }),
            `${maxSeconds} seconds`
          ))
        }),
        () => effect,
        Fiber.interrupt
      )
    )

  return { executor, limited }
})
