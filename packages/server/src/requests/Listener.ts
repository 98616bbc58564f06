/**
 * Node's HTTP server, with limits on its connections, input and memory, and the fast lane, which serves relayed
 * requests directly.
 *
 * All connections from a proxy have the proxy's address, so the per-address limit does not apply to trusted proxies.
 *
 * The response to a request that cannot be parsed is a problem document. A request that arrives before the program
 * handles requests has to wait.
 *
 * Node emits each request as soon as it is parsed; one packet can contain thousands of requests. Node buffers a
 * response until the responses to all earlier requests are written.
 *
 * It serves two kinds of requests: a `POST` with a small body to the exact path of a relaying route, and the handshake
 * of a WebSocket. The request is observed and served by its route like any other request. This module only reads the
 * request from Node and writes the response. The fiber of a request starts synchronously.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Overloaded } from "@trigate/domain/errors/GatewayError"
import type { Setting } from "@trigate/domain/unstable/Setting"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { constVoid, memoize } from "effect/Function"
import * as HttpServer from "effect/http/HttpServer"
import { ServeError } from "effect/http/HttpServerError"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import type { HttpServerResponse } from "effect/http/HttpServerResponse"
import * as ProblemDetails from "effect/http/ProblemDetails"
import * as Layer from "effect/Layer"
import * as IpNetwork from "effect/net/IpNetwork"
import * as Predicate from "effect/Predicate"
import type * as Scope from "effect/Scope"
import * as Dns from "node:dns"
// @effect-diagnostics-next-line nodeBuiltinImport:off -- the server for the platform layer
import * as Http from "node:http"
// @effect-diagnostics-next-line nodeBuiltinImport:off -- the server for the platform layer
import { ServerResponse } from "node:http"
// @effect-diagnostics-next-line nodeBuiltinImport:off -- the server for the platform layer
import type { IncomingMessage, Server } from "node:http"
import * as Net from "node:net"
import { otherApi } from "../routes/NotFoundRoutes.ts"
import { isReserved, parseAddress, subscriberNetwork, TrustedProxies } from "./Callers.ts"
import type { Observed } from "./Observe.ts"
import * as Request from "./Request.ts"

/** The connection limits; each has a default. */
export interface Bounds {
  /**
   * Maximum number of open connections. Default: 4096. One client address (IPv6: one /64 network) can have at most a
   * quarter of them.
   */
  readonly maxConnections?: number
  /** Maximum time without progress while the server reads a request or writes a response. Default: 15 seconds. */
  readonly stallTimeout?: Duration.Duration
  /** Networks of proxies, whose connections belong to many callers and are not counted by address. */
  readonly trustedProxies?: ReadonlyArray<IpNetwork.IpNetwork>
}

/** Counts the connections of each address, and closes those beyond the limit. */
const countByAddress = (server: Server, most: number, trusted: ReadonlyArray<IpNetwork.IpNetwork>): void => {
  const open = new Map<string, number>()
  server.on("connection", (socket: Net.Socket) => {
    const address = parseAddress(socket.remoteAddress ?? "")
    if (address === undefined || trusted.some((network) => IpNetwork.contains(network, address))) return
    const subscriber = subscriberNetwork(address)
    const count = open.get(subscriber) ?? 0
    if (count >= most) {
      socket.destroy()
      return
    }
    open.set(subscriber, count + 1)
    socket.once("close", () => {
      const left = (open.get(subscriber) ?? 0) - 1
      if (left > 0) open.set(subscriber, left)
      else open.delete(subscriber)
    })
  })
}

/** The response that each connection without progress waits for. */
const awaited = new WeakMap<Net.Socket, ServerResponse>()

/** Notes the response. Node calls this directly before the server's own handler of the connection. */
function noteAwaited(this: ServerResponse, socket: Net.Socket): void {
  awaited.set(socket, this)
}

/** Milliseconds in which a process that was suspended reads what its connections received in the meantime. */
const readsWithin = 100

/**
 * Makes the handler of connections without progress, which closes a connection whose client has not sent its whole
 * request, or does not read the response.
 *
 * After a pause of the process, the timer of a connection runs before its received bytes are read. So a connection is
 * closed only if it makes no progress after the timer either.
 */
