/** `@nktkas/hyperliquid`'s reads that the gateway does not know, and WebSockets at paths that have none. */
import { assert, describe, it } from "@effect/vitest"
import type { InfoClient } from "@nktkas/hyperliquid"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { hostedGateway } from "@trigate/testing/HostedGateway"
import * as Effect from "effect/Effect"
import * as Http from "node:http"
import { connected } from "./hyperliquidVenue.ts"

describe("@nktkas/hyperliquid, relayed", () => {
  it.live("reads what the gateway does not know, as it does straight from the venue", () =>
    Effect.gen(function*() {
      const { info, straight, transport, upstream } = yield* connected("other-reads")
      const user = keys.trader.address
      const reads: ReadonlyArray<(of: InfoClient) => Promise<unknown>> = [
        (of) => of.allMids(),
        (of) => of.l2Book({ coin: "ETH" }),
        (of) => of.meta(),
        (of) => of.metaAndAssetCtxs(),
        (of) => of.spotMetaAndAssetCtxs(),
        (of) => of.perpDexs(),
        (of) => of.exchangeStatus(),
        (of) => of.clearinghouseState({ user }),
        (of) => of.openOrders({ user }),
        (of) => of.userFills({ user })
      ]
      for (const read of reads) {
        upstream.seen.length = 0
        const through = yield* Effect.promise(() => read(info))
        assert.deepStrictEqual(upstream.seen.map(({ body }) => body), transport.bodies.slice(-1))
        assert.deepStrictEqual(through, yield* Effect.promise(() => read(straight)))
      }
    }))
})

/** What a server answers to the first request of a WebSocket. */
const upgrade = (url: string, path: string) =>
  Effect.callback<{ readonly status: number | undefined; readonly body: string }>((resume) => {
    Http.get(url + path, {
      headers: {
        connection: "upgrade",
        upgrade: "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="
      }
    }, (response) => {
      let body = ""
      response.on("data", (chunk: Buffer) => {
        body += chunk.toString("utf8")
      })
      response.on("end", () => resume(Effect.succeed({ status: response.statusCode, body })))
    })
  })

describe("a WebSocket at a path that has none", () => {
  it.live("is refused at once", () =>
    Effect.gen(function*() {
      const { url } = yield* hostedGateway({})
      for (const path of ["/some-key/info", "/api/v2/jsonRPC"]) {
        const answer = yield* upgrade(url, path)
        assert.strictEqual(answer.status, 404)
        assert.include(answer.body, `"detail":"WebSockets of this gateway are at /ws, /evm and /l2,`)
      }
    }))
})
