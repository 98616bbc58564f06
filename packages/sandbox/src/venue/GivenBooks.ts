/** Sets the levels of a book for tests, in place of the synthetic orders that are generated each second. */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Asset } from "./Assets.ts"
import { readGivenPx } from "./Assets.ts"
import * as Decimals from "./Decimals.ts"
import { never } from "./Quotes.ts"
import type { Quote } from "./TradingState.ts"
import { ensureMarket, withoutPrices } from "./TradingState.ts"
import type { Venue } from "./Venue.ts"
import { emit } from "./Venue.ts"

/** A price level, as decimal text. */
export interface GivenLevel {
  readonly px: string
  readonly sz: string
}

/** The levels of a book, in any order. A side can be empty. */
export interface GivenBook {
  readonly bids: ReadonlyArray<GivenLevel>
  readonly asks: ReadonlyArray<GivenLevel>
}

/** A book that a coin cannot have; `path` leads to the invalid value. Nothing was changed. */
export class InvalidBook extends Schema.TaggedError<InvalidBook>()("InvalidBook", {
  path: Schema.Array(Schema.Union([Schema.String, Schema.Natural])),
  message: Schema.String
}) {}

const invalid = (message: string, ...path: ReadonlyArray<string | number>) =>
  Result.fail(new InvalidBook({ path, message }))

const readLevel = (asset: Asset, { px, sz }: GivenLevel, ...path: ReadonlyArray<string | number>) => {
  const ticks = readGivenPx(asset, px)
  if (Result.isFailure(ticks)) return invalid(ticks.failure, ...path, "px")
  const lots = Decimals.parse(sz, asset.szDecimals)
  return lots === undefined || lots <= 0n
    ? invalid(`Expected a size above 0 with at most ${asset.szDecimals} decimals`, ...path, "sz")
    : Result.succeed({ px: ticks.success, sz: lots, n: 1 })
}

/** Replaces the synthetic orders of a coin by the levels of a book; by generated orders if `book` is `undefined`. */
export const giveBook = (
  venue: Venue,
  coin: string,
  book: GivenBook | undefined
): Result.Result<void, InvalidBook> =>
  Result.gen(function*() {
    const asset = venue.listing.byCoin.get(coin)
    if (asset === undefined) return yield* invalid(`The sandbox does not list ${coin}`, "coin")
    const market = ensureMarket(venue.state, coin)
    if (book === undefined) ({ quotes: market.quotes } = withoutPrices())
    else {
      const bids: Array<Quote> = []
      const asks: Array<Quote> = []
      for (const [index, level] of book.bids.entries()) bids.push(yield* readLevel(asset, level, "bids", index))
      for (const [index, level] of book.asks.entries()) asks.push(yield* readLevel(asset, level, "asks", index))
      bids.sort((a, b) => Number(b.px - a.px))
      asks.sort((a, b) => Number(a.px - b.px))
      const [bid] = bids
      const [ask] = asks
      if (bid !== undefined && ask !== undefined && ask.px <= bid.px) {
        return yield* invalid("Expected asks above the bids", "asks")
      }
      market.quotes = { second: never, bids, asks }
    }
    emit(venue, { kind: "book", coin })
  })
