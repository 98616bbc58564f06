/** Requests that arrive before a program handles requests. */
import { assert, describe, it } from "@effect/vitest"
import * as Listener from "@trigate/server/requests/Listener"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { formatAddress, HttpServer } from "effect/http/HttpServer"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Diagnostics from "node:diagnostics_channel"
import type { Server } from "node:http"
import type { RawAnswer } from "./rawHttp.ts"
import { exchange, headOf } from "./rawHttp.ts"

const urlOf = (server: Server): string => {
  const address = server.address()
  return `http://127.0.0.1:${address !== null && typeof address === "object" ? address.port : 0}`
}

/** A server that listens, and for whose requests there is no listener. */
const listening = Effect.acquireRelease(
  Effect.callback<Server>((resume) => {
    const server = Listener.create()
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
  }),
  (server) =>
    Effect.callback<void>((resume) => {
      server.close(() => resume(Effect.void))
      server.closeAllConnections()
    })
)

/** Waits until this number of requests have arrived from now on. */
const arrived = (count: number) =>
  Effect.callback<void>((resume) => {
    let left = count
    const note = () => {
      left -= 1
      if (left > 0) return
      Diagnostics.unsubscribe("http.server.request.start", note)
      // the server gets the request after the channel
      queueMicrotask(() => resume(Effect.void))
    }
    Diagnostics.subscribe("http.server.request.start", note)
  })

/** Opens a connection, sends bytes that are no whole request, and waits until the server has the connection. */
const exchanging = Effect.fnUntraced(function*(server: Server, url: string, parts: ReadonlyArray<string>) {
  const connected = yield* Effect.forkChild(
    Effect.callback<void>((resume) => void server.once("connection", () => resume(Effect.void))),
    { startImmediately: true }
  )
  const exchanged = yield* Effect.forkChild(exchange(url, parts), { startImmediately: true })
  yield* Fiber.join(connected)
  return exchanged
})

/** Sends bytes, and waits until they have arrived as this number of requests. */
const sent = Effect.fnUntraced(function*(url: string, parts: ReadonlyArray<string>, count: number = 1) {
  const arriving = yield* Effect.forkChild(arrived(count), { startImmediately: true })
  const exchanging = yield* Effect.forkChild(exchange(url, parts), { startImmediately: true })
  yield* Fiber.join(arriving)
  return exchanging
})

/** Fails if something has not happened when another server has answered 500 requests: then nothing would ever end the wait. */
const soon = <A>(what: string, happening: Effect.Effect<A>) =>
  Effect.raceFirst(
    happening,
    Effect.scoped(Effect.gen(function*() {
      const other = yield* listening
      other.on("request", (_, response) => response.end())
      const url = urlOf(other)
      for (let request = 0; request < 500; request++) yield* exchange(url, [head("/")])
      return yield* Effect.die(new Error(`Not yet: ${what}`))
    }))
  )

/** Settles once the server has lost its next connection. */
const closed = (server: Server) =>
  new Promise<void>((resolve) => void server.once("connection", (socket) => void socket.once("close", () => resolve())))

/** Answers each request with its method, target and body length. Returns the targets of the requests that it gets. */
const describing = (server: Server): ReadonlyArray<string | undefined> => {
  const targets: Array<string | undefined> = []
  server.on("request", (request, response) => {
    targets.push(request.url)
    let length = 0
    request.on("data", (chunk: Buffer) => {
      length += chunk.length
    })
    request.on("end", () => response.end(`${request.method} ${request.url} ${length}`))
  })
  return targets
}

const head = (path: string) => headOf("GET", path, [])

const posted = (path: string, length: number, ...headers: ReadonlyArray<readonly [string, string]>) => [
  headOf("POST", path, [["content-length", String(length)], ...headers]),
  "b".repeat(length)
]

/** Requests on one connection; the last one asks for its end. */
const pipelined = (count: number): string =>
  "GET /first HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(count - 1) + head("/last")

const refusal = (detail: string) => ({
  detail,
  _tag: "Overloaded",
  retryAfter: 1,
  type: "urn:trigate:problem:overloaded",
  status: 503,
  title: "Overloaded"
})

const assertRefused = (answer: RawAnswer, detail: string) => {
  assert.deepStrictEqual([answer.status, answer.type], [503, "application/problem+json"])
  assert.match(answer.head, /^retry-after: 1\r$/imu)
  assert.match(answer.head, /^connection: close$/imu)
  assert.deepStrictEqual(JSON.parse(answer.body), refusal(detail))
}

const stopped = "The server was stopped before it handled requests"

