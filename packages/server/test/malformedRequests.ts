/** Malformed requests of every route, keyed and not, from a seed. */
import * as Zlib from "node:zlib"
import type { Dice, Template } from "./malformedBodies.ts"
import * as Bodies from "./malformedBodies.ts"
import * as Templates from "./malformedTemplates.ts"
import { headOf } from "./rawHttp.ts"

/** How a route words a refusal that has to do with the body. */
export type Protocol = "problem" | "json-rpc" | "token-rpc"

export interface Malformed {
  readonly name: string
  readonly protocol: Protocol
  /** A status that the route may answer besides 4xx. */
  readonly status?: number
  readonly parts: ReadonlyArray<string | Uint8Array>
  /** Whether the sender stops before the end of the request. */
  readonly breaksOff?: boolean
}

type HeaderList = ReadonlyArray<readonly [name: string, value: string]>

/** A route that takes a body, and the valid bodies that are broken for it. */
interface Route {
  readonly path: string
  readonly protocol: Protocol
  readonly status?: number
  readonly templates: ReadonlyArray<Template>
}

type Parts = ReadonlyArray<string | Uint8Array>

const postTo = (route: Route, what: string, parts: Parts): Malformed => ({
  ...route,
  name: `POST ${route.path} ${what}`,
  parts
})

const behindKey = (route: Route): Route => ({
  ...route,
  path: `/caller-key${route.path}`,
  // what a node never serves is refused unread
  ...(route.path === "/exchange" ? { status: 501 } : {})
})

const routesOf = (now: number): ReadonlyArray<Route> => {
  const actions = Templates.relayedActions(now)
  const unkeyed: ReadonlyArray<Route> = [
    { path: "/exchange", protocol: "problem", templates: actions },
    { path: "/exchange/inspect", protocol: "problem", templates: Templates.actions(now) },
    { path: "/info", protocol: "problem", templates: Templates.queries },
    { path: "/evm", protocol: "json-rpc", templates: Templates.evmCalls },
    { path: "/api/v2/jsonRPC", protocol: "token-rpc", templates: Templates.tokenCalls },
    { path: "/l2", protocol: "json-rpc", templates: Templates.layer2Calls }
  ]
  const keyed = unkeyed.filter(({ path }) => path !== "/exchange/inspect").map(behindKey)
  return [...unkeyed, ...keyed, { path: "/caller-key", protocol: "json-rpc", templates: Templates.layer2Calls }]
}

const json: HeaderList = [["content-type", "application/json"]]
const encode = (text: string): Uint8Array => new TextEncoder().encode(text)

const sent = (method: string, path: string, body: Uint8Array, headers: HeaderList = json) => [
  headOf(method, path, [...headers, ["content-length", String(body.length)]]),
  body
]

const chunked = (body: Uint8Array): ReadonlyArray<string | Uint8Array> => {
  const size = 65_536
  const chunks = Array.from(
    { length: Math.ceil(body.length / size) },
    (_, at) => body.subarray(at * size, (at + 1) * size)
  )
  return [...chunks.flatMap((chunk) => [`${chunk.length.toString(16)}\r\n`, chunk, "\r\n"]), "0\r\n\r\n"]
}

const textOf = (template: Template): string => JSON.stringify(template.body)

const bodyCases = (some: Dice, routes: ReadonlyArray<Route>): ReadonlyArray<Malformed> => {
  const broken: ReadonlyArray<
    readonly [name: string, rounds: number, make: (template: Template) => string | Uint8Array]
  > = [
    ["a wrong field", 8, (template) => Bodies.wrongField(some, template)],
    ["a missing field", 3, (template) => Bodies.missingField(some, template)],
    ["a doubled key", 4, (template) => Bodies.doubledKey(some, template)],
    ["no JSON", 8, (template) => Bodies.spoiled(some, template)],
    ["no UTF-8", 2, (template) => Bodies.brokenBytes(some, template)],
    ["UTF-16", 1, (template) => new Uint8Array(Buffer.from(textOf(template), "utf16le"))]
  ]
  return routes.flatMap((route) => {
    const made = broken.flatMap(([name, rounds, make]) =>
      Array.from({ length: rounds }, () => {
        const template = some.pick(route.templates)
        const body = make(template)
        return {
          name: `${name} of ${template.name}: ${String(body).slice(0, 160)}`,
          body: typeof body === "string" ? encode(body) : body
        }
      })
    )
    const fixed = [...Bodies.strangers, ...Bodies.noDocuments].map((text) => ({
      name: `the body ${JSON.stringify(text.slice(0, 24))}`,
      body: encode(text)
    }))
    return [...made, ...fixed].map(({ body, name }) => postTo(route, `with ${name}`, sent("POST", route.path, body)))
  })
}

