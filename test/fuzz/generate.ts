/** Requests of every kind that a stranger may send, from a seed. */
import * as Zlib from "node:zlib"
import { bigBlocks, bodyOf, delegate } from "../../packages/server/test/bodies.ts"
import type { Dice, Template } from "../../packages/server/test/malformedBodies.ts"
import * as Bodies from "../../packages/server/test/malformedBodies.ts"
import * as Templates from "../../packages/server/test/malformedTemplates.ts"
import type { FuzzRequest } from "./request.ts"

type Headers = FuzzRequest["headers"]

const encode = (text: string): Uint8Array => new TextEncoder().encode(text)

const words = [
  "0",
  "-0",
  "1e400",
  "9007199254740993",
  "true",
  "null",
  "\"\"",
  "\"latest\"",
  "\"0x\"",
  "\"0x1\"",
  `"0x${"ab".repeat(20)}"`,
  `"0x${"ab".repeat(32)}"`,
  `"${Templates.master}"`,
  "\"\\u0000\"",
  "\"\\ud800\"",
  "\"\\u202e\\u001b[2J\"",
  "\"__proto__\"",
  "\"a\\r\\nx-injected: 1\""
]

const names = [
  "type",
  "action",
  "nonce",
  "signature",
  "method",
  "params",
  "id",
  "jsonrpc",
  "__proto__",
  "constructor",
  "req",
  "coin",
  "r",
  "s",
  "v",
  "vaultAddress",
  "expiresAfter",
  "address",
  "boc",
  "x",
  "",
  "\\u0074ype"
]

/** Any JSON, nested at most so deep. */
const anything = (some: Dice, depth: number): string => {
  const kind = depth === 0 ? 0 : some.roll(3)
  if (kind === 0) return some.pick(words)
  const count = some.roll(5)
  const each = Array.from({ length: count }, () => anything(some, depth - 1))
  return kind === 1 ? `[${each.join(",")}]` : `{${each.map((value) => `"${some.pick(names)}":${value}`).join(",")}}`
}

const hex = (some: Dice, bytes: number): string =>
  `0x${Array.from({ length: bytes }, () => some.roll(256).toString(16).padStart(2, "0")).join("")}`

/** The bodies that a gateway takes, made anew for each run: a nonce is near the time. */
interface Pools {
  readonly now: number
  readonly actions: ReadonlyArray<Template>
}

const actionOf = (some: Dice, nonce: number): string =>
  some.pick([
    () => bigBlocks,
    () => delegate(nonce),
    () => delegate(nonce, String(some.roll(2 ** 30))),
    () => `{"type":"CSignerAction","jailSelf":null}`,
    () => `{"type":"order","orders":[${anything(some, 2)}],"grouping":"na"}`,
    () => anything(some, 3)
  ])()

/** A body with a signature that recovers to somebody, for about every second one. */
const signedBody = (some: Dice, { now }: Pools): string => {
  const nonce = now + some.roll(10_000_000) - 5_000_000
  const signature = `{"r":"${hex(some, 32)}","s":"${hex(some, 32)}","v":${27 + some.roll(2)}}`
  return bodyOf(nonce, actionOf(some, nonce), some.pick(["", "", `,"vaultAddress":null`, `,"${some.pick(names)}":1`]))
    .replace(/\{"r":"0x1","s":"0x2","v":27\}/u, signature)
}

const methods = [
  "eth_chainId",
  "eth_blockNumber",
  "eth_gasPrice",
  "eth_getBalance",
  "eth_getStorageAt",
  "eth_getTransactionReceipt",
  "eth_getLogs",
  "eth_call",
  "eth_estimateGas",
  "eth_sendRawTransaction",
  "eth_subscribe",
  "debug_traceTransaction",
  "detectAddress",
  "runGetMethod",
  "sendBoc",
  "getMasterchainInfo",
  "toString"
]

const call = (some: Dice): string => {
  const id = some.pick([`"id":${some.roll(4)},`, "", `"id":"${some.roll(9)}",`, `"id":null,`, `"id":1.5,`, `"id":{},`])
  const params = some.pick([
    () => "[]",
    () => anything(some, 2),
    () => `["${hex(some, some.pick([1, 20, 32]))}","latest"]`
  ])()
  return `{"jsonrpc":"2.0",${id}"method":"${some.pick(methods)}","params":${params}}`
}

const batch = (some: Dice): string =>
  `[${
    Array.from({ length: some.pick([0, 1, 2, 5, 20, 100, 101, 300]) }, () =>
      some.roll(8) === 0 ? anything(some, 2) : call(some)).join(",")
  }]`

