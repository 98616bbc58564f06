/** The longest wait for a rate limit that a caller accepts, in `Prefer` (RFC 7240). */
import { assert, describe, it } from "@effect/vitest"
import { post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import { rpcReply } from "@trigate/testing/RecordingUpstream"
import { MaxWait } from "@trigate/upstream/limits/RateLimiter"
import * as Effect from "effect/Effect"
import { liveGateway } from "./liveGateway.ts"

const rpc = (method: string, params: ReadonlyArray<unknown>) =>
  JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })

const read = (slot: number) => rpc("eth_getStorageAt", [`0x${"ab".repeat(20)}`, `0x${slot}`, "latest"])
const transaction = rpc("eth_sendRawTransaction", [`0x02${"ab".repeat(100)}`])

describe("a caller's longest wait", () => {
  const calls = [["a read", read(2)], ["a transaction", transaction]] as const
  for (const [what, body] of calls) {
    it.live(`refuses ${what} at once that would wait longer, and sends nothing`, () =>
      Effect.gen(function*() {
        // one call in ten seconds: the second one would wait
        const gateway = yield* liveGateway(
          { node: rpcReply(`"0x${"00".repeat(32)}"`) },
          { TRIGATE_TRADING_NODE_RPS: "0.1", TRIGATE_READ_DEADLINE: "2m", TRIGATE_ONCE_DEADLINE: "2m" }
        )
        yield* post(`${gateway.url}/evm`, read(1))
        const { json } = yield* post(`${gateway.url}/evm`, body, { prefer: "respond-async, wait=0" })
        assert.strictEqual(JsonParts.at(json, "error", "data", "_tag"), "QuotaExceeded")
        assert.strictEqual(gateway.node.seen.length, 1)
      }))
  }

  it("is not limited by default", () => {
    assert.strictEqual(MaxWait.defaultValue(), Number.POSITIVE_INFINITY)
  })
})
