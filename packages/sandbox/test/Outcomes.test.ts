/** Outcome markets: which exist, how their two sides trade as one book, what they cost, and how they end. */
import { assert, describe, it } from "@effect/vitest"
import type { SentAction } from "@trigate/domain/actions/Action"
import { infoOperations } from "@trigate/domain/info/InfoOperations"
import { readAcknowledged } from "@trigate/domain/unstable/streams/Subscriptions"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import * as VenueStreams from "@trigate/sandbox/unstable/streams/VenueStreams"
import { usdc } from "@trigate/sandbox/unstable/venue/Assets"
import { firstSide } from "@trigate/sandbox/unstable/venue/Outcomes"
import { findAccount } from "@trigate/sandbox/unstable/venue/TradingState"
import * as JsonParts from "@trigate/testing/JsonParts"
import { sampleRuns } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import {
  above,
  activate,
  ann,
  associate,
  balances,
  bob,
  coin,
  deploy,
  eve,
  outcomeWith,
  quiet,
  readMeta,
  registerQuestion,
  settle,
  settleQuestion,
  side,
  split,
  worth
} from "./outcomeTrading.ts"
import { check, drawing, Run, users } from "./randomTrading.ts"
import { act, ask, askAt, listOf, oidOf, place, venueNow } from "./trader.ts"
import { atStart, start } from "./venue.ts"

const quarter = 900_000

const fillsOf = (user: (typeof users)[number]) =>
  Effect.map(
    ask({ type: "userFills", user }),
    (rows) =>
      listOf(rows).map((row) => ["coin", "side", "px", "sz", "fee", "dir"].map((member) => JsonParts.at(row, member)))
  )

const volume = (user: (typeof users)[number]) => Effect.map(venueNow, ({ state }) => findAccount(state, user).volume)

describe("outcomeMeta", () => {
  it.effect("lists recurring outcomes and a question, with side names from the template, and rotates every 15 minutes", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      const first = yield* readMeta
      assert.strictEqual(first.outcomes.length, 8)
      const named = first.outcomes.map(({ name, sideSpecs }) => [name, ...sideSpecs.map((spec) => spec.name)])
      assert.deepInclude(named, ["template:binaryPrice", "template:Yes", "template:No"])
      assert.deepInclude(named, ["template:priceBelow", "template:Under", "template:Over"])
      const templates = listOf(yield* ask({ type: "outcomeTemplates" }))
      const ids = templates.map((template) => JsonParts.at(template, "id"))
      assert.deepStrictEqual(ids, ["binaryPrice", "priceBelow", "priceRange", "priceRange-between", "priceRange-above"])
      const [question] = first.questions ?? []
      assert.strictEqual(question?.namedOutcomes.length, 3)
      assert.isNull(yield* ask({ type: "settledOutcome", outcome: first.outcomes[0]?.outcome }))
      yield* trading.advance(quarter)
      const next = yield* readMeta
      const before = new Set(first.outcomes.map(({ outcome }) => outcome))
      // the two daily outcomes remain
      assert.strictEqual(next.outcomes.filter(({ outcome }) => before.has(outcome)).length, 2)
      assert.notStrictEqual(next.questions?.[0]?.question, question?.question)
      const settled = yield* ask({ type: "settledOutcome", outcome: question?.namedOutcomes[1] })
      assert.deepStrictEqual(JsonParts.at(settled, "question", "question"), { settled: question?.question })
    })))

  it.effect("has a threshold from which each side's price, and the result, follow", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      const [above, below] = [yield* outcomeWith("period:15m"), yield* outcomeWith("priceBelow")]
      const readMids = Effect.map(
        ask({ type: "allMids" }),
        (mids) => [coin(above, 0), coin(above, 1), coin(below, 0)].map((name) => Number(JsonParts.at(mids, name)))
      )
      yield* trading.playPrices("BTC", [{ time: 0, price: 200_000 }])
      yield* trading.playPrices("ETH", [{ time: 0, price: 1 }])
      assert.isTrue((yield* readMids).every((mid, at) => at === 1 ? mid < 0.01 : mid > 0.99))
      yield* trading.playPrices("BTC", [{ time: 0, price: 1 }])
      yield* trading.playPrices("ETH", [{ time: 0, price: 200_000 }])
      assert.isTrue((yield* readMids).every((mid, at) => at === 1 ? mid > 0.99 : mid < 0.01))
      yield* trading.advance(86_400_000)
      for (const outcome of [above, below]) {
        assert.strictEqual(yield* askAt({ type: "settledOutcome", outcome }, "settleFraction"), "0.0")
      }
      assert.strictEqual(yield* askAt({ type: "settledOutcome", outcome: above }, "details"), "price:1")
    })))

  it.effect("has the same results after a snapshot is restored", () =>
    atStart(Effect.gen(function*() {
      const { restore, snapshot, trading } = yield* SandboxState
      const outcome = yield* quiet("period:15m")
      yield* split(ann, outcome, "70")
      const saved = yield* snapshot
      yield* trading.advance(10 * quarter)
      const [settled, listed] = [yield* balances(ann), yield* readMeta]
      assert.hasAllKeys(settled, ["USDC", `o${outcome}`])
      yield* restore(saved)
      assert.deepStrictEqual([yield* balances(ann), yield* readMeta], [settled, listed])
    })))
})

