/**
 * Makes attempts until a read is answered: at one address after the other, at the same one again a little later, at a
 * second one beside a slow one.
 *
 * Only reads come here; a call that may be sent at most once has no way in. Attempts are bounded by the read's deadline, by
 * a number, and by the retry budget; going on to another address costs no token where nothing was sent.
 */
import type { Cost } from "@trigate/domain/Operation"
import type { AttemptResult, Fault, Retryable } from "@trigate/domain/protocol/AttemptResult"
import { foreign, retryable, unreachable, unreadable } from "@trigate/domain/protocol/AttemptResult"
import type { Question } from "@trigate/domain/protocol/Protocol"
import type { ReadFailure } from "@trigate/domain/TransportFailure"
import { UpstreamTimeout, UpstreamUnavailable } from "@trigate/domain/UpstreamError"
import type { UpstreamResponse } from "@trigate/domain/UpstreamResponse"
import type { NonEmptyReadonlyArray } from "effect/Array"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Attempt from "./Attempt.ts"
import type { Ended, Parts } from "./Attempt.ts"
import { meters } from "./AttemptMetrics.ts"
import type { Meter } from "./AttemptMetrics.ts"
import type { TransportError } from "./HttpTransport.ts"
import { millisOf } from "./internal/Monotonic.ts"
import * as Retries from "./internal/Retries.ts"
import type { HealthSignal } from "./OutlierDetection.ts"
import type { Target } from "./Upstream.ts"

/** A read: its operation, and where it can go, in order of preference. */
export interface Read {
  readonly operation: {
    readonly name: string
    readonly class: "read"
    readonly cost: Cost
    readonly cheap?: true
  }
  readonly targets: NonEmptyReadonlyArray<Target>
}

/** Bounds of every read. */
export interface Options {
  /** Milliseconds for the whole of it. */
  readonly deadline: number
  /** Attempts at most, or one for each address where there are more of those. */
  readonly attempts: number
  readonly retries?: Retries.Options | undefined
}

// a busy process may need so many milliseconds to get round to an answer that is there
const SOONEST_HEDGE = 20

// seconds for which an address is deferred that answers 429 without a `Retry-After`
const UNTOLD_DEFERRAL = 1

/** Faults that may go away by themselves, so that the same address may be asked again. */
const passingFaults: ReadonlySet<Fault> = new Set(["not_sent", "broken", "timeout", "server_fault"])

/** Whether the same address may be asked again; one that is over its rate limit only when it says when. */
const isRepeatable = ({ fault, retryAfter }: Retryable<unknown, unknown>): boolean =>
  passingFaults.has(fault) || (fault === "rate_limited" && retryAfter !== undefined)

const outcomeOf = (fault: Fault): Ended<unknown>["outcome"] => fault === "withheld" ? "refused" : fault

const isOwnWord = (response: UpstreamResponse): boolean =>
  foreign(response) === undefined && Result.isSuccess(response.json.value)

/** What a response says about its address; see {@link HealthSignal}. */
const signalOf = (result: AttemptResult<unknown, unknown>, response: UpstreamResponse): HealthSignal => {
  if (result._tag !== "Retryable" || result.fault === "declined") return "healthy"
  const isGateway = response.status >= 502 && response.status <= 504
  return isGateway && !isOwnWord(response) ? "server_fault" : "none"
}

const signals: { readonly [R in Exclude<TransportError["reason"], "Timeout">]: HealthSignal } = {
  Connect: "not_sent",
  Broken: "broken",
  TooLarge: "none",
  Encoding: "none"
}

const ejected = (upstream: string, millis: number | undefined) =>
  new UpstreamUnavailable({
    upstream,
    attempts: 0,
    detail: `${upstream} failed repeatedly and is not asked for now`,
    ...(millis === undefined ? {} : { retryAfter: Math.max(1, Math.ceil(millis / 1000)) })
  })

/** How far one read has come: who was asked, what they said, and how much time is left. */
class Progress<A, E> {
  readonly read: Read
  readonly question: Question<A, E>
  readonly budget: Retries.RetryBudget
  readonly fiber: Fiber.Fiber<unknown, unknown>
  readonly clock: Clock.Clock
  readonly #until: number
  readonly #tried: Array<Target["base"]> = []
  /** When an address wants to be asked again, as it said; most reads need none. */
  #notBefore: Map<Target["base"], number> | undefined
  attempts = 0
  kept: Retryable<A, E | ReadFailure> | undefined

  constructor(
    read: Read,
    question: Question<A, E>,
    budget: Retries.RetryBudget,
    fiber: Fiber.Fiber<unknown, unknown>,
    deadline: number
  ) {
    this.read = read
    this.question = question
    this.budget = budget
    this.fiber = fiber
    this.clock = fiber.getRef(Clock.Clock)
    this.#until = millisOf(this.clock) + deadline
  }

