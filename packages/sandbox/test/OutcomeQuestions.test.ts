/** Questions that accounts deploy: their outcomes, how they are settled, and what is refused. */
import { assert, describe, it } from "@effect/vitest"
import { readAcknowledged } from "@trigate/domain/unstable/streams/Subscriptions"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import * as VenueStreams from "@trigate/sandbox/unstable/streams/VenueStreams"
import { usdc } from "@trigate/sandbox/unstable/venue/Assets"
import { firstSide, nextOutcome, nextQuestion } from "@trigate/sandbox/unstable/venue/Outcomes"
import { TradingState } from "@trigate/sandbox/unstable/venue/TradingState"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import {
  above,
  ann,
  asked,
  associate,
  balances,
  between,
  bob,
  coin,
  deploy,
  eve,
  questionTerms,
  readMeta,
  registerQuestion,
  settle,
  settleQuestion,
  side,
  split,
  worth
} from "./outcomeTrading.ts"
import { check } from "./randomTrading.ts"
import { ask, askAt, listOf, place, venueNow } from "./trader.ts"
import { atStart, start } from "./venue.ts"

const readQuestion = Effect.map(readMeta, ({ questions }) => questions?.find(({ question }) => question === 1))

const settledQuestion = (outcome: number) =>
  Effect.map(
    ask({ type: "settledOutcome", outcome }),
    (answer) => [JsonParts.at(answer, "settleFraction"), JsonParts.at(answer, "question", "question")]
  )

