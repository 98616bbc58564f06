/**
 * What the gateway notes about a request on its way, and what becomes of the notes at its end: metrics and the access log.
 *
 * All but the caller comes from a closed set, so that it can be a metric label. None is a text that a caller wrote: not the path
 * either, which may hold an endpoint key.
 */
import type { Fields } from "@trigate/callers/Quotas"
import type { Caller } from "@trigate/domain/Caller"
import type { Declared, Label } from "@trigate/domain/DeclaredMetric"
import { NotPermitted } from "@trigate/domain/errors/CallerError"
import type { QuotaExceeded } from "@trigate/domain/errors/CallerError"
import * as Continuation from "@trigate/domain/operations/Continuation"
import type * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { constVoid } from "effect/Function"
import * as HttpRouter from "effect/http/HttpRouter"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import type * as Redacted from "effect/Redacted"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import type * as Tracer from "effect/Tracer"
import type { Held, Load } from "../process/Load.ts"
import { unlimited } from "../process/Load.ts"
import { metrics } from "../process/Metrics.ts"
import * as RequestSpan from "./RequestSpan.ts"

/** A request that is served, and is counted against the quota of its caller. */
export interface Admitted {
  readonly caller: Caller
  /** Provides the caller to an effect of the request, and what keeps the request counted while work outlives it. */
  readonly provide: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** Counts further calls of the request, or fails and counts none of them; absent where no quota counts them. */
  readonly countMore?: (calls: number) => Effect.Effect<void, QuotaExceeded>
  /** Counts what the request is worth in further requests, of which none counts as concurrent; see `countMore`. */
  readonly charge?: (requests: number) => Effect.Effect<void, QuotaExceeded>
  /** Called when the request has ended; does nothing the second time. */
  readonly end: () => void
}

/** What is known of a request before it is answered. */
export interface Head {
  readonly method: string
  readonly headers: { readonly [name: string]: string | ReadonlyArray<string> | undefined }
}

/** The facts of one request. */
export interface RequestFacts extends Head {
  /** The id of the request; absent where nobody observes it. */
  readonly id: string | undefined
  /** Name of the contract's endpoint (`exchange.submit`), or `other`. */
  route: string
  /** From whom it comes; nothing where its route asks for no caller, and where none is known. */
  caller: Caller | undefined
  /** Declared operations of the request with the outcome of each: `ok`, `upstream_error`, or the tag of a typed error. */
  readonly operations: Array<{ readonly operation: string; readonly outcome: string }>
  /** Tag of the typed error that the whole request ended in. */
  error: string | undefined
  /** What the answer says of the caller's quota of requests; nothing where it has none. */
  quota: Fields | undefined
  /** Age in seconds of the oldest cached response that went into the answer; nothing where all came from upstream. */
  age: number | undefined
  /** The origin of the foreign page that asks, if one does: see `Cors.foreignTo`. */
  foreign: string | undefined
  /** The span of the request; nothing where the program has no tracer or the route has no spans. */
  span: Tracer.Span | undefined
  readonly load: Load["Service"]
  /** The memory that the body of the request takes; nothing before it is read. */
  body: Held | undefined
  /** For whom the request is served, where that was decided before it came to its route. */
  admitted: Admitted | undefined
  /** The key that was checked, where the ordinary route checked one. */
  key: Redacted.Redacted | undefined
  /** Ends the request before its route does: a WebSocket outlives it. */
  release: () => void
}

/** Notes the age of a response. */
export const noteAge = (facts: RequestFacts, age: number | undefined): void => {
  if (age !== undefined) facts.age = Math.max(facts.age ?? 0, age)
}

/** The facts of a request that has not reached a route yet, where so much is done at once. */
export const make = (
  load: Load["Service"] = unlimited,
  id?: string,
  { headers, method }: Head = { method: "", headers: {} }
): RequestFacts => ({
  method,
  headers,
  id,
  route: "other",
  caller: undefined,
  operations: [],
  error: undefined,
  quota: undefined,
  age: undefined,
  foreign: undefined,
  span: undefined,
  load,
  body: undefined,
  admitted: undefined,
  key: undefined,
  release: constVoid
})

/** The facts of the request that the fiber serves. Every route of a gateway has its own: see `Observe`. */
export const CurrentRequestFacts = Context.Reference<RequestFacts>("@trigate/server/CurrentRequestFacts", {
  defaultValue: () => make()
})

/** The refusal of what a foreign page asks for; nothing for any other request. */
export const refusalOf = ({ foreign }: RequestFacts): NotPermitted | undefined =>
  foreign === undefined ? undefined : new NotPermitted({
    missing: "origins",
    needed: foreign.slice(0, 128),
    detail: "A page of another site may not sign or send; TRIGATE_CORS_ORIGINS names the origins whose pages may"
  })

/** Names the route that an effect serves, and its path if the router does not know it, in the facts of the request. */
export const named = <A, E, R>(
  route: string,
  self: Effect.Effect<A, E, R>,
  path?: string
): Effect.Effect<A, E, R> =>
  Continuation.withContext((context: Context.Context<R>) => {
    const facts = Context.get(context, CurrentRequestFacts)
    facts.route = route
    if (!Continuation.isTraced(context)) return self
    const routed = Context.getOrUndefined(context, HttpRouter.RouteContext)?.route.path
    return RequestSpan.within(facts, context, routed ?? path, self)
  })

