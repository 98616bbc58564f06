/**
 * The attempts of a call. A read fails over, retries with backoff and hedges until an attempt succeeds; a signed action
 * is sent at most once.
 *
 * Failover, retries and hedges are for reads only; the types exclude once-only calls. Three limits apply: the read's deadline, a maximum number of
 * attempts, and the retry budget. If nothing was sent, failover to the next address takes no token from the retry
 * budget.
 *
 * A call that is sent at most once tries the next address only while it is certain that no byte was sent; later failures are `OutcomeUnknown`. A
 * call that may have reached the upstream is never sent again. Modules that retry do not accept once-only operations.
 */
import { openIssue } from "@trigate/domain/actions/Action"
import { type Caller, CurrentCaller, perUpstream, unowned } from "@trigate/domain/Caller"
import { addMillis, millisBetween, type MonotonicTime, monotonicTime } from "@trigate/domain/encoding/Encoding"
import {
  OutcomeUnknown,
  UpstreamRateLimited,
  UpstreamTimeout,
  UpstreamUnavailable
} from "@trigate/domain/errors/GatewayError"
import type { OnceFailure, QuotaExceeded, ReadFailure } from "@trigate/domain/errors/GatewayError"
import type * as UpstreamResponse from "@trigate/domain/operations/Operation"
import { foreign, responseWeight, retryable, unreachable, unreadable } from "@trigate/domain/operations/Operation"
import type {
  AttemptResult,
  Cost,
  EncodedRead,
  MethodClass,
  Retryable,
  RetryableFault
} from "@trigate/domain/operations/Operation"
import { remembered } from "@trigate/domain/unstable/DeclaredMetric"
import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { memoize } from "effect/Function"
import * as HttpTraceContext from "effect/http/HttpTraceContext"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as References from "effect/References"
import * as Result from "effect/Result"
import * as Tracer from "effect/Tracer"
import * as RateLimiter from "../limits/RateLimiter.ts"
import * as HttpTransport from "../transport/HttpTransport.ts"
import { metrics, type Target, targetName, type UpstreamLabel } from "../Upstream.ts"
import type { HealthSignal, OutlierDetection } from "./OutlierDetection.ts"
import { callSpan, named, spanAttributes, within } from "./Spans.ts"

/** Returns whether a context creates spans: the program has a tracer, and the current request is sampled. */
export const isTraced = (context: Context.Context<never>): boolean =>
  Context.getOrUndefined(context, Tracer.Tracer) !== undefined && Context.get(context, References.TracerEnabled)

/** The result of an attempt. `abandoned` means that the caller disconnected or that a second attempt was faster. */
export type AttemptOutcome = "ok" | "refused" | "abandoned" | Exclude<RetryableFault, "withheld">

/** The metrics of one operation at one upstream. */
export interface Meter {
  /**
   * Counts an attempt with its actual cost; `rows` is the number of rows in the response, for an operation whose rows
   * cost rate-limit weight.
   */
  readonly attempted: (cost: Cost, outcome: AttemptOutcome, milliseconds: number, rows: number) => void
  readonly retried: (fault: RetryableFault) => void
  readonly hedged: (won: "first" | "second") => void
}

/** Makes the function that looks up the metrics of an operation at an upstream. The metrics are made on first use. */
export const meters = (context: Context.Context<never>): (upstream: UpstreamLabel, operation: string) => Meter => {
  const calls = metrics.upstreamCalls.updates(context)
  const seconds = metrics.upstreamSeconds.updates(context)
  const weight = metrics.upstreamWeight.updates(context)
  const units = metrics.upstreamRequestUnits.updates(context)
  const retries = metrics.upstreamRetries.updates(context)
  const hedges = metrics.upstreamHedges.updates(context)
  const ofUpstream = remembered((upstream: UpstreamLabel) =>
    remembered((operation: string): Meter => {
      const at = { upstream }
      const named = { upstream, operation }
      const ended = remembered((outcome: AttemptOutcome) => calls({ ...named, outcome }))
      return {
        attempted: (cost, outcome, milliseconds, rows) => {
          ended(outcome)(1)
          seconds(at)(milliseconds / 1000)
          if (outcome === "not_sent") return
          if (upstream === "trading-api") weight(at)(responseWeight({ cost }, rows))
          else units(at)(cost.requestUnits)
        },
        retried: (cause) => retries({ ...named, cause })(1),
        hedged: (won) => hedges({ ...named, won })(1)
      }
    })
  )
  return (upstream, operation) => ofUpstream(upstream)(operation)
}

