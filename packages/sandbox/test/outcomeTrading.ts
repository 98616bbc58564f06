/** Traders and deployers of outcomes, and what holds of their money. */
import { assert } from "@effect/vitest"
import { OutcomeMeta } from "@trigate/domain/info/Market"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import { usdc } from "@trigate/sandbox/unstable/venue/Assets"
import { firstSide } from "@trigate/sandbox/unstable/venue/Outcomes"
import type { Venue } from "@trigate/sandbox/unstable/venue/Venue"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { sum, users } from "./randomTrading.ts"
import { act, ask, askAt, listOf, venueNow } from "./trader.ts"

export const [ann, bob, eve] = users

export const readMeta = Effect.map(ask({ type: "outcomeMeta" }), Schema.decodeUnknownSync(OutcomeMeta))

/** The asset of a side. */
export const side = (outcome: number, number: 0 | 1): number => firstSide + 10 * outcome + number
export const coin = (outcome: number, number: 0 | 1): string => `#${10 * outcome + number}`

/** The first outcome whose specification has a text, which is the only one that these tests trade. */
export const outcomeWith = (text: string) =>
  Effect.map(
    readMeta,
    ({ outcomes }) => outcomes.find((spec) => JSON.stringify(spec).includes(text))?.outcome ?? assert.fail(text)
  )

export const balances = (user: (typeof users)[number]) =>
  Effect.map(
    askAt({ type: "spotClearinghouseState", user }, "balances"),
    (rows) => {
      const read = listOf(rows).map((row) => [String(JsonParts.at(row, "coin")), JsonParts.at(row, "total")] as const)
      return Object.fromEntries<unknown>(read)
    }
  )

/** Users with dollars, and an outcome whose price is 0.4 and whose book has no generated orders. */
export const quiet = Effect.fnUntraced(function*(text: string = "class:priceBinary") {
  const { trading } = yield* SandboxState
  for (const user of [ann, bob, eve]) yield* trading.depositSpot(user, usdc, "1000")
  const outcome = yield* outcomeWith(text)
  yield* trading.playPrices(coin(outcome, 0), [{ time: 0, price: 0.4 }])
  yield* trading.setBook(coin(outcome, 0), { bids: [], asks: [] })
  return outcome
})

export const split = (user: (typeof users)[number], outcome: number, amount: string) =>
  act(user, "userOutcome", { splitOutcome: { outcome, amount } })

/** Makes a user with sufficient stake the deployer of the venue `abc`. */
export const activate = Effect.fnUntraced(function*(user: (typeof users)[number]) {
  const { venue } = yield* SandboxState
  yield* venue.setAccount(user, {
    delegations: new Map([[keys.validator.address, { wei: 500_000n * 10n ** 8n, lockedUntil: 0 }]])
  })
  assert.isUndefined(yield* act(user, "activateOutcomeDeployer", { activate: { venueName: "abc" } }))
})

export const deploy = (user: (typeof users)[number], operation: object) =>
  act(user, "outcomeDeploy", { venue: "abc", operation })

export const between = (from: string, to: string) => ({
  id: "priceRange-between",
  keywordToValue: [["from", from], ["to", to]]
})
export const above = (from: string) => ({ id: "priceRange-above", keywordToValue: [["from", from]] })

export const questionTerms = {
  id: "priceRange",
  keywordToValue: [
    ["perp", "BTC"],
    ["priceDescription", "the mark price"],
    ["seconds", "60"],
    ["time", "20261101-0000"]
  ],
  deployerFeeScale: "0"
}

export const registerQuestion = (named: ReadonlyArray<object>, changed: object = {}) => ({
  registerQuestionFromTemplate: {
    questionTemplateInstance: { ...questionTerms, ...changed },
    namedOutcomeTemplateInstances: named
  }
})

export const associate = (namedOutcomeTemplateInstance: object, question = 1) => ({
  registerAndAssociateNamedOutcomeFromTemplate: { question, namedOutcomeTemplateInstance }
})

/** The settlement of an outcome of a question, with the texts that it has in `outcomeMeta`. */
export const settlement = (outcome: number, settleFraction: string) =>
  Effect.map(venueNow, ({ outcomes: { active } }) => {
    const spec = active.get(outcome)?.spec
    return {
      outcome,
      settleFraction,
      details: "",
      nameAndDescription: [spec?.name ?? "", spec?.description ?? ""],
      sideNames: ["Yes", "No"]
    }
  })

export const settle = (outcome: number, fraction: string) =>
  Effect.flatMap(settlement(outcome, fraction), (settleOutcome) => deploy(eve, { settleOutcome }))

export const settleQuestion = (
  question: number,
  fractions: ReadonlyArray<readonly [outcome: number, fraction: string]>,
  user = eve
) =>
  Effect.gen(function*() {
    const { state: { deployedQuestions } } = yield* venueNow
    const spec = deployedQuestions.get(question)?.spec
    const outcomeSettlements = yield* Effect.forEach(fractions, ([outcome, fraction]) => settlement(outcome, fraction))
    return yield* deploy(user, {
      settleQuestion2: {
        question,
        outcomeSettlements,
        nameAndDescription: [spec?.name ?? "", spec?.description ?? ""]
      }
    })
  })

/** Users with 1000 dollars, and a question of `eve` with a fallback, outcome 1, and two price ranges, outcomes 2 and 3. */
export const asked = Effect.gen(function*() {
  yield* quiet()
  yield* activate(eve)
  assert.isUndefined(yield* deploy(eve, registerQuestion([between("60000", "70000"), above("70000")])))
})

/** What all tokens of outcomes and the deposits are worth together, in wei, which no operation changes. */
export const worth = ({ outcomes: { active }, state: { deposited } }: Venue): bigint => {
  const supply = (index: number) => deposited.get(index) ?? 0n
  let total = supply(usdc)
  const questions = new Set<number>()
  for (const { question, sides: [yes, no], spec } of active.values()) {
    if (question === undefined) {
      assert.strictEqual(supply(yes.base.index), supply(no.base.index), spec.name)
      total += supply(yes.base.index)
      continue
    }
    if (questions.has(question.question)) continue
    questions.add(question.question)
    const members = [...active.values()].filter((each) => each.question?.question === question.question)
    // one outcome pays its Yes, and the others their No
    const payments = members.map((winner) =>
      sum(members.map((each) => supply(each.sides[each === winner ? 0 : 1].base.index)))
    )
    assert.strictEqual(new Set(payments).size, 1, "a question pays the same whichever outcome occurs")
    total += payments[0] ?? 0n
  }
  return total
}