const templatesFor = (path: string, { actions }: Pools): ReadonlyArray<Template> =>
  path.includes("exchange")
    ? actions
    : path.endsWith("/info")
    ? Templates.queries
    : path.endsWith("/evm")
    ? Templates.evmCalls
    : path.includes("/api/v2")
    ? Templates.tokenCalls
    : Templates.layer2Calls

const broken: ReadonlyArray<(some: Dice, template: Template) => string | Uint8Array> = [
  Bodies.wrongField,
  Bodies.missingField,
  Bodies.doubledKey,
  Bodies.spoiled,
  Bodies.brokenBytes
]

/** Large bodies are rare: their cost would hide everything else. */
const longest = 20_000
const isRare = (some: Dice): boolean => some.roll(50) === 0

const bodyFor = (some: Dice, path: string, pools: Pools): Uint8Array => {
  const template = () => some.pick(templatesFor(path, pools))
  const valid = () => JSON.stringify(template().body)
  const make = some.pick<() => string | Uint8Array>([
    valid,
    valid,
    valid,
    () => some.pick(broken)(some, template()),
    () => some.pick(broken)(some, template()),
    () => signedBody(some, pools),
    () => signedBody(some, pools),
    () => batch(some),
    () => call(some),
    () => anything(some, 5),
    () => some.pick(Bodies.strangers),
    () => some.pick(Bodies.noDocuments)
  ])
  const made = make()
  const bytes = typeof made === "string" ? encode(made) : made
  return bytes.length <= longest || isRare(some) ? bytes : bytes.subarray(0, longest)
}

const keys = [
  "caller-key",
  "k",
  "%6b",
  "%2e%2e",
  "..",
  "a%2fb",
  "%00",
  "%0d%0ax-injected:%201",
  "%zz",
  "evm",
  "metrics",
  "k".repeat(129),
  "\xe9",
  "__proto__"
]

const routes = [
  "/exchange",
  "/exchange/inspect",
  "/info",
  "/evm",
  "/l2",
  "/api/v2/jsonRPC",
  "/api/v2/sendBoc",
  "/api/v2/runGetMethod"
]

const reads = [
  "/health/live",
  "/health/ready",
  "/metrics",
  "/openapi.json",
  "/docs",
  `/api/v2/getTokenData?address=${Templates.master}`,
  "/api/v2/getAddressBalance?address=0:zz",
  "/api/v2/shards?seqno=1"
]

const respelled: ReadonlyArray<(path: string, some: Dice) => string> = [
  (path) => path.toUpperCase(),
  (path) => `/${path}`,
  (path) => `${path}/`,
  (path) => `${path};x=1`,
  (path) => `${path}?${"a=1&".repeat(30)}`,
  (path) => `${path}%20`,
  (path) => `/.${path}`,
  (path) => `http://localhost${path}`,
  (path) => `http://evil.example${path}`,
  (path) => `${path}?api_key=%0d%0ax-injected:1&x-trigate-expected-signer=%zz`,
  (path, some) => `${path}?${some.pick(names)}=%ff`,
  (path) => path.replace(/[a-z]/u, (letter) => `%${letter.charCodeAt(0).toString(16)}`),
  () => "*",
  () => "/",
  (path) => `${path}?${"q".repeat(9000)}`
]

const targetFor = (some: Dice, path: string): string => {
  const keyed = some.roll(4) === 0 ? `/${some.pick(keys)}${path}` : path
  return some.roll(8) === 0 ? some.pick(respelled)(keyed, some) : keyed
}

