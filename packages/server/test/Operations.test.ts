import { assert, describe, it } from "@effect/vitest"
import { GatewayApi } from "@trigate/api/GatewayApi"
import { signedActions } from "@trigate/api/unstable/Examples"
import { catalogDate, exchangeOperations, passthroughAction } from "@trigate/domain/actions/Action"
import { CandleInterval } from "@trigate/domain/candles/Candle"
import { gatewayErrors } from "@trigate/domain/errors/GatewayError"
import { evmMethods } from "@trigate/domain/evm/EvmProtocol"
import { layer2Methods } from "@trigate/domain/evm/Layer2Operations"
import { infoOperations, passthroughOperations, passthroughQuery } from "@trigate/domain/info/InfoOperations"
import { tokenRpcOperations, tokenSendOperations } from "@trigate/domain/tokens/TokenOperations"
import { trader } from "@trigate/domain/unstable/Sandbox"
import * as OrderAction from "@trigate/signing/actions/OrderAction"
import { gateway, get, post, send } from "@trigate/testing/Gateway"
import { gatewayProcess } from "@trigate/testing/GatewayProcess"
import * as JsonParts from "@trigate/testing/JsonParts"
import { recordingUpstream, rpcReply } from "@trigate/testing/RecordingUpstream"
import { isExhaustive } from "@trigate/testing/Sample"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Fs from "node:fs"
import { bodyOf } from "./bodies.ts"
import { liveGateway, upstreamKeys } from "./liveGateway.ts"
import { oncePerFile } from "./oncePerFile.ts"

/** A sandbox without any state that these tests change. */
const sandbox = oncePerFile(() => gateway({}))

const gasCall = `{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}`
const receiptCall = `{"jsonrpc":"2.0","id":1,"method":"eth_getTransactionReceipt","params":["0x${"ab".repeat(32)}"]}`
const spotMeta = `{"universe":[],"tokens":[]}`

describe("health", () => {
  it.live("is live", () =>
    Effect.gen(function*() {
      const { url } = yield* sandbox()
      const answer = yield* get(`${url}/health/live`)
      assert.strictEqual(answer.status, 200)
      assert.strictEqual(answer.text, `{"status":"live"}`)
    }))

  it.live("tells that the sandbox is behind", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({ TRIGATE_NETWORK: "testnet" })
      const answer = yield* get(`${url}/health/ready`)
      assert.strictEqual(answer.status, 200)
      assert.strictEqual(answer.type, "application/json")
      assert.deepStrictEqual(answer.json, {
        status: "ready",
        sandbox: true,
        network: "testnet",
        chains: {
          trading: { mode: "sandbox", upstreams: { "trading-api": 0, "trading-node": 0 } },
          tokens: { mode: "sandbox", upstreams: { "token-chain": 0 } },
          layer2: { mode: "sandbox", upstreams: { layer2: 0 } }
        },
        catalog: catalogDate,
        degraded: [],
        actionLog: { backing: "memory", state: "up", used: { familiar: 0, strangers: 0 }, room: "enough" },
        eventLog: {
          backing: "memory",
          state: "up",
          role: "writer",
          position: JsonParts.value(answer.text, "eventLog", "position"),
          accounts: { waiting: 0, subscribing: 0, refilling: 0, live: 0 },
          unrecorded: 0
        }
      })
    }))

  it.live("tells how many addresses each chain has, and none of them", () =>
    Effect.gen(function*() {
      const live = yield* liveGateway({}, {
        TRIGATE_TRADING_API_URL: "http://a.invalid,http://b.invalid",
        TRIGATE_LAYER2_URL: ""
      })
      const answer = yield* get(`${live.url}/health/ready`)
      assert.deepStrictEqual(answer.json, {
        status: "ready",
        sandbox: false,
        network: "mainnet",
        chains: {
          trading: { mode: "live", upstreams: { "trading-api": 2, "trading-node": 1 } },
          tokens: { mode: "live", upstreams: { "token-chain": 1 } },
          layer2: { mode: "not-configured", upstreams: { layer2: 0 } }
        },
        catalog: catalogDate,
        degraded: [],
        actionLog: { backing: "memory", state: "up", used: { familiar: 0, strangers: 0 }, room: "enough" },
        eventLog: {
          backing: "memory",
          state: "up",
          role: "writer",
          position: JsonParts.value(answer.text, "eventLog", "position"),
          accounts: { waiting: 0, subscribing: 0, refilling: 0, live: 0 },
          unrecorded: 0
        }
      })
    }))

  it.live("is not ready while it drains, and alive all the same", () =>
    Effect.gen(function*() {
      const { drain, url } = yield* gateway({})
      yield* drain.drain("1 milli")
      const answer = yield* get(`${url}/health/ready`)
      assert.strictEqual(answer.status, 503)
      assert.strictEqual(JsonParts.value(answer.text, "status"), "draining")
      assert.strictEqual((yield* get(`${url}/health/live`)).status, 200)
      assert.strictEqual((yield* post(`${url}/evm`, gasCall)).status, 200)
    }))
})

