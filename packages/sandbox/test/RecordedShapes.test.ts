/** Responses have the members and the forms of those that were recorded at the venue, and follow the state. */
import { assert, describe, it } from "@effect/vitest"
import { coins, keys } from "@trigate/sandbox/SandboxExamples"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import { findAccount } from "@trigate/sandbox/unstable/venue/TradingState"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { infoAnswers } from "../../domain/test/answers.ts"
import { act, ask, askAt, eth, listOf, markOf, oidOf, orderOf, place, sol, venueNow } from "./trader.ts"
import { atStart, start } from "./venue.ts"

const user = keys.trader.address
const other = `0x${"2".repeat(40)}` as const
const chain = { signatureChainId: "0x66eee", hyperliquidChain: "Mainnet" } as const
const builderCoin = "xyz:XYZ100"
const builderAsset = 110_000

/** Returns the kind of each value in a response. */
const formOf = (value: unknown): unknown => {
  if (value === null || typeof value !== "string") {
    return Array.isArray(value)
      ? value.slice(0, 1).map(formOf)
      : value !== null && typeof value === "object"
      ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, formOf(item)]))
      : value === null
      ? null
      : typeof value
  }
  if (/^0x[0-9a-f]{40}$/u.test(value)) return "address"
  if (/^0x[0-9a-f]{64}$/u.test(value)) return "hash"
  return /^-?[0-9]+\.[0-9]+$/u.test(value) ? "decimal" : "text"
}

/** The kinds of values at each path of responses; the elements of a list share a path. */
type Kinds = Map<string, Set<string>>

const collect = (kinds: Kinds, value: unknown, path: string): Kinds => {
  if (Array.isArray(value)) { for (const item of value) collect(kinds, item, `${path}[]`) }
  else if (value !== null && typeof value === "object") {
    for (const [key, item] of Object.entries(value)) collect(kinds, item, `${path}.${key}`)
  } else {
    const kind = value === null
      ? "null"
      : typeof value === "string" && /^-?[0-9]+$/u.test(value)
      ? "decimal"
      : String(formOf(value))
    kinds.set(path, (kinds.get(path) ?? new Set()).add(kind))
  }
  return kinds
}

const kindsOf = (values: ReadonlyArray<unknown>): Kinds =>
  values.reduce<Kinds>((kinds, value) => collect(kinds, value, ""), new Map())

/** The paths that one of the two lacks, and the kinds of values that the venue has not at a path. */
const compare = (recorded: Kinds, sandbox: Kinds): ReadonlyArray<string> => [
  ...[...recorded.keys()].filter((path) => !sandbox.has(path)).map((path) => `-${path}`),
  ...[...sandbox].flatMap(([path, kinds]) => {
    const known = recorded.get(path)
    return known === undefined
      ? [`+${path}`]
      : [...kinds].filter((kind) => !known.has(kind)).map((kind) => `${path} is ${kind}`)
  })
]

const vault = `0x${"3".repeat(40)}` as const

/** An account with a position, fills, orders of several kinds and an API wallet. */
const busy = Effect.gen(function*() {
  const { info, trading, venue } = yield* SandboxState
  yield* act(user, "updateLeverage", { asset: eth, isCross: false, leverage: 5 })
  yield* place(user, eth, "buy", "0.1", yield* markOf("ETH", 0.05), { tif: "Ioc" })
  const oid = oidOf(yield* place(user, eth, "buy", "0.02", yield* markOf("ETH", -0.1), { c: `0x${"1".repeat(32)}` }))
  yield* place(user, eth, "sell", "0.1", yield* markOf("ETH", 0.1), {
    r: true,
    t: { trigger: { isMarket: true, triggerPx: yield* markOf("ETH", 0.2), tpsl: "tp" } }
  })
  yield* act(user, "approveAgent", { ...chain, agentAddress: other, agentName: "bot", nonce: 1 })
  yield* trading.depositUsd(user, "1")
  yield* venue.addVault(vault, user)
  const subAccount = yield* act(user, "createSubAccount", { name: "sub" })
  yield* info.delistCoin("kPEPE")
  yield* TestClock.adjust("2 hours")
  return { oid, subAccount }
})

