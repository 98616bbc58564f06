import { assert, describe, it } from "@effect/vitest"
import * as Utf8 from "@trigate/domain/encoding/Encoding"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import { mainnet } from "@trigate/signing/VenueProfile"
import * as Inspector from "@trigate/trading/Inspector"
import * as Effect from "effect/Effect"

const address = "0x0123456789abcdef0123456789abcdef01234567"
const expected = "0x90f79bf6eb2c4f870365e785982e1f101e93b906"

const limitOrder = { a: 1, b: true, p: "1", s: "1", r: false, t: { limit: { tif: "Gtc" } } }

/** A wrapper with ten signatures, none of which is the expected signer's, around an action of so many orders. */
const wrapper = (orders: number): Uint8Array => {
  const signatureOf = (digit: number) => ({ r: `0x${"1".repeat(62)}${digit}`, s: `0x${"2".repeat(63)}`, v: 27 })
  const action = {
    type: "multiSig",
    signatureChainId: "0x66eee",
    signatures: Array.from({ length: 10 }, (_, index) => signatureOf(index)),
    payload: {
      multiSigUser: address,
      outerSigner: address,
      action: { type: "order", orders: Array.from({ length: orders }, () => limitOrder), grouping: "na" }
    }
  }
  return Utf8.encode(JSON.stringify({ action, nonce: 1_795_230_000_000, signature: signatureOf(0) }))
}

/** Inspects a body, and counts the recoveries in each turn of the event loop. */
const inspected = (body: Uint8Array) =>
  Effect.gen(function*() {
    const engine = yield* Secp256k1.Secp256k1
    const turns = [0]
    const counting: Secp256k1.Engine = {
      ...engine,
      recover: (digest, signature) => {
        turns[turns.length - 1] = (turns.at(-1) ?? 0) + 1
        return engine.recover(digest, signature)
      },
      tweak: (publicKey, scalar) => {
        turns[turns.length - 1] = (turns.at(-1) ?? 0) + 1
        return engine.tweak(publicKey, scalar)
      },
      tweakAll: (publicKeys, scalar) => {
        turns[turns.length - 1] = (turns.at(-1) ?? 0) + 1
        return engine.tweakAll(publicKeys, scalar)
      }
    }
    let isOver = false
    const turn = Effect.andThen(Effect.yieldNow, Effect.sync(() => void turns.push(0)))
    const { diagnosis } = yield* Effect.raceFirst(
      Inspector.make(mainnet, {}, counting).inspect(body, expected),
      Effect.andThen(Effect.repeat(turn, { until: () => isOver }), Effect.never)
    )
    isOver = true
    return { verdict: diagnosis.verdict, turns, all: turns.reduce((sum, count) => sum + count, 0) }
  }).pipe(Effect.provide(Secp256k1.layer))

/** A body with one wrong signature. */
const single = (action: object): Uint8Array =>
  Utf8.encode(JSON.stringify({
    action,
    nonce: 1_795_230_000_000,
    signature: { r: `0x${"1".repeat(63)}`, s: `0x${"2".repeat(63)}`, v: 27 }
  }))

const transfer = {
  type: "usdSend",
  signatureChainId: "0x66eee",
  hyperliquidChain: "Mainnet",
  destination: address,
  amount: "1.5",
  time: 1_795_230_000_000
}

/** The limit of `SignatureDiagnosis`, which `docs/limits.md` states. */
const limit = 1400

describe("what an inspection does in one turn of the event loop", () => {
  const bodies: ReadonlyArray<readonly [string, Uint8Array, number]> = [
    ["an order", single({ type: "order", orders: [limitOrder], grouping: "na" }), 1361],
    ["a transfer", single(transfer), 1086],
    ["a wrapper of an order", wrapper(1), 1215],
    // the largest action that is searched, and one above it
    ["a wrapper of 100 orders", wrapper(100), 780],
    ["a wrapper of 500 orders", wrapper(500), 57]
  ]
  for (const [name, body, recoveries] of bodies) {
    it.live(`is a few recoveries, and at most ${recoveries} in all: ${name}`, () =>
      Effect.gen(function*() {
        const { all, turns, verdict } = yield* inspected(body)
        assert.strictEqual(verdict, "unexplained")
        assert.strictEqual(all, recoveries)
        assert.isAtMost(all, limit)
        assert.isAtMost(Math.max(...turns), 25)
      }))
  }
})
