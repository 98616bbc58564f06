/** The interface to the simulated trading. Actions, queries, streams and tests use it. */
import type { SentAction } from "@trigate/domain/actions/ActionCatalog"
import type { ActionRejected } from "@trigate/domain/actions/ActionOutcome"
import { classifyRejection } from "@trigate/domain/actions/ActionOutcome"
import type { Address } from "@trigate/domain/encoding/Hex"
import { lowerCase } from "@trigate/domain/encoding/Hex"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Result from "effect/Result"
import type { ActionContext, ActionResponse } from "./ActionContext.ts"
import * as Actions from "./Actions.ts"
import * as Advance from "./Advance.ts"
import { usdDecimals } from "./Assets.ts"
import * as Decimals from "./Decimals.ts"
import type { GivenBook, InvalidBook } from "./GivenBooks.ts"
import { giveBook } from "./GivenBooks.ts"
import { givePosition, InvalidHolding } from "./GivenPositions.ts"
import type { PricePoint } from "./PricePaths.ts"
import * as PricePaths from "./PricePaths.ts"
import { discardPrices } from "./Quotes.ts"
import type { TradingState } from "./TradingState.ts"
import * as Transfers from "./Transfers.ts"
import type { Venue, VenueEvent } from "./Venue.ts"
import { nextHash } from "./Venue.ts"
import type { InfoState } from "./VenueAnswer.ts"
import * as VenueRefusal from "./VenueRefusal.ts"
import type { VenueState } from "./VenueState.ts"
import { changeAccount } from "./VenueState.ts"

/** Receives the events of the venue in order of occurrence. */
export type Follower = (events: ReadonlyArray<VenueEvent>, venue: Venue) => void

/** Reads and sets the state of trading. Addresses can have any letter case. Amounts are decimal text. */
export interface TradingControls {
  /** Advances the venue to a time and returns the venue. The returned object changes later, so read it immediately. */
  readonly at: (info: InfoState, now: number) => Venue
  /** Advances the venue to the current time, and delivers the venue's events to the followers. */
  readonly tick: Effect.Effect<void>
  /** Delivers pending events to the followers. */
  readonly flush: Effect.Effect<void>
  /** Like `flush`, as a function. */
  readonly deliver: () => void
  /** Registers a follower. The returned effect removes it. */
  readonly follow: (follower: Follower) => Effect.Effect<Effect.Effect<void>>
  /**
   * Executes an action of an account without a signature or a nonce. The action does not count toward the account's
   * request limit. Creates the account on first use. Fails with `ActionRejected` if the venue refuses the whole action
   * or cannot decode it.
   */
  readonly act: (user: Address, action: SentAction) => Effect.Effect<ActionResponse, ActionRejected>
  /** Deposits dollars into an account's perpetuals. */
  readonly depositUsd: (user: Address, amount: string) => Effect.Effect<void, InvalidHolding>
  /** Deposits an amount of a spot token, which is selected by its index. */
  readonly depositSpot: (user: Address, token: number, amount: string) => Effect.Effect<void, InvalidHolding>
  /**
   * Sets the position of an account in a perpetual, as if the position had been traded against the synthetic orders at
   * `entryPx`. Default `entryPx`: the mark price. A negative `size` is a short position; a size of zero closes the
   * position at `entryPx`.
   */
  readonly setPosition: (
    user: Address,
    coin: string,
    size: string,
    entryPx?: string
  ) => Effect.Effect<void, InvalidHolding>
  /**
   * From now on, replaces a coin's generated prices by replayed price points. The points can come from recorded bars
   * (see `PricePaths.pricePoints`) or from the caller. At speed 60, an hour of points is replayed in a minute; at the
   * default speed, in an hour. After the last point, the price is constant, so a single point sets a constant price.
   * The first price takes effect immediately: orders that it reaches are filled or triggered.
   */
  readonly playPrices: (coin: string, points: ReadonlyArray<PricePoint>, speed?: number) => Effect.Effect<void>
  /**
   * From now on, replaces the generated orders in a coin's book by the given levels, which are not renewed and do not
   * follow the price. If `book` is `undefined`, the orders are generated again.
   */
  readonly setBook: (coin: string, book: GivenBook | undefined) => Effect.Effect<void, InvalidBook>
  /**
   * Returns the venue's time: the clock's time, or the fixed time of a stopped clock, plus all milliseconds passed to
   * `advance`.
   */
  readonly now: Effect.Effect<number>
  /** Like `now`, if the clock's time is `clock`, in milliseconds. */
  readonly nowAt: (clock: number) => number
  /**
   * Advances the venue's time immediately by a number of milliseconds. After that, the venue's time remains ahead of
   * the clock by the sum of all advances.
   */
  readonly advance: (milliseconds: number) => Effect.Effect<void>
  /** Returns a copy of the trading state. */
  readonly snapshot: Effect.Effect<TradingSnapshot>
  /**
   * Restores a copy. A stopped clock returns to the time of the copy. A running clock does not go back: the period since
   * the time of the copy is simulated again.
   */
  readonly restore: (snapshot: TradingSnapshot) => Effect.Effect<void>
}

