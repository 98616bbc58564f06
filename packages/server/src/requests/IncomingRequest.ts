/** A request as the routes receive it: from Effect's HTTP adapter, or directly from Node's server. */
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import type * as Effect from "effect/Effect"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import * as CallerSocket from "./CallerSocket.ts"

// @effect-diagnostics-next-line nodeBuiltinImport:off -- the message is Node's own
import { IncomingMessage } from "node:http"
import type { Socket } from "node:net"

/** A request. */
export interface IncomingRequest {
  readonly method: string
  /** Path and query. */
  readonly url: string
  readonly headers: { readonly [name: string]: string | ReadonlyArray<string> | undefined }
  /** The caller's key in the path; absent if the path does not contain a key. */
  readonly keyInPath: Redacted.Redacted | undefined
  /** Node's message; absent if the server is not Node's HTTP server. */
  readonly message: IncomingMessage | undefined
  /** The request of Effect's HTTP adapter; absent if the request came directly from Node's server. */
  readonly adapted: HttpServerRequest | undefined
  /** Completes the handshake of a WebSocket; returns `undefined` if the client has disconnected. Absent for other requests. */
  readonly upgrade: (() => Effect.Effect<CallerSocket.CallerSocket | undefined>) | undefined
}

const isUpgrade = ({ upgrade }: HttpServerRequest["headers"]): boolean => upgrade?.toLowerCase() === "websocket"

/** The key that each open connection sent last. */
const lastKeys = new WeakMap<Socket, Redacted.Redacted>()

/**
 * Redacts a caller's key. Successive requests of a connection with the same key share the result, because a new
 * `Redacted` for each request would cost more than the check of the key.
 */
export const redactKey = (key: string, message: IncomingMessage | undefined): Redacted.Redacted => {
  if (message === undefined) return Redacted.make(key)
  const last = lastKeys.get(message.socket)
  if (last !== undefined && Redacted.value(last) === key) return last
  const redacted = Redacted.make(key)
  lastKeys.set(message.socket, redacted)
  return redacted
}

/** Makes a request from Node's message. */
export const fromNode = (
  message: IncomingMessage,
  keyInPath?: Redacted.Redacted,
  upgrade?: IncomingRequest["upgrade"]
): IncomingRequest => ({
  method: message.method ?? "",
  url: message.url ?? "",
  headers: message.headers,
  keyInPath,
  message,
  adapted: undefined,
  upgrade
})

/** Makes a request from Effect's HTTP adapter. */
export const fromAdapter = (adapted: HttpServerRequest, keyInPath?: Redacted.Redacted): IncomingRequest => {
  const message = NodeHttpServerRequest.toIncomingMessage(adapted)
  return {
    method: adapted.method,
    url: adapted.url,
    headers: adapted.headers,
    keyInPath,
    message: message instanceof IncomingMessage ? message : undefined,
    adapted,
    upgrade: isUpgrade(adapted.headers) ? () => CallerSocket.fromAdapter(adapted) : undefined
  }
}

/** Returns the value of a request header; `undefined` if the header is absent or has several values. */
export const header = ({ headers }: Pick<IncomingRequest, "headers">, name: string): string | undefined => {
  const value = headers[name]
  return Predicate.isString(value) ? value : undefined
}

/** Returns all `Authorization` headers; Node's `headers` contains only the first. */
export const authorizations = (request: IncomingRequest): ReadonlyArray<string> => {
  const first = header(request, "authorization")
  if (first === undefined) return []
  return request.message?.headersDistinct["authorization"] ?? [first]
}

/** Returns the address of the connection's peer; empty if unknown. */
export const peer = ({ adapted, message }: IncomingRequest): string =>
  adapted === undefined
    ? message?.socket.remoteAddress ?? ""
    : Option.getOrElse(adapted.remoteAddress, () => "")

/** Returns the request target as sent, before the router removed a prefix. */
export const sentTarget = ({ source, url }: HttpServerRequest): string =>
  Predicate.hasProperty(source, "url") && Predicate.isString(source.url)
    ? source.url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/iu, "")
    : url
