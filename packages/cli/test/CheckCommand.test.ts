/** What `trigate check --live` finds at a venue, and how much of the rate limit it uses. */
import { assert, describe, it } from "@effect/vitest"
import { compareVenue } from "@trigate/cli/commands/CheckCommand"
import { catalogDate } from "@trigate/domain/actions/Action"
import * as InfoProtocol from "@trigate/domain/info/InfoOperations"
import * as UpstreamResponse from "@trigate/domain/operations/Operation"
import { driftQueries, findDrift } from "@trigate/domain/unstable/info/InfoDrift"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import { advancingClock } from "@trigate/testing/AdvancingClock"
import { refusingUrl } from "@trigate/testing/RecordingUpstream"
import { Info } from "@trigate/trading/Info"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { infoAnswers } from "../../domain/test/answers.ts"
import { run } from "./run.ts"

const queryOf = (type: string) => driftQueries.find((query) => query.type === type) ?? assert.fail(type)

const found = (type: string, status: number, body: string) =>
  findDrift(queryOf(type), UpstreamResponse.json("trading-api", status, body))

const perpetual = `"szDecimals":5,"name":"BTC"`

describe("the drift of a venue", () => {
  it("is a refused type, a missing member, an unknown member of the metadata, or another form", () => {
    const none = { missing: [], unknown: [], detail: "" }
    const refusal = "Failed to deserialize the JSON body into the target type"
    for (
      const [type, status, body, finding] of [
        ["meta", 200, `{"universe":[{${perpetual},"maxLeverage":40}]}`, { state: "served", ...none }],
        ["meta", 422, refusal, { state: "refused", ...none, detail: `HTTP 422: ${refusal}` }],
        ["isVip", 422, refusal, { state: "absent", ...none, detail: `HTTP 422: ${refusal}` }],
        ["meta", 429, "null", { state: "failed", ...none, detail: "HTTP 429: null" }],
        ["perpDexLimits", 500, "null", { state: "served", ...none }],
        ["meta", 500, "null", { state: "failed", ...none, detail: "HTTP 500: null" }],
        [
          "meta",
          200,
          `{"universe":[{${perpetual},"maxLeverage":40},{${perpetual},"later":{"deep":1}}],"also":1}`,
          {
            state: "drifted",
            missing: ["universe[].maxLeverage"],
            unknown: ["universe[].later", "also"],
            detail: ""
          }
        ],
        [
          "perpDexs",
          200,
          `[null,{"name":"xyz","deployer":"0x${"1".repeat(40)}","later":1}]`,
          { state: "drifted", missing: ["[].fullName"], unknown: ["[].later"], detail: "" }
        ],
        // other responses may have members that are not declared
        ["userRole", 200, `{"role":"user","later":1}`, { state: "served", ...none }],
        ["allMids", 200, `{"BTC":"1"}`, { state: "served", ...none }]
      ] as const
    ) {
      assert.deepStrictEqual(found(type, status, body), { type, ...finding }, `${type} ${status} ${body}`)
    }
    assert.include(found("allMids", 200, `{"BTC":1}`).detail, `["BTC"]`)
  })

  it("is nothing in the recorded responses of the venue", () => {
    for (const [type, { texts }] of Object.entries(infoAnswers)) {
      for (const text of texts) assert.strictEqual(found(type, 200, text).state, "served", text)
    }
  })

  it.effect("is in the sandbox no member, only types that it does not serve", () =>
    Effect.gen(function*() {
      // 2026-10-14: after the sandbox lists its markets
      yield* TestClock.setTime(1_792_000_000_000)
      const info = yield* Info
      const findings = yield* Effect.forEach(driftQueries, (query) =>
        Effect.flatMap(InfoProtocol.parseCall(query.body, "gateway", true), info.relay).pipe(
          Effect.map((response) =>
            findDrift(query, response)
          )
        ))
      assert.deepStrictEqual(
        findings.filter(({ state }) => state === "drifted" || state === "failed"),
        []
      )
      const declared = driftQueries.filter(({ response }) => response !== undefined).map(({ type }) => type)
      assert.deepStrictEqual(
        declared.filter((type) => !findings.some((one) => one.type === type && one.state === "served")),
        []
      )
    }).pipe(Effect.provide(Sandbox.layer())))
})

describe("trigate check", () => {
  it.effect("asks each type once, within the weight of a minute", () =>
    Effect.gen(function*() {
      const asked: Array<{ readonly type: string; readonly weight: number; readonly at: number }> = []
      const start = yield* Clock.currentTimeMillis
      const comparing = yield* Effect.forkChild(compareVenue(
        ({ type, weight }) =>
          Effect.map(Clock.currentTimeMillis, (now) => {
            asked.push({ type, weight, at: now - start })
            return { type, state: "served", missing: [], unknown: [], detail: "" } as const
          }),
        600,
        () => Effect.void
      ))
      yield* TestClock.adjust("1 hour")
      assert.lengthOf(yield* Fiber.join(comparing), driftQueries.length)
      assert.strictEqual(new Set(asked.map(({ type }) => type)).size, driftQueries.length)
      let before = 0
      for (const { at, type, weight } of asked) {
        assert.isAtMost(before, 600 * at / 60_000 + 1, type)
        before += weight
      }
    }))

  it.effect("ends with 5 after three queries without a connection, and with 2 without a venue", () =>
    Effect.gen(function*() {
      const venue = yield* refusingUrl
      const ended = yield* advancingClock(run(["check", "--live", "--weight", "1200", "--venue", `${venue}/KEY`]))
      const all = driftQueries.length
      assert.strictEqual(ended.code, 5)
      assert.strictEqual(ended.stdout, `No differences in 0 of ${all} query types (catalog of ${catalogDate}).\n`)
      assert.notInclude(ended.stderr, "KEY")
      assert.notInclude(ended.stderr, `4/${all} `)
      assert.match(ended.stderr, new RegExp(`^1/${all} spotMeta: failed \\(no connection\\)$`, "mu"))
      assert.match(ended.stderr, new RegExp(`^trigate: ${all} of ${all} query types could not be compared`, "mu"))
      const usage = yield* run(["check", "--live"])
      assert.strictEqual(usage.code, 2)
      assert.include(usage.stderr, "Name the venue with --venue URL or TRIGATE_TRADING_API_URL")
      assert.strictEqual((yield* run(["check"])).code, 2)
    }))
})
