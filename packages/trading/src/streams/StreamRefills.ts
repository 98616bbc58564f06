/** What fills the holes that a lost connection leaves: queries of `POST /info`, as frames of the stream. */
import { CurrentCaller } from "@trigate/domain/Caller"
import type { Caller } from "@trigate/domain/Caller"
import * as Json from "@trigate/domain/encoding/Json"
import { unwrapReason } from "@trigate/domain/errors/GatewayError"
import * as InfoProtocol from "@trigate/domain/info/InfoProtocol"
import { rowsOfOrders, rowsOfTime } from "@trigate/domain/info/InfoQueryTable"
import { briefOrder } from "@trigate/domain/info/Order"
import * as Subscription from "@trigate/domain/streams/Subscription"
import { Freshness } from "@trigate/upstream/cache/ResponseCache"
import { IsRefresh } from "@trigate/upstream/limits/RateLimiter"
import type { TopicRefill } from "@trigate/upstream/streams/Topic"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import type { Queries } from "./CoinCatalog.ts"
import * as VenueProtocol from "./VenueProtocol.ts"

/** The caller whose share of the rate limit refills take: never that of actions. */
const refiller: Caller = { id: "streams", scope: {}, quota: {} }

/** The response to a query was not HTTP 200. */
class QueryRefused extends Data.TaggedError("QueryRefused")<{ readonly status: number }> {}

class NotAList extends Data.TaggedError("NotAList")<{ readonly query: string }> {}

/** The venue does not return all rows since the time. */
class Truncated extends Data.TaggedError("Truncated")<{ readonly query: string }> {}

/** A row of `historicalOrders` as `orderUpdates` has it. */
const toOrderUpdate = (row: unknown): string =>
  Json.stringify({
    order: briefOrder(Subscription.valueAt(row, "order")),
    status: Subscription.valueAt(row, "status"),
    statusTimestamp: Subscription.valueAt(row, "statusTimestamp")
  })

/** How much of what happened a query returns. */
interface Window {
  /** Rows of one response at most. */
  readonly page: number
  /** The newest rows of an account that the venue returns at all. */
  readonly most: number
}

interface Plan {
  readonly query: (subscription: Subscription.Normalised, since: number) => object
  readonly frames: (
    subscription: Subscription.Normalised,
    rows: ReadonlyArray<string>,
    since: number
  ) => ReadonlyArray<string>
  /** The time of a row, of a query that returns a window of time, oldest first; such a query is repeated for the next page. */
  readonly timeAt?: string
  /** Of a query that returns the newest rows: the time of each. */
  readonly newestBy?: string
  readonly window?: Window
}

const parsed = (text: string): unknown => Result.getOrUndefined(Json.parse(text))

/** A frame of a subscription that lists rows; what reads it looks at the rows alone. */
const listing = ({ declaration }: Subscription.Normalised, rows: ReadonlyArray<string>): ReadonlyArray<string> => {
  const [channel = declaration.name] = Subscription.channelNames(declaration)
  const list = `[${rows.join(",")}]`
  const member = declaration.rows?.member
  return [VenueProtocol.dataFrame(channel, member === undefined ? list : `{${JSON.stringify(member)}:${list}}`)]
}

/** A query for the rows of a user since a time. */
const rowsSince = (type: string, timeAt: string, window: Window): Plan => ({
  query: ({ request: { user, aggregateByTime } }, since) => ({
    type,
    user,
    startTime: Math.max(0, since),
    ...(aggregateByTime === true ? { aggregateByTime } : {})
  }),
  frames: listing,
  timeAt,
  window
})

const orders: Window = { page: rowsOfOrders, most: 10_000 }
const payments: Window = { page: rowsOfTime, most: 10_000 }

/** A row of `userFunding` as `userFundings` has it. */
const toUserFunding = (row: string): string => {
  const value = parsed(row)
  const delta = Subscription.valueAt(value, "delta")
  const members = Predicate.isObject(delta) ? Object.entries(delta).filter(([name]) => name !== "type") : []
  return Json.stringify({ time: Subscription.valueAt(value, "time"), ...Object.fromEntries(members) })
}

