import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import {
  callerFailures,
  commonFailures,
  GatewayError,
  gatewayErrors,
  OutcomeUnknown,
  QuotaExceeded,
  requestReasons,
  rpcCodes,
  servedFailures,
  Unauthorized,
  unwrapReason,
  upstreamFailures,
  UpstreamRateLimited,
  upstreamReasons,
  wrapReason
} from "@trigate/domain/errors/GatewayError"
import type { RequestError, UpstreamError } from "@trigate/domain/errors/GatewayError"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { samples } from "./gatewayErrorSamples.ts"

type Tag = keyof typeof samples

/** The documented table: tag, HTTP status, JSON-RPC code (-32603 where the route speaks no JSON-RPC), fields. */
const table: ReadonlyArray<readonly [tag: Tag, status: number, code: number, fields: ReadonlyArray<string>]> = [
  ["InvalidRequest", 400, -32602, ["errors"]],
  ["UnsupportedAction", 422, -32603, ["actionType", "supported"]],
  ["UnsupportedMethod", 404, -32601, ["method"]],
  ["UnsupportedBlock", 400, -32602, ["method", "block", "supported"]],
  ["LogRangeTooWide", 422, -32005, ["requested", "served"]],
  ["UnavailableOnNode", 501, -32004, ["operation", "availableOn"]],
  ["ChainNotConfigured", 501, -32004, ["chain"]],
  ["NonceOutOfWindow", 422, -32603, ["nonce", "now", "earliest", "latest"]],
  ["NonceMismatch", 422, -32603, ["nonce", "actionNonce"]],
  ["NonceAlreadyUsed", 409, -32603, ["signer", "nonce", "settled"]],
  ["InvalidSignature", 422, -32603, ["reason", "recovered", "expected"]],
  ["SignerNotAllowed", 403, -32603, ["signer"]],
  ["PolicyViolation", 422, -32603, [
    "rule",
    "policy",
    "account",
    "measured",
    "limit",
    "unit",
    "leg",
    "retryAfter"
  ]],
  ["ActionNotFound", 404, -32603, []],
  ["Unauthorized", 401, -32001, []],
  ["NotPermitted", 403, -32001, ["missing", "needed"]],
  ["QuotaExceeded", 429, -32005, ["retryAfter"]],
  ["Overloaded", 503, -32005, ["retryAfter"]],
  ["InvalidAddress", 400, -32602, ["address", "reason"]],
  ["TokenNotFound", 404, -32603, ["address", "contractType"]],
  ["UnknownAsset", 404, -32603, ["coin"]],
  ["HistoryUnavailable", 410, -32603, ["address", "after"]],
  ["ArchiveNotConfigured", 501, -32004, ["setting"]],
  ["ArchiveUnavailable", 503, -32603, ["reason"]],
  ["PayloadTooLarge", 413, -32600, ["limit"]],
  ["UpstreamUnavailable", 503, -32603, ["upstream", "retryAfter", "attempts"]],
  ["UpstreamRateLimited", 429, -32005, ["upstream", "retryAfter"]],
  ["UpstreamTimeout", 504, -32603, ["upstream", "deadline"]],
  ["UpstreamMalformed", 502, -32603, ["upstream", "issue"]],
  ["UpstreamForbidden", 502, -32004, ["upstream"]],
  ["CallReverted", 422, 3, ["upstream", "code", "data"]],
  ["OutcomeUnknown", 504, -32050, ["upstream", "nonce", "signer", "advice"]]
]

const kebab = (tag: string) => tag.replace(/[A-Z]/gu, (letter, at) => `${at === 0 ? "" : "-"}${letter.toLowerCase()}`)
const encode = Schema.encodeSync(GatewayError)
const decode = Schema.decodeUnknownSync(GatewayError)

