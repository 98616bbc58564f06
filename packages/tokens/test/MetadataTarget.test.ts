import { assert, describe, it } from "@effect/vitest"
import * as MetadataFetchUndici from "@trigate/tokens/metadata/MetadataFetchUndici"
import { isPublic } from "@trigate/tokens/metadata/MetadataFetchUndici"
import * as Result from "effect/Result"

const cid = "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi"
const gateway = "https://gateway.example/ipfs/"

describe("urlOf", () => {
  const accepted = [
    ["https://tether.to/usdt-ton.json", "https://tether.to/usdt-ton.json"],
    ["https://tether.to:443/usdt-ton.json", "https://tether.to/usdt-ton.json"],
    ["HTTPS://Tether.TO/a b?c=d#e", "https://tether.to/a%20b?c=d#e"],
    [`ipfs://${cid}`, `${gateway}${cid}`],
    [`ipfs://${cid}/meta/1.json`, `${gateway}${cid}/meta/1.json`],
    [`ipfs://ipfs/${cid}/1.json`, `${gateway}${cid}/1.json`]
  ] as const
  for (const [uri, url] of accepted) {
    it(`takes ${uri}`, () => {
      assert.strictEqual(Result.getOrThrow(MetadataFetchUndici.metadataUrl(uri, gateway)).href, url)
    })
  }

  const refused = [
    ["http://tether.to/usdt-ton.json", "not https"],
    ["ftp://tether.to/x", "not https"],
    ["file:///etc/passwd", "not https"],
    ["data:application/json,{}", "not https"],
    ["tonstorage://ABC", "not https"],
    ["//tether.to/x", "not a URL"],
    ["usdt.json", "not a URL"],
    ["", "not a URL"],
    ["https://", "not a URL"],
    ["https://user@tether.to/x", "user info"],
    ["https://user:pass@tether.to/x", "user info"],
    ["https://tether.to@169.254.169.254/", "user info"],
    ["https://tether.to:8443/x", "a port other than 443"],
    ["https://tether.to:22/x", "a port other than 443"],
    ["https://169.254.169.254/latest/meta-data", "an address"],
    ["https://127.0.0.1/", "an address"],
    ["https://2130706433/", "an address"],
    ["https://0x7f000001/", "an address"],
    ["https://0x7f.1/", "an address"],
    ["https://0177.0.0.1/", "an address"],
    ["https://127.1/", "an address"],
    ["https://1.1.1.1/", "an address"],
    ["https://１２７.0.0.1/", "an address"],
    ["https://[::1]/", "an address"],
    ["https://[::ffff:10.0.0.1]/", "an address"],
    ["https://[2606:4700:4700::1111]/", "an address"],
    ["https://localhost/", "a local name"],
    ["https://metadata/computeMetadata/v1/", "a local name"],
    [`https://tether.to/${"x".repeat(2048)}`, "too long"],
    [`ipfs://${cid}/../../admin`, "leaves"],
    [`ipfs://${cid}/%2e%2e/%2E%2E/admin`, "leaves"],
    [`ipfs://${cid}/..\\..\\admin`, "leaves"],
    [`ipfs://${cid}/..`, "leaves"],
    ["ipfs://short/x", "not https"],
    [`ipfs://${cid}@tether.to/x`, "not https"]
  ] as const
  for (const [uri, reason] of refused) {
    it(`refuses ${uri.slice(0, 80)}`, () => {
      assert.include(Result.getOrThrow(Result.flip(MetadataFetchUndici.metadataUrl(uri, gateway))).reason, reason)
    })
  }

  it("has no IPFS documents without a gateway", () => {
    assert.include(
      Result.getOrThrow(Result.flip(MetadataFetchUndici.metadataUrl(`ipfs://${cid}`, undefined))).reason,
      "no IPFS gateway"
    )
  })
})

describe("isPublic", () => {
  const table = {
    "4": {
      true: [
        "1.1.1.1",
        "8.8.8.8",
        "100.63.255.255",
        "100.128.0.0",
        "172.15.0.1",
        "172.32.0.1",
        "192.167.0.1",
        "223.0.0.1"
      ],
      false: [
        "0.0.0.0",
        "10.0.0.1",
        "100.64.0.1",
        "100.100.100.200",
        "127.0.0.1",
        "127.255.255.255",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "1.1.1",
        "::1",
        ""
      ]
    },
    "6": {
      true: ["2606:4700:4700::1111", "2a00:1450:4001:80b::200e", "2001:4860:4860::8888"],
      false: [
        "::",
        "::1",
        "::ffff:10.0.0.1",
        "::ffff:8.8.8.8",
        "::ffff:7f00:1",
        "::127.0.0.1",
        "64:ff9b::a9fe:a9fe",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "3fff::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
        "1.1.1.1",
        ""
      ]
    }
  } as const
  for (const family of [4, 6] as const) {
    for (const expected of [true, false]) {
      for (const address of table[family][`${expected}`]) {
        it(`is ${expected} for "${address}" as IPv${family}`, () => {
          assert.strictEqual(isPublic({ address, family }), expected)
        })
      }
    }
  }
})
