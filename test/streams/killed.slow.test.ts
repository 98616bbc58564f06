/**
 * Gateways that are processes of their own, on one Redis, and are killed as a crash does: another one records on, and every kind of
 * client resumes without a lost or a doubled event.
 */
import { assert, describe, it } from "@effect/vitest"
import * as ClientStreams from "@trigate/client/Streams"
import { freePort, gatewayProcess } from "@trigate/testing/GatewayProcess"
import * as JsonParts from "@trigate/testing/JsonParts"
import { isInstalled, redisServer } from "@trigate/testing/RedisServer"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { build } from "esbuild"
import { spawn } from "node:child_process"
import * as Http from "node:http"
import { canOpen, closeBrowser, opened } from "../console/browser.ts"
import { openEvents } from "./eventSource.ts"
import type { Event } from "./eventSource.ts"
import { fakeVenue } from "./fakeVenue.ts"
import { alice, keys } from "./lab.ts"
import { randomBy } from "./venue/clock.ts"
import type { Command, Condition } from "./venue/control.ts"

const fills = { type: "userFills", user: alice } as const
const orders = { type: "orderUpdates", user: alice } as const

const list = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []

const tidsIn = (data: unknown): ReadonlyArray<unknown> =>
  list(JsonParts.at(data, "fills")).map((row) => JsonParts.at(row, "tid"))

const tids = (events: ReadonlyArray<Event>): ReadonlyArray<unknown> =>
  events.filter(({ channel }) => channel === "userFills").flatMap(({ data }) => tidsIn(data))

const recoveries = (events: ReadonlyArray<Event>): ReadonlyArray<unknown> =>
  events.filter(({ event }) => event === "resume").map(({ text }) => JsonParts.value(text, "recovered"))

/** The ids of the fills that a client has received, in their order. */
class Received {
  readonly tids: Array<unknown> = []
  readonly #waiting = new Set<() => void>()

