/**
 * Observes each request of the gateway's routes: its metrics, its span, its line of the access log, its `Host` and its
 * origin.
 *
 * For the live view, requests are recorded only while a console page polls; otherwise a request costs one comparison. The records are
 * access log entries: without bodies and paths, and with only the prefix of a key.
 *
 * A page can make its own name resolve to 127.0.0.1 (DNS rebinding). To the browser, a gateway at that address has the
 * page's own origin, so the page could read every response. Only the `Host` header shows that such a request is for
 * another site.
 *
 * Effect's own middleware responds to every `OPTIONS` request, including those of unknown origins (decision 23). Here a
 * request of an unknown origin is handled as usual, but without CORS headers, so the browser does not show the response
 * to the page.
 *
 * Effect's own HTTP tracer would record the whole URL and the headers of a request. Both can contain a caller's key.
 *
 * Assigns an ID to the request, counts it as in flight, reads its `Cache-Control` and `Prefer`, and responds to preflights. Adds
 * headers to the response, counts the response in the metrics, and writes it to the access log. The response to a
 * request that matches no route, or that fails because of a defect of the gateway, is a problem document. Other routes
 * of the server are not affected.
 */
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { addMillis, longAgo, millisBetween, type MonotonicTime, monotonicTime } from "@trigate/domain/encoding/Encoding"
import { upstreamHeader } from "@trigate/domain/operations/Operation"
import { Freshness, MaxAge } from "@trigate/upstream/cache/ResponseCache"
import { MaxWait } from "@trigate/upstream/limits/RateLimiter"
import { isTraced } from "@trigate/upstream/unstable/attempts/Attempts"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { constUndefined } from "effect/Function"
import * as Headers from "effect/http/Headers"
import * as HttpMiddleware from "effect/http/HttpMiddleware"
import * as HttpRouter from "effect/http/HttpRouter"
import { HttpServer } from "effect/http/HttpServer"
import { HttpServerError } from "effect/http/HttpServerError"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as HttpTraceContext from "effect/http/HttpTraceContext"
import * as Layer from "effect/Layer"
import * as NetAddress from "effect/net/NetAddress"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Queue from "effect/Queue"
import * as Random from "effect/Random"
import * as References from "effect/References"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import * as Struct from "effect/Struct"
import * as Tracer from "effect/Tracer"
import type { unhandled } from "effect/Types"
// @effect-diagnostics-next-line nodeBuiltinImport:off -- the response is Node's own
import { ServerResponse } from "node:http"
import { GatewayStatus } from "../Chains.ts"
import { Drain, Load } from "../process/Load.ts"
import * as NotFoundRoutes from "../routes/NotFoundRoutes.ts"
import * as Pipelining from "./Listener.ts"
import * as Request from "./Request.ts"
import { header, sentTarget } from "./Request.ts"
import type { IncomingRequest, RequestRecord } from "./Request.ts"

/** The access log's record of one request. */
export interface RequestLogEntry {
  /** The time at which the request ended, in milliseconds since 1970. */
  readonly time: number
  readonly id: string
  readonly method: string
  readonly route: string
  readonly status: number
  readonly milliseconds: number
  /** Name or address of the caller. */
  readonly caller: string | undefined
  /** Prefix of the caller's key. */
  readonly key: string | undefined
  readonly operations: ReadonlyArray<string>
  readonly error: string | undefined
  /** The ID of the request's trace; absent without a tracer. */
  readonly traceId: string | undefined
  /** Statistics of the request's WebSocket, recorded when the WebSocket is closed. Absent for other requests. */
  readonly socket?: {
    readonly closed: string
    readonly received: number
    readonly sent: number
    readonly conflated: number
  }
}

/**
 * The access log. `write` does not block; if entries arrive faster than they can be written, the oldest entries are
 * dropped.
 *
 * @since 0.1.0
 * @category services
 */
export class AccessLog extends Context.Service<AccessLog, {
  /** Writes an entry. Absent if there is no access log, so that no entries are built. */
  readonly write?: (entry: RequestLogEntry) => void
}>()("@trigate/server/requests/Observe/AccessLog") {}

