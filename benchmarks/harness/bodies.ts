/** What the upstream answers, in recorded shapes, and what asks for it. All of it is ASCII: length is bytes. */
import * as fs from "node:fs"
import * as path from "node:path"
import { root } from "./machine.ts"

const recorded = (file: string): unknown =>
  JSON.parse(fs.readFileSync(path.join(root, "packages/domain/test/fixtures", file), "utf8"))

const fixtures = {
  anvil: recorded("l2-anvil.json") as {
    readonly records: ReadonlyArray<{ readonly body: { readonly result: object } }>
  },
  candles: recorded("candleSnapshot-kPEPE-1h.json") as { readonly response: ReadonlyArray<object> },
  spotMeta: recorded("spotMeta-testnet-full.json") as {
    readonly universe: ReadonlyArray<{ readonly tokens: ReadonlyArray<number> }>
    readonly tokens: ReadonlyArray<{ readonly index: number }>
  }
}

const [beforeHash = "", afterHash = ""] = JSON.stringify({
  ...fixtures.anvil.records[0]?.body.result,
  transactionHash: "<hash>"
}).split("<hash>")

/** A recorded receipt under another hash. */
export const receipt = (hash: string): string => beforeHash + hash + afterHash

/** How a hash begins whose transaction is in no block yet. */
export const pendingPrefix = "0xaaaa"

/** The hash that is answered with 100 MB. */
export const floodHash = `0x${"f".repeat(64)}`

/** What the venue says to an action that it takes. */
export const accepted = "{\"status\":\"ok\",\"response\":{\"type\":\"default\"}}"

const pairs = fixtures.spotMeta.universe.slice(0, 10)
const named = new Set(pairs.flatMap(({ tokens }) => tokens))

/** Ten recorded pairs with their tokens. */
export const spotMeta = JSON.stringify({
  universe: pairs,
  tokens: fixtures.spotMeta.tokens.filter(({ index }) => named.has(index))
})

const hour = 3_600_000

/** The most candles that the venue keeps. */
const count = 5000

/** When the candle that is forming opened. */
const formingCandle = Math.floor(Date.now() / hour) * hour

/** Open time of the oldest of the candles. */
export const firstCandle = formingCandle - (count - 1) * hour

const timesAt = (index: number) => ({
  t: firstCandle + index * hour,
  T: firstCandle + (index + 1) * hour - 1
})

/** How many coins there are besides the first: with that one, more series than the gateway holds bars of. */
const otherCoins = 24

/** The coins of the venue that have candles. Their names are equally long, and so are their answers. */
export const coins: ReadonlyArray<string> = Array.from({ length: 1 + otherCoins }, (_, index) => `COIN${index + 10}`)

/** 5000 bars of a coin up to now, with the prices of the recorded ones in turn. */
const barsOf = (coin: string): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, index) =>
    JSON.stringify({
      // the venue prints the times first, in whatever order they were recorded
      ...timesAt(index),
      ...fixtures.candles.response[index % fixtures.candles.response.length],
      ...timesAt(index),
      s: coin
    }))

const [firstCoin = ""] = coins

/** The longest answer to a candle query. */
export const candles = `[${barsOf(firstCoin).join(",")}]`

const request = /"coin":"(?<coin>\w+)".*"startTime":(?<start>[0-9]+)/u

/** What answers candle queries as the venue does: the bars of the coin that had not closed at the start of the window. */
export const answerCandles = (): (text: string) => Buffer => {
  const answers = new Map(coins.map((coin) => [coin, Buffer.from(`[${barsOf(coin).join(",")}]`)]))
  const newest = new Map(coins.map((coin) => [coin, barsOf(coin).slice(-10)]))
  return (text) => {
    const { coin = "", start } = request.exec(text)?.groups ?? {}
    const index = Math.floor((Number(start) - firstCandle) / hour)
    if (index <= 0) return answers.get(coin) ?? Buffer.from("null")
    const bars = newest.get(coin)?.slice(Math.min(-1, index - count)) ?? []
    if (count - index > 10) throw new Error(`No such window is asked for: ${text}`)
    return Buffer.from(`[${bars.join(",")}]`)
  }
}
