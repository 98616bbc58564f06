/**
 * Collects cheap reads of different callers, and sends the reads that arrive in one turn of the event loop as one
 * JSON-RPC batch. While a batch is in flight, collects reads until that batch ends, for at most one millisecond.
 *
 * Each call has its own result. If a batch fails as a whole, it is split in halves, so that a call that the node cannot
 * serve fails alone. The number of splits is limited, so that an overloaded node gets fewer requests than without
 * batches. If a batch is slower than usual (late), its calls are also sent singly, so that one slow call does not delay
 * the others.
 */
import type { CommonFailure } from "@trigate/domain/errors/GatewayError"
import type * as EvmProtocol from "@trigate/domain/evm/EvmProtocol"
import * as JsonRpc from "@trigate/domain/operations/JsonRpc"
import type { RpcAnswer } from "@trigate/domain/operations/JsonRpc"
import type { BatchAnswer } from "@trigate/domain/operations/Protocol"
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import type { AttemptedRead } from "./attempts/Attempts.ts"
import { Learned } from "./internal/Learned.ts"

/** The functions that send batches and single calls, and the maximum size of a batch. */
export interface Options {
  /** Maximum number of calls in one batch. After a node has refused a batch, it receives smaller batches for an hour. */
  readonly most: number
  readonly single: (
    call: EvmProtocol.CheckedRead,
    targets: AttemptedRead["targets"]
  ) => Effect.Effect<RpcAnswer, CommonFailure>
  readonly batch: (
    calls: ReadonlyArray<EvmProtocol.CheckedRead>,
    targets: AttemptedRead["targets"],
    onStart: AttemptedRead["onStart"]
  ) => Effect.Effect<BatchAnswer<JsonRpc.BatchMember>, CommonFailure>
  /** The context in which batches are sent; it contains no caller. */
  readonly context: Context.Context<never>
}

type BatchedResult = Effect.Effect<RpcAnswer, CommonFailure>

/** A read that waits for its batch. */
interface WaitingRead {
  readonly call: EvmProtocol.CheckedRead
  readonly resume: (result: BatchedResult) => void
  /** Whether the read's caller has received a result or has disconnected. */
  isOver: boolean
  /** The single call that was sent because the batch is late. */
  single: Fiber.Fiber<unknown> | undefined
  /** The failure of the batch, if the single call is still in flight. */
  failure: BatchedResult | undefined
}

/** The reads that are collected for the next batch. */
interface Gathered {
  readonly reads: Array<WaitingRead>
  fiber: Fiber.Fiber<unknown> | undefined
  /** Sends the reads that wait for a batch in flight. */
  release: (() => void) | undefined
}

/** The batches to one list of addresses. */
interface Lane extends Pick<AttemptedRead, "targets"> {
  /** The reads that further reads join. */
  open: Gathered | undefined
  /** The number of batches in flight. */
  batches: number
}

/** A batch in flight that becomes late if it takes too long. */
interface BatchInFlight extends Pick<AttemptedRead, "targets"> {
  readonly reads: ReadonlyArray<WaitingRead>
  /** The time at which the batch becomes late, in milliseconds. */
  readonly lateAt: number
  readonly withdraw: () => boolean
}

/** Milliseconds for which an upstream that accepts no batches receives only single calls. */
const refusedFor = 60_000

/** Maximum milliseconds for which reads wait for a batch in flight. */
const longestGathering = 1

/**
 * A batch is split only if it fails within this many milliseconds of its start; a later split would exceed the
 * deadline.
 */
const splitWithin = 1000

/** Returns whether one call of a batch may have caused the failure. */
const isSplit = (failure: CommonFailure): boolean =>
  failure._tag === "UpstreamUnavailable" || failure._tag === "UpstreamMalformed"

