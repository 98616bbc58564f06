/**
 * Makes attempts until a read succeeds: fails over to other addresses, retries the same address with backoff, and
 * hedges slow attempts with a second address.
 *
 * For reads only; the types exclude once-only calls. Three limits apply: the read's deadline, a maximum number of
 * attempts, and the retry budget. If nothing was sent, failover to the next address takes no token from the retry
 * budget.
 */
import { perUpstream } from "@trigate/domain/Chain"
import type { QuotaExceeded } from "@trigate/domain/errors/CallerError"
import type { ReadFailure } from "@trigate/domain/errors/TransportFailure"
import { UpstreamTimeout, UpstreamUnavailable } from "@trigate/domain/errors/UpstreamError"
import type { UpstreamRateLimited } from "@trigate/domain/errors/UpstreamError"
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
import { meters } from "./Attempt.ts"
import type { Ended, Handler, Meter, Parts } from "./Attempt.ts"
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

/** What the reads of one process share. */
interface Shared extends Options {
  readonly parts: Parts
  readonly budgets: { readonly [L in UpstreamLabel]: RetryBudget }
  readonly findMeter: (upstream: UpstreamLabel, operation: string) => Meter
  readonly findLatencies: (meter: Meter) => Latencies
}

/** The next address to try, after a pause of `wait` milliseconds. */
interface Next {
  readonly target: Target
  readonly usable: ReadonlyArray<Target>
  readonly wait: number
}

/** One read: the attempts made so far, and what they showed. */
class Reading<A, E> implements Handler<AttemptResult<A, E | ReadFailure>> {
  readonly #shared: Shared
  readonly #read: AttemptedRead
  readonly #question: Question<A, E>
  readonly #context: Context.Context<never>
  readonly #clock: Clock.Clock
  readonly #until: number
  readonly #tried: Array<Target["base"]> = []
  /** The earliest time of the next attempt at each address, from its `Retry-After`. */
  #notBefore: Map<Target["base"], number> | undefined
  /** The failure to report if no further attempt succeeds. */
  #kept: Retryable<A, E | ReadFailure> | undefined

  constructor(shared: Shared, read: AttemptedRead, question: Question<A, E>, context: Context.Context<never>) {
    this.#shared = shared
    this.#read = read
    this.#question = question
    this.#context = context
    this.#clock = Context.get(context, Clock.Clock)
    this.#until = monotonicMillis(this.#clock) + shared.deadline
  }

