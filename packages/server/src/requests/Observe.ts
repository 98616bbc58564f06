/**
 * Observes each request of the gateway's routes, and each request below the gateway's prefix that matches no route.
 *
 * Assigns an ID to the request, counts it as in flight, reads its `Cache-Control`, and responds to preflights. Adds
 * headers to the response, counts the response in the metrics, and writes it to the access log. The response to a
 * request that matches no route, or that fails because of a defect of the gateway, is a problem document. Other routes
 * of the server are not affected.
 */
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Freshness, MaxAge } from "@trigate/upstream/cache/Freshness"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { constUndefined } from "effect/Function"
import * as HttpMiddleware from "effect/http/HttpMiddleware"
import * as HttpRouter from "effect/http/HttpRouter"
import { HttpServerError } from "effect/http/HttpServerError"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Random from "effect/Random"
import * as Struct from "effect/Struct"
import type { unhandled } from "effect/Types"
import { GatewayStatus } from "../GatewayStatus.ts"
import { Drain } from "../process/Drain.ts"
import { Load } from "../process/Load.ts"
import * as Pipelining from "../process/Pipelining.ts"
import * as NotFoundRoutes from "../routes/NotFoundRoutes.ts"
import * as Cors from "./Cors.ts"
import * as Hosts from "./Hosts.ts"
import { header, sentTarget } from "./IncomingRequest.ts"
import { LiveRequests } from "./LiveRequests.ts"
import * as ProblemResponse from "./ProblemResponse.ts"
import * as RequestRecord from "./RequestRecord.ts"
import * as RequestSpan from "./RequestSpan.ts"

// @effect-diagnostics-next-line nodeBuiltinImport:off -- the response is Node's own
import { ServerResponse } from "node:http"
import * as AccessLog from "./AccessLog.ts"

/** Options for observing requests. */
export interface Options extends NotFoundRoutes.Options {
  /** The `Host` values that are accepted in addition to loopback hosts. */
  readonly hosts: Hosts.Hosts | undefined
  /** The origins whose pages are allowed to read responses, and to send actions, transactions and messages. */
  readonly origins: Cors.Origins | undefined
}

const plainId = /^[A-Za-z0-9._-]{1,64}$/u

// the caller's `x-request-id` if it is plain text, otherwise a random prefix of this process and a counter
const makeIds = Effect.map(Random.nextIntBetween(0, 36 ** 6), (seed) => {
  const prefix = seed.toString(36).padStart(6, "0")
  let count = 0
  return (given: string | undefined): string =>
    given !== undefined && plainId.test(given) ? given : `${prefix}-${(count++).toString(36)}`
})

const notCached = /(?:^|[\s,])(?:no-cache|no-store|max-age=0+)(?:$|[\s,;])/iu
const someAge = /(?:^|[\s,])max-age=(?<seconds>[0-9]{1,9})(?:$|[\s,;])/iu

/** Limits the age of cached data to the maximum in the caller's `Cache-Control` (RFC 9111, section 5.2.1). */
const withFreshness = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  cacheControl: string | undefined
): Effect.Effect<A, E, R> => {
  if (cacheControl === undefined) return effect
  if (notCached.test(cacheControl)) return Effect.provideService(effect, Freshness, "none")
  const seconds = someAge.exec(cacheControl)?.groups?.["seconds"]
  if (seconds === undefined) return effect
  return Effect.provideService(Effect.provideService(effect, Freshness, "block"), MaxAge, Number(seconds))
}

const isRouteNotFound = (error: unknown): boolean =>
  error instanceof HttpServerError && error.reason._tag === "RouteNotFound"

const titles: { readonly [status: number]: string } = { 413: "Payload Too Large" }

const withBody = (response: HttpServerResponse.HttpServerResponse): HttpServerResponse.HttpServerResponse =>
  response.status >= 400 && response.body._tag === "Empty"
    ? ProblemResponse.plainProblem(response.status, titles[response.status] ?? "Error", "The request was refused")
    : response

