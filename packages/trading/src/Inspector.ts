/**
 * Describes a signed body as the venue decodes it: the signer, the mistakes, their corrections, and the message to
 * sign.
 *
 * It works offline: nothing is sent, and no gateway is required.
 */
import type { SignedEnvelope } from "@trigate/domain/actions/SignedAction"
import { CurrentCaller } from "@trigate/domain/Caller"
import type { Address } from "@trigate/domain/encoding/Hex"
import type { InvalidRequest } from "@trigate/domain/errors/RequestError"
import type { Inspection, Mistake } from "@trigate/domain/Inspection"
import * as ActionHash from "@trigate/signing/actions/ActionHash"
import type * as CanonicalAction from "@trigate/signing/actions/CanonicalAction"
import * as MsgPack from "@trigate/signing/actions/MsgPack"
import * as Signable from "@trigate/signing/actions/Signable"
import * as UserSigned from "@trigate/signing/actions/UserSigned"
import * as SignedView from "@trigate/signing/inspection/SignedView"
import * as SigningWarning from "@trigate/signing/inspection/SigningWarning"
import * as MultiSig from "@trigate/signing/multisig/MultiSig"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import type { RecoveredSigner } from "@trigate/signing/SignerRecovery"
import * as SignerRecovery from "@trigate/signing/SignerRecovery"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import { otherThan, Venue } from "@trigate/signing/VenueProfile"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as ActionDecoder from "./admission/ActionDecoder.ts"
import type { ReadBody } from "./admission/ActionDecoder.ts"
import * as Admission from "./admission/Admission.ts"
import * as BodyNormalization from "./admission/BodyNormalization.ts"
import * as SignerAuthorization from "./admission/SignerAuthorization.ts"
import * as WrappedBody from "./admission/WrappedBody.ts"
import * as CorrectedBody from "./CorrectedBody.ts"
import * as SignatureDiagnosis from "./SignatureDiagnosis.ts"

/** The admission options of `/exchange`; the inspector also recognizes the signers on the allow-list. */
export type Options = Admission.Options

/**
 * Describes signed bodies.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { Json } from "@trigate/domain"
 * import { ActionBuilder, Signer, VenueProfile } from "@trigate/signing"
 * import { Inspector } from "@trigate/trading"
 * import { Console, Effect, Layer, Redacted } from "effect"
 *
 * const key = Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
 *
 * const program = Effect.gen(function*() {
 *   const signed = yield* ActionBuilder.useBigBlocks({ nonce: 1_767_225_600_000 })
 *   const { inspect } = yield* Inspector.Inspector
 *   const expected = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
 *   const { diagnosis } = yield* inspect(new TextEncoder().encode(Json.stringify(signed)), expected)
 *   yield* Console.log(diagnosis.verdict)
 * })
 *
 * const layer = Layer.provideMerge(Inspector.layer(), VenueProfile.layer("mainnet"))
 *
 * await Effect.runPromise(Effect.provide(program, Layer.merge(layer, Signer.layerPrivateKey(key))))
 * ```
 * ```text
 * fits
 * ```
 */
export class Inspector extends Context.Service<Inspector, {
  /**
   * Describes a signed body of any action type. Fails with `InvalidRequest` if `body` is not a signed body.
   *
   * If a key other than the expected signer's made the signature, the description names the likely mistake. The default
   * expected signer of a multi-sig action is its leader.
   */
  readonly inspect: (body: Uint8Array, expectedSigner?: Address) => Effect.Effect<Inspection, InvalidRequest>
}>()("@trigate/trading/Inspector") {}

const bodyForm = (body: ReadBody): Inspection["form"] => {
  if (body.action === undefined) return "opaque"
  return ActionDecoder.documentedForms(body).length === 0 ? "wire" : "documented"
}

/** Converts a parsed value for JSON readers without big integers: integers above 2^53 become decimal strings. */
const legible = (value: unknown): unknown => {
  if (Predicate.isBigInt(value)) return value.toString()
  if (Array.isArray(value)) return value.map(legible)
  return Predicate.isObject(value)
    ? Object.fromEntries(Object.entries(value).map(([key, member]) => [key, legible(member)]))
    : value
}