/** The value of a line of metrics, 0 where there is none; the registry is the process's, so tests look at differences. */
const counted = (text: string, series: string): number =>
  Number(text.split("\n").find((line) => line.startsWith(`${series} `))?.slice(series.length) ?? 0)

/** How many series a text of metrics has. */
const seriesIn = (text: string): number =>
  text.split("\n").filter((line) => line !== "" && !line.startsWith("#")).length

/** Names of metrics with their labels, `name label value`, without the buckets' bounds. */
const labelsOf = (text: string): ReadonlySet<string> =>
  new Set(
    text.split("\n").filter((line) => line !== "" && !line.startsWith("#")).flatMap((line) => {
      const { labels = "", name = "" } = /^(?<name>\w+)(?:\{(?<labels>.*)\})? \S+$/u.exec(line)?.groups ?? {}
      assert.notStrictEqual(name, "", line)
      return [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/gu)].map(([, label, value]) =>
        label === "le" ? `${name} le` : `${name} ${label} ${value}`
      )
    })
  )

const routes = ["other"]
HttpApi.reflect(GatewayApi, {
  onGroup: () => {},
  onEndpoint: ({ endpoint, group }) => {
    routes.push(`${group.identifier}.${endpoint.identifier}`)
  }
})
const tags: ReadonlyArray<string> = gatewayErrors.map(({ identifier }) => identifier)
const declared = [
  ...Object.values(exchangeOperations),
  passthroughAction,
  ...Object.values(infoOperations),
  passthroughQuery,
  ...evmMethods,
  ...Object.values(tokenRpcOperations),
  ...Object.values(tokenSendOperations),
  ...layer2Methods
].map(({ name }) => name)
const values: { readonly [label: string]: ReadonlyArray<string> } = {
  group: ["address"],
  limit: ["connections", "subscriptions", "users"],
  limited: ["yes", "no"],
  route: routes,
  status: [
    "200",
    "204",
    "304",
    "400",
    "401",
    "403",
    "404",
    "405",
    "408",
    "409",
    "413",
    "415",
    "417",
    "421",
    "422",
    "429",
    "431",
    "500",
    "501",
    "502",
    "503",
    "504"
  ],
  outcome: [
    "ok",
    "refused",
    "upstream_error",
    "rate_limited",
    "server_fault",
    "not_sent",
    "broken",
    "timeout",
    "declined",
    "malformed",
    "mismatched",
    "abandoned",
    "coalesced",
    "hit",
    "replica_hit",
    "limited",
    "stale",
    "refreshed",
    "refresh_failed",
    "held",
    ...tags
  ],
  operation: [...declared, ...passthroughOperations.map(({ name }) => name), "batch", "probe", "unsupported"],
  state: ["sent", "unknown"],
  address: ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"],
  share: ["common", "actions"],
  cause: [
    "not_sent",
    "broken",
    "timeout",
    "server_fault",
    "rate_limited",
    "malformed",
    "mismatched",
    "declined",
    "withheld",
    "wrong_chain"
  ],
  won: ["first", "second"],
  version: ["0.1.0"],
  node: [process.version],
  interval: CandleInterval.literals,
  quota: ["requests", "concurrent", "weight", "units"],
  use: ["account-versions", "cache", "rate-limits", "quotas", "action-log"],
  upstream: ["trading-api", "trading-node", "token-chain", "layer2"]
}

