import { assert, describe, it } from "@effect/vitest"
import * as IpAddress from "@trigate/domain/IpAddress"

const read = (text: string): IpAddress.IpAddress => {
  const address = IpAddress.parse(text)
  assert(address !== undefined, text)
  return address
}

const network = (text: string): IpAddress.IpNetwork => {
  const found = IpAddress.parseNetwork(text)
  assert(found !== undefined, text)
  return found
}

describe("an IP address", () => {
  it.each([
    ["192.0.2.1", 4, 0xc0000201n],
    ["0.0.0.0", 4, 0n],
    ["255.255.255.255", 4, 0xffffffffn],
    ["::", 6, 0n],
    ["::1", 6, 1n],
    ["1::", 6, 1n << 112n],
    ["2001:DB8::8a2e:370:7334", 6, 0x20010db8000000000000_8a2e_0370_7334n],
    ["fe80::1%eth0", 6, (0xfe80n << 112n) + 1n],
    ["::ffff:192.0.2.1", 4, 0xc0000201n],
    ["::ffff:c000:201", 4, 0xc0000201n],
    ["64:ff9b::192.0.2.33", 6, (0x64ff9bn << 96n) + 0xc0000221n]
  ])("is read: %s", (text, family, value) => {
    assert.deepStrictEqual(read(text), { family, value } as IpAddress.IpAddress)
  })

  it.each([
    "",
    "1.2.3",
    "1.2.3.4.5",
    "256.1.1.1",
    "01.2.3.4",
    "1.2.3.4 ",
    "0x1.2.3.4",
    ":",
    ":::",
    "1::2::3",
    "1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7:8:9",
    "12345::",
    "g::1",
    "[::1]",
    "::1]/x[",
    "unknown",
    "_hidden",
    "%eth0"
  ])("is not %j", (text) => {
    assert.isUndefined(IpAddress.parse(text))
  })

  it("is named by its subscriber: an IPv4 address, or 64 bits of an IPv6 address", () => {
    assert.strictEqual(IpAddress.subscriberOf(read("192.0.2.1")), "192.0.2.1")
    assert.strictEqual(IpAddress.subscriberOf(read("::ffff:192.0.2.1")), "192.0.2.1")
    assert.strictEqual(IpAddress.subscriberOf(read("2001:db8:1:2:3:4:5:6")), "2001:db8:1:2::/64")
    assert.strictEqual(IpAddress.subscriberOf(read("2001:db8:1:2::")), "2001:db8:1:2::/64")
    assert.strictEqual(IpAddress.subscriberOf(read("::1")), "0:0:0:0::/64")
  })

  it.each(["127.0.0.1", "127.255.0.9", "::1", "::ffff:127.0.0.1"])("is the machine's own: %s", (text) => {
    assert.isTrue(IpAddress.isLoopback(read(text)))
  })

  it.each(["0.0.0.0", "::", "126.255.255.255", "128.0.0.0", "192.168.0.1", "::2"])(
    "is not the machine's own: %s",
    (text) => {
      assert.isFalse(IpAddress.isLoopback(read(text)))
    }
  )
})

describe("a network", () => {
  it.each([
    ["10.0.0.0/8", "10.255.1.2", "11.0.0.0"],
    ["10.1.2.3", "10.1.2.3", "10.1.2.4"],
    ["192.0.2.128/25", "192.0.2.200", "192.0.2.127"],
    ["0.0.0.0/0", "203.0.113.9", "::1"],
    ["fd00::/8", "fdff::1", "fc00::1"],
    ["::/0", "2001:db8::1", "192.0.2.1"],
    ["::ffff:10.0.0.0/104", "10.9.9.9", "11.0.0.0"]
  ])("has its addresses and no others: %s", (text, inside, outside) => {
    assert.isTrue(IpAddress.isIn(read(inside), network(text)))
    assert.isFalse(IpAddress.isIn(read(outside), network(text)))
  })

  it.each(["10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8/8", "::/129", "::ffff:10.0.0.0/95", "host/8", ""])(
    "is not %j",
    (text) => {
      assert.isUndefined(IpAddress.parseNetwork(text))
    }
  )
})
