/** Makes responses that HttpApiBuilder does not encode: relayed upstream responses and JSON text. */
import { sourcesHeader } from "@trigate/domain/candles/Candle"
import { upstreamHeader } from "@trigate/domain/operations/UpstreamResponse"
import type { UpstreamResponse } from "@trigate/domain/operations/UpstreamResponse"
import * as Effect from "effect/Effect"
import * as Body from "effect/http/HttpBody"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { CurrentRequestRecord, noteAge } from "./RequestRecord.ts"
import type { RequestRecord } from "./RequestRecord.ts"

/**
 * Returns a content type that no browser executes or renders: JSON and plain text unchanged, any other type as bytes.
 */
const inertType = (contentType: string): string =>
  contentType === "application/json" ||
    /^(?:application\/(?:json|[a-z0-9.-]+\+json)|text\/plain)(?:\s*;|$)/iu.test(contentType)
    ? contentType
    : "application/octet-stream"

/** The body of an upstream's response, in chunks. The chunks are joined only for a writer that needs one chunk. */
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

/** The header with warnings for the sender of a request. */
const warningHeader = "x-trigate-warning"

/**
 * Returns the headers of a relayed response, which name the upstream. If the response is a problem document of an
 * upstream gateway, the warning header explains which gateway the document means by "this gateway".
 */
const headersBeside = (
  { isProblem, upstream }: UpstreamResponse,
  headers: { readonly [name: string]: string } | undefined
): { readonly [name: string]: string } => {
  const named: { readonly [name: string]: string } = { ...headers, [upstreamHeader]: upstream }
  if (!isProblem) return named
  const given = named[warningHeader]
  const whose =
    `This response is from ${upstream}, which is also a gateway: in it, "this gateway" and the names of settings refer to ${upstream}`
  return { ...named, [warningHeader]: given === undefined ? whose : `${given}; ${whose}` }
}

/** Relays an operation's upstream response unchanged: status, content type, bytes. Records the operation for log and metrics. */
export const relayedIn = (
  record: RequestRecord,
  operation: string,
  response: UpstreamResponse,
  headers: { readonly [name: string]: string } | undefined = response.candles === undefined
    ? undefined
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

/** Relays an operation's upstream response for the current request: see {@link relayedIn}. */
export const relayed = (
  operation: string,
  response: UpstreamResponse,
  headers?: { readonly [name: string]: string }
): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
  Effect.map(CurrentRequestRecord, (record) => relayedIn(record, operation, response, headers))

/** Makes a response from JSON text that the gateway encoded. */
export const jsonResponse = (
  body: string,
  status = 200,
  headers?: { readonly [name: string]: string }
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(body, { status, contentType: "application/json", ...(headers && { headers }) })
