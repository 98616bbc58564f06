/** A venue under control: its clock, its prices, its copies, and faults on purpose. */
import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import type { SandboxFaults } from "@trigate/domain/unstable/Sandbox"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { signAction } from "@trigate/sandbox/SandboxSigner"
import * as SandboxState from "@trigate/sandbox/SandboxState"
import * as ActionBuilder from "@trigate/signing/actions/ActionBuilder"
import * as Signer from "@trigate/signing/Signer"
import * as JsonParts from "@trigate/testing/JsonParts"
import { Exchange } from "@trigate/trading/Exchange"
import { Info } from "@trigate/trading/Info"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/testing/TestClock"
import { act, ask, askAt, eth } from "./trader.ts"
import { start } from "./venue.ts"

const user = keys.trader.address
const signer = Signer.layerPrivateKey(Redacted.make(keys.trader.privateKey))

const on = <A, E, R>(effect: Effect.Effect<A, E, R>, options: SandboxState.Options = {}) =>
  TestClock.setTime(start).pipe(
    Effect.andThen(Effect.provide(effect, Layer.merge(Sandbox.layer(options), signer)))
  )

const resting = { asset: eth, side: "buy", priceInQuote: "1500", sizeInBase: "0.05", timeInForce: "Gtc" } as const

/** Signs and submits orders. */
const submit = Effect.fnUntraced(function*(...orders: ReadonlyArray<typeof resting>) {
  const nonce = yield* Clock.currentTimeMillis
  const exchange = yield* Exchange
  return yield* exchange.submit(yield* ActionBuilder.placeOrders({ orders }, { nonce }))
})

const setFaults = (faults: Partial<SandboxFaults>) =>
  SandboxState.SandboxState.use(({ faults: controls }) => controls.set(faults))

const openOrders = Effect.map(ask({ type: "openOrders", user }), (all) => Array.isArray(all) ? all.length : -1)

const markOf = (coin: string) => askAt({ type: "activeAssetData", user, coin }, "markPx")

describe("faults on purpose", () => {
  it.effect("a lost reply is of an unknown outcome, and the order is there; the same bytes tell", () =>
    on(
      Effect.gen(function*() {
        const exchange = yield* Exchange
        const signed = yield* ActionBuilder.placeOrders({ orders: [resting] }, { nonce: start })
        const error = yield* Effect.flip(exchange.submit(signed))
        assert.deepInclude(error, { _tag: "OutcomeUnknown", upstream: "trading-api", nonce: start, signer: user })
        assert.strictEqual(yield* openOrders, 1)
        yield* setFaults({ lostReplies: 0 })
        assert.strictEqual((yield* exchange.resolve(signed))._tag, "Landed")
        assert.strictEqual(yield* openOrders, 1)
      }),
      { faults: { lostReplies: 1 } }
    ))

  it.effect("a lost request is of an unknown outcome too, and nothing is there; the same bytes place the order", () =>
    on(
      Effect.gen(function*() {
        const exchange = yield* Exchange
        const signed = yield* ActionBuilder.placeOrders({ orders: [resting] }, { nonce: start })
        const error = yield* Effect.flip(exchange.submit(signed))
        assert.deepInclude(error, { _tag: "OutcomeUnknown", upstream: "trading-api", nonce: start, signer: user })
        assert.strictEqual(yield* openOrders, 0)
        yield* setFaults({ lostRequests: 0 })
        assert.strictEqual((yield* exchange.resolve(signed))._tag, "Accepted")
        assert.strictEqual(yield* openOrders, 1)
      }),
      { faults: { lostRequests: 1 } }
    ))

  it.effect("a rate limit refuses actions and queries before the venue reads them", () =>
    on(Effect.gen(function*() {
      yield* setFaults({ rateLimited: 1 })
      assert.deepNestedInclude(yield* Effect.flip(submit(resting)), { "reason._tag": "UpstreamRateLimited" })
      const info = yield* Info
      assert.deepNestedInclude(yield* Effect.flip(info.allMids({})), { "reason._tag": "UpstreamRateLimited" })
      yield* setFaults({ rateLimited: 0 })
      assert.strictEqual(yield* openOrders, 0)
      // the nonce was not used up
      assert.deepNestedInclude(yield* submit(resting), { "entries[0]._tag": "Resting" })
    })))

  it.effect("a share of legs is rejected, the same ones under the same seed", () =>
    Effect.gen(function*() {
      const outcomes = Effect.map(submit(...Array.from({ length: 12 }, () => resting)), ({ entries }) =>
        entries.map((entry) => entry._tag === "Rejected" ? entry.message : entry._tag))
      const faults = { rejectedLegs: 0.4 }
      const one = yield* on(outcomes, { faults })
      const again = yield* on(outcomes, { faults })
      const other = yield* on(outcomes, { faults, seed: "another" })
      assert.deepStrictEqual(one, again)
      assert.notDeepEqual(one, other)
      assert.deepStrictEqual([...new Set(one)].toSorted(), [
        "Insufficient margin to place order. asset=1",
        "Resting"
      ])
    }))

  it.effect("a latency lets an action reach the venue later", () =>
    on(Effect.gen(function*() {
      yield* setFaults({ latency: 250 })
      const sent = yield* Effect.forkChild(submit(resting))
      yield* TestClock.adjust("249 millis")
      assert.strictEqual(yield* openOrders, 0)
      yield* TestClock.adjust("1 millis")
      assert.deepNestedInclude(yield* Fiber.join(sent), { "entries[0]._tag": "Resting" })
      assert.strictEqual(yield* openOrders, 1)
    })))
})

