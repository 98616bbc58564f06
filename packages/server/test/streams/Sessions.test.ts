/** The WebSocket of a gateway over real sockets: who may open one, what its frames are answered with, and how it ends. */
import { assert, describe, it } from "@effect/vitest"
import { gateway, get } from "@trigate/testing/Gateway"
import type { Environment } from "@trigate/testing/Gateway"
import { gatewayProcess } from "@trigate/testing/GatewayProcess"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { openSocket, TestSocket } from "../../../../test/streams/socket.ts"
import { keyFile } from "../keyFile.ts"

const user = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"

/** A gateway over the sandbox, and a socket of a caller. */
const opened = Effect.fnUntraced(function*(environment: Environment = {}, headers: Record<string, string> = {}) {
  const running = yield* gateway(environment)
  return { ...running, socket: yield* openSocket(`${running.url}/ws`, headers) }
})

const next = (socket: TestSocket, channel?: string) => Effect.promise(() => socket.next(channel))

/** The status of a refused upgrade, and the tag of its problem. */
const refusal = Effect.fnUntraced(function*(url: string, headers: Record<string, string> = {}) {
  const socket = new TestSocket(url, headers)
  const { body, status } = yield* Effect.promise(() => socket.refused)
  const problem: unknown = JSON.parse(body)
  const type = typeof problem === "object" && problem !== null && "type" in problem ? String(problem.type) : ""
  return [status, type]
})

const closed = (socket: TestSocket) => Effect.promise(() => socket.closed)