describe("the two sides of an outcome", () => {
  it.effect("have one book: prices of both sides sum to 1, with the same sizes, also after a trade", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* trading.depositSpot(ann, usdc, "1000")
      const outcome = yield* outcomeWith("period:1d")
      const compare = Effect.gen(function*() {
        const levels = (number: 0 | 1, at: 0 | 1) =>
          Effect.map(
            askAt({ type: "l2Book", coin: coin(outcome, number) }, "levels", at),
            (rows) => listOf(rows).map((row) => ["px", "sz", "n"].map((member) => Number(JsonParts.at(row, member))))
          )
        for (const at of [0, 1] as const) {
          const flipped = (yield* levels(1, at === 0 ? 1 : 0)).map(([px = 0, sz, n]) => [+(1 - px).toFixed(8), sz, n])
          const own = yield* levels(0, at)
          assert.isAbove(own.length, 3)
          assert.deepStrictEqual(own, flipped)
        }
        const mids = yield* ask({ type: "allMids" })
        const [yes, no] = ([0, 1] as const).map((number) => Number(JsonParts.at(mids, coin(outcome, number))))
        assert.closeTo((yes ?? 0) + (no ?? 0), 1, 1e-9)
      })
      yield* compare
      const taken = yield* place(ann, side(outcome, 1), "buy", "300", "0.99", { tif: "Ioc" })
      assert.strictEqual(JsonParts.at(taken, "filled", "totalSz"), "300.0")
      yield* compare
      yield* place(ann, side(outcome, 0), "buy", "7000", "0.0123")
      yield* place(ann, side(outcome, 1), "sell", "100", "0.987")
      yield* compare
    })))

  it.effect("match a buyer of each side by new tokens, and a seller of each side by redeeming tokens, with the venue's fees", () =>
    atStart(Effect.gen(function*() {
      const outcome = yield* quiet("class:priceBinary")
      // minting: neither pays a fee, and nothing counts
      assert.isDefined(oidOf(yield* place(ann, side(outcome, 0), "buy", "100", "0.4")))
      yield* place(bob, side(outcome, 1), "buy", "100", "0.7", { tif: "Ioc" })
      assert.deepStrictEqual(yield* fillsOf(ann), [[coin(outcome, 0), "B", "0.4", "100.0", "0.0", "Buy"]])
      assert.deepStrictEqual(yield* fillsOf(bob), [[coin(outcome, 1), "B", "0.6", "100.0", "0.0", "Buy"]])
      assert.deepStrictEqual([yield* volume(ann), yield* volume(bob)], [0n, 0n])
      assert.deepInclude(yield* balances(ann), { USDC: "960.0", [`+${10 * outcome}`]: "100.0" })
      // a normal trade: only the seller pays, and both count the seller's price
      yield* place(eve, side(outcome, 0), "buy", "40", "0.5")
      yield* place(ann, side(outcome, 0), "sell", "40", "0.5", { tif: "Ioc" })
      assert.deepInclude(yield* fillsOf(ann), [coin(outcome, 0), "A", "0.5", "40.0", "0.014", "Sell"])
      assert.deepStrictEqual([yield* volume(ann), yield* volume(eve)], [20_000_000n, 20_000_000n])
      // burning: both pay, the maker at its rate, and both count the whole pair
      yield* place(bob, side(outcome, 1), "sell", "50", "0.45")
      yield* place(ann, side(outcome, 0), "sell", "50", "0.5", { tif: "Ioc" })
      assert.deepInclude(yield* fillsOf(ann), [coin(outcome, 0), "A", "0.55", "50.0", "0.01925", "Sell"])
      assert.deepInclude(yield* fillsOf(bob), [coin(outcome, 1), "A", "0.45", "50.0", "0.009", "Sell"])
      assert.deepStrictEqual([yield* volume(ann), yield* volume(bob)], [70_000_000n, 50_000_000n])
      check((yield* venueNow).state)
    })))

  it.effect("match sellers before buyers of the other side at one price, and charge twice the fee for a deployer", () =>
    atStart(Effect.gen(function*() {
      const outcome = yield* quiet("template:binaryPrice")
      yield* split(bob, outcome, "50")
      yield* place(ann, side(outcome, 1), "buy", "30", "0.6")
      yield* place(bob, side(outcome, 0), "sell", "30", "0.4")
      yield* place(eve, side(outcome, 0), "buy", "30", "0.4", { tif: "Ioc" })
      assert.deepStrictEqual(yield* fillsOf(bob), [[coin(outcome, 0), "A", "0.4", "30.0", "0.0096", "Sell"]])
      assert.deepStrictEqual(yield* fillsOf(ann), [])
      const late = yield* place(eve, side(outcome, 0), "buy", "30", "0.4", { tif: "Alo" })
      assert.include(JSON.stringify(late), "Post only order would have immediately matched")
    })))

  it.effect("take whole sizes, prices below 1 with up to 8 decimals and 5 digits, and 10 USDC at the mark price", () =>
    atStart(Effect.gen(function*() {
      const outcome = yield* quiet()
      const yes = side(outcome, 0)
      const refusal = (s: string, p: string) =>
        Effect.map(place(ann, yes, "buy", s, p), (status) => JsonParts.at(status, "error"))
      assert.strictEqual(yield* refusal("30.5", "0.4"), "Order has invalid size.")
      assert.strictEqual(yield* refusal("30", "1"), "Order has invalid price.")
      assert.strictEqual(yield* refusal("30", "0.123456"), `Price must be divisible by tick size. asset=${yes}`)
      assert.strictEqual(yield* refusal("24", "0.9"), `Order must have minimum value of 10 USDC. asset=${yes}`)
      assert.strictEqual(yield* refusal("100000", "0.4"), `Insufficient spot balance asset=${yes}`)
      assert.isUndefined(yield* refusal("25", "0.00012345"))
      assert.strictEqual(
        JsonParts.at(yield* place(ann, side(999, 0), "buy", "30", "0.4"), "error"),
        JsonParts.at(yield* place(ann, 99_999, "buy", "30", "0.4"), "error")?.toString().replace("99999", "100009990")
      )
    })))
})

