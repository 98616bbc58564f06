/** The three chains and the key that signs, from the environment. */
import * as Layer2Chain from "@trigate/evm/Layer2Chain"
import * as Signer from "@trigate/signing/Signer"
import * as Tokens from "@trigate/tokens/Tokens"
import * as Trading from "@trigate/trading/Trading"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/** Variables: `STAKING_KEY`, and the gateway's `TRIGATE_NETWORK` and `TRIGATE_…_URL`. */
export const layer = Layer.mergeAll(
  Trading.layerConfig(),
  Tokens.layerConfig(),
  Layer2Chain.layerConfig(),
  Layer.unwrap(Effect.map(Config.Redacted("STAKING_KEY"), Signer.layerPrivateKey))
)
