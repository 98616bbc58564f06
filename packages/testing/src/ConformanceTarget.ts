/** The target of the conformance suite: the methods that embedded services and the typed client share. */
import type { AnySignedAction } from "@trigate/domain/actions/Action"
import type { ActionResult } from "@trigate/domain/actions/ActionOutcome"
import type { CandleWindow, CandleWindowRequest } from "@trigate/domain/candles/Candle"
import type { evmOperations } from "@trigate/domain/evm/EvmProtocol"
import type { layer2Operations } from "@trigate/domain/evm/Layer2Operations"
import type { infoOperations } from "@trigate/domain/info/InfoOperations"
import type { Methods } from "@trigate/domain/operations/Operation"
import type { DetectedAddress, TokenData, TonAddress } from "@trigate/domain/tokens/TokenData"
import type * as Effect from "effect/Effect"

interface Tagged {
  readonly _tag: string
}

/** A call of one of the target's methods. Its errors have a tag (`_tag`). */
type TargetCall<A> = Effect.Effect<A, Tagged>

interface AddressRequest {
  readonly address: TonAddress
}

/** The five services of a gateway, or the typed client of a gateway. Any object with these methods is accepted. */
export interface ConformanceTarget {
  readonly exchange: {
    readonly submit: (signed: AnySignedAction) => TargetCall<ActionResult>
  }
  readonly info: Methods<Omit<typeof infoOperations, "candleSnapshot">, Tagged> & {
    readonly candleSnapshot: (request: CandleWindowRequest) => TargetCall<CandleWindow>
  }
  readonly evm: Methods<typeof evmOperations, Tagged>
  readonly tokens: {
    readonly getTokenData: (request: AddressRequest) => TargetCall<TokenData>
    readonly packAddress: (request: AddressRequest) => TargetCall<string>
    readonly unpackAddress: (request: AddressRequest) => TargetCall<string>
    readonly detectAddress: (request: AddressRequest) => TargetCall<DetectedAddress>
  }
  readonly layer2: Methods<typeof layer2Operations, Tagged>
}