/**
 * Provides an access log that writes nothing.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerOff: Layer.Layer<AccessLog> = Layer.succeed(AccessLog, {})

const backlog = 8192

/** A line of the access log or of the program's log: three fields that every line has, then further fields. */
export interface Line {
  /** Milliseconds since 1970. */
  readonly time: number
  readonly level: string
  readonly message: string
  readonly [member: string]: unknown
}

/** Formats a line as JSON. */
export const jsonLine = ({ level, message, time, ...members }: Line): string =>
  JSON.stringify({ time, level, message, ...members })

/** The format of access log lines. Default: JSON. */
export const LineFormat = Context.Reference<(line: Line) => string>("@trigate/server/LineFormat", {
  defaultValue: () => jsonLine
})

/**
 * Provides an access log that writes to standard output. Closing the layer's scope writes the queued lines.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<AccessLog, never, Stdio.Stdio> = Layer.effect(
  AccessLog,
  Effect.gen(function*() {
    const stdio = yield* Stdio.Stdio
    const format = yield* LineFormat
    const formatLine = ({ time, ...entry }: RequestLogEntry) =>
      `${format({ time, level: "info", message: "request", ...entry })}\n`
    const lines = yield* Queue.sliding<string, Cause.Done>(backlog)
    const writer = yield* Effect.forkDetach(Effect.ignore(Stream.run(Stream.fromQueue(lines), stdio.stdout())))
    yield* Effect.addFinalizer(() => Effect.andThen(Queue.end(lines), Fiber.await(writer)))
    return AccessLog.of({ write: (entry) => void Queue.offerUnsafe(lines, formatLine(entry)) })
  })
)

/** A request and its sequence number. */
export interface LiveRequest extends RequestLogEntry {
  readonly sequence: number
}

/**
 * The latest requests of one gateway.
 *
 * @since 0.1.0
 * @category services
 */
export class LiveRequests extends Context.Service<LiveRequests, {
  /** The time at which recording ends. Later requests are not recorded. */
  readonly watch: { until: MonotonicTime }
  readonly note: (entry: RequestLogEntry) => void
  /**
   * Returns the requests recorded after a sequence number, oldest first. Extends the recording to 10 seconds from now.
   */
  readonly after: (sequence: number) => Effect.Effect<ReadonlyArray<LiveRequest>>
}>()("@trigate/server/requests/Observe/LiveRequests") {}

/** Milliseconds for which recording continues after a poll. */
const attention = 10_000

/** Maximum number of requests that are recorded for the console. Each further request replaces the oldest one. */
const most = 500

const makeLiveRequests = Effect.map(Clock.currentTimeMillis, (started) => {
  const watch = { until: longAgo }
  // starts at the current time, so that sequence numbers also increase across a restart
  let last = started
  let noted: Array<LiveRequest> = []
  return LiveRequests.of({
    watch,
    note: (entry) => {
      // excludes requests that the console sends continuously
      if (/^(?:admin|health)\./u.test(entry.route)) return
      noted.push({ ...entry, sequence: last += 1 })
      if (noted.length > most) noted.shift()
    },
    after: (sequence) =>
      Effect.map(Clock.Clock, (clock) => {
        const now = monotonicTime(clock)
        // drops the requests from before a pause in recording: with them, the list would look as if it had no gap
        if (now >= watch.until) noted = []
        watch.until = addMillis(now, attention)
        return noted.filter((each) => each.sequence > sequence)
      })
  })
})

/**
 * The latest requests of this process.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerLiveRequests: Layer.Layer<LiveRequests> = Layer.effect(LiveRequests, makeLiveRequests)

/**
 * The hosts that a gateway serves in addition to loopback hosts: a list of host names, each with any port, or `*` for
 * any host.
 */
export type Hosts = ReadonlyArray<string> | "*"

// names that a browser always resolves to the machine on which it runs (RFC 6761, section 6.3)
const loopback = /^(?:(?:[a-z0-9_-]+\.)*localhost\.?|127(?:\.[0-9]{1,3}){3}|\[::1\])(?::[0-9]*)?$/iu

const isLoopback = (address: NetAddress.SocketAddress): boolean =>
  NetAddress.isInetAddress(address) && NetAddress.isLoopback(address.address)

