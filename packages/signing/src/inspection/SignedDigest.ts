/**
 * Computes the digests of views. A view is a hypothesis about how a request was hashed and signed. Intermediate results
 * are cached.
 */
import * as Result from "effect/Result"
import * as ActionHash from "../actions/ActionHash.ts"
import * as MsgPack from "../actions/MsgPack.ts"
import type * as Signable from "../actions/Signable.ts"
import * as UserSigned from "../actions/UserSigned.ts"
import { concat, fromHex, isAddress, toHex, toUint64, uint64Bytes } from "../internal/bytes.ts"
import * as Loose from "../internal/looseEncoding.ts"
import * as MultiSig from "../multisig/MultiSig.ts"
import type { Part, Preimage, View } from "./SignedView.ts"
import { hashedValue, readMember, viewWrapper } from "./SignedView.ts"

const noBytes = new Uint8Array(0)

const encoded = ({ encoding, json }: View, value: unknown): Bytes => {
  if (json !== undefined) return Result.succeed(Loose.encodeJson(json, value))
  return encoding === undefined ? MsgPack.encode(value) : Result.succeed(Loose.encode(encoding, value))
}

/**
 * Encodes a value to the bytes that are hashed. `name` identifies the value, because one view can hash several values.
 */
type Encode = (view: View, name: "action" | "wrapper" | "payload", value: () => unknown) => Bytes

type Bytes = Result.Result<Uint8Array, unknown>

const encodeAnew: Encode = (view, _name, value) => encoded(view, value())

const hashed = (view: View, bytes: Bytes): Bytes => {
  const { arrange, context, hashBytes } = view
  const { expiresAfter, vaultAddress } = context
  const nonce = toUint64(context.nonce)
  const expires = expiresAfter === null || expiresAfter === undefined ? undefined : toUint64(expiresAfter)
  if (nonce === undefined) return Result.fail("nonce")
  return Result.map(bytes, (action) => {
    const parts: Preimage = {
      action,
      nonce: uint64Bytes(nonce),
      vault: isAddress(vaultAddress) ? fromHex(vaultAddress) : noBytes,
      expires: expires === undefined ? noBytes : uint64Bytes(expires)
    }
    return hashBytes(arrange === undefined ? venuePreimage(parts) : arrange(parts, context))
  })
}

/**
 * Concatenates the preimage in the venue's order: action, nonce, vault, expiry. The byte 1 precedes a vault; without a
 * vault, only the byte 0 is inserted. The byte 0 precedes an expiry; without an expiry, nothing is added.
 */
export const venuePreimage = ({ action, expires, nonce, vault }: Preimage): Uint8Array =>
  concat(
    action,
    nonce,
    Uint8Array.of(vault.length === 0 ? 0 : 1),
    vault,
    expires.length === 0 ? noBytes : Uint8Array.of(0),
    expires
  )

type SignableOf = Result.Result<Signable.Signable, unknown>

const agentTypedData = (view: View, bytes: Bytes): SignableOf =>
  Result.map(hashed(view, bytes), (hash) => ActionHash.agentSignable(view.profile, toHex(hash)))

const innerSignable = (
  view: View,
  whole: MultiSig.MultiSigAction | undefined,
  sent: unknown,
  encode: Encode
): SignableOf => {
  const { action, asTyped, profile } = view
  const parties = view.wrapped ? whole?.payload : undefined
  const scheme = UserSigned.signingScheme(action)
  if (Result.isFailure(scheme)) return Result.fail<unknown>(scheme.failure)
  if (scheme.success.scheme === "userSigned" && !view.asL1) {
    const { type } = scheme.success
    return parties === undefined
      ? UserSigned.signable(profile, type, action)
      : UserSigned.innerSignable(profile, type, action, parties)
  }
  if (asTyped !== undefined) {
    const signable = asTyped(action)
    return signable === undefined ? Result.fail<unknown>("typed") : Result.succeed(signable)
  }
  if (whole === undefined || parties === undefined) {
    return agentTypedData(view, encode(view, "action", () => hashedValue(view, "inner", sent).value))
  }
  const payload = readMember(sent, "payload")
  const sentValue = ["multiSigUser", "outerSigner", "action"].map((key) => readMember(payload, key))
  return agentTypedData(view, encode(view, "payload", () => view.rewrite(MultiSig.innerValue(whole), sentValue)))
}

/**
 * Returns the typed data that the outer or inner signatures cover according to a view, before {@link View.reshape} is
 * applied.
 */
const viewSignable = (view: View, given: Part, sent: unknown, encode: Encode = encodeAnew): SignableOf => {
  const part = view.otherPart ? given === "outer" ? "inner" : "outer" : given
  const whole = viewWrapper(view)
  if (whole === undefined || part === "inner") return innerSignable(view, whole, sent, encode)
  const bytes = encode(view, whole === undefined ? "action" : "wrapper", () => hashedValue(view, part, sent).value)
  return view.asL1
    ? agentTypedData(view, bytes)
    : Result.flatMap(
      hashed(view, bytes),
      (hash) => MultiSig.leaderSignable(view.profile, whole.signatureChainId, toHex(hash), view.context.nonce)
    )
}

/** Returns the digest that was signed if a view is correct. A view is a hypothesis about the signing. */
export type DigestOf = (view: View) => Bytes

/**
 * Makes a function that computes the digests of views (hypotheses about the signing); `sent` is the action as sent.
 *
 * The digests are those of the outer or the inner signatures (`part`). Views with the same action, rewrite and encoding
 * share the encoded bytes. Views that differ only in `reshape` or `digest` share the typed data that precedes these two
 * steps.
 */
export const digester = (part: Part, sent: unknown): DigestOf => {
  const ids = new Map<unknown, number>()
  const numberInstance = (value: unknown): number => {
    const known = ids.get(value)
    if (known !== undefined) return known
    ids.set(value, ids.size)
    return ids.size - 1
  }
  const encodedOnce = new Map<string, Bytes>()
  const signableOnce = new Map<string, SignableOf>()
  const valueKey = ({ action, encoding, json, otherPart, rewrite, wrapped, wrapper }: View): string =>
    [action, rewrite, encoding, json, wrapper, wrapped, otherPart].map(numberInstance).join()
  return (view) => {
    const value = valueKey(view)
    const key = [
      value,
      ...[view.profile, view.context, view.arrange, view.hashBytes, view.asTyped, view.asL1].map(numberInstance)
    ].join()
    let signable = signableOnce.get(key)
    if (signable === undefined) {
      signable = viewSignable(view, part, sent, (_view, name, make) => {
        const bytesKey = `${value} ${name}`
        let bytes = encodedOnce.get(bytesKey)
        if (bytes === undefined) encodedOnce.set(bytesKey, bytes = encoded(view, make()))
        return bytes
      })
      signableOnce.set(key, signable)
    }
    return Result.isFailure(signable)
      ? Result.fail(signable.failure)
      : Result.succeed(view.digest(view.reshape(signable.success)))
  }
}

/**
 * Returns the typed data that the outer or inner signatures cover according to a view (a hypothesis about the signing),
 * after {@link View.reshape} was applied; `undefined` if the view's action cannot be converted to typed data.
 */
export const viewTypedData = (view: View, part: Part, sent: unknown): Signable.Signable | undefined => {
  const found = viewSignable(view, part, sent)
  return Result.isFailure(found) ? undefined : view.reshape(found.success)
}
