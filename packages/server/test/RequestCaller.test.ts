/** Who a request comes from, over sockets: where a key may stand, what it permits, and whose address counts. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, describe, it } from "@effect/vitest"
import * as CallerKeys from "@trigate/callers/CallerKeys"
import { KeyStore, layerMemory } from "@trigate/callers/KeyStore"
import type { Scope } from "@trigate/domain/Caller"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import * as Gateway from "@trigate/server/Gateway"
import { TrustedProxies } from "@trigate/server/unstable/requests/Callers"
import * as AccessLog from "@trigate/server/unstable/requests/Observe"
import type { GatewayResponse } from "@trigate/testing/Gateway"
import { gateway, get, post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import { rpcReply } from "@trigate/testing/RecordingUpstream"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { formatAddress, HttpServer } from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import * as IpNetwork from "effect/net/IpNetwork"
import * as Redacted from "effect/Redacted"
import * as Fs from "node:fs"
import * as Http from "node:http"
import * as Path from "node:path"
import { bigBlocks, bodyOf } from "./bodies.ts"
import { folder, keyFile } from "./keyFile.ts"
import { liveGateway } from "./liveGateway.ts"
import { oncePerFile } from "./oncePerFile.ts"
import { exchange, headOf } from "./rawHttp.ts"

const address = "EQClb6WL4TgcNsmu7KdNii5mw330v-k_cl6jCKyPj9pWNfJz"
const gas = `{"jsonrpc":"2.0","id":7,"method":"eth_gasPrice","params":[]}`
const chainInfo = `{"jsonrpc":"2.0","id":"7","method":"getMasterchainInfo","params":{}}`
const strange = `tg_0123456789_${"ab".repeat(32)}`

type Ask = (base: string, headers: Record<string, string>, query: string) => Effect.Effect<GatewayResponse>

/** Each kind of route about the chains, by its path below the base. */
const routes: ReadonlyArray<readonly [route: string, protocol: "problem" | "rpc" | "token-rpc", ask: Ask]> = [
  ["POST /info", "problem", (base, headers, query) => post(`${base}/info${query}`, `{"type":"spotMeta"}`, headers)],
  ["POST /evm", "rpc", (base, headers, query) => post(`${base}/evm${query}`, gas, headers)],
  ["POST /evm, a batch", "rpc", (base, headers, query) => post(`${base}/evm${query}`, `[${gas},${gas}]`, headers)],
  [
    "POST /l2",
    "rpc",
    (base, headers, query) => post(`${base}/l2${query}`, gas.replace("gasPrice", "chainId"), headers)
  ],
  [
    "POST /api/v2/jsonRPC",
    "token-rpc",
    (base, headers, query) => post(`${base}/api/v2/jsonRPC${query}`, chainInfo, headers)
  ],
  [
    "GET /api/v2/getMasterchainInfo",
    "problem",
    (base, headers, query) => get(`${base}/api/v2/getMasterchainInfo${query}`, headers)
  ],
  [
    "GET /api/v2/getTokenData",
    "problem",
    (base, headers, query) =>
      get(`${base}/api/v2/getTokenData${query === "" ? "?" : `${query}&`}address=${address}`, headers)
  ]
]

/** Routes that have no path with a key before them. */
const unkeyed: typeof routes = [
  ["POST /exchange", "problem", (base, headers, query) => post(`${base}/exchange${query}`, "{}", headers)],
  [
    "POST /exchange/inspect",
    "problem",
    (base, headers, query) => post(`${base}/exchange/inspect${query}`, "{}", headers)
  ]
]

const assertRefused = (answer: GatewayResponse, protocol: "problem" | "rpc" | "token-rpc", detail: string) => {
  assert.strictEqual(answer.status, 401)
  if (protocol === "problem") {
    assert.strictEqual(answer.type, "application/problem+json")
    assert.include(answer.json, { _tag: "Unauthorized", detail })
  } else if (protocol === "rpc") {
    assert.strictEqual(JsonParts.value(answer.text, "id"), null)
    assert.deepInclude(JsonParts.value(answer.text, "error"), { code: -32001, message: detail })
    assert.include(JsonParts.at(JsonParts.value(answer.text, "error"), "data"), { _tag: "Unauthorized" })
  } else {
    assert.include(answer.json, { ok: false, error: detail, code: -32001 })
  }
}

const noKey =
  "This gateway requires a key: send it in Authorization: Bearer, in X-API-Key or as the first segment of the path"
