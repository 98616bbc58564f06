import { assert, describe, it } from "@effect/vitest"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import * as InfoProtocol from "@trigate/domain/info/InfoOperations"
import { spotMeta } from "@trigate/domain/info/InfoOperations"
import * as Operation from "@trigate/domain/operations/Operation"
import * as Pipeline from "@trigate/upstream/Pipeline"
import * as HttpTransportHttpClient from "@trigate/upstream/transport/HttpTransport"
import { HttpTransport, timedOut, TransportError } from "@trigate/upstream/transport/HttpTransport"
import * as HttpTransportUndici from "@trigate/upstream/transport/HttpTransportUndici"
import * as Upstream from "@trigate/upstream/unstable/Upstream"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as Net from "node:net"

const submit = Operation.once({
  name: "evmUserModify",
  chain: "trading",
  protocol: "exchange",
  summary: "",
  sources: ["official-api"],
  cost: { weight: 1, requestUnits: 1 },
  request: Schema.Unknown,
  response: Schema.Unknown,
  failures: [],
  advice: "Resend the identical bytes"
})

interface Peer {
  readonly address: string
  readonly requests: Array<string>
}

/** A raw TCP peer: counts the requests it sees and reacts to each as told. */
const peer = (react: (socket: Net.Socket, request: string) => void) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly server: Net.Server } & Peer>((resume) => {
      const requests: Array<string> = []
      const sockets = new Set<Net.Socket>()
      const server = Net.createServer((socket) => {
        sockets.add(socket)
        socket.on("error", () => {})
        socket.on("close", () => sockets.delete(socket))
        socket.on("data", (data) => {
          requests.push(data.toString())
          react(socket, data.toString())
        })
      })
      server.on("close", () => sockets.clear())
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const port = address !== null && typeof address === "object" ? address.port : 0
        resume(Effect.succeed({ server, address: `http://127.0.0.1:${port}`, requests }))
      })
    }),
    ({ server }) => Effect.sync(() => server.close())
  )

const closedPort = Effect.scoped(Effect.map(peer(() => {}), ({ address }) => address))

const reply = (status: string, type: string, body: string) => (socket: Net.Socket) => {
  socket.end(
    `HTTP/1.1 ${status}\r\ncontent-type: ${type}\r\ncontent-length: ${
      Buffer.byteLength(body)
    }\r\nconnection: close\r\n\r\n${body}`
  )
}
const reset = (socket: Net.Socket) => {
  socket.resetAndDestroy()
}
const halfBody = (socket: Net.Socket) => {
  socket.write("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"half\":", () => {
    socket.resetAndDestroy()
  })
}

const body = Utf8.encode("{\"type\":\"spotMeta\"}")

const targets = (...addresses: ReadonlyArray<string>) => {
  const [first, ...rest] = Upstream.targets(Upstream.make("trading-api", addresses), "/info")
  assert.isDefined(first)
  return [first, ...rest] as const
}

const read = (calls: Pipeline.Pipeline["Service"], ...addresses: ReadonlyArray<string>) =>
  calls.attempt({ operation: spotMeta, targets: targets(...addresses) }, { body, judge: InfoProtocol.judge(spotMeta) })

const once = (calls: Pipeline.Pipeline["Service"], ...addresses: ReadonlyArray<string>) =>
  calls.once({ operation: submit, targets: targets(...addresses), body }, { nonce: 1_700_000_000_000 })

const transports = {
  undici: HttpTransportUndici.layer(),
  fetch: HttpTransportHttpClient.layer.pipe(Layer.provide(FetchHttpClient.layer))
}