const contentTypes = [
  "text/plain",
  "application/x-www-form-urlencoded",
  "multipart/form-data; boundary=x",
  "application/xml",
  "application/jsonx",
  "json",
  "application/json/../x",
  "\xff"
]

const overLimit = 1024 * 1024 + 1

const spaces = new Uint8Array(overLimit).fill(0x20)
const bomb = new Uint8Array(Zlib.gzipSync(new Uint8Array(50_000_000).fill(0x20)))

const bigCases = (route: Route): ReadonlyArray<Malformed> => {
  const gzip: HeaderList = [...json, ["content-encoding", "gzip"]]
  const te: HeaderList = [...json, ["transfer-encoding", "chunked"]]
  const cases: ReadonlyArray<readonly [name: string, parts: Parts]> = [
    ["a body over the limit", sent("POST", route.path, spaces)],
    ["a chunked body over the limit", [headOf("POST", route.path, te), ...chunked(spaces)]],
    ["a gzip bomb", sent("POST", route.path, bomb, gzip)],
    ["a chunked gzip bomb", [
      headOf("POST", route.path, [...gzip, ["transfer-encoding", "chunked"]]),
      ...chunked(bomb)
    ]],
    ["no gzip", sent("POST", route.path, encode("{}"), gzip)],
    ["half of a gzip", sent("POST", route.path, new Uint8Array(Zlib.gzipSync("{}")).subarray(0, 12), gzip)],
    [
      "gzip four times over",
      sent("POST", route.path, encode("{}"), [...json, ["content-encoding", "gzip,gzip,gzip,gzip"]])
    ],
    ["an unknown coding", sent("POST", route.path, encode("{}"), [...json, ["content-encoding", "compress"]])]
  ]
  return cases.map(([name, parts]) => postTo(route, `with ${name}`, parts))
}

const contentTypeCases = (some: Dice, route: Route): ReadonlyArray<Malformed> =>
  contentTypes.map((type) =>
    postTo(
      route,
      `as ${JSON.stringify(type)}`,
      sent("POST", route.path, encode(textOf(some.pick(route.templates))), [["content-type", type]])
    )
  )

const repeated = (count: number, text: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => text(index)).join(",")

// as many as the gateway reads, and many more: what costs little each must not cost much together
const manyCases = (routes: ReadonlyArray<Route>, now: number): ReadonlyArray<Malformed> => {
  const multiSig = Templates.actions(now).find(({ name }) => name === "multiSig")
  const signatures = (raw: string) => Bodies.withRaw(multiSig?.body, ["action", "signatures"], `[${raw}]`)
  const call = (method: string, params: string) => `{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`
  const bodies: ReadonlyArray<readonly [paths: RegExp, name: string, body: string]> = [
    [/exchange/u, "9900 wrong signatures", signatures(repeated(9900, () => "1"))],
    [/exchange/u, "4900 empty signatures", signatures(repeated(4900, () => "{}"))],
    [/exchange/u, "350000 empty signatures", signatures(repeated(349_000, () => "{}"))],
    [/exchange/u, "9900 other members", `{${repeated(9900, (at) => `"k${at}":1`)}}`],
    [/exchange/u, "80000 other members", `{${repeated(80_000, (at) => `"k${at}":1`)}}`],
    [/info/u, "a million ones", `[${repeated(520_000, () => "1")}]`],
    [/info/u, "a million ones and a long integer", `[${repeated(500_000, () => "1")},12345678901234567]`],
    [/info/u, "long integers", `[${repeated(9900, () => "12345678901234567")}]`],
    [/info/u, "keys of wrong escapes", `{${repeated(100_000, (at) => `"\\x${at}":1`)}}`],
    [/info/u, "escaped keys", `[${repeated(4900, () => `{"\\u0061":1}`)}]`],
    [/jsonRPC/u, "9900 wrong libraries", call("getLibraries", `{"libraries":[${repeated(9900, () => "1")}]}`)],
    [/jsonRPC/u, "9900 unknown members", call("shards", `{"seqno":1,${repeated(9900, (at) => `"k${at}":1`)}}`)],
    [/evm|l2/u, "9900 params", call("eth_getTransactionReceipt", `[${repeated(9900, () => "1")}]`)],
    [/evm|l2/u, "a method of 1 MB", call("\\u0001".repeat(170_000), "[]")],
    [/evm|l2/u, "an id of 1 MB", `{"jsonrpc":"2.0","id":"${"x".repeat(1_000_000)}","method":"x"}`],
    [/evm|l2/u, "an id of a million digits", `{"jsonrpc":"2.0","id":${"1".repeat(1_000_000)},"method":"x"}`]
  ]
  return routes.flatMap((route) =>
    bodies.filter(([paths]) => paths.test(route.path)).map(([, name, body]) =>
      postTo(route, `with ${name}`, sent("POST", route.path, encode(body)))
    )
  )
}

