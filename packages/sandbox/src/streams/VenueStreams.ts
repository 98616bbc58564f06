/**
 * The sandbox's streams: the frames of each subscription, computed from the venue's responses and from the events of
 * accounts.
 */
import { retainedBars } from "@trigate/domain/candles/Candle"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import type { Fill, OrderRecord, OrderUpdate } from "@trigate/domain/info/Account"
import type { Trade } from "@trigate/domain/info/Market"
import * as Subscription from "@trigate/domain/unstable/streams/Subscription"
import * as VenueSocket from "@trigate/trading/streams/StreamsMemory"
import { SocketLost, SocketTransport } from "@trigate/upstream/streams/SocketTransport"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Predicate from "effect/Predicate"
import * as Queue from "effect/Queue"
import * as Ref from "effect/Ref"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import { deflateRawSync } from "node:zlib"
import type { SandboxState } from "../SandboxState.ts"
import { aggregateFills, printOpen, printRecord } from "../venue/AccountReads.ts"
import { findDecimals } from "../venue/Assets.ts"
import type { MarketFeed } from "../venue/MarketFeed.ts"
import type { TradingControls } from "../venue/TradingControls.ts"
import { ensure } from "../venue/TradingState.ts"
import type { Venue, VenueEvent } from "../venue/Venue.ts"
import * as VenueInfo from "../venue/VenueInfo.ts"
import * as VenueMarkets from "../venue/VenueMarkets.ts"

/** Events of one account. The rows of each list are in order of occurrence. */
export interface AccountEvent {
  readonly user: Encoding.Address
  /** Orders whose status changed, as in `orderUpdates`. */
  readonly orders?: ReadonlyArray<OrderUpdate>
  /** The orders' new statuses, as in `userHistoricalOrders`. */
  readonly history?: ReadonlyArray<OrderRecord>
  /** Fills of the account, as in `userFills`. */
  readonly fills?: ReadonlyArray<Fill>
  /** Funding payments, as in `userFundings`. */
  readonly fundings?: ReadonlyArray<unknown>
  /** Deposits, withdrawals and transfers, as in `userNonFundingLedgerUpdates`. */
  readonly ledger?: ReadonlyArray<unknown>
  /** Orders that the venue canceled, as in `userEvents`. */
  readonly nonUserCancel?: ReadonlyArray<{ readonly coin: string; readonly oid: number }>
  /** Fills of the account's TWAP orders, as in `userTwapSliceFills`. */
  readonly twapFills?: ReadonlyArray<unknown>
  /** Changes of the status of the account's TWAP orders, as in `userTwapHistory`. */
  readonly twapHistory?: ReadonlyArray<unknown>
  /** Liquidations of the account, as in `userEvents`. */
  readonly liquidations?: ReadonlyArray<unknown>
  /** Texts for the account, as in `notification`. */
  readonly notifications?: ReadonlyArray<string>
}

/** Trades of one coin, in order of occurrence. */
export interface MarketEvent {
  readonly coin: string
  readonly trades: ReadonlyArray<Trade>
}

/** The venue's data and events that the sandbox's streams read. */
export interface VenueFeed {
  /**
   * Returns the current response to a query of `POST /info` (`l2Book`, `openOrders`, `userFills`, …), as a JSON value.
   *
   * Returns `undefined` for a query that the venue does not know.
   */
  readonly ask: (query: { readonly type: string; readonly [member: string]: unknown }) => Effect.Effect<unknown>
  /** Returns the venue's time. */
  readonly now: Effect.Effect<number>
  /** Streams the events of an account, in lower case, that occur after the reader starts the stream. */
  readonly accounts: (user: unknown) => Stream.Stream<AccountEvent>
  /**
   * Streams the trades of a coin in which accounts take part. The stream contains only trades after its start. The query
   * `recentTrades` also returns synthetic trades, which are derived from the clock.
   */
  readonly markets: (coin: unknown) => Stream.Stream<MarketEvent>
  /** Returns a text that changes when the book of a coin can have changed. */
  readonly bookVersion: (coin: string) => Effect.Effect<string>
  /** Returns a text that changes when the latest trades of a coin have changed. */
  readonly tradesVersion: (coin: string) => Effect.Effect<string>
  /** Streams the bars of a coin from a followed venue; `undefined` for a coin that is not followed. */
  readonly candles: MarketFeed["candles"]
}

