/**
 * Follows the markets of another venue, read only: its listing, its prices, and the books and trades of the coins that
 * accounts trade or clients look at. Orders are matched in the sandbox, on paper.
 *
 * Nothing signed reaches the followed venue: the only transports of a {@link Source} are {@link queriesOnly} and
 * {@link subscriptionsOnly}.
 */
import { background, CurrentCaller } from "@trigate/domain/Caller"
import { CandleInterval, DecimalString } from "@trigate/domain/candles/Candle"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import * as InfoOperations from "@trigate/domain/info/InfoOperations"
import type { AssetContext, BookLevel, Meta, MetaAndAssetContexts, Perpetual, Trade } from "@trigate/domain/info/Market"
import { SpotMeta } from "@trigate/domain/info/Market"
import { json, type UpstreamResponse } from "@trigate/domain/operations/Operation"
import * as Subscription from "@trigate/domain/unstable/streams/Subscription"
import * as EventStore from "@trigate/trading/accounts/AccountEvents"
import { Info } from "@trigate/trading/Info"
import * as InfoUpstream from "@trigate/trading/InfoUpstream"
import * as Streams from "@trigate/trading/streams/Streams"
import { SocketLost, SocketTransport } from "@trigate/upstream/streams/SocketTransport"
import { HttpTransport, TransportError } from "@trigate/upstream/transport/HttpTransport"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as FiberMap from "effect/FiberMap"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type * as Random from "../Seed.ts"
import * as Advance from "./Advance.ts"
import { type Asset, type CandleMarket, midnight, parseDecimal } from "./Assets.ts"
import { minute, priceAt } from "./CandleBars.ts"
import { followed, never, toQuotes } from "./Margin.ts"
import * as Matching from "./Matching.ts"
import type { TradingControls } from "./TradingControls.ts"
import { append, ensureMarket, type MarketState, withoutPrices } from "./TradingState.ts"
import { emit, type FollowedContext, type PricePath, type Venue } from "./Venue.ts"
import type { InfoState } from "./VenueState.ts"

const isInterval = Schema.is(CandleInterval)

const caller = background("sandbox feed")

const unsent = "the sandbox sends only queries and subscriptions to the venue that it follows"

/** Returns a transport that sends only `POST /info`. It refuses every other request without sending it. */
export const queriesOnly = ({ send }: HttpTransport["Service"]): HttpTransport["Service"] =>
  HttpTransport.of({
    send: (request) =>
      request.method === "POST" && new URL(Redacted.value(request.url)).pathname.endsWith("/info")
        ? send(request)
        : Effect.fail(new TransportError({ sent: "no", reason: "Connect", detail: unsent }))
  })

const readMethods: ReadonlySet<unknown> = new Set(["subscribe", "unsubscribe", "ping"])

/**
 * Returns a transport that sends only the messages `subscribe`, `unsubscribe` and `ping`, so that no `post` message
 * can contain an action. `changed` is called with the number of open connections when it changes.
 */
export const subscriptionsOnly = (
  { open }: SocketTransport["Service"],
  changed: (connections: number) => Effect.Effect<void> = () => Effect.void
): SocketTransport["Service"] => {
  let connections = 0
  const count = (change: 1 | -1) => Effect.suspend(() => changed(connections += change))
  return SocketTransport.of({
    open: Effect.fnUntraced(function*(address) {
      const { receive, send } = yield* open(address)
      yield* Effect.acquireRelease(count(1), () => count(-1))
      return {
        receive,
        send: (text) =>
          readMethods.has(Subscription.valueAt(Result.getOrUndefined(Encoding.parse(text)), "method"))
            ? send(text)
            : Effect.fail(new SocketLost({ code: 1006, reason: unsent }))
      }
    })
  })
}