const unknown = "The key is unknown, expired or revoked"
const two = "The request contains two different keys: send only one"

/** A sandbox that asks for keys: one of Alice, one of Bob, and those that a test adds. */
const keyed = oncePerFile(Effect.fnUntraced(function*() {
  const made = yield* keyFile({ name: "alice" }, { name: "bob" })
  const { url } = yield* gateway({ TRIGATE_CALLERS: made.file })
  return { ...made, url }
}))

describe("a gateway with keys", () => {
  for (const [route, protocol, ask] of [...routes, ...unkeyed]) {
    it.live(`serves a key wherever it stands, and nobody without: ${route}`, () =>
      Effect.gen(function*() {
        const { keys: [key = "", other = ""], url } = yield* keyed()
        assertRefused(yield* ask(url, {}, ""), protocol, noKey)
        const served: ReadonlyArray<GatewayResponse> = [
          yield* ask(url, { authorization: `Bearer ${key}` }, ""),
          yield* ask(url, { authorization: `bearer  ${key}` }, ""),
          yield* ask(url, { "x-api-key": key }, ""),
          yield* ask(url, {}, `?api_key=${key}`),
          yield* ask(url, { authorization: `Bearer ${key}`, "x-api-key": key }, `?api_key=${key}&api_key=${key}`),
          ...(unkeyed.some(([name]) => name === route) ? [] : [
            yield* ask(`${url}/${key}`, {}, ""),
            yield* ask(`${url}/${key}`, { "x-api-key": key }, "")
          ])
        ]
        const [first] = served
        assert.notStrictEqual(first?.status, 401)
        for (const answer of served) assert.strictEqual(answer.status, first?.status)
        for (
          const twice of [
            yield* ask(url, { authorization: `Bearer ${key}`, "x-api-key": other }, ""),
            yield* ask(url, { "x-api-key": key }, `?api_key=${other}`),
            yield* ask(url, {}, `?api_key=${key}&%61pi_key=${other}`)
          ]
        ) {
          assertRefused(twice, protocol, two)
        }
        for (const wrong of [strange, key.slice(0, -1), "", `${key} `.toUpperCase(), `${key}, ${key}`]) {
          assertRefused(yield* ask(url, { authorization: `Bearer ${wrong}x` }, ""), protocol, unknown)
          assertRefused(yield* ask(url, { "x-api-key": wrong }, ""), protocol, unknown)
        }
        assert.notInclude(served.map(({ text }) => text).join("\n"), key)
      }))
  }

  it.live("takes the key of a path alone for the layer 2, and no other in its place", () =>
    Effect.gen(function*() {
      const { keys: [key = "", other = ""], url } = yield* keyed()
      const call = gas.replace("gasPrice", "chainId")
      assert.strictEqual((yield* post(`${url}/${key}`, call)).status, 200)
      assertRefused(yield* post(`${url}/${strange}`, call), "rpc", unknown)
      assertRefused(yield* post(`${url}/${key}`, call, { authorization: `Bearer ${other}` }), "rpc", two)
      assertRefused(yield* post(`${url}/evm/info`, `{"type":"spotMeta"}`), "problem", unknown)
    }))

  it.live("asks nobody for a key who reads its health or its reference", () =>
    Effect.gen(function*() {
      const { url } = yield* keyed()
      for (const path of ["/health/live", "/health/ready", "/docs", "/openapi.json"]) {
        assert.strictEqual((yield* get(`${url}${path}`)).status, 200)
      }
      assert.strictEqual((yield* get(`${url}/nowhere`)).status, 404)
    }))

  it.live("reads a second Authorization header as another key", () =>
    Effect.gen(function*() {
      const { keys: [key = "", other = ""], url } = yield* keyed()
      const body = `{"type":"spotMeta"}`
      const request = (headers: ReadonlyArray<readonly [string, string]>) =>
        exchange(url, [
          headOf("POST", "/info", [
            ["content-type", "application/json"],
            ["content-length", String(body.length)],
            ...headers
          ]),
          body
        ])
      assert.strictEqual((yield* request([["authorization", `Bearer ${key}`]])).status, 200)
      for (const second of [other, strange]) {
        const refused = yield* request([["authorization", `Bearer ${key}`], ["Authorization", `Bearer ${second}`]])
        assert.strictEqual(refused.status, 401)
      }
    }))

  it.live("lets nothing of a key reach an upstream, and sends nothing for a caller that it refuses", () =>
    Effect.gen(function*() {
      const { file, keys: [key = ""] } = yield* keyFile({ name: "alice" })
      const live = yield* liveGateway({
        api: () => ({ body: "{}" }),
        node: (request) =>
          request.path.endsWith("/evm") ? rpcReply(`"0x1"`)(request) : { body: `{"universe":[],"tokens":[]}` },
        tokens: () => ({ body: `{"ok":true,"result":{}}` }),
        layer2: rpcReply(`"0x1"`)
      }, { TRIGATE_CALLERS: file })
      for (const [, , ask] of [...routes, ...unkeyed]) yield* ask(live.url, { "x-api-key": strange }, "")
      assert.deepStrictEqual(live.seen(), [])
      for (const [, , ask] of routes) {
        yield* ask(live.url, { authorization: `Bearer ${key}` }, "")
        yield* ask(live.url, {}, `?api_key=${key}`)
        yield* ask(`${live.url}/${key}`, {}, "")
      }
      const seen = JSON.stringify([live.api.seen, live.node.seen, live.tokens.seen, live.layer2.seen])
      assert.isAbove(live.seen().length, 5)
      assert.notInclude(seen, key)
      assert.notInclude(seen, key.slice(14))
    }))
})