type Collected = { -readonly [Member in keyof AccountEvent]?: AccountEvent[Member] }

/** Formats a decimal number without a zero after the point. */
const withoutZero = (decimal: string): string => decimal.replace(/\.0$/u, "")

/** Returns the text about a fill of an order from the book, as recorded. */
const fillNotification = ({ coin, px, side, sz }: Fill): string =>
  `Resting order filled: ${side === "B" ? "Bought" : "Sold"} ${withoutZero(sz)} ${coin} at $${withoutZero(px)}`

/**
 * Returns the text about a change of a TWAP order. The text is Trigate's own, because the venue's text is not known.
 */
const twapNotification = (row: unknown): string => {
  const [coin, side, sz] = ["coin", "side", "sz"].map((member) =>
    String(Subscription.valueAt(Subscription.valueAt(row, "state"), member))
  )
  const status = String(Subscription.valueAt(Subscription.valueAt(row, "status"), "status"))
  return `TWAP order ${status}: ${side === "B" ? "Buy" : "Sell"} ${withoutZero(sz ?? "")} ${coin}`
}

const more = <A>(list: ReadonlyArray<A> | undefined, entry: A): ReadonlyArray<A> => [...list ?? [], entry]

const addTo = (found: Collected, venue: Pick<Venue, "listing">, event: VenueEvent): void => {
  if (event.kind === "order") {
    const { status, statusTimestamp } = event.order
    const asset = findDecimals(venue.listing, event.order.coin)
    if (asset === undefined) return
    found.orders = more(found.orders, { order: printOpen(asset, event.order), status, statusTimestamp })
    if (event.isLogged) found.history = more(found.history, printRecord(asset, event.order))
  } else if (event.kind === "fill") {
    found.fills = more(found.fills, event.fill)
    if (!event.fill.crossed) found.notifications = more(found.notifications, fillNotification(event.fill))
  } else if (event.kind === "twapFill") found.twapFills = more(found.twapFills, event.fill)
  else if (event.kind === "twap") {
    found.twapHistory = more(found.twapHistory, event.row)
    found.notifications = more(found.notifications, twapNotification(event.row))
  } else if (event.kind === "funding") found.fundings = more(found.fundings, { ...event.funding, nSamples: null })
  else if (event.kind === "ledger") found.ledger = more(found.ledger, event.entry)
  else if (event.kind === "liquidation") found.liquidations = more(found.liquidations, event.liquidation)
  else if (event.kind === "nonUserCancel") {
    found.nonUserCancel = more(found.nonUserCancel, { coin: event.coin, oid: event.oid })
  }
}

/** Groups events by account, in the order of each account's first event. */
export const byAccount = (
  venue: Pick<Venue, "listing">,
  events: ReadonlyArray<VenueEvent>
): ReadonlyArray<AccountEvent> => {
  const found = new Map<Encoding.Address, Collected>()
  for (const event of events) {
    if (!("user" in event)) continue
    addTo(ensure(found, event.user, () => ({})), venue, event)
  }
  return [...found].flatMap(([user, event]) => Object.keys(event).length === 0 ? [] : [{ ...event, user }])
}

/** The interval at which prices change. */
const tickEvery = Duration.seconds(1)

/** Selects the trades from a list of events and groups them by coin, in order of occurrence. */
const byCoin = (events: ReadonlyArray<VenueEvent>): ReadonlyArray<MarketEvent> => {
  const found = Map.groupBy(events.filter((event) => event.kind === "trade"), ({ coin }) => coin)
  return [...found].map(([coin, all]) => ({ coin, trades: all.map(({ trade }) => trade) }))
}

