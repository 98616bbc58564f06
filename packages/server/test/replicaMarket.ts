/** The market that replicas record in tests: that of the sandbox, of which the venue keeps 5000 bars. */
import type { Candle, CandleWindowRequest } from "@trigate/domain/candles/Candle"
import { defaultSeed } from "@trigate/sandbox/unstable/Seed"
import * as CandleMarket from "@trigate/sandbox/unstable/venue/Assets"
import * as CandleBars from "@trigate/sandbox/unstable/venue/CandleBars"

/** Milliseconds of the market that pass in one. */
export const speed = 600

/** The time of the market when the replicas begin. */
export const start = Date.UTC(2026, 8, 1)

/** What the venue has of a window at some time. */
export const bars = (request: CandleWindowRequest, now: number): ReadonlyArray<Candle> => {
  const market = CandleMarket.markets.find(({ coin }) => coin === request.coin)
  return market === undefined ? [] : CandleBars.bars(defaultSeed, market, request, now)
}
