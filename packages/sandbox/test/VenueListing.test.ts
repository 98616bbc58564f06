import { assert, describe, it } from "@effect/vitest"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as Genesis from "@trigate/sandbox/SandboxState"
import { markets, printPrice } from "@trigate/sandbox/unstable/venue/Assets"
import type { CandleMarket } from "@trigate/sandbox/unstable/venue/Assets"
import { bars as barsOf, dayStatistics } from "@trigate/sandbox/unstable/venue/CandleBars"
import { maintenanceMargin, makeBook } from "@trigate/sandbox/unstable/venue/Margin"
import * as SpotMetaBook from "@trigate/sandbox/unstable/venue/TradingControls"
import * as VenueInfo from "@trigate/sandbox/unstable/venue/VenueInfo"
import * as VenueMarkets from "@trigate/sandbox/unstable/venue/VenueMarkets"
import type { InfoView } from "@trigate/sandbox/unstable/venue/VenueState"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import { markOf } from "./trader.ts"
import { start } from "./venue.ts"

const seed = "trigate"
const state = Genesis.genesisInfo(seed, SpotMetaBook.makeSpotMeta(seed))
const viewAt = (now: number): InfoView => ({
  seed,
  ...state,
  now,
  venue: Genesis.genesisVenue,
  trading: Genesis.genesisTrading(seed, state, now)
})
const listing = viewAt(start)

const ask = (query: unknown, now = start) => {
  const { body, status } = VenueInfo.answer(viewAt(now), new TextEncoder().encode(JSON.stringify(query)))
  const text = new TextDecoder().decode(body)
  return { status, text, json: (): unknown => JSON.parse(text) }
}

const marketOf = (name: string): CandleMarket => {
  const found = markets.find(({ coin }) => coin === name)
  assert.isDefined(found)
  return found
}

