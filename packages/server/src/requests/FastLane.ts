/**
 * The fast lane: serves requests directly on Node's server, bypassing Effect's HTTP adapter and router.
 *
 * It serves two kinds of requests: a `POST` with a small body to the exact path of a relaying route, and the handshake
 * of a WebSocket. The request is observed and served by its route like any other request. This module only reads the
 * request from Node and writes the response. The fiber of a request starts synchronously.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { constVoid, memoize } from "effect/Function"
import * as HttpServer from "effect/http/HttpServer"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import type { HttpServerResponse } from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { Listener } from "../process/NodeServer.ts"
import { otherApi } from "../routes/NotFoundRoutes.ts"
import * as CallerSocket from "./CallerSocket.ts"
import * as IncomingRequest from "./IncomingRequest.ts"
import type { Observed } from "./Observe.ts"
import * as RequestBody from "./RequestBody.ts"
import { isReserved } from "./RequestCaller.ts"
import { CurrentRequestRecord } from "./RequestRecord.ts"
import * as ResponseBody from "./ResponseBody.ts"

import type * as Net from "node:net"
// @effect-diagnostics-next-line nodeBuiltinImport:off -- the lane is a listener of Node's server
import { type IncomingMessage, ServerResponse } from "node:http"

/** Serves a request of a route; every typed error becomes a response. */
export type RequestHandler = (request: IncomingRequest.IncomingRequest) => Effect.Effect<HttpServerResponse>

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
}>()("@trigate/server/requests/FastLane") {}

type Routes = FastLane["Service"]

/**
 * Makes an empty fast lane, to which a gateway adds its routes.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer: Layer.Layer<FastLane> = Layer.sync(
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
export interface Lane {
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
  lane: Lane | undefined
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
  method === "POST" && socket !== null && RequestBody.isSmall(headers) && headers.expect === undefined

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
  if (body instanceof ResponseBody.PiecedBody) {
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
): Effect.Effect<Lane, never, FastLane | Scope.Scope> =>
  Effect.contextWith((services: Context.Context<FastLane | Scope.Scope>) => {
    const routes = Context.get(services, FastLane)
    const scope = Context.get(services, Scope.Scope)
    const accept = CallerSocket.makeAcceptor()
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
      upgrade?: IncomingRequest.IncomingRequest["upgrade"]
    ): void => {
      const incoming = IncomingRequest.fromNode(
        message,
        key === undefined ? undefined : IncomingRequest.redactKey(key, message),
        upgrade
      )
      const { headers, method, url } = incoming
      const given = closing instanceof ServerResponse ? closing : undefined
      const made = record({ method, headers, url, response: given })
      const answered = observe(made, answer(incoming), (whole, headers) => {
        const response = given ?? refusing(message)
        response.writeHead(whole.status, headers)
        end(response, whole)
      })
      const fiber = Effect.runForkWith(Context.add(contextAt(server), CurrentRequestRecord, made))(answered)
      if (fiber.pollUnsafe() !== undefined) return
      const leave = () => fiber.interruptUnsafe()
      closing.on("close", leave)
      Fiber.runIn(fiber, scope).addObserver(() => closing.off("close", leave))
    }

    const lane: Lane = {
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
    return Effect.succeed(lane)
  })