describe("the venue's clock", () => {
  it.effect("moves ahead of the world's, while actions are still signed by the world's", () =>
    on(Effect.gen(function*() {
      const { trading } = yield* SandboxState.SandboxState
      yield* trading.setPosition(user, "ETH", "1")
      yield* trading.advance(3 * 86_400_000)
      assert.strictEqual(yield* trading.now, start + 3 * 86_400_000)
      const paid = yield* ask({ type: "userFunding", user, startTime: start })
      assert.strictEqual(Array.isArray(paid) ? paid.length : 0, 72)
      // three days before the venue's time; the window of nonces is two
      assert.deepNestedInclude(yield* submit(resting), { "entries[0]._tag": "Resting" })
      assert.strictEqual(yield* askAt({ type: "openOrders", user }, 0, "timestamp"), start + 3 * 86_400_000)
    })))

  it.effect("stands still at a time: a book is the same hours later, until the venue is advanced", () =>
    on(
      Effect.gen(function*() {
        const { trading } = yield* SandboxState.SandboxState
        const stoppedAt = start - 86_400_000
        const book = yield* ask({ type: "l2Book", coin: "ETH" })
        assert.strictEqual(yield* askAt({ type: "l2Book", coin: "ETH" }, "time"), stoppedAt)
        yield* TestClock.adjust("5 hours")
        assert.deepStrictEqual(yield* ask({ type: "l2Book", coin: "ETH" }), book)
        // the nonce is of the world's time
        assert.deepNestedInclude(yield* submit(resting), { "entries[0]._tag": "Resting" })
        assert.strictEqual(yield* askAt({ type: "openOrders", user }, 0, "timestamp"), stoppedAt)
        yield* trading.advance(60_000)
        assert.strictEqual(yield* askAt({ type: "l2Book", coin: "ETH" }, "time"), stoppedAt + 60_000)
        assert.notDeepEqual(yield* ask({ type: "l2Book", coin: "ETH" }), book)
      }),
      { stoppedAt: start - 86_400_000 }
    ))

  it.effect("reads the times of an action by the sender's clock, so that a dead man's switch works", () =>
    on(
      Effect.gen(function*() {
        const { trading, venue } = yield* SandboxState.SandboxState
        const exchange = yield* Exchange
        const agent = keys.stranger.address
        yield* submit(resting)
        yield* exchange.submit(
          yield* ActionBuilder.signL1({ type: "scheduleCancel", time: start + 10_000 } as const, { nonce: start + 1 })
        )
        yield* exchange.submit(
          yield* signAction(keys.trader, {
            nonce: start + 2,
            action: {
              type: "approveAgent",
              signatureChainId: "0x66eee",
              hyperliquidChain: "Mainnet",
              agentAddress: agent,
              agentName: `bot valid_until ${start + 60_000}`,
              nonce: start + 2
            }
          })
        )
        const known = yield* venue.account(user)
        assert.strictEqual(Option.getOrThrow(known).extraAgents[0]?.validUntil, start - 86_400_000 + 60_000)
        yield* trading.advance(9_000)
        assert.strictEqual(yield* openOrders, 1)
        yield* trading.advance(1_000)
        assert.strictEqual(yield* openOrders, 0)
      }),
      { stoppedAt: start - 86_400_000 }
    ))
})