describe("a server for whose requests there is no listener yet", () => {
  it.live("keeps each request until there is one, whatever it is", () =>
    Effect.gen(function*() {
      const server = yield* listening
      const url = urlOf(server)
      const early = [
        yield* sent(url, [head("/get")]),
        yield* sent(url, posted("/post", 4)),
        // more than Node reads ahead
        yield* sent(url, posted("/long", 1_000_000)),
        yield* sent(url, posted("/expect", 4, ["expect", "100-continue"])),
        yield* sent(url, [headOf("GET", "/", [["connection", "upgrade, close"], ["upgrade", "websocket"]])]),
        yield* sent(url, [pipelined(3)], 3)
      ]
      const targets = describing(server)
      assert.strictEqual((yield* exchange(url, [head("/late")])).body, "GET /late 0")
      // the early ones come first, so waiting for their answers cannot last for ever
      assert.strictEqual(targets.join(" "), "/get /post /long /expect / /first /first /last /late")
      const bodies = (yield* Effect.forEach(early, Fiber.join)).map(({ body }) => body)
      assert.deepStrictEqual(bodies.map((body) => body.match(/(?:GET|POST) \/\w* \d+/gu)), [
        ["GET /get 0"],
        ["POST /post 4"],
        ["POST /long 1000000"],
        ["POST /expect 4"],
        ["GET / 0"],
        ["GET /first 0", "GET /first 0", "GET /last 0"]
      ])
    }))

  it.live("keeps a number of them, refuses the next one at once, and has room again when clients leave", () =>
    Effect.gen(function*() {
      const server = yield* listening
      const url = urlOf(server)
      const gone = closed(server)
      const leaving = yield* sent(url, [pipelined(2)], 2)
      const staying = yield* sent(url, [pipelined(510)], 510)
      const full = "The server is starting, and too many requests wait for it"
      assertRefused(yield* exchange(url, [head("/beyond")]), full)
      assertRefused(yield* exchange(url, posted("/beyond", 1_000_000)), full)
      yield* Fiber.interrupt(leaving)
      yield* Effect.promise(() => gone)
      const coming = yield* sent(url, [pipelined(2)], 2)
      const targets = describing(server)
      yield* exchange(url, [head("/late")])
      assert.strictEqual(targets.indexOf("/late"), 512)
      const counts = (yield* Effect.forEach([staying, coming], Fiber.join)).map(({ body }) =>
        body.match(/GET \/(?:first|last) 0/gu)?.length
      )
      assert.deepStrictEqual(counts, [510, 2])
    }))

  it.live("refuses them when it closes, and closes connections on which there is none", () =>
    Effect.gen(function*() {
      const server = yield* listening
      const url = urlOf(server)
      const early = [
        yield* sent(url, [head("/get")]),
        yield* sent(url, posted("/post", 4)),
        yield* sent(url, [pipelined(2)], 2),
        // its client would send the rest
        yield* sent(url, [headOf("POST", "/half", [["content-length", "4"]])])
      ]
      const silent = yield* exchanging(server, url, [])
      const begun = yield* exchanging(server, url, ["GET / HT"])
      // settles once no connection is left
      yield* soon(
        "the server is closed",
        Effect.callback<void>((resume) => void server.close(() => resume(Effect.void)))
      )
      for (const answer of yield* Effect.forEach(early, Fiber.join)) assertRefused(answer, stopped)
      assert.strictEqual((yield* Fiber.join(silent)).status, 0)
      assert.strictEqual((yield* Fiber.join(begun)).status, 0)
    }))

  it.live("says in the members that the venue's clients read that an action was not sent", () =>
    Effect.gen(function*() {
      const server = yield* listening
      const action = yield* sent(urlOf(server), posted("/exchange", 4))
      server.close()
      const { body } = yield* soon("the action is refused", Fiber.join(action))
      assert.deepStrictEqual(JSON.parse(body), { ...refusal(stopped), code: 503, msg: stopped })
    }))
})

describe("a server whose program is interrupted while it starts", () => {
  it.effect("ends at once, and has answered", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const context = yield* Scope.provide(Layer.build(Listener.layer({ host: "127.0.0.1", port: 0 })), scope)
      const early = yield* sent(formatAddress(Context.get(context, HttpServer).address), [head("/get")])
      // no time passes: nothing can end by a time limit
      yield* Scope.close(scope, Exit.void)
      assertRefused(yield* soon("the request is refused", Fiber.join(early)), stopped)
    }))

  it.effect("gives requests to the app and to the fast lane once they are there", () =>
    Effect.gen(function*() {
      const context = yield* Layer.build(Listener.layer({ host: "127.0.0.1", port: 0 }))
      const url = formatAddress(Context.get(context, HttpServer).address)
      const [plain, ordinary] = [yield* sent(url, posted("/plain", 4)), yield* sent(url, posted("/ordinary", 4))]
      const lane: Listener.GatewayLane = {
        serve: (server, request, response) => {
          if (request.url !== "/plain") return false
          response.end(Context.getOrUndefined(server, HttpServer) === undefined ? "no server" : "lane")
          return true
        },
        upgrade: () => false
      }
      yield* Effect.provideContext(Listener.serve(Effect.succeed(HttpServerResponse.text("app")), { lane }), context)
      assert.deepStrictEqual([(yield* Fiber.join(plain)).body, (yield* Fiber.join(ordinary)).body], ["lane", "app"])
    }))
})

describe("an address", () => {
  it.live("is checked without listening on it", () =>
    Effect.gen(function*() {
      const server = yield* listening
      const port = Number(new URL(urlOf(server)).port)
      const codeOf = (host: string) =>
        Effect.match(Listener.checkAddress({ host, port }), {
          onFailure: ({ cause }) => cause instanceof Error && "code" in cause ? cause.code : cause,
          onSuccess: () => "free"
        })
      for (const host of ["127.0.0.1", "0.0.0.0", "localhost"]) assert.strictEqual(yield* codeOf(host), "EADDRINUSE")
      assert.strictEqual(yield* codeOf("192.0.2.1"), "EADDRNOTAVAIL")
      assert.strictEqual(yield* codeOf("no-such-host.invalid"), "ENOTFOUND")
      yield* Effect.callback<void>((resume) => void server.close(() => resume(Effect.void)))
      const connections: Array<unknown> = []
      server.on("connection", (socket) => connections.push(socket))
      assert.strictEqual(yield* codeOf("127.0.0.1"), "free")
      assert.strictEqual(yield* codeOf("0.0.0.0"), "free")
      yield* Effect.callback<void>((resume) => void server.listen(port, "127.0.0.1", () => resume(Effect.void)))
      assert.lengthOf(connections, 0)
    }))
})
