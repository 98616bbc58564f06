import { assert, describe, it } from "@effect/vitest"
import * as Caller from "@trigate/domain/Caller"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import { UpstreamRateLimited, wrapReason } from "@trigate/domain/errors/GatewayError"
import * as UpstreamResponse from "@trigate/domain/operations/Operation"
import * as Subscriptions from "@trigate/domain/unstable/streams/Subscriptions"
import * as StreamRefills from "@trigate/trading/streams/Streams"
import type { Queries } from "@trigate/trading/streams/Streams"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import { TestClock } from "effect/testing"

const user = `0x${"aa".repeat(20)}`

const fills = Result.getOrThrow(Subscriptions.read({ type: "userFills", user }))

/** Queries that the rate limit has no room for until a time in milliseconds. */
const limitedUntil = (time: number) => {
  const asked: Array<number> = []
  const queries: Queries = {
    allMids: () => Effect.never,
    meta: () => Effect.never,
    outcomeMeta: () => Effect.never,
    perpDexs: () => Effect.never,
    spotMeta: () => Effect.never,
    relay: Effect.fnUntraced(function*() {
      const now = yield* Clock.currentTimeMillis
      asked.push(now)
      if (now >= time) {
        return UpstreamResponse.make({
          upstream: "trading-api",
          status: 200,
          contentType: "application/json",
          body: Utf8.encode(`[{"tid":1,"time":5}]`)
        })
      }
      return yield* wrapReason(new UpstreamRateLimited({ upstream: "trading-api", detail: "no room" }))
    })
  }
  return { asked, queries }
}

const loaded = ({ queries }: ReturnType<typeof limitedUntil>) =>
  Effect.forkChild(
    Effect.result(
      StreamRefills.makeRefills(queries)(fills)?.load({ since: 0, last: undefined, lost: { from: 0, to: 0 } }) ??
        Effect.die("no refill")
    )
  )

describe("a refill", () => {
  it.effect("waits for a rate limit that has no room for two minutes", () =>
    Effect.gen(function*() {
      const limited = limitedUntil(Duration.toMillis("2 minutes"))
      const loading = yield* loaded(limited)
      yield* TestClock.adjust("119 seconds")
      assert.strictEqual(limited.asked.length, 60)
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(
        yield* Fiber.join(loading),
        Result.succeed({ texts: [`{"channel":"userFills","data":{"fills":[{"tid":1,"time":5}]}}`], hasGap: false })
      )
    }))

  it.effect("is sent before the queries of callers, up to a weight of 600 a minute, and further ones as those of one caller", () =>
    Effect.gen(function*() {
      const senders: Array<Caller.Caller> = []
      const queries: Queries = {
        ...limitedUntil(0).queries,
        relay: (call) =>
          Effect.andThen(
            Effect.map(Caller.CurrentCaller, (caller) => senders.push(caller)),
            limitedUntil(0).queries.relay(call)
          )
      }
      // each may weigh 120
      const load = StreamRefills.makeRefills(queries)(fills)?.load({
        since: 0,
        last: undefined,
        lost: { from: 0, to: 0 }
      }) ?? assert.fail("no refill")
      const send = Effect.repeat(load, { times: 6 })
      yield* send
      const ids = senders.map((caller) => caller === Caller.local ? "the gateway" : caller.id)
      assert.deepStrictEqual(ids, [...Array.from({ length: 5 }, () => "the gateway"), "streams", "streams"])
      yield* TestClock.adjust("1 minute")
      yield* load
      assert.strictEqual(senders.at(-1), Caller.local)
    }))

  it.effect("does not use up that weight while the rate limit refuses it", () =>
    Effect.gen(function*() {
      const limited = limitedUntil(Duration.toMillis("30 seconds"))
      const senders: Array<Caller.Caller> = []
      const relay: Queries["relay"] = (call) =>
        Effect.andThen(
          Effect.map(Caller.CurrentCaller, (caller) => senders.push(caller)),
          limited.queries.relay(call)
        )
      const loading = yield* loaded({ ...limited, queries: { ...limited.queries, relay } })
      yield* TestClock.adjust("30 seconds")
      assert.isTrue(Result.isSuccess(yield* Fiber.join(loading)))
      assert.lengthOf(senders, 16)
      for (const sender of senders) assert.strictEqual(sender, Caller.local)
    }))
})
