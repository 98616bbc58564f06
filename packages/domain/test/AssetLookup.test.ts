import { assert, describe, it } from "@effect/vitest"
import { closestWord } from "@trigate/domain/errors/Problem"
import * as AssetLookup from "@trigate/domain/info/Market"
import * as Option from "effect/Option"

const perpetual = (name: string, szDecimals: number) => ({ name, szDecimals, maxLeverage: 5 })

const token = (name: string, index: number, szDecimals: number) => ({
  name,
  szDecimals,
  weiDecimals: 8,
  index,
  tokenId: `0x${String(index).padStart(32, "0")}`,
  isCanonical: false,
  evmContract: null,
  fullName: null
})

const pair = (name: string, index: number, tokens: readonly [number, number]) => ({
  name,
  index,
  tokens,
  isCanonical: false
})

const spotMeta = {
  universe: [pair("PURR/USDC", 0, [1, 0]), pair("@107", 107, [150, 0]), pair("@9", 9, [7, 0]), pair("@8", 8, [8, 0])],
  tokens: [token("USDC", 0, 8), token("PURR", 1, 0), token("HYPE", 150, 2), token("TWIN", 7, 1), token("TWIN", 8, 1)]
}

const dex = (name: string) => ({
  name,
  fullName: name,
  deployer: `0x${"1".repeat(40)}`,
  oracleUpdater: null
} as const)

const dexes = [null, dex("abc"), dex("xyz")]

describe("the asset that a coin names", () => {
  it("is a perpetual by its place in the list, on a builder's dex from 100000 on", () => {
    const universe = [perpetual("BTC", 5), perpetual("ETH", 4)]
    assert.deepStrictEqual(
      AssetLookup.perpetual({ universe }, [], "ETH"),
      Option.some({ id: 1, coin: "ETH", szDecimals: 4, market: "perp" })
    )
    const built = { universe: [perpetual("xyz:A", 2), perpetual("xyz:B", 3)] }
    assert.deepStrictEqual(
      AssetLookup.perpetual(built, dexes, "xyz:B"),
      Option.some({ id: 120_001, coin: "xyz:B", szDecimals: 3, market: "perp" })
    )
    assert.deepStrictEqual(AssetLookup.perpetual(built, [null], "xyz:B"), Option.none())
    assert.deepStrictEqual(AssetLookup.perpetual({ universe }, [], "eth"), Option.none())
  })

  it("is a spot pair by the venue's name, or by its tokens if only one pair has them", () => {
    const hype = Option.some({ id: 10_107, coin: "@107", szDecimals: 2, market: "spot" } as const)
    assert.deepStrictEqual(AssetLookup.spot(spotMeta, "@107"), hype)
    assert.deepStrictEqual(AssetLookup.spot(spotMeta, "HYPE/USDC"), hype)
    assert.deepStrictEqual(
      AssetLookup.spot(spotMeta, "PURR/USDC"),
      Option.some({ id: 10_000, coin: "PURR/USDC", szDecimals: 0, market: "spot" })
    )
    assert.deepStrictEqual(AssetLookup.spot(spotMeta, "TWIN/USDC"), Option.none())
    assert.deepStrictEqual(AssetLookup.spot(spotMeta, "@1"), Option.none())
  })

  it("is the side of a listed outcome: ten times its number plus 0 or 1, in whole sizes", () => {
    const meta = {
      outcomes: [{
        outcome: 5,
        name: "",
        description: "",
        sideSpecs: [{ name: "template:Yes" }, { name: "template:No" }]
      }]
    }
    assert.deepStrictEqual(
      AssetLookup.outcome(meta, "#51"),
      Option.some({ id: 100_000_051, coin: "#51", szDecimals: 0, market: "spot" })
    )
    for (const coin of ["#52", "#5", "#60", "#051", "#", "51"]) {
      assert.deepStrictEqual(AssetLookup.outcome(meta, coin), Option.none(), coin)
    }
  })

  it("is of a listed dex, by its exact name", () => {
    assert.strictEqual(
      AssetLookup.unknownDex("XYZ:XYZ100", dexes)?.detail,
      `Unknown dex "XYZ" in coin "XYZ:XYZ100": did you mean "xyz:XYZ100"?`
    )
    assert.isUndefined(AssetLookup.unknownDex("xyz:XYZ100", dexes))
    assert.isUndefined(AssetLookup.unknownDex("BTC", []))
  })
})

describe("did you mean", () => {
  const coins = ["BTC", "ETH", "HYPE", "kPEPE"]

  it.each(
    [
      ["btc", "BTC"],
      ["HYPPE", "HYPE"],
      ["KPEPE", "kPEPE"],
      ["XYZ", undefined],
      ["", undefined],
      ["B".repeat(65), undefined]
    ] as const
  )("%s: %s", (word, meant) => {
    assert.strictEqual(closestWord(word, coins), meant)
  })
})