/** The queries and subscriptions of the followed venue. */
export interface Source {
  readonly info: Pick<Info["Service"], "metaAndAssetCtxs" | "perpDexs" | "relay" | "spotMeta">
  readonly streams: Pick<
    Streams.Streams["Service"],
    "assetCtxs" | "candle" | "l2Book" | "spotAssetCtxs" | "trades"
  >
  /** Sets the effect that runs when the last connection is lost. */
  readonly onLost: (lost: Effect.Effect<void>) => void
}

/** Makes the source at the base URL of a venue, over the transports of the context. */
export const makeSource = Effect.fnUntraced(function*(
  url: string | Redacted.Redacted
): Effect.fn.Return<Source, never, HttpTransport | SocketTransport | Scope.Scope> {
  let lost = Effect.void
  const socket = subscriptionsOnly(
    yield* SocketTransport,
    (connections) => connections === 0 ? lost : Effect.void
  )
  const http = queriesOnly(yield* HttpTransport)
  const services = yield* Layer.build(
    Layer.provide(InfoUpstream.layer({ url, owner: caller }), Layer.succeed(HttpTransport, http))
  )
  const shared = yield* Streams.makeShared(undefined, { addresses: Streams.socketAddresses([url]) }).pipe(
    Effect.provideService(SocketTransport, socket),
    Effect.provideServiceEffect(EventStore.EventStore, EventStore.makeMemory)
  )
  return {
    info: Context.get(services, Info),
    streams: Streams.make(shared),
    onLost: (effect) => {
      lost = effect
    }
  }
})

/** The perpetuals of each dex of the followed venue, and its spot pairs, with their prices. */
interface Listed {
  readonly dexes: ReadonlyArray<{ readonly dex: string; readonly listed: MetaAndAssetContexts }>
  readonly spot: typeof SpotMetaAndContexts.Type
}

const SpotContext = Schema.Struct({
  coin: Schema.String,
  markPx: DecimalString,
  midPx: Schema.optionalKey(Schema.NullOr(DecimalString)),
  prevDayPx: DecimalString,
  dayNtlVlm: DecimalString,
  dayBaseVlm: Schema.optionalKey(Schema.NullOr(DecimalString))
})

const SpotMetaAndContexts = Schema.Tuple([SpotMeta, Schema.Array(SpotContext)])

const decodeSpotContexts = Schema.decodeUnknownOption(Schema.Array(SpotContext))

/** Sends a query, on behalf of the feed. */
const relay = ({ info }: Source, body: Encoding.Json) =>
  Effect.flatMap(InfoOperations.parseCall(body, "gateway", true), info.relay)

const readListed = (source: Source) =>
  Effect.gen(function*() {
    const names = (yield* source.info.perpDexs()).map((dex) => dex?.name ?? "")
    const spot = yield* relay(source, Encoding.write({ type: "spotMetaAndAssetCtxs" }))
    const listed: Listed = {
      dexes: yield* Effect.forEach(names, (dex) =>
        Effect.map(source.info.metaAndAssetCtxs({ dex }), (listed) => ({ dex, listed }))),
      spot: yield* Schema.decodeUnknownEffect(SpotMetaAndContexts)(spot.json.valueOrUndefined)
    }
    return listed
  })

/** The day on which the followed coins are listed: their bars before the feed are generated. */
const listedAt = midnight("2025-01-01")

/** The mean number of generated trades in a minute while the feed is lost. */
const tradeRate = 10

const marginModes: ReadonlySet<unknown> = new Set(["noCross", "strictIsolated"])
const isMarginMode = (mode: unknown): mode is "noCross" | "strictIsolated" => marginModes.has(mode)

/** Makes a market whose generated price at the time `now` is `price`, so that the seed continues from it. */
const makeMarket = (
  seed: Random.Seed,
  now: number,
  price: number,
  dayLots: number,
  market: Pick<CandleMarket, "coin" | "sizeDecimals" | "priceDecimals"> & Partial<CandleMarket>
): CandleMarket => {
  const made: CandleMarket = {
    asset: market.coin,
    volatility: 0.04,
    tradeRate,
    tradeLots: Math.max(1, Math.round(dayLots / 1440 / tradeRate)),
    levelValue: 20_000,
    listedAt,
    price: 1,
    ...market
  }
  return { ...made, price: price / priceAt(seed, made, now) }
}

