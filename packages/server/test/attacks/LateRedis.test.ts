import { assert, describe, it } from "@effect/vitest"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import { post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import { isInstalled, redisServer } from "@trigate/testing/RedisServer"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Net from "node:net"
import { liveGateway } from "../liveGateway.ts"

/** Nonces, and the longest delay of an answer in milliseconds: longer than the log waits. */
const nonces = Number(process.env["TRIGATE_TEST_NONCES"] ?? 40)
const longest = Number(process.env["TRIGATE_TEST_DELAY"] ?? 1500)

/** A proxy that lets each answer of a server come late by a random time, in order. */
const lateProxy = (url: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<{ readonly server: Net.Server; readonly sockets: Set<Net.Socket>; readonly port: number }>(
        (resume) => {
          const sockets = new Set<Net.Socket>()
          const server = Net.createServer((client) => {
            const behind = Net.connect(Number(new URL(url).port), "127.0.0.1")
            let due = 0
            let seed = sockets.size + 1
            const random = () => (seed = seed * 48_271 % 2_147_483_647) / 2_147_483_647
            client.on("data", (chunk) => behind.write(chunk))
            behind.on("data", (chunk) => {
              due = Math.max(due, performance.now() + random() * longest)
              setTimeout(() => client.writable && client.write(chunk), due - performance.now())
            })
            for (const socket of [client, behind]) {
              sockets.add(socket)
              socket.on("error", () => {})
              socket.on("close", () => {
                client.destroy()
                behind.destroy()
              })
            }
          }).listen(0, "127.0.0.1", () => {
            const address = server.address()
            const port = address !== null && typeof address === "object" ? address.port : 0
            resume(Effect.succeed({ server, sockets, port }))
          })
        }
      ),
      ({ server, sockets }) =>
        Effect.sync(() => {
          for (const socket of sockets) socket.destroy()
          server.close()
        })
    ),
    ({ port }) => `redis://127.0.0.1:${port}`
  )

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
        const url = yield* lateProxy(redis.url)
        const sent: Array<unknown> = []
        const replica = liveGateway({
          api: (request) => {
            sent.push(JsonParts.value(request.body, "nonce"))
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
