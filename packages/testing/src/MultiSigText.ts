/** Signs the raw text of a multi-sig request body. Only the signatures in the text change. */
import { secp256k1 } from "@noble/curves/secp256k1"
import * as Json from "@trigate/domain/encoding/Encoding"
import type { TestKey } from "@trigate/sandbox/SandboxExamples"
import { keys } from "@trigate/sandbox/SandboxExamples"
import { trimmed } from "@trigate/signing/Secp256k1"
import * as Signable from "@trigate/signing/unstable/actions/ActionHash"
import * as CanonicalAction from "@trigate/signing/unstable/actions/CanonicalAction"
import type { SignedRequest } from "@trigate/signing/unstable/actions/CanonicalAction"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import { mainnet } from "@trigate/signing/VenueProfile"
import * as Result from "effect/Result"

/** The leader of multi-sig actions. A request body has to name this address as `outerSigner`. */
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

/** Replaces the leader's signature in the text of a multi-sig request body. The inner action can be of any type. */
export const signLeader = (text: string, outer: TestKey = leader, profile: VenueProfile = mainnet): string => {
  const request = parseRequest(text)
  const canonical = Result.getOrThrow(CanonicalAction.canonicalize(profile, request.action))
  if (canonical.kind !== "multiSig") throw new Error("The body is not a multi-sig wrapper")
  return replaced(
    text,
    ["signature"],
    sign(outer, Result.getOrThrow(CanonicalAction.outerSignable(profile, canonical.action, request)))
  )
}

/** Replaces the signatures of the co-signers and of the leader in the text of a multi-sig request body. */
export const signMultiSig = (
  text: string,
  { cosigners = [keys.leader, keys.cosigner], outer = leader, profile = mainnet }: Signing = {}
): string => {
  const unsigned = Result.getOrThrow(CanonicalAction.requestSignable(profile, parseRequest(text)))
  if (unsigned.scheme !== "multiSig") {
    throw new Error("The body is not a multi-sig wrapper, so it has no inner signatures")
  }
  const inner = cosigners.map((key) => trimmed(sign(key, unsigned.inner)))
  return signLeader(replaced(text, ["action", "signatures"], inner), outer, profile)
}
