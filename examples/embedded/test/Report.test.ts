import { assert, describe, it } from "@effect/vitest"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import { coins, keys, transactions } from "@trigate/sandbox/SandboxExamples"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import * as GatewayServer from "@trigate/server/GatewayServer"
import * as Settings from "@trigate/server/Settings"
import { ConfigProvider, Context, Effect, Fiber, Layer } from "effect"
import { formatAddress, HttpServer } from "effect/http/HttpServer"
import * as TestClock from "effect/testing/TestClock"
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import * as Report from "../src/Report.ts"

const main = fileURLToPath(new URL("../src/main.ts", import.meta.url))

/** A gateway with its sandbox, on a free port. */
const gateway = Effect.gen(function*() {
  const settings = yield* Settings.load.pipe(Effect.provideService(
    ConfigProvider.ConfigProvider,
    ConfigProvider.fromUnknown({ TRIGATE_PORT: "0", TRIGATE_ACCESS_LOG: "off" })
  ))
  return formatAddress(Context.get(yield* Layer.build(GatewayServer.layer(settings)), HttpServer).address)
})

describe("main.ts", () => {
  it.live("reports from the upstreams of the environment", () =>
    Effect.gen(function*() {
      const url = yield* gateway
      const { stdout } = yield* Effect.promise(() =>
        promisify(execFile)(process.execPath, [main], {
          env: {
            ...process.env,
            TRIGATE_TRADING_API_URL: url,
            TRIGATE_TRADING_NODE_URL: `${url}/any-key`,
            TRIGATE_LAYER2_URL: `${url}/any-key`
          }
        })
      )
      const [bars, pair, cost, receipt, ...more] = stdout.trim().split("\n")
      assert.match(bars ?? "", /^BTC: 72[01] bars, from [0-9.]+ to [0-9.]+, [0-9.]+ traded$/u)
      assert.strictEqual(pair, "PURR/USDC (@0): PURR for USDC")
      assert.match(cost ?? "", /^a transfer of 0xf39f\w{36}: [0-9.]+ gwei, at most 0\.[0-9]+ ether$/u)
      assert.match(receipt ?? "", /^0xffbd\w{60}: success in block [0-9]+$/u)
      assert.deepStrictEqual(more, [])
    }))
})

describe("the report, over chains in memory", () => {
  const start = Date.UTC(2026, 0, 1, 12, 30)

  it.effect("counts the bars of the days that are asked for", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(start)
      assert.match(yield* Report.bars(coins.perpetual, 2), /^BTC: 49 bars, /u)
      assert.strictEqual((yield* Effect.flip(Report.bars(coins.unknown, 2)))._tag, "UnknownAsset")
    }).pipe(Effect.provide(Sandbox.layer())))

  it.effect("prices a transfer by the blocks that the account has chosen", () =>
    Effect.gen(function*() {
      const { evm, venue } = yield* SandboxState
      yield* evm.setGasPrices({ small: 100_000_000n, big: 1_500_000_000n })
      const { address } = keys.trader
      assert.strictEqual(yield* Report.cost(address), `a transfer of ${address}: 0.1 gwei, at most 0.0000021 ether`)
      yield* venue.setBigBlocks(address, true)
      assert.strictEqual(yield* Report.cost(address), `a transfer of ${address}: 1.5 gwei, at most 0.0000315 ether`)
    }).pipe(Effect.provide(Sandbox.layer())))

  it.effect("waits for a transaction until it is in a block, and not for ever", () =>
    Effect.gen(function*() {
      const pending = yield* Effect.forkChild(Report.receipt(transactions.pending))
      const unknown = yield* Effect.forkChild(Report.receipt(transactions.unknown))
      yield* TestClock.adjust("31 seconds")
      assert.match(yield* Fiber.join(pending), /: success in block [0-9]+$/u)
      assert.match(yield* Fiber.join(unknown), /: no receipt after 30000 ms$/u)
    }).pipe(Effect.provide(Sandbox.layer())))
})