/** The fibers that advance the time of venues whose streams are read, and the number of their readers. */
const tickers = new WeakMap<TradingControls, { readers: number; readonly fiber: Fiber.Fiber<unknown> }>()

/** Advances the venue's time now, and at intervals until the scope closes. The readers of a venue share the intervals. */
const keepTicking = Effect.fnUntraced(function*(trading: TradingControls) {
  yield* trading.tick
  const runFork = Effect.runForkWith(yield* Effect.context())
  const join = Effect.sync(() => {
    const ticker = tickers.get(trading) ?? {
      readers: 0,
      fiber: runFork(Effect.forever(Effect.andThen(Effect.sleep(tickEvery), trading.tick)))
    }
    tickers.set(trading, ticker)
    ticker.readers++
    return ticker
  })
  yield* Effect.acquireRelease(join, (ticker) => {
    if (--ticker.readers > 0) return Effect.void
    tickers.delete(trading)
    return Fiber.interrupt(ticker.fiber)
  })
})

/** Streams the wanted events that occur from now on. An event that is not wanted wakes no fiber. */
const follow = <A>(
  trading: TradingControls,
  read: (events: ReadonlyArray<VenueEvent>, venue: Venue) => ReadonlyArray<A>,
  isWanted: (event: A) => boolean
): Stream.Stream<A> =>
  Stream.callback<A>(Effect.fnUntraced(function*(queue) {
    const following = trading.follow((events, venue) => {
      const wanted = read(events, venue).filter(isWanted)
      if (wanted.length > 0) Queue.offerAllUnsafe(queue, wanted)
    })
    yield* Effect.asVoid(Effect.acquireRelease(following, (leave) => leave))
    yield* keepTicking(trading)
    return yield* Effect.never
  }))

/** Remembers the last result, because each reader of a stream receives the same list of events. */
const once = <A>(read: (events: ReadonlyArray<VenueEvent>, venue: Venue) => ReadonlyArray<A>): typeof read => {
  let last: { readonly events: ReadonlyArray<VenueEvent>; readonly found: ReadonlyArray<A> } | undefined
  return (events, venue) => {
    if (last?.events !== events) last = { events, found: read(events, venue) }
    return last.found
  }
}

/** Makes the streams of {@link VenueFeed}. Reading a stream advances the venue's time. */
const eventStreams = (trading: TradingControls): Pick<VenueFeed, "accounts" | "markets"> => {
  const accountEvents = once((events, venue) => byAccount(venue, events))
  const marketEvents = once(byCoin)
  return {
    accounts: (user) => follow(trading, accountEvents, (event) => event.user.toLowerCase() === user),
    markets: (coin) => follow(trading, marketEvents, (event) => event.coin === coin)
  }
}

/** Options of the sandbox's streams. */
export interface Options {
  /** The rate of frames, as a multiple of the real venue's rate. Default: 1. */
  readonly pace?: number
}

type Request = Subscription.Normalised["request"]

/** Makes the stream of frames for one type of subscription. */
type Source = (
  feed: VenueFeed,
  request: Request,
  every: (milliseconds: number) => Duration.Duration
) => Stream.Stream<unknown>

/** Computes a frame for one type of subscription; `undefined` if there is none now. */
type FrameReader = (feed: VenueFeed, request: Request) => Effect.Effect<unknown>

/** Advances the venue to the current time, and returns it. */
const current = Effect.fnUntraced(function*({ info, trading }: SandboxState["Service"]) {
  const venue = trading.at(yield* Ref.get(info.state), yield* trading.now)
  yield* trading.flush
  return venue
})