describe("what is listed", () => {
  it("is the venue's perpetuals in one universe, a builder's in another", () => {
    const { universe } = VenueMarkets.meta(listing, "") ?? assert.fail()
    const ids = { BTC: 0, ETH: 1, MATIC: 3, SOL: 5, kPEPE: 15, HYPE: 159, ANIME: 176, JELLY: 179, SKR: 227 }
    assert.deepStrictEqual(
      Object.keys(ids).map((coin) => universe.findIndex(({ name }) => name === coin)),
      Object.values(ids)
    )
    assert.deepStrictEqual([universe.length, universe.filter(({ isDelisted }) => isDelisted).length], [228, 38])
    assert.deepStrictEqual(universe[3], {
      szDecimals: 1,
      name: "MATIC",
      maxLeverage: 20,
      marginTableId: 20,
      isDelisted: true
    })
    const namesIn = (dex: string) => VenueMarkets.meta(listing, dex)?.universe.map(({ name }) => name)
    assert.deepStrictEqual(["xyz", "flx", "km"].map(namesIn), [
      ["xyz:XYZ100", "xyz:GOLD", "xyz:TSLA", "xyz:NVDA"],
      ["flx:TSLA", "flx:OIL"],
      ["km:US500", "km:GOOGL"]
    ])
    const collateral = ["", "xyz", "km"].map((dex) => VenueMarkets.meta(listing, dex)?.collateralToken)
    assert.deepStrictEqual(collateral, [0, 0, 360])
    const [least] = VenueMarkets.meta(listing, "")?.marginTables ?? []
    assert.deepStrictEqual(least, [3, { description: "", marginTiers: [{ lowerBound: "0.0", maxLeverage: 3 }] }])
    assert.deepInclude(universe[176], {
      maxLeverage: 3,
      marginTableId: 3,
      marginMode: "strictIsolated"
    })
    assert.deepStrictEqual(
      ["BTC", "ETH", "SOL", "HYPE", "kPEPE", "XRP", "BNB", "DOGE", "ARB"].map((coin) => {
        const { marginTableId, maxLeverage } = universe.find(({ name }) => name === coin) ?? assert.fail(coin)
        return [coin, maxLeverage, marginTableId]
      }),
      [
        ["BTC", 40, 56],
        ["ETH", 25, 55],
        ["SOL", 20, 54],
        ["HYPE", 10, 52],
        ["kPEPE", 10, 52],
        ["XRP", 20, 53],
        ["BNB", 10, 51],
        ["DOGE", 10, 52],
        ["ARB", 10, 51]
      ]
    )
    assert.deepStrictEqual(universe.find(({ name }) => name === "LTC"), {
      szDecimals: 2,
      name: "LTC",
      maxLeverage: 10,
      marginTableId: 52
    })
    assert.deepStrictEqual(VenueMarkets.meta(listing, "")?.marginTables?.find(([id]) => id === 52), [52, {
      description: "tiered 10x (2)",
      marginTiers: [{ lowerBound: "0.0", maxLeverage: 10 }, { lowerBound: "20000000.0", maxLeverage: 5 }]
    }])
    assert.deepStrictEqual(ask({ type: "meta" }).json(), VenueMarkets.meta(listing, ""))
    assert.deepStrictEqual(ask({ type: "meta", dex: "nope" }).text, "null")
    assert.strictEqual(ask({ type: "meta", dex: "nope" }).status, 500)
  })

  it("has tiers: a larger position needs more margin, and only for the part above a tier's bound", () => {
    const ltc = listing.trading.listing.byCoin.get("LTC")
    const margin = (size: bigint, mark: bigint) =>
      ltc?.kind === "perpetual"
        ? maintenanceMargin(ltc, {
          size,
          entry: 0n,
          isCross: true,
          leverage: 10,
          raw: 0n,
          funding: { allTime: 0n, sinceOpen: 0n, sinceChange: 0n }
        }, mark)
        : undefined
    const million = 10n ** 12n
    assert.deepStrictEqual([10n, 20n, -30n].map((size) => margin(size, million)), [
      million / 2n,
      million,
      2n * million
    ])
  })

  it("names builders after a null for the venue itself", () => {
    const [own, builder, other, ...rest] = VenueMarkets.perpDexs(listing)
    assert.isNull(own)
    assert.strictEqual(builder?.name, "xyz")
    assert.deepStrictEqual(builder?.assetToStreamingOiCap, [
      ["xyz:XYZ100", "100000000.0"],
      ["xyz:GOLD", "100000000.0"],
      ["xyz:TSLA", "100000000.0"],
      ["xyz:NVDA", "100000000.0"]
    ])
    assert.deepStrictEqual([other, ...rest].map((each) => each?.name), ["flx", "km"])
  })

  it("is not yet there before its listing", () => {
    const before = viewAt(marketOf("xyz:XYZ100").listedAt)
    assert.deepStrictEqual(VenueMarkets.perpDexs(before), [null])
    assert.isUndefined(VenueMarkets.metaAndContexts(before, "xyz"))
    assert.isNull(VenueMarkets.l2Book(before, "xyz:XYZ100"))
  })

  it("has the contexts of spot pairs at their index, holes included", () => {
    const [meta, contexts] = VenueMarkets.spotMetaAndContexts(listing)
    assert.strictEqual(meta, state.spotMeta)
    assert.isArray(contexts)
    const pairs = Array.isArray(contexts) ? contexts : []
    assert.deepStrictEqual(
      pairs.map(({ coin }) => coin),
      pairs.map((_, index) => index === 0 ? "PURR/USDC" : `@${index}`)
    )
    assert.strictEqual(pairs.length, 298)
    const names = new Set(state.spotMeta.universe.map(({ name }) => name))
    assert.deepStrictEqual(
      pairs.filter(({ midPx }) => midPx !== null).map(({ coin }) => coin),
      pairs.map(({ coin }) => coin).filter((coin) => names.has(coin))
    )
  })
})

describe("prices", () => {
  it("are those of the candles, now and a day ago", () => {
    for (const market of [...state.markets.values()].filter((_, at) => at < 19 || at % 60 === 0)) {
      const { before, price } = dayStatistics(seed, market, start)
      const bars = barsOf(
        seed,
        market,
        { coin: market.coin, interval: "1m", startTime: start - 24 * 3_600_000, endTime: start },
        start
      )
      assert.strictEqual(Number(bars.at(-1)?.c), Number(printPrice(market, price)), market.coin)
      assert.closeTo(Number(bars[0]?.o), before, before * 0.01, market.coin)
    }
  })

  it("lie between the best levels of a book, which has 20 a side, in order", () => {
    for (const market of state.markets.values()) {
      const [bids, asks] = makeBook(seed, market, start)
      const { price } = dayStatistics(seed, market, start)
      const up = [...bids.toReversed(), ...asks].map(({ px }) => Number(px))
      assert.strictEqual(up.length, 40, market.coin)
      assert.deepStrictEqual(up, [...new Set(up)].toSorted((a, b) => a - b), market.coin)
      assert.isTrue(Number(bids[0]?.px) < price && price < Number(asks[0]?.px), market.coin)
    }
  })

  it("keep their steps where the book crosses a power of ten", () => {
    const market = { ...marketOf("HYPE"), asset: "still", price: 9.9999, volatility: 0 }
    const [bids, asks] = makeBook(seed, market, start)
    assert.deepStrictEqual([bids[0]?.px, asks[0]?.px, asks[1]?.px], ["9.9989", "10.001", "10.002"])
  })

  it("are middle prices by coin", () => {
    const mids = VenueMarkets.allMids(listing, "")
    assert.deepStrictEqual(Object.keys(mids).slice(0, 5), ["BTC", "ETH", "ATOM", "DYDX", "SOL"])
    assert.deepStrictEqual(
      new Set(Object.keys(mids)),
      new Set(
        [
          ...VenueMarkets.meta(listing, "")?.universe.filter(({ isDelisted }) => isDelisted !== true) ?? [],
          ...state.spotMeta.universe
        ].map(({ name }) => name)
      )
    )
    assert.deepStrictEqual(Object.keys(VenueMarkets.allMids(listing, "flx")), ["flx:TSLA", "flx:OIL"])
    assert.deepStrictEqual(VenueMarkets.allMids(listing, "nope"), {})
  })
})

