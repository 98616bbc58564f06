import { assert, describe, it } from "@effect/vitest"
import { gateway } from "@trigate/testing/Gateway"
import type { Reply, Seen } from "@trigate/testing/RecordingUpstream"
import { recordingUpstream } from "@trigate/testing/RecordingUpstream"
import { isInstalled, redisServer } from "@trigate/testing/RedisServer"
import { isExhaustive, sample } from "@trigate/testing/Sample"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { bigBlocks, bodyOf } from "../bodies.ts"
import { exchange, headOf } from "../rawHttp.ts"

const hostile = "127.0.0.1"
const honest = "127.0.0.2"

/** Posts a JSON text from an address. */
const post = (from: string, url: string, path: string, body: string) =>
  exchange(
    url,
    [headOf("POST", path, [["content-type", "application/json"], ["content-length", String(body.length)]]), body],
    false,
    from
  )

const user = (n: number) => `0x${n.toString(16).padStart(40, "0")}`

/** Weighs 60; no two are coalesced. */
const expensive = (n: number) => `{"type":"userRole","user":"${user(n)}"}`

/** Weighs 20. */
const cheap = (n: number) => `{"type":"userFees","user":"${user(n)}"}`

const hex = (n: number) => (n + 1).toString(16)

/** A body whose signature recovers to somebody, or to nobody. */
const randomlySigned = (now: number, n: number) =>
  `{"action":${bigBlocks},"nonce":${now + n},"signature":{"r":"0x${hex(n)}","s":"0x${hex(7 * n)}","v":${27 + n % 2}}}`

const venue = ({ body, path }: Seen): Reply => {
  if (path === "/exchange") return { body: `{"status":"ok","response":{"type":"default"}}` }
  if (body.includes("breaks")) return { status: 500, body: "null" }
  if (body.includes("huge")) return { body: `"${"x".repeat(17 * 1024 * 1024)}"` }
  return { body: "{}" }
}

const tagIn = (body: string): string | undefined => /"_tag":"(?<tag>\w+)"/u.exec(body)?.groups?.["tag"]

/** How many answers there are of each status and tag. */
const tally = (answers: ReadonlyArray<{ readonly status: number; readonly body: string }>) => {
  const counts: Record<string, number> = {}
  for (const { body, status } of answers) {
    const key = [status, tagIn(body)].join(" ").trim()
    counts[key] = (counts[key] ?? 0) + 1
  }
  return counts
}

const times = <A, E>(count: number, each: (n: number) => Effect.Effect<A, E>) =>
  Effect.forEach(Array.from({ length: count }, (_, n) => n), each)

describe("one caller cannot use up the weight of all", () => {
  it.live("by expensive queries: others are still answered, and the caller is told when to come again", () =>
    Effect.gen(function*() {
      const api = yield* recordingUpstream(venue)
      const { url } = yield* gateway({ TRIGATE_TRADING_API_URL: api.url })
      const attack = yield* times(21, (n) => post(hostile, url, "/info", expensive(n)))
      assert.deepStrictEqual(tally(attack), { "200": 14, "429 QuotaExceeded": 7 })
      assert.match(attack.at(-1)?.head ?? "", /^retry-after: 6\d\r?$/imu)
      assert.deepStrictEqual(tally(yield* times(14, (n) => post(honest, url, "/info", cheap(n)))), { "200": 14 })
    }))

  it.live("by random signatures, beside its queries", () =>
    Effect.gen(function*() {
      const api = yield* recordingUpstream(venue)
      const { url } = yield* gateway({ TRIGATE_TRADING_API_URL: api.url })
      const now = yield* Clock.currentTimeMillis
      yield* times(21, (n) => post(hostile, url, "/info", expensive(n)))
      const attack = yield* times(200, (n) => post(hostile, url, "/exchange", randomlySigned(now, n)))
      // 840 of the queries and 60 actions are three quarters of 1200; what recovers to nobody costs nothing
      assert.strictEqual(api.seen.filter(({ path }) => path === "/exchange").length, 60)
      assert.isAbove(tally(attack)["429 QuotaExceeded"] ?? 0, 0)
      const actions = yield* times(60, (n) => post(honest, url, "/exchange", bodyOf(now - 1 - n, bigBlocks)))
      assert.deepStrictEqual(tally(actions), { "200": 60 })
    }))
})

