/** The controls of the venue for tests: books, prices, metadata, time and faults. */
import type { SentAction } from "@trigate/domain/actions/Action"
import { classifyRejection } from "@trigate/domain/actions/ActionOutcome"
import type { Candle } from "@trigate/domain/candles/Candle"
import { type Address, type Hash, lowerCase } from "@trigate/domain/encoding/Encoding"
import type { SpotMeta, SpotPair, SpotToken } from "@trigate/domain/info/Market"
import * as UpstreamResponse from "@trigate/domain/operations/Operation"
import { none, type SandboxFaults } from "@trigate/domain/unstable/Sandbox"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as MutableRef from "effect/MutableRef"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Random from "../Seed.ts"
import type { ActionContext } from "./AccountActions.ts"
import * as Advance from "./Advance.ts"
import { type Asset, type CandleMarket, parseDecimal, readGivenPx, usdDecimals, usdh } from "./Assets.ts"
import { discardPrices, never, shareQuotes } from "./Margin.ts"
import { firstSide, list, withOutcomes } from "./Outcomes.ts"
import {
  ensureAccount,
  ensureMarket,
  type Quote,
  type Scheduled,
  type TradingState,
  withoutPrices
} from "./TradingState.ts"
import * as Transfers from "./Transfers.ts"
import { emit, nextHash, type PricePath, type Venue, type VenueEvent } from "./Venue.ts"
import * as Actions from "./VenueExchange.ts"
import * as VenueRefusal from "./VenueRefusal.ts"
import { changeAccount, type InfoState, type VenueState } from "./VenueState.ts"

/** The faults that have a probability. */
export type SharedFault = Exclude<keyof SandboxFaults, "latency">

const rateLimited = UpstreamResponse.json("trading-api", 429, "null")

/** Makes the fault injection of a sandbox. `seed` determines which requests are affected. */
export const makeFaults = (seed: Random.Seed, initial: Partial<SandboxFaults> = {}) => {
  let faults: SandboxFaults = { ...none, ...initial }
  const cases = new Map<SharedFault, number>()
  const sockets = new Set<() => void>()
  let downUntil = 0
  const happens = (fault: SharedFault): boolean => {
    const share = faults[fault]
    if (share === 0) return false
    const at = cases.get(fault) ?? 0
    cases.set(fault, at + 1)
    return Random.fraction(Random.series(seed, `fault/${fault}`), at) < share
  }
  return {
    get: () => faults,
    /** The functions that close the gateway's open WebSockets to the venue. */
    sockets,
    /** Returns whether the venue currently refuses WebSockets. */
    isDown: Effect.map(Clock.currentTimeMillis, (now) => now < downUntil),
    /** Closes the gateway's WebSockets to the venue, and refuses new ones for a number of milliseconds. */
    cutSockets: (downFor: number) =>
      Effect.map(Clock.currentTimeMillis, (now) => {
        downUntil = now + downFor
        for (const close of sockets) close()
      }),
    /** Sets the faults in `changed`. Other faults do not change. */
    set: (changed: Partial<SandboxFaults>) =>
      Effect.sync(() => {
        faults = { ...faults, ...changed }
      }),
    /**
     * Returns whether a fault affects the next request. The result depends on the seed and on the fault's probability.
     */
    happens,
    /**
     * Runs a request after the venue's latency. If the rate-limit fault affects the request, returns HTTP 429 without
     * running it.
     */
    ask: <E, R>(venue: Effect.Effect<UpstreamResponse.UpstreamResponse, E, R>) =>
      Effect.suspend(() => {
        const asked = () => happens("rateLimited") ? Exit.succeed(rateLimited) : venue
        return faults.latency === 0 ? asked() : Effect.delay(Effect.suspend(asked), faults.latency)
      })
  }
}

/** Reads and sets the faults of a sandbox. */
export type VenueFaults = ReturnType<typeof makeFaults>

const quote = 0

const token = (
  index: number,
  name: string,
  tokenId: string,
  rest: Partial<SpotToken> = {}
): SpotToken => ({
  name,
  szDecimals: 2,
  weiDecimals: 8,
  index,
  tokenId,
  isCanonical: false,
  evmContract: null,
  fullName: null,
  deployerTradingFeeShare: "0.0",
  ...rest
})

