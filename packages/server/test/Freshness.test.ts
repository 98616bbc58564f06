import { assert, describe, it } from "@effect/vitest"
import { post } from "@trigate/testing/Gateway"
import { rpcReply } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import { liveGateway } from "./liveGateway.ts"

const spotMeta = `{"type":"spotMeta"}`
const storage = `{"jsonrpc":"2.0","id":1,"method":"eth_getStorageAt","params":["0x${"ab".repeat(20)}","0x0","latest"]}`

const live = liveGateway({
  api: () => ({ body: `{"universe":[],"tokens":[]}` }),
  node: rpcReply(`"0x${"00".repeat(32)}"`)
})

describe("a cached response", () => {
  it.live("has its age, and is not asked for again, however the query is written", () =>
    Effect.gen(function*() {
      const gateway = yield* live
      const first = yield* post(`${gateway.url}/info`, spotMeta)
      assert.isNull(first.headers.get("age"))
      const second = yield* post(`${gateway.url}/info`, ` { "type" : "spotMeta" } `)
      assert.match(second.headers.get("age") ?? "", /^[0-9]+$/u)
      assert.strictEqual(second.text, first.text)
      assert.deepStrictEqual(gateway.seen(), ["api POST /info"])
    }))

  for (const header of ["no-cache", "max-age=0", "no-store", "private, no-cache"]) {
    it.live(`is not for a caller who says ${header}`, () =>
      Effect.gen(function*() {
        const gateway = yield* live
        yield* post(`${gateway.url}/info`, spotMeta)
        const answer = yield* post(`${gateway.url}/info`, spotMeta, { "cache-control": header })
        assert.isNull(answer.headers.get("age"))
        assert.strictEqual(gateway.seen().length, 2)
      }))
  }

  it.live("of a storage word is for callers only who take one that is a block old", () =>
    Effect.gen(function*() {
      const gateway = yield* live
      const block = { "cache-control": "max-age=1" }
      yield* post(`${gateway.url}/evm`, storage)
      yield* post(`${gateway.url}/evm`, storage, block)
      const kept = yield* post(`${gateway.url}/evm`, storage, block)
      assert.strictEqual(kept.headers.get("age"), "0")
      assert.strictEqual(gateway.seen().length, 2)
      yield* post(`${gateway.url}/evm`, storage)
      assert.strictEqual(gateway.seen().length, 3)
    }))

  it.live("of a batch makes the batch shorter, and the batch tells the oldest", () =>
    Effect.gen(function*() {
      const gateway = yield* live
      const price = (id: number, method = "eth_gasPrice") =>
        `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":[]}`
      yield* post(`${gateway.url}/evm`, price(1))
      const batch = yield* post(`${gateway.url}/evm`, `[${price(2)},${price(3, "eth_bigBlockGasPrice")}]`)
      assert.strictEqual(batch.headers.get("age"), "0")
      assert.deepStrictEqual(gateway.node.seen.map(({ body }) => /"method":"([a-zA-Z_]+)"/u.exec(body)?.[1]), [
        "eth_gasPrice",
        "eth_bigBlockGasPrice"
      ])
      assert.isFalse(gateway.node.seen.some(({ body }) => body.startsWith("[")))
    }))
})