/** Returns the hashed bytes and the intermediate hashes; empty if the action cannot be hashed. */
const hashes = (canonical: CanonicalAction.CanonicalAction, signed: SignedEnvelope) =>
  Result.getOrElse(
    Result.gen(function*() {
      const { action, kind } = canonical
      const scheme = yield* UserSigned.signingScheme(kind === "multiSig" ? action.payload.action : action)
      const isL1 = scheme.scheme === "l1"
      if (kind === "multiSig") {
        return {
          msgpack: yield* MsgPack.encodeHex(MultiSig.hashedWrapper(action)),
          multiSigHash: yield* MultiSig.actionHash(action, signed),
          ...(isL1 ? { connectionId: yield* ActionHash.hash(MultiSig.innerValue(action), signed) } : {})
        }
      }
      return isL1
        ? { msgpack: yield* MsgPack.encodeHex(action), connectionId: yield* ActionHash.hash(action, signed) }
        : {}
    }),
    () => ({})
  )

// a body can contain a thousand addresses, and more warnings would not help its sender
const maxWarnings = 16

/**
 * Returns warnings about values and member orders of the sent action that differ from the canonical action, because
 * such differences change the hash.
 */
const signingWarnings = (sent: unknown, canonical: unknown): ReadonlyArray<string> =>
  [...SigningWarning.ofValues(sent), ...SigningWarning.ofOrder(sent, canonical)]
    .slice(0, maxWarnings)
    .map(({ message }) => message)

/** Caches recovered signers: each pair of signature and digest is recovered only once. */
const recoveringOnce = (engine: Secp256k1.Engine): Secp256k1.Engine => {
  const seen = new Map<string, Option.Option<Uint8Array>>()
  return {
    ...engine,
    recover: (digest, signature) => {
      const key = String.fromCharCode(...digest, ...signature.bytes, signature.recovery)
      const known = seen.get(key)
      if (known !== undefined) return known
      const recovered = engine.recover(digest, signature)
      seen.set(key, recovered)
      return recovered
    }
  }
}

/**
 * Returns the signer if the signature is valid for the other network: testnet instead of mainnet, or mainnet instead of
 * testnet. An L1 action does not name its network, so only a recovery of the signer shows the network.
 */
const signerOnOtherNetwork = (
  profile: VenueProfile,
  engine: Secp256k1.Engine,
  body: ReadBody
): Inspection["otherNetwork"] => {
  const other = otherThan(profile)
  const { signed } = body
  const recovered = ActionDecoder.canonicalAction(other, body).pipe(
    Result.flatMap((action) => SignerRecovery.toSignable(other, action, signed)),
    Result.flatMap((found) => SignerRecovery.recoverResult(found, signed.signature, engine))
  )
  return Result.isFailure(recovered) ? undefined : {
    network: other.name,
    signer: recovered.success.signer,
    digest: recovered.success.digest
  }
}

const signers = (recovered: RecoveredSigner) => ({
  scheme: recovered.scheme,
  outer: { signer: recovered.signer, digest: recovered.digest },
  ...(recovered.scheme === "multiSig" ? { inner: recovered.inner } : {})
})

/** Returns the canonical action, the differences between it and the sent action, and the message to sign. */
const target = (
  profile: VenueProfile,
  { mended }: BodyNormalization.BodyNormalization,
  { sentAction, signed }: ReadBody
) => {
  if (mended === undefined) return { differences: [] }
  const signable = SignerRecovery.toSignable(profile, mended, signed)
  return {
    canonicalAction: legible(mended.action),
    differences: SignedView.differences(sentAction, mended.action, ["action"]),
    ...(Result.isSuccess(signable) ? { typedData: Signable.walletData(signable.success.outer) } : {}),
    ...hashes(mended, signed)
  }
}

/**
 * Decodes a signed body. Also decodes a body that another program has wrapped in an object or in JSON text (see
 * `WrappedBody`). Fails with `InvalidRequest` if the bytes contain no body.
 */
const readBody = (bytes: Uint8Array) =>
  Result.flatMap(ActionDecoder.decodeText(bytes), (text) => {
    const body = Result.map(ActionDecoder.readText(text), (read) => ({ body: read, wrapped: noMistakes }))
    const inner = Result.isFailure(body) ? WrappedBody.unwrap(text) : undefined
    return inner === undefined ? body : Result.match(ActionDecoder.readText(inner.text), {
      onFailure: () => body,
      onSuccess: (read) => Result.succeed({ body: read, wrapped: [inner.mistake] })
    })
  })

const noMistakes: ReadonlyArray<Mistake> = []

/**
 * Makes the inspector of a network profile with a signature engine.
 *
 * Inspecting a large body takes some milliseconds per step; the event loop runs between steps.
 */
