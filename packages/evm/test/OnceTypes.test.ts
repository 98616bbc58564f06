/** The compiler proves these: a directive that expects no error is one itself. */
import { assert, describe, it } from "@effect/vitest"
import { findOperation } from "@trigate/domain/actions/Action"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import type * as EvmProtocol from "@trigate/domain/evm/EvmProtocol"
import { gasPrice, sendRawTransaction } from "@trigate/domain/evm/EvmProtocol"
import * as InfoProtocol from "@trigate/domain/info/InfoOperations"
import { spotMeta } from "@trigate/domain/info/InfoOperations"
import * as Operation from "@trigate/domain/operations/Operation"
import * as EvmUpstream from "@trigate/evm/unstable/EvmUpstream"
import type { Pipeline } from "@trigate/upstream/Pipeline"
import type { HttpTransport, TransportRequest } from "@trigate/upstream/transport/HttpTransport"
import type { AttemptedRead } from "@trigate/upstream/unstable/attempts/Attempts"
import type { PermitRequest } from "@trigate/upstream/unstable/limits/RateLimiter"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Scripted from "../../upstream/test/scripted.ts"

const tokenDelegate = findOperation("tokenDelegate")
const targets = Scripted.targets("a")
const body = Encoding.encode("{}")
const params = Encoding.of("[]")
const batched = EvmUpstream.makeBatched(() => Effect.die("not asked"), () => 1)
const backend: EvmProtocol.EvmBackend = { read: () => Effect.die("not asked"), once: () => Effect.die("not asked") }
const question = { body, judge: InfoProtocol.judge(spotMeta) }

describe("a request to an upstream", () => {
  it("has an owner", () => {
    const impossible = ({ send }: HttpTransport["Service"], request: Omit<TransportRequest, "owner">) => [
      // @ts-expect-error -- the transport sends nothing for nobody
      send(request),
      // @ts-expect-error -- nor does the rate limiter give permits to nobody
      { upstream: "layer2", class: "read", cost: { weight: 1, requestUnits: 1 }, maxWait: 0 } satisfies PermitRequest
    ]
    assert.isFunction(impossible)
  })
})

describe("a once operation", () => {
  it("cannot be read: not retried, not hedged, not sent to a second address, not batched", () => {
    const impossible = (pipeline: Pipeline["Service"]) => [
      // @ts-expect-error -- no attempts are made of a once operation
      pipeline.attempt({ operation: tokenDelegate, targets }, question),
      // @ts-expect-error -- nor does a protocol read one, so that none is cached, coalesced or retried
      pipeline.reads<{ readonly operation: typeof tokenDelegate }, never, never, never>,
      // @ts-expect-error -- nor is one a JSON-RPC call that can be batched
      batched({ operation: sendRawTransaction, params, request: [], surface: "gateway" }, targets),
      // @ts-expect-error -- nor a read of a backend
      backend.read({ operation: sendRawTransaction, params, request: [], surface: "gateway" }),
      // @ts-expect-error -- nor what the loop of attempts takes
      { operation: tokenDelegate, targets } satisfies AttemptedRead
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
        cachePolicy: () => ({ fresh: 1000, staleIfError: 0 })
      })
    assert.isFunction(impossible)
  })

  it("is the only one that can be sent once", () => {
    const impossible = (pipeline: Pipeline["Service"]) => [
      // @ts-expect-error -- a read is no once operation
      pipeline.once({ operation: spotMeta, targets, body }, {}),
      // @ts-expect-error -- nor as a JSON-RPC call
      backend.once({ operation: gasPrice, params, surface: "gateway" })
    ]
    assert.isFunction(impossible)
  })
})