/** The services and settings that all attempts share. */
export interface Parts {
  readonly transport: HttpTransport.HttpTransport["Service"]
  readonly rateLimiter: RateLimiter.RateLimiter["Service"]
  readonly outliers: OutlierDetection["Service"]
  /** The context with the registry of the metrics. */
  readonly context: Context.Context<never>
  /** Maximum number of bytes of a response. */
  readonly maxAnswerBytes: number
  /** Whether an attempt that has a span sends the `traceparent` of this span. */
  readonly traceUpstream: boolean
  /** The owner of calls that have none; `undefined` if such a call is a defect. */
  readonly owner: Caller | undefined
}

/** The result of an attempt that has ended, and the evidence about the health of the address. */
export interface Ended<A> {
  readonly value: A
  readonly outcome: Exclude<AttemptOutcome, "abandoned">
  /** The number of rows in the response, for an operation whose rows cost rate-limit weight; otherwise 0. */
  readonly rows: number
  /** The evidence of the attempt about the health of the address. Default: none. */
  readonly signal?: HealthSignal
}

/** The handlers of an attempt. */
export interface Handler<A> {
  answered(response: UpstreamResponse.UpstreamResponse, attempt: Attempt<A>): Ended<A>
  broke(error: HttpTransport.TransportError, attempt: Attempt<A>): Ended<A>
  /** Handles a refusal by the rate limiter; nothing was sent. */
  withheld(error: QuotaExceeded | UpstreamRateLimited): A
}

/** The request of an attempt, and the handler of its result. */
export interface Attempt<A> {
  readonly operation: string
  readonly class: MethodClass
  readonly cost: Cost
  readonly target: Target
  /** Maximum milliseconds to wait for the rate limiter. */
  readonly maxWait: number
  /** The number of the attempt within its call, from 1. */
  readonly number: number
  /** The time at which the attempt starts. */
  readonly start: MonotonicTime
  readonly meter: Meter
  /** The body of a POST; absent for a GET. */
  readonly body: Uint8Array | undefined
  /** Timeout in milliseconds, including the wait for the rate limiter. */
  readonly timeout: number
  /** Maximum milliseconds to send the request, counted from the end of the wait for the rate limiter. */
  readonly sendWithin?: number | undefined
  /** Whether to open a new connection instead of using a pooled one. */
  readonly onNewConnection?: boolean
  /** The W3C `traceparent` to send. */
  readonly traceparent?: string | undefined
  readonly handler: Handler<A>
}

const getHeaders = { accept: "application/json" }
const postHeaders = { accept: "application/json", "content-type": "application/json" }

/** Returns the rate-limit units that an attempt used. */
const usedBy = ({ cost, target }: Attempt<unknown>, { outcome, rows }: Ended<unknown>): number => {
  if (outcome === "not_sent") return 0
  return target.label === "trading-api" ? responseWeight({ cost }, rows) : cost.requestUnits
}

const tooLate = ({ label }: Target) =>
  new UpstreamRateLimited({
    upstream: label,
    detail: `The rate limit of ${label} delayed the call until its deadline; nothing was sent`
  })

