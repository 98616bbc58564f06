/** Signs the raw text of a multi-sig body and leaves the rest of the text unchanged. */
import { secp256k1 } from "@noble/curves/secp256k1"
import * as Json from "@trigate/domain/encoding/Json"
import type { TestKey } from "@trigate/sandbox/SandboxExamples"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as CanonicalAction from "@trigate/signing/actions/CanonicalAction"
import * as Signable from "@trigate/signing/actions/Signable"
import * as MultiSig from "@trigate/signing/multisig/MultiSig"
import { trimmed } from "@trigate/signing/Secp256k1"
import * as SignerRecovery from "@trigate/signing/SignerRecovery"
import type { SignedRequest } from "@trigate/signing/SignerRecovery"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import { mainnet } from "@trigate/signing/VenueProfile"
import * as Result from "effect/Result"

/** The leader, which a body has to name as `outerSigner`. */
export const leader: TestKey = keys.leader

export interface Signing {
  readonly profile?: VenueProfile
  readonly cosigners?: ReadonlyArray<TestKey>
  readonly outer?: TestKey
}

const sign = (key: TestKey, signable: Signable.Signable) => {
  const { r, recovery, s } = secp256k1.sign(Signable.digest(signable).slice(2), key.privateKey.slice(2))
  return { r: `0x${r.toString(16)}`, s: `0x${s.toString(16)}`, v: 27 + recovery }
}

const parseRequest = (text: string) => Result.getOrThrow(Json.parse(text)) as SignedRequest

const replaced = (text: string, path: ReadonlyArray<string>, value: unknown): string => {
  let from = Json.members(text)
  for (const key of path.slice(0, -1)) from = Json.members(text, from.get(key)?.start)
  const span = from.get(path.at(-1) ?? "")
  if (span === undefined) throw new Error(`The text of the body has no member ${path.join(".")}`)
  return text.slice(0, span.start) + JSON.stringify(value) + text.slice(span.end)
}

/** Replaces the leader's signature in a text, for any inner action. */
export const signLeader = (text: string, outer: TestKey = leader, profile: VenueProfile = mainnet): string => {
  const request = parseRequest(text)
  const canonical = Result.getOrThrow(CanonicalAction.canonicalize(profile, request.action))
  if (canonical.kind !== "multiSig") throw new Error("No wrapper")
  return replaced(
    text,
    ["signature"],
    sign(outer, Result.getOrThrow(MultiSig.outerSignable(profile, canonical.action, request)))
  )
}

/** Replaces the co-signers' and the leader's signatures in the text of a multi-sig body. The rest of the text is unchanged. */
export const signMultiSig = (
  text: string,
  { cosigners = [keys.leader, keys.cosigner], outer = leader, profile = mainnet }: Signing = {}
): string => {
  const unsigned = Result.getOrThrow(SignerRecovery.signable(profile, parseRequest(text)))
  if (unsigned.scheme !== "multiSig") {
    throw new Error("The body is not a multi-sig wrapper, so it has no inner signatures")
  }
  const inner = cosigners.map((key) => trimmed(sign(key, unsigned.inner)))
  return signLeader(replaced(text, ["action", "signatures"], inner), outer, profile)
}