describe("prices", () => {
  it.effect("of one point are set, and of the seed run at their speed", () =>
    Effect.gen(function*() {
      const hour = 3_600_000
      const later = yield* on(Effect.gen(function*() {
        yield* TestClock.adjust(hour)
        return yield* markOf("ETH")
      }))
      yield* on(
        Effect.gen(function*() {
          yield* TestClock.adjust(hour / 60)
          assert.strictEqual(yield* markOf("ETH"), later)
          const { trading } = yield* SandboxState.SandboxState
          yield* trading.playPrices("ETH", [{ time: 0, price: 2500 }])
          assert.strictEqual(yield* markOf("ETH"), "2500.0")
          yield* TestClock.adjust(hour)
          assert.strictEqual(yield* markOf("ETH"), "2500.0")
          const bars = yield* ask({
            type: "candleSnapshot",
            req: { coin: "ETH", interval: "1h", startTime: start + hour, endTime: start + hour }
          })
          assert.deepInclude(Array.isArray(bars) ? bars.at(-1) : {}, { c: "2500.0" })
        }),
        { speed: 60 }
      )
    }))

  it.effect("that are set take effect at once, though the venue's clock stands still", () =>
    on(
      Effect.gen(function*() {
        const { trading } = yield* SandboxState.SandboxState
        const play = (price: number) => trading.playPrices("ETH", [{ time: 0, price }])
        const best = (side: number) =>
          Effect.map(askAt({ type: "l2Book", coin: "ETH" }, "levels", side, 0, "px"), (px) => Number(px))
        const spread = Effect.all([best(0), best(1)])
        const limit = { limit: { tif: "Gtc" } }
        const stop = { trigger: { isMarket: true, triggerPx: "1700", tpsl: "sl" } }
        yield* play(2_000)
        yield* act(user, "order", {
          orders: [
            { a: eth, b: true, p: "1990", s: "1", r: false, t: limit },
            { a: eth, b: false, p: "1700", s: "1", r: true, t: stop },
            { a: eth, b: false, p: "2100", s: "1", r: false, t: limit }
          ],
          grouping: "na"
        })
        const sent = new Set<string>()
        yield* Effect.asVoid(trading.follow((events) => {
          for (const event of events) if (event.kind === "fill") sent.add(event.fill.dir)
        }))
        const size = askAt({ type: "clearinghouseState", user }, "assetPositions", 0, "position", "szi")
        const seen: Array<unknown> = []
        for (const price of [1_900, 2_050, 1_690, 2_150]) {
          yield* play(price)
          const [bid, ask] = yield* spread
          assert.isTrue(bid < ask && bid <= price && ask >= price, `${bid} and ${ask} at ${price}`)
          seen.push([yield* size, yield* openOrders])
        }
        assert.deepStrictEqual(seen, [["1.0", 2], ["1.0", 2], [undefined, 1], ["-1.0", 0]])
        assert.deepStrictEqual([...sent], ["Open Long", "Close Long", "Open Short"])
        // the account cannot bear this price
        yield* trading.setPosition(user, "ETH", "-90", "2150")
        yield* play(2_250)
        assert.isUndefined(yield* size)
      }),
      { stoppedAt: start }
    ))

  it.effect("that are set again and again leave the newest hundred behind", () =>
    on(Effect.gen(function*() {
      const { trading } = yield* SandboxState.SandboxState
      for (let price = 2000; price < 2150; price++) yield* trading.playPrices("ETH", [{ time: 0, price }])
      assert.strictEqual(yield* markOf("ETH"), "2149.0")
      const { played } = yield* trading.snapshot
      assert.strictEqual(played.get("ETH")?.length, 100)
    })))
})

