/** Serves an HTTP app of Effect, with its WebSockets, at an address of a simulated network. */
import * as Encoding from "@trigate/domain/encoding/Encoding"
import { SocketLost } from "@trigate/upstream/streams/SocketTransport"
import type { TransportRequest, TransportResponse } from "@trigate/upstream/transport/HttpTransport"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { constVoid } from "effect/Function"
import * as Cookies from "effect/http/Cookies"
import * as Headers from "effect/http/Headers"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import { HttpServerError, RequestParseError } from "effect/http/HttpServerError"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import type { HttpServerResponse } from "effect/http/HttpServerResponse"
import { NodeInspectSymbol } from "effect/Inspectable"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Socket from "effect/socket/Socket"
import * as Stream from "effect/Stream"
import { Inbox, type Server } from "./Network.ts"
import type * as Simulation from "./Simulation.ts"

/** An HTTP app, such as the result of `HttpRouter.toHttpEffect`. */
export type App<E = never> = Effect.Effect<HttpServerResponse, E, HttpServerRequest.HttpServerRequest | Scope.Scope>

interface Received {
  readonly method: string
  readonly url: string
  readonly headers: Headers.Headers
  readonly body: Uint8Array
  readonly remoteAddress: Option.Option<string>
  readonly peerAddress?: Option.Option<string>
  readonly protocol?: "http" | "https"
  /** Node's message as far as a gateway reads it: the connection of a WebSocket. */
  readonly source: object
  readonly upgrade: Effect.Effect<Socket.Socket, HttpServerError>
}

const parseJson = Schema.decodeEffect(Schema.fromJsonString(Schema.Json))

/** Makes the request that an app receives. Its body is complete. */
const makeRequest = (received: Received): HttpServerRequest.HttpServerRequest => {
  const { body, headers, method, remoteAddress, source, upgrade, url } = received
  const text = Effect.sync(() => new TextDecoder().decode(body))
  const unsupported = (description: string) =>
    new HttpServerError({ reason: new RequestParseError({ request, description }) })
  const request: HttpServerRequest.HttpServerRequest = {
    [HttpServerRequest.TypeId]: HttpServerRequest.TypeId,
    [HttpIncomingMessage.TypeId]: HttpIncomingMessage.TypeId,
    source,
    method,
    url,
    originalUrl: url,
    headers,
    cookies: Cookies.parseHeader(headers["cookie"] ?? ""),
    remoteAddress,
    peerAddress: received.peerAddress ?? remoteAddress,
    protocol: received.protocol,
    text,
    arrayBuffer: Effect.sync(() => new Uint8Array(body).buffer),
    json: Effect.flatMap(text, (found) => Effect.mapError(parseJson(found), () => unsupported("not JSON"))),
    stream: Stream.make(body),
    urlParamsBody: Effect.suspend(() => Effect.fail(unsupported("no form is simulated"))),
    multipart: Effect.die("no multipart body is simulated"),
    multipartStream: Stream.die("no multipart body is simulated"),
    upgrade,
    upgradeWith: () => upgrade,
    modify: (changes) => makeRequest({ ...received, ...changes }),
    toJSON: () => ({ method, url }),
    [NodeInspectSymbol]: () => `${method} ${url}`,
    toString: () => `${method} ${url}`
  }
  return request
}

const noUpgrade = Effect.die("no handshake of a WebSocket")

/** Returns the bytes of a response. A stream is read to its end. */
const bodyBytes = ({ body }: HttpServerResponse): Effect.Effect<Uint8Array> => {
  switch (body._tag) {
    case "Empty":
      return Effect.succeed(new Uint8Array())
    case "Uint8Array":
      return Effect.succeed(body.body)
    case "Stream":
      return Effect.map(Stream.runCollect(Stream.orDie(body.stream)), (chunks) => {
        const bytes = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0))
        let at = 0
        for (const chunk of chunks) {
          bytes.set(chunk, at)
          at += chunk.length
        }
        return bytes
      })
    default:
      return Effect.die(`a body of the kind ${body._tag} is not simulated`)
  }
}

const formatTarget = (url: Redacted.Redacted): string => {
  const { pathname, search } = new URL(Redacted.value(url))
  return `${pathname}${search}`
}

/** Splits the bytes of a server into WebSocket frames, and returns the texts of those that contain text. */
const makeFrameReader = () => {
  let rest = new Uint8Array()
  return (bytes: Uint8Array): ReadonlyArray<string> => {
    const texts: Array<string> = []
    const all = new Uint8Array(rest.length + bytes.length)
    all.set(rest)
    all.set(bytes, rest.length)
    const view = new DataView(all.buffer)
    let at = 0
    while (all.length - at >= 2) {
      const short = view.getUint8(at + 1)
      const head = short < 126 ? 2 : short === 126 ? 4 : 10
      if (all.length - at < head) break
      const length = head === 2 ? short : head === 4 ? view.getUint16(at + 2) : Number(view.getBigUint64(at + 2))
      if (all.length - at < head + length) break
      const payload = all.subarray(at + head, at + head + length)
      if ((view.getUint8(at) & 0x0F) === 1) texts.push(new TextDecoder().decode(payload))
      at += head + length
    }
    rest = all.slice(at)
    return texts
  }
}

