/** Which coins a subscription may name: those that the venue lists now, at a bounded number of queries. */
import { assert, describe, it } from "@effect/vitest"
import { CurrentCaller, local } from "@trigate/domain/Caller"
import { InvalidRequest, QuotaExceeded, UpstreamUnavailable, wrapReason } from "@trigate/domain/errors/GatewayError"
import type { CallFailure } from "@trigate/domain/errors/GatewayError"
import * as Subscriptions from "@trigate/domain/unstable/streams/Subscriptions"
import * as CoinCatalog from "@trigate/trading/streams/Streams"
import { Freshness } from "@trigate/upstream/cache/ResponseCache"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as TestClock from "effect/testing/TestClock"

const dex = (name: string) => ({ name, fullName: name, deployer: `0x${"1".repeat(40)}`, oracleUpdater: null } as const)
const perpetual = (name: string) => ({ name, szDecimals: 1, maxLeverage: 5 })
const pair = (name: string) => ({ name, tokens: [1, 0], index: 1, isCanonical: false } as const)
const outcome = (number: number) => ({ outcome: number, name: "", description: "", sideSpecs: [] })

/** A venue whose lists a test changes, and the queries that it was asked: name, caller and freshness. */
const venue = () => {
  const listed = { coins: ["BTC", "ETH"], pairs: ["PURR/USDC"], mids: ["BTC", "#50"], outcomes: [5], dexes: ["xyz"] }
  const asked: Array<string> = []
  /** Runs before each response. */
  const hooks = { before: (_query: string, _caller: string): Effect.Effect<void, CallFailure> => Effect.void }
  const response = <A>(query: string, read: () => A): Effect.Effect<A, CallFailure> =>
    Effect.gen(function*() {
      const { id } = yield* CurrentCaller
      asked.push(`${query} ${id} ${yield* Freshness}`)
      yield* hooks.before(query, id)
      return read()
    })
  const queries: CoinCatalog.Queries = {
    allMids: () => response("allMids", () => Object.fromEntries(listed.mids.map((coin) => [coin, "1"]))),
    meta: (request) =>
      response(`meta ${request?.dex}`, () => ({
        universe: listed.coins.filter((coin) => (coin.includes(":") ? coin.split(":")[0] : "") === request?.dex)
          .map(perpetual)
      })),
    outcomeMeta: () => response("outcomeMeta", () => ({ outcomes: listed.outcomes.map(outcome) })),
    perpDexs: () => response("perpDexs", () => [null, ...listed.dexes.map(dex)]),
    relay: () => Effect.never,
    spotMeta: () => response("spotMeta", () => ({ universe: listed.pairs.map(pair), tokens: [] }))
  }
  return { listed, asked, hooks, queries }
}

const trades = (coin: string) => Result.getOrThrow(Subscriptions.read({ type: "trades", coin }))
const by = (id: string) => Effect.provideService(CurrentCaller, { ...local, id })

