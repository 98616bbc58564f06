import { assert, describe, it } from "@effect/vitest"
import { TokenNotFound } from "@trigate/domain/errors/GatewayError"
import type { GatewayError } from "@trigate/domain/errors/GatewayError"
import * as UpstreamResponse from "@trigate/domain/operations/Operation"
import { TonAddress } from "@trigate/domain/tokens/TokenData"
import * as Dialect from "@trigate/tokens/TokenChain"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import errors from "./fixtures/ton-errors.json" with { type: "json" }
import documented from "./fixtures/ton-getTokenData-documented-onchain.json" with { type: "json" }
import wallets from "./fixtures/ton-getTokenData-jetton-wallets.json" with { type: "json" }
import jusdt from "./fixtures/ton-getTokenData-jusdt.json" with { type: "json" }
import nft from "./fixtures/ton-getTokenData-nft-item.json" with { type: "json" }
import usdt from "./fixtures/ton-getTokenData-usdt.json" with { type: "json" }

const address = TonAddress.make(usdt.request.query.address)
const raw = TonAddress.make("0:b113a994b5024a16719f69139328eb759596c38a25f59028b146fecdc3621dfe")

const read = (body: unknown, status = 200, asked = address) =>
  Dialect.readDialect(
    asked,
    UpstreamResponse.json("token-chain", status, typeof body === "string" ? body : JSON.stringify(body))
  )

const failure = (body: unknown, status = 200) => Effect.flip(read(body, status))

describe("a master contract", () => {
  it.effect("reads the recorded USDT body of the older servers", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* read(usdt.body), {
        _tag: "Master",
        master: { totalSupply: "1030000002000000", mintable: true, burnable: true, address },
        content: { type: "onchain", data: { uri: "https://tether.to/usdt-ton.json", decimals: "6" } }
      })
    }))

  it.effect("reads the recorded jUSDT body, whose end is missing", () =>
    Effect.gen(function*() {
      const asked = TonAddress.make(jusdt.request.body.params.address)
      assert.deepStrictEqual<unknown>(yield* read(jusdt.body, 200, asked), {
        _tag: "Master",
        master: { totalSupply: "1256732342639", mintable: true, burnable: true, address: asked },
        content: jusdt.body.result.jetton_content
      })
    }))

  it.effect("reads null where there is nothing to say, as pytonlib writes it", () =>
    Effect.gen(function*() {
      const master = { contract_type: "jetton_master", total_supply: 5, mintable: false, admin_address: null }
      for (const content of [null, { type: "offchain", data: null }, { type: "onchain", data: null }]) {
        const result = { ...master, jetton_content: content, jetton_wallet_code: null }
        assert.deepStrictEqual<unknown>(yield* read({ ok: true, result }), {
          _tag: "Master",
          master: { totalSupply: "5", mintable: false, burnable: true, address },
          content
        })
      }
      const others = [
        { contract_type: "jetton_wallet", balance: 1, owner: null, jetton: null, mintless_is_claimed: null },
        { contract_type: "nft_collection", next_item_index: 1, owner_address: null, collection_content: null },
        {
          contract_type: "nft_item",
          init: true,
          index: 1,
          collection_address: null,
          owner_address: null,
          content: null
        }
      ]
      for (const result of others) {
        assert.deepInclude(yield* failure({ ok: true, result }), {
          _tag: "TokenNotFound",
          contractType: result.contract_type
        })
      }
    }))

  it.effect("reads the documented example", () =>
    Effect.gen(function*() {
      const asked = TonAddress.make(documented.request.params.address)
      assert.deepStrictEqual<unknown>(yield* read(documented.body, 200, asked), {
        _tag: "Master",
        master: { totalSupply: "1000000000000000", mintable: false, burnable: true, address: asked },
        content: documented.body.result.jetton_content
      })
    }))

  const digits = "115792089237316195423570985008687907853269984665640564039457584007913129639935"
  for (const [family, supply] of [["number", digits], ["decimal string", `"${digits}"`]] as const) {
    it.effect(`keeps every digit of a supply that is a ${family}`, () =>
      Effect.gen(function*() {
        const reading = yield* read(`{"ok":true,"result":{"total_supply":${supply},"mintable":false}}`)
        assert(reading._tag === "Master")
        assert.strictEqual(reading.master.totalSupply, digits)
      }))
  }

  it.effect("answers one form of the address whatever form was asked for and echoed", () =>
    Effect.gen(function*() {
      const result = { total_supply: "1", mintable: false, address: raw.toUpperCase() }
      const reading = yield* read({ ok: true, result, "@extra": "x" }, 200, raw)
      assert(reading._tag === "Master")
      assert.strictEqual(reading.master.address, address)
    }))

  const malformed = [
    ["another account's answer", {
      ok: true,
      result: { total_supply: 1, mintable: true, address: jusdt.request.body.params.address }
    }],
    ["an address that is none", { ok: true, result: { total_supply: 1, mintable: true, address: "EQ" } }],
    ["a negative supply", { ok: true, result: { total_supply: -1, mintable: true } }],
    ["a supply that lost its digits", `{"ok":true,"result":{"total_supply":1.5e20,"mintable":true}}`],
    ["no supply", { ok: true, result: { mintable: true } }],
    ["an unknown kind of contract", { ok: true, result: { contract_type: "dns" } }],
    ["half a body", `{"ok":true,"result":{"total_supp`],
    ["a list", "[]"]
  ] as const
  for (const [what, body] of malformed) {
    it.effect(`refuses ${what} as the upstream's fault`, () =>
      Effect.gen(function*() {
        const error = yield* failure(body)
        assert(error._tag === "UpstreamMalformed")
        assert.strictEqual(error.upstream, "token-chain")
      }))
  }
})