describe("metrics", () => {
  it.live("are Prometheus text with the documented names", () =>
    Effect.gen(function*() {
      const live = yield* liveGateway({
        api: () => ({ body: spotMeta }),
        node: rpcReply(`"0x1"`),
        tokens: () => ({ status: 429, body: `{"ok":false,"result":"Ratelimit exceed","code":429}` }),
        layer2: () => "hang-up"
      })
      const before = yield* get(`${live.url}/metrics`)
      yield* post(`${live.url}/info`, `{"type":"spotMeta"}`)
      yield* post(`${live.url}/evm`, `[${gasCall},${gasCall}]`)
      yield* post(`${live.url}/api/v2/jsonRPC`, `{"jsonrpc":"2.0","id":1,"method":"getMasterchainInfo"}`)
      yield* post(`${live.url}/l2`, receiptCall)
      const answer = yield* get(`${live.url}/metrics`)
      assert.strictEqual(answer.status, 200)
      assert.strictEqual(answer.type, "text/plain; version=0.0.4; charset=utf-8")
      const types = answer.text.split("\n").filter((line) => line.startsWith("# TYPE")).toSorted()
      assert.includeMembers(types, [
        "# TYPE trigate_operations_total counter",
        "# TYPE trigate_response_cache_bytes gauge",
        "# TYPE trigate_request_seconds histogram",
        "# TYPE trigate_requests_total counter",
        "# TYPE trigate_upstream_call_seconds histogram",
        "# TYPE trigate_upstream_calls_total counter",
        "# TYPE trigate_upstream_ejected gauge",
        "# TYPE trigate_upstream_rate_limit_available gauge",
        "# TYPE trigate_upstream_request_units_total counter",
        "# TYPE trigate_upstream_retries_total counter",
        "# TYPE trigate_upstream_weight_total counter"
      ])
      const grown: ReadonlyArray<readonly [series: string, by: number]> = [
        [`trigate_requests_total{route="info.query",status="200",outcome="ok"}`, 1],
        [`trigate_operations_total{operation="eth_gasPrice",outcome="ok"}`, 2],
        [`trigate_operations_total{operation="getMasterchainInfo",outcome="upstream_error"}`, 1],
        [`trigate_operations_total{operation="eth_getTransactionReceipt",outcome="UpstreamUnavailable"}`, 1],
        [`trigate_upstream_calls_total{upstream="trading-api",operation="spotMeta",outcome="ok"}`, 1],
        [
          `trigate_upstream_calls_total{upstream="token-chain",operation="getMasterchainInfo",outcome="rate_limited"}`,
          1
        ],
        [`trigate_upstream_calls_total{upstream="layer2",operation="eth_getTransactionReceipt",outcome="broken"}`, 3],
        [`trigate_upstream_retries_total{upstream="layer2",operation="eth_getTransactionReceipt",cause="broken"}`, 2],
        [`trigate_upstream_weight_total{upstream="trading-api"}`, 20],
        // two that ask the same are one
        [`trigate_upstream_request_units_total{upstream="trading-node"}`, 1]
      ]
      for (const [series, by] of grown) {
        assert.strictEqual(counted(answer.text, series) - counted(before.text, series), by, series)
      }
    }))

  it.live("take no label value from a caller, whatever is asked many times", () =>
    Effect.gen(function*() {
      const live = yield* liveGateway({
        api: () => ({ body: `{"status":"ok","response":{"type":"default"}}` }),
        node: rpcReply(`"0x1"`),
        tokens: () => ({ body: `{"ok":true,"result":1}` }),
        layer2: rpcReply("null")
      }, { TRIGATE_RELAY_ACTIONS: "*", TRIGATE_TRADING_API_WEIGHT: "1000000" })
      // the registry belongs to the process, and other files may have counted keys of their own
      const known = new Set(labelsOf((yield* get(`${live.url}/metrics`)).text))
      const now = yield* Clock.currentTimeMillis
      const methods = ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"]
      const asks: ReadonlyArray<(odd: string, index: number) => Effect.Effect<unknown>> = [
        (odd) => post(`${live.url}/info`, JSON.stringify({ type: odd })),
        (odd, index) => post(`${live.url}/exchange`, bodyOf(now + index, JSON.stringify({ type: odd }))),
        (odd) => post(`${live.url}/evm`, JSON.stringify({ jsonrpc: "2.0", id: odd, method: odd, params: [] })),
        (odd) => post(`${live.url}/l2`, JSON.stringify([{ jsonrpc: "2.0", id: 1, method: odd }, odd])),
        (odd) => post(`${live.url}/api/v2/jsonRPC`, JSON.stringify({ id: 1, method: odd, params: { [odd]: 1 } })),
        (odd) => post(`${live.url}/${odd}/evm`, gasCall, { "x-request-id": odd, "user-agent": odd }),
        (odd) => post(`${live.url}/${odd}`, receiptCall),
        (odd) => get(`${live.url}/${odd}/${odd}?${odd}=${odd}`),
        (odd) => get(`${live.url}/api/v2/getTokenData?address=${odd}`),
        (odd, index) => send(`${live.url}/info/${odd}`, { method: methods[index % methods.length] ?? "GET" })
      ]
      const asked = isExhaustive ? 500 : 170
      const askAll = (from: number, to: number) =>
        Effect.forEach(
          Array.from({ length: to - from }, (_, index) => from + index),
          (index) => asks[index % asks.length]?.(`odd${index.toString(36)}x`, index) ?? Effect.void,
          { concurrency: 16, discard: true }
        )
      yield* askAll(0, 50)
      yield* get(`${live.url}/metrics`)
      const few = yield* get(`${live.url}/metrics`)
      yield* askAll(50, asked)
      const answer = yield* get(`${live.url}/metrics`)
      // an outcome that is rare may come late, a label that grows would bring one with each tenth request or more
      assert.isAtMost(seriesIn(answer.text), seriesIn(few.text) + 10)
      assert.notInclude(answer.text, "odd")
      for (const found of labelsOf(answer.text)) {
        const [name, label = "", value = ""] = found.split(" ")
        if (label !== "le" && !known.has(found)) assert.include(values[label] ?? [], value, `${name} ${label}`)
      }
      const counts = [...answer.text.matchAll(/^trigate_requests_total\{.*\} (?<count>\d+)$/gmu)]
      assert.isAtLeast(counts.reduce((sum, match) => sum + Number(match.groups?.["count"]), 0), asked)
    }))
})