const batchCases = (some: Dice, route: Route): ReadonlyArray<Malformed> => {
  const good = textOf(some.pick(route.templates))
  const bad = () => Bodies.wrongField(some, some.pick(route.templates))
  const small = () =>
    `{"jsonrpc":"2.0","id":${some.roll(9)},"method":"toString","params":{"__proto__":${some.roll(9)}}}`
  const batches: ReadonlyArray<readonly [name: string, body: string]> = [
    ["of 101 valid calls", `[${repeated(101, () => good)}]`],
    ["of 9000 numbers", `[${repeated(9000, String)}]`],
    ["of 10000 valid calls", `[${repeated(10_000, () => good)}]`.slice(0, overLimit - 1)],
    ["of 100 numbers", `[${repeated(100, String)}]`],
    ["of 100 wrong calls", `[${repeated(100, small)}]`],
    ["in a batch", `[[${good}]]`],
    ["of anything", "[null,true,0,\"\",[],{},[[]],{\"id\":1},{\"method\":\"x\"}]"],
    ["of one wrong call", `[${bad()}]`]
  ]
  return batches.map(([name, body]) => postTo(route, `with a batch ${name}`, sent("POST", route.path, encode(body))))
}

const keys = [
  "%zz",
  "%",
  "%2",
  "%FF",
  "%C0%AF",
  "%00",
  "%0d%0a",
  "%0d%0aset-cookie:%20a=b",
  "%2F..%2F",
  "..%2f..",
  "%2e%2e",
  "..",
  ".",
  "a.b",
  "a+b",
  "a%20b",
  "%F0%9F%98%80",
  "%ED%A0%80",
  "k".repeat(129),
  "k".repeat(9000),
  "%25zz",
  "'--",
  "${key}",
  "\xe9\xff"
]

const keyCases = (some: Dice, routes: ReadonlyArray<Route>): ReadonlyArray<Malformed> =>
  routes.filter(({ path }) => path.startsWith("/caller-key")).flatMap((route) =>
    keys.map((key) => {
      const path = route.path.replace("caller-key", () => key)
      return {
        protocol: route.protocol,
        name: `POST ${path.slice(0, 40)}`,
        parts: sent("POST", path, encode(textOf(some.pick(route.templates))))
      }
    })
  )

const tokenDataTargets = [
  "",
  "?",
  "?address",
  "?address=",
  "?Address=x",
  "?__proto__=x",
  "?address[]=x",
  "?address=%",
  "?address=%zz",
  "?address=%FF",
  "?address=%00",
  "?address=%ED%A0%80",
  "?address=a&address=b",
  `?address=${Templates.master}&address=${Templates.master}`,
  `?address=${Templates.master.slice(0, -1)}A`,
  `?address=${Templates.master}%0d%0a`,
  `?address=${Templates.master.slice(1)}`,
  "?address=0:zz",
  `?address=${"9".repeat(400)}:${"a".repeat(64)}`,
  "?address=-2:" + "0".repeat(64),
  `?address=${"E".repeat(14_000)}`,
  `?${"a=1&".repeat(3000)}`
]

const targetCases = (): ReadonlyArray<Malformed> => {
  const targets = ["/api/v2/getTokenData", "/caller-key/api/v2/getTokenData"].flatMap((path) =>
    tokenDataTargets.map((query) => `${path}${query}`)
  )
  const paths = [
    "//",
    "/info/",
    "//info",
    "/INFO",
    "/info%00",
    "/nothing/here",
    "/caller-key/nothing",
    "/../etc/passwd"
  ]
  return [
    ...targets.map((target) => ["GET", target] as const),
    ...["%zz", "%2F..%2F", "a.b", "evm", "health"].map((key) =>
      ["GET", `/${key}/api/v2/getTokenData?address=${Templates.master}`] as const
    ),
    ...paths.flatMap((path) => [["GET", path], ["POST", path]] as const)
  ].map(([method, target]) => ({
    name: `${method} ${target.slice(0, 60)}`,
    protocol: "problem",
    parts: sent(method, target, encode(method === "GET" ? "" : "{}"), method === "GET" ? [] : json)
  }))
}

const verbCases = (routes: ReadonlyArray<Route>): ReadonlyArray<Malformed> => {
  const posts = routes.flatMap(({ path }) =>
    ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"].map((verb) => [verb, path] as const)
  )
  const gets = ["/health/live", "/health/ready", "/metrics", "/openapi.json", "/docs", "/api/v2/getTokenData"].flatMap((
    path
  ) => ["POST", "DELETE"].map((verb) => [verb, path] as const))
  return [...posts, ...gets].map(([verb, path]) => ({
    name: `${verb} ${path}`,
    // one segment is an endpoint key to a POST, even where a GET finds a route of that name
    protocol: "json-rpc",
    parts: sent(verb, path, encode("{}"))
  }))
}