/** Sends the request of an attempt that has its permits; `timeout` is the rest of its time, in milliseconds. */
const send = <A>(
  parts: Parts,
  attempt: Attempt<A>,
  owner: Caller,
  permits: RateLimiter.Permits,
  timeout: number,
  clock: Clock.Clock
): Effect.Effect<A> => {
  const { body, cost, handler, meter, onNewConnection = false, sendWithin, target, traceparent } = attempt
  const headers = body === undefined ? getHeaders : postHeaders
  const start = monotonicTime(clock)
  const took = () => millisBetween(start, monotonicTime(clock))
  const end = (ended: Ended<A>): A => {
    meter.attempted(cost, ended.outcome, took(), ended.rows)
    permits.refund(RateLimiter.worstCost(target.label, attempt) - usedBy(attempt, ended))
    if (ended.signal !== undefined) parts.outliers.report(target, ended.signal, parts.rateLimiter)
    return ended.value
  }
  const sent = parts.transport.send({
    owner,
    method: body === undefined ? "GET" : "POST",
    url: target.url,
    headers: traceparent === undefined ? headers : { ...headers, traceparent },
    body,
    maxAnswerBytes: parts.maxAnswerBytes,
    timeout,
    onNewConnection,
    sendWithin: sendWithin === undefined ? undefined : Math.min(sendWithin, timeout)
  })
  const ended = Effect.match(sent, {
    onFailure: (error) => end(handler.broke(error, attempt)),
    onSuccess: (response) => end(handler.answered(HttpTransport.receive(target, response), attempt))
  })
  return Effect.onExitPrimitive(ended, ({ _tag }) => {
    if (_tag === "Failure") meter.attempted(cost, "abandoned", took(), 0)
    return undefined
  })
}

/** Takes the permits of an attempt, waiting for them if necessary, and sends its request. */
const makeAttempt = <A>(parts: Parts, attempt: Attempt<A>, context: Context.Context<never>): Effect.Effect<A> => {
  const { cost, handler, target, timeout } = attempt
  const clock = Context.get(context, Clock.Clock)
  const isRefresh = Context.get(context, RateLimiter.IsRefresh)
  const current = Context.get(context, CurrentCaller)
  const caller = current === unowned ? parts.owner : current
  if (caller === undefined) {
    const defect = new Error(`The call of ${attempt.operation} has no owner: provide CurrentCaller`)
    // a fiber in the background would end without a line
    return Effect.andThen(Effect.logError(defect.message), Effect.die(defect))
  }
  const ask = {
    upstream: target.label,
    class: attempt.class,
    cost,
    caller,
    maxWait: isRefresh ? 0 : Math.min(attempt.maxWait, Context.get(context, RateLimiter.MaxWait)),
    isRefresh
  }
  const permits = parts.rateLimiter.tryTake(ask, clock)
  if (permits !== undefined) return send(parts, attempt, caller, permits, timeout, clock)
  const begin = monotonicTime(clock)
  return Effect.matchEffect(parts.rateLimiter.take(ask), {
    onFailure: (error) => Effect.succeed(handler.withheld(error)),
    onSuccess: (permits) => {
      const left = timeout - millisBetween(begin, monotonicTime(clock))
      if (left > 0) return send(parts, attempt, caller, permits, left, clock)
      permits.refund(RateLimiter.worstCost(target.label, attempt))
      return Effect.succeed(handler.withheld(tooLate(target)))
    }
  })
}

/** Adds an unsampled `traceparent` to an attempt, so that the upstream does not start its own trace. */
const unsampled = <A>(attempt: Attempt<A>, context: Context.Context<never>): Attempt<A> => {
  const span = Context.getOrUndefined(context, Tracer.ParentSpan)
  return span?._tag !== "Span" || Context.getOrUndefined(context, Tracer.Tracer) === undefined
    ? attempt
    : { ...attempt, traceparent: HttpTraceContext.toHeaders(span)["traceparent"] }
}

/**
 * The outcomes that do not mark a span as failed. `refused` is one of them, because a refusal is a complete response of
 * the upstream.
 */
const sound: ReadonlySet<string> = new Set(["ok", "refused"])

