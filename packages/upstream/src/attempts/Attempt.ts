/** One attempt: a single request to one address, within the rate limit, with metrics, a span, and a report to outlier detection. */
import { CurrentCaller } from "@trigate/domain/Caller"
import type { QuotaExceeded } from "@trigate/domain/errors/CallerError"
import { UpstreamRateLimited } from "@trigate/domain/errors/UpstreamError"
import type { Cost, MethodClass } from "@trigate/domain/operations/Operation"
import { responseWeight } from "@trigate/domain/operations/Operation"
import type { RetryableFault } from "@trigate/domain/operations/Protocol"
import type * as UpstreamResponse from "@trigate/domain/operations/UpstreamResponse"
import { monotonicMillis } from "@trigate/domain/Time"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpTraceContext from "effect/http/HttpTraceContext"
import * as Tracer from "effect/Tracer"
import { worstCost } from "../limits/FairQueue.ts"
import type { Permits } from "../limits/FairQueue.ts"
import type { RateLimiter } from "../limits/RateLimiter.ts"
import { IsRefresh } from "../limits/RateLimiter.ts"
import type { HttpTransport, TransportError } from "../transport/HttpTransport.ts"
import { receive } from "../transport/ReceivedResponse.ts"
import { targetName } from "../Upstream.ts"
import type { Target, UpstreamLabel } from "../Upstream.ts"
import { metrics } from "../UpstreamMetrics.ts"
import type { HealthSignal, OutlierDetection } from "./OutlierDetection.ts"
import * as Spans from "./Spans.ts"

/** The result of an attempt. `abandoned` means that the caller disconnected or that a second attempt was faster. */
export type AttemptOutcome = "ok" | "refused" | "abandoned" | Exclude<RetryableFault, "withheld">

/** The context with the metric registry. Updates are synchronous, because every attempt makes several. */
export type Registry = Context.Context<never>

/** The metrics of one operation at one upstream. */
export interface Meter {
  /**
   * Counts an attempt with its actual cost; `rows` is the number of rows in the response, for an operation whose rows
   * cost rate-limit weight.
   */
  readonly attempted: (
    registry: Registry,
    cost: Cost,
    outcome: AttemptOutcome,
    milliseconds: number,
    rows: number
  ) => void
  readonly retried: (registry: Registry, fault: RetryableFault) => void
  readonly hedged: (registry: Registry, won: "first" | "second") => void
}

const memo = <Key, Value>(make: (key: Key) => Value) => {
  const made = new Map<Key, Value>()
  return (key: Key): Value => {
    const found = made.get(key)
    if (found !== undefined) return found
    const value = make(key)
    made.set(key, value)
    return value
  }
}

const makeMeter = (upstream: UpstreamLabel, operation: string): Meter => {
  const at = { upstream }
  const named = { upstream, operation }
  const took = metrics.upstreamSeconds.series(at)
  const weighed = metrics.upstreamWeight.series(at)
  const billed = metrics.upstreamRequestUnits.series(at)
  return {
    attempted: (registry, cost, outcome, milliseconds, rows) => {
      metrics.upstreamCalls.series({ ...named, outcome }).updateUnsafe(1, registry)
      took.updateUnsafe(milliseconds / 1000, registry)
      if (outcome === "not_sent") return
      if (upstream === "trading-api") weighed.updateUnsafe(responseWeight({ cost }, rows), registry)
      else billed.updateUnsafe(cost.requestUnits, registry)
    },
    retried: (registry, cause) => metrics.upstreamRetries.series({ ...named, cause }).updateUnsafe(1, registry),
    hedged: (registry, won) => metrics.upstreamHedges.series({ ...named, won }).updateUnsafe(1, registry)
  }
}

/** Makes the function that looks up the metrics of an operation at an upstream. The metrics are made on first use. */
export const meters = () => {
  const ofUpstream = memo((upstream: UpstreamLabel) => memo((operation: string) => makeMeter(upstream, operation)))
  return (upstream: UpstreamLabel, operation: string): Meter => ofUpstream(upstream)(operation)
}

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

