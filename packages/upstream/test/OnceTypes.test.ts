/** The compiler proves these: a directive that expects no error is one itself. */
import { assert, describe, it } from "@effect/vitest"
import { gasPrice } from "@trigate/domain/EvmOperations"
import { tokenDelegate } from "@trigate/domain/ExchangeOperations"
import { spotMeta } from "@trigate/domain/InfoOperations"
import * as Operation from "@trigate/domain/Operation"
import * as Utf8 from "@trigate/domain/Utf8"
import * as AttemptResult from "@trigate/upstream/AttemptResult"
import type { Read } from "@trigate/upstream/Attempts"
import type { Calls } from "@trigate/upstream/Calls"
import * as RpcCalls from "@trigate/upstream/RpcCalls"
import * as RpcOnceCalls from "@trigate/upstream/RpcOnceCalls"
import * as Schema from "effect/Schema"
import * as Scripted from "./scripted.ts"

const targets = Scripted.targets("a")
const body = Utf8.encode("{}")
const question = { body, read: AttemptResult.ofPlain(spotMeta) }

describe("a once operation", () => {
  it("cannot be read: not retried, not hedged, not sent to a second address, not batched", () => {
    const impossible = (calls: Calls["Service"]) => [
      // @ts-expect-error -- a once operation is no read
      calls.read({ operation: tokenDelegate, targets }, question),
      // @ts-expect-error -- nor as a JSON-RPC call
      RpcCalls.make(calls)({ operation: tokenDelegate, targets }, "[]"),
      // @ts-expect-error -- nor as what the loop itself takes
      { operation: tokenDelegate, targets } satisfies Read
    ]
    assert.isFunction(impossible)
  })

  it("cannot be declared with a rule of sharing: nothing of it is coalesced or kept", () => {
    const impossible = () =>
      Operation.once({
        name: "submit",
        chain: "trading",
        protocol: "exchange",
        summary: "",
        sources: ["official-api"],
        cost: { weight: 1, requestUnits: 1 },
        request: Schema.Unknown,
        response: Schema.Unknown,
        failures: [],
        advice: "Resend the identical bytes",
        // @ts-expect-error -- a once operation keeps nothing
        cachePolicy: () => ({ fresh: 1000, stale: 0 })
      })
    assert.isFunction(impossible)
  })

  it("is the only one that can be sent once", () => {
    const impossible = (calls: Calls["Service"]) => [
      // @ts-expect-error -- a read is no once operation
      calls.once({ operation: spotMeta, targets, body }, {}),
      // @ts-expect-error -- nor as a JSON-RPC call
      RpcOnceCalls.make(calls)({ operation: gasPrice, targets }, "[]")
    ]
    assert.isFunction(impossible)
  })
})
