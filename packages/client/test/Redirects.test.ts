/** An answer that points elsewhere is not followed over `fetch`, which would do so by itself. */
import { assert, describe, it } from "@effect/vitest"
import * as GatewayClient from "@trigate/client/GatewayClient"
import { recordingUpstream } from "@trigate/testing/RecordingUpstream"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import { nonce, signed } from "./methods.ts"

const clientAt = (baseUrl: string) =>
  Effect.map(
    Layer.build(Layer.provide(GatewayClient.layer({ baseUrl }), FetchHttpClient.layer)),
    Context.get(GatewayClient.GatewayClient)
  )

/** What a program asks of `fetch` for itself. */
const asked = Effect.provideService(FetchHttpClient.RequestInit, {
  headers: { "x-request-id": "mine" },
  redirect: "follow"
})

describe("an answer that points elsewhere", () => {
  for (const status of [301, 302, 303, 307, 308]) {
    it.live(`leaves open what became of a signed action, and nothing goes to anybody else: ${status}`, () =>
      Effect.gen(function*() {
        const elsewhere = yield* recordingUpstream(() => ({ body: `{"status":"ok","response":{"type":"default"}}` }))
        const moved = yield* recordingUpstream(({ path }) => ({
          status,
          headers: { location: `${elsewhere.url}${path}` },
          body: ""
        }))
        const client = yield* clientAt(moved.url)
        const error = yield* Effect.flip(client.exchange.submit(signed))
        assert.strictEqual(error._tag, "OutcomeUnknown")
        if (error._tag === "OutcomeUnknown") assert.strictEqual(error.nonce, nonce)
        yield* Effect.flip(asked(client.evm.gasPrice()))
        assert.deepStrictEqual(moved.seen.map(({ headers, path }) => [path, headers["x-request-id"]]), [
          ["/exchange", undefined],
          ["/evm", "mine"]
        ])
        assert.deepStrictEqual(elsewhere.seen, [])
      }))
  }
})
