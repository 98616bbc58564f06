/**
 * The venue's streams: trades, books, bars, orders and fills as they happen. Gaps after lost connections are filled.
 *
 * If one subscription names an unknown coin or dex, the venue closes the connection and thereby ends all its
 * subscriptions. So names are checked before a subscription is sent.
 *
 * The venue lists new names at any time: outcomes every 15 minutes. So before a name is refused, the venue's list is
 * read again, on behalf of the caller, whose share of the rate limit the read counts against. Two budgets bound these
 * reads: one for each caller, so that a caller's unknown names do not delay the names of others, and one for all.
 */
import { background, CurrentCaller, local } from "@trigate/domain/Caller"
import * as Json from "@trigate/domain/encoding/Encoding"
import { type CallFailure, type UnwrapReason, unwrapReason } from "@trigate/domain/errors/GatewayError"
import { briefOrder } from "@trigate/domain/info/Account"
import * as InfoProtocol from "@trigate/domain/info/InfoOperations"
import { isOutcome, isSpot, outcomeCoins } from "@trigate/domain/info/Market"
import { worstWeight } from "@trigate/domain/operations/Operation"
import { rowsOfOrders, rowsOfTime } from "@trigate/domain/unstable/info/InfoQueries"
import * as Subscription from "@trigate/domain/unstable/streams/Subscription"
import * as Subscriptions from "@trigate/domain/unstable/streams/Subscriptions"
import * as ResponseCache from "@trigate/upstream/cache/ResponseCache"
import { IsRefresh } from "@trigate/upstream/limits/RateLimiter"
import type { ReplicaUse } from "@trigate/upstream/streams/ReplicaUse"
import type { SocketTransport } from "@trigate/upstream/streams/SocketTransport"
import { makePriorityWeight } from "@trigate/upstream/unstable/limits/RateWindow"
import * as Hub from "@trigate/upstream/unstable/streams/Hub"
import { defaults, type Limits } from "@trigate/upstream/unstable/streams/StreamSettings"
import { RowSet } from "@trigate/upstream/unstable/streams/Topic"
import type { Counts, Row, Sink, Subscriber, Topic, TopicRefill } from "@trigate/upstream/unstable/streams/Topic"
import { make as upstream } from "@trigate/upstream/unstable/Upstream"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Predicate from "effect/Predicate"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Struct from "effect/Struct"
import * as AccountChecks from "../accounts/AccountChecks.ts"
import * as AccountEvents from "../accounts/AccountEvents.ts"
import type { AccountMirror } from "../accounts/AccountMirror.ts"
import { Info } from "../Info.ts"
import * as AccountRecorder from "../internal/accounts/AccountRecorder.ts"
import * as ResumableSubscriber from "./ResumableSubscriber.ts"
import type { ResumableSink } from "./ResumableSubscriber.ts"
import * as VenueProtocol from "./VenueProtocol.ts"

/** The queries that streams send: for the venue's lists of coins and dexes, and for data missed while disconnected. */
export type Queries = Pick<Info["Service"], "allMids" | "meta" | "outcomeMeta" | "perpDexs" | "relay" | "spotMeta">

/**
 * The result of a lookup: the venue lists the name, the venue does not list it, its lists cannot be read, or the budget
 * for reading them again is used up.
 */
export type Found = "known" | "unknown" | "unavailable" | "limited"

/** The coins and dexes that the venue lists. */
export interface CoinCatalog {
  /** Returns whether all names of a subscription are in the cached lists. */
  readonly knows: (subscription: Subscription.Normalised) => boolean
  /**
   * Looks up the coins and dexes that a subscription names. If one of them is unknown, reads the venue's list again,
   * within the budget of the current caller.
   */
  readonly find: (subscription: Subscription.Normalised) => Effect.Effect<Found>
}

/** A number of reads in a burst, and the milliseconds after which one more is allowed. */
interface BudgetSize {
  readonly most: number
  readonly every: number
}

