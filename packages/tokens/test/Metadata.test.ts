import { assert, describe, it } from "@effect/vitest"
import type { TokenContent } from "@trigate/domain/tokens/TokenData"
import * as TokenChain from "@trigate/tokens/TokenChain"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"

const uri = "https://tether.to/usdt-ton.json"
const onchain = (data: { readonly [attribute: string]: unknown }): TokenContent => ({ type: "onchain", data })
const offchain: TokenContent = { type: "offchain", data: uri }

/** Describes content against the document at `uri`, and counts how often it was asked for. */
const describeWith = (content: TokenContent | null | undefined, document: Option.Option<unknown>) => {
  let asked = 0
  return Effect.map(
    TokenChain.describe(content, {
      fetch: (wanted) =>
        Effect.sync(() => {
          asked += 1
          return wanted === uri ? document : Option.none()
        })
    }),
    (described) => [described, asked] as const
  )
}

const full = { name: "Name", symbol: "SYM", decimals: "6" }
const table: ReadonlyArray<
  readonly [what: string, TokenContent | null | undefined, document: unknown, TokenChain.Described, asked: number]
> = [
  ["whole on-chain content, nothing fetched", onchain({ ...full, uri }), { name: "Other" }, {
    name: "Name",
    symbol: "SYM",
    decimals: 6,
    metadata: "onchain"
  }, 0],
  ["no decimals and no document: 9 by the standard", onchain({ name: "N", symbol: "S" }), undefined, {
    name: "N",
    symbol: "S",
    decimals: 9,
    metadata: "onchain"
  }, 0],
  ["decimals only in the document", onchain({ name: "N", symbol: "S", uri }), { decimals: 2 }, {
    name: "N",
    symbol: "S",
    decimals: 2,
    metadata: "offchain"
  }, 1],
  ["a document that adds nothing", onchain({ name: "N", symbol: "S", uri }), { image: "x" }, {
    name: "N",
    symbol: "S",
    decimals: 9,
    metadata: "onchain"
  }, 1],
  [
    "decimals that are none, which are not silently 9",
    onchain({ name: "N", symbol: "S", decimals: "256" }),
    undefined,
    {
      name: "N",
      symbol: "S",
      decimals: 9,
      metadata: "unresolved"
    },
    0
  ],
  [
    "wrong decimals, and right ones in the document",
    onchain({ name: "N", symbol: "S", decimals: "x", uri }),
    {
      decimals: 4
    },
    { name: "N", symbol: "S", decimals: 4, metadata: "offchain" },
    1
  ],
  ["content without data", { type: "offchain", data: null }, undefined, { decimals: 9, metadata: "unresolved" }, 0],
  [
    "on-chain content without data",
    { type: "onchain", data: null },
    undefined,
    { decimals: 9, metadata: "unresolved" },
    0
  ],
  ["decimals in a document that cannot be had", onchain({ name: "N", symbol: "S", uri }), undefined, {
    name: "N",
    symbol: "S",
    decimals: 9,
    metadata: "unresolved"
  }, 1],
  [
    "semi-chain: the on-chain value wins",
    onchain({ uri, decimals: "6", name: "On" }),
    {
      name: "Off",
      symbol: "OFF",
      decimals: 18
    },
    { name: "On", symbol: "OFF", decimals: 6, metadata: "offchain" },
    1
  ],
  ["off-chain content", offchain, full, { ...full, decimals: 6, metadata: "offchain" }, 1],
  ["a document without a symbol", offchain, { name: "N" }, { name: "N", decimals: 9, metadata: "unresolved" }, 1],
  ["a document that is a list", offchain, [full], { decimals: 9, metadata: "unresolved" }, 1],
  ["empty names", onchain({ name: " ", symbol: "", uri }), full, { ...full, decimals: 6, metadata: "offchain" }, 1],
  [
    "names that are no texts",
    onchain({ name: 1, symbol: null }),
    undefined,
    { decimals: 9, metadata: "unresolved" },
    0
  ],
  ["no content", null, undefined, { decimals: 9, metadata: "unresolved" }, 0],
  ["content left out", undefined, undefined, { decimals: 9, metadata: "unresolved" }, 0]
]

describe("metadata", () => {
  for (const [what, content, document, expected, asked] of table) {
    it.effect(`resolves ${what}`, () =>
      Effect.gen(function*() {
        assert.deepStrictEqual(yield* describeWith(content, Option.fromUndefinedOr(document)), [expected, asked])
      }))
  }

  const decimals: ReadonlyArray<readonly [stated: unknown, read: number]> = [
    ["0", 0],
    ["6", 6],
    ["06", 6],
    ["255", 255],
    [18, 18],
    ["256", 9],
    ["1e1", 9],
    ["-1", 9],
    ["+6", 9],
    ["6.0", 9],
    [" 6", 9],
    ["", 9],
    ["six", 9],
    [6.5, 9],
    [-1, 9],
    [256, 9],
    [null, 9],
    [10n, 9]
  ]
  for (const [stated, read] of decimals) {
    it.effect(`reads decimals ${typeof stated} "${String(stated)}" as ${read}`, () =>
      Effect.gen(function*() {
        const [described] = yield* describeWith(onchain({ name: "N", symbol: "S", decimals: stated }), Option.none())
        assert.strictEqual(described.decimals, read)
      }))
  }
})

describe("MetadataFetch", () => {
  const fetch = (wanted: string) => TokenChain.MetadataFetch.use((service) => service.fetch(wanted))

  it.effect("fetches nothing where nothing may be fetched", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* fetch(uri), Option.none())
    }).pipe(Effect.provide(TokenChain.layerNone)))

  it.effect("answers the documents that it was given", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* fetch(uri), Option.some({ name: "N" }))
      assert.deepStrictEqual(yield* fetch("https://other.example/x.json"), Option.none())
    }).pipe(Effect.provide(TokenChain.layerMemory(new Map([[uri, { name: "N" }]])))))
})
