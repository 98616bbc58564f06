/** One exchange with one address: within its budget, counted, and read. */
import type { Cost, MethodClass } from "@trigate/domain/Operation"
import { weightOf, worstWeightOf } from "@trigate/domain/Operation"
import { UpstreamRateLimited } from "@trigate/domain/UpstreamError"
import type * as UpstreamResponse from "@trigate/domain/UpstreamResponse"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Answers from "./Answers.ts"
import type { Meter, Outcome } from "./CallMetrics.ts"
import type { HttpTransport, TransportError } from "./HttpTransport.ts"
import { millisOf } from "./internal/Monotonic.ts"
import type { OutlierDetection } from "./OutlierDetection.ts"
import type { RateLimiter } from "./RateLimiter.ts"
import type { Target } from "./Upstream.ts"

/** What every exchange goes through. */
export interface Parts {
  readonly wire: HttpTransport["Service"]
  readonly budgets: RateLimiter["Service"]
  readonly outliers: OutlierDetection["Service"]
  /** Bytes of answer to accept. */
  readonly maxAnswerBytes: number
}

/** What an exchange came to: its value, how it is counted, and the rows that its answer is billed by. */
export interface Judged<A> {
  readonly value: A
  readonly outcome: Exclude<Outcome, "abandoned">
  readonly rows: number
}

/** What to send, and how to read what comes of it. */
export interface Exchange<A> {
  readonly class: MethodClass
  readonly cost: Cost
  readonly meter: Meter
  readonly target: Target
  /** A body means POST, none means GET. */
  readonly body: Uint8Array | undefined
  /** Milliseconds for all of it. */
  readonly timeout: number
  /** Whether to use a connection that nobody has used before. */
  readonly onNewConnection?: boolean
  /** Milliseconds after which nothing may be sent any more, of what the budget has left of the time. */
  readonly sendWithin?: number
  /** Milliseconds of those that it may wait for its budget. */
  readonly maxWait: number
  readonly answered: (answer: UpstreamResponse.UpstreamResponse) => Judged<A>
  readonly broke: (error: TransportError) => Judged<A>
}

const getHeaders = { accept: "application/json" }
const postHeaders = { accept: "application/json", "content-type": "application/json" }

/** Sends and counts; a single pass, since this is done for every call. */
const send = <A>({ maxAnswerBytes, wire }: Parts, exchange: Exchange<A>, timeout: number): Effect.Effect<Judged<A>> =>
  Effect.withFiber((fiber) => {
    const { answered, body, broke, cost, meter, sendWithin, target } = exchange
    const services = fiber.context
    const clock = fiber.getRef(Clock.Clock)
    const start = clock.currentTimeMillisUnsafe()
    const sent = wire.send({
      method: body === undefined ? "GET" : "POST",
      url: target.url,
      headers: body === undefined ? getHeaders : postHeaders,
      body,
      maxAnswerBytes,
      timeout,
      ...(sendWithin === undefined ? {} : { sendWithin: Math.min(sendWithin, timeout) }),
      ...(exchange.onNewConnection === true ? { onNewConnection: true } : {})
    })
    const judged = Effect.match(sent, {
      onFailure: broke,
      onSuccess: (answer) => answered(Answers.of(target, answer))
    })
    return Effect.onExitPrimitive(judged, (exit) => {
      const took = clock.currentTimeMillisUnsafe() - start
      if (exit._tag === "Success") meter.exchanged(services, cost, exit.value.outcome, took, exit.value.rows)
      else meter.exchanged(services, cost, "abandoned", took, 0)
      return undefined
    })
  })

/** What the exchange did not cost after all, in the units of its upstream's budget. */
const unusedOf = <A>({ cost, target }: Exchange<A>, { outcome, rows }: Omit<Judged<A>, "value">): number => {
  if (target.label !== "trading-api") return outcome === "not_sent" ? cost.requestUnits : 0
  return worstWeightOf({ cost }) - (outcome === "not_sent" ? 0 : weightOf({ cost }, rows))
}

const nothing = { outcome: "not_sent", rows: 0 } as const

const tooLate = ({ label }: Target) =>
  new UpstreamRateLimited({
    upstream: label,
    detail: `The budget of ${label} left no time to ask; nothing was sent`
  })

/** Waits for the budget, then sends in what is left of the time. */
export const run = <A>(parts: Parts, exchange: Exchange<A>): Effect.Effect<Judged<A>, UpstreamRateLimited> =>
  Effect.clockWith((clock) => {
    const { cost, maxWait, target, timeout } = exchange
    const begin = millisOf(clock)
    return Effect.flatMap(
      parts.budgets.take({ upstream: target.label, class: exchange.class, cost, maxWait }),
      (permits): Effect.Effect<Judged<A>, UpstreamRateLimited> => {
        const left = timeout - (millisOf(clock) - begin)
        if (left <= 0) {
          permits.refund(unusedOf(exchange, nothing))
          return Effect.fail(tooLate(target))
        }
        return Effect.map(send(parts, exchange, left), (judged) => {
          permits.refund(unusedOf(exchange, judged))
          return judged
        })
      }
    )
  })
