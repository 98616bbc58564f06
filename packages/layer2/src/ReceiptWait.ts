/** Waits for a receipt by polling, over the service `Layer2` or over the typed client. */
import type { Hash } from "@trigate/domain/encoding/Hex"
import { unwrapReason } from "@trigate/domain/errors/GatewayError"
import type { Receipt } from "@trigate/domain/evm/Receipt"
import { isPreconfirmed } from "@trigate/domain/evm/Receipt"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { ReceiptTimeout, TransientFailure } from "./ReceiptTimeout.ts"

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
  getReceipt: (request: { readonly hash: Hash }) => Effect.Effect<Receipt | null, E>,
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
  const answer = Effect.map(getReceipt({ hash }), (receipt) => {
    lastFailure = undefined
    return receipt === null || (isPreconfirmed(receipt) && !acceptPreconfirmed) ? undefined : receipt
  })
  const poll = answer.pipe(Effect.catch((error) => {
    const reason: unknown = unwrapReason(error)
    if (!isTransient(reason)) return Effect.fail(error)
    lastFailure = reason
    return Effect.undefined
  }))
  const receipt = yield* Effect.repeat(poll, { schedule, until: Predicate.isNotUndefined }).pipe(
    Effect.timeoutOrElse({ duration: deadline, orElse: () => expired })
  )
  return receipt ?? (yield* expired)
})