/** Makes an attempt in a span. If upstream calls are traced, the request contains the span's `traceparent`. */
const traced = <A>(parts: Parts, attempt: Attempt<A>): Effect.Effect<A> => {
  const { handler, number, operation, target } = attempt
  let seen: { readonly outcome: string; readonly fault?: unknown } = { outcome: "ok" }
  const noted = (ended: Ended<A>, fault: unknown): Ended<A> => {
    const { outcome } = ended
    seen = sound.has(outcome) ? { outcome } : { outcome, fault }
    return ended
  }
  const attributes = {
    ...named({ operation, upstream: target.label }),
    [spanAttributes.address]: target.address,
    [spanAttributes.attempt]: number
  }
  return within(
    targetName(target),
    { kind: "client", attributes },
    (span) =>
      Effect.contextWith((context: Context.Context<never>) =>
        makeAttempt(parts, {
          ...attempt,
          ...(parts.traceUpstream ? { traceparent: HttpTraceContext.toHeaders(span)["traceparent"] } : {}),
          handler: {
            answered: (response) => {
              span.attribute(spanAttributes.status, response.status)
              const ended = handler.answered(response, attempt)
              return noted(ended, ended.outcome)
            },
            broke: (error) => noted(handler.broke(error, attempt), error),
            withheld: (error) => {
              seen = { outcome: "withheld", fault: error }
              return handler.withheld(error)
            }
          }
        }, context)
      ),
    () => seen
  )
}

/** Makes an attempt in the context of its fiber. */
export const run = <A>(parts: Parts, attempt: Attempt<A>, context: Context.Context<never>): Effect.Effect<A> => {
  if (isTraced(context)) return traced(parts, attempt)
  return makeAttempt(parts, parts.traceUpstream ? unsampled(attempt, context) : attempt, context)
}

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
  /** Takes a token, and returns whether the budget had one. */
  readonly withdraw: (now: MonotonicTime) => boolean
}

// maximum number of accumulated tokens: those that a thousand reads per second deposit in ten seconds
const MAX_TOKENS = 2000

