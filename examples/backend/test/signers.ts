/** Keys that sign in tests: public ones of the sandbox. */
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as Signer from "@trigate/signing/Signer"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"

const signerOf = (key: keyof typeof keys) => Layer.orDie(Signer.layerPrivateKey(Redacted.make(keys[key].privateKey)))

export const trader = signerOf("trader")

/** Nobody knows it at the venue. */
export const stranger = signerOf("stranger")

/** A key store whose key is not the one that the backend expects. */
export const mistaken = Signer.layerExternal({
  address: keys.trader.address,
  signDigest: () => Effect.succeed({ r: `0x${"1".repeat(64)}`, s: `0x${"2".repeat(64)}`, v: 27 })
})
