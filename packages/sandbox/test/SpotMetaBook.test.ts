import { assert, describe, it } from "@effect/vitest"
import * as SpotLookup from "@trigate/domain/info/Market"
import { SpotMeta } from "@trigate/domain/info/Market"
import { markets } from "@trigate/sandbox/unstable/venue/Assets"
import * as SpotMetaBook from "@trigate/sandbox/unstable/venue/TradingControls"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"

const meta = SpotMetaBook.makeSpotMeta("trigate")

describe("SpotMetaBook", () => {
  it("decodes, and is the same for a seed", () => {
    assert.deepStrictEqual(Schema.decodeUnknownSync(SpotMeta)(JSON.parse(JSON.stringify(meta))), meta)
    assert.deepStrictEqual(SpotMetaBook.makeSpotMeta("trigate"), meta)
    assert.notDeepEqual(SpotMetaBook.makeSpotMeta("other"), meta)
  })

  it("has gaps in both indexes, and unique ids", () => {
    for (const rows of [meta.tokens, meta.universe]) {
      const indexes = rows.map(({ index }) => index)
      assert.deepStrictEqual(indexes, indexes.toSorted((a, b) => a - b))
      assert.strictEqual(new Set(indexes).size, rows.length)
      assert.isAbove(indexes.at(-1) ?? 0, rows.length)
    }
    assert.strictEqual(new Set(meta.tokens.map(({ tokenId }) => tokenId)).size, meta.tokens.length)
  })

  it.each(["trigate", "other", "0"])(
    "lists both tokens of each pair, at the position of their index, under seed %s",
    (seed) => {
      const { tokens, universe } = SpotMetaBook.makeSpotMeta(seed)
      for (const pair of universe) {
        assert.deepStrictEqual(pair.tokens.map((index) => tokens[index]?.index), [...pair.tokens], pair.name)
      }
    }
  )

  it("knows the spot coins that have candles", () => {
    const names = new Set(meta.universe.map(({ name }) => name))
    for (const { coin } of markets.filter(({ coin }) => coin.startsWith("@") || coin.includes("/"))) {
      assert.isTrue(names.has(coin), coin)
    }
    const lookup = SpotLookup.make(meta)
    const hype = Option.getOrThrow(lookup.tokensOf(Option.getOrThrow(lookup.pair(107))).base)
    assert.strictEqual(hype.name, "HYPE")
    assert.strictEqual(hype.weiDecimals, 8)
  })

  it("has the oddities of the real one", () => {
    assert.isTrue(meta.tokens.some(({ name }) => name.endsWith(" ")))
    assert.isTrue(meta.tokens.some(({ evmContract }) => (evmContract?.evm_extra_wei_decimals ?? 0) < 0))
    assert.isTrue(meta.tokens.some(({ evmContract }) => evmContract === null))
    assert.isTrue(meta.universe.some(({ tokens }) => tokens[1] !== 0))
    assert.isAbove(meta.universe.length, 200)
  })
})