/** What becomes of an attempt. */
export interface Handler<A> {
  answered(response: UpstreamResponse.UpstreamResponse, attempt: Attempt<A>): Ended<A>
  broke(error: TransportError, attempt: Attempt<A>): Ended<A>
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
  /** The time at which the attempt starts, by the monotonic clock, in milliseconds. */
  readonly start: number
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
  permits: Permits,
  timeout: number,
  context: Registry
): Effect.Effect<A> => {
  const { body, cost, handler, meter, onNewConnection = false, sendWithin, target, traceparent } = attempt
  const headers = body === undefined ? getHeaders : postHeaders
  const clock = Context.get(context, Clock.Clock)
  const start = clock.currentTimeMillisUnsafe()
  const took = () => clock.currentTimeMillisUnsafe() - start
  const end = (ended: Ended<A>): A => {
    meter.attempted(context, cost, ended.outcome, took(), ended.rows)
    permits.refund(worstCost(target.label, attempt) - usedBy(attempt, ended))
    if (ended.signal !== undefined) parts.outliers.report(target, ended.signal)
    return ended.value
  }
  const sent = parts.transport.send({
    method: body === undefined ? "GET" : "POST",
    url: target.url,
    headers: traceparent === undefined ? headers : { ...headers, traceparent },
    body,
    maxAnswerBytes: parts.maxAnswerBytes,
    timeout,
    onNewConnection,
    ...(sendWithin === undefined ? undefined : { sendWithin: Math.min(sendWithin, timeout) })
  })
  const ended = Effect.match(sent, {
    onFailure: (error) => end(handler.broke(error, attempt)),
    onSuccess: (response) => end(handler.answered(receive(target, response), attempt))
  })
  return Effect.onExitPrimitive(ended, ({ _tag }) => {
    if (_tag === "Failure") meter.attempted(context, cost, "abandoned", took(), 0)
    return undefined
  })
}

/** Takes the permits of an attempt, waiting for them if necessary, and sends its request. */
const make = <A>(parts: Parts, attempt: Attempt<A>, context: Registry): Effect.Effect<A> => {
  const { cost, handler, target, timeout } = attempt
  const clock = Context.get(context, Clock.Clock)
  const isRefresh = Context.get(context, IsRefresh)
  const ask = {
    upstream: target.label,
    class: attempt.class,
    cost,
    caller: Context.get(context, CurrentCaller),
    maxWait: isRefresh ? 0 : attempt.maxWait,
    isRefresh
  }
  const permits = parts.rateLimiter.tryTake(ask, clock)
  if (permits !== undefined) return send(parts, attempt, permits, timeout, context)
  const begin = monotonicMillis(clock)
  return Effect.matchEffect(parts.rateLimiter.take(ask), {
    onFailure: (error) => Effect.succeed(handler.withheld(error)),
    onSuccess: (permits) => {
      const left = timeout - (monotonicMillis(clock) - begin)
      if (left > 0) return send(parts, attempt, permits, left, context)
      permits.refund(worstCost(target.label, attempt))
      return Effect.succeed(handler.withheld(tooLate(target)))
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
    ...Spans.named({ operation, upstream: target.label }),
    [Spans.attributes.address]: target.address,
    [Spans.attributes.attempt]: number
  }
  return Spans.within(
    targetName(target),
    { kind: "client", attributes },
    (span) =>
      Effect.contextWith((context: Registry) =>
        make(parts, {
          ...attempt,
          ...(parts.traceUpstream ? { traceparent: HttpTraceContext.toHeaders(span)["traceparent"] } : {}),
          handler: {
            answered: (response) => {
              span.attribute(Spans.attributes.status, response.status)
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
export const run = <A>(parts: Parts, attempt: Attempt<A>, context: Registry): Effect.Effect<A> => {
  if (Spans.isTraced(context)) return traced(parts, attempt)
  return make(parts, parts.traceUpstream ? unsampled(attempt, context) : attempt, context)
}
