/**
 * Random kills with a printed seed: of connections to the venue and of callers. The union of what a caller
 * received over all its streams is the venue's ledger, once and in order.
 */
import { assert, describe, layer as tests } from "@effect/vitest"
import { keys as sandboxKeys } from "@trigate/sandbox/SandboxExamples"
import { post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import { sample } from "@trigate/testing/Sample"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { ending, Follower } from "./follower.ts"
import { alice, bob, keys, lab, layer, meanwhile } from "./lab.ts"
import { signedOrder } from "./signedOrder.ts"
import { randomBy } from "./venue/clock.ts"

const users = [alice, bob]
const coins = ["BTC", "ETH"]

const play = Effect.fnUntraced(function*(seed: number, steps: number) {
  const random = randomBy(seed)
  const below = (count: number): number => Math.floor(random() * count)
  const { ledger, run, state, url } = yield* lab({}, {
    do: "switches",
    set: {
      // so short that it seldom reaches back to what was missed
      snapshotItems: 3,
      snapshotOrder: random() < 0.5 ? "ascending" : "descending"
    }
  }, { do: "step", coins, users, count: 10 })
  const script: Array<string> = []
  const followers = users.map((user) => new Follower(user))
  const happen = Effect.suspend(() => {
    const count = 1 + below(8)
    script.push(`events ${count}`)
    return run({ do: "step", coins, users, count })
  })
  const lose = Effect.suspend(() => {
    const count = below(12)
    script.push(`lose the venue's connections, then ${count} events`)
    return run({ do: "faults", set: { refuse: 503 } }, { do: "drop" }, { do: "step", coins, users, count }, {
      do: "faults",
      set: {}
    })
  })
  const killCaller = Effect.gen(function*() {
    const follower = followers[below(followers.length)] ?? assert.fail("no follower")
    script.push(`kill the caller of ${follower.user}`)
    yield* follower.leave()
    yield* run({ do: "step", coins, users, count: below(6) })
    yield* follower.connect(url)
  })
  for (const follower of followers) {
    yield* follower.connect(url)
    yield* meanwhile(follower.begun())
  }
  const begun = (yield* ledger).length
  for (let step = 0; step < steps; step++) {
    const dice = random()
    yield* dice < 0.6 ? happen : dice < 0.8 ? lose : killCaller
  }
  for (const user of users) yield* meanwhile(run({ until: "subscribed", key: keys.orderUpdates(user), count: 1 }))
  yield* run(...ending(users))
  const happened = yield* ledger
  const what = `seed ${seed}\n${script.join("\n")}`
  for (const follower of followers) yield* meanwhile(follower.assertWhole(happened, begun, what))
  assert.deepStrictEqual((yield* state).violations, [], what)
  return followers.map(({ restarts }) => restarts)
})

const given = process.env["TRIGATE_TEST_SEED"]
const firstSeed = given === undefined
  ? 1
  : Array.from(given).reduce((sum, letter) => sum * 31 + letter.charCodeAt(0), 7)

describe("the events of accounts", () => {
  tests(layer)((it) => {
    for (const seed of sample("kills beside a watched account", [0, 1, 2, 3].map((index) => firstSeed + index), 1)) {
      it.effect(`are the venue's ledger, whatever is killed (seed ${seed})`, () =>
        Effect.gen(function*() {
          // everything can be refilled here: nobody may be told that something is missing
          assert.deepStrictEqual(yield* play(seed, 25), [0, 0])
        }))
    }

    it.effect("have an action of unknown outcome looked up before its next turn, once", () =>
      Effect.gen(function*() {
        const user = sandboxKeys.trader.address
        const environment = { TRIGATE_WATCH_ACCOUNTS: user }
        const { pass, run, state, url } = yield* lab(environment, { do: "trader", user })
        yield* meanwhile(run({ until: "subscribed", key: keys.orderUpdates(user), count: 1 }))
        yield* run({
          do: "rest",
          set: { exchange: { mode: "hang-up" }, orderStatus: { mode: "status", status: 422 } }
        })
        const signed = yield* signedOrder(yield* Clock.currentTimeMillis, "0.2", `0x${"2".repeat(32)}`)
        const { text } = yield* post(`${url}/exchange`, JSON.stringify(signed))
        assert.include(text, "OutcomeUnknown")
        const lookups = Effect.map(
          state,
          ({ queries }) => queries.filter(({ query }) => JsonParts.at(query, "type") === "orderStatus").length
        )
        const until = (count: number) => meanwhile(run({ until: "queries", type: "orderStatus", count }))
        yield* pass(60)
        const before = yield* lookups
        yield* until(before + 1)
        // at this age of the action, its next turn is half a minute later
        const last = yield* Clock.currentTimeMillis
        yield* run({ do: "rest", set: {} }, { do: "cancel", user })
        yield* until(before + 2)
        assert.isBelow((yield* Clock.currentTimeMillis) - last, 25_000)
        // it is settled
        yield* pass(60)
        const { actions } = yield* state
        assert.deepStrictEqual([yield* lookups, actions.length], [before + 2, 1])
      }))
  })
})