describe("a request's id", () => {
  for (const id of ["a", "01-ab_C.9", "x".repeat(64)]) {
    it.live(`is the caller's own: ${id.slice(0, 12)}`, () =>
      Effect.gen(function*() {
        const { url } = yield* sandbox()
        for (const path of ["/health/live", "/nowhere"]) {
          assert.strictEqual((yield* get(`${url}${path}`, { "x-request-id": id })).headers.get("x-request-id"), id)
        }
      }))
  }

  it.live("is one of ours where there is none, or an odd one; no two requests share it", () =>
    Effect.gen(function*() {
      const { url } = yield* sandbox()
      const odd = ["", "x".repeat(65), "a b", "a,b", "<i>", "a/b", "é", `{"a":1}`, "a;b=c", "%0d%0a"]
      const headers: ReadonlyArray<Record<string, string>> = [{}, ...odd.map((id) => ({ "x-request-id": id }))]
      const ids = yield* Effect.forEach(headers, (each) =>
        Effect.map(get(`${url}/health/live`, each), (answer) => answer.headers.get("x-request-id") ?? ""))
      for (const id of ids) {
        assert.match(id, /^[a-z0-9]{6}-[a-z0-9]+$/u)
      }
      assert.strictEqual(new Set(ids).size, ids.length)
    }))
})