/** Queries whose responses together have what the recordings of an operation have. */
const queries: {
  readonly [Name in keyof typeof infoAnswers]: (names: Effect.Success<typeof busy>) => ReadonlyArray<object>
} = {
  spotMeta: () => [{}],
  candleSnapshot: () => [{ req: { coin: "BTC", interval: "1m", startTime: start - 600_000, endTime: start } }],
  meta: () => [{}, { dex: "xyz" }],
  allPerpMetas: () => [{}],
  outcomeMeta: () => [{}],
  metaAndAssetCtxs: () => [{}, { dex: "xyz" }],
  perpDexs: () => [{}],
  allMids: () => [{}],
  l2Book: () => [{ coin: "ETH" }, { coin: coins.unknown }],
  recentTrades: () => [{ coin: "ETH" }],
  fundingHistory: () => [{ coin: "ETH", startTime: start - 86_400_000 }],
  clearinghouseState: () => [{ user }],
  spotClearinghouseState: () => [{ user }],
  openOrders: () => [{ user }],
  frontendOpenOrders: () => [{ user }],
  orderStatus: ({ oid }) => [{ user, oid }, { user, oid: 1 }],
  historicalOrders: () => [{ user }],
  userFills: () => [{ user }],
  userFillsByTime: () => [{ user, startTime: 0 }],
  userRole: ({ subAccount }) => [{ user: vault }, { user: other }, { user: subAccount }],
  userRateLimit: () => [{ user }],
  userFees: () => [{ user }],
  userAbstraction: () => [{ user }],
  extraAgents: () => [{ user }]
}

const shortened = "the sample has no row of it"
const older = "it was recorded before the venue had the member"
const never = "the sample has null alone"
const builders = "recorded for the dex of a builder alone"

/** Where the members of a response differ from the recorded ones, and why. */
const shapeDifferences: { readonly [name: string]: { readonly [difference: string]: string } } = {
  spotMeta: {
    "+.tokens[].deployerTradingFeeShare": shortened,
    "+.tokens[].evmContract": shortened,
    "+.tokens[].evmContract.address": shortened,
    "+.tokens[].evmContract.evm_extra_wei_decimals": shortened,
    "+.tokens[].fullName": shortened,
    "+.tokens[].index": shortened,
    "+.tokens[].isCanonical": shortened,
    "+.tokens[].name": shortened,
    "+.tokens[].szDecimals": shortened,
    "+.tokens[].tokenId": shortened,
    "+.tokens[].weiDecimals": shortened
  },
  meta: {
    "+.universe[].growthMode": builders,
    "+.universe[].lastGrowthModeChangeTime": builders,
    "+.universe[].onlyIsolated": builders
  },
  allPerpMetas: {
    "+[].universe[].growthMode": builders,
    "+[].universe[].lastGrowthModeChangeTime": builders,
    "+[].universe[].onlyIsolated": builders
  },
  metaAndAssetCtxs: {
    "+[].universe[].growthMode": builders,
    "+[].universe[].lastGrowthModeChangeTime": builders,
    "+[].universe[].onlyIsolated": builders,
    "+[][].impactPxs": "null for a coin that was delisted, which the sample has not",
    "[][].midPx is decimal": never,
    "[][].premium is decimal": never
  },
  outcomeMeta: {
    "-.deployers[].subDeployers[][]": "the venue of the recurring outcomes grants no operations",
    "-.deployers[].subDeployers[][][]": "the venue of the recurring outcomes grants no operations",
    "+.outcomes[].deployerFeeScale": older,
    "+.outcomes[].venue": older,
    "-.outcomes[].deployer": "the venue has since replaced it by the deployer's venue",
    "-.outcomes[].sideSpecs[].token": "recorded sides have only a name",
    "-.questions[].settledNamedOutcomes[]": "all outcomes of a recurring question are settled together"
  },
  perpDexs: {
    "+[].lastDeployerFeeScaleChangeTime": "recorded, and left out of the sample",
    "[].feeRecipient is null": "the sandbox's dex has no recipient of fees, as its declared type allows"
  },
  clearinghouseState: {
    "+.assetPositions[].position.cumFunding.allTime": older,
    "+.assetPositions[].position.cumFunding.sinceChange": older,
    "+.assetPositions[].position.cumFunding.sinceOpen": older,
    "+.assetPositions[].position.maxLeverage": older,
    "-.assetPositions[].position.maxTradeSzs[]": "the venue has since moved it to activeAssetData",
    ".assetPositions[].position.liquidationPx is decimal": never
  },
  openOrders: { "+[].cloid": older, "+[].origSz": older, "+[].reduceOnly": older },
  frontendOpenOrders: { "[].cloid is text": never, "[].tif is text": never },
  orderStatus: { ".order.order.cloid is text": never, ".order.order.tif is text": never },
  historicalOrders: { "[].order.cloid is text": never, "[].order.tif is text": never },
  userFills: { "+[].feeToken": older, "+[].tid": older, "+[].twapId": older },
  userRateLimit: { "+.nRequestsSurplus": older },
  userFees: {
    "+.feeTrialEscrow": "the venue's name for what its documentation calls feeTrialReward",
    "-.feeTrialReward": "the venue calls it feeTrialEscrow"
  }
}

