import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, describe, it } from "@effect/vitest"
import * as CallerKeys from "@trigate/callers/CallerKeys"
import { catalogDate } from "@trigate/domain/actions/Action"
import * as Json from "@trigate/domain/encoding/Encoding"
import { Unauthorized } from "@trigate/domain/errors/GatewayError"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import * as Gateway from "@trigate/server/Gateway"
import * as AccessLog from "@trigate/server/unstable/requests/Observe"
import * as RequestRecord from "@trigate/server/unstable/requests/Request"
import { makeClient } from "@trigate/testing/Client"
import { get, post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import { Info } from "@trigate/trading/Info"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { formatAddress, HttpServer } from "effect/http/HttpServer"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Http from "node:http"
import { oncePerFile } from "./oncePerFile.ts"

/** A route of one's own that asks a service of the gateway. */
const pairs = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const info = yield* Info
  yield* router.add(
    "GET",
    "/pairs",
    Effect.flatMap(Effect.orDie(info.spotMeta()), ({ universe }) => HttpServerResponse.json({ pairs: universe.length }))
  )
}))

const routes = Layer.merge(Gateway.layer(), pairs)

const plain = routes.pipe(
  Layer.provide(Sandbox.layer()),
  Layer.provide(Gateway.layerDefaults({ sandbox: true }))
)

const served = Effect.fnUntraced(function*(app: typeof plain) {
  const server = NodeHttpServer.layer(() => Http.createServer(), { port: 0, host: "127.0.0.1" })
  const context = yield* Layer.build(
    HttpRouter.serve(app, { disableLogger: true, disableListenLog: true }).pipe(Layer.provideMerge(server))
  )
  return formatAddress(Context.get(context, HttpServer).address)
})

const servedPlain = oncePerFile(() => served(plain))

const gasCall = `{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}`

describe("the gateway's routes on a server of one's own", () => {
  it.live("answer beside a route of its own, over the same services", () =>
    Effect.gen(function*() {
      const url = yield* servedPlain()
      const meta = yield* post(`${url}/info`, `{"type":"spotMeta"}`)
      assert.strictEqual(meta.status, 200)
      const universe = JsonParts.value(meta.text, "universe")
      assert(Array.isArray(universe))
      assert.isAbove(universe.length, 0)
      const own = yield* get(`${url}/pairs`)
      assert.strictEqual(own.status, 200)
      assert.deepStrictEqual(own.json, { pairs: universe.length })
    }))

  it.live("have all that a gateway has: JSON-RPC, keyed routes, typed errors, readiness, metrics, documents", () =>
    Effect.gen(function*() {
      const url = yield* servedPlain()
      assert.match(String(JsonParts.value((yield* post(`${url}/evm`, gasCall)).text, "result")), /^0x[0-9a-f]+$/u)
      assert.match(String(JsonParts.value((yield* post(`${url}/a-key/evm`, gasCall)).text, "result")), /^0x[0-9a-f]+$/u)
      const refused = yield* post(`${url}/info`, "{")
      assert.strictEqual(refused.status, 400)
      assert.strictEqual(refused.type, "application/problem+json")
      assert.include(refused.json, { _tag: "InvalidRequest" })
      const large = yield* post(`${url}/info`, " ".repeat(1024 * 1024 + 1))
      assert.strictEqual(large.status, 413)
      assert.include(large.json, { _tag: "PayloadTooLarge" })
      const ready = yield* get(`${url}/health/ready`)
      assert.strictEqual(ready.status, 200)
      // nothing of chains and stores, of which it was not told
      assert.deepStrictEqual(ready.json, {
        status: "ready",
        sandbox: true,
        network: "mainnet",
        catalog: catalogDate,
        degraded: []
      })
      assert.strictEqual((yield* get(`${url}/metrics`)).status, 200)
      assert.strictEqual((yield* get(`${url}/openapi.json`)).status, 200)
      assert.strictEqual((yield* get(`${url}/docs`)).status, 200)
    }))

  it.live("serve the typed client", () =>
    Effect.gen(function*() {
      const client = yield* makeClient(yield* servedPlain())
      assert.isAbove((yield* client.info.spotMeta()).universe.length, 0)
      assert.isAbove(Number(yield* client.evm.gasPrice()), 0)
      const error = yield* Effect.flip(client.info.candleSnapshot({ coin: "NO-SUCH", interval: "1h", startTime: 0 }))
      assert.strictEqual(error._tag, "UnknownAsset")
    }))

  it.live("remember nothing of a request", () =>
    Effect.gen(function*() {
      const url = yield* servedPlain()
      for (let round = 0; round < 3; round++) {
        yield* post(`${url}/evm`, `[${gasCall},${gasCall}]`)
        yield* post(`${url}/info`, `{"type":"spotMeta"}`)
        yield* post(`${url}/info`, "{")
      }
      // what no request has of its own is one value for the whole program
      assert.deepStrictEqual(yield* RequestRecord.CurrentRequestRecord, RequestRecord.make())
    }))

  it.live("take another check of keys in its place, and what the bundled server puts around requests", () =>
    Effect.gen(function*() {
      const entries: Array<AccessLog.RequestLogEntry> = []
      const nobody = Layer.succeed(CallerKeys.CallerKeys, {
        check: () => Effect.fail(new Unauthorized({ detail: "No key is known here" }))
      })
      const log = Layer.succeed(AccessLog.AccessLog, {
        write: (entry) => void entries.push(entry)
      })
      const url = yield* served(
        routes.pipe(
          Layer.provide(Sandbox.layer()),
          Layer.provide([log, nobody]),
          Layer.provide(Gateway.layerDefaults({ sandbox: true, network: "testnet" }))
        )
      )
      const refused = yield* post(`${url}/a-key/evm`, gasCall, { "x-request-id": "one" })
      assert.strictEqual(refused.status, 401)
      const own = yield* get(`${url}/pairs`)
      assert.strictEqual(own.status, 200)
      assert.strictEqual(own.headers.get("x-trigate-sandbox"), null)
      assert.strictEqual((yield* get(`${url}/nowhere`)).type, "application/problem+json")
      assert.deepStrictEqual(entries.map(({ error, route, status }) => [route, status, error]), [
        ["node.evm", 401, "Unauthorized"],
        ["other", 404, undefined]
      ])
      assert.strictEqual(entries[0]?.id, "one")
    }))
})