/** Makes the batches of one upstream, for cheap reads only. */
export const make = ({ batch, context, most, single }: Options): Options["single"] => {
  const fork = Effect.runForkWith(context)
  const clock = Context.get(context, Clock.Clock)
  const lanes = new WeakMap<AttemptedRead["targets"], Lane>()
  const inFlight = new Set<BatchInFlight>()
  let isWatching = false
  const accepted = new Learned<number>()
  let refusedAt: number | undefined

  const now = () => clock.currentTimeMillisUnsafe()
  /** Returns the maximum number of calls in one batch. */
  const largest = () => accepted.at(now()) ?? most

  const end = (read: WaitingRead, next: BatchedResult): void => {
    if (read.isOver) return
    read.isOver = true
    read.resume(next)
  }

  /**
   * Reduces the maximum number of calls in a batch after a node has refused a batch of `count` calls. `limit` is the
   * maximum that the node's error states. If the maximum falls to one, batches are paused.
   */
  const reduce = (count: number, limit = Math.floor(count / 2)): void => {
    const reduced = Math.min(largest(), limit)
    accepted.learn(reduced > 1 ? reduced : most, now())
    if (reduced <= 1) refusedAt = now()
  }

  /**
   * Sends the calls of a late batch singly, in addition to the batch, as far as the retry budget permits. Tries the
   * upstream's next address first.
   */
  const sendSingly = ({ reads, targets: [first, ...others], withdraw }: BatchInFlight): void => {
    const targets = Arr.append(others, first)
    for (const read of reads) {
      if (read.isOver) continue
      if (!withdraw()) return
      read.single = fork(Effect.map(Effect.exit(single(read.call, targets)), (exit) => {
        read.single = undefined
        if (Exit.isSuccess(exit)) end(read, exit)
        else if (read.failure !== undefined) end(read, read.failure)
      }))
    }
  }

  // one fiber watches all batches, because a timer for each batch would cost more than the batch
  const watching = Effect.gen(function*() {
    while (inFlight.size > 0) {
      yield* Effect.sleep(Math.max(1, Math.min(...inFlight.values().map(({ lateAt }) => lateAt)) - now()))
      // lets the process first read the responses that arrived while it was busy
      yield* Effect.yieldNow
      for (const started of inFlight) {
        if (started.lateAt > now()) continue
        inFlight.delete(started)
        sendSingly(started)
      }
    }
    isWatching = false
  })

  const watch = (started: BatchInFlight): void => {
    inFlight.add(started)
    if (isWatching) return
    isWatching = true
    fork(watching)
  }

  const send = (
    all: ReadonlyArray<WaitingRead>,
    lane: Lane,
    bounds: { readonly since: number; splits: number }
  ): Effect.Effect<void> =>
    Effect.suspend(() => {
      const { targets } = lane
      const reads = all.filter(({ isOver }) => !isOver)
      const [first] = reads
      if (first === undefined) return Effect.void
      if (reads.length === 1) return Effect.sync(() => end(first, single(first.call, targets)))
      let started: BatchInFlight | undefined
      const asked = batch(reads.map(({ call }) => call), targets, (delay, withdraw) => {
        if (delay === undefined) return
        started = { reads, targets, withdraw, lateAt: now() + delay }
        watch(started)
      })
      lane.batches++
      const ended = Effect.onExitPrimitive(asked, () => {
        lane.batches--
        lane.open?.release?.()
        if (started !== undefined) inFlight.delete(started)
        return undefined
      })
      return Effect.flatMap(Effect.exit(ended), (outcome) => {
        if (Exit.isSuccess(outcome)) {
          if (outcome.value._tag === "NoBatches") {
            reduce(reads.length, outcome.value.most)
            for (const read of reads) end(read, single(read.call, targets))
            return Effect.void
          }
          for (const [index, answer] of outcome.value.answers.entries()) {
            const read = reads[index]
            if (read === undefined) continue
            const isLimited = Result.isSuccess(answer) && answer.success._tag === "Error" &&
              JsonRpc.isRateLimit(answer.success.code)
            // a rate-limited call is sent again singly, because single calls are retried as soon as the address permits
            end(read, isLimited ? single(read.call, targets) : Effect.fromResult(answer))
          }
          return Effect.void
        }
        const failure = Exit.findErrorOption(outcome)
        const mayHelp = failure._tag === "Some" && isSplit(failure.value) && now() - bounds.since < splitWithin &&
          bounds.splits-- > 0
        if (!mayHelp) {
          for (const read of reads) {
            if (read.single === undefined) end(read, Effect.failCause(outcome.cause))
            else read.failure = Effect.failCause(outcome.cause)
          }
          return Effect.void
        }
        const half = Math.ceil(reads.length / 2)
        return Effect.andThen(
          send(reads.slice(0, half), lane, bounds),
          send(reads.slice(half), lane, bounds)
        )
      })
    })

  const ensureLane = (targets: AttemptedRead["targets"]): Lane => {
    const known = lanes.get(targets)
    if (known !== undefined) return known
    const lane: Lane = { targets, open: undefined, batches: 0 }
    lanes.set(targets, lane)
    return lane
  }

  const close = (lane: Lane, gathered: Gathered): void => {
    if (lane.open === gathered) lane.open = undefined
  }

  const flush = (lane: Lane, gathered: Gathered) =>
    Effect.suspend(() => {
      close(lane, gathered)
      // enough splits to isolate one faulty call: each split halves the batch
      const splits = Math.ceil(Math.log2(gathered.reads.length + 1))
      return send(gathered.reads, lane, { since: now(), splits })
    })

  /** Waits until a batch in flight ends or no further read can join. */
  const released = (gathered: Gathered) =>
    Effect.callback<void>((resume) => {
      const release = () => resume(Effect.void)
      gathered.release = release
      const timer = fork(Effect.andThen(Effect.sleep(longestGathering), Effect.sync(release)))
      return Effect.sync(() => timer.interruptUnsafe())
    })

  const gather = (lane: Lane, gathered: Gathered) =>
    Effect.andThen(
      Effect.yieldNow,
      Effect.suspend(() => {
        const waits = lane.batches > 0 && lane.open === gathered
        return waits ? Effect.andThen(released(gathered), flush(lane, gathered)) : flush(lane, gathered)
      })
    )

  return (call, targets) => {
    if (refusedAt !== undefined && now() - refusedAt < refusedFor) return single(call, targets)
    return Effect.callback((resume) => {
      const read: WaitingRead = { call, resume, isOver: false, single: undefined, failure: undefined }
      const lane = ensureLane(targets)
      const gathered = lane.open ??= { reads: [], fiber: undefined, release: undefined }
      const isFirst = gathered.reads.push(read) === 1
      if (gathered.reads.length >= largest()) {
        close(lane, gathered)
        gathered.release?.()
      }
      if (isFirst) gathered.fiber = fork(gather(lane, gathered))
      return Effect.sync(() => {
        read.isOver = true
        read.single?.interruptUnsafe()
        if (gathered.reads.every(({ isOver }) => isOver)) {
          // no later read joins the gathering, which is never sent
          close(lane, gathered)
          gathered.fiber?.interruptUnsafe()
        }
      })
    })
  }
}
