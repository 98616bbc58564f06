/** State at old blocks through `/evm`: a real node, which is an archive, and a second one that forks it through the gateway. */
import { assert, describe, it } from "@effect/vitest"
import { gateway } from "@trigate/testing/Gateway"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import type { Hash } from "viem"
import { createPublicClient, createTestClient, http, parseEther, publicActions, walletActions } from "viem"
import { rejection } from "../compat/rejection.ts"
import { anvil, canRun, forkOf, withEvmPath } from "./anvil.ts"

const sender = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
const receiver = "0x00000000000000000000000000000000000000aa"

const once = { retryCount: 0 }
const clientOf = (url: string) => createPublicClient({ transport: http(url, once) })

/** A node with three blocks, each of which gives the receiver an ether, and its URL as one of the venue. */
const threeBlocks = Effect.gen(function*() {
  const node = yield* anvil
  const client = createTestClient({ mode: "anvil", transport: http(node.url, once) })
    .extend(publicActions).extend(walletActions)
  for (const _ of [1, 2, 3]) {
    const hash: Hash = yield* Effect.promise(() =>
      client.sendTransaction({ account: sender, chain: null, to: receiver, value: parseEther("1") })
    )
    yield* Effect.promise(() => client.waitForTransactionReceipt({ hash }))
  }
  return yield* withEvmPath(node)
})

const balanceAt = (url: string, blockNumber: bigint) =>
  Effect.promise(() => clientOf(url).getBalance({ address: receiver, blockNumber }))

describe.runIf(canRun)("a gateway over an archive node", () => {
  it.live("reads each block's own state, can be forked at a block, and has nothing to warn of", () =>
    Effect.gen(function*() {
      const lines: Array<string> = []
      const logger = Logger.make(({ message }) => {
        lines.push(String(message))
      })
      yield* Effect.gen(function*() {
        const node = yield* threeBlocks
        const { url } = yield* gateway({ TRIGATE_TRADING_NODE_URL: `${node}/evm`, TRIGATE_TRADING_NODE_ARCHIVE: "on" })
        for (const block of [0n, 1n, 2n, 3n]) {
          assert.strictEqual(yield* balanceAt(`${url}/evm`, block), block * parseEther("1"))
        }
        const fork = yield* forkOf(`${url}/evm`, 2)
        assert.strictEqual(
          yield* Effect.promise(() => clientOf(fork.url).getBalance({ address: receiver })),
          parseEther("2")
        )
      }).pipe(Effect.provide(Logger.layer([logger])))
      assert.deepStrictEqual(lines, [])
    }))

  it.live("is told what to set where it was not told of one", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({ TRIGATE_TRADING_NODE_URL: yield* threeBlocks })
      const error = yield* rejection(() => clientOf(`${url}/evm`).getBalance({ address: receiver, blockNumber: 1n }))
      assert.include(String(error), "TRIGATE_TRADING_NODE_ARCHIVE=on")
    }))
})
