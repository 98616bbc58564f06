/** `Orders` over scripted calls: the action that is signed, and the result for each outcome of a lost response. */
import { assert, describe, it } from "@effect/vitest"
import { type AnySignedAction, resendAdvice, type SubmitFailure } from "@trigate/domain/actions/Action"
import { type ActionRecord, ActionRejected, type ActionResult } from "@trigate/domain/actions/ActionOutcome"
import { type Resolution, stillUnknown } from "@trigate/domain/actions/Resolution"
import * as GatewayError from "@trigate/domain/errors/GatewayError"
import * as NonceSource from "@trigate/signing/NonceSource"
import * as Orders from "@trigate/signing/Orders"
import * as Signer from "@trigate/signing/Signer"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/testing/TestClock"

const key = Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
const signer = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
const master = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"
const cloid = "0x1234567890abcdef1234567890abcdef"

const resting = { _tag: "Resting", oid: 7, cloid } as const
const accepted = (...entries: ActionResult["entries"]): ActionResult => ({
  status: "ok",
  response: { type: "order" },
  entries
})

const lost = new GatewayError.OutcomeUnknown({ upstream: "trading-api", advice: resendAdvice })

const unreachable = new GatewayError.UpstreamUnavailable({ upstream: "gateway", attempts: 1 })

const unlisted = Effect.die(new Error("not part of these tests"))

const info: Orders.Calls["info"] = {
  meta: ({ dex = "" }) =>
    Effect.succeed({
      universe: dex === ""
        ? [{ name: "BTC", szDecimals: 5, maxLeverage: 40 }, { name: "ETH", szDecimals: 4, maxLeverage: 25 }]
        : []
    }),
  outcomeMeta: () => unlisted,
  perpDexs: () => unlisted,
  spotMeta: () => unlisted,
  allMids: () => Effect.succeed({ BTC: "60000", ETH: "2468.15" }),
  userRole: () => Effect.succeed({ role: "agent", data: { user: master } })
}

interface Script {
  readonly submit?: Effect.Effect<ActionResult, SubmitFailure>
  readonly resolve?: Effect.Effect<Resolution, ReturnType<ReturnType<typeof stillUnknown>>>
  readonly records?: ReadonlyArray<"unreachable" | ActionRecord["state"] | Pick<ActionRecord, "state" | "settled">>
}

/** Makes `Orders` over the script. `sent` has each call that sends something or waits. */
const scripted = ({ records = [], resolve = unlisted, submit = Effect.succeed(accepted(resting)) }: Script) =>
  Effect.gen(function*() {
    const sent: Array<readonly [call: string, detail: unknown]> = []
    const bodies: Array<AnySignedAction> = []
    const left = [...records]
    const orders = yield* Orders.make({
      info,
      submit: (body) => {
        bodies.push(body)
        sent.push(["submit", body.action.type])
        return submit
      },
      resolve: (body) => {
        sent.push(["resolve", body === bodies[0]])
        return resolve
      },
      outcome: (reference, { wait }) =>
        Effect.suspend((): ReturnType<Orders.Calls["outcome"]> => {
          sent.push(["outcome", Duration.toMillis(wait)])
          const nonce = bodies[0]?.nonce ?? 0
          assert.deepStrictEqual(reference, { signer, nonce })
          const next = left.shift()
          if (next === undefined) return new GatewayError.ActionNotFound({ detail: "not sent" })
          if (next === "unreachable") return new GatewayError.UpstreamError({ reason: unreachable })
          const state = typeof next === "string" ? { state: next } : next
          return Effect.succeed({ id: "0x1", nonce, ...state })
        })
    })
    return { orders, sent, bodies }
  })

const provide = Effect.provide(
  Layer.mergeAll(Signer.layerPrivateKey(key), NonceSource.layerMemory(), VenueProfile.layer("mainnet"))
)

const limit = { coin: "ETH", side: "buy", sizeInBase: "0.2", priceInQuote: "1100.5" } as const

