/** Signed actions of any type through `submit` and `resolve`: the bytes that are sent, and the entry of each leg. */
import { assert, describe, it } from "@effect/vitest"
import { SignedEnvelope } from "@trigate/domain/actions/Action"
import type { AnySignedAction } from "@trigate/domain/actions/Action"
import { requireAll } from "@trigate/domain/actions/ActionOutcome"
import * as Json from "@trigate/domain/encoding/Encoding"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as ActionBuilder from "@trigate/signing/actions/ActionBuilder"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as Signer from "@trigate/signing/Signer"
import * as SignerRecovery from "@trigate/signing/unstable/actions/CanonicalAction"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import { flipReason } from "@trigate/testing/Reason"
import * as ScriptedTransport from "@trigate/testing/ScriptedTransport"
import * as ActionLogMemory from "@trigate/trading/actionLog/ActionLogMemory"
import { Exchange } from "@trigate/trading/Exchange"
import * as TradingUpstream from "@trigate/trading/TradingUpstream"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { now, unanswered } from "./actionLogSuite.ts"
import * as admission from "./admission.ts"

const order = { asset: 0, side: "buy", priceInQuote: "60000", sizeInBase: "0.001" } as const
const cloid = "0x1234567890abcdef1234567890abcdef"
const options = { nonce: now }

/** An action of an application, whose type is an interface and not an object type. */
interface OwnAction {
  readonly type: string
  readonly zeta: bigint
  readonly alpha: { readonly y: boolean; readonly x: null }
}

// `type` comes last: the venue hashes the members of a type that is not known here in the order of the body
const own: OwnAction = { zeta: 2n ** 64n - 1n, alpha: { y: true, x: null }, type: "fromTheFuture" }

const actions = {
  placeOrders: ActionBuilder.placeOrders({ orders: [order, { ...order, cloid }] }, options),
  cancelOrders: ActionBuilder.cancelOrders([{ asset: 0, orderId: 2n ** 63n }], { ...options, fast: true }),
  cancelOrdersByCloid: ActionBuilder.cancelOrdersByCloid([{ asset: 0, cloid }], { ...options, fast: true }),
  modifyOrder: ActionBuilder.modifyOrder({ order: cloid, to: order }, options),
  modifyOrders: ActionBuilder.modifyOrders([{ order: 7, to: order }], options),
  signL1: ActionBuilder.signL1(own, { ...options, vaultAddress: keys.multiSigUser.address, expiresAfter: now + 1 }),
  delegate: ActionBuilder.delegate({ validator: keys.validator.address, wei: 2n ** 64n - 1n, nonce: now })
}

const signing = Layer.mergeAll(
  Signer.layerPrivateKey(Redacted.make(keys.trader.privateKey)),
  VenueProfile.layer("mainnet"),
  Secp256k1.layer
)

/** A body whose action has its members in the order of the bytes. */
const readBody = Schema.decodeUnknownSync(Schema.Struct({ ...SignedEnvelope.fields, action: Schema.Unknown }))

const taken = (response: string) => ScriptedTransport.response(200, `{"status":"ok","response":${response}}`)
const statuses = (...each: ReadonlyArray<string>) => taken(`{"type":"order","data":{"statuses":[${each.join(",")}]}}`)

const resting = `{"resting":{"oid":77738308,"cloid":"${cloid}"}}`
const tooSmall = `{"error":"Order must have minimum value of $10. asset=0"}`
const refusedLeg = {
  _tag: "Rejected",
  reason: "MinimumNotional",
  message: "Order must have minimum value of $10. asset=0"
} as const
const restingLeg = { _tag: "Resting", oid: 77_738_308, cloid } as const

