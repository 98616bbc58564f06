/**
 * Makes attempts until a read succeeds: fails over to other addresses, retries the same address with backoff, and
 * hedges slow attempts with a second address.
 *
 * For reads only; the types exclude once-only calls. Three limits apply: the read's deadline, a maximum number of
 * attempts, and the retry budget. If nothing was sent, failover to the next address takes no token from the retry
 * budget.
 */
import { perUpstream } from "@trigate/domain/Chain"
import type { ReadFailure } from "@trigate/domain/errors/TransportFailure"
import { UpstreamTimeout, UpstreamUnavailable } from "@trigate/domain/errors/UpstreamError"
import * as Continuation from "@trigate/domain/operations/Continuation"
import type { Cost } from "@trigate/domain/operations/Operation"
import type { AttemptResult, Question, Retryable, RetryableFault } from "@trigate/domain/operations/Protocol"
import { foreign, retryable, unreachable, unreadable } from "@trigate/domain/operations/Protocol"
import type { UpstreamResponse } from "@trigate/domain/operations/UpstreamResponse"
import { monotonicMillis } from "@trigate/domain/Time"
import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { memoize } from "effect/Function"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import type { TransportError } from "../transport/HttpTransport.ts"
import type { Target, UpstreamLabel } from "../Upstream.ts"
import * as Attempt from "./Attempt.ts"
import type { Ended, Parts } from "./Attempt.ts"
import { meters } from "./AttemptMetrics.ts"
import type { Meter } from "./AttemptMetrics.ts"
import type { HealthSignal } from "./OutlierDetection.ts"

/** The retry budget of each upstream. */
export interface RetryOptions {
  /** Maximum ratio of retries to reads. Default: 0.2. */
  readonly share?: number
  /**
   * Retries per second that are allowed in addition to the ratio `share`. Default: 10. A new budget starts with this
   * number of tokens.
   */
  readonly floor?: number
}

/**
 * The retry budget of one upstream, as in Envoy and Finagle. It keeps retries from overloading a failing upstream.
 *
 * By default, each read deposits a fifth of a token, and each additional attempt takes one token. If no token is
 * left, 10 additional attempts per second are still allowed.
 */
interface RetryBudget {
  /** Deposits the tokens of a read. */
  readonly deposit: () => void
  /** Takes a token, and returns whether the budget had one; `now` is in milliseconds. */
  readonly withdraw: (now: number) => boolean
}

// maximum number of accumulated tokens: those that a thousand reads per second deposit in ten seconds
const MAX_TOKENS = 2000

const budget = ({ floor = 10, share = 0.2 }: RetryOptions = {}): RetryBudget => {
  let fromReads = 0
  let fromTime = floor
  let lastRefill: number | undefined
  return {
    deposit: () => {
      fromReads = Math.min(MAX_TOKENS, fromReads + share)
    },
    withdraw: (now) => {
      const elapsed = Math.max(0, now - (lastRefill ?? now))
      lastRefill = now
      fromTime = Math.min(floor, fromTime + elapsed * floor / 1000)
      if (fromReads >= 1) fromReads -= 1
      else if (fromTime >= 1) fromTime -= 1
      else return false
      return true
    }
  }
}

/**
 * Makes a separate budget for each upstream, so that the reads of one upstream do not pay for retries at a different
 * upstream.
 */
const budgets = (options?: RetryOptions): { readonly [L in UpstreamLabel]: RetryBudget } =>
  perUpstream(() => budget(options))

const FIRST_BACKOFF = 50
const LONGEST_BACKOFF = 1000

/**
 * Returns the maximum backoff before the next attempt at the same address, in milliseconds. Full jitter makes most
 * pauses shorter.
 */
const longestPause = (attempts: number): number => Math.min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** (attempts - 1))

const SAMPLES = 128
const ENOUGH = 20

/** Recent latencies of one kind of call. */
class Latencies {
  readonly #newest: Array<number> = []
  #sinceSorted = 0
  #quantile: number | undefined

