/** Every request gets the same answer, byte for byte, and costs the same upstream requests, by the fast lane and without it. */
import { assert, describe, it } from "@effect/vitest"
import { local } from "@trigate/domain/Caller"
import * as Start from "@trigate/domain/operations/Start"
import * as NodeServer from "@trigate/server/process/NodeServer"
import * as FastLane from "@trigate/server/requests/FastLane"
import * as RequestFacts from "@trigate/server/requests/RequestFacts"
import type { Reply, Seen } from "@trigate/testing/RecordingUpstream"
import { isExhaustive, sample } from "@trigate/testing/Sample"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { identity } from "effect/Function"
import * as HttpServer from "effect/http/HttpServer"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import * as Corpus from "../../../test/fuzz/corpus.ts"
import { generator } from "../../../test/fuzz/generate.ts"
import { bytesOf } from "../../../test/fuzz/request.ts"
import type { FuzzRequest } from "../../../test/fuzz/request.ts"
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

/** Two gateways over upstreams that answer alike: one with the lane, one without. */
const pair = Effect.fnUntraced(function*(
  responses: () => Responses,
  environment: { readonly [name: string]: string } = {}
) {
  const over = (isOn: boolean) =>
    withoutJitter(Effect.provideService(liveGateway(responses(), environment), Start.IsOn, isOn))
  return [yield* over(true), yield* over(false)] as const
})

const atNow = TestClock.setTime(now)

