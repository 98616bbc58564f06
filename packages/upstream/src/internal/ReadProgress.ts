/** How far one read has come: the addresses that were asked, what they said, and how much time is left. */
import type { ReadFailure } from "@trigate/domain/TransportFailure"
import type * as Clock from "effect/Clock"
import type { Retryable } from "../AttemptResult.ts"
import type { Question, Read } from "../Read.ts"
import type { RetryBudget } from "../RetryBudget.ts"
import type { Target } from "../Upstream.ts"
import { millisOf } from "./Monotonic.ts"

/** One read on its way. */
export class ReadProgress<A, E> {
  readonly read: Read
  readonly question: Question<A, E>
  readonly clock: Clock.Clock
  readonly budget: RetryBudget
  readonly until: number
  readonly #tried: Array<Target["base"]> = []
  /** When an address wants to be asked again, as it said; most calls need none. */
  #notBefore: Map<Target["base"], number> | undefined
  exchanges = 0
  kept: Retryable<A, E | ReadFailure> | undefined

  constructor(read: Read, question: Question<A, E>, clock: Clock.Clock, deadline: number, budget: RetryBudget) {
    this.read = read
    this.question = question
    this.clock = clock
    this.budget = budget
    this.until = millisOf(clock) + deadline
  }

  get left(): number {
    return this.until - millisOf(this.clock)
  }

  begin(target: Target) {
    this.exchanges++
    this.#tried.push(target.base)
  }

  /** The first of some targets whose address has not been asked. */
  untriedOf(usable: ReadonlyArray<Target>): Target | undefined {
    return usable.find(({ base }) => !this.#tried.includes(base))
  }

  /** Takes note of the seconds that an address wants to be left alone. */
  defer({ base }: Target, seconds: number) {
    this.#notBefore ??= new Map()
    this.#notBefore.set(base, millisOf(this.clock) + seconds * 1000)
  }

  /** Milliseconds that are left of them; nothing where the address said nothing. */
  waitFor({ base }: Target): number | undefined {
    const until = this.#notBefore?.get(base)
    return until === undefined ? undefined : Math.max(0, until - millisOf(this.clock))
  }

  /** An answer is worth more than none, and what an address said more than that it was not asked. */
  keep(said: Retryable<A, E | ReadFailure>) {
    // where all are full, the caller has to know when the first of them is not
    const isLater = this.kept?.fault === "rate_limited" && said.fault === "rate_limited" &&
      (this.kept.retryAfter ?? 0) <= (said.retryAfter ?? 0)
    if (isLater) return
    if (this.kept === undefined || said.answer !== undefined) this.kept = said
    else if (this.kept.answer === undefined && said.fault !== "withheld") this.kept = said
  }
}
