import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, describe, it } from "@effect/vitest"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import * as Gateway from "@trigate/server/Gateway"
import type { Environment } from "@trigate/testing/Gateway"
import { gateway } from "@trigate/testing/Gateway"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { formatAddress, HttpServer } from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import * as Http from "node:http"
import { exchange } from "../rawHttp.ts"

const gasCall = `{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}`

/** A call as a page sends it whose name was made to resolve to the gateway; no preflight, because the origin is the same. */
const called = (host: string, target = "/evm"): string =>
  [
    `POST ${target} HTTP/1.1`,
    `Host: ${host}`,
    "Connection: close",
    "Content-Type: application/json",
    `Content-Length: ${gasCall.length}`,
    `Origin: http://${host}`,
    `\r\n${gasCall}`
  ].join("\r\n")

const refusal = {
  type: "about:blank",
  title: "Misdirected Request",
  status: 421,
  detail:
    "This gateway does not serve the requested host; TRIGATE_HOSTS lists the hosts that it serves besides localhost"
}

const loopbackHosts = [
  "localhost",
  "localhost:8080",
  "LocalHost:1",
  "localhost.:8080",
  "app.localhost:3000",
  "a.b.localhost",
  "127.0.0.1",
  "127.0.0.1:80",
  "127.255.3.9:8080",
  "[::1]",
  "[::1]:8080"
]

const otherHosts = [
  "evil.example",
  "evil.example:8080",
  "localhost.evil.example",
  "localhost@evil.example",
  "evil.example:80:localhost",
  "evillocalhost",
  "127.0.0.1.evil.example",
  "127.0.0.1.",
  "1270.0.0.1",
  "0.0.0.0:8080",
  "[::]",
  "[::ffff:7f00:1]",
  "10.0.0.1",
  ""
]

const statuses = (url: string, hosts: ReadonlyArray<string>, path = "/evm") =>
  Effect.forEach(
    hosts,
    (host) => Effect.map(exchange(url, [called(host, path)]), ({ status }) => [host, status] as const)
  )

const all = (hosts: ReadonlyArray<string>, status: number) => hosts.map((host) => [host, status] as const)

/** A gateway that listens on every address of the machine, and the URL of the loopback one. */
const publicGateway = (environment: Environment) =>
  Effect.map(
    gateway({ TRIGATE_HOST: "0.0.0.0", TRIGATE_CALLERS: "open", ...environment }),
    ({ url }) => url.replace("0.0.0.0", "127.0.0.1")
  )

describe("on a loopback address", () => {
  it.live("a page whose name was made to resolve there reads nothing", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const answer = yield* exchange(url, [called("evil.example:8080")])
      assert.strictEqual(answer.status, 421)
      assert.strictEqual(answer.type, "application/problem+json")
      assert.deepStrictEqual(JSON.parse(answer.body), refusal)
    }))

  it.live("loopback hosts are answered, and no others", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      assert.deepStrictEqual(yield* statuses(url, loopbackHosts), all(loopbackHosts, 200))
      assert.deepStrictEqual(yield* statuses(url, otherHosts), all(otherHosts, 421))
      assert.deepStrictEqual(yield* statuses(url, loopbackHosts), all(loopbackHosts, 200))
    }))

  it.live("pages, health and preflights are refused as well", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({ TRIGATE_CORS_ORIGINS: "*" })
      for (
        const start of ["GET /docs", "GET /metrics", "GET /health/live", "OPTIONS /evm", "OPTIONS *", "GET http://"]
      ) {
        const head = `${start} HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\n` +
          "Access-Control-Request-Method: POST\r\nConnection: close\r\n\r\n"
        assert.strictEqual((yield* exchange(url, [head])).status, 421, start)
      }
    }))

  it.live("the host of an absolute target counts, not the field beside it", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const asked = (target: string, host: string) => Effect.map(exchange(url, [called(host, target)]), (a) => a.status)
      assert.strictEqual(yield* asked("http://localhost/evm", "localhost"), 200)
      assert.strictEqual(yield* asked("http://evil.example/evm", "localhost"), 421)
      assert.strictEqual(yield* asked("http://localhost@evil.example/evm", "localhost"), 421)
    }))

  it.live("a request of HTTP/1.0 without a host is answered: no browser sends one", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      assert.strictEqual((yield* exchange(url, ["GET /health/live HTTP/1.0\r\n\r\n"])).status, 200)
    }))

  it.live("TRIGATE_HOSTS names more, whatever their port and letter case", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({ TRIGATE_HOSTS: "Gateway.Example, [2001:db8::1]" })
      const named = ["gateway.example", "GATEWAY.example:443", "[2001:DB8::1]:8080"]
      assert.deepStrictEqual(yield* statuses(url, named), all(named, 200))
      const others = ["a.gateway.example", "gateway.example.evil", "[2001:db8::2]", ...otherHosts]
      assert.deepStrictEqual(yield* statuses(url, others), all(others, 421))
      assert.deepStrictEqual(yield* statuses(url, loopbackHosts), all(loopbackHosts, 200))
    }))

  it.live("TRIGATE_HOSTS=* lets all pass", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({ TRIGATE_HOSTS: "*" })
      assert.deepStrictEqual(yield* statuses(url, otherHosts), all(otherHosts, 200))
    }))

  it.live("a change of TRIGATE_HOSTS counts at once", () =>
    Effect.gen(function*() {
      const { reload, url } = yield* gateway({})
      assert.deepStrictEqual(yield* statuses(url, ["gateway.example"]), [["gateway.example", 421]])
      yield* reload({ TRIGATE_HOSTS: "gateway.example" })
      assert.deepStrictEqual(yield* statuses(url, ["gateway.example"]), [["gateway.example", 200]])
    }))

  it.live("a server of one's own refuses them too", () =>
    Effect.gen(function*() {
      const app = Gateway.layer({ hosts: ["gateway.example"], prefix: "/gw" }).pipe(
        Layer.provide(Sandbox.layer()),
        Layer.provide(Gateway.layerDefaults({ sandbox: true }))
      )
      const context = yield* Layer.build(
        HttpRouter.serve(app, { disableLogger: true, disableListenLog: true }).pipe(
          Layer.provideMerge(NodeHttpServer.layer(() => Http.createServer(), { port: 0, host: "127.0.0.1" }))
        )
      )
      const url = formatAddress(Context.get(context, HttpServer).address)
      const hosts = ["localhost", "gateway.example", "evil.example"]
      assert.deepStrictEqual(
        yield* statuses(url, hosts, "/gw/evm"),
        hosts.map((host, at) => [host, at < 2 ? 200 : 421])
      )
      assert.deepStrictEqual(
        yield* statuses(url, hosts, "/gw/no/such/route"),
        hosts.map((host, at) => [host, at < 2 ? 404 : 421])
      )
    }))
})

describe("on a public address", () => {
  it.live("any host is answered", () =>
    Effect.gen(function*() {
      const url = yield* publicGateway({})
      const hosts = [...loopbackHosts, ...otherHosts]
      assert.deepStrictEqual(yield* statuses(url, hosts), all(hosts, 200))
    }))

  it.live("TRIGATE_HOSTS restricts them, and loopback hosts stay", () =>
    Effect.gen(function*() {
      const url = yield* publicGateway({ TRIGATE_HOSTS: "gateway.example" })
      const answered = ["gateway.example:8080", ...loopbackHosts]
      assert.deepStrictEqual(yield* statuses(url, answered), all(answered, 200))
      assert.deepStrictEqual(yield* statuses(url, otherHosts), all(otherHosts, 421))
    }))
})
