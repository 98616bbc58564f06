/** `@nktkas/hyperliquid` over its own HTTP transport against a gateway process: only the base URL is changed. */
import { assert, describe, it } from "@effect/vitest"
import { ApiRequestError, ExchangeClient, HttpRequestError, HttpTransport, InfoClient } from "@nktkas/hyperliquid"
import type { TestKey } from "@trigate/sandbox/SandboxExamples"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { privateKeyToAccount } from "viem/accounts"
import { rejection } from "./rejection.ts"
import { session } from "./session.ts"

const client = "@nktkas/hyperliquid 0.33.3"

const hour = 3_600_000

const done = { status: "ok", response: { type: "default" } }

const wallet = ({ privateKey }: TestKey) => privateKeyToAccount(privateKey)

/** The library's clients over a gateway that has the sandbox behind it. */
const connected = (name: string, environment = {}) =>
  Effect.map(session({ name: `hyperliquid/${name}`, client, environment }), (url) => {
    const transport = new HttpTransport({ apiUrl: url })
    return {
      info: new InfoClient({ transport }),
      by: (key: TestKey) => new ExchangeClient({ transport, wallet: wallet(key) }),
      together: new ExchangeClient({
        transport,
        multiSigUser: keys.multiSigUser.address,
        signers: [wallet(keys.leader), wallet(keys.cosigner)]
      })
    }
  })

const inTurn = (calls: ReadonlyArray<() => Promise<unknown>>) => Effect.forEach(calls, (call) => Effect.promise(call))

/** What the venue said no with, as the library tells it. */
const venueRefusal = (call: () => Promise<unknown>) =>
  Effect.map(rejection(call), (error) => {
    assert.instanceOf(error, ApiRequestError)
    return error.response
  })

/** Status and body of an answer that the library does not take for one of the venue's. */
const httpRefusal = Effect.fnUntraced(function*(call: () => Promise<unknown>) {
  const error = yield* rejection(call)
  assert.instanceOf(error, HttpRequestError)
  return { status: error.response?.status, message: error.message }
})

describe("@nktkas/hyperliquid", () => {
  it.live("reads spot metadata", () =>
    Effect.gen(function*() {
      const { info } = yield* connected("spot-meta")
      const { tokens, universe } = yield* Effect.promise(() => info.spotMeta())
      assert.deepStrictEqual(tokens[0], {
        name: "USDC",
        szDecimals: 8,
        weiDecimals: 8,
        index: 0,
        tokenId: "0x6d1e7cde53ba9467b783cb7c530ce054",
        isCanonical: true,
        evmContract: null,
        fullName: null,
        deployerTradingFeeShare: "0.0"
      })
      assert.strictEqual(universe[0]?.name, "PURR/USDC")
    }))

  it.live("reads the candles of a window", () =>
    Effect.gen(function*() {
      const { info } = yield* connected("candles")
      const endTime = Math.floor((yield* Clock.currentTimeMillis) / hour) * hour - 1
      const startTime = endTime + 1 - 3 * hour
      const candles = yield* Effect.promise(() =>
        info.candleSnapshot({ coin: "BTC", interval: "1h", startTime, endTime })
      )
      assert.deepStrictEqual(
        candles.map(({ T, i, s, t }) => ({ T, i, s, t })),
        [0, 1, 2].map((bar) => ({
          t: startTime + bar * hour,
          T: startTime + (bar + 1) * hour - 1,
          s: "BTC",
          i: "1h"
        }))
      )
    }))

  it.live("is told of an unknown coin, and of an unknown type in the venue's own words", () =>
    Effect.gen(function*() {
      const { info } = yield* connected("refused-reads")
      // the library has no method for it any more
      const unsupported = { type: "alignedQuoteTokenInfo", token: 1 }
      const coin = yield* httpRefusal(() => info.candleSnapshot({ coin: "NOPE", interval: "1h", startTime: 1 }))
      assert.strictEqual(coin.status, 404)
      assert.include(coin.message, `"_tag":"UnknownAsset","coin":"NOPE"`)
      assert.deepStrictEqual(yield* httpRefusal(() => info.config_.transport.request("info", unsupported)), {
        status: 422,
        message: "422 Unprocessable Entity - Failed to deserialize the JSON body into the target type: " +
          "the sandbox does not support \"alignedQuoteTokenInfo\" (quote tokens, which the venue no longer serves), see docs/sandbox.md#what-it-does-not-support"
      })
    }))

  it.live("delegates, switches the block size, and frees a validator", () =>
    Effect.gen(function*() {
      const { by } = yield* connected("actions")
      const delegation = { validator: keys.validator.address, wei: 100_000 }
      const trader = by(keys.trader)
      const answers = yield* inTurn([
        () => trader.tokenDelegate({ ...delegation, isUndelegate: false }),
        () => trader.evmUserModify({ usingBigBlocks: true }),
        () => by(keys.agent).evmUserModify({ usingBigBlocks: false }),
        () => by(keys.jailedValidator).cSignerAction({ unjailSelf: null })
      ])
      assert.deepStrictEqual(answers, [done, done, done, done])
    }))

  it.live("acts for a multi-sig account, by a signature over an action and by one over typed data", () =>
    Effect.gen(function*() {
      const { together } = yield* connected("multi-sig")
      const answers = yield* inTurn([
        () => together.evmUserModify({ usingBigBlocks: true }),
        () => together.tokenDelegate({ validator: keys.validator.address, wei: 1, isUndelegate: false })
      ])
      assert.deepStrictEqual(answers, [done, done])
    }))

  it.live("is told what the venue refuses", () =>
    Effect.gen(function*() {
      const { by } = yield* connected("refused-actions")
      const validator = keys.validator.address
      assert.deepStrictEqual<unknown>(
        yield* venueRefusal(() => by(keys.trader).tokenDelegate({ validator, wei: 10 ** 15, isUndelegate: false })),
        { status: "err", response: "Insufficient stake" }
      )
      assert.deepStrictEqual<unknown>(
        yield* venueRefusal(() => by(keys.stranger).evmUserModify({ usingBigBlocks: true })),
        { status: "err", response: `User or API Wallet ${keys.stranger.address} does not exist.` }
      )
    }))

  it.live("is told which actions the gateway does not relay", () =>
    Effect.gen(function*() {
      const { by } = yield* connected("unsupported-actions", { TRIGATE_RELAY_ACTIONS: "multiSig" })
      const { message, status } = yield* httpRefusal(() =>
        by(keys.trader).usdSend({ destination: keys.validator.address, amount: "1" })
      )
      assert.strictEqual(status, 422)
      assert.include(message, `"_tag":"UnsupportedAction","actionType":"usdSend"`)
    }))
})