describe("a book that is set", () => {
  it.effect("has exactly the levels of the test, which are filled and not renewed, until it is generated again", () =>
    on(
      Effect.gen(function*() {
        const { trading } = yield* SandboxState.SandboxState
        const order = (b: boolean, p: string, s: string, tif = "Gtc") =>
          Effect.map(
            act(user, "order", { orders: [{ a: eth, b, p, s, r: false, t: { limit: { tif } } }], grouping: "na" }),
            (data) => JsonParts.at(data, "statuses", 0)
          )
        const levels = Effect.map(
          askAt({ type: "l2Book", coin: "ETH" }, "levels"),
          (sides) =>
            (Array.isArray(sides) ? sides : []).map((side) =>
              (Array.isArray(side) ? side : []).map((level) => [JsonParts.at(level, "px"), JsonParts.at(level, "sz")])
            )
        )
        const mid = askAt({ type: "allMids" }, "ETH")
        yield* trading.playPrices("ETH", [{ time: 0, price: 2_000 }])
        yield* trading.setBook("ETH", {
          bids: [{ px: "1980", sz: "5" }, { px: "1990", sz: "1" }],
          asks: [{ px: "2020", sz: "2" }, { px: "2008", sz: "1" }]
        })
        const [level, other] = [{ px: "2000", sz: "1" }, { px: "2001", sz: "1" }]
        const refusals = [
          ["NONE", [], [], "coin"],
          ["ETH", [level], [{ px: "2001.55", sz: "1" }], "asks.0.px"],
          ["ETH", [level, { px: "0", sz: "1" }], [], "bids.1.px"],
          ["ETH", [], [{ px: "2001", sz: "0.00001" }], "asks.0.sz"],
          ["ETH", [{ px: "2001", sz: "0" }], [], "bids.0.sz"],
          ["ETH", [level, other], [other], "asks"]
        ] as const
        for (const [coin, bids, asks, at] of refusals) {
          assert.strictEqual((yield* Effect.flip(trading.setBook(coin, { bids, asks }))).path.join("."), at)
        }
        assert.deepStrictEqual(yield* levels, [[["1990.0", "1.0"], ["1980.0", "5.0"]], [["2008.0", "1.0"], [
          "2020.0",
          "2.0"
        ]]])
        assert.strictEqual(yield* mid, "1999.0")
        const taken = yield* order(true, "2100", "2", "Ioc")
        assert.deepInclude(JsonParts.at(taken, "filled"), { totalSz: "2.0", avgPx: "2014.0" })
        yield* order(false, "2015", "0.5")
        yield* trading.advance(60_000)
        // neither time nor the price changes the book
        yield* trading.playPrices("ETH", [{ time: 0, price: 2_050 }])
        yield* trading.advance(60_000)
        assert.deepStrictEqual(yield* levels, [
          [["1990.0", "1.0"], ["1980.0", "5.0"]],
          [["2015.0", "0.5"], ["2020.0", "1.0"]]
        ])
        assert.strictEqual(yield* markOf("ETH"), "2050.0")
        const copy = yield* trading.snapshot
        yield* trading.setBook("ETH", { bids: [], asks: [] })
        assert.deepStrictEqual(yield* order(false, "1900", "1", "FrontendMarket"), {
          error: "No liquidity available for market order. asset=1"
        })
        assert.strictEqual(yield* mid, "2050.0")
        // a bid above the resting order fills it at once, at its own price
        yield* trading.setBook("ETH", { bids: [{ px: "2016", sz: "2" }], asks: [] })
        assert.strictEqual(yield* openOrders, 0)
        assert.deepStrictEqual(yield* levels, [[["2016.0", "1.5"]], []])
        yield* trading.restore(copy)
        assert.strictEqual((yield* levels)[1]?.length, 2)
        yield* trading.setBook("ETH", undefined)
        assert.deepStrictEqual((yield* levels).map((side) => side.length), [20, 20])
        // the generated orders are around the price of 2050
        assert.strictEqual(yield* openOrders, 0)
      }),
      { stoppedAt: start }
    ))
})

