/** Typed queries about a user: margin and balances, orders and fills, fees and limits, roles and API wallets. */
import { type Address, lowerCase } from "@trigate/domain/encoding/Hex"
import type { Position } from "@trigate/domain/info/Account"
import * as InfoOperations from "@trigate/domain/info/InfoOperations"
import type { Fill } from "@trigate/domain/info/Order"
import * as DateTime from "effect/DateTime"
import { dexOf } from "./CandleMarket.ts"
import { type InfoView, on } from "./VenueAnswer.ts"
import { type Account, accountOf } from "./VenueState.ts"

const day = 86_400_000

/** An amount of USD with one or two decimals. */
const usd = (value: number): string => value.toFixed(2).replace(/0$/u, "")

const sum = <A>(all: ReadonlyArray<A>, amount: (one: A) => string): number =>
  all.reduce((total, one) => total + Number(amount(one)), 0)

/** The entries of a dex. Spot pairs belong to the venue's own. */
const inDex = <A>(all: ReadonlyArray<A>, coin: (one: A) => string, dex: string | null = ""): ReadonlyArray<A> =>
  all.filter((one) => (dexOf(coin(one)) ?? "") === (dex ?? ""))

const accountIn = ({ venue }: InfoView, user: Address): Account => accountOf(venue, lowerCase(user))

const marginOf = (positions: ReadonlyArray<Position>, collateral: number) => ({
  accountValue: usd(collateral + sum(positions, ({ unrealizedPnl }) => unrealizedPnl)),
  totalNtlPos: usd(sum(positions, ({ positionValue }) => positionValue)),
  totalRawUsd: usd(collateral),
  totalMarginUsed: usd(sum(positions, ({ marginUsed }) => marginUsed))
})

/** The newest rows that the venue lists. */
const mostRows = 2_000

const volume = (fills: ReadonlyArray<Fill>): number =>
  fills.reduce((total, { px, sz }) => total + Number(px) * Number(sz), 0)

/** Fee rates of an account without volume, as the venue's documents list them. */
const feeSchedule = {
  cross: "0.00045",
  add: "0.00015",
  spotCross: "0.0007",
  spotAdd: "0.0004",
  tiers: {
    vip: [
      { ntlCutoff: "5000000.0", cross: "0.0004", add: "0.00012", spotCross: "0.0006", spotAdd: "0.0003" },
      { ntlCutoff: "25000000.0", cross: "0.00035", add: "0.00008", spotCross: "0.0005", spotAdd: "0.0002" },
      { ntlCutoff: "100000000.0", cross: "0.0003", add: "0.00004", spotCross: "0.0004", spotAdd: "0.0001" },
      { ntlCutoff: "500000000.0", cross: "0.00028", add: "0.0", spotCross: "0.00035", spotAdd: "0.0" },
      { ntlCutoff: "2000000000.0", cross: "0.00026", add: "0.0", spotCross: "0.0003", spotAdd: "0.0" },
      { ntlCutoff: "7000000000.0", cross: "0.00024", add: "0.0", spotCross: "0.00025", spotAdd: "0.0" }
    ],
    mm: [
      { makerFractionCutoff: "0.005", add: "-0.00001" },
      { makerFractionCutoff: "0.015", add: "-0.00002" },
      { makerFractionCutoff: "0.03", add: "-0.00003" }
    ]
  },
  referralDiscount: "0.04",
  stakingDiscountTiers: [
    { bpsOfMaxSupply: "0.0", discount: "0.0" },
    { bpsOfMaxSupply: "0.0001", discount: "0.05" },
    { bpsOfMaxSupply: "0.001", discount: "0.1" },
    { bpsOfMaxSupply: "0.01", discount: "0.15" },
    { bpsOfMaxSupply: "0.1", discount: "0.2" },
    { bpsOfMaxSupply: "1.0", discount: "0.3" },
    { bpsOfMaxSupply: "5.0", discount: "0.4" }
  ]
}

/** Actions that the venue lets an account without volume send. */
const startingRequests = 10_000

/** The volume of a day. */
const volumeOf = (fills: ReadonlyArray<Fill>, start: number) => {
  const ofDay = fills.filter(({ time }) => time >= start && time < start + day)
  return {
    date: DateTime.formatIsoDateUtc(DateTime.makeUnsafe(start)),
    userCross: usd(volume(ofDay.filter(({ crossed }) => crossed))),
    userAdd: usd(volume(ofDay.filter(({ crossed }) => !crossed))),
    exchange: usd(volume(ofDay))
  }
}

