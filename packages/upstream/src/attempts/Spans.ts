/**
 * The spans of a call: one for the call of an operation, and below it one for each of its attempts.
 *
 * Nothing here runs unless the program has a tracer. An attribute is a name, a number or a tag of ours: never an address, a key,
 * or a text that an upstream or a caller wrote.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"
import * as Tracer from "effect/Tracer"
import type { UpstreamLabel } from "../Upstream.ts"

/** The attributes of the spans, and what each holds. */
export const attributes = {
  operation: "trigate.operation",
  upstream: "trigate.upstream",
  /** The source of a call that made no attempt: `hit`, `replica_hit`, `stale`, `limited` or `coalesced`. */
  cache: "trigate.cache",
  /**
   * `ok`, `upstream_error` for an error that is relayed as received, the tag of a typed error, or how an attempt ended;
   * `abandoned` where the caller left or another attempt was faster.
   */
  outcome: "trigate.outcome",
  /** Which of its upstream's addresses an attempt went to, from 0. */
  address: "trigate.address",
  /** Which attempt of its call it was, from 1. */
  attempt: "trigate.attempt",
  status: "http.response.status_code"
} as const

/** Whose span it is. */
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

/** Runs an effect in a span of its own; `outcomeOf` says how a success ended, and what its span fails with if that is a fault. */
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
        span.attribute(attributes.outcome, outcome)
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
  [attributes.operation]: operation,
  [attributes.upstream]: upstream
})

/** A call of an operation. */
export const call = <A, E>(
  call: Named,
  isFault: (answer: A) => boolean,
  run: Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  within(call.operation, { attributes: named(call) }, () => run, (answer) => ({
    outcome: isFault(answer) ? "upstream_error" : "ok"
  }))

/** The refresh of a cached response, in the background of the call that found it old. */
export const refresh = <A, E>(call: Named, run: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  within("refresh", { attributes: named(call) }, () => run, () => ({ outcome: "ok" }))

/** Records the cache outcome of a call in its span. */
export const noteCache = (context: Context.Context<never>, outcome: string): void => {
  const span = Context.getOrUndefined(context, Tracer.ParentSpan)
  if (span?._tag === "Span") span.attribute(attributes.cache, outcome)
}
