import { assert, describe, it } from "@effect/vitest"
import * as SignedAction_ from "@trigate/domain/actions/Action"
import type { SignedAction } from "@trigate/domain/actions/Action"
import * as Json from "@trigate/domain/encoding/Encoding"
import * as ActionBuilder from "@trigate/signing/actions/ActionBuilder"
import * as Signer from "@trigate/signing/Signer"
import * as SignerRecovery from "@trigate/signing/unstable/actions/CanonicalAction"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"

const key = Redacted.make(`0x${"5".repeat(64)}`)

const nonce = 1_705_234_567_890

const validator = "0x5AC99DF645F3414876C816CAA18B2D234024B487"

const vaultAddress = "0x1719884EB866CB12B2287399B15F7DB5E7D775EA"

/** The body as another process reads it, with who signed it. */
const sent = Effect.fnUntraced(function*(profile: VenueProfile.VenueProfile, body: object) {
  const text = Json.stringify(body)
  const read = Result.getOrThrow(Json.parseStrict(text))
  const signed = yield* Schema.decodeUnknownEffect(SignedAction_.SignedEnvelope)(read)
  const { signer } = yield* Signer.Signer.use(({ address }) => Effect.succeed({ signer: address }))
  assert.strictEqual((yield* SignerRecovery.recover(profile, signed)).signer, signer)
  assert.isTrue(Result.isSuccess(Schema.decodeUnknownResult(SignedAction_.SignedAction)(read)), text)
  return { ...signed, text }
})

const provideFor = (network: VenueProfile.Network) =>
  Effect.provide(Layer.merge(Signer.layerPrivateKey(key), VenueProfile.layer(network)))
const provide = provideFor("mainnet")

const reason = <A, R>(body: Effect.Effect<A, ActionBuilder.BuildFailure, R>) =>
  Effect.map(Effect.flip(body), (error) => {
    assert(error._tag === "UnsignableAction", error._tag)
    return [error.reason, error.path.join(".")]
  })

describe("ActionBuilder", () => {
  for (const profile of [VenueProfile.mainnet, VenueProfile.testnet]) {
    it.effect(`builds the stake actions of ${profile.name}, wei exact to 2^64 - 1`, () =>
      Effect.gen(function*() {
        const stake = { validator, wei: 2n ** 64n - 1n, nonce } as const
        const body: SignedAction = yield* ActionBuilder.delegate(stake)
        const read = yield* sent(profile, body)
        assert.isTrue(read.text.includes("\"wei\":18446744073709551615,"))
        assert.deepStrictEqual(read.action, {
          type: "tokenDelegate",
          signatureChainId: "0x66eee",
          hyperliquidChain: profile.chainName,
          validator: validator.toLowerCase(),
          wei: 2n ** 64n - 1n,
          isUndelegate: false,
          nonce
        })
        const back = yield* sent(
          profile,
          yield* ActionBuilder.undelegate({ ...stake, wei: 1n, signatureChainId: "0xA4B1" })
        )
        assert.strictEqual(back.action["isUndelegate"], true)
        assert.strictEqual(back.action["signatureChainId"], "0xa4b1")
        assert.strictEqual(back.action["wei"], 1)
      }).pipe(provideFor(profile)))

    it.effect(`builds the L1 actions of ${profile.name}, with vault and expiry`, () =>
      Effect.gen(function*() {
        const options = { nonce, vaultAddress, expiresAfter: nonce + 1000 } as const
        const bodies: ReadonlyArray<readonly [SignedAction, unknown]> = [
          [yield* ActionBuilder.jailSelf(options), { type: "CSignerAction", jailSelf: null }],
          [yield* ActionBuilder.unjailSelf(options), { type: "CSignerAction", unjailSelf: null }],
          [yield* ActionBuilder.useBigBlocks(options), { type: "evmUserModify", usingBigBlocks: true }],
          [yield* ActionBuilder.useSmallBlocks(options), { type: "evmUserModify", usingBigBlocks: false }]
        ]
        for (const [body, action] of bodies) {
          const read = yield* sent(profile, body)
          assert.deepStrictEqual<unknown>(read.action, action)
          assert.strictEqual(read.vaultAddress, vaultAddress.toLowerCase())
          assert.strictEqual(read.expiresAfter, nonce + 1000)
        }
        const { signature: _, ...rest } = yield* ActionBuilder.jailSelf({ nonce })
        assert.deepStrictEqual<unknown>(rest, { action: { type: "CSignerAction", jailSelf: null }, nonce })
      }).pipe(provideFor(profile)))
  }

  it.effect("signs any other L1 action in the order it is given", () =>
    Effect.gen(function*() {
      const action = { type: "cancel", cancels: [{ a: 10_107, o: 2n ** 63n }], note: "é", none: null }
      const body = yield* ActionBuilder.signL1(action, { nonce })
      assert.deepStrictEqual(body.action, action)
      const read = Result.getOrThrow(Json.parseStrict(Json.stringify(body)))
      const signed = yield* Schema.decodeUnknownEffect(SignedAction_.SignedEnvelope)(read)
      const { address } = yield* Signer.Signer
      assert.strictEqual((yield* SignerRecovery.recover(VenueProfile.mainnet, signed)).signer, address)
    }).pipe(provide))

  it.effect("refuses what cannot be signed so", () =>
    Effect.gen(function*() {
      const { delegate, signL1 } = ActionBuilder
      const stake = { validator, wei: 1n, nonce } as const
      for (const wei of [0n, -1n, 2n ** 64n]) {
        assert.deepStrictEqual(yield* reason(delegate({ ...stake, wei })), ["shape", "wei"])
      }
      assert.deepStrictEqual(yield* reason(delegate({ ...stake, validator: "0x12" })), ["shape", "validator"])
      assert.deepStrictEqual(yield* reason(delegate({ ...stake, nonce: 1.5 })), ["shape", "nonce"])
      assert.deepStrictEqual(
        yield* reason(delegate({ ...stake, signatureChainId: "0x" })),
        ["shape", "signatureChainId"]
      )
      const { action } = yield* delegate(stake)
      assert.deepStrictEqual(yield* reason(signL1(action, { nonce })), ["shape", "type"])
      assert.deepStrictEqual(
        yield* reason(signL1({ type: "evmUserModify", modifications: [] }, { nonce })),
        ["documentedForm", "modifications"]
      )
      assert.deepStrictEqual(
        yield* reason(signL1({ type: "noop" }, { nonce, vaultAddress: "0x12" })),
        ["shape", "vaultAddress"]
      )
      const error = yield* Effect.flip(signL1({ type: "noop", at: Number.NaN }, { nonce }))
      assert.strictEqual(error._tag, "MsgPackUnencodable")
    }).pipe(provide))
})
