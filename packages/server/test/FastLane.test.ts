/** Requests get the same answer, byte for byte, and cost the same upstream requests, by the fast lane and without it. */
import { assert, describe, it } from "@effect/vitest"
import * as Listener from "@trigate/server/requests/Listener"
import * as RequestRecord from "@trigate/server/unstable/requests/Request"
import type { Reply, Seen } from "@trigate/testing/RecordingUpstream"
import { isExhaustive } from "@trigate/testing/Sample"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpServer from "effect/http/HttpServer"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import { generator } from "../../../test/fuzz/generate.ts"
import { bytesOf } from "../../../test/fuzz/request.ts"
import { posting, socketTo } from "./attacks/socket.ts"
import { bigBlocks, bodyOf } from "./bodies.ts"
import { withoutJitter } from "./faults/time.ts"
import { keyFile } from "./keyFile.ts"
import type { LiveGateway, Responses } from "./liveGateway.ts"
import { liveGateway } from "./liveGateway.ts"
import { malformedRequests, validRequests } from "./malformedRequests.ts"
import { exchange, headOf } from "./rawHttp.ts"

const now = 1_767_323_045_000

/** A request as it is written on a socket. */
interface Written {
  readonly name: string
  readonly parts: ReadonlyArray<string | Uint8Array>
  readonly breaksOff?: boolean
}

type Field = readonly [name: string, value: string]

const posted = (path: string, body: string, fields: ReadonlyArray<Field> = []): Written => {
  const bytes = new TextEncoder().encode(body)
  const own: ReadonlyArray<Field> = [["content-type", "application/json"], ["content-length", String(bytes.length)]]
  const head = headOf("POST", path, [...own.filter(([name]) => !fields.some(([other]) => other === name)), ...fields])
  return { name: `POST ${path} ${JSON.stringify(fields)} ${body}`, parts: [head, bytes] }
}

// the beginning of an id is the process's, and what counts is that the requests are counted alike
const withoutTime = (head: string): string =>
  head.replace(/^date: .*$/imu, "").replace(/^(x-request-id: )[0-9a-z]{6}(-[0-9a-z]+\r?)$/imu, "$1$2")

const sentBy = ({ api, layer2, node, tokens }: LiveGateway): ReadonlyArray<unknown> =>
  [api, node, tokens, layer2].flatMap(({ seen }) =>
    seen.splice(0).map(({ bytes, headers: { host: _, ...headers }, method, path }) => ({
      headers,
      request: `${method} ${path} ${Buffer.from(bytes).toString("latin1")}`
    }))
  )

const ask = Effect.fnUntraced(function*(live: LiveGateway, { breaksOff = false, parts }: Written) {
  const { body, head, status } = yield* exchange(live.url, parts, breaksOff)
  // after `100 Continue`, the head of the answer follows in its place
  return { status, head: withoutTime(head), body: withoutTime(body), sent: sentBy(live) }
})

const seed = Number(process.env["TRIGATE_TEST_SEED"] ?? 20_261_123) || 1

/** As many members of a list as are wanted, in their order; the seed is in the names of the tests. */
const sample = <A>(all: ReadonlyArray<A>, wanted: number): ReadonlyArray<A> => {
  let state = seed
  const random = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
  let left = wanted
  return all.filter((_, index) => {
    const isTaken = random() < left / (all.length - index)
    if (isTaken) left--
    return isTaken
  })
}

/** A whole frame of a client with fewer than 126 bytes, whose mask is zero. */
const masked = (opcode: number, payload: string): Buffer => {
  const bytes = Buffer.from(payload, "latin1")
  return Buffer.concat([Buffer.from([128 | opcode, 128 | bytes.length, 0, 0, 0, 0]), bytes])
}

const handshake = {
  host: "Host: localhost",
  connection: "Connection: Upgrade",
  upgrade: "Upgrade: websocket",
  version: "Sec-WebSocket-Version: 13",
  nonce: "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
}

/** A request that asks for a WebSocket, and what its client sends next. */
const upgrade = (
  path: string,
  head: { readonly [name: string]: string },
  frames: ReadonlyArray<Uint8Array> = []
): Written => {
  const text = `GET ${path} HTTP/1.1\r\n${Object.values(head).join("\r\n")}\r\n\r\n`
  return { name: text, parts: [text, ...frames] }
}

