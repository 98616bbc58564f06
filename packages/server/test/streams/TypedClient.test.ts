/** The typed client's streams against a gateway with its sandbox. */
import { assert, describe, it } from "@effect/vitest"
import * as Streams from "@trigate/client/Streams"
import { gateway } from "@trigate/testing/Gateway"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { keyFile } from "../keyFile.ts"

describe("streams of the typed client", () => {
  it.live("emit decoded items, with the key in the query or in the path", () =>
    Effect.gen(function*() {
      const { file, keys } = yield* keyFile({ name: "one" })
      const { url } = yield* gateway({ TRIGATE_CALLERS: file })
      const key = Redacted.make(keys[0] ?? "")
      for (const options of [{ baseUrl: url, key }, { baseUrl: `${url}/`, endpointKey: key }]) {
        const seen = yield* Effect.provide(
          Effect.gen(function*() {
            const { l2Book, trades } = yield* Streams.Streams
            const book = yield* Stream.runHead(l2Book({ coin: "BTC" }))
            return [Option.getOrThrow(book).levels[0].length, (yield* Stream.runHead(trades({ coin: "BTC" })))._tag]
          }),
          Streams.layerWebSocket(options)
        )
        assert.deepStrictEqual(seen, [20, "Some"])
      }
    }))

  it.live("fail with SubscriptionRefused for an unknown coin, and with StreamLost where no upgrade is possible", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const failed = (baseUrl: string) =>
        Effect.provide(
          Effect.flatMap(Streams.Streams, ({ bbo }) => Effect.flip(Stream.runDrain(bbo({ coin: "btc" })))),
          Streams.layerWebSocket({ baseUrl })
        )
      const refused = yield* failed(url)
      assert.deepStrictEqual([refused._tag, refused.message], [
        "SubscriptionRefused",
        "Invalid subscription {\"type\":\"bbo\",\"coin\":\"btc\"}"
      ])
      assert.strictEqual((yield* failed(`${url}/nothing/here`))._tag, "StreamLost")
    }))
})