const node = ({ body }: Seen): Reply => ({
  body: body.startsWith("[")
    ? `[${
      Array.from(body.matchAll(/"id":(\d+)/gu), ([, id]) => `{"jsonrpc":"2.0","id":${id},"result":"0x1"}`).join(",")
    }]`
    : `{"jsonrpc":"2.0","id":${/"id":(\d+)/u.exec(body)?.[1]},"result":"0x1"}`
})

const storage = (id: number) =>
  `{"jsonrpc":"2.0","id":${id},"method":"eth_getStorageAt","params":["${user(id)}","0x0","latest"]}`

/** What the hostile caller does at a replica, for as long as it is not interrupted. */
const attacks: ReadonlyArray<
  readonly [what: string, attack: (url: string, now: number, n: number) => Effect.Effect<unknown>]
> = [
  ["expensive queries", (url, _now, n) => post(hostile, url, "/info", expensive(n))],
  ["random signatures", (url, now, n) => post(hostile, url, "/exchange", randomlySigned(now, n))],
  ["queries that the venue answers with 500", (url, _now, n) => post(hostile, url, "/info", `{"type":"breaks${n}"}`)],
  ["queries with oversized answers", (url, _now, n) => post(hostile, url, "/info", `{"type":"huge${n}"}`)],
  ["stalled uploads", (url, _now, n) =>
    exchange(
      url,
      [
        headOf("POST", n % 2 === 0 ? "/info" : "/evm", [
          ["content-type", "application/json"],
          ["content-length", "900000"]
        ]),
        "x".repeat(100_000)
      ],
      false,
      hostile
    )],
  ["batches of 1000", (url, _now, n) =>
    post(
      hostile,
      url,
      "/evm",
      `[${Array.from({ length: 1000 }, (_, index) => storage(1000 * n + index)).join(",")}]`
    )]
]

const rounds = isExhaustive ? 4 : 1

describe.runIf(isInstalled)(
  "beside a hostile caller, at two replicas that share Redis, another one is always answered:",
  () => {
    for (const [what, attack] of sample("attacks", attacks, 2)) {
      it.live(what, () =>
        Effect.gen(function*() {
          const redis = yield* redisServer
          const api = yield* recordingUpstream(venue)
          const evm = yield* recordingUpstream(node)
          const environment = {
            TRIGATE_TRADING_API_URL: api.url,
            TRIGATE_TRADING_NODE_URL: `${evm.url}/key`,
            TRIGATE_TRADING_NODE_RPS: "40",
            TRIGATE_BATCH_LIMIT: "1000",
            TRIGATE_REDIS_URL: redis.url
          }
          const replicas = [yield* gateway(environment), yield* gateway(environment)]
          const now = yield* Clock.currentTimeMillis
          let count = 0
          const attacking = yield* Effect.forEach(
            replicas.flatMap(({ url }) => Array.from({ length: 4 }, () => url)),
            (url) => Effect.forkChild(Effect.forever(Effect.suspend(() => attack(url, now, count++))))
          )
          const answers: Array<{ readonly status: number; readonly body: string }> = []
          for (let round = 0; round < rounds; round++) {
            for (const [index, { url }] of replicas.entries()) {
              const n = 2 * round + index
              answers.push(
                yield* post(honest, url, "/info", cheap(n)),
                yield* post(honest, url, "/exchange", bodyOf(now - 1 - n, bigBlocks)),
                yield* post(honest, url, "/evm", storage(10_000_000 + n))
              )
            }
          }
          yield* Effect.forEach(attacking, (each) => Effect.forkChild(Fiber.interrupt(each)))
          assert.deepStrictEqual(tally(answers), { "200": 6 * rounds })
          assert.strictEqual(answers.filter(({ body }) => body.includes(`"error"`)).length, 0)
          assert.isAtLeast(count, 8)
        }))
    }
  }
)
