/**
 * The record of a request. When the request ends, the record becomes metrics, a span and a line of the access log.
 *
 * The fields that become metric labels have values from limited sets. The path is not recorded, because it can contain
 * an endpoint key.
 */
import type { Fields } from "@trigate/callers/Quotas"
import type { Caller } from "@trigate/domain/Caller"
import { NotPermitted } from "@trigate/domain/errors/CallerError"
import type { QuotaExceeded } from "@trigate/domain/errors/CallerError"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type * as Tracer from "effect/Tracer"
import type { BodyReservation, Load } from "../process/Load.ts"
import { unlimited } from "../process/Load.ts"
import { metrics } from "../process/Metrics.ts"
// @effect-diagnostics-next-line nodeBuiltinImport:off -- the response is Node's own
import type { ServerResponse } from "node:http"

/** An admitted request, counted against its caller's quota. */
export interface Admitted {
  readonly caller: Caller
  /**
   * Provides the caller to an effect of the request. Also provides `CurrentKeepCounted`: work that outlives the request
   * uses it to keep the request counted.
   */
  readonly provide: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /**
   * Counts further calls of the request. If the quota does not allow all of them, fails and counts none. Absent if the
   * caller has no quota.
   */
  readonly countMore?: (calls: number) => Effect.Effect<void, QuotaExceeded>
  /**
   * Charges the request as several requests, without counting them as concurrent. Absent if the caller has no quota.
   */
  readonly charge?: (requests: number) => Effect.Effect<void, QuotaExceeded>
  /** Ends the request. Later calls have no effect. */
  readonly end: () => void
}

/** The head of a request, and Node's response to it. */
export interface Head {
  readonly method: string
  readonly headers: { readonly [name: string]: string | ReadonlyArray<string> | undefined }
  readonly url: string
  /** Returns the request target as sent, before the router removed a prefix from the URL. */
  readonly target?: (() => string) | undefined
  readonly response: ServerResponse | undefined
}

/** The record of one request. */
export interface RequestRecord extends Head {
  /** The ID of the request; absent if the request is not observed. */
  readonly id: string | undefined
  /**
   * The name of the request's endpoint in the API definition, such as `exchange.submit`; `other` for requests that
   * match no endpoint.
   */
  route: string
  /** The caller; `undefined` if unknown, or if the route does not determine it. */
  caller: Caller | undefined
  /** The declared operations of the request with their results: `ok`, `upstream_error`, or the tag of a typed error. */
  readonly operations: Array<{ readonly operation: string; readonly outcome: string }>
  /** Tag of the request's typed error. */
  error: string | undefined
  /** The quota headers of the response; `undefined` if the caller has no quota of requests. */
  quota: Fields | undefined
  /** Age in seconds of the oldest cached response that was used; `undefined` if no cached response was used. */
  age: number | undefined
  /** The origin of the page that sent the request, if that origin is not allowed: see `Cors.foreignTo`. */
  foreign: string | undefined
  /** The span of the request; `undefined` without a tracer, or if the route has no spans. */
  span: Tracer.Span | undefined
  readonly load: Load["Service"]
  /** The memory reserved for the body; `undefined` before it is read. */
  body: BodyReservation | undefined
  /** The caller and its quota, if they were determined before the request reached its route. */
  admitted: Admitted | undefined
  /** The key in the request, if keys are required. */
  key: Redacted.Redacted | undefined
}

/** Records the age of a response. */
export const noteAge = (record: RequestRecord, age: number | undefined): void => {
  if (age !== undefined) record.age = Math.max(record.age ?? 0, age)
}

/** Makes the record of a request that has not reached a route yet. */
export const make = (
  load: Load["Service"] = unlimited,
  id?: string,
  { headers, method, response, target, url }: Head = { method: "", headers: {}, url: "", response: undefined }
): RequestRecord => ({
  method,
  headers,
  url,
  target,
  response,
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
  key: undefined
})

/** The record of the request that the current fiber serves. The gateway sets it for each request: see `Observe`. */
export const CurrentRequestRecord = Context.Reference<RequestRecord>("@trigate/server/CurrentRequestRecord", {
  defaultValue: () => make()
})

/** Returns the error for a page of an origin that is not allowed; `undefined` for any other request. */
export const foreignRefusal = ({ foreign }: RequestRecord): NotPermitted | undefined =>
  foreign === undefined ? undefined : new NotPermitted({
    missing: "origins",
    needed: foreign.slice(0, 128),
    detail:
      "A page of another site is not allowed to sign or send; TRIGATE_CORS_ORIGINS lists the origins whose pages are allowed"
  })

/** Returns the tag of the request's error, otherwise the result of the first operation that failed. */
export const recordedError = ({ error, operations }: RequestRecord): string | undefined =>
  error ?? operations.find(({ outcome }) => outcome !== "ok")?.outcome

/** Maximum number of key names that metrics distinguish. */
const maxGroups = 100

const groups = new Set<string>()

/**
 * Returns the label of a caller's group: the name of the caller's key. The label is `address` for a caller without a
 * key, and `others` for further names beyond {@link maxGroups}.
 */
const callerGroup = ({ id, key }: Caller): string => {
  if (key === undefined) return "address"
  if (!groups.has(id) && groups.size >= maxGroups) return "others"
  groups.add(id)
  return id.slice(id.indexOf(":") + 1)
}

/** Counts a completed request in the metrics registry of the context. */
export const count = (
  context: Context.Context<never>,
  record: RequestRecord,
  status: number,
  milliseconds: number
): void => {
  const outcome = record.error ?? (status < 400 ? "ok" : "refused")
  metrics.requests.series({ route: record.route, status: String(status), outcome }).updateUnsafe(1, context)
  metrics.requestSeconds.series({ route: record.route }).updateUnsafe(milliseconds / 1000, context)
  if (record.caller !== undefined) {
    metrics.callerRequests.series({ group: callerGroup(record.caller), limited: status === 429 ? "yes" : "no" })
      .updateUnsafe(
        1,
        context
      )
  }
  for (const noted of record.operations) metrics.operations.series(noted).updateUnsafe(1, context)
}
