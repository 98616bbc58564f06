/** How trading is reached from outside: by actions and queries at the clock's time, by those who follow it, and by tests. */
import type { SentAction } from "@trigate/domain/actions/ActionCatalog"
import type { ActionRejected } from "@trigate/domain/actions/ActionOutcome"
import { classifyRejection } from "@trigate/domain/actions/ActionOutcome"
import type { Address } from "@trigate/domain/encoding/Hex"
import { lowerCase } from "@trigate/domain/encoding/Hex"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Ref from "effect/Ref"
import type { ActionContext, ActionResponse } from "./ActionContext.ts"
import * as Actions from "./Actions.ts"
import * as Advance from "./Advance.ts"
import * as Decimals from "./Decimals.ts"
import { clearPosition, givePosition } from "./GivenPositions.ts"
import type { PricePoint } from "./PricePaths.ts"
import * as PricePaths from "./PricePaths.ts"
import type { TradingState } from "./TradingState.ts"
import * as Transfers from "./Transfers.ts"
import type { Venue, VenueEvent } from "./Venue.ts"
import { nextHash } from "./Venue.ts"
import type { InfoState } from "./VenueAnswer.ts"
import type { VenueState } from "./VenueState.ts"
import { changeAccount } from "./VenueState.ts"

/** Called with what happened, in its order. */
export type Follower = (events: ReadonlyArray<VenueEvent>, venue: Venue) => void

/** Reads and sets the state of trading. Addresses may have any letter case; amounts are decimal text. */
export interface TradingControls {
  /** The venue after time has passed up to an instant. It changes in place, so use it at once. */
  readonly at: (info: InfoState, now: number) => Venue
  /** Advances time to the clock's, and delivers events to the venue's followers. */
  readonly tick: Effect.Effect<void>
  /** Delivers events to the venue's followers. */
  readonly flush: Effect.Effect<void>
  /** Follows the venue until the returned effect is run. */
  readonly follow: (follower: Follower) => Effect.Effect<Effect.Effect<void>>
  /**
   * Executes an action of an account without a signature, a nonce or a request counted; creates the account on first use.
   * Fails with `ActionRejected` if the venue refuses the whole action, or cannot read it.
   */
  readonly act: (user: Address, action: SentAction) => Effect.Effect<ActionResponse, ActionRejected>
  /** Deposits dollars in an account's perpetuals. */
  readonly depositUsd: (user: Address, amount: string) => Effect.Effect<void>
  /** Deposits an amount of a spot token, by its index. Does nothing if the token does not exist. */
  readonly depositSpot: (user: Address, token: number, amount: string) => Effect.Effect<void>
  /**
   * Sets the position of an account in a perpetual: its size, negative when short, as if it had been traded with the synthetic
   * orders at `entryPx`, which is the mark price by default. A size of zero closes it at that price. Does nothing if the
   * perpetual does not exist.
   */
  readonly setPosition: (user: Address, coin: string, size: string, entryPx?: string) => Effect.Effect<void>
  /**
   * Plays prices for a coin from now on, in place of the seeded ones: the points of recorded bars (`PricePaths.pointsOf`), or a test's
   * own. At speed 60, an hour of them takes a minute; the default is 1. After the last point the price stands still, so one
   * point sets the price.
   */
  readonly playPrices: (coin: string, points: ReadonlyArray<PricePoint>, speed?: number) => Effect.Effect<void>
  /** The venue's time: the clock's, and how far it was advanced. */
  readonly now: Effect.Effect<number>
  /** Lets milliseconds pass for the venue at once. Its clock stays ahead by them. */
  readonly advance: (milliseconds: number) => Effect.Effect<void>
  /** A copy of everything about trading. */
  readonly snapshot: Effect.Effect<TradingSnapshot>
  /** Puts a copy back. Time does not go back: what happened since its time happens anew. */
  readonly restore: (snapshot: TradingSnapshot) => Effect.Effect<void>
}

