import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, describe, it } from "@effect/vitest"
import { Unauthorized } from "@trigate/domain/CallerError"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import * as CallerKeys from "@trigate/server/CallerKeys"
import * as Gateway from "@trigate/server/Gateway"
import * as Observe from "@trigate/server/Observe"
import * as RequestFacts from "@trigate/server/RequestFacts"
import { clientOf } from "@trigate/testing/Client"
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

/** A route of one's own that asks a service of the gateway. */
const pairs = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const info = yield* Info
  yield* router.add(
    "GET",
    "/pairs",
    Effect.flatMap(Effect.orDie(info.spotMeta()), ({ universe }) => HttpServerResponse.json({ pairs: universe.length }))
  )
}))

const routes = Layer.merge(Gateway.layerRoutes, pairs)

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

const gasCall = `{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}`

describe("the gateway's routes on a server of one's own", () => {
  it.live("answer beside a route of its own, over the same services", () =>
    Effect.gen(function*() {
      const url = yield* served(plain)
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
      const url = yield* served(plain)
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
      const chain = { mode: "sandbox", upstreams: {} }
      assert.deepStrictEqual(ready.json, {
        status: "ready",
        sandbox: true,
        network: "mainnet",
        chains: { trading: chain, tokens: chain, layer2: chain }
      })
      assert.strictEqual((yield* get(`${url}/metrics`)).status, 200)
      assert.strictEqual((yield* get(`${url}/openapi.json`)).status, 200)
      assert.strictEqual((yield* get(`${url}/docs`)).status, 200)
    }))

  it.live("serve the typed client", () =>
    Effect.gen(function*() {
      const client = yield* clientOf(yield* served(plain))
      assert.isAbove((yield* client.info.spotMeta()).universe.length, 0)
      assert.isAbove(Number(yield* client.evm.gasPrice()), 0)
      const error = yield* Effect.flip(client.info.candleSnapshot({ coin: "NO-SUCH", interval: "1h", startTime: 0 }))
      assert.strictEqual(error._tag, "UnknownAsset")
    }))

  it.live("remember nothing of a request that nobody observes", () =>
    Effect.gen(function*() {
      const url = yield* served(plain)
      for (let round = 0; round < 3; round++) {
        yield* post(`${url}/evm`, `[${gasCall},${gasCall}]`)
        yield* post(`${url}/info`, `{"type":"spotMeta"}`)
        yield* post(`${url}/info`, "{")
      }
      // what no request has of its own is one value for the whole program
      assert.deepStrictEqual(yield* RequestFacts.CurrentRequestFacts, RequestFacts.make())
    }))

  it.live("take another check of keys in its place, and what the bundled server puts around requests", () =>
    Effect.gen(function*() {
      const entries: Array<RequestFacts.Entry> = []
      const nobody = Layer.succeed(CallerKeys.CallerKeys, {
        check: () => Effect.fail(new Unauthorized({ detail: "No key is known here" }))
      })
      const log = Layer.succeed(RequestFacts.AccessLog, {
        write: (entry) => void entries.push(entry)
      })
      const url = yield* served(
        Layer.merge(routes, Observe.layer({ sandbox: true })).pipe(
          Layer.provide(Sandbox.layer()),
          Layer.provide([log, nobody]),
          Layer.provide(Gateway.layerDefaults({ sandbox: true, network: "testnet" }))
        )
      )
      const refused = yield* post(`${url}/a-key/evm`, gasCall, { "x-request-id": "one" })
      assert.strictEqual(refused.status, 401)
      const own = yield* get(`${url}/pairs`)
      assert.strictEqual(own.status, 200)
      assert.strictEqual(own.headers.get("x-trigate-sandbox"), "true")
      assert.strictEqual((yield* get(`${url}/nowhere`)).type, "application/problem+json")
      assert.deepStrictEqual(entries.map(({ error, route, status }) => [route, status, error]), [
        ["node.evm", 401, "Unauthorized"],
        ["other", 200, undefined],
        ["other", 404, undefined]
      ])
      assert.strictEqual(entries[0]?.id, "one")
    }))
})