const assertSame = Effect.fnUntraced(function*(
  [lane, ordinary]: readonly [LiveGateway, LiveGateway],
  requests: ReadonlyArray<Written>
) {
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

/** What an upstream says instead of a result, each followed by a result, so that no address is ejected. */
const words: ReadonlyArray<(request: Seen) => Reply> = [
  answered(`{"status":"0x1","n":123456789012345678901234567890}`),
  answered(`"\u00e4\ud83d\ude00\\u0000"`),
  answered(long),
  ({ body }) => ({ body: ` {"id" : ${idOf(body)}, "result":[1 ,2], "jsonrpc":"2.0"}\n` }),
  ({ body }) => ({
    body: `{"jsonrpc":"2.0","id":${idOf(body)},"error":{"code":3,"message":"reverted","data":"0x08"}}`
  }),
  ({ body }) => ({ body: `{"jsonrpc":"2.0","id":${idOf(body)},"error":{"code":-32603,"message":"internal"}}` }),
  ({ body }) => ({ status: 400, body: `{"jsonrpc":"2.0","id":${idOf(body)},"error":{"code":-32602,"message":"no"}}` }),
  () => ({ body: `{"jsonrpc":"2.0","id":999999,"result":1}` }),
  () => ({ body: `{"jsonrpc":"2.0","id":1` }),
  () => ({ body: "" }),
  () => ({ type: "text/html", body: "<html></html>" }),
  () => ({ body: new Uint8Array([0x7b, 0xff, 0xfe, 0x7d]) }),
  () => ({ status: 429, body: `{"error":"slow down"}` }),
  () => ({ status: 500, body: "{}" }),
  () => ({ status: 503, type: "text/html", body: "<html></html>" }),
  () => ({ status: 302, headers: { location: "http://localhost/" }, body: "" }),
  () => ({ status: 403, body: `{"message":"layer2-secret-90fe43 is no key"}` }),
  () => ({ headers: { "content-encoding": "gzip" }, body: "no gzip" }),
  () => "hang-up"
]

/** Answers with each of the words twice in turn, and with a result after that. */
const talking = (): Responses => {
  let asked = 0
  const layer2 = (request: Seen): Reply => {
    const nth = asked++
    const say = nth % 3 === 2 ? undefined : words[Math.floor(nth / 3) % words.length]
    return say === undefined ? answered("null")(request) : say(request)
  }
  return { ...sound(), layer2 }
}

const hash = (n: number): string => `0x${n.toString(16).padStart(64, "0")}`
const address = `0x${"ab".repeat(20)}`
const receiptOf = (n: number) =>
  `{"jsonrpc":"2.0","id":${n},"method":"eth_getTransactionReceipt","params":["${hash(n)}"]}`

const calls: ReadonlyArray<string> = [
  receiptOf(1),
  `{"method":"eth_getTransactionReceipt","params":["${hash(2)}"],"id":2,"jsonrpc":"2.0"}`,
  `{"jsonrpc":"2.0","id":"three","method":"eth_getTransactionReceipt","params":["${hash(3)}"]}`,
  `{"jsonrpc":"2.0","method":"eth_getTransactionReceipt","params":["${hash(4)}"]}`,
  `{"jsonrpc":"2.0","id":007,"method":"eth_getTransactionReceipt","params":["${hash(5)}"]}`,
  `{"jsonrpc":"2.0","id":6,"method":"eth_getTransactionReceipt","params":["0x12"]}`,
  `{"jsonrpc":"2.0","id":7,"method":"eth_getTransactionReceipt","params":[]}`,
  `{"jsonrpc":"2.0","id":8,"method":"eth_nothing","params":[]}`,
  `{"jsonrpc":"2.0","id":9,"method":"eth_chainId","params":[]}`,
  `{"jsonrpc":"2.0","id":10,"method":"eth_chainId","params":[]}`,
  `{"jsonrpc":"2.0","id":11,"method":"eth_getStorageAt","params":["${address}","0x0","latest"]}`,
  `{"jsonrpc":"2.0","id":12,"method":"eth_getStorageAt","params":["${address}","0x0","0x1"]}`,
  `{"jsonrpc":"2.0","id":13,"method":"eth_sendRawTransaction","params":["0x01"]}`,
  `[${receiptOf(14)},${receiptOf(15)}]`,
  "[]",
  "",
  "null",
  `{"jsonrpc":"2.0","id":16,"method":"eth_getTransactionReceipt","params":["${hash(16)}"]`,
  receiptOf(17).padEnd(4096, " "),
  receiptOf(18).padEnd(4097, " ")
]

/** What the venue says to a query, each word followed by an answer, so that no address is ejected. */
const venueWords: ReadonlyArray<Reply> = [
  { body: `{"a":1.50,"n":123456789012345678901234567890}` },
  { type: "application/json; charset=utf-8", body: ` [1 ,2]\n` },
  { type: "text/plain", body: `"\u00e4\ud83d\ude00"` },
  { type: "text/html", body: "<html></html>" },
  { body: long },
  { body: "null" },
  { body: "" },
  { body: `{"cut":` },
  { body: new Uint8Array([0x22, 0xff, 0xfe, 0x22]) },
  { status: 422, type: "text/plain", body: "Failed to deserialize the JSON body into the target type" },
  { status: 429, headers: { "retry-after": "0" }, body: "null" },
  { status: 500, body: "null" },
  { status: 502, type: "text/html", body: "<html></html>" },
  { headers: { "content-encoding": "gzip" }, body: "no gzip" },
  "hang-up"
]

const venue = (): Responses => {
  let asked = 0
  const api = (): Reply => {
    const nth = asked++
    const say = nth % 3 === 2 ? undefined : venueWords[Math.floor(nth / 3) % venueWords.length]
    return say ?? { body: `{"universe":[],"tokens":[]}` }
  }
  return { ...sound(), api }
}

/** What the venue says to an action. */
const actionWords: ReadonlyArray<Reply> = [
  { body: `{"status":"ok","response":{"type":"default"}}` },
  { body: `{"status":"err","response":"Must deposit before performing actions."}` },
  { body: `{"status":"err","response":"Invalid nonce: duplicate nonce 1"}` },
  { body: "null" },
  { body: "" },
  { type: "text/html", body: "<html></html>" },
  { status: 422, type: "text/plain", body: "Failed to deserialize the JSON body into the target type" },
  { status: 429, body: "null" },
  { status: 500, body: "null" },
  { body: long },
  "hang-up"
]

const userOf = (n: number): string => `0x${n.toString(16).padStart(40, "0")}`

const queries: ReadonlyArray<string> = [
  `{"type":"spotMeta"}`,
  `{"type":"spotMeta"}`,
  `{ "type" : "spotMeta" }`,
  `{"type":"spotMeta","more":1}`,
  `{"type":"allMids"}`,
  `{"type":"meta"}`,
  `{"type":"userFees","user":"${userOf(1)}"}`,
  `{"type":"userFees","user":"${userOf(2)}","type":"meta"}`,
  `{"type":"candleSnapshot","req":{"coin":"BTC","interval":"1h","startTime":${now - 7_200_000},"endTime":${now}}}`,
  `{"type":"candleSnapshot","req":{"coin":"BTC","interval":"1y","startTime":1}}`,
  `{"type":7}`,
  `{}`,
  "[]",
  "",
  "null",
  `{"type":"spotMeta"`
]

const fieldLists: ReadonlyArray<ReadonlyArray<Field>> = [
  [],
  [["x-request-id", "mine"]],
  [["x-request-id", "not plain at all"]],
  [["user-agent", "viem"], ["accept", "*/*"], ["accept-encoding", "gzip, deflate"], ["sec-fetch-mode", "cors"]],
  [["cache-control", "no-cache"]],
  [["prefer", "candles=oldest"]],
  [["cache-control", "max-age=5"]],
  [["authorization", "Bearer abc"]],
  [["x-api-key", "abc"]],
  [["x-forwarded-for", "203.0.113.7"]],
  [["forwarded", "for=203.0.113.7"]],
  [["origin", "https://elsewhere.example"]],
  [["sec-fetch-site", "cross-site"]],
  [["traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"]],
  [["content-type", "application/json; charset=utf-8"]],
  [["content-type", "text/plain"]],
  [["content-encoding", "identity"]],
  [["content-encoding", "gzip"]],
  [["expect", "100-continue"]],
  [["connection", "close"]]
]

const paths = [
  "/l2",
  "/evm",
  "/L2",
  "//l2",
  "/l2/",
  "/l2?api_key=abc",
  "/caller-key/l2",
  "/caller-key",
  "http://localhost/l2"
]

/** Requests that carry a key, and some of them another one too, in each place that is looked at and in some that are not. */
const carrying = (key: string, body: string, other = key): ReadonlyArray<Written> => [
  posted(`/${key}/l2`, body),
  posted(`/${key}/evm`, body),
  posted(`/${key}`, body),
  posted(`/${key}/`, body),
  posted(`/${key}/L2`, body),
  posted(`/${encodeURIComponent(`${key}=`)}/l2`, body),
  posted("/l2", body, [["authorization", `Bearer ${key}`]]),
  posted("/l2", body, [["authorization", `bearer  ${key}`]]),
  posted("/l2", body, [["authorization", `Basic ${key}`]]),
  posted("/l2", body, [["x-api-key", key]]),
  posted(`/l2?api_key=${key}`, body),
  posted("/l2", body, [["authorization", `Bearer ${key}`], ["authorization", `Bearer ${other}`]]),
  posted("/l2", body, [["x-api-key", key], ["authorization", `Bearer ${other}`]]),
  posted(`/${key}/l2`, body, [["x-api-key", other]]),
  posted(`/L2/evm`, body, [["x-api-key", key]])
]

/** Every head or path with every body; a sample has at least five bodies of each. */
const sampled = <Each>(
  name: string,
  rows: ReadonlyArray<Each>,
  bodies: ReadonlyArray<string>,
  written: (each: Each, body: string) => Written
): ReadonlyArray<Written> =>
  sample(
    `${name} with the fast lane and without it`,
    rows.flatMap((each, row) => bodies.map((body) => ({ row, written: written(each, body) }))),
    5 * rows.length,
    ({ row }) => String(row)
  ).map((each) => each.written)

describe("with the fast lane and without it", () => {
  it.effect("calls are answered alike, under all heads and on all paths", () =>
    Effect.gen(function*() {
      yield* atNow
      const both = yield* pair(sound)
      yield* assertSame(both, sampled("calls", fieldLists, calls, (fields, body) => posted("/l2", body, fields)))
      yield* assertSame(both, sampled("paths of calls", paths, calls, posted))
      for (const host of ["localhost:1", "elsewhere.example", "127.0.0.1"]) {
        const [head, body] = posted("/l2", receiptOf(1)).parts
        yield* assertSame(both, [{
          name: host,
          parts: [String(head).replace("host: localhost", `host: ${host}`), body ?? ""]
        }])
      }
    }))

  it.effect("queries are answered alike, under all heads and on all paths", () =>
    Effect.gen(function*() {
      yield* atNow
      const both = yield* pair(venue)
      yield* assertSame(both, sampled("queries", fieldLists, queries, (fields, body) => posted("/info", body, fields)))
      yield* assertSame(
        both,
        sampled(
          "paths of queries",
          ["/info", "/INFO", "/info/", "/caller-key/info", "/caller-key/Info", "/info?x=1"],
          queries,
          posted
        )
      )
    }))

  it.effect("whatever the venue says is answered alike, and it is asked alike", () =>
    Effect.gen(function*() {
      yield* atNow
      const both = yield* pair(venue)
      const asking = (n: number) => posted("/info", `{"type":"userFees","user":"${userOf(n)}"}`)
      // three quarters of the weight of a minute
      yield* assertSame(both, Array.from({ length: 40 }, (_, n) => asking(n)))
      yield* TestClock.setTime(now + 120_000)
      yield* assertSame(both, Array.from({ length: 40 }, (_, n) => asking(100 + n)))
    }))

  it.effect("actions are answered alike, whatever the venue says, and each is sent alike", () =>
    Effect.gen(function*() {
      yield* atNow
      const taking = (): Responses => {
        let asked = 0
        return { ...sound(), api: () => actionWords[asked++ % actionWords.length] ?? "hang-up" }
      }
      const both = yield* pair(taking)
      const bodies = Array.from({ length: 3 * actionWords.length }, (_, n) => bodyOf(now + n, bigBlocks))
      const heads: ReadonlyArray<ReadonlyArray<Field>> = [
        [],
        [["x-request-id", "mine"]],
        [["x-trigate-expected-signer", address]],
        [["origin", "https://elsewhere.example"]]
      ]
      yield* assertSame(both, bodies.flatMap((body) => heads.map((fields) => posted("/exchange", body, fields))))
      // each once more: what was answered, what is not known, and what was never sent
      yield* assertSame(both, bodies.map((body) => posted("/exchange", body)))
      yield* assertSame(both, [...bodies.slice(0, 2), "", "{}"].map((body) => posted("/caller-key/exchange", body)))
    }))

  it.effect("answers say alike which origins may read them", () =>
    Effect.gen(function*() {
      yield* atNow
      const both = yield* pair(sound, { TRIGATE_CORS_ORIGINS: "https://app.example" })
      yield* assertSame(
        both,
        [[], [["origin", "https://app.example"]] as const, [["origin", "https://elsewhere.example"]] as const].flatMap(
          (fields) => [posted("/l2", receiptOf(1), fields), posted("/info", `{"type":"spotMeta"}`, fields)]
        )
      )
    }))

  it.effect("whatever upstreams say is answered alike, and they are asked alike", () =>
    Effect.gen(function*() {
      yield* atNow
      const both = yield* pair(talking)
      yield* assertSame(both, Array.from({ length: 4 * words.length }, (_, n) => posted("/l2", receiptOf(100 + n))))
      yield* assertSame(both, [...calls, ...calls].map((body) => posted("/l2", body)))
    }))

  const batch = `[${receiptOf(1)},${receiptOf(2)}]`

  it.effect("callers are told apart and counted alike, wherever their keys stand", () =>
    Effect.gen(function*() {
      yield* atNow
      const { file, keys: [metered = "", single = "", other = ""] } = yield* keyFile(
        { name: "metered", quota: { requestsPerSecond: 1, burst: 20, weightPerMinute: 100, unitsPerSecond: 600 } },
        { name: "single", quota: { concurrentCalls: 1 } },
        { name: "other", scope: { chains: ["trading"] } }
      )
      const both = yield* pair(sound, { TRIGATE_CALLERS: file })
      yield* assertSame(both, [
        ...[single, other].flatMap((key) => carrying(key, receiptOf(3))),
        ...[receiptOf(4), batch, receiptOf(5), "[]", receiptOf(6)].map((body) => posted(`/${single}/l2`, body)),
        ...carrying(single, receiptOf(7), other),
        ...[receiptOf(8), batch, "", "null"].flatMap((body) => carrying(metered, body))
      ])
    }))

  it.live("callers whose keys nobody knows are refused alike", () =>
    Effect.gen(function*() {
      const { file } = yield* keyFile({ name: "alice" })
      const unknown = `tg_0123456789_${"ab".repeat(32)}`
      yield* assertSame(
        yield* pair(sound, { TRIGATE_CALLERS: file }),
        [unknown, "abc", "l2"].flatMap((key) => carrying(key, receiptOf(3), unknown))
      )
    }))

  it.effect("malformed requests are answered alike", () =>
    Effect.gen(function*() {
      yield* atNow
      const both = yield* pair(sound)
      yield* assertSame(both, sample("malformed requests", malformedRequests(11, now), 200))
      yield* assertSame(both, validRequests(now).map(({ body, path }) => posted(path, body)))
    }))

  it.effect("requests of the fuzzer are answered alike, those of its corpus among them", () =>
    Effect.gen(function*() {
      yield* atNow
      const both = yield* pair(sound)
      const request = generator(7, now, bytesOf)
      const closing = (one: FuzzRequest): FuzzRequest => ({
        ...one,
        headers: [...one.headers, ["connection", "close"]]
      })
      const written = (one: FuzzRequest, name: string): Written => ({ name, parts: [bytesOf(closing(one))] })
      // who stops in the middle of a request may be gone before a body is decompressed
      const isWhole = ({ raw }: FuzzRequest): boolean => raw === undefined
      yield* assertSame(
        both,
        Array.from({ length: isExhaustive ? 600 : 150 }, (_, index) => request(index)).filter(isWhole).map((
          one,
          index
        ) => written(one, `whole request ${index}`))
      )
      yield* assertSame(
        both,
        Corpus.read().flatMap(({ complaint, requests }) =>
          requests.filter(isWhole).map((one) => written(one, complaint))
        )
      )
    }))
})

const ended = { count: 0, latch: Latch.makeUnsafe() }

/** The address of a server with a lane, in front of an app that answers `routed`. */
const laneWith = Effect.fnUntraced(function*(start: FastLane.PlainRoute["start"]) {
  const routes = yield* Effect.provide(FastLane.FastLane, FastLane.layer)
  FastLane.add(routes, { name: "layer2.rpc", path: "/l2", start })
  const facts = RequestFacts.make()
  ended.count = 0
  ended.latch.closeUnsafe()
  const lane = yield* FastLane.make(
    routes,
    {
      answers: () => true,
      begin: () => ({
        facts,
        start: now,
        headersOf: ({ headers }) => ({ ...headers, "x-noted": `${facts.route} ${facts.caller?.id}` }),
        noted: () => {},
        end: () => {
          ended.count++
          ended.latch.openUnsafe()
        }
      }),
      handOver: () => {},
      fault: (cause) => Effect.succeed(HttpServerResponse.text(String(Cause.squash(cause)), { status: 500 })),
      route: identity,
      server: identity
    },
    {
      serve: (_request, _key, handled) => handled,
      tryAdmit: () => ({ caller: local, provide: identity, end: () => {} })
    }
  )
  const context = yield* Layer.build(NodeServer.layer({ host: "127.0.0.1", port: 0 }))
  yield* Effect.provideContext(
    FastLane.serve(Effect.succeed(HttpServerResponse.text("routed")), { lane }),
    context
  )
  return HttpServer.formatAddress(Context.get(context, HttpServer.HttpServer).address)
})

/** The names of the requests that a lane takes. */
const takenOf = Effect.fnUntraced(function*(requests: ReadonlyArray<Written>) {
  const url = yield* laneWith(() => (_scene, done) => {
    done(() => Exit.succeed(HttpServerResponse.text("plain")))
    return () => {}
  })
  const taken: Array<string> = []
  for (const { name, parts } of requests) {
    const { body, head } = yield* exchange(url, parts)
    if (body !== "plain") continue
    assert.include(head, "x-noted: layer2.rpc local\r\n")
    taken.push(name)
  }
  return taken
})

describe("the fast lane", () => {
  const steps: ReadonlyArray<readonly [name: string, start: FastLane.PlainRoute["start"]]> = [
    ["the start", () => () => {
      throw new Error("broken")
    }],
    ["the rest", () => (_scene, done) => {
      done(() => {
        throw new Error("broken")
      })
      return () => {}
    }],
    ["an effect that is left", () => (_scene, done) => {
      done(() => Effect.die(new Error("broken")))
      return () => {}
    }]
  ]
  for (const [name, start] of steps) {
    it.effect(`answers a fault in ${name} as a fault of the gateway`, () =>
      Effect.gen(function*() {
        const { body, status } = yield* exchange(yield* laneWith(start), posted("/l2", "{}").parts)
        assert.deepStrictEqual([status, body, ended.count], [500, "Error: broken", 1])
      }))
  }

  it.effect("stops a call whose caller leaves", () =>
    Effect.gen(function*() {
      const begun = Latch.makeUnsafe()
      const stopped = Latch.makeUnsafe()
      const url = yield* laneWith(() => () => {
        begun.openUnsafe()
        return () => void stopped.openUnsafe()
      })
      const socket = yield* socketTo(url)
      yield* socket.send(`${posting("/l2", { "content-length": 2 })}{}`)
      yield* begun.await
      yield* socket.leave
      yield* stopped.await
      yield* ended.latch.await
      assert.strictEqual(ended.count, 1)
    }))

  it.effect("takes plain requests: small JSON without a header that could change the answer", () =>
    Effect.gen(function*() {
      const isPlain = (fields: ReadonlyArray<Field>) =>
        fields.every(([name, value]) =>
          ["accept", "accept-encoding", "authorization", "connection", "forwarded", "sec-fetch-mode", "user-agent"]
            .includes(name) ||
          name === "x-api-key" || name === "x-forwarded-for" || name === "x-request-id" ||
          (name === "content-type" && value === "application/json")
        )
      const all = fieldLists.map((fields) => posted("/l2", "{}", fields))
      const plain = all.filter((_, index) => isPlain(fieldLists[index] ?? []))
      assert.lengthOf(plain, 9)
      assert.deepStrictEqual(yield* takenOf(all), plain.map(({ name }) => name))
    }))

  it.effect("takes them on their path and up to four KiB", () =>
    Effect.gen(function*() {
      const bodies = [posted("/l2", "x".repeat(4096)), posted("/l2", "x".repeat(4097)), posted("/l2", "")]
      const [first, , last] = bodies
      assert.deepStrictEqual(
        yield* takenOf([...bodies, ...paths.slice(1).map((path) => posted(path, "{}"))]),
        [first?.name, last?.name]
      )
    }))
})