/** The service before a venue that reacts to one request after the other. */
const venue = (...reactions: ReadonlyArray<ScriptedTransport.Reaction>) => {
  let at = 0
  const transport = ScriptedTransport.make(() => reactions[at++] ?? assert.fail("one request too many"))
  const exchange = TradingUpstream.layerExchange({ api: ["https://venue.example"] }).pipe(
    Layer.provide([admission.layer({ relayActions: "all" }), transport.layer]),
    Layer.provideMerge(ActionLogMemory.layer())
  )
  return {
    transport,
    run: <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.andThen(TestClock.setTime(now), effect).pipe(Effect.provide([exchange, signing]))
  }
}

const submit = (signed: AnySignedAction) => Exchange.use((exchange) => exchange.submit(signed))

describe("submit", () => {
  for (const [name, action] of Object.entries(actions)) {
    it.effect(`sends what ${name} signed: the bytes recover to the trader, here and by the venue's rules`, () => {
      const { run, transport } = venue(taken(`{"type":"default"}`))
      return run(Effect.gen(function*() {
        const signed = yield* action
        yield* submit(signed)
        const body = transport.sent[0]?.body ?? assert.fail("nothing sent")
        assert.strictEqual(body, Json.stringify(signed))
        // the members of the action in the order of the bytes
        const sent = readBody(Result.getOrThrow(Json.parse(body)))
        const { signer } = yield* SignerRecovery.recover(VenueProfile.mainnet, sent)
        assert.strictEqual(signer, keys.trader.address)
        const again = yield* flipReason(submit(signed))
        assert.strictEqual(again._tag, "NonceAlreadyUsed")
        if (again._tag === "NonceAlreadyUsed") assert.strictEqual(again.signer, keys.trader.address)
      }))
    })
  }

  it.effect("returns an entry for each order, in order; a refused one is not hidden, and the nonce is used", () => {
    const { run, transport } = venue(statuses(resting, tooSmall))
    return run(Effect.gen(function*() {
      const signed = yield* actions.placeOrders
      const result = yield* submit(signed)
      assert.deepStrictEqual(result.entries, [restingLeg, refusedLeg])
      const error = yield* flipReason(requireAll(result))
      assert.deepInclude(error, { reason: "MinimumNotional", entries: result.entries, response: result.response })
      assert.lengthOf(yield* unanswered, 0)
      assert.strictEqual((yield* flipReason(submit(signed)))._tag, "NonceAlreadyUsed")
      assert.lengthOf(transport.sent, 1)
    }))
  })

  it.effect("reads one error for the whole batch as a refusal of each order", () => {
    const { run } = venue(statuses(tooSmall))
    return run(Effect.gen(function*() {
      const { entries } = yield* submit(yield* actions.placeOrders)
      assert.deepStrictEqual(entries, [refusedLeg, refusedLeg])
    }))
  })

  it.effect("fails if the venue refuses the whole action, without entries", () => {
    const { run } = venue(ScriptedTransport.response(200, `{"status":"err","response":"Order has zero size."}`))
    return run(Effect.gen(function*() {
      const error = yield* flipReason(submit(yield* actions.placeOrders))
      assert.strictEqual(error._tag, "ActionRejected")
      assert.deepInclude(error, { reason: "LotSize", message: "Order has zero size." })
      assert.notProperty(error, "entries")
    }))
  })
})

describe("resolve", () => {
  it.effect("returns the entries of an action that is accepted now, a refused leg among them", () => {
    const { run, transport } = venue(ScriptedTransport.broken, statuses(resting, tooSmall))
    return run(Effect.gen(function*() {
      const signed = yield* actions.placeOrders
      assert.strictEqual((yield* flipReason(submit(signed)))._tag, "OutcomeUnknown")
      const resolution = yield* Exchange.use(({ resolve }) => resolve(signed))
      assert.strictEqual(resolution._tag, "Accepted")
      if (resolution._tag === "Accepted") assert.deepStrictEqual(resolution.result.entries, [restingLeg, refusedLeg])
      assert.lengthOf(yield* unanswered, 0)
      assert.strictEqual(transport.sent[1]?.body, transport.sent[0]?.body)
    }))
  })
})