describe("a contract of another kind", () => {
  const others: ReadonlyArray<readonly [kind: string, result: object]> = [
    ...wallets.items.map((item) => ["jetton_wallet", item.result] as const),
    ["nft_item", nft.body.result],
    ["nft_item", nft.fromStack.body.result],
    ["nft_collection", { contract_type: "nft_collection", next_item_index: "-1", collection_content: null }]
  ]
  others.forEach(([kind, result], index) => {
    it.effect(`is no token: ${kind} (${index})`, () =>
      Effect.gen(function*() {
        const error = yield* failure({ ok: true, result })
        assert.instanceOf(error, TokenNotFound)
        assert.strictEqual(error.contractType, kind)
        assert.strictEqual(error.address, address)
      }))
  })
})

describe("the flat resource", () => {
  const flat = {
    name: "Tether USD",
    symbol: "USD₮",
    decimals: 6,
    totalSupply: "123456789012345678901",
    mintable: true,
    burnable: false,
    address: raw
  }

  it.effect("is taken as documented, the origin of its names left open", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual<unknown>(yield* read(flat), {
        _tag: "Token",
        token: { ...flat, address, metadata: "offchain" }
      })
    }))

  it.effect("is taken whole from a gateway", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual<unknown>(yield* read({ ...flat, metadata: "onchain" }), {
        _tag: "Token",
        token: { ...flat, address, metadata: "onchain" }
      })
    }))

  it.effect("may come with a supply that is a number, and without names", () =>
    Effect.gen(function*() {
      const body = `{"decimals":0,"totalSupply":123456789012345678901,"mintable":false}`
      assert.deepStrictEqual(yield* read(body), {
        _tag: "Token",
        token: {
          decimals: 0,
          totalSupply: "123456789012345678901",
          mintable: false,
          burnable: true,
          address,
          metadata: "unresolved"
        }
      })
    }))

  it.effect("is refused about another account", () =>
    Effect.gen(function*() {
      const error = yield* failure({ ...flat, address: jusdt.request.body.params.address })
      assert.strictEqual(error._tag, "UpstreamMalformed")
    }))
})

describe("failures", () => {
  // one row for each recorded or documented failure, in the file's order; over REST, 404 says nothing of methods, and is not retried
  const tags: ReadonlyArray<GatewayError["_tag"]> = [
    "UpstreamUnavailable",
    "UpstreamUnavailable",
    "UpstreamUnavailable",
    "UpstreamRateLimited",
    "UpstreamRateLimited",
    "UpstreamForbidden",
    "UpstreamForbidden",
    "InvalidRequest",
    "InvalidRequest",
    "TokenNotFound",
    "TokenNotFound",
    "InvalidAddress",
    "InvalidAddress",
    "InvalidAddress",
    "InvalidRequest",
    "UpstreamTimeout",
    "UpstreamUnavailable",
    "UpstreamTimeout",
    "UpstreamUnavailable",
    "UpstreamTimeout"
  ]
  tags.forEach((tag, index) => {
    const row = errors.errors[index]
    it.effect(`reads ${JSON.stringify(row?.body)} as ${tag}`, () =>
      Effect.gen(function*() {
        assert.isDefined(row)
        const error = yield* failure(row.body, row.httpStatus ?? row.body.code ?? 200)
        assert.strictEqual(error._tag, tag)
        assert.include(error.message, row.body.error ?? row.body.result ?? row.body.message ?? "?")
      }))
  })

  it("has a row for each of them", () => {
    assert.strictEqual(tags.length, errors.errors.length)
  })

  it.effect("come back typed from a gateway's problem documents", () =>
    Effect.gen(function*() {
      const sent = new TokenNotFound({ address, contractType: "nft_collection", detail: "a collection" })
      const body = JSON.stringify(yield* Schema.encodeEffect(TokenNotFound)(sent))
      const error = yield* Effect.flip(
        Dialect.readDialect(
          address,
          UpstreamResponse.json("token-chain", 404, body).with({ contentType: "application/problem+json" })
        )
      )
      assert.deepStrictEqual(error, sent)
    }))

  it.effect("keep the seconds to wait", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(
        Dialect.readDialect(address, UpstreamResponse.plain("token-chain", 429, "slow down").with({ retryAfter: 4 }))
      )
      assert(error._tag === "UpstreamRateLimited")
      assert.strictEqual(error.retryAfter, 4)
    }))
})
