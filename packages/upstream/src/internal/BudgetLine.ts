/** Those who draw on one share: first come, first served, and how long the next one would wait. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Semaphore from "effect/Semaphore"
import * as BudgetShare from "./BudgetShare.ts"
import type * as BudgetStore from "./BudgetStore.ts"

/** A call that may start. */
export interface Grant {
  readonly giveBack: (unused: number) => Effect.Effect<void>
}

/** A call that may not start yet, and after how many milliseconds it could if nobody else came. */
export interface Late {
  readonly _tag: "Late"
  readonly wait: number
}

export interface Line {
  /** Starts a call if nobody waits and the bucket lets it. */
  readonly tryNow: (cost: number) => Effect.Effect<Grant, Late>
  /** How long a call would wait that joined now. */
  readonly waitFor: (cost: number, now: number) => number
  /** Waits for its turn; who would wait longer than the milliseconds of its patience fails at once. */
  readonly join: (cost: number, patience: number) => Effect.Effect<Grant, Late>
}

/** Where the buckets of a line are: this process's always counts, the shared one while it answers. */
export interface Stores {
  readonly own: (share: BudgetShare.Share, tokens: number) => Effect.Effect<BudgetStore.Level>
  readonly shared: BudgetStore.Charge
}

export const late = (wait: number): Late => ({ _tag: "Late", wait })

const scarcer = (own: BudgetStore.Level, shared: Option.Option<BudgetStore.Level>): BudgetStore.Level =>
  Option.isSome(shared) && shared.value.fullIn > own.fullIn ? shared.value : own

// what others give back brings the turn forward; who waits looks for it this often
const lookAgain = 250

export const make = (share: BudgetShare.Share, stores: Stores, left: Metric.Metric<number, unknown>): Line => {
  const turn = Semaphore.makeUnsafe(1)
  let waiting = 0
  let costOfWaiting = 0
  /** When the first token is there, as far as this process has seen. */
  let free = Number.NEGATIVE_INFINITY

  /** Milliseconds until a bucket that is full in `fullIn` holds `tokens`. */
  const until = (tokens: number, fullIn: number) => Math.max(0, fullIn - (share.capacity - tokens) * share.tick)

  const seen = (level: BudgetStore.Level, now: number) => {
    free = now + until(1, level.fullIn)
    return Metric.update(left, Math.max(0, level.remaining))
  }

  const grant = (cost: number, at: number, isShared: boolean): Grant => {
    let held = cost
    return {
      giveBack: (unused) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          const back = Math.max(0, Math.min(held, unused))
          held -= back
          const tokens = BudgetShare.returned(share, back, now - at)
          if (tokens === 0) return Effect.void
          return Effect.gen(function*() {
            const own = yield* stores.own(share, -tokens)
            const shared = isShared ? yield* stores.shared(share, -tokens) : Option.none()
            yield* seen(scarcer(own, shared), now)
          })
        })
    }
  }

  /** How long a call waits that has just been charged, and its charge with it if it waits. */
  const lateness = (cost: number, level: BudgetStore.Level): number => {
    const needed = BudgetShare.needed(share, cost)
    // a microsecond of rounding is no millisecond of waiting
    return level.remaining + cost >= needed ? 0 : Math.max(1, Math.ceil(until(needed - cost, level.fullIn) - 0.001))
  }

  const refuse = (cost: number, level: BudgetStore.Level, now: number) =>
    Effect.andThen(
      seen({ remaining: level.remaining + cost, fullIn: level.fullIn - cost * share.tick }, now),
      Effect.fail(late(lateness(cost, level)))
    )

  const attempt = (cost: number): Effect.Effect<Grant, Late> =>
    Effect.uninterruptible(Effect.gen(function*() {
      const now = yield* Clock.currentTimeMillis
      const own = yield* stores.own(share, cost)
      if (lateness(cost, own) > 0) {
        yield* stores.own(share, -cost)
        return yield* refuse(cost, own, now)
      }
      const shared = yield* stores.shared(share, cost)
      if (Option.isSome(shared) && lateness(cost, shared.value) > 0) {
        yield* stores.own(share, -cost)
        yield* stores.shared(share, -cost)
        return yield* refuse(cost, shared.value, now)
      }
      yield* seen(scarcer(own, shared), now)
      return grant(cost, now, Option.isSome(shared))
    }))

  const waitFor = (cost: number, now: number) =>
    Math.max(0, Math.ceil(free - now - 0.001 + (costOfWaiting + BudgetShare.needed(share, cost) - 1) * share.tick))

  const tryNow = (cost: number) =>
    Effect.suspend(() =>
      waiting === 0
        ? attempt(cost)
        : Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.fail(late(waitFor(cost, now))))
    )

  const first = (cost: number, giveUp: number): Effect.Effect<Grant, Late> =>
    attempt(cost).pipe(
      Effect.catch((error) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) =>
          now + error.wait > giveUp
            ? Effect.fail(error)
            : Effect.andThen(Effect.sleep(Math.min(error.wait, lookAgain)), first(cost, giveUp)))
      )
    )

  const join = Effect.fnUntraced(function*(cost: number, patience: number) {
    const now = yield* Clock.currentTimeMillis
    const wait = waitFor(cost, now)
    if (wait > patience) return yield* Effect.fail(late(wait))
    return yield* Effect.acquireUseRelease(
      Effect.sync(() => {
        waiting += 1
        costOfWaiting += cost
      }),
      () =>
        turn.withPermit(first(cost, now + patience)).pipe(
          // those before may be more patient
          Effect.timeoutOrElse({
            duration: patience + 1,
            orElse: () =>
              Effect.flatMap(
                Clock.currentTimeMillis,
                (now) => Effect.fail(late(waitFor(cost, now) - cost * share.tick))
              )
          })
        ),
      () =>
        Effect.sync(() => {
          waiting -= 1
          costOfWaiting -= cost
        })
    )
  })

  return { tryNow, waitFor, join }
}