  add(tids: ReadonlyArray<unknown>): void {
    this.tids.push(...tids)
    for (const wake of this.#waiting) wake()
  }

  until(tid: unknown) {
    return Effect.promise(() =>
      new Promise<void>((resolve) => {
        const check = () => {
          if (this.tids.includes(tid)) resolve()
        }
        this.#waiting.add(check)
        check()
      })
    )
  }
}

/** The origin of an empty page. */
const pageServer = Effect.map(
  Effect.acquireRelease(
    Effect.callback<Http.Server>((resume) => {
      const server = Http.createServer((_request, response) => {
        response.setHeader("content-type", "text/html")
        response.end("<title>Events</title>")
      })
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => void server.close())
  ),
  (server) => {
    const address = server.address()
    return `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`
  }
)

/** A script for a page that reports the fills which the typed client receives. */
const clientScript = async (baseUrl: string): Promise<string> => {
  const { outputFiles } = await build({
    stdin: {
      contents: `import * as Streams from "@trigate/client/Streams"
        import * as Effect from "effect/Effect"
        import * as Stream from "effect/Stream"
        Effect.runFork(Effect.provide(
          Effect.flatMap(Streams.Streams, ({ userFills }) =>
            Stream.runForEach(userFills({ user: "${alice}" }), (item) => Effect.sync(() => reportItem(JSON.stringify(item))))),
          Streams.layerWebSocket({ baseUrl: "${baseUrl}" })
        ))`,
      resolveDir: import.meta.dirname
    },
    bundle: true,
    format: "iife",
    platform: "browser",
    write: false,
    logLevel: "silent"
  })
  return outputFiles[0]?.text ?? ""
}

/** A venue, a Redis, and gateways over both. */
const site = Effect.gen(function*() {
  const redis = yield* redisServer
  const venue = yield* fakeVenue()
  const run = (...messages: ReadonlyArray<Command | Condition>) => Effect.promise(() => venue.run(...messages))
  yield* run({ do: "reset" }, { do: "set-clock", millis: Date.now() })
  return {
    run,
    /** Starts a gateway; `kill` ends it as a crash does. */
    start: Effect.fnUntraced(function*(port: number, environment: Readonly<Record<string, string>> = {}) {
      const scope = yield* Scope.fork(yield* Effect.scope)
      const { ended, signal, url } = yield* Scope.provide(
        gatewayProcess({
          TRIGATE_PORT: String(port),
          TRIGATE_TRADING_API_URL: venue.url,
          TRIGATE_REDIS_URL: redis.url,
          TRIGATE_WATCH_ACCOUNTS: alice,
          ...environment
        }),
        scope
      )
      const kill = Effect.gen(function*() {
        signal("SIGKILL")
        yield* Effect.promise(() => ended)
        yield* Scope.close(scope, Exit.void)
      })
      return { url, kill }
    }),
    /** The fills of the venue since its beginning. */
    ledger: Effect.map(
      Effect.promise(() => venue.ledger()),
      (entries) => entries.filter(({ key }) => key === keys.userFills(alice)).flatMap(({ data }) => tidsIn(data))
    )
  }
})

describe.skipIf(!isInstalled)("a gateway that is killed", () => {
  it.live("is replaced by another one, again and again: no event is lost or doubled", () =>
    Effect.gen(function*() {
      const seed = Number(process.env["TRIGATE_TEST_SEED"] ?? 1)
      const random = randomBy(seed)
      const { ledger, run, start } = yield* site
      const ports = [yield* freePort, yield* freePort]
      let recording = yield* start(ports[0] ?? 0)
      yield* run({ until: "subscribed", key: keys.orderUpdates(alice), count: 1 })
      const received: Array<unknown> = []
      let lastId: string | undefined
      for (let round = 0; round < 4; round++) {
        const what = `seed ${seed}, round ${round}`
        const standby = yield* start(ports[(round + 1) % 2] ?? 0)
        const fill = (): Command => ({ do: "fill", user: alice, coin: "BTC", count: 1 + Math.floor(random() * 4) })
        // one client stays at the gateway that will be killed, one at the other
        const [there, here] = [
          yield* openEvents(recording.url, [fills, orders], lastId),
          yield* openEvents(standby.url, [fills, orders], lastId)
        ]
        yield* run(fill())
        const last = (yield* ledger).at(-1)
        yield* Effect.promise(() => there.until((events) => tids(events).includes(last), what))
        received.push(...tids(there.events))
        yield* recording.kill
        const killedAt = performance.now()
        yield* run(fill(), fill())
        const missed = (yield* ledger).at(-1)
        yield* Effect.promise(() => here.until((events) => tids(events).includes(missed), what))
        console.log(`${what}: recorded on ${Math.round(performance.now() - killedAt)} ms after the kill`)
        const again = yield* openEvents(standby.url, [fills, orders], there.lastId)
        yield* Effect.promise(() => again.until((events) => tids(events).includes(missed), what))
        assert.deepStrictEqual(recoveries(again.events), [true], what)
        assert.deepStrictEqual(recoveries(here.events), [lastId !== undefined], what)
        received.push(...tids(again.events))
        lastId = again.lastId
        for (const stream of [there, here, again]) stream.close()
        assert.deepStrictEqual(received, yield* ledger, what)
        recording = standby
      }
    }).pipe(Effect.scoped))

  it.live("is resumed by curl, by EventSource in a browser, and by the typed client in Node and in a browser", () =>
    Effect.gen(function*() {
      const { ledger, run, start } = yield* site
      const port = yield* freePort
      const origin = yield* pageServer
      const environment = { TRIGATE_CORS_ORIGINS: origin }
      const first = yield* start(port, environment)
      yield* run({ until: "subscribed", key: keys.orderUpdates(alice), count: 1 })
      const { url } = first

      /** Runs curl until it has printed the fill, or the gateway has ended. */
      const curl = (id: string | undefined) => {
        const query = ["-sN", "-G", `${url}/streams`, "--data-urlencode", `subscribe=${JSON.stringify(fills)}`]
        const child = spawn("curl", id === undefined ? query : [...query, "-H", `Last-Event-ID: ${id}`])
        let printed = ""
        const waiting = new Set<() => void>()
        child.stdout.on("data", (chunk: Buffer) => {
          printed += chunk.toString("utf8")
          for (const wake of waiting) wake()
        })
        const ended = new Promise<void>((resolve) => child.on("close", () => resolve()))
        return {
          printed: () => printed,
          ended: Effect.promise(() => ended),
          tids: () =>
            Array.from(
              printed.matchAll(/^data: (?<data>.*)$/gmu),
              ([, data]) => tidsIn(JsonParts.value(data ?? "", "data"))
            )
              .flat(),
          until: (tid: unknown) =>
            Effect.promise(() =>
              new Promise<void>((resolve, reject) => {
                const check = () => {
                  if (printed.includes(`"tid":${String(tid)},`)) {
                    resolve()
                  }
                }
                waiting.add(check)
                child.on("close", () => reject(new Error(`curl ended: ${printed}`)))
                check()
              })
            ),
          stop: Effect.sync(() => child.kill())
        }
      }

      const typed = new Received()
      yield* Effect.forkScoped(Effect.provide(
        Effect.flatMap(
          ClientStreams.Streams,
          ({ userFills }) =>
            Stream.runForEach(userFills({ user: alice }), (item) => Effect.sync(() => typed.add(tidsIn(item))))
        ),
        ClientStreams.layerWebSocket({ baseUrl: url })
      ))

      // runs last: the page is emptied before its browser closes
      yield* Effect.addFinalizer(() => Effect.promise(closeBrowser))
      const browser = canOpen ? yield* opened() : undefined
      const seenByPage = new Received()
      const typedOnPage = new Received()
      const resumed: Array<unknown> = []
      if (browser !== undefined) {
        const { page } = browser
        yield* Effect.promise(() =>
          page.exposeFunction("report", (text: string) => {
            seenByPage.add(tidsIn(JsonParts.value(text, "data")))
            if (JsonParts.value(text, "recovered") !== undefined) resumed.push(JsonParts.value(text, "recovered"))
          })
        )
        yield* Effect.promise(() =>
          page.exposeFunction("reportItem", (text: string) => typedOnPage.add(tidsIn(JSON.parse(text))))
        )
        yield* Effect.promise(() => page.goto(origin))
        yield* Effect.promise(() =>
          page.evaluate((address) => {
            const source = new EventSource(address)
            const report = (event: MessageEvent<unknown>) => {
              const listener: unknown = Reflect.get(globalThis, "report")
              if (typeof listener === "function") Reflect.apply(listener, undefined, [String(event.data)])
            }
            source.addEventListener("resume", report)
            source.addEventListener("message", report)
          }, `${url}/streams?subscribe=${encodeURIComponent(JSON.stringify(fills))}`)
        )
        const script = yield* Effect.promise(() => clientScript(url))
        yield* Effect.promise(() => page.evaluate(script))
      }
      const onPage = browser === undefined ? [] : [seenByPage, typedOnPage]
      const allHave = (tid: unknown, printed: Effect.Effect<void>) =>
        Effect.all([printed, typed.until(tid), ...onPage.map((each) => each.until(tid))], { concurrency: "unbounded" })

      const before = curl(undefined)
      yield* run({ do: "fill", user: alice, coin: "BTC", count: 2 })
      const seen = (yield* ledger).at(-1)
      yield* allHave(seen, before.until(seen))
      yield* first.kill
      yield* before.ended
      yield* run({ do: "fill", user: alice, coin: "ETH", count: 3 })
      yield* start(port, environment)
      const ids = Array.from(before.printed().matchAll(/^id: (?<id>.*)$/gmu), ([, id]) => id)
      const after = curl(ids.at(-1))
      const missed = (yield* ledger).at(-1)
      yield* allHave(missed, after.until(missed))
      yield* after.stop
      const all = yield* ledger
      assert.match(after.printed(), /^data: \{"recovered":true,/mu)
      assert.deepStrictEqual([...before.tids(), ...after.tids()], all)
      assert.deepStrictEqual(typed.tids, all)
      for (const each of onPage) assert.deepStrictEqual(each.tids, all)
      if (browser !== undefined) assert.deepStrictEqual(resumed, [false, true])
    }).pipe(Effect.scoped))
})
