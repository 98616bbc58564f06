/**
 * Asks until a read is answered: one address after the other, the same one again a little later, a second one beside a
 * slow one.
 *
 * Only reads come here; a call that must happen once has no way in. What is sent more than once is bounded by the read's
 * deadline, by a number of exchanges and by the retry budget; going on to another address costs no token where nothing was
 * sent.
 */
import type { ReadFailure } from "@trigate/domain/TransportFailure"
import { UpstreamTimeout, UpstreamUnavailable } from "@trigate/domain/UpstreamError"
import type * as UpstreamResponse from "@trigate/domain/UpstreamResponse"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import type { AttemptResult, Fault, Retryable } from "./AttemptResult.ts"
import { foreign, retryable, unreachable, unreadable } from "./AttemptResult.ts"
import { meters } from "./CallMetrics.ts"
import type { Meter } from "./CallMetrics.ts"
import type { Judged, Parts } from "./Exchanges.ts"
import * as Exchanges from "./Exchanges.ts"
import type { TransportError } from "./HttpTransport.ts"
import { millisOf } from "./internal/Monotonic.ts"
import { ReadProgress } from "./internal/ReadProgress.ts"
import { Latencies } from "./Latencies.ts"
import type { HealthSignal } from "./OutlierDetection.ts"
import type { Question, Read } from "./Read.ts"
import type { RetryBudget } from "./RetryBudget.ts"
import type { Target, UpstreamLabel } from "./Upstream.ts"

/** Bounds of every read. */
export interface Options {
  /** Milliseconds for the whole of it. */
  readonly deadline: number
  /** Exchanges at most, or one for each address where there are more of those. */
  readonly exchanges: number
  readonly retryBudgetOf: (upstream: UpstreamLabel) => RetryBudget
}

// a second address is not asked sooner than a busy process needs to get round to an answer that is there
const SOONEST_HEDGE = 20
const FIRST_BACKOFF = 50
const LONGEST_BACKOFF = 1000

// seconds for which an address is deferred that answers 429 without a `Retry-After`
const UNTOLD_DEFERRAL = 1

/** Faults that may go away by themselves, so that the same address may be asked again. */
const passingFaults: ReadonlySet<Fault> = new Set(["not_sent", "broken", "timeout", "server_fault"])

/** A full budget is asked again only when the upstream says when. */
const isRepeatable = ({ fault, retryAfter }: Retryable<unknown, unknown>): boolean =>
  passingFaults.has(fault) || (fault === "rate_limited" && retryAfter !== undefined)

const outcomeOf = <A, E>(verdict: AttemptResult<A, E>, status: number): Judged<unknown>["outcome"] => {
  if (verdict._tag !== "Retryable") return status < 400 && verdict._tag === "Answered" ? "ok" : "refused"
  return verdict.fault === "withheld" ? "refused" : verdict.fault
}

const isOwnWord = (answer: UpstreamResponse.UpstreamResponse): boolean =>
  foreign(answer) === undefined && Result.isSuccess(answer.json)

/** What an answer says about its address; see {@link HealthSignal}. */
const signalOf = (
  result: AttemptResult<unknown, unknown>,
  answer: UpstreamResponse.UpstreamResponse
): HealthSignal => {
  if (result._tag !== "Retryable" || result.fault === "declined") return "healthy"
  const isGateway = answer.status >= 502 && answer.status <= 504
  return isGateway && !isOwnWord(answer) ? "server_fault" : "none"
}

const signalOfError = ({ reason }: TransportError, isCheap: boolean): HealthSignal => {
  switch (reason) {
    case "Connect":
      return "not_sent"
    case "Broken":
      return "broken"
    case "Timeout":
      return isCheap ? "timeout" : "none"
    case "TooLarge":
    case "Encoding":
      return "none"
  }
}