/** Asks two gateways over upstreams that answer alike, one with the lane and one without. */
const assertSame = Effect.fnUntraced(function*(
  requests: ReadonlyArray<Written>,
  responses: () => Responses,
  environment: { readonly [name: string]: string } = {}
) {
  const over = (fastLane: boolean) => withoutJitter(liveGateway(responses(), environment, undefined, { fastLane }))
  const [lane, ordinary] = [yield* over(true), yield* over(false)]
  for (const request of requests) {
    // counts are kept by the process
    if (request.parts.some((part) => Buffer.from(part).includes("metrics"))) continue
    assert.deepStrictEqual(yield* ask(lane, request), yield* ask(ordinary, request), request.name)
  }
})

const idOf = (body: string): string => /"id":(?<id>[0-9]+)/u.exec(body)?.groups?.["id"] ?? "1"

const answered = (result: string) => ({ body }: Seen): Reply => ({
  body: body.startsWith("[")
    ? `[${
      [...body.matchAll(/"id":([0-9]+)/gu)].map(([, id]) => `{"jsonrpc":"2.0","id":${id},"result":${result}}`).join()
    }]`
    : `{"jsonrpc":"2.0","id":${idOf(body)},"result":${result}}`
})

/** It comes in pieces. */
const long = JSON.stringify("\u00e4".repeat(200_000))

const sound = (): Responses => ({
  api: () => ({ body: "[]" }),
  node: answered("\"0x1\""),
  tokens: () => ({ body: `{"ok":true,"result":1}` }),
  // the id of a chain is cached
  layer2: (request) => answered(request.body.includes("eth_chainId") ? "\"0x1\"" : "null")(request)
})

/** What an upstream says instead of a result: each way in which an answer is written, and each in which an attempt ends. */
const words: ReadonlyArray<Reply> = [
  { body: `{"a":1.50,"n":123456789012345678901234567890}` },
  { type: "application/json; charset=utf-8", body: ` [1 ,2]\n` },
  { type: "text/html", body: "<html></html>" },
  { body: long },
  { body: "" },
  { body: new Uint8Array([0x22, 0xff, 0xfe, 0x22]) },
  { status: 422, type: "text/plain", body: "Failed to deserialize the JSON body into the target type" },
  { status: 429, headers: { "retry-after": "0" }, body: "null" },
  { status: 500, body: "null" },
  { headers: { "content-encoding": "gzip" }, body: "no gzip" },
  "hang-up"
]

/** Answers every third time with a word in turn, and otherwise soundly, so that no address is ejected. */
const talking = (): Responses => {
  let asked = 0
  const say = (otherwise: (request: Seen) => Reply) => (request: Seen): Reply => {
    const nth = asked++
    return nth % 3 === 0 ? words[Math.floor(nth / 3) % words.length] ?? "hang-up" : otherwise(request)
  }
  return { ...sound(), api: say(() => ({ body: `{"universe":[],"tokens":[]}` })), layer2: say(answered("null")) }
}

const hash = (n: number): string => `0x${n.toString(16).padStart(64, "0")}`
const address = `0x${"ab".repeat(20)}`
const receiptOf = (n: number) =>
  `{"jsonrpc":"2.0","id":${n},"method":"eth_getTransactionReceipt","params":["${hash(n)}"]}`

const calls: ReadonlyArray<string> = [
  receiptOf(1),
  `{"jsonrpc":"2.0","method":"eth_getTransactionReceipt","params":["${hash(4)}"]}`,
  `{"jsonrpc":"2.0","id":007,"method":"eth_getTransactionReceipt","params":["${hash(5)}"]}`,
  `{"jsonrpc":"2.0","id":6,"method":"eth_getTransactionReceipt","params":["0x12"]}`,
  `{"jsonrpc":"2.0","id":8,"method":"eth_nothing","params":[]}`,
  `{"jsonrpc":"2.0","id":9,"method":"eth_chainId","params":[]}`,
  `{"jsonrpc":"2.0","id":12,"method":"eth_getStorageAt","params":["${address}","0x0","0x1"]}`,
  `{"jsonrpc":"2.0","id":13,"method":"eth_sendRawTransaction","params":["0x01"]}`,
  `[${receiptOf(14)},${receiptOf(15)}]`,
  "",
  "null",
  receiptOf(17).padEnd(4096, " "),
  receiptOf(18).padEnd(4097, " ")
]

const queries: ReadonlyArray<string> = [
  `{"type":"spotMeta"}`,
  `{ "type" : "spotMeta" }`,
  `{"type":"userFees","user":"${address}"}`,
  `{"type":"candleSnapshot","req":{"coin":"BTC","interval":"1h","startTime":${now - 7_200_000},"endTime":${now}}}`,
  `{"type":7}`,
  ""
]

