/** The typed client's streams against a gateway with its sandbox. */
import { assert, describe, it } from "@effect/vitest"
import * as Streams from "@trigate/client/Streams"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { signAction } from "@trigate/sandbox/SandboxSigner"
import { gateway, post } from "@trigate/testing/Gateway"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
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

  it.live("continue after the position that a program has stored, without a lost fill", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const user = keys.trader.address
      /** Buys at the market, and returns the order's ID. */
      const buy = Effect.gen(function*() {
        const order = { a: 1, b: true, p: "3000", s: "0.01", r: false, t: { limit: { tif: "Ioc" } } }
        const action = { type: "order", orders: [order], grouping: "na" }
        const body = yield* signAction(keys.trader, { nonce: yield* Clock.currentTimeMillis, action })
        const { text } = yield* post(`${url}/exchange`, JSON.stringify(body))
        return Number(/"oid":(?<oid>\d+)/u.exec(text)?.groups?.["oid"])
      })
      const ordersUntil = (last: number, options: Streams.ResumeOptions) =>
        Effect.provide(
          Streams.Streams.use(({ userFills }) =>
            userFills({ user }, options).pipe(
              Stream.filter(({ isSnapshot }) => isSnapshot !== true),
              Stream.flatMap(({ fills }) => Stream.fromIterable(fills)),
              Stream.map(({ oid }) => oid),
              Stream.takeUntil((oid) => oid === last),
              Stream.runCollect
            )
          ),
          Streams.layerWebSocket({ baseUrl: url })
        )
      const first = yield* buy
      const stored: Array<string> = []
      const isFollowing = yield* Deferred.make<void>()
      const onPosition = (position: string): void => {
        stored.push(position)
        Deferred.doneUnsafe(isFollowing, Effect.void)
      }
      const reading = yield* Effect.forkChild(ordersUntil(first + 2, { onPosition }))
      yield* Deferred.await(isFollowing)
      const bought = [yield* buy, yield* buy]
      assert.deepStrictEqual(bought, [first + 1, first + 2])
      assert.deepStrictEqual([...new Set(yield* Fiber.join(reading))], bought)
      const missed = yield* buy
      // the program ended before the position of its last fill was reported
      const seen = yield* ordersUntil(missed, { resumeFrom: stored.at(-1) })
      assert.deepStrictEqual([...new Set(seen)], [first + 2, missed])
      const refused = yield* Effect.flip(ordersUntil(missed, { resumeFrom: "yesterday" }))
      assert.strictEqual(refused._tag, "SubscriptionRefused")
    }))
})