describe("the action", () => {
  it.effect("has the asset of the coin, the next nonce, and a client order ID", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(1_767_225_600_000)
      const { bodies, orders } = yield* scripted({})
      const placed = yield* orders.place(limit)
      yield* orders.place({ ...limit, cloid }, { expiresAfter: 1_767_225_601_000 })
      const { nonce } = placed
      assert.deepStrictEqual(placed, { ...resting, signer, nonce, settledBy: "response" })
      const [first, second] = bodies
      const wire = { a: 1, b: true, p: "1100.5", s: "0.2", r: false, t: { limit: { tif: "Gtc" } } }
      assert.deepInclude(first?.action, { type: "order", grouping: "na" })
      assert.deepStrictEqual(second?.action, { type: "order", orders: [{ ...wire, c: cloid }], grouping: "na" })
      assert.match(JSON.stringify(first?.action), /"c":"0x[0-9a-f]{32}"/u)
      assert.deepStrictEqual([first?.nonce, second?.nonce], [1_767_225_600_000, 1_767_225_600_001])
      assert.deepStrictEqual([first?.expiresAfter, second?.expiresAfter], [undefined, 1_767_225_601_000])
    }).pipe(provide))

  it.effect("is a market order without a price: filled at once or cancelled, at most 5 % from the mid price", () =>
    Effect.gen(function*() {
      const { bodies, orders } = yield* scripted({})
      yield* orders.placeAll([
        { coin: "ETH", side: "buy", sizeInBase: "0.2", cloid },
        { coin: "BTC", side: "sell", sizeInBase: "0.1", cloid, slippagePercent: 1, reduceOnly: true }
      ])
      assert.deepInclude(bodies[0]?.action, {
        orders: [
          { a: 1, b: true, p: "2591.5", s: "0.2", r: false, t: { limit: { tif: "Ioc" } }, c: cloid },
          { a: 0, b: false, p: "59400", s: "0.1", r: true, t: { limit: { tif: "Ioc" } }, c: cloid }
        ]
      })
    }).pipe(provide))

  it.effect("cancels by the venue's order ID or by the client order ID", () =>
    Effect.gen(function*() {
      const { bodies, orders } = yield* scripted({ submit: Effect.succeed(accepted({ _tag: "Done" })) })
      const { _tag } = yield* orders.cancel({ coin: "ETH", oid: 7 })
      yield* orders.cancel({ coin: "BTC", cloid })
      assert.strictEqual(_tag, "Done")
      assert.deepStrictEqual(bodies.map(({ action }) => action), [
        { type: "cancel", cancels: [{ a: 1, o: 7 }] },
        { type: "cancelByCloid", cancels: [{ asset: 0, cloid }] }
      ])
    }).pipe(provide))

  it.effect("is not sent for an unknown coin or a malformed price", () =>
    Effect.gen(function*() {
      const { orders, sent } = yield* scripted({})
      const error = yield* Effect.flip(orders.place({ ...limit, coin: "ETHX" }))
      assert.instanceOf(error, Orders.NotSent)
      assert.strictEqual(error.reason._tag, "UnknownAsset")
      assert.strictEqual(error.message, `Not sent: Unknown coin "ETHX": did you mean "ETH"?`)
      assert.deepStrictEqual(sent, [])
      const shape = yield* Effect.flip(orders.place({ ...limit, priceInQuote: "1e3" }))
      assert(shape._tag === "NotSent" && shape.reason._tag === "UnsignableAction")
      assert.deepStrictEqual(shape.reason.path, ["orders", 0, "priceInQuote"])
      assert.deepStrictEqual(sent, [])
    }).pipe(provide))
})

describe("an order that the venue refuses", () => {
  const refused = {
    _tag: "Rejected",
    reason: "MinimumNotional",
    message: "Order must have minimum value of $10"
  } as const

  it.effect("fails alone, and is an entry among others", () =>
    Effect.gen(function*() {
      const { orders } = yield* scripted({ submit: Effect.succeed(accepted(refused)) })
      const error = yield* Effect.flip(orders.place(limit))
      assert.instanceOf(error, ActionRejected)
      assert.strictEqual(error.reason, "MinimumNotional")
      assert.deepStrictEqual((yield* orders.placeAll([limit])).entries, [refused])
    }).pipe(provide))
})

