import { assert, describe, it } from "@effect/vitest"
import type { Candle } from "@trigate/domain/candles/Candle"
import { OutcomeUnknown } from "@trigate/domain/errors/GatewayError"
import * as UpstreamResponse from "@trigate/domain/operations/Operation"
import * as TonAddress from "@trigate/domain/tokens/TokenData"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import { keys, tokens, traderStake } from "@trigate/sandbox/SandboxExamples"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import * as TokenChainMemory from "@trigate/tokens/TokenChainMemory"
import * as ExchangeMemory from "@trigate/trading/ExchangeMemory"
import * as Info from "@trigate/trading/Info"
import { Effect, Fiber, Layer, Ref, Result } from "effect"
import * as TestClock from "effect/testing/TestClock"
import * as Signer from "../src/Signer.ts"
import * as Treasury from "../src/Treasury.ts"

const now = Date.UTC(2026, 0, 1, 12)
const validator = keys.validator.address
const order = { validator, wei: 9_007_199_254_740_993n, floor: "20.5" }

/** A signature that nobody checks: chains in memory take what the tests give them. */
const signer = Layer.succeed(
  Signer.Signer,
  Signer.Signer.of({
    sign: (nonce, action) => Effect.succeed({ nonce, action, signature: { r: "0x1", s: "0x2", v: 27 } })
  })
)

/** The treasury over empty chains, and the state to fill them. */
const memory = () =>
  Treasury.layer.pipe(
    Layer.provide(signer),
    Layer.provideMerge(Layer.mergeAll(ExchangeMemory.layer(), Info.layerMemory(), TokenChainMemory.layer()))
  )

const priceIs = Effect.fn(function*(price: string) {
  yield* TestClock.setTime(now)
  const { candles } = yield* Info.InfoState
  const t = now - 120_000
  const bar: Candle = { t, T: t + 59_999, s: "HYPE", i: "1m", o: price, c: price, h: price, l: price, v: "1", n: 1 }
  yield* Ref.set(candles, new Map([["HYPE", [bar]]]))
})

/** The bodies that would have left, as text. */
const sent = Effect.gen(function*() {
  const { received } = yield* ExchangeMemory.ExchangeState
  return (yield* Ref.get(received)).map((body) => new TextDecoder().decode(body))
})

const delegation =
  `{"action":{"type":"tokenDelegate","signatureChainId":"0x66eee","hyperliquidChain":"Mainnet","validator":"${validator}",` +
  `"wei":9007199254740993,"isUndelegate":false,"nonce":${now}},"nonce":${now},"signature":{"r":"0x1","s":"0x2","v":27}}`

describe("a treasury over memory layers", () => {
  it.effect("stakes at the floor, with every digit of the amount", () =>
    Effect.gen(function*() {
      yield* priceIs("20.5")
      const treasury = yield* Treasury.Treasury
      assert.strictEqual(yield* treasury.stake(order), "staked")
      assert.deepStrictEqual(yield* sent, [delegation])
    }).pipe(Effect.provide(memory())))

  it.effect("sends nothing below the floor, nor without a price", () =>
    Effect.gen(function*() {
      yield* priceIs("20.4999999999")
      const treasury = yield* Treasury.Treasury
      assert.strictEqual(yield* treasury.stake(order), "postponed")
      yield* TestClock.adjust("2 hours")
      assert.strictEqual((yield* Effect.flip(treasury.stake(order)))._tag, "NoPrice")
      assert.deepStrictEqual(yield* sent, [])
    }).pipe(Effect.provide(memory())))

  it.effect("sends the identical bytes again when an outcome is unknown, and knows then", () =>
    Effect.gen(function*() {
      yield* priceIs("21")
      const { response } = yield* ExchangeMemory.ExchangeState
      const treasury = yield* Treasury.Treasury
      yield* Ref.set(response, Effect.fail(new OutcomeUnknown({ upstream: "trading-api", advice: "…" })))
      const staking = yield* Effect.forkChild(treasury.stake(order))
      yield* TestClock.adjust("4999 millis")
      assert.deepStrictEqual(yield* sent, [delegation])
      const duplicate = `{"status":"err","response":"Invalid nonce: duplicate nonce ${now}"}`
      yield* Ref.set(response, Effect.succeed(UpstreamResponse.json("trading-api", 200, duplicate)))
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(yield* Fiber.join(staking), "staked")
      assert.deepStrictEqual(yield* sent, [delegation, delegation])
    }).pipe(Effect.provide(memory())))

  it.effect("prints a supply in the token's own decimals", () =>
    Effect.gen(function*() {
      const { jettons } = yield* TokenChainMemory.TokenChainState
      const address = Result.getOrThrow(TonAddress.check(tokens.onchain))
      yield* Ref.set(jettons, [{
        address,
        symbol: "TRIG",
        decimals: 9,
        totalSupply: "1000000000000000000001",
        mintable: true,
        burnable: true,
        metadata: "onchain"
      }])
      const treasury = yield* Treasury.Treasury
      assert.strictEqual(yield* treasury.supply(address), "1000000000000.000000001 TRIG")
      assert.strictEqual((yield* Effect.flip(treasury.supply(tokens.wallet)))._tag, "TokenNotFound")
      assert.strictEqual((yield* Effect.flip(treasury.supply(tokens.invalid)))._tag, "InvalidAddress")
    }).pipe(Effect.provide(memory())))
})

describe("a treasury over the sandbox, which checks signatures, nonces and balances", () => {
  const sandbox = (key: (typeof keys)[keyof typeof keys]) =>
    Treasury.layer.pipe(Layer.provide(Signer.layerTestKey(key)), Layer.provideMerge(Sandbox.layer()))

  it.effect("moves the trader's stake", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      const treasury = yield* Treasury.Treasury
      assert.strictEqual(yield* treasury.stake({ validator, wei: 100_000_000n, floor: "0" }), "staked")
      const { venue } = yield* SandboxState
      const { accounts, validators } = yield* Ref.get(venue.state)
      assert.strictEqual(accounts.get(keys.trader.address)?.stake, traderStake - 100_000_000n)
      assert.strictEqual(validators.get(validator)?.stake, 100_000_000n)
    }).pipe(Effect.provide(sandbox(keys.trader))))

  it.effect("is refused in the venue's words with another key", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(now)
      const treasury = yield* Treasury.Treasury
      const error = yield* Effect.flip(treasury.stake({ validator, wei: 1n, floor: "0" }))
      assert.strictEqual(error._tag, "ActionRejected")
      assert.deepInclude(error, { reason: "UnknownSigner", signer: keys.stranger.address })
    }).pipe(Effect.provide(sandbox(keys.stranger))))
})
