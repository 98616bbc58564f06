/** Who may trade for an account, how much it may send, what it pays, and its orders that follow a position or are replaced. */
import { assert, describe, it } from "@effect/vitest"
import type { Address } from "@trigate/domain/encoding/Encoding"
import { Fill } from "@trigate/domain/info/Account"
import type { TestKey } from "@trigate/sandbox/SandboxExamples"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import { aggregateFills, listFills } from "@trigate/sandbox/unstable/venue/AccountReads"
import { findAccount } from "@trigate/sandbox/unstable/venue/TradingState"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as Trader from "./trader.ts"
import { ask, askAt, eth, listOf, oidOf, orderOf, place, triggerAt } from "./trader.ts"
import { act, atStart, start, submit } from "./venue.ts"

const decodeFills = Schema.decodeUnknownSync(Schema.Array(Fill))

const { cosigner, leader, multiSigUser, stranger, trader } = keys
const user = trader.address
const hour = 3_600_000

/** Sends a signed action a millisecond later, under a nonce of its own. */
const send = (key: TestKey, action: SandboxSigner.Unsigned["action"]) =>
  Effect.andThen(TestClock.adjust(1), act(key, action))

const order = (...orders: ReadonlyArray<object>) => ({ type: "order", orders, grouping: "na" })

/** A price of ETH at which nothing is matched. */
const low = "1500"

const atPrice = (price: number) =>
  Effect.flatMap(SandboxState, ({ trading }) => trading.playPrices("ETH", [{ time: 0, price }]))

describe("an API wallet", () => {
  const agentNamed = (agentName: string, agentAddress: Address = stranger.address) =>
    Effect.flatMap(
      Effect.andThen(TestClock.adjust(1), Clock.currentTimeMillis),
      (nonce) =>
        act(trader, {
          type: "approveAgent",
          signatureChainId: "0x66eee",
          hyperliquidChain: "Mainnet",
          agentAddress,
          agentName,
          nonce
        })
    )
  const unknown = `err: User or API Wallet ${stranger.address} does not exist.`
  const named = (digit: string) => `0x${digit.repeat(40)}` as const

  it.effect("trades until its validity ends, which is listed beside its name", () =>
    atStart(Effect.gen(function*() {
      yield* atPrice(2_000)
      const bid = order(orderOf(eth, "buy", "0.1", low))
      assert.strictEqual(yield* send(stranger, bid), unknown)
      assert.strictEqual(yield* agentNamed(`bot valid_until ${start + hour}`), "ok")
      assert.deepStrictEqual(yield* ask({ type: "extraAgents", user }), [
        { name: "bot", address: stranger.address, validUntil: start + hour }
      ])
      assert.strictEqual(yield* send(stranger, bid), "ok")
      assert.strictEqual(listOf(yield* ask({ type: "openOrders", user })).length, 1)
      yield* TestClock.setTime(start + hour)
      assert.strictEqual(yield* act(stranger, bid), "ok")
      assert.strictEqual(yield* send(stranger, bid), unknown)
      assert.strictEqual(listOf(yield* ask({ type: "openOrders", user })).length, 2)
    })))

  it.effect("is gone after its validity: its name, its place and its address are free again", () =>
    atStart(Effect.gen(function*() {
      for (const digit of ["1", "2", "3"]) {
        assert.strictEqual(yield* agentNamed(`bot ${digit} valid_until ${start + hour}`, named(digit)), "ok")
      }
      assert.strictEqual(yield* agentNamed(` valid_until ${start + hour}`, named("4")), "ok")
      assert.strictEqual(
        yield* agentNamed("four"),
        "err: Too many extra agents for cumulative volume traded. Current limit is 3"
      )
      yield* TestClock.setTime(start + hour + 1)
      assert.deepStrictEqual(yield* ask({ type: "extraAgents", user }), [])
      for (const digit of ["1", "4"]) {
        assert.deepStrictEqual(yield* ask({ type: "userRole", user: named(digit) }), { role: "missing" })
      }
      assert.strictEqual(
        yield* agentNamed(`four valid_until ${start + hour}`),
        "err: Agent valid_until already expired."
      )
      assert.strictEqual(yield* agentNamed("four"), "ok")
      const approval = {
        type: "approveAgent",
        signatureChainId: "0x66eee",
        hyperliquidChain: "Mainnet",
        agentName: "of another account"
      }
      const nonce = yield* Clock.currentTimeMillis
      assert.strictEqual(yield* send(leader, { ...approval, agentAddress: named("1"), nonce: nonce + 1 }), "ok")
      // the account that had approved it before cannot remove it any more
      assert.strictEqual(yield* agentNamed("bot 1", named("5")), "ok")
      assert.deepStrictEqual(yield* ask({ type: "userRole", user: named("1") }), {
        role: "agent",
        data: { user: leader.address }
      })
      assert.deepStrictEqual(
        listOf(yield* ask({ type: "extraAgents", user })).map((agent) => JsonParts.at(agent, "name")),
        ["four", "bot 1"]
      )
    })))

  it.effect("replaces the one with its name; three may have one, for at most 180 days", () =>
    atStart(Effect.gen(function*() {
      assert.strictEqual(yield* agentNamed("one"), "ok")
      assert.strictEqual(yield* agentNamed("one", named("1")), "ok")
      assert.strictEqual(yield* send(stranger, order(orderOf(eth, "buy", "0.1", low))), unknown)
      assert.strictEqual(yield* agentNamed("two", named("1")), "err: Extra agent already used.")
      assert.strictEqual(yield* agentNamed("two", named("2")), "ok")
      const late = start + 180 * 24 * hour
      assert.strictEqual(
        yield* agentNamed(`three valid_until ${late + hour}`, named("3")),
        "err: Agent valid_until already expired."
      )
      assert.strictEqual(yield* agentNamed(`three valid_until ${late}`, named("3")), "ok")
      assert.strictEqual(
        yield* agentNamed("four", named("4")),
        "err: Too many extra agents for cumulative volume traded. Current limit is 3"
      )
      assert.strictEqual(yield* agentNamed("two", named("0")), "ok")
      assert.deepStrictEqual(yield* ask({ type: "extraAgents", user }), [
        { name: "one", address: named("1"), validUntil: start + 2 + 90 * 24 * hour },
        { name: "three", address: named("3"), validUntil: late }
      ])
    })))
})