/** The reads that one caller can cause. One read finds all names that the venue has listed since the last one. */
const readsPerCaller: BudgetSize = { most: 5, every: 10_000 }

/** The reads that all callers together can cause: at most a weight of 264 per minute. */
const readsOfAll: BudgetSize = { most: 6, every: 5000 }

/** Maximum milliseconds that a lookup waits for the budget of all callers. */
const longestWait = 10_000

/** Maximum number of callers whose use is counted at a time. */
const maxCallers = 10_000

/**
 * Makes a budget. The returned function counts a use, and returns 0; or it returns the milliseconds after which the
 * caller can try again.
 */
const makeBudget = ({ every, most }: BudgetSize) => {
  /** For each caller: the time at which all of its uses are available again. */
  const restoredAt = new Map<string, Json.MonotonicTime>()
  return (caller: string, now: Json.MonotonicTime): number => {
    if (restoredAt.size >= maxCallers) {
      for (const [each, time] of restoredAt) if (time <= now) restoredAt.delete(each)
      if (restoredAt.size >= maxCallers && !restoredAt.has(caller)) return every
    }
    const restored = Json.latest(restoredAt.get(caller) ?? now, now)
    const wait = Json.millisBetween(now, restored) + every - most * every
    if (wait <= 0) restoredAt.set(caller, Json.addMillis(restored, every))
    return Math.max(0, wait)
  }
}

/**
 * Makes a cached list of names. The list is read at the first lookup, and again if it lacks a name. `load` passes names
 * to `learn` that are known even if `load` fails later.
 */
const makeList = (
  { ofAll, ofCaller }: { readonly [Use in "ofAll" | "ofCaller"]: ReturnType<typeof makeBudget> },
  load: (learn: (names: Iterable<string>) => void) => Effect.Effect<Iterable<string>, CallFailure>
) => {
  let names: ReadonlySet<string> = new Set()
  let failedAt: Json.MonotonicTime | undefined
  /** The number of reads that have begun, and the number of the newest that has succeeded. */
  let begun = 0
  let ended = 0
  const learn = (more: Iterable<string>): void => {
    names = new Set([...names, ...more])
  }
  // concurrent lookups share one read: after a restart of the gateway, thousands of clients subscribe at once
  const reads = ResponseCache.makeSingleFlight<void, UnwrapReason<CallFailure>>()

  const read = Effect.suspend(() => {
    const number = ++begun
    return Effect.mapBothEager(Effect.provideService(load(learn), ResponseCache.Freshness, "none"), {
      onFailure: unwrapReason,
      onSuccess: (found) => {
        names = new Set(found)
        ended = number
      }
    })
  })

  /** Reads the list, or waits for the read in progress. Returns whether it succeeded. */
  const attempt = Effect.gen(function*() {
    const now = Json.monotonicTime(yield* Clock.Clock)
    // an unreachable venue is queried again after a second, not for each subscription
    if (!reads.has("") && failedAt !== undefined && Json.millisBetween(failedAt, now) < 1000) return false
    return yield* Effect.matchEager(reads.run({ key: "", send: read }), {
      onFailure: (error) => {
        // a caller that has used up its own quota does not prevent the reads of others
        if (error._tag !== "QuotaExceeded") failedAt = now
        return false
      },
      onSuccess: () => true
    })
  })

  const lookUp = Effect.fnUntraced(function*(name: string) {
    const before = begun
    // a read that began before this lookup may lack a name that was listed in between
    const isNew = () => ended > before
    if (ended === 0 && !(yield* attempt)) return names.has(name) ? "known" : "unavailable"
    if (names.has(name)) return "known"
    const since = Json.monotonicTime(yield* Clock.Clock)
    if (!isNew() && ofCaller((yield* CurrentCaller).id, since) > 0) return "limited"
    while (!isNew()) {
      const now = Json.monotonicTime(yield* Clock.Clock)
      const wait = reads.has("") ? 0 : ofAll("", now)
      if (Json.millisBetween(since, now) + wait > longestWait) return "limited"
      if (wait > 0) yield* Effect.sleep(wait)
      else if (!(yield* attempt)) return names.has(name) ? "known" : "unavailable"
    }
    return names.has(name) ? "known" : "unknown"
  })

  return {
    names: () => names,
    find: (name: string): Effect.Effect<Found> =>
      Effect.suspend(() => names.has(name) ? Effect.succeed<Found>("known") : lookUp(name))
  }
}

