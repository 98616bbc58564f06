/** Spot tokens that accounts deploy: their genesis, their pairs and Hyperliquidity, fees, frozen accounts and quote tokens. */
import { assert, describe, it } from "@effect/vitest"
import { ExportedArchive } from "@trigate/archive/CandleFiles"
import { barAt } from "@trigate/domain/candles/Candle"
import { infoOperations } from "@trigate/domain/info/InfoOperations"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import { hype, usdc } from "@trigate/sandbox/unstable/venue/Assets"
import * as VenueArchive from "@trigate/sandbox/venue/VenueArchive"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { getContractAddress, keccak256, pad, toHex } from "viem"
import { check } from "./randomTrading.ts"
import { act, ask, askAt, listOf, oidOf, place, venueNow } from "./trader.ts"
import { atStart, start } from "./venue.ts"

const user = keys.trader.address
const deployer = `0x${"d".repeat(40)}` as const
const other = `0x${"2".repeat(40)}` as const
const holders = [`0x${"4".repeat(40)}`, `0x${"5".repeat(40)}`, `0x${"6".repeat(40)}`] as const
const strategy = `0x${"f".repeat(40)}` as const
const chain = { signatureChainId: "0x66eee", hyperliquidChain: "Mainnet" } as const
const million = "100000000000000"

const deploy = (members: object, sender: `0x${string}` = deployer) => act(sender, "spotDeploy", members)

const spec = { name: "NEW", szDecimals: 2, weiDecimals: 8 }
const registerToken = (rest: object = {}, maxGas = 300_000_000_000) =>
  deploy({ registerToken2: { spec: { ...spec, ...rest }, maxGas, fullName: "New token" } })

/** Gives the deployer HYPE for auctions, and USDC, and registers a token. Returns its index. */
const withToken = Effect.gen(function*() {
  const { trading } = yield* SandboxState
  yield* trading.depositSpot(deployer, hype, "3000")
  yield* trading.depositSpot(deployer, usdc, "1000")
  return Number(yield* registerToken())
})

const userGenesis = (token: number, rest: object) =>
  deploy({ userGenesis: { token, userAndWei: [], existingTokenAndWei: [], ...rest } })

const genesis = (token: number, maxSupply: string, rest: object = {}) =>
  deploy({ genesis: { token, maxSupply, ...rest } })

const register = (token: number, quote: number = usdc) =>
  Effect.map(
    deploy({ registerSpot: { tokens: [token, quote] } }),
    (data) => typeof data === "number" ? data : String(data)
  )

const hyperliquidity = (spot: number | string, rest: object = {}) =>
  deploy({ registerHyperliquidity: { spot, startPx: "2", orderSz: "10", nOrders: 5, nSeededLevels: 2, ...rest } })

/** A token of which `user` has a million, with a pair and the orders of Hyperliquidity. */
const withPair = Effect.gen(function*() {
  const token = yield* withToken
  yield* userGenesis(token, { userAndWei: [[user, million], [strategy, "3000000000"]] })
  yield* genesis(token, "100003000000000")
  const spot = Number(yield* register(token))
  assert.isUndefined(yield* hyperliquidity(spot))
  return { token, spot, asset: 10_000 + spot, coin: `@${spot}` }
})

const balance = (owner: string, token: number) =>
  Effect.map(
    askAt({ type: "spotClearinghouseState", user: owner }, "balances"),
    (rows) => JsonParts.at(listOf(rows).find((row) => JsonParts.at(row, "token") === token), "total")
  )

const levels = (coin: string) =>
  Effect.map(
    askAt({ type: "l2Book", coin }, "levels"),
    (sides) =>
      listOf(sides).map((side) => listOf(side).map((level) => [JsonParts.at(level, "px"), JsonParts.at(level, "sz")]))
  )