describe("a multi-sig account", () => {
  it.effect("trades when its threshold of authorised users has signed", () =>
    atStart(Effect.gen(function*() {
      yield* atPrice(2_000)
      const signed = yield* SandboxSigner.signMultiSig({
        nonce: start,
        multiSigUser: multiSigUser.address,
        action: order(orderOf(eth, "buy", "0.1", "2100", { tif: "Ioc" }), orderOf(eth, "buy", "0.2", low)),
        leader,
        cosigners: [leader, cosigner]
      })
      assert.strictEqual(yield* submit(signed), "ok")
      const of = { user: multiSigUser.address }
      assert.strictEqual(
        yield* askAt({ type: "clearinghouseState", ...of }, "assetPositions", 0, "position", "szi"),
        "0.1"
      )
      assert.strictEqual(yield* askAt({ type: "openOrders", ...of }, 0, "sz"), "0.2")
      assert.deepStrictEqual(yield* ask({ type: "openOrders", user: leader.address }), [])
    })))
})

describe("the requests of an account", () => {
  it.effect("are counted by leg; volume and money buy more, and cancels have a limit of their own", () =>
    atStart(Effect.gen(function*() {
      const { venue } = yield* SandboxState
      yield* atPrice(2_000)
      yield* venue.limitRequests(user, 3)
      const bid = orderOf(eth, "buy", "0.01", low)
      const tooMany = (sent: number, limit: number, volume: string) =>
        `err: Too many cumulative requests sent (${sent} > ${limit}) for cumulative volume traded $${volume}. ` +
        "Place taker orders to free up 1 request per USDC traded."
      assert.strictEqual(yield* send(trader, order(bid, bid)), "ok")
      assert.strictEqual(yield* send(trader, order(bid, bid)), tooMany(4, 3, "0.00"))
      const used = askAt({ type: "userRateLimit", user }, "nRequestsUsed")
      assert.strictEqual(yield* used, 2)
      const oids = listOf(yield* ask({ type: "openOrders", user })).map((open) => JsonParts.at(open, "oid"))
      const cancel = (o: unknown) => ({ type: "cancel", cancels: [{ a: eth, o }] })
      assert.strictEqual(yield* send(trader, order(orderOf(eth, "buy", "0.01", "2100", { tif: "Ioc" }))), "ok")
      const volume = Number(yield* askAt({ type: "userRateLimit", user }, "cumVlm"))
      assert.isTrue(volume > 19 && volume < 21, String(volume))
      const grown = 3 + Math.floor(volume)
      assert.strictEqual(yield* askAt({ type: "userRateLimit", user }, "nRequestsCap"), grown)
      const batch = Array.from({ length: grown - 3 }, () => bid)
      assert.strictEqual(yield* send(trader, order(...batch)), "ok")
      assert.strictEqual(yield* used, grown)
      assert.strictEqual(yield* send(trader, order(bid)), tooMany(grown + 1, grown, volume.toFixed(2)))
      assert.strictEqual(yield* send(trader, cancel(oids[0])), "ok")
      assert.strictEqual(yield* send(trader, order(bid)), tooMany(grown + 2, grown, volume.toFixed(2)))
      yield* Trader.act(user, "reserveRequestWeight", { weight: 2 })
      assert.strictEqual(yield* send(trader, order(bid)), "ok")
    })))
})