describe("a copy of the venue", () => {
  const everything = Effect.gen(function*() {
    const queries = ["clearinghouseState", "spotClearinghouseState", "openOrders", "userFills", "historicalOrders"]
    return Json.stringify(yield* Effect.forEach(queries, (type) => ask({ type, user })))
  })

  it.effect("is put back with prices and accounts, and a reset returns to the first state", () =>
    on(Effect.gen(function*() {
      const { reset, restore, snapshot, trading, venue } = yield* SandboxState.SandboxState
      const first = yield* everything
      yield* trading.playPrices("ETH", [{ time: 0, price: 2500 }])
      yield* act(user, "order", {
        orders: [{ a: eth, b: true, p: "2600", s: "1", r: false, t: { limit: { tif: "Ioc" } } }],
        grouping: "na"
      })
      const traded = yield* everything
      const copy = yield* snapshot
      const stranger = keys.stranger.address
      yield* trading.depositUsd(stranger, "5")
      yield* trading.playPrices("ETH", [{ time: 0, price: 2000 }])
      assert.notStrictEqual(yield* everything, traded)
      yield* restore(copy)
      assert.strictEqual(yield* everything, traded)
      assert.strictEqual((yield* venue.account(stranger))._tag, "None")
      yield* reset
      assert.strictEqual(yield* everything, first)
      assert.notStrictEqual(yield* markOf("ETH"), "2500.0")
    })))

  it.effect("is the same state however much time has passed, if the clock is stopped", () =>
    on(
      Effect.gen(function*() {
        const { reset, restore, snapshot, trading } = yield* SandboxState.SandboxState
        const book = yield* ask({ type: "l2Book", coin: "ETH" })
        yield* trading.playPrices("ETH", [
          { time: 0, price: 2000 },
          { time: 600_000, price: 1400 },
          { time: 1_200_000, price: 2000 }
        ])
        yield* trading.advance(1_200_000)
        yield* submit(resting)
        const traded = yield* everything
        const copy = yield* snapshot
        yield* trading.playPrices("ETH", [{ time: 0, price: 1400 }])
        yield* trading.advance(3_600_000)
        assert.strictEqual(yield* openOrders, 0)
        yield* restore(copy)
        assert.strictEqual(yield* trading.now, start + 1_200_000)
        assert.strictEqual(yield* everything, traded)
        assert.strictEqual(yield* openOrders, 1)
        yield* reset
        assert.deepStrictEqual(yield* ask({ type: "l2Book", coin: "ETH" }), book)
      }),
      { stoppedAt: start }
    ))
})

describe("what the venue remembers", () => {
  it.effect("is bounded: no transfer makes an account too many, and the oldest fills are forgotten", () =>
    on(
      Effect.gen(function*() {
        const { trading } = yield* SandboxState.SandboxState
        const send = (destination: string) =>
          act(user, "usdSend", {
            signatureChainId: "0x66eee",
            hyperliquidChain: "Mainnet",
            destination,
            amount: "1",
            time: 1
          })
        const addressOf = (index: number) => `0x${index.toString(16).padStart(40, "1")}`
        assert.isUndefined(yield* send(addressOf(1)))
        assert.strictEqual(yield* send(addressOf(2)), "The venue has reached its maximum number of accounts")
        assert.isUndefined(yield* send(addressOf(1)))
        const px = String(Math.round(Number(yield* markOf("ETH")) * 1.02))
        for (let fill = 0; fill < 7; fill++) {
          yield* act(user, "order", {
            orders: [{ a: eth, b: true, p: px, s: "0.01", r: false, t: { limit: { tif: "Ioc" } } }],
            grouping: "na"
          })
          yield* TestClock.adjust("1 second")
        }
        const { state } = yield* trading.snapshot
        assert.strictEqual(state.accounts.size, 4)
        assert.strictEqual(state.accounts.get(user)?.fills.length, 4)
      }),
      { limits: { accounts: 4, fills: 3 } }
    ))
})