describe("GatewayError", () => {
  it("is the documented set, in the documented order", () => {
    assert.deepStrictEqual(
      gatewayErrors.map((error) => error.identifier),
      table.map(([tag]) => tag)
    )
    assert.deepStrictEqual(Object.keys(rpcCodes), table.map(([tag]) => tag))
    assert.strictEqual(new Set(table.map(([tag]) => tag)).size, table.length)
  })

  it.each(table)("%s is HTTP %i and JSON-RPC %i", (tag, status, code) => {
    assert.strictEqual(encode(samples[tag]).status, status)
    assert.strictEqual(rpcCodes[tag], code)
  })

  it.each(table)("%s is a problem with its type, its tag and its fields", (tag, status, _code, fields) => {
    const body = encode(samples[tag])
    assert.strictEqual(body.type, `urn:trigate:problem:${kebab(tag)}`)
    assert.strictEqual(body._tag, tag)
    assert.strictEqual(body.status, status)
    assert.strictEqual(body.detail, "what happened, with \"quotes\" and \u20ac")
    assert.isString(body.title)
    assert.deepStrictEqual(
      Object.keys(body).toSorted(),
      ["_tag", "type", "title", "status", "detail", ...fields].toSorted()
    )
    for (const field of fields) {
      assert.deepStrictEqual(Reflect.get(body, field), Reflect.get(samples[tag], field), field)
    }
  })

  it.each(table)("%s comes back from its text as the same class with the same fields", (tag) => {
    const error = samples[tag]
    const again = decode(Result.getOrThrow(Json.parse(Json.stringify(encode(error)))))
    assert.strictEqual(again.constructor, error.constructor)
    assert.deepStrictEqual(again, error)
    assert.strictEqual(again.message, error.message)
  })

  it("has a title shared by all errors of a class, and every class its own type", () => {
    const bodies = table.map(([tag]) => encode(samples[tag]))
    assert.strictEqual(new Set(bodies.map(({ type }) => type)).size, table.length)
    assert.strictEqual(new Set(bodies.map(({ title }) => title)).size, table.length)
    assert.strictEqual(encode(new Unauthorized({})).title, encode(samples.Unauthorized).title)
  })

  it("leaves out what it does not know", () => {
    assert.deepStrictEqual(Object.keys(encode(new UpstreamRateLimited({ upstream: "layer2" }))).toSorted(), [
      "_tag",
      "status",
      "title",
      "type",
      "upstream"
    ])
    const unknown = new OutcomeUnknown({ upstream: "trading-api", advice: "Resend" })
    assert.deepStrictEqual(decode(encode(unknown)), unknown)
  })

  it.each([
    ["a body that is no problem", { error: "Not Found" }],
    ["an unknown tag", { ...encode(samples.UnknownAsset), _tag: "Surprise" }],
    ["a missing field", { ...encode(samples.UnknownAsset), coin: undefined }],
    ["a negative wait", { ...encode(samples.QuotaExceeded), retryAfter: -1 }],
    ["a wait of half a second", { ...encode(samples.QuotaExceeded), retryAfter: 0.5 }],
    ["a chain that is none", { ...encode(samples.ChainNotConfigured), chain: "bitcoin" }],
    ["null", null]
  ])("%s is none of them", (_name, body) => {
    assert.isTrue(Result.isFailure(Schema.decodeUnknownResult(GatewayError)(body)))
  })

  it.effect("is caught by its tag", () =>
    Effect.gen(function*() {
      const failing: Effect.Effect<never, GatewayError> = Effect.fail(samples.UnknownAsset)
      const coin = yield* Effect.catchTag(failing, "UnknownAsset", (error) => Effect.succeed(error.coin))
      assert.strictEqual(coin, "NOPE")
    }))
})

describe("CommonFailure", () => {
  it("holds what any call can end in", () => {
    assert.deepStrictEqual(commonFailures.map((error) => error.identifier), [
      "InvalidRequest",
      "UnsupportedMethod",
      "UnavailableOnNode",
      "ChainNotConfigured",
      "UpstreamUnavailable",
      "UpstreamRateLimited",
      "UpstreamTimeout",
      "UpstreamMalformed",
      "UpstreamForbidden",
      "QuotaExceeded"
    ])
  })

  it("and what a gateway refuses its callers with", () => {
    assert.deepStrictEqual(callerFailures.map((error) => error.identifier), [
      "Unauthorized",
      "NotPermitted",
      "QuotaExceeded",
      "Overloaded",
      "PayloadTooLarge"
    ])
    assert.deepStrictEqual(servedFailures, [...upstreamFailures, ...callerFailures])
    assert.deepStrictEqual(commonFailures, [...upstreamFailures, QuotaExceeded])
  })
})

describe("wrapReason", () => {
  const wrappers = new Map<string, string>([
    ...requestReasons.map(({ identifier }) => [identifier, "RequestError"] as const),
    ...upstreamReasons.map(({ identifier }) => [identifier, "UpstreamError"] as const)
  ])

  it("wraps each reason in its error, which reads like its reason, and leaves every other error", () => {
    for (const error of Object.values<GatewayError>(samples)) {
      const wrapped = wrapReason(error)
      assert.strictEqual(wrapped._tag, wrappers.get(error._tag) ?? error._tag)
      assert.deepStrictEqual([wrapped.message, wrapped.group], [error.message, error.group])
      assert.strictEqual<unknown>(unwrapReason(wrapped), error)
      // twice is once, so that a layer in between may wrap as well
      assert.strictEqual<unknown>(wrapReason(wrapped), wrapped)
      if (wrapped === error) continue
      assert.strictEqual(
        "retryAfter" in wrapped ? wrapped.retryAfter : undefined,
        "retryAfter" in error ? error.retryAfter : undefined
      )
    }
    assert.strictEqual(wrappers.size, requestReasons.length + upstreamReasons.length)
  })

  it("leaves what is not of the set", () => {
    const own = new Error("mine")
    assert.strictEqual(wrapReason(own), own)
    assert.strictEqual(unwrapReason(own), own)
  })

  it.effect("makes errors whose reasons Effect catches", () =>
    Effect.gen(function*() {
      const failing = <E>(error: E): Effect.Effect<string, E> => Effect.fail(error)
      const limited = failing(wrapReason(samples.UpstreamRateLimited))
      const quota = failing<RequestError | UpstreamError>(wrapReason(samples.QuotaExceeded))
      const wait = limited.pipe(
        Effect.catchReason(
          "UpstreamError",
          "UpstreamRateLimited",
          ({ retryAfter }) => Effect.succeed(`${retryAfter} s`)
        )
      )
      assert.strictEqual(yield* wait, "60 s")
      const other = quota.pipe(Effect.catchReason("RequestError", "NonceAlreadyUsed", () => Effect.succeed("sent")))
      assert.strictEqual((yield* Effect.flip(other)).retryAfter, 7)
    }))
})
