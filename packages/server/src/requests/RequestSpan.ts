/**
 * The span of a request, named after its route. Nothing here runs unless the program has a tracer.
 *
 * Effect's own HTTP tracer would note the whole URL and the headers of a request, and a caller's key may stand in both.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpTraceContext from "effect/http/HttpTraceContext"
import * as Option from "effect/Option"
import type * as Tracer from "effect/Tracer"
import type { Entry, RequestFacts } from "./RequestFacts.ts"

const timeOf = (fiber: Fiber.Fiber<unknown, unknown>): bigint => fiber.getRef(Clock.Clock).currentTimeNanosUnsafe()

/** Whether requests of a route have spans: probes and scrapes would only fill the store of the traces. */
const isTraced = (route: string): boolean => !route.startsWith("health.")

/** The span of a server around this one, else the one that the caller's `traceparent` names. */
const parentOf = (
  request: HttpServerRequest.HttpServerRequest | undefined,
  fiber: Fiber.Fiber<unknown, unknown>
): Tracer.AnySpan | undefined =>
  fiber.cache.span ?? (request && Option.getOrUndefined(HttpTraceContext.fromHeaders(request.headers)))

/** Serves a request within its span. */
export const within = <A, E, R>(
  facts: RequestFacts,
  fiber: Fiber.Fiber<unknown, unknown>,
  self: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => {
  if (!isTraced(facts.route)) return self
  const request = Context.getOrUndefined(fiber.context, HttpServerRequest.HttpServerRequest)
  const path = Context.getOrUndefined(fiber.context, HttpRouter.RouteContext)?.route.path
  const made = Effect.makeSpan(facts.route, {
    kind: "server",
    parent: parentOf(request, fiber),
    attributes: {
      ...(request === undefined ? {} : { "http.request.method": request.method }),
      ...(path === undefined ? {} : { "http.route": path })
    }
  })
  return Effect.flatMap(made, (span) => {
    facts.span = span
    return Effect.onExitPrimitive(Effect.withParentSpan(self, span), (exit) => {
      // nobody will answer a caller who left
      if (exit._tag === "Failure" && Cause.hasInterrupts(exit.cause)) span.end(timeOf(fiber), exit)
      return undefined
    })
  })
}

/** Ends the span of a request that is answered. */
export const end = (
  span: Tracer.Span,
  fiber: Fiber.Fiber<unknown, unknown>,
  { error, id, status }: Pick<Entry, "error" | "id" | "status">
): void => {
  span.attribute("http.response.status_code", status)
  span.attribute("trigate.request_id", id)
  if (error !== undefined) span.attribute("error.type", error)
  span.end(timeOf(fiber), status >= 500 ? Exit.fail(error ?? `HTTP ${status}`) : Exit.void)
}
