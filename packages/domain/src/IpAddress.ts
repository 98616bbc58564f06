/** IP addresses and networks of them as values: read, compared, and named as callers are told apart by them. */

/** An address; IPv4 that is written as IPv6 (`::ffff:192.0.2.1`) is IPv4. */
export interface IpAddress {
  readonly family: 4 | 6
  readonly value: bigint
}

/** Addresses with the same leading bits. */
export interface IpNetwork extends IpAddress {
  readonly prefixLength: number
}

const bitsOf = { 4: 32, 6: 128 } as const

const octet = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
const dotted = new RegExp(`^${octet}(?:\\.${octet}){3}$`, "u")

const joined = (parts: ReadonlyArray<number>, bits: bigint): bigint =>
  parts.reduce((value, part) => (value << bits) | BigInt(part), 0n)

const readV6 = (text: string): IpAddress | undefined => {
  // the URL standard writes every spelling in one way, without embedded IPv4
  const host = /^[0-9a-fA-F:.]+$/u.test(text) ? URL.parse(`http://[${text}]/`)?.hostname.slice(1, -1) : undefined
  if (host === undefined) return undefined
  const [head = [], tail = []] = host.split("::").map((part) => part === "" ? [] : part.split(":"))
  const zeros = Array.from({ length: 8 - head.length - tail.length }, () => "0")
  const value = joined([...head, ...zeros, ...tail].map((group) => Number.parseInt(group, 16)), 16n)
  return value >> 32n === 0xffffn ? { family: 4, value: value & 0xffffffffn } : { family: 6, value }
}

/** Reads an address; nothing where the text is none. A zone (`fe80::1%eth0`) does not count. */
export const parse = (text: string): IpAddress | undefined =>
  dotted.test(text)
    ? { family: 4, value: joined(text.split(".").map(Number), 8n) }
    : readV6(text.replace(/%.*$/u, ""))

/** Reads a network like `10.0.0.0/8`; an address alone is a network of one. Nothing where the text is neither. */
export const parseNetwork = (text: string): IpNetwork | undefined => {
  const [, before = "", length] = /^([^/]*)(?:\/([0-9]{1,3}))?$/u.exec(text) ?? []
  const address = parse(before)
  if (address === undefined) return undefined
  const bits = bitsOf[address.family]
  // the length of a mapped network counts the 96 bits before the IPv4 address
  const prefixLength = length === undefined
    ? bits
    : Number(length) - (address.family === 4 && before.includes(":") ? 96 : 0)
  return prefixLength >= 0 && prefixLength <= bits ? { ...address, prefixLength } : undefined
}

/** Whether an address is of a network. */
export const isIn = ({ family, value }: IpAddress, network: IpNetwork): boolean => {
  const rest = BigInt(bitsOf[network.family] - network.prefixLength)
  return family === network.family && value >> rest === network.value >> rest
}

/** Whether an address is of the machine itself. */
export const isLoopback = ({ family, value }: IpAddress): boolean => family === 4 ? value >> 24n === 127n : value === 1n

const v4Text = (value: bigint): string => [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 0xffn).join(".")

/**
 * What tells one subscriber from another: an IPv4 address, or the first 64 bits of an IPv6 address.
 *
 * A subscriber has at least a /64 and changes addresses inside it at will (RFC 6177).
 */
export const subscriberOf = ({ family, value }: IpAddress): string =>
  family === 4
    ? v4Text(value)
    : `${[112n, 96n, 80n, 64n].map((shift) => ((value >> shift) & 0xffffn).toString(16)).join(":")}::/64`
