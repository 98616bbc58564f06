/** A growing byte buffer with big-endian integer writes. */
import { utf8 } from "./bytes.ts"

export class ByteWriter {
  #bytes = new Uint8Array(256)
  #view = new DataView(this.#bytes.buffer)
  #length = 0

  /** Makes room for `size` more bytes and returns where they begin. */
  #claim(size: number): number {
    const start = this.#length
    this.#length = start + size
    if (this.#length > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(this.#length, this.#bytes.length * 2))
      grown.set(this.#bytes)
      this.#bytes = grown
      this.#view = new DataView(grown.buffer)
    }
    return start
  }

  uint8(value: number): void {
    const at = this.#claim(1)
    this.#view.setUint8(at, value)
  }

  uint16(value: number): void {
    const at = this.#claim(2)
    this.#view.setUint16(at, value)
  }

  uint32(value: number): void {
    const at = this.#claim(4)
    this.#view.setUint32(at, value)
  }

  uint64(value: bigint): void {
    const at = this.#claim(8)
    this.#view.setBigUint64(at, value)
  }

  float64(value: number): void {
    const at = this.#claim(8)
    this.#view.setFloat64(at, value)
  }

  bytes(value: Uint8Array): void {
    const at = this.#claim(value.length)
    this.#bytes.set(value, at)
  }

  /** A copy of what was written, so that the buffer behind it is never shared. */
  finish(): Uint8Array {
    return this.#bytes.slice(0, this.#length)
  }
}

const ascii = /^[\0-\x7f]*$/

/** UTF-8 bytes of a well-formed string; ASCII, nearly every string of an action, takes the short way. */
export const stringBytes = (text: string): Uint8Array => {
  if (!ascii.test(text)) {
    return utf8(text)
  }
  const bytes = new Uint8Array(text.length)
  for (let index = 0; index < text.length; index++) {
    bytes[index] = text.charCodeAt(index)
  }
  return bytes
}
