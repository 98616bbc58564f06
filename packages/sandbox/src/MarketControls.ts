/** Sets what the trading chain tells about itself: coins with candles, EVM storage, gas prices. */
import type { Address, Hash } from "@trigate/domain/Hex"
import type * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import type { CandleMarket } from "./CandleMarket.ts"
import { withEntry, withoutEntry } from "./Entries.ts"
import { mapWorlds } from "./EvmChain.ts"
import { withWord } from "./EvmWorld.ts"
import type { EvmState } from "./VenueEvm.ts"
import type { InfoState } from "./VenueInfo.ts"

/** What can be set of `POST /info`. */
export interface InfoControls {
  /** Spot metadata and coins. */
  readonly state: Ref.Ref<InfoState>
  /** Gives a coin candles, or other ones. */
  readonly listCoin: (market: CandleMarket) => Effect.Effect<void>
  /** Takes a coin off: the venue knows it no more. */
  readonly delistCoin: (coin: string) => Effect.Effect<void>
}

/** What can be set of `POST /evm`; letter case of addresses does not matter. */
export interface EvmControls {
  /** Accounts, contracts, storage words, transactions and fees. */
  readonly state: Ref.Ref<EvmState>
  /** Puts a storage word at a slot of any contract, in the state of every block. */
  readonly putStorageWord: (address: Address, slot: `0x${string}`, word: Hash) => Effect.Effect<void>
  /** Fixes the base fees of small and big blocks, in wei; those not given move by themselves again. */
  readonly setGasPrices: (fees: EvmState["fees"]) => Effect.Effect<void>
}

/** Controls over coins. */
export const info = (state: Ref.Ref<InfoState>): InfoControls => ({
  state,
  listCoin: (market) =>
    Ref.update(state, (known) => ({ ...known, markets: withEntry(known.markets, market.coin, market) })),
  delistCoin: (coin) => Ref.update(state, (known) => ({ ...known, markets: withoutEntry(known.markets, coin) }))
})

/** Controls over the EVM. */
export const evm = (state: Ref.Ref<EvmState>): EvmControls => ({
  state,
  putStorageWord: (address, slot, word) =>
    Ref.update(state, (known) => mapWorlds(known, (world) => withWord(world, address, BigInt(slot), word))),
  setGasPrices: (fees) => Ref.update(state, (known) => ({ ...known, fees }))
})
