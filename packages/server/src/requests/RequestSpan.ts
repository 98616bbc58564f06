/**
 * The span of a request, named after its route. Without a tracer, no span is made.
 *
 * Effect's own HTTP tracer would record the whole URL and the headers of a request. Both can contain a caller's key.
 */
import { isTraced } from "@trigate/upstream/attempts/Spans"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Headers from "effect/http/Headers"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpTraceContext from "effect/http/HttpTraceContext"
import * as Option from "effect/Option"
import * as References from "effect/References"
import * as Tracer from "effect/Tracer"
import type { RequestLogEntry } from "./AccessLog.ts"
import { CurrentRequestRecord } from "./RequestRecord.ts"
import type { RequestRecord } from "./RequestRecord.ts"

const currentNanos = (context: Context.Context<never>): bigint =>
  Context.get(context, Clock.Clock).currentTimeNanosUnsafe()

/** Returns whether requests of a route have spans: probes and scrapes have none. */
const hasSpans = (route: string): boolean => !route.startsWith("health.")

/** The headers that can contain the caller's span: W3C's, and the two forms of B3. */
const parentHeaders = ["traceparent", "b3", "x-b3-traceid"]

/** Returns the parent of a request's span: the server's surrounding span if there is one, otherwise the caller's. */
const parentSpan = ({ headers }: RequestRecord, context: Context.Context<never>): Option.Option<Tracer.AnySpan> => {
  const around = Context.getOrUndefined(context, Tracer.ParentSpan)
  if (around !== undefined) return Option.some(around)
  // most requests have no parent, and copying their headers costs more than the span
  return parentHeaders.some((name) => headers[name] !== undefined)
    ? HttpTraceContext.fromHeaders(Headers.fromInput(headers))
    : Option.none()
}

/** Serves a request of a route within its span; creates no span below it if the trace is not sampled. */
const within = <A, E, R>(
  record: RequestRecord,
  context: Context.Context<R>,
  path: string | undefined,
  self: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => {
  if (!hasSpans(record.route)) return self
  const parent = parentSpan(record, context)
  const span = Context.get(context, Tracer.Tracer).span({
    name: record.route,
    parent,
    annotations: Context.empty(),
    links: [],
    startTime: currentNanos(context),
    kind: "server",
    root: false,
    sampled: Option.match(parent, { onNone: () => true, onSome: ({ sampled }) => sampled })
  })
  record.span = span
  if (!span.sampled) {
    return Effect.provideService(
      Effect.provideService(self, References.TracerEnabled, false),
      Tracer.ParentSpan,
      span
    )
  }
  span.attribute("http.request.method", record.method)
  if (path !== undefined) span.attribute("http.route", path)
  return Effect.onExitPrimitive(Effect.withParentSpan(self, span), (exit) => {
    // an interruption means that the client disconnected, so no response will end the span
    if (exit._tag === "Failure" && Cause.hasInterrupts(exit.cause)) span.end(currentNanos(context), exit)
    return undefined
  })
}

/**
 * Serves a request of a route: records the route's name, and creates its span if there is a tracer. Specify `path`, the
 * route's path, if Effect's router did not select the route.
 */
export const named = <A, E, R>(
  route: string,
  self: Effect.Effect<A, E, R>,
  path?: string
): Effect.Effect<A, E, R> =>
  Effect.contextWith((context: Context.Context<R>) => {
    const record = Context.get(context, CurrentRequestRecord)
    record.route = route
    if (!isTraced(context)) return self
    const routed = Context.getOrUndefined(context, HttpRouter.RouteContext)?.route.path
    return within(record, context, routed ?? path, self)
  })

/** Ends the span of a request when its response is sent. Does nothing if the trace is not sampled. */
export const end = (
  span: Tracer.Span,
  context: Context.Context<never>,
  { error, id, status }: Pick<RequestLogEntry, "error" | "id" | "status">
): void => {
  if (!span.sampled) return
  span.attribute("http.response.status_code", status)
  span.attribute("trigate.request_id", id)
  if (error !== undefined) span.attribute("error.type", error)
  span.end(currentNanos(context), status >= 500 ? Exit.fail(error ?? `HTTP ${status}`) : Exit.void)
}
