/** Three nodes of one chain behind the gateway, and one that is killed under load: no read fails. */
import { assert, describe, it } from "@effect/vitest"
import { hostedGateway } from "@trigate/testing/HostedGateway"
import * as Effect from "effect/Effect"
import type { Hex } from "viem"
import { createPublicClient, http, pad, toHex } from "viem"
import type { Anvil } from "./anvil.ts"
import { anvil, canRun } from "./anvil.ts"
import { deployCounter, resultOf } from "./writer.ts"

const readers = 32

/** A slot in which each node says which one it is; all others are the same everywhere. */
const nameSlot = pad("0xffff")

const prepare = Effect.fnUntraced(function*(node: Anvil, index: number) {
  const { address, count } = yield* deployCounter(node.url)
  yield* count(7n)
  yield* resultOf(node.url, "anvil_setStorageAt", `["${address}","${nameSlot}","${pad(toHex(index))}"]`)
  return address
})

/** The gateway over three nodes in order, and reads of the counter through it. */
const started = Effect.gen(function*() {
  const first = yield* anvil
  const second = yield* anvil
  const third = yield* anvil
  const addresses = yield* Effect.forEach([first, second, third], prepare)
  const [address] = addresses
  assert(address !== undefined)
  assert.deepStrictEqual(addresses, [address, address, address])
  const { url } = yield* hostedGateway({
    TRIGATE_LAYER2_URL: [first, second, third].map((node) => node.url).join(),
    TRIGATE_READ_DEADLINE: "10 minutes"
  })
  const client = createPublicClient({ transport: http(`${url}/l2`, { retryCount: 0 }) })
  const word = (slot: Hex) => Effect.promise(() => client.getStorageAt({ address, slot }))
  return {
    first,
    second,
    /** Which node answers. */
    name: Effect.map(word(nameSlot), Number),
    /** So many reads, each of a slot of its own since equal ones are asked once; `after` runs beside them when half are answered. */
    load: Effect.fnUntraced(function*(reads: number, after: Effect.Effect<void> = Effect.void) {
      let answered = 0
      const words = yield* Effect.forEach(
        Array.from({ length: reads }, (_, index) => toHex(index)),
        (slot) =>
          Effect.tap(word(slot), () => {
            answered++
            return answered === reads / 2 ? after : Effect.void
          }),
        { concurrency: readers }
      )
      assert.strictEqual(answered, reads)
      assert.deepStrictEqual(words, words.map((_, index) => pad(index === 0 ? "0x7" : "0x0")))
    })
  }
})

describe.runIf(canRun)("nodes of one chain", () => {
  it.live("are read on when one is killed under load, and when the next one is", () =>
    Effect.gen(function*() {
      const { first, load, name, second } = yield* started
      yield* load(400, first.kill)
      assert.isAbove(yield* name, 0)
      yield* load(200)
      yield* load(400, second.kill)
      assert.strictEqual(yield* name, 2)
      yield* load(200)
    }))
})
