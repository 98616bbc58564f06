/** One attempt: one request to one address, within the rate limit, counted, and reported to outlier detection. */
import type { Cost, MethodClass } from "@trigate/domain/Operation"
import { weightOf } from "@trigate/domain/Operation"
import { UpstreamRateLimited } from "@trigate/domain/UpstreamError"
import type { UpstreamResponse } from "@trigate/domain/UpstreamResponse"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Answers from "./Answers.ts"
import type { Meter, Outcome } from "./AttemptMetrics.ts"
import type { HttpTransport, TransportError } from "./HttpTransport.ts"
import { millisOf } from "./internal/Monotonic.ts"
import type { HealthSignal, OutlierDetection } from "./OutlierDetection.ts"
import type { Permits, RateLimiter } from "./RateLimiter.ts"
import { worstOf } from "./RateLimiter.ts"
import type { Target } from "./Upstream.ts"

/** What every attempt goes through. */
export interface Parts {
  readonly transport: HttpTransport["Service"]
  readonly rateLimiter: RateLimiter["Service"]
  readonly outliers: OutlierDetection["Service"]
  /** Bytes of a response to accept. */
  readonly maxAnswerBytes: number
}

/** How an attempt ended. */
export interface Ended<A> {
  readonly value: A
  readonly outcome: Exclude<Outcome, "abandoned">
  /** The length of an answer that is billed by its length, else 0. */
  readonly rows: number
  /** What it says about the address; nothing is reported when not given. */
  readonly signal?: HealthSignal
}

/** What to send, and what to make of the end of it. */
export interface Attempt<A> {
  readonly class: MethodClass
  readonly cost: Cost
  readonly meter: Meter
  readonly target: Target
  /** A body means POST, none means GET. */
  readonly body: Uint8Array | undefined
  /** Milliseconds for all of it, the wait for the rate limiter included. */
  readonly timeout: number
  /** Milliseconds that it may wait for the rate limiter. */
  readonly maxWait: number
  /** Milliseconds after which nothing may be sent any more, counted from the end of that wait. */
  readonly sendWithin?: number
  /** Whether to use a connection that was not used before. */
  readonly onNewConnection?: boolean
  readonly answered: (response: UpstreamResponse) => Ended<A>
  readonly broke: (error: TransportError) => Ended<A>
  /** The rate limiter had no room in time; nothing was sent. */
  readonly withheld: (error: UpstreamRateLimited) => A
}

const getHeaders = { accept: "application/json" }
const postHeaders = { accept: "application/json", "content-type": "application/json" }

/** What the attempt used, in the units of the rate limiter. */
const usedBy = ({ cost, target }: Attempt<unknown>, { outcome, rows }: Ended<unknown>): number => {
  if (outcome === "not_sent") return 0
  return target.label === "trading-api" ? weightOf({ cost }, rows) : cost.requestUnits
}

const send = <A>(
  parts: Parts,
  attempt: Attempt<A>,
  permits: Permits,
  timeout: number,
  fiber: Fiber.Fiber<unknown, unknown>
): Effect.Effect<A> => {
  const { body, cost, meter, onNewConnection = false, sendWithin, target } = attempt
  const clock = fiber.getRef(Clock.Clock)
  const start = clock.currentTimeMillisUnsafe()
  const took = () => clock.currentTimeMillisUnsafe() - start
  const end = (ended: Ended<A>): A => {
    meter.attempted(fiber.context, cost, ended.outcome, took(), ended.rows)
    permits.refund(worstOf(target.label, attempt) - usedBy(attempt, ended))
    if (ended.signal !== undefined) parts.outliers.report(target, ended.signal)
    return ended.value
  }
  const sent = parts.transport.send({
    method: body === undefined ? "GET" : "POST",
    url: target.url,
    headers: body === undefined ? getHeaders : postHeaders,
    body,
    maxAnswerBytes: parts.maxAnswerBytes,
    timeout,
    onNewConnection,
    ...(sendWithin === undefined ? {} : { sendWithin: Math.min(sendWithin, timeout) })
  })
  return Effect.onExitPrimitive(
    Effect.match(sent, {
      onFailure: (error) => end(attempt.broke(error)),
      onSuccess: (response) => end(attempt.answered(Answers.of(target, response)))
    }),
    (exit) => {
      if (exit._tag === "Failure") meter.attempted(fiber.context, cost, "abandoned", took(), 0)
      return undefined
    }
  )
}

const tooLate = ({ label }: Target) =>
  new UpstreamRateLimited({
    upstream: label,
    detail: `The rate limit of ${label} left no time to ask; nothing was sent`
  })

/** Makes an attempt; where the rate limiter has room at once, that is one effect of the transport. */
export const run = <A>(parts: Parts, attempt: Attempt<A>): Effect.Effect<A> =>
  Effect.withFiber((fiber) => {
    const { cost, maxWait, target, timeout } = attempt
    const ask = { upstream: target.label, class: attempt.class, cost, maxWait }
    const clock = fiber.getRef(Clock.Clock)
    const permits = parts.rateLimiter.tryTake(ask, clock)
    if (permits !== undefined) return send(parts, attempt, permits, timeout, fiber)
    const begin = millisOf(clock)
    return Effect.matchEffect(parts.rateLimiter.take(ask), {
      onFailure: (error) => Effect.succeed(attempt.withheld(error)),
      onSuccess: (permits) => {
        const left = timeout - (millisOf(clock) - begin)
        if (left > 0) return send(parts, attempt, permits, left, fiber)
        permits.refund(worstOf(target.label, attempt))
        return Effect.succeed(attempt.withheld(tooLate(target)))
      }
    })
  })