  /** Milliseconds left of the deadline. */
  get left(): number {
    return this.#until - millisOf(this.clock)
  }

  begin(target: Target) {
    this.attempts++
    this.#tried.push(target.base)
  }

  /** The first of some targets whose address was not asked. */
  untriedOf(usable: ReadonlyArray<Target>): Target | undefined {
    return usable.find(({ base }) => !this.#tried.includes(base))
  }

  /** Takes a token of the retry budget. */
  withdraw(): boolean {
    return this.budget.withdraw(this.clock.currentTimeMillisUnsafe())
  }

  /** Notes for how many seconds an address wants to be left alone. */
  defer({ base }: Target, seconds: number) {
    this.#notBefore ??= new Map()
    this.#notBefore.set(base, millisOf(this.clock) + seconds * 1000)
  }

  /** Milliseconds before an address is asked again: what it said, else full jitter. */
  pause({ base }: Target): number {
    const notBefore = this.#notBefore?.get(base)
    return notBefore === undefined
      ? Retries.longestPause(this.attempts) * this.fiber.getRef(Random.Random).nextDoubleUnsafe()
      : Math.max(0, notBefore - millisOf(this.clock))
  }

  /** Keeps the best of what was said: an answer before none, and what an address said before that none was asked. */
  keep(said: Retryable<A, E | ReadFailure>) {
    // where all are over their rate limit, the caller has to know when the first of them is not
    const isLater = this.kept?.fault === "rate_limited" && said.fault === "rate_limited" &&
      (this.kept.retryAfter ?? 0) <= (said.retryAfter ?? 0)
    if (isLater) return
    if (this.kept === undefined || said.answer !== undefined) this.kept = said
    else if (this.kept.answer === undefined && said.fault !== "withheld") this.kept = said
  }
}

/** Makes the function that sends reads. */
export const make = (parts: Parts, options: Options) => {
  const { deadline } = options
  const { outliers } = parts
  const budgets = Retries.budgets(options.retries)
  const meterOf = meters()
  const latencies = new Map<Meter, Retries.Latencies>()

  const latenciesOf = (meter: Meter): Retries.Latencies => {
    const found = latencies.get(meter)
    if (found !== undefined) return found
    const fresh = new Retries.Latencies()
    latencies.set(meter, fresh)
    return fresh
  }

  const timeout = (upstream: string) => () =>
    new UpstreamTimeout({
      upstream,
      deadline: Math.round(deadline),
      detail: `${upstream} did not answer within ${Math.round(deadline)} ms`
    })

  const resultOf = (upstream: string, { detail, reason, sent }: TransportError): Retryable<never, ReadFailure> => {
    if (reason === "Timeout") return retryable(sent === "no" ? "not_sent" : "timeout", timeout(upstream))
    if (sent === "no") return unreachable(upstream, "not_sent", detail)
    return reason === "Broken" ? unreachable(upstream, "broken", detail) : unreadable(upstream, detail)
  }

  const attempt = <A, E>(
    call: Progress<A, E>,
    target: Target,
    time: number,
    maxWait: number
  ): Effect.Effect<AttemptResult<A, E | ReadFailure>> => {
    const { operation, targets } = call.read
    const meter = meterOf(target.label, operation.name)
    const start = targets.length > 1 ? millisOf(call.clock) : 0
    return Attempt.run<AttemptResult<A, E | ReadFailure>>(parts, {
      class: "read",
      cost: operation.cost,
      meter,
      target,
      body: call.question.body,
      timeout: time,
      // the peer may have closed a pooled connection just then, and it may have closed the others too
      onNewConnection: call.kept?.fault === "broken",
      maxWait,
      answered: (response) => {
        const value = call.question.judge(response, target.conceal)
        const signal = signalOf(value, response)
        if (value._tag === "Retryable") {
          if (value.retryAfter !== undefined) call.defer(target, value.retryAfter)
          if (value.fault === "rate_limited") outliers.defer(target, (value.retryAfter ?? UNTOLD_DEFERRAL) * 1000)
          return { value, signal, outcome: outcomeOf(value.fault), rows: 0 }
        }
        if (value._tag === "Refused") return { value, signal, outcome: "refused", rows: 0 }
        if (targets.length > 1) latenciesOf(meter).add(millisOf(call.clock) - start)
        return { value, signal, outcome: response.status < 400 ? "ok" : "refused", rows: value.rows }
      },
      broke: (error) => {
        const value = resultOf(target.label, error)
        const ofTimeout = operation.cheap === true ? "timeout" : "none"
        const signal = error.reason === "Timeout" ? ofTimeout : signals[error.reason]
        return { value, signal, outcome: outcomeOf(value.fault), rows: 0 }
      },
      withheld: (error) => retryable("withheld", () => error)
    })
  }

  /** Asks `second` too when `first` takes longer than nearly all answers; whichever answers first is taken. */
  const hedged = Effect.fnUntraced(function*<A, E>(
    call: Progress<A, E>,
    first: Target,
    second: Target,
    time: number,
    delay: number
  ) {
    const primary = yield* Effect.forkChild(attempt(call, first, time, time), { startImmediately: true })
    const early = yield* Effect.timeoutOption(Fiber.join(primary), delay)
    if (Option.isSome(early)) return early.value
    if (!call.withdraw()) return yield* Fiber.join(primary)
    call.begin(second)
    const other = yield* Effect.forkChild(attempt(call, second, call.left, 0), { startImmediately: true })
    const winner = yield* Effect.raceFirst(
      Effect.map(Fiber.join(primary), (result) => ({ result, rest: other, won: "first" as const })),
      Effect.map(Fiber.join(other), (result) => ({ result, rest: primary, won: "second" as const }))
    )
    if (winner.result._tag === "Retryable") {
      call.keep(winner.result)
      return yield* Fiber.join(winner.rest)
    }
    // not waited for: an interruption may take its time
    winner.rest.interruptUnsafe()
    meterOf(first.label, call.read.operation.name).hedged(call.fiber.context, winner.won)
    return winner.result
  })

  const end = <A, E>({ attempts, kept, left, read }: Progress<A, E>): Effect.Effect<A, E | ReadFailure> => {
    if (kept?.answer !== undefined) return Effect.succeed(kept.answer)
    const [{ label }] = read.targets
    return Effect.fail(kept === undefined || left <= 0 ? timeout(label)() : kept.failure(attempts))
  }

  /** Makes the next attempt, hedged where another address can be asked. */
  const next = <A, E>(
    call: Progress<A, E>,
    target: Target,
    usable: ReadonlyArray<Target>
  ): Effect.Effect<A, E | ReadFailure> => {
    call.begin(target)
    const other = call.untriedOf(usable)
    // a silent address must leave time for the next one
    const time = other === undefined ? call.left : call.left / 2
    const maxWait = other === undefined || other.label === target.label ? time : 0
    const delay = other === undefined ? undefined : latenciesOf(meterOf(target.label, call.read.operation.name)).p95
    const asked = other === undefined || delay === undefined || delay >= time
      ? attempt(call, target, time, maxWait)
      : hedged(call, target, other, time, Math.max(SOONEST_HEDGE, delay))
    return Effect.flatMap(asked, (result) => {
      switch (result._tag) {
        case "Answered":
          return Effect.succeed(result.answer)
        case "Refused":
          return Effect.fail(result.failure)
        case "Retryable":
          return again(call, result)
      }
    })
  }

  /** Makes one more attempt where that may help and is allowed, else ends with the best of what was said. */
  const again = <A, E>(
    call: Progress<A, E>,
    said: Retryable<A, E | ReadFailure>
  ): Effect.Effect<A, E | ReadFailure> => {
    call.keep(said)
    const { operation, targets } = call.read
    if (call.attempts >= Math.max(options.attempts, targets.length) || call.left <= 0) return end(call)
    const usable = outliers.choose(targets).targets
    const untried = call.untriedOf(usable)
    const target = untried ?? (isRepeatable(said) ? usable[0] : undefined)
    if (target === undefined) return end(call)
    const wait = untried === undefined ? call.pause(target) : 0
    if (wait >= call.left) return end(call)
    const isFree = untried !== undefined && (said.fault === "not_sent" || said.fault === "withheld")
    if (!isFree && !call.withdraw()) return end(call)
    const retry = () => {
      meterOf(target.label, operation.name).retried(call.fiber.context, said.fault)
      return next(call, target, usable)
    }
    return wait > 0 ? Effect.flatMap(Effect.sleep(wait), retry) : retry()
  }

  return <A, E>(read: Read, question: Question<A, E>): Effect.Effect<A, E | ReadFailure> =>
    Effect.withFiber((fiber) => {
      // also where another kind of upstream answers in its place
      const [{ label }] = read.targets
      const budget = budgets[label]
      budget.deposit()
      const call = new Progress(read, question, budget, fiber, deadline)
      const start = () => {
        const { retryAfter, targets: usable } = outliers.choose(read.targets)
        const [first] = usable
        return first === undefined ? Effect.fail(ejected(label, retryAfter)) : next(call, first, usable)
      }
      const firstCheck = outliers.ready(read.targets)
      return firstCheck === undefined ? start() : Effect.flatMap(firstCheck, start)
    })
}
