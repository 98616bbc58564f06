/** Which refusals of a gateway ccxt repeats by itself: each error of the table, as the gateway writes it on the venue's routes. */
import { assert, describe, it } from "@effect/vitest"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as ProblemResponse from "@trigate/server/unstable/requests/Request"
import { recordingUpstream } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { samples } from "../../packages/domain/test/gatewayErrorSamples.ts"
import { classified, exchangeAt } from "./ccxtVenue.ts"
import { rejection } from "./rejection.ts"

const retries = 2

// one request is final; ccxt sends the same bytes again where another try may end otherwise
const requestsOf = { "fix-request": 1, "fix-setup": 1, "retry-later": 1 + retries, "outcome-unknown": 1 + retries }

describe("ccxt, told to retry", () => {
  it.live("sends a refused request once, unless a later one may pass or resolve an unknown outcome", () =>
    Effect.gen(function*() {
      let problem = { status: 500, type: "", headers: {}, body: "" }
      const gateway = yield* recordingUpstream(() => problem)
      const exchange = exchangeAt(gateway.url, keys.trader)
      Object.assign(exchange.options, { maxRetriesOnFailure: retries, maxRetriesOnFailureDelay: 0 })
      const calls: ReadonlyArray<readonly [path: string, call: () => Promise<unknown>]> = [
        ["/exchange", () => exchange["privatePostExchange"]({ action: { type: "noop" }, nonce: 1 })],
        ["/info", () => exchange["publicPostInfo"]({ type: "allMids" })]
      ]
      const seen: Array<readonly [tag: string, path: string, requests: number]> = []
      for (const error of Object.values(samples)) {
        for (const [path, call] of calls) {
          const response = HttpServerResponse.toWeb(ProblemResponse.problem(error, path))
          problem = {
            status: response.status,
            type: String(response.headers.get("content-type")),
            headers: { ...ProblemResponse.problemHeaders(error) },
            body: yield* Effect.promise(() => response.text())
          }
          gateway.seen.length = 0
          const thrown = classified(yield* rejection(call))
          seen.push([error._tag, path, gateway.seen.length])
          assert.include(thrown.message, `"_tag":"${error._tag}"`)
          if (requestsOf[error.group] === 1 && error.status !== 401) {
            assert.strictEqual(thrown.name, "ExchangeError", error._tag)
          }
        }
      }
      assert.deepStrictEqual(
        seen,
        Object.values(samples).flatMap(({ _tag, group }) =>
          calls.map(([path]) => [_tag, path, requestsOf[group]] as const)
        )
      )
    }))
})