/** Tokens that do not depend on the seed. */
const knownTokens: ReadonlyArray<SpotToken> = [
  token(0, "USDC", "0x6d1e7cde53ba9467b783cb7c530ce054", { szDecimals: 8, isCanonical: true }),
  token(1, "PURR", "0xc1fb593aeffbeb02f85e0308e9956a90", {
    szDecimals: 0,
    weiDecimals: 5,
    isCanonical: true,
    evmContract: { address: "0x9b498c3c8a0b8cd8ba1d9851d40d186f1872b44e", evm_extra_wei_decimals: 13 }
  }),
  token(150, "HYPE", "0x0d01dc56dcaaca66ad901c959b4011ec", {
    fullName: "Hyperliquid",
    evmContract: { address: "0x2222222222222222222222222222222222222222", evm_extra_wei_decimals: 10 }
  }),
  token(usdh, "USDH", "0x54e00a5988577cb0b0c9ab0cb6ef7f4b", { fullName: "USDH" })
]

/** Pairs that do not depend on the seed. */
const knownPairs: ReadonlyArray<SpotPair> = [
  { tokens: [1, quote], name: "PURR/USDC", index: 0, isCanonical: true },
  { tokens: [150, quote], name: "@107", index: 107, isCanonical: false },
  { tokens: [usdh, quote], name: "@230", index: 230, isCanonical: false }
]

const syllables = "ba chi do fun ger hy jeff ka lqd mo nu pip ra su tor za".split(" ")

const makeName = (seed: Random.Seed, index: number): string => {
  const family = Random.series(seed, `spot/${index}/name`)
  const parts = Array.from(
    { length: 2 + Random.below(family, 0, 2) },
    (_, part) => syllables[Random.below(family, part + 1, syllables.length)] ?? ""
  )
  // one name in sixteen ends with a space, because some real names do
  return `${parts.join("").toUpperCase()}${Random.below(family, 9, 16) === 0 ? " " : ""}`
}

const makeEvmContract = (seed: Random.Seed, index: number) => {
  const family = Random.series(seed, `spot/${index}/evm`)
  return Random.below(family, 0, 3) > 0 ? null : {
    address: Random.hex(seed, `spot/${index}/address`, 40),
    evm_extra_wei_decimals: Random.below(family, 1, 21) - 2
  }
}

const madeToken = (seed: Random.Seed, index: number): SpotToken => {
  const family = Random.series(seed, `spot/${index}`)
  return token(index, makeName(seed, index), Random.hex(seed, `spot/${index}/id`, 32), {
    szDecimals: Random.below(family, 1, 4),
    weiDecimals: 5 + Random.below(family, 2, 4),
    evmContract: makeEvmContract(seed, index),
    fullName: Random.below(family, 3, 4) === 0 ? `The ${makeName(seed, index).trim()} Token` : null,
    deployerTradingFeeShare: Random.below(family, 4, 5) === 0 ? "1.0" : "0.0"
  })
}

const lastToken = 460

/** The first token index after which indexes are missing, so that a token's position can differ from its index. */
const firstTokenHole = usdh + 1

/** The first index of a generated token without a pair. */
const firstUnpaired = 300

const isHole = (seed: Random.Seed, kind: string, index: number): boolean =>
  Random.below(Random.series(seed, `spot/holes/${kind}`), index, 6) === 0

const madeTokens = (seed: Random.Seed): ReadonlyArray<SpotToken> =>
  Array.from({ length: lastToken - 1 }, (_, offset) => offset + 2)
    .filter((index) => index !== 150 && index !== usdh && (index < firstTokenHole || !isHole(seed, "token", index)))
    .map((index) => madeToken(seed, index))

/**
 * Makes pairs. Uses only tokens whose position in the list equals their index. Some libraries look up tokens by
 * position: ccxt, and the venue's Python SDK before 0.23.0. The constructor of the SDK fails if a pair names a token
 * that is not listed.
 */
const madePairs = (seed: Random.Seed, tokens: ReadonlyArray<SpotToken>): ReadonlyArray<SpotPair> =>
  tokens.filter(({ index }) => index < firstUnpaired)
    .map((base, offset): SpotPair => ({
      // one pair in thirty has a quote token other than USDC
      tokens: [base.index, Random.below(Random.series(seed, "spot/quotes"), offset, 30) === 0 ? 150 : quote],
      name: `@${offset + 1}`,
      index: offset + 1,
      isCanonical: false
    }))
    .filter(({ index }) => index !== 107 && index !== 230 && !isHole(seed, "pair", index))

const byIndex = (a: { readonly index: number }, b: { readonly index: number }): number => a.index - b.index

