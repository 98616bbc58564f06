import { assert, describe, it } from "@effect/vitest"
import { isInstalled, redisServer } from "@trigate/testing/RedisServer"
import { Effect } from "effect"
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"

const main = fileURLToPath(new URL("../src/main.ts", import.meta.url))

const run = (environment: { readonly [name: string]: string }) =>
  Effect.promise(() =>
    promisify(execFile)(process.execPath, [main], { env: { ...process.env, ...environment } })
      .then(({ stdout }) => ({ code: 0, printed: stdout }), ({ code, stderr, stdout }: {
        readonly code: number
        readonly stdout: string
        readonly stderr: string
      }) => ({ code, printed: stdout + stderr }))
  )

describe.runIf(isInstalled)("four processes over one Redis", () => {
  it.live("take 10 000 nonces, none of them twice", () =>
    Effect.gen(function*() {
      const { url } = yield* redisServer
      const { code, printed } = yield* run({ REDIS_URL: url })
      assert.strictEqual(code, 0, printed)
      const lines = printed.trim().split("\n")
      assert.deepStrictEqual(
        lines.slice(0, 5),
        [
          ...["one", "two", "three", "four"].map((name) => `process ${name}: 2500 nonces, each above the one before`),
          "together: 10000 nonces, 10000 different, 0 given out twice"
        ]
      )
      assert.match(lines[5] ?? "", /^interleaved: \d+ times/u)
      assert.match(lines[6] ?? "", /^the last is \d+ ms ahead of the clock/u)
    }))

  it.live("end with the reason when Redis is away", () =>
    Effect.gen(function*() {
      const redis = yield* redisServer
      yield* redis.kill
      const { code, printed } = yield* run({ REDIS_URL: redis.url })
      assert.strictEqual(code, 1)
      assert.include(printed, "RedisError")
    }))
})
