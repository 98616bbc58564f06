/** Fills gaps in streams after lost connections: queries `POST /info`, and converts the returned rows to frames. */
import { CurrentCaller } from "@trigate/domain/Caller"
import type { Caller } from "@trigate/domain/Caller"
import * as Json from "@trigate/domain/encoding/Json"
import { unwrapReason } from "@trigate/domain/errors/GatewayError"
import * as InfoProtocol from "@trigate/domain/info/InfoProtocol"
import { rowsOfOrders, rowsOfTime } from "@trigate/domain/info/InfoQueryTable"
import { briefOrder } from "@trigate/domain/info/Order"
import * as Subscription from "@trigate/domain/streams/Subscription"
import { Freshness } from "@trigate/upstream/cache/Freshness"
import { IsRefresh } from "@trigate/upstream/limits/RateLimiter"
import { RowSet } from "@trigate/upstream/streams/RowSet"
import type { Row, TopicRefill } from "@trigate/upstream/streams/Topic"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import type { Queries } from "./CoinCatalog.ts"
import * as VenueProtocol from "./VenueProtocol.ts"

/**
 * The identity under which refills (queries of missed data) use the rate limiter. Refills never use the capacity that
 * is reserved for actions.
 */
const refiller: Caller = { id: "streams", scope: {}, quota: {} }

/** The response to a query was not HTTP 200. */
class QueryRefused extends Data.TaggedError("QueryRefused")<{ readonly status: number }> {}

class NotAList extends Data.TaggedError("NotAList")<{ readonly query: string }> {}

/** The venue does not return all rows since the requested time. */
class Truncated extends Data.TaggedError("Truncated")<{ readonly query: string }> {}

/** Converts a row of `historicalOrders` to a row of `orderUpdates`. */
const toOrderUpdate = (text: string): string => {
  const row = parsed(text)
  return Json.stringify({
    order: briefOrder(Subscription.valueAt(row, "order")),
    status: Subscription.valueAt(row, "status"),
    statusTimestamp: Subscription.valueAt(row, "statusTimestamp")
  })
}

const parsed = (text: string): unknown => Result.getOrUndefined(Json.parse(text))

/** Returns the time of a row in milliseconds. */
const timeIn = (row: string | undefined, path: string, isInSeconds = false): number =>
  Number(Subscription.valueAt(parsed(row ?? ""), path)) * (isInSeconds ? 1000 : 1)

const asRow = (text: string): Row => ({ id: text, text, time: 0 })

/** The limits on the rows that a query returns. */
interface Window {
  /** Maximum number of rows in one response. */
  readonly page: number
  /** Maximum total number of rows that the venue returns for an account, over all pages. */
  readonly most: number
}

interface Plan {
  readonly query: (subscription: Subscription.Normalised, since: number) => object
  readonly frames: (
    subscription: Subscription.Normalised,
    rows: ReadonlyArray<string>,
    since: number
  ) => ReadonlyArray<string>
  /**
   * The field that contains a row's time, if the query has a time window and returns the oldest rows first. Such a
   * query is repeated for the next page.
   */
  readonly timeAt?: string
  /** The field that contains a row's time, if the query has no time window and returns the newest rows. */
  readonly newestBy?: string
  readonly window?: Window
  /** Returns whether the response certainly or very likely lacks some of the missed rows. */
  readonly hasGap?: (rows: ReadonlyArray<string>, lost: { readonly from: number; readonly to: number }) => boolean
}

/**
 * Makes a frame of a subscription that contains only the given rows, without the other members of the venue's frames.
 */
const listing = ({ declaration }: Subscription.Normalised, rows: ReadonlyArray<string>): ReadonlyArray<string> => {
  const [channel = declaration.name] = Subscription.channelNames(declaration)
  const list = `[${rows.join(",")}]`
  const member = declaration.rows?.member
  return [VenueProtocol.dataFrame(channel, member === undefined ? list : `{${JSON.stringify(member)}:${list}}`)]
}

/**
 * Makes a query for the newest rows of a user. In its response, the latest row is first, also among rows with equal
 * times.
 */
