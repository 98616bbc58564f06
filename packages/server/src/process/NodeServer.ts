/**
 * Node's HTTP server, with limits on its input and memory, and a response to every request.
 *
 * The response to a request that cannot be parsed is a problem document. A request that arrives before the program
 * handles requests has to wait.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Overloaded } from "@trigate/domain/errors/CallerError"
import type { Setting } from "@trigate/domain/Setting"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { ServeError } from "effect/http/HttpServerError"
import * as ProblemDetails from "effect/http/ProblemDetails"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Dns from "node:dns"
import * as CallerSocket from "../requests/CallerSocket.ts"
import * as ProblemResponse from "../requests/ProblemResponse.ts"
import { TrustedProxies } from "../requests/RequestCaller.ts"
import * as Connections from "./Connections.ts"
// @effect-diagnostics-next-line nodeBuiltinImport:off -- the server for the platform layer
import * as Http from "node:http"
import * as Net from "node:net"

/** Maximum number of bytes of a request head. The head of a documented request has less than one kilobyte. */
export const maxHeaderBytes = 16 * 1024

type RequestRefusal = readonly [status: number, title: string]

const refusals: { readonly [code: string]: RequestRefusal } = {
  HPE_HEADER_OVERFLOW: [431, "Request Header Fields Too Large"],
  ERR_HTTP_REQUEST_TIMEOUT: [408, "Request Timeout"]
}

const errorCode = (error: unknown): string =>
  Predicate.hasProperty(error, "code") && Predicate.isString(error.code) ? error.code : ""

const problemBody = ([status, title]: RequestRefusal, detail: string): string =>
  JSON.stringify({ type: ProblemDetails.blankType, title, status, detail })

/** Formats a refusal as raw HTTP, for a socket without a parsed request. */
const refusalResponse = (refusal: RequestRefusal, detail: string): string => {
  const body = problemBody(refusal, detail)
  return `HTTP/1.1 ${refusal.join(" ")}\r\ncontent-type: ${ProblemDetails.contentType}\r\n` +
    `content-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`
}

/**
 * Matches the targets of WebSocket requests: `/ws`, `/evm` or `/l2`, each with or without an endpoint key before it. A
 * path that consists of an endpoint key matches too. A query can follow.
 */