const perpetual = (
  seed: Random.Seed,
  now: number,
  { marginTables }: Meta,
  listed: Perpetual,
  { dayBaseVlm, markPx }: AssetContext
) => {
  const tiers = marginTables?.find(([id]) => id === listed.marginTableId)?.[1].marginTiers
    .map(({ lowerBound, maxLeverage }) => ({ lowerBound: Number(lowerBound), maxLeverage }))
  return makeMarket(seed, now, Number(markPx) || 1, Number(dayBaseVlm ?? 0) * 10 ** listed.szDecimals, {
    coin: listed.name,
    sizeDecimals: listed.szDecimals,
    priceDecimals: 6 - listed.szDecimals,
    maxLeverage: listed.maxLeverage,
    ...(tiers === undefined || tiers.length < 2 ? {} : { marginTable: { id: listed.marginTableId ?? 0, tiers } }),
    ...(isMarginMode(listed.marginMode) ? { marginMode: listed.marginMode } : {}),
    ...(listed.isDelisted === true ? { delistedAt: listedAt + 1 } : {}),
    ...(listed.growthMode === "enabled" ? { growingSince: listedAt } : {})
  })
}

/** Returns the listing of the followed venue as that of the sandbox. */
const toInfo = (seed: Random.Seed, now: number, { dexes, spot: [spotMeta, contexts] }: Listed, others: InfoState) => {
  const tokens = new Map(spotMeta.tokens.map((token) => [token.index, token]))
  const prices = new Map(contexts.map((context) => [context.coin, context]))
  const markets = [
    ...dexes.flatMap(({ listed: [meta, contexts] }) =>
      meta.universe.flatMap((listed, at) => {
        const context = contexts[at]
        return context === undefined ? [] : [perpetual(seed, now, meta, listed, context)]
      })
    ),
    ...spotMeta.universe.flatMap(({ name, tokens: [base] }) => {
      const sizeDecimals = tokens.get(base)?.szDecimals
      const price = Number(prices.get(name)?.markPx)
      if (sizeDecimals === undefined || !(price > 0)) return []
      const dayLots = Number(prices.get(name)?.dayBaseVlm ?? 0) * 10 ** sizeDecimals
      return [makeMarket(seed, now, price, dayLots, { coin: name, sizeDecimals, priceDecimals: 8 - sizeDecimals })]
    })
  ]
  return { ...others, spotMeta, markets: new Map(markets.map((market) => [market.coin, market])) }
}

/** The state of the feed, for the operator. */
export interface FeedStatus {
  /** `unreachable`: the venue has not responded since the start. `lost`: it did, and the connection is lost. */
  readonly state: "following" | "lost" | "unreachable"
  /** The venue's time at which the state began, in milliseconds. */
  readonly since: number
  /** The number of coins whose prices are followed. */
  readonly coins: number
  /** The number of coins whose books and trades are followed. */
  readonly books: number
}

/** The feed of a sandbox. */
export interface MarketFeed {
  readonly status: () => FeedStatus
  /** Waits for the books of coins that are not followed yet, at most two seconds. Does nothing while the feed is lost. */
  readonly look: (coins: ReadonlyArray<string>) => Effect.Effect<void>
  /** Like `look`, for the assets that a signed body names. */
  readonly lookAtAssets: (body: Uint8Array) => Effect.Effect<void>
  /**
   * Returns the venue's response to a query about the past of a market. For any other query, waits for the book of its
   * coin, and returns `undefined`.
   */
  readonly ask: (query: Uint8Array) => Effect.Effect<UpstreamResponse | undefined>
  /** Streams the bars of a coin; `undefined` while the feed is lost. */
  readonly candles: (request: Subscription.Normalised["request"]) => Stream.Stream<unknown> | undefined
}