describe("at its end an outcome", () => {
  it.effect("cancels its orders and pays the holders with a fill each, to the second", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      const outcome = yield* quiet("period:15m")
      yield* trading.playPrices("BTC", [{ time: 0, price: 1 }])
      yield* split(ann, outcome, "100.5")
      yield* place(ann, side(outcome, 1), "sell", "30", "0.9")
      yield* place(bob, side(outcome, 0), "buy", "60", "0.05")
      yield* trading.advance(quarter - start % quarter - 1_000)
      assert.deepInclude(yield* balances(ann), { [`+${10 * outcome}`]: "100.5", USDC: "899.5" })
      yield* trading.advance(1_000)
      const after = yield* balances(ann)
      assert.deepStrictEqual(after, { USDC: "999.92965", [`o${outcome}`]: "0.0" })
      assert.deepStrictEqual(yield* balances(bob), { USDC: "1000.0" })
      assert.sameDeepMembers(yield* fillsOf(ann), [
        [coin(outcome, 0), "A", "0.0", "100.5", "0.0", "Settlement"],
        [coin(outcome, 1), "A", "1.0", "100.5", "0.07035", "Settlement"]
      ])
      for (const user of [ann, bob]) {
        const [order] = listOf(yield* ask({ type: "historicalOrders", user }))
        assert.strictEqual(JsonParts.at(order, "status"), "outcomeSettledCanceled")
        assert.deepStrictEqual(yield* ask({ type: "openOrders", user }), [])
      }
      assert.isNull(yield* ask({ type: "l2Book", coin: coin(outcome, 0) }))
      check((yield* venueNow).state)
    })))

  it.effect("is the same whether time passes at once or in minutes", () =>
    Effect.gen(function*() {
      const pass = (steps: number) =>
        atStart(Effect.gen(function*() {
          const { trading } = yield* SandboxState
          yield* trading.depositSpot(ann, usdc, "1000")
          const outcome = yield* outcomeWith("period:15m")
          yield* place(ann, side(outcome, 0), "buy", "200", "0.2")
          yield* split(ann, outcome, "200")
          yield* place(ann, side(outcome, 0), "sell", "100", "0.7")
          for (let step = 0; step < steps; step++) yield* trading.advance(2 * quarter / steps)
          return [yield* fillsOf(ann), yield* balances(ann)]
        }))
      assert.deepStrictEqual(yield* pass(30), yield* pass(1))
    }))
})

