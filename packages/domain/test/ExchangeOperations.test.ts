import { assert, describe, it } from "@effect/vitest"
import * as Action from "@trigate/domain/actions/Action"
import { actionCatalog } from "@trigate/domain/actions/Action"
import type { SentAction } from "@trigate/domain/actions/Action"
import { gatewayErrors, NonceOutOfWindow } from "@trigate/domain/errors/GatewayError"
import * as Operation from "@trigate/domain/operations/Operation"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import recorded from "./fixtures/exchange-bodies.json" with { type: "json" }

const outcome = (answer: Operation.UpstreamResponse) => Effect.runSync(Effect.result(Action.readOutcome(answer)))
const failure = (answer: Operation.UpstreamResponse) =>
  Result.match(outcome(answer), { onFailure: (error) => error, onSuccess: () => assert.fail("accepted") })
const rejection = (answer: Operation.UpstreamResponse) => {
  const error = failure(answer)
  return error._tag === "ActionRejected" ? error : assert.fail(error._tag)
}
const venue = (status: number, body: unknown) => Operation.json("trading-api", status, JSON.stringify(body))
const recordedBody = (id: string) => {
  const found = recorded.bodies.find((body) => body.id === id) ?? assert.fail(id)
  return venue(found.http, found.body)
}
const problem = (
  status: number,
  body: unknown
): Operation.UpstreamResponse => (venue(status, body).with({
  contentType: "application/problem+json; charset=utf-8"
}))

describe("the operations", () => {
  it("every action of the catalog is sent at most once, by the venue's API only, for a weight of one", () => {
    const operations = Action.exchangeOperations
    assert.deepStrictEqual(operations.map(({ name }) => name), Object.keys(actionCatalog))
    for (const operation of operations) {
      assert.strictEqual(Action.findOperation(operation.name), operation)
      assert.strictEqual(operation.class, "once")
      assert.deepStrictEqual(operation.sources, ["official-api"])
      assert.strictEqual(Operation.responseWeight(operation, 0), 1)
      assert.deepStrictEqual(Operation.sourcesOn(operation, "node"), [])
    }
  })

  it("the types outside the catalog share one name", () => {
    for (const type of ["fromTheFuture", "Order", "toString", "__proto__", ""]) {
      assert.strictEqual(Action.findOperation(type).name, "exchange")
    }
  })

  it("a batch of n entries weighs 1 + n / 40, rounded down, inside a multi-sig too", () => {
    const weight = (action: SentAction) => Operation.responseWeight(Action.operationFor(action), 0)
    for (const [n, expected] of [[0, 1], [1, 1], [39, 1], [40, 2], [79, 2], [80, 3], [1000, 26]] as const) {
      const entries = Array.from({ length: n }, () => ({}))
      for (
        const action of [
          { type: "order", orders: entries },
          { type: "cancel", cancels: entries },
          { type: "cancelByCloid", cancels: entries },
          { type: "batchModify", modifies: entries }
        ]
      ) {
        assert.strictEqual(weight(action), expected)
        assert.strictEqual(weight({ type: "multiSig", payload: { action } }), expected)
      }
    }
    // members of other types, and what the venue would refuse
    for (
      const action of [
        { type: "noop", orders: Array.from({ length: 80 }) },
        { type: "order", orders: { length: 80 } },
        { type: "order" },
        { type: "multiSig", payload: null },
        { type: "multiSig", payload: { action: { orders: [] } } },
        { type: "fromTheFuture", orders: Array.from({ length: 80 }) }
      ]
    ) assert.strictEqual(weight(action), 1)
  })
})