/** A feed that has not started. */
export interface Pending {
  /** Returns the initial listing: that of the venue if it responds, otherwise `others`. */
  readonly listing: (seed: Random.Seed, now: number, others: InfoState) => Effect.Effect<InfoState>
  /** Returns a price path with the prices of the followed coins. */
  readonly path: (base: PricePath) => PricePath
  readonly start: (venue: Venue, trading: TradingControls) => Effect.Effect<MarketFeed, never, Scope.Scope>
}

/** The last price of a coin, and the time at which the feed was lost; `undefined` while the coin is followed. */
interface Price {
  readonly value: number
  readonly lostAt: number | undefined
}

/** A coin whose book and trades are followed. */
interface Watched {
  readonly ready: Deferred.Deferred<void>
  lookedAt: number
  /** The latest book: the best levels of the fastest frame, then those of the last complete one. */
  levels: readonly [bids: ReadonlyArray<BookLevel>, asks: ReadonlyArray<BookLevel>]
}

/** The queries about the past of a market, which are sent to the followed venue. */
const pastQueries: ReadonlySet<unknown> = new Set(["candleSnapshot", "fundingHistory", "predictedFundings"])

/** The response to a query that the followed venue did not answer, for example because of its rate limit. */
const limited = json("trading-api", 429, "null")

/** Maximum time for which the start of the sandbox waits for the venue. */
const startWithin = "5 seconds"

/** Maximum time for which a request waits for a book. */
const bookWithin = "2 seconds"

/** The time between two attempts to read the venue's listing. */
const retryEvery = "5 seconds"

/** The time after which a book that could not be followed is followed again. */
const watchAgainAfter = "1 minute"

/** Milliseconds without a query or a position after which the book of a coin is no longer followed. */
const idleAfter = 600_000

const rememberedTrades = 500

/** Maximum number of levels of each side of a followed book; the venue sends 20. */
const mostLevels = 100

/** The price from which a followed price is not believed. */
const mostPrice = 1e12

const nothing: ReadonlySet<string> = new Set()

/** Replaces the best levels of one side of a book by those of a newer frame, which has fewer levels. */
const joinLevels = (full: ReadonlyArray<BookLevel>, best: ReadonlyArray<BookLevel>, isBid: boolean) => {
  const last = Number(best.at(-1)?.px)
  return best.length === 0 ? full : [...best, ...full.filter(({ px }) => isBid ? Number(px) < last : Number(px) > last)]
}

const textIn = (body: Uint8Array): string => Option.getOrElse(Encoding.decode(body), () => "")

const Query = Schema.Struct({
  type: Schema.String,
  coin: Schema.optionalKey(Schema.String),
  req: Schema.optionalKey(Schema.Struct({ coin: Schema.String }))
})

const decodeQuery = Schema.decodeUnknownOption(Query)

const readQuery = (body: Encoding.Json): Partial<typeof Query.Type> =>
  Option.getOrElse(decodeQuery(body.valueOrUndefined), () => ({}))

/** Returns the asset numbers in a body. */
const assetsIn = (text: string): ReadonlyArray<number> =>
  [...text.matchAll(/"a(?:sset)?"\s*:\s*([0-9]+)/gu)].map(([, id]) => Number(id))

/**
 * Fills the resting orders that a trade of a followed venue would have filled first, because their price is better than
 * the trade's, with at most the size of the trade. Each order is filled at its own price.
 */
const fillPassed = (venue: Venue, asset: Asset, takerBuys: boolean, px: bigint, sz: bigint): void => {
  const market = ensureMarket(venue.state, asset.coin)
  const findBest = () => Matching.bestIn(asset, takerBuys ? market.asks : market.bids)
  for (let left = sz; left > 0n;) {
    const maker = Matching.nextMaker(venue, findBest, undefined, (at) => takerBuys ? at < px : at > px)
    if (maker === undefined) return
    left -= Matching.withHouse(venue, asset, market, maker.order, left)
  }
}