for (const [name, transport] of Object.entries(transports)) {
  const within = (deadline: "2 seconds" | "2 minutes") =>
    Pipeline.layer({ readDeadline: deadline, onceDeadline: deadline, maxAnswerBytes: 4096 }).pipe(
      Layer.provide(transport)
    )
  const layer = within("2 seconds")
  describe(`Calls over ${name}`, () => {
    it.live("relays status, content type and bytes as they came", () =>
      Effect.gen(function*() {
        const upstream = yield* peer(reply("422 Unprocessable Entity", "text/plain", "Failed to deserialize"))
        const calls = yield* Pipeline.Pipeline
        const answer = yield* read(calls, upstream.address)
        assert.strictEqual(answer.status, 422)
        assert.strictEqual(answer.contentType, "text/plain")
        assert.strictEqual(answer.text, "Failed to deserialize")
        assert.strictEqual(answer.upstream, "trading-api")
        assert.strictEqual(upstream.requests.length, 1)
        assert.isTrue(upstream.requests[0]?.endsWith("\r\n\r\n{\"type\":\"spotMeta\"}"))
      }).pipe(Effect.scoped, Effect.provide(layer)))

    it.live("a read moves on: refused, reset, half a body, a server fault, HTML, cut JSON", () =>
      Effect.gen(function*() {
        const dead = yield* closedPort
        const resetting = yield* peer(reset)
        const half = yield* peer(halfBody)
        const failing = yield* peer(reply("503 Service Unavailable", "application/json", "null"))
        const html = yield* peer(reply("200 OK", "text/html", "<html></html>"))
        const cut = yield* peer(reply("200 OK", "application/json", "{\"universe\":["))
        const good = yield* peer(reply("200 OK", "application/json", "{}"))
        const calls = yield* Pipeline.Pipeline
        const answer = yield* read(
          calls,
          dead,
          resetting.address,
          half.address,
          failing.address,
          html.address,
          cut.address,
          good.address
        )
        assert.strictEqual(answer.text, "{}")
        for (const each of [resetting, half, failing, html, cut, good]) assert.strictEqual(each.requests.length, 1)
      }).pipe(Effect.scoped, Effect.provide(within("2 minutes"))))

    it.live("a read that fails everywhere says how often it tried", () =>
      Effect.gen(function*() {
        const dead = yield* closedPort
        const resetting = yield* peer(reset)
        const calls = yield* Pipeline.Pipeline
        const error = yield* Effect.flip(read(calls, dead, resetting.address))
        assert.strictEqual(error._tag, "UpstreamUnavailable")
        if (error._tag === "UpstreamUnavailable") assert.strictEqual(error.attempts, 3)
      }).pipe(Effect.scoped, Effect.provide(layer)))

    it.live("an answer above the bound is refused, plain or compressed", () =>
      Effect.gen(function*() {
        const upstream = yield* peer(reply("200 OK", "application/json", `"${"x".repeat(5000)}"`))
        const calls = yield* Pipeline.Pipeline
        const error = yield* Effect.flip(read(calls, upstream.address))
        assert.strictEqual(error._tag, "UpstreamMalformed")
      }).pipe(Effect.scoped, Effect.provide(layer)))

    it.live("a refusal that quotes its path does not give the key away", () =>
      Effect.gen(function*() {
        const upstream = yield* peer(reply("404 Not Found", "text/plain", "no route /SECRET-KEY/info here"))
        const calls = yield* Pipeline.Pipeline
        const answer = yield* read(calls, `${upstream.address}/SECRET-KEY`)
        assert.strictEqual(answer.status, 404)
        assert.strictEqual(answer.text, "no route /…/info here")
      }).pipe(Effect.scoped, Effect.provide(layer)))

    it.live("a redirect is never followed", () =>
      Effect.gen(function*() {
        const target = yield* peer(reply("200 OK", "application/json", "{}"))
        const upstream = yield* peer((socket) => {
          socket.end(`HTTP/1.1 307 Temporary Redirect\r\nlocation: ${target.address}\r\ncontent-length: 0\r\n\r\n`)
        })
        const calls = yield* Pipeline.Pipeline
        const error = yield* Effect.flip(read(calls, upstream.address))
        assert.strictEqual(error._tag, "UpstreamMalformed")
        assert.strictEqual(target.requests.length, 0)
      }).pipe(Effect.scoped, Effect.provide(layer)))

    for (
      const [fault, react] of Object.entries({
        "a reset after the request": reset,
        "half a body": halfBody,
        "HTML from in between": reply("502 Bad Gateway", "text/html", "<html></html>"),
        "JSON that ends too early": reply("200 OK", "application/json", "{\"status\":\"ok\""),
        "an empty answer": reply("200 OK", "application/json", "")
      })
    ) {
      it.live(`a once call is sent once: ${fault}`, () =>
        Effect.gen(function*() {
          const broken = yield* peer(react)
          const second = yield* peer(reply("200 OK", "application/json", "{}"))
          const calls = yield* Pipeline.Pipeline
          const error = yield* Effect.flip(
            once(calls, broken.address, second.address)
          )
          assert.strictEqual(error._tag, "OutcomeUnknown")
          if (error._tag === "OutcomeUnknown") assert.strictEqual(error.nonce, 1_700_000_000_000)
          assert.strictEqual(broken.requests.length, 1)
          assert.strictEqual(second.requests.length, 0)
        }).pipe(Effect.scoped, Effect.provide(layer)))
    }

    it.live("a once call keeps the venue's own server fault", () =>
      Effect.gen(function*() {
        const upstream = yield* peer(reply("500 Internal Server Error", "application/json", "null"))
        const calls = yield* Pipeline.Pipeline
        const answer = yield* once(calls, upstream.address)
        assert.strictEqual(answer.status, 500)
        assert.strictEqual(answer.text, "null")
        assert.strictEqual(upstream.requests.length, 1)
      }).pipe(Effect.scoped, Effect.provide(layer)))
  })
}

