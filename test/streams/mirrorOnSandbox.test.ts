/**
 * A gateway that watches an account of another gateway's sandbox, whose orders match and whose prices move. At each quiescent point the
 * answers are the venue's at the time that they name, whatever the account has done, here or at the venue itself.
 */
import { assert, describe, it } from "@effect/vitest"
import { signL1Action } from "@nktkas/hyperliquid/signing"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { advancingClock } from "@trigate/testing/AdvancingClock"
import { gateway, get, post } from "@trigate/testing/Gateway"
import type { Environment } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import { sample } from "@trigate/testing/Sample"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { privateKeyToAccount } from "viem/accounts"
import { randomBy } from "./venue/clock.ts"

const user = keys.trader.address
const wallet = privateKeyToAccount(keys.trader.privateKey)

/** The queries whose answers stay as they are while nothing happens to the account. */
const steady = ["spotClearinghouseState", "openOrders", "frontendOpenOrders", "userFills"]

const list = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []

const play = Effect.fnUntraced(function*(seed: number, rounds: number) {
  const random = randomBy(seed)
  yield* TestClock.setTime(1_790_232_236_000)
  const scope = yield* Scope.make()
  // its end waits for open sockets
  yield* Effect.addFinalizer(() => advancingClock(Scope.close(scope, Exit.void)))
  const start = (environment: Environment) => Scope.provide(gateway(environment), scope)
  const venue = yield* start({ TRIGATE_SANDBOX_SEED: `mirror ${seed}` })
  const mirror = yield* start({
    TRIGATE_TRADING_API_URL: venue.url,
    TRIGATE_WATCH_ACCOUNTS: user,
    // nothing may wait for the clock
    TRIGATE_TRADING_API_WEIGHT: "1000000"
  })
  const info = (url: string, type: string) => post(`${url}/info`, JSON.stringify({ type, user }))
  const weight = Effect.map(
    get(`${mirror.adminUrl}/metrics`),
    ({ text }) =>
      Number(/^trigate_upstream_weight_total\{upstream="trading-api"\} (?<sum>\d+)/mu.exec(text)?.groups?.["sum"] ?? 0)
  )
  /** The venue's `clearinghouseState` by the time that it names. */
  const margins = new Map<unknown, unknown>()
  const pass = Effect.fnUntraced(function*(seconds: number) {
    for (let left = seconds * 2; left > 0; left--) {
      yield* TestClock.adjust(500)
      // what the venue has sent is read meanwhile
      const { json } = yield* info(venue.url, "clearinghouseState")
      margins.set(JsonParts.at(json, "time"), json)
      yield* get(`${mirror.url}/health/live`)
    }
  })
  const act = Effect.fnUntraced(function*(url: string) {
    const mids = (yield* post(`${venue.url}/info`, `{"type":"allMids"}`)).json
    const open = list((yield* info(venue.url, "openOrders")).json)
    const mid = Number(JsonParts.at(mids, "ETH"))
    const dice = random()
    const nonce = yield* Clock.currentTimeMillis
    const order = (factor: number, tif: "Gtc" | "Ioc", b: boolean) => ({
      type: "order",
      orders: [{
        a: 1,
        b,
        p: String(Number((mid * factor).toPrecision(4))),
        s: "0.02",
        r: false,
        t: { limit: { tif } }
      }],
      grouping: "na"
    })
    const oid = JsonParts.at(open[Math.floor(random() * open.length)], "oid")
    const action = dice < 0.35
      ? order(0.8 + random() * 0.15, "Gtc", true)
      : dice < 0.7
      ? order(random() < 0.5 ? 1.03 : 0.97, "Ioc", dice < 0.5)
      : dice < 0.9 && oid !== undefined
      ? { type: "cancel", cancels: [{ a: 1, o: oid }] }
      : { type: "updateLeverage", asset: 1, isCross: true, leverage: 2 + Math.floor(random() * 10) }
    const signature = yield* Effect.promise(() => signL1Action({ wallet, action, nonce }))
    const { json, text } = yield* post(`${url}/exchange`, JSON.stringify({ action, nonce, signature }))
    assert.strictEqual(JsonParts.at(json, "status"), "ok", text)
    return `${action.type} at the ${url === venue.url ? "venue" : "gateway"}`
  })
  yield* pass(12)
  yield* info(mirror.url, "userFills")
  let answered = 0
  for (let round = 0; round < rounds; round++) {
    const script = [`seed ${seed}, round ${round}`]
    for (let left = 1 + Math.floor(random() * 3); left > 0; left--) {
      script.push(yield* act(random() < 0.5 ? mirror.url : venue.url))
      yield* pass(0.5)
      // nothing older than the action is served
      for (const type of steady) {
        assert.deepStrictEqual(
          (yield* info(mirror.url, type)).json,
          (yield* info(venue.url, type)).json,
          script.join("\n")
        )
      }
    }
    yield* pass(7 + Math.floor(random() * 4))
    const before = yield* weight
    for (const type of steady) {
      const [{ headers, json }, direct] = [yield* info(mirror.url, type), yield* info(venue.url, type)]
      assert.deepStrictEqual(json, direct.json, `${type}: ${script.join("\n")}`)
      answered += headers.get("age") === null ? 0 : 1
    }
    const { headers, json } = yield* info(mirror.url, "clearinghouseState")
    const time = JsonParts.at(json, "time")
    assert.deepStrictEqual(json, margins.get(time), `${String(time)}: ${script.join("\n")}`)
    const age = (yield* Clock.currentTimeMillis) - Number(time)
    assert.strictEqual(headers.get("age"), String(Math.floor(age / 1000)), script.join("\n"))
    assert.strictEqual(yield* weight, before, `weight: ${script.join("\n")}`)
  }
  assert.strictEqual(answered, rounds * steady.length)
})

describe("an account of the sandbox that a gateway watches", () => {
  for (const seed of sample("games of a watched account", [1, 2], 1)) {
    it.effect(`is answered about as the venue would have (seed ${seed})`, () => play(seed, 5))
  }
})
