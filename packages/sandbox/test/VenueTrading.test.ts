/** What the sandbox answers of an account that trades, by what a test sets. */
import { assert, describe, it } from "@effect/vitest"
import * as Genesis from "@trigate/sandbox/Genesis"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as SpotMetaBook from "@trigate/sandbox/venue/SpotMetaBook"
import * as VenueInfo from "@trigate/sandbox/venue/VenueInfo"
import type { Account } from "@trigate/sandbox/venue/VenueState"
import { changeAccount } from "@trigate/sandbox/venue/VenueState"
import { start } from "./venue.ts"

const user = keys.trader.address
const day = 86_400_000
const cloid = `0x${"c".repeat(32)}`

const orderOf = (coin: string, oid: number, status: string): Account["orders"][number] => ({
  order: {
    coin,
    side: "B",
    limitPx: "10.5",
    sz: "2.0",
    oid,
    timestamp: start,
    origSz: "2.0",
    reduceOnly: false,
    orderType: "Limit",
    tif: "Gtc",
    cloid: oid === 2 ? cloid : null,
    isTrigger: false,
    triggerPx: "0.0",
    triggerCondition: "N/A",
    isPositionTpsl: false,
    children: []
  },
  status,
  statusTimestamp: start
})

const fillOf = (time: number, px: string, crossed: boolean): Account["fills"][number] => ({
  coin: "ETH",
  px,
  sz: "1000",
  side: "A",
  time,
  startPosition: "0.0",
  dir: "Open Short",
  closedPnl: "0.0",
  hash: `0x${"1".repeat(64)}`,
  oid: 1,
  crossed,
  fee: "0.1"
})

const positionOf = (coin: string): Account["positions"][number] => ({
  coin,
  szi: "-1.0",
  leverage: { type: "cross", value: 20 },
  positionValue: "2000.0",
  unrealizedPnl: "-12.5",
  returnOnEquity: "-0.125",
  liquidationPx: null,
  marginUsed: "100.0"
})

const venue = changeAccount(Genesis.venue, user, {
  collateral: 1_000,
  positions: [positionOf("ETH"), positionOf("xyz:XYZ100")],
  orders: [orderOf("ETH", 3, "open"), orderOf("xyz:XYZ100", 2, "open"), orderOf("ETH", 1, "filled")],
  fills: [fillOf(start, "4000", true), fillOf(start - day, "6000.5", true), fillOf(start - 2 * day, "10", false)]
})

const ask = (query: object): unknown => {
  const view = { seed: "trigate", ...Genesis.info("trigate", SpotMetaBook.make("trigate")), venue, now: start }
  return JSON.parse(VenueInfo.answer(view, new TextEncoder().encode(JSON.stringify({ user, ...query }))).text)
}

const oids = (answer: unknown) => (answer as ReadonlyArray<{ readonly oid: number }>).map(({ oid }) => oid)
const times = (answer: unknown) => (answer as ReadonlyArray<{ readonly time: number }>).map(({ time }) => time)

describe("an account that trades", () => {
  it("has its open orders by dex, and finds each order by either id", () => {
    assert.deepStrictEqual(oids(ask({ type: "openOrders" })), [3])
    assert.deepStrictEqual(oids(ask({ type: "frontendOpenOrders", dex: "xyz" })), [2])
    assert.deepStrictEqual(ask({ type: "orderStatus", oid: 1 }), {
      status: "order",
      order: venue.accounts.get(user)?.orders[2]
    })
    assert.deepInclude(ask({ type: "orderStatus", oid: cloid }), { status: "order" })
    assert.deepStrictEqual(ask({ type: "orderStatus", oid: 9 }), { status: "unknownOid" })
    assert.deepStrictEqual((ask({ type: "historicalOrders" }) as ReadonlyArray<unknown>).length, 3)
  })

  it("lists its fills, newest first or from an instant on", () => {
    assert.deepStrictEqual(times(ask({ type: "userFills" })), [start, start - day, start - 2 * day])
    const since = { type: "userFillsByTime", startTime: start - 2 * day }
    assert.deepStrictEqual(times(ask(since)), [start - 2 * day, start - day, start])
    assert.deepStrictEqual(times(ask({ ...since, endTime: start - day })), [start - 2 * day, start - day])
  })

  it("sums its positions by dex", () => {
    const margin = { accountValue: "987.5", totalNtlPos: "2000.0", totalRawUsd: "1000.0", totalMarginUsed: "100.0" }
    assert.deepStrictEqual(ask({ type: "clearinghouseState" }), {
      marginSummary: margin,
      crossMarginSummary: margin,
      crossMaintenanceMarginUsed: "50.0",
      withdrawable: "887.5",
      assetPositions: [{ type: "oneWay", position: positionOf("ETH") }],
      time: start
    })
    assert.deepNestedInclude(ask({ type: "clearinghouseState", dex: "xyz" }), {
      "marginSummary.accountValue": "-12.5",
      "withdrawable": "0.0"
    })
  })

  it("pays by the volume of the days before today, and may send more after it", () => {
    assert.deepNestedInclude(ask({ type: "userFees" }), {
      "userCrossRate": "0.0004",
      "userAddRate": "0.00012",
      "dailyUserVlm[1]": { date: "2026-10-13", userCross: "6000500.0", userAdd: "0.0", exchange: "6000500.0" },
      "dailyUserVlm[2].userAdd": "10000.0"
    })
    assert.deepInclude(ask({ type: "userRateLimit" }), { cumVlm: "10010500.0", nRequestsCap: 10_020_500 })
  })
})