describe("POST /info", () => {
  it.effect.each(Object.entries(infoAnswers))(
    "answers in the recorded shape: %s",
    ([name, { texts }]) =>
      atStart(Effect.gen(function*() {
        const names = yield* busy
        const asked = new Map(Object.entries(queries)).get(name) ?? assert.fail(`Nothing in this test asks for ${name}`)
        const answers = yield* Effect.forEach(asked(names), (query) => ask({ type: name, ...query }))
        const listed = (values: ReadonlyArray<unknown>) =>
          // the members are names of coins
          name === "allMids" ? values.map((mids): unknown => Object.values(mids ?? {})) : values
        assert.deepStrictEqual(
          compare(kindsOf(listed(texts.map((text): unknown => JSON.parse(text)))), kindsOf(listed(answers))).toSorted(),
          Object.keys(shapeDifferences[name] ?? {}).toSorted()
        )
      }))
  )
})

describe("staking", () => {
  it.effect("lists deposits, and withdrawals in both phases, beside delegations", () =>
    atStart(Effect.gen(function*() {
      yield* act(user, "cDeposit", { ...chain, wei: 250_000_000, nonce: 1 })
      yield* TestClock.adjust("1 second")
      yield* act(user, "cWithdraw", { ...chain, wei: 50_000_000, nonce: 2 })
      const pending = yield* ask({ type: "delegatorSummary", user })
      assert.deepInclude(pending, { totalPendingWithdrawal: "0.5", nPendingWithdrawals: 1 })
      const history = listOf(yield* ask({ type: "delegatorHistory", user }))
      assert.deepStrictEqual(history.map((row) => JsonParts.at(row, "delta")), [
        { withdrawal: { amount: "0.5", phase: "initiated" } },
        { cDeposit: { amount: "2.5" } }
      ])
      assert.deepStrictEqual(formOf(history[1]), {
        time: "number",
        hash: "hash",
        delta: { cDeposit: { amount: "decimal" } }
      })
      yield* TestClock.adjust("7 days")
      const [newest] = listOf(yield* ask({ type: "delegatorHistory", user }))
      assert.deepStrictEqual(JsonParts.at(newest, "delta"), { withdrawal: { amount: "0.5", phase: "finalized" } })
      assert.deepInclude(yield* ask({ type: "delegatorSummary", user }), {
        totalPendingWithdrawal: "0.0",
        nPendingWithdrawals: 0
      })
    })))
})

describe("the dex of a builder", () => {
  it.effect("states its limits and what was moved into it", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      assert.deepStrictEqual(formOf(yield* ask({ type: "perpDexLimits", dex: "xyz" })), {
        totalOiCap: "decimal",
        oiSzCapPerPerp: "decimal",
        maxTransferNtl: "decimal",
        coinToOiCap: [["text"]]
      })
      assert.deepStrictEqual(yield* askAt({ type: "perpDexLimits", dex: "xyz" }, "coinToOiCap"), [
        [builderCoin, "100000000.0"],
        ["xyz:GOLD", "100000000.0"],
        ["xyz:TSLA", "100000000.0"],
        ["xyz:NVDA", "100000000.0"]
      ])
      assert.isNull(yield* ask({ type: "perpDexLimits", dex: "" }))
      const status = (dex: string) => ask({ type: "perpDexStatus", dex })
      const before = Number(JsonParts.at(yield* status(""), "totalNetDeposit"))
      assert.deepStrictEqual(yield* status("xyz"), { totalNetDeposit: "0.0" })
      const send = { ...chain, destination: user, token: "USDC", fromSubAccount: "", nonce: 1 }
      yield* act(user, "sendAsset", { ...send, sourceDex: "", destinationDex: "xyz", amount: "120.5" })
      yield* trading.depositUsd(other, "7")
      assert.deepStrictEqual(yield* status("xyz"), { totalNetDeposit: "120.5" })
      assert.deepStrictEqual(Number(JsonParts.at(yield* status(""), "totalNetDeposit")), before - 113.5)
    })))

  it.effect("has perpetuals without cross margin, with a tenth of the fees, and with a cap that stops growth", () =>
    atStart(Effect.gen(function*() {
      const { info } = yield* SandboxState
      const [listed] = listOf(yield* askAt({ type: "meta", dex: "xyz" }, "universe"))
      assert.deepStrictEqual(listed, {
        szDecimals: 4,
        name: builderCoin,
        maxLeverage: 20,
        marginTableId: 20,
        onlyIsolated: true,
        marginMode: "noCross",
        growthMode: "enabled",
        lastGrowthModeChangeTime: "2025-11-23T00:00:00"
      })
      const leverage = (isCross: boolean) => act(user, "updateLeverage", { asset: builderAsset, isCross, leverage: 5 })
      assert.strictEqual(yield* leverage(true), "Cross margin is not allowed for this asset.")
      assert.isUndefined(yield* leverage(false))
      const send = { ...chain, destination: user, token: "USDC", fromSubAccount: "", nonce: 1 }
      yield* act(user, "sendAsset", { ...send, sourceDex: "", destinationDex: "xyz", amount: "5000" })
      yield* place(user, builderAsset, "buy", "0.1", yield* markOf(builderCoin, 0.05), { tif: "Ioc" })
      const fills = listOf(yield* ask({ type: "userFills", user }))
      assert.isAbove(fills.length, 0)
      for (const fill of fills) {
        const value = Number(JsonParts.at(fill, "px")) * Number(JsonParts.at(fill, "sz"))
        assert.approximately(Number(JsonParts.at(fill, "fee")), value * 0.000_045, 1e-6)
      }
      assert.deepStrictEqual(yield* ask({ type: "perpsAtOpenInterestCap", dex: "xyz" }), [])
      yield* info.listCoin({
        coin: builderCoin,
        asset: "XYZ100",
        price: 24_900,
        volatility: 0.012,
        tradeRate: 9,
        tradeLots: 700,
        sizeDecimals: 4,
        priceDecimals: 2,
        listedAt: 0,
        openInterestCap: 100
      })
      assert.deepStrictEqual(yield* ask({ type: "perpsAtOpenInterestCap", dex: "xyz" }), [builderCoin])
      assert.deepStrictEqual(
        yield* place(user, builderAsset, "buy", "0.1", yield* markOf(builderCoin, 0.05), { tif: "Ioc" }),
        { error: "Order would increase open interest while open interest is capped asset=110000" }
      )
      const closed = yield* place(user, builderAsset, "sell", "0.1", yield* markOf(builderCoin, -0.05), { tif: "Ioc" })
      assert.isNumber(oidOf(closed))
    })))
})