const wireCases = (path: string): ReadonlyArray<Malformed> => {
  const head = `POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n`
  const cases: ReadonlyArray<readonly [name: string, text: string, breaksOff?: boolean]> = [
    ["a header of 20 kB", `${head}x-long: ${"a".repeat(20_000)}\r\n\r\n`],
    ["1000 headers", `${head}${Array.from({ length: 1000 }, (_, at) => `x-header-${at}: 1\r\n`).join("")}\r\n`],
    ["a target of 20 kB", `POST ${path}?${"a".repeat(20_000)} HTTP/1.1\r\nhost: localhost\r\n\r\n`],
    ["both lengths", `${head}content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`],
    ["both lengths, the other way", `${head}transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n{}`],
    ["two lengths", `${head}content-length: 2\r\ncontent-length: 3\r\n\r\n{} `],
    ["a list of lengths", `${head}content-length: 2, 2\r\n\r\n{}`],
    ["a negative length", `${head}content-length: -1\r\n\r\n{}`],
    ["a length in hex", `${head}content-length: 0x2\r\n\r\n{}`],
    ["a length beyond integers", `${head}content-length: ${"9".repeat(40)}\r\n\r\n{}`],
    ["a length of 5 GB", `${head}connection: close\r\ncontent-length: 5000000000\r\n\r\n{}`],
    ["an unknown transfer coding", `${head}transfer-encoding: cow\r\n\r\n{}`],
    ["chunked not last", `${head}transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n`],
    [
      "chunked twice",
      `${head}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n0\r\n\r\n`
    ],
    ["a chunk size that is none", `${head}transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n`],
    ["a chunk longer than it says", `${head}transfer-encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n`],
    ["a chunk size beyond integers", `${head}transfer-encoding: chunked\r\n\r\n${"f".repeat(40)}\r\n{}\r\n0\r\n\r\n`],
    ["chunks that break off", `${head}transfer-encoding: chunked\r\n\r\n5\r\n{"a`, true],
    ["a body that breaks off", `${head}content-length: 50\r\n\r\n{"type":`, true],
    ["a head that breaks off", `${head}content-le`, true],
    ["an expectation", `${head}connection: close\r\nexpect: miracles\r\ncontent-length: 2\r\n\r\n{}`],
    ["an upgrade", `${head}connection: upgrade, close\r\nupgrade: h2c\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`],
    [
      "a web socket",
      `GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade, close\r\nupgrade: websocket\r\n\r\n`
    ],
    ["a control character in a header", `${head}x-a: \x01\r\ncontent-length: 2\r\n\r\n{}`],
    ["a space in a header name", `${head}x a: b\r\ncontent-length: 2\r\n\r\n{}`],
    ["a folded header", `${head}x-a: b\r\n c\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}`],
    ["a verb that is none", `RELAY ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`],
    ["a proxy's verb", "CONNECT example.org:443 HTTP/1.1\r\nhost: example.org\r\n\r\n"],
    ["another protocol version", `POST ${path} HTTP/3.0\r\nhost: localhost\r\n\r\n`],
    ["HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", true],
    ["TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", true],
    ["a space in the target", `POST ${path} x HTTP/1.1\r\nhost: localhost\r\n\r\n`]
  ]
  return cases.map(([name, text, breaksOff = false]) => ({
    name: `${path}: ${name}`,
    protocol: "json-rpc",
    parts: [text],
    breaksOff
  }))
}

/** All of them; `now` is what the nonces are near. */
export const malformedRequests = (seed: number, now: number): ReadonlyArray<Malformed> => {
  const some = Bodies.dice(seed)
  const routes = routesOf(now)
  const rpc = routes.filter(({ protocol }) => protocol !== "problem")
  return [
    ...bodyCases(some, routes),
    ...routes.flatMap((route) => contentTypeCases(some, route)),
    ...routes.flatMap(bigCases),
    ...manyCases(routes, now),
    ...rpc.flatMap((route) => batchCases(some, route)),
    ...keyCases(some, routes),
    ...targetCases(),
    ...verbCases(routes),
    ...wireCases("/info"),
    ...wireCases("/l2")
  ]
}

const isRelayed = (path: string, operation: string): boolean =>
  path !== "/exchange/inspect" && path !== "/caller-key/exchange" &&
  (path !== "/caller-key/info" || operation !== "candleSnapshot")

/** The valid requests that were broken, each with its route: proof that only the break is refused. */
export const validRequests = (now: number): ReadonlyArray<{ readonly path: string; readonly body: string }> =>
  routesOf(now).flatMap(({ path, templates }) =>
    templates.filter(({ name }) => isRelayed(path, name)).map((template) => ({ path, body: textOf(template) }))
  )
