/** One attempt: a single request to one address, within the rate limit, with metrics and a report to outlier detection. */
import { CurrentCaller } from "@trigate/domain/Caller"
import type { QuotaExceeded } from "@trigate/domain/errors/CallerError"
import { UpstreamRateLimited } from "@trigate/domain/errors/UpstreamError"
import * as Continuation from "@trigate/domain/operations/Continuation"
import type { Cost, MethodClass } from "@trigate/domain/operations/Operation"
import { responseWeight } from "@trigate/domain/operations/Operation"
import type * as UpstreamResponse from "@trigate/domain/operations/UpstreamResponse"
import { monotonicMillis } from "@trigate/domain/Time"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpTraceContext from "effect/http/HttpTraceContext"
import * as Tracer from "effect/Tracer"
import type { Ask, Permits } from "../limits/FairQueue.ts"
import { worstCost } from "../limits/FairQueue.ts"
import type { RateLimiter } from "../limits/RateLimiter.ts"
import { IsRefresh } from "../limits/RateLimiter.ts"
import type { HttpTransport, TransportError } from "../transport/HttpTransport.ts"
import { receive } from "../transport/ReceivedResponse.ts"
import { targetName } from "../Upstream.ts"
import type { Target } from "../Upstream.ts"
import type { AttemptOutcome, Meter, Registry } from "./AttemptMetrics.ts"
import type { HealthSignal, OutlierDetection } from "./OutlierDetection.ts"
import * as Spans from "./Spans.ts"

