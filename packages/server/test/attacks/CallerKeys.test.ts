/** Keys of callers under load, and where a key must never be seen. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { KeyStore } from "@trigate/callers/KeyStore"
import * as CallerStore from "@trigate/server/unstable/stores/Stores"
import { gateway, get, post } from "@trigate/testing/Gateway"
import { gatewayProcess } from "@trigate/testing/GatewayProcess"
import { isInstalled, postgresDatabase } from "@trigate/testing/PostgresServer"
import { recordingUpstream, rpcReply } from "@trigate/testing/RecordingUpstream"
import { isExhaustive } from "@trigate/testing/Sample"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"

const folder = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(Path.join(Os.tmpdir(), "callers-"))),
  (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
)

/** The keys as another program sees them that shares the place, such as the command line. */
const storeOf = (place: CallerStore.StoreLocation) =>
  Effect.map(
    Layer.build(Layer.provide(CallerStore.layerStore(place, "create"), NodeFileSystem.layer)),
    (context) => Context.get(context, KeyStore)
  )

const callers = 4
const rotations = 5

/** Two replicas under load, while every caller's key is rotated again and again and one caller's is revoked. */
const underLoad = Effect.fnUntraced(
  function*(environment: { readonly [name: string]: string }, place: CallerStore.StoreLocation) {
    const store = yield* storeOf(place)
    const names = Array.from({ length: callers }, (_, index) => `caller-${index}`)
    const current = new Map<string, string>()
    yield* Effect.forEach(
      names,
      (name) => Effect.map(store.create({ name }), ({ key }) => current.set(name, Redacted.value(key))),
      { discard: true }
    )
    const victim = Redacted.value((yield* store.create({ name: "victim" })).key)
    const replicas = yield* Effect.all([gateway(environment), gateway(environment)])
    const statusAt = (url: string, key: string) =>
      Effect.map(post(`${url}/info`, `{"type":"spotMeta"}`, { authorization: `Bearer ${key}` }), ({ status }) => status)

    const wrong: Array<string> = []
    let served = 0
    let isOver = false
    const load = Effect.forEach(names, (name, index) => {
      const url = replicas[index % replicas.length]?.url ?? ""
      return Effect.repeat(
        Effect.suspend(() => {
          const key = current.get(name) ?? ""
          return Effect.map(statusAt(url, key), (status) => {
            served++
            if (status !== 200) {
              wrong.push(`${name} ${status}`)
            }
          })
        }),
        { until: () => isOver }
      )
    }, { concurrency: "unbounded" })

    // a request that began before the revocation may still be served; one that begins after a refusal may not
    let isRevoked = false
    const ending = Effect.forEach(replicas, ({ url }) =>
      Effect.gen(function*() {
        let refusals = 0
        while (refusals < 20) {
          const wasRevoked = isRevoked
          const status = yield* statusAt(url, victim)
          if (!wasRevoked && status !== 200 && !isRevoked) wrong.push(`victim ${status} before its end`)
          if (refusals > 0 && status !== 401) wrong.push(`victim ${status} after its end`)
          if (status === 401) refusals++
        }
      }), { concurrency: "unbounded" })

    const loading = yield* Effect.forkChild(load)
    const watching = yield* Effect.forkChild(ending)
    const old: Array<string> = []
    for (let round = 0; round < rotations; round++) {
      for (const name of names) {
        const { key } = yield* store.rotate({ name, overlap: "1 hour" })
        old.push(current.get(name) ?? "")
        // its holder uses it at once, at a replica that has not heard of it
        current.set(name, Redacted.value(key))
      }
      if (round === 2) {
        yield* store.revoke({ name: "victim" })
        isRevoked = true
      }
    }
    yield* Fiber.join(watching)
    isOver = true
    yield* Fiber.join(loading)
    // all keys of the overlap are valid, at both replicas
    for (const { url } of replicas) {
      const statuses = yield* Effect.forEach(old, (key) => statusAt(url, key), { concurrency: 8 })
      assert.deepStrictEqual([...new Set(statuses)], [200])
    }
    assert.deepStrictEqual(wrong, [])
    assert.isAbove(served, callers * rotations)
    assert.strictEqual(old.length, callers * rotations)
  }
)

const keyStores = [
  {
    name: "SQLite",
    run: Effect.gen(function*() {
      const file = Path.join(yield* folder, "keys.sqlite")
      yield* underLoad({ TRIGATE_CALLERS: "keys", TRIGATE_DATABASE_URL: file }, { kind: "SQLite", file })
    })
  },
  {
    name: "Postgres",
    run: Effect.gen(function*() {
      const { url } = yield* postgresDatabase
      const environment = { TRIGATE_CALLERS: "keys", TRIGATE_DATABASE_URL: url }
      yield* underLoad(environment, { kind: "Postgres", url: Redacted.make(url) })
    })
  }
].filter(({ name }) => name !== "Postgres" || isInstalled)

