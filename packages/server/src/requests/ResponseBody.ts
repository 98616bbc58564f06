/** Writes responses that HttpApiBuilder does not encode: relayed upstream responses and JSON texts. */
import { sourcesHeader } from "@trigate/domain/candles/CandleAnswer"
import * as Continuation from "@trigate/domain/operations/Continuation"
import type { UpstreamResponse } from "@trigate/domain/operations/UpstreamResponse"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Body from "effect/http/HttpBody"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { CurrentRequestRecord, noteAge } from "./RequestRecord.ts"
import type { RequestRecord } from "./RequestRecord.ts"

/** A type that no browser runs or shows: JSON and plain text as received, and bytes for anything else. */
const inertType = (contentType: string): string =>
  contentType === "application/json" ||
    /^(?:application\/(?:json|[a-z0-9.-]+\+json)|text\/plain)(?:\s*;|$)/iu.test(contentType)
    ? contentType
    : "application/octet-stream"

/** The body of an upstream's answer that came in pieces; they are joined only for a writer that needs them as one. */
export class PiecedBody extends Body.Uint8Array {
  readonly #response: UpstreamResponse

  constructor(response: UpstreamResponse, contentType: string) {
    super(undefined, contentType, response.pieces.reduce((sum, { length }) => sum + length, 0))
    this.#response = response
  }

  get pieces(): ReadonlyArray<Uint8Array> {
    return this.#response.pieces
  }

  override get body(): Uint8Array {
    return this.#response.body
  }
}

/** The header in which the gateway says what the sender of a request should know. */
const warningHeader = "x-trigate-warning"

/** The headers of a relayed response, with whom it means by "this gateway" if a gateway upstream gave it. */
const headersBeside = (
  { isProblem, upstream }: UpstreamResponse,
  headers: { readonly [name: string]: string }
): { readonly [name: string]: string } => {
  if (!isProblem) return headers
  const given = headers[warningHeader]
  const whose =
    `${upstream} is a gateway as well and gave this answer: "this gateway" and its settings are those of ${upstream}`
  return { ...headers, [warningHeader]: given === undefined ? whose : `${given}; ${whose}` }
}

/** An operation's upstream response as received: status, content type, bytes. Notes the operation for log and metrics. */
export const relayedIn = (
  record: RequestRecord,
  operation: string,
  response: UpstreamResponse,
  headers: { readonly [name: string]: string } = response.candles === undefined
    ? {}
    : { [sourcesHeader]: response.candles }
): HttpServerResponse.HttpServerResponse => {
  const { age, contentType, retryAfter, status } = response
  record.operations.push({ operation, outcome: status === 200 ? "ok" : "upstream_error" })
  noteAge(record, age)
  const options = {
    status,
    contentType: inertType(contentType),
    headers: retryAfter === undefined
      ? headersBeside(response, headers)
      : { ...headersBeside(response, headers), "retry-after": String(retryAfter) }
  }
  return response.pieces.length < 2
    ? HttpServerResponse.uint8Array(response.body, options)
    : HttpServerResponse.setBody(HttpServerResponse.empty(options), new PiecedBody(response, options.contentType))
}

/** {@link relayedIn} for the request that the fiber serves. */
export const relayed = (
  operation: string,
  response: UpstreamResponse,
  headers?: { readonly [name: string]: string }
): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
  Continuation.withContext((context) =>
    Exit.succeed(relayedIn(Context.get(context, CurrentRequestRecord), operation, response, headers))
  )

/** A JSON text that the gateway wrote. */
export const jsonResponse = (
  body: string,
  status = 200,
  headers?: { readonly [name: string]: string }
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(body, { status, contentType: "application/json", ...(headers && { headers }) })