describe("the scope of a key", () => {
  const raw = `{"jsonrpc":"2.0","id":7,"method":"eth_sendRawTransaction","params":["0x02"]}`
  const permits: ReadonlyArray<
    readonly [
      scope: Scope,
      served: ReadonlyArray<readonly [path: string, body: string]>,
      refused: ReadonlyArray<readonly [path: string, body: string, missing: string, needed: string]>
    ]
  > = [
    [
      { chains: ["layer2", "tokens"] },
      [["/l2", gas.replace("gasPrice", "chainId")], ["/api/v2/jsonRPC", chainInfo]],
      [
        ["/info", `{"type":"spotMeta"}`, "chains", "trading"],
        ["/evm", gas, "chains", "trading"],
        ["/exchange/inspect", "{}", "chains", "trading"]
      ]
    ],
    [
      { classes: ["read"] },
      [["/info", `{"type":"spotMeta"}`], ["/evm", gas]],
      [
        ["/evm", raw, "classes", "sign"],
        ["/l2", raw, "classes", "sign"],
        ["/exchange/inspect", "{}", "classes", "inspect"]
      ]
    ],
    [
      { classes: ["inspect"] },
      [["/exchange/inspect", bodyOf(1, bigBlocks)]],
      [["/info", `{"type":"spotMeta"}`, "classes", "read"], ["/evm", gas, "classes", "read"]]
    ],
    [
      { operations: ["spotMeta", "eth_chainId", "userRole"] },
      [["/info", `{"type":"spotMeta"}`], ["/l2", gas.replace("gasPrice", "chainId")]],
      [
        ["/evm", gas, "operations", "eth_gasPrice"],
        ["/info", `{"type":"allMids"}`, "operations", "allMids"],
        ["/api/v2/jsonRPC", chainInfo, "operations", "getMasterchainInfo"]
      ]
    ],
    [
      { signers: [`0x${"1".repeat(40)}`] },
      [["/evm", gas]],
      [["/evm", raw, "signers", "eth_sendRawTransaction"]]
    ]
  ]
  for (const [index, [scope, served, refused]] of permits.entries()) {
    it.live(`permits what it names and nothing else, before a byte leaves: ${JSON.stringify(scope).slice(0, 60)}`, () =>
      Effect.gen(function*() {
        const { store, url } = yield* keyed()
        const { key } = yield* store.create({ name: `scope-${index}`, scope })
        const headers = { authorization: `Bearer ${Redacted.value(key)}` }
        for (const [path, body] of served) {
          const answer = yield* post(`${url}${path}`, body, headers)
          assert.notInclude(answer.text, "NotPermitted", `${path} ${body}`)
          assert.strictEqual(answer.status, 200, `${path} ${body}`)
        }
        for (const [path, body, missing, needed] of refused) {
          const answer = yield* post(`${url}${path}`, body, headers)
          const told = { _tag: "NotPermitted", missing, needed }
          if (path === "/evm" || path === "/l2") {
            assert.strictEqual(answer.status, 200)
            const error = JsonParts.value(answer.text, "error")
            assert.include(JsonParts.at(error, "data"), told)
            assert.strictEqual(JsonParts.at(error, "code"), -32001)
          } else if (path === "/api/v2/jsonRPC") {
            assert.include(answer.json, { ok: false, code: -32001 })
          } else {
            assert.strictEqual(answer.status, 403)
            assert.include(answer.json, told)
          }
        }
      }))
  }

  it.live("refuses calls of a batch one by one", () =>
    Effect.gen(function*() {
      const { store, url } = yield* keyed()
      const { key } = yield* store.create({ name: "scope-of-batch", scope: { operations: ["eth_chainId"] } })
      const answer = yield* post(`${url}/l2`, `[${gas.replace("gasPrice", "chainId")},${gas.replace("7", "8")}]`, {
        "x-api-key": Redacted.value(key)
      })
      assert.strictEqual(answer.status, 200)
      const [one, other] = [JsonParts.at(answer.json, 0), JsonParts.at(answer.json, 1)]
      assert.hasAllKeys(one, ["jsonrpc", "id", "result"])
      assert.strictEqual(JsonParts.at(other, "id"), 8)
      assert.strictEqual(JsonParts.at(JsonParts.at(other, "error"), "code"), -32001)
    }))

  it.live("covers signed actions by their type and their signer", () =>
    Effect.gen(function*() {
      const { file, keys, store } = yield* keyFile(
        { name: "other-type", scope: { operations: ["tokenDelegate"] } },
        { name: "other-signer", scope: { signers: [`0x${"1".repeat(40)}`] } },
        { name: "reader", scope: { classes: ["read"] } }
      )
      const live = yield* liveGateway(
        { api: () => ({ body: `{"status":"ok","response":{"type":"default"}}` }) },
        { TRIGATE_CALLERS: file }
      )
      const now = yield* Clock.currentTimeMillis
      const told = yield* Effect.forEach(keys, (key) =>
        post(`${live.url}/exchange`, bodyOf(now, bigBlocks), { "x-api-key": key }))
      assert.deepStrictEqual(told.map(({ status, text }) => [status, JsonParts.value(text, "_tag")]), [
        [403, "NotPermitted"],
        [403, "SignerNotAllowed"],
        [403, "NotPermitted"]
      ])
      assert.include(told[0]?.json, { missing: "operations", needed: "evmUserModify" })
      assert.include(told[2]?.json, { missing: "classes", needed: "sign" })
      assert.deepStrictEqual(live.seen(), [])
      const signer = JsonParts.value(told[1]?.text ?? "", "signer")
      assert.match(String(signer), /^0x[0-9a-f]{40}$/u)
      const checksummed = `0x${String(signer).slice(2).toUpperCase()}` as const
      const { key } = yield* store.create({
        name: "right",
        scope: { signers: [checksummed], operations: ["evmUserModify"] }
      })
      const sent = yield* post(`${live.url}/exchange`, bodyOf(now, bigBlocks), { "x-api-key": Redacted.value(key) })
      assert.strictEqual(sent.status, 200)
      assert.deepStrictEqual(live.seen(), ["api POST /exchange"])
    }))
})