type List = ReturnType<typeof makeList>

/** Maximum number of dexes whose lists are cached; the venue has about ten. */
const maxDexes = 256

const together = (all: ReadonlyArray<Found>): Found =>
  (["unknown", "limited", "unavailable"] as const).find((found) => all.includes(found)) ?? "known"

/** A catalog that accepts every name, for a venue that does not close connections because of an unknown name. */
export const open: CoinCatalog = { knows: () => true, find: () => Effect.succeed("known") }

/** Makes a catalog that queries the venue's lists through `info`. */
export const makeCatalog = (info: Queries): CoinCatalog => {
  const budgets = { ofCaller: makeBudget(readsPerCaller), ofAll: makeBudget(readsOfAll) }
  const perpetuals = (dex: string) =>
    makeList(budgets, () => Effect.map(info.meta({ dex }), ({ universe }) => universe.map(({ name }) => name)))
  const own = perpetuals("")
  const spot = makeList(
    budgets,
    () => Effect.map(info.spotMeta(), ({ universe }) => universe.map(({ name }) => name))
  )
  // `outcomeMeta` lists an outcome before `allMids` has its price
  const outcomes = makeList(budgets, (learn) =>
    Effect.flatMap(info.allMids(), (mids) => {
      const priced = Object.keys(mids).filter(isOutcome)
      learn(priced)
      return info.outcomeMeta().pipe(
        Effect.map((meta) => [...priced, ...meta.outcomes.flatMap(outcomeCoins)]),
        // a venue without outcomes refuses the query
        Effect.catchIf((error) => unwrapReason(error)._tag === "InvalidRequest", () => Effect.succeed(priced))
      )
    }))
  const dexes = makeList(
    budgets,
    () => Effect.map(info.perpDexs(), (all) => ["", ...all.flatMap((dex) => dex === null ? [] : [dex.name])])
  )
  const ofDex = new Map<string, List>()

  const findList = (coin: string): List | undefined => {
    if (isOutcome(coin)) return outcomes
    if (isSpot(coin)) return spot
    const end = coin.indexOf(":")
    return end < 0 ? own : ofDex.get(coin.slice(0, end))
  }

  const findCoin = (coin: string): Effect.Effect<Found> => {
    const list = findList(coin)
    if (list !== undefined) return list.find(coin)
    const dex = coin.slice(0, coin.indexOf(":"))
    return Effect.flatMap(dexes.find(dex), (found) => {
      if (found !== "known") return Effect.succeed(found)
      if (ofDex.size >= maxDexes) ofDex.clear()
      const made = ofDex.get(dex) ?? perpetuals(dex)
      ofDex.set(dex, made)
      return made.find(coin)
    })
  }

  return {
    knows: ({ request: { coin, dex } }) =>
      (!Predicate.isString(coin) || findList(coin)?.names().has(coin) === true) &&
      (!Predicate.isString(dex) || dex === "" || dexes.names().has(dex)),
    find: ({ request: { coin, dex } }) =>
      Effect.map(
        Effect.all([
          Predicate.isString(coin) ? findCoin(coin) : Effect.succeed<Found>("known"),
          Predicate.isString(dex) && dex !== "" ? dexes.find(dex) : Effect.succeed<Found>("known")
        ]),
        together
      )
  }
}

/**
 * The identity under which refills (queries of missed data) beyond {@link priorityWeight} use the rate limiter. Refills
 * never use the capacity that is reserved for actions.
 */
const refiller = background("streams")

/**
 * The weight per minute of the refills that are sent before the queries of callers. Subscribers wait for missed data, so
 * callers that use the whole limit must not delay it. Further refills have the share of one caller.
 */
