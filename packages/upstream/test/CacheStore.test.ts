import { assert, describe, it } from "@effect/vitest"
import { makeMonotonicTime } from "@trigate/domain/encoding/Encoding"
import * as CacheStore from "@trigate/upstream/cache/ResponseCache"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"

const cached = (
  body: string | Uint8Array,
  readAt = 0,
  policy = { fresh: 10, staleIfError: 5 }
): CacheStore.CachedResponse => ({
  content: { head: "", body },
  readAt: makeMonotonicTime(readAt),
  policy
})

const gauge = Effect.map(
  Metric.snapshot,
  (all) =>
    all.flatMap((each) => each.id === "trigate_response_cache_bytes" && each.type === "Gauge" ? [each.state.value] : [])
)

const withCache = (maxBytes: number, test: (cache: CacheStore.CacheStore) => Effect.Effect<void>) =>
  Effect.flatMap(Effect.context(), (context) => test(new CacheStore.CacheStore(maxBytes, context))).pipe(
    Effect.provideService(Metric.MetricRegistry, new Map())
  )

describe("CacheStore", () => {
  it("counts two bytes a character, one a byte, and what an entry takes besides", () => {
    assert.strictEqual(CacheStore.responseBytes("key", cached("text")), 256 + 6 + 8)
    assert.strictEqual(CacheStore.responseBytes("key", cached(new Uint8Array(5))), 256 + 6 + 5)
    assert.strictEqual(
      CacheStore.responseBytes("k", { ...cached(""), content: { head: "application/json", body: "" } }),
      256 + 2 + 32
    )
  })

  it.effect("gives back the very content, and what is put again replaces it", () =>
    withCache(1_000_000, (cache) =>
      Effect.gen(function*() {
        const first = cached("first")
        cache.put("a", first)
        assert.strictEqual(cache.get("a", makeMonotonicTime(0)), first)
        assert.strictEqual(cache.bytes, 256 + 2 + 10)
        const second = cached("2")
        cache.put("a", second)
        assert.strictEqual(cache.get("a", makeMonotonicTime(0)), second)
        assert.strictEqual(cache.bytes, 256 + 2 + 2)
        assert.deepStrictEqual(yield* gauge, [256 + 2 + 2])
        assert.isUndefined(cache.get("b", makeMonotonicTime(0)))
      })))

  it.effect("drops what is beyond fresh and stale when it is asked for", () =>
    withCache(1_000_000, (cache) =>
      Effect.gen(function*() {
        cache.put("a", cached("x", 100))
        assert.isDefined(cache.get("a", makeMonotonicTime(114)))
        assert.isUndefined(cache.get("a", makeMonotonicTime(115)))
        assert.strictEqual(cache.bytes, 0)
        assert.deepStrictEqual(yield* gauge, [0])
      })))

  it.effect("holds exactly as many bytes as it may, and lets go of the least recently used", () =>
    withCache(8 * 300, (cache) =>
      Effect.sync(() => {
        const entry = cached(new Uint8Array(300 - 256 - 2))
        for (const key of ["a", "b", "c", "d", "e", "f", "g", "h"]) cache.put(key, entry)
        assert.strictEqual(cache.bytes, 8 * 300)
        assert.isDefined(cache.get("a", makeMonotonicTime(0)))
        cache.put("i", entry)
        assert.strictEqual(cache.bytes, 8 * 300)
        assert.isUndefined(cache.get("b", makeMonotonicTime(0)))
        for (const key of ["a", "c", "d", "e", "f", "g", "h", "i"]) {
          assert.isDefined(cache.get(key, makeMonotonicTime(0)))
        }
      })))

  it.effect("does not keep what takes more than an eighth, nor what it replaces", () =>
    withCache(8 * 300, (cache) =>
      Effect.sync(() => {
        cache.put("a", cached(new Uint8Array(300 - 256 - 2)))
        assert.strictEqual(cache.bytes, 300)
        cache.put("a", cached(new Uint8Array(300 - 256 - 1)))
        assert.isUndefined(cache.get("a", makeMonotonicTime(0)))
        assert.strictEqual(cache.bytes, 0)
      })))
})
