/** `POST /nonces`: programs that share a key get different nonces, also from two replicas. */
import { assert, describe, it } from "@effect/vitest"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { gateway, post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as RedisServer from "@trigate/testing/RedisServer"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { keyFile } from "./keyFile.ts"

const signer = keys.trader.address

const issue = (url: string, body: object, headers: Record<string, string> = {}) =>
  post(`${url}/nonces`, JSON.stringify(body), headers)

const numbersIn = ({ json }: { readonly json: unknown }): ReadonlyArray<number> => {
  const nonces = JsonParts.at(json, "nonces")
  return Array.isArray(nonces) ? nonces.map(Number) : []
}

describe("the nonces of a signer", () => {
  it.live("are ascending and near the clock, and no two requests get the same", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const answers = yield* Effect.forEach([1, 5, 100], (count) => issue(url, { signer, count }), { concurrency: 3 })
      const lists = answers.map(numbersIn)
      assert.deepStrictEqual(lists.map((list) => list.length), [1, 5, 100])
      assert.strictEqual(new Set(lists.flat()).size, 106)
      for (const list of lists) assert.deepStrictEqual(list.toSorted((one, other) => one - other), list)
      const now = yield* Clock.currentTimeMillis
      for (const nonce of lists.flat()) assert.isBelow(Math.abs(nonce - now), 5000)
      assert.lengthOf(numbersIn(yield* issue(url, { signer })), 1)
    }))

  it.live("are refused without a signer, in too large a number, and to callers who may not sign for it", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      for (const body of [{}, { signer: "0x12" }, { signer, count: 0 }, { signer, count: 1001 }, { signer, many: 2 }]) {
        assert.strictEqual((yield* issue(url, body)).status, 400)
      }
      assert.strictEqual((yield* issue(url, { signer }, { origin: "https://evil.example" })).status, 403)
      const { file, keys: [reader = "", other = "", own = ""] } = yield* keyFile(
        { name: "reader", scope: { classes: ["read"] } },
        { name: "other", scope: { signers: [keys.validator.address] } },
        { name: "own", scope: { signers: [signer] } }
      )
      const closed = yield* gateway({ TRIGATE_CALLERS: file })
      const status = (key: string) =>
        Effect.map(issue(closed.url, { signer }, { authorization: `Bearer ${key}` }), (answer) => answer.status)
      assert.deepStrictEqual([yield* status(reader), yield* status(other), yield* status(own)], [403, 403, 200])
    }))

  it.live.skipIf(!RedisServer.isInstalled)(
    "of two replicas that share a Redis are from one sequence",
    () =>
      Effect.gen(function*() {
        const { url: redis } = yield* RedisServer.redisServer
        const replica = gateway({ TRIGATE_REDIS_URL: redis, TRIGATE_TRADING_API_URL: "http://127.0.0.1:1" })
        const [one, other] = [yield* replica, yield* replica]
        const lists = yield* Effect.forEach(
          [one, other, one, other],
          ({ url }) => Effect.map(issue(url, { signer, count: 50 }), numbersIn),
          { concurrency: 4 }
        )
        assert.strictEqual(new Set(lists.flat()).size, 200)
      })
  )
})