const priorityWeight = 600

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

/** Sends a query on behalf of the gateway, and attempts it five times. */
const sendQuery = (query: object, send: Queries["relay"]) =>
  Effect.gen(function*() {
    const response = yield* send(yield* InfoProtocol.parseCall(Json.write(query), "gateway", true))
    return response.status === 200 ? response.text : yield* new QueryRefused({ status: response.status })
  }).pipe(
    Effect.retry({ times: 60, schedule: Schedule.spaced("2 seconds"), while: isLimited }),
    Effect.retry({ times: 4, schedule: Schedule.exponential("1 second") }),
    Effect.provideService(CurrentCaller, refiller),
    Effect.provideService(ResponseCache.Freshness, "none")
  )

/** Sends a query on behalf of the gateway, which waits for the rate limit with the lowest priority. */
export const queryInBackground = ({ relay }: Queries) => (query: object) =>
  sendQuery(query, (call) => Effect.provideService(relay(call), IsRefresh, true))

/** Makes the function that sends a query before those of callers, within {@link priorityWeight}. */
const makeQueryFirst = ({ relay }: Queries) => {
  const priority = makePriorityWeight(priorityWeight)
  return (query: object) =>
    sendQuery(query, (call) => {
      const weight = worstWeight(call.operation)
      const first = relay(call).pipe(
        Effect.provideService(CurrentCaller, local),
        Effect.tapError((error) => Effect.sync(() => isLimited(error) ? priority.giveBack(weight) : undefined))
      )
      return Effect.flatMap(priority.take(weight), (isFirst) => isFirst ? first : relay(call))
    })
}

/**
 * Makes the function that queries the missed data of a subscription. It returns `undefined` if no query returns such
 * data.
 */
export const makeRefills = (info: Queries) => {
  const queryFirst = makeQueryFirst(info)
  return (subscription: Subscription.Normalised) => makeRefill(queryFirst, subscription)
}

