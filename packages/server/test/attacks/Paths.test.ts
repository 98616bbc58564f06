import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, describe, it } from "@effect/vitest"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import * as CallerKeys from "@trigate/server/CallerKeys"
import * as Gateway from "@trigate/server/Gateway"
import * as Observe from "@trigate/server/Observe"
import * as RequestFacts from "@trigate/server/RequestFacts"
import { gateway } from "@trigate/testing/Gateway"
import * as SpanTree from "@trigate/testing/SpanTree"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpMiddleware from "effect/http/HttpMiddleware"
import * as HttpRouter from "effect/http/HttpRouter"
import { formatAddress, HttpServer } from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import * as Tracer from "effect/Tracer"
import * as Http from "node:http"
import { exchange, headOf } from "../rawHttp.ts"

const gasCall = `{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}`

const json = (body: string): ReadonlyArray<readonly [name: string, value: string]> => [
  ["content-type", "application/json"],
  ["content-length", String(body.length)]
]

const reading = (url: string, target: string) => exchange(url, [headOf("GET", target, [])])
const calling = (url: string, target: string) => exchange(url, [headOf("POST", target, json(gasCall)), gasCall])

/** Other spellings of a path, each of which some router takes for the path itself. */
const respelled = (path: string): ReadonlyArray<string> => {
  const letter = path.slice(1, 2)
  return [
    path.toUpperCase(),
    `/${path}`,
    `${path}/`,
    `${path};x=1`,
    `${path};`,
    `${path}#x`,
    `${path}%20`,
    `/.${path}`,
    `/%${letter.charCodeAt(0).toString(16)}${path.slice(2)}`,
    `http://gateway.test/${path}`
  ]
}

const served = (prefix: `/${string}`) =>
  Effect.gen(function*() {
    const app = Layer.merge(Gateway.layer({ prefix }), Observe.layer({ prefix, sandbox: true })).pipe(
      Layer.provide(Sandbox.layer()),
      Layer.provide(Gateway.layerDefaults({ sandbox: true })),
      Layer.provide(RequestFacts.layerAccessLogOff)
    )
    const server = NodeHttpServer.layer(() => Http.createServer(), { port: 0, host: "127.0.0.1" })
    const context = yield* Layer.build(
      HttpRouter.serve(app, { disableLogger: true, disableListenLog: true }).pipe(
        Layer.provide(Layer.succeed(HttpMiddleware.TracerDisabledWhen, CallerKeys.isInUrl)),
        Layer.provideMerge(server)
      )
    )
    return formatAddress(Context.get(context, HttpServer).address)
  })

describe("a path has one spelling", () => {
  for (const path of ["/metrics", "/health/live", "/docs", "/openapi.json"]) {
    it.live(`when it is read: ${path}`, () =>
      Effect.gen(function*() {
        const { url } = yield* gateway({})
        for (const target of [path, `${path}?x=1`, `http://gateway.test${path}`]) {
          assert.strictEqual((yield* reading(url, target)).status, 200, target)
        }
        for (const target of respelled(path)) {
          assert.strictEqual((yield* reading(url, target)).status, 404, target)
        }
      }))
  }

  for (const path of ["/evm", "/api/v2/jsonRPC"]) {
    it.live(`when it is called: ${path}`, () =>
      Effect.gen(function*() {
        const { url } = yield* gateway({})
        assert.strictEqual((yield* calling(url, path)).status, 200)
        for (const target of respelled(path)) {
          // what is no path of the table may still be a key that is none
          assert.include([400, 404], (yield* calling(url, target)).status, target)
        }
      }))
  }

  it.live("after the prefix of a gateway beside other routes, and the prefix too", () =>
    Effect.gen(function*() {
      const url = yield* served("/gateway")
      assert.strictEqual((yield* reading(url, "/gateway/metrics")).status, 200)
      assert.strictEqual((yield* reading(url, "http://gateway.test/gateway/metrics?x")).status, 200)
      for (const target of [...respelled("/gateway/metrics"), "/gateway//metrics", "/gateway/Metrics"]) {
        assert.strictEqual((yield* reading(url, target)).status, 404, target)
      }
    }))
})

describe("a path behind a key has one spelling", () => {
  for (const path of ["/evm", "/l2", "/api/v2/jsonRPC", ""]) {
    it.live(`after the key: /KEY${path}`, () =>
      Effect.gen(function*() {
        const { url } = yield* gateway({})
        assert.strictEqual((yield* calling(url, `/KEY${path}`)).status, 200)
        for (const other of [`${path.toUpperCase()}/`, `/${path}`, `${path}/`, `${path};x=1`, `${path}#x`]) {
          assert.strictEqual((yield* calling(url, `/KEY${other}`)).status, 404, other)
        }
        assert.strictEqual((yield* calling(url, `//KEY${path}`)).status, 404)
      }))
  }
})

describe("a key in a path", () => {
  it.live("is in no span of a server of one's own, however many slashes come before it", () => {
    const { spans, text, tracer } = SpanTree.make()
    return Effect.gen(function*() {
      const url = yield* served("/")
      for (const target of ["/CALLER-SECRET/evm", "//CALLER-SECRET/evm", "///CALLER-SECRET/evm", "//CALLER-SECRET"]) {
        yield* calling(url, target)
      }
      yield* calling(url, "/evm")
      // the platform's span of the last request, and ours of the two that a route took
      assert.deepStrictEqual(spans.filter(({ kind }) => kind === "server").map(({ name }) => name), [
        "node.evm",
        "POST",
        "evm.rpc"
      ])
      assert.notInclude(text(), "CALLER-SECRET")
    }).pipe(Effect.scoped, Effect.provideService(Tracer.Tracer, tracer))
  })
})