/** A gateway under a path, beside routes of one's own that have the names of the gateway's. */
const beside = (mount: Gateway.Mount) => {
  const named = HttpRouter.addAll([
    HttpRouter.route("GET", "/docs", Effect.succeed(HttpServerResponse.text("my docs"))),
    HttpRouter.route("GET", "/openapi.json", Effect.succeed(HttpServerResponse.text("my contract"))),
    HttpRouter.route("GET", "/health/live", Effect.succeed(HttpServerResponse.text("my health"))),
    HttpRouter.route("GET", "/metrics", Effect.succeed(HttpServerResponse.text("my metrics")))
  ])
  return Layer.mergeAll(Gateway.layer(mount), named).pipe(
    Layer.provide(Sandbox.layer()),
    Layer.provide(Gateway.layerDefaults({ sandbox: true }))
  )
}

const servedBeside = oncePerFile((mount: Gateway.Mount) => served(beside(mount)))

const own = [["/docs", "my docs"], ["/openapi.json", "my contract"], ["/health/live", "my health"], [
  "/metrics",
  "my metrics"
]] as const

const documented = (text: string) => [...Json.members(JsonParts.raw(text, ["paths"])).keys()]

describe("the gateway's routes under a path", () => {
  for (const prefix of ["/gw", "/a/b/"] as const) {
    it.live(`answer there, and leave all others to the server: ${prefix}`, () =>
      Effect.gen(function*() {
        const url = yield* servedBeside({ prefix })
        const at = `${url}${prefix.replace(/\/$/u, "")}`
        for (const [path, text] of own) assert.strictEqual((yield* get(`${url}${path}`)).text, text)
        for (const path of ["/evm", "/a-key/evm", "/l2", "/a-key/l2", "/a-key"]) {
          const answer = yield* post(`${at}${path}`, gasCall)
          assert.match(String(JsonParts.value(answer.text, "result")), /^0x[0-9a-f]+$/u, path)
        }
        const meta = yield* post(`${at}/info`, `{"type":"spotMeta"}`)
        assert.isArray(JsonParts.value(meta.text, "universe"))
        const address = "EQDXZ2c5LnA12Eum-DlguTmfYkMOvNeFCh4rBD0tgmwjcFI-"
        const detected = yield* get(`${at}/api/v2/detectAddress?address=${address}&api_key=mine`)
        assert.strictEqual(JsonParts.value(detected.text, "ok"), true)
        const token = yield* get(`${at}/a-key/api/v2/getTokenData?address=${address}`)
        assert.include(token.json, { _tag: "TokenNotFound" })
        const inspected = yield* post(`${at}/exchange/inspect`, "{")
        assert.deepInclude(inspected.json, { _tag: "InvalidRequest", status: 400 })
        assert.strictEqual((yield* post(`${at}/health/evm`, gasCall)).status, 401)
        assert.strictEqual((yield* get(`${at}/health/ready`)).status, 200)
        assert.deepStrictEqual((yield* get(`${at}/health/live`)).json, { status: "live" })
        assert.include((yield* get(`${at}/metrics`)).text, "trigate_")
        assert.strictEqual((yield* post(`${url}/info`, `{"type":"spotMeta"}`)).status, 404)
      }))

    it.live(`have their reference there, which names the path: ${prefix}`, () =>
      Effect.gen(function*() {
        const url = yield* servedBeside({ prefix })
        const path = prefix.replace(/\/$/u, "")
        const page = yield* get(`${url}${path}/docs`)
        assert.deepStrictEqual([page.status, page.type], [200, "text/html; charset=utf-8"])
        assert.include(page.text, `<body data-base="${path}">`)
        const document = yield* get(`${url}${path}/openapi.json`)
        assert.deepStrictEqual(JsonParts.value(document.text, "servers"), [{ url: path }])
        assert.includeMembers(documented(document.text), ["/exchange", "/health/live", "/{endpointKey}/evm"])
      }))
  }

  it.live("serve the typed client", () =>
    Effect.gen(function*() {
      const client = yield* makeClient(`${yield* servedBeside({ prefix: "/gw" })}/gw`)
      assert.isAbove((yield* client.info.spotMeta()).universe.length, 0)
      assert.strictEqual((yield* client.health.ready()).status, "ready")
    }))

  it.live("are two gateways where there are two, each with its own services", () =>
    Effect.gen(function*() {
      const gateway = (network: "mainnet" | "testnet") =>
        Gateway.layer({ prefix: `/${network}` }).pipe(
          Layer.provide(Sandbox.layer({ network, seed: network })),
          Layer.provide(Gateway.layerDefaults({ sandbox: true, network }))
        )
      const url = yield* served(Layer.merge(gateway("mainnet"), gateway("testnet")))
      const chainId = `{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}`
      for (const [network, id] of [["mainnet", "0x3e7"], ["testnet", "0x3e6"]] as const) {
        assert.deepInclude((yield* get(`${url}/${network}/health/ready`)).json, { network })
        const answer = yield* post(`${url}/${network}/evm`, chainId)
        assert.strictEqual(JsonParts.value(answer.text, "result"), id)
      }
    }))

  it.live("are known to what the bundled server puts around requests", () =>
    Effect.gen(function*() {
      const url = yield* servedBeside({ prefix: "/gw" })
      const method = yield* get(`${url}/gw/info`)
      assert.deepStrictEqual([method.status, method.headers.get("allow")], [405, "POST"])
      const keyed = yield* get(`${url}/gw/a-key/exchange`)
      assert.deepStrictEqual([keyed.status, keyed.headers.get("allow")], [405, "POST"])
      const nowhere = yield* get(`${url}/gw/nowhere`)
      assert.strictEqual(nowhere.status, 404)
      assert.include(nowhere.json, { detail: "Unknown route; GET /gw/docs lists the routes" })
      assert.strictEqual((yield* get(`${url}/info`)).status, 404)
      assert.strictEqual((yield* get(`${url}/docs`)).text, "my docs")
    }))
})

describe("a gateway without some of its routes", () => {
  it.live("leaves its documents to the server", () =>
    Effect.gen(function*() {
      const url = yield* servedBeside({ docs: false, health: false })
      for (const [path, text] of own) assert.strictEqual((yield* get(`${url}${path}`)).text, text)
      assert.strictEqual((yield* get(`${url}/health/ready`)).status, 404)
      assert.match(String(JsonParts.value((yield* post(`${url}/evm`, gasCall)).text, "result")), /^0x[0-9a-f]+$/u)
    }))

  it.live("describes only those that it has", () =>
    Effect.gen(function*() {
      const url = yield* servedBeside({ prefix: "/gw", health: false })
      const paths = documented((yield* get(`${url}/gw/openapi.json`)).text)
      assert.notInclude(paths, "/health/live")
      assert.notInclude(paths, "/metrics")
      assert.includeMembers(paths, ["/exchange", "/exchange/inspect", "/api/v2/getTokenData"])
      assert.strictEqual((yield* get(`${url}/gw/docs`)).status, 200)
      assert.strictEqual((yield* get(`${url}/gw/health/live`)).status, 404)
      assert.strictEqual((yield* get(`${url}/gw/metrics`)).status, 404)
    }))
})