const makeRefill = (
  queryFirst: ReturnType<typeof makeQueryFirst>,
  subscription: Subscription.Normalised
): TopicRefill | undefined => {
  const { declaration } = subscription
  const { refill } = declaration
  const plan = refill && plans[refill.query]
  if (refill === undefined || plan === undefined) return undefined
  const { newestBy, timeAt, window } = plan

  const page = (start: number) =>
    Effect.flatMap(queryFirst(plan.query(subscription, start)), (text) => {
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

export type { ResumeOptions } from "@trigate/domain/unstable/streams/Subscription"

/** The typed method for a subscription. */
export interface Method<S extends Subscription.Subscription> {
  (request: S["request"]["Encoded"]): Stream.Stream<Subscription.Item<S>, Subscription.StreamError>
  /** Resumes at a stored position, and reports positions to store. They are those of the `EventStore`. */
  (
    request: S["request"]["Encoded"],
    options: Subscription.ResumeOptions
  ): Stream.Stream<Subscription.Item<S>, Subscription.StreamError | Subscription.StreamLost>
}

/** The type-level function from a subscription to its typed method. */
interface MethodOf extends Struct.Lambda {
  <S extends Subscription.Subscription>(subscription: S): Method<S>
  readonly "~lambda.out": Method<Extract<this["~lambda.in"], Subscription.Subscription>>
}

/** The typed methods for all subscriptions. */
export type Methods = {
  readonly [Name in keyof typeof Subscriptions.subscriptions]: Method<(typeof Subscriptions.subscriptions)[Name]>
}

/** The part of the service that `/ws` uses: frames as text, which all callers share. */
export interface SharedStreams {
  /** Takes a subscriber for a caller's connection; subscriptions of the connection are made through the subscriber. */
  readonly join: (caller: string, sink: Sink) => Subscriber
  readonly topicOf: (subscription: Subscription.Normalised) => Topic
  /** Returns whether a subscription can be sent to the venue without a lookup of its names. */
  readonly knows: (subscription: Subscription.Normalised) => boolean
  /** Returns why a subscription must not be sent to the venue; `undefined` if it is allowed. */
  readonly check: (subscription: Subscription.Normalised) => Effect.Effect<string | undefined>
  /** The log of account events, such as fills and order updates. */
  readonly events: AccountEvents.AccountEvents
  readonly status: () => Hub.Status
  readonly counts: Counts
}

/**
 * The venue's streams, with a method for each of `subscriptions`.
 *
 * All readers of equal subscriptions share one subscription at the venue. After a lost connection, that subscription
 * resumes without duplicates, and missed data is queried if the venue still has it.
 *
 * Provided by `Trigate.layer`, `Trading.layer`, `Streams.layer` or `StreamsMemory.layer`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { bbo } from "@trigate/domain/streams/MarketSubscriptions"
 * import { Streams, StreamsMemory } from "@trigate/trading"
 * import { Console, Effect, Fiber, Stream } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const streams = yield* Streams.Streams
 *   const state = yield* StreamsMemory.StreamsState
 *   const first = yield* Effect.forkChild(
 *     streams.bbo({ coin: "BTC" }).pipe(Stream.take(1), Stream.runForEach(({ coin }) => Console.log(coin)))
 *   )
 *   yield* state.subscribed(bbo, { coin: "BTC" })
 *   yield* state.send(bbo, { coin: "BTC" }, [{ coin: "BTC", time: 0, bbo: [null, null] }])
 *   yield* Fiber.join(first)
 * })
 *
 * await Effect.runPromise(Effect.provide(program, StreamsMemory.layer()))
 * ```
 * ```text
 * BTC
 * ```
 */
export class Streams extends Context.Service<Streams, Methods & { readonly shared: SharedStreams }>()(
  "@trigate/trading/streams/Streams"
) {}

/** A frame, and its position if it is an event of the log. */
interface PlacedFrame {
  readonly text: string
  readonly position: Subscription.ResumePosition | undefined
}

/** Maximum number of frames queued for one reader of a typed stream. */
const maxBehind = 10_000

/**
 * Maximum number of frames queued for one reader of a typed stream whose frames are complete states. If the queue is
 * full, a new state replaces the oldest.
 */
const maxStates = 16

const hole = new Subscription.StreamLost({
  code: 1000,
  message: "Events may be missing: the event log does not have all events after the position"
})

type TypedFailure = Subscription.StreamError | Subscription.StreamLost

const typed = (shared: SharedStreams, declaration: Subscription.Subscription) => {
  const readItems = Subscription.itemReader(declaration)
  const isState = declaration.delivery === "state"

  function open(request: unknown): Stream.Stream<unknown, Subscription.StreamError>
  function open(request: unknown, options: Subscription.ResumeOptions): Stream.Stream<unknown, TypedFailure>
  function open(request: unknown, options?: Subscription.ResumeOptions): Stream.Stream<unknown, TypedFailure> {
    return Stream.unwrap(Effect.gen(function*() {
      const value = { type: declaration.name, ...(typeof request === "object" ? request : {}) }
      const refused = (message: string) =>
        Stream.fail(new Subscription.SubscriptionRefused({ message, subscription: Json.stringify(value) }))
      const read = Subscriptions.read(value)
      if (Result.isFailure(read)) {
        return refused(VenueProtocol.unreadableSubscription(read.failure, Json.stringify(value)))
      }
      const refusal = yield* shared.check(read.success)
      if (refusal !== undefined) return refused(refusal)
      const from = Subscription.readResume(options ?? {}, read.success.key)
      if (Result.isFailure(from)) return Stream.fail(from.failure)
      const topic = shared.topicOf(read.success)
      const frames = yield* (isState
        ? Queue.sliding<PlacedFrame, TypedFailure | Cause.Done>(maxStates)
        : Queue.dropping<PlacedFrame, TypedFailure | Cause.Done>(maxBehind))
      const end = (error: TypedFailure) => void Queue.failCauseUnsafe(frames, Cause.fail(error))
      let isFollowing = from.success !== undefined
      const sink: ResumableSink = {
        subscribed: () => {},
        flush: () => {},
        deliver: (frame, position) => {
          if (!Queue.offerUnsafe(frames, { text: frame.text, position }) && !isState) {
            end(new Subscription.SlowConsumer({ message: `The reader is more than ${maxBehind} frames behind` }))
          }
        },
        refused: ({ key }, message) => end(new Subscription.SubscriptionRefused({ message, subscription: key })),
        resumed: ({ recovered }) => {
          if (isFollowing && !recovered && !isState) end(hole)
          isFollowing = true
        }
      }
      const caller = (yield* CurrentCaller).id
      if (from.success !== undefined) yield* shared.events.catchUp(from.success)
      const subscriber = options === undefined
        ? shared.join(caller, sink)
        : ResumableSubscriber.join(shared, caller, sink, { from: from.success, topics: [topic] })
      subscriber.subscribe(topic)
      const report = ({ position }: PlacedFrame) =>
        Stream.fromEffectDrain(
          Effect.sync(() => position === undefined ? undefined : options?.onPosition?.(Subscription.print(position)))
        )
      return Stream.fromQueue(frames).pipe(
        Stream.mapEffect((frame) =>
          Effect.map(Effect.fromResult(readItems(frame.text)), (items) => ({ frame, items }))
        ),
        Stream.flatMap(({ frame, items }) =>
          options?.onPosition === undefined
            ? Stream.fromIterable(items)
            // after the items, so that a position is reported once they were consumed
            : Stream.concat(Stream.fromIterable(items), report(frame))
        ),
        Stream.ensuring(Effect.sync(() => subscriber.leave()))
      )
    }))
  }
  return open
}

/** The location of the venue's streams, and their limits. */
export interface Options {
  /** WebSocket URLs such as `wss://api.hyperliquid.xyz/ws`, in order of preference. */
  readonly addresses: ReadonlyArray<Redacted.Redacted> | (() => ReadonlyArray<Redacted.Redacted>)
  readonly limits?: Partial<Limits>
  /** Users with priority when a limit is reached, in lower case, such as users with accepted actions. */
  readonly familiar?: ReadonlySet<string>
  /** Exchanges, with other replicas, how much of the venue's limits each replica uses. Default: no other replicas. */
  readonly replicas?: ReplicaUse["Service"]
  /** The accounts whose events are logged, and the limits of the event log. */
  readonly events?: Pick<AccountEvents.Options, "accounts" | "bounds">
  /** The mirror that serves queries about watched accounts. Default: no mirror. */
  readonly mirror?: AccountMirror | undefined
  /** Receives the order events of watched accounts. Default: no receiver. */
  readonly orders?: AccountEvents.OrderEvents | undefined
}

/** Returns the WebSocket URLs of the venue's API at the given base URLs. */
export const socketAddresses = (
  api: ReadonlyArray<string | Redacted.Redacted>
): ReadonlyArray<Redacted.Redacted> =>
  upstream("trading-api", api).addresses.map((address) =>
    Redacted.make(`${Redacted.value(address).replace(/^http/u, "ws")}/ws`, { label: "trading-api" })
  )

/** Why a subscription is refused whose names the catalog does not know. */
const reasons: { readonly [Reason in Exclude<Found, "known">]: string } = {
  unknown: "",
  unavailable: ": the venue's list of coins is unavailable, try again",
  limited: ": too many unknown names were looked up, try again in 10 seconds"
}

/**
 * Makes the shared streams of a venue. With `info`, the streams check the coin and dex names of each subscription, and
 * query `POST /info` for the data that they missed during a lost connection. Without `info`, they do neither.
 */
export const makeShared = Effect.fnUntraced(function*(
  info: Queries | undefined,
  { addresses, events: logging, mirror, orders, ...options }: Options
): Effect.fn.Return<SharedStreams, never, AccountEvents.EventStore | SocketTransport | Scope.Scope> {
  const hub = yield* Hub.make({
    ...options,
    addresses: typeof addresses === "function" ? addresses : () => addresses,
    protocol: VenueProtocol.protocol,
    observe: mirror?.observe
  })
  const catalog = info === undefined ? open : makeCatalog(info)
  const makeRefill = info === undefined ? () => undefined : makeRefills(info)
  const topicOf: SharedStreams["topicOf"] = (subscription) =>
    VenueProtocol.makeTopic(subscription, makeRefill(subscription))
  const events = yield* AccountRecorder.make({
    join: hub.join,
    topicOf: (type, user) => Result.getOrUndefined(Result.map(Subscriptions.read({ type, user }), topicOf)),
    refusal: (limit) => VenueProtocol.protocol.refusal("users", limit)
  }, {
    ...logging,
    states: mirror?.observer,
    usersOfCaller: options.limits?.usersOfCaller ?? defaults.usersOfCaller
  })
  mirror?.follow({ events, heardAt: hub.heardAt })
  orders?.follow(events.log)
  if (info !== undefined) {
    const query = queryInBackground(info)
    yield* AccountChecks.start({
      accounts: logging?.accounts ?? [],
      isOwner: () => events.status().role !== "reader",
      quietFor: mirror === undefined
        ? () => Number.POSITIVE_INFINITY
        : yield* AccountChecks.startComparison({ events, mirror, heardAt: hub.heardAt, query }),
      query
    })
  }
  return {
    join: hub.join,
    status: hub.status,
    counts: hub.counts,
    topicOf,
    events,
    knows: catalog.knows,
    check: (subscription) =>
      Effect.map(
        catalog.find(subscription),
        (found) =>
          found === "known" ? undefined : `${VenueProtocol.invalidSubscription(subscription.key)}${reasons[found]}`
      )
  }
})

/** Makes the `Streams` service over shared streams. */
export const make = (shared: SharedStreams): Streams["Service"] => {
  const methods = Struct.map(
    Subscriptions.subscriptions,
    Struct.lambda<MethodOf>((declaration) => typed(shared, declaration))
  )
  return Streams.of({ ...methods, shared })
}

/**
 * Provides the streams at the given addresses, over the `Info` and the `SocketTransport` of the context.
 *
 * Each call returns a new layer with separate upstream connections and a separate event log.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { InfoUpstream, Streams } from "@trigate/trading"
 * import { SocketTransport } from "@trigate/upstream"
 * import { Layer, Redacted } from "effect"
 *
 * export const live = Streams.layer({ addresses: [Redacted.make("wss://api.hyperliquid.xyz/ws")] }).pipe(
 *   Layer.provide(SocketTransport.layerWebSocket),
 *   Layer.provide(InfoUpstream.layerFetch({ url: "https://api.hyperliquid.xyz" }))
 * )
 * ```
 */
export const layer = (options: Options): Layer.Layer<Streams, never, Info | SocketTransport> =>
  Layer.provide(layerNoDeps(options), AccountEvents.layerMemory())

/**
 * Provides {@link layer} over the event log of the context. With `EventStoreSql` or `EventStoreRedis`, a program resumes
 * at a stored position after a restart.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { EventStoreSql, Streams } from "@trigate/trading"
 * import { SocketTransport } from "@trigate/upstream"
 * import { Layer, Redacted } from "effect"
 *
 * // needs `Info`, and the `SqlClient` of a Postgres
 * export const live = Streams.layerNoDeps({ addresses: [Redacted.make("wss://api.hyperliquid.xyz/ws")] }).pipe(
 *   Layer.provide([EventStoreSql.layer(), SocketTransport.layerWebSocket])
 * )
 * ```
 */
export const layerNoDeps = (
  options: Options
): Layer.Layer<Streams, never, AccountEvents.EventStore | Info | SocketTransport> =>
  Layer.effect(Streams, Effect.flatMap(Info, (info) => Effect.map(makeShared(info, options), make)))