describe("x-trigate-sandbox", () => {
  const paths = ["/health/live", "/health/ready", "/metrics", "/openapi.json", "/nowhere", "/exchange"]
  it.live("is on every answer of the sandbox", () =>
    Effect.gen(function*() {
      const { url } = yield* sandbox()
      for (const path of paths) {
        assert.strictEqual((yield* get(`${url}${path}`)).headers.get("x-trigate-sandbox"), "true", path)
        assert.strictEqual((yield* post(`${url}${path}`, "{")).headers.get("x-trigate-sandbox"), "true", path)
      }
    }))

  it.live("is on no answer of a live gateway", () =>
    Effect.gen(function*() {
      const { url } = yield* liveGateway()
      for (const path of paths) {
        assert.isNull((yield* get(`${url}${path}`)).headers.get("x-trigate-sandbox"), path)
        assert.isNull((yield* post(`${url}${path}`, "{")).headers.get("x-trigate-sandbox"), path)
      }
    }))

  it.live("in a request lets a sandbox alone serve it", () =>
    Effect.gen(function*() {
      const only = { "x-trigate-sandbox": "true" }
      const query = `{"type":"meta"}`
      const simulated = yield* sandbox()
      assert.strictEqual((yield* post(`${simulated.url}/info`, query, only)).status, 200)
      const live = yield* liveGateway()
      for (const path of ["/info", "/exchange", "/evm", "/api/v2/jsonRPC"]) {
        const refused = yield* post(`${live.url}${path}`, query, only)
        assert.strictEqual(refused.status, 412, path)
        assert.match(String(JsonParts.at(refused.json, "detail")), /^This gateway is not a sandbox/u)
      }
      assert.deepStrictEqual(live.seen(), [])
    }))
})