describe("the deployer of a token", () => {
  it.effect("wins the auction, which ends, and the next one starts at twice the price", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      const auction = ask({ type: "spotPairDeployAuctionStatus" })
      const price = Number(yield* askAt({ type: "spotPairDeployAuctionStatus" }, "currentGas"))
      assert.strictEqual(yield* registerToken(), "Insufficient gas at current auction price.")
      yield* trading.depositSpot(deployer, hype, "3000")
      assert.strictEqual(yield* registerToken({}, 1), "Insufficient gas at current auction price.")
      for (
        const rest of [{ name: "TOOLONG" }, { name: "" }, { szDecimals: 3 }, { weiDecimals: 6 }, { weiDecimals: 9 }]
      ) {
        assert.strictEqual(yield* registerToken(rest), "Error deploying spot: invalid token spec")
      }
      const index = Number(yield* registerToken())
      assert.strictEqual(
        yield* registerToken(),
        "Error deploying spot: Gas auction completed. Try again later"
      )
      assert.strictEqual(yield* balance(deployer, hype), String(3_000 - price))
      const ended = yield* auction
      assert.deepInclude(ended, { currentGas: null, endGas: price.toFixed(8) })
      assert.deepStrictEqual(yield* ask({ type: "spotDeployState", user: deployer }), {
        states: [{
          token: index,
          spec,
          fullName: "New token",
          deployerTradingFeeShare: "1.0",
          spots: [],
          maxSupply: null,
          hyperliquidityGenesisBalance: "0.0",
          totalGenesisBalanceWei: "0",
          userGenesisBalances: [],
          existingTokenGenesisBalances: [],
          blacklistUsers: []
        }],
        gasAuction: ended
      })
      assert.deepStrictEqual(
        JsonParts.at(
          listOf(yield* ask({ type: "userNonFundingLedgerUpdates", user: deployer, startTime: 0 }))[0],
          "delta"
        ),
        { type: "deployGasAuction", token: "HYPE", amount: String(price) }
      )
      yield* trading.advance(111_600_000)
      assert.strictEqual(Number(JsonParts.at(yield* auction, "startGas")), 2 * price)
      check((yield* venueNow).state)
    })))

  it.effect("creates the supply for accounts and for the holders of other tokens, without those it excludes", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      const [first, second, third] = holders
      yield* trading.depositSpot(first, 1, "30")
      yield* trading.depositSpot(second, 1, "60")
      yield* trading.depositSpot(third, 1, "500")
      const token = yield* withToken
      assert.strictEqual(yield* register(token), "Error deploying spot: missing token max_supply")
      yield* userGenesis(token, { userAndWei: [[other.toUpperCase().replace("0X", "0x"), "100"]] })
      yield* userGenesis(token, { userAndWei: [[other, "50"]], existingTokenAndWei: [[1, "1000"]] })
      yield* userGenesis(token, { blacklistUsers: [[third, true], [first, true]] })
      yield* userGenesis(token, { blacklistUsers: [[first, false]] })
      const accounts = [...(yield* venueNow).state.accounts.values()]
      const all = accounts.reduce(
        (total, { address, spot }) => address === third ? total : total + (spot.get(1)?.total ?? 0n),
        0n
      )
      for (
        const rest of [{ userAndWei: [[other, "1.5"]] }, { existingTokenAndWei: [[token, "1"]] }, {
          userAndWei: [[other, String(2n ** 63n)]]
        }]
      ) {
        assert.strictEqual(yield* userGenesis(token, rest), "Genesis error: invalid amounts")
      }
      assert.strictEqual(yield* genesis(token, "1151"), "Genesis error: max supply does not match the genesis balances")
      assert.strictEqual(yield* userGenesis(token, {}), undefined)
      assert.isUndefined(yield* genesis(token, "1150"))
      assert.strictEqual(yield* genesis(token, "1150"), "Genesis error: genesis already happened")
      assert.strictEqual(yield* userGenesis(token, {}), "Genesis error: genesis already happened")
      const { state } = yield* venueNow
      const has = (address: `0x${string}`) => state.accounts.get(address)?.spot.get(token)?.total
      assert.deepStrictEqual([has(other), has(third)], [150n, undefined])
      assert.strictEqual(has(first), 1_000n * 3_000_000n / all)
      assert.strictEqual(has(second), 1_000n * 6_000_000n / all)
      const { venue } = yield* SandboxState
      assert.isTrue((yield* Ref.get(venue.state)).accounts.has(other))
      assert.deepStrictEqual(
        JsonParts.at(
          listOf(yield* ask({ type: "userNonFundingLedgerUpdates", user: other, startTime: 0 }))[0],
          "delta"
        ),
        { type: "spotGenesis", token: "NEW", amount: "0.0000015" }
      )
      check(state)
    })))

  it.effect("follows the order of the steps, and no other account takes one", () =>
    atStart(Effect.gen(function*() {
      const token = yield* withToken
      const incorrect = "Error deploying spot: incorrect deployer"
      assert.strictEqual(
        yield* deploy({ userGenesis: { token, userAndWei: [], existingTokenAndWei: [] } }, other),
        incorrect
      )
      assert.strictEqual(yield* userGenesis(usdc, {}), "Genesis error: genesis already happened")
      assert.strictEqual(yield* register(usdc), incorrect)
      assert.strictEqual(yield* hyperliquidity(9_999), incorrect)
      yield* userGenesis(token, { userAndWei: [[user, "100"], [strategy, "100"]] })
      const without = "Error deploying spot: genesis without Hyperliquidity"
      assert.strictEqual(yield* genesis(token, "200", { noHyperliquidity: true }), without)
      yield* genesis(token, "200")
      assert.strictEqual(yield* register(token, token), "Error deploying spot: invalid quote token")
      assert.strictEqual(yield* register(token, 1), "Error deploying spot: invalid quote token")
      const spot = yield* register(token)
      assert.strictEqual(yield* register(token), "Error deploying spot: pair already registered")
      // the pair is listed, and trades only after the last step
      assert.deepInclude(listOf(yield* askAt({ type: "spotMeta" }, "universe")).at(-1), {
        tokens: [token, usdc],
        name: `@${spot}`,
        index: spot
      })
      assert.deepStrictEqual(yield* place(user, 10_000 + Number(spot), "buy", "10", "2"), {
        error: `Unknown asset. asset=${10_000 + Number(spot)}`
      })
      const invalid = "Error deploying spot: invalid Hyperliquidity orders"
      for (
        const rest of [
          { startPx: "0" },
          { startPx: "2.00001" },
          { orderSz: "0" },
          { orderSz: "0.001" },
          { nSeededLevels: 6 },
          { startPx: "0.00001" },
          { nOrders: 5_000 }
        ]
      ) {
        assert.strictEqual(yield* hyperliquidity(spot, rest), invalid, JSON.stringify(rest))
      }
      assert.strictEqual(yield* hyperliquidity(spot), "Error deploying spot: insufficient Hyperliquidity balance")
      assert.isUndefined(yield* hyperliquidity(spot, { nOrders: 0, nSeededLevels: 0 }))
      assert.strictEqual(yield* hyperliquidity(spot), "Error deploying spot: Hyperliquidity already registered")
      const annotation = { category: "c", description: "d", displayName: null, keywords: null }
      assert.isUndefined(yield* deploy({ setDeployerLabel: { label: "x" } }))
      assert.isUndefined(yield* deploy({ setTokenAnnotation: { token, annotation } }))
      assert.strictEqual(yield* deploy({ setTokenAnnotation: { token, annotation } }, other), incorrect)
      const { deployerLabels, spotTokens } = (yield* venueNow).state
      assert.deepStrictEqual([deployerLabels.get(deployer), spotTokens.get(token)?.annotation], ["x", annotation])
      check((yield* venueNow).state)
    })))

  it.effect("links an EVM contract, which its creator finalizes", () =>
    atStart(Effect.gen(function*() {
      const token = yield* withToken
      const address = getContractAddress({ from: other, nonce: 3n })
      const request = (evmExtraWeiDecimals: number) =>
        deploy({ requestEvmContract: { token, address, evmExtraWeiDecimals } })
      const finalize = (nonce: number, sender: `0x${string}` = other) =>
        act(sender, "finalizeEvmContract", { token, input: { create: { nonce } } })
      yield* SandboxState.use(({ trading }) => trading.depositUsd(other, "5"))
      assert.strictEqual(yield* finalize(3), "Error deploying spot: Pending EVM contract missing")
      const invalid = "Error deploying spot: invalid EVM contract"
      assert.deepStrictEqual([yield* request(19), yield* request(-3)], [invalid, invalid])
      assert.isUndefined(yield* request(10))
      assert.deepStrictEqual([yield* finalize(2), yield* finalize(3, deployer)], [invalid, invalid])
      const contract = Effect.map(askAt({ type: "spotMeta" }, "tokens"), (tokens) =>
        JsonParts.at(listOf(tokens).at(-1), "evmContract"))
      assert.isNull(yield* contract)
      assert.isUndefined(yield* finalize(3))
      assert.deepStrictEqual(yield* contract, { address: address.toLowerCase(), evm_extra_wei_decimals: 10 })
      assert.strictEqual(yield* finalize(3), "Error deploying spot: Pending EVM contract missing")
      assert.strictEqual(yield* request(10), invalid)
    })))

  it.effect("links an EVM contract, which the account in its first storage slot or in that of its finalizer finalizes", () =>
    Effect.gen(function*() {
      const slots = [["firstStorageSlot", "0x0"], [
        "customStorageSlot",
        keccak256(toHex("HyperCore deployer"))
      ]] as const
      for (const [input, slot] of slots) {
        yield* atStart(Effect.gen(function*() {
          const { evm, trading } = yield* SandboxState
          const token = yield* withToken
          const address = getContractAddress({ from: other, nonce: 3n })
          yield* deploy({ requestEvmContract: { token, address, evmExtraWeiDecimals: -2 } })
          yield* trading.depositUsd(other, "5")
          yield* trading.depositUsd(user, "5")
          const finalize = (sender: `0x${string}`) => act(sender, "finalizeEvmContract", { token, input })
          const invalid = "Error deploying spot: invalid EVM contract"
          assert.strictEqual(yield* finalize(user), invalid)
          for (const each of ["0x0", "0x1", keccak256("0x")] as const) {
            if (each !== slot) yield* evm.putStorageWord(address, each, pad(user))
          }
          assert.strictEqual(yield* finalize(user), invalid)
          yield* evm.putStorageWord(address, slot, pad(user))
          assert.strictEqual(yield* finalize(other), invalid)
          assert.isUndefined(yield* finalize(user), input)
          assert.deepStrictEqual((yield* venueNow).state.spotTokens.get(token)?.evmContract, {
            address: address.toLowerCase(),
            evm_extra_wei_decimals: -2
          })
        }))
      }
    }))

  it.effect("needs no Hyperliquidity: then accounts alone make the book", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      const token = yield* withToken
      yield* userGenesis(token, { userAndWei: [[user, million]] })
      yield* genesis(token, million, { noHyperliquidity: true })
      const spot = yield* register(token)
      const [asset, coin] = [10_000 + Number(spot), `@${spot}`]
      assert.strictEqual(yield* hyperliquidity(spot), "Error deploying spot: genesis without Hyperliquidity")
      yield* hyperliquidity(spot, { startPx: "0.5", orderSz: "0", nOrders: 0, nSeededLevels: 0 })
      yield* trading.advance(60_000)
      assert.deepStrictEqual(yield* levels(coin), [[], []])
      assert.deepStrictEqual(yield* ask({ type: "recentTrades", coin }), [])
      assert.strictEqual(yield* askAt({ type: "allMids" }, coin), "0.5")
      assert.deepStrictEqual(yield* place(user, asset, "buy", "100", "0.5", { tif: "Ioc" }), {
        error: `Order could not immediately match against any resting orders. asset=${asset}`
      })
      yield* place(user, asset, "sell", "100", "0.6")
      yield* trading.depositSpot(other, usdc, "100")
      assert.isDefined(JsonParts.at(yield* place(other, asset, "buy", "100", "0.6"), "filled"))
      assert.deepStrictEqual(yield* levels(coin), [[], []])
      assert.strictEqual(yield* askAt({ type: "allMids" }, coin), "0.6")
      yield* trading.setBook(coin, { bids: [{ px: "0.5", sz: "9" }], asks: [{ px: "0.8", sz: "90" }] })
      assert.deepStrictEqual(yield* levels(coin), [[["0.5", "9.0"]], [["0.8", "90.0"]]])
      assert.strictEqual(yield* askAt({ type: "allMids" }, coin), "0.65")
      assert.strictEqual(JsonParts.at(yield* place(other, asset, "buy", "20", "0.8"), "filled", "totalSz"), "20.0")
      check((yield* venueNow).state)
    })))
})

