import { assert, describe, it } from "@effect/vitest"
import { get } from "@trigate/testing/Gateway"
import { gatewayProcess } from "@trigate/testing/GatewayProcess"
import * as Effect from "effect/Effect"

describe("a gateway on a terminal", () => {
  it.live("writes no JSON", () =>
    Effect.gen(function*() {
      const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent("process.stdout.isTTY = true")}`
      const running = yield* gatewayProcess({ NODE_OPTIONS })
      yield* get(`${running.url}/openapi.json`, { "x-request-id": "req-1" })
      running.signal("SIGTERM")
      assert.strictEqual(yield* Effect.promise(() => running.ended), 0)
      assert.match(
        running.printed(),
        /^\d\d:\d\d:\d\d\.\d{3}Z INFO {2}request id=req-1 method=GET route=other status=200 milliseconds=\d+$/mu
      )
      assert.notInclude(running.printed(), "{")
    }))
})
