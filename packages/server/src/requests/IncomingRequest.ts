/** A request as the routes read it, whether it comes through Effect's HTTP adapter or straight from Node's server. */
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import type * as Redacted from "effect/Redacted"

// @effect-diagnostics-next-line nodeBuiltinImport:off -- the message is Node's own
import { IncomingMessage } from "node:http"

/** A request. */
export interface IncomingRequest {
  readonly method: string
  /** Path and query. */
  readonly url: string
  readonly headers: { readonly [name: string]: string | ReadonlyArray<string> | undefined }
  /** The caller's key as the path holds it; absent on routes without one. */
  readonly keyInPath: Redacted.Redacted | undefined
  /** Node's message; absent on another server. */
  readonly message: IncomingMessage | undefined
  /** The request as the platform reads it; absent where it comes straight from Node. */
  readonly adapted: HttpServerRequest | undefined
}

/** A request straight from Node's server. */
export const fromNode = (message: IncomingMessage, keyInPath?: Redacted.Redacted): IncomingRequest => ({
  method: message.method ?? "",
  url: message.url ?? "",
  headers: message.headers,
  keyInPath,
  message,
  adapted: undefined
})

/** A request of Effect's HTTP adapter. */
export const fromAdapter = (adapted: HttpServerRequest, keyInPath?: Redacted.Redacted): IncomingRequest => {
  const message = NodeHttpServerRequest.toIncomingMessage(adapted)
  return {
    method: adapted.method,
    url: adapted.url,
    headers: adapted.headers,
    keyInPath,
    message: message instanceof IncomingMessage ? message : undefined,
    adapted
  }
}

/** The value of a header; undefined for one that may occur several times. */
export const header = ({ headers }: Pick<IncomingRequest, "headers">, name: string): string | undefined => {
  const value = headers[name]
  return Predicate.isString(value) ? value : undefined
}

/** Each `Authorization` of a request: of several, its headers have the first alone. */
export const authorizations = (request: IncomingRequest): ReadonlyArray<string> => {
  const first = header(request, "authorization")
  if (first === undefined) return []
  return request.message?.headersDistinct["authorization"] ?? [first]
}

/** The address of the other end of the connection; empty where it is unknown. */
export const peer = ({ adapted, message }: IncomingRequest): string =>
  adapted === undefined
    ? message?.socket.remoteAddress ?? ""
    : Option.getOrElse(adapted.remoteAddress, () => "")

/** The target as it was sent, where the router has cut a prefix from it. */
export const sentTarget = ({ source, url }: HttpServerRequest): string =>
  Predicate.hasProperty(source, "url") && Predicate.isString(source.url)
    ? source.url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/iu, "")
    : url
