import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, describe, it } from "@effect/vitest"
import { longestBatch } from "@trigate/domain/evm/EvmProtocol"
import { Layer2 } from "@trigate/evm/Layer2"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import * as Gateway from "@trigate/server/Gateway"
import * as Pipelining from "@trigate/server/requests/Listener"
import { gateway, get } from "@trigate/testing/Gateway"
import { recordingUpstream } from "@trigate/testing/RecordingUpstream"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { formatAddress, HttpServer } from "effect/http/HttpServer"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Http from "node:http"
import * as Net from "node:net"
import { heldUpstream } from "../connections.ts"

const receipt = `{"jsonrpc":"2.0","id":1,"method":"eth_getTransactionReceipt","params":["0x${"ab".repeat(32)}"]}`

const spotMeta = `{"universe":[],"tokens":[]}`

const reading = (path: string) => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`
const calling = `POST /l2 HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n` +
  `content-length: ${receipt.length}\r\n\r\n${receipt}`

/** Sends a text on a socket of its own at once, and gives what came back until the server closes. */
const sending = (url: string, text: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const { hostname, port } = new URL(url)
      const socket = Net.connect({ host: hostname, port: Number(port), noDelay: true })
      const closed = Promise.withResolvers<string>()
      let came = ""
      socket.on("error", () => {})
      socket.on("data", (chunk: Buffer) => {
        came += chunk.toString("latin1")
      })
      socket.on("close", () => closed.resolve(came))
      socket.write(text)
      return { closed: Effect.promise(() => closed.promise), leave: () => socket.resetAndDestroy() }
    }),
    ({ leave }) => Effect.sync(leave)
  )

/** A counter that others wait for. */
const counter = () => {
  const latch = Latch.makeUnsafe()
  let count = 0
  let awaited = Number.POSITIVE_INFINITY
  return {
    count: () => count,
    add: Effect.sync(() => {
      count++
      if (count >= awaited) latch.openUnsafe()
    }),
    reaches: (wanted: number) =>
      Effect.suspend(() => {
        awaited = wanted
        return count >= wanted ? Effect.void : latch.await
      })
  }
}

/** A gateway on a server of one's own, whose layer 2 never answers; its first call does as told. */
const silent = Effect.fnUntraced(function*(first: Effect.Effect<void> = Effect.never) {
  const begun = counter()
  const ended = counter()
  const waiting = Layer.effect(
    Layer2,
    Effect.map(Layer2, (layer2) => ({
      ...layer2,
      relay: () =>
        Effect.andThen(
          begun.add,
          Effect.suspend(() =>
            Effect.onInterrupt(
              begun.count() === 1 ? Effect.andThen(first, Effect.never) : Effect.never,
              () => ended.add
            )
          )
        )
    }))
  ).pipe(Layer.provideMerge(Sandbox.layer()))
  const app = Gateway.layer({ relay: { anyInfo: true, methods: [], maxBatch: longestBatch } }).pipe(
    Layer.provide(waiting),
    Layer.provide(Gateway.layerDefaults({ sandbox: true }))
  )
  const server = NodeHttpServer.layer(() => Http.createServer(), { port: 0, host: "127.0.0.1" })
  const context = yield* Layer.build(
    HttpRouter.serve(app, { disableLogger: true, disableListenLog: true }).pipe(Layer.provideMerge(server))
  )
  return { begun, ended, url: formatAddress(Context.get(context, HttpServer).address) }
})

/** Counts how often the metrics are made into a text. */
const renderings = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => {
      let count = 0
      const get = () => {
        count++
        return { value: 1 }
      }
      const metric = Metric.gauge("test_renderings")
      const ignore = () => {}
      const registered = Metric.registerUnsafe(metric, Context.empty(), { get, update: ignore, modify: ignore })
      return { count: () => count, registered }
    }),
    ({ registered }) => Effect.sync(() => registered.remove())
  ),
  ({ count }) => count
)

describe("a client that sends many requests before it reads an answer", () => {
  it.live("has so many of them handled, and with one more its connection closes and all of them end", () =>
    Effect.gen(function*() {
      const { begun, ended, url } = yield* silent()
      const { closed } = yield* sending(url, calling.repeat(5000))
      assert.strictEqual(yield* closed, "")
      yield* ended.reaches(1 + Pipelining.maxWaiting)
      assert.strictEqual(begun.count(), 1 + Pipelining.maxWaiting)
      assert.strictEqual(ended.count(), 1 + Pipelining.maxWaiting)
      assert.strictEqual((yield* get(`${url}/health/live`)).status, 200)
    }))

  it.live("ends all that is done for it when it leaves, also behind a call that has to go on", () =>
    Effect.gen(function*() {
      const sent = Latch.makeUnsafe()
      const { begun, ended, url } = yield* silent(Effect.uninterruptible(sent.await))
      const { leave } = yield* sending(url, calling.repeat(10))
      yield* begun.reaches(10)
      leave()
      yield* ended.reaches(9)
      assert.strictEqual(ended.count(), 9)
      yield* sent.open
      yield* ended.reaches(10)
    }))

  it.live("ends each call of the longest batch when it leaves", () =>
    Effect.gen(function*() {
      const { begun, ended, url } = yield* silent()
      const batch = `[${Array.from({ length: longestBatch }, () => receipt).join(",")}]`
      const { leave } = yield* sending(
        url,
        `POST /l2 HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n` +
          `content-length: ${batch.length}\r\n\r\n${batch}`
      )
      yield* begun.reaches(longestBatch)
      leave()
      yield* ended.reaches(longestBatch)
    }))

  it.live("gets every answer in its order, up to the limit and again afterwards", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const last = `GET /health/live HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`
      const many = Array.from({ length: Pipelining.maxWaiting }, (_, index) =>
        reading(index % 2 === 0 ? "/none" : "/health/live"))
      const { closed } = yield* sending(url, many.join("") + last)
      const statuses = [...(yield* closed).matchAll(/HTTP\/1\.1 (\d+)/gu)].map(([, status]) =>
        status
      )
      assert.deepStrictEqual(statuses, [...many.map((_, index) => index % 2 === 0 ? "404" : "200"), "200"])
    }))

  it.live("has the metrics made into a text once for all that came together", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const made = yield* renderings
      const last = `GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`
      const { closed } = yield* sending(url, reading("/metrics").repeat(9) + last)
      const answers = yield* closed
      assert.strictEqual(answers.split("HTTP/1.1 200 OK").length - 1, 10)
      assert.strictEqual(answers.split("\ntest_renderings 1\n").length - 1, 10)
      assert.strictEqual(made(), 1)
    }))
})

describe("a request behind another that asks for 100 Continue", () => {
  it.live("gets no part of it into its answer", () =>
    Effect.gen(function*() {
      const held = yield* heldUpstream
      const api = yield* recordingUpstream(() => ({ status: 200, body: spotMeta }))
      const { url } = yield* gateway({ TRIGATE_LAYER2_URL: held.url, TRIGATE_TRADING_API_URL: api.url })
      const query = `{"type":"spotMeta"}`
      const expecting = "POST /info HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n" +
        `expect: 100-continue\r\nconnection: close\r\ncontent-length: ${query.length}\r\n\r\n${query}`
      const { closed } = yield* sending(url, `${calling}${expecting}`)
      yield* Effect.promise(() => held.asked)
      // an answer that is ready waits for the one before it
      yield* Effect.repeat(get(`${url}/health/live`), { until: () => api.seen.length > 0 })
      yield* Effect.repeat(get(`${url}/health/live`), { times: 10 })
      held.release(`{"jsonrpc":"2.0","id":1,"result":null}`)
      const came = yield* closed
      const [first = "", second = ""] = came.split(/(?=HTTP\/1\.1 200 OK\r\n)/u)
      assert.match(first, /\r\n\r\n\{"jsonrpc":"2\.0","id":1,"result":null\}$/u)
      assert.strictEqual(second.slice(second.indexOf("\r\n\r\n") + 4), spotMeta)
    }))
})

describe("a request behind another that expects what nobody offers", () => {
  it.live("is read to its end, so that the answer before its own arrives whole", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const body = "x".repeat(1_000_000)
      const expecting = "POST /info HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n" +
        `expect: miracles\r\ncontent-length: ${body.length}\r\n\r\n${body}`
      const { closed } = yield* sending(url, `${reading("/docs")}${expecting}`)
      const came = yield* closed
      const end = came.indexOf("\r\n\r\n") + 4
      const length = Number(/^content-length: (\d+)\r$/imu.exec(came.slice(0, end))?.[1])
      const second = came.slice(end + length)
      assert.match(second, /^HTTP\/1\.1 417 Expectation Failed\r\n/u)
      assert.match(second, /"detail":"The server supports no Expect header other than 100-continue"\}$/u)
    }))
})
