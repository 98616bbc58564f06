/**
 * Corrects a signed body: reverts the mistakes that were found in it, and checks that `/exchange` would relay the
 * corrected body.
 */
import type { Address } from "@trigate/domain/encoding/Hex"
import * as Json from "@trigate/domain/encoding/Json"
import type { CorrectedBody, Mistake } from "@trigate/domain/Inspection"
import * as Signable from "@trigate/signing/actions/Signable"
import * as SignedReading from "@trigate/signing/inspection/SignedReading"
import type * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as SignerRecovery from "@trigate/signing/SignerRecovery"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as ActionDecoder from "./admission/ActionDecoder.ts"
import type { ReadBody } from "./admission/ActionDecoder.ts"
import * as BodyNormalization from "./admission/BodyNormalization.ts"
import * as SignerSearch from "./SignerSearch.ts"

/**
 * Checks bodies as `/exchange` does. Each function returns why `/exchange` refuses a body; `undefined` if `/exchange`
 * relays it.
 */
export interface Refusals {
  readonly ofSigner: (read: ReadBody, expected: Address) => string | undefined
  /**
   * Checks a corrected body that was signed with a substitute key, because the signer's own key is not available.
   * Ignores the allow-list of signers.
   */
  readonly ofProof: (read: ReadBody) => string | undefined
}

type Path = Mistake["path"]

const put = (value: unknown, [key, ...rest]: Path, item: unknown): unknown => {
  if (key === undefined) return item
  if (Array.isArray(value)) return value.map((each: unknown, at) => at === key ? put(each, rest, item) : each)
  if (!Predicate.isReadonlyObject(value)) return value
  const members = Object.entries(value).map(([name, each]) => [name, name === key ? put(each, rest, item) : each])
  return Object.fromEntries(
    Object.hasOwn(value, key) || rest.length > 0 || item === undefined ? members : [...members, [key, item]]
  )
}

const without = (value: unknown, key: string): unknown =>
  Predicate.isReadonlyObject(value)
    ? Object.fromEntries(Object.entries(value).filter(([name]) => name !== key))
    : value

const at = (value: unknown, path: Path): unknown =>
  path.reduce<unknown>(
    (part, key) => Predicate.hasProperty(part, key) && Object.hasOwn(part, key) ? part[key] : undefined,
    value
  )

const integer = (text: string | undefined): number | undefined =>
  text !== undefined && /^[0-9]{1,15}/u.test(text) ? Number.parseInt(text, 10) : undefined

const chainId = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : /^0x[0-9a-f]+/u.exec(text)?.[0]

/** Mistakes whose correction changes only the body, because the signature already covers the corrected value. */
const signedTexts: ReadonlySet<string> = new Set(["jsonText", "unicodeForm"])

/**
 * Returns the body with one mistake reverted. Returns it unchanged if the mistake is not in the body, or if the
 * correction would invalidate the signature.
 */
const revertMistake = (body: unknown, { expected, found, mistake, path }: Mistake): unknown => {
  switch (mistake) {
    case "timeUnit":
    case "otherNonce": {
      const time = integer(expected)
      if (time === undefined || path.length === 0) return body
      // a user-signed action repeats the nonce of the body
      const isOwn = mistake === "otherNonce"
        ? path.length > 1
        : at(body, [...path.slice(0, -1), "signatureChainId"]) !== undefined
      return put(put(body, path, time), isOwn ? ["nonce"] : [], isOwn ? time : put(body, path, time))
    }
    case "vaultNotSent":
      return expected === undefined ? put(body, ["vaultAddress"], found) : body
    case "expiresAfterNotSent":
      // an expiry in another unit is signed again
      return expected === undefined || found?.length === expected.length
        ? put(body, ["expiresAfter"], integer(found))
        : body
    case "ownVault":
      return without(body, "vaultAddress")
    case "otherChainId": {
      const signed = chainId(found)
      return path.length === 0 || signed === undefined ? body : put(body, path, signed)
    }
    case "recoveryBitForm":
      return put(body, path, integer(expected))
    case "repeatedCosigner": {
      const signatures = at(body, ["action", "signatures"])
      return Array.isArray(signatures)
        ? put(body, ["action", "signatures"], signatures.filter((_, index) => index !== path.at(-1)))
        : body
    }
    default:
      if (!signedTexts.has(mistake) || found === undefined) return body
      return Result.match(Json.parse(found), { onFailure: () => body, onSuccess: (text) => put(body, path, text) })
  }
}

