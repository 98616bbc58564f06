import { assert, describe, it } from "@effect/vitest"
import { nextLookup, nextState, states, statesBefore } from "@trigate/trading/unstable/actionLog/LoggedAction"
import type { Attempted } from "@trigate/trading/unstable/actionLog/LoggedAction"

/** The state after each event, in a first attempt and in a repeated one; an event that is not listed is refused. */
const table: {
  readonly [State in string]: { readonly [A in Attempted]?: readonly [first: string, repeated: string] }
} = {
  undefined: { sent: ["sent", "sent"] },
  sent: {
    accepted: ["accepted", "accepted"],
    rejected: ["rejected", "rejected"],
    refused: ["rejected", "unknown"],
    released: ["gone", "unknown"],
    unknown: ["unknown", "unknown"],
    forgotten: ["forgotten", "forgotten"]
  },
  unknown: {
    sent: ["sent", "sent"],
    orderStatus: ["accepted", "accepted"],
    expiry: ["rejected", "rejected"],
    forgotten: ["forgotten", "forgotten"]
  },
  accepted: {},
  rejected: {},
  forgotten: {}
}

const events: ReadonlyArray<Attempted> = [
  "sent",
  "accepted",
  "rejected",
  "refused",
  "released",
  "unknown",
  "orderStatus",
  "expiry",
  "forgotten"
]

describe("an action of the log", () => {
  for (const state of [undefined, ...states]) {
    it(`in the state ${state ?? "of one that was never sent"}`, () => {
      const found = events.map((event) => [event, nextState(state, false, event), nextState(state, true, event)])
      const expected = table[String(state)]
      assert.deepStrictEqual(
        found,
        events.map((event) => [event, expected?.[event]?.[0], expected?.[event]?.[1]])
      )
    })
  }

  it("is changed by an event only from the states of the table", () => {
    assert.deepStrictEqual(
      [statesBefore.sent, statesBefore.released, statesBefore.expiry, statesBefore.forgotten],
      [["unknown"], ["sent"], ["unknown"], ["sent", "unknown"]]
    )
  })

  it("is looked up after half of its age, and soon after it has expired", () => {
    const opened = 1_000_000
    assert.strictEqual(nextLookup(opened, opened), opened + 1000)
    assert.strictEqual(nextLookup(opened, opened + 40_000), opened + 60_000)
    assert.strictEqual(nextLookup(opened, opened + 3_600_000), opened + 3_900_000)
    // it expires after 50 seconds; two seconds later by the venue's clock it can no longer arrive
    assert.strictEqual(nextLookup(opened, opened + 40_000, opened + 50_000), opened + 54_000)
    assert.strictEqual(nextLookup(opened, opened + 54_000, opened + 50_000), opened + 81_000)
  })
})