describe("a method that a route does not take", () => {
  const asked: ReadonlyArray<readonly [method: string, path: string, allowed: string]> = [
    ["GET", "/exchange", "POST"],
    ["DELETE", "/info?type=spotMeta", "POST"],
    ["OPTIONS", "/evm", "POST, GET, HEAD"],
    ["PUT", "/api/v2/jsonRPC", "POST"],
    ["PUT", "/api/v2/getTokenData", "GET, HEAD, POST"],
    ["POST", "/health/live", "GET, HEAD"],
    ["DELETE", "/metrics", "GET, HEAD"],
    ["DELETE", "/openapi.json", "GET, HEAD"],
    ["DELETE", "/docs", "GET, HEAD"],
    ["GET", "/some-key/info", "POST"],
    ["PATCH", "/some-key/api/v2/jsonRPC", "POST"],
    ["PUT", "/some-key/api/v2/getTokenData", "GET, HEAD, POST"]
  ]
  for (const [method, path, allowed] of asked) {
    it.live(`is answered with those that it takes: ${method} ${path}`, () =>
      Effect.gen(function*() {
        const { url } = yield* sandbox()
        const answer = yield* send(`${url}${path}`, { method })
        assert.strictEqual(answer.status, 405)
        assert.strictEqual(answer.headers.get("allow"), allowed)
        assert.strictEqual(answer.type, "application/problem+json")
        assert.deepStrictEqual(answer.json, {
          type: "about:blank",
          title: "Method Not Allowed",
          status: 405,
          detail: `This route accepts ${allowed}`,
          // what the clients of these routes read
          ...path.includes("/api/v2/") ? { ok: false, error: `This route accepts ${allowed}`, code: 405 } : {},
          .../\/(?:exchange|info)(?:\?|$)/u.test(path)
            ? { code: 405, msg: `This route accepts ${allowed}`, error: `This route accepts ${allowed}` }
            : {}
        })
      }))
  }

  for (const path of ["/index.html", "/health", "/nowhere", "/some-key/nowhere", "/k.e.y/info", "/a/b/info"]) {
    it.live(`is none where there is no route: GET ${path}`, () =>
      Effect.gen(function*() {
        const { url } = yield* sandbox()
        const answer = yield* get(`${url}${path}`)
        assert.strictEqual(answer.status, 404)
        assert.strictEqual(answer.type, "application/problem+json")
        assert.isNull(answer.headers.get("allow"))
      }))
  }

  for (const path of ["/health/live", "/health/ready", "/metrics", "/openapi.json", "/docs"]) {
    it.live(`is not HEAD where GET is: ${path}`, () =>
      Effect.gen(function*() {
        const { url } = yield* sandbox()
        const answer = yield* send(`${url}${path}`, { method: "HEAD" })
        assert.strictEqual(answer.status, 200)
        assert.strictEqual(answer.text, "")
        assert.strictEqual(answer.type, (yield* get(`${url}${path}`)).type)
      }))
  }
})

