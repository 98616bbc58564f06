/**
 * Each answer and frame of the sandbox's venue has the type that `@nktkas/hyperliquid` declares for it. The
 * compiler checks the answers as literals, so that a missing, a wrong and an additional member fails.
 */
import { assert, describe, it } from "@effect/vitest"
import { InfoClient } from "@nktkas/hyperliquid"
import { SymbolConverter } from "@nktkas/hyperliquid/utils"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import { readAcknowledged } from "@trigate/domain/unstable/streams/Subscriptions"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import * as VenueStreams from "@trigate/sandbox/unstable/streams/VenueStreams"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { inflateRawSync } from "node:zlib"
import { act, ask, askAt, eth, hypeSpot, listOf, markOf, oidOf, place } from "../../packages/sandbox/test/trader.ts"
import { atStart, start } from "../../packages/sandbox/test/venue.ts"
import { capitalised, runCompiler, type Sample } from "./libraryTypes.ts"

const user = keys.trader.address
const other = `0x${"2".repeat(40)}` as const
const day = 86_400_000
const hype = "0x0d01dc56dcaaca66ad901c959b4011ec"
const vault = { name: "v", description: "d", initialUsd: 200_000_000, nonce: 1 }
const chain = { signatureChainId: "0x66eee", hyperliquidChain: "Mainnet" } as const

/** A transport whose requests the venue answers directly. */
const makeTransport = Effect.gen(function*() {
  const context = yield* Effect.context<SandboxState>()
  const respond = Effect.runPromiseWith(context)
  return {
    isTestnet: false,
    request: async <T>(_endpoint: string, payload: unknown): Promise<T> => {
      const answer = await respond(ask(Predicate.isObject(payload) ? payload : {}))
      // the library's method promises whatever type its caller names
      const isAnswer = (value: unknown): value is T => value !== undefined
      return isAnswer(answer) ? answer : assert.fail(`no answer to ${Encoding.stringify(payload)}`)
    }
  }
})

/** The members of the queries that need others than `user`. */
const members: { readonly [method: string]: object } = {
  orderStatus: { user, oid: 1 },
  candleSnapshot: { coin: "BTC", interval: "1m", startTime: start - 600_000, endTime: start },
  l2Book: { coin: "ETH" },
  recentTrades: { coin: "ETH" },
  fundingHistory: { coin: "ETH", startTime: start - 86_400_000 },
  activeAssetData: { user, coin: "ETH" },
  borrowLendReserveState: { token: 0 },
  marginTable: { id: 20 },
  maxBuilderFee: { user, builder: user },
  perpAnnotation: { coin: "BTC" },
  perpDexLimits: { dex: "xyz" },
  perpDexStatus: { dex: "" },
  preTransferCheck: { user, source: user },
  settledOutcome: { outcome: 1 },
  tokenDetails: { tokenId: hype },
  userFillsByTime: { user, startTime: 0 },
  userFunding: { user, startTime: 0 },
  userNonFundingLedgerUpdates: { user, startTime: 0 },
  userBorrowLendInterest: { user, startTime: 0 },
  userTwapSliceFillsByTime: { user, startTime: 0 }
}

const withRequest = (names: ReadonlyArray<string>, request: object) => names.map((name) => ({ name, request }))

