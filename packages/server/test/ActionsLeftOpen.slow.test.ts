/** A gateway that is killed while its actions are open, beside another one on the same Postgres: what that one's alert sees. */
import { assert, describe, it } from "@effect/vitest"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import { get, post } from "@trigate/testing/Gateway"
import { gatewayProcess } from "@trigate/testing/GatewayProcess"
import * as JsonParts from "@trigate/testing/JsonParts"
import { isInstalled, postgresServer } from "@trigate/testing/PostgresServer"
import { rawUpstream } from "@trigate/testing/RawUpstream"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

const count = 12

/** Signed bodies under nonces from now on. */
const bodies = Effect.flatMap(
  Clock.currentTimeMillis,
  (now) =>
    Effect.forEach(Array.from({ length: count }, (_, index) => now + index), (nonce) =>
      Effect.map(
        SandboxSigner.signAction(keys.trader, { nonce, action: { type: "evmUserModify", usingBigBlocks: true } }),
        (signed) => JSON.stringify(signed)
      ))
)

/** The gauges that the alerts about open actions read. */
const gauges = (url: string) =>
  Effect.map(get(`${url}/metrics`), ({ text }) => {
    const valueOf = (series: string) =>
      Number(text.split("\n").find((line) => line.startsWith(`${series} `))?.slice(series.length))
    return {
      unknown: valueOf(`trigate_action_log_entries{state="unknown"}`),
      oldest: valueOf("trigate_action_log_oldest_unknown_timestamp_seconds")
    }
  })

describe.runIf(isInstalled)("a gateway that is killed beside another on one Postgres", () => {
  it.live("leaves open actions that the other one's gauges count once their leases are over, with the oldest's time", () =>
    Effect.gen(function*() {
      const { url: database } = yield* postgresServer
      const venue = yield* rawUpstream(() => "silence")
      const environment = {
        TRIGATE_TRADING_API_URL: venue.url,
        TRIGATE_DATABASE_URL: database,
        TRIGATE_ONCE_DEADLINE: "5 seconds",
        TRIGATE_ACCESS_LOG: "off"
      }
      const [killed, other] = yield* Effect.all([gatewayProcess(environment), gatewayProcess(environment)], {
        concurrency: "unbounded"
      })
      const calls = yield* Effect.forEach(
        yield* Effect.orDie(bodies),
        (body) => Effect.forkChild(Effect.exit(post(`${killed.url}/exchange`, body)))
      )
      yield* Effect.raceFirst(
        venue.received(count),
        // the venue says nothing, so a call that ends was not sent
        Effect.flatMap(
          Effect.raceAllFirst(calls.map((call) => Fiber.join(call))),
          (ended) => Effect.die(new Error(`A call ended before all were sent: ${JSON.stringify(ended)}`))
        )
      )
      assert.deepStrictEqual(yield* gauges(other.url), { unknown: 0, oldest: 0 })
      killed.signal("SIGKILL")
      assert.isNull(yield* Effect.promise(() => killed.ended))
      yield* Effect.forEach(calls, (call) => Fiber.await(call))

      const { json } = yield* get(`${other.url}/admin/actions`)
      assert(Array.isArray(json))
      assert.lengthOf(json, count)
      const first = Math.min(...json.map((entry) => Number(JsonParts.at(entry, "openedAt"))))
      const seen = yield* Effect.raceFirst(
        Effect.repeat(Effect.delay(gauges(other.url), "200 millis"), { until: ({ unknown }) => unknown === count }),
        Effect.flatMap(
          Effect.promise(() => other.ended),
          (code) => Effect.die(new Error(`The other one ended (${code}):\n${other.printed()}`))
        )
      )
      assert.deepStrictEqual(seen, { unknown: count, oldest: first / 1000 })
      assert.lengthOf(venue.bodies, count)
    }))
})
