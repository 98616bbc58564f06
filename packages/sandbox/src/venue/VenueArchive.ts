/** Candle history of the sandbox: every closed bar since the listing of a coin, as if the bars had been recorded. */
import { page } from "@trigate/archive/CandleArchive"
import { ExportedArchive, type Source } from "@trigate/archive/CandleFiles"
import type { Series } from "@trigate/domain/candles/Candle"
import { barAt, CandleInterval, countBars, openTime, rangesWithin, retainedBars } from "@trigate/domain/candles/Candle"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import { SandboxState } from "../SandboxState.ts"
import { bars as barsWithTrades } from "./AccountReads.ts"
import { bars } from "./CandleBars.ts"
import * as Outcomes from "./Outcomes.ts"
import { withDeployed } from "./Venue.ts"

const make = Effect.gen(function*() {
  const { info, seed, trading } = yield* SandboxState

  /**
   * Returns the market of a coin, and the numbers of the bars that have closed since the coin was listed, as a range.
   */
  const findMarket = Effect.fnUntraced(function*({ coin, interval }: Series) {
    const state = yield* Ref.get(info.state)
    const now = yield* trading.now
    const venue = trading.at(state, now)
    const market = withDeployed(state, venue.state).markets.get(coin) ?? Outcomes.findMarket(venue, coin)
    const endsAt = market?.outcome?.endsAt ?? now
    const closed = endsAt < now ? barAt(interval, endsAt - 1) : barAt(interval, now) - 1
    const first = market === undefined ? closed + 1 : barAt(interval, market.listedAt)
    return { market, venue, known: first > closed ? [] : [{ from: first, to: closed }] }
  })

  const read: Source["read"] = Effect.fnUntraced(function*(series, range) {
    const { known, market, venue } = yield* findMarket(series)
    const { interval } = series
    const held = rangesWithin(known, range)
    const found = held.flatMap(({ from, to }) =>
      Array.from({ length: Math.ceil((to - from + 1) / retainedBars) }, (_, page) => from + page * retainedBars)
        .flatMap(
          (start) => {
            const end = Math.min(to, start + retainedBars - 1)
            const window = { ...series, startTime: openTime(interval, start), endTime: openTime(interval, end) }
            if (market === undefined) return []
            const closed = openTime(interval, end + 1)
            if (market.outcome !== undefined) return Outcomes.bars(venue, market, window, closed)
            return market.oracle === undefined
              ? bars(seed, market, window, closed)
              : barsWithTrades(venue, market, window, closed)
          }
        )
    )
    return { bars: found, known: held }
  })

  return {
    read,
    known: (series, range) => Effect.map(findMarket(series), ({ known }) => rangesWithin(known, range)),
    list: Effect.fnUntraced(function*(after) {
      const state = yield* Ref.get(info.state)
      const venue = trading.at(state, yield* trading.now)
      const { outcomes } = venue
      const sides = [...outcomes.active.values()].flatMap((outcome) => outcome.sides)
      const all = [...withDeployed(state, venue.state).markets.keys(), ...sides.map(({ coin }) => coin)].flatMap((
        coin
      ) => CandleInterval.literals.map((interval) => ({ coin, interval })))
      const found = yield* Effect.forEach(
        page(all, after),
        (series) =>
          Effect.map(findMarket(series), ({ known }) => ({ ...series, known, bars: countBars(known), bytes: 0 }))
      )
      return found.filter(({ known }) => known.length > 0)
    })
  } satisfies Source
})

/**
 * Provides the sandbox's candle history as `ExportedArchive`, which a gateway's export routes read.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { SandboxState, VenueArchive } from "@trigate/sandbox"
 * import { Layer } from "effect"
 *
 * export const exported = Layer.provide(VenueArchive.layer, SandboxState.layer())
 * ```
 */
export const layer: Layer.Layer<ExportedArchive, never, SandboxState> = Layer.effect(ExportedArchive, make)
