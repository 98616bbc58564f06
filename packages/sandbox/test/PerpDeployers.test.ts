/** Dexes of perpetuals: one with other collateral, and those that accounts deploy. */
import { assert, describe, it } from "@effect/vitest"
import { infoOperations } from "@trigate/domain/info/InfoOperations"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import { usdc, usdh } from "@trigate/sandbox/unstable/venue/Assets"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { check } from "./randomTrading.ts"
import { act, ask, askAt, listOf, place, venueNow } from "./trader.ts"
import { atStart, start } from "./venue.ts"

const user = keys.trader.address
const deployer = `0x${"d".repeat(40)}` as const
const other = `0x${"2".repeat(40)}` as const
const chain = { signatureChainId: "0x66eee", hyperliquidChain: "Mainnet" } as const
const km = 130_000
const deployed = 140_000

const send = (token: string, amount: string, sourceDex: string, destinationDex: string) =>
  act(user, "sendAsset", {
    ...chain,
    destination: user,
    sourceDex,
    destinationDex,
    token,
    amount,
    fromSubAccount: "",
    nonce: 1
  })

const deploy = (members: object, sender: `0x${string}` = deployer) => act(sender, "perpDeploy", members)

const assetRequest = { coin: "abc:ONE", szDecimals: 2, oraclePx: "50", marginTableId: 10, marginMode: "normal" }
const schema = { fullName: "Alphabet", collateralToken: usdc, oracleUpdater: other }
const register = (request: object = {}, rest: object = {}) =>
  deploy({
    registerAsset2: { maxGas: null, assetRequest: { ...assetRequest, ...request }, dex: "abc", schema: null, ...rest }
  })

/** A deployer with the stake, and its dex with one perpetual. */
const withDex = Effect.gen(function*() {
  const { trading, venue } = yield* SandboxState
  yield* trading.depositSpot(deployer, usdc, "10")
  yield* venue.setAccount(deployer, {
    delegations: new Map([[keys.validator.address, { wei: 500_000n * 10n ** 8n, lockedUntil: 0 }]])
  })
  assert.isUndefined(yield* register({}, { schema }))
})

const fillsOf = (member: string) =>
  Effect.map(ask({ type: "userFills", user }), (fills) => listOf(fills).map((fill) => JsonParts.at(fill, member)))

describe("a dex with another collateral than USDC", () => {
  it.effect("takes that token alone, and settles positions, fees and funding in it", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* trading.depositSpot(user, usdh, "1000")
      assert.strictEqual(yield* send("USDC", "10", "spot", "km"), "Invalid amount")
      assert.strictEqual(yield* send("USDH", "10", "spot", "xyz"), "Invalid amount")
      assert.isUndefined(yield* send("USDH", "600", "spot", "km"))
      yield* trading.playPrices("km:US500", [{ time: 0, price: 6_800 }])
      yield* place(user, km, "buy", "0.5", "6900", { tif: "Ioc" })
      assert.deepStrictEqual([yield* fillsOf("feeToken"), yield* fillsOf("coin")], [["USDH"], ["km:US500"]])
      yield* trading.advance(3_600_000)
      yield* place(user, km, "sell", "0.5", "6700", { tif: "Ioc", r: true })
      const value = yield* askAt({ type: "clearinghouseState", user, dex: "km" }, "marginSummary", "accountValue")
      assert.isUndefined(yield* send("USDH", String(value), "km", "spot"))
      const balances = listOf(yield* askAt({ type: "spotClearinghouseState", user }, "balances"))
      const row = balances.find((each) => JsonParts.at(each, "coin") === "USDH")
      assert.deepStrictEqual(JsonParts.at(row, "total"), String(400 + Number(value)))
      assert.isBelow(Number(value), 600)
      check((yield* venueNow).state)
    })))

  it.effect("is margined by that token of a unified account", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* act(user, "userSetAbstraction", { ...chain, user, abstraction: "unifiedAccount", nonce: 1 })
      yield* trading.playPrices("km:US500", [{ time: 0, price: 6_800 }])
      const buy = place(user, km, "buy", "0.5", "6900", { tif: "Ioc" })
      assert.deepStrictEqual(yield* buy, { error: `Insufficient margin to place order. asset=${km}` })
      yield* trading.depositSpot(user, usdh, "1000")
      assert.isDefined(JsonParts.at(yield* buy, "filled"))
      check((yield* venueNow).state)
    })))
})

