/** Text as UTF-8 bytes and back. */
import * as Option from "effect/Option"

const encoder = new TextEncoder()
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
const lossy = new TextDecoder("utf-8", { ignoreBOM: true })

/** Text as bytes. */
export const encode = (text: string): Uint8Array<ArrayBuffer> => encoder.encode(text)

/** Bytes as text; none where they are not valid UTF-8. */
export const decode: (bytes: Uint8Array) => Option.Option<string> = Option.liftThrowable((bytes: Uint8Array) =>
  strict.decode(bytes)
)

/** Bytes as text, with a replacement character for each that is not valid UTF-8. */
export const decodeLossy = (bytes: Uint8Array): string => lossy.decode(bytes)
