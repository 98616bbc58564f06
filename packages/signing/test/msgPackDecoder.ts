/** A second reading of MessagePack, so that the encoder is not its own judge. Integers are read as bigints. */

export const decode = (bytes: Uint8Array): unknown => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let offset = 0

  const advance = (size: number): number => {
    const at = offset
    offset += size
    if (offset > bytes.length) {
      throw new Error("MessagePack ends early")
    }
    return at
  }
  const uint8 = () => view.getUint8(advance(1))
  const uint16 = () => view.getUint16(advance(2))
  const uint32 = () => view.getUint32(advance(4))
  const text = (size: number) => {
    const at = advance(size)
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes.subarray(at, at + size))
  }
  const array = (size: number): Array<unknown> => Array.from({ length: size }, () => value())
  const map = (size: number): unknown =>
    Object.fromEntries(Array.from({ length: size }, () => {
      const key = value()
      if (typeof key !== "string") {
        throw new Error("A key is not a string")
      }
      return [key, value()]
    }))

  const value = (): unknown => {
    const head = uint8()
    if (head <= 0x7f) return BigInt(head)
    if (head <= 0x8f) return map(head & 0x0f)
    if (head <= 0x9f) return array(head & 0x0f)
    if (head <= 0xbf) return text(head & 0x1f)
    if (head >= 0xe0) return BigInt(head - 0x100)
    switch (head) {
      case 0xc0:
        return null
      case 0xc2:
        return false
      case 0xc3:
        return true
      case 0xcb:
        return view.getFloat64(advance(8))
      case 0xcc:
        return BigInt(uint8())
      case 0xcd:
        return BigInt(uint16())
      case 0xce:
        return BigInt(uint32())
      case 0xcf:
        return view.getBigUint64(advance(8))
      case 0xd0:
        return BigInt(view.getInt8(advance(1)))
      case 0xd1:
        return BigInt(view.getInt16(advance(2)))
      case 0xd2:
        return BigInt(view.getInt32(advance(4)))
      case 0xd3:
        return view.getBigInt64(advance(8))
      case 0xd9:
        return text(uint8())
      case 0xda:
        return text(uint16())
      case 0xdb:
        return text(uint32())
      case 0xdc:
        return array(uint16())
      case 0xdd:
        return array(uint32())
      case 0xde:
        return map(uint16())
      case 0xdf:
        return map(uint32())
      default:
        throw new Error(`Unexpected head 0x${head.toString(16)}`)
    }
  }

  const decoded = value()
  if (offset !== bytes.length) {
    throw new Error("Bytes are left over")
  }
  return decoded
}
