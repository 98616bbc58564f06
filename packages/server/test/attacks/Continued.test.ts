/** Requests that ask for `100 Continue`, among others on one connection: what is a body may never be read as a request. */
import { assert, describe, it } from "@effect/vitest"
import { gateway } from "@trigate/testing/Gateway"
import * as Effect from "effect/Effect"
import { bigBlocks, bodyOf } from "../bodies.ts"
import { liveGateway } from "../liveGateway.ts"
import { posting, socketTo } from "./socket.ts"

const call = `{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}`

/** What a proxy in front takes for the body of one request, and a server that has lost count for another request. */
const smuggled =
  "POST /exchange HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"

const plain = `${posting("/l2", { "content-length": call.length })}${call}`
const waiting = `${posting("/l2", { "content-length": call.length, expect: "100-continue" })}${call}`
const last = `${posting("/l2", { "content-length": call.length, connection: "close" })}${call}`

const statuses = (text: string) => [...text.matchAll(/HTTP\/1\.1 ([0-9]{3})/gu)].map(([, status]) => Number(status))

describe("requests that wait for 100 Continue", () => {
  it.live("are answered in order, each once, and the first on a connection keeps it", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const socket = yield* socketTo(url)
      yield* socket.send(`${waiting}${plain}${plain}${last}`)
      const text = yield* socket.closed
      assert.deepStrictEqual(statuses(text), [100, 200, 200, 200, 200])
      assert.lengthOf([...text.matchAll(/"jsonrpc"/gu)], 4)
    }))

  it.live("behind another are the last that the connection answers, and no action behind them is sent", () =>
    Effect.gen(function*() {
      const { api, url } = yield* liveGateway({
        api: () => ({ body: `{"status":"ok","response":{"type":"default"}}` })
      })
      const socket = yield* socketTo(url)
      const action = bodyOf(Date.now(), bigBlocks)
      yield* socket.send(`${plain}${waiting}${posting("/exchange", { "content-length": action.length })}${action}`)
      const text = yield* socket.closed
      // no 100: it would come before the head of the answer that it waits behind
      assert.deepStrictEqual(statuses(text), [200, 200])
      assert.match(text.slice(text.lastIndexOf("HTTP/1.1")), /\r\nConnection: close\r\n/u)
      assert.lengthOf(api.seen, 0)
    }))

  it.live("and are refused before their body have that body read by nobody, or end the connection", () =>
    Effect.gen(function*() {
      const { api, url } = yield* liveGateway()
      const refused = [
        posting("/exchange", { "content-length": smuggled.length, expect: "100-continue", "content-encoding": "odd" }),
        posting("/exchange", { "content-length": 70_000, expect: "100-continue" }),
        posting("/nowhere/at/all", { "content-length": smuggled.length, expect: "100-continue" }),
        posting("/l2", { "content-length": smuggled.length, expect: "200-maybe" })
      ]
      for (const head of refused) {
        const socket = yield* socketTo(url)
        yield* socket.send(`${head}${smuggled}${last}`)
        const text = yield* Effect.timeoutOrElse(socket.closed, {
          duration: "2 seconds",
          orElse: () => Effect.andThen(socket.leave, socket.closed)
        })
        const [first = 0, ...more] = statuses(text).filter((status) => status !== 100)
        assert.isAtLeast(first, 400, head)
        // the body was no request: at most the last one has an answer, which is that of a call
        assert.isAtMost(more.length, 1, text)
        if (more.length === 1) assert.include(text.slice(text.lastIndexOf("HTTP/1.1")), "\"jsonrpc\"")
      }
      assert.lengthOf(api.seen, 0)
    }))
})