describe("a book", () => {
  it("is null where nothing trades, and joined by digits on demand", () => {
    assert.deepStrictEqual(ask({ type: "l2Book", coin: "BTC" }).json(), VenueMarkets.l2Book(listing, "BTC"))
    assert.deepStrictEqual(ask({ type: "l2Book", coin: "BTC", nSigFigs: 5, mantissa: null }).status, 200)
    assert.deepStrictEqual(ask({ type: "l2Book", coin: "NOPE" }).text, "null")
    assert.deepStrictEqual(ask({ type: "l2Book", coin: "NOPE" }).status, 200)
    const [bids = []] = VenueMarkets.l2Book(listing, "BTC", { nSigFigs: 2, mantissa: 1 })?.levels ?? []
    assert.strictEqual(bids.length, 1)
    assert.match(bids[0]?.px ?? "", /^[0-9]{2}000\.0$/u)
    assert.strictEqual(ask({ type: "l2Book", coin: "BTC", nSigFigs: 6 }).status, 422)
    assert.strictEqual(ask({ type: "l2Book", coin: "BTC", mantissa: 2 }).status, 422)
  })
})

describe("other reads", () => {
  it("are the time, and a refusal for what this venue does not have", () => {
    assert.deepStrictEqual(ask({ type: "exchangeStatus" }).json(), { time: start, specialStatuses: null })
    assert.strictEqual(ask({ type: "clearinghouseState", user: "0x" }).status, 422)
  })
})

describe("the testnet", () => {
  it.effect("has its own numbers and names, without gaps before HYPE", () =>
    Effect.gen(function*() {
      const { info, trading } = yield* Genesis.SandboxState
      const { markets: known, spotMeta: { tokens, universe } } = yield* Ref.get(info.state)
      const { listing: { byId, hype } } = trading.at(yield* Ref.get(info.state), start)
      const names = [0, 3, 4, 10_000, 11_035, 110_000].map((id) => byId.get(id)?.coin)
      assert.deepStrictEqual(names, ["SOL", "BTC", "ETH", "PURR/USDC", "@1035", "test:ABC"])
      assert.deepInclude(tokens[hype], { name: "HYPE", index: 1_105, tokenId: "0x7317beb7cceed72ef0b346074cc8e7ab" })
      assert.isTrue(tokens.every(({ index }, at) => index === at))
      // what the venue's Python examples for testnet order below the price
      const korila = byId.get(10_008)
      assert.deepStrictEqual(korila?.kind === "spot" && [korila.base.name, korila.base.szDecimals, korila.szDecimals], [
        "KORILA",
        1,
        1
      ])
      const low: ReadonlyArray<readonly [coin: string, px: number]> = [
        ["PURR/USDC", 0.5],
        ["@8", 12],
        ["OP", 1.2346],
        ["test:ABC", 1]
      ]
      for (const [coin, px] of low) {
        const mark = Number(yield* markOf(coin))
        assert.isTrue(px < mark && px > mark / 5, `${coin} at ${mark}`)
      }
      assert.isTrue(
        universe.every((pair) => known.has(pair.name) && pair.tokens.every((token) => token < tokens.length))
      )
      const user = keys.trader.address
      yield* trading.act(user, {
        type: "cDeposit",
        signatureChainId: "0x66eee",
        hyperliquidChain: "Testnet",
        wei: 1_000,
        nonce: 1
      })
    }).pipe(Effect.provide(Genesis.layer({ network: "testnet", stoppedAt: start }))))
})
