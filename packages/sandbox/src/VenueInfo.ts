/** The venue's `POST /info`, with the answers of the real venue to what it cannot answer. */
import { infoOperations } from "@trigate/domain/InfoOperations"
import * as JsonText from "@trigate/domain/JsonText"
import type { SpotMeta } from "@trigate/domain/SpotMeta"
import * as UpstreamResponse from "@trigate/domain/UpstreamResponse"
import * as Utf8 from "@trigate/domain/Utf8"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as CandleFeed from "./CandleFeed.ts"
import type { CandleMarket } from "./CandleMarket.ts"
import type { Seed } from "./Seed.ts"
import * as VenueListing from "./VenueListing.ts"
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

const dex = Schema.optionalKey(Schema.NullOr(Schema.String))

/** The undocumented queries that the markets can answer. */
const PassthroughRead = Schema.Union([
  Schema.Struct({ type: Schema.Literals(["meta", "metaAndAssetCtxs", "allMids"]), dex }),
  Schema.Struct({ type: Schema.Literals(["spotMetaAndAssetCtxs", "perpDexs", "exchangeStatus"]) }),
  // prices have five significant digits here, so that a book gathered by fewer would be another one
  Schema.Struct({
    type: Schema.Literal("l2Book"),
    coin: Schema.String,
    nSigFigs: Schema.optionalKey(Schema.NullOr(Schema.Literal(5))),
    mantissa: Schema.optionalKey(Schema.Null)
  })
])

const decodePassthrough = Schema.decodeUnknownOption(PassthroughRead)

const json = (value: unknown): UpstreamResponse.UpstreamResponse =>
  UpstreamResponse.json(upstream, 200, JSON.stringify(value))

const nothing = UpstreamResponse.json(upstream, 500, "null")

const hasType = Schema.decodeUnknownOption(Schema.Struct({ type: Schema.String }))

const own = new Set<string>([
  "spotMeta",
  "candleSnapshot",
  ...PassthroughRead.members.flatMap(({ fields }) =>
    "literals" in fields.type ? fields.type.literals : [fields.type.literal]
  )
])

/** The venue's words; of a type that is known to it and not here they say that. */
const wrongShape = (query: unknown): UpstreamResponse.UpstreamResponse => {
  const type = Option.match(hasType(query), { onNone: () => undefined, onSome: (named) => named.type })
  const why = type === undefined || own.has(type) ? "" : `: the sandbox has no answer to ${JSON.stringify(type)}`
  return UpstreamResponse.plain(upstream, 422, VenueRefusal.wrongShape + why)
}

const known = (value: unknown): UpstreamResponse.UpstreamResponse => value === undefined ? nothing : json(value)

const passthroughAnswer = (
  listing: VenueListing.Listing,
  read: typeof PassthroughRead.Type
): UpstreamResponse.UpstreamResponse => {
  switch (read.type) {
    case "meta":
      return known(VenueListing.meta(listing, read.dex ?? ""))
    case "metaAndAssetCtxs":
      return known(VenueListing.metaAndContexts(listing, read.dex ?? ""))
    case "allMids":
      return json(VenueListing.allMids(listing, read.dex ?? ""))
    case "spotMetaAndAssetCtxs":
      return json(VenueListing.spotMetaAndContexts(listing))
    case "perpDexs":
      return json(VenueListing.perpDexs(listing))
    case "exchangeStatus":
      return json({ time: listing.now, specialStatuses: null })
    case "l2Book":
      return json(VenueListing.l2Book(listing, read.coin))
  }
}

/**
 * Answers a query at the instant `now`.
 *
 * A coin or a dex that does not trade here is HTTP 500 `null`, a book of one `null`; a query of another type or shape is
 * HTTP 422, a body that is no JSON HTTP 400.
 */
export const answer = (
  seed: Seed,
  state: InfoState,
  body: Uint8Array,
  now: number
): UpstreamResponse.UpstreamResponse => {
  const parsed = Option.flatMap(Utf8.decode(body), (text) => Result.getSuccess(JsonText.parse(text)))
  if (Option.isNone(parsed)) return UpstreamResponse.plain(upstream, 400, VenueRefusal.notJson)
  if (Option.isSome(decodeSpotMeta(parsed.value))) return json(state.spotMeta)
  const passthrough = decodePassthrough(parsed.value)
  if (Option.isSome(passthrough)) return passthroughAnswer({ seed, ...state, now }, passthrough.value)
  return Option.match(decodeCandles(parsed.value), {
    onNone: () => wrongShape(parsed.value),
    onSome: (window) => {
      const market = state.markets.get(window.coin)
      return market === undefined ? nothing : json(CandleFeed.bars(seed, market, window, now))
    }
  })
}
