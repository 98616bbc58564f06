/** Block headers of a node that lies: what is larger than a header is refused, and not stored. */
import { assert, describe, it } from "@effect/vitest"
import { local } from "@trigate/domain/Caller"
import * as Json from "@trigate/domain/encoding/Encoding"
import * as JsonRpc from "@trigate/domain/evm/EvmProtocol"
import { serving } from "@trigate/domain/evm/Layer2Operations"
import * as EvmFeed from "@trigate/evm/unstable/EvmFeed"
import * as Heads from "@trigate/evm/unstable/Heads"
import * as EvmChain from "@trigate/testing/EvmChain"
import { SocketTransport } from "@trigate/upstream/streams/SocketTransport"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { scriptedSockets } from "../../upstream/test/streams/scriptedSocket.ts"
import { asking, passSeconds } from "./modelled.ts"

const hash = `0x${"a".repeat(64)}`

const decodeBlock = Schema.decodeUnknownSync(Schema.Record(Schema.String, Schema.Unknown))

/** A header of the given number of characters. */
const header = (characters: number) => {
  const known = { number: "0x1", hash, parentHash: `0x${"b".repeat(64)}`, extraData: "0x" }
  const fill = characters - JSON.stringify(known).length
  return { ...known, extraData: `0x${"0".repeat(fill)}` }
}

describe("a block header", () => {
  it("has at most 16 KiB, without transactions, uncles and withdrawals", () => {
    const read = Heads.readHeader({ ...header(Heads.maxHeader), transactions: ["0x".padEnd(20_000, "0")] })
    assert.strictEqual(read === undefined || read === "too large" ? read : read.text.length, Heads.maxHeader)
    assert.strictEqual(Heads.readHeader(header(Heads.maxHeader + 1)), "too large")
  })

  it.effect("that is too large in a response is malformed, and is not stored", () =>
    Effect.gen(function*() {
      const chain = new EvmChain.EvmChain("large", { blocks: 20, span: 50 })
      let extraData = "0x"
      const reads = Heads.make(serving, "layer2", (call) =>
        Effect.map(
          asking(() => chain)(call),
          (answer) =>
            answer._tag === "Error" ? answer : JsonRpc.result(
              Json.write({ ...decodeBlock(answer.result.valueOrUndefined), extraData })
            )
        ))
      const found = yield* reads.header("latest")
      assert.strictEqual(found?.hash, chain.head.hash)
      chain.extend(1)
      extraData = "0x".padEnd(Heads.maxHeader, "0")
      const error = yield* Effect.flip(reads.header("latest"))
      assert.strictEqual(error._tag, "UpstreamMalformed")
      assert.include(error.message, "Expected a block header of at most 16384 characters")
      assert.isUndefined(reads.known(chain.head.hash))
    }))

  it.effect("that is too large in an announcement closes the connection", () => {
    const sockets = scriptedSockets()
    return Effect.gen(function*() {
      const chain = new EvmChain.EvmChain("large", { blocks: 20, span: 50 })
      const feed = yield* EvmFeed.make({
        serving,
        send: asking(() => chain),
        addresses: () => [Redacted.make("ws://a"), Redacted.make("ws://b")]
      })
      feed.subscribe({ kind: "newHeads" }, { caller: local, deliver: () => {}, flush: () => {} })
      yield* passSeconds(1)
      const [first] = sockets.open()
      assert.strictEqual(first?.address, "ws://a")
      first?.push(`{"id":4,"result":"0x3e7"}`)
      first?.push(`{"id":1,"result":"0xa"}`)
      const announced = { ...header(Heads.maxHeader + 1), number: "0x14" }
      first?.push(JSON.stringify({
        jsonrpc: "2.0",
        method: "eth_subscription",
        params: { subscription: "0xa", result: announced }
      }))
      yield* passSeconds(5)
      assert.isFalse(first?.isOpen)
      assert.isAbove(sockets.connections.length, 1)
      assert.strictEqual(feed.status().head, chain.head.number)
    }).pipe(Effect.scoped, Effect.provideService(SocketTransport, sockets.transport))
  })
})

describe("a chain of block headers", () => {
  it.effect("stores a bounded number of characters, also while older blocks are needed", () =>
    Effect.gen(function*() {
      const chain = Heads.makeChain({ header: () => Effect.undefined }, {
        added: () => {},
        rewound: () => {},
        needed: () => 0n,
        began: () => {},
        lost: () => {}
      })
      const text = "h".repeat(Heads.maxHeader)
      const most = Heads.mostCharacters / Heads.maxHeader
      const makeHash = (block: number) => `0x${block.toString(16).padStart(64, "0")}`
      for (let number = 1; number <= most + 100; number++) {
        const [hash, parentHash] = [makeHash(number), makeHash(number - 1)]
        const head = { number: BigInt(number), hash, parentHash, logsBloom: undefined, timestamp: undefined, text }
        yield* chain.take(head, true)
      }
      assert.strictEqual(chain.above(0n).length, most)
      assert.strictEqual(chain.above(0n)[0]?.number, 101n)
    }))
})