describe("readOutcome", () => {
  for (const { body, http, id } of recorded.bodies.filter(({ http }) => http === 200)) {
    it(`${id} is ${body?.status === "ok" ? "accepted" : "refused"}`, () => {
      const read = outcome(venue(http, body))
      if (body?.status === "ok") {
        const { entries: _entries, ...accepted } = Result.getOrThrowWith(read, (error) => error)
        assert.strictEqual(JSON.stringify(accepted), JSON.stringify(body))
      } else {
        assert.isTrue(Result.isFailure(read) && read.failure._tag === "ActionRejected")
      }
    })
  }

  it("a refusal keeps the venue's text", () => {
    assert.strictEqual(rejection(recordedBody("err-lab-04")).message, "Nonce mismatch.")
    assert.strictEqual(rejection(recordedBody("err-lab-04")).reason, "NonceMismatch")
  })

  it("an unknown status is a refusal that keeps the whole answer", () => {
    assert.strictEqual(rejection(venue(200, { status: "error" })).message, "{\"status\":\"error\"}")
    assert.strictEqual(rejection(venue(200, { status: "err", response: { a: 1 } })).message, "{\"a\":1}")
  })

  it("HTTP 422 is a refused shape, whatever the words", () => {
    const text = "Failed to deserialize the JSON body into the target type: missing field `wei`"
    assert.strictEqual(rejection(Operation.plain("trading-api", 422, text)).reason, "ShapeRefused")
    assert.strictEqual(rejection(Operation.plain("trading-api", 422, text)).message, text)
    assert.strictEqual(rejection(Operation.plain("trading-api", 422, "?")).reason, "ShapeRefused")
  })

  it("HTTP 429 is the upstream's limit, with what it said about waiting", () => {
    const error = failure(Operation.json("trading-api", 429, "null").with({ retryAfter: 7 }))
    assert.strictEqual(error._tag, "UpstreamRateLimited")
    if (error._tag === "UpstreamRateLimited") assert.strictEqual(error.retryAfter, 7)
  })

  it("other 4xx are certain refusals", () => {
    assert.strictEqual(failure(Operation.plain("trading-api", 400, "bad"))._tag, "InvalidRequest")
    assert.strictEqual(failure(Operation.plain("trading-api", 404, "no"))._tag, "UpstreamUnavailable")
  })

  it("a server fault and an answer that does not decode leave the outcome open", () => {
    const answers = [
      Operation.json("trading-api", 500, "null"),
      Operation.plain("trading-api", 502, "Bad gateway"),
      Operation.plain("trading-api", 200, "not json"),
      Operation.json("trading-api", 200, "{\"status\":\"ok\"}"),
      Operation.json("trading-api", 200, "[]"),
      Operation.json("trading-api", 204, ""),
      problem(503, { type: "urn:other:problem" })
    ]
    for (const answer of answers) {
      const error = Effect.runSync(Effect.flip(Action.readOutcome(answer, { nonce: 17 })))
      assert.strictEqual(error._tag, "OutcomeUnknown")
      if (error._tag === "OutcomeUnknown") {
        assert.strictEqual(error.nonce, 17)
        assert.strictEqual(error.advice, Action.resendAdvice)
      }
    }
  })

  it("a gateway's problem is the error that it was", () => {
    const error = new NonceOutOfWindow({ nonce: 1, now: 5, earliest: 2, latest: 9 })
    const read = failure(problem(422, Schema.encodeSync(NonceOutOfWindow)(error)))
    assert.instanceOf(read, NonceOutOfWindow)
    if (read._tag === "NonceOutOfWindow") assert.deepStrictEqual([read.nonce, read.earliest, read.latest], [1, 2, 9])
  })

  // a quota or a permission there is that of this gateway, and not of its caller
  const ofThisGateway = new Map<string, string>([
    ["QuotaExceeded", "UpstreamRateLimited"],
    ["NotPermitted", "UpstreamForbidden"]
  ])

  it.effect.prop(
    "every error that the operation lists comes back from a gateway as itself",
    [Action.ExchangeFailure],
    ([error]) =>
      Effect.sync(() => {
        const body = Schema.encodeSync(Action.ExchangeFailure)(error)
        assert.strictEqual(failure(problem(error.status, body))._tag, ofThisGateway.get(error._tag) ?? error._tag)
      })
  )

  it("lists every error of an action that travels", () => {
    const listed = new Set<unknown>(Action.exchangeFailures)
    for (
      const tag of [
        "NonceOutOfWindow",
        "NonceMismatch",
        "NonceAlreadyUsed",
        "InvalidSignature",
        "SignerNotAllowed",
        "PolicyViolation"
      ]
    ) {
      assert.isTrue(gatewayErrors.some((error) => error.name === tag && listed.has(error)), tag)
    }
  })
})