describe("fees", () => {
  it.effect("fall with the volume of the fourteen days before, from the day after it", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* atPrice(2_000)
      const other = `0x${"2".repeat(40)}` as const
      yield* trading.depositUsd(user, "2000000")
      yield* trading.depositUsd(other, "2000000")
      const rates = Effect.map(
        ask({ type: "userFees", user }),
        (fees) => [JsonParts.at(fees, "userCrossRate"), JsonParts.at(fees, "userAddRate")]
      )
      const feeRate = (side: "buy" | "sell", limit: string) =>
        Effect.gen(function*() {
          yield* place(user, eth, side, "1", limit, { tif: "Ioc" })
          const [fill] = listOf(yield* ask({ type: "userFills", user }))
          const paid = Number(JsonParts.at(fill, "px")) * Number(JsonParts.at(fill, "sz"))
          return Number(JsonParts.at(fill, "fee")) / paid
        })
      // six million dollars there and back, inside the spread
      for (const [side, back] of [["sell", "buy"], ["buy", "sell"]] as const) {
        yield* place(other, eth, side, "1500", "2000")
        const taken = yield* place(user, eth, back, "1500", "2000", { tif: "Ioc" })
        assert.strictEqual(JsonParts.at(taken, "filled", "totalSz"), "1500.0")
      }
      assert.deepStrictEqual(yield* rates, ["0.00045", "0.00015"])
      yield* TestClock.adjust("1 day")
      assert.deepStrictEqual(yield* rates, ["0.0004", "0.00012"])
      assert.approximately(yield* feeRate("buy", "2100"), 0.0004, 1e-8)
      assert.approximately(yield* feeRate("sell", "1900"), 0.0004, 1e-8)
      yield* TestClock.adjust("14 days")
      assert.deepStrictEqual(yield* rates, ["0.00045", "0.00015"])
      assert.approximately(yield* feeRate("buy", "2100"), 0.00045, 1e-8)
    })))

  it.effect("count spot twice and a growing asset by a tenth, for an account and its sub-accounts together", () =>
    atStart(Effect.gen(function*() {
      const { info, trading } = yield* SandboxState
      const { markets } = yield* Ref.get(info.state)
      const bitcoin = markets.get("BTC") ?? assert.fail("BTC")
      yield* info.listCoin({ ...bitcoin, growingSince: 0 })
      yield* atPrice(2_000)
      yield* trading.playPrices("BTC", [{ time: 0, price: 50_000 }])
      yield* trading.playPrices("@107", [{ time: 0, price: 30 }])
      const named = (digit: string) => `0x${digit.repeat(40)}` as const
      const [maker, spot, perps, growing, referred] = [named("2"), named("3"), named("4"), named("5"), named("6")]
      for (const address of [maker, spot, perps, growing, referred]) {
        yield* trading.depositUsd(address, "9000000")
        yield* trading.depositSpot(address, 0, "9000000")
        yield* trading.depositSpot(address, 150, "900000")
      }
      yield* trading.setVolume(perps, "100000")
      const sub = yield* Trader.act(perps, "createSubAccount", { name: "sub" })
      const subAddress = `0x${String(sub).slice(2)}` as const
      yield* Trader.act(perps, "subAccountTransfer", { subAccountUser: sub, isDeposit: true, usd: 4_000_000_000_000 })
      const trade = (taker: Address, asset: number, size: string, px: string) =>
        Effect.gen(function*() {
          yield* place(maker, asset, "sell", size, px)
          const taken = yield* place(taker, asset, "buy", size, px, { tif: "Ioc" })
          assert.strictEqual(Number(JsonParts.at(taken, "filled", "totalSz")), Number(size))
        })
      const rate = (of: Address) => askAt({ type: "userFees", user: of }, "userCrossRate")
      // 2.55 million dollars count twice, and three times two million add up; 20 million count as two million
      yield* trade(spot, Trader.hypeSpot, "85000", "30")
      yield* trade(perps, eth, "1000", "2000")
      yield* trade(subAddress, eth, "2000", "2000")
      yield* trade(growing, Trader.btc, "400", "50000")
      yield* TestClock.adjust("1 day")
      const rates = yield* Effect.forEach([spot, perps, subAddress, growing], rate)
      assert.deepStrictEqual(rates, ["0.0004", "0.0004", "0.0004", "0.00045"])
      assert.strictEqual(yield* askAt({ type: "userFees", user: spot }, "dailyUserVlm", 0, "userCross"), "2550000.0")
      yield* Trader.act(maker, "registerReferrer", { code: "REF" })
      yield* Trader.act(referred, "setReferrer", { code: "REF" })
      const discount = askAt({ type: "userFees", user: referred }, "activeReferralDiscount")
      const lastFee = askAt({ type: "userFills", user: referred }, 0, "fee")
      yield* trade(referred, eth, "12000", "2000")
      assert.deepStrictEqual([yield* discount, yield* lastFee], ["0.04", "10368.0"])
      yield* trade(referred, eth, "1000", "2000")
      yield* trade(referred, eth, "1000", "2000")
      assert.deepStrictEqual([yield* discount, yield* lastFee], ["0.0", "900.0"])
    })))
})

