import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import { DetectedAddress, TokenContract, TokenData } from "@trigate/domain/tokens/TokenData"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

import methods from "./fixtures/ton-address-methods.json" with { type: "json" }
import documented from "./fixtures/ton-getTokenData-documented-onchain.json" with { type: "json" }
import wallets from "./fixtures/ton-getTokenData-jetton-wallets.json" with { type: "json" }
import jusdt from "./fixtures/ton-getTokenData-jusdt.json" with { type: "json" }
import nft from "./fixtures/ton-getTokenData-nft-item.json" with { type: "json" }
import usdt from "./fixtures/ton-getTokenData-usdt.json" with { type: "json" }

const decode = Schema.decodeUnknownEffect(TokenContract)
const decodeToken = Schema.decodeUnknownEffect(TokenData)

const token = {
  name: "Tether USD",
  symbol: "USD₮",
  decimals: 6,
  totalSupply: "1030000002000000",
  mintable: true,
  burnable: true,
  address: "EQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_sDs",
  metadata: "offchain"
}

describe("TokenData", () => {
  it.effect("is the documented flat resource, name and symbol optional", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual<unknown>({ ...(yield* decodeToken(token)) }, token)
      const { name: _name, symbol: _symbol, ...bare } = token
      assert.deepStrictEqual<unknown>({ ...(yield* decodeToken({ ...bare, metadata: "unresolved" })) }, {
        ...bare,
        metadata: "unresolved"
      })
    }))

  const refused = [
    ["a supply that is a number", { totalSupply: 1 }],
    ["a supply with leading zeros", { totalSupply: "01" }],
    ["a negative supply", { totalSupply: "-1" }],
    ["256 decimals", { decimals: 256 }],
    ["negative decimals", { decimals: -1 }],
    ["broken decimals", { decimals: 1.5 }],
    ["an address with a wrong checksum", { address: "EQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_sDt" }],
    ["another origin of the metadata", { metadata: "guessed" }]
  ] as const
  for (const [what, change] of refused) {
    it.effect(`refuses ${what}`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(decodeToken({ ...token, ...change }))
        assert.include(error.message, Object.keys(change)[0] ?? "")
      }))
  }
})

describe("TokenContract", () => {
  it.effect("reads a recorded master of the old servers, whose supply is a number", () =>
    Effect.gen(function*() {
      const { total_supply, ...rest } = usdt.body.result
      assert.deepStrictEqual<unknown>({ ...(yield* decode(usdt.body.result)) }, {
        ...rest,
        total_supply: BigInt(total_supply)
      })
    }))

  it.effect("reads a master whose contract_type is missing", () =>
    Effect.gen(function*() {
      const read = yield* decode(jusdt.body.result)
      assert.strictEqual(read.contract_type, "jetton_master")
      assert(read.contract_type === "jetton_master")
      assert.strictEqual(read.total_supply, 1256732342639n)
      assert.isFalse("admin_address" in read)
    }))

  it.effect("reads the documented example", () =>
    Effect.gen(function*() {
      const read = yield* decode(documented.body.result)
      assert(read.contract_type === "jetton_master")
      assert.strictEqual(read.total_supply, 1000000000000000n)
      assert.deepStrictEqual<unknown>({ ...read.jetton_content }, documented.body.result.jetton_content)
    }))

  it.effect("reads wallets with all digits of a balance above 2^64", () =>
    Effect.gen(function*() {
      const balances = yield* Effect.forEach(wallets.items, (item) => decode(item.result))
      assert.deepStrictEqual<unknown>(
        balances.map((read) => read.contract_type === "jetton_wallet" ? read.balance : undefined),
        [531187790649145n, 110294396653795195302063n]
      )
    }))

  it.effect("reads NFT items of both families, 256-bit index included", () =>
    Effect.gen(function*() {
      const old = yield* decode(nft.body.result)
      assert(old.contract_type === "nft_item")
      assert.strictEqual(old.index, 0n)
      const recent = yield* decode(nft.fromStack.body.result)
      assert(recent.contract_type === "nft_item")
      assert.strictEqual(
        recent.index,
        17026683442852985036293000817890672620529067535828542797724775561309021470835n
      )
      assert.deepStrictEqual<unknown>(recent.content, nft.fromStack.body.result.content)
    }))

  it.effect("reads a collection that numbers nothing", () =>
    Effect.gen(function*() {
      const read = yield* decode({ contract_type: "nft_collection", next_item_index: -1, collection_content: {} })
      assert(read.contract_type === "nft_collection")
      assert.strictEqual(read.next_item_index, -1n)
    }))

  it.effect("keeps every digit of a supply that came as a JSON number above 2^53", () =>
    Effect.gen(function*() {
      const text = `{"total_supply":123456789012345678901234567890,"mintable":false}`
      const read = yield* decode(yield* Effect.fromResult(Json.parse(text)))
      assert(read.contract_type === "jetton_master")
      assert.strictEqual(read.total_supply, 123456789012345678901234567890n)
      const written = yield* Schema.encodeEffect(TokenContract)(read)
      assert.strictEqual(written.total_supply, "123456789012345678901234567890")
    }))

  it.effect("refuses a supply that lost its digits", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(decode({ contract_type: "jetton_master", total_supply: 1e30, mintable: true }))
      assert.include(error.message, "total_supply")
    }))
})

describe("DetectedAddress", () => {
  it.effect("reads the recorded bodies whole", () =>
    Effect.gen(function*() {
      const recorded = methods.calls.filter((call) => call.method === "detectAddress")
      assert.strictEqual(recorded.length, 2)
      for (const { body } of recorded) {
        const read = yield* Schema.decodeUnknownEffect(DetectedAddress)(body.result)
        assert.deepStrictEqual<unknown>({ ...read }, body.result)
      }
    }))
})