/** A copy of the trading state, including the replayed prices. */
export interface TradingSnapshot {
  readonly state: TradingState
  readonly played: PricePaths.PlayedCoins
  /** The milliseconds passed to `advance` until the time of the copy. */
  readonly ahead: number
}

const parseAmount = (text: string, decimals: number): Result.Result<bigint, InvalidHolding> => {
  const amount = Decimals.parse(text, decimals)
  return amount === undefined || amount < 0n
    ? Result.fail(
      new InvalidHolding({
        member: "amount",
        message: `Expected an amount of at least 0 with at most ${decimals} decimals`
      })
    )
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
): TradingControls => {
  const followers = new Set<Follower>()
  const { path: base } = venue
  let played: PricePaths.PlayedCoins = new Map()
  let ahead = 0
  const nowAt = (clock: number): number => (stoppedAt ?? clock) + ahead
  const now = Effect.map(Clock.currentTimeMillis, nowAt)
  const setPlayed = (coins: PricePaths.PlayedCoins): void => {
    played = coins
    venue.path = PricePaths.played(base, coins)
    // discards the mark prices and synthetic orders of this second, which are based on the previous price path
    for (const market of venue.state.markets.values()) discardPrices(market)
  }
  const deliver = () => {
    const { events } = venue
    if (events === undefined || events.length === 0) return
    venue.events = []
    for (const follower of followers) follower(events, venue)
  }
  const flush = Effect.sync(deliver)
  const current = Effect.gen(function*() {
    Advance.to(venue, yield* Ref.get(info), yield* now)
    return venue
  })
  /** Advances the venue to the current time and runs `set`. Registers the account of `user` on first use. */
  const change = (user: Address, set: (venue: Venue) => Result.Result<void, InvalidHolding>) =>
    current.pipe(
      Effect.flatMap((venue) => Effect.suspend(() => Effect.fromResult(set(venue)))),
      Effect.andThen(Ref.update(identity, (state) => changeAccount(state, user, {}))),
      Effect.andThen(flush)
    )
  return {
    at: (info, now) => {
      Advance.to(venue, info, now)
      return venue
    },
    tick: Effect.andThen(current, flush),
    deliver,
    flush,
    follow: (follower) =>
      Effect.sync(() => {
        followers.add(follower)
        venue.events ??= []
        return Effect.sync(() => {
          followers.delete(follower)
          if (followers.size === 0) venue.events = undefined
        })
      }),
    act: Effect.fnUntraced(function*(user, action) {
      const executable = yield* Effect.mapError(
        Effect.fromResult(Actions.read(action.type, action)),
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
    depositUsd: (user, amount) =>
      change(
        user,
        (venue) => Result.map(parseAmount(amount, usdDecimals), (usd) => Transfers.depositUsd(venue, user, usd))
      ),
    depositSpot: (user, token, amount) =>
      change(user, (venue) => {
        const known = venue.listing.tokens.get(token)
        return known === undefined
          ? Result.fail(new InvalidHolding({ member: "token", message: `The sandbox lists no token ${token}` }))
          : Result.map(
            parseAmount(amount, known.weiDecimals),
            (wei) => Transfers.depositSpot(venue, user, token, wei)
          )
      }),
    setPosition: (user, coin, size, entryPx) =>
      change(user, (venue) => givePosition(venue, user, { coin, size, entryPx })),
    playPrices: (coin, points, speed = 1) =>
      Effect.map(
        current,
        (venue) => {
          // starts at a whole second, because synthetic orders are made once per second
          const from = Math.floor(venue.state.now / second) * second
          setPlayed(PricePaths.play(played, coin, { from, speed, points }))
          Advance.playPrice(venue, coin)
        }
      ).pipe(Effect.andThen(flush)),
    setBook: (coin, book) =>
      Effect.flatMap(
        current,
        (venue) => Effect.map(Effect.fromResult(giveBook(venue, coin, book)), () => Advance.playPrice(venue, coin))
      ).pipe(
        Effect.andThen(flush)
      ),
    now,
    nowAt,
    advance: Effect.fnUntraced(function*(milliseconds) {
      for (let left = milliseconds; left > 0; left -= stretch) {
        ahead += Math.min(left, stretch)
        yield* current
        yield* flush
        yield* Effect.yieldNow
      }
    }),
    snapshot: Effect.sync(() => ({ state: structuredClone(venue.state), played, ahead })),
    restore: (snapshot) =>
      Effect.sync(() => {
        if (stoppedAt !== undefined) ({ ahead } = snapshot)
        venue.state = structuredClone(snapshot.state)
        setPlayed(snapshot.played)
      })
  }
}
