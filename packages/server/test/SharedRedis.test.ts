import { assert, describe, it } from "@effect/vitest"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import { advancingClock } from "@trigate/testing/AdvancingClock"
import { gateway, get, post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import { isInstalled, redisServer } from "@trigate/testing/RedisServer"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as Scope from "effect/Scope"
import { validator } from "./bodies.ts"
import { liveGateway } from "./liveGateway.ts"

const ok = `{"status":"ok","response":{"type":"default"}}`

/** A body of the trader's; two of them differ by what they choose. */
const body = (nonce: number, usingBigBlocks = true) =>
  Effect.map(
    Effect.orDie(
      SandboxSigner.signAction(keys.trader, { nonce, action: { type: "evmUserModify", usingBigBlocks } })
    ),
    (signed) => JSON.stringify(signed)
  )

const logIn = (text: string) => ({
  backing: JsonParts.value(text, "actionLog", "backing"),
  state: JsonParts.value(text, "actionLog", "state")
})

const readiness = (url: string) =>
  Effect.map(
    get(`${url}/health/ready`),
    ({ status, text }) => [status, JsonParts.value(text, "redis"), logIn(text)]
  )

const up = { backing: "Redis", state: "up" }
const away = { backing: "Redis", state: "away" }

/** Redis is asked again a second after it was found away. */
const untilUp = (url: string): Effect.Effect<void> =>
  Effect.flatMap(
    get(`${url}/health/ready`),
    ({ text }) => JsonParts.value(text, "actionLog", "state") === "up" ? Effect.void : untilUp(url)
  )

const quiet = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.provide(effect, Logger.layer([])).pipe(Effect.provideService(References.MinimumLogLevel, "None"))

describe("answers to signed actions", () => {
  it.live("name the signer, and refuse an expected signer that is none", () =>
    Effect.gen(function*() {
      const live = yield* liveGateway({ api: () => ({ body: ok }) })
      const now = yield* Clock.currentTimeMillis
      const first = yield* post(`${live.url}/exchange`, yield* body(now), {
        "x-trigate-expected-signer": keys.trader.address
      })
      assert.deepStrictEqual([first.text, first.headers.get("x-trigate-signer")], [ok, keys.trader.address])
      const refused = yield* post(`${live.url}/exchange`, yield* body(now + 1), { "x-trigate-expected-signer": "0x1" })
      assert.strictEqual(refused.status, 400)
      assert.deepStrictEqual(JsonParts.value(refused.text, "errors", 0, "path"), ["x-trigate-expected-signer"])
      const other = yield* post(`${live.url}/exchange`, yield* body(now + 1), {
        "x-trigate-expected-signer": validator
      })
      assert.strictEqual(other.status, 422)
      assert.strictEqual(live.api.seen.length, 1)
      assert.deepStrictEqual(yield* readiness(live.url), [200, undefined, { backing: "memory", state: "up" }])
    }))
})

describe.runIf(isInstalled)("replicas that share Redis", () => {
  it.effect("relay a nonce once between them; those of another network are apart", () =>
    Effect.gen(function*() {
      const redis = { TRIGATE_REDIS_URL: (yield* redisServer).url }
      const one = yield* liveGateway({ api: () => ({ body: ok }) }, redis)
      const two = yield* liveGateway({ api: () => ({ body: ok }) }, redis)
      const sandbox = yield* gateway(redis)
      const now = yield* Clock.currentTimeMillis
      assert.strictEqual((yield* post(`${one.url}/exchange`, yield* body(now))).text, ok)
      for (const { url } of [one, two]) {
        const answer = yield* post(`${url}/exchange`, yield* body(now, false))
        assert.strictEqual(answer.status, 409)
        assert.include(answer.json, { _tag: "NonceAlreadyUsed", signer: keys.trader.address, nonce: now })
      }
      assert.strictEqual((yield* post(`${sandbox.url}/exchange`, yield* body(now))).text, ok)
      assert.deepStrictEqual([one.api.seen.length, two.api.seen.length], [1, 0])
      assert.deepStrictEqual(yield* readiness(two.url), [200, "up", up])
      const { text } = yield* get(`${sandbox.url}/health/ready`)
      assert.deepStrictEqual(logIn(text), { backing: "memory", state: "up" })
    }).pipe(quiet))

  it.effect("that may, go on with their own log and say so while it is away, whether it dies or hangs, and share again after", () =>
    Effect.gen(function*() {
      const redis = yield* redisServer
      const settings = { TRIGATE_REDIS_URL: redis.url, TRIGATE_ACTION_LOG_ALONE: "on" }
      const one = yield* liveGateway({ api: () => ({ body: ok }) }, settings)
      const two = yield* liveGateway({ api: () => ({ body: ok }) }, settings)
      const now = yield* Clock.currentTimeMillis
      const relay = ({ url }: { readonly url: string }, nonce: number) =>
        Effect.flatMap(body(nonce), (text) => post(`${url}/exchange`, text)).pipe(
          Effect.map(({ status }) => status)
        )
      assert.deepStrictEqual([yield* relay(one, now), yield* relay(one, now), yield* relay(two, now)], [200, 409, 409])
      yield* redis.freeze
      // each knows what it sent itself; what the other one sent, nobody can say
      assert.deepStrictEqual([yield* advancingClock(relay(one, now)), yield* advancingClock(relay(two, now))], [
        409,
        200
      ])
      assert.deepStrictEqual(yield* advancingClock(readiness(one.url)), [200, "away", away])
      yield* redis.thaw
      yield* advancingClock(untilUp(one.url))
      yield* advancingClock(untilUp(two.url))
      assert.deepStrictEqual([yield* relay(one, now + 1), yield* relay(two, now + 1)], [200, 409])
      yield* redis.kill
      assert.deepStrictEqual([yield* relay(one, now + 2), yield* readiness(one.url)], [200, [200, "away", away]])
      const { text } = yield* get(`${one.url}/metrics`)
      assert.include(text, "trigate_shared_state_degraded{use=\"action-log\"} 1")
      assert.match(text, /^trigate_action_log_unshared_total [1-9]/mu)
      yield* redis.restart
      yield* advancingClock(untilUp(one.url))
      yield* advancingClock(untilUp(two.url))
      assert.deepStrictEqual([yield* relay(one, now + 3), yield* relay(two, now + 3)], [200, 409])
      // it forgot everything, the processes did not
      assert.deepStrictEqual([yield* relay(one, now + 1), yield* relay(two, now + 1)], [409, 200])
    }).pipe(quiet))

  it.effect("start without it, and find it when it comes", () =>
    Effect.gen(function*() {
      const redis = yield* redisServer
      yield* redis.kill
      const live = yield* advancingClock(liveGateway({ api: () => ({ body: ok }) }, { TRIGATE_REDIS_URL: redis.url }))
      const now = yield* Clock.currentTimeMillis
      assert.deepStrictEqual(yield* readiness(live.url), [200, "away", away])
      const refused = yield* post(`${live.url}/exchange`, yield* body(now))
      assert.strictEqual(refused.status, 503)
      assert.include(refused.json, { _tag: "UpstreamUnavailable", upstream: "action-log", attempts: 0 })
      assert.strictEqual(live.api.seen.length, 0)
      yield* redis.restart
      yield* advancingClock(untilUp(live.url))
      assert.strictEqual((yield* post(`${live.url}/exchange`, yield* body(now))).status, 200)
      assert.strictEqual((yield* post(`${live.url}/exchange`, yield* body(now + 1))).status, 200)
      assert.strictEqual((yield* post(`${live.url}/exchange`, yield* body(now + 1))).status, 409)
    }).pipe(quiet))

  it.effect("end although it hangs", () =>
    Effect.gen(function*() {
      const redis = yield* redisServer
      const scope = yield* Effect.flatMap(Effect.scope, Scope.fork)
      const live = yield* liveGateway({ api: () => ({ body: ok }) }, { TRIGATE_REDIS_URL: redis.url }).pipe(
        Scope.provide(scope)
      )
      assert.deepStrictEqual(yield* readiness(live.url), [200, "up", up])
      yield* redis.freeze
      // a second for the lease of the event log; the end itself ends everything else that waits for Redis
      yield* advancingClock(Effect.andThen(readiness(live.url), Scope.close(scope, Exit.void)))
    }).pipe(quiet))
})

describe("a Redis URL", () => {
  for (const url of ["http://127.0.0.1:6379", "redis://", "redis://host/db", "redis://host name"]) {
    it.live(`is refused at the start without being quoted: ${url}`, () =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(gateway({ TRIGATE_REDIS_URL: url }))
        assert.strictEqual(
          error.message,
          "TRIGATE_REDIS_URL is not valid: expected a redis:// or rediss:// URL, with a database number or no path"
        )
      }))
  }
})
