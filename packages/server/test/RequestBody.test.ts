import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, describe, it } from "@effect/vitest"
import { Layer2 } from "@trigate/evm/Layer2"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import * as Gateway from "@trigate/server/Gateway"
import * as RequestBody from "@trigate/server/unstable/requests/Request"
import { gateway, post } from "@trigate/testing/Gateway"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { formatAddress, HttpServer, layerServices } from "effect/http/HttpServer"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Layer from "effect/Layer"
import * as Http from "node:http"
import { exchange, headOf } from "./rawHttp.ts"

const gasCall = `{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}`
const receiptCall = `{"jsonrpc":"2.0","id":1,"method":"eth_getTransactionReceipt","params":["0x${"ab".repeat(32)}"]}`
const gasAnswer = /^\{"jsonrpc":"2\.0","id":1,"result":"0x[0-9a-f]+"\}$/u

const routes = Gateway.layer().pipe(
  Layer.provide(Sandbox.layer()),
  Layer.provide(Gateway.layerDefaults({ sandbox: true }))
)

const served = Effect.fnUntraced(function*(app: typeof routes) {
  const server = NodeHttpServer.layer(() => Http.createServer(), { port: 0, host: "127.0.0.1" })
  const context = yield* Layer.build(
    HttpRouter.serve(app, { disableLogger: true, disableListenLog: true }).pipe(Layer.provideMerge(server))
  )
  return formatAddress(Context.get(context, HttpServer).address)
})

describe("a request's body", () => {
  it.live("is waited for after 100 Continue where the caller asks for that", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const head = headOf("POST", "/evm", [
        ["content-type", "application/json"],
        ["expect", "100-continue"],
        ["content-length", String(gasCall.length)]
      ])
      const answer = yield* exchange(url, [head, gasCall])
      assert.strictEqual(answer.status, 100)
      assert.match(answer.body, /^HTTP\/1\.1 200 OK\r\n/u)
    }))

  it.live("is read in whatever pieces it comes", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const chunked = headOf("POST", "/evm", [["content-type", "application/json"], ["transfer-encoding", "chunked"]])
      const pieces = Array.from(gasCall, (letter) => `1\r\n${letter}\r\n`)
      const answer = yield* exchange(url, [chunked, ...pieces, "0\r\n\r\n"])
      assert.strictEqual(answer.status, 200)
      assert.match(answer.body, gasAnswer)
    }))

  it.live("is refused by a byte too many that no length announced, and the connection lives on", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const json = "content-type: application/json\r\n"
      const head = `POST /info HTTP/1.1\r\nhost: localhost\r\n${json}transfer-encoding: chunked\r\n\r\n`
      const size = RequestBody.bodyLimit + 1
      const next = headOf("POST", "/evm", [
        ["content-type", "application/json"],
        ["content-length", String(gasCall.length)]
      ]) + gasCall
      const answer = yield* exchange(url, [head, `${size.toString(16)}\r\n${" ".repeat(size)}\r\n0\r\n\r\n`, next])
      assert.strictEqual(answer.status, 413)
      assert.include(answer.body, `"_tag":"PayloadTooLarge"`)
      assert.include(answer.body, "HTTP/1.1 200 OK")
    }))

  it.live("may have been read before by a middleware of the embedding program", () =>
    Effect.gen(function*() {
      const seen: Array<string> = []
      const reading = HttpRouter.middleware(
        (app) =>
          Effect.gen(function*() {
            const request = yield* HttpServerRequest
            seen.push(yield* Effect.orDie(request.text))
            return yield* app
          }),
        { global: true }
      )
      const url = yield* served(Layer.merge(routes, reading))
      assert.match((yield* post(`${url}/evm`, gasCall)).text, gasAnswer)
      assert.deepStrictEqual(seen, [gasCall])
    }))

  it.live("is read on a server that is not Node's", () =>
    Effect.gen(function*() {
      const { handler } = yield* Effect.acquireRelease(
        Effect.sync(() => HttpRouter.toWebHandler(routes.pipe(Layer.provide(layerServices)), { disableLogger: true })),
        ({ dispose }) => Effect.promise(dispose)
      )
      const ask = (body: string) =>
        Effect.promise(() =>
          handler(
            new Request("http://localhost/evm", {
              method: "POST",
              body,
              headers: { "content-type": "application/json" }
            }),
            Context.empty()
          )
            .then(async (answer) => [answer.status, await answer.text()] as const)
        )
      const [status, text] = yield* ask(gasCall)
      assert.strictEqual(status, 200)
      assert.match(text, gasAnswer)
      assert.strictEqual((yield* ask(" ".repeat(RequestBody.bodyLimit + 1)))[0], 413)
    }))
})

describe("a caller that leaves", () => {
  it.live("ends what was done for it", () =>
    Effect.gen(function*() {
      const begun = yield* Deferred.make<void>()
      const ended = yield* Deferred.make<void>()
      const waiting = Layer.effect(
        Layer2,
        Effect.map(Layer2, (layer2) => ({
          ...layer2,
          relay: () =>
            Deferred.succeed(begun, undefined).pipe(
              Effect.andThen(Effect.never),
              Effect.onInterrupt(() => Deferred.succeed(ended, undefined))
            )
        }))
      ).pipe(Layer.provideMerge(Sandbox.layer()))
      const url = yield* served(
        Gateway.layer().pipe(Layer.provide(waiting), Layer.provide(Gateway.layerDefaults({ sandbox: true })))
      )
      const head = headOf("POST", "/l2", [
        ["content-type", "application/json"],
        ["content-length", String(receiptCall.length)]
      ])
      // the race ends the exchange, and with it the connection, once the call is on its way
      yield* Effect.raceFirst(exchange(url, [head, receiptCall]), Deferred.await(begun))
      yield* Deferred.await(ended)
    }))
})
