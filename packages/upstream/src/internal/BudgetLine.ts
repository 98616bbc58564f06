/** Those who wait for one budget, in the order in which they came; they hold nothing while they wait. */
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Semaphore from "effect/Semaphore"

/** Who waits, and how much for. */
export interface Waiter {
  wants: number
}

/** One turn at a time; what all of them want is known, so that nobody who comes later takes it. */
export class BudgetLine {
  readonly #turn = Semaphore.makeUnsafe(1)
  readonly #changed = Latch.makeUnsafe(false)
  readonly #waiters = new Set<Waiter>()
  #wanted = 0

  /** What those in the line want together. */
  get wanted(): number {
    return this.#wanted
  }

  /** Somebody wants more or less than before; nothing while what it wants is being counted. */
  want(waiter: Waiter, units: number): void {
    this.#wanted += units - waiter.wants
    waiter.wants = units
  }

  /** There may be more room than the first in the line knows of. */
  lookAgain(): void {
    if (this.#waiters.size > 0) this.#changed.openUnsafe()
  }

  /** The first in the line looks now: what changes from here on ends its next pause. */
  look(): void {
    this.#changed.closeUnsafe()
  }

  pause(milliseconds: number): Effect.Effect<void> {
    return Effect.asVoid(Effect.timeoutOption(this.#changed.await, milliseconds))
  }

  /** Runs `first` when all who came before are gone; `late` after the maxWait, with what those before want. */
  stand<A, E>(
    cost: number,
    maxWait: number,
    first: (waiter: Waiter) => Effect.Effect<A, E>,
    late: (ahead: number) => Effect.Effect<A, E>
  ): Effect.Effect<A, E> {
    return Effect.acquireUseRelease(
      Effect.sync(() => {
        const waiter: Waiter = { wants: 0 }
        this.#waiters.add(waiter)
        this.want(waiter, cost)
        return waiter
      }),
      (waiter) =>
        Effect.timeoutOrElse(this.#turn.withPermit(first(waiter)), {
          duration: maxWait,
          orElse: () => Effect.suspend(() => late(this.#before(waiter)))
        }),
      (waiter) =>
        Effect.sync(() => {
          this.want(waiter, 0)
          this.#waiters.delete(waiter)
        })
    )
  }

  #before(waiter: Waiter): number {
    let wanted = 0
    for (const other of this.#waiters) {
      if (other === waiter) break
      wanted += other.wants
    }
    return wanted
  }
}
