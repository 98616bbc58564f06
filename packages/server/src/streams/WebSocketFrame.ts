/** Frames of a WebSocket as a server writes them (RFC 6455, section 5.2): unmasked and not fragmented. */
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import type { Frame } from "@trigate/upstream/streams/Topic"

const TEXT = 0x81
const PING = 0x89

/** Encodes a text frame. */
export const textFrame = (text: string): Uint8Array => {
  const body = Utf8.encode(text)
  const { length } = body
  const head = length < 126 ? 2 : length < 65_536 ? 4 : 10
  // a socket would make a Buffer of any other Uint8Array, at each of the frame's deliveries
  const bytes = Buffer.alloc(head + length)
  bytes[0] = TEXT
  if (head === 2) bytes[1] = length
  else {
    const view = new DataView(bytes.buffer, bytes.byteOffset)
    bytes[1] = head === 4 ? 126 : 127
    if (head === 4) view.setUint16(2, length)
    else view.setBigUint64(2, BigInt(length))
  }
  bytes.set(body, head)
  return bytes
}

/** Returns the bytes of a frame, encoded once for all callers that receive the frame. */
export const wireBytes = (frame: Pick<Frame, "text" | "wire">): Uint8Array => frame.wire ??= textFrame(frame.text)

/** The bytes of a ping without content. */
export const ping: Uint8Array = Uint8Array.of(PING, 0)
