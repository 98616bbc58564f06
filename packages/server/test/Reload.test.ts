/** Settings that change while a gateway serves: what is applied, what stays, and what no change may forget. */
import { assert, describe, it } from "@effect/vitest"
import * as Drain from "@trigate/server/unstable/process/Load"
import { gateway, get, post } from "@trigate/testing/Gateway"
import type { RecordingUpstream } from "@trigate/testing/RecordingUpstream"
import { recordingUpstream, rpcReply } from "@trigate/testing/RecordingUpstream"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import { openSocket } from "../../../test/streams/socket.ts"
import { bigBlocks, bodyOf } from "./bodies.ts"
import { heldUpstream } from "./connections.ts"

const receiptCall = `{"jsonrpc":"2.0","id":1,"method":"eth_getTransactionReceipt","params":["0x${"ab".repeat(32)}"]}`
const rawCall = `{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["0x02f8ab"]}`
const gasCall = `{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}`
const batch = `[${gasCall},${gasCall}]`
const accepted = { body: `{"status":"ok","response":{"type":"default"}}` }
const tagOf = ({ json, status }: { readonly json: unknown; readonly status: number }): unknown =>
  status === 200 ? "ok" : Object.entries(json ?? {}).find(([name]) => name === "_tag")?.[1]

describe("settings that change while a gateway serves", () => {
  it.live("count from the next request on, and only those that changed are told", () =>
    Effect.gen(function*() {
      const { reload, url } = yield* gateway({})
      const origin = { origin: "https://app.example" }
      const before = yield* post(`${url}/evm`, batch, origin)
      assert.deepStrictEqual([before.status, before.headers.get("access-control-allow-origin")], [200, null])
      const change = yield* reload({
        TRIGATE_BATCH_LIMIT: "1",
        TRIGATE_CORS_ORIGINS: origin.origin,
        TRIGATE_READ_DEADLINE: "10s"
      })
      assert.deepStrictEqual(change, {
        applied: ["TRIGATE_BATCH_LIMIT", "TRIGATE_CORS_ORIGINS"],
        needsRestart: []
      })
      const after = yield* post(`${url}/evm`, batch, origin)
      assert.include(after.text, "A batch has at most 1 call")
      assert.strictEqual(after.headers.get("access-control-allow-origin"), origin.origin)
      assert.deepStrictEqual(yield* reload({}), {
        applied: ["TRIGATE_BATCH_LIMIT", "TRIGATE_CORS_ORIGINS"],
        needsRestart: []
      })
      assert.notInclude((yield* post(`${url}/evm`, batch)).text, "A batch has")
      assert.deepStrictEqual(yield* reload({}), { applied: [], needsRestart: [] })
    }))

  it.live("leave what needs a restart as it is, and name it", () =>
    Effect.gen(function*() {
      const { reload, url } = yield* gateway({ TRIGATE_LAYER2_URL: "http://127.0.0.1:9/KEY" })
      const change = yield* reload({
        TRIGATE_LAYER2_URL: "http://127.0.0.1:9/KEY",
        TRIGATE_HOST: "127.0.0.2",
        TRIGATE_PORT: "1",
        TRIGATE_REDIS_URL: "redis://127.0.0.1:9",
        TRIGATE_DATABASE_URL: "none.db",
        TRIGATE_STRICT: "on"
      })
      assert.deepStrictEqual(change, {
        applied: ["TRIGATE_STRICT"],
        needsRestart: ["TRIGATE_HOST", "TRIGATE_PORT", "TRIGATE_REDIS_URL", "TRIGATE_DATABASE_URL"]
      })
      assert.deepInclude((yield* get(`${url}/health/ready`)).json, {
        actionLog: { backing: "memory", state: "up", used: { familiar: 0, strangers: 0 }, room: "enough" }
      })
    }))

  it.live("are refused whole where they are those of another gateway", () =>
    Effect.gen(function*() {
      const layer2 = { TRIGATE_LAYER2_URL: "http://127.0.0.1:9/KEY" }
      const live = yield* gateway(layer2)
      const sandbox = yield* gateway({})
      const refused = (change: ReturnType<typeof live.reload>) =>
        Effect.map(Effect.flip(change), ({ message }) => message)
      const mixed = "The settings switch between the sandbox and live chains: restart the gateway to apply them"
      assert.deepStrictEqual([
        yield* refused(live.reload({ ...layer2, TRIGATE_NETWORK: "testnet", TRIGATE_BATCH_LIMIT: "1" })),
        yield* refused(live.reload({ TRIGATE_BATCH_LIMIT: "1" })),
        yield* refused(sandbox.reload({ ...layer2, TRIGATE_BATCH_LIMIT: "1" }))
      ], ["TRIGATE_NETWORK changed: restart the gateway to serve another network", mixed, mixed])
      assert.strictEqual((yield* post(`${sandbox.url}/evm`, batch)).text.slice(0, 1), "[")
    }))
})

