/** What is read through the gateway is what the node says: storage and gas price, by viem and by the typed client. */
import { assert, describe, it } from "@effect/vitest"
import { makeClient } from "@trigate/testing/Client"
import * as Effect from "effect/Effect"
import { createPublicClient, http, pad, toHex } from "viem"
import { session } from "../compat/session.ts"
import { anvil, canRun, withEvmPath } from "./anvil.ts"
import { deployCounter, resultOf } from "./writer.ts"

/** A node with a counter at 3, and a gateway that has it as both chains. */
const started = Effect.fnUntraced(function*(name: string) {
  const node = yield* anvil
  const counter = yield* deployCounter(node.url)
  yield* counter.count(3n)
  const url = yield* session({
    name: `node/${name}`,
    client: "viem 2.57.1",
    upstreams: { node: yield* withEvmPath(node), layer2: node.url }
  })
  return { node, counter, url }
})

describe.runIf(canRun)("a real node behind the gateway", () => {
  for (const path of ["/evm", "/l2"]) {
    it.live(`is read by viem as it is directly: ${path}`, () =>
      Effect.gen(function*() {
        const { counter, node, url } = yield* started(`reads${path.replace("/", "-")}`)
        const read = (at: string) => {
          const client = createPublicClient({ transport: http(at, { retryCount: 0 }) })
          return Effect.forEach([
            () => client.getStorageAt({ address: counter.address, slot: "0x0" }),
            () => client.getStorageAt({ address: counter.address, slot: "0x1" }),
            () => client.getGasPrice(),
            () => client.getChainId(),
            () => client.getBlockNumber(),
            () => client.getCode({ address: counter.address })
          ], (call) => Effect.promise<unknown>(call))
        }
        const through = yield* read(url + path)
        assert.deepStrictEqual(through.slice(0, 2), [pad(toHex(3)), pad("0x0")])
        assert.deepStrictEqual(through, yield* read(node.url))
      }))
  }

  it.live("is read by the typed client as it is directly", () =>
    Effect.gen(function*() {
      const { counter, node, url } = yield* started("typed-client")
      const { evm } = yield* makeClient(url)
      const slot = `["${counter.address}","0x0","latest"]`
      const word = yield* evm.getStorageAt({ address: counter.address, slot: "0x0" })
      assert.strictEqual(word, pad(toHex(3)))
      assert.strictEqual(yield* resultOf(node.url, "eth_getStorageAt", slot), `"${word}"`)
      assert.strictEqual(yield* resultOf(node.url, "eth_gasPrice", "[]"), `"${toHex(yield* evm.gasPrice())}"`)
      yield* counter.count(1n)
      assert.strictEqual(yield* evm.getStorageAt({ address: counter.address, slot: "0x0" }), pad(toHex(4)))
    }))
})