/**
 * Makes all spot tokens and pairs for a seed.
 *
 * The indexes of tokens and of pairs have gaps, so the position of a token or pair in its list can differ from its
 * index. For every token that is part of a pair, the position equals the index.
 */
export const makeSpotMeta = (seed: Random.Seed): SpotMeta => {
  const tokens = madeTokens(seed)
  return {
    universe: [...knownPairs, ...madePairs(seed, tokens)].toSorted(byIndex),
    tokens: [...knownTokens, ...tokens].toSorted(byIndex)
  }
}

const minute = 60_000

/** A price and its time, in milliseconds. */
export interface PricePoint {
  readonly time: number
  readonly price: number
}

/**
 * Returns the price points of bars: open, low, high, close for a rising bar, and open, high, low, close for a falling
 * bar.
 */
export const pricePoints = (
  bars: ReadonlyArray<Pick<Candle, "t" | "T" | "o" | "h" | "l" | "c">>
): ReadonlyArray<PricePoint> =>
  bars.flatMap(({ T, c, h, l, o, t }) => {
    const third = (T - t) / 3
    const [first, second] = Number(c) >= Number(o) ? [l, h] : [h, l]
    return [[t, o], [t + third, first], [t + 2 * third, second], [T, c]] as const
  }).map(([time, price]) => ({ time: Math.round(time), price: Number(price) }))

/** Returns the index of the first point after a time. */
const indexAfter = (points: ReadonlyArray<PricePoint>, time: number): number => {
  let low = 0
  let high = points.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((points[middle]?.time ?? 0) <= time) low = middle + 1
    else high = middle
  }
  return low
}

/**
 * Returns the price interpolated between two points. The price is constant before the first point and after the last
 * one.
 */
const priceIn = (points: ReadonlyArray<PricePoint>, time: number): number | undefined => {
  const index = indexAfter(points, time)
  const before = points[index - 1]
  const after = points[index]
  if (before === undefined || after === undefined) return (before ?? after)?.price
  return before.price + (after.price - before.price) * (time - before.time) / (after.time - before.time)
}

/**
 * Price points that are replayed from the time `from` until the next set of points starts. `speed` is relative to real
 * time.
 */
export interface Played {
  readonly from: number
  readonly speed: number
  readonly points: ReadonlyArray<PricePoint>
}

/** The replayed points of each coin. The oldest set of points is first. */
export type PlayedCoins = ReadonlyMap<string, ReadonlyArray<Played>>

/**
 * Maximum number of stored point sets of a coin. Before the time at which the oldest set starts, bars have the prices
 * of the underlying path.
 */
const mostPlayed = 100

/** Adds price points of a coin, which are replayed from `played.from` on. */
export const play = (coins: PlayedCoins, coin: string, played: Played): PlayedCoins =>
  new Map(coins).set(coin, [...coins.get(coin) ?? [], played].slice(-mostPlayed))

/** Converts the time `now` to the corresponding time of the replayed points. */
const timeIn = ({ from, points, speed }: Played, now: number): number => (points[0]?.time ?? 0) + (now - from) * speed

/** Makes a path that replays points for the coins in `coins`, and uses the path `others` for all other coins. */
export const playedPath = (others: PricePath, coins: PlayedCoins): PricePath => {
  const current = ({ coin }: CandleMarket, now: number): Played | undefined =>
    coins.get(coin)?.findLast(({ from, points }) => from <= now && points.length > 0)
  return coins.size === 0 ? others : {
    priceAt: (market, now) => {
      const playing = current(market, now)
      const price = playing === undefined ? undefined : priceIn(playing.points, timeIn(playing, now))
      return price ?? others.priceAt(market, now)
    },
    isMonotone: (market, from, to) => {
      const playing = current(market, from)
      if (playing !== current(market, to)) return false
      if (playing === undefined) return others.isMonotone(market, from, to)
      const next = playing.points[indexAfter(playing.points, timeIn(playing, from))]
      return next === undefined || next.time >= timeIn(playing, to)
    },
    playedSince: (coin) => coins.get(coin)?.[0]?.from ?? others.playedSince(coin)
  }
}

/** Makes a path on which time passes `speed` times as fast after the time `from`. */
export const faster = (path: PricePath, from: number, speed: number): PricePath => {
  const timeAt = (now: number): number => now <= from ? now : from + (now - from) * speed
  return speed === 1 ? path : {
    priceAt: (market, now) => path.priceAt(market, timeAt(now)),
    isMonotone: (market, since, to) => {
      const [first, last] = [timeAt(since), timeAt(to)]
      return last <= (Math.floor(first / minute) + 1) * minute && path.isMonotone(market, first, last)
    },
    playedSince: () => from
  }
}