describe("a change of settings", () => {
  it.live("lets a call in flight end at the address with which it began", () =>
    Effect.gen(function*() {
      const held = yield* heldUpstream
      const other = yield* recordingUpstream(rpcReply("null"))
      const { reload, url } = yield* gateway({ TRIGATE_LAYER2_URL: held.url })
      const inFlight = yield* Effect.forkChild(post(`${url}/l2`, receiptCall))
      yield* Effect.promise(() => held.asked)
      yield* reload({ TRIGATE_LAYER2_URL: other.url })
      assert.strictEqual((yield* post(`${url}/l2`, receiptCall)).status, 200)
      assert.strictEqual(other.seen.length, 1)
      held.release(`{"jsonrpc":"2.0","id":1,"result":{"status":"0x1"}}`)
      const answer = yield* Fiber.join(inFlight)
      assert.strictEqual(answer.text, `{"jsonrpc":"2.0","id":1,"result":{"status":"0x1"}}`)
      assert.notStrictEqual(answer.headers.get("connection"), "close")
      assert.strictEqual(other.seen.length, 1)
    }))

  it.live("counts for the later calls of an open socket, which each reach one node once", () =>
    Effect.gen(function*() {
      const old = yield* recordingUpstream(rpcReply("\"0x1\""))
      const next = yield* recordingUpstream(rpcReply("\"0x2\""))
      const { reload, url } = yield* gateway({ TRIGATE_LAYER2_URL: old.url })
      for (const path of ["/l2", "/any-key/l2", "/any-key"]) {
        const socket = yield* openSocket(url + path)
        const ask = (text: string) =>
          Effect.promise(async () => {
            socket.send(text)
            return (await socket.next()).text
          })
        const methods = ({ seen }: RecordingUpstream) => seen.splice(0).map(({ body }) => /"eth_\w+"/u.exec(body)?.[0])
        for (const [one, node, other] of [["0x1", old, next], ["0x2", next, old]] as const) {
          yield* reload({ TRIGATE_LAYER2_URL: node.url, TRIGATE_BATCH_LIMIT: node === old ? "2" : "1" })
          // a notification is not relayed
          socket.send(rawCall.replace(`"id":1,`, ""))
          assert.strictEqual(yield* ask(rawCall), `{"jsonrpc":"2.0","id":1,"result":"${one}"}`)
          assert.strictEqual(yield* ask(receiptCall), `{"jsonrpc":"2.0","id":1,"result":"${one}"}`)
          assert.deepStrictEqual([methods(node), methods(other)], [
            [`"eth_sendRawTransaction"`, `"eth_getTransactionReceipt"`],
            []
          ])
        }
        assert.include(yield* ask(batch), "A batch has at most 1 call")
      }
    }))

  it.live("forgets no nonce, neither of a live chain nor of the sandbox", () =>
    Effect.gen(function*() {
      const api = yield* recordingUpstream(() => accepted)
      for (const environment of [{ TRIGATE_TRADING_API_URL: api.url }, {}]) {
        const { reload, url } = yield* gateway(environment)
        const body = bodyOf(yield* Clock.currentTimeMillis, bigBlocks)
        const first = yield* post(`${url}/exchange`, body)
        assert.strictEqual(first.status, 200)
        yield* reload({ ...environment, TRIGATE_ONCE_DEADLINE: "7s", TRIGATE_RELAY_ACTIONS: "evmUserModify" })
        assert.strictEqual(tagOf(yield* post(`${url}/exchange`, body)), "NonceAlreadyUsed")
      }
      assert.strictEqual(api.seen.length, 1)
    }))

  it.live("keeps the window of a rate limit, also under another limit", () =>
    Effect.gen(function*() {
      const api = yield* recordingUpstream(() => ({ body: "{}" }))
      const environment = { TRIGATE_TRADING_API_URL: api.url, TRIGATE_TRADING_API_WEIGHT: "56" }
      const { reload, url } = yield* gateway(environment)
      const ask = (type: string) => Effect.map(post(`${url}/info`, `{"type":"${type}"}`), tagOf)
      // each weighs 20; of 56, 2 are left to actions, and a caller alone may hold 41 of the others
      assert.deepStrictEqual([yield* ask("a"), yield* ask("b"), yield* ask("c")], ["ok", "ok", "QuotaExceeded"])
      yield* reload({ ...environment, TRIGATE_READ_DEADLINE: "9s", TRIGATE_LAYER2_RPS: "5" })
      assert.strictEqual(yield* ask("d"), "QuotaExceeded")
      yield* reload({ ...environment, TRIGATE_TRADING_API_WEIGHT: "84" })
      assert.deepStrictEqual([yield* ask("e"), yield* ask("f")], ["ok", "QuotaExceeded"])
      yield* reload({ ...environment, TRIGATE_TRADING_API_WEIGHT: "56" })
      assert.strictEqual(yield* ask("g"), "QuotaExceeded")
      assert.strictEqual(api.seen.length, 3)
    }))

  it.live("keeps cached responses, and what is known of addresses that stay", () =>
    Effect.gen(function*() {
      const api = yield* recordingUpstream(() => ({ body: `{"tokens":[],"universe":[]}` }))
      const node = yield* recordingUpstream(rpcReply("\"0x1\""))
      const environment = {
        TRIGATE_TRADING_API_URL: api.url,
        TRIGATE_TRADING_NODE_URL: `${node.url}/one,${node.url}/two`
      }
      const { reload, url } = yield* gateway(environment)
      const spotMeta = post(`${url}/info`, `{"type":"spotMeta"}`)
      const paths = () => node.seen.map(({ path }) => path).toSorted()
      const compared = (times: number) => Effect.repeat(Effect.yieldNow, { until: () => node.seen.length >= times })
      const first = yield* spotMeta
      yield* compared(2)
      yield* reload({ ...environment, TRIGATE_READ_DEADLINE: "9s" })
      assert.strictEqual((yield* spotMeta).text, first.text)
      assert.strictEqual(api.seen.length, 1)
      yield* reload({ ...environment, TRIGATE_TRADING_NODE_URL: `${node.url}/one,${node.url}/three` })
      yield* compared(4)
      // the chains of the same addresses are not compared again
      assert.deepStrictEqual(paths(), ["/one/evm", "/one/evm", "/three/evm", "/two/evm"])
    }))

  it.effect("ends the old settings with their last request, whatever comes later", () =>
    Effect.gen(function*() {
      const drain = yield* Drain.Drain
      const requests = [yield* Latch.make(), yield* Latch.make(), yield* Latch.make()] as const
      const [early, late, later] = requests.map(({ await: end }) =>
        Effect.suspend(() => Effect.ensuring(end, Effect.sync(drain.enter())))
      )
      const ends = yield* Effect.forEach([early, late], (request) => Effect.forkChild(request ?? Effect.void))
      yield* Effect.yieldNow
      const current = yield* Effect.forkChild(drain.current, { startImmediately: true })
      yield* Effect.forkChild(later ?? Effect.void, { startImmediately: true })
      yield* requests[0].open
      yield* Fiber.join(ends[0] ?? current)
      assert.isUndefined(current.pollUnsafe())
      yield* requests[1].open
      yield* Fiber.join(current)
      assert.isFalse(drain.isDraining())
      const next = yield* Effect.forkChild(drain.current, { startImmediately: true })
      assert.isUndefined(next.pollUnsafe())
      yield* requests[2].open
      yield* Fiber.join(next)
      yield* drain.current
    }).pipe(Effect.provide(Drain.layerDrain)))
})
