/**
 * An hour of a market maker with kills, in each margin mode: it quotes perpetuals, a spot pair and an outcome that rotates
 * every 15 minutes, and finds the fills of a kill by their time. Its books, made of these fills alone, close to the last digit.
 */
import { assert, describe, it } from "@effect/vitest"
import { Fill } from "@trigate/domain/info/Account"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import { parseDecimal } from "@trigate/sandbox/unstable/venue/Assets"
import { firstSide } from "@trigate/sandbox/unstable/venue/Outcomes"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { check, drawing } from "./randomTrading.ts"
import { act, ask, askAt, btc, eth, hypeSpot, listOf, orderOf, venueNow } from "./trader.ts"
import { atStart } from "./venue.ts"

const maker = `0x${"a1".repeat(20)}` as const
const taker = `0x${"b2".repeat(20)}` as const
const chain = { signatureChainId: "0x66eee", hyperliquidChain: "Mainnet" } as const

const minutes = 60
const stepSeconds = 5
const steps = minutes * 60 / stepSeconds
const kills = 12

/** Reads an amount in units of 10^-16, in which every price times a size is whole. */
const exact = (text: string): bigint => parseDecimal(text, 16) ?? assert.fail(text)
const times = (px: string, sz: string): bigint => (parseDecimal(px, 8) ?? 0n) * (parseDecimal(sz, 8) ?? 0n)

/** A price of at most four digits, rounded away from the market. */
const priceAt = (mid: number, part: number): string => {
  const digits = Math.max(0, 3 - Math.floor(Math.log10(mid)))
  const scale = 10 ** digits
  const px = mid * (1 + part)
  return String(Number(((part < 0 ? Math.floor : Math.ceil)(px * scale) / scale).toFixed(digits)))
}

interface Quoted {
  readonly id: number
  readonly mid: number
  readonly size: string
}

/** The markets that are quoted now, with their middle prices. */
const readMarkets = Effect.gen(function*() {
  const mids = yield* ask({ type: "allMids" })
  const outcome = listOf(yield* askAt({ type: "outcomeMeta" }, "outcomes")).find((each) =>
    JSON.stringify(each).includes("period:15m")
  )
  const side = 10 * Number(JsonParts.at(outcome, "outcome"))
  const rows: ReadonlyArray<readonly [id: number, coin: string, value: number, decimals: number]> = [
    [btc, "BTC", 300, 5],
    [eth, "ETH", 200, 4],
    [hypeSpot, "@107", 60, 2],
    [firstSide + side, `#${side}`, 20, 0]
  ]
  return rows.flatMap(([id, coin, value, decimals]): ReadonlyArray<Quoted> => {
    const mid = Number(JsonParts.at(mids, coin))
    // an outcome that is nearly decided is not quoted
    return Number.isNaN(mid) || id >= firstSide && (mid < 0.1 || mid > 0.9)
      ? []
      : [{ id, mid, size: (Math.ceil(value / mid * 10 ** decimals) / 10 ** decimals).toFixed(decimals) }]
  })
})

const Fills = Schema.Array(Fill)

/** Cancels all open orders of the maker. */
const cancelAll = Effect.gen(function*() {
  const { listing } = yield* venueNow
  const open = listOf(yield* ask({ type: "openOrders", user: maker }))
  const cancels = open.flatMap((order) => {
    const id = listing.byCoin.get(String(JsonParts.at(order, "coin")))?.id
    return id === undefined ? [] : [{ a: id, o: Number(JsonParts.at(order, "oid")) }]
  })
  if (cancels.length > 0) yield* act(maker, "cancel", { cancels })
})

const quote = Effect.fnUntraced(function*(markets: ReadonlyArray<Quoted>, holdings: (id: number) => boolean) {
  const orders = markets.flatMap(({ id, mid, size }) => {
    const spread = id >= firstSide ? 0.02 : 0.0001
    const bid = orderOf(id, "buy", size, priceAt(mid, -spread), { tif: "Alo" })
    const ask = orderOf(id, "sell", size, priceAt(mid, spread), { tif: "Alo" })
    return holdings(id) ? [bid, ask] : [bid]
  })
  yield* act(maker, "order", { orders, grouping: "na" })
})

/** What the fills, and the funding, say of the account: its sizes by coin, and its dollars. */
const closeBooks = (fills: ReadonlyArray<Fill>, funding: ReadonlyArray<string>, deposits: bigint) => {
  const sizes = new Map<string, bigint>()
  const add = (coin: string, amount: bigint) => sizes.set(coin, (sizes.get(coin) ?? 0n) + amount)
  let dollars = deposits + funding.reduce((sum, usdc) => sum + exact(usdc), 0n)
  for (const { coin, fee, feeToken, px, side, sz } of fills) {
    const sign = side === "B" ? 1n : -1n
    dollars -= sign * times(px, sz)
    add(coin, sign * exact(sz))
    if (feeToken === "USDC") dollars -= exact(fee)
    else add(coin, -exact(fee))
  }
  return { dollars, sizes: new Map([...sizes].filter(([, size]) => size !== 0n)) }
}

