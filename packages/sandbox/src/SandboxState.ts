/** The state of a sandbox's chains. It can be read and set while they are served. */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Layer2Chain from "./evm/Layer2Chain.ts"
import * as VenueEvm from "./evm/VenueEvm.ts"
import * as Genesis from "./Genesis.ts"
import { defaultSeed, type Seed } from "./Seed.ts"
import * as TokenServer from "./tokens/TokenServer.ts"
import * as SpotMetaBook from "./venue/SpotMetaBook.ts"
import * as TradingControls from "./venue/TradingControls.ts"
import * as VenueInfo from "./venue/VenueInfo.ts"
import * as VenueState from "./venue/VenueState.ts"

/**
 * The state of the chains.
 *
 * The next call sees a change. Everything else (prices, blocks) follows from the seed and the `Clock`.
 */
export class SandboxState extends Context.Service<SandboxState, {
  readonly seed: Seed
  /** Accounts, validators, nonces. */
  readonly venue: VenueState.VenueControls
  /** Markets with their books, and the money, positions and orders of accounts. */
  readonly trading: TradingControls.TradingControls
  /** Spot metadata, coins with candles. */
  readonly info: VenueInfo.InfoControls
  /** Accounts, contracts and gas prices of the EVM. */
  readonly evm: VenueEvm.EvmControls
  /** Contracts of the token chain. */
  readonly tokens: TokenServer.TokenControls
  /** Transactions and finality of the layer 2. */
  readonly layer2: Layer2Chain.Layer2Controls
}>()("@trigate/sandbox/SandboxState") {}

const make = Effect.fnUntraced(function*(seed: Seed) {
  const startedAt = yield* Clock.currentTimeMillis
  const spotMeta = SpotMetaBook.make(seed)
  const listed = Genesis.info(seed, spotMeta)
  const info = yield* Ref.make(listed)
  const identity = yield* Ref.make(Genesis.venue)
  return SandboxState.of({
    seed,
    venue: VenueState.controls(identity),
    trading: TradingControls.make(Genesis.trading(seed, listed, startedAt), { identity, info }),
    info: VenueInfo.controls(info),
    evm: VenueEvm.controls(yield* Ref.make(Genesis.evm(seed, spotMeta, startedAt))),
    tokens: TokenServer.controls(yield* Ref.make(Genesis.tokenChain)),
    layer2: Layer2Chain.controls(seed, yield* Ref.make(Genesis.layer2(seed, startedAt)))
  })
})

/** The initial state under a seed. A function, so that two sandboxes in one program do not share their state. */
export const layer = (seed: Seed = defaultSeed): Layer.Layer<SandboxState> => Layer.effect(SandboxState, make(seed))