/** A copy of trading: what the venue remembers, and the prices that it plays. */
export interface TradingSnapshot {
  readonly state: TradingState
  readonly played: PricePaths.PlayedCoins
}

const second = 1_000

/** The longest stretch, in milliseconds, that the venue lives through without letting others run. */
const stretch = 300_000

/** Trading on a venue, beside what else it remembers. */
export const make = (
  venue: Venue,
  { clock, identity, info }: {
    /** The venue's time before it is advanced. */
    readonly clock: Effect.Effect<number>
    readonly identity: Ref.Ref<VenueState>
    readonly info: Ref.Ref<InfoState>
  }
): TradingControls => {
  const followers = new Set<Follower>()
  const { path: base } = venue
  let played: PricePaths.PlayedCoins = new Map()
  let ahead = 0
  const now = Effect.map(clock, (time) => time + ahead)
  const setPlayed = (coins: PricePaths.PlayedCoins): void => {
    played = coins
    venue.path = PricePaths.played(base, coins)
    // the made orders of this second are around the earlier price
    for (const market of venue.state.markets.values()) market.quotes.second = -1
  }
  const flush = Effect.sync(() => {
    const { events } = venue
    if (events === undefined || events.length === 0) return
    venue.events = []
    for (const follower of followers) follower(events, venue)
  })
  const current = Effect.gen(function*() {
    Advance.to(venue, yield* Ref.get(info), yield* now)
    return venue
  })
  /** Changes trading at the clock's time. The account exists from then on. */
  const change = (user: Address, set: (venue: Venue) => void) =>
    current.pipe(
      Effect.tap((venue) => Effect.sync(() => set(venue))),
      Effect.andThen(Ref.update(identity, (state) => changeAccount(state, user, {}))),
      Effect.andThen(flush)
    )
  return {
    at: (info, now) => {
      Advance.to(venue, info, now)
      return venue
    },
    tick: Effect.andThen(current, flush),
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
      const executable = Actions.read(action.type, action)
      if (Option.isNone(executable)) {
        return yield* classifyRejection("Failed to deserialize the JSON body into the target type")
      }
      yield* current
      const nonce = venue.state.now
      const decision = yield* Ref.modify(identity, (state) => {
        const context: ActionContext = {
          venue,
          identity: changeAccount(state, user, {}),
          user: lowerCase(user),
          nonce
        }
        venue.hash = nextHash(venue)
        const decided = executable.value(context)
        return [decided, context.identity]
      })
      yield* flush
      return yield* Effect.mapError(Effect.fromResult(decision), (text) => classifyRejection(text))
    }),
    depositUsd: (user, amount) =>
      change(user, (venue) => Transfers.depositUsd(venue, user, Decimals.parse(amount, 6) ?? 0n)),
    depositSpot: (user, token, amount) =>
      change(user, (venue) => {
        const known = venue.listing.tokens.get(token)
        if (known === undefined) return
        Transfers.depositSpot(venue, user, token, Decimals.parse(amount, known.weiDecimals) ?? 0n)
      }),
    setPosition: (user, coin, size, entryPx) =>
      change(user, (venue) => {
        clearPosition(venue, user, coin, entryPx)
        givePosition(venue, user, coin, size, entryPx)
      }),
    playPrices: (coin, points, speed = 1) =>
      Effect.map(
        current,
        ({ state }) => {
          // the made orders are those of a whole second
          const from = Math.floor(state.now / second) * second
          setPlayed(PricePaths.play(played, coin, { from, speed, points }))
        }
      ),
    now,
    advance: Effect.fnUntraced(function*(milliseconds) {
      for (let left = milliseconds; left > 0; left -= stretch) {
        ahead += Math.min(left, stretch)
        yield* current
        yield* flush
        yield* Effect.yieldNow
      }
    }),
    snapshot: Effect.sync(() => ({ state: structuredClone(venue.state), played })),
    restore: (snapshot) =>
      Effect.sync(() => {
        venue.state = structuredClone(snapshot.state)
        setPlayed(snapshot.played)
      })
  }
}
