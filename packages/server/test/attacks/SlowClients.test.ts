/** Callers that send slowly, or read nothing: what they make the gateway keep is bounded, and others do not notice. */
import { assert, describe, it } from "@effect/vitest"
import * as NodeServer from "@trigate/server/requests/Listener"
import { gateway, get } from "@trigate/testing/Gateway"
import { isExhaustive } from "@trigate/testing/Sample"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { liveGateway } from "../liveGateway.ts"
import { posting, socketTo, statusOf } from "./socket.ts"

const mebibyte = 1024 * 1024

/** A query that has so many bytes, of a type that nobody knows. */
const query = (size: number): string => `{"type":"x","padding":"${"x".repeat(size - 25)}"}`

const gauge = (url: string, name: string) =>
  Effect.map(get(`${url}/metrics`), ({ text }) => Number(new RegExp(`^${name} (\\d+)$`, "mu").exec(text)?.[1]))

const bodyBytes = (url: string) => gauge(url, "trigate_request_body_bytes")

const uploading = Effect.fnUntraced(function*(url: string, from: string, count: number) {
  const uploads = yield* Effect.forEach(Array.from({ length: count }), () => socketTo(url, from), { concurrency: 50 })
  for (const { send } of uploads) yield* send(posting("/info", { "content-length": mebibyte }) + "{")
  return uploads
})

/** Asks whole queries of some sizes from an address, and gives the statuses. */
const asking = (url: string, from: string, ...sizes: ReadonlyArray<number>) =>
  Effect.forEach(sizes, (size) =>
    Effect.scoped(Effect.gen(function*() {
      const { answer, send } = yield* socketTo(url, from)
      yield* send(posting("/info", { "content-length": size }) + query(size))
      return statusOf(yield* answer)
    })))

describe("stalled uploads", () => {
  it.live("have a quarter of a common budget: what is beyond it is refused before it is read", () =>
    Effect.gen(function*() {
      const { seen, url } = yield* liveGateway({ api: () => ({ body: "{}" }) }, { TRIGATE_MEMORY_IN_FLIGHT: "8" })
      const count = isExhaustive ? 300 : 60
      const uploads = yield* uploading(url, "127.0.0.1", count)
      const refused = yield* Effect.forEach(uploads.slice(2), ({ answer }) => answer)
      assert.deepStrictEqual(refused.map(statusOf), Array.from({ length: count - 2 }, () => 503))
      assert.match(refused[0] ?? "", /^retry-after: 1\r$/imu)
      assert.include(refused[0], `"_tag":"Overloaded"`)
      assert.strictEqual(yield* bodyBytes(url), 2 * mebibyte)
      assert.deepStrictEqual(seen(), [])
      // what is small is not counted, and others have the rest
      assert.deepStrictEqual(yield* asking(url, "127.0.0.1", 4096, 4097), [200, 503])
      assert.deepStrictEqual(yield* asking(url, "127.0.0.2", 4097, mebibyte), [200, 200])
      // the memory is free again when their callers have left
      for (const { leave } of uploads) yield* leave
      yield* Effect.repeat(bodyBytes(url), { until: (bytes) => bytes === 0 })
      assert.deepStrictEqual(yield* asking(url, "127.0.0.1", mebibyte), [200])
    }))

  it.live("of many callers leave a quarter for bodies that are not large", () =>
    Effect.gen(function*() {
      const { url } = yield* liveGateway({ api: () => ({ body: "{}" }) }, { TRIGATE_MEMORY_IN_FLIGHT: "8" })
      for (const from of ["127.0.0.1", "127.0.0.2", "127.0.0.3"]) yield* uploading(url, from, 2)
      yield* Effect.repeat(bodyBytes(url), { until: (bytes) => bytes === 6 * mebibyte })
      assert.deepStrictEqual(yield* asking(url, "127.0.0.4", 64 * 1024 + 1, 64 * 1024), [503, 200])
    }))

  it.live("count as they grow where they do not say how long they are", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({ TRIGATE_MEMORY_IN_FLIGHT: "8" })
      const head = posting("/info", { "transfer-encoding": "chunked" })
      const half = mebibyte / 2
      const chunk = `${half.toString(16)}\r\n${"x".repeat(half)}\r\n`
      const uploads = yield* Effect.forEach(Array.from({ length: 4 }), () => socketTo(url))
      for (const { send } of uploads) yield* send(head + chunk)
      yield* Effect.repeat(bodyBytes(url), { until: (bytes) => bytes === 2 * mebibyte })
      const { answer, send } = yield* socketTo(url)
      yield* send(`${head}1001\r\n${"x".repeat(4097)}`)
      assert.strictEqual(statusOf(yield* answer), 503)
    }))
})