const budget = ({ floor = 10, share = 0.2 }: RetryOptions = {}): RetryBudget => {
  let fromReads = 0
  let fromTime = floor
  let lastRefill: MonotonicTime | undefined
  return {
    deposit: () => {
      fromReads = Math.min(MAX_TOKENS, fromReads + share)
    },
    withdraw: (now) => {
      const elapsed = Math.max(0, millisBetween(lastRefill ?? now, now))
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

const isOwnResponse = (response: UpstreamResponse.UpstreamResponse): boolean =>
  foreign(response) === undefined && Result.isSuccess(response.json.value)

/** Returns what a response shows about the health of its address; see {@link HealthSignal}. */
const healthSignal = (
  result: AttemptResult<unknown, unknown>,
  response: UpstreamResponse.UpstreamResponse
): HealthSignal => {
  if (result._tag !== "Retryable" || result.fault === "declined") return "healthy"
  const isGateway = response.status >= 502 && response.status <= 504
  return isGateway && !isOwnResponse(response) ? "server_fault" : "none"
}

const signals: { readonly [R in Exclude<HttpTransport.TransportError["reason"], "Timeout">]: HealthSignal } = {
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
  { detail, reason, sent }: HttpTransport.TransportError,
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
  readonly send: <A, E>(read: AttemptedRead, question: EncodedRead<A, E>) => Effect.Effect<A, E | ReadFailure>
}

/** The state and the limits that the reads of one process share. */
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

/** One read, with the attempts made so far and their results. */
class Reading<A, E> implements Handler<AttemptResult<A, E | ReadFailure>> {
  readonly #shared: Shared
  readonly #read: AttemptedRead
  readonly #request: EncodedRead<A, E>
  readonly #context: Context.Context<never>
  readonly #clock: Clock.Clock
  readonly #until: MonotonicTime
  /** The time at which the next attempt starts. */
  #now: MonotonicTime
  readonly #tried: Array<Target["base"]> = []
  /** The earliest time of the next attempt at each address, from its `Retry-After`. */
  #notBefore: Map<Target["base"], MonotonicTime> | undefined
  /** The failure to report if no further attempt succeeds. */
  #kept: Retryable<A, E | ReadFailure> | undefined

  constructor(shared: Shared, read: AttemptedRead, question: EncodedRead<A, E>, context: Context.Context<never>) {
    this.#shared = shared
    this.#read = read
    this.#request = question
    this.#context = context
    this.#clock = Context.get(context, Clock.Clock)
    this.#now = monotonicTime(this.#clock)
    this.#until = addMillis(this.#now, shared.deadline)
  }

  /** The milliseconds until the deadline. */
  get #left(): number {
    this.#now = monotonicTime(this.#clock)
    return millisBetween(this.#now, this.#until)
  }

  /** Takes a token from the budget of the intended upstream, even if a different upstream serves the call. */
  #withdraw(): boolean {
    return this.#shared.budgets[this.#read.targets[0].label].withdraw(monotonicTime(this.#clock))
  }

  #meterAt(target: Target): Meter {
    return this.#shared.findMeter(target.label, this.#read.operation.name)
  }

  #keep(said: Retryable<A, E | ReadFailure>): void {
    if (isBetter(said, this.#kept)) this.#kept = said
  }

  answered(response: UpstreamResponse.UpstreamResponse, { meter, start, target }: Attempt<unknown>) {
    const value = this.#request.judge(response)
    const signal = healthSignal(value, response)
    if (value._tag === "Retryable") {
      this.#defer(target, value)
      return { value, signal, outcome: attemptOutcome(value.fault), rows: 0 }
    }
    if (value._tag === "Refused") return { value, signal, outcome: "refused" as const, rows: 0 }
    if (this.#read.targets.length > 1) {
      this.#shared.findLatencies(meter).add(millisBetween(start, monotonicTime(this.#clock)))
    }
    return { value, signal, outcome: response.status < 400 ? "ok" as const : "refused" as const, rows: value.rows }
  }

  broke(error: HttpTransport.TransportError, { target }: Attempt<unknown>) {
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
      this.#notBefore.set(target.base, addMillis(monotonicTime(this.#clock), retryAfter * 1000))
    }
    if (fault === "rate_limited") {
      this.#shared.parts.outliers.defer(target, (retryAfter ?? DEFAULT_DEFERRAL) * 1000)
    }
  }

  #attempt(target: Target, timeout: number, maxWait: number): Effect.Effect<AttemptResult<A, E | ReadFailure>> {
    const { cost, name } = this.#read.operation
    return run<AttemptResult<A, E | ReadFailure>>(this.#shared.parts, {
      class: "read",
      cost,
      target,
      maxWait,
      operation: name,
      number: this.#tried.push(target.base),
      start: this.#now,
      meter: this.#meterAt(target),
      body: this.#request.body,
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
      this.#meterAt(target).retried(result.fault)
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
      this.#meterAt(first).hedged(winner.won)
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
      : Math.max(0, millisBetween(monotonicTime(this.#clock), at))
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
    findMeter: meters(parts.context),
    findLatencies: memoize((_meter: Meter) => new Latencies())
  }

  return {
    send: (read, question) =>
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

/** A once-only call: its operation, its targets in order of preference, and its bytes. */
export interface OnceCall {
  readonly operation: {
    readonly name: string
    readonly class: "once"
    readonly cost: Cost
    /** The text of `OutcomeUnknown` that explains how the caller can determine the outcome. */
    readonly advice: string
  }
  readonly targets: readonly [Target, ...ReadonlyArray<Target>]
  readonly body: Uint8Array
  /** The time, in milliseconds, after which the upstream refuses the call: the call does not wait for longer. */
  readonly expiresAt?: number | undefined
}

/** The signer and the nonce of the call, for `OutcomeUnknown`. */
export interface OnceIdentity {
  readonly nonce?: number
  readonly signer?: `0x${string}`
}

/** The result of one attempt. */
type Sending =
  | { readonly _tag: "Answered"; readonly response: UpstreamResponse.UpstreamResponse }
  | { readonly _tag: "NotSent"; readonly detail: string }
  | { readonly _tag: "Unknown"; readonly detail: string }
  | { readonly _tag: "Withheld"; readonly error: QuotaExceeded | UpstreamRateLimited }

const outcomeOfStatus = (status: number): Ended<unknown>["outcome"] => {
  if (status === 429) return "rate_limited"
  return status >= 500 ? "server_fault" : status >= 400 ? "refused" : "ok"
}

const handler: Handler<Sending> = {
  answered: (response) => {
    const issue = openIssue(response)
    return issue === undefined
      ? { value: { _tag: "Answered", response }, outcome: outcomeOfStatus(response.status), rows: 0 }
      : { value: { _tag: "Unknown", detail: `the response was ${issue}` }, outcome: "malformed", rows: 0 }
  },
  broke: ({ detail, reason, sent }) => {
    if (sent === "no") return { value: { _tag: "NotSent", detail }, outcome: "not_sent", rows: 0 }
    return {
      value: { _tag: "Unknown", detail: `the connection broke (${detail})` },
      outcome: reason === "Timeout" ? "timeout" : "broken",
      rows: 0
    }
  },
  withheld: (error) => ({ _tag: "Withheld", error })
}

const outcomeUnknown = ({ label }: Target, { operation }: OnceCall, identity: OnceIdentity, detail: string) =>
  new OutcomeUnknown({ upstream: label, ...identity, advice: operation.advice, detail: `${label}: ${detail}` })

const notSent = (upstream: string, attempts: number, detail: string) =>
  new UpstreamUnavailable({
    upstream,
    attempts,
    detail: `${upstream} could not be reached (${detail}); nothing was sent`
  })

/**
 * Makes the function that sends calls at most once; `deadline` is the maximum duration of a whole call, in
 * milliseconds.
 */
export const makeAtMostOnce = (parts: Parts, deadline: number) => {
  const findMeter = meters(parts.context)

  const sendInTurn = Effect.fnUntraced(function*(call: OnceCall, identity: OnceIdentity) {
    const { operation } = call
    const context = yield* Effect.context()
    const clock = Context.get(context, Clock.Clock)
    const until = addMillis(monotonicTime(clock), deadline)
    const firstCheck = parts.outliers.ready(call.targets)
    if (firstCheck !== undefined) yield* firstCheck
    // an action is sent even if all addresses are ejected: ejection only changes the order of the addresses
    const { targets: chosen } = parts.outliers.choose(call.targets)
    const targets = chosen.length > 0 ? chosen : call.targets
    let attempts = 0
    let lastDetail = "the deadline had passed"
    for (const [index, target] of targets.entries()) {
      const start = monotonicTime(clock)
      const left = millisBetween(start, until)
      if (left <= 0) break
      attempts++
      const sending = yield* run(parts, {
        class: "once",
        operation: operation.name,
        number: attempts,
        start,
        cost: operation.cost,
        meter: findMeter(target.label, operation.name),
        target,
        body: call.body,
        timeout: left,
        // leaves time for the next address if this one is unreachable
        sendWithin: index === targets.length - 1 ? undefined : left / 2,
        // leaves time for the response: an action sent just before the deadline would end with an unknown outcome
        maxWait: Math.max(
          0,
          Math.min(left / 2, (call.expiresAt ?? Number.POSITIVE_INFINITY) - clock.currentTimeMillisUnsafe())
        ),
        handler
      }, context)
      switch (sending._tag) {
        case "Answered":
          return sending.response
        case "Unknown":
          return yield* outcomeUnknown(target, call, identity, sending.detail)
        case "Withheld":
          return yield* sending.error
        case "NotSent":
          lastDetail = sending.detail
      }
    }
    return yield* notSent(call.targets[0].label, attempts, lastDetail)
  })

  return (call: OnceCall, identity: OnceIdentity): Effect.Effect<UpstreamResponse.UpstreamResponse, OnceFailure> =>
    Effect.contextWith((context: Context.Context<never>) => {
      const sent = sendInTurn(call, identity)
      const name = { operation: call.operation.name, upstream: call.targets[0].label }
      return isTraced(context) ? callSpan(name, ({ status }) => status >= 400, sent) : sent
    })
}
