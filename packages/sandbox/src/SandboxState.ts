/** The state of a sandbox's chains. Tests can read and set it while the chains are in use. */
import type { SandboxFaults } from "@trigate/domain/SandboxFaults"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Layer2Chain from "./evm/Layer2Chain.ts"
import * as VenueEvm from "./evm/VenueEvm.ts"
import * as Genesis from "./Genesis.ts"
import { defaultSeed, type Seed } from "./Seed.ts"
import * as TokenAnswers from "./tokens/TokenAnswers.ts"
import * as TokenState from "./tokens/TokenState.ts"
import * as PricePaths from "./venue/PricePaths.ts"
import * as SpotMetaBook from "./venue/SpotMetaBook.ts"
import * as TradingControls from "./venue/TradingControls.ts"
import type { VenueLimits } from "./venue/Venue.ts"
import type { InfoState } from "./venue/VenueAnswer.ts"
import * as VenueFaults from "./venue/VenueFaults.ts"
import * as VenueInfo from "./venue/VenueInfo.ts"
import * as VenueState from "./venue/VenueState.ts"

/** A copy of the venue: trading, accounts and listings, without the EVM chains and the token chain. */
export interface VenueSnapshot {
  readonly trading: TradingControls.TradingSnapshot
  readonly venue: VenueState.VenueState
  readonly info: InfoState
}

/**
 * The state of the chains.
 *
 * A change of this state applies to all later calls. Data that is not listed here (prices, blocks) is derived from the
 * seed and the `Clock`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { SandboxState } from "@trigate/sandbox"
 * import { Console, Effect } from "effect"
 *
 * const program = SandboxState.SandboxState.use(({ seed }) => Console.log(seed))
 *
 * await Effect.runPromise(Effect.provide(program, SandboxState.layer()))
 * ```
 * ```text
 * trigate
 * ```
 */
export class SandboxState extends Context.Service<SandboxState, {
  readonly seed: Seed
  /** The venue's accounts, validators and nonces. */
  readonly venue: VenueState.VenueControls
  /** Markets with their books; the balances, positions and orders of accounts; the venue's time. */
  readonly trading: TradingControls.TradingControls
  /** The spot metadata, and the coins that have candles. */
  readonly info: VenueInfo.InfoControls
  /** The injected faults of the venue. */
  readonly faults: VenueFaults.VenueFaults
  /** Returns a copy of the venue. */
  readonly snapshot: Effect.Effect<VenueSnapshot>
  /** Restores a copy of the venue, and the time of a stopped clock. The injected faults do not change. */
  readonly restore: (snapshot: VenueSnapshot) => Effect.Effect<void>
  /** Restores the initial state of the venue, and the time of a stopped clock. The injected faults do not change. */
  readonly reset: Effect.Effect<void>
  /** Accounts, contracts and gas prices of the EVM. */
  readonly evm: VenueEvm.EvmControls
  /** Contracts of the token chain. */
  readonly tokens: TokenState.TokenControls & {
    /** Serves the methods of the token chain. The results of messages are part of the state. */
    readonly answer: TokenAnswers.Answering
  }
  /** Transactions and finality of the layer 2. */
  readonly layer2: Layer2Chain.Layer2Controls
}>()("@trigate/sandbox/SandboxState") {}

/** The initial state of the chains. */
export interface Options {
  /** The seed. Together with the `Clock`, it determines all generated data. Default: `"trigate"`. */
  readonly seed?: Seed | undefined
  /**
   * Fixes the venue's clock at this time, in milliseconds; after that, only `trading.advance` advances it. With a fixed
   * time and a given seed, a sequence of actions has the same results in every run. Default: the clock runs.
   */
  readonly stoppedAt?: number | undefined
  /** The speed of the prices relative to real time. Default: 1. */
  readonly speed?: number | undefined
  /** Price points to replay, by coin. They replace the prices generated from the seed. */
  readonly prices?: ReadonlyMap<string, ReadonlyArray<PricePaths.PricePoint>> | undefined
  readonly faults?: Partial<SandboxFaults> | undefined
  /** The maximum number of accounts, and the number of stored fills for each account. */
  readonly limits?: VenueLimits | undefined
}

const make = Effect.fnUntraced(
  function*({ faults, limits, prices = new Map(), seed = defaultSeed, speed = 1, stoppedAt }: Options) {
    const startedAt = yield* Clock.currentTimeMillis
    const beginsAt = stoppedAt ?? startedAt
    const spotMeta = SpotMetaBook.make(seed)
    const listed = Genesis.info(seed, spotMeta)
    const info = yield* Ref.make(listed)
    const identity = yield* Ref.make(Genesis.venue)
    const venue = Genesis.trading(seed, listed, beginsAt, limits)
    venue.path = PricePaths.faster(venue.path, beginsAt, speed)
    const failing = VenueFaults.make(seed, faults)
    venue.rejectsOrder = () => failing.happens("rejectedLegs")
    const trading = TradingControls.make(venue, { stoppedAt, identity, info })
    const playPrices = Effect.forEach(prices, ([coin, points]) => trading.playPrices(coin, points, speed), {
      discard: true
    })
    yield* playPrices
    const restore = (snapshot: VenueSnapshot) =>
      Ref.set(identity, snapshot.venue).pipe(
        Effect.andThen(Ref.set(info, snapshot.info)),
        Effect.andThen(trading.restore(snapshot.trading))
      )
    const tokens = yield* Ref.make(Genesis.tokenChain)
    return SandboxState.of({
      seed,
      venue: VenueState.controls(identity),
      trading,
      info: VenueInfo.controls(info, trading.now),
      faults: failing,
      snapshot: Effect.all({ trading: trading.snapshot, venue: Ref.get(identity), info: Ref.get(info) }),
      restore,
      reset: Effect.flatMap(trading.now, (now) =>
        restore({
          trading: { state: Genesis.trading(seed, listed, stoppedAt ?? now).state, played: new Map(), ahead: 0 },
          venue: Genesis.venue,
          info: listed
        })).pipe(Effect.andThen(playPrices)),
      evm: VenueEvm.controls(yield* Ref.make(Genesis.evm(seed, spotMeta, startedAt))),
      tokens: { ...TokenState.controls(tokens), answer: yield* TokenAnswers.make(seed, tokens) },
      layer2: Layer2Chain.controls(seed, yield* Ref.make(Genesis.layer2(seed, startedAt)))
    })
  }
)

/**
 * Provides the initial state.
 *
 * Each call returns a new layer with separate state.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options = {}): Layer.Layer<SandboxState> => Layer.effect(SandboxState, make(options))