describe("answers that nobody reads", () => {
  it.live("have a common budget: beyond it the one that waits for longest is cut off", () =>
    Effect.gen(function*() {
      // more than the system takes for a connection
      const sizes = [13 * mebibyte, 14 * mebibyte]
      const { url } = yield* liveGateway(
        { api: ({ body }) => ({ body: `"${"y".repeat((sizes[body.includes("first") ? 0 : 1] ?? 0) - 2)}"` }) },
        { TRIGATE_MEMORY_IN_FLIGHT: "16" }
      )
      const asked = (type: string) => {
        const body = `{"type":"${type}"}`
        return posting("/info", { "content-length": body.length, connection: "close" }) + body
      }
      const first = yield* socketTo(url)
      yield* first.read(false)
      yield* first.send(asked("first"))
      yield* Effect.repeat(gauge(url, "trigate_unread_answer_bytes"), { until: (bytes) => bytes === sizes[0] })
      const second = yield* socketTo(url)
      yield* second.read(false)
      yield* second.send(asked("second"))
      yield* Effect.repeat(gauge(url, "trigate_unread_answer_bytes"), { until: (bytes) => bytes === sizes[1] })
      yield* first.read(true)
      assert.isBelow((yield* first.closed).length, sizes[0] ?? 0)
      yield* second.read(true)
      assert.isAbove((yield* second.closed).length, sizes[1] ?? 0)
      assert.strictEqual(yield* gauge(url, "trigate_unread_answer_bytes"), 0)
    }))
})

/** A server on which nothing may stand still for long. It answers when told; `/large` is more than the system takes for a connection. */
const impatient = Effect.acquireRelease(
  Effect.callback<Impatient>((resume) => {
    const told = Promise.withResolvers<void>()
    const cut = Promise.withResolvers<void>()
    const server = NodeServer.create({ stallTimeout: Duration.millis(100) })
    server.on("request", ({ url }, response) => {
      void told.promise.then(() => response.end("y".repeat(url === "/large" ? 12 * mebibyte : 1)))
      response.on("close", () => {
        if (response.writableEnded && !response.writableFinished) cut.resolve()
      })
    })
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      const port = address !== null && typeof address === "object" ? address.port : 0
      resume(Effect.succeed({
        url: `http://127.0.0.1:${port}`,
        answer: Effect.sync(told.resolve),
        isCut: Effect.promise(() => cut.promise),
        close: Effect.sync(() => void server.close())
      }))
    })
  }),
  ({ close }) => close
)

interface Impatient {
  readonly url: string
  /** Answers all requests that came, and those that come. */
  readonly answer: Effect.Effect<void>
  /** Settles when an answer was cut off. */
  readonly isCut: Effect.Effect<void>
  readonly close: Effect.Effect<void>
}

const whole = (path: string) => posting(path, { "content-length": 0, connection: "close" })