describe("a question of a deployer", () => {
  it.effect("has named outcomes and a fallback, gets another one, and one of them pays", () =>
    atStart(Effect.gen(function*() {
      const { trading } = yield* SandboxState
      yield* asked
      const money = (yield* venueNow).state.deposited.get(usdc)
      const question = {
        question: 1,
        name: "template:priceRange",
        description: "perp:BTC|priceDescription:the mark price|seconds:60|time:20261101-0000",
        fallbackOutcome: 1,
        namedOutcomes: [2, 3],
        settledNamedOutcomes: []
      }
      assert.deepStrictEqual(yield* readQuestion, question)
      const terms = { quoteToken: "USDC", venue: "abc", deployerFeeScale: "0.0" }
      const sideSpecs = [{ name: "Yes" }, { name: "No" }]
      assert.deepStrictEqual((yield* readMeta).outcomes.slice(0, 3), [
        { outcome: 1, name: "template fallback", description: "other", sideSpecs, ...terms },
        { outcome: 2, name: "template:priceRange-between", description: "from:60000|to:70000", sideSpecs, ...terms },
        { outcome: 3, name: "template:priceRange-above", description: "from:70000", sideSpecs, ...terms }
      ])
      assert.deepStrictEqual(yield* ask({ type: "outcomeDeployerLimits", venue: "abc" }), {
        nDailyOutcomesRemaining: 497,
        nActiveOutcomesRemaining: 97
      })
      yield* trading.advance(Date.UTC(2026, 9, 31, 23, 59) - start)
      for (const [price, likely] of [[55_000, 1], [65_000, 2], [75_000, 3]] as const) {
        yield* trading.playPrices("BTC", [{ time: 0, price }])
        const mids = yield* ask({ type: "allMids" })
        for (const outcome of [1, 2, 3]) {
          const mid = Number(JsonParts.at(mids, coin(outcome, 0)))
          assert.strictEqual(mid > 0.99, outcome === likely, `${mid}`)
        }
      }

      yield* split(ann, 1, "100")
      yield* place(ann, side(1, 1), "sell", "50", "0.9999")
      yield* split(bob, 2, "40")
      // generated orders take the Yes
      yield* trading.playPrices("BTC", [{ time: 0, price: 55_000 }])
      yield* trading.setBook(coin(1, 0), { bids: [{ px: "0.5", sz: "100" }], asks: [] })
      yield* split(bob, 1, "30")
      yield* place(bob, side(1, 0), "sell", "30", "0.5", { tif: "Ioc" })
      assert.isUndefined(yield* deploy(eve, associate(between("50000", "60000"))))
      assert.deepStrictEqual(yield* readQuestion, { ...question, namedOutcomes: [2, 3, 4] })
      // "other" did include the new outcome, and its No did not
      assert.deepStrictEqual(yield* balances(ann), {
        USDC: "900.0",
        "+10": "100.0",
        "+20": "100.0",
        "+30": "100.0",
        "+40": "100.0"
      })
      assert.deepStrictEqual(yield* balances(bob), { USDC: "944.9895", "+20": "70.0", "+21": "40.0", "+30": "30.0" })
      const [order] = listOf(yield* ask({ type: "historicalOrders", user: ann }))
      assert.strictEqual(JsonParts.at(order, "status"), "outcomeSettledCanceled")
      assert.strictEqual(worth(yield* venueNow), money)
      check((yield* venueNow).state)

      assert.strictEqual(yield* settle(2, "1"), "Error deploying outcome: invalid settlement")
      assert.isUndefined(yield* settle(3, "0"))
      assert.deepStrictEqual(yield* settledQuestion(3), ["0.0", { active: 1 }])
      assert.deepStrictEqual(yield* readQuestion, {
        ...question,
        namedOutcomes: [2, 3, 4],
        settledNamedOutcomes: [3]
      })
      assert.strictEqual(worth(yield* venueNow), money)
      assert.isUndefined(yield* settleQuestion(1, [[2, "1"], [4, "0"]]))
      assert.deepStrictEqual(
        yield* Effect.forEach([1, 2, 3, 4], settledQuestion),
        [["0.0", undefined], ["1.0", { settled: 1 }], ["0.0", { settled: 1 }], ["0.0", { settled: 1 }]]
      )
      assert.isUndefined(yield* readQuestion)
      // the base fee of 0.07 % is charged for what is paid
      assert.strictEqual((yield* balances(ann))["USDC"], "999.93")
      assert.strictEqual((yield* balances(bob))["USDC"], "1014.9405")
      const { state } = yield* venueNow
      check(state)
      assert.strictEqual(state.deposited.get(usdc), money)
      assert.isFalse([...state.deposited.keys()].some((token) => token >= firstSide && token < firstSide + 1_000))
    })))

  it.effect("pays its fallback if none of its named outcomes occurs", () =>
    atStart(Effect.gen(function*() {
      yield* asked
      yield* split(ann, 1, "100")
      yield* split(bob, 3, "10")
      assert.isUndefined(yield* settle(3, "0"))
      assert.isUndefined(yield* settle(2, "0"))
      assert.deepStrictEqual(
        yield* Effect.forEach([1, 2], settledQuestion),
        [["1.0", undefined], ["0.0", { settled: 1 }]]
      )
      assert.strictEqual((yield* balances(ann))["USDC"], "999.93")
      assert.strictEqual((yield* balances(bob))["USDC"], "999.993")
      assert.strictEqual(yield* deploy(eve, associate(between("50000", "60000"))), "Invalid question")
      check((yield* venueNow).state)
    })))

  it.effect("is settled alone by its last outcome, also after a snapshot is restored", () =>
    atStart(Effect.gen(function*() {
      const { restore, snapshot } = yield* SandboxState
      yield* asked
      yield* split(ann, 2, "100")
      yield* restore(yield* snapshot)
      assert.isUndefined(yield* deploy(eve, associate(between("50000", "60000"))))
      for (const outcome of [2, 4]) assert.isUndefined(yield* settle(outcome, "0"))
      assert.isUndefined(yield* settle(3, "1"))
      assert.deepStrictEqual(yield* settledQuestion(1), ["0.0", undefined])
      assert.deepStrictEqual(yield* settledQuestion(3), ["1.0", { settled: 1 }])
      assert.strictEqual((yield* balances(ann))["USDC"], "999.93")
      assert.isUndefined(yield* readQuestion)
    })))

  it.effect("is refused with what the template, the limits or the question do not allow", () =>
    atStart(Effect.gen(function*() {
      yield* asked
      const unfitting = "Error deploying outcome: the values do not fit the template"
      const unknown = (id: string) => `Error deploying outcome: unknown template ${id}`
      const count = "Error deploying outcome: a question has 1 to 100 named outcomes"
      const refusals = yield* Effect.forEach([
        registerQuestion([above("1")], { id: "priceRange-above" }),
        registerQuestion([above("1")], { id: "binaryPrice" }),
        registerQuestion([{ ...above("1"), id: "priceRange" }]),
        registerQuestion([above("1")], { deployerFeeScale: "10.1" }),
        registerQuestion([above("1")], { keywordToValue: questionTerms.keywordToValue.slice(1) }),
        registerQuestion([above("-1")]),
        registerQuestion([]),
        registerQuestion(Array.from({ length: 101 }, (_, at) => above(String(at)))),
        // with the fallback, and with the three that exist
        registerQuestion(Array.from({ length: 97 }, (_, at) => above(String(at)))),
        registerQuestion([above("1"), above("1")]),
        { registerStandaloneOutcomeFromTemplate: { ...above("1"), deployerFeeScale: "0" } },
        associate(above("1"), 2),
        associate(above("70000")),
        associate({ id: "binaryPrice", keywordToValue: [] })
      ], (operation) => deploy(eve, operation))
      assert.deepStrictEqual(refusals, [
        unknown("priceRange-above"),
        unknown("binaryPrice"),
        unknown("priceRange"),
        "Deployer fee scale cannot be negative or greater than 10.",
        unfitting,
        unfitting,
        count,
        count,
        "Error deploying outcome: too many outcomes",
        "Error deploying outcome: the question has this outcome already",
        unknown("priceRange-above"),
        "Invalid question",
        "Error deploying outcome: the question has this outcome already",
        unknown("binaryPrice")
      ])
      const settlements = [
        yield* settle(1, "1"),
        yield* settle(2, "0.5"),
        yield* settle(9, "0"),
        yield* settleQuestion(1, [[2, "1"]]),
        yield* settleQuestion(1, [[2, "1"], [3, "1"]]),
        yield* settleQuestion(1, [[2, "0"], [3, "0"]]),
        yield* settleQuestion(1, [[2, "0.5"], [3, "0.5"]]),
        yield* settleQuestion(1, [[2, "1"], [3, "0"], [3, "0"]]),
        yield* settleQuestion(1, [[1, "1"], [2, "0"], [3, "0"]]),
        yield* settleQuestion(2, []),
        yield* settleQuestion(1, [[2, "1"], [3, "0"]], bob)
      ]
      const invalid = "Error deploying outcome: invalid settlement"
      assert.deepStrictEqual(settlements, [
        invalid,
        invalid,
        "Invalid outcome",
        ...Array.from({ length: 6 }, () => invalid),
        "Invalid question",
        "Error deploying outcome: not an outcome deployer"
      ])
      assert.deepStrictEqual((yield* readQuestion)?.settledNamedOutcomes, [])
    })))

  it.effect("is deployed and settled by accounts to which the deployer grants this", () =>
    atStart(Effect.gen(function*() {
      yield* asked
      const grant = (variant: string, allowed: boolean) => ({ setSubDeployers: [{ variant, user: bob, allowed }] })
      const refused = "Error deploying outcome: not an outcome deployer"
      const readDeployers = Effect.map(askAt({ type: "outcomeMeta" }, "deployers"), (rows) => listOf(rows).slice(1))
      assert.deepStrictEqual(yield* readDeployers, [{ deployer: eve, venue: "abc", subDeployers: [] }])
      assert.strictEqual(
        yield* deploy(eve, grant("settleQuestion2", true)),
        "Error deploying outcome: unknown operation of a sub-deployer"
      )
      assert.strictEqual(yield* deploy(bob, grant("settleQuestion", true)), refused)
      assert.isUndefined(yield* deploy(eve, grant("settleQuestion", true)))
      assert.isUndefined(yield* deploy(eve, grant("registerQuestionFromTemplate", true)))
      assert.deepStrictEqual(yield* readDeployers, [{
        deployer: eve,
        venue: "abc",
        subDeployers: [["settleQuestion", [bob]], ["registerQuestionFromTemplate", [bob]]]
      }])
      assert.strictEqual(yield* deploy(bob, grant("settleOutcome", true)), refused)
      assert.isUndefined(yield* deploy(bob, registerQuestion([above("1")])))
      assert.strictEqual((yield* venueNow).state.deployedOutcomes.get(5)?.deployer, eve)
      assert.isUndefined(yield* settleQuestion(1, [[2, "0"], [3, "1"]], bob))
      assert.isUndefined(yield* deploy(eve, grant("settleQuestion", false)))
      assert.strictEqual(yield* settleQuestion(2, [[5, "1"]], bob), refused)
    })))

  it("has numbers that no recurring question has, as its outcomes do", () => {
    const state = new TradingState(start)
    const terms = { keywords: [], venue: "abc", feeScale: "0.0" }
    for (let count = 0; count < 1_000; count++) {
      const outcome = nextOutcome(state)
      state.deployedOutcomes.set(outcome, { ...terms, outcome, deployer: eve, createdAt: start })
      const question = nextQuestion(state)
      const lists = { namedOutcomes: [], settledNamedOutcomes: [] }
      const spec = { question, name: "", description: "", fallbackOutcome: outcome, ...lists }
      state.deployedQuestions.set(question, { ...terms, spec, template: "", isSettled: false })
    }
    assert.deepStrictEqual([...state.deployedOutcomes.keys()].slice(998), [999, 50_000_999])
    assert.deepStrictEqual([...state.deployedQuestions.keys()].slice(98, 100), [99, 50_000_099])
  })

  it.effect("is in the updates of the list of outcomes", () =>
    atStart(Effect.gen(function*() {
      yield* asked
      const updates: Array<unknown> = []
      const made = VenueStreams.makeFrames(VenueStreams.makeFeed(yield* SandboxState))
      const stream = made(Result.getOrThrow(readAcknowledged({ type: "outcomeMetaUpdates" }))) ?? assert.fail()
      yield* Effect.forkChild(Stream.runForEach(stream, (frame) => Effect.sync(() => updates.push(...listOf(frame)))))
      yield* TestClock.adjust("2 seconds")
      const after = Effect.fnUntraced(function*(operation: Effect.Effect<unknown, never, SandboxState>) {
        assert.isUndefined(yield* operation)
        yield* TestClock.adjust("2 seconds")
        return updates.splice(0).flatMap((update) =>
          Object.entries(update ?? {}).map(([kind, value]: readonly [string, unknown]): readonly [string, unknown] => [
            kind,
            JsonParts.at(value, "outcome") ?? JsonParts.at(value, "settledNamedOutcomes") ?? value
          ])
        )
      })
      assert.deepStrictEqual(yield* after(deploy(eve, associate(above("90000")))), [
        ["outcomeCreated", 4],
        ["questionUpdated", []]
      ])
      assert.deepStrictEqual(yield* after(settle(2, "0")), [["outcomeSettled", 2], ["questionUpdated", [2]]])
      assert.deepStrictEqual(yield* after(settleQuestion(1, [[3, "0"], [4, "1"]])), [
        ["outcomeSettled", 1],
        ["outcomeSettled", 3],
        ["outcomeSettled", 4],
        ["questionSettled", 1]
      ])
    })))
})
