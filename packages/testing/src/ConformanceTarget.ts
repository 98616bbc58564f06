/** What the conformance suite is run against: the methods that embedded services and the typed client share. */
import type { ActionResult } from "@trigate/domain/ActionOutcome"
import type { CandleWindowRequest } from "@trigate/domain/Candle"
import type { CandleWindow } from "@trigate/domain/CandleWindow"
import type { Address, Hash, StorageSlot } from "@trigate/domain/Hex"
import type { Receipt } from "@trigate/domain/Receipt"
import type { AnySignedAction } from "@trigate/domain/SignedAction"
import type { SpotMeta } from "@trigate/domain/SpotMeta"
import type { DetectedAddress, TokenData } from "@trigate/domain/TokenData"
import type { TonAddress } from "@trigate/domain/TonAddress"
import type * as Effect from "effect/Effect"

/** A call of a target: whatever it fails with has a tag. */
type Call<A> = Effect.Effect<A, { readonly _tag: string }>

interface AddressRequest {
  readonly address: TonAddress
}

/** Five services, or a client of a gateway, by structure; everything that implements them fits. */
export interface ConformanceTarget {
  readonly exchange: {
    readonly submit: (signed: AnySignedAction) => Call<ActionResult>
  }
  readonly info: {
    readonly spotMeta: () => Call<SpotMeta>
    readonly candleSnapshot: (request: CandleWindowRequest) => Call<CandleWindow>
  }
  readonly evm: {
    readonly getStorageAt: (request: { readonly address: Address; readonly slot: StorageSlot }) => Call<StorageSlot>
    readonly gasPrice: () => Call<bigint>
    readonly bigBlockGasPrice: () => Call<bigint>
    readonly usingBigBlocks: (request: { readonly address: Address }) => Call<boolean>
  }
  readonly tokens: {
    readonly getTokenData: (request: AddressRequest) => Call<TokenData>
    readonly packAddress: (request: AddressRequest) => Call<string>
    readonly unpackAddress: (request: AddressRequest) => Call<string>
    readonly detectAddress: (request: AddressRequest) => Call<DetectedAddress>
  }
  readonly layer2: {
    readonly getTransactionReceipt: (request: { readonly hash: Hash }) => Call<Receipt | null>
  }
}