const internalError = ProblemResponse.plainProblem(
  500,
  "Internal Server Error",
  "Internal error of the gateway; its log contains the request id"
)

/** Headers that forbid browsers to execute, frame or sniff a response. */
const protective = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "cache-control": "no-store"
}

const protectiveNames = Struct.keys(protective)

const otherHost = (url: string): HttpServerResponse.HttpServerResponse =>
  ProblemResponse.plainProblem(
    421,
    "Misdirected Request",
    "This gateway does not serve the requested host; TRIGATE_HOSTS lists the hosts that it serves besides localhost",
    { path: url.split("?", 1)[0] ?? "" }
  )

const sandboxHeader = "x-trigate-sandbox"

/** The response to a request that only a sandbox may serve, such as a paper order or a request of a test. */
const notASandbox = (url: string): HttpServerResponse.HttpServerResponse =>
  ProblemResponse.plainProblem(
    412,
    "Precondition Failed",
    `This gateway is not a sandbox, and the request has the header ${sandboxHeader}; nothing was sent. Use a gateway that ` +
      "was started with trigate sandbox, or omit the header",
    { path: url.split("?", 1)[0] ?? "" }
  )

/** The handler of a request. */
export type Handled = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  HttpServerError | unhandled,
  HttpServerRequest.HttpServerRequest
>

const notFound = (cause: Cause.Cause<HttpServerError | unhandled>): boolean =>
  cause.reasons.some((reason) => reason._tag === "Fail" && isRouteNotFound(reason.error))

/**
 * Effect's request, if Effect's HTTP server has made a span for it.
 *
 * Effect ends the span after the response, and records the URL of the request in the span. The URL may contain a
 * caller's key, so {@link conceal} replaces it.
 */
const TracedRequest = Context.Reference<HttpServerRequest.HttpServerRequest | undefined>(
  "@trigate/server/requests/Observe/TracedRequest",
  { defaultValue: constUndefined }
)

/** Returns Node's response object for an HTTP/1 request. */
const nodeResponse = (request: HttpServerRequest.HttpServerRequest): ServerResponse | undefined => {
  const response = NodeHttpServerRequest.toServerResponse(request)
  return response instanceof ServerResponse ? response : undefined
}

/**
 * Replaces the URL in the server's span with the path of the route, so that the span contains no text from the caller.
 */
const conceal = (traced: HttpServerRequest.HttpServerRequest, path: string): void => {
  Object.defineProperty(traced, "url", { value: path })
}

/** Functions that observe the requests of one gateway: they count, log and trace each request. */
export interface Observed {
  /** Makes the record of a request, which the context contains as `CurrentRequestRecord` while the request is served. */
  readonly record: (head: RequestRecord.Head) => RequestRecord.RequestRecord
  /**
   * Observes a request from its head to its response, which `write` makes from the route's response and the outgoing headers.
   *
   * A defect of the gateway becomes a response. Fails only if the client has disconnected or the gateway shuts down.
   */
  readonly observe: <A, R>(
    record: RequestRecord.RequestRecord,
    handled: Effect.Effect<HttpServerResponse.HttpServerResponse, HttpServerError | unhandled, R>,
    write: (response: HttpServerResponse.HttpServerResponse, headers: { readonly [name: string]: string }) => A
  ) => Effect.Effect<A, HttpServerError | unhandled, R>
  /** Observes a route of the gateway. */
  readonly route: (handled: Handled) => Handled
  /** Wraps the server's app: responds to requests below the gateway's prefix that match no route. */
  readonly server: (app: Handled) => Handled
}

/** Maximum size in bytes of a response that does not count as unread. A connection has only a few such responses. */
const smallAnswer = 16 * 1024

