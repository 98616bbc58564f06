/** Signed bodies for `POST /exchange`, made before anything is measured: no two with the same nonce. */
import * as Json from "@trigate/domain/encoding/Encoding"
import * as ActionBuilder from "@trigate/signing/actions/ActionBuilder"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as Signer from "@trigate/signing/Signer"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as fs from "node:fs"

const key = `0x${"42".repeat(32)}` as const

const perWrite = 5000

/** Writes one body in each line of a file; the nonces begin half a day ago, well inside the window of the venue. */
export const write = (file: string, count: number): Promise<void> =>
  Effect.gen(function*() {
    const signer = yield* Signer.makePrivateKey(Redacted.make(key))
    const firstNonce = Date.now() - 12 * 3_600_000
    fs.writeFileSync(file, "")
    for (let start = 0; start < count; start += perWrite) {
      const bodies = yield* Effect.forEach(
        Array.from({ length: Math.min(perWrite, count - start) }, (_, index) => firstNonce + start + index),
        (nonce) => Effect.provideService(ActionBuilder.useBigBlocks({ nonce }), Signer.Signer, signer)
      )
      fs.appendFileSync(file, bodies.map((body) => `${Json.stringify(body)}\n`).join(""))
    }
  }).pipe(Effect.provide(Layer.merge(Secp256k1.layer, VenueProfile.layer("mainnet"))), Effect.runPromise)