const plans: { readonly [query: string]: Plan } = {
  historicalOrders: {
    query: ({ request }) => ({ type: "historicalOrders", user: request["user"] }),
    frames: (subscription, rows, since) => {
      // the venue lists the latest first, also of those with one time
      const missed = rows.toReversed().map(parsed).filter((row) =>
        Number(Subscription.valueAt(row, "statusTimestamp")) >= since
      )
      return listing(subscription, missed.map(toOrderUpdate))
    },
    newestBy: "statusTimestamp",
    window: orders
  },
  userFillsByTime: rowsSince("userFillsByTime", "time", orders),
  userTwapSliceFillsByTime: rowsSince("userTwapSliceFillsByTime", "fill.time", orders),
  userNonFundingLedgerUpdates: rowsSince("userNonFundingLedgerUpdates", "time", payments),
  userFunding: {
    ...rowsSince("userFunding", "time", payments),
    frames: (subscription, rows) => listing(subscription, rows.map(toUserFunding))
  },
  candleSnapshot: {
    query: ({ request: { coin, interval } }, since) => ({
      type: "candleSnapshot",
      req: { coin, interval, startTime: since }
    }),
    frames: (_subscription, rows) => rows.map((row) => VenueProtocol.dataFrame("candle", row))
  }
}

/** The time from which on something was missed: that of the last state, where each frame is one. */
const refillStart = (last: string | undefined, since: number, { stateAt }: Subscription.Subscription): number => {
  const at = last === undefined || stateAt === undefined
    ? undefined
    : Subscription.valueAt(Subscription.valueAt(parsed(last), "data"), stateAt)
  return Predicate.isNumber(at) ? at : since
}

const timeIn = (row: string | undefined, path: string): number => Number(Subscription.valueAt(parsed(row ?? ""), path))

/** Whether a query failed because the rate limit has no room for it now. */
const isLimited = (error: unknown): boolean => {
  const reason = unwrapReason(error)
  return Predicate.isTagged(reason, "UpstreamRateLimited") || Predicate.isTagged(reason, "QuotaExceeded")
}

/**
 * Returns the response to a query of the gateway's own. It waits for the rate limit, behind everything else, and is tried five times.
 */
export const askInBackground = ({ relay }: Queries) => (query: object) =>
  Effect.gen(function*() {
    const response = yield* relay(yield* InfoProtocol.parseCall(Json.write(query), "gateway", true))
    return response.status === 200 ? response.text : yield* new QueryRefused({ status: response.status })
  }).pipe(
    Effect.retry({ times: 60, schedule: Schedule.spaced("2 seconds"), while: isLimited }),
    Effect.retry({ times: 4, schedule: Schedule.exponential("1 second") }),
    Effect.provideService(CurrentCaller, refiller),
    Effect.provideService(IsRefresh, true),
    Effect.provideService(Freshness, "none")
  )

/** Refills over the queries of a service. */
export const make = (info: Queries) => (subscription: Subscription.Normalised): TopicRefill | undefined => {
  const ask = askInBackground(info)
  const { declaration } = subscription
  const { refill } = declaration
  const plan = refill && plans[refill.query]
  if (refill === undefined || plan === undefined) return undefined
  const { newestBy, timeAt, window } = plan

  const page = (start: number) =>
    Effect.flatMap(ask(plan.query(subscription, start)), (text) => {
      const rows = Json.elements(text)
      return rows === undefined ? new NotAList({ query: refill.query }) : Effect.succeed(rows)
    })

  /** All rows since a time. Fails where the venue does not return all of them. */
  const rowsFrom = Effect.fnUntraced(function*(start: number) {
    const rows = [...yield* page(start)]
    if (window === undefined) return rows
    if (newestBy !== undefined && rows.length >= window.page && timeIn(rows.at(-1), newestBy) >= start) {
      return yield* new Truncated({ query: refill.query })
    }
    if (timeAt === undefined) return rows
    let last = rows.length
    let from = start
    while (last >= window.page) {
      const next = timeIn(rows.at(-1), timeAt)
      // a page of one instant has no next one
      if (!(next > from) || rows.length >= window.most) return yield* new Truncated({ query: refill.query })
      from = next
      const more = yield* page(from)
      last = more.length
      rows.push(...more)
    }
    // pages overlap in one instant
    return [...new Set(rows)]
  })

  const load: TopicRefill["load"] = ({ last, since }) => {
    const start = refillStart(last, since, declaration)
    return Effect.map(rowsFrom(start), (rows) => plan.frames(subscription, rows, start))
  }
  return { rank: refill.rank, isPartial: refill.isPartial === true, load }
}