describe("userOutcome", () => {
  it.effect("splits and merges pairs, redeems a whole question, and exchanges a No for the other Yes", () =>
    atStart(Effect.gen(function*() {
      yield* quiet()
      const [question = assert.fail()] = (yield* readMeta).questions ?? []
      const [one = 0, two = 0, three = 0] = question.namedOutcomes
      const all = [one, two, three, question.fallbackOutcome]
      yield* split(ann, one, "100")
      yield* act(ann, "userOutcome", { negateOutcome: { question: question.question, outcome: one, amount: "40" } })
      assert.deepStrictEqual(yield* balances(ann), {
        USDC: "900.0",
        [`+${10 * one}`]: "100.0",
        [`+${10 * one + 1}`]: "60.0",
        ...Object.fromEntries(all.slice(1).map((outcome) => [`+${10 * outcome}`, "40.0"]))
      })
      yield* act(ann, "userOutcome", { mergeQuestion: { question: question.question, amount: null } })
      yield* act(ann, "userOutcome", { mergeOutcome: { outcome: one, amount: null } })
      assert.deepStrictEqual(yield* balances(ann), { USDC: "1000.0" })
      const refusals = [
        { splitOutcome: { outcome: one, amount: "1000.1" } },
        { splitOutcome: { outcome: 1, amount: "1" } },
        { mergeOutcome: { outcome: one, amount: "1" } },
        { mergeOutcome: { outcome: one, amount: null } },
        { mergeQuestion: { question: 1, amount: null } },
        { negateOutcome: { question: question.question, outcome: 1, amount: "1" } }
      ]
      assert.deepStrictEqual(yield* Effect.forEach(refusals, (action) => act(ann, "userOutcome", action)), [
        "Insufficient balance for token transfer",
        "Invalid outcome",
        "Insufficient balance for token transfer",
        "Invalid amount",
        "Invalid question",
        "Invalid outcome"
      ])
    })))
})