/** The services and settings that all attempts share. */
export interface Parts {
  readonly transport: HttpTransport["Service"]
  readonly rateLimiter: RateLimiter["Service"]
  readonly outliers: OutlierDetection["Service"]
  /** Maximum number of bytes of a response. */
  readonly maxAnswerBytes: number
  /** Whether an attempt that has a span sends the `traceparent` of this span. */
  readonly traceUpstream: boolean
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

/** The request of an attempt, and the handlers of its results. */
export interface Attempt<A> {
  readonly operation: string
  readonly class: MethodClass
  readonly cost: Cost
  readonly target: Target
  /** Maximum milliseconds to wait for the rate limiter. */
  readonly maxWait: number
  /** The number of the attempt within its call, from 1. */
  readonly number: number
  readonly meter: Meter
  /** The body of a POST; absent for a GET. */
  readonly body: Uint8Array | undefined
  /** Timeout in milliseconds, including the wait for the rate limiter. */
  readonly timeout: number
  /** Maximum milliseconds to send the request, counted from the end of the wait for the rate limiter. */
  readonly sendWithin?: number
  /** Whether to open a new connection instead of using a pooled one. */
  readonly onNewConnection?: boolean
  /** The W3C `traceparent` to send. */
  readonly traceparent?: string | undefined
  readonly answered: (response: UpstreamResponse.UpstreamResponse) => Ended<A>
  readonly broke: (error: TransportError) => Ended<A>
  /** Handles a refusal by the rate limiter; nothing was sent. */
  readonly withheld: (error: QuotaExceeded | UpstreamRateLimited) => A
}

const getHeaders = { accept: "application/json" }
const postHeaders = { accept: "application/json", "content-type": "application/json" }

/** Returns the rate-limit units that an attempt used. */
const usedBy = ({ cost, target }: Attempt<unknown>, { outcome, rows }: Ended<unknown>): number => {
  if (outcome === "not_sent") return 0
  return target.label === "trading-api" ? responseWeight({ cost }, rows) : cost.requestUnits
}

/** Sends an attempt that already has its rate-limit permits, and passes the result to the attempt's handlers. */
const send = <A>(
  parts: Parts,
  attempt: Attempt<A>,
  permits: Permits,
  timeout: number,
  context: Registry
): Effect.Effect<A> => {
  const { body, cost, meter, onNewConnection = false, sendWithin, target, traceparent } = attempt
  const headers = body === undefined ? getHeaders : postHeaders
  const clock = Context.get(context, Clock.Clock)
  const start = clock.currentTimeMillisUnsafe()
  const took = () => clock.currentTimeMillisUnsafe() - start
  const end = (ended: Ended<A>): Exit.Exit<A> => {
    meter.attempted(context, cost, ended.outcome, took(), ended.rows)
    permits.refund(worstCost(target.label, attempt) - usedBy(attempt, ended))
    if (ended.signal !== undefined) parts.outliers.report(target, ended.signal)
    return Exit.succeed(ended.value)
  }
  const sent = parts.transport.send({
    method: body === undefined ? "GET" : "POST",
    url: target.url,
    headers: traceparent === undefined ? headers : { ...headers, traceparent },
    body,
    maxAnswerBytes: parts.maxAnswerBytes,
    timeout,
    onNewConnection,
    ...(sendWithin === undefined ? {} : { sendWithin: Math.min(sendWithin, timeout) })
  })
  const ended = Continuation.match(sent, {
    onFailure: (error) => end(attempt.broke(error)),
    onSuccess: (response) => end(attempt.answered(receive(target, response)))
  })
  return Continuation.onExit(ended, ({ _tag }) => {
    if (_tag === "Failure") meter.attempted(context, cost, "abandoned", took(), 0)
  })
}

const tooLate = ({ label }: Target) =>
  new UpstreamRateLimited({
    upstream: label,
    detail: `The rate limit of ${label} delayed the call until its deadline; nothing was sent`
  })

const begin = <A>(parts: Parts, attempt: Attempt<A>, context: Registry): Effect.Effect<A> => {
  const { class: methodClass, cost, target, timeout } = attempt
  const isRefresh = Context.get(context, IsRefresh)
  const ask: Ask = {
    upstream: target.label,
    class: methodClass,
    cost,
    caller: Context.get(context, CurrentCaller),
    maxWait: isRefresh ? 0 : attempt.maxWait,
    isRefresh
  }
  const clock = Context.get(context, Clock.Clock)
  const permits = parts.rateLimiter.tryTake(ask, clock)
  if (permits !== undefined) return send(parts, attempt, permits, timeout, context)
  const start = monotonicMillis(clock)
  return Effect.matchEffect(parts.rateLimiter.take(ask), {
    onFailure: (error) => Effect.succeed(attempt.withheld(error)),
    onSuccess: (permits) => {
      const left = timeout - (monotonicMillis(clock) - start)
      if (left > 0) return send(parts, attempt, permits, left, context)
      permits.refund(worstCost(target.label, attempt))
      return Effect.succeed(attempt.withheld(tooLate(target)))
    }
  })
}

/** Adds an unsampled `traceparent` to an attempt, so that the upstream does not start its own trace. */
const unsampled = <A>(attempt: Attempt<A>, context: Registry): Attempt<A> => {
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

/** Makes an attempt in a span. If `announced` is set, the request contains the span's `traceparent`. */
const traced = <A>(
  attempt: Attempt<A>,
  announced: boolean,
  run: (attempt: Attempt<A>) => Effect.Effect<A>
): Effect.Effect<A> => {
  const { number, operation, target } = attempt
  let seen: { readonly outcome: string; readonly fault?: unknown } = { outcome: "ok" }
  const noted = (ended: Ended<A>, fault: unknown): Ended<A> => {
    const { outcome } = ended
    seen = sound.has(outcome) ? { outcome } : { outcome, fault }
    return ended
  }
  return Spans.within(
    targetName(target),
    {
      kind: "client",
      attributes: {
        ...Spans.named({ operation, upstream: target.label }),
        [Spans.attributes.address]: target.address,
        [Spans.attributes.attempt]: number
      }
    },
    (span) =>
      run({
        ...attempt,
        ...(announced ? { traceparent: HttpTraceContext.toHeaders(span)["traceparent"] } : {}),
        answered: (response) => {
          span.attribute(Spans.attributes.status, response.status)
          const ended = attempt.answered(response)
          return noted(ended, ended.outcome)
        },
        broke: (error) => noted(attempt.broke(error), error),
        withheld: (error) => {
          seen = { outcome: "withheld", fault: error }
          return attempt.withheld(error)
        }
      }),
    () => seen
  )
}

/** Makes an attempt. Adds no overhead to the transport if the rate limiter has capacity. */
export const run = <A>(parts: Parts, attempt: Attempt<A>): Effect.Effect<A> =>
  Continuation.withContext((context: Registry) =>
    Continuation.isTraced(context)
      ? traced(attempt, parts.traceUpstream, (attempt) => begin(parts, attempt, context))
      : begin(parts, parts.traceUpstream ? unsampled(attempt, context) : attempt, context)
  )