describe("Hyperliquidity", () => {
  it.effect("quotes a level 0.3% above the other, bids at the seeded ones, and turns a filled order to the other side", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      const { coin, asset, token } = yield* withPair
      const bids = [["2.006", "10.0"], ["2.0", "10.0"]]
      const asks = [["2.012", "10.0"], ["2.018", "10.0"], ["2.0241", "10.0"]]
      assert.deepStrictEqual(yield* levels(coin), [bids, asks])
      // the deployer has paid for the bids
      assert.strictEqual(yield* balance(deployer, usdc), "959.94")
      assert.deepStrictEqual([yield* balance(strategy, usdc), yield* balance(strategy, token)], ["40.06", "30.0"])
      const buy = yield* place(user, asset, "buy", "14", "2.018", { tif: "Ioc" })
      assert.deepInclude(JsonParts.at(buy, "filled"), { totalSz: "14.0", avgPx: "2.013714" })
      assert.deepStrictEqual(yield* levels(coin), [bids, [["2.018", "6.0"], ["2.0241", "10.0"]]])
      yield* trading.advance(3_000)
      assert.deepStrictEqual(yield* levels(coin), [[["2.012", "10.0"], ...bids], [["2.018", "6.0"], [
        "2.0241",
        "10.0"
      ]]])
      // the fee of Hyperliquidity is zero: 24.1 + 8.072 dollars
      assert.strictEqual(yield* balance(strategy, usdc), "68.252")
      yield* place(user, asset, "sell", "13", "2", { tif: "Ioc" })
      yield* trading.advance(3_000)
      // 29 tokens: two full asks, and a partial one below them
      assert.deepStrictEqual(yield* levels(coin), [bids, [["2.012", "9.0"], ...asks.slice(1)]])
      check((yield* venueNow).state)
    })))

  it.effect("waits three seconds, and does not cross the orders of accounts", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      const { asset, coin } = yield* withPair
      const best = Effect.map(levels(coin), ([bids = [], asks = []]) => [bids[0], asks[0]])
      yield* place(user, asset, "buy", "10", "2.012", { tif: "Ioc" })
      const resting = yield* place(user, asset, "sell", "7", "2.01")
      yield* trading.advance(2_000)
      assert.deepStrictEqual(yield* best, [["2.006", "10.0"], ["2.01", "7.0"]])
      yield* trading.advance(1_000)
      // a bid at 2.012 would match
      assert.deepStrictEqual(yield* best, [["2.006", "10.0"], ["2.01", "7.0"]])
      yield* act(user, "cancel", { cancels: [{ a: asset, o: oidOf(resting) }] })
      yield* trading.advance(2_000)
      assert.deepStrictEqual(yield* best, [["2.006", "10.0"], ["2.018", "10.0"]])
      yield* trading.advance(1_000)
      assert.deepStrictEqual(yield* best, [["2.012", "10.0"], ["2.018", "10.0"]])
      check((yield* venueNow).state)
    })))

  it.effect("answers a month later without a trade as at once, and is part of a snapshot", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      const { asset, coin } = yield* withPair
      const saved = yield* trading.snapshot
      const before = yield* levels(coin)
      yield* place(user, asset, "buy", "10", "2.1", { tif: "Ioc" })
      yield* trading.advance(30 * 86_400_000)
      assert.notDeepEqual(yield* levels(coin), before)
      yield* trading.restore(saved)
      assert.deepStrictEqual(yield* levels(coin), before)
    })))
})

