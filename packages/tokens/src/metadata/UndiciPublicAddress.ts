/** Determines whether an IP address is public (IANA special-purpose registries, RFC 6890 and its updates). */
import { BlockList, isIPv4, isIPv6 } from "node:net"
import type { HostAddress } from "./MetadataGuard.ts"

const special = new BlockList()
for (
  const [network, prefix] of [
    ["0.0.0.0", 8],
    ["10.0.0.0", 8],
    ["100.64.0.0", 10],
    ["127.0.0.0", 8],
    ["169.254.0.0", 16],
    ["172.16.0.0", 12],
    ["192.0.0.0", 24],
    ["192.0.2.0", 24],
    ["192.88.99.0", 24],
    ["192.168.0.0", 16],
    ["198.18.0.0", 15],
    ["198.51.100.0", 24],
    ["203.0.113.0", 24],
    ["224.0.0.0", 3]
  ] as const
) special.addSubnet(network, prefix, "ipv4")
// `2001::/23` includes Teredo, ORCHID and benchmarks; `2001:db8::` and `3fff::` are for documentation; `2002::` is
// 6to4, which encodes any IPv4 address
for (const [network, prefix] of [["2001::", 23], ["2001:db8::", 32], ["2002::", 16], ["3fff::", 20]] as const) {
  special.addSubnet(network, prefix, "ipv6")
}

// all other IPv6 ranges are loopback, link-local, unique local, multicast, mapped or translated IPv4, or unassigned
const globalUnicast = new BlockList()
globalUnicast.addSubnet("2000::", 3, "ipv6")

/** Returns whether an address is public; `false` if it is malformed. */
export const isPublic = ({ address, family }: HostAddress): boolean =>
  family === 4
    ? isIPv4(address) && !special.check(address, "ipv4")
    : isIPv6(address) && globalUnicast.check(address, "ipv6") && !special.check(address, "ipv6")
