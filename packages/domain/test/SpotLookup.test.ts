import { assert, describe, it } from "@effect/vitest"
import * as SpotLookup from "@trigate/domain/info/Market"
import { SpotMeta } from "@trigate/domain/info/Market"
import type { SpotToken } from "@trigate/domain/info/Market"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import recorded from "./fixtures/spotMeta-testnet-full.json" with { type: "json" }

const meta = Schema.decodeUnknownSync(SpotMeta)(recorded)
const lookup = SpotLookup.make(meta)

const token = (index: number, name: string, tokenId: string): SpotToken => ({
  name,
  szDecimals: 2,
  weiDecimals: 8,
  index,
  tokenId,
  isCanonical: false,
  evmContract: null,
  fullName: null
})

describe("SpotLookup", () => {
  it("finds a pair by its index, which is not its position", () => {
    assert.strictEqual(meta.universe[1035]?.index, 1204)
    const pair = Option.getOrThrow(lookup.pair(1035))
    assert.strictEqual(pair.name, "@1035")
    const { base, quote } = lookup.tokensOf(pair)
    assert.strictEqual(Option.getOrThrow(base).name, "HYPE")
    assert.strictEqual(Option.getOrThrow(quote).name, "USDC")
  })

  it("holes, negative and huge indexes are none", () => {
    for (const index of [4, 9, 1389, -1, 0.5, Number.MAX_SAFE_INTEGER]) {
      assert.isTrue(Option.isNone(lookup.pair(index)), `pair ${index}`)
    }
    assert.isTrue(Option.isNone(lookup.token(100_000)))
  })

  it("finds a token by index, by name and by tokenId in any letter case", () => {
    const hype = Option.getOrThrow(lookup.token(1105))
    assert.strictEqual(hype.tokenId, "0x7317beb7cceed72ef0b346074cc8e7ab")
    assert.deepStrictEqual(lookup.tokensByName("HYPE"), [hype])
    assert.deepStrictEqual(lookup.tokenById("0x7317BEB7CCEED72EF0B346074CC8E7AB"), Option.some(hype))
    assert.isTrue(Option.isNone(lookup.tokenById("0x00")))
  })

  it("names are taken as they are, blanks included", () => {
    assert.strictEqual(lookup.tokensByName("JPL ").length, 1)
    assert.strictEqual(lookup.tokensByName("JPL").length, 0)
    assert.strictEqual(lookup.pairsByName("PURR/USDC")[0]?.index, 0)
    assert.deepStrictEqual(lookup.pairsByName("__proto__"), [])
  })

  it("finds every pair of a token", () => {
    assert.strictEqual(lookup.pairsWith(0).length, 1158)
    assert.isTrue(lookup.pairsWith(1105).some(({ index }) => index === 1035))
    assert.deepStrictEqual(lookup.pairsWith(999_999), [])
  })

  it("a pair that names an unlisted token keeps the other one", () => {
    const usdc = token(0, "USDC", "0x6d1e7cde53ba9467b783cb7c530ce054")
    const pair = { name: "@367", tokens: [479, 0], index: 367, isCanonical: false } as const
    const { base, quote } = SpotLookup.make({ universe: [pair], tokens: [usdc] }).tokensOf(pair)
    assert.isTrue(Option.isNone(base))
    assert.deepStrictEqual(quote, Option.some(usdc))
  })

  it("a name that two tokens have gives both; of a doubled index the first counts", () => {
    const one = token(7, "SAME", "0x00000000000000000000000000000001")
    const other = token(7, "SAME", "0x00000000000000000000000000000002")
    const doubled = SpotLookup.make({ universe: [], tokens: [one, other] })
    assert.deepStrictEqual(doubled.tokensByName("SAME"), [one, other])
    assert.deepStrictEqual(doubled.token(7), Option.some(one))
    assert.deepStrictEqual(doubled.tokenById(other.tokenId), Option.some(other))
  })

  it("a pair of a token with itself is listed once", () => {
    const pair = { name: "@1", tokens: [3, 3], index: 1, isCanonical: false } as const
    assert.deepStrictEqual(SpotLookup.make({ universe: [pair], tokens: [] }).pairsWith(3), [pair])
  })
})
