/** The state that queries of `POST /info` read, and functions that make their responses. */
import type { OutcomeMeta } from "@trigate/domain/info/Market"
import type { SpotMeta } from "@trigate/domain/info/SpotMeta"
import type { AnyCodec, Operation } from "@trigate/domain/operations/Operation"
import * as UpstreamResponse from "@trigate/domain/operations/UpstreamResponse"
import * as Result from "effect/Result"
import * as StrictDecoder from "../internal/StrictDecoder.ts"
import type { Seed } from "../Seed.ts"
import type { CandleMarket } from "./CandleMarket.ts"
import type { Venue } from "./Venue.ts"
import * as VenueRefusal from "./VenueRefusal.ts"
import type { VenueState } from "./VenueState.ts"

/** The data from which `POST /info` is served. */
export interface InfoState {
  readonly spotMeta: SpotMeta
  /** Coins with candles, by name. */
  readonly markets: ReadonlyMap<string, CandleMarket>
  /** The outcomes that `outcomeMeta` returns. They cannot be traded. */
  readonly outcomeMeta: OutcomeMeta
}

/** The data that a query reads, and the time of the query. */
export interface Listing extends InfoState {
  readonly seed: Seed
  readonly now: number
}

/** The state that a query reads: the listing, the venue's accounts, and the trading state at the time of the query. */
export interface InfoView extends Listing {
  readonly venue: VenueState
  readonly trading: Venue
}

const upstream = "trading-api"

/**
 * Makes the response with the result of a query. If the result is `undefined` because a name is unknown, the response
 * is HTTP 500 `null`, like the venue's.
 */
export const known = (value: unknown): UpstreamResponse.UpstreamResponse =>
  value === undefined
    ? UpstreamResponse.json(upstream, 500, "null")
    : UpstreamResponse.json(upstream, 200, JSON.stringify(value))

/** Makes the response to a query that the venue cannot decode. */
export const wrongShape = (why = ""): UpstreamResponse.UpstreamResponse =>
  UpstreamResponse.plain(upstream, 422, `${VenueRefusal.wrongShape}${why}`)

/** The response to a body that is not JSON. */
export const notJson = UpstreamResponse.plain(upstream, 400, VenueRefusal.notJson)

/** Serves a typed query. `members` are the members of the parsed body except `type`. */
export type QueryHandler = (view: InfoView, members: unknown) => UpstreamResponse.UpstreamResponse

/**
 * Makes the handler of an operation. The handler decodes the request before it responds, and refuses members that the
 * operation does not declare. `accepts` returns whether the sandbox supports a request. Default: all requests are
 * supported.
 */
export const on = <Request extends AnyCodec, Response extends AnyCodec>(
  { name, request }: Operation<string, "read", Request, Response>,
  answer: (view: InfoView, request: Request["Type"]) => Response["Encoded"] | undefined,
  accepts: (request: Request["Type"]) => boolean = () => true
): QueryHandler => {
  const decode = StrictDecoder.makeTransformed(request)
  return (view, members) =>
    Result.match(decode(members), {
      onFailure: (unread) => wrongShape(StrictDecoder.formatUnread(unread, name)),
      onSuccess: (request) => accepts(request) ? known(answer(view, request)) : wrongShape()
    })
}