/** Headers that mean something to the gateway or to Node, each with values that are sound and values that are not. */
export const fields: ReadonlyArray<readonly [name: string, values: ReadonlyArray<string>]> = [
  ["cache-control", ["no-cache", "max-age=0", "max-age=5", "max-age=99999999999", "x"]],
  ["origin", ["https://evil.example", "null", "http://localhost", ""]],
  ["sec-fetch-site", ["cross-site", "same-origin", "none", "x"]],
  ["x-api-key", ["caller-key", "", "\xff", "evm", "k".repeat(300)]],
  ["authorization", ["Bearer caller-key", "Basic x", "Bearer", "Bearer \xff"]],
  ["x-request-id", ["mine", "a b", "\x1b", "x".repeat(65), "${x}"]],
  ["x-trigate-expected-signer", [`0x${"ab".repeat(20)}`, "0x", "\xff"]],
  ["traceparent", ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0-0-0", "x"]],
  ["accept-encoding", ["br", "gzip;q=0", "*;q=x", ",,,", "a".repeat(3000)]],
  ["if-none-match", ["*", "\"\"", "W/\"x\""]],
  ["range", ["bytes=0-1", "bytes=-1", "x"]],
  ["accept", ["text/html", "*/*;q=2"]],
  ["cookie", ["a=b; c", "=;=;", "\xff"]],
  ["x-forwarded-for", ["203.0.113.9", "::1", "x, y"]],
  ["forwarded", ["for=203.0.113.9;host=evil.example", "for=\"[::1]\"", ";;"]],
  ["x-forwarded-host", ["evil.example"]],
  ["x-http-method-override", ["DELETE"]],
  ["upgrade", ["websocket", "h2c"]],
  ["te", ["trailers"]],
  ["expect", ["100-continue", "miracles"]],
  ["content-language", ["\xff".repeat(100)]]
]

const contentTypes = [
  "text/plain",
  "application/x-www-form-urlencoded",
  "",
  "application/JSON; charset=x",
  "application/a+json"
]

const codings: ReadonlyArray<readonly [name: string, encode: (body: Uint8Array) => Uint8Array]> = [
  ["gzip", (body) => Zlib.gzipSync(body)],
  ["deflate", (body) => Zlib.deflateSync(body)],
  ["br", (body) => Zlib.brotliCompressSync(body, { params: { [Zlib.constants.BROTLI_PARAM_QUALITY]: 0 } })],
  ["zstd", (body) => Zlib.zstdCompressSync(body)],
  ["identity", (body) => body],
  ["gzip", (body) => body],
  ["gzip, gzip", (body) => Zlib.gzipSync(body)],
  ["zstd", (body) => Zlib.gzipSync(body)],
  ["compress", (body) => body],
  ["gzip", (body) => Zlib.gzipSync(body).subarray(0, 12)]
]

const hosts = ["localhost", "127.0.0.1:80", "[::1]", "evil.example", "", "localhost.evil.example"]

const headersFor = (some: Dice): Headers => {
  const host = some.roll(40) === 0 ? some.pick(hosts) : "localhost"
  const more = Array.from({ length: some.roll(3) === 0 ? 1 + some.roll(4) : 0 }, () => {
    const [name, values] = some.pick(fields)
    return [name, some.pick(values)] as const
  })
  return [["host", host], ...more]
}

const mutated = (some: Dice, bytes: Uint8Array): Uint8Array => {
  let left = Buffer.from(bytes)
  for (let times = 1 + some.roll(4); times > 0; times--) {
    const at = some.roll(Math.max(1, Math.min(left.length, some.pick([40, 400, left.length]))))
    const size = some.pick([1, 1, 1, 4, 40])
    const inserted = some.pick([
      Buffer.from([some.roll(256)]),
      Buffer.alloc(0),
      Buffer.from("\r\n"),
      Buffer.from("\r\n\r\n"),
      Buffer.from("0\r\n\r\n"),
      left.subarray(some.roll(left.length), some.roll(left.length) + 40)
    ])
    left = Buffer.concat([left.subarray(0, at), inserted, left.subarray(some.roll(2) === 0 ? at : at + size)])
  }
  return left
}

/** What makes the requests of one run. */
export const generator = (seed: number, now: number, bytesOf: (request: FuzzRequest) => Uint8Array) => {
  const pools: Pools = { now, actions: Templates.relayedActions(now) }
  return (index: number): FuzzRequest => {
    const some = Bodies.dice(Math.imul(seed, 0x9e3779b1) ^ Math.imul(index + 1, 0x85ebca6b))
    const headers = headersFor(some)
    const none = new Uint8Array(0)
    if (some.roll(6) === 0) {
      const method = some.pick(["GET", "GET", "GET", "HEAD", "DELETE", "OPTIONS", "PATCH"])
      return { method, target: targetFor(some, some.pick([...reads, ...routes])), headers, body: none, framing: "none" }
    }
    const path = some.pick(routes)
    const body = bodyFor(some, path, pools)
    const [coding, compress] = some.roll(12) === 0 ? some.pick(codings) : [undefined, (bytes: Uint8Array) => bytes]
    const type = some.roll(25) === 0 ? some.pick(contentTypes) : "application/json"
    const request: FuzzRequest = {
      method: "POST",
      target: targetFor(some, path),
      headers: [
        ...headers,
        ["content-type", type],
        ...(coding === undefined ? [] : [["content-encoding", coding] as const])
      ],
      body: compress(body),
      framing: some.roll(10) === 0 ? "chunked" : "length"
    }
    return some.roll(12) === 0 ? { ...request, raw: mutated(some, bytesOf(request)) } : request
  }
}
