/** Checks market data of the venue: spot metadata, bars, EVM state. */
import { openTimeAt, retainedBars } from "@trigate/domain/candles/Candle"
import * as SpotLookup from "@trigate/domain/info/Market"
import { coins, contracts, keys } from "@trigate/sandbox/SandboxExamples"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { ConformanceCheck } from "./ConformanceCheck.ts"
import { equals, failsWith, holds, succeeds } from "./ConformanceCheck.ts"
import type { ConformanceTarget } from "./ConformanceTarget.ts"

const minute = 60_000
const day = 1_440 * minute

const wrappedName = `0x${"577261707065642048595045".padEnd(62, "0")}18`

/** Returns the checks of the target's `info` and `evm` methods. */
export const checks = ({ evm, info }: ConformanceTarget): ReadonlyArray<ConformanceCheck> => [
  {
    name: "spot pairs and tokens are found by their index, not by their position in the list",
    effect: Effect.gen(function*() {
      const meta = yield* succeeds(info.spotMeta())
      const lookup = SpotLookup.make(meta)
      const hype = Option.flatMap(lookup.pair(107), (pair) => lookup.tokensOf(pair).base)
      yield* equals("the base of pair @107", Option.getOrNull(hype)?.name, "HYPE")
      const pairGap = meta.universe.findIndex(({ index }, position) => index !== position)
      yield* equals("the first gap between pairs", Option.getOrNull(lookup.pair(pairGap)), null)
      const tokenGap = meta.tokens.findIndex(({ index }, position) => index !== position)
      yield* equals("the first gap between tokens", Option.getOrNull(lookup.token(tokenGap)), null)
    })
  },
  ...[coins.perpetual, coins.spotByName, coins.spotByIndex, coins.builder].map((coin) => ({
    name: `${coin} has hourly bars, and the last bar has not closed`,
    effect: Effect.gen(function*() {
      const now = yield* Clock.currentTimeMillis
      const window = { coin, interval: "1h", startTime: now - day } as const
      const { candles, coverage, forming } = yield* succeeds(info.candleSnapshot(window))
      yield* equals("the coverage", coverage, "complete")
      yield* holds("25 bars, or 26 around the turn of an hour", candles.length === 25 || candles.length === 26, candles)
      const opens = candles.map(({ t }) => t)
      yield* equals("the bars' opening times", opens, opens.map((_, index) => (opens[0] ?? 0) + index * 60 * minute))
      yield* equals(
        "the opening time of the bar that has not closed",
        forming?.t,
        openTimeAt("1h", yield* Clock.currentTimeMillis)
      )
    })
  })),
  {
    name: "a window wider than the retained bars is cut to the newest 5000",
    effect: Effect.gen(function*() {
      const { candles, coverage } = yield* succeeds(
        info.candleSnapshot({ coin: coins.perpetual, interval: "1m", startTime: 0 })
      )
      yield* equals("bars", candles.length, retainedBars)
      yield* equals("the coverage", coverage, "truncated")
    })
  },
  {
    name: "a window older than the retained bars is empty",
    effect: Effect.gen(function*() {
      const now = yield* Clock.currentTimeMillis
      const window = {
        coin: coins.perpetual,
        interval: "1m",
        startTime: now - 30 * day,
        endTime: now - 20 * day
      } as const
      const { candles, coverage } = yield* succeeds(info.candleSnapshot(window))
      yield* equals("bars", candles.length, 0)
      yield* equals("the coverage", coverage, "agedOut")
    })
  },
  {
    name: "an unknown coin fails with UnknownAsset, which clients do not retry",
    effect: failsWith(
      info.candleSnapshot({ coin: coins.unknown, interval: "1d", startTime: 0 }),
      ["UnknownAsset"],
      { coin: coins.unknown }
    )
  },
  {
    name: "storage words are read, and are zero at an address without a contract",
    effect: Effect.gen(function*() {
      const word = (address: typeof contracts[keyof typeof contracts]) =>
        succeeds(evm.getStorageAt({ address, slot: "0x0" }))
      yield* equals("slot 0 of the wrapped token", yield* word(contracts.wrapped), wrappedName)
      yield* equals("slot 0 of an address without a contract", yield* word(contracts.none), `0x${"0".repeat(64)}`)
    })
  },
  {
    name: "both gas prices are returned",
    effect: Effect.gen(function*() {
      for (const price of [yield* succeeds(evm.gasPrice()), yield* succeeds(evm.bigBlockGasPrice())]) {
        yield* holds("a gas price between 0.001 and 100 gwei", price > 1_000_000n && price < 100_000_000_000n, price)
      }
    })
  },
  {
    name: "an unknown account uses small blocks",
    effect: Effect.flatMap(
      succeeds(evm.usingBigBlocks({ address: keys.stranger.address })),
      (usesBigBlocks) => equals("eth_usingBigBlocks", usesBigBlocks, false)
    )
  }
]
