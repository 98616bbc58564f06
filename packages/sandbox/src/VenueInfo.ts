/** The venue's `POST /info`: `spotMeta` and `candleSnapshot`, with the answers of the real venue to what it cannot answer. */
import { infoOperations } from "@trigate/domain/InfoOperations"
import * as JsonText from "@trigate/domain/JsonText"
import * as Relayed from "@trigate/domain/Relayed"
import type { SpotMeta } from "@trigate/domain/SpotMeta"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as CandleFeed from "./CandleFeed.ts"
import type { CandleMarket } from "./CandleMarket.ts"
import type { Seed } from "./Seed.ts"
import * as VenueRefusal from "./VenueRefusal.ts"

/** What the venue can be asked about. */
export interface InfoState {
  readonly spotMeta: SpotMeta
  /** Coins with candles, by name. */
  readonly markets: ReadonlyMap<string, CandleMarket>
}

const upstream = "trading-api"

const decodeSpotMeta = Schema.decodeUnknownOption(infoOperations.spotMeta.request)
const decodeCandles = Schema.decodeUnknownOption(infoOperations.candleSnapshot.request)

const json = (value: unknown): Relayed.Relayed => Relayed.json(upstream, 200, JSON.stringify(value))

const unknownCoin = Relayed.json(upstream, 500, "null")

/**
 * Answers a query at the instant `now`.
 *
 * A coin that does not trade here is HTTP 500 `null`; a query of another type or shape is HTTP 422, a body that is no JSON
 * HTTP 400.
 */
export const answer = (seed: Seed, state: InfoState, body: Uint8Array, now: number): Relayed.Relayed => {
  const parsed = Option.flatMap(Relayed.utf8(body), (text) => Result.getSuccess(JsonText.parse(text)))
  if (Option.isNone(parsed)) return Relayed.plain(upstream, 400, VenueRefusal.notJson)
  if (Option.isSome(decodeSpotMeta(parsed.value))) return json(state.spotMeta)
  return Option.match(decodeCandles(parsed.value), {
    onNone: () => Relayed.plain(upstream, 422, VenueRefusal.wrongShape),
    onSome: (window) => {
      const market = state.markets.get(window.coin)
      return market === undefined ? unknownCoin : json(CandleFeed.bars(seed, market, window, now))
    }
  })
}