/** Makes the feed over a source. */
export const make = (source: Source): Pending => {
  const prices = new Map<string, Price>()
  let known: Listed | undefined

  const path = (base: PricePath): PricePath => ({
    ...base,
    priceAt: (market, now) => {
      const price = prices.get(market.coin)
      if (price === undefined) return base.priceAt(market, now)
      if (price.lostAt === undefined) return price.value
      return price.value * base.priceAt(market, now) / base.priceAt(market, price.lostAt)
    }
  })

  const listing: Pending["listing"] = (seed, now, others) =>
    readListed(source).pipe(
      Effect.timeout(startWithin),
      Effect.map((listed): InfoState => {
        known = listed
        return toInfo(seed, now, listed, others)
      }),
      Effect.orElseSucceed(() => others)
    )

  const start: Pending["start"] = Effect.fnUntraced(function*(venue, trading) {
    const scope = yield* Effect.scope
    const watching = yield* FiberMap.make<string>()
    const watched = new Map<string, Watched>()
    const isAdopted = known !== undefined
    const begun = yield* Deferred.make<void>()
    let status: Pick<FeedStatus, "state" | "since"> = { state: "unreachable", since: venue.state.now }
    let isOver = false

    const unfollow = (market: MarketState | undefined) => {
      if (market?.quotes.second === followed) ({ quotes: market.quotes } = withoutPrices())
    }

    const isControlled = (coin: string) =>
      venue.state.markets.get(coin)?.quotes.second === never || venue.path.playedSince(coin) !== undefined

    /** Advances the venue with the old prices, then sets new ones, and fills and triggers the orders that they reach. */
    const change = Effect.fnUntraced(function*(set: () => ReadonlySet<string>) {
      yield* trading.tick
      const begins = status.state !== "following"
      if (begins) status = { state: "following", since: venue.state.now }
      const changed = set()
      for (const coin of changed) {
        const market = venue.state.markets.get(coin)
        if (market !== undefined) ({ mark: market.mark } = withoutPrices())
      }
      Advance.playCoins(venue, changed)
      yield* trading.flush
      if (!begins) return
      yield* Deferred.succeed(begun, undefined)
      yield* Effect.logInfo("The sandbox follows the market of the venue in TRIGATE_SANDBOX_FEED_URL")
    })

    const lose = Effect.suspend(() => {
      if (isOver || status.state !== "following") return Effect.void
      const since = venue.state.now
      status = { state: "lost", since }
      for (const [coin, { value }] of prices) prices.set(coin, { value, lostAt: since })
      venue.followed.clear()
      for (const market of venue.state.markets.values()) {
        ;({ mark: market.mark } = withoutPrices())
        unfollow(market)
      }
      return Effect.logWarning(
        "The venue in TRIGATE_SANDBOX_FEED_URL is lost: until it responds, the sandbox continues the prices from its seed"
      )
    })
    source.onLost(lose)

    /** Returns whether a coin of the followed venue is the coin of the sandbox with the same name. */
    const isSame = (coin: string, sizeDecimals: number): boolean => {
      const market = venue.info.markets.get(coin)
      return market !== undefined && (isAdopted || market.sizeDecimals === sizeDecimals)
    }

    const setPrices = (all: ReadonlyArray<readonly [coin: string, context: FollowedContext]>) =>
      change(() => {
        const changed = new Set<string>()
        for (const [coin, context] of all) {
          const value = Number(context.markPx)
          if (!(value > 0 && value < mostPrice) || isControlled(coin)) continue
          const before = prices.get(coin)
          if (before?.value !== value || before.lostAt !== undefined) changed.add(coin)
          venue.followed.set(coin, context)
          prices.set(coin, { value, lostAt: undefined })
        }
        return changed
      })

    const setBook = (asset: Asset, entry: Watched) =>
      change(() => {
        const { coin } = asset
        if (!isControlled(coin)) {
          const [bids, asks] = entry.levels.map((levels) => toQuotes(asset, levels.slice(0, mostLevels)))
          ensureMarket(venue.state, coin).quotes = { second: followed, bids: bids ?? [], asks: asks ?? [] }
          emit(venue, { kind: "book", coin })
        }
        Deferred.doneUnsafe(entry.ready, Effect.void)
        return new Set([coin])
      })

    const passTrade = (asset: Asset, trade: Trade) =>
      change(() => {
        const { coin } = asset
        append(ensureMarket(venue.state, coin).trades, trade, rememberedTrades)
        emit(venue, { kind: "trade", coin, trade })
        const px = parseDecimal(trade.px, asset.pxDecimals)
        const sz = parseDecimal(trade.sz, asset.szDecimals)
        // the first trades of a subscription are past ones
        const isNew = trade.time >= venue.state.now - minute && !isControlled(coin)
        if (isNew && px !== undefined && sz !== undefined) fillPassed(venue, asset, trade.side === "B", px, sz)
        return nothing
      })

    const watch = (asset: Asset, entry: Watched) =>
      Effect.all([
        Stream.runForEach(source.streams.l2Book({ coin: asset.coin }), ({ levels }) => {
          entry.levels = levels
          return setBook(asset, entry)
        }),
        Stream.runForEach(source.streams.l2Book({ coin: asset.coin, fast: true }), ({ levels: [bids, asks] }) => {
          entry.levels = [joinLevels(entry.levels[0], bids, true), joinLevels(entry.levels[1], asks, false)]
          return setBook(asset, entry)
        }),
        Stream.runForEach(source.streams.trades({ coin: asset.coin }), (trade) => passTrade(asset, trade))
      ], { concurrency: "unbounded", discard: true }).pipe(
        Effect.catchCause((cause) => Effect.logWarning(`The book of ${asset.coin} cannot be followed`, cause)),
        Effect.andThen(Deferred.succeed(entry.ready, undefined)),
        Effect.andThen(Effect.sleep(watchAgainAfter)),
        Effect.ensuring(Effect.sync(() => watched.delete(asset.coin))),
        Effect.provideService(CurrentCaller, caller)
      )

    const lookOne = Effect.fnUntraced(function*(coin: string) {
      const asset = venue.listing.byCoin.get(coin)
      if (asset === undefined || !venue.followed.has(coin)) return
      const lookedAt = venue.state.now
      const entry = watched.get(coin) ?? { ready: yield* Deferred.make<void>(), lookedAt, levels: [[], []] as const }
      entry.lookedAt = lookedAt
      if (!watched.has(coin)) {
        watched.set(coin, entry)
        yield* FiberMap.run(watching, coin, watch(asset, entry))
      }
      yield* Effect.ignore(Effect.timeout(Deferred.await(entry.ready), bookWithin))
    })

    const look: MarketFeed["look"] = (coins) =>
      coins.length === 0 ? Effect.void : Effect.forEach(coins, lookOne, { concurrency: "unbounded", discard: true })

    /** Follows the books of the coins with orders or positions, and no longer those that are idle. */
    const arrange = Effect.suspend(() => {
      const traded = new Set(Advance.tradedCoins(venue))
      const idle = [...watched].filter(([coin, { lookedAt }]) =>
        !traded.has(coin) && venue.state.now - lookedAt > idleAfter
      )
      for (const [coin] of idle) unfollow(venue.state.markets.get(coin))
      return Effect.forEach(idle, ([coin]) => FiberMap.remove(watching, coin), { discard: true }).pipe(
        Effect.andThen(Effect.forkIn(look([...traded].filter((coin) => !watched.has(coin))), scope))
      )
    })

    const followPrices = ({ dexes, spot: [spotMeta] }: Listed) => {
      const ofDex = (dex: string, contexts: ReadonlyArray<AssetContext>) => {
        const universe = dexes.find((each) => each.dex === dex)?.listed[0].universe ?? []
        return contexts.flatMap((context, at) => {
          const { isDelisted, name = "", szDecimals = 0 } = universe[at] ?? {}
          return isDelisted !== true && isSame(name, szDecimals) ? [[name, context] as const] : []
        })
      }
      const tokens = new Map(spotMeta.tokens.map(({ index, tokenId }) => [index, tokenId]))
      const own = new Map(venue.info.spotMeta.tokens.map(({ index, tokenId }) => [index, tokenId]))
      const pairs = new Set(
        spotMeta.universe.flatMap(({ name, tokens: [base] }) => tokens.get(base) === own.get(base) ? [name] : [])
      )
      return Effect.all([
        ...dexes.map(({ dex }) =>
          Stream.runForEach(
            source.streams.assetCtxs({ dex }),
            ({ ctxs }) => Effect.andThen(setPrices(ofDex(dex, ctxs)), arrange)
          )
        ),
        Stream.runForEach(source.streams.spotAssetCtxs({}), (contexts) =>
          setPrices(
            Option.getOrElse(decodeSpotContexts(contexts), () => [])
              .flatMap((context) => pairs.has(context.coin) ? [[context.coin, context] as const] : [])
          ))
      ], { concurrency: "unbounded", discard: true })
    }

    const follow = Effect.suspend(() => known === undefined ? readListed(source) : Effect.succeed(known)).pipe(
      Effect.retry(Schedule.spaced(retryEvery)),
      Effect.flatMap(followPrices),
      Effect.catchCause((cause) => Effect.logWarning("The prices of the followed venue cannot be read", cause)),
      Effect.andThen(Effect.sleep(retryEvery)),
      Effect.forever,
      Effect.provideService(CurrentCaller, caller)
    )
    yield* Effect.forkScoped(follow)
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        isOver = true
      })
    )
    if (isAdopted) yield* Effect.ignore(Effect.timeout(Deferred.await(begun), startWithin))
    if (status.state !== "following") {
      yield* Effect.logWarning(
        "The venue in TRIGATE_SANDBOX_FEED_URL does not respond: until it does, the sandbox makes prices from its seed"
      )
    }

    const isFollowing = (coin: string | undefined) =>
      status.state === "following" && (coin === undefined || venue.followed.has(coin) && !isControlled(coin))

    return {
      look,
      status: () => ({ ...status, coins: venue.followed.size, books: watched.size }),
      lookAtAssets: (body) =>
        look([...new Set(assetsIn(textIn(body)))].flatMap((id) => venue.listing.byId.get(id)?.coin ?? [])),
      ask: (query) => {
        const body = Encoding.of(textIn(query))
        const { coin, req, type } = readQuery(body)
        if (!pastQueries.has(type)) return Effect.as(look(coin === undefined ? [] : [coin]), undefined)
        return isFollowing(coin ?? req?.coin)
          ? relay(source, body).pipe(
            Effect.catch((error) => Effect.succeed(error._tag === "UnknownAsset" ? undefined : limited)),
            Effect.provideService(CurrentCaller, caller)
          )
          : Effect.undefined
      },
      candles: ({ coin, interval }) =>
        Predicate.isString(coin) && isInterval(interval) && isFollowing(coin)
          ? source.streams.candle({ coin, interval }).pipe(
            Stream.catchCause((cause) =>
              Stream.fromEffectDrain(Effect.logWarning(`The bars of ${coin} ${interval} cannot be followed`, cause))
            ),
            Stream.provideService(CurrentCaller, caller)
          )
          : undefined
    }
  })

  return { listing, path, start }
}