describe("a deployer", () => {
  const keywordToValue = [
    ["perp", "BTC"],
    ["priceDescription", "the mark price"],
    ["seconds", "60"],
    ["threshold", "70000"],
    ["time", "20261101-0000"]
  ]
  const register = (changed: object = {}) => ({
    venue: "abc",
    operation: {
      registerStandaloneOutcomeFromTemplate: { id: "priceBelow", keywordToValue, deployerFeeScale: "3", ...changed }
    }
  })

  it.effect("needs stake, registers outcomes from templates, earns its part of the fees, and settles them", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* quiet()
      const claim = (venueName: string) => act(eve, "activateOutcomeDeployer", { activate: { venueName } })
      assert.strictEqual(
        yield* act(eve, "outcomeDeploy", register()),
        "Error deploying outcome: not an outcome deployer"
      )
      assert.strictEqual(yield* claim("abc"), "Insufficient stake")
      yield* activate(eve)
      assert.strictEqual(yield* claim("abc"), "Error deploying outcome: already an outcome deployer")
      const refused = yield* Effect.forEach([
        { id: "other" },
        { deployerFeeScale: "10.5" },
        { keywordToValue: keywordToValue.slice(1) },
        { keywordToValue: [...keywordToValue.slice(0, 4), ["time", "20240101-0000"]] }
      ], (changed) => act(eve, "outcomeDeploy", register(changed)))
      assert.deepStrictEqual(refused, [
        "Error deploying outcome: unknown template other",
        "Deployer fee scale cannot be negative or greater than 10.",
        "Error deploying outcome: the values do not fit the template",
        "Error deploying outcome: the values do not fit the template"
      ])
      assert.isUndefined(yield* act(eve, "outcomeDeploy", register()))
      assert.deepStrictEqual(yield* ask({ type: "outcomeDeployerLimits", venue: "abc" }), {
        nDailyOutcomesRemaining: 499,
        nActiveOutcomesRemaining: 99
      })
      const spec = (yield* readMeta).outcomes.find(({ outcome }) => outcome === 1)
      assert.deepInclude(spec, {
        name: "template:priceBelow",
        description: keywordToValue.map((pair) => pair.join(":")).join("|"),
        venue: "abc",
        deployerFeeScale: "3.0"
      })
      yield* split(ann, 1, "100")
      yield* trading.setBook(coin(1, 1), { bids: [{ px: "0.5", sz: "100" }], asks: [] })
      yield* place(ann, side(1, 1), "sell", "100", "0.5", { tif: "Ioc" })
      // six times the base fee, half of it for the deployer
      assert.deepStrictEqual(yield* fillsOf(ann), [[coin(1, 1), "A", "0.5", "100.0", "0.21", "Sell"]])
      assert.deepInclude(yield* balances(eve), { USDC: "1000.105" })
      const settlement = {
        outcome: 1,
        settleFraction: "0.25",
        details: "",
        nameAndDescription: [spec?.name, spec?.description],
        sideNames: ["template:Under", "template:Over"]
      }
      const settle = (changed: object) =>
        act(eve, "outcomeDeploy", { venue: "abc", operation: { settleOutcome: { ...settlement, ...changed } } })
      assert.strictEqual(
        yield* settle({ sideNames: ["template:Over", "template:Under"] }),
        "Error deploying outcome: invalid settlement"
      )
      assert.isUndefined(yield* settle({}))
      assert.strictEqual(yield* askAt({ type: "settledOutcome", outcome: 1 }, "settleFraction"), "0.25")
      assert.deepInclude(yield* fillsOf(ann), [coin(1, 0), "A", "0.25", "100.0", "0.105", "Settlement"])
      assert.strictEqual(
        yield* act(eve, "activateOutcomeDeployer", { deactivate: null }),
        "Error deploying outcome: deployed less than 183 days ago"
      )
      check((yield* venueNow).state)
    })))
})

