/** The read side of two bots against the sandbox: one written with ccxt, one with `@nktkas/hyperliquid`. Not recorded. */
import { assert, describe, it } from "@effect/vitest"
import { ExchangeClient, HttpTransport, InfoClient } from "@nktkas/hyperliquid"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { hostedGateway, stillMarket, stillTime } from "@trigate/testing/HostedGateway"
import * as Effect from "effect/Effect"
import { privateKeyToAccount } from "viem/accounts"
import { classified, exchangeAt } from "./ccxtVenue.ts"
import { rejection } from "./rejection.ts"

const day = 86_400_000

const btc = "BTC/USDC:USDC"

describe("a bot written with ccxt", () => {
  it.live("reads markets, prices, candles, funding and an account without trades", () =>
    Effect.gen(function*() {
      const { url } = yield* hostedGateway(stillMarket)
      const exchange = exchangeAt(url, keys.trader)
      const call = <A>(read: (of: typeof exchange) => Promise<A>) => Effect.promise(() => read(exchange))
      const since = stillTime - day

      yield* call((of) => of.loadMarkets())
      assert.strictEqual((yield* call((of) => of.fetchStatus())).status, "ok")
      const tickers = Object.values(yield* call((of) => of.fetchTickers()))
      assert.isAbove(tickers.length, 200)
      // the venue lists delisted perpetuals, without a middle price
      const unpriced = tickers.filter(({ last }) => last === undefined || last <= 0).map(({ symbol }) => symbol)
      assert.deepStrictEqual(unpriced.filter((symbol) => exchange.market(symbol).active !== false), [])
      assert.strictEqual(unpriced.length, 38)
      for (const symbol of [btc, "PURR/USDC", "HYPE/USDC"]) {
        const [bid] = (yield* call((of) => of.fetchOrderBook(symbol))).bids
        const { last } = yield* call((of) => of.fetchTicker(symbol))
        assert.isBelow(bid?.[0] ?? 0, last ?? 0, symbol)
        assert.strictEqual((yield* call((of) => of.fetchOHLCV(symbol, "5m", since, 3))).length, 3, symbol)
      }
      assert.isBelow(Math.abs(Math.log(((yield* call((of) => of.fetchTicker("HYPE/USDC"))).last ?? 0) / 31)), 2)

      assert.deepStrictEqual<unknown>((yield* call((of) => of.fetchBalance()))["total"], { USDC: 10_000 })
      const spot = yield* call((of) => of.fetchBalance({ type: "spot" }))
      assert.deepStrictEqual<unknown>(spot["total"], { USDC: 10_000, HYPE: 100 })
      const lists: ReadonlyArray<(of: typeof exchange) => Promise<unknown>> = [
        (of) => of.fetchPositions(),
        (of) => of.fetchOpenOrders(),
        (of) => of.fetchClosedOrders(),
        (of) => of.fetchCanceledOrders(),
        (of) => of.fetchOrders(),
        (of) => of.fetchMyTrades(btc, since),
        (of) => of.fetchLedger(undefined, since),
        (of) => of.fetchDeposits(undefined, since),
        (of) => of.fetchWithdrawals(undefined, since),
        (of) => of.fetchFundingHistory(btc, since)
      ]
      for (const list of lists) assert.deepStrictEqual(yield* call(list), [], list.toString())
      const order = classified(yield* rejection(() => exchange.fetchOrder("1")))
      assert.deepStrictEqual(order, { name: "OrderNotFound", message: "hyperliquid {\"status\":\"unknownOid\"}" })

      const fee = yield* call((of) => of.fetchTradingFee(btc))
      assert.deepStrictEqual([fee.maker, fee.taker], [0.00015, 0.00045])
      const rates = yield* call((of) => of.fetchFundingRateHistory(btc, since))
      assert.deepStrictEqual([...new Set(rates.map(({ fundingRate }) => fundingRate))], [0.0000125])
      assert.strictEqual(rates.length, 24)
      assert.deepStrictEqual(Object.keys(yield* call((of) => of.fetchFundingRates())).slice(0, 14), [
        btc,
        "ETH/USDC:USDC",
        "ATOM/USDC:USDC",
        "MATIC/USDC:USDC",
        "DYDX/USDC:USDC",
        "SOL/USDC:USDC",
        "AVAX/USDC:USDC",
        "BNB/USDC:USDC",
        "APE/USDC:USDC",
        "OP/USDC:USDC",
        "LTC/USDC:USDC",
        "ARB/USDC:USDC",
        "DOGE/USDC:USDC",
        "INJ/USDC:USDC"
      ])
    }))
})