const socketPath = /^(?:\/[^/?#]+)?\/(?:ws|evm|l2)(?:\?|$)|^\/[^/?#]+(?:\?|$)/u

/** Returns whether a request is a WebSocket handshake on a route of the gateway. */
const isSocketRequest = ({ headers, url = "" }: Http.IncomingMessage): boolean =>
  headers.upgrade?.toLowerCase() === "websocket" && socketPath.test(url)

/** Refuses a request before the program handles it, and closes the connection after the request has been received. */
const refuse = (
  request: Http.IncomingMessage,
  response: Http.ServerResponse,
  status: number,
  body: string | Uint8Array,
  headers: { readonly [name: string]: string } = {}
): void => {
  response.writeHead(status, {
    ...headers,
    "content-type": ProblemDetails.contentType,
    "content-length": body.length,
    connection: "close"
  })
  response.write(body)
  // closing a socket that has unread bytes resets the connection, and the client would lose the part of the response
  // that it has not read
  request.once("close", () => response.end()).resume()
}

/**
 * Refuses a request that arrived before the program handles requests. No part of the request was executed, so the
 * client can send the request again.
 */
const refuseEarly = (request: Http.IncomingMessage, response: Http.ServerResponse, detail: string): void => {
  const { body, headers, status } = ProblemResponse.problem(
    new Overloaded({ retryAfter: 1, detail }),
    request.url ?? ""
  )
  refuse(request, response, status, body._tag === "Uint8Array" ? body.body : "", headers)
}

/** Maximum number of requests that wait until the program has started. Each uses at most 80 KiB of memory. */
export const maxParked = 512

/** Serves requests before a server's listeners do; each function returns `false` for a request that it leaves to them. */
export interface Lane {
  readonly serve: (request: Http.IncomingMessage, response: Http.ServerResponse) => boolean
  /** Serves an upgrade to another protocol; `head` contains the first bytes after the headers. */
  readonly upgrade: (request: Http.IncomingMessage, head: Buffer) => boolean
}

/**
 * A server whose requests wait until it has a request listener, and reach its lane before its listeners.
 *
 * Without a request listener, Node drops a request but leaves its connection open. The client would wait forever, and
 * the server could not shut down.
 */
class GatewayListener extends Http.Server {
  lane: Lane | undefined
  readonly #parked = new Map<Http.IncomingMessage, Http.ServerResponse>()
  #isParking = false

  /** Starts to queue requests; the next request listener that is added receives them. */
  park(): void {
    this.#isParking = true
    this.on("request", this.#keep)
    this.on("newListener", this.#attached)
  }

  /** Closes the server. Refuses waiting requests, and then closes idle connections. */
  override close(callback?: (error?: Error) => void): this {
    super.close(callback)
    if (!this.#isParking) return this
    const refused = new Set<Net.Socket>()
    const closeRest = () => {
      if (refused.size === 0) this.closeAllConnections()
    }
    for (const [request, response] of this.#parked) {
      const { socket } = request
      refused.add(socket)
      socket.once("close", () => {
        refused.delete(socket)
        closeRest()
      })
      refuseEarly(request, response, "The server was stopped before it handled requests")
      // an endless body must not delay the shutdown of the server
      response.end()
    }
    this.#parked.clear()
    closeRest()
    return this
  }

  override emit(event: string, ...args: Array<unknown>): boolean {
    const [request, answer, head] = args
    if (request instanceof Http.IncomingMessage) {
      if (event === "request" && answer instanceof Http.ServerResponse) {
        answer.on("timeout", Connections.closeStalled)
        if (this.lane?.serve(request, answer) === true) return true
      } else if (event === "upgrade" && Buffer.isBuffer(head) && this.lane?.upgrade(request, head) === true) return true
    }
    return super.emit(event, ...args)
  }

  readonly #keep = (request: Http.IncomingMessage, response: Http.ServerResponse): void => {
    if (this.#parked.size < maxParked) {
      this.#parked.set(request, response)
      // the request emits `close` if the client disconnects; a response that waits behind another one emits no event
      request.once("close", () => this.#parked.delete(request))
    } else {
      refuseEarly(request, response, "The server is starting, and too many requests wait for it")
    }
  }

  readonly #attached = (event: string | symbol): void => {
    if (event !== "request") return
    this.#isParking = false
    this.off("request", this.#keep)
    this.off("newListener", this.#attached)
    // runs after the listener has been added
    queueMicrotask(() => {
      for (const [request, response] of this.#parked) this.emit("request", request, response)
      this.#parked.clear()
    })
  }
}

/**
 * Makes the server without listening, for a platform layer or a framework that listens by itself.
 *
 * The server can listen before the program handles requests: up to {@link maxParked} requests wait until a listener for
 * `request` is added. Further requests, and requests that still wait when the server closes, are refused with
 * `Overloaded`.
 */
export const create = (bounds: Connections.Bounds = {}): GatewayListener => {
  const server = new GatewayListener({
    maxHeaderSize: maxHeaderBytes,
    headersTimeout: 10_000,
    requestTimeout: 30_000,
    connectionsCheckingInterval: 1000,
    keepAliveTimeout: 75_000,
    // an upgrade request for another protocol or route is served as a plain request
    shouldUpgradeCallback: isSocketRequest
  })
  Connections.bound(server, bounds)
  server.park()
  server.on("clientError", (error, socket) => {
    const refusal = refusals[errorCode(error)] ?? [400, "Bad Request"]
    if (socket.writable) socket.end(refusalResponse(refusal, "The request is not valid HTTP"))
    else socket.destroy()
  })
  server.on("connect", (_request, socket) => {
    socket.end(refusalResponse([405, "Method Not Allowed"], "This server does not support CONNECT"))
  })
  server.on("checkExpectation", (request, response) => {
    refuse(
      request,
      response,
      417,
      problemBody([417, "Expectation Failed"], "The server supports no Expect header other than 100-continue")
    )
  })
  return server
}

/**
 * Maximum number of connections that the operating system queues for the program; Linux limits it to
 * `net.core.somaxconn`.
 *
 * Beyond the limit, a client retries after a second or more. Node's default of 511 is too low when all callers
 * reconnect.
 */
const maxPending = 65_535

/**
 * Maximum time for requests in flight to complete when a gateway shuts down. After that, connections have at most the
 * same time again to close.
 */
export const maxDrainWait = Duration.seconds(20)

/** The listening address and the connection limits. */
export interface Options extends Connections.Bounds {
  readonly host: string
  readonly port: number
}

/**
 * Node's server behind the `HttpServer` of the context.
 *
 * @since 0.1.0
 * @category services
 */
export class Listener
  extends Context.Service<Listener, GatewayListener>()("@trigate/server/process/NodeServer/Listener")
{}

/**
 * The HTTP server on an address. When the server closes, connections have {@link maxDrainWait} to close.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = ({ host, port, ...bounds }: Options) =>
  Layer.unwrap(
    Effect.map(TrustedProxies, (trustedProxies) => {
      const listener = create({ trustedProxies, ...bounds })
      return Layer.merge(
        Layer.succeed(Listener, listener),
        NodeHttpServer.layer(() => listener, {
          host,
          port,
          backlog: maxPending,
          gracefulShutdownTimeout: maxDrainWait,
          websocket: CallerSocket.options
        })
      )
    })
  )

const isBindError = (error: Error): boolean => Predicate.hasProperty(error, "syscall") && error.syscall === "bind"

/**
 * Checks that an address can be bound. Fails like {@link layer} if it cannot.
 *
 * Does not listen, so no client can connect. Instead, the function opens an outgoing connection whose local end is
 * bound to the address. The connection fails, because its destination is port 0, where no server listens.
 */
export const checkAddress = ({ host, port }: Pick<Options, "host" | "port">): Effect.Effect<void, ServeError> =>
  Effect.callback<void, ServeError>((resume) => {
    const fail = (cause: Error) => resume(Effect.fail(new ServeError({ cause })))
    Dns.lookup(host, (notFound, address) => {
      if (notFound !== null) return fail(notFound)
      Net.connect({ host: address, port: 0, localAddress: address, localPort: port })
        .once("error", (error) => isBindError(error) ? fail(error) : resume(Effect.void))
    })
  }).pipe(Effect.timeoutOrElse({ duration: "1 second", orElse: () => Effect.void }))

/** An address to listen on, and the settings that configure it. */
export interface ListenAddress {
  readonly host: string
  readonly port: number
  readonly settings: { readonly host: Setting<unknown>; readonly port: Setting<unknown> }
}

const settingNames = ({ env, flag }: Setting<unknown>): string => `--${flag} or ${env}`

const listenFaults: { readonly [code: string]: (settings: ListenAddress["settings"]) => string } = {
  EADDRINUSE: ({ port }) => `is in use; set ${settingNames(port)} to another port`,
  EACCES: ({ port }) => `is not allowed for this user; set ${settingNames(port)} to another port`,
  EADDRNOTAVAIL: ({ host }) => `is not an address of this machine; set ${settingNames(host)} to another one`,
  ENOTFOUND: ({ host }) => `cannot be found; set ${settingNames(host)} to another host`
}

/** Describes in one line why the gateway cannot listen on an address. */
export const describeListenError = ({ cause }: ServeError, { host, port, settings }: ListenAddress): string =>
  `${host}:${port} ${listenFaults[errorCode(cause)]?.(settings) ?? `cannot be used (${String(cause)})`}`
