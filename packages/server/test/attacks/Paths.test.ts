import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, describe, it } from "@effect/vitest"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import * as Gateway from "@trigate/server/Gateway"
import { gateway } from "@trigate/testing/Gateway"
import * as SpanTree from "@trigate/testing/SpanTree"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { formatAddress, HttpServer } from "effect/http/HttpServer"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
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
    `http://localhost/${path}`
  ]
}

const own = HttpRouter.add("GET", "/own/:word", HttpServerResponse.text("mine"))

const served = (prefix: `/${string}`) =>
  Effect.gen(function*() {
    const app = Layer.merge(Gateway.layer({ prefix }), own).pipe(
      Layer.provide(Sandbox.layer()),
      Layer.provide(Gateway.layerDefaults({ sandbox: true }))
    )
    const server = NodeHttpServer.layer(() => Http.createServer(), { port: 0, host: "127.0.0.1" })
    const context = yield* Layer.build(
      HttpRouter.serve(app, { disableListenLog: true }).pipe(Layer.provideMerge(server))
    )
    return formatAddress(Context.get(context, HttpServer).address)
  })

describe("a path has one spelling", () => {
  for (const path of ["/metrics", "/health/live", "/docs", "/openapi.json"]) {
    it.live(`when it is read: ${path}`, () =>
      Effect.gen(function*() {
        const { url } = yield* gateway({})
        for (const target of [path, `${path}?x=1`, `http://localhost${path}`]) {
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

  it.live("and what is no path at all has none", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      for (const start of ["OPTIONS *", "GET *", "GET http://"]) {
        const answer = yield* exchange(url, [`${start} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`])
        assert.strictEqual(answer.status, 404, start)
        assert.strictEqual(answer.type, "application/problem+json", start)
      }
    }))

  it.live("after the prefix of a gateway beside other routes, and the prefix too", () =>
    Effect.gen(function*() {
      const url = yield* served("/gateway")
      assert.strictEqual((yield* reading(url, "/gateway/metrics")).status, 200)
      assert.strictEqual((yield* reading(url, "http://localhost/gateway/metrics?x")).status, 200)
      for (const target of [...respelled("/gateway/metrics"), "/gateway//metrics", "/gateway/Metrics"]) {
        assert.strictEqual((yield* reading(url, target)).status, 404, target)
      }
    }).pipe(Effect.provideService(Logger.CurrentLoggers, new Set())))
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

describe("a key in a URL, on a server of one's own", () => {
  const nowhere: `/${string}` = "/"
  for (const prefix of [nowhere, "/gateway"] as const) {
    const before = prefix === "/" ? "" : prefix

    it.live(`is in no span and in no line of the log, however it is written: ${prefix}`, () => {
      const { spans, text, tracer } = SpanTree.make()
      const lines: Array<string> = []
      const logger = Logger.make(({ message, fiber }) =>
        void lines.push(JSON.stringify([message, fiber.getRef(References.CurrentLogAnnotations)]))
      )
      return Effect.gen(function*() {
        const url = yield* served(prefix)
        for (const target of ["/CALLER-SECRET/evm", "//CALLER-SECRET/evm", "///CALLER-SECRET/evm", "//CALLER-SECRET"]) {
          yield* calling(url, `${before}${target}`)
        }
        yield* reading(url, `${before}/CALLER-SECRET/nowhere?CALLER-SECRET`)
        yield* reading(url, `${before}/api/v2/getMasterchainInfo?api_key=CALLER-SECRET`)
        yield* reading(url, `${before}/health/live?CALLER-SECRET`)
        yield* reading(url, "/own/word?mine")
        const told = spans.filter(({ kind, name }) => kind === "server" && /^[A-Z]+$/u.test(name)).map((span) =>
          [span.name, span.attributes.get("url.path"), span.attributes.get("url.query")].join(" ").trim()
        )
        assert.deepStrictEqual(told, [
          `POST ${before}/:endpointKey/evm`,
          `POST ${before}/:endpointKey/evm`,
          `POST ${before}/:endpointKey/evm`,
          `POST ${before}/:endpointKey`,
          `GET ${before}/*`,
          `GET ${before}/api/v2/getMasterchainInfo`,
          `GET ${before}/health/live`,
          "GET /own/word mine"
        ])
        assert.notInclude(text(), "CALLER-SECRET")
        assert.deepStrictEqual(lines.filter((line) => line.includes("HTTP response")).length, 1)
        assert.notInclude(lines.join(), "CALLER-SECRET")
      }).pipe(
        Effect.scoped,
        Effect.provideService(Tracer.Tracer, tracer),
        Effect.provideService(Logger.CurrentLoggers, new Set([logger]))
      )
    })
  }
})