/** The subscriptions that the sandbox plays. */
const subscriptions: ReadonlyArray<{ readonly name: string; readonly request: object }> = [
  ...withRequest(["spotAssetCtxs", "allDexsAssetCtxs", "allMids"], {}),
  ...withRequest(["assetCtxs"], { dex: "" }),
  ...withRequest(["l2Book", "bbo", "trades", "activeAssetCtx"], { coin: "ETH" }),
  ...withRequest(["activeAssetCtx"], { coin: "@107" }),
  ...withRequest(["candle"], { coin: "ETH", interval: "1m" }),
  ...withRequest(["activeAssetData"], { user, coin: "ETH" }),
  ...withRequest(["webData3", "clearinghouseState", "allDexsClearinghouseState", "openOrders", "spotState"], { user }),
  ...withRequest(["twapStates", "orderUpdates", "userEvents", "userFills", "userFundings"], { user }),
  ...withRequest(["userNonFundingLedgerUpdates", "userHistoricalOrders"], { user }),
  ...withRequest(["userTwapHistory", "userTwapSliceFills", "notification"], { user }),
  ...withRequest(["fastAssetCtxs"], {}),
  ...withRequest(["l2Book"], { coin: "ETH", nSigFigs: 5, mantissa: 2 }),
  ...withRequest(["l2Book"], { coin: "ETH", fast: true }),
  ...withRequest(["l2Book", "bbo", "trades", "candle"], { coin: "#1279180", interval: "1m" })
]

describe("@nktkas/hyperliquid", () => {
  it.effect("reads every answer of the sandbox with its own types", () =>
    atStart(Effect.gen(function*() {
      const info = new InfoClient({ transport: yield* makeTransport })
      const { trading } = yield* SandboxState
      yield* act(user, "updateLeverage", { asset: eth, isCross: false, leverage: 5 })
      yield* place(user, eth, "buy", "0.1", yield* markOf("ETH", 0.05), { tif: "Ioc" })
      yield* place(user, eth, "buy", "0.02", yield* markOf("ETH", -0.1))
      yield* act(user, "twapOrder", { twap: { a: eth, b: true, s: "2", r: false, m: 60, t: false } })
      yield* act(user, "approveAgent", { ...chain, agentAddress: other, agentName: "", nonce: 1 })
      yield* act(user, "createSubAccount", { name: "sub" })
      const vaultAddress = yield* act(user, "createVault", vault)
      for (const outcome of [128_288, 127_918]) {
        yield* act(user, "userOutcome", { splitOutcome: { outcome, amount: "10" } })
      }
      yield* trading.advance(3_600_000)
      const answers: Array<Sample> = []
      for (const name of Object.getOwnPropertyNames(InfoClient.prototype)) {
        if (name === "constructor") continue
        const call: unknown = Reflect.get(info, name)
        if (!Predicate.isFunction(call)) continue
        const of = name === "vaultDetails" ? { vaultAddress, user } : members[name] ?? { user }
        // a method without parameters takes the signal in their place
        const needs = call.length > 1 || members[name] !== undefined
        const value = yield* Effect.promise(async (): Promise<unknown> => Reflect.apply(call, info, needs ? [of] : []))
        answers.push({ name, type: `${capitalised(name)}Response`, value })
      }
      assert.isAtLeast(answers.length, 77)
      const mistakes = yield* runCompiler("info", answers)
      // the venue's answers have members, hints and roles of templates that the library's types do not have yet
      const isNewer = /"venue"|"uInt"|"uDecimal"|"questionOutcome"|'string' is .* standaloneOutcome/u
      assert.deepStrictEqual(mistakes.filter((mistake) => !isNewer.test(mistake)), [])
      assert.strictEqual(mistakes.length, 5)
    })))

  it.effect("reads every frame of the sandbox with its own types", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* place(user, eth, "buy", "0.1", yield* markOf("ETH", 0.05), { tif: "Ioc" })
      yield* act(user, "twapOrder", { twap: { a: eth, b: true, s: "2", r: false, m: 300, t: false } })
      yield* act(user, "createVault", vault)
      yield* trading.advance(3_600_000)
      const frames: Array<Sample> = []
      const made = VenueStreams.makeFrames(VenueStreams.makeFeed(yield* SandboxState))
      for (const { name, request } of subscriptions) {
        const subscription = Result.getOrThrow(readAcknowledged({ type: name, ...request }))
        const stream = made(subscription) ?? assert.fail(`${name} is refused`)
        const type = `${capitalised(JsonParts.at(request, "coin") === "@107" ? "activeSpotAssetCtx" : name)}Event`
        yield* Effect.forkChild(
          Stream.runForEach(stream, (frame) =>
            Effect.sync(() => {
              // the library inflates these frames before it types them
              const value: unknown = name === "fastAssetCtxs" && Predicate.isString(frame)
                ? JSON.parse(inflateRawSync(Buffer.from(frame, "base64")).toString())
                : frame
              frames.push({ name, type, value })
            }))
        )
      }
      yield* TestClock.adjust(1)
      const oid = oidOf(yield* place(user, eth, "buy", "0.02", yield* markOf("ETH", -0.1)))
      yield* act(user, "cancel", { cancels: [{ a: eth, o: oid }] })
      yield* act(user, "twapOrder", { twap: { a: eth, b: false, s: "2", r: false, m: 300, t: false } })
      yield* act(user, "usdClassTransfer", { ...chain, amount: "1", toPerp: true, nonce: 1 })
      yield* trading.advance(3_600_000)
      yield* TestClock.adjust("14 seconds")
      const seen = new Set(frames.map(({ name }) => name))
      assert.deepStrictEqual(subscriptions.map(({ name }) => name).filter((name) => !seen.has(name)), [])
      // polled frames repeat; the first and the last frames of a subscription differ most
      const samples = [...Map.groupBy(frames, ({ name, type }) => name + type).values()].flatMap((own) =>
        own.filter((_, at) => at < 4 || at >= own.length - 4)
      )
      assert.deepStrictEqual(yield* runCompiler("subscription", samples), [])
    })))

  it.effect("makes a converter of symbols", () =>
    atStart(Effect.gen(function*() {
      const transport = yield* makeTransport
      const converter = yield* Effect.promise(() => SymbolConverter.create({ transport }))
      assert.deepStrictEqual(
        [converter.getAssetId("ETH"), converter.getAssetId("HYPE/USDC"), converter.getSzDecimals("BTC")],
        [eth, hypeSpot, 5]
      )
    })))
})

