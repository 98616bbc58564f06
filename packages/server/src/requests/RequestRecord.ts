/**
 * What the gateway records about a request on its way; at its end the record becomes metrics, a span and a line of the access log.
 *
 * All but the caller comes from a closed set, so that it can be a metric label. None is a text that a caller wrote: not the path
 * either, which may hold an endpoint key.
 */
import type { Fields } from "@trigate/callers/Quotas"
import type { Caller } from "@trigate/domain/Caller"
import { NotPermitted } from "@trigate/domain/errors/CallerError"
import type { QuotaExceeded } from "@trigate/domain/errors/CallerError"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import { constVoid } from "effect/Function"
import type * as Redacted from "effect/Redacted"
import type * as Tracer from "effect/Tracer"
import type { BodyReservation, Load } from "../process/Load.ts"
import { unlimited } from "../process/Load.ts"

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

/** The head of a request. */
export interface Head {
  readonly method: string
  readonly headers: { readonly [name: string]: string | ReadonlyArray<string> | undefined }
}

/** The facts of one request. */
export interface RequestRecord extends Head {
  /** The id of the request; absent for a request that is not observed. */
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
  body: BodyReservation | undefined
  /** For whom the request is served, where that was decided before it came to its route. */
  admitted: Admitted | undefined
  /** The key that was checked, where the ordinary route checked one. */
  key: Redacted.Redacted | undefined
  /** Ends the request before its route does: a WebSocket outlives it. */
  release: () => void
}

/** Notes the age of a response. */
export const noteAge = (record: RequestRecord, age: number | undefined): void => {
  if (age !== undefined) record.age = Math.max(record.age ?? 0, age)
}

/** Makes the record of a request that has not reached a route yet, as cheaply as possible. */
export const make = (
  load: Load["Service"] = unlimited,
  id?: string,
  { headers, method }: Head = { method: "", headers: {} }
): RequestRecord => ({
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
export const CurrentRequestRecord = Context.Reference<RequestRecord>("@trigate/server/CurrentRequestRecord", {
  defaultValue: () => make()
})

/** The refusal of what a foreign page asks for; nothing for any other request. */
export const foreignRefusal = ({ foreign }: RequestRecord): NotPermitted | undefined =>
  foreign === undefined ? undefined : new NotPermitted({
    missing: "origins",
    needed: foreign.slice(0, 128),
    detail: "A page of another site may not sign or send; TRIGATE_CORS_ORIGINS names the origins whose pages may"
  })

/** What went wrong: the tag of the whole request's error, else the outcome of the first operation that failed. */
export const recordedError = ({ error, operations }: RequestRecord): string | undefined =>
  error ?? operations.find(({ outcome }) => outcome !== "ok")?.outcome