describe("a deployed pair", () => {
  it.effect("has contexts, candles, trades, fills and details like any other", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      const { asset, coin, spot, token } = yield* withPair
      yield* trading.advance(61_000)
      yield* place(user, asset, "buy", "14", "2.018", { tif: "Ioc" })
      const context = listOf(yield* askAt({ type: "spotMetaAndAssetCtxs" }, 1)).find((each) =>
        JsonParts.at(each, "coin") === coin
      )
      assert.deepInclude(context, {
        markPx: "2.018",
        midPx: "2.012",
        prevDayPx: "2.009",
        dayBaseVlm: "14.0",
        circulatingSupply: "1000030.0"
      })
      const bars = yield* ask({ type: "candleSnapshot", req: { coin, interval: "1m", startTime: start } })
      assert.deepStrictEqual(
        listOf(bars).map((bar) => ["o", "c", "h", "l", "v", "n"].map((each) => JsonParts.at(bar, each))),
        [["2.009", "2.009", "2.009", "2.009", "0.0", 0], ["2.009", "2.018", "2.018", "2.009", "14.0", 2]]
      )
      const trades = listOf(yield* ask({ type: "recentTrades", coin }))
      assert.deepStrictEqual(trades.map((trade) => JsonParts.at(trade, "px")), ["2.018", "2.012"])
      const details = yield* askAt({ type: "spotMeta" }, "tokens")
      const listed = listOf(details).find((each) => JsonParts.at(each, "index") === token)
      assert.deepInclude(listed, { name: "NEW", fullName: "New token", deployerTradingFeeShare: "1.0" })
      const tokenId = JsonParts.at(listed, "tokenId")
      assert.deepInclude(yield* ask({ type: "tokenDetails", tokenId }), {
        name: "NEW",
        maxSupply: "1000030.0",
        totalSupply: "1000030.0",
        markPx: "2.018",
        deployer,
        deployTime: "2026-10-14T17:46:40.000",
        seededUsdc: "40.06",
        genesis: {
          userBalances: [[user, "1000000.0"], [strategy, "30.0"]],
          existingTokenBalances: [],
          blacklistUsers: []
        }
      })
      assert.deepStrictEqual(yield* askAt({ type: "spotDeployState", user: deployer }, "states", 0, "spots"), [spot])
      const archive = yield* ExportedArchive.pipe(Effect.provide(VenueArchive.layer))
      yield* trading.advance(60_000)
      const last = barAt("1m", yield* trading.now) - 1
      const archived = yield* archive.read({ coin, interval: "1m" }, { from: last, to: last })
      assert.deepInclude(archived.bars[0], { o: "2.009", c: "2.018", v: "14.0", n: 2 })
      assert.deepStrictEqual(archived.known, [{ from: last, to: last }])
      for (const type of ["spotMeta", "candleSnapshot", "l2Book", "recentTrades"] as const) {
        const { response } = infoOperations[type]
        const members = type === "candleSnapshot" ? { req: { coin, interval: "1m", startTime: start } } : { coin }
        const answer = yield* ask({ type, ...type === "spotMeta" ? {} : members })
        assert.isTrue(Result.isSuccess(Schema.decodeUnknownResult(response)(answer)), type)
      }
      assert.isUndefined(
        yield* act(user, "spotSend", {
          ...chain,
          destination: other,
          token: `NEW:${String(tokenId)}`,
          amount: "5",
          time: 1
        })
      )
      assert.strictEqual(yield* balance(other, token), "5.0")
    })))

  it.effect("pays its deployer a part of the fees in the token, and burns the rest", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      const { asset, token } = yield* withPair
      const buy = place(user, asset, "buy", "10", "2.1", { tif: "Ioc" })
      yield* buy
      assert.strictEqual(yield* balance(deployer, token), "0.007")
      const share = (text: string) => deploy({ setDeployerTradingFeeShare: { token, share: text } })
      assert.isUndefined(yield* share("25%"))
      const increase = "Error deploying spot: deployer trading fee share cannot increase"
      assert.deepStrictEqual([yield* share("25.001%"), yield* share("24.0001%")], [increase, increase])
      yield* buy
      assert.strictEqual(yield* balance(deployer, token), "0.00875")
      const { state } = yield* venueNow
      assert.strictEqual(state.deposited.get(token), 100_003_000_000_000n - 525_000n)
      assert.strictEqual(
        yield* askAt({ type: "spotDeployState", user: deployer }, "states", 0, "deployerTradingFeeShare"),
        "0.25"
      )
      yield* trading.advance(10_000)
      check(state)
    })))

  it.effect("cannot be traded, sent or received by a frozen account", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      const token = yield* withToken
      const privilege = (name: string) => deploy({ [name]: { token } })
      const freeze = (frozen: boolean, address: string = user) =>
        deploy({ freezeUser: { token, user: address, freeze: frozen } })
      assert.strictEqual(yield* freeze(true), "Error deploying spot: no freeze privilege")
      yield* privilege("enableFreezePrivilege")
      yield* userGenesis(token, { userAndWei: [[user, million], [other, million]] })
      yield* genesis(token, "200000000000000", { noHyperliquidity: true })
      assert.strictEqual(yield* privilege("enableFreezePrivilege"), "Genesis error: genesis already happened")
      const asset = 10_000 + Number(yield* register(token))
      yield* hyperliquidity(asset - 10_000, { nOrders: 0, nSeededLevels: 0 })
      yield* place(user, asset, "sell", "10", "2")
      yield* freeze(true)
      assert.deepStrictEqual(yield* ask({ type: "openOrders", user }), [])
      const frozen = "User is frozen for this token"
      const send = (from: `0x${string}`, destination: string) =>
        act(from, "spotSend", { ...chain, destination, token: "NEW", amount: "1", time: 1 })
      assert.deepStrictEqual(
        [yield* place(user, asset, "sell", "10", "2"), yield* place(user, asset, "buy", "10", "2")],
        [{ error: frozen }, { error: frozen }]
      )
      assert.deepStrictEqual([yield* send(user, other), yield* send(other, user)], [frozen, frozen])
      yield* freeze(false)
      assert.isUndefined(yield* send(user, other))
      yield* privilege("revokeFreezePrivilege")
      assert.strictEqual(yield* freeze(true), "Error deploying spot: no freeze privilege")
      assert.strictEqual(yield* privilege("revokeFreezePrivilege"), "Error deploying spot: no freeze privilege")
      yield* trading.advance(1_000)
      check((yield* venueNow).state)
    })))

  it.effect("is quoted in a token whose deployer has stake and no part of the fees", () =>
    atStart(Effect.gen(function*() {
      const { trading, venue } = yield* SandboxState
      const { token } = yield* withPair
      const enable = (name: string) => deploy({ [name]: { token } })
      const stake = (wei: bigint) =>
        venue.setAccount(deployer, { delegations: new Map([[keys.validator.address, { wei, lockedUntil: 0 }]]) })
      const hypeWei = 10n ** 8n
      yield* stake(200_000n * hypeWei - 1n)
      assert.strictEqual(yield* enable("enableQuoteToken"), "Error deploying spot: invalid quote token")
      yield* deploy({ setDeployerTradingFeeShare: { token, share: "0%" } })
      assert.strictEqual(yield* enable("enableQuoteToken"), "Insufficient stake")
      yield* stake(200_000n * hypeWei)
      assert.strictEqual(yield* enable("enableAlignedQuoteToken"), "Error deploying spot: invalid quote token")
      assert.isUndefined(yield* enable("enableQuoteToken"))
      assert.strictEqual(yield* enable("enableAlignedQuoteToken"), "Insufficient stake")
      const role = (name: string, of: number) => act(deployer, "authorizeAqav2Role", { token: of, role: name })
      assert.strictEqual(yield* role("treasury", token), "Insufficient stake")
      yield* stake(1_000_000n * hypeWei)
      assert.deepStrictEqual(
        [yield* role("treasury", token), yield* role("other", token), yield* role("treasury", 1)],
        [undefined, "Error deploying spot: invalid quote token", "Error deploying spot: invalid quote token"]
      )
      yield* venue.setAccount(other, {
        delegations: new Map([[keys.validator.address, { wei: 500_000n * hypeWei, lockedUntil: 0 }]])
      })
      assert.strictEqual(
        yield* act(other, "authorizeAqav2Role", { token, role: "treasury" }),
        "Error deploying spot: role already authorized"
      )
      assert.isUndefined(yield* enable("enableAlignedQuoteToken"))
      assert.isUndefined(yield* deploy({ disableQuoteToken: { token } }))
      assert.isUndefined(yield* enable("enableQuoteToken"))
      yield* trading.advance(111_600_000)
      yield* trading.depositSpot(deployer, hype, "5000")
      const next = Number(yield* registerToken({ name: "OTHER" }, 500_000_000_000))
      yield* userGenesis(next, { userAndWei: [[other, million], [strategy, million]] })
      yield* genesis(next, "200000000000000")
      const spot = Number(yield* register(next, token))
      assert.strictEqual(
        yield* hyperliquidity(spot),
        "Error deploying spot: Hyperliquidity requires USDC as quote token"
      )
      yield* hyperliquidity(spot, { nOrders: 0, nSeededLevels: 0 })
      // only the first pair is included in the price of the token
      assert.strictEqual(yield* register(next), "Error deploying spot: Gas auction completed. Try again later")
      assert.strictEqual(yield* deploy({ disableQuoteToken: { token } }), "Error deploying spot: invalid quote token")
      yield* place(other, 10_000 + spot, "sell", "100", "2")
      assert.isDefined(JsonParts.at(yield* place(user, 10_000 + spot, "buy", "100", "2"), "filled"))
      assert.strictEqual(yield* balance(user, next), "99.93")
      yield* trading.advance(111_600_000)
      const before = Number(yield* balance(deployer, hype))
      const price = Number(yield* askAt({ type: "spotPairDeployAuctionStatus" }, "currentGas"))
      assert.isNumber(yield* register(next))
      assert.strictEqual(Number(yield* balance(deployer, hype)).toFixed(6), (before - price).toFixed(6))
      check((yield* venueNow).state)
    })))
})
