/** Node's HTTP server: bounds on what it reads and keeps, and problem documents for requests that it cannot parse. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { ServeError } from "effect/http/HttpServerError"
import * as ProblemDetails from "effect/http/ProblemDetails"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Connections from "./Connections.ts"
import { TrustedProxies } from "./RequestCaller.ts"
// @effect-diagnostics-next-line nodeBuiltinImport:off -- the server that the platform layer is given
import * as Http from "node:http"

/** The most bytes that the head of a request may have; that of a documented request has less than one kilobyte. */
export const maxHeaderBytes = 16 * 1024

type Refusal = readonly [status: number, title: string]

const refusals: { readonly [code: string]: Refusal } = {
  HPE_HEADER_OVERFLOW: [431, "Request Header Fields Too Large"],
  ERR_HTTP_REQUEST_TIMEOUT: [408, "Request Timeout"]
}

const codeOf = (error: unknown): string =>
  Predicate.hasProperty(error, "code") && Predicate.isString(error.code) ? error.code : ""

const bodyOf = ([status, title]: Refusal, detail: string): string =>
  JSON.stringify({ type: ProblemDetails.blankType, title, status, detail })

/** The text of an answer, for a socket on which no request could be parsed. */
const answerOf = (refusal: Refusal, detail: string): string => {
  const body = bodyOf(refusal, detail)
  return `HTTP/1.1 ${refusal.join(" ")}\r\ncontent-type: ${ProblemDetails.contentType}\r\n` +
    `content-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`
}

/** Makes the server, which does not listen yet; for a platform layer or a framework that listens by itself. */
export const create = (bounds: Connections.Bounds = {}): Http.Server => {
  const server = Http.createServer({
    maxHeaderSize: maxHeaderBytes,
    headersTimeout: 10_000,
    requestTimeout: 30_000,
    connectionsCheckingInterval: 1000,
    keepAliveTimeout: 75_000,
    // there is no other protocol to upgrade to: such a request is answered like any other
    shouldUpgradeCallback: () => false
  })
  Connections.bound(server, bounds)
  server.on("clientError", (error, socket) => {
    const refusal = refusals[codeOf(error)] ?? [400, "Bad Request"]
    if (socket.writable) socket.end(answerOf(refusal, "The request is not valid HTTP"))
    else socket.destroy()
  })
  server.on("connect", (_request, socket) => {
    socket.end(answerOf([405, "Method Not Allowed"], "This server is no proxy"))
  })
  server.on("checkExpectation", (request, response) => {
    const body = bodyOf([417, "Expectation Failed"], "Only 100-continue can be expected")
    response.writeHead(417, {
      "content-type": ProblemDetails.contentType,
      "content-length": body.length,
      connection: "close"
    })
    response.write(body)
    // a socket that is closed with bytes to read is reset, and what its client has not read by then is lost
    request.once("close", () => response.end()).resume()
  })
  return server
}

/** How long requests in flight have to finish when a gateway ends, and how long connections have after that. */
export const maxDrainWait = Duration.seconds(20)

/** Where a server listens, and what its connections may take. */
export interface Options extends Connections.Bounds {
  readonly host: string
  readonly port: number
}

/** Node's own server below the `HttpServer` of the context. */
export class Listener extends Context.Service<Listener, Http.Server>()("@trigate/server/NodeServer/Listener") {}

/** The HTTP server on an address. When it closes, connections have {@link maxDrainWait} to end. */
export const layer = ({ host, port, ...bounds }: Options) =>
  Layer.unwrap(
    Effect.map(TrustedProxies, (trustedProxies) => {
      const listener = create({ trustedProxies, ...bounds })
      return Layer.merge(
        Layer.succeed(Listener, listener),
        NodeHttpServer.layer(() => listener, { host, port, gracefulShutdownTimeout: maxDrainWait })
      )
    })
  )

/** Where a listener is, and the settings that say so. */
export interface Place {
  readonly host: string
  readonly port: number
  readonly names: { readonly host: string; readonly port: string }
}

const listenFaults: { readonly [code: string]: (names: Place["names"]) => string } = {
  EADDRINUSE: ({ port }) => `is in use; set ${port} to another port`,
  EACCES: ({ port }) => `is not allowed for this user; set ${port} to another port`,
  EADDRNOTAVAIL: ({ host }) => `is not an address of this machine; set ${host} to another one`,
  ENOTFOUND: ({ host }) => `cannot be found; set ${host} to another host`
}

/** Says in one line why the gateway cannot listen at a place. */
export const faultOf = ({ cause }: ServeError, { host, names, port }: Place): string =>
  `${host}:${port} ${listenFaults[codeOf(cause)]?.(names) ?? `cannot be used (${String(cause)})`}`