/** The reads of a gateway. */
export const make = (parts: Parts, options: Options) => {
  const { deadline, retryBudgetOf } = options
  const meterOf = meters()
  const latencies = new Map<Meter, Latencies>()

  const latenciesOf = (meter: Meter): Latencies => {
    const found = latencies.get(meter)
    if (found !== undefined) return found
    const fresh = new Latencies()
    latencies.set(meter, fresh)
    return fresh
  }

  const timeout = (upstream: string) => () =>
    new UpstreamTimeout({
      upstream,
      deadline: Math.round(deadline),
      detail: `${upstream} did not answer within ${Math.round(deadline)} ms`
    })

  const broke = (upstream: string, error: TransportError): Retryable<never, ReadFailure> => {
    if (error.reason === "Timeout") return retryable(error.sent === "no" ? "not_sent" : "timeout", timeout(upstream))
    if (error.sent === "no") return unreachable(upstream, "not_sent", error.detail)
    return error.reason === "Broken"
      ? unreachable(upstream, "broken", error.detail)
      : unreadable(upstream, error.detail)
  }

  const ejected = (upstream: string, millis: number | undefined) =>
    new UpstreamUnavailable({
      upstream,
      attempts: 0,
      detail: `${upstream} failed repeatedly and is not asked for now`,
      ...(millis === undefined ? {} : { retryAfter: Math.max(1, Math.ceil(millis / 1000)) })
    })

  /** One exchange; a full budget of the upstream's makes its address wait. */
  const attempt = <A, E>(
    call: ReadProgress<A, E>,
    target: Target,
    time: number,
    maxWait: number
  ): Effect.Effect<AttemptResult<A, E | ReadFailure>> => {
    const { operation, targets } = call.read
    const { body, read } = call.question
    const meter = meterOf(target.label, operation.name)
    const start = targets.length > 1 ? millisOf(call.clock) : 0
    const exchange = Exchanges.run<AttemptResult<A, E | ReadFailure>>(parts, {
      class: "read",
      cost: operation.cost,
      meter,
      target,
      body,
      timeout: time,
      // a kept connection may have been closed just then; asked again on another kept one it may happen again
      onNewConnection: call.kept?.fault === "broken",
      maxWait,
      answered: (answer) => {
        const value = read(answer, target)
        parts.outliers.report(target, signalOf(value, answer))
        if (targets.length > 1 && value._tag === "Answered") latenciesOf(meter).add(millisOf(call.clock) - start)
        return { value, outcome: outcomeOf(value, answer.status), rows: value._tag === "Answered" ? value.rows : 0 }
      },
      broke: (error) => {
        const value = broke(target.label, error)
        parts.outliers.report(target, signalOfError(error, operation.cheap === true))
        return { value, outcome: value.fault === "withheld" ? "refused" : value.fault, rows: 0 }
      }
    })
    return Effect.matchEffect(exchange, {
      onFailure: (error) => Effect.succeed(retryable("withheld", () => error)),
      onSuccess: ({ value }): Effect.Effect<AttemptResult<A, E | ReadFailure>> => {
        if (value._tag !== "Retryable") return Effect.succeed(value)
        if (value.retryAfter !== undefined) call.defer(target, value.retryAfter)
        if (value.fault === "rate_limited") parts.outliers.defer(target, (value.retryAfter ?? UNTOLD_DEFERRAL) * 1000)
        return Effect.succeed(value)
      }
    })
  }

  /** Asks `second` as well when `first` takes longer than nearly all answers; whoever answers first is taken. */
  const hedged = Effect.fnUntraced(function*<A, E>(
    call: ReadProgress<A, E>,
    first: Target,
    second: Target,
    time: number,
    delay: number
  ) {
    const primary = yield* Effect.forkChild(attempt(call, first, time, time), { startImmediately: true })
    const early = yield* Effect.timeoutOption(Fiber.join(primary), delay)
    if (Option.isSome(early)) return early.value
    if (!(yield* call.budget.withdraw)) return yield* Fiber.join(primary)
    call.begin(second)
    const other = yield* Effect.forkChild(attempt(call, second, call.left, 0), { startImmediately: true })
    const winner = yield* Effect.raceFirst(
      Effect.map(Fiber.join(primary), (verdict) => ({ verdict, rest: other, won: "first" as const })),
      Effect.map(Fiber.join(other), (verdict) => ({ verdict, rest: primary, won: "second" as const }))
    )
    if (winner.verdict._tag === "Retryable") {
      call.keep(winner.verdict)
      return yield* Fiber.join(winner.rest)
    }
    const meter = meterOf(first.label, call.read.operation.name)
    yield* Effect.withFiber((fiber) =>
      Effect.sync(() => {
        // not waited for: an interruption may take its time
        winner.rest.interruptUnsafe()
        meter.hedged(fiber.context, winner.won)
      })
    )
    return winner.verdict
  })

  const end = <A, E>({ exchanges, kept, left, read }: ReadProgress<A, E>): Effect.Effect<A, E | ReadFailure> => {
    if (kept?.answer !== undefined) return Effect.succeed(kept.answer)
    const [{ label }] = read.targets
    return Effect.fail(kept === undefined || left <= 0 ? timeout(label)() : kept.failure(exchanges))
  }

  const next = <A, E>(
    call: ReadProgress<A, E>,
    target: Target,
    usable: ReadonlyArray<Target>
  ): Effect.Effect<A, E | ReadFailure> => {
    call.begin(target)
    const other = call.untriedOf(usable)
    // an address that is silent must leave time for the next one
    const time = other === undefined ? call.left : call.left / 2
    const maxWait = other === undefined || other.label === target.label ? time : 0
    const delay = other === undefined ? undefined : latenciesOf(meterOf(target.label, call.read.operation.name)).p95
    const asked = other === undefined || delay === undefined || delay >= time
      ? attempt(call, target, time, maxWait)
      : hedged(call, target, other, time, Math.max(SOONEST_HEDGE, delay))
    return Effect.flatMap(asked, (verdict) => {
      switch (verdict._tag) {
        case "Answered":
          return Effect.succeed(verdict.answer)
        case "Refused":
          return Effect.fail(verdict.failure)
        case "Retryable":
          return again(call, verdict)
      }
    })
  }

  /** Milliseconds before an address is asked again: what it said, else full jitter. */
  const pause = <A, E>(call: ReadProgress<A, E>, target: Target): Effect.Effect<number> => {
    const wait = call.waitFor(target)
    return wait === undefined
      ? Random.nextBetween(0, Math.min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** (call.exchanges - 1)))
      : Effect.succeed(wait)
  }

  const again = <A, E>(
    call: ReadProgress<A, E>,
    said: Retryable<A, E | ReadFailure>
  ): Effect.Effect<A, E | ReadFailure> =>
    Effect.gen(function*() {
      call.keep(said)
      const { operation, targets } = call.read
      if (call.exchanges >= Math.max(options.exchanges, targets.length) || call.left <= 0) return yield* end(call)
      const usable = parts.outliers.choose(targets).targets
      const untried = call.untriedOf(usable)
      const target = untried ?? (isRepeatable(said) ? usable[0] : undefined)
      if (target === undefined) return yield* end(call)
      const wait = untried === undefined ? yield* pause(call, target) : 0
      if (wait >= call.left) return yield* end(call)
      const isFree = untried !== undefined && (said.fault === "not_sent" || said.fault === "withheld")
      if (!isFree && !(yield* call.budget.withdraw)) return yield* end(call)
      if (wait > 0) yield* Effect.sleep(wait)
      const meter = meterOf(target.label, operation.name)
      yield* Effect.withFiber((fiber) => Effect.sync(() => meter.retried(fiber.context, said.fault)))
      return yield* next(call, target, usable)
    })

  return <A, E>(read: Read, question: Question<A, E>): Effect.Effect<A, E | ReadFailure> =>
    Effect.clockWith((clock) => {
      // that of the upstream that the call is meant for, also where another kind of address answers in its place
      const budget = retryBudgetOf(read.targets[0].label)
      budget.deposit()
      const call = new ReadProgress(read, question, clock, deadline, budget)
      const start = () => {
        const { retryAfter, targets: usable } = parts.outliers.choose(read.targets)
        const [first] = usable
        return first === undefined
          ? Effect.fail(ejected(read.targets[0].label, retryAfter))
          : next(call, first, usable)
      }
      const firstCheck = parts.outliers.ready(read.targets)
      return firstCheck === undefined ? start() : Effect.flatMap(firstCheck, start)
    })
}