  get #left(): number {
    return this.#until - monotonicMillis(this.#clock)
  }

  /** Takes a token from the budget of the intended upstream, even if a different upstream serves the call. */
  #withdraw(): boolean {
    return this.#shared.budgets[this.#read.targets[0].label].withdraw(this.#clock.currentTimeMillisUnsafe())
  }

  #meterAt(target: Target): Meter {
    return this.#shared.findMeter(target.label, this.#read.operation.name)
  }

  #keep(said: Retryable<A, E | ReadFailure>): void {
    if (isBetter(said, this.#kept)) this.#kept = said
  }

  answered(response: UpstreamResponse, { meter, start, target }: Attempt.Attempt<unknown>) {
    const value = this.#question.judge(response)
    const signal = healthSignal(value, response)
    if (value._tag === "Retryable") {
      this.#defer(target, value)
      return { value, signal, outcome: attemptOutcome(value.fault), rows: 0 }
    }
    if (value._tag === "Refused") return { value, signal, outcome: "refused" as const, rows: 0 }
    if (this.#read.targets.length > 1) {
      this.#shared.findLatencies(meter).add(monotonicMillis(this.#clock) - start)
    }
    return { value, signal, outcome: response.status < 400 ? "ok" as const : "refused" as const, rows: value.rows }
  }

  broke(error: TransportError, { target }: Attempt.Attempt<unknown>) {
    const value = readResult(target.label, error, this.#shared.deadline)
    const ofTimeout = this.#read.operation.cheap === true ? "timeout" : "none"
    const signal = error.reason === "Timeout" ? ofTimeout : signals[error.reason]
    return { value, signal, outcome: attemptOutcome(value.fault), rows: 0 }
  }

  withheld(error: QuotaExceeded | UpstreamRateLimited): AttemptResult<A, E | ReadFailure> {
    return retryable("withheld", () => error)
  }

  #defer(target: Target, { fault, retryAfter }: Retryable<A, E>): void {
    if (retryAfter !== undefined) {
      this.#notBefore ??= new Map()
      this.#notBefore.set(target.base, monotonicMillis(this.#clock) + retryAfter * 1000)
    }
    if (fault === "rate_limited") {
      this.#shared.parts.outliers.defer(target, (retryAfter ?? DEFAULT_DEFERRAL) * 1000)
    }
  }

  #attempt(target: Target, timeout: number, maxWait: number): Effect.Effect<AttemptResult<A, E | ReadFailure>> {
    const { cost, name } = this.#read.operation
    return Attempt.run<AttemptResult<A, E | ReadFailure>>(this.#shared.parts, {
      class: "read",
      cost,
      target,
      maxWait,
      operation: name,
      number: this.#tried.push(target.base),
      start: monotonicMillis(this.#clock),
      meter: this.#meterAt(target),
      body: this.#question.body,
      timeout,
      // if a pooled connection broke, the peer may have closed all pooled connections
      onNewConnection: this.#kept?.fault === "broken",
      handler: this
    }, this.#context)
  }

  /** Makes the first attempt, and further ones until the read has a result. */
  run(): Effect.Effect<A, E | ReadFailure> {
    const { targets } = this.#read
    const { retryAfter, targets: usable } = this.#shared.parts.outliers.choose(targets)
    const [target] = usable
    return target === undefined
      ? Effect.fail(ejected(targets[0].label, retryAfter))
      : this.#try(target, usable)
  }

  #try(target: Target, usable: ReadonlyArray<Target>): Effect.Effect<A, E | ReadFailure> {
    return Effect.flatMap(this.#hedgedAttempt(target, usable), (result) => this.#conclude(result))
  }

  /** Ends the read with the result of an attempt, or makes a further attempt. */
  #conclude(result: AttemptResult<A, E | ReadFailure>): Effect.Effect<A, E | ReadFailure> {
    if (result._tag === "Answered") return Effect.succeed(result.answer)
    if (result._tag === "Refused") return Effect.fail(result.failure)
    const next = this.#next(result)
    if (next === undefined) return this.#end()
    const { target, usable, wait } = next
    const retry = Effect.suspend(() => {
      this.#meterAt(target).retried(this.#context, result.fault)
      return this.#try(target, usable)
    })
    return wait > 0 ? Effect.andThen(Effect.sleep(wait), retry) : retry
  }

  /** Makes the next attempt, hedged if another address is available. */
  #hedgedAttempt(target: Target, usable: ReadonlyArray<Target>): Effect.Effect<AttemptResult<A, E | ReadFailure>> {
    const other = usable.find(({ base }) => base !== target.base && !this.#tried.includes(base))
    // leaves time for the next address if this one does not respond
    const time = other === undefined ? this.#left : this.#left / 2
    const maxWait = other === undefined || other.label === target.label ? time : 0
    const p95 = other === undefined ? undefined : this.#shared.findLatencies(this.#meterAt(target)).p95
    const delay = p95 === undefined ? time : Math.max(SOONEST_HEDGE, p95)
    return other === undefined || delay >= time
      ? this.#attempt(target, time, maxWait)
      : this.#hedged(target, other, time, delay)
  }

  /**
   * Sends the read to the target `first`, and also to `second` if `first` takes longer than `delay`. Returns the
   * success that arrives first.
   */
  #hedged(first: Target, second: Target, time: number, delay: number) {
    return Effect.gen({ self: this }, function*() {
      const primary = yield* Effect.forkChild(this.#attempt(first, time, time), { startImmediately: true })
      const early = yield* Effect.timeoutOption(Fiber.join(primary), delay)
      if (Option.isSome(early)) return early.value
      if (!this.#withdraw()) return yield* Fiber.join(primary)
      const other = yield* Effect.forkChild(this.#attempt(second, this.#left, 0), { startImmediately: true })
      const winner = yield* Effect.raceFirst(
        Effect.map(Fiber.join(primary), (result) => ({ result, rest: other, won: "first" as const })),
        Effect.map(Fiber.join(other), (result) => ({ result, rest: primary, won: "second" as const }))
      )
      if (winner.result._tag === "Retryable") {
        this.#keep(winner.result)
        return yield* Fiber.join(winner.rest)
      }
      // does not wait for the interruption, which may take time
      winner.rest.interruptUnsafe()
      this.#meterAt(first).hedged(this.#context, winner.won)
      return winner.result
    })
  }

  /**
   * Returns the next attempt after a failure, if a further attempt could help and is permitted.
   */
  #next(said: Retryable<A, E | ReadFailure>): Next | undefined {
    const { targets } = this.#read
    this.#keep(said)
    if (this.#tried.length >= Math.max(this.#shared.attempts, targets.length) || this.#left <= 0) return undefined
    const usable = this.#shared.parts.outliers.choose(targets).targets
    const untried = usable.find(({ base }) => !this.#tried.includes(base))
    const target = untried ?? (isRepeatable(said) ? usable[0] : undefined)
    if (target === undefined) return undefined
    const wait = untried === undefined ? this.#pause(target) : 0
    if (wait >= this.#left) return undefined
    const isFree = untried !== undefined && (said.fault === "not_sent" || said.fault === "withheld")
    return isFree || this.#withdraw() ? { target, usable, wait } : undefined
  }

  /**
   * Returns the milliseconds to wait before an address is tried again: its `Retry-After`, otherwise backoff with full
   * jitter.
   */
  #pause({ base }: Target): number {
    const at = this.#notBefore?.get(base)
    return at === undefined
      ? longestPause(this.#tried.length) * Context.get(this.#context, Random.Random).nextDoubleUnsafe()
      : Math.max(0, at - monotonicMillis(this.#clock))
  }

  /** Ends a read that has no further attempt. */
  #end(): Effect.Effect<A, E | ReadFailure> {
    const { label } = this.#read.targets[0]
    const kept = this.#kept
    if (kept?.answer !== undefined) return Effect.succeed(kept.answer)
    return Effect.fail(
      kept === undefined || this.#left <= 0
        ? timedOut(label, this.#shared.deadline)()
        : kept.failure(this.#tried.length)
    )
  }
}

/** Makes the functions that send reads. */
export const make = (parts: Parts, options: Options): Attempts => {
  const { outliers } = parts
  const shared: Shared = {
    ...options,
    parts,
    budgets: budgets(options.retries),
    findMeter: meters(),
    findLatencies: memoize((_meter: Meter) => new Latencies())
  }

  return {
    ask: (read, question) =>
      Effect.contextWith((context: Context.Context<never>) => {
        const reading = new Reading(shared, read, question, context)
        shared.budgets[read.targets[0].label].deposit()
        const firstCheck = outliers.ready(read.targets)
        return firstCheck === undefined
          ? reading.run()
          : Effect.andThen(firstCheck, Effect.suspend(() => reading.run()))
      })
  }
}