const closeStalled = (timeout: number) => {
  const suspects = new WeakMap<Net.Socket, number>()
  return (socket: Net.Socket): void => {
    const response = awaited.get(socket)
    awaited.delete(socket)
    // a client that waits for its response is not stalled, however long the operation takes
    if (response?.req.complete === true && socket.writableLength === 0) return
    const progress = socket.bytesRead + socket.bytesWritten
    const before = suspects.get(socket)
    if (before === progress) return void socket.destroy()
    if (before === undefined) suspects.set(socket, progress)
    else suspects.delete(socket)
    socket.setTimeout(before === undefined ? readsWithin : timeout)
  }
}

/** Applies the connection limits to a server. */
export const bound = (
  server: Server,
  { maxConnections = 4096, stallTimeout = Duration.seconds(15), trustedProxies = [] }: Bounds
): void => {
  server.maxConnections = maxConnections
  countByAddress(server, Math.max(1, Math.floor(maxConnections / 4)), trustedProxies)
  server.timeout = Duration.toMillis(stallTimeout)
  server.on("timeout", closeStalled(server.timeout))
}

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
  const { body, headers, status } = Request.problem(
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

const isResponse = (value: unknown): value is Http.ServerResponse => value instanceof Http.ServerResponse

/**
 * A server whose requests wait until it has a request listener, and reach its lane before its listeners.
 *
 * Without a request listener, Node drops a request but leaves its connection open. The client would wait forever, and
 * the server could not shut down.
 */
class GatewayListener extends Http.Server {
  lane: Lane | undefined
  /** The responses to requests that have arrived and are not handled yet, by connection. */
  readonly #arrived = new Map<Net.Socket, Http.ServerResponse>()
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
      if (event === "request" && isResponse(answer)) {
        answer.on("timeout", noteAwaited)
        const { lane } = this
        if (lane !== undefined) {
          if (answer.socket !== null && request.headers.expect === undefined) {
            this.#arrived.set(request.socket, answer)
            setImmediate(this.#handle, lane, answer)
            return true
          }
          // a pipelined request, whose response waits for that of an earlier request, is handled directly after that one
          this.#handleEarlier(request.socket)
          if (lane.serve(request, answer)) return true
        }
      } else if (event === "upgrade" && Buffer.isBuffer(head) && this.lane?.upgrade(request, head) === true) return true
    }
    // a whole request before bytes that are not HTTP is handled before the connection is refused
    if (event === "clientError" && answer instanceof Net.Socket) this.#handleEarlier(answer)
    return super.emit(event, ...args)
  }

  /**
   * Handles a request after the event loop has read all sockets that had data. The body is then usually complete, so that
   * it is read without waiting. Requests that arrived together are handled together, which takes a tenth less processor
   * time than alternating between reading and handling.
   */
  readonly #handle = (lane: Lane, response: Http.ServerResponse): void => {
    const { req: request } = response
    if (this.#arrived.get(request.socket) !== response) return
    this.#arrived.delete(request.socket)
    if (!response.destroyed && !lane.serve(request, response)) super.emit("request", request, response)
  }

  /** Handles the request of a connection that has arrived and is not handled yet. */
  #handleEarlier(socket: Net.Socket): void {
    const earlier = this.#arrived.get(socket)
    if (this.lane !== undefined && earlier !== undefined) this.#handle(this.lane, earlier)
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
export const create = (bounds: Bounds = {}): GatewayListener => {
  const server = new GatewayListener({
    maxHeaderSize: maxHeaderBytes,
    headersTimeout: 10_000,
    requestTimeout: 30_000,
    connectionsCheckingInterval: 1000,
    keepAliveTimeout: 75_000,
    // an upgrade request for another protocol or route is served as a plain request
    shouldUpgradeCallback: isSocketRequest
  })
  bound(server, bounds)
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
export interface Options extends Bounds {
  readonly host: string
  readonly port: number
}

/**
 * Node's server behind the `HttpServer` of the context.
 *
 * @since 0.1.0
 * @category services
 */
export class Listener extends Context.Service<Listener, GatewayListener>()("@trigate/server/requests/Listener") {}

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
          websocket: Request.options
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

/** Maximum number of responses that can wait on one connection for the response to an earlier request. */
export const maxWaiting = 64

const ignore = (): void => {}

const waiting = new WeakMap<Net.Socket, number>()

/** Connections that Node will close after a pending response has been sent. */
const ending = new WeakSet<Net.Socket>()

/**
 * Returns whether to handle a request whose response has to wait for the response to an earlier request.
 *
 * If more than {@link maxWaiting} requests wait, the connection is closed, which cancels its requests.
 */
export const admits = (response: ServerResponse): boolean => {
  const { headers, socket } = response.req
  // the connection closes before this response is sent, so the request must not be executed (RFC 9112, section 9.6)
  if (ending.has(socket)) return false
  const count = waiting.get(socket) ?? 0
  if (socket.destroyed || count >= maxWaiting) {
    socket.destroy()
    return false
  }
  // Node would write the head of a waiting response before its buffered `100 Continue`, and the client would misread
  // the responses
  response.writeContinue = ignore
  // if the `100 Continue` of a request with `Expect` was not sent, Node closes the connection after the response
  if (headers.expect !== undefined) ending.add(socket)
  waiting.set(socket, count + 1)
  response.once("finish", () => waiting.set(socket, (waiting.get(socket) ?? 0) - 1))
  return true
}

/** Serves a request of a route in the context of its fiber; every typed error becomes a response. */
export type RequestHandler = (
  request: Request.IncomingRequest,
  context: Context.Context<never>
) => Effect.Effect<HttpServerResponse>

/**
 * The relaying routes of one gateway.
 *
 * @since 0.1.0
 * @category services
 */
export class FastLane extends Context.Service<FastLane, {
  /** Routes without an endpoint key in the path, by HTTP method and path. */
  readonly open: Map<string, RequestHandler>
  /** Routes behind an endpoint key, by HTTP method and by the path after the key. */
  readonly keyed: Map<string, RequestHandler>
}>()("@trigate/server/requests/Listener/FastLane") {}

type Routes = FastLane["Service"]

/**
 * Makes an empty fast lane, to which a gateway adds its routes.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerFastLane: Layer.Layer<FastLane> = Layer.sync(
  FastLane,
  () => FastLane.of({ open: new Map(), keyed: new Map() })
)

/** Adds a route under its HTTP method and its path in the API definition. */
export const add = ({ keyed, open }: Routes, method: string, path: string, answer: RequestHandler): void => {
  const rest = /^\/:endpointKey(?<rest>.*)$/u.exec(path)?.groups?.["rest"]
  if (rest === undefined) open.set(`${method} ${path}`, answer)
  else keyed.set(`${method} ${rest}`, answer)
}

/**
 * The functions of the fast lane, which serve requests in the context of their server. Both functions return `false`
 * for a request that Effect's HTTP adapter must serve.
 */
export interface GatewayLane {
  readonly serve: (
    server: Context.Context<HttpServer.HttpServer>,
    request: IncomingMessage,
    response: ServerResponse
  ) => boolean
  /** Serves an upgrade to another protocol; `head` contains the first bytes after the headers. */
  readonly upgrade: (server: Context.Context<HttpServer.HttpServer>, request: IncomingMessage, head: Buffer) => boolean
}

/** A reference to a gateway's fast lane. The gateway sets the reference after it has built its routes. */
export interface Entrance {
  lane: GatewayLane | undefined
}

/**
 * Serves the requests that reach the HTTP server in the context, until the scope closes. The fast lane handles the
 * requests that it supports, and the app handles all others.
 */
export const serve = Effect.fnUntraced(function*<E>(
  app: Effect.Effect<HttpServerResponse, E, HttpServerRequest | Scope.Scope>,
  entrance: Entrance
) {
  const listener = yield* Listener
  const server = yield* Effect.context<HttpServer.HttpServer>()
  listener.lane = {
    serve: (request, response) => entrance.lane?.serve(server, request, response) === true,
    upgrade: (request, head) => entrance.lane?.upgrade(server, request, head) === true
  }
  yield* HttpServer.serveEffect(app)
})

/**
 * Returns whether the fast lane can serve a request: its body is small, and its response does not have to wait for the
 * response to an earlier request on the connection.
 */
const isPlain = ({ headers, method }: IncomingMessage, { socket }: ServerResponse): boolean =>
  method === "POST" && socket !== null && Request.isSmall(headers) && headers.expect === undefined

/** Matches an endpoint key that needs no percent-decoding in a path. */
const plainKey = /^[A-Za-z0-9_-]{1,128}$/u

const find = (
  { keyed, open }: Routes,
  method: string,
  url: string
): { readonly answer: RequestHandler; readonly key?: string } | undefined => {
  const answer = open.get(`${method} ${url}`)
  if (answer !== undefined) return { answer }
  const end = url.indexOf("/", 1)
  const ofKey = keyed.get(`${method} ${end < 0 ? "" : url.slice(end)}`)
  const key = end < 0 ? url.slice(1) : url.slice(1, end)
  return ofKey !== undefined && plainKey.test(key) && !isReserved(key) && otherApi(`/${key}`) === undefined
    ? { answer: ofKey, key }
    : undefined
}

/**
 * Maximum number of bytes of a body that is copied into one chunk with the head. For a longer body, copying costs more
 * than writing a second chunk.
 */
const copied = 16 * 1024

const decodeLatin1 = ({ buffer, byteLength, byteOffset }: Uint8Array): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString("latin1")

/**
 * Writes the body of a response.
 *
 * Node writes a string in one chunk with the head, and writes each character of a Latin-1 string as one byte. Small
 * bodies are therefore passed as Latin-1 strings, whatever their bytes.
 */
const end = (response: ServerResponse, { body }: HttpServerResponse): void => {
  if (body instanceof Request.PiecedBody) {
    response.cork()
    for (const piece of body.pieces) response.write(piece)
    response.end()
  } else if (body._tag !== "Uint8Array") response.end()
  else if (body.text !== undefined) response.end(body.text, body.text.length === body.contentLength ? "latin1" : "utf8")
  else if (body.contentLength > copied) response.end(body.body)
  else response.end(decodeLatin1(body.body), "latin1")
}

/** Makes the response that refuses a handshake and closes the connection. */
const refusing = (request: IncomingMessage): ServerResponse => {
  const response = new ServerResponse(request)
  response.assignSocket(request.socket)
  response.on("finish", () => request.socket.end())
  return response
}

/** Makes the fast lane of a gateway. Interrupts unfinished requests when the scope ends. */
export const make = (
  { observe, record }: Pick<Observed, "observe" | "record">
): Effect.Effect<GatewayLane, never, FastLane | Scope.Scope> =>
  Effect.gen(function*() {
    const services = yield* Effect.context<FastLane | Scope.Scope>()
    const routes = Context.get(services, FastLane)
    const running = new Set<Fiber.Fiber<unknown, unknown>>()
    yield* Effect.addFinalizer(() => Fiber.interruptAll(running))
    const accept = Request.makeAcceptor()
    const contextAt = memoize((server: Context.Context<HttpServer.HttpServer>) =>
      Context.add(services, HttpServer.HttpServer, Context.get(server, HttpServer.HttpServer))
    )

    /**
     * Serves a request. Interrupts the request if `closing` emits `close`, which means that the client has
     * disconnected.
     */
    const begin = (
      server: Context.Context<HttpServer.HttpServer>,
      { answer, key }: Exclude<ReturnType<typeof find>, undefined>,
      message: IncomingMessage,
      closing: Net.Socket | ServerResponse,
      upgrade?: Request.IncomingRequest["upgrade"]
    ): void => {
      const { headers, method = "", url = "" } = message
      const given = closing instanceof ServerResponse ? closing : undefined
      const made = record({ method, headers, url, response: given })
      const redacted = key === undefined ? undefined : Request.redactKey(key, message)
      const incoming = Request.fromNode(message, made, redacted, upgrade)
      const answered = observe(made, (context) => answer(incoming, context), (whole, headers) => {
        const response = given ?? refusing(message)
        response.writeHead(whole.status, headers)
        end(response, whole)
      })
      const fiber = Effect.runForkWith(Context.add(contextAt(server), Request.CurrentRequestRecord, made))(answered)
      if (fiber.pollUnsafe() !== undefined) return
      const leave = () => fiber.interruptUnsafe()
      closing.on("close", leave)
      running.add(fiber)
      fiber.addObserver(() => {
        running.delete(fiber)
        closing.off("close", leave)
      })
    }

    const lane: GatewayLane = {
      serve: (server, request, response) => {
        const route = isPlain(request, response) ? find(routes, "POST", request.url ?? "") : undefined
        if (route !== undefined) begin(server, route, request, response)
        return route !== undefined
      },
      upgrade: (server, request, head) => {
        const [path = ""] = request.url?.split("?", 1) ?? []
        const route = request.method === "GET" ? find(routes, "GET", path) : undefined
        if (route === undefined) return false
        const { socket } = request
        // Node has removed its `error` listener from an upgraded connection; without a listener, an error would end the
        // process
        socket.on("error", constVoid)
        begin(server, route, request, socket, () => Exit.succeed(accept(request, head)))
        return true
      }
    }
    return lane
  })