describe("what an answer says", () => {
  it.effect("follows from the venue's state: auctions, tokens and accounts together", () =>
    atStart(Effect.gen(function*() {
      const slot = {
        startTimeSeconds: start / 1000 - 100,
        durationSeconds: 180,
        startGas: "1.00000000",
        currentGas: "0.50000000",
        endGas: null
      }
      assert.deepStrictEqual(yield* ask({ type: "gossipPriorityAuctionStatus" }), [
        [null, null, null, null, null],
        [slot, slot, slot, slot, slot]
      ])
      const gasAuction = yield* ask({ type: "spotPairDeployAuctionStatus" })
      assert.strictEqual(JsonParts.at(gasAuction, "durationSeconds"), 111_600)
      assert.deepStrictEqual(yield* ask({ type: "spotDeployState", user }), { states: [], gasAuction })
      assert.notDeepEqual(yield* ask({ type: "perpDeployAuctionStatus" }), gasAuction)

      const details = yield* ask({ type: "tokenDetails", tokenId: hype })
      const context = listOf(yield* askAt({ type: "spotMetaAndAssetCtxs" }, 1)).find((each) =>
        JsonParts.at(each, "coin") === "@107"
      )
      for (const member of ["markPx", "midPx", "prevDayPx", "totalSupply", "circulatingSupply"]) {
        assert.strictEqual(JsonParts.at(details, member), JsonParts.at(context, member), member)
      }
      const { trading } = yield* SandboxState
      const before = Number(JsonParts.at(details, "totalSupply"))
      yield* trading.depositSpot(user, 150, "2.5")
      const after = Number(yield* askAt({ type: "tokenDetails", tokenId: hype }, "totalSupply"))
      assert.deepStrictEqual([before % 100, after - before], [0, 2.5])

      const reserve = yield* ask({ type: "borrowLendReserveState", token: 0 })
      assert.deepStrictEqual(yield* ask({ type: "allBorrowLendReserveStates" }), [[0, reserve]])
      assert.isNull(yield* ask({ type: "settledOutcome", outcome: 1 }))

      const state = yield* ask({ type: "clearinghouseState", user })
      const empty = yield* ask({ type: "clearinghouseState", user: other })
      assert.deepStrictEqual(yield* ask({ type: "batchClearinghouseStates", users: [other, user] }), [empty, state])
    })))

  it.effect("about a vault: its depositors with their profit, and the account that asks", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      const vaultAddress = String(yield* act(user, "createVault", vault))
      yield* trading.depositUsd(other, "1000")
      yield* act(other, "vaultTransfer", { vaultAddress, isDeposit: true, usd: 100_000_000 })
      yield* trading.advance(2 * day)
      // the vault of 300 dollars earns 30
      yield* trading.depositUsd(Encoding.lowerCase(Schema.decodeUnknownSync(Encoding.Address)(vaultAddress)), "30")
      yield* act(other, "vaultTransfer", { vaultAddress, isDeposit: false, usd: 55_000_000 })
      const details = yield* ask({ type: "vaultDetails", vaultAddress, user: other })
      const times = { daysFollowing: 2, vaultEntryTime: start, lockupUntil: start + day }
      const mine = { vaultEquity: "55.0", pnl: "5.0", allTimePnl: "10.0", ...times }
      assert.deepStrictEqual(JsonParts.at(details, "followers"), [
        { user: "Leader", vaultEquity: "220.0", pnl: "20.0", allTimePnl: "20.0", ...times },
        { user: other, ...mine }
      ])
      assert.deepStrictEqual(JsonParts.at(details, "followerState"), { user: other, ...mine })
      assert.deepStrictEqual(
        ["name", "leader", "leaderFraction", "maxDistributable", "isClosed", "allowDeposits"].map((member) =>
          JsonParts.at(details, member)
        ),
        ["v", user, 0.8, 275, false, true]
      )
      assert.isNull(yield* askAt({ type: "vaultDetails", vaultAddress }, "followerState"))
      assert.isNull(yield* ask({ type: "vaultDetails", vaultAddress: other }))
    })))

  it.effect("in webData2 is what the single queries say", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* place(user, eth, "buy", "0.1", yield* markOf("ETH", 0.05), { tif: "Ioc" })
      yield* place(user, eth, "buy", "0.02", yield* markOf("ETH", -0.1))
      yield* act(user, "twapOrder", { twap: { a: eth, b: true, s: "2", r: false, m: 60, t: false } })
      yield* act(user, "approveAgent", { ...chain, agentAddress: other, agentName: "", nonce: 1 })
      yield* act(user, "createVault", vault)
      const data = yield* ask({ type: "webData2", user })
      const [meta, assetCtxs] = listOf(yield* ask({ type: "metaAndAssetCtxs" }))
      const history = yield* ask({ type: "twapHistory", user })
      assert.deepStrictEqual(data, {
        clearinghouseState: yield* ask({ type: "clearinghouseState", user }),
        leadingVaults: yield* ask({ type: "leadingVaults", user }),
        totalVaultEquity: "200.0",
        openOrders: yield* ask({ type: "frontendOpenOrders", user }),
        agentAddress: other,
        agentValidUntil: JsonParts.at(data, "agentValidUntil"),
        cumLedger: "9800.0",
        meta,
        assetCtxs,
        serverTime: yield* trading.now,
        isVault: false,
        user,
        twapStates: [[JsonParts.at(history, 0, "twapId"), JsonParts.at(history, 0, "state")]],
        spotState: yield* ask({ type: "spotClearinghouseState", user }),
        spotAssetCtxs: yield* askAt({ type: "spotMetaAndAssetCtxs" }, 1),
        perpsAtOpenInterestCap: []
      })
    })))
})
