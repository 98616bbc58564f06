import { assert, describe, it } from "@effect/vitest"
import { Address } from "@ton/core"
import * as TonAddress from "@trigate/domain/tokens/TokenData"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import pairs from "./fixtures/ton-address-pairs.json" with { type: "json" }

const account = ({ hash, workchain }: TonAddress.Account): TonAddress.Account => ({ workchain, hash })

const reasonOf = (text: string): string =>
  Result.match(TonAddress.parse(text), {
    onFailure: (error) => error.reason,
    onSuccess: () => assert.fail(`${text} was accepted`)
  })

const parsed = (text: string): TonAddress.Parsed => Result.getOrThrowWith(TonAddress.parse(text), (error) => error)

const Account = Schema.Struct({
  workchain: Schema.Literals([0, -1]),
  hash: Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/u))
})
const Form = Schema.Struct({ bounceable: Schema.Boolean, urlSafe: Schema.Boolean, testOnly: Schema.Boolean })
const base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_"

const usdt = "EQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_sDs"

describe("TonAddress", () => {
  describe("the forms that three other libraries agree on", () => {
    for (const pair of pairs.packUnpack) {
      it(`reads and writes ${pair.label} in all its forms`, () => {
        const expected = { workchain: pair.workchain, hash: pair.hash_hex }
        assert.deepStrictEqual({ ...account(parsed(pair.raw_lower)) }, expected)
        assert.deepStrictEqual({ ...account(parsed(pair.raw_upper)) }, expected)
        assert.strictEqual(TonAddress.formatRaw(parsed(pair.given)), pair.raw_lower)
        const friendly = [
          [pair.bounceable, true, false],
          [pair.non_bounceable, false, false],
          [pair.test_only_bounceable, true, true],
          [pair.test_only_non_bounceable, false, true]
        ] as const
        for (const [texts, bounceable, testOnly] of friendly) {
          for (const [text, urlSafe] of [[texts.b64, false], [texts.b64url, true]] as const) {
            const form = bounceable ? "bounceable" : "non-bounceable"
            assert.deepStrictEqual({ ...parsed(text) }, { ...parsed(pair.raw_lower), form, testOnly })
            assert.strictEqual(TonAddress.format(parsed(pair.raw_upper), { bounceable, urlSafe, testOnly }), text)
          }
        }
        assert.strictEqual(TonAddress.canonical(parsed(pair.given)), pair.bounceable.b64url)
      })
    }
  })

  describe("refusals", () => {
    const hash = "b113a994b5024a16719f69139328eb759596c38a25f59028b146fecdc3621dfe"
    // [what, address, part of the reason]; checksums of the last three are right, so only the named fault is left
    const table = [
      ["nothing", "", "not 0;"],
      ["a character less", usdt.slice(1), "not 47;"],
      ["a character more", `${usdt}A`, "not 49;"],
      ["padding", `${usdt.slice(0, 47)}=`, "outside base64"],
      ["a + that a query turned into a space", "EQDXZ2c5LnA12Eum DlguTmfYkMOvNeFCh4rBD0tgmwjcFI-", "%2B"],
      ["both alphabets", "EQDXZ2c5LnA12Eum+DlguTmfYkMOvNeFCh4rBD0tgmwjcFI-", "mixed alphabets"],
      ["another letter case", usdt.toLowerCase(), "checksum"],
      ["bare hex", hash, "not 64;"],
      ["an EVM address", "0xdac17f958d2ee523a2206206994597c13d831ec7", "not 42;"],
      ["raw with 63 digits", `0:${hash.slice(1)}`, "raw address"],
      ["raw with a second colon", `0:${hash}:`, "raw address"],
      ["raw that is not hex", `0:${hash.slice(1)}g`, "raw address"],
      ["raw in workchain 1", `1:${hash}`, "workchain"],
      ["raw in workchain 00", `00:${hash}`, "workchain"],
      ["raw without a workchain", `:${hash}`, "workchain"],
      ["an unknown tag", "AACxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_g-w", "tag"],
      ["workchain -2", "Ef6xE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_rJ4", "workchain"],
      ["workchain 1", "EQGxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_k0w", "workchain"]
    ] as const
    for (const [what, address, reason] of table) {
      it(`refuses ${what}`, () => {
        assert.include(reasonOf(address), reason)
      })
    }

    it("quotes the address, and no more than an excerpt of a long one", () => {
      const error = Result.getOrThrow(Result.flip(TonAddress.parse("x".repeat(10_000))))
      assert.strictEqual(error._tag, "InvalidAddress")
      assert.strictEqual(error.address, `${"x".repeat(128)}…`)
      assert.strictEqual(Result.getOrThrow(Result.flip(TonAddress.parse("EQ"))).address, "EQ")
    })
  })

  it.effect.prop(
    "gives back any account from any form, as another library reads it",
    { account: Account, form: Form },
    ({ account: given, form }) =>
      Effect.sync(() => {
        const text = TonAddress.format(given, form)
        assert.deepStrictEqual({ ...parsed(text) }, {
          ...given,
          form: form.bounceable ? "bounceable" : "non-bounceable",
          testOnly: form.testOnly
        })
        const theirs = Address.parseFriendly(text)
        assert.strictEqual(theirs.address.toRawString(), TonAddress.formatRaw(given))
        assert.strictEqual(theirs.isBounceable, form.bounceable)
        assert.strictEqual(theirs.isTestOnly, form.testOnly)
        assert.strictEqual(theirs.address.toString(form), text)
      })
  )

  it.effect.prop(
    "never reads a friendly address with one character changed as another account",
    { account: Account, form: Form, at: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 47 })) },
    ({ account: given, at, form }) =>
      Effect.sync(() => {
        const text = TonAddress.format(given, form)
        for (const character of base64) {
          const read = TonAddress.parse(`${text.slice(0, at)}${character}${text.slice(at + 1)}`)
          if (Result.isSuccess(read)) assert.deepStrictEqual({ ...read.success }, { ...parsed(text) })
        }
      })
  )

  it.effect.prop(
    "reads a raw address with one character changed as another library does",
    { account: Account, character: Schema.Literals(Array.from("0123456789abcdefABCDEF:-")), at: Schema.Int },
    ({ account: given, at, character }) =>
      Effect.sync(() => {
        const text = TonAddress.formatRaw(given)
        const position = Math.abs(at) % text.length
        const changed = `${text.slice(0, position)}${character}${text.slice(position + 1)}`
        const ours = TonAddress.parse(changed)
        if (Result.isSuccess(ours)) {
          assert.strictEqual(Address.parse(changed).toRawString(), TonAddress.formatRaw(ours.success))
        }
      })
  )

  it.effect.prop(
    "is generated and kept as it was written",
    [TonAddress.TonAddress],
    ([address]) =>
      Effect.gen(function*() {
        assert.strictEqual(yield* Schema.decodeUnknownEffect(TonAddress.TonAddress)(address), address)
        assert.strictEqual(Address.parse(address).toRawString(), TonAddress.formatRaw(parsed(address)))
      })
  )

  it.effect("tells the reason in the schema's own words", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(Schema.decodeUnknownEffect(TonAddress.TonAddress)("EQ"))
      assert.include(error.message, "not 2;")
    }))

  it("documents its forms as a pattern that takes every form", () => {
    const document = Schema.toJsonSchemaDocument(TonAddress.TonAddress)
    const found = /"pattern":"([^"]*)"/u.exec(JSON.stringify(document))?.[1]
    assert.isDefined(found)
    const pattern = new RegExp(found, "u")
    for (const pair of pairs.packUnpack) {
      for (const text of [pair.raw_lower, pair.raw_upper, pair.bounceable.b64, pair.non_bounceable.b64url]) {
        assert.match(text, pattern)
      }
    }
  })
})