const newestRows = (type: string, newestBy: string, window: Window): Plan => ({
  query: ({ request }) => ({ type, user: request["user"] }),
  frames: (subscription, rows, since) => {
    const { refill, rows: declared } = subscription.declaration
    const missed = rows.toReversed().filter((row) => timeIn(row, newestBy, declared?.isInSeconds) >= since)
    return listing(subscription, refill?.isBrief === true ? missed.map(toOrderUpdate) : missed)
  },
  newestBy,
  window
})

/** Makes a query for the rows of a user since a time. */
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
const hour = 3_600_000
const payments: Window = { page: rowsOfTime, most: 10_000 }

/** Converts a row of `userFunding` to a row of `userFundings`. */
const toUserFunding = (row: string): string => {
  const value = parsed(row)
  const delta = Subscription.valueAt(value, "delta")
  const members = Predicate.isObject(delta) ? Object.entries(delta).filter(([name]) => name !== "type") : []
  return Json.stringify({ time: Subscription.valueAt(value, "time"), ...Object.fromEntries(members) })
}

const plans: { readonly [query: string]: Plan } = {
  historicalOrders: newestRows("historicalOrders", "statusTimestamp", orders),
  twapHistory: newestRows("twapHistory", "time", orders),
  userFillsByTime: {
    ...rowsSince("userFillsByTime", "time", orders),
    // `userFillsByTime` returns only fills. Funding is missed if the gap contains a full hour, and a liquidation event
    // is missed if a fill is marked as a liquidation
    hasGap: (rows, { from, to }) =>
      Math.floor(from / hour) < Math.floor(to / hour) ||
      rows.some((row) =>
        timeIn(row, "time") >= from && Predicate.isObject(Subscription.valueAt(parsed(row), "liquidation"))
      )
  },
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

/**
 * Returns the time since which data may be missing. For a subscription whose frames are complete states, returns the
 * time of the last frame.
 */
const refillStart = (last: string | undefined, since: number, { stateAt }: Subscription.Subscription): number => {
  const at = last === undefined || stateAt === undefined
    ? undefined
    : Subscription.valueAt(Subscription.valueAt(parsed(last), "data"), stateAt)
  return Predicate.isNumber(at) ? at : since
}

/** Returns whether a query failed because the rate limit is exhausted. */
const isLimited = (error: unknown): boolean => {
  const reason = unwrapReason(error)
  return Predicate.isTagged(reason, "UpstreamRateLimited") || Predicate.isTagged(reason, "QuotaExceeded")
}

/**
 * Sends a query on behalf of the gateway. The query waits for the rate limit with the lowest priority, and is attempted
 * five times.
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

/** Makes the function that queries the missed data of a subscription; `undefined` if no query returns such data. */
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

  /** Returns all rows since a time. Fails if the venue does not return all of them. */
  const rowsFrom = Effect.fnUntraced(function*(start: number) {
    const rows = [...yield* page(start)]
    if (window === undefined) return rows
    const isInSeconds = declaration.rows?.isInSeconds
    if (newestBy !== undefined && rows.length >= window.page && timeIn(rows.at(-1), newestBy, isInSeconds) >= start) {
      return yield* new Truncated({ query: refill.query })
    }
    if (timeAt === undefined) return rows
    let last = rows.length
    let from = start
    while (last >= window.page) {
      const next = timeIn(rows.at(-1), timeAt)
      // if all rows of a page have the same time, the next page cannot be requested
      if (!(next > from) || rows.length >= window.most) return yield* new Truncated({ query: refill.query })
      from = next
      const more = yield* page(from)
      last = more.length
      // consecutive pages overlap in one timestamp
      rows.push(...new RowSet(rows.map(asRow)).unseen(more.map(asRow)).map(({ text }) => text))
    }
    return rows
  })

  const load: TopicRefill["load"] = ({ last, lost, since }) => {
    const start = refillStart(last, since, declaration)
    return Effect.map(rowsFrom(start), (rows) => ({
      texts: plan.frames(subscription, rows, start),
      hasGap: refill.isPartial === true && plan.hasGap?.(rows, lost) === true
    }))
  }
  return { rank: refill.rank, load }
}
