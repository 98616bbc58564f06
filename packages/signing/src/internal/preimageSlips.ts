/** What is hashed beside the action, and what of it is signed: nonce, vault, expiry, their markers, the digest. */
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import * as Result from "effect/Result"
import type * as ActionForm from "../actions/ActionForm.ts"
import * as MsgPack from "../actions/MsgPack.ts"
import * as Signable from "../actions/Signable.ts"
import * as SignedView from "../inspection/SignedView.ts"
import type { View } from "../inspection/SignedView.ts"
import { concat, fromHex, type Hex, isAddress, keccak256, toHex, uint64Bytes } from "./bytes.ts"
import type { Vary } from "./slip.ts"
import { isUserSigned } from "./slip.ts"

const hashOf = (...parts: ReadonlyArray<Uint8Array>): Hex => toHex(keccak256(concat(...parts)))

const noBytes = new Uint8Array(0)

const vaultBytes = (vault: unknown): Uint8Array => isAddress(vault) ? fromHex(vault) : noBytes

/** The bytes that follow the action, put together by hand. */
const tail =
  (write: (nonce: Uint8Array, vault: Uint8Array, expires: Uint8Array) => Uint8Array): View["hash"] =>
  (value, { expiresAfter, nonce, vaultAddress }) =>
    Result.map(
      MsgPack.encode(value),
      (encoded) =>
        hashOf(
          encoded,
          write(
            uint64Bytes(BigInt(nonce)),
            vaultBytes(vaultAddress),
            expiresAfter === null || expiresAfter === undefined ? noBytes : uint64Bytes(BigInt(expiresAfter))
          )
        )
    )

const marked = (marker: number, bytes: Uint8Array): Uint8Array =>
  bytes.length === 0 ? noBytes : concat(Uint8Array.of(marker), bytes)

const vaultMarked = (vault: Uint8Array): Uint8Array => vault.length === 0 ? Uint8Array.of(0) : marked(1, vault)

/** The hash of a published sample: vault before nonce, zeros for no vault, no markers. */
export const documentedHash = tail((nonce, vault) => concat(vault.length === 0 ? new Uint8Array(20) : vault, nonce))

export const withoutVaultMarker = tail((nonce, vault, expires) => concat(nonce, vault, marked(0, expires)))

export const withoutExpiryMarker = tail((nonce, vault, expires) => concat(nonce, vaultMarked(vault), expires))

export const personal = (digest: Uint8Array): Hex => hashOf(Utf8.encode("\u0019Ethereum Signed Message:\n32"), digest)

/** The connection id or the wrapper's hash, which the typed data holds. */
export const hashIn = (signable: Signable.Signable): Uint8Array => {
  const found = signable.members.find(({ type }) => type === "bytes32")
  return found?.type === "bytes32" ? fromHex(found.value) : Signable.digestBytes(signable)
}

/** Slips in a nonce: one digit off by one, neighbouring digits swapped. */
export const nonceSlips = (nonce: bigint): ReadonlyArray<bigint> => {
  const digits = nonce.toString()
  const oneOff = Array.from(digits, (_, place) => 10n ** BigInt(place)).flatMap((step) => [nonce + step, nonce - step])
  const swapped = Array.from(
    digits.slice(1),
    (second, place) =>
      BigInt(`${digits.slice(0, place)}${second}${digits.slice(place, place + 1)}${digits.slice(place + 2)}`)
  )
  return [nonce / 1000n * 1000n, ...oneOff, ...swapped]
}

const nonceField = (view: View): ActionForm.Path => {
  const key = SignedView.nonceKey(view)
  return key === undefined || !isUserSigned(view) ? ["nonce"] : ["action", key]
}

export const nonces = (slips: (nonce: bigint) => ReadonlyArray<bigint>): Vary => ({ request, view }) => {
  const right = BigInt(request.nonce)
  return slips(right).filter((nonce) => nonce >= 0n).map((nonce) => ({
    view: SignedView.withNonce(view, nonce),
    finding: {
      path: nonceField(view),
      found: String(nonce),
      expected: String(right)
    }
  }))
}

/** Lifetimes in seconds that programs give their actions; one that was signed but not sent can only be guessed. */
export const lifetimes = [5, 10, 15, 20, 30, 60, 120, 300, 600, 3600]

export const zeroAddress = "0x0000000000000000000000000000000000000000"