describe("the once rule and the connection", () => {
  it.live("undici knows that a refused connection sent nothing, and moves on", () =>
    Effect.gen(function*() {
      const dead = yield* closedPort
      const good = yield* peer(reply("200 OK", "application/json", "{\"status\":\"ok\"}"))
      const calls = yield* Pipeline.Pipeline
      const answer = yield* once(calls, dead, good.address)
      assert.strictEqual(answer.text, "{\"status\":\"ok\"}")
      assert.strictEqual(good.requests.length, 1)
      const error = yield* Effect.flip(once(calls, dead))
      assert.strictEqual(error._tag, "UpstreamUnavailable")
    }).pipe(Effect.scoped, Effect.provide(Pipeline.layer().pipe(Layer.provide(HttpTransportUndici.layer())))))
})

const silent = Layer.succeed(
  HttpTransport,
  HttpTransport.of({
    send: ({ timeout }) => Effect.flatMap(Effect.sleep(timeout), () => Effect.fail(timedOut("maybe", timeout)))
  })
)

describe("deadlines", () => {
  it.effect("a read that gets no answer is UpstreamTimeout after its deadline", () =>
    Effect.gen(function*() {
      const calls = yield* Pipeline.Pipeline
      const fiber = yield* Effect.forkChild(Effect.flip(read(calls, "http://a", "http://b")))
      yield* TestClock.adjust("10 seconds")
      const error = yield* Fiber.join(fiber)
      assert.strictEqual(error._tag, "UpstreamTimeout")
      if (error._tag === "UpstreamTimeout") assert.strictEqual(error.deadline, 10_000)
    }).pipe(Effect.provide(Pipeline.layer().pipe(Layer.provide(silent)))))

  it.effect("a once call that gets no answer is OutcomeUnknown after its deadline", () =>
    Effect.gen(function*() {
      const calls = yield* Pipeline.Pipeline
      const fiber = yield* Effect.forkChild(Effect.flip(once(calls, "http://a")))
      yield* TestClock.adjust("20 seconds")
      const error = yield* Fiber.join(fiber)
      assert.strictEqual(error._tag, "OutcomeUnknown")
    }).pipe(Effect.provide(Pipeline.layer().pipe(Layer.provide(silent)))))

  it.effect("no error text holds an address", () =>
    Effect.gen(function*() {
      const calls = yield* Pipeline.Pipeline
      const error = yield* Effect.flip(read(calls, "http://node.example/SECRET-KEY"))
      assert.notInclude(JSON.stringify(error), "SECRET-KEY")
      const refused = Upstream.make("layer2", ["http://node.example/SECRET-KEY/"])
      assert.notInclude(JSON.stringify(refused), "SECRET-KEY")
      assert.deepStrictEqual(refused.addresses.map(Redacted.value), ["http://node.example/SECRET-KEY"])
    }).pipe(
      Effect.provide(
        Pipeline.layer({ attempts: 1 }).pipe(
          Layer.provide(Layer.succeed(
            HttpTransport,
            HttpTransport.of({
              send: () => Effect.fail(new TransportError({ sent: "no", reason: "Connect", detail: "ECONNREFUSED" }))
            })
          ))
        )
      )
    ))
})