/** Makes the functions that observe the requests of one gateway. */
export const make = Effect.fnUntraced(function*({ hosts, origins, ...routes }: Options) {
  const { prefix } = routes
  const unmatched = NotFoundRoutes.make(routes)
  const { write } = yield* AccessLog.AccessLog
  const { note, watch } = yield* LiveRequests
  const { sandbox } = yield* GatewayStatus
  const drain = yield* Drain
  const load = yield* Load
  const nextId = yield* makeIds
  const cors = origins === undefined ? undefined : Cors.make(origins)
  const isServed = Hosts.check(hosts)
  const foreign = Cors.foreignTo(origins)

  const fault = (cause: Cause.Cause<unknown>, { id }: RequestRecord.RequestRecord) =>
    Effect.as(
      Effect.annotateLogs(Effect.logError("Internal error while serving a request", cause), { id }),
      internalError
    )

  const unanswered = (cause: Cause.Cause<HttpServerError | unhandled>, record: RequestRecord.RequestRecord) => {
    if (Cause.hasInterrupts(cause)) return Effect.failCause(cause)
    if (!notFound(cause)) return fault(cause, record)
    return Exit.succeed(unmatched.answer({ headers: record.headers, url: record.target?.() ?? record.url }))
  }

  const responseHeaders = (
    { age, headers, id = "", quota }: RequestRecord.RequestRecord,
    answer: HttpServerResponse.HttpServerResponse
  ): { readonly [name: string]: string } => {
    // the route's headers come first in the response, and a page's own values replace two of the protective headers
    const all: { [name: string]: string } = { ...answer.headers }
    for (const name of protectiveNames) all[name] ??= protective[name]
    all["x-request-id"] = id
    if (age !== undefined) all["age"] = String(age)
    if (quota !== undefined) {
      all["ratelimit-policy"] = quota.policy
      all["ratelimit"] = quota.limit
    }
    if (sandbox) all[sandboxHeader] = "true"
    // an idle keep-alive connection would delay the shutdown
    if (drain.isDraining()) all["connection"] = "close"
    return cors === undefined ? all : { ...all, ...cors.headersFor(headers, answer.headers["vary"]) }
  }

  /** Records a response in the metrics, the access log and the console's live view, and ends its span. */
  const noteAnswer = (
    context: Context.Context<never>,
    record: RequestRecord.RequestRecord,
    start: number,
    { body, status }: HttpServerResponse.HttpServerResponse
  ) => {
    const { id = "", method, response, span } = record
    const time = Context.get(context, Clock.Clock).currentTimeMillisUnsafe()
    const milliseconds = time - start
    RequestRecord.count(context, record, status, milliseconds)
    const isWatched = time < watch.until
    // successful probes are not logged, because they arrive every few seconds
    const isQuiet = status < 400 && record.route.startsWith("health.")
    if (!isQuiet && (write !== undefined || isWatched)) {
      const entry = {
        time,
        id,
        method,
        route: record.route,
        status,
        milliseconds,
        caller: record.caller?.id,
        key: record.caller?.key,
        operations: record.operations.map(({ operation }) => operation),
        error: RequestRecord.recordedError(record),
        traceId: span?.traceId
      }
      write?.(entry)
      if (isWatched) note(entry)
    }
    if (body._tag === "Uint8Array" && body.contentLength > smallAnswer && response !== undefined) {
      response.once("close", load.unread(body.contentLength, () => response.req.socket.destroy()))
    }
    if (span !== undefined) RequestSpan.end(span, context, { id, status, error: RequestRecord.recordedError(record) })
  }

  /** Returns the response to a request that is not for this gateway; `undefined` for any other request. */
  const misdirected = (
    { headers, url }: RequestRecord.RequestRecord,
    host: string | undefined,
    context: Context.Context<never>
  ): HttpServerResponse.HttpServerResponse | undefined => {
    if (!isServed(context, host)) return otherHost(url)
    return !sandbox && headers[sandboxHeader] !== undefined ? notASandbox(url) : undefined
  }

  const record: Observed["record"] = (head) => RequestRecord.make(load, nextId(header(head, "x-request-id")), head)

  const observe: Observed["observe"] = (record, handled, writeAnswer) =>
    Effect.contextWith((context) => {
      const { headers } = record
      const start = Context.get(context, Clock.Clock).currentTimeMillisUnsafe()
      const host = header(record, "host") ?? header(record, ":authority")
      if (headers["origin"] !== undefined || headers["sec-fetch-site"] !== undefined) {
        record.foreign = foreign(headers, host)
      }
      const answered = (answer: HttpServerResponse.HttpServerResponse) => {
        const whole = withBody(answer)
        noteAnswer(context, record, start, whole)
        return writeAnswer(whole, responseHeaders(record, whole))
      }
      const refusal = misdirected(record, host, context)
      const served = refusal === undefined
        ? withFreshness(handled, header(record, "cache-control"))
        : Effect.succeed(refusal)
      const leave = drain.enter()
      return Effect.onExitPrimitive(
        Effect.matchCauseEffect(served, {
          onFailure: (cause) => Effect.map(unanswered(cause, record), answered),
          onSuccess: (answer) => Effect.succeed(answered(answer))
        }),
        () => {
          leave()
          record.admitted?.end()
          if (record.body !== undefined) load.release(record.body)
          return undefined
        }
      )
    })

  /** Observes a request from Effect's HTTP adapter. */
  const observed = (handled: Handled): Handled =>
    Effect.withFiber((fiber) => {
      const { context } = fiber
      const request = Context.getUnsafe(context, HttpServerRequest.HttpServerRequest)
      const response = nodeResponse(request)
      if (response !== undefined && response.socket === null && !Pipelining.admits(response)) return Effect.interrupt
      const traced = fiber.cache.span === undefined ? undefined : fiber.getRef(TracedRequest)
      const { headers, method, url } = request
      const made = record({ method, headers, url, target: () => sentTarget(request), response })
      const answered = observe(
        made,
        Effect.provideService(handled, RequestRecord.CurrentRequestRecord, made),
        HttpServerResponse.setHeaders
      )
      return traced === undefined ? answered : Effect.onExitPrimitive(answered, () => {
        const taken = Context.getOrUndefined(context, HttpRouter.RouteContext)
        conceal(traced, taken?.route.path ?? `${prefix}/*`)
        return undefined
      })
    })

  const unrouted = observed(
    Effect.map(HttpServerRequest.HttpServerRequest, (request) => cors?.preflight(request) ?? unmatched.answer(request))
  )

  const isBelow = ({ url }: HttpServerRequest.HttpServerRequest): boolean =>
    // not every request target is a path: the target of `OPTIONS` can be `*`
    prefix === "" || (url.startsWith(prefix) && /^(?:[/?]|$)/u.test(url.slice(prefix.length)))

  return {
    record,
    observe,
    // Effect's own request log would contain paths
    route: (handled) => HttpMiddleware.withLoggerDisabled(observed(handled)),
    server: (app) => {
      const answered = Effect.catchCause(app, (cause) =>
        Effect.withFiber((fiber) => {
          const request = Context.getUnsafe(fiber.context, HttpServerRequest.HttpServerRequest)
          const isUnrouted = Context.getOrUndefined(fiber.context, HttpRouter.RouteContext) === undefined
          return isUnrouted && notFound(cause) && isBelow(request)
            ? HttpMiddleware.withLoggerDisabled(unrouted)
            : Effect.failCause(cause)
        }))
      return Effect.withFiber((fiber) => {
        const request = Context.getUnsafe(fiber.context, HttpServerRequest.HttpServerRequest)
        return fiber.cache.span === undefined ? answered : Effect.provideService(answered, TracedRequest, request)
      })
    }
  } satisfies Observed
})