describe("frames of a caller", () => {
  it.live("are answered as the venue does, and mistakes leave the socket open", () =>
    Effect.gen(function*() {
      const { socket } = yield* opened()
      const answers: ReadonlyArray<readonly [frame: string, answer: string]> = [
        ["{\"method\":\"ping\"}", "{\"channel\":\"pong\"}"],
        ["nonsense", "Error parsing JSON into valid websocket request: nonsense"],
        ["{\"method\":\"dance\"}", "Error parsing JSON into valid websocket request: {\"method\":\"dance\"}"],
        ["{\"method\":\"subscribe\"}", "Error parsing JSON into valid websocket request: {\"method\":\"subscribe\"}"],
        [
          "{\"method\":\"subscribe\",\"subscription\":{\"type\":\"webData2\",\"user\":\"0x0\"}}",
          "Error parsing JSON into valid websocket request: {\"method\":\"subscribe\",\"subscription\":{\"type\":\"webData2\",\"user\":\"0x0\"}}"
        ],
        [
          "{\"method\":\"subscribe\",\"subscription\":{\"type\":\"bbo\",\"coin\":[\"BTC\",\"ETH\"]}}",
          "Error parsing JSON into valid websocket request: {\"method\":\"subscribe\",\"subscription\":{\"type\":\"bbo\",\"coin\":[\"BTC\",\"ETH\"]}}"
        ],
        [
          "{\"method\":\"subscribe\",\"subscription\":{\"type\":\"l2Book\",\"coin\":\"BTC\",\"nSigFigs\":6}}",
          "Invalid subscription {\"type\":\"l2Book\",\"coin\":\"BTC\",\"nSigFigs\":6}"
        ],
        [
          "{\"method\":\"subscribe\",\"subscription\":{\"type\":\"bbo\",\"coin\":\"btc\"}}",
          "Invalid subscription {\"type\":\"bbo\",\"coin\":\"btc\"}"
        ],
        [
          "{\"method\":\"unsubscribe\",\"subscription\":{\"type\":\"trades\",\"coin\":\"ETH\"}}",
          "Already unsubscribed: {\"type\":\"trades\",\"coin\":\"ETH\"}"
        ],
        [
          "{\"method\":\"post\",\"request\":{\"type\":\"info\",\"payload\":{\"type\":\"meta\"}}}",
          "Error parsing JSON into valid websocket request: {\"method\":\"post\",\"request\":{\"type\":\"info\",\"payload\":{\"type\":\"meta\"}}}"
        ]
      ]
      for (const [frame, answer] of answers) {
        socket.send(frame)
        const { data, text } = yield* next(socket)
        assert.strictEqual(data ?? text, answer, frame)
      }
      const deep = `{"method":${"[".repeat(40)}${"]".repeat(40)}}`
      socket.send(deep)
      assert.strictEqual((yield* next(socket)).data, `Error parsing JSON into valid websocket request: ${deep}`)
      socket.send("{\"method\":\"ping\"}")
      assert.strictEqual((yield* next(socket)).text, "{\"channel\":\"pong\"}")
    }))

  it.live("subscribe with defaults filled in, once, and end on the same form", () =>
    Effect.gen(function*() {
      const { socket } = yield* opened()
      const normalised = "{\"type\":\"l2Book\",\"coin\":\"BTC\",\"nSigFigs\":null,\"mantissa\":null,\"fast\":false}"
      const response = (method: string) =>
        `{"channel":"subscriptionResponse","data":{"method":"${method}","subscription":${normalised}}}`
      socket.subscribe({ coin: "BTC", type: "l2Book" })
      assert.strictEqual((yield* next(socket)).text, response("subscribe"))
      const book = yield* next(socket)
      assert.strictEqual(book.channel, "l2Book")
      socket.subscribe({ type: "l2Book", coin: "BTC", fast: false })
      assert.strictEqual((yield* next(socket)).data, `Already subscribed: ${normalised}`)
      socket.unsubscribe({ type: "l2Book", coin: "BTC", nSigFigs: null })
      assert.strictEqual((yield* next(socket)).text, response("unsubscribe"))
    }))

  it.live("post queries and actions, on the way that HTTP takes", () =>
    Effect.gen(function*() {
      const { socket, url } = yield* opened()
      const asked = yield* Effect.promise(() =>
        fetch(`${url}/info`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: "{\"type\":\"meta\"}"
        }).then((response) => response.text())
      )
      socket.send(
        "{\"method\":\"post\",\"id\":18446744073709551615,\"request\":{\"type\":\"info\",\"payload\":{\"type\":\"meta\"}}}"
      )
      assert.strictEqual(
        (yield* next(socket)).text,
        `{"channel":"post","data":{"id":18446744073709551615,"response":{"type":"info","payload":{"type":"meta","data":${asked}}}}}`
      )
      const action = { action: { type: "noop" }, nonce: 1, signature: { r: "0x1", s: "0x1", v: 27 } }
      socket.send({ method: "post", id: 2, request: { type: "action", payload: action } })
      const { text } = yield* next(socket)
      assert.match(
        text,
        /^\{"channel":"post","data":\{"id":2,"response":\{"type":"action","payload":\{"status":"err","response":"[A-Z]\w+: /u
      )
    }))
})

describe("an upgrade", () => {
  it.live("of a request that asks for none is answered with 426", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const answer = yield* get(`${url}/ws`)
      assert.deepStrictEqual([answer.status, answer.headers.get("upgrade")], [426, "websocket"])
    }))

  it.live("is refused to foreign pages and other hosts, and not to programs and the gateway's own pages", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      assert.deepStrictEqual(yield* refusal(`${url}/ws`, { origin: "https://evil.example" }), [
        403,
        "urn:trigate:problem:not-permitted"
      ])
      assert.deepStrictEqual((yield* refusal(`${url}/ws`, { host: "evil.example" }))[0], 421)
      for (const headers of [{}, { origin: url }]) {
        const socket = yield* openSocket(`${url}/ws`, headers)
        socket.send("{\"method\":\"ping\"}")
        assert.strictEqual((yield* next(socket)).channel, "pong")
      }
    }))

  it.live("needs a key where there are keys, in the path, in a header or in the query", () =>
    Effect.gen(function*() {
      const { file, keys } = yield* keyFile({ name: "one" }, { name: "other", scope: { chains: ["layer2"] } })
      const { url } = yield* gateway({ TRIGATE_CALLERS: file })
      const [key = "", other = ""] = keys
      assert.deepStrictEqual(yield* refusal(`${url}/ws`), [401, "urn:trigate:problem:unauthorized"])
      assert.deepStrictEqual(yield* refusal(`${url}/${other}/ws`), [403, "urn:trigate:problem:not-permitted"])
      for (
        const [address, headers] of [
          [`${url}/${key}/ws`, {}],
          [`${url}/ws`, { authorization: `Bearer ${key}` }],
          [`${url}/ws?api_key=${key}`, {}]
        ] as const
      ) {
        const socket = yield* openSocket(address, headers)
        socket.send("{\"method\":\"ping\"}")
        assert.strictEqual((yield* next(socket)).channel, "pong")
      }
    }))

  it.live("fails with ChainNotConfigured where the venue has no address", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({ TRIGATE_LAYER2_URL: "http://127.0.0.1:9" })
      assert.deepStrictEqual(yield* refusal(`${url}/ws`), [501, "urn:trigate:problem:chain-not-configured"])
    }))

  it.live("beyond a caller's number of sockets is refused, until one of them ends", () =>
    Effect.gen(function*() {
      const { socket, url } = yield* opened({ TRIGATE_STREAM_CALLER_SOCKETS: "1" })
      assert.deepStrictEqual(yield* refusal(`${url}/ws`), [429, "urn:trigate:problem:quota-exceeded"])
      socket.raw.close()
      yield* closed(socket)
      // the server may learn of the end a little later
      const attempt = Effect.promise(() => {
        const another = new TestSocket(`${url}/ws`)
        return Promise.race([another.opened.then(() => another), another.refused.then(() => undefined)])
      })
      const again = yield* Effect.eventually(Effect.filterOrFail(attempt, (found) => found !== undefined))
      again?.raw.terminate()
    }))
})