describe("the documents", () => {
  it.live("serve the contract that is in the repository", () =>
    Effect.gen(function*() {
      // a sandbox signs the example of an action anew
      const { url } = yield* gateway({ TRIGATE_LAYER2_URL: "http://127.0.0.1:1" })
      const answer = yield* get(`${url}/openapi.json`)
      assert.strictEqual(answer.status, 200)
      assert.strictEqual(answer.type, "application/json")
      const committed = Fs.readFileSync(new URL("../../../docs/openapi.json", import.meta.url), "utf8")
      assert.deepStrictEqual(answer.json, JSON.parse(committed))
    }))

  it("describe an order id as one integer, in every schema", () => {
    const { components: { schemas } } = OpenApi.fromApi(GatewayApi)
    assert.deepStrictEqual<unknown>(schemas["OrderId"], { type: "integer", minimum: 0, description: "Order id" })
    const text = JSON.stringify(schemas)
    assert.notInclude(text, JSON.stringify("^-?\\d+$"))
    const described = [...text.matchAll(/"oid":(\{[^}]*\})/gu)].map(([, schema = ""]) => schema)
    const orderId = `{"$ref":"#/components/schemas/OrderId"}`
    const names = [`{"anyOf":[${orderId}`, `{"$ref":"#/components/schemas/OrderName"}`]
    assert.deepStrictEqual(described.filter((schema) => ![orderId, ...names].includes(schema)), [])
    assert.isAbove(described.length, 5)
  })

  it.live("have examples of actions as programs make them, signed by the sandbox's trader", () =>
    Effect.gen(function*() {
      const { url } = yield* sandbox()
      const [{ action: { orders: [{ c: cloid }] } }, { action: { order: changed } }] = signedActions
      const order = { asset: 0, side: "buy", sizeInBase: "0.001", cloid } as const
      const made: ReadonlyArray<unknown> = [
        Result.getOrThrow(OrderAction.place({ orders: [{ ...order, priceInQuote: "50000" }] })),
        Result.getOrThrow(OrderAction.modify({ order: cloid, to: { ...order, priceInQuote: changed.p } })),
        Result.getOrThrow(OrderAction.cancelByCloid([{ asset: 0, cloid }]))
      ]
      assert.deepStrictEqual<unknown>(signedActions.slice(0, 3).map(({ action }) => action), made)
      for (const signed of signedActions) {
        const { text } = yield* post(`${url}/exchange/inspect`, JSON.stringify(signed))
        assert.include(text, `"outer":{"signer":"${trader.address}"`)
      }
    }))

  it.live("are a page that loads nothing from anywhere", () =>
    Effect.gen(function*() {
      const { url } = yield* sandbox()
      const answer = yield* get(`${url}/docs`)
      assert.strictEqual(answer.status, 200)
      assert.match(answer.type, /^text\/html/u)
      const scripts = [...answer.text.matchAll(/<script\b(?<attributes>[^>]*)>/gu)]
      assert.isAtLeast(scripts.length, 1)
      // what the scripts hold is text until they run: tags and styles are looked at without it
      const page = answer.text.replaceAll(/(?<open><script\b[^>]*>)[\s\S]*?<\/script>/gu, "$<open></script>")
      assert.notMatch(page, /<(?:script|img|iframe|link|source|audio|video|object|embed)\b[^>]*(?:https?:)?\/\//u)
      assert.notMatch(page, /@import|url\(\s*["']?(?:https?:)?\/\//u)
      for (const script of scripts) assert.notMatch(script.groups?.["attributes"] ?? "", /\bsrc=/u)
    }))
})

describe("the process", () => {
  const callerKey = "caller-key-9d01be"
  const entryKeys = [
    "caller",
    "id",
    "level",
    "message",
    "method",
    "milliseconds",
    "operations",
    "route",
    "status",
    "time"
  ]

  it.live("logs each request as a JSON line without its path and without any key", () =>
    Effect.gen(function*() {
      const node = yield* recordingUpstream((request) =>
        request.path.endsWith("/evm") ? rpcReply(`"0x1"`)(request) : { status: 404, body: `no ${request.path}` }
      )
      const running = yield* gatewayProcess({ TRIGATE_TRADING_NODE_URL: `${node.url}/${upstreamKeys.node}` })
      const id = { "x-request-id": "req-1" }
      yield* post(`${running.url}/${callerKey}/evm`, gasCall, id)
      yield* post(`${running.url}/${callerKey}/info`, `{"type":"spotMeta"}`)
      yield* post(`${running.url}/${callerKey}/exchange`, "{}")
      yield* get(`${running.url}/${callerKey}/nowhere?key=${callerKey}`)
      yield* post(`${running.url}/l2`, receiptCall)
      running.signal("SIGTERM")
      assert.strictEqual(yield* Effect.promise(() => running.ended), 0)
      const entries = running.lines()
      assert.strictEqual(entries.length, 5)
      for (const entry of entries) {
        assert(Predicate.isObject(entry))
        const isRouted = JsonParts.at(entry, "route") !== "other"
        assert.deepStrictEqual(
          Object.keys(entry).filter((key) => key !== "error").toSorted(),
          entryKeys.filter((key) => isRouted || key !== "caller")
        )
        if (isRouted) assert.include(entry, { caller: "address:127.0.0.1" })
        assert.include(entry, { level: "info", message: "request" })
      }
      const told = entries.map((entry) =>
        ["method", "route", "status", "operations", "error"].map((key) => JsonParts.at(entry, key))
      )
      assert.deepStrictEqual(told, [
        ["POST", "node.evm", 200, ["eth_gasPrice"], undefined],
        ["POST", "node.info", 404, ["spotMeta"], "upstream_error"],
        ["POST", "node.exchange", 501, [], "UnavailableOnNode"],
        ["GET", "other", 404, [], undefined],
        ["POST", "layer2.rpc", 200, ["eth_getTransactionReceipt"], "ChainNotConfigured"]
      ])
      assert.strictEqual(JsonParts.at(entries[0], "id"), "req-1")
      for (const secret of [callerKey, upstreamKeys.node, node.url, "nowhere"]) {
        assert.notInclude(running.printed(), secret)
      }
    }))
})
