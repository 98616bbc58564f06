/** Encodes and decodes UTF-8, and joins chunks of bytes. */
import * as Option from "effect/Option"

const encoder = new TextEncoder()
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
const lossy = new TextDecoder("utf-8", { ignoreBOM: true })

/** Encodes text as UTF-8. */
export const encode = (text: string): Uint8Array<ArrayBuffer> => encoder.encode(text)

/** Decodes UTF-8; `None` if the bytes are invalid. */
export const decode: (bytes: Uint8Array) => Option.Option<string> = Option.liftThrowable((bytes: Uint8Array) =>
  strict.decode(bytes)
)

/** Joins chunks. If there is only one chunk, returns that chunk without copying it. */
export const joined = (pieces: ReadonlyArray<Uint8Array>): Uint8Array => {
  const [first] = pieces
  if (first !== undefined && pieces.length === 1) return first
  const whole = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
}

/** Returns bytes with a buffer of their own. Copies a view of a part of a buffer, such as a large receive buffer. */
export const owned = (bytes: Uint8Array): Uint8Array =>
  bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes)

/**
 * Returns the first `length` bytes of some chunks, or fewer if the input is shorter. Joins only the chunks that it
 * needs.
 */
export const opening = (pieces: ReadonlyArray<Uint8Array>, length: number): Uint8Array => {
  let size = 0
  const enough = pieces.findIndex((piece) => (size += piece.length) >= length)
  return joined(enough < 0 ? pieces : pieces.slice(0, enough + 1)).subarray(0, length)
}

/** Decodes UTF-8; each invalid byte sequence becomes a replacement character. */
export const decodeLossy = (bytes: Uint8Array): string => lossy.decode(bytes)