describe("orders", () => {
  it.effect("of a position have its size when they are triggered, and end with it", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* atPrice(2_000)
      yield* trading.setPosition(user, "ETH", "1", "2000")
      const data = yield* Trader.act(user, "order", {
        orders: [
          orderOf(eth, "sell", "0", "1800", { r: true, t: triggerAt("sl", "1900") }),
          orderOf(eth, "sell", "0", "2200", { r: true, t: triggerAt("tp", "2300") })
        ],
        grouping: "positionTpsl"
      })
      assert.deepStrictEqual(data, { statuses: ["waitingForTrigger", "waitingForTrigger"] })
      const open = listOf(yield* ask({ type: "frontendOpenOrders", user }))
      assert.deepStrictEqual(open.map((each) => JsonParts.at(each, "isPositionTpsl")), [true, true])
      const statuses = Effect.forEach(
        open.map((each) => JsonParts.at(each, "oid")),
        (oid) => askAt({ type: "orderStatus", user, oid }, "order", "status")
      )
      yield* place(user, eth, "buy", "1.5", "2100", { tif: "Ioc" })
      yield* atPrice(1_890)
      yield* TestClock.adjust("2 seconds")
      const size = askAt({ type: "clearinghouseState", user }, "assetPositions", 0, "position", "szi")
      assert.isUndefined(yield* size)
      const fills = listOf(yield* ask({ type: "userFills", user })).filter((fill) =>
        JsonParts.at(fill, "dir") === "Close Long"
      )
      const closed = fills.reduce<number>((sum, fill) => sum + Number(JsonParts.at(fill, "sz")), 0)
      assert.approximately(closed, 2.5, 1e-9)
      assert.deepStrictEqual((yield* statuses).map(String).toSorted(), ["filled", "reduceOnlyCanceled"])
    })))

  it.effect("are listed with their fills when hundreds have followed; the newest 2000 that have ended are known", () =>
    atStart(Effect.gen(function*() {
      yield* atPrice(2_000)
      const cloid = (index: number) => `0x${index.toString(16).padStart(32, "0")}`
      const statusOf = (name: unknown) => askAt({ type: "orderStatus", user, oid: name }, "order")
      const listed = (type: string, rest: object = {}) => Effect.map(ask({ type, user, ...rest }), listOf)
      const resting = oidOf(yield* place(user, eth, "buy", "0.1", low))
      yield* TestClock.adjust(10)
      const history = [...(yield* listed("historicalOrders"))]
      const fills: Array<unknown> = []
      const trade = Effect.fnUntraced(function*(batch: number) {
        const orders = Array.from(
          { length: 20 },
          (_, index) =>
            orderOf(eth, index < 10 ? "buy" : "sell", "0.01", index < 10 ? "2100" : "1900", {
              tif: "Ioc",
              c: cloid(20 * batch + index)
            })
        )
        yield* Trader.act(user, "order", { orders, grouping: "na" })
        yield* TestClock.adjust(10)
      })
      for (let batch = 0; batch < 30; batch++) {
        yield* trade(batch)
        fills.unshift(...(yield* listed("userFills")).slice(0, 20))
        history.unshift(...(yield* listed("historicalOrders")).slice(0, 20))
      }
      const first = yield* statusOf(cloid(0))
      assert.strictEqual(JsonParts.at(first, "status"), "filled")
      assert.deepStrictEqual(yield* statusOf(JsonParts.at(first, "order", "oid")), first)
      assert.strictEqual(JsonParts.at(yield* statusOf(resting), "status"), "open")
      assert.deepStrictEqual(yield* listed("userFills"), fills)
      assert.deepStrictEqual(yield* listed("historicalOrders"), history)
      assert.strictEqual(history.length, 601)
      const period = { startTime: start + 100, endTime: start + 199 }
      const within = fills.filter((fill) => {
        const time = Number(JsonParts.at(fill, "time"))
        return time >= period.startTime && time <= period.endTime
      })
      assert.strictEqual(within.length, 200)
      assert.deepStrictEqual(yield* listed("userFillsByTime", { ...period, reversed: true }), within)
      assert.deepStrictEqual(yield* listed("userFillsByTime", period), within.toReversed())
      for (let batch = 30; batch < 100; batch++) yield* trade(batch)
      assert.strictEqual(JsonParts.at(yield* statusOf(cloid(0)), "status"), "filled")
      for (let batch = 100; batch < 105; batch++) yield* trade(batch)
      assert.strictEqual(yield* statusOf(cloid(99)), undefined)
      const { trading } = yield* SandboxState
      const { byCloid, ended, orders } = findAccount((yield* trading.snapshot).state, user)
      // and the order that rests
      assert.deepStrictEqual([byCloid.size, ended.size + orders.size], [2000, 2001])
      assert.strictEqual(JsonParts.at(yield* statusOf(cloid(100)), "status"), "filled")
      assert.strictEqual(JsonParts.at(yield* statusOf(resting), "status"), "open")
    })))

  it.effect("combine what one order took from several others", () =>
    atStart(Effect.gen(function*() {
      yield* atPrice(2_000)
      for (let order = 0; order < 340; order++) {
        yield* place(user, eth, order % 2 === 0 ? "buy" : "sell", "20", order % 2 === 0 ? "2400" : "1600", {
          tif: "Ioc"
        })
        yield* TestClock.adjust("1 second")
      }
      const all = decodeFills(yield* ask({ type: "userFillsByTime", user, startTime: start }))
      const combined = aggregateFills(all)
      assert.isAbove(all.length, 420)
      assert.strictEqual(combined.length, 340)
      const { trading } = yield* SandboxState
      const account = findAccount((yield* trading.snapshot).state, user)
      for (const most of [1, 2, 3, 100, 339, 340, 400]) {
        const listed = (isReversed: boolean) => listFills(account, { isAggregated: true, isReversed }, most)
        assert.deepStrictEqual(listed(false), combined.slice(0, most))
        assert.deepStrictEqual(listed(true), combined.toReversed().slice(0, most))
      }
    })))

  it.effect("have client order IDs in any letter case, and are modified only in their own asset", () =>
    atStart(Effect.gen(function*() {
      yield* atPrice(2_000)
      const upper = `0x${"ABCDEF".padStart(32, "0")}`
      const lower = upper.toLowerCase()
      yield* place(user, eth, "buy", "0.1", low, { c: upper })
      for (const oid of [upper, lower]) {
        assert.strictEqual(yield* askAt({ type: "orderStatus", user, oid }, "order", "order", "cloid"), lower)
      }
      const modifies = [
        { oid: lower, order: orderOf(Trader.btc, "buy", "0.1", "50000") },
        { oid: lower, order: orderOf(999, "buy", "0.1", low) }
      ]
      assert.deepStrictEqual(yield* Trader.act(user, "batchModify", { modifies }), {
        statuses: [{ error: "Cannot modify canceled or filled order" }, { error: "Unknown asset. asset=999" }]
      })
      assert.deepStrictEqual(
        yield* Trader.act(user, "cancelByCloid", { cancels: [{ asset: eth, cloid: lower }] }),
        { statuses: ["success"] }
      )
    })))

  it.effect("that are modified get an ID of their own and keep their client order ID; a wrong change leaves them", () =>
    atStart(Effect.gen(function*() {
      yield* atPrice(2_000)
      const c = `0x${"c".repeat(32)}`
      const first = oidOf(yield* place(user, eth, "buy", "0.1", low, { c }))
      assert.isUndefined(
        yield* Trader.act(user, "modify", { oid: c, order: orderOf(eth, "buy", "0.2", "1600", { c }) })
      )
      const [open] = listOf(yield* ask({ type: "openOrders", user }))
      const second = JsonParts.at(open, "oid")
      assert.deepStrictEqual(
        [JsonParts.at(open, "limitPx"), JsonParts.at(open, "sz"), JsonParts.at(open, "cloid"), second === first],
        ["1600.0", "0.2", c, false]
      )
      const statusOf = (oid: unknown) => askAt({ type: "orderStatus", user, oid }, "order", "status")
      assert.strictEqual(yield* statusOf(first), "canceled")
      const modified = yield* Trader.act(user, "batchModify", {
        a: true,
        modifies: [
          { oid: second, order: orderOf(eth, "buy", "0.2", "1600.123", { c }) },
          { oid: second, order: orderOf(eth, "buy", "0.2", "2100", { tif: "Ioc", c }) }
        ]
      })
      assert.strictEqual(
        yield* Trader.act(user, "modify", { oid: second, order: orderOf(eth, "buy", "0.2", "1600", { c }) }),
        "Cannot modify canceled or filled order"
      )
      assert.deepStrictEqual(JsonParts.at(modified, "statuses", 0), {
        error: "Price must be divisible by tick size. asset=1"
      })
      assert.strictEqual(JsonParts.at(modified, "statuses", 1, "filled", "totalSz"), "0.2")
      assert.deepStrictEqual([yield* statusOf(second), yield* statusOf(c)], ["canceled", "filled"])
      assert.deepStrictEqual(yield* ask({ type: "openOrders", user }), [])
    })))
})
