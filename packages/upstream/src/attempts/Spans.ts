/**
 * The spans of calls and attempts. They are made only with a tracer: see `isTraced` of `Attempts`.
 *
 * Attributes are names, numbers and tags of the gateway, never an address, a key, or text from an upstream or a caller.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"
import * as Tracer from "effect/Tracer"
import type { UpstreamLabel } from "../Upstream.ts"

/** The attributes of the spans. */
export const spanAttributes = {
  operation: "trigate.operation",
  upstream: "trigate.upstream",
  /**
   * The cache outcome of a call (`hit`, `replica_hit`, `coalesced`, `stale` or `limited`) or of a refresh (`refreshed`
   * or `refresh_failed`). `stale`: a stale response, because the read failed. `limited`: a stale response, because of
   * the rate limit.
   */
  cache: "trigate.cache",
  /**
   * The outcome of a call or of an attempt: `ok`, the tag of a typed error, or the result of an attempt.
   * `upstream_error` is an error that is relayed unchanged. `abandoned` means that the caller disconnected or that a
   * second attempt was faster.
   */
  outcome: "trigate.outcome",
  /** The index of an attempt's address in its upstream, from 0. */
  address: "trigate.address",
  /** The number of an attempt within its call, from 1. */
  attempt: "trigate.attempt",
  status: "http.response.status_code"
} as const

/** The operation and the upstream of a span. */
export interface Named {
  readonly operation: string
  readonly upstream: UpstreamLabel
}

const tagIn = (cause: Exit.Failure<unknown, unknown>["cause"]): string => {
  const failed = cause.reasons.find((reason) => reason._tag === "Fail")
  if (failed !== undefined) {
    return Predicate.hasProperty(failed.error, "_tag") ? String(failed.error._tag) : "failed"
  }
  return cause.reasons.some((reason) => reason._tag === "Die") ? "defect" : "abandoned"
}

/**
 * Runs an effect in its own span. `outcomeOf` returns the span's outcome for a success of the effect. If that outcome
 * is an error, `outcomeOf` also returns the error to record in the span.
 */
export const within = <A, E>(
  name: string,
  options: Tracer.SpanOptionsNoTrace,
  run: (span: Tracer.Span) => Effect.Effect<A, E>,
  outcomeOf: (answer: A) => { readonly outcome: string; readonly fault?: unknown }
): Effect.Effect<A, E> =>
  Effect.withFiber((fiber) =>
    Effect.flatMap(Effect.makeSpan(name, options), (span) => {
      const clock = fiber.getRef(Clock.Clock)
      const end = (exit: Exit.Exit<unknown, unknown>, outcome: string) => {
        span.attribute(spanAttributes.outcome, outcome)
        span.end(clock.currentTimeNanosUnsafe(), exit)
      }
      return Effect.onExitPrimitive(Effect.withParentSpan(run(span), span), (exit) => {
        if (exit._tag === "Failure") end(exit, tagIn(exit.cause))
        else {
          const { fault, outcome } = outcomeOf(exit.value)
          end(fault === undefined ? exit : Exit.fail(fault), outcome)
        }
        return undefined
      })
    })
  )

export const named = ({ operation, upstream }: Named) => ({
  [spanAttributes.operation]: operation,
  [spanAttributes.upstream]: upstream
})

/** Runs a call of an operation in a span. */
export const callSpan = <A, E>(
  call: Named,
  isFault: (answer: A) => boolean,
  run: Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  within(call.operation, { attributes: named(call) }, () => run, (answer) => ({
    outcome: isFault(answer) ? "upstream_error" : "ok"
  }))

/** Refreshes a cached response in a span, in the background of the call that found the response stale. */
export const refresh = <A, E>(call: Named, run: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  within("refresh", { attributes: named(call) }, () => run, () => ({ outcome: "ok" }))

/** Records the cache outcome of a call in its span. */
export const noteCache = (context: Context.Context<never>, outcome: string): void => {
  const span = Context.getOrUndefined(context, Tracer.ParentSpan)
  if (span?._tag === "Span") span.attribute(spanAttributes.cache, outcome)
}
