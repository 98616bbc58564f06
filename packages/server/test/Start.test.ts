/** What clients see while a gateway starts, and how it ends before it has started. */
import { assert, describe, it } from "@effect/vitest"
import { gateway } from "@trigate/testing/Gateway"
import { freePort, gatewayProcess, portPoll, startedProcess } from "@trigate/testing/GatewayProcess"
import * as Postgres from "@trigate/testing/PostgresServer"
import * as Redis from "@trigate/testing/RedisServer"
import { sample } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Net from "node:net"
import { folder } from "./keyFile.ts"
import { exchange, headOf } from "./rawHttp.ts"

/** How often each gateway is started and polled: what a poll meets differs from start to start. */
const starts = Number(process.env["TRIGATE_TEST_STARTS"] ?? 1)

const probe = headOf("GET", "/health/live", [])
const call = `{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}`
const post = headOf("POST", "/l2", [["content-type", "application/json"], ["content-length", String(call.length)]]) +
  call

/** Starts a gateway while both of its ports are polled, and ends it; each connection that it accepted got a response. */
const answersAll = Effect.fnUntraced(function*(environment: { readonly [name: string]: string }) {
  const [port, adminPort] = [yield* freePort, yield* freePort]
  const polls = [yield* portPoll(port, [probe, post]), yield* portPoll(adminPort, [probe])]
  const running = yield* gatewayProcess({
    TRIGATE_PORT: String(port),
    TRIGATE_ADMIN_PORT: String(adminPort),
    TRIGATE_ACCESS_LOG: "off",
    ...environment
  })
  const ended = Effect.promise(() => running.ended)
  const [callers, admin] = yield* Effect.raceFirst(
    Effect.forEach(polls, ({ end }) => end, { concurrency: "unbounded" }),
    Effect.flatMap(ended, () => Effect.die(new Error(running.printed())))
  )
  running.signal("SIGTERM")
  assert.strictEqual(yield* ended, 0)
  assert.deepStrictEqual([callers?.unanswered, admin?.unanswered], [0, 0])
  // it was polled before it listened
  assert.isAbove(callers?.refused ?? 0, 0)
  if (starts > 1) console.log(JSON.stringify({ callers, admin }))
}, Effect.scoped)

const live = {
  TRIGATE_LAYER2_URL: "http://127.0.0.1:9/layer2",
  TRIGATE_TRADING_API_URL: "http://127.0.0.1:9/api",
  TRIGATE_ARCHIVE: "BTC:1m",
  TRIGATE_CALLERS: "keys"
}

const started = [
  { name: "of the sandbox", isInstalled: true, settings: Effect.succeed({}) },
  {
    name: "with SQLite and keys",
    isInstalled: true,
    settings: Effect.map(folder, (path) => ({ ...live, TRIGATE_DATABASE_URL: `sqlite:${path}/gateway.sqlite` }))
  },
  {
    name: "with Postgres, Redis and keys",
    isInstalled: Postgres.isInstalled && Redis.isInstalled,
    settings: Effect.zipWith(Postgres.postgresDatabase, Redis.redisServer, (postgres, redis) => ({
      ...live,
      TRIGATE_DATABASE_URL: postgres.url,
      TRIGATE_REDIS_URL: redis.url
    }))
  }
]

describe("a start that is polled every few milliseconds answers each request", () => {
  for (let start = 1; start <= starts; start++) {
    for (const { isInstalled, name, settings } of sample("gateways that start", started, 1)) {
      it.live.runIf(isInstalled)(`${name}, ${start}`, () => Effect.flatMap(settings, answersAll))
    }
  }
})

interface SilentStore {
  readonly port: number
  /** Settles with the first connection. */
  readonly connected: Promise<void>
  /** Settles once every connection is closed. */
  readonly left: () => Promise<unknown>
}

/** A server that accepts connections and never says anything. */
const silentStore = Effect.acquireRelease(
  Effect.callback<SilentStore & { readonly close: () => void }>((resume) => {
    const connected = Promise.withResolvers<void>()
    const closings: Array<Promise<void>> = []
    const server = Net.createServer((socket) => {
      closings.push(new Promise((closed) => socket.on("close", () => closed())))
      socket.on("error", () => {}).resume()
      connected.resolve()
    })
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      const port = address !== null && typeof address === "object" ? address.port : 0
      const left = () => Promise.all(closings)
      resume(Effect.succeed({ port, connected: connected.promise, left, close: () => server.close() }))
    })
  }),
  ({ close }) => Effect.sync(close)
)

const stores: ReadonlyArray<
  readonly [name: string, environment: (port: number) => { readonly [name: string]: string }]
> = [
  ["Postgres", (port) => ({ TRIGATE_DATABASE_URL: `postgres://trigate@127.0.0.1:${port}/trigate` })],
  ["Redis", (port) => ({ TRIGATE_REDIS_URL: `redis://:password@127.0.0.1:${port}` })]
]

describe("a gateway that waits for a store", () => {
  for (const [name, environment] of stores) {
    // no time passes, so nothing ends by a time limit
    it.effect(`does not listen yet, and ends at once: ${name}`, () =>
      Effect.gen(function*() {
        const store = yield* silentStore
        const port = yield* freePort
        const starting = yield* Effect.forkChild(
          Effect.scoped(gateway({
            TRIGATE_PORT: String(port),
            TRIGATE_LAYER2_URL: "http://127.0.0.1:9/layer2",
            ...environment(store.port)
          }))
        )
        yield* Effect.raceFirst(Effect.promise(() => store.connected), Fiber.join(starting))
        const { status } = yield* exchange(`http://127.0.0.1:${port}`, [probe])
        assert.strictEqual(status, 0)
        yield* Fiber.interrupt(starting)
        yield* Effect.promise(store.left)
      }))
  }

  const endsWith = Effect.fnUntraced(function*(name: "SIGTERM" | "SIGINT") {
    const store = yield* silentStore
    const { ended, printed, signal } = yield* startedProcess({
      TRIGATE_LAYER2_URL: "http://127.0.0.1:9/layer2",
      TRIGATE_REDIS_URL: `redis://127.0.0.1:${store.port}`
    })
    yield* Effect.promise(() => Promise.race([store.connected, ended]))
    signal(name)
    const code = yield* Effect.promise(() => ended)
    // after a second of waiting it warns of the store, and this machine may take longer to send the signal
    const lines = printed().split("\n").filter((line) => line !== "" && !line.includes("Redis"))
    assert.deepStrictEqual([code, lines], [0, []])
  })

  for (const name of sample("signals of a gateway that waits", ["SIGTERM", "SIGINT"] as const, 1)) {
    it.live(`ends with ${name}, and prints no error`, () => endsWith(name))
  }
})