/** Makes the {@link VenueFeed} over the state of a sandbox. */
export const makeFeed = (state: SandboxState["Service"]): VenueFeed => ({
  bookVersion: (coin) => Effect.map(current(state), (venue) => VenueMarkets.bookVersion(venue, coin)),
  tradesVersion: (coin) => Effect.map(current(state), (venue) => VenueMarkets.tradesVersion(venue, coin)),
  ask: Effect.fnUntraced(function*(query) {
    if (state.feed !== undefined && Predicate.isString(query["coin"])) yield* state.feed.look([query["coin"]])
    const now = yield* state.trading.now
    const venue = yield* Ref.get(state.venue.state)
    const info = yield* Ref.get(state.info.state)
    const trading = state.trading.at(info, now)
    const answer = VenueInfo.answer({ seed: state.seed, ...info, venue, trading, now }, Encoding.write(query).bytes)
    yield* state.trading.flush
    return answer.status === 200 ? answer.json.valueOrUndefined : undefined
  }),
  now: state.trading.now,
  ...eventStreams(state.trading),
  candles: (request) => state.feed?.candles(request)
})

const isSomething = Predicate.isNotUndefined

/** Computes a value at intervals, and emits each result. */
const paced = (value: Effect.Effect<unknown>, every: Duration.Duration): Stream.Stream<unknown> =>
  Stream.filter(Stream.fromEffectSchedule(value, Schedule.spaced(every)), isSomething)

/** Computes a frame at intervals, and emits each frame whose content differs from the previous one. */
const changes =
  (milliseconds: number, read: FrameReader, content: (frame: unknown) => unknown = (frame) => frame): Source =>
  (feed, request, every) =>
    Stream.suspend(() => {
      let last = ""
      return Stream.filter(paced(read(feed, request), every(milliseconds)), (frame) => {
        const text = Encoding.stringify(content(frame))
        const isNew = text !== last
        last = text
        return isNew
      })
    })

/** Computes a frame at intervals, and emits each frame. */
const polled = (milliseconds: number, read: FrameReader): Source => (feed, request, every) =>
  paced(read(feed, request), every(milliseconds))

/** Runs an effect when a version differs from that of the last time. Otherwise, returns `undefined`. */
const onChange = () => {
  let last: string | undefined
  return <A>(version: Effect.Effect<string>, read: Effect.Effect<A>): Effect.Effect<A | undefined> =>
    Effect.flatMap(version, (found) => {
      if (found === last) return Effect.undefined
      last = found
      return read
    })
}

/** Makes a frame of the venue's response to a query. */
const ofQuery = <A>(feed: VenueFeed, query: Parameters<VenueFeed["ask"]>[0], frame: (response: unknown) => A) =>
  Effect.map(feed.ask(query), frame)

const toList = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []

/** Emits one of an account's lists (such as its fills) as a snapshot, and after that only new rows of the list. */
const snapshot = (
  query: string,
  member: string,
  take: (event: AccountEvent) => ReadonlyArray<unknown> | undefined,
  toRow: (row: unknown) => unknown = (row) => row
): Source =>
(feed, { user, ...request }) =>
  Stream.concat(
    Stream.fromEffect(ofQuery(feed, { type: query, user, ...request }, (rows) => ({
      isSnapshot: true,
      user,
      [member]: toList(rows).toReversed().map(toRow)
    }))),
    userEvents(feed, user, take, (rows) => ({ user, [member]: rows }))
  )

const userEvents = (
  feed: VenueFeed,
  user: unknown,
  take: (event: AccountEvent) => ReadonlyArray<unknown> | undefined,
  frame: (rows: ReadonlyArray<unknown>) => unknown
): Stream.Stream<unknown> =>
  Stream.filter(
    Stream.map(feed.accounts(user), (event) => {
      const rows = take(event)
      return rows === undefined || rows.length === 0 ? undefined : frame(rows)
    }),
    isSomething
  )

/** Emits one frame for each new row of one of the account's lists, such as its fills. */
const eachRow = (
  feed: VenueFeed,
  user: unknown,
  take: (event: AccountEvent) => ReadonlyArray<unknown> | undefined,
  frame: (row: unknown) => unknown
): Stream.Stream<unknown> =>
  Stream.flatMap(
    userEvents(feed, user, take, (rows) => rows),
    (rows) => Stream.fromIterable(toList(rows).map(frame))
  )