/** The gateway's routes on a server of one's own, and what the access log says of each request. */
const observed = Effect.fnUntraced(function*(
  keys: Layer.Layer<KeyStore> | undefined,
  proxies: ReadonlyArray<string> = [],
  host: string = "127.0.0.1"
) {
  const entries: Array<AccessLog.RequestLogEntry> = []
  const app = Gateway.layer().pipe(
    Layer.provide(Sandbox.layer()),
    Layer.provide(Layer.succeed(AccessLog.AccessLog, { write: (entry) => void entries.push(entry) })),
    Layer.provide(keys === undefined ? Layer.empty : Layer.provide(CallerKeys.layerStored(), keys)),
    Layer.provide(Layer.succeed(TrustedProxies, proxies.map(IpNetwork.fromStringUnsafe))),
    Layer.provide(Gateway.layerDefaults({ sandbox: true }))
  )
  const server = NodeHttpServer.layer(() => Http.createServer(), { port: 0, host })
  const context = yield* Layer.build(
    HttpRouter.serve(app, { disableLogger: true, disableListenLog: true }).pipe(Layer.provideMerge(server))
  )
  const url = formatAddress(Context.get(context, HttpServer).address)
  const callerOf = (headers: Record<string, string>) =>
    Effect.map(post(`${url}/info`, `{"type":"spotMeta"}`, headers), () => entries.at(-1)?.caller)
  return { url, entries, callerOf }
})