/** Returns whether a configured listening address is reachable from this machine only. */
export const isOwnMachine = (host: string): boolean => loopback.test(host.includes(":") ? `[${host}]` : host)

/** Normalizes a host as browsers do: lower case, without its port. */
const hostName = (host: string): string => host.replace(/:[0-9]*$/u, "").toLowerCase()

/**
 * Makes the `Host` check (`:authority` in HTTP/2) for a gateway that listens on an address.
 *
 * Loopback hosts are always accepted. A request without the header is also accepted: it is not from a browser, because
 * browsers always send the header. If the gateway listens on a loopback address, or if a list of hosts is configured,
 * the only other accepted hosts are those of the list. Otherwise every host is accepted.
 */
export const makeHosts = (address: NetAddress.SocketAddress | undefined, hosts: Hosts | undefined) => {
  if (hosts === "*" || (hosts === undefined && (address === undefined || !isLoopback(address)))) return () => true
  const known = new Set(hosts?.map(hostName))
  return (host: string | undefined): boolean => host === undefined || loopback.test(host) || known.has(hostName(host))
}

/**
 * Makes the `Host` check for the server's address, which is in the context. Caches the result for the previous host,
 * because almost all requests have the same host.
 */
export const check = (hosts: Hosts | undefined) => {
  let serves: ReturnType<typeof makeHosts> | undefined
  let usual: string | undefined
  return (context: Context.Context<never>, host: string | undefined): boolean => {
    if (serves !== undefined && host === usual) return true
    serves ??= makeHosts(Option.getOrUndefined(Context.getOption(context, HttpServer))?.address, hosts)
    if (!serves(host)) return false
    usual = host
    return true
  }
}

/** The origins whose pages are allowed to read responses: a list, or `*` for any origin. */
export type Origins = ReadonlyArray<string> | "*"

/**
 * The headers that a page is allowed to send: the headers that the gateway reads, and `*` for all others.
 *
 * Libraries add their own headers (`x-ton-client-version`, trace headers), which are not forwarded. For a request
 * without credentials, `*` allows every header except `Authorization`, which can contain a caller's key.
 */
const sent = [
  "authorization",
  "cache-control",
  "content-type",
  "x-api-key",
  "x-request-id",
  "x-trigate-expected-signer",
  "*"
].join(", ")

/** The response headers that a page is allowed to read in addition to the CORS-safelisted ones, and their meaning. */
export const readableHeaders = {
  age: "Age of a cached response in seconds",
  ratelimit: "The rest of the caller's quota",
  "ratelimit-policy": "The caller's quota",
  "retry-after": "Seconds until the same request can succeed",
  "x-request-id": "The ID of the request in the gateway's logs; yours, if you send one",
  "x-trigate-candles": "Where the bars come from, if some were stored",
  "x-trigate-sandbox": "`true`: the response comes from a sandbox",
  "x-trigate-signer": "The address that signed the action",
  "x-trigate-upstream": "The source of the response",
  "x-trigate-warning": "A problem that did not prevent the request"
} as const

const read = Object.keys(readableHeaders).join(", ")

const preflightHeaders = {
  "access-control-allow-methods": "GET, POST",
  "access-control-allow-headers": sent,
  "access-control-max-age": "600"
}

const varied = (by: string | undefined): string => by === undefined ? "origin" : `${by}, origin`

const allowing = (origins: Origins) => {
  const known = new Set(origins === "*" ? [] : origins)
  return (origin: string | undefined): string | undefined => {
    if (origin === undefined) return undefined
    return origins === "*" ? "*" : known.has(origin) ? origin : undefined
  }
}

/**
 * Makes a function that returns the origin of the requesting page, if this origin is neither the gateway's own nor an
 * allowed one. If the page is of another site, but its origin is unknown, the function returns `another site`. For any
 * other request, it returns `undefined`.
 *
 * A page of another origin cannot read the response, but its request would take effect. Browsers send the origin with
 * every `POST`, and `Sec-Fetch-Site` with other requests.
 */
