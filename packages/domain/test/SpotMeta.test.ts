import { assert, describe, it } from "@effect/vitest"
import { SpotMeta, SpotToken } from "@trigate/domain/info/Market"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import recorded from "./fixtures/spotMeta-testnet-full.json" with { type: "json" }

const decode = Schema.decodeUnknownSync(SpotMeta)
const encode = Schema.encodeSync(SpotMeta)
const decodeToken = Schema.decodeUnknownResult(SpotToken)

const usdc = recorded.tokens.find(({ index }) => index === 0)

describe("SpotMeta", () => {
  it("reads a whole recorded answer and writes it back unchanged", () => {
    const meta = decode(recorded)
    assert.strictEqual(meta.universe.length, 1193)
    assert.strictEqual(meta.tokens.length, 1508)
    assert.deepStrictEqual<unknown>(encode(meta), recorded)
  })

  it("keeps negative extra decimals and the share", () => {
    const token = Result.getOrThrow(decodeToken(usdc))
    assert.strictEqual(token.evmContract?.evm_extra_wei_decimals, -2)
    assert.strictEqual(token.deployerTradingFeeShare, "0.0")
  })

  it("keeps fields that are not documented", () => {
    const meta = { universe: [], tokens: [{ ...usdc, later: { a: [1] } }], more: "x" }
    assert.deepStrictEqual<unknown>(encode(decode(meta)), meta)
  })

  it("takes a token without the share or without evmContract, refuses one with a short tokenId", () => {
    const { deployerTradingFeeShare: _share, ...withoutShare } = usdc ?? assert.fail("no token 0")
    const { evmContract: _contract, ...withoutContract } = withoutShare
    assert.isTrue(Result.isSuccess(decodeToken(withoutShare)))
    assert.isTrue(Result.isFailure(decodeToken({ ...withoutShare, tokenId: "0x6d1e" })))
    assert.isTrue(Result.isSuccess(decodeToken(withoutContract)))
  })

  it.effect.prop("what is written reads back and is written the same", [SpotMeta], ([meta]) =>
    Effect.sync(() => {
      const text = JSON.stringify(encode(meta))
      // V8 13.6 misreads a key of one character that is an escape
      if (/"\\(?:u[0-9a-f]{4}|.)":/u.test(text)) return
      assert.strictEqual(JSON.stringify(encode(decode(JSON.parse(text)))), text)
    }))
})