describe("the deployer of a dex", () => {
  it.effect("needs stake, registers perpetuals that anyone trades at its prices, and earns its fees", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      assert.strictEqual(yield* register({}, { schema }), "Insufficient stake")
      yield* withDex
      assert.deepInclude(listOf(yield* ask({ type: "perpDexs" })).at(-1), {
        name: "abc",
        fullName: "Alphabet",
        deployer,
        oracleUpdater: other
      })
      assert.deepInclude(JsonParts.at(yield* ask({ type: "meta", dex: "abc" }), "universe", 0), {
        name: "abc:ONE",
        szDecimals: 2,
        maxLeverage: 10
      })
      yield* send("USDC", "1000", "", "abc")
      yield* place(user, deployed, "buy", "20", "50.5", { tif: "Ioc" })
      const [fee] = yield* fillsOf("fee")
      const notional = Number((yield* fillsOf("px"))[0]) * 20
      // the base fee, and the same for the deployer
      assert.approximately(Number(fee), notional * 0.0009, 1e-6)
      const earned = yield* askAt({ type: "spotClearinghouseState", user: deployer }, "balances", 0, "total")
      assert.approximately(Number(earned), 10 + notional * 0.00045, 1e-6)
      const price = (px: string, sender: `0x${string}`) =>
        deploy({
          setOracle: { dex: "abc", oraclePxs: [["abc:ONE", px]], markPxs: [[["abc:ONE", px]]], externalPerpPxs: [] }
        }, sender)
      assert.isUndefined(yield* price("50.2", other))
      assert.strictEqual(
        yield* price("50.2", deployer),
        "Error deploying perp: oracle was updated less than 2.5 seconds ago"
      )
      yield* trading.advance(3_000)
      // a mark price moves by at most a hundredth
      yield* price("80", deployer)
      const mark = () =>
        Effect.map(
          askAt({ type: "metaAndAssetCtxs", dex: "abc" }, 1, 0),
          (ctx) => [JsonParts.at(ctx, "oraclePx"), JsonParts.at(ctx, "markPx")]
        )
      yield* trading.advance(1_000)
      assert.deepStrictEqual(yield* mark(), ["80.0", "50.601"])
      yield* deploy({ setDeployerFees: [["abc:ONE", { scale: "3", growthMode: true }]] })
      yield* place(user, deployed, "sell", "10", "50", { tif: "Ioc" })
      const sold = Number((yield* fillsOf("px"))[0]) * 10
      // growth mode: a tenth of three times the base fee, twice
      assert.approximately(Number((yield* fillsOf("fee"))[0]), sold * 0.00045 * 0.6, 1e-5)
      const bars = yield* ask({
        type: "candleSnapshot",
        req: { coin: "abc:ONE", interval: "1m", startTime: start - 60_000 }
      })
      assert.include(JSON.stringify(bars), "50.601")
      check((yield* venueNow).state)
    })))

  it.effect("halts a perpetual, which settles its positions, resumes it, and grants rights", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* withDex
      yield* send("USDC", "1000", "", "abc")
      yield* place(user, deployed, "buy", "20", "50.5", { tif: "Ioc" })
      yield* place(user, deployed, "buy", "20", "40")
      const halt = (isHalted: boolean, sender: `0x${string}`) =>
        deploy({ haltTrading: { coin: "abc:ONE", isHalted } }, sender)
      assert.strictEqual(yield* halt(true, other), "Error deploying perp: not a deployer")
      yield* deploy({
        setSubDeployers: { dex: "abc", subDeployers: [{ variant: "haltTrading", user: other, allowed: true }] }
      })
      assert.isUndefined(yield* halt(true, other))
      const state = yield* ask({ type: "clearinghouseState", user, dex: "abc" })
      assert.deepStrictEqual(JsonParts.at(state, "assetPositions"), [])
      assert.deepStrictEqual(yield* ask({ type: "openOrders", user, dex: "abc" }), [])
      assert.isTrue(JsonParts.at(yield* ask({ type: "meta", dex: "abc" }), "universe", 0, "isDelisted"))
      assert.isDefined(JsonParts.at(yield* place(user, deployed, "buy", "20", "40"), "error"))
      assert.isUndefined(yield* halt(false, other))
      yield* trading.advance(1_000)
      assert.isDefined(JsonParts.at(yield* place(user, deployed, "buy", "20", "40"), "resting"))
      check((yield* venueNow).state)
    })))

  it.effect("funds its liquidator in thousands, and gets the collateral back", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* withDex
      const move = (ntl: number, isDeposit: boolean, sender: `0x${string}` = deployer) =>
        act(sender, "hip3LiquidatorTransfer", { dex: "abc", ntl, isDeposit })
      const thousand = 1_000_000_000
      assert.strictEqual(yield* move(thousand, true), "Insufficient funds available to deposit.")
      for (const account of [deployer, user]) {
        yield* trading.depositUsd(account, "2500")
        yield* act(account, "sendAsset", {
          ...chain,
          destination: account,
          sourceDex: "",
          destinationDex: "abc",
          token: "USDC",
          amount: "2500",
          fromSubAccount: "",
          nonce: 1
        })
      }
      assert.strictEqual(yield* move(thousand - 1, true), "Invalid amount")
      assert.strictEqual(yield* move(thousand, true, user), "Only the deployer of a dex can fund its liquidator.")
      assert.isUndefined(yield* move(2 * thousand, true))
      const left = askAt({ type: "clearinghouseState", user: deployer, dex: "abc" }, "withdrawable")
      assert.strictEqual(yield* left, "500.0")
      check((yield* venueNow).state)
      assert.strictEqual(yield* move(3 * thousand, false), "Insufficient balance for withdrawal.")
      assert.isUndefined(yield* move(2 * thousand, false))
      assert.strictEqual(yield* left, "2500.0")
      check((yield* venueNow).state)
    })))

  it.effect("has the venue's limits: names, modes, caps, three perpetuals before the auction, and answers of the declared types", () =>
    atStart(Effect.gen(function*() {
      const { restore, snapshot, trading } = yield* SandboxState
      yield* withDex
      const refused = yield* Effect.all([
        register({ coin: "xyz:ONE" }),
        register({ coin: "abc:ONE" }),
        register({ coin: "abc:TWO", marginMode: "cross" }),
        register({ coin: "abc:TWO", marginTableId: 60 }),
        deploy({ setMarginModes: [["abc:NONE", "noCross"]] }),
        deploy({ setOpenInterestCaps: [["abc:ONE", 10]] }),
        deploy({ setDeployerFees: [["abc:ONE", { scale: "3.5", growthMode: false }]] })
      ])
      assert.deepStrictEqual(new Set(refused), new Set(["Error deploying perp: invalid asset"]))
      assert.strictEqual(
        yield* deploy({ disableDex: "abc" }),
        "Error deploying perp: the dex has assets that are not halted"
      )
      yield* register({ coin: "abc:TWO", marginMode: "strictIsolated" })
      yield* register({ coin: "abc:SIX" })
      assert.strictEqual(yield* register({ coin: "abc:TEN" }), "Insufficient gas at current auction price.")
      yield* trading.depositSpot(deployer, 150, "3000")
      assert.isUndefined(yield* register({ coin: "abc:TEN" }))
      yield* deploy({ setOpenInterestCaps: [["abc:ONE", 1_000_000], ["abc:TWO", null]] })
      const dexes = yield* ask({ type: "perpDexs" })
      assert.deepStrictEqual(JsonParts.at(listOf(dexes).at(-1), "assetToStreamingOiCap"), [["abc:ONE", "1000000.0"]])
      for (
        const [type, members] of [["perpDexs", {}], ["meta", { dex: "abc" }], ["metaAndAssetCtxs", {
          dex: "abc"
        }]] as const
      ) {
        const { response } = infoOperations[type]
        assert.isTrue(Result.isSuccess(Schema.decodeUnknownResult(response)(yield* ask({ type, ...members }))), type)
      }
      const saved = yield* snapshot
      yield* register({ coin: "abc:LAST" })
      const count = Effect.map(askAt({ type: "meta", dex: "abc" }, "universe"), (all) => listOf(all).length)
      assert.strictEqual(yield* count, 5)
      yield* restore(saved)
      assert.strictEqual(yield* count, 4)
    })))
})