describe("streams and history of an outcome", () => {
  it.effect("have updates of the list, books, trades and candles", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* trading.depositSpot(ann, usdc, "1000")
      const outcome = yield* outcomeWith("period:1d")
      const frames = new Map<string, Array<unknown>>()
      const made = VenueStreams.makeFrames(VenueStreams.makeFeed(yield* SandboxState))
      const name = coin(outcome, 1)
      const requests = [
        { type: "outcomeMetaUpdates" },
        { type: "candle", coin: name, interval: "1m" },
        ...["l2Book", "bbo", "trades", "activeAssetCtx"].map((type) => ({ type, coin: name }))
      ]
      for (const request of requests) {
        const stream = made(Result.getOrThrow(readAcknowledged(request))) ?? assert.fail(request.type)
        yield* Effect.forkChild(Stream.runForEach(stream, (frame) =>
          Effect.sync(() => {
            frames.set(request.type, [...frames.get(request.type) ?? [], frame])
          })))
      }
      yield* TestClock.adjust("6 seconds")
      yield* place(ann, side(outcome, 1), "buy", "100", "0.99", { tif: "Ioc" })
      yield* trading.advance(quarter)
      yield* TestClock.adjust("2 seconds")
      for (const { type } of requests) assert.isAbove(frames.get(type)?.length ?? 0, 0, type)
      const updates = listOf(frames.get("outcomeMetaUpdates")?.[0]).map((update) => Object.keys(update ?? {})[0])
      assert.deepStrictEqual(
        [...Map.groupBy(updates, (key) => key)].map(([key, all]) => [key, all.length]),
        [["outcomeSettled", 6], ["questionSettled", 1], ["outcomeCreated", 6], ["questionUpdated", 1]]
      )
      assert.include(JSON.stringify(frames.get("trades")), ann)
      const req = { coin: name, interval: "15m", startTime: start - quarter }
      const queries = {
        allMids: {},
        candleSnapshot: { req },
        historicalOrders: { user: ann },
        l2Book: { coin: name },
        recentTrades: { coin: name },
        spotClearinghouseState: { user: ann },
        userFills: { user: ann }
      }
      for (const { name: type, response } of Object.values(infoOperations)) {
        const query = new Map<string, object>(Object.entries(queries)).get(type)
        const answer = query === undefined ? undefined : yield* ask({ type, ...query })
        if (query !== undefined) assert.isTrue(Result.isSuccess(Schema.decodeUnknownResult(response)(answer)), type)
      }
    })))

  it.effect("have bars of every interval that agree, from its creation to its end", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      const outcome = yield* outcomeWith("period:15m")
      yield* trading.advance(2 * quarter)
      const read = (interval: string) =>
        Effect.map(
          ask({
            type: "candleSnapshot",
            req: { coin: coin(outcome, 0), interval, startTime: 0, endTime: start + 9e6 }
          }),
          (bars) =>
            listOf(bars).map((bar) => ["o", "h", "l", "c", "v", "n"].map((key) => Number(JsonParts.at(bar, key))))
        )
      const [minutes, quarters] = [yield* read("1m"), yield* read("15m")]
      assert.deepStrictEqual([minutes.length, quarters.length], [15, 1])
      const at = (key: number) => minutes.map((bar) => bar[key] ?? 0)
      assert.deepStrictEqual(quarters[0], [
        at(0)[0],
        Math.max(...at(1)),
        Math.min(...at(2)),
        at(3)[14],
        at(4).reduce((a, b) => a + b),
        at(5).reduce((a, b) => a + b)
      ])
    })))
})

