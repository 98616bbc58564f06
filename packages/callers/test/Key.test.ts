import { assert, describe, it } from "@effect/vitest"
import * as Key from "@trigate/callers/KeyStore"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { createHash } from "node:crypto"

const hex = (digits: number) => Schema.String.check(Schema.isPattern(new RegExp(`^[0-9a-f]{${digits}}$`, "u")))
const Parts = Schema.Struct({ prefix: hex(10), secret: hex(64) })

const parts = { prefix: "00112233ff", secret: "0123456789abcdef".repeat(4) }
const text = `tg_00112233ff_${"0123456789abcdef".repeat(4)}`

describe("a key's text", () => {
  it.effect.prop("is read as it was written", { parts: Parts }, ({ parts }) =>
    Effect.sync(() => {
      const written = Key.format(parts)
      assert.deepStrictEqual(Key.parse(written), parts)
      assert.match(written, /^[A-Za-z0-9_-]{1,128}$/u)
    }))

  it.effect.prop(
    "has one spelling",
    { parts: Parts, at: Schema.Int, other: Schema.String },
    ({ at, other, parts }) =>
      Effect.sync(() => {
        const written = Key.format(parts)
        const place = Math.abs(at) % (written.length + 1)
        for (const changed of [written.slice(0, place) + other + written.slice(place), written.slice(0, place)]) {
          const found = Key.parse(changed)
          // whatever is read as a key is written as it was
          assert.strictEqual(found === undefined ? changed : Key.format(found), changed)
          if (changed.length !== written.length) assert.isUndefined(found)
        }
      })
  )

  it.each([
    "",
    "tg",
    text.toUpperCase(),
    ` ${text}`,
    `${text}\n`,
    `${text}0`,
    text.slice(0, -1),
    text.replace("tg_", "gt_"),
    text.replace("_0", "-0"),
    text.replace("ff_", "FF_"),
    text.replaceAll("0", "\u0660")
  ])("is not %j", (other) => {
    assert.isUndefined(Key.parse(other))
  })

  it("is hashed whole with SHA-256", () => {
    assert.strictEqual(Key.hashKey(Key.format(parts)), createHash("sha256").update(text).digest("hex"))
  })
})

describe("a new key", () => {
  it.effect("is 256 random bits behind a random prefix, and only its hash is in the open", () =>
    Effect.gen(function*() {
      const bytes = Uint8Array.from({ length: 37 }, (_, index) => index)
      const { hash, key, prefix } = yield* Effect.provideService(
        Key.generate,
        SecureRandom.SecureRandom,
        SecureRandom.make((size) => {
          assert.strictEqual(size, 37)
          return bytes
        })
      )
      const whole = `tg_0001020304_${Buffer.from(bytes.subarray(5)).toString("hex")}`
      assert.strictEqual(prefix, "0001020304")
      assert.strictEqual(Redacted.value(key), whole)
      assert.strictEqual(hash, createHash("sha256").update(whole).digest("hex"))
      assert.strictEqual(JSON.stringify({ key }), `{"key":"<redacted>"}`)
    }))

  it.effect("is another one each time", () =>
    Effect.gen(function*() {
      const all = yield* Effect.replicateEffect(Key.generate, 50)
      assert.strictEqual(new Set(all.map(({ key }) => Redacted.value(key))).size, 50)
      assert.strictEqual(new Set(all.map(({ prefix }) => prefix)).size, 50)
    }).pipe(Effect.provide(SecureRandom.layerWebCrypto)))
})