/**
 * The substitute key: signs in place of the expected signer's key when a correction is verified. The caller never
 * receives a signature made with this key.
 */
const proofKey = new Uint8Array(32).fill(0x5a)

const read = (body: unknown): Result.Result<ReadBody, unknown> => ActionDecoder.readText(Json.stringify(body))

const isMended = (profile: VenueProfile, body: ReadBody): boolean =>
  BodyNormalization.of(profile, body, Result.getOrUndefined(ActionDecoder.canonicalAction(profile, body))).mistakes
    .length === 0

/** Returns whether the body would pass all checks if the substitute key had signed it. */
const isSignable = (
  profile: VenueProfile,
  engine: Secp256k1.Engine,
  body: unknown,
  { ofProof }: Refusals
): boolean => {
  const key = engine.publicKey(proofKey)
  const unsigned = read(put(without(body, "signature"), ["signature"], { r: "0x1", s: "0x1", v: 27 }))
  if (Result.isFailure(unsigned) || Option.isNone(key) || !isMended(profile, unsigned.success)) return false
  const { signed } = unsigned.success
  const signable = Result.flatMap(
    ActionDecoder.canonicalAction(profile, unsigned.success),
    (action) => SignerRecovery.toSignable(profile, action, signed)
  )
  // a multi-sig action names its leader, so the substitute key cannot sign in place of the leader's key
  if (Result.isFailure(signable) || signable.success.scheme === "multiSig") return false
  const proof = engine.sign(Signable.digestBytes(signable.success.outer), proofKey)
  if (Option.isNone(proof)) return false
  const signature = {
    r: SignedReading.digestHex(proof.value.bytes.subarray(0, 32)),
    s: SignedReading.digestHex(proof.value.bytes.subarray(32)),
    v: 27 + proof.value.recovery
  }
  return Result.match(read(put(without(body, "signature"), ["signature"], signature)), {
    onFailure: () => false,
    onSuccess: (whole) => ofProof(whole) === undefined
  })
}

const mendedSignature = (mistakes: ReadonlyArray<Mistake>, signature: Secp256k1.Signature) => [
  signature,
  ...SignerSearch.repairs.filter(([name]) => mistakes.some(({ mistake }) => mistake === name))
    .map(([, repair]) => repair(signature))
]

/**
 * Returns the corrected body; `undefined` if nothing is wrong.
 *
 * Retains the signature if it is the expected signer's signature of the corrected body. Otherwise the corrected body
 * has no signature and must be signed again. To check an unsigned corrected body, a copy is signed internally with a
 * substitute key.
 */
export const of = (
  profile: VenueProfile,
  engine: Secp256k1.Engine,
  { sentAction, signed }: ReadBody,
  { mended }: BodyNormalization.BodyNormalization,
  mistakes: ReadonlyArray<Mistake>,
  expected: Address | undefined,
  refusals: Refusals
): CorrectedBody | undefined => {
  if (mistakes.length === 0) return undefined
  const { signature, ...beside } = signed
  const sent: unknown = { ...beside, action: sentAction, signature }
  const candidates = mended === undefined ? [sent] : [sent, { ...beside, action: mended.action, signature }]
  const bodies = candidates.map((body) => mistakes.reduce(revertMistake, body))
  if (expected !== undefined) {
    for (const body of bodies) {
      for (const kept of mendedSignature(mistakes, signature)) {
        const v = Number(kept.v)
        const whole = read(put(body, ["signature"], { ...kept, v: v < 27 ? v + 27 : v }))
        if (
          Result.isSuccess(whole) && refusals.ofSigner(whole.success, expected) === undefined &&
          isMended(profile, whole.success)
        ) {
          return {
            body: Json.stringify(put(body, ["signature"], { ...kept, v: v < 27 ? v + 27 : v })),
            signature: "kept",
            verified: true
          }
        }
      }
    }
  }
  const again = without(bodies.at(-1), "signature")
  return { body: Json.stringify(again), signature: "again", verified: isSignable(profile, engine, again, refusals) }
}