/** A price level, as decimal text. */
export interface GivenLevel {
  readonly px: string
  readonly sz: string
}

/** The levels of a book, in any order. A side can be empty. */
export interface GivenBook {
  readonly bids: ReadonlyArray<GivenLevel>
  readonly asks: ReadonlyArray<GivenLevel>
}

/** A book that a coin cannot have; `path` leads to the invalid value. Nothing was changed. */
export class InvalidBook extends Schema.TaggedError<InvalidBook>()("InvalidBook", {
  path: Schema.Array(Schema.Union([Schema.String, Schema.Natural])),
  message: Schema.String
}) {}

const invalid = (message: string, ...path: ReadonlyArray<string | number>) =>
  Result.fail(new InvalidBook({ path, message }))

const readLevel = (asset: Asset, { px, sz }: GivenLevel, ...path: ReadonlyArray<string | number>) => {
  const ticks = readGivenPx(asset, px)
  if (Result.isFailure(ticks)) return invalid(ticks.failure, ...path, "px")
  const lots = parseDecimal(sz, asset.szDecimals)
  return lots === undefined || lots <= 0n
    ? invalid(`Expected a size above 0 with at most ${asset.szDecimals} decimals`, ...path, "sz")
    : Result.succeed({ px: ticks.success, sz: lots, n: 1 })
}

/** Replaces the synthetic orders of a coin by the levels of a book; by generated orders if `book` is `undefined`. */
export const giveBook = (
  venue: Venue,
  coin: string,
  book: GivenBook | undefined
): Result.Result<void, InvalidBook> =>
  Result.gen(function*() {
    const asset = venue.listing.byCoin.get(coin)
    if (asset === undefined) return yield* invalid(`The sandbox does not list ${coin}`, "coin")
    const market = ensureMarket(venue.state, coin)
    if (book === undefined) ({ quotes: market.quotes } = withoutPrices())
    else {
      const bids: Array<Quote> = []
      const asks: Array<Quote> = []
      for (const [index, level] of book.bids.entries()) bids.push(yield* readLevel(asset, level, "bids", index))
      for (const [index, level] of book.asks.entries()) asks.push(yield* readLevel(asset, level, "asks", index))
      bids.sort((a, b) => Number(b.px - a.px))
      asks.sort((a, b) => Number(a.px - b.px))
      const [bid] = bids
      const [ask] = asks
      if (bid !== undefined && ask !== undefined && ask.px <= bid.px) {
        return yield* invalid("Expected asks above the bids", "asks")
      }
      market.quotes = { second: never, bids, asks }
    }
    shareQuotes(venue, asset)
    emit(venue, { kind: "book", coin })
  })

/** Receives the events of the venue in order of occurrence. */
export type Follower = (events: ReadonlyArray<VenueEvent>, venue: Venue) => void

/** A copy of the trading state, including the replayed prices. */
export interface TradingSnapshot {
  readonly state: TradingState
  readonly played: PlayedCoins
  /** The milliseconds passed to `advance` until the time of the copy. */
  readonly ahead: number
}

const parseAmount = (text: string, decimals: number): Result.Result<bigint, Advance.InvalidHolding> => {
  const amount = parseDecimal(text, decimals)
  return amount === undefined || amount < 0n
    ? Advance.invalid("amount", `Expected an amount of at least 0 with at most ${decimals} decimals`)
    : Result.succeed(amount)
}

const second = 1_000

/** Maximum simulated milliseconds before the simulation yields to the event loop. */
const stretch = 300_000

