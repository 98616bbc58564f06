/** The recorder over the fake venue: bars come from its streams, and queries fetch only what they did not send. */
import { assert, describe, layer as tests } from "@effect/vitest"
import { get } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import { lab, layer, meanwhile } from "./lab.ts"

const key = `{"type":"candle","coin":"BTC","interval":"1m"}`

describe("the recorder", () => {
  tests(layer)((it) => {
    it.effect("records each bar that a stream sends, over a lost connection too, and a caller shares its subscription", () =>
      Effect.gen(function*() {
        const { ledger, open, pass, run, state, url } = yield* lab({ TRIGATE_ARCHIVE: "BTC:1m" }, {
          do: "trade",
          coin: "BTC"
        })
        const queries = Effect.map(
          state,
          ({ queries }) =>
            queries.filter(({ query }) => JSON.stringify(query).includes(`"coin":"BTC","interval":"1m"`)).length
        )
        yield* meanwhile(run({ until: "subscribed", key, count: 1 }))
        yield* run({ do: "trade", coin: "BTC" })
        yield* pass(60, 5)
        const first = yield* queries
        const minute = Effect.andThen(run({ do: "trade", coin: "BTC" }), pass(60, 5))
        for (const _ of [1, 2, 3]) yield* minute
        assert.strictEqual(yield* queries, first)
        const socket = yield* open()
        socket.subscribe({ type: "candle", coin: "BTC", interval: "1m" })
        yield* Effect.promise(() => socket.next("candle"))
        yield* run({ do: "faults", set: { refuse: 503 } }, { do: "drop" }, { do: "trade", coin: "BTC" })
        yield* run({ do: "faults", set: {} })
        yield* meanwhile(run({ until: "subscribed", key, count: 1 }))
        for (const _ of [1, 2, 3]) yield* minute
        // one query refills the stream after the loss
        assert.strictEqual(yield* queries, first + 1)
        const bars = (yield* ledger).filter((entry) => entry.key === key).map(({ data }) => data)
        const closed = new Map(bars.map((bar) => [JsonParts.at(bar, "t"), bar]))
        const { text } = yield* get(`${url}/candles/BTC/1m`)
        const recorded = text.trim().split("\n").map((line): unknown => JSON.parse(line))
        assert.deepStrictEqual(recorded, [...closed.values()].slice(0, -1), text)
        assert.deepStrictEqual((yield* state).violations, [])
      }))
  })
})