const fieldLists: ReadonlyArray<ReadonlyArray<Field>> = [
  [],
  [["x-request-id", "mine"]],
  [["x-request-id", "not plain at all"]],
  [["cache-control", "no-cache"]],
  [["cache-control", "max-age=5"]],
  [["prefer", "candles=oldest"]],
  [["x-forwarded-for", "203.0.113.7"]],
  [["origin", "https://elsewhere.example"]],
  [["sec-fetch-site", "cross-site"]],
  [["traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"]],
  [["content-type", "application/json; charset=utf-8"]],
  [["content-type", "text/plain"]],
  [["content-encoding", "gzip"]],
  [["expect", "100-continue"]],
  [["connection", "close"]]
]

const paths = ["/l2", "/evm", "/L2", "//l2", "/l2/", "/l2?api_key=abc", "/caller-key/l2", "/caller-key", "/L2/evm"]

/** Requests that carry a key, and some of them another one too, in each place that is looked at and in some that are not. */
const carrying = (key: string, body: string, other = key): ReadonlyArray<Written> => [
  posted(`/${key}/l2`, body),
  posted(`/${key}`, body),
  posted(`/${key}/L2`, body),
  posted(`/${encodeURIComponent(`${key}=`)}/l2`, body),
  posted("/l2", body, [["authorization", `bearer  ${key}`]]),
  posted("/l2", body, [["x-api-key", key]]),
  posted(`/l2?api_key=${key}`, body),
  posted("/l2", body, [["authorization", `Bearer ${key}`], ["authorization", `Bearer ${other}`]]),
  posted(`/${key}/l2`, body, [["x-api-key", other]])
]

const each = <A, B, C>(some: ReadonlyArray<A>, others: ReadonlyArray<B>, f: (a: A, b: B) => C): ReadonlyArray<C> =>
  some.flatMap((one) => others.map((other) => f(one, other)))

describe(`with the fast lane and without it, of seed ${seed}`, () => {
  it.effect("calls and queries are answered alike, whatever their heads, their paths and their upstreams are", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      yield* assertSame(
        [
          ...sample(each(calls, fieldLists, (body, fields) => posted("/l2", body, fields)), isExhaustive ? 30 : 15),
          ...sample(each(queries, fieldLists, (body, fields) => posted("/info", body, fields)), isExhaustive ? 20 : 10),
          ...sample(each(calls, paths, (body, path) => posted(path, body)), isExhaustive ? 20 : 10),
          ...sample(each(queries, ["/INFO", "/info/", "/caller-key/info"], (body, path) => posted(path, body)), 10)
        ],
        talking,
        { TRIGATE_CORS_ORIGINS: "https://app.example" }
      )
    }))

  it.effect("actions are answered alike, whatever the venue says, and each is sent alike", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      const bodies = Array.from({ length: 2 * words.length }, (_, n) => bodyOf(now + n, bigBlocks))
      const heads: ReadonlyArray<ReadonlyArray<Field>> = [
        [],
        [["x-trigate-expected-signer", address]],
        [["origin", "https://elsewhere.example"]]
      ]
      // each twice: what was answered, what is not known, and what was never sent
      yield* assertSame(
        [...bodies, ...bodies].flatMap((body, n) => [posted("/exchange", body, heads[n % heads.length])]),
        talking
      )
    }))

  it.effect("callers are told apart and counted alike, wherever their keys stand", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      const { file, keys: [metered = "", single = "", other = ""] } = yield* keyFile(
        { name: "metered", quota: { requestsPerSecond: 1, burst: 9, weightPerMinute: 100, unitsPerSecond: 600 } },
        { name: "single", quota: { concurrentCalls: 1 } },
        { name: "other", scope: { chains: ["trading"] } }
      )
      const batch = `[${receiptOf(1)},${receiptOf(2)}]`
      yield* assertSame(
        [
          ...[single, other].flatMap((key) => carrying(key, receiptOf(3))),
          ...[batch, receiptOf(5), "[]"].map((body) => posted(`/${single}/l2`, body)),
          ...carrying(single, receiptOf(7), other),
          ...[receiptOf(8), batch].flatMap((body) => carrying(metered, body))
        ],
        sound,
        { TRIGATE_CALLERS: file }
      )
    }))

  it.effect("WebSockets are opened, refused, read and closed alike", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      const { file, keys: [key = "", other = ""] } = yield* keyFile(
        { name: "desk" },
        { name: "other", scope: { chains: ["layer2"] } }
      )
      const { version: _, ...unversioned } = handshake
      const pinged = [masked(1, `{"method":"ping"}`), masked(8, "\u0003\u00e8")]
      yield* assertSame(
        [
          upgrade(`/${key}/ws`, handshake, pinged),
          // sent together: the frames may come with the head of the request
          upgrade(`/${key}/ws`, handshake, [Buffer.concat(pinged)]),
          upgrade(`/ws?api_key=${key}`, handshake, pinged),
          upgrade("/ws", { ...handshake, key: `X-API-Key: ${key}` }, pinged),
          upgrade(`/${key}/ws`, { ...handshake, names: "Sec-WebSocket-Protocol: a, b" }, pinged),
          ...["", "/evm?x=1"].map((rest) =>
            upgrade(`/${key}${rest}`, handshake, [
              masked(1, `{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["nothing"]}`),
              masked(8, "\u0003\u00e8")
            ])
          ),
          upgrade(`/${key}/ws`, handshake, [masked(2, "binary"), masked(8, "\u0003\u00e8")]),
          ...[unversioned, { ...handshake, nonce: "Sec-WebSocket-Key: short" }].map((head) =>
            upgrade(`/${key}/ws`, head)
          ),
          upgrade(`/${key}/ws`, { ...handshake, origin: "Origin: https://evil.example" }),
          upgrade(`/${key}/ws`, { ...handshake, host: "Host: evil.example" }),
          ...["/ws", "/nobody/ws", `/${other}/ws`, "/docs"].map((path) => upgrade(path, handshake))
        ],
        sound,
        { TRIGATE_CALLERS: file }
      )
    }))

  it.effect("malformed, valid and fuzzed requests are answered alike", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      const fuzzed = generator(seed, now, bytesOf)
      yield* assertSame([
        ...sample(malformedRequests(11, now), isExhaustive ? 40 : 15),
        ...validRequests(now).map(({ body, path }) => posted(path, body)),
        ...Array.from({ length: isExhaustive ? 60 : 25 }, (_, index) => fuzzed(index)).filter(({ raw }) =>
          raw === undefined
        ).map((
          one,
          index
        ) => ({
          name: `fuzzed ${index}`,
          parts: [bytesOf({ ...one, headers: [...one.headers, ["connection", "close"]] })]
        }))
      ], sound)
    }))
})

