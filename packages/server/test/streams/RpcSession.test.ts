/** JSON-RPC over a WebSocket of a gateway over the sandbox: calls, subscriptions, and their limits. */
import { assert, describe, it } from "@effect/vitest"
import { contracts } from "@trigate/sandbox/SandboxExamples"
import { gateway, get, post } from "@trigate/testing/Gateway"
import type { Environment } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import { createWalletClient, http, parseEther } from "viem"
import type { Hex } from "viem"
import { privateKeyToAccount } from "viem/accounts"
import { openSocket, TestSocket } from "../../../../test/streams/socket.ts"
import { keyFile } from "../keyFile.ts"

const account = privateKeyToAccount("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")

const opened = Effect.fnUntraced(function*(path: string, environment: Environment = {}) {
  const running = yield* gateway(environment)
  return { ...running, socket: yield* openSocket(running.url + path) }
})

const call = Effect.fnUntraced(function*(socket: TestSocket, method: string, ...params: ReadonlyArray<unknown>) {
  socket.send({ jsonrpc: "2.0", id: 7, method, params })
  const { text } = yield* Effect.promise(() => socket.next())
  return JSON.parse(text) as unknown
})

/** The code and message of an error. */
const errorIn = (answer: unknown) => [JsonParts.at(answer, "error", "code"), JsonParts.at(answer, "error", "message")]

const notification = Effect.fnUntraced(function*(socket: TestSocket) {
  const { text } = yield* Effect.promise(() => socket.next())
  const value: unknown = JSON.parse(text)
  return {
    subscription: JsonParts.at(value, "params", "subscription"),
    result: JsonParts.at(value, "params", "result")
  }
})

const sent = (url: string, data: { readonly to: Hex; readonly value: bigint }) =>
  Effect.promise(async () => {
    const wallet = createWalletClient({ account, transport: http(url) })
    return wallet.sendTransaction({ ...data, chain: null })
  })

describe("a WebSocket of JSON-RPC over the sandbox", () => {
  it.live("hears of the block of a transaction, and of its logs", () =>
    Effect.gen(function*() {
      const { socket, url } = yield* opened("/evm")
      const heads = JsonParts.at(yield* call(socket, "eth_subscribe", "newHeads"), "result")
      const other = yield* openSocket(`${url}/evm`)
      const logs = JsonParts.at(
        yield* call(other, "eth_subscribe", "logs", { address: contracts.wrapped, fromBlock: "0x0" }),
        "result"
      )
      const hash = yield* sent(`${url}/evm`, { to: contracts.wrapped, value: parseEther("1") })
      const log = yield* notification(other)
      assert.strictEqual(log.subscription, logs)
      assert.strictEqual(JsonParts.at(log.result, "transactionHash"), hash)
      const block = JsonParts.at(log.result, "blockNumber")
      // blocks are made without transactions, too
      let head = yield* notification(socket)
      while (JsonParts.at(head.result, "number") !== block) {
        assert.strictEqual(head.subscription, heads)
        head = yield* notification(socket)
      }
      assert.strictEqual(JsonParts.at(head.result, "hash"), JsonParts.at(log.result, "blockHash"))
    }))

  it.live("serves calls, batches and keepalives as over HTTP, and sends no transaction of a notification", () =>
    Effect.gen(function*() {
      const { socket, url } = yield* opened("/l2")
      const body = `[{"jsonrpc":"2.0","id":"a","method":"eth_chainId"},{"jsonrpc":"2.0","id":2,"method":"eth_nothing"}]`
      socket.send(body)
      const { text } = yield* Effect.promise(() => socket.next())
      assert.strictEqual(text, (yield* post(`${url}/l2`, body)).text)
      socket.send(`{"jsonrpc":"2.0","id":null,"method":"net_version","params":[]}`)
      const keepalive: unknown = JSON.parse((yield* Effect.promise(() => socket.next())).text)
      assert.isNull(JsonParts.at(keepalive, "id"))
    }))

  it.live("refuses subscriptions that it does not have, and those above the limit", () =>
    Effect.gen(function*() {
      const { socket, url } = yield* opened("/l2", { TRIGATE_STREAM_PER_SOCKET: "2" })
      assert.deepStrictEqual(errorIn(yield* call(socket, "eth_subscribe", "weather")), [
        -32601,
        `no "weather" subscription in eth namespace`
      ])
      for (const filter of [{ address: "0x1" }, { topics: [null, null, null, null, null] }]) {
        assert.strictEqual(errorIn(yield* call(socket, "eth_subscribe", "logs", filter))[0], -32602)
      }
      const ids = [
        JsonParts.at(yield* call(socket, "eth_subscribe", "newHeads", {}), "result"),
        JsonParts.at(yield* call(socket, "eth_subscribe", "syncing"), "result")
      ]
      assert.strictEqual(new Set(ids).size, 2)
      assert.deepStrictEqual(errorIn(yield* call(socket, "eth_subscribe", "newHeads")), [
        -32005,
        "a WebSocket has at most 2 subscriptions"
      ])
      const other = yield* openSocket(`${url}/l2`)
      assert.strictEqual(errorIn(yield* call(other, "eth_unsubscribe", ids[0]))[0], -32000)
      assert.isTrue(JsonParts.at(yield* call(socket, "eth_unsubscribe", ids[0]), "result"))
      const overHttp = yield* post(
        `${url}/l2`,
        `{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}`
      )
      assert.strictEqual(errorIn(JSON.parse(overHttp.text))[0], -32601)
    }))

  it.live("is refused, and closed, where the scope of the key does not cover its chain", () =>
    Effect.gen(function*() {
      const { file, keys } = yield* keyFile({ name: "one", scope: { chains: ["layer2"] } })
      const { url } = yield* gateway({ TRIGATE_CALLERS: file })
      const [key = ""] = keys
      const refused = new TestSocket(`${url}/${key}/evm`)
      assert.strictEqual((yield* Effect.promise(() => refused.refused)).status, 403)
      const socket = yield* openSocket(`${url}/${key}/l2`)
      assert.match(String(JsonParts.at(yield* call(socket, "eth_chainId"), "result")), /^0x/u)
    }))

  it.live("publishes what its feed does", () =>
    Effect.gen(function*() {
      const { socket, url } = yield* opened("/l2")
      yield* call(socket, "eth_subscribe", "newHeads")
      // they are published once a second; the head may be that of another gateway of this process until then
      const metrics = (yield* Effect.repeat(get(`${url}/metrics`), {
        until: ({ text }) => text.includes(`trigate_evm_subscriptions{chain="layer2"} 1`)
      })).text
      assert.include(metrics, `trigate_evm_head{chain="layer2"}`)
      assert.include(metrics, `trigate_evm_retained_bytes{chain="layer2"}`)
    }))
})
