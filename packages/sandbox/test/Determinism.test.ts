import { assert, describe, it } from "@effect/vitest"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import { evmOperations } from "@trigate/domain/evm/EvmProtocol"
import { layer2Operations } from "@trigate/domain/evm/Layer2Operations"
import { infoOperations } from "@trigate/domain/info/InfoOperations"
import { tokenRpcOperations } from "@trigate/domain/tokens/TokenOperations"
import { Layer2 } from "@trigate/evm/Layer2"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import { contracts, tokens, transactions } from "@trigate/sandbox/SandboxExamples"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import * as Seed from "@trigate/sandbox/unstable/Seed"
import { TokenChain } from "@trigate/tokens/TokenChain"
import { Exchange } from "@trigate/trading/Exchange"
import { Info } from "@trigate/trading/Info"
import { TradingEvm } from "@trigate/trading/TradingEvm"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { start } from "./venue.ts"

const window = { coin: "ETH", interval: "5m", startTime: start - 3_600_000 } as const

/** What the chains say, byte for byte, to one call of each kind. */
const bytes = Effect.gen(function*() {
  const info = yield* Info
  const evm = yield* TradingEvm
  const chain = yield* TokenChain
  const layer2 = yield* Layer2
  const surface = "gateway" as const
  const text = (answer: object) => JSON.stringify(answer)
  return {
    spotMeta: (yield* info.relay({
      operation: infoOperations.spotMeta,
      request: undefined,
      body: Encoding.of("{\"type\":\"spotMeta\"}"),
      surface
    })).text,
    candles: (yield* info.relay({
      operation: infoOperations.candleSnapshot,
      request: window,
      body: Encoding.of(JSON.stringify({ type: "candleSnapshot", req: window })),
      surface
    })).text,
    storage: text(
      yield* evm.relay({
        operation: evmOperations.getStorageAt,
        params: Encoding.strict(JSON.stringify([contracts.wrapped, "0x9", "latest"])),
        surface
      })
    ),
    gasPrice: text(yield* evm.relay({ operation: evmOperations.gasPrice, params: Encoding.strict("[]"), surface })),
    bigBlockGasPrice: text(
      yield* evm.relay({ operation: evmOperations.bigBlockGasPrice, params: Encoding.strict("[]"), surface })
    ),
    token: text(
      yield* chain.relay({
        operation: tokenRpcOperations.getTokenData,
        params: Encoding.strict(JSON.stringify({ address: tokens.onchain })),
        surface
      })
    ),
    masterchain: text(
      yield* chain.relay({ operation: tokenRpcOperations.getMasterchainInfo, params: Encoding.strict("{}"), surface })
    ),
    receipt: text(
      yield* layer2.relay({
        operation: layer2Operations.getTransactionReceipt,
        params: Encoding.strict(JSON.stringify([transactions.opStack])),
        surface
      })
    )
  }
})

const under = (seed: string, time = start) =>
  Effect.andThen(TestClock.setTime(time), Effect.provide(bytes, Sandbox.layer({ seed })))

describe("a sandbox", () => {
  it.effect("says the same bytes under the same seed and clock", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* under("one"), yield* under("one"))
    }))

  it.effect("says something else to everything but the tokens, whose contracts are real, under another seed", () =>
    Effect.gen(function*() {
      const one = yield* under("one")
      const two = yield* under("two")
      const { token, ...seeded } = one
      assert.strictEqual(two.token, token)
      for (const [name, text] of Object.entries(seeded)) {
        assert.notStrictEqual(Object.entries(two).find(([other]) => other === name)?.[1], text, name)
      }
    }))

  it.effect("moves with the clock, but for what is state", () =>
    Effect.gen(function*() {
      const now = yield* under("one")
      const later = yield* under("one", start + 120_000)
      for (const name of ["candles", "gasPrice", "bigBlockGasPrice", "masterchain"] as const) {
        assert.notStrictEqual(later[name], now[name], name)
      }
      for (const name of ["spotMeta", "storage"] as const) assert.strictEqual(later[name], now[name], name)
    }))

  it.effect("shares nothing with a second one in the same program", () =>
    Effect.gen(function*() {
      const first = yield* Layer.build(Sandbox.layer({ seed: "one" }))
      const second = yield* Layer.build(Sandbox.layer({ seed: "one" }))
      const on = <A, E>(context: typeof first, effect: Effect.Effect<A, E, Sandbox.Services>) =>
        Effect.provide(effect, context)
      yield* on(first, Effect.flatMap(SandboxState, ({ evm }) => evm.setGasPrices({ small: 5n })))
      const price = Effect.flatMap(TradingEvm, (evm) => evm.gasPrice())
      assert.strictEqual(yield* on(first, price), 5n)
      assert.notStrictEqual(yield* on(second, price), 5n)
    }))

  it.effect("has no candles and no actions on its node surface", () =>
    Effect.gen(function*() {
      const info = yield* Info
      const exchange = yield* Exchange
      const candles = yield* Effect.flip(info.relay({
        operation: infoOperations.candleSnapshot,
        request: window,
        body: Encoding.of("{}"),
        surface: "node"
      }))
      const action = yield* Effect.flip(exchange.relay({ body: Encoding.encode("{}"), surface: "node" }))
      assert.deepStrictEqual([candles._tag, action._tag], ["UnavailableOnNode", "UnavailableOnNode"])
    }).pipe(Effect.provide(Sandbox.layer())))
})

describe("Seed", () => {
  it.effect.prop(
    "values are in range, and the same whenever they are asked for",
    [Schema.String, Schema.String, Schema.Int],
    ([seed, key, index]) =>
      Effect.sync(() => {
        const family = Seed.series(seed, key)
        assert.strictEqual(family, Seed.series(seed, key))
        const fraction = Seed.fraction(family, index)
        assert.isTrue(fraction >= 0 && fraction < 1)
        assert.isTrue(Math.abs(Seed.noise(family, 60, index)) <= 1)
        assert.match(Seed.hex(seed, key, 64), /^0x[0-9a-f]{64}$/u)
      })
  )

  it("spreads evenly and depends on every part of its key", () => {
    const family = Seed.series("trigate", "spread")
    const counts = Array.from({ length: 16 }, () => 0)
    for (let index = 0; index < 16_000; index++) {
      const bucket = Seed.below(family, index, 16)
      counts[bucket] = (counts[bucket] ?? 0) + 1
    }
    for (const count of counts) assert.closeTo(count, 1_000, 150)
    assert.strictEqual(new Set(["a", "b", "ab", "ba"].map((key) => Seed.series("s", key))).size, 4)
    assert.notStrictEqual(Seed.series("a", "b"), Seed.series("ab", ""))
  })
})