/** The address of a server with a lane, in front of an app that answers `routed`; how many requests have ended. */
const laneWith = Effect.fnUntraced(function*(answer: Listener.RequestHandler) {
  const routes = yield* Effect.provide(Listener.FastLane, Listener.layerFastLane)
  Listener.add(routes, "POST", "/l2", answer)
  const lane = yield* Effect.provideService(
    Listener.make({
      record: (head) => RequestRecord.make(undefined, undefined, head),
      observe: (_record, handle, write) =>
        Effect.contextWith((context) => Effect.map(handle(context), (response) => write(response, response.headers)))
    }),
    Listener.FastLane,
    routes
  )
  const context = yield* Layer.build(Listener.layer({ host: "127.0.0.1", port: 0 }))
  yield* Effect.provideContext(
    Listener.serve(Effect.succeed(HttpServerResponse.text("routed")), { lane }),
    context
  )
  return HttpServer.formatAddress(Context.get(context, HttpServer.HttpServer).address)
})

describe("the fast lane", () => {
  it.effect("interrupts a route whose caller leaves", () =>
    Effect.gen(function*() {
      const begun = Latch.makeUnsafe()
      const stopped = Latch.makeUnsafe()
      const url = yield* laneWith(() =>
        Effect.onInterrupt(
          Effect.andThen(Effect.sync(() => begun.openUnsafe()), Effect.never),
          () => Effect.sync(() => void stopped.openUnsafe())
        )
      )
      const socket = yield* socketTo(url)
      yield* socket.send(`${posting("/l2", { "content-length": 2 })}{}`)
      yield* begun.await
      yield* socket.leave
      yield* stopped.await
    }))

  it.effect("takes a POST of at most four KiB to the path of a route, under all heads but `Expect`", () =>
    Effect.gen(function*() {
      const url = yield* laneWith(() => Exit.succeed(HttpServerResponse.text("plain")))
      const takenOf = (requests: ReadonlyArray<Written>) =>
        Effect.map(
          Effect.forEach(requests, ({ name, parts }) =>
            Effect.map(exchange(url, parts), ({ body }) => body === "plain" ? [name] : [])),
          (names) =>
            names.flat()
        )
      const heads = fieldLists.map((fields) => posted("/l2", "{}", fields))
      assert.deepStrictEqual(
        yield* takenOf(heads),
        heads.flatMap(({ name }) => name.includes("expect") ? [] : [name])
      )
      const bodies = [posted("/l2", "x".repeat(4096)), posted("/l2", "x".repeat(4097)), posted("/l2", "")]
      assert.deepStrictEqual(
        yield* takenOf([...bodies, ...paths.slice(1).map((path) => posted(path, "{}"))]),
        [bodies[0]?.name, bodies[2]?.name]
      )
    }))
})