export const foreignTo = (origins: Origins | undefined) => {
  const allowed = allowing(origins ?? [])
  return (headers: IncomingRequest["headers"], host: string | undefined): string | undefined => {
    const origin = header({ headers }, "origin")
    if (origin === undefined) return headers["sec-fetch-site"] === "cross-site" ? "another site" : undefined
    const isOwn = origin === `http://${host}` || origin === `https://${host}`
    return isOwn || allowed(origin) !== undefined ? undefined : origin
  }
}

/** Makes the functions that respond to preflights and add CORS headers, for the allowed origins. */
export const makeCors = (origins: Origins) => {
  const allowed = allowing(origins)
  return {
    /** Returns the response to a preflight of an allowed origin; `undefined` for any other request. */
    preflight: (
      { headers, method }: HttpServerRequest.HttpServerRequest
    ): HttpServerResponse.HttpServerResponse | undefined =>
      method === "OPTIONS" && headers["access-control-request-method"] !== undefined &&
        allowed(headers["origin"]) !== undefined
        ? HttpServerResponse.empty({ status: 204, headers: preflightHeaders })
        : undefined,
    /** Returns the CORS headers of a response; `vary` is the response's own `Vary`. */
    headersFor: (
      { origin: asking }: { readonly [name: string]: string | ReadonlyArray<string> | undefined },
      vary: string | undefined
    ): { readonly [name: string]: string } => {
      const origin = allowed(Predicate.isString(asking) ? asking : undefined)
      return {
        // a cache must not serve the response for one origin to another origin
        ...(origins === "*" ? {} : { vary: varied(vary) }),
        ...(origin === undefined
          ? {}
          : { "access-control-allow-origin": origin, "access-control-expose-headers": read })
      }
    }
  }
}

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
  context: Context.Context<never>,
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
  record: Request.RequestRecord,
  route: string,
  context: Context.Context<never>,
  self: Effect.Effect<A, E, R>,
  path?: string
): Effect.Effect<A, E, R> => {
  record.route = route
  if (!isTraced(context)) return self
  const routed = Context.getOrUndefined(context, HttpRouter.RouteContext)?.route.path
  return within(record, context, routed ?? path, self)
}

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

