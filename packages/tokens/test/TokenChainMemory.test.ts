import { assert, describe, layer } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import * as TonAddress from "@trigate/domain/tokens/TokenData"
import { TokenData } from "@trigate/domain/tokens/TokenData"
import { tokenRpcOperations } from "@trigate/domain/tokens/TokenOperations"
import * as TokenRpc from "@trigate/domain/unstable/tokens/TokenProtocol"
import { TokenChain } from "@trigate/tokens/TokenChain"
import * as TokenChainMemory from "@trigate/tokens/TokenChainMemory"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"

const usdt = Result.getOrThrow(TonAddress.parse("EQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_sDs"))
const address = TonAddress.canonical(usdt)
const other = TonAddress.canonical({ workchain: -1, hash: "3".repeat(64) })

const token: TokenData = {
  name: "Tether USD",
  symbol: "USD₮",
  decimals: 6,
  totalSupply: "123456789012345678901234567890",
  mintable: true,
  burnable: true,
  address,
  metadata: "onchain"
}

describe("TokenChainMemory", () => {
  layer(TokenChainMemory.layer())((it) => {
    it.effect("answers every token as it was put in, by any form of its address", () =>
      Effect.gen(function*() {
        const { jettons } = yield* TokenChainMemory.TokenChainState
        const chain = yield* TokenChain
        const { name: _name, symbol: _symbol, ...nameless } = token
        const kinds: ReadonlyArray<TokenData> = [
          token,
          { ...token, metadata: "offchain" },
          { ...token, metadata: "unresolved", decimals: 9 },
          { ...nameless, metadata: "unresolved", decimals: 0, mintable: false, totalSupply: "0" }
        ]
        const forms = [
          address,
          TonAddress.formatRaw(usdt),
          TonAddress.format(usdt, { bounceable: false, urlSafe: false })
        ]
        for (const kind of kinds) {
          yield* Ref.set(jettons, [kind])
          for (const form of forms) {
            assert.deepStrictEqual(yield* chain.getTokenData({ address: form }), kind)
          }
        }
      }))

    it.effect.prop("answers any token as it was put in", [TokenData], ([any]) =>
      Effect.gen(function*() {
        const { jettons } = yield* TokenChainMemory.TokenChainState
        const account = Result.getOrThrow(TonAddress.parse(any.address))
        // what a contract cannot tell: another burnable, empty names, and decimals that nobody could read
        const put: TokenData = {
          ...any,
          name: `n${any.name ?? ""}`,
          symbol: `s${any.symbol ?? ""}`,
          decimals: any.metadata === "unresolved" ? 9 : any.decimals,
          burnable: true,
          address: TonAddress.canonical(account)
        }
        yield* Ref.set(jettons, [put])
        assert.deepStrictEqual(yield* (yield* TokenChain).getTokenData({ address: any.address }), put)
      }))

    it.effect("knows other kinds of contract, and what is no contract", () =>
      Effect.gen(function*() {
        const { contracts, jettons } = yield* TokenChainMemory.TokenChainState
        const chain = yield* TokenChain
        yield* Ref.set(jettons, [token])
        yield* Ref.set(contracts, [{
          address: other,
          contract: { contract_type: "nft_item", init: true, index: 2n ** 255n }
        }])
        const item = yield* Effect.flip(chain.getTokenData({ address: other }))
        assert(item._tag === "TokenNotFound")
        assert.deepStrictEqual([item.address, item.contractType], [other, "nft_item"])
        const contract = yield* chain.getTokenContract({ address: other })
        assert(contract.contract_type === "nft_item")
        assert.strictEqual(contract.index, 2n ** 255n)
        assert.strictEqual(contract["@type"], "ext.tokens.nftItemData")
        const master = yield* chain.getTokenContract({ address })
        assert(master.contract_type === "jetton_master")
        assert.strictEqual(master.total_supply, 123456789012345678901234567890n)
        const nobody = TonAddress.canonical({ workchain: 0, hash: "4".repeat(64) })
        const none = yield* Effect.flip(chain.getTokenData({ address: nobody }))
        assert(none._tag === "TokenNotFound")
        assert.deepStrictEqual([none.address, none.contractType], [nobody, "none"])
      }))

    it.effect("packs, unpacks and detects addresses as the newer servers do", () =>
      Effect.gen(function*() {
        const chain = yield* TokenChain
        const raw = TonAddress.formatRaw(usdt)
        const wallet = TonAddress.format(usdt, { bounceable: false, testOnly: true })
        assert.strictEqual(yield* chain.packAddress({ address: raw }), address)
        assert.strictEqual(yield* chain.packAddress({ address: wallet }), wallet)
        assert.strictEqual(yield* chain.unpackAddress({ address: wallet }), raw)
        assert.deepStrictEqual(yield* chain.detectAddress({ address: wallet }), {
          "@type": "ext.utils.detectedAddress",
          raw_form: raw,
          bounceable: {
            b64: TonAddress.format(usdt, { testOnly: true, urlSafe: false }),
            b64url: TonAddress.format(usdt, { testOnly: true })
          },
          non_bounceable: {
            b64: TonAddress.format(usdt, { bounceable: false, testOnly: true, urlSafe: false }),
            b64url: wallet
          },
          given_type: "friendly_non_bounceable",
          test_only: true
        })
      }))

    it.effect("answers other methods with the results that it was given", () =>
      Effect.gen(function*() {
        const { results } = yield* TokenChainMemory.TokenChainState
        const chain = yield* TokenChain
        const call = {
          operation: tokenRpcOperations.getMasterchainInfo,
          params: Json.strict("{}"),
          surface: "gateway"
        } as const
        const missing = yield* chain.relay(call)
        const error = yield* Effect.flip(Effect.asVoid(TokenRpc.makeReader(call.operation)({}, "token-chain", missing)))
        assert.strictEqual(error._tag, "UnsupportedMethod")
        yield* Ref.set(results, new Map([["getMasterchainInfo", `{"last":{"seqno":1}}`]]))
        assert.strictEqual(
          TokenRpc.answerText("7", yield* chain.relay(call)),
          `{"ok":true,"result":{"last":{"seqno":1}},"@extra":"0:0:0","jsonrpc":"2.0","id":7}`
        )
      }))
  })
})