/** The same from the account itself. */
const readAccount = Effect.gen(function*() {
  const state = yield* ask({ type: "clearinghouseState", user: maker })
  const rows = listOf(yield* askAt({ type: "spotClearinghouseState", user: maker }, "balances"))
  const text = (value: unknown, ...path: ReadonlyArray<string | number>) => String(JsonParts.at(value, ...path))
  const sizes = new Map<string, bigint>()
  let dollars = exact(text(state, "marginSummary", "totalRawUsd"))
  for (const row of rows) {
    const [coin, total] = [text(row, "coin"), exact(text(row, "total"))]
    if (coin === "USDC") dollars += total
    else if (total !== 0n) sizes.set(coin === "HYPE" ? "@107" : coin.replace("+", "#"), total)
  }
  for (const each of listOf(JsonParts.at(state, "assetPositions"))) {
    sizes.set(text(each, "position", "coin"), exact(text(each, "position", "szi")))
  }
  return { dollars, sizes }
})

const hour = (mode: "disabled" | "portfolioMargin" | "unifiedAccount", run: number) =>
  Effect.gen(function*() {
    const { trading } = yield* SandboxState
    const draw = drawing(run)
    const from = yield* trading.now
    for (const user of [maker, taker]) {
      yield* trading.depositUsd(user, "50000")
      yield* trading.depositSpot(user, 0, "50000")
      yield* trading.depositSpot(user, 150, "500")
    }
    assert.isUndefined(yield* act(maker, "userSetAbstraction", { ...chain, user: maker, abstraction: mode, nonce: 1 }))

    const heard = new Map<string, Fill>()
    let isAlive = true
    let doubled = 0
    let recovered = 0
    const hear = (fill: Fill, isStream: boolean) => {
      const key = `${fill.oid}/${fill.tid}`
      if (heard.has(key)) doubled += isStream ? 1 : 0
      else if (!isStream) recovered++
      heard.set(key, fill)
    }
    yield* Effect.asVoid(trading.follow((events) => {
      for (const event of events) {
        if (event.kind === "fill" && event.user === maker && isAlive) hear(event.fill, true)
      }
    }))
    /** Reads the fills since the newest that is known, which is what a maker does that starts again. */
    const recover = Effect.gen(function*() {
      let startTime = [...heard.values()].reduce((latest, { time }) => Math.max(latest, time), from)
      for (;;) {
        const page = Schema.decodeUnknownSync(Fills)(yield* ask({ type: "userFillsByTime", user: maker, startTime }))
        for (const fill of page) hear(fill, false)
        const last = page.at(-1)?.time
        if (last === undefined || last === startTime) return
        startTime = last
      }
    })

    const killed = new Set(Array.from({ length: kills }, () => draw.below(steps - 20)))
    let restartsAt = 0
    for (let step = 0; step < steps; step++) {
      if (killed.has(step)) {
        isAlive = false
        restartsAt = step + 1 + draw.below(12)
      }
      if (!isAlive && step === restartsAt) {
        // what the stream still has to deliver is of the time before
        yield* trading.flush
        yield* recover
        isAlive = true
      }
      const markets = yield* readMarkets
      if (isAlive) {
        yield* cancelAll
        const { sizes } = yield* readAccount
        const { byId } = (yield* venueNow).listing
        yield* quote(markets, (id) => id < firstSide || (sizes.get(byId.get(id)?.coin ?? "") ?? 0n) >= exact("200"))
      }
      const { id, mid, size } = markets[draw.below(markets.length)] ?? assert.fail()
      const isBuy = draw.below(2) === 0
      const order = orderOf(id, isBuy ? "buy" : "sell", size, priceAt(mid, isBuy ? 0.03 : -0.03), { tif: "Ioc" })
      yield* act(taker, "order", { orders: [order], grouping: "na" })
      yield* TestClock.adjust(`${stepSeconds} seconds`)
      check((yield* venueNow).state)
    }
    yield* cancelAll
    yield* trading.flush
    yield* recover
    const funding = listOf(yield* ask({ type: "userFunding", user: maker, startTime: from })).map((row) =>
      String(JsonParts.at(row, "delta", "usdc"))
    )
    return {
      fills: [...heard.values()],
      doubled,
      recovered,
      funding,
      books: closeBooks([...heard.values()], funding, exact("100000")),
      account: yield* readAccount
    }
  })

describe("an hour of a market maker with kills", () => {
  it.effect.each(["disabled", "unifiedAccount", "portfolioMargin"] as const)(
    "loses and doubles no fill, closes its books and conserves the venue's money, with margin mode %s",
    (mode) =>
      Effect.gen(function*() {
        const { account, books, doubled, fills, funding, recovered } = yield* atStart(hour(mode, 49))
        const coins = new Set(fills.map(({ coin }) => coin.replace(/^#.*/u, "#")))
        assert.deepStrictEqual(coins, new Set(["BTC", "ETH", "@107", "#"]))
        assert.strictEqual(doubled, 0)
        assert.isAbove(recovered, 0)
        assert.isAbove(funding.length, 0)
        // the deposit of HYPE
        books.sizes.set("@107", (books.sizes.get("@107") ?? 0n) + exact("500"))
        assert.deepStrictEqual(account.sizes, books.sizes)
        assert.strictEqual(account.dollars, books.dollars)
      }),
    600_000
  )
})