/** The series whose first label values led here, and the branch of each next value. */
interface Branch<Series> {
  readonly next: Map<string, Branch<Series>>
  series?: Series
}

const branchOf = <Series>({ next }: Branch<Series>, value: string): Branch<Series> => {
  const known = next.get(value)
  if (known !== undefined) return known
  const branch: Branch<Series> = { next: new Map() }
  next.set(value, branch)
  return branch
}

// finds a series by its label values; Effect would build a key from the attributes at each update (decision 23)
const seriesOf = <L extends Label, M>({ labels, series }: Declared<L, M>) => {
  const root: Branch<M> = { next: new Map() }
  return (values: { readonly [Name in L]: string }): M => {
    let branch = root
    for (const label of labels) branch = branchOf(branch, values[label])
    return branch.series ??= series(values)
  }
}

const requests = seriesOf(metrics.requests)
const seconds = seriesOf(metrics.requestSeconds)
const operations = seriesOf(metrics.operations)
const callerRequests = seriesOf(metrics.callerRequests)

/** The most names of keys that metrics tell apart. */
const mostGroups = 100

const groups = new Set<string>()

/** The group of a caller as a label: a name that whoever runs the gateway gave to a key, never an address. */
const groupOf = ({ id, key }: Caller): string => {
  if (key === undefined) return "address"
  if (!groups.has(id) && groups.size >= mostGroups) return "others"
  groups.add(id)
  return id.slice(id.indexOf(":") + 1)
}

/** Counts an answered request in the metrics registry of the context. */
export const count = (
  context: Context.Context<never>,
  facts: RequestFacts,
  status: number,
  milliseconds: number
): void => {
  const outcome = facts.error ?? (status < 400 ? "ok" : "refused")
  requests({ route: facts.route, status: String(status), outcome }).updateUnsafe(1, context)
  seconds({ route: facts.route }).updateUnsafe(milliseconds / 1000, context)
  if (facts.caller !== undefined) {
    callerRequests({ group: groupOf(facts.caller), limited: status === 429 ? "yes" : "no" }).updateUnsafe(1, context)
  }
  for (const noted of facts.operations) operations(noted).updateUnsafe(1, context)
}

/** What went wrong: the tag of the whole request's error, else the outcome of the first operation that failed. */
export const errorOf = ({ error, operations }: RequestFacts): string | undefined =>
  error ?? operations.find(({ outcome }) => outcome !== "ok")?.outcome

/** What the access log says of one request. */
export interface Entry {
  /** Milliseconds since 1970, at the end of the request. */
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
  /** The trace that the request belongs to, where the program has a tracer. */
  readonly traceId: string | undefined
  /** What a WebSocket was, at its end. */
  readonly socket?: {
    readonly closed: string
    readonly received: number
    readonly sent: number
    readonly conflated: number
  }
}

/** The access log. `write` returns at once; when entries come faster than they can be written, the oldest are dropped. */
export class AccessLog extends Context.Service<AccessLog, {
  /** Absent where there is no log: then nobody has to build an entry. */
  readonly write?: (entry: Entry) => void
}>()("@trigate/server/requests/RequestFacts/AccessLog") {}

/** No access log. */
export const layerAccessLogOff: Layer.Layer<AccessLog> = Layer.succeed(AccessLog, {})

const backlog = 8192

/** A line of the log, of a request as well as of the program: the same three members, then those that it is about. */
export interface Line {
  /** Milliseconds since 1970. */
  readonly time: number
  readonly level: string
  readonly message: string
  readonly [member: string]: unknown
}

/** A line as JSON. */
export const jsonLine = ({ level, message, time, ...members }: Line): string =>
  JSON.stringify({ time, level, message, ...members })

/** How a line of the access log is written; as JSON unless a terminal shows it. */
export const LineFormat = Context.Reference<(line: Line) => string>("@trigate/server/LineFormat", {
  defaultValue: () => jsonLine
})

/** Lines on standard output. Closing the layer's scope writes what is queued. */
export const layerAccessLog: Layer.Layer<AccessLog, never, Stdio.Stdio> = Layer.effect(
  AccessLog,
  Effect.gen(function*() {
    const stdio = yield* Stdio.Stdio
    const format = yield* LineFormat
    const lineOf = ({ time, ...entry }: Entry) => `${format({ time, level: "info", message: "request", ...entry })}\n`
    const lines = yield* Queue.sliding<string, Cause.Done>(backlog)
    const writer = yield* Effect.forkDetach(Effect.ignore(Stream.run(Stream.fromQueue(lines), stdio.stdout())))
    yield* Effect.addFinalizer(() => Effect.andThen(Queue.end(lines), Fiber.await(writer)))
    return AccessLog.of({ write: (entry) => void Queue.offerUnsafe(lines, lineOf(entry)) })
  })
)