  /** Adds a latency in milliseconds. */
  add(milliseconds: number) {
    this.#newest.push(milliseconds)
    if (this.#newest.length > SAMPLES) this.#newest.shift()
    this.#sinceSorted++
  }

  /** Returns the 95th percentile of the latencies in milliseconds; `undefined` with fewer than 20 samples. */
  get p95(): number | undefined {
    if (this.#newest.length < ENOUGH) return undefined
    // the percentile is computed again only after enough new samples, because sorting for each call would cost too much
    if (this.#quantile === undefined || this.#sinceSorted >= ENOUGH) {
      this.#sinceSorted = 0
      this.#quantile = this.#newest.toSorted((a, b) => a - b)[Math.floor(this.#newest.length * 0.95)]
    }
    return this.#quantile
  }
}

/** A read: its operation, and its targets in order of preference. */
export interface AttemptedRead {
  readonly operation: {
    readonly name: string
    readonly class: "read"
    readonly cost: Cost
    readonly cheap?: true
  }
  readonly targets: NonEmptyReadonlyArray<Target>
  /**
   * Called at the start of the first attempt. If `onStart` is set, the first attempt is not hedged (repeated at a
   * second address because it is slow). `delay` is the number of milliseconds after which it would be hedged, if known.
   * `withdraw` takes a token from the retry budget, and returns whether the budget had one.
   */
  readonly onStart?: (delay: number | undefined, withdraw: () => boolean) => void
}

/** The limits of every read. */
export interface Options {
  /** Deadline of the read in milliseconds. */
  readonly deadline: number
  /** Maximum number of attempts; at least one for each address. */
  readonly attempts: number
  readonly retries?: RetryOptions | undefined
}

// minimum milliseconds before a hedge: a busy process may need this long to process a response that has already arrived
const SOONEST_HEDGE = 20

// seconds for which an address is deferred after a 429 without `Retry-After`
const DEFAULT_DEFERRAL = 1

/** Transient faults, after which the same address can be tried again. */
const transientFaults: ReadonlySet<RetryableFault> = new Set(["not_sent", "broken", "timeout", "server_fault"])

/**
 * Returns whether the address that failed can be tried again. After a rate-limit response, returns `true` only if the
 * response had a `Retry-After`.
 */
const isRepeatable = ({ fault, retryAfter }: Retryable<unknown, unknown>): boolean =>
  transientFaults.has(fault) || (fault === "rate_limited" && retryAfter !== undefined)

const attemptOutcome = (fault: RetryableFault): Ended<unknown>["outcome"] => fault === "withheld" ? "refused" : fault

const isOwnResponse = (response: UpstreamResponse): boolean =>
  foreign(response) === undefined && Result.isSuccess(response.json.value)

/** Returns what a response shows about the health of its address; see {@link HealthSignal}. */
const healthSignal = (result: AttemptResult<unknown, unknown>, response: UpstreamResponse): HealthSignal => {
  if (result._tag !== "Retryable" || result.fault === "declined") return "healthy"
  const isGateway = response.status >= 502 && response.status <= 504
  return isGateway && !isOwnResponse(response) ? "server_fault" : "none"
}

const signals: { readonly [R in Exclude<TransportError["reason"], "Timeout">]: HealthSignal } = {
  Connect: "not_sent",
  Broken: "broken",
  TooLarge: "none",
  Encoding: "none"
}

const timedOut = (upstream: string, deadline: number) => () =>
  new UpstreamTimeout({
    upstream,
    deadline: Math.round(deadline),
    detail: `${upstream} did not answer within ${Math.round(deadline)} ms`
  })

const readResult = (
  upstream: string,
  { detail, reason, sent }: TransportError,
  deadline: number
): Retryable<never, ReadFailure> => {
  if (reason === "Timeout") return retryable(sent === "no" ? "not_sent" : "timeout", timedOut(upstream, deadline))
  if (sent === "no") return unreachable(upstream, "not_sent", detail)
  return reason === "Broken" ? unreachable(upstream, "broken", detail) : unreadable(upstream, detail)
}

const ejected = (upstream: string, millis: number | undefined) =>
  new UpstreamUnavailable({
    upstream,
    attempts: 0,
    detail: `${upstream} failed repeatedly and receives no calls for now`,
    ...(millis === undefined ? {} : { retryAfter: Math.max(1, Math.ceil(millis / 1000)) })
  })

/**
 * Returns whether the failure `said` is more useful to report than the previous failure. A response is more useful than
 * no response, and a failure of the address is more useful than a failure of the gateway.
 */
const isBetter = (said: Retryable<unknown, unknown>, kept: Retryable<unknown, unknown> | undefined): boolean => {
  if (kept === undefined) return true
  // if all addresses have exceeded their rate limit, the shortest wait is reported to the caller
  const isLater = kept.fault === "rate_limited" && said.fault === "rate_limited" &&
    (kept.retryAfter ?? 0) <= (said.retryAfter ?? 0)
  if (isLater) return false
  return said.answer !== undefined || (kept.answer === undefined && said.fault !== "withheld")
}

/** Sends reads upstream, with failover, retries and hedging. */
export interface Attempts {
  readonly ask: <A, E>(read: AttemptedRead, question: Question<A, E>) => Effect.Effect<A, E | ReadFailure>
}

/** Makes the functions that send reads. */
export const make = (parts: Parts, options: Options): Attempts => {
  const { deadline } = options
  const { outliers } = parts
  const retryBudgets = budgets(options.retries)
  const findMeter = meters()
  const findLatencies = memoize((_meter: Meter) => new Latencies())

  /** Makes the attempts of one read. If all of them fail, fails with the most useful failure. */
  const attempting = <A, E>(
    { onStart, operation, targets }: AttemptedRead,
    { body, judge }: Question<A, E>,
    context: Context.Context<never>
  ): Effect.Effect<A, E | ReadFailure> => {
    type Attempted = AttemptResult<A, E | ReadFailure>
    type Open = Retryable<A, E | ReadFailure>
    const [{ label }] = targets
    // the retry is charged to the budget of the intended upstream, even if a different upstream serves the call
    const budget = retryBudgets[label]
    const clock = Context.get(context, Clock.Clock)
    const until = monotonicMillis(clock) + deadline
    const tried: Array<Target["base"]> = []
    /** The earliest time of the next attempt at each address, from its `Retry-After`. */
    let notBefore: Map<Target["base"], number> | undefined
    /** The failure to report if no further attempt succeeds. */
    let kept: Open | undefined

    const left = () => until - monotonicMillis(clock)
    const withdraw = () => budget.withdraw(clock.currentTimeMillisUnsafe())
    const meterAt = (target: Target) => findMeter(target.label, operation.name)
    const keep = (said: Open) => {
      if (isBetter(said, kept)) kept = said
    }

    const defer = (target: Target, { fault, retryAfter }: Open) => {
      if (retryAfter !== undefined) {
        notBefore ??= new Map()
        notBefore.set(target.base, monotonicMillis(clock) + retryAfter * 1000)
      }
      if (fault === "rate_limited") outliers.defer(target, (retryAfter ?? DEFAULT_DEFERRAL) * 1000)
    }

    /**
     * Returns the milliseconds to wait before an address is tried again: its `Retry-After`, otherwise backoff with full
     * jitter.
     */
    const pause = ({ base }: Target): number => {
      const at = notBefore?.get(base)
      return at === undefined
        ? longestPause(tried.length) * Context.get(context, Random.Random).nextDoubleUnsafe()
        : Math.max(0, at - monotonicMillis(clock))
    }

    const attempt = (target: Target, time: number, maxWait: number): Effect.Effect<Attempted> => {
      const meter = meterAt(target)
      const start = monotonicMillis(clock)
      tried.push(target.base)
      return Attempt.run<Attempted>(parts, {
        class: "read",
        cost: operation.cost,
        target,
        maxWait,
        operation: operation.name,
        number: tried.length,
        meter,
        body,
        timeout: time,
        // if a pooled connection broke, the peer may have closed all pooled connections
        onNewConnection: kept?.fault === "broken",
        answered: (response) => {
          const value = judge(response)
          const signal = healthSignal(value, response)
          if (value._tag === "Retryable") {
            defer(target, value)
            return { value, signal, outcome: attemptOutcome(value.fault), rows: 0 }
          }
          if (value._tag === "Refused") return { value, signal, outcome: "refused", rows: 0 }
          if (targets.length > 1 || onStart !== undefined) findLatencies(meter).add(monotonicMillis(clock) - start)
          return { value, signal, outcome: response.status < 400 ? "ok" : "refused", rows: value.rows }
        },
        broke: (error) => {
          const value = readResult(target.label, error, deadline)
          const ofTimeout = operation.cheap === true ? "timeout" : "none"
          const signal = error.reason === "Timeout" ? ofTimeout : signals[error.reason]
          return { value, signal, outcome: attemptOutcome(value.fault), rows: 0 }
        },
        withheld: (error) => retryable("withheld", () => error)
      })
    }

    /**
     * Sends the read to the target `first`, and also to `second` if `first` takes longer than `delay`. Returns the
     * success that arrives first.
     */
    const hedged = (first: Target, second: Target, time: number, delay: number) =>
      Effect.gen(function*() {
        const primary = yield* Effect.forkChild(attempt(first, time, time), { startImmediately: true })
        const early = yield* Effect.timeoutOption(Fiber.join(primary), delay)
        if (Option.isSome(early)) return early.value
        if (!withdraw()) return yield* Fiber.join(primary)
        const other = yield* Effect.forkChild(attempt(second, left(), 0), { startImmediately: true })
        const winner = yield* Effect.raceFirst(
          Effect.map(Fiber.join(primary), (result) => ({ result, rest: other, won: "first" as const })),
          Effect.map(Fiber.join(other), (result) => ({ result, rest: primary, won: "second" as const }))
        )
        if (winner.result._tag === "Retryable") {
          keep(winner.result)
          return yield* Fiber.join(winner.rest)
        }
        // does not wait for the interruption, which may take time
        winner.rest.interruptUnsafe()
        meterAt(first).hedged(context, winner.won)
        return winner.result
      })

    const end = (): Effect.Effect<A, E | ReadFailure> => {
      if (kept?.answer !== undefined) return Effect.succeed(kept.answer)
      return Effect.fail(kept === undefined || left() <= 0 ? timedOut(label, deadline)() : kept.failure(tried.length))
    }

    /** Makes the next attempt, hedged if another address is available. */
    const next = (target: Target, usable: ReadonlyArray<Target>): Effect.Effect<A, E | ReadFailure> => {
      const other = usable.find(({ base }) => base !== target.base && !tried.includes(base))
      // leaves time for the next address if this one does not respond
      const time = other === undefined ? left() : left() / 2
      const maxWait = other === undefined || other.label === target.label ? time : 0
      const isFirst = tried.length === 0
      const isHedged = other !== undefined && !(isFirst && onStart !== undefined)
      const p95 = isHedged || isFirst && onStart !== undefined ? findLatencies(meterAt(target)).p95 : undefined
      const delay = p95 === undefined ? undefined : Math.max(SOONEST_HEDGE, p95)
      if (isFirst) onStart?.(delay, withdraw)
      const asked = !isHedged || delay === undefined || delay >= time
        ? attempt(target, time, maxWait)
        : hedged(target, other, time, delay)
      return Continuation.flatMap(asked, concluded)
    }

    /** Ends the read with the result of an attempt, or continues with a further attempt. */
    const concluded = (result: Attempted): Effect.Effect<A, E | ReadFailure> => {
      switch (result._tag) {
        case "Answered":
          return Effect.succeed(result.answer)
        case "Refused":
          return Effect.fail(result.failure)
        case "Retryable":
          return again(result)
      }
    }

    /**
     * Makes a further attempt if it could help and is permitted. Otherwise fails with the most useful failure so far.
     */
    const again = (said: Open): Effect.Effect<A, E | ReadFailure> => {
      keep(said)
      if (tried.length >= Math.max(options.attempts, targets.length) || left() <= 0) return end()
      const usable = outliers.choose(targets).targets
      const untried = usable.find(({ base }) => !tried.includes(base))
      const target = untried ?? (isRepeatable(said) ? usable[0] : undefined)
      if (target === undefined) return end()
      const wait = untried === undefined ? pause(target) : 0
      if (wait >= left()) return end()
      const isFree = untried !== undefined && (said.fault === "not_sent" || said.fault === "withheld")
      if (!isFree && !withdraw()) return end()
      const retry = () => {
        meterAt(target).retried(context, said.fault)
        return next(target, usable)
      }
      return wait > 0 ? Effect.flatMap(Effect.sleep(wait), retry) : retry()
    }

    const first = () => {
      const { retryAfter, targets: usable } = outliers.choose(targets)
      const [target] = usable
      return target === undefined ? Effect.fail(ejected(label, retryAfter)) : next(target, usable)
    }
    budget.deposit()
    const firstCheck = outliers.ready(targets)
    return firstCheck === undefined ? first() : Effect.flatMap(firstCheck, first)
  }

  return {
    ask: (read, question) => Continuation.withContext((context) => attempting(read, question, context))
  }
}
