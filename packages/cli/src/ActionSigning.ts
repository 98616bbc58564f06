/** Signs one action under a nonce of its own. */
import type { SignedAction } from "@trigate/domain/SignedAction"
import type { BuildFailure } from "@trigate/signing/ActionBuilder"
import * as NonceSource from "@trigate/signing/NonceSource"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as Signer from "@trigate/signing/Signer"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Signed } from "./SignedSending.ts"

/** What is to be signed: the body under a nonce, and the same in the words of a person. */
export interface Deed {
  readonly network: string
  readonly body: (nonce: number) => Effect.Effect<SignedAction, BuildFailure, Signer.Signer>
  /** What the signer does: "delegates 1.5 HYPE". */
  readonly says: string
}

/** The signed action. */
export const sign = ({ body, network, says }: Deed) =>
  Effect.fnUntraced(function*(signer: Signer.Signer["Service"]) {
    const nonce = yield* NonceSource.NonceSource.use((nonces) => nonces.next(signer.address))
    return {
      body: yield* Effect.provideService(body(nonce), Signer.Signer, signer),
      signer: signer.address,
      says: [`On ${network}, ${signer.address} ${says}, under the nonce ${nonce}.`]
    } satisfies Signed
  })

/** What signing needs; a function, so that commands share no nonces. */
export const layer = () => Layer.merge(Secp256k1.layer, NonceSource.layerMemory())
