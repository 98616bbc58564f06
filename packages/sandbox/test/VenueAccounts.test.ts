import { assert, describe, it } from "@effect/vitest"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import * as VenueInfo from "@trigate/sandbox/unstable/venue/VenueInfo"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { ask as askOf, markOf, place } from "./trader.ts"
import { act, atStart, bigBlocks, delegate, start } from "./venue.ts"

const { agent, cosigner, leader, multiSigUser, stranger, thirdCosigner, trader, validator } = keys

const day = 86_400_000

const asked = Effect.fnUntraced(function*(query: object) {
  const { info, seed, trading, venue } = yield* SandboxState
  const now = yield* Clock.currentTimeMillis
  const listed = yield* Ref.get(info.state)
  const view = { seed, ...listed, venue: yield* Ref.get(venue.state), trading: trading.at(listed, now), now }
  return VenueInfo.answer(view, Utf8.encode(JSON.stringify(query)))
})

const ask = (query: object) => Effect.map(asked(query), ({ text }): unknown => JSON.parse(text))

const decodeHistory = Schema.decodeUnknownSync(
  Schema.Array(Schema.Struct({ time: Schema.Natural, hash: Schema.String, delta: Schema.Unknown }))
)

const decodeStakes = Schema.decodeUnknownSync(
  Schema.Array(Schema.Struct({ isJailed: Schema.Boolean, stake: Schema.Natural }))
)

describe("stake", () => {
  it.effect("shows what was delegated and taken back, in HYPE, with the end of the lockup", () =>
    atStart(Effect.gen(function*() {
      const user = trader.address
      assert.deepStrictEqual(yield* ask({ type: "delegations", user }), [])
      assert.deepStrictEqual(yield* ask({ type: "delegatorSummary", user }), {
        delegated: "0.0",
        undelegated: "1000.0",
        totalPendingWithdrawal: "0.0",
        nPendingWithdrawals: 0
      })
      assert.strictEqual(yield* act(trader, delegate(validator.address, 30_050_000_000n, start)), "ok")
      yield* TestClock.adjust("1 minute")
      const later = start + 60_000
      assert.strictEqual(yield* act(trader, delegate(validator.address, 50_000_000n, later, true)), "ok")
      assert.deepStrictEqual(yield* ask({ type: "delegations", user }), [
        { validator: validator.address, amount: "300.0", lockedUntilTimestamp: start + day }
      ])
      assert.deepStrictEqual(yield* ask({ type: "delegatorSummary", user }), {
        delegated: "300.0",
        undelegated: "700.0",
        totalPendingWithdrawal: "0.0",
        nPendingWithdrawals: 0
      })
      const history = decodeHistory(yield* ask({ type: "delegatorHistory", user }))
      const [newest = "", oldest = ""] = history.map(({ hash }) => hash)
      assert.match(`${newest} ${oldest}`, /^0x[0-9a-f]{64} 0x[0-9a-f]{64}$/u)
      assert.notStrictEqual(newest, oldest)
      const of = (amount: string, isUndelegate: boolean) => ({
        delegate: { validator: validator.address, amount, isUndelegate }
      })
      assert.deepStrictEqual(history, [
        { time: later, hash: newest, delta: of("0.5", true) },
        { time: start, hash: oldest, delta: of("300.5", false) }
      ])
      assert.deepStrictEqual(decodeStakes(yield* ask({ type: "validatorSummaries" })), [
        { isJailed: false, stake: 30_000_000_000 },
        { isJailed: true, stake: 0 }
      ])
    })))

  it.effect("is no longer listed when all of it is taken back, and is not when it was refused", () =>
    atStart(Effect.gen(function*() {
      const user = trader.address
      yield* act(trader, delegate(validator.address, 1n, start))
      yield* TestClock.adjust("1 second")
      yield* act(trader, delegate(validator.address, 1n, start + 1_000, true))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(
        yield* act(trader, delegate(validator.address, 1n, start + 2_000, true)),
        "err: Insufficient stake"
      )
      assert.deepStrictEqual(yield* ask({ type: "delegations", user }), [])
      const history = yield* ask({ type: "delegatorHistory", user })
      assert.strictEqual(Array.isArray(history) ? history.length : undefined, 2)
    })))
})