/** Returns the market data (`ctx`) of one coin from the venue's response for all coins. */
const readContext = Effect.fnUntraced(function*(feed: VenueFeed, coin: string) {
  if (/^[@#]|\//u.test(coin)) {
    const [, contexts] = toList(yield* feed.ask({ type: "spotMetaAndAssetCtxs" }))
    const ctx = toList(contexts).find((each) => Subscription.valueAt(each, "coin") === coin)
    return ctx === undefined ? undefined : { coin, ctx }
  }
  const dex = coin.includes(":") ? coin.slice(0, coin.indexOf(":")) : ""
  const [meta, contexts] = toList(yield* feed.ask({ type: "metaAndAssetCtxs", dex }))
  const place = toList(Subscription.valueAt(meta, "universe")).findIndex((each) =>
    Subscription.valueAt(each, "name") === coin
  )
  const ctx = toList(contexts)[place]
  return ctx === undefined ? undefined : { coin, ctx }
})

/** Returns the market data of the perpetuals of a dex. */
const readContexts = (feed: VenueFeed, dex: unknown) =>
  ofQuery(feed, { type: "metaAndAssetCtxs", dex }, (response) => toList(response)[1])

const readDexes = (feed: VenueFeed) =>
  ofQuery(feed, { type: "perpDexs" }, (all) =>
    toList(all).map((dex) => {
      const name = Subscription.valueAt(dex, "name")
      return Predicate.isString(name) ? name : ""
    }))

const forDexes = (feed: VenueFeed, query: (dex: string) => Effect.Effect<unknown>) =>
  Effect.flatMap(
    readDexes(feed),
    (all) => Effect.forEach(all, (dex) => Effect.map(query(dex), (value) => [dex, value] as const))
  )

/** Returns the mark and mid prices of all coins. */
const readPrices = Effect.fnUntraced(function*(feed: VenueFeed) {
  const metas = yield* forDexes(feed, (dex) => feed.ask({ type: "metaAndAssetCtxs", dex }))
  const perpetuals = metas.flatMap(([, answer]) => {
    const [meta, contexts] = toList(answer)
    const listed = toList(Subscription.valueAt(meta, "universe"))
    return toList(contexts).map((context, at) => [Subscription.valueAt(listed[at], "name"), context] as const)
  })
  const [, pairs] = toList(yield* feed.ask({ type: "spotMetaAndAssetCtxs" }))
  const spot = toList(pairs).map((context) => [Subscription.valueAt(context, "coin"), context] as const)
  return new Map(
    [...perpetuals, ...spot].map(([coin, context]) => [
      String(coin),
      { markPx: Subscription.valueAt(context, "markPx"), midPx: Subscription.valueAt(context, "midPx") }
    ])
  )
})

const stateEvery = 4500

const ofUser = (query: string, frame: (user: unknown, value: unknown, dex: unknown) => unknown): Source =>
  polled(stateEvery, (feed, { dex, user }) =>
    ofQuery(
      feed,
      { type: query, user, ...(dex === undefined ? {} : { dex }) },
      (value) => value === undefined ? undefined : frame(user, value, dex)
    ))

/** The states of a TWAP order that has not ended. */
const unfinishedTwaps: ReadonlySet<unknown> = new Set(["activated", "waitingForTrigger"])

/** Converts a row of the query `userFunding` to a row of the subscription. */
const toFunding = (row: unknown): unknown => {
  const delta = Subscription.valueAt(row, "delta")
  const { type: _type, ...members } = Predicate.isObject(delta) ? delta : {}
  return { time: Subscription.valueAt(row, "time"), ...members }
}

/** The modes of an account that `webData3` names. */
const abstractions: ReadonlySet<unknown> = new Set(["unifiedAccount", "portfolioMargin", "disabled"])

/** Emits the forming bar of a coin and interval. */
const formingBars: Source = changes(700, (feed, { coin, interval }) =>
  Effect.flatMap(feed.now, (now) => {
    const req = { coin, interval, startTime: now, endTime: now + retainedBars }
    return ofQuery(feed, { type: "candleSnapshot", req }, (bars) => toList(bars).at(-1))
  }))

const sources: { readonly [name: string]: Source } = {
  allMids: polled(
    5000,
    (feed, { dex }) =>
      ofQuery(
        feed,
        { type: "allMids", dex },
        (mids) => mids === undefined ? undefined : dex === "" ? { mids } : { dex, mids }
      )
  ),
  l2Book: (feed, request, every) =>
    polled(
      request["fast"] === true ? 540 : 5400,
      (feed, { coin, fast, mantissa, nSigFigs }) =>
        ofQuery(feed, { type: "l2Book", coin, ...(nSigFigs === null ? {} : { nSigFigs, mantissa }) }, (book) => {
          if (!Predicate.isObject(book)) return undefined
          const sides = toList(Subscription.valueAt(book, "levels"))
          return fast === true
            ? { ...book, levels: sides.map((side) => toList(side).slice(0, 5)), fast: true }
            : book
        })
    )(feed, request, every),
  bbo: (feed, request, every) =>
    Stream.suspend(() => {
      const ifChanged = onChange()
      return changes(
        250,
        (feed, { coin }) =>
          ifChanged(
            feed.bookVersion(String(coin)),
            ofQuery(feed, { type: "l2Book", coin }, (book) => {
              if (book === undefined) return undefined
              const [bids, asks] = toList(Subscription.valueAt(book, "levels"))
              const bbo = [toList(bids)[0] ?? null, toList(asks)[0] ?? null]
              return { coin, time: Subscription.valueAt(book, "time"), bbo }
            })
          ),
        (frame) => Subscription.valueAt(frame, "bbo")
      )(feed, request, every)
    }),
  trades: (feed, { coin }, every) =>
    Stream.suspend(() => {
      // the keys of the trades in the last `recentTrades` response, and of the trades emitted after it
      let seen = new Set<string>()
      let isFirst = true
      const tradeKey = (trade: unknown): string =>
        Encoding.stringify(["time", "coin", "tid"].map((member) => Subscription.valueAt(trade, member)))
      const unseen = (trades: ReadonlyArray<unknown>) => {
        const found = trades.filter((trade) => !seen.has(tradeKey(trade)))
        for (const trade of found) seen.add(tradeKey(trade))
        return found
      }
      const ifChanged = onChange()
      const latest = ifChanged(feed.tradesVersion(String(coin)), feed.ask({ type: "recentTrades", coin }))
      const listed = Stream.map(paced(latest, every(1000)), (list) => {
        const trades = toList(list).toReversed()
        const found = { rows: unseen(trades), isFirst }
        seen = new Set(trades.map(tradeKey))
        isFirst = false
        return found
      })
      const traded = Stream.map(
        feed.markets(coin),
        ({ trades }) => ({ rows: isFirst ? [] : unseen(trades), isFirst: false })
      )
      return Stream.merge(listed, traded).pipe(
        Stream.filter(({ isFirst, rows }) => isFirst || rows.length > 0),
        Stream.map(({ rows }) => rows)
      )
    }),
  candle: (feed, request, every) => feed.candles(request) ?? formingBars(feed, request, every),
  fastAssetCtxs: (feed, _request, every) =>
    Stream.suspend(() => {
      let known = new Map<string, string>()
      const changed = Effect.map(readPrices(feed), (all) => {
        const found = [...all].filter(([coin, prices]) => known.get(coin) !== Encoding.stringify(prices))
        known = new Map([...all].map(([coin, prices]) => [coin, Encoding.stringify(prices)]))
        return found.length === 0
          ? undefined
          : deflateRawSync(Encoding.stringify(Object.fromEntries(found))).toString("base64")
      })
      return paced(changed, every(1000))
    }),
  outcomeMetaUpdates: (feed, _request, every) =>
    Stream.suspend(() => {
      let known: ReadonlyMap<string, unknown> | undefined
      const changed = ofQuery(feed, { type: "outcomeMeta" }, (meta) => {
        const before = known
        const found = new Map<string, unknown>()
        for (const [list, member] of [["outcomes", "outcome"], ["questions", "question"]] as const) {
          for (const spec of toList(Subscription.valueAt(meta, list))) {
            found.set(`${member} ${String(Subscription.valueAt(spec, member))}`, spec)
          }
        }
        known = found
        if (before === undefined) return undefined
        const updates = [
          ...[...before].flatMap(([name, spec]) => {
            const [member = ""] = name.split(" ")
            return found.has(name) ? [] : [{ [`${member}Settled`]: Subscription.valueAt(spec, member) }]
          }),
          // an outcome does not change, but an outcome can be added to a question
          ...[...found].flatMap(([name, spec]) =>
            Encoding.stringify(before.get(name)) === Encoding.stringify(spec)
              ? []
              : [{ [name.startsWith("outcome") ? "outcomeCreated" : "questionUpdated"]: spec }]
          )
        ]
        return updates.length === 0 ? undefined : updates
      })
      return paced(changed, every(1000))
    }),
  activeAssetCtx: polled(1000, (feed, { coin }) => readContext(feed, String(coin))),
  assetCtxs: polled(1000, (feed, { dex }) => Effect.map(readContexts(feed, dex), (ctxs) => ({ dex, ctxs }))),
  spotAssetCtxs: polled(1000, (feed) => ofQuery(feed, { type: "spotMetaAndAssetCtxs" }, (all) => toList(all)[1])),
  allDexsAssetCtxs: polled(
    13_600,
    (feed) => Effect.map(forDexes(feed, (dex) => readContexts(feed, dex)), (ctxs) => ({ ctxs }))
  ),
  webData3: polled(
    stateEvery,
    Effect.fnUntraced(function*(feed, { user }) {
      const data = yield* feed.ask({ type: "webData2", user })
      const mode = yield* feed.ask({ type: "userAbstraction", user })
      const capped = yield* forDexes(feed, (dex) => feed.ask({ type: "perpsAtOpenInterestCap", dex }))
      const members = (names: ReadonlyArray<string>) =>
        Object.fromEntries(names.map((name) => [name, Subscription.valueAt(data, name)]))
      const leadingVaults = toList(Subscription.valueAt(data, "leadingVaults"))
      return {
        userState: {
          ...members(["agentAddress", "agentValidUntil", "cumLedger", "serverTime", "isVault", "user"]),
          ...(Subscription.valueAt(data, "optOutOfSpotDusting") === true ? { optOutOfSpotDusting: true } : {}),
          ...(mode === "dexAbstraction" ? { dexAbstractionEnabled: true } : {}),
          ...(abstractions.has(mode) ? { abstraction: mode } : {})
        },
        // vaults are in the venue's own dex, which is the first one
        perpDexStates: capped.map(([dex, perpsAtOpenInterestCap]) =>
          Object.assign(
            { totalVaultEquity: dex === "" ? Subscription.valueAt(data, "totalVaultEquity") : "0.0" },
            { perpsAtOpenInterestCap },
            dex === "" && leadingVaults.length > 0 ? { leadingVaults } : undefined
          )
        )
      }
    })
  ),
  clearinghouseState: ofUser(
    "clearinghouseState",
    (user, clearinghouseState, dex) => ({ dex, user, clearinghouseState })
  ),
  allDexsClearinghouseState: polled(stateEvery, (feed, { user }) =>
    Effect.map(
      forDexes(feed, (dex) => feed.ask({ type: "clearinghouseState", user, dex })),
      (clearinghouseStates) => ({ user, clearinghouseStates })
    )),
  openOrders: ofUser("frontendOpenOrders", (user, orders, dex) => ({ dex, user, orders })),
  spotState: ofUser("spotClearinghouseState", (user, spotState) => ({ user, spotState })),
  twapStates: polled(stateEvery, (feed, { dex, user }) =>
    ofQuery(feed, { type: "twapHistory", user }, (history) => ({
      dex,
      user,
      states: toList(history).flatMap((row) =>
        unfinishedTwaps.has(Subscription.valueAt(Subscription.valueAt(row, "status"), "status"))
          ? [[Subscription.valueAt(row, "twapId"), Subscription.valueAt(row, "state")]]
          : []
      )
    }))),
  orderUpdates: (feed, { user }) => userEvents(feed, user, ({ orders }) => orders, (orders) => orders),
  userEvents: (feed, { user }) =>
    Stream.mergeAll(
      [
        userEvents(feed, user, ({ fills }) => fills, (fills) => ({ fills })),
        userEvents(feed, user, ({ nonUserCancel }) => nonUserCancel, (nonUserCancel) => ({ nonUserCancel })),
        eachRow(feed, user, ({ fundings }) => fundings, (funding) => ({ funding })),
        eachRow(feed, user, ({ liquidations }) => liquidations, (liquidation) => ({ liquidation })),
        userEvents(feed, user, ({ twapFills }) => twapFills, (twapSliceFills) => ({ twapSliceFills })),
        userEvents(feed, user, ({ twapHistory }) => twapHistory, (twapHistory) => ({ twapHistory }))
      ],
      { concurrency: "unbounded" }
    ),
  userFills: (feed, request, every) =>
    snapshot(
      "userFills",
      "fills",
      ({ fills }) => fills === undefined || request["aggregateByTime"] !== true ? fills : aggregateFills(fills)
    )(feed, request, every),
  userFundings: snapshot("userFunding", "fundings", ({ fundings }) => fundings, toFunding),
  userNonFundingLedgerUpdates: snapshot(
    "userNonFundingLedgerUpdates",
    "nonFundingLedgerUpdates",
    ({ ledger }) => ledger
  ),
  userHistoricalOrders: snapshot("historicalOrders", "orderHistory", ({ history }) => history),
  userTwapHistory: snapshot("twapHistory", "history", ({ twapHistory }) => twapHistory),
  userTwapSliceFills: snapshot("userTwapSliceFills", "twapSliceFills", ({ twapFills }) => twapFills),
  notification: (feed, { user }) =>
    eachRow(
      feed,
      user,
      ({ notifications }) => notifications,
      (notification) => ({ notification })
    ),
  activeAssetData: changes(1000, (feed, { coin, user }) => feed.ask({ type: "activeAssetData", user, coin }))
}

/** Returns the function that makes the stream of frames for a subscription; `undefined` if there is none. */
export const makeFrames =
  (feed: VenueFeed, { pace = 1 }: Options = {}): VenueSocket.Frames => ({ declaration, request }) =>
    sources[declaration.name]?.(feed, request, (milliseconds) => Duration.millis(milliseconds / pace))

const closed = new SocketLost({ code: 1006, reason: "The sandbox closed the connection" })

/** Makes the transport for WebSocket connections to the sandbox's venue, which the sandbox's faults can close. */
export const make = (state: SandboxState["Service"], options?: Options): SocketTransport["Service"] => {
  const { open } = VenueSocket.makeSocket(makeFrames(makeFeed(state), options))
  const { isDown, sockets } = state.faults
  return SocketTransport.of({
    open: Effect.fnUntraced(function*(address) {
      if (yield* isDown) return yield* closed
      const { receive, send } = yield* open(address)
      const end = yield* Deferred.make<never, SocketLost>()
      const close = () => void Deferred.doneUnsafe(end, closed)
      yield* Effect.acquireRelease(
        Effect.sync(() => sockets.add(close)),
        () => Effect.sync(() => sockets.delete(close))
      )
      return { receive: Effect.raceFirst(Deferred.await(end), receive), send }
    })
  })
}
