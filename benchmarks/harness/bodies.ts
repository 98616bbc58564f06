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
export const formingCandle = Math.floor(Date.now() / hour) * hour

/** Open time of the oldest of the candles. */
const firstCandle = formingCandle - (count - 1) * hour

const timesAt = (index: number) => ({
  t: firstCandle + index * hour,
  T: firstCandle + (index + 1) * hour - 1
})

/** 5000 bars up to now, with the prices of the recorded ones in turn. */
export const candles = JSON.stringify(Array.from({ length: count }, (_, index) => ({
  // the venue prints the times first, in whatever order they were recorded
  ...timesAt(index),
  ...fixtures.candles.response[index % fixtures.candles.response.length],
  ...timesAt(index)
})))
