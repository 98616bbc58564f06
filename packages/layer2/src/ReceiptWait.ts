/** Waiting for a receipt, over a service of this package or a client. */
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

/** What to wait for, and for how long. */
export interface WaitOptions {
  readonly hash: Hash
  /** Pauses between polls; from 200 ms doubling up to 2 s when not given. Its end ends the waiting. */
  readonly schedule?: Schedule.Schedule<unknown>
  /** How long to wait in all; 60 seconds when not given. */
  readonly deadline?: Duration.Input
  /** Takes a receipt of a block that is not sealed yet and may still change; otherwise waits on. */
  readonly acceptPreconfirmed?: boolean
}

// no jitter: one transaction is polled by its sender, so polls are not synchronized
const defaultSchedule = Schedule.min([Schedule.exponential("200 millis"), Schedule.spaced("2 seconds")])

const isTransient = Schema.is(TransientFailure)

/** Asks for a receipt until it is there; fails with `ReceiptTimeout`, or with a refusal that another poll cannot change. */
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