describe("random trading of outcomes", () => {
  it.effect.prop(
    "conserves all money: by trades, splits, merges, negations, questions of a deployer and settlements",
    { run: Run },
    ({ run }) =>
      atStart(Effect.gen(function*() {
        const { trading } = yield* SandboxState
        const draw = drawing(run)
        for (const user of users) yield* trading.depositSpot(user, usdc, "2000")
        yield* activate(eve)
        const initial = (yield* venueNow).state.deposited.get(usdc)
        const drawTerms = () => above(String(50_000 + draw.below(50_000)))
        const act = Effect.fnUntraced(function*() {
          const { state } = yield* venueNow
          const questions = [...state.deployedQuestions.values()].filter(({ isSettled }) => !isSettled)
          const spec = questions[draw.below(Math.max(1, questions.length))]?.spec
          const left = spec?.namedOutcomes.filter((each) => !spec.settledNamedOutcomes.includes(each)) ?? []
          const chosen = left[draw.below(Math.max(1, left.length))] ?? 0
          yield* draw.one([
            deploy(
              eve,
              registerQuestion([drawTerms(), drawTerms()], { deployerFeeScale: draw.one(["0", "0.25", "10"]) })
            ),
            deploy(eve, associate(drawTerms(), spec?.question)),
            deploy(eve, associate(drawTerms(), spec?.question)),
            settle(chosen, draw.one(["0", "0", "1"])),
            settleQuestion(spec?.question ?? 0, left.map((each) => [each, each === chosen ? "1" : "0"]))
          ])
        })
        for (let step = 0; step < 60; step++) {
          yield* trading.advance(draw.one([0, 0, 0, 0, 500, 5_000, 60_000, 600_000]))
          if (draw.below(4) === 0) yield* act()
          const { outcomes, state } = yield* venueNow
          const user = draw.one(users)
          const all = [...outcomes.active.values()]
          const outcome = all[draw.below(all.length)] ?? assert.fail()
          const { question } = outcome
          const asset = outcome.sides[draw.below(2) === 0 ? 0 : 1]
          const amount = draw.one(["20", "1.5", "0.00000001", "77"])
          const open = [...findAccount(state, user).open.values()]
          const order = open[draw.below(Math.max(1, open.length))]
          const number = outcome.spec.outcome
          const orderAction = (): SentAction => ({
            type: "order",
            grouping: "na",
            orders: [{
              a: asset.id,
              b: draw.below(2) === 0,
              p: String((1 + draw.below(98)) / 100),
              s: String(1 + draw.below(900)),
              r: false,
              t: { limit: { tif: draw.one(["Gtc", "Gtc", "Alo", "Ioc"]) } }
            }]
          })
          const action = draw.one<() => SentAction>([
            orderAction,
            orderAction,
            orderAction,
            () => ({ type: "userOutcome", splitOutcome: { outcome: number, amount } }),
            () => ({ type: "userOutcome", mergeOutcome: { outcome: number, amount: draw.one([null, amount]) } }),
            () => ({ type: "userOutcome", mergeQuestion: { question: question?.question ?? 1, amount: null } }),
            () => ({
              type: "userOutcome",
              negateOutcome: { question: question?.question ?? 1, outcome: number, amount }
            }),
            () => ({
              type: "cancel",
              cancels: [{ a: firstSide + Number(order?.coin.slice(1) ?? 0), o: order?.oid ?? 1 }]
            })
          ])()
          yield* Effect.result(trading.act(user, action))
          const venue = yield* venueNow
          check(venue.state)
          assert.strictEqual(worth(venue), initial)
        }
        yield* trading.advance(2 * 86_400_000)
        for (const { isSettled, spec } of (yield* venueNow).state.deployedQuestions.values()) {
          if (isSettled) continue
          for (const each of spec.namedOutcomes) {
            if (!spec.settledNamedOutcomes.includes(each)) assert.isUndefined(yield* settle(each, "0"))
          }
        }
        const { state } = yield* venueNow
        check(state)
        assert.strictEqual(state.deposited.get(usdc), initial)
        assert.isFalse([...state.deposited.keys()].some((token) => token >= firstSide))
        assert.isAbove([...state.accounts.values()].flatMap(({ fills }) => fills).length, 10)
      })),
    { arbitrary: { runs: sampleRuns(6) } }
  )
})