/** Options for observing requests. */
export interface Options extends NotFoundRoutes.Options {
  /** The `Host` values that are accepted in addition to loopback hosts. */
  readonly hosts: Hosts | undefined
  /** The origins whose pages are allowed to read responses, and to send actions, transactions and messages. */
  readonly origins: Origins | undefined
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

const preferredWait = /(?:^|[\s,])wait\s*=\s*(?<seconds>[0-9]{1,9})(?:$|[\s,;])/iu

/** Limits the wait for rate limits to the maximum in the caller's `Prefer` (RFC 7240, section 4.3). */
const withMaxWait = <A, E, R>(effect: Effect.Effect<A, E, R>, prefer: string | undefined): Effect.Effect<A, E, R> => {
  const seconds = prefer === undefined ? undefined : preferredWait.exec(prefer)?.groups?.["seconds"]
  return seconds === undefined ? effect : Effect.provideService(effect, MaxWait, Number(seconds) * 1000)
}

const isRouteNotFound = (error: unknown): boolean =>
  error instanceof HttpServerError && error.reason._tag === "RouteNotFound"

const titles: { readonly [status: number]: string } = { 413: "Payload Too Large" }

const withBody = (response: HttpServerResponse.HttpServerResponse): HttpServerResponse.HttpServerResponse =>
  response.status >= 400 && response.body._tag === "Empty"
    ? Request.plainProblem(response.status, titles[response.status] ?? "Error", "The request was refused")
    : response

const internalError = Request.plainProblem(
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
  Request.plainProblem(
    421,
    "Misdirected Request",
    "This gateway does not serve the requested host; TRIGATE_HOSTS lists the hosts that it serves besides localhost",
    { path: url.split("?", 1)[0] ?? "" }
  )

const sandboxHeader = "x-trigate-sandbox"

/** The response to a request that only a sandbox may serve, such as a paper order or a request of a test. */
const notASandbox = (url: string): HttpServerResponse.HttpServerResponse =>
  Request.plainProblem(
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
  readonly record: (head: Request.Head) => Request.RequestRecord
  /**
   * Observes a request from its head to its response, which `write` makes from the route's response and the outgoing
   * headers. `handle` is called in the request's fiber, unless the request is not for this gateway.
   *
   * A defect of the gateway becomes a response. Fails only if the client has disconnected or the gateway shuts down.
   */
  readonly observe: <A, R>(
    record: Request.RequestRecord,
    handle: (
      context: Context.Context<never>
    ) => Effect.Effect<HttpServerResponse.HttpServerResponse, HttpServerError | unhandled, R>,
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
  const { write } = yield* AccessLog
  const { note, watch } = yield* LiveRequests
  const { sandbox } = yield* GatewayStatus
  const drain = yield* Drain
  const load = yield* Load
  const clock = yield* Clock.Clock
  const nextId = yield* makeIds
  const count = Request.makeCount(yield* Effect.context())
  const cors = origins === undefined ? undefined : makeCors(origins)
  const isServed = check(hosts)
  const foreign = foreignTo(origins)

  const fault = (cause: Cause.Cause<unknown>, { id }: Request.RequestRecord) =>
    Effect.as(
      Effect.annotateLogs(Effect.logError("Internal error while serving a request", cause), { id }),
      internalError
    )

  const unanswered = (cause: Cause.Cause<HttpServerError | unhandled>, record: Request.RequestRecord) => {
    if (Cause.hasInterrupts(cause)) return Effect.failCause(cause)
    if (!notFound(cause)) return fault(cause, record)
    return Exit.succeed(unmatched.answer({ headers: record.headers, url: record.target?.() ?? record.url }))
  }

  const responseHeaders = (
    { age, headers, id = "", quota, upstream }: Request.RequestRecord,
    answer: HttpServerResponse.HttpServerResponse
  ): { readonly [name: string]: string } => {
    // the route's headers come first in the response, and a page's own values replace two of the protective headers
    const all: { [name: string]: string } = { ...answer.headers }
    for (const name of protectiveNames) all[name] ??= protective[name]
    all["x-request-id"] = id
    if (upstream !== undefined) all[upstreamHeader] = upstream
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
    record: Request.RequestRecord,
    start: MonotonicTime,
    { body, status }: HttpServerResponse.HttpServerResponse
  ) => {
    const { id = "", method, response, span } = record
    const now = monotonicTime(clock)
    const milliseconds = Math.round(millisBetween(start, now))
    count(record, status, milliseconds)
    const isWatched = now < watch.until
    // successful probes are not logged, because they arrive every few seconds
    const isQuiet = status < 400 && record.route.startsWith("health.")
    if (!isQuiet && (write !== undefined || isWatched)) {
      const entry = {
        time: clock.currentTimeMillisUnsafe(),
        id,
        method,
        route: record.route,
        status,
        milliseconds,
        caller: record.caller?.id,
        key: record.caller?.key,
        operations: record.operations.map(({ operation }) => operation),
        error: Request.recordedError(record),
        traceId: span?.traceId
      }
      write?.(entry)
      if (isWatched) note(entry)
    }
    if (body._tag === "Uint8Array" && body.contentLength > smallAnswer && response !== undefined) {
      response.once("close", load.unread(body.contentLength, () => response.req.socket.destroy()))
    }
    if (span !== undefined) end(span, context, { id, status, error: Request.recordedError(record) })
  }

  /** Returns the response to a request that is not for this gateway; `undefined` for any other request. */
  const misdirected = (
    { headers, url }: Request.RequestRecord,
    host: string | undefined,
    context: Context.Context<never>
  ): HttpServerResponse.HttpServerResponse | undefined => {
    if (!isServed(context, host)) return otherHost(url)
    return !sandbox && headers[sandboxHeader] !== undefined ? notASandbox(url) : undefined
  }

  const record: Observed["record"] = (head) => Request.make(load, nextId(header(head, "x-request-id")), head)

  const observe: Observed["observe"] = (record, handle, writeAnswer) =>
    Effect.contextWith((context) => {
      const { headers } = record
      const start = monotonicTime(clock)
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
        ? withMaxWait(withFreshness(handle(context), header(record, "cache-control")), header(record, "prefer"))
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
        () => Effect.provideService(handled, Request.CurrentRequestRecord, made),
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