describe("the access log", () => {
  it.live("has the name of the caller and the prefix of the key, on every route about the chains", () =>
    Effect.gen(function*() {
      const store = yield* Effect.provide(KeyStore, layerMemory)
      const { key, record } = yield* store.create({ name: "alice" })
      const { entries, url } = yield* observed(Layer.succeed(KeyStore, store))
      const text = Redacted.value(key)
      for (const [, , ask] of [...routes, ...unkeyed]) yield* ask(url, { authorization: `Bearer ${text}` }, "")
      assert.deepStrictEqual(
        [...new Set(entries.map(({ caller, key }) => `${caller} ${key}`))],
        [`key:alice ${record.prefix}`]
      )
      const count = entries.length
      // a probe is no request of a caller, and leaves no entry
      yield* get(`${url}/health/live`)
      yield* post(`${url}/info`, `{"type":"spotMeta"}`)
      assert.deepStrictEqual(entries.slice(count).map(({ caller, error, key }) => [caller, key, error]), [
        [undefined, undefined, "Unauthorized"]
      ])
      assert.notInclude(JSON.stringify(entries), text.slice(14))
    }))

  it.live("tells callers apart who take turns on one connection, by a key in the path or in a header", () =>
    Effect.gen(function*() {
      const store = yield* Effect.provide(KeyStore, layerMemory)
      const alice = Redacted.value((yield* store.create({ name: "alice" })).key)
      const bob = Redacted.value((yield* store.create({ name: "bob" })).key)
      const { entries, url } = yield* observed(Layer.succeed(KeyStore, store))
      const agent = new Http.Agent({ keepAlive: true, maxSockets: 1 })
      yield* Effect.addFinalizer(() => Effect.sync(() => agent.destroy()))
      const send = (path: string, headers: { readonly [name: string]: string } = {}) =>
        Effect.callback<number | undefined, Error>((resume) => {
          const request = Http.request(
            `${url}${path}`,
            { agent, method: "POST", headers: { "content-type": "application/json", ...headers } },
            (response) => {
              const { localPort } = response.socket
              response.resume().on("end", () => resume(Effect.succeed(localPort)))
            }
          )
          request.on("error", (error) => resume(Effect.fail(error))).end(gas)
        })
      const ports = [
        yield* send(`/${alice}/evm`),
        yield* send(`/${bob}/evm`),
        yield* send("/evm", { "x-api-key": bob }),
        yield* send("/evm", { authorization: `Bearer ${alice}` }),
        yield* send(`/${strange}/evm`),
        yield* send(`/${alice}/evm`)
      ]
      assert.lengthOf(new Set(ports), 1)
      assert.deepStrictEqual(
        entries.map(({ caller, error }) => caller ?? error),
        ["key:alice", "key:bob", "key:bob", "key:alice", "Unauthorized", "key:alice"]
      )
    }))
})

