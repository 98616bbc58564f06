/** What the response to an action says of each of its legs. */
import { assert, describe, it } from "@effect/vitest"
import { legCount, legCountIn, readOutcome, write } from "@trigate/domain/actions/Action"
import type { SentAction } from "@trigate/domain/actions/Action"
import type { ActionResult } from "@trigate/domain/actions/ActionOutcome"
import { ActionEntry, legRejection, requireAll } from "@trigate/domain/actions/ActionOutcome"
import * as UpstreamResponse from "@trigate/domain/operations/Operation"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import recorded from "./fixtures/exchange-bodies.json" with { type: "json" }

const read = (response: string, legs?: number) =>
  readOutcome(
    UpstreamResponse.json("trading-api", 200, `{"status":"ok","response":${response}}`),
    legs === undefined ? {} : { legs }
  )

const entries = (response: string, legs?: number) => Effect.map(read(response, legs), ({ entries }) => entries)

const batch = (...statuses: ReadonlyArray<string>) => `{"type":"order","data":{"statuses":[${statuses.join(",")}]}}`

const single = (type: string, status: string) => `{"type":"${type}","data":{"status":${status}}}`

const cloid = "0x1234567890abcdef1234567890abcdef"
const tooSmall = {
  _tag: "Rejected",
  reason: "MinimumNotional",
  message: "Order must have minimum value of $10."
} as const
const tooSmallText = `{"error":"Order must have minimum value of $10."}`

describe("the entries of a response", () => {
  const statuses: ReadonlyArray<readonly [status: string, entry: ActionEntry]> = [
    [`{"resting":{"oid":77738308}}`, { _tag: "Resting", oid: 77_738_308 }],
    [`{"resting":{"oid":18446744073709551615}}`, { _tag: "Resting", oid: 2n ** 64n - 1n }],
    [`{"resting":{"oid":1,"cloid":"${cloid}"}}`, { _tag: "Resting", oid: 1, cloid }],
    [
      `{"filled":{"totalSz":"0.02","avgPx":"1891.40","oid":77747314,"cloid":"${cloid}"}}`,
      { _tag: "Filled", oid: 77_747_314, totalSz: "0.02", avgPx: "1891.40", cloid }
    ],
    [`"waitingForFill"`, { _tag: "Waiting", kind: "waitingForFill" }],
    [`"waitingForTrigger"`, { _tag: "Waiting", kind: "waitingForTrigger" }],
    [`"success"`, { _tag: "Done" }],
    [tooSmallText, tooSmall],
    [`{"error":"Never seen"}`, { _tag: "Rejected", reason: "Unclassified", message: "Never seen" }],
    [`{"running":{"twapId":77738308}}`, { _tag: "Done", twapId: 77_738_308 }],
    [`"someday"`, { _tag: "Unrecognised", raw: "someday" }],
    [`{"resting":{}}`, { _tag: "Unrecognised", raw: { resting: {} } }],
    [`{"filled":{"oid":1}}`, { _tag: "Unrecognised", raw: { filled: { oid: 1 } } }],
    [`{"error":7}`, { _tag: "Unrecognised", raw: { error: 7 } }],
    ["null", { _tag: "Unrecognised", raw: null }]
  ]

  it.effect.each(statuses)("one status: %s", ([status, entry]) =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* entries(batch(status)), [entry])
      assert.deepStrictEqual(yield* entries(single("twapOrder", status)), [entry])
    }))

  it.effect("stand in the order of the batch", () =>
    Effect.gen(function*() {
      const found = yield* entries(batch(...statuses.map(([status]) => status)), statuses.length)
      assert.deepStrictEqual(found, statuses.map(([, entry]) => entry))
    }))

  it.effect("without data every leg is done, as where the data is an address", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* entries(`{"type":"default"}`), [{ _tag: "Done" }])
      assert.deepStrictEqual(yield* entries(`{"type":"default"}`, 2), [{ _tag: "Done" }, { _tag: "Done" }])
      assert.deepStrictEqual(yield* entries(`{"type":"createSubAccount","data":"0x1234"}`), [{ _tag: "Done" }])
    }))

  it.effect("one error for a whole batch rejects every leg", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* entries(batch(tooSmallText), 3), [tooSmall, tooSmall, tooSmall])
    }))

  it.effect("fewer statuses of another kind belong to no leg, and nothing is claimed of any", () =>
    Effect.gen(function*() {
      for (const statuses of [[`"success"`], [`{"resting":{"oid":1}}`, tooSmallText], []]) {
        const raw: unknown = JSON.parse(`{"statuses":[${statuses.join(",")}]}`)
        const unrecognised = { _tag: "Unrecognised", raw } as const
        assert.deepStrictEqual(yield* entries(batch(...statuses), 3), [unrecognised, unrecognised, unrecognised])
      }
    }))

  it.effect("data of another form is unrecognised, and kept", () =>
    Effect.gen(function*() {
      for (const data of [`{"statuses":"all"}`, `{"results":[]}`, `[1]`]) {
        const found = yield* entries(`{"type":"order","data":${data}}`)
        assert.deepStrictEqual(found, [{ _tag: "Unrecognised", raw: JSON.parse(data) }])
      }
    }))

  it.effect("more statuses than legs are all entries", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* entries(batch(`"success"`, tooSmallText), 1), [{ _tag: "Done" }, tooSmall])
      assert.deepStrictEqual(yield* entries(batch(tooSmallText), 0), [tooSmall])
    }))

  for (const { body, id } of recorded.bodies) {
    if (body?.status !== "ok") continue
    it.effect(`of ${id} leave nothing unrecognised`, () =>
      Effect.gen(function*() {
        const result = yield* readOutcome(UpstreamResponse.json("trading-api", 200, JSON.stringify(body)))
        assert.deepStrictEqual(JSON.parse(JSON.stringify(result.response)), body.response)
        assert.strictEqual(result.entries.length, 1)
        assert.isFalse(result.entries.some(ActionEntry.guards.Unrecognised))
      }))
  }
})