describe("an account", () => {
  it.effect("has a role, whatever the letter case of its address", () =>
    atStart(Effect.gen(function*() {
      const role = (user: string) => ask({ type: "userRole", user })
      assert.deepStrictEqual(yield* role(trader.address.toUpperCase().replace("X", "x")), { role: "user" })
      assert.deepStrictEqual(yield* role(agent.address), { role: "agent", data: { user: trader.address } })
      assert.deepStrictEqual(yield* role(stranger.address), { role: "missing" })
      const { venue } = yield* SandboxState
      yield* venue.addVault("0x00000000000000000000000000000000000000aa", trader.address)
      assert.deepStrictEqual(yield* role("0x00000000000000000000000000000000000000aa"), { role: "vault" })
    })))

  it.effect("counts its actions, and names its co-signers", () =>
    atStart(Effect.gen(function*() {
      yield* act(trader, bigBlocks(true))
      assert.deepStrictEqual(yield* ask({ type: "userRateLimit", user: trader.address }), {
        cumVlm: "0.0",
        nRequestsUsed: 1,
        nRequestsCap: 10_000,
        nRequestsSurplus: 0
      })
      assert.deepStrictEqual(yield* ask({ type: "userToMultiSigSigners", user: multiSigUser.address }), {
        authorizedUsers: [leader, cosigner, thirdCosigner].map(({ address }) => address),
        threshold: 2
      })
      assert.isNull(yield* ask({ type: "userToMultiSigSigners", user: trader.address }))
    })))

  it.effect("has balances in spot and perpetuals, and no positions", () =>
    atStart(Effect.gen(function*() {
      assert.deepStrictEqual(yield* ask({ type: "spotClearinghouseState", user: trader.address }), {
        balances: [
          { coin: "USDC", token: 0, total: "10000.0", hold: "0.0", entryNtl: "0.0" },
          { coin: "HYPE", token: 150, total: "100.0", hold: "0.0", entryNtl: "0.0" }
        ]
      })
      assert.deepStrictEqual(yield* ask({ type: "spotClearinghouseState", user: stranger.address }), { balances: [] })
      const usd = "10000.0"
      const margin = { accountValue: usd, totalNtlPos: "0.0", totalRawUsd: usd, totalMarginUsed: "0.0" }
      assert.deepStrictEqual(yield* ask({ type: "clearinghouseState", user: trader.address }), {
        marginSummary: margin,
        crossMarginSummary: margin,
        crossMaintenanceMarginUsed: "0.0",
        withdrawable: usd,
        assetPositions: [],
        time: start
      })
    })))

  it.effect("has no orders, fills or payments", () =>
    atStart(Effect.gen(function*() {
      const user = trader.address
      for (const type of ["openOrders", "frontendOpenOrders", "historicalOrders", "userFills", "userVaultEquities"]) {
        assert.deepStrictEqual(yield* ask({ type, user }), [], type)
      }
      for (const type of ["userFillsByTime", "userTwapSliceFillsByTime"]) {
        assert.deepStrictEqual(yield* ask({ type, user, startTime: 0 }), [], type)
        assert.strictEqual((yield* asked({ type, user })).status, 422, type)
      }
      assert.deepStrictEqual(yield* ask({ type: "orderStatus", user, oid: 1 }), { status: "unknownOid" })
    })))

  it.effect("is named by an address", () =>
    atStart(Effect.gen(function*() {
      const refusal = yield* asked({ type: "openOrders", user: "nobody" })
      assert.deepStrictEqual(
        { status: refusal.status, text: refusal.text },
        { status: 422, text: "Failed to deserialize the JSON body into the target type" }
      )
    })))
})