/** Makes the two ends of a WebSocket between an app and the network. */
const makeSocket = () => {
  const toClient = new Inbox()
  const toServer = new Inbox()
  const read = makeFrameReader()
  let written = 0
  let received = 0
  const end = (code: number, reason: string): void => {
    const lost = new SocketLost({ code, reason })
    toClient.end(lost)
    toServer.end(lost)
  }
  return {
    toClient,
    /** The members of Node's socket that a gateway's session uses. */
    connection: {
      get bytesRead() {
        return received
      },
      get bytesWritten() {
        return written
      },
      writableLength: 0,
      write: (bytes: Uint8Array): boolean => {
        written += bytes.length
        const texts = read(bytes)
        if (texts.length > 0) toClient.push(texts)
        return true
      },
      on: constVoid,
      off: constVoid,
      cork: constVoid,
      uncork: constVoid,
      destroy: () => end(1006, "")
    },
    socket: Socket.make({
      reader: Effect.succeed({
        pull: Effect.mapError(
          toServer.receive,
          ({ code, reason }) =>
            new Socket.SocketError({ reason: new Socket.SocketCloseError({ code, closeReason: reason }) })
        ),
        upgrade: () => Effect.die("no TLS is simulated")
      }),
      writer: Effect.succeed({
        write: (chunk: Uint8Array | string | Socket.CloseEvent) =>
          Effect.sync(() => {
            if (Predicate.isString(chunk)) toClient.push([chunk])
            else if (Socket.isCloseEvent(chunk)) end(chunk.code, chunk.reason ?? "")
          }),
        writeAll: (chunks: ReadonlyArray<Uint8Array | string>) =>
          Effect.sync(() => toClient.push(chunks.filter(Predicate.isString)))
      })
    }),
    send: (text: string): void => {
      received += text.length
      toServer.push([text])
    },
    close: () => end(1006, "")
  }
}

const handshakeHeaders = {
  upgrade: "websocket",
  connection: "Upgrade",
  "sec-websocket-version": "13",
  "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA=="
}

/**
 * Makes the server of a node from its HTTP app, for `serve` of a network.
 *
 * @since 0.1.0
 * @category services
 */
export const make = <E>(node: Simulation.Node, app: App<E>): Server => {
  const run = (request: HttpServerRequest.HttpServerRequest) =>
    Effect.scoped(Effect.provideService(app, HttpServerRequest.HttpServerRequest, request))
  return {
    node,
    http: Effect.fnUntraced(function*({ body, headers, method, url }: TransportRequest, from: Simulation.Node) {
      const sent = body ?? new Uint8Array()
      const response = yield* Effect.orDie(run(makeRequest({
        method,
        url: formatTarget(url),
        headers: Headers.fromInput({
          host: new URL(Redacted.value(url)).host,
          "content-length": String(sent.length),
          ...headers
        }),
        body: sent,
        remoteAddress: Option.some(from.address),
        source: {},
        upgrade: noUpgrade
      })))
      return {
        status: response.status,
        headers: response.body._tag === "Empty" || response.body.contentType === undefined
          ? response.headers
          : { ...response.headers, "content-type": response.body.contentType },
        body: yield* bodyBytes(response)
      } satisfies TransportResponse
    }),
    accept: Effect.fnUntraced(function*(address, from) {
      const ends = makeSocket()
      const opened = yield* Deferred.make<void, SocketLost>()
      const request = makeRequest({
        method: "GET",
        url: formatTarget(address),
        headers: Headers.fromInput({ host: new URL(Redacted.value(address)).host, ...handshakeHeaders }),
        body: new Uint8Array(),
        remoteAddress: Option.some(from.address),
        source: { socket: ends.connection, url: formatTarget(address) },
        upgrade: Effect.as(Deferred.succeed(opened, undefined), ends.socket)
      })
      yield* Effect.forkScoped(Effect.matchCauseEffect(run(request), {
        onFailure: () => Effect.void,
        // a response other than the handshake's
        onSuccess: ({ status }) => Deferred.fail(opened, new SocketLost({ code: 1006, reason: "refused", status }))
      }))
      yield* Effect.addFinalizer(() => Effect.sync(ends.close))
      yield* Deferred.await(opened)
      return {
        receive: ends.toClient.receive,
        send: (text: string) => Effect.sync(() => ends.send(text))
      }
    })
  }
}

/** Decodes the body of a response. */
export const bodyText = ({ body }: TransportResponse): string =>
  Array.isArray(body)
    ? body.map((chunk: Uint8Array) => Encoding.decodeLossy(chunk)).join("")
    : body instanceof Uint8Array
    ? Encoding.decodeLossy(body)
    : ""