export const make = (
  profile: VenueProfile,
  options: Options = {},
  engine: Secp256k1.Engine = Secp256k1.noble
): Inspector["Service"] => {
  const windowAt = Admission.nonceWindow(options)
  const judge = Admission.judge(profile, options, engine)
  return Inspector.of({
    inspect: Effect.fn("Inspector.inspect")(function*(bytes, expected) {
      const { body, wrapped } = yield* Effect.fromResult(readBody(bytes))
      yield* Effect.yieldNow
      const { earliest, latest, now } = windowAt(yield* Clock.currentTimeMillis)
      const once = recoveringOnce(engine)
      const { sentAction, signed } = body
      const known = SignerAuthorization.recover(profile, once, body, SignerAuthorization.isExpected(body, expected))
      const canonicalForm = Result.isSuccess(known)
        ? Result.succeed(known.success.canonical)
        : ActionDecoder.canonicalAction(profile, body)
      const canonical = Result.getOrUndefined(canonicalForm)
      const recovery = canonicalForm.pipe(
        Result.flatMap((action) => SignerRecovery.toSignable(profile, action, signed)),
        Result.flatMap((signable) => SignerRecovery.recoverResult(signable, signed.signature, once))
      )
      const recovered = Result.getOrUndefined(recovery)
      yield* Effect.yieldNow
      const shape = BodyNormalization.of(profile, body, canonical)
      const form = { ...shape, mistakes: [...wrapped, ...shape.mistakes] }
      yield* Effect.yieldNow
      const { scope } = yield* CurrentCaller
      // the nonce window is set around the body's own nonce, so that an old body can still be inspected
      const findRefusal = (read: ReadBody, signer: Address | undefined): string | undefined =>
        Result.match(judge(read, read.signed.nonce, scope, signer), {
          onFailure: (refusal) => refusal.message,
          onSuccess: () => undefined
        })
      const diagnosis = yield* SignatureDiagnosis.diagnose(profile, once, {
        body,
        canonical,
        form,
        recovered,
        expected,
        signers: options.signers ?? [],
        refusalOf: (signer) => findRefusal(body, signer)
      })
      yield* Effect.yieldNow
      const corrected = CorrectedBody.of(profile, once, body, form, diagnosis.mistakes, diagnosis.expectedSigner, {
        ofSigner: findRefusal,
        ofProof: (read) =>
          Result.match(judge(read, read.signed.nonce, scope, undefined), {
            // the substitute key is not on any allow-list
            onFailure: (refusal) => refusal._tag === "SignerNotAllowed" ? undefined : refusal.message,
            onSuccess: () => undefined
          })
      })
      const otherNetwork = diagnosis.verdict === "fits" ? undefined : signerOnOtherNetwork(profile, once, body)
      yield* Effect.yieldNow
      const shown = target(profile, form, body)
      yield* Effect.yieldNow
      return {
        actionType: signed.action.type,
        form: bodyForm(body),
        network: profile.name,
        ...shown,
        ...(recovered === undefined ? {} : signers(recovered)),
        ...(Result.isFailure(recovery) ? { unsigned: recovery.failure.message } : {}),
        ...(otherNetwork === undefined ? {} : { otherNetwork }),
        nonce: {
          value: signed.nonce,
          now,
          earliest: Math.max(0, earliest),
          latest,
          inWindow: signed.nonce > earliest && signed.nonce < latest
        },
        diagnosis: {
          ...diagnosis,
          detail: [
            [diagnosis.detail, ...form.unknown].join("; "),
            ...(corrected === undefined || corrected.verified ? [] : ["This correction could not be verified."])
          ].join(". ")
        },
        ...(corrected === undefined ? {} : { corrected }),
        warnings: [
          ...ActionDecoder.warnings(profile, body, now),
          ...form.unknown,
          ...signingWarnings(sentAction, canonical?.action)
        ]
      }
    })
  })
}

/**
 * Provides the `Inspector` for the `Venue` and the `Secp256k1` engine of the context. Default engine: noble.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerNoDeps = (options: Options = {}): Layer.Layer<Inspector, never, Venue> =>
  Layer.effect(
    Inspector,
    Effect.zipWith(Venue, Secp256k1.Secp256k1, (profile, engine) => make(profile, options, engine))
  )

/**
 * Provides {@link layerNoDeps} with libsecp256k1, or with noble if libsecp256k1 does not load.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options = {}): Layer.Layer<Inspector, never, Venue> =>
  Layer.provide(layerNoDeps(options), Secp256k1.layer)