/** Makes the trading controls for a venue, its accounts and its listings. */
export const make = (
  venue: Venue,
  { identity, info, stoppedAt }: {
    /** The time at which the venue's clock is stopped; `undefined` if the clock runs. */
    readonly stoppedAt: number | undefined
    readonly identity: Ref.Ref<VenueState>
    readonly info: Ref.Ref<InfoState>
  }
) => {
  const followers = new Set<Follower>()
  const { path: base } = venue
  let played: PlayedCoins = new Map()
  let ahead = 0
  venue.path = withOutcomes(base)
  // a test's clock can stand between two milliseconds
  const nowAt = (clock: number): number => Math.floor(stoppedAt ?? clock) + ahead
  const now = Effect.map(Clock.currentTimeMillis, nowAt)
  const setPlayed = (coins: PlayedCoins): void => {
    played = coins
    venue.path = withOutcomes(playedPath(base, coins), coins)
    // discards the mark prices and synthetic orders of this second, which are based on the previous price path
    for (const market of venue.state.markets.values()) {
      discardPrices(market)
      emit(venue, { kind: "book", coin: market.coin })
    }
  }
  const deliver = () => {
    const { events } = venue
    if (events === undefined || events.length === 0) return
    venue.events = []
    for (const follower of followers) follower(events, venue)
  }
  const flush = Effect.sync(deliver)
  /** Executes an action or a deposit from the EVM. The venue ignores an action that it refuses, and the action of an unknown account. */
  const playScheduled = ({ action, at, user, wei }: Scheduled): void => {
    const known = Ref.getUnsafe(identity)
    if (wei !== undefined) {
      Transfers.depositSpot(venue, user, venue.listing.hype, wei)
      MutableRef.set(identity.ref, changeAccount(known, user, {}))
      return
    }
    const executable = action === undefined ? undefined : Actions.readAction(action.type, action)
    if (executable === undefined || Result.isFailure(executable) || !known.accounts.has(user)) return
    const context: ActionContext = { venue, identity: known, user, nonce: at, sentAt: at }
    venue.hash = nextHash(venue)
    if (Result.isSuccess(executable.success(context))) MutableRef.set(identity.ref, context.identity)
  }
  const advanceTo = (info: InfoState, now: number): Venue => {
    const due = venue.state.scheduled.filter(({ at }) => at <= now)
    if (due.length > 0) venue.state.scheduled = venue.state.scheduled.slice(due.length)
    for (const next of due) {
      Advance.to(venue, info, next.at)
      playScheduled(next)
    }
    Advance.to(venue, info, now)
    return venue
  }
  const passed = Effect.gen(function*() {
    return advanceTo(yield* Ref.get(info), yield* now)
  })
  /** Lists the outcomes only once time has passed, because no account can trade those that begin and end before. */
  const current = Effect.tap(passed, (venue) => Effect.sync(() => list(venue)))
  /** Advances the venue to the current time and runs `set`. Registers the account of `user` on first use. */
  const change = (user: Address, set: (venue: Venue) => Result.Result<void, Advance.InvalidHolding>) =>
    current.pipe(
      Effect.flatMap((venue) => Effect.suspend(() => Effect.fromResult(set(venue)))),
      Effect.andThen(Ref.update(identity, (state) => changeAccount(state, user, {}))),
      Effect.andThen(flush)
    )
  return {
    /**
     * Advances the venue to a time and returns the venue. The returned object changes later, so read it immediately.
     */
    at: (info: InfoState, now: number): Venue => {
      list(advanceTo(info, now))
      return venue
    },
    /**
     * Schedules the actions and deposits of EVM transactions. Those whose transaction is not in `transactions` are
     * dropped, because another transaction replaced theirs.
     */
    schedule: (entries: ReadonlyArray<Scheduled>, transactions: ReadonlyMap<Hash, unknown>) => {
      venue.state.scheduled = [...venue.state.scheduled, ...entries].filter(({ hash }) => transactions.has(hash))
        .toSorted((a, b) => a.at - b.at)
    },
    /** Advances the venue to the current time, and delivers the venue's events to the followers. */
    tick: Effect.andThen(current, flush),
    /** Like `flush`, as a function. */
    deliver,
    /** Delivers pending events to the followers. */
    flush,
    /** Registers a follower. The returned effect removes it. */
    follow: (follower: Follower) =>
      Effect.sync(() => {
        followers.add(follower)
        venue.events ??= []
        return Effect.sync(() => {
          followers.delete(follower)
          if (followers.size === 0) venue.events = undefined
        })
      }),
    /**
     * Executes an action of an account without a signature or a nonce. The action does not count toward the account's
     * request limit. Creates the account on first use. Fails with `ActionRejected` if the venue refuses the whole action
     * or cannot decode it.
     */
    act: Effect.fnUntraced(function*(user: Address, action: SentAction) {
      const executable = yield* Effect.mapError(
        Effect.fromResult(Actions.readAction(action.type, action)),
        (why) => classifyRejection(VenueRefusal.wrongShape + why)
      )
      yield* current
      const nonce = venue.state.now
      const decision = yield* Ref.modify(identity, (state) => {
        const context: ActionContext = {
          venue,
          identity: changeAccount(state, user, {}),
          user: lowerCase(user),
          nonce,
          sentAt: nonce
        }
        venue.hash = nextHash(venue)
        const decided = executable(context)
        return [decided, context.identity]
      })
      yield* flush
      return yield* Effect.mapError(Effect.fromResult(decision), (text) => classifyRejection(text))
    }),
    /** Deposits dollars into an account's perpetuals. */
    depositUsd: (user: Address, amount: string) =>
      change(
        user,
        (venue) => Result.map(parseAmount(amount, usdDecimals), (usd) => Transfers.depositUsd(venue, user, usd))
      ),
    /** Deposits an amount of a spot token, which is selected by its index or its name. */
    depositSpot: (user: Address, token: number | string, amount: string) =>
      change(user, (venue) => {
        const found = [...venue.listing.tokens].find(([index, { name }]) => index === token || name === token)
        if (found === undefined || found[0] >= firstSide) {
          return Advance.invalid("token", `The sandbox lists no token ${token}`)
        }
        const [index, { weiDecimals }] = found
        return Result.map(parseAmount(amount, weiDecimals), (wei) => Transfers.depositSpot(venue, user, index, wei))
      }),
    /**
     * Sets the volume in dollars that an account traded before. It counts only toward the volumes that actions such as
     * `scheduleCancel` require.
     */
    setVolume: (user: Address, volume: string) =>
      change(user, (venue) =>
        Result.map(parseAmount(volume, usdDecimals), (usd) => {
          ensureAccount(venue.state, user).earlierVolume = usd
        })),
    /**
     * Sets the position of an account in a perpetual, as if the position had been traded against the synthetic orders
     * at `entryPx`. Default `entryPx`: the mark price. A negative `size` is a short position; a size of zero closes the
     * position at `entryPx`.
     */
    setPosition: (user: Address, coin: string, size: string, entryPx?: string) =>
      change(user, (venue) => Advance.givePosition(venue, user, { coin, size, entryPx })),
    /**
     * From now on, replaces a coin's generated prices by replayed price points. The points can come from recorded bars
     * (see `PricePaths.pricePoints`) or from the caller. At speed 60, an hour of points is replayed in a minute; at the
     * default speed, in an hour. After the last point, the price is constant, so a single point sets a constant price.
     * The first price takes effect immediately: orders that it reaches are filled or triggered.
     */
    playPrices: (coin: string, points: ReadonlyArray<PricePoint>, speed = 1) =>
      Effect.map(
        current,
        (venue) => {
          // starts at a whole second, because synthetic orders are made once per second
          const from = Math.floor(venue.state.now / second) * second
          setPlayed(play(played, coin, { from, speed, points }))
          Advance.playPrice(venue, coin)
        }
      ).pipe(Effect.andThen(flush)),
    /**
     * From now on, replaces the generated orders in a coin's book by the given levels, which are not renewed and do not
     * follow the price. If `book` is `undefined`, the orders are generated again.
     */
    setBook: (coin: string, book: GivenBook | undefined) =>
      Effect.flatMap(
        current,
        (venue) => Effect.map(Effect.fromResult(giveBook(venue, coin, book)), () => Advance.playPrice(venue, coin))
      ).pipe(
        Effect.andThen(flush)
      ),
    /**
     * Returns the venue's time: the clock's time, or the fixed time of a stopped clock, plus all milliseconds passed to
     * `advance`.
     */
    now,
    /** Like `now`, if the clock's time is `clock`, in milliseconds. */
    nowAt,
    /**
     * Advances the venue's time immediately by a number of milliseconds. After that, the venue's time remains ahead of
     * the clock by the sum of all advances.
     */
    advance: Effect.fnUntraced(function*(milliseconds: number) {
      for (let left = milliseconds; left > 0; left -= stretch) {
        ahead += Math.min(left, stretch)
        yield* passed
        yield* flush
        yield* Effect.yieldNow
      }
      yield* current
    }),
    /** Returns a copy of the trading state. */
    snapshot: Effect.sync((): TradingSnapshot => ({ state: structuredClone(venue.state), played, ahead })),
    /**
     * Restores a copy. A stopped clock returns to the time of the copy. A running clock does not go back: the period
     * since the time of the copy is simulated again.
     */
    restore: (snapshot: TradingSnapshot) =>
      Effect.sync(() => {
        if (stoppedAt !== undefined) ({ ahead } = snapshot)
        venue.state = structuredClone(snapshot.state)
        setPlayed(snapshot.played)
      })
  }
}

/** Reads and sets the state of trading. Addresses can have any letter case. Amounts are decimal text. */
export type TradingControls = ReturnType<typeof make>