describe("a caller without a key", () => {
  it.live("is told apart by the address of its connection, whatever it says in headers", () =>
    Effect.gen(function*() {
      const { callerOf } = yield* observed(undefined)
      assert.strictEqual(yield* callerOf({}), "address:127.0.0.1")
      assert.strictEqual(yield* callerOf({ "x-forwarded-for": "192.0.2.1" }), "address:127.0.0.1")
      assert.strictEqual(yield* callerOf({ forwarded: "for=192.0.2.1" }), "address:127.0.0.1")
      assert.strictEqual(
        yield* callerOf({ "x-forwarded-for": "192.0.2.1", "x-api-key": "anything" }),
        "address:127.0.0.1"
      )
    }))

  it.live("is the nearest address that no trusted proxy has, IPv6 by its /64", () =>
    Effect.gen(function*() {
      const { callerOf } = yield* observed(undefined, ["127.0.0.0/8", "10.0.0.0/8", "fd00::/8"])
      const seen: ReadonlyArray<readonly [headers: Record<string, string>, caller: string]> = [
        [{}, "127.0.0.1"],
        [{ "x-forwarded-for": "192.0.2.1" }, "192.0.2.1"],
        [{ "x-forwarded-for": "192.0.2.1, 10.1.2.3" }, "192.0.2.1"],
        [{ "x-forwarded-for": "1.1.1.1, 192.0.2.1 ,10.1.2.3" }, "192.0.2.1"],
        [{ "x-forwarded-for": "10.9.9.9, 10.1.2.3" }, "10.9.9.9"],
        [{ "x-forwarded-for": "192.0.2.1:4711" }, "192.0.2.1"],
        [{ "x-forwarded-for": "::ffff:192.0.2.1" }, "192.0.2.1"],
        [{ "x-forwarded-for": "2001:db8:1:2:3:4:5:6" }, "2001:db8:1:2::/64"],
        [{ "x-forwarded-for": "2001:db8:1:2::9, fd12::1" }, "2001:db8:1:2::/64"],
        [{ "x-forwarded-for": "[2001:db8:1:2::9]:4711" }, "2001:db8:1:2::/64"],
        [{ "x-forwarded-for": "192.0.2.1, nonsense" }, "127.0.0.1"],
        [{ "x-forwarded-for": "1.1.1.1, unknown, 10.1.2.3" }, "10.1.2.3"],
        [{ "x-forwarded-for": "" }, "127.0.0.1"],
        [{ forwarded: "for=192.0.2.1" }, "192.0.2.1"],
        [{ forwarded: "for=1.1.1.1;proto=https, For=192.0.2.1;by=10.0.0.1, for=10.1.2.3" }, "192.0.2.1"],
        [{ forwarded: `proto=http;for="[2001:db8:1:2::9]:4711"` }, "2001:db8:1:2::/64"],
        [{ forwarded: `for="192.0.2.1:80"` }, "192.0.2.1"],
        [{ forwarded: "for=192.0.2.1, for=_hidden" }, "127.0.0.1"],
        [{ forwarded: "by=192.0.2.1" }, "127.0.0.1"],
        // the proxy wrote one of them, and its caller may have written the other
        [{ forwarded: "for=192.0.2.1", "x-forwarded-for": "192.0.2.2" }, "127.0.0.1"]
      ]
      for (const [headers, caller] of seen) {
        assert.strictEqual(yield* callerOf(headers), `address:${caller}`, JSON.stringify(headers))
      }
    }))

  it.live("is not believed by proxies that are not trusted", () =>
    Effect.gen(function*() {
      const { callerOf } = yield* observed(undefined, ["10.0.0.0/8"])
      assert.strictEqual(yield* callerOf({ "x-forwarded-for": "192.0.2.1" }), "address:127.0.0.1")
    }))

  it.live("is told apart by its /64 on a socket of its own, too", () =>
    Effect.gen(function*() {
      const { callerOf } = yield* observed(undefined, [], "::1")
      assert.strictEqual(yield* callerOf({}), "address:::/64")
    }))
})

describe("a gateway that others can reach", () => {
  it.live("does not start, nor pass its check, before it is told who may call", () =>
    Effect.gen(function*() {
      const refusal = (host: string) =>
        `other machines can reach ${host}: set TRIGATE_CALLERS to \`keys\`, to the path of a key file, or to \`open\` (every client)`
      for (const host of ["0.0.0.0", "::", "192.0.2.1", "gateway.example"]) {
        assert.strictEqual((yield* Effect.flip(gateway({ TRIGATE_HOST: host }))).message, refusal(host))
      }
      const { url } = yield* gateway({ TRIGATE_HOST: "0.0.0.0", TRIGATE_CALLERS: "open" })
      assert.strictEqual((yield* post(`${url}/evm`, gas)).status, 200)
    }))

  it.live("needs no word on a loopback address", () =>
    Effect.gen(function*() {
      for (const host of ["127.0.0.1", "127.0.0.9", "localhost", "::1"]) {
        const { url } = yield* gateway({ TRIGATE_HOST: host })
        assert.strictEqual((yield* get(`${url}/health/live`)).status, 200)
      }
    }))

  it.live("is told in one line why its keys are of no use", () =>
    Effect.gen(function*() {
      const file = Path.join(yield* folder, "keys.json")
      const faultOf = (environment: Record<string, string>) =>
        Effect.map(Effect.flip(gateway(environment)), ({ message }) => message)
      assert.strictEqual(
        yield* faultOf({ TRIGATE_CALLERS: "keys" }),
        "TRIGATE_CALLERS=keys requires a database: set TRIGATE_DATABASE_URL, or set TRIGATE_CALLERS to the path of a key file"
      )
      assert.strictEqual(
        yield* faultOf({ TRIGATE_CALLERS: file }),
        `TRIGATE_CALLERS: ${file} does not exist; create it with trigate keys create`
      )
      Fs.writeFileSync(file, `{"version":2}`, { mode: 0o600 })
      assert.strictEqual(
        yield* faultOf({ TRIGATE_CALLERS: file }),
        `TRIGATE_CALLERS: ${file} is of version 2, and this program reads version 1: use a later version of Trigate`
      )
      assert.include(yield* faultOf({ TRIGATE_CALLERS: "opne" }), "TRIGATE_CALLERS")
    }))
})
