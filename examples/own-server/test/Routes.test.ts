import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, describe, it } from "@effect/vitest"
import { freePort, portPoll } from "@trigate/testing/GatewayProcess"
import { Effect, Layer } from "effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpBody from "effect/http/HttpBody"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpRouter from "effect/http/HttpRouter"
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import * as Routes from "../src/Routes.ts"

const main = fileURLToPath(new URL("../src/main.ts", import.meta.url))

const served = HttpRouter.serve(Routes.layer, { disableLogger: true, disableListenLog: true }).pipe(
  Layer.provideMerge(NodeHttpServer.layerTest)
)

describe("a server with routes of its own beside the gateway's", () => {
  it.live("answers both, from the same chains", () =>
    Effect.gen(function*() {
      const price = yield* HttpClient.get("/price/BTC")
      assert.strictEqual(price.status, 200)
      assert.match(yield* price.text, /^\{"coin":"BTC","price":"[0-9.]+"\}$/u)
      const body = HttpBody.text(
        `{"type":"candleSnapshot","req":{"coin":"BTC","interval":"1m","startTime":0}}`,
        "application/json"
      )
      const bars = yield* HttpClient.post("/info", { body })
      assert.strictEqual(bars.status, 200)
      assert.isArray(yield* bars.json)
    }).pipe(Effect.provide(served)))

  it.live("answers 404 for a coin that nobody trades", () =>
    Effect.gen(function*() {
      const price = yield* HttpClient.get("/price/NOSUCHCOIN")
      assert.strictEqual(price.status, 404)
      assert.deepStrictEqual(yield* price.json, { coin: "NOSUCHCOIN", price: null })
    }).pipe(Effect.provide(served)))

  it.live("has the gateway's document and its state", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* HttpClient.get("/openapi.json")).status, 200)
      const ready = yield* HttpClient.get("/health/ready")
      assert.strictEqual(ready.status, 200)
      assert.include(yield* ready.text, `"sandbox":true`)
    }).pipe(Effect.provide(served)))
})

describe("main.ts", () => {
  const startedOn = (port: number) =>
    Effect.acquireRelease(
      Effect.sync(() => spawn(process.execPath, [main], { env: { ...process.env, PORT: String(port) } })),
      (child) => Effect.sync(() => child.kill())
    )
  it.live("answers each request while it starts, and then its own route", () =>
    Effect.gen(function*() {
      const port = yield* freePort
      const request = "GET /health/live HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
      const { end } = yield* portPoll(port, [request])
      const child = yield* startedOn(port)
      const polled = yield* Effect.raceFirst(
        end,
        Effect.callback<never>((resume) => {
          child.on("exit", (code) => resume(Effect.die(new Error(`The server ended with ${code}`))))
        })
      )
      assert.deepStrictEqual([Object.keys(polled.byStatus), polled.unanswered], [["200"], 0])
      // it was polled before it listened
      assert.isAbove(polled.refused, 0)
      const price = yield* HttpClient.get(`http://127.0.0.1:${port}/price/@107`)
      assert.strictEqual(price.status, 200)
      assert.match(yield* price.text, /^\{"coin":"@107","price":"[0-9.]+"\}$/u)
    }).pipe(Effect.provide(FetchHttpClient.layer)))
})
