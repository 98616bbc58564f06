/** New work is refused before it costs anything while the gateway is busy, and health is answered all the same. */
import { assert, describe, it } from "@effect/vitest"
import { makeClient } from "@trigate/testing/Client"
import { get, post } from "@trigate/testing/Gateway"
import { rpcReply } from "@trigate/testing/RecordingUpstream"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import { openSocket } from "../../../../test/streams/socket.ts"
import { liveGateway } from "../liveGateway.ts"
import { posting, socketTo, statusOf } from "./socket.ts"

const signature = { r: "0x1", s: "0x2", v: 27 } as const
const gasCall = `{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}`

/** An event loop whose timers are as late as the test says. */
const timers = Effect.gen(function*() {
  const lateness = yield* Queue.unbounded<number>()
  const asked = yield* Queue.unbounded<void>()
  return {
    next: Effect.andThen(Queue.offer(asked, undefined), Queue.take(lateness)),
    /** Lets timers be late, and gives when the gateway knows. */
    are: (...milliseconds: ReadonlyArray<number>) =>
      Effect.gen(function*() {
        for (const each of milliseconds) {
          yield* Queue.take(asked)
          yield* Queue.offer(lateness, each)
        }
        // it asks for the next one after it has taken the last
        yield* Queue.take(asked)
        yield* Queue.offer(asked, undefined)
      })
  }
})

const busy = Effect.gen(function*() {
  const { are, next } = yield* timers
  const live = yield* liveGateway(
    {
      api: () => ({ body: `{"universe":[],"tokens":[]}` }),
      node: rpcReply(`"0x1"`),
      layer2: rpcReply(`"0x1"`)
    },
    { TRIGATE_MAX_LAG: "100 ms" },
    next
  )
  yield* are(100, 100, 100, 100, 100)
  return { are, ...live }
})

describe("a gateway whose event loop lags", () => {
  it.live("refuses new work before it reads a body, and asks nobody", () =>
    Effect.gen(function*() {
      const { seen, url } = yield* busy
      const info = yield* post(`${url}/info`, `{"type":"spotMeta"}`)
      assert.strictEqual(info.status, 503)
      assert.strictEqual(info.headers.get("retry-after"), "1")
      assert.deepInclude(info.json, { _tag: "Overloaded", status: 503, retryAfter: 1, code: 503 })
      for (const path of ["/evm", "/l2", "/KEY/evm", "/KEY/l2", "/KEY", "/api/v2/jsonRPC"]) {
        const rpc = yield* post(`${url}${path}`, gasCall)
        assert.strictEqual(rpc.status, 503, path)
        assert.strictEqual(rpc.headers.get("retry-after"), "1", path)
        assert.include(rpc.text, `"code":-32005`, path)
        assert.include(rpc.text, `"_tag":"Overloaded"`, path)
      }
      for (
        const path of ["/api/v2/getMasterchainInfo", "/KEY/api/v2/getMasterchainInfo", "/api/v2/getTokenData?address=x"]
      ) {
        const read = yield* get(`${url}${path}`)
        assert.strictEqual(read.status, 503, path)
        assert.deepInclude(read.json, { _tag: "Overloaded" }, path)
      }
      for (const path of ["/exchange", "/exchange/inspect", "/info", "/evm"]) {
        // nothing of the body ever comes
        const { answer, send } = yield* socketTo(url)
        yield* send(posting(path, { "content-length": 1000 }))
        assert.strictEqual(statusOf(yield* answer), 503, path)
      }
      assert.deepStrictEqual(seen(), [])
    }))

  it.live("completes handshakes of WebSockets, which cost no more than a refusal, and refuses their posts", () =>
    Effect.gen(function*() {
      const { seen, url } = yield* busy
      const socket = yield* openSocket(`${url}/ws`)
      socket.send(`{"method":"post","id":1,"request":{"type":"info","payload":{"type":"spotMeta"}}}`)
      assert.include((yield* Effect.promise(() => socket.next("post"))).text, "503")
      assert.deepStrictEqual(seen(), [])
    }))

  it.live("answers for its health, and works again with the first timer that is on time", () =>
    Effect.gen(function*() {
      const { are, seen, url } = yield* busy
      assert.strictEqual((yield* get(`${url}/health/live`)).status, 200)
      assert.strictEqual((yield* get(`${url}/health/ready`)).status, 200)
      assert.strictEqual((yield* get(`${url}/metrics`)).status, 200)
      yield* are(99)
      assert.strictEqual((yield* post(`${url}/info`, `{"type":"spotMeta"}`)).status, 200)
      yield* are(100, 100, 100, 100)
      assert.strictEqual((yield* post(`${url}/evm`, gasCall)).status, 200)
      yield* are(100)
      assert.strictEqual((yield* post(`${url}/evm`, gasCall)).status, 503)
      assert.deepStrictEqual(seen(), ["api POST /info", "node POST /node-secret-5d0c1f/evm"])
    }))

  it.live("tells the typed client so", () =>
    Effect.gen(function*() {
      const { url } = yield* busy
      const client = yield* makeClient(url)
      const address = "EQDXZ2c5LnA12Eum-DlguTmfYkMOvNeFCh4rBD0tgmwjcFI-"
      const nonce = yield* Clock.currentTimeMillis
      const signed = { action: { type: "evmUserModify", usingBigBlocks: true }, nonce, signature } as const
      const failures = [
        yield* Effect.flip(client.info.spotMeta()),
        yield* Effect.flip(client.evm.gasPrice()),
        yield* Effect.flip(client.tokens.getTokenData({ address })),
        yield* Effect.flip(client.exchange.submit(signed))
      ]
      for (const error of failures) {
        assert(error._tag === "RequestError")
        assert.strictEqual(error.reason._tag, "Overloaded")
        assert.strictEqual(error.retryAfter, 1)
        assert.strictEqual(error.group, "retry-later")
      }
    }))
})
