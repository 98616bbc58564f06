/** Recovering and signing actions, beside what viem takes for the same digests. */
import { SignedEnvelope } from "@trigate/domain/actions/Action"
import * as Json from "@trigate/domain/encoding/Encoding"
import * as ActionBuilder from "@trigate/signing/actions/ActionBuilder"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as Signer from "@trigate/signing/Signer"
import * as Signable from "@trigate/signing/unstable/actions/ActionHash"
import * as SignerRecovery from "@trigate/signing/unstable/actions/CanonicalAction"
import { mainnet, Venue } from "@trigate/signing/VenueProfile"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { recoverTypedDataAddress, serializeSignature } from "viem"
import { privateKeyToAccount } from "viem/accounts"
import { run as runSuite } from "./harness/suite.ts"
import { compare } from "./measure.ts"

const inputs = 1000

const key = `0x${"42".repeat(32)}` as const

/** Half of them L1 actions, half user-signed ones; no two have the same digest. */
const bodyOf = (
  index: number
): Effect.Effect<ActionBuilder.SignedBody<unknown>, ActionBuilder.BuildFailure, Signer.Signer | Venue> => {
  const nonce = 1_705_234_567_890 + index
  const validator = `0x${index.toString(16).padStart(40, "0")}` as const
  return index % 2 === 0
    ? ActionBuilder.useBigBlocks({ nonce })
    : ActionBuilder.delegate({ validator, wei: 150_000_000n + BigInt(index), nonce })
}

const decode = Schema.decodeUnknownEffect(SignedEnvelope)

const at = <A>(items: ReadonlyArray<A>, index: number): A => {
  const item = items[index]
  if (item === undefined) throw new Error(`No input ${index}`)
  return item
}

const program = Effect.gen(function*() {
  const engine = yield* Secp256k1.Secp256k1
  const signer = yield* Signer.makePrivateKey(Redacted.make(key))
  const account = privateKeyToAccount(key)
  const bodies = yield* Effect.forEach(
    Array.from({ length: inputs }, (_, index) => index),
    (index) => Effect.provideService(bodyOf(index), Signer.Signer, signer)
  ).pipe(Effect.provideService(Venue, mainnet))
  const texts = bodies.map(Json.stringify)
  const signables = bodies.map((body) => Result.getOrThrow(SignerRecovery.requestSignable(mainnet, body)).outer)
  const typed = signables.map(Signable.typedData)
  const signed = bodies.map(({ signature: { r, s, v } }) => serializeSignature({ r, s, yParity: v === 27 ? 0 : 1 }))

  const run = Effect.runSyncWith(yield* Effect.context())

  const recover = (index: number) =>
    run(Effect.gen(function*() {
      const body = yield* Effect.fromResult(Json.parseStrict(at(texts, index)))
      return yield* SignerRecovery.recover(mainnet, yield* decode(body))
    }))
  const sign = (index: number) => run(signer.sign(at(signables, index)))
  const recoverTyped = (index: number) => recoverTypedDataAddress({ ...at(typed, index), signature: at(signed, index) })
  const signTyped = (index: number) => account.signTypedData(at(typed, index))

  for (const index of [0, 1]) {
    const theirs = yield* Effect.promise(() => recoverTyped(index))
    if (recover(index).signer !== theirs.toLowerCase()) throw new Error("The two recover different signers")
    const { r, s } = sign(index)
    if (!(yield* Effect.promise(() => signTyped(index))).startsWith(`${r}${s.slice(2)}`)) {
      throw new Error("The two sign differently")
    }
  }
  const recovering = yield* Effect.promise(() =>
    compare({
      title: "recover the signer",
      aim: 15,
      inputs,
      ours: { name: "trigate, from the text of an /exchange body", run: recover },
      theirs: { name: "viem recoverTypedDataAddress, from its typed data", run: recoverTyped }
    })
  )
  const signing = yield* Effect.promise(() =>
    compare({
      title: "sign with a key in the process",
      aim: 8,
      inputs,
      ours: { name: "trigate Signer", run: sign },
      theirs: { name: "viem signTypedData", run: signTyped }
    })
  )
  return {
    rows: [recovering, signing],
    notes: [
      engine.engine === "libsecp256k1"
        ? "libsecp256k1"
        : "the native binding of libsecp256k1 does not load here, so this measures noble, the fallback"
    ]
  }
})

await runSuite("signing", () => Effect.runPromise(Effect.provide(program, Secp256k1.layer)))