describe("a bot written with @nktkas/hyperliquid", () => {
  it.live("delegates, and then reads what it holds", () =>
    Effect.gen(function*() {
      const { url } = yield* hostedGateway(stillMarket)
      const transport = new HttpTransport({ apiUrl: url })
      const info = new InfoClient({ transport })
      const call = <A>(read: (of: InfoClient) => Promise<A>) => Effect.promise(() => read(info))
      const wallet = privateKeyToAccount(keys.trader.privateKey)
      const user = keys.trader.address
      const validator = keys.validator.address

      yield* Effect.promise(() =>
        new ExchangeClient({ transport, wallet }).tokenDelegate({ validator, wei: 150_000_000, isUndelegate: false })
      )
      const [delegation, ...others] = yield* call((of) => of.delegations({ user }))
      assert.deepStrictEqual([delegation?.validator, delegation?.amount, others.length], [validator, "1.5", 0])
      assert.isAtLeast(delegation?.lockedUntilTimestamp ?? 0, stillTime + day)
      assert.deepStrictEqual(yield* call((of) => of.delegatorSummary({ user })), {
        delegated: "1.5",
        undelegated: "998.5",
        totalPendingWithdrawal: "0.0",
        nPendingWithdrawals: 0
      })
      const history = yield* call((of) => of.delegatorHistory({ user }))
      assert.deepStrictEqual(history.map(({ delta }) => delta), [
        { delegate: { validator, amount: "1.5", isUndelegate: false } }
      ])
      const [summary] = yield* call((of) => of.validatorSummaries())
      assert.deepStrictEqual([summary?.validator, summary?.stake], [validator, 150_000_000])
      assert.deepStrictEqual(yield* call((of) => of.userRole({ user })), { role: "user" })
      assert.strictEqual((yield* call((of) => of.userRateLimit({ user }))).nRequestsUsed, 1)
      assert.deepStrictEqual(
        (yield* call((of) => of.spotClearinghouseState({ user }))).balances.map(({ coin, total }) => [coin, total]),
        [["USDC", "10000.0"], ["HYPE", "100.0"]]
      )
      assert.deepStrictEqual((yield* call((of) => of.clearinghouseState({ user }))).assetPositions, [])
      assert.strictEqual((yield* call((of) => of.userFees({ user }))).userCrossRate, "0.00045")
      const active = yield* call((of) => of.activeAssetData({ user, coin: "BTC" }))
      assert.deepStrictEqual([active.user, active.availableToTrade], [user, ["10000.0", "10000.0"]])
      assert.approximately(Number(active.maxTradeSzs[0]) * Number(active.markPx), 200_000, 2)
      assert.isAbove(Number(active.markPx), 0)
      assert.deepStrictEqual(
        (yield* call((of) => of.portfolio({ user }))).map(([, { accountValueHistory, vlm }]) => [
          accountValueHistory.map(([, value]) => value),
          vlm
        ]),
        Array.from({ length: 8 }, (_, index) => [[index < 4 ? "20000.0" : "10000.0"], "0.0"])
      )
      const lists: ReadonlyArray<(of: InfoClient) => Promise<unknown>> = [
        (of) => of.openOrders({ user }),
        (of) => of.frontendOpenOrders({ user }),
        (of) => of.historicalOrders({ user }),
        (of) => of.userFills({ user }),
        (of) => of.userFillsByTime({ user, startTime: stillTime - day }),
        (of) => of.userFunding({ user, startTime: stillTime - day }),
        (of) => of.userNonFundingLedgerUpdates({ user, startTime: stillTime - day }),
        (of) => of.userTwapSliceFills({ user }),
        (of) => of.twapHistory({ user }),
        (of) => of.userVaultEquities({ user }),
        (of) => of.delegatorRewards({ user }),
        (of) => of.extraAgents({ user }),
        (of) => of.perpsAtOpenInterestCap()
      ]
      for (const list of lists) assert.deepStrictEqual(yield* call(list), [], list.toString())
      assert.isNull(yield* call((of) => of.subAccounts({ user })))
      assert.strictEqual(yield* call((of) => of.maxBuilderFee({ user, builder: validator })), 0)
      assert.deepStrictEqual(yield* call((of) => of.orderStatus({ user, oid: 1 })), { status: "unknownOid" })
    }))
})