describe("a connection on which nothing moves", () => {
  it.live("is closed while its request is not whole, but not while it waits for its answer", () =>
    Effect.gen(function*() {
      const { answer, url } = yield* impatient
      const waiting = yield* socketTo(url)
      yield* waiting.send(whole("/"))
      const silent = yield* socketTo(url)
      const half = yield* socketTo(url)
      yield* half.send(`${posting("/", { "content-length": 2 })}{`)
      assert.strictEqual(yield* silent.closed, "")
      assert.strictEqual(yield* half.closed, "")
      // it has stood still for longer than those two
      yield* answer
      assert.match(yield* waiting.closed, /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\ny$/u)
    }))

  it.live("is not closed if the rest of its request arrived while the process was suspended", () =>
    Effect.gen(function*() {
      const server = NodeServer.create()
      yield* Effect.acquireRelease(
        Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
        () => Effect.sync(() => void server.close())
      )
      const address = server.address()
      const { closed, send } = yield* socketTo(`http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`)
      const suspended = Effect.callback<() => void>((resume) => {
        server.once("request", (request, response) => {
          request.resume().once("end", () => response.end("y"))
          resume(Effect.succeed(() => void request.socket.emit("timeout")))
        })
      })
      const begun = yield* Effect.forkChild(suspended, { startImmediately: true })
      yield* send(`${posting("/", { "content-length": 2, connection: "close" })}{`)
      const passTimeout = yield* Fiber.join(begun)
      // the system has the rest of the request before the timer of the connection runs, and the server has not read it
      const sending = yield* Effect.forkChild(send("}"), { startImmediately: true })
      passTimeout()
      yield* Fiber.join(sending)
      assert.match(yield* closed, /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\ny$/u)
    }))

  it.live("is closed while its answer is not read", () =>
    Effect.gen(function*() {
      const { answer, isCut, url } = yield* impatient
      yield* answer
      const unread = yield* socketTo(url)
      yield* unread.read(false)
      yield* unread.send(whole("/large"))
      yield* isCut
      yield* unread.read(true)
      assert.isBelow((yield* unread.closed).length, 12 * mebibyte)
    }))
})

describe("connections", () => {
  it.live("are capped for each address, and in all", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({ TRIGATE_MAX_CONNECTIONS: "8" })
      const alive = "GET /health/live HTTP/1.1\r\nhost: localhost\r\n\r\n"
      const opened = Effect.fnUntraced(function*(from: string) {
        const socket = yield* socketTo(url, from)
        yield* socket.send(alive)
        return { ...socket, status: statusOf(yield* socket.answer) }
      })
      const [first, ...others] = yield* Effect.forEach([1, 2, 3], () => opened("127.0.0.1"))
      assert.deepStrictEqual([first?.status, ...others.map(({ status }) => status)], [200, 200, 0])
      const many = yield* Effect.forEach([2, 2, 2, 3, 3, 4, 4, 5], (last) => opened(`127.0.0.${last}`))
      assert.deepStrictEqual(many.map(({ status }) => status), [200, 200, 0, 200, 200, 200, 200, 0])
      // one that leaves makes room
      yield* first?.leave ?? Effect.void
      const again = yield* Effect.repeat(opened("127.0.0.5"), { until: ({ status }) => status !== 0 })
      assert.strictEqual(again.status, 200)
    }))

  it.live("of a trusted proxy are capped in all only", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({ TRIGATE_MAX_CONNECTIONS: "8", TRIGATE_TRUSTED_PROXIES: "127.0.0.0/8" })
      const statuses = yield* Effect.forEach(Array.from({ length: 9 }), () =>
        Effect.gen(function*() {
          const { answer, send } = yield* socketTo(url)
          yield* send("GET /health/live HTTP/1.1\r\nhost: localhost\r\n\r\n")
          return statusOf(yield* answer)
        }))
      assert.deepStrictEqual(statuses, [...Array.from({ length: 8 }, () => 200), 0])
    }))

  it("are looked at every second, so that a slow head or body ends in time", () => {
    assert.strictEqual(Reflect.get(NodeServer.create(), "connectionsCheckingInterval"), 1000)
  })
})
