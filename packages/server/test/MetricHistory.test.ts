import { assert, describe, it } from "@effect/vitest"
import { maxSamples, sampleSeconds } from "@trigate/api/unstable/AdminApi"
import * as History from "@trigate/server/unstable/process/Metrics"
import { MetricHistory, metrics } from "@trigate/server/unstable/process/Metrics"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as TestClock from "effect/testing/TestClock"

const requests = (route: string, outcome: string) => metrics.requests.series({ route, outcome, status: "200" })

describe("the samples of metrics", () => {
  it.effect("count the requests of callers, and those that failed, every ten seconds", () =>
    Effect.gen(function*() {
      const { samples } = yield* MetricHistory
      yield* TestClock.adjust(0)
      const [before] = yield* samples
      yield* Metric.update(requests("info.query", "ok"), 3)
      yield* Metric.update(requests("exchange.submit", "OutcomeUnknown"), 2)
      for (const route of ["admin.history", "health.ready", "other"]) yield* Metric.update(requests(route, "ok"), 50)
      yield* TestClock.adjust(`${sampleSeconds} seconds`)
      const [, after] = yield* samples
      assert.deepStrictEqual(
        [after?.time, (after?.requests ?? 0) - (before?.requests ?? 0), (after?.failed ?? 0) - (before?.failed ?? 0)],
        [sampleSeconds * 1000, 5, 2]
      )
    }).pipe(Effect.provide(History.layerHistory)))

  it.effect("have every metric of the last minute, so that a page knows its rates when it is opened", () =>
    Effect.gen(function*() {
      const { minute } = yield* MetricHistory
      yield* TestClock.adjust(0)
      const seconds = metrics.requestSeconds.series({ route: "info.query" })
      yield* Metric.update(requests("info.query", "limited"), 4)
      yield* Metric.update(seconds, 0.003)
      yield* TestClock.adjust("85 seconds")
      const all = yield* minute
      assert.deepStrictEqual(all.map(({ age }) => age), [65, 55, 45, 35, 25, 15, 5])
      const valueOf = (name: string, labels: object) =>
        all.map(({ series }) =>
          series.find((each) =>
            each.name === name &&
            JSON.stringify(each.labels) === JSON.stringify(labels)
          )?.value
        )
      assert.deepStrictEqual(
        valueOf("trigate_requests_total", { route: "info.query", outcome: "limited", status: "200" }),
        [4, 4, 4, 4, 4, 4, 4]
      )
      const [counts] = valueOf("trigate_request_seconds_count", { route: "info.query" })
      const [bucket] = valueOf("trigate_request_seconds_bucket", { route: "info.query", le: "+Inf" })
      assert.isAtLeast(counts ?? 0, 1)
      assert.strictEqual(bucket, counts)
      assert.isFalse(all.some(({ series }) => series.some(({ value }) => value === 0)))
    }).pipe(Effect.provide(History.layerHistory)))

  it.effect("have the latency of the last minute, which the requests before it do not change", () =>
    Effect.gen(function*() {
      const { samples } = yield* MetricHistory
      const seconds = metrics.requestSeconds.series({ route: "info.query" })
      yield* TestClock.adjust(0)
      yield* Effect.forEach(Array.from({ length: 98 }), () => Metric.update(seconds, 0.004))
      yield* Metric.update(seconds, 0.04)
      yield* Metric.update(seconds, 60)
      yield* Metric.update(metrics.requestSeconds.series({ route: "health.ready" }), 5)
      yield* TestClock.adjust(`${sampleSeconds} seconds`)
      const [before, after] = yield* samples
      assert.notProperty(before, "p50")
      assert.deepStrictEqual([after?.p50, after?.p95, after?.p99], [0.005, 0.005, 0.05])
      yield* TestClock.adjust("70 seconds")
      assert.notProperty((yield* samples).at(-1), "p99")
    }).pipe(Effect.provide(History.layerHistory)))

  it.effect("are those of an hour at most", () =>
    Effect.gen(function*() {
      const { samples } = yield* MetricHistory
      yield* TestClock.adjust(`${(maxSamples + 5) * sampleSeconds} seconds`)
      const all = yield* samples
      assert.deepStrictEqual([all.length, all.at(-1)?.time], [maxSamples, (maxSamples + 5) * sampleSeconds * 1000])
    }).pipe(Effect.provide(History.layerHistory)))
})