describe("rotation and revocation under load, at two replicas,", () => {
  for (const { name, run } of isExhaustive ? keyStores : keyStores.slice(0, 1)) {
    it.live(`cause no wrong answer on ${name}`, () => run)
  }
})

const gasCall = `{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}`
const address = "EQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_sDs"

/** Asks with a key in every place where one may stand, on routes of every kind, and gives all that came back. */
const everywhere = (url: string, key: string) =>
  Effect.map(
    Effect.forEach([
      post(`${url}/info`, `{"type":"spotMeta"}`, { authorization: `Bearer ${key}` }),
      post(`${url}/evm`, gasCall, { "x-api-key": key }),
      post(`${url}/evm?api_key=${key}`, `[${gasCall},${gasCall}]`),
      post(`${url}/${key}/evm`, gasCall),
      post(`${url}/${key}`, "{"),
      post(`${url}/${key}/exchange`, "{}"),
      post(`${url}/exchange/inspect?api_key=${key}`, "{}"),
      get(`${url}/${key}/api/v2/getTokenData?address=${address}`),
      get(`${url}/api/v2/getTokenData?address=${address}&api_key=${key}`),
      get(`${url}/api/v2/nothing?api_key=${key}`),
      get(`${url}/${key}/nowhere`),
      get(`${url}/${key}/evm`),
      post(`${url}//${key}/evm`, gasCall),
      post(`${url}/info`, `{"type":"spotMeta"}`, { authorization: `Bearer ${key}`, "x-api-key": `${key}x` }),
      post(`${url}/evm`, gasCall, { authorization: `Basic ${key}`, "x-request-id": "one" }),
      get(`${url}/health/ready?api_key=${key}`)
    ], (answer) => answer),
    (answers) => answers.map(({ headers, status, text }) => `${status} ${JSON.stringify([...headers])} ${text}`)
  )

describe("a caller's key", () => {
  it.live("is in no log, trace, metric, error, file or list of processes, whether it counts or not", () =>
    Effect.gen(function*() {
      const path = yield* folder
      const file = Path.join(path, "keys.sqlite")
      const store = yield* storeOf({ kind: "SQLite", file })
      const alice = yield* store.create({ name: "alice" })
      const ended = yield* store.create({ name: "ended" })
      yield* store.revoke({ name: "ended" })
      const keys = [
        Redacted.value(alice.key),
        Redacted.value(ended.key),
        `tg_0123456789_${"5ec4e7".repeat(10)}beef`,
        `tg_0123456789_${"5ec4e7".repeat(10)}bee`
      ]
      const collector = yield* recordingUpstream(() => ({ body: "{}" }))
      const node = yield* recordingUpstream(rpcReply(`"0x1"`))
      const running = yield* gatewayProcess({
        TRIGATE_CALLERS: "keys",
        TRIGATE_DATABASE_URL: file,
        TRIGATE_TRADING_NODE_URL: node.url,
        TRIGATE_TRACE_UPSTREAM: "on",
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_EXPORTER_OTLP_PROTOCOL: "http/json"
      })
      const answers = (yield* Effect.forEach(keys, (key) => everywhere(running.url, key))).flat()
      const metrics = (yield* get(`${running.url}/metrics`)).text
      const processes = spawnSync("ps", ["-A", "-o", "args"], { encoding: "utf8" }).stdout
      running.signal("SIGTERM")
      assert.strictEqual(yield* Effect.promise(() => running.ended), 0)

      // it was at work: served, refused, logged and exported
      assert.isAbove(answers.filter((answer) => answer.startsWith("200")).length, 4)
      assert.isAbove(answers.filter((answer) => answer.startsWith("401")).length, 20)
      assert.include(running.printed(), `"caller":"key:alice","key":"${alice.record.prefix}"`)
      assert.include(running.printed(), "  callers: clients with a key in SQLite\n")
      // written as the gateway ended
      const used = (yield* store.list).map(({ lastUsedAt, name }) => [name, lastUsedAt !== undefined])
      assert.sameDeepMembers(used, [["alice", true], ["ended", false]])
      assert.include(metrics, `outcome="Unauthorized"`)
      assert.include(processes, "trigate.js")
      const exported = JSON.stringify(collector.seen)
      for (const signal of ["/v1/traces", "/v1/metrics"]) assert.include(exported, signal)

      const files = Fs.readdirSync(path).map((name) => Fs.readFileSync(Path.join(path, name), "latin1")).join("\n")
      assert.include(files, alice.record.hash)
      const told = {
        answers: answers.join("\n"),
        metrics,
        processes,
        printed: running.printed(),
        exported,
        upstream: JSON.stringify(node.seen),
        files
      }
      for (const key of keys) {
        const secret = key.slice(14)
        for (const [where, text] of Object.entries(told)) {
          assert.notInclude(text, secret, where)
          assert.notInclude(
            text.toLowerCase(),
            Buffer.from(secret).toString("base64").slice(0, 40).toLowerCase(),
            where
          )
        }
      }
    }))
})