describe("a delisted coin", () => {
  it.effect("keeps its number; its orders end, its positions are closed, and its price stands still", () =>
    atStart(Effect.gen(function*() {
      const { info, trading } = yield* SandboxState
      yield* trading.setPosition(user, "ETH", "1")
      const oid = oidOf(yield* place(user, eth, "buy", "1", yield* markOf("ETH", -0.1)))
      yield* info.delistCoin("BTC")
      yield* info.delistCoin("ETH")
      const universe = listOf(yield* askAt({ type: "meta" }, "universe"))
      const ends = universe.map((each) => [JsonParts.at(each, "name"), JsonParts.at(each, "isDelisted")])
      assert.deepStrictEqual(ends.slice(0, 5), [
        ["BTC", true],
        ["ETH", true],
        ["ATOM", undefined],
        ["MATIC", true],
        ["DYDX", undefined]
      ])
      const account = findAccount((yield* venueNow).state, user)
      assert.deepStrictEqual([account.open.size, account.orders.get(Number(oid))?.status], [0, "delistedCanceled"])
      assert.deepStrictEqual(yield* askAt({ type: "clearinghouseState", user }, "assetPositions"), [])
      const delisted = () => askAt({ type: "metaAndAssetCtxs" }, 1, 1)
      const context = yield* delisted()
      assert.deepStrictEqual(formOf(context), {
        prevDayPx: "decimal",
        dayNtlVlm: "decimal",
        markPx: "decimal",
        midPx: null,
        dayBaseVlm: "decimal",
        oraclePx: "decimal",
        funding: "decimal",
        openInterest: "decimal",
        premium: null,
        impactPxs: null
      })
      yield* TestClock.adjust("1 day")
      assert.deepStrictEqual(yield* delisted(), context)
      assert.deepStrictEqual(
        JsonParts.at(
          yield* act(user, "order", { orders: [orderOf(sol, "buy", "1", yield* markOf("SOL", -0.1))], grouping: "na" }),
          "statuses",
          0,
          "error"
        ),
        undefined
      )
      assert.isUndefined(yield* askAt({ type: "allMids" }, "ETH"))
    })))
})

describe("the auction of the right to deploy", () => {
  it.effect("falls with the clock from the price of the seed, and begins anew", () =>
    atStart(Effect.gen(function*() {
      const status = ask({ type: "perpDeployAuctionStatus" })
      const first = yield* status
      assert.deepStrictEqual(formOf(first), {
        startTimeSeconds: "number",
        durationSeconds: "number",
        startGas: "decimal",
        currentGas: "decimal",
        endGas: null
      })
      yield* TestClock.adjust("1 minute")
      const later = yield* status
      assert.isBelow(Number(JsonParts.at(later, "currentGas")), Number(JsonParts.at(first, "currentGas")))
      yield* TestClock.adjust("31 hours")
      const next = yield* status
      assert.strictEqual(
        Number(JsonParts.at(next, "startTimeSeconds")) - Number(JsonParts.at(first, "startTimeSeconds")),
        111_600
      )
    })))
})
