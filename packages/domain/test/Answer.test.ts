import { assert, describe, it } from "@effect/vitest"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import {
  GatewayError,
  UnknownAsset,
  upstreamFailures,
  UpstreamMalformed,
  UpstreamRateLimited
} from "@trigate/domain/errors/GatewayError"
import { candleSnapshot } from "@trigate/domain/info/InfoOperations"
import * as Operation from "@trigate/domain/operations/Operation"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { samples } from "./gatewayErrorSamples.ts"

const operation = Operation.read({
  name: "numbers",
  chain: "trading",
  protocol: "info",
  summary: "",
  sources: ["official-api"],
  cost: { weight: 20, requestUnits: 1 },
  request: Schema.Void,
  response: Schema.Struct({ wei: Schema.Union([Schema.Int, Schema.BigInt]) }),
  failures: [UnknownAsset]
})
const read = (answer: Operation.UpstreamResponse) => Operation.makeReader(operation)(undefined, answer)

const problem = (error: GatewayError): Operation.UpstreamResponse => {
  const body = Schema.encodeSync(GatewayError)(error)
  return Operation.json("trading-api", body.status ?? 0, Encoding.stringify(body)).with({
    contentType: "application/problem+json"
  })
}

describe("readerOf", () => {
  it.effect("reads an answer digit for digit", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* read(Operation.json("trading-api", 200, "{\"wei\":18446744073709551615}")), {
        wei: 2n ** 64n - 1n
      })
    }))

  it.effect.each(
    [
      ["another shape", "{\"wei\":\"1\"}"],
      ["a missing field", "{}"],
      ["null", "null"],
      ["half a body", "{\"wei\":1"],
      ["no JSON", "busy"]
    ] as const
  )("%s is the upstream's fault", ([, body]) =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(read(Operation.json("trading-api", 200, body)))
      assert.instanceOf(error, UpstreamMalformed)
      assert.strictEqual(error.upstream, "trading-api")
      assert.strictEqual(error.detail, `trading-api sent a response that does not decode: ${error.issue}`)
      assert.isAtMost(error.issue.length, 240)
    }))

  it.effect("an issue holds no more than an excerpt of the answer", () =>
    Effect.gen(function*() {
      const readNumbers = Operation.decodeJson(Schema.Record(Schema.String, Schema.Int))
      const error = yield* Effect.flip(readNumbers("trading-api", Encoding.of(`{"${"x".repeat(10_000)}":null}`)))
      assert.strictEqual(error.issue.length, 240)
    }))

  const common = upstreamFailures.map(({ identifier }) => identifier)
  const travelling = Object.values<GatewayError>(samples).filter(({ _tag }) =>
    _tag === "UnknownAsset" || common.some((tag) => tag === _tag)
  )

  it("knows the common errors and the operation's own", () => {
    assert.strictEqual(travelling.length, upstreamFailures.length + 1)
  })

  it.effect.each(travelling)("gives back the $_tag of a gateway upstream", (error) =>
    Effect.gen(function*() {
      const again = yield* Effect.flip(read(problem(error)))
      assert.strictEqual(again.constructor, error.constructor)
      assert.deepStrictEqual<GatewayError>(again, error)
    }))

  it.effect("takes a content type with parameters", () =>
    Effect.gen(function*() {
      const answer = problem(samples.UnknownAsset).with({ contentType: "application/problem+json; charset=utf-8" })
      assert.deepStrictEqual<GatewayError>(yield* Effect.flip(read(answer)), samples.UnknownAsset)
    }))

  it.effect.each(
    [
      ["an error that the operation does not have", problem(samples.NonceMismatch), "InvalidRequest"],
      [
        "a problem of somebody else",
        problem(samples.UnknownAsset).with({ status: 503, body: Encoding.encode("{\"type\":\"about:blank\"}") }),
        "UpstreamUnavailable"
      ],
      [
        "a problem that is no JSON",
        problem(samples.UnknownAsset).with({ status: 503, body: Encoding.encode("{") }),
        "UpstreamUnavailable"
      ]
    ] as const
  )("%s is read by its status", ([, answer, tag]) =>
    Effect.gen(function*() {
      assert.strictEqual((yield* Effect.flip(read(answer)))._tag, tag)
    }))

  it.effect("an answer that means a typed error is one, whatever its status says", () =>
    Effect.gen(function*() {
      const readCandles = Operation.makeReader(candleSnapshot)
      const request = { coin: "NOPE", interval: "1m", startTime: 0 } as const
      const error = yield* Effect.flip(readCandles(request, Operation.json("trading-api", 500, " null\n")))
      assert.instanceOf(error, UnknownAsset)
      assert.strictEqual(error.coin, "NOPE")
      const fault = yield* Effect.flip(readCandles(request, Operation.json("trading-api", 500, "{}")))
      assert.strictEqual(fault._tag, "UpstreamUnavailable")
      const notCandles = yield* Effect.flip(readCandles(request, Operation.json("trading-api", 200, "null")))
      assert.strictEqual(notCandles._tag, "UpstreamMalformed")
    }))
})

describe("failureOfStatus", () => {
  const rows: ReadonlyArray<readonly [status: number, tag: string]> = [
    [400, "InvalidRequest"],
    [422, "InvalidRequest"],
    [429, "UpstreamRateLimited"],
    [201, "UpstreamUnavailable"],
    [301, "UpstreamUnavailable"],
    [401, "UpstreamForbidden"],
    [403, "UpstreamForbidden"],
    [404, "UpstreamUnavailable"],
    [500, "UpstreamUnavailable"],
    [502, "UpstreamUnavailable"],
    [503, "UpstreamUnavailable"],
    [504, "UpstreamUnavailable"]
  ]

  it.each(rows)("HTTP %i is %s, in the upstream's words", (status, tag) => {
    const error = Operation.failureOfStatus(Operation.plain("trading-api", status, "Failed  to\n deserialize"))
    assert.strictEqual(error._tag, tag)
    assert.strictEqual(error.detail, `trading-api responded with HTTP ${status}: Failed to deserialize`)
  })

  it("has no words where there are none, and no more than an excerpt", () => {
    assert.strictEqual(
      Operation.failureOfStatus(Operation.plain("layer2", 503, "")).detail,
      "layer2 responded with HTTP 503"
    )
    const long = Operation.failureOfStatus(Operation.plain("layer2", 503, "x".repeat(10_000)))
    assert.strictEqual(long.detail, `layer2 responded with HTTP 503: ${"x".repeat(200)}`)
  })

  it("passes the time to wait on", () => {
    const limited = Operation.failureOfStatus(Operation.plain("layer2", 429, "").with({ retryAfter: 7 }))
    assert.instanceOf(limited, UpstreamRateLimited)
    assert.strictEqual(limited.retryAfter, 7)
    assert.isFalse("retryAfter" in Operation.failureOfStatus(Operation.plain("layer2", 429, "")))
    const unavailable = Operation.failureOfStatus(Operation.plain("layer2", 503, "").with({ retryAfter: 9 }))
    assert.strictEqual(unavailable._tag === "UpstreamUnavailable" ? unavailable.retryAfter : undefined, 9)
  })
})