describe("a socket is closed", () => {
  it.live("with 1003 for a binary frame, and with 1009 for one of more than 64 KiB", () =>
    Effect.gen(function*() {
      const { socket, url } = yield* opened()
      socket.raw.send(Buffer.from([1, 2, 3]))
      assert.strictEqual((yield* closed(socket)).code, 1003)
      const other = yield* openSocket(`${url}/ws`)
      other.send("a".repeat(64 * 1024 + 1))
      assert.strictEqual((yield* closed(other)).code, 1009)
    }))

  it.live("with 1008 beyond its messages in a minute", () =>
    Effect.gen(function*() {
      const { socket } = yield* opened({ TRIGATE_STREAM_CALLER_MESSAGES: "5" })
      for (let count = 0; count < 6; count++) socket.send("{\"method\":\"ping\"}")
      assert.deepStrictEqual(yield* closed(socket), {
        code: 1008,
        reason: "Too many messages or bytes per minute: send less"
      })
      assert.strictEqual(socket.of("pong").length, 5)
    }))

  it.live("with 1001 when the gateway stops, which then does not wait", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const running = yield* Scope.provide(gateway({ TRIGATE_STREAM_DRAIN: "100 ms" }), scope)
      const socket = yield* openSocket(`${running.url}/ws`)
      socket.subscribe({ type: "allMids" })
      yield* next(socket, "allMids")
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual((yield* closed(socket)).code, 1001)
    }))

  it.live("with 1008 when its key is revoked", () =>
    Effect.gen(function*() {
      const { file, keys, store } = yield* keyFile({ name: "one" }, { name: "two" })
      const { url } = yield* gateway({ TRIGATE_CALLERS: file })
      const [key = "", other = ""] = keys
      const socket = yield* openSocket(`${url}/${key}/ws`)
      const kept = yield* openSocket(`${url}/${other}/ws`)
      yield* store.revoke({ name: "one" })
      assert.deepStrictEqual(yield* closed(socket), {
        code: 1008,
        reason: "The key is no longer valid, or its scope no longer allows these subscriptions"
      })
      kept.send("{\"method\":\"ping\"}")
      assert.strictEqual((yield* next(kept)).channel, "pong")
    }))

  it.live("with 1008 when its page is not allowed any more", () =>
    Effect.gen(function*() {
      const page = "https://app.example"
      const { reload, socket, url } = yield* opened({ TRIGATE_CORS_ORIGINS: page }, { origin: page })
      const program = yield* openSocket(`${url}/ws`)
      yield* reload({})
      assert.strictEqual((yield* closed(socket)).code, 1008)
      program.send("{\"method\":\"ping\"}")
      assert.strictEqual((yield* next(program)).channel, "pong")
    }))
})

describe("the access log", () => {
  it.live("has a line for each socket at its end: who, how long, why, and how many frames", () =>
    Effect.gen(function*() {
      const { lines, url } = yield* gatewayProcess({ TRIGATE_ACCESS_LOG: "on" })
      const socket = yield* openSocket(`${url}/ws`)
      socket.send("{\"method\":\"ping\"}")
      yield* next(socket, "pong")
      socket.raw.send(Buffer.from([1]))
      yield* closed(socket)
      const line = Effect.suspend(() =>
        Effect.fromNullishOr(lines().find((each) => JsonParts.at(each, "socket") !== undefined))
      )
      const found = yield* Effect.eventually(Effect.tapError(line, () => Effect.sleep(10)))
      assert.deepStrictEqual(JsonParts.at(found, "socket"), { closed: "binary", received: 1, sent: 1, conflated: 0 })
      const member = (name: string) => JsonParts.at(found, name)
      assert.deepStrictEqual(
        [member("method"), member("route"), member("status"), member("operations")],
        ["GET", "streams.socket", 101, []]
      )
      assert.match(String(member("caller")), /^address:/u)
    }))
})

describe("sockets survive", () => {
  it.live("a change of settings, with their subscriptions", () =>
    Effect.gen(function*() {
      const { reload, socket } = yield* opened()
      socket.subscribe({ type: "l2Book", coin: "BTC", fast: true })
      yield* next(socket, "l2Book")
      const change = yield* reload({ TRIGATE_STRICT: "on" })
      assert.deepStrictEqual(change.applied, ["TRIGATE_STRICT"])
      yield* next(socket, "l2Book")
      socket.send({ method: "post", id: 1, request: { type: "info", payload: { type: "allMids" } } })
      yield* next(socket, "post")
      socket.subscribe({ type: "orderUpdates", user })
      yield* next(socket, "subscriptionResponse")
    }))
})
