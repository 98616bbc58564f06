import { assert, describe, it } from "@effect/vitest"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import { post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import { isInstalled, redisServer } from "@trigate/testing/RedisServer"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import { liveGateway } from "../liveGateway.ts"
import { lateProxy } from "./lateProxy.ts"

/** Nonces, and the longest delay of an answer in milliseconds: longer than the log waits. */
const nonces = Number(process.env["TRIGATE_TEST_NONCES"] ?? 40)
const longest = Number(process.env["TRIGATE_TEST_DELAY"] ?? 1500)

/** A body of the trader's; two of them differ by what they choose. */
const body = (nonce: number, usingBigBlocks: boolean) =>
  Effect.map(
    Effect.orDie(SandboxSigner.signAction(keys.trader, { nonce, action: { type: "evmUserModify", usingBigBlocks } })),
    (signed) => JSON.stringify(signed)
  )

describe.runIf(isInstalled)("two replicas on a Redis that answers late", () => {
  it.live(
    "send no nonce twice, whichever of them gets it in whichever form, and say of the others that they were not sent",
    () =>
      Effect.gen(function*() {
        const redis = yield* redisServer
        const url = `redis://127.0.0.1:${yield* lateProxy(redis.url, longest)}`
        const sent: Array<unknown> = []
        const replica = liveGateway({
          api: (request) => {
            // the gateway asks for the roles of signers as well
            if (request.path === "/exchange") sent.push(JsonParts.value(request.body, "nonce"))
            return { body: `{"status":"ok","response":{"type":"default"}}` }
          }
        }, { TRIGATE_REDIS_URL: url, TRIGATE_TRADING_API_WEIGHT: "1000000" })
        const [one, two] = [yield* replica, yield* replica]
        const now = yield* Clock.currentTimeMillis
        const ways = Array.from({ length: nonces }, (_, index) => now - index).flatMap((nonce) =>
          [one, two].flatMap(({ url }) => [true, false].map((choice) => ({ url, nonce, choice })))
        )
        const answers = yield* Effect.forEach(
          ways,
          ({ choice, nonce, url }) => Effect.flatMap(body(nonce, choice), (text) => post(`${url}/exchange`, text)),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(new Set(sent).size, sent.length)
        assert.strictEqual(answers.filter(({ status }) => status === 200).length, sent.length)
        const refusals = answers.filter(({ status }) => status !== 200)
        for (const { status, text } of refusals) {
          assert.strictEqual(status, text.includes("was not sent") ? 503 : 409, text)
        }
        assert.isAbove(refusals.filter(({ status }) => status === 503).length, 0)
      }).pipe(Effect.provide(Logger.layer([]))),
    120_000
  )
})
