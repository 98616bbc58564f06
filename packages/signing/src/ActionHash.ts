/** The hash of an action with what surrounds it: the connection id of L1 actions, the action hash of multi-sig ones. */
import * as Result from "effect/Result"
import { fromHex, type Hex, isAddress, toHex } from "./internal/bytes.ts"
import { keccak256 } from "./internal/Keccak256.ts"
import { toUint64, uint64Bytes } from "./internal/uint64.ts"
import * as MsgPack from "./MsgPack.ts"
import { type UnsignableAction, wrongShape } from "./UnsignableAction.ts"

/** What is hashed beside the action; `null` and absent are the same. */
export interface HashContext {
  /** Milliseconds, unsigned 64 bits. */
  readonly nonce: number | bigint
  /** The vault or sub-account acted for, 20 bytes. */
  readonly vaultAddress?: string | null | undefined
  /** Milliseconds, unsigned 64 bits. */
  readonly expiresAfter?: number | bigint | null | undefined
}

/** Why an action has no hash. */
export type Unhashable = MsgPack.MsgPackUnencodable | UnsignableAction

const none = new Uint8Array(0)

const vaultMarker = (vault: HashContext["vaultAddress"]): Result.Result<Uint8Array, UnsignableAction> => {
  if (vault === null || vault === undefined) {
    return Result.succeed(Uint8Array.of(0))
  }
  return isAddress(vault)
    ? Result.succeed(Uint8Array.of(1, ...fromHex(vault)))
    : Result.fail(wrongShape("vaultAddress", "a 20-byte address"))
}

const uint64 = (name: string, value: number | bigint): Result.Result<Uint8Array, UnsignableAction> => {
  const integer = toUint64(value)
  return integer === undefined
    ? Result.fail(wrongShape(name, "an unsigned 64-bit integer"))
    : Result.succeed(uint64Bytes(integer))
}

const expiryMarker = (expires: HashContext["expiresAfter"]): Result.Result<Uint8Array, UnsignableAction> =>
  expires === null || expires === undefined
    ? Result.succeed(none)
    : Result.map(uint64("expiresAfter", expires), (bytes) => Uint8Array.of(0, ...bytes))

/**
 * The bytes that are hashed: MessagePack of the value, nonce, vault marker, expiry marker.
 *
 * The value must already be in the venue's key order. Fails with `MsgPackUnencodable` or `UnsignableAction`.
 */
export const preimage = (value: unknown, context: HashContext): Result.Result<Uint8Array, Unhashable> =>
  Result.gen(function*() {
    const parts = [
      yield* MsgPack.encode(value),
      yield* uint64("nonce", context.nonce),
      yield* vaultMarker(context.vaultAddress),
      yield* expiryMarker(context.expiresAfter)
    ]
    const bytes = new Uint8Array(parts.reduce((length, part) => length + part.length, 0))
    parts.reduce((offset, part) => {
      bytes.set(part, offset)
      return offset + part.length
    }, 0)
    return bytes
  })

/** keccak-256 of the {@link preimage}. Fails with `MsgPackUnencodable` or `UnsignableAction`. */
export const hash = (value: unknown, context: HashContext): Result.Result<Hex, Unhashable> =>
  Result.map(preimage(value, context), (bytes) => toHex(keccak256(bytes)))