describe("requireAll", () => {
  const result = (response: string, legs?: number): ActionResult => Effect.runSync(read(response, legs))

  it("returns the result if no leg was refused", () => {
    const resting = result(batch(`{"resting":{"oid":1}}`, `"someday"`), 2)
    assert.deepStrictEqual(Effect.runSync(requireAll(resting)), resting)
    assert.deepStrictEqual(legRejection(resting), Option.none())
  })

  it("fails with the first reason, the texts of all, every entry and the whole response", () => {
    const mixed = result(
      batch(`{"resting":{"oid":1}}`, tooSmallText, `"success"`, `{"error":"other"}`, tooSmallText),
      5
    )
    const error = Effect.runSync(Effect.flip(requireAll(mixed)))
    assert.strictEqual(error._tag, "ActionRejected")
    assert.deepStrictEqual(
      [error.reason, error.message, error.response, error.entries],
      ["MinimumNotional", `${tooSmall.message}; other`, mixed.response, mixed.entries]
    )
  })
})

describe("legs", () => {
  const counts: ReadonlyArray<readonly [action: SentAction, legs: number]> = [
    [{ type: "order", orders: [{}, {}, {}] }, 3],
    [{ type: "cancel", cancels: [{}, {}] }, 2],
    [{ type: "cancelByCloid", cancels: [{}] }, 1],
    [{ type: "batchModify", modifies: [{}, {}, {}, {}] }, 4],
    [{ type: "modify", oid: 1, order: {} }, 1],
    [{ type: "multiSig", payload: { action: { type: "order", orders: [{}, {}] } } }, 2],
    [{ type: "evmUserModify", usingBigBlocks: true }, 1]
  ]
  it.each(counts)("%o has %i", (action, legs) => {
    assert.strictEqual(legCount(action), legs)
    assert.strictEqual(legCountIn(JSON.stringify({ action })), legs)
  })

  it("of what is not a body are one", () => {
    for (const text of ["", "null", "[]", "{}", `{"action":null}`]) assert.strictEqual(legCountIn(text), 1)
  })
})

describe("the body of a signed action", () => {
  const signature = { r: "0x1", s: "0x2", v: 27 } as const

  it("has the members of the action in their order at every level, and every digit", () => {
    const action = {
      zeta: { b: 1, a: 18_446_744_073_709_551_615n, type: "inner" },
      type: "fromTheFuture",
      alpha: [{ y: null, x: "1.0" }]
    }
    assert.strictEqual(
      Effect.runSync(write({ action, nonce: 7, signature, expiresAfter: 9 })),
      `{"action":{"zeta":{"b":1,"a":18446744073709551615,"type":"inner"},"type":"fromTheFuture",` +
        `"alpha":[{"y":null,"x":"1.0"}]},"nonce":7,"signature":{"r":"0x1","s":"0x2","v":27},"expiresAfter":9}`
    )
  })

  it("is not written for an envelope outside its ranges", () => {
    const error = Effect.runSync(Effect.flip(write({ action: { type: "order" }, nonce: -1, signature })))
    assert.deepStrictEqual(error.errors.map(({ path }) => path), [["nonce"]])
  })

  it.effect.prop(
    "has any action exactly as it is given",
    [Schema.Record(Schema.String, Schema.Union([Schema.String, Schema.Int, Schema.Boolean, Schema.Null]))],
    ([members]) =>
      Effect.gen(function*() {
        const action = { ...members, type: "any" }
        const body = yield* write({ action, nonce: 1, signature })
        assert.isTrue(body.startsWith(`{"action":${JSON.stringify(action)},"nonce":1,`), body)
      })
  )
})