const feesOf = (fills: ReadonlyArray<Fill>, now: number) => {
  const today = Math.floor(now / day) * day
  const days = Array.from({ length: 15 }, (_, index) => volumeOf(fills, today - index * day))
  // the volume of today counts from tomorrow on
  const counted = sum(days.slice(1), ({ exchange }) => exchange)
  const tier = feeSchedule.tiers.vip.findLast(({ ntlCutoff }) => counted > Number(ntlCutoff)) ?? feeSchedule
  return {
    dailyUserVlm: days.filter(({ exchange }) => Number(exchange) > 0),
    feeSchedule,
    userCrossRate: tier.cross,
    userAddRate: tier.add,
    userSpotCrossRate: tier.spotCross,
    userSpotAddRate: tier.spotAdd,
    activeReferralDiscount: "0.0",
    trial: null,
    feeTrialEscrow: "0.0",
    nextTrialAvailableTimestamp: null,
    stakingLink: null,
    activeStakingDiscount: { bpsOfMaxSupply: "0.0", discount: "0.0" }
  }
}

const roleOf = ({ venue }: InfoView, user: Address) => {
  const master = venue.agents.get(user)
  if (master !== undefined) return { role: "agent", data: { user: master } }
  if (accountOf(venue, user).leader !== undefined) return { role: "vault" }
  return { role: venue.accounts.has(user) ? "user" : "missing" }
}

const openIn = (view: InfoView, { dex, user }: { readonly dex?: string | null; readonly user: Address }) =>
  inDex(accountIn(view, user).orders, ({ order }) => order.coin, dex).flatMap(({ order, status }) =>
    status === "open" ? [order] : []
  )

/** The answers from what the venue remembers of an account. An address that it does not know has an empty account. */
export const answers = {
  clearinghouseState: on(InfoOperations.clearinghouseState, (view, { dex, user }) => {
    const account = accountIn(view, user)
    const positions = inDex(account.positions, ({ coin }) => coin, dex)
    const margin = marginOf(positions, (dex ?? "") === "" ? account.collateral : 0)
    return {
      marginSummary: margin,
      crossMarginSummary: margin,
      crossMaintenanceMarginUsed: usd(Number(margin.totalMarginUsed) / 2),
      withdrawable: usd(Math.max(0, Number(margin.accountValue) - Number(margin.totalMarginUsed))),
      assetPositions: positions.map((position) => ({ type: "oneWay", position })),
      time: view.now
    }
  }),
  spotClearinghouseState: on(InfoOperations.spotClearinghouseState, (view, { user }) => ({
    balances: accountIn(view, user).spot.map(({ coin, token, total }) => ({
      coin,
      token,
      total,
      hold: "0.0",
      entryNtl: "0.0"
    }))
  })),
  openOrders: on(
    InfoOperations.openOrders,
    (view, request) =>
      openIn(view, request).map(({ coin, limitPx, oid, origSz, side, sz, timestamp }) => ({
        coin,
        side,
        limitPx,
        sz,
        oid,
        timestamp,
        origSz
      }))
  ),
  frontendOpenOrders: on(InfoOperations.frontendOpenOrders, openIn),
  orderStatus: on(InfoOperations.orderStatus, (view, { oid, user }) => {
    const found = accountIn(view, user).orders.find(({ order }) => order.oid === oid || order.cloid === oid)
    return found === undefined ? { status: "unknownOid" as const } : { status: "order" as const, order: found }
  }),
  historicalOrders: on(
    InfoOperations.historicalOrders,
    (view, { user }) => accountIn(view, user).orders.slice(0, mostRows)
  ),
  userFills: on(InfoOperations.userFills, (view, { user }) => accountIn(view, user).fills.slice(0, mostRows)),
  userFillsByTime: on(
    InfoOperations.userFillsByTime,
    (view, { endTime, startTime, user }) =>
      accountIn(view, user).fills.filter(({ time }) => time >= startTime && time <= (endTime ?? view.now))
        .toReversed().slice(0, mostRows)
  ),
  userRole: on(InfoOperations.userRole, (view, { user }) => roleOf(view, lowerCase(user))),
  userRateLimit: on(InfoOperations.userRateLimit, (view, { user }) => {
    const { fills, requests } = accountIn(view, user)
    const traded = volume(fills)
    return {
      cumVlm: usd(traded),
      nRequestsUsed: requests.sent,
      nRequestsCap: Number.isFinite(requests.limit) ? requests.limit : startingRequests + Math.floor(traded),
      nRequestsSurplus: 0
    }
  }),
  userFees: on(InfoOperations.userFees, (view, { user }) => feesOf(accountIn(view, user).fills, view.now)),
  extraAgents: on(InfoOperations.extraAgents, (view, { user }) => accountIn(view, user).extraAgents)
}