describe("a lost response", () => {
  const settled = { by: "orderStatus", entries: [resting] } as const
  const rejection = new ActionRejected({ reason: "NonceDuplicate", message: "Invalid nonce: duplicate nonce" })
  const wrongShape = new ActionRejected({ reason: "ShapeRefused", message: "Failed to deserialize" })
  const unknown = stillUnknown({ upstream: "trading-api" })(lost)

  it.effect("has the outcome that the venue's state shows, without a resend", () =>
    Effect.gen(function*() {
      const { orders, sent } = yield* scripted({ submit: lost, records: [{ state: "accepted", settled }] })
      const placed = yield* orders.place(limit)
      assert.deepStrictEqual([placed._tag, placed.settledBy], ["Resting", "venueState"])
      assert.deepStrictEqual(sent, [["submit", "order"], ["outcome", 10_000]])
    }).pipe(provide))

  it.effect("has the outcome that a gateway shows after its restart", () =>
    Effect.gen(function*() {
      const records = ["unreachable", "unreachable", { state: "accepted", settled }] as const
      const { orders, sent } = yield* scripted({ submit: lost, records })
      const placing = yield* Effect.forkChild(orders.place(limit))
      while (placing.pollUnsafe() === undefined) yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Fiber.join(placing)).settledBy, "venueState")
      assert.deepStrictEqual(sent, [["submit", "order"], ["outcome", 10_000], ["outcome", 10_000], ["outcome", 10_000]])
    }).pipe(provide))

  it.effect("has the outcome of the identical bytes that are sent again", () =>
    Effect.gen(function*() {
      const resolve = Effect.succeed({ _tag: "Accepted", result: accepted(resting) } as const)
      const { orders, sent } = yield* scripted({ submit: lost, records: ["unknown"], resolve })
      const placed = yield* orders.place(limit, { wait: "2 seconds" })
      assert.deepStrictEqual([placed._tag, placed.settledBy], ["Resting", "resend"])
      assert.deepStrictEqual(sent, [["submit", "order"], ["outcome", 2000], ["resolve", true]])
    }).pipe(provide))

  it.effect("shows the order after a duplicate nonce, if the gateway knows it by then", () =>
    Effect.gen(function*() {
      const resolve = Effect.succeed({ _tag: "Landed", rejection } as const)
      const found = yield* scripted({ submit: lost, resolve, records: ["unknown", { state: "accepted", settled }] })
      assert.strictEqual((yield* found.orders.place(limit))._tag, "Resting")
      const other = yield* scripted({ submit: lost, resolve })
      const placed = yield* other.orders.place(limit)
      assert.deepStrictEqual([placed._tag, placed.settledBy], ["Unrecognised", "resend"])
    }).pipe(provide))

  for (
    const [title, script, reason] of [
      ["has expired", { records: ["neverArrived"] }, "Expired"],
      ["was refused", { records: ["rejected"] }, "Unclassified"],
      [
        "is refused, now and before",
        { resolve: Effect.succeed<Resolution>({ _tag: "Rejected", rejection: wrongShape }) },
        "ShapeRefused"
      ]
    ] as const
  ) {
    it.effect(`fails if the action ${title}`, () =>
      Effect.gen(function*() {
        const { orders } = yield* scripted({ submit: lost, ...script })
        const error = yield* Effect.flip(orders.place(limit))
        assert.instanceOf(error, ActionRejected)
        assert.strictEqual(error.reason, reason)
      }).pipe(provide))
  }

  it.effect("is not assumed after a refusal by the gateway; a used nonce shows no outcome", () =>
    Effect.gen(function*() {
      const refused = (reason: GatewayError.RequestReason) =>
        scripted({ submit: new GatewayError.RequestError({ reason }) }).pipe(
          Effect.flatMap(({ orders }) => Effect.flip(orders.place(limit))),
          Effect.map((error) => ["reason" in error && Predicate.isTagged(error.reason, reason._tag), error._tag])
        )
      const policy = new GatewayError.PolicyViolation({ rule: "orderNotional", detail: "too large" })
      const used = new GatewayError.NonceAlreadyUsed({ nonce: 1, signer, detail: "used" })
      assert.deepStrictEqual(yield* refused(policy), [true, "NotSent"])
      assert.deepStrictEqual(yield* refused(used), [true, "StillUnknown"])
    }).pipe(provide))

  it.effect("fails with StillUnknown if nothing shows the outcome", () =>
    Effect.gen(function*() {
      const { orders } = yield* scripted({ submit: lost, resolve: unknown })
      assert.strictEqual(yield* Effect.flip(orders.place(limit)), unknown)
    }).pipe(provide))
})

it.effect("an API wallet signs for its master account", () =>
  Effect.gen(function*() {
    const { orders } = yield* scripted({})
    assert.deepStrictEqual([orders.signer, yield* orders.account], [signer, master])
  }).pipe(provide))
