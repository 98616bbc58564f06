import * as Gas from "@trigate/domain/Gas"
import type { Address, Hash } from "@trigate/domain/Hex"
import * as SpotLookup from "@trigate/domain/SpotLookup"
import { Layer2 } from "@trigate/layer2/Layer2"
import { Info } from "@trigate/trading/Info"
import { TradingEvm } from "@trigate/trading/TradingEvm"
import { BigDecimal, Clock, Effect, Option, Order, Stream } from "effect"

const day = 86_400_000
const higher = Order.max(BigDecimal.Order)
const lower = Order.min(BigDecimal.Order)

/** Summarises the hourly bars of some days, however many requests that takes. */
export const bars = Effect.fn("Report.bars")(function*(coin: string, days: number) {
  const info = yield* Info
  const now = yield* Clock.currentTimeMillis
  const stretches = info.candles({ coin, interval: "1h", startTime: now - days * day })
  const candles = yield* Stream.runCollect(Stream.flatMap(stretches, (stretch) => Stream.fromIterable(stretch.candles)))
  const [first] = candles
  if (first === undefined) return `${coin}: no bars`
  // prices are decimal strings: they never pass through a double
  const highest = candles.map(({ h }) => BigDecimal.fromStringUnsafe(h)).reduce(higher)
  const lowest = candles.map(({ l }) => BigDecimal.fromStringUnsafe(l)).reduce(lower)
  const volume = BigDecimal.sumAll(candles.map(({ v }) => BigDecimal.fromStringUnsafe(v)))
  const [low, high, traded] = [lowest, highest, volume].map((value) => BigDecimal.format(value))
  return `${coin}: ${candles.length} bars, from ${low} to ${high}, ${traded} traded`
})

/** Names the two tokens of every pair of a name; a listed pair may name a token that is not listed. */
export const pairs = Effect.fn("Report.pairs")(function*(name: string) {
  const info = yield* Info
  const lookup = SpotLookup.make(yield* info.spotMeta())
  const nameOf = (token: Option.Option<{ readonly name: string }>) =>
    Option.match(token, { onNone: () => "a token that is not listed", onSome: ({ name }) => name })
  return lookup.pairsByName(name).map((pair) => {
    const { base, quote } = lookup.tokensOf(pair)
    return `${pair.name} (@${pair.index}): ${nameOf(base)} for ${nameOf(quote)}`
  })
})

/** What a transaction of an account costs at most: the price depends on whether the account uses big blocks. */
export const cost = Effect.fn("Report.cost")(function*(address: Address) {
  const evm = yield* TradingEvm
  const price = yield* evm.gasPriceFor({ address })
  const most = Gas.cost({ gasPrice: price, gasLimit: 21_000n })
  return `a transfer of ${address}: ${Gas.formatGwei(price)} gwei, at most ${Gas.formatEther(most)} ether`
})

/** Waits until a transaction is in a block; says so when it is not within the deadline. */
export const receipt = Effect.fn("Report.receipt")(function*(hash: Hash) {
  const layer2 = yield* Layer2
  return yield* layer2.waitForReceipt({ hash, deadline: "30 seconds" }).pipe(
    Effect.map(({ blockNumber, status }) => `${hash}: ${status} in block ${blockNumber}`),
    Effect.catchTag("ReceiptTimeout", ({ waited }) => Effect.succeed(`${hash}: no receipt after ${waited} ms`))
  )
})