describe("the catalog of coins", () => {
  it.effect("accepts each name as soon as the venue lists it, at the same moment", () =>
    Effect.gen(function*() {
      const { listed, queries } = venue()
      const catalog = CoinCatalog.makeCatalog(queries)
      const find = (coin: string) => catalog.find(trades(coin))
      for (const coin of ["BTC", "#50", "#51", "PURR/USDC"]) assert.strictEqual(yield* find(coin), "known", coin)
      listed.coins.push("NEWC", "xyz:A")
      listed.outcomes.push(7)
      listed.pairs.push("@9")
      for (const coin of ["NEWC", "#70", "#71", "@9", "xyz:A"]) assert.strictEqual(yield* find(coin), "known", coin)
      listed.dexes.push("abc")
      listed.coins.push("abc:B")
      assert.strictEqual(yield* find("abc:B"), "known")
      assert.isTrue(catalog.knows(trades("#71")))
      assert.isFalse(catalog.knows(trades("#72")))
    }))

  it.effect("reads a list once more before it refuses a name, on behalf of the caller", () =>
    Effect.gen(function*() {
      const { asked, queries } = venue()
      const { find } = CoinCatalog.makeCatalog(queries)
      assert.strictEqual(yield* by("one")(find(trades("BTC"))), "known")
      assert.strictEqual(yield* by("two")(find(trades("BTD"))), "unknown")
      assert.strictEqual(yield* by("two")(find(trades("#72"))), "unknown")
      assert.strictEqual(yield* by("three")(find(trades("#72"))), "unknown")
      assert.deepStrictEqual(asked, [
        "meta  one none",
        "meta  two none",
        // the first read is as new as any
        "allMids two none",
        "outcomeMeta two none",
        "allMids three none",
        "outcomeMeta three none"
      ])
    }))

  it.effect("reads for unknown names at most five times for a caller, then once in ten seconds", () =>
    Effect.gen(function*() {
      const { asked, listed, queries } = venue()
      const { find } = CoinCatalog.makeCatalog(queries)
      yield* find(trades("BTC"))
      const flood = Effect.forEach(Array.from({ length: 8 }), (_, index) => by("flood")(find(trades(`NO${index}`))))
      assert.deepStrictEqual(yield* flood, [...Array<string>(5).fill("unknown"), ...Array<string>(3).fill("limited")])
      assert.lengthOf(asked, 6)
      // known names cost nothing
      assert.strictEqual(yield* by("flood")(find(trades("BTC"))), "known")
      listed.coins.push("NEWC")
      assert.strictEqual(yield* by("other")(find(trades("NEWC"))), "known")
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual((yield* flood).slice(0, 2), ["unknown", "limited"])
      assert.deepStrictEqual(asked.slice(-2), ["meta  other none", "meta  flood none"])
    }))

  it.effect("reads at most once in five seconds for all callers, each of whom is told after a newer read", () =>
    Effect.gen(function*() {
      const { asked, listed, queries } = venue()
      const { find } = CoinCatalog.makeCatalog(queries)
      yield* find(trades("BTC"))
      for (let each = 0; each < 6; each++) yield* by(`flood${each}`)(find(trades("NO")))
      assert.lengthOf(asked, 7)
      const waiting = yield* Effect.forEach(
        ["a", "b", "c"],
        (caller) => Effect.forkChild(by(caller)(find(trades("NEWC"))), { startImmediately: true })
      )
      yield* TestClock.adjust(4999)
      assert.lengthOf(asked, 7)
      listed.coins.push("NEWC")
      yield* TestClock.adjust(1)
      for (const fiber of waiting) assert.strictEqual(yield* Fiber.join(fiber), "known")
      assert.lengthOf(asked, 8)
    }))

  it.effect("shares a read between callers, except one that began before a name was asked for", () =>
    Effect.gen(function*() {
      const { asked, hooks, listed, queries } = venue()
      const { find } = CoinCatalog.makeCatalog(queries)
      yield* find(trades("BTC"))
      const gate = yield* Deferred.make<void>()
      hooks.before = () => Deferred.await(gate)
      const first = yield* Effect.forkChild(by("a")(find(trades("NO"))), { startImmediately: true })
      const later = yield* Effect.forEach(
        ["b", "c"],
        (caller) => Effect.forkChild(by(caller)(find(trades("NEWC"))), { startImmediately: true })
      )
      assert.lengthOf(asked, 2)
      yield* Deferred.succeed(gate, undefined)
      assert.strictEqual(yield* Fiber.join(first), "unknown")
      listed.coins.push("NEWC")
      for (const fiber of later) yield* Fiber.join(fiber)
      assert.lengthOf(asked, 3)
    }))

  it.effect("asks for others although a caller has used up its quota, and a second after the venue failed", () =>
    Effect.gen(function*() {
      const { hooks, listed, queries } = venue()
      let isDown = false
      const down = wrapReason(new UpstreamUnavailable({ upstream: "trading-api", attempts: 1, detail: "down" }))
      const { find } = CoinCatalog.makeCatalog({
        ...queries,
        meta: (request) => isDown ? Effect.fail(down) : queries.meta(request)
      })
      yield* find(trades("BTC"))
      listed.coins.push("NEWC")
      hooks.before = (_, caller) =>
        caller === "poor" ? Effect.fail(wrapReason(new QuotaExceeded({ retryAfter: 1, detail: "" }))) : Effect.void
      assert.strictEqual(yield* by("poor")(find(trades("NO"))), "unavailable")
      assert.strictEqual(yield* by("one")(find(trades("NEWC"))), "known")
      listed.coins.push("LATER")
      isDown = true
      assert.strictEqual(yield* by("one")(find(trades("LATER"))), "unavailable")
      isDown = false
      assert.strictEqual(yield* by("one")(find(trades("LATER"))), "unavailable")
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* by("one")(find(trades("LATER"))), "known")
    }))

  it.effect("takes the prices of outcomes where the venue has no outcomeMeta, or does not answer it", () =>
    Effect.gen(function*() {
      const { queries } = venue()
      const refused = wrapReason(new InvalidRequest({ errors: [], detail: "Failed to deserialize" }))
      const old = CoinCatalog.makeCatalog({ ...queries, outcomeMeta: () => Effect.fail(refused) })
      assert.strictEqual(yield* old.find(trades("#50")), "known")
      assert.strictEqual(yield* old.find(trades("#51")), "unknown")
      const down = wrapReason(new UpstreamUnavailable({ upstream: "trading-api", attempts: 1, detail: "down" }))
      const halved = CoinCatalog.makeCatalog({ ...queries, outcomeMeta: () => Effect.fail(down) })
      assert.strictEqual(yield* halved.find(trades("#50")), "known")
      assert.strictEqual(yield* halved.find(trades("#51")), "unavailable")
    }))
})