describe("funding", () => {
  it.effect("is paid each full hour of a window, and at the next one", () =>
    atStart(Effect.gen(function*() {
      const hour = 3_600_000
      const first = Math.ceil(start / hour) * hour - 2 * hour
      assert.deepStrictEqual(yield* ask({ type: "fundingHistory", coin: "BTC", startTime: first, endTime: start }), [
        { coin: "BTC", fundingRate: "0.0000125", premium: "0.0002639932", time: first },
        { coin: "BTC", fundingRate: "0.0000125", premium: "0.0003014039", time: first + hour }
      ])
      // the rate is an eighth of the premium and of the interest, which is clamped around the premium
      assert.deepStrictEqual(
        yield* ask({ type: "fundingHistory", coin: "LTC", startTime: first + hour, endTime: start }),
        [
          { coin: "LTC", fundingRate: "-0.000065106", premium: "-0.0010208481", time: first + hour }
        ]
      )
      const all = yield* ask({ type: "fundingHistory", coin: "BTC", startTime: 0 })
      assert.strictEqual(Array.isArray(all) ? all.length : undefined, 500)
      assert.strictEqual((yield* asked({ type: "fundingHistory", coin: "@107", startTime: 0 })).status, 500)
      const next = yield* ask({ type: "predictedFundings" })
      assert.deepStrictEqual(Array.isArray(next) ? next[0] : undefined, [
        "BTC",
        [["HlPerp", { fundingRate: "0.0000125", nextFundingTime: first + 2 * hour, fundingIntervalHours: 1 }]]
      ])
    })))
})

describe("the history of an account", () => {
  it.effect("has no profit without trades, whatever is deposited and moved, and the volume of each period", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      const trader = `0x${"a".repeat(40)}` as const
      yield* trading.depositUsd(trader, "10000")
      yield* trading.depositSpot(trader, 0, "5000")
      const portfolio = Effect.map(
        askOf({ type: "portfolio", user: trader }),
        (all) => new Map(Array.isArray(all) ? all : [])
      )
      const membersOf = (period: unknown, ...members: ReadonlyArray<string>) =>
        members.map((member) => {
          const value = JsonParts.at(period, member)
          return Array.isArray(value) ? value.map((row) => JsonParts.at(row, 1)) : value
        })
      yield* trading.setPosition(trader, "ETH", "0.1")
      yield* TestClock.adjust("2 hours")
      yield* trading.act(trader, {
        type: "usdClassTransfer",
        signatureChainId: "0x66eee",
        hyperliquidChain: "Mainnet",
        amount: "1000",
        toPerp: false,
        nonce: 1
      })
      yield* trading.depositUsd(trader, "5000")
      const periods = yield* portfolio
      const [profits] = membersOf(periods.get("day"), "pnlHistory")
      for (const profit of Array.isArray(profits) ? profits : ["none"]) {
        assert.isBelow(Math.abs(Number(profit)), 100, String(profit))
      }
      const [all] = membersOf(periods.get("day"), "accountValueHistory")
      const [perps] = membersOf(periods.get("perpDay"), "accountValueHistory")
      const listed = Array.isArray(all) && Array.isArray(perps) ? all.map((value, at) => Number(value) - perps[at]) : []
      assert.deepStrictEqual(listed.map(Math.round), [5000, 5000, 6000])
      yield* place(trader, 1, "buy", "0.1", yield* markOf("ETH", 0.02), { tif: "Ioc" })
      const volume = Number(membersOf((yield* portfolio).get("day"), "vlm")[0])
      assert.isAbove(volume, 0)
      yield* TestClock.adjust("2 days")
      const later = yield* portfolio
      assert.deepStrictEqual(
        ["day", "week", "month", "allTime"].map((period) => Number(membersOf(later.get(period), "vlm")[0])),
        [0, volume, volume, volume]
      )
    })))

  it.effect("is listed whole if a query names no start", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      const trader = `0x${"a".repeat(40)}` as const
      yield* trading.depositUsd(trader, "10000")
      yield* trading.setPosition(trader, "ETH", "0.1")
      yield* TestClock.adjust("1 hour")
      for (const type of ["userFunding", "userNonFundingLedgerUpdates"]) {
        const rows = yield* askOf({ type, user: trader, startTime: 0 })
        assert.strictEqual(Array.isArray(rows) ? rows.length : 0, 1)
        assert.deepStrictEqual(yield* askOf({ type, user: trader }), rows)
        assert.deepStrictEqual(yield* askOf({ type, user: trader, startTime: null }), rows)
      }
    })))
})
