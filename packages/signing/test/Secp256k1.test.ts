import { assert, describe, it } from "@effect/vitest"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import { sampleRuns } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { bytesToHex, hexToBytes } from "viem/utils"
import { singles } from "./vectors.ts"

const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n

const bytesOf = (value: bigint, length = 32) => hexToBytes(`0x${value.toString(16).padStart(length * 2, "0")}`)

const engineOf = <E>(layer: Layer.Layer<never, E>): Effect.Effect<Secp256k1.Engine, E> =>
  Secp256k1.Secp256k1.pipe(Effect.provide(layer))

/** Where there is no binary, noble stands in, so that the rest of each test still runs, and the reason is printed. */
const native: Effect.Effect<Secp256k1.Engine> = engineOf<Secp256k1.Secp256k1NotLoaded>(Secp256k1.layerNative).pipe(
  Effect.catchTag("Secp256k1NotLoaded", (error) =>
    Effect.sync(() => {
      console.warn(`${error.message}: noble is compared with itself`)
      return Secp256k1.noble
    }))
)

const engines = Effect.all({ native, noble: engineOf<never>(Secp256k1.layerNoble) })

/** Any 256 bits, and the edges of the group where libraries part. */
const Word = Schema.Union([
  Schema.BigInt.check(Schema.isBetweenBigInt({ minimum: 0n, maximum: 2n ** 256n - 1n })),
  Schema.Literals([0n, 1n, order / 2n, order / 2n + 1n, order - 1n, order, order + 1n, 2n ** 256n - 1n])
])

const Recovery01 = Schema.Literals([0, 1])

describe("Secp256k1 layers", () => {
  it.effect("say which library they are; nothing provided is noble", () =>
    Effect.gen(function*() {
      const { native, noble } = yield* engines
      assert.strictEqual(noble.engine, "noble")
      assert.strictEqual((yield* engineOf(Secp256k1.layer)).engine, native.engine)
      assert.strictEqual((yield* Secp256k1.Secp256k1).engine, "noble")
      assert.strictEqual(Secp256k1.noble, noble)
    }))
})

describe("both engines", () => {
  it.effect.prop(
    "derive, sign and recover the same",
    { key: Word, digest: Word },
    ({ digest, key }) =>
      Effect.gen(function*() {
        const { native, noble } = yield* engines
        const [hash, secret] = [bytesOf(digest), bytesOf(key)]
        const publicKey = Option.map(noble.publicKey(secret), bytesToHex)
        assert.deepStrictEqual(Option.map(native.publicKey(secret), bytesToHex), publicKey)
        const mine = Option.getOrUndefined(native.sign(hash, secret))
        const theirs = Option.getOrUndefined(noble.sign(hash, secret))
        assert.strictEqual(mine === undefined, key === 0n || key >= order)
        assert.deepStrictEqual(
          mine && [bytesToHex(mine.bytes), mine.recovery],
          theirs && [
            bytesToHex(theirs.bytes),
            theirs.recovery
          ]
        )
        if (mine !== undefined) {
          assert.isTrue(BigInt(bytesToHex(mine.bytes.slice(32))) <= order / 2n)
          for (const engine of [native, noble]) {
            assert.deepStrictEqual(Option.map(engine.recover(hash, mine), bytesToHex), publicKey)
          }
        }
      }),
    { arbitrary: { runs: sampleRuns(150) } }
  )

  it.effect.prop(
    "recover the same from any r and s, high, zero and beyond the group included",
    { digest: Word, r: Word, s: Word, recovery: Recovery01 },
    ({ digest, r, recovery, s }) =>
      Effect.gen(function*() {
        const { native, noble } = yield* engines
        const bytes = new Uint8Array([...bytesOf(r), ...bytesOf(s)])
        const found = [native, noble].map((engine) => engine.recover(bytesOf(digest), { bytes, recovery }))
        assert.deepStrictEqual(...pair(found.map(Option.map(bytesToHex))))
      }),
    { arbitrary: { runs: sampleRuns(150) } }
  )

  it.effect("give nothing for bytes of another length", () =>
    Effect.gen(function*() {
      const { native, noble } = yield* engines
      const [key, digest] = [bytesOf(7n), bytesOf(9n)]
      const signature = Option.getOrThrow(noble.sign(digest, key))
      for (const engine of [native, noble]) {
        for (const length of [0, 31, 33, 64]) {
          const odd = bytesOf(7n, length || 1).slice(0, length)
          assert.isTrue(Option.isNone(engine.publicKey(odd)), `${engine.engine} ${length}`)
          assert.isTrue(Option.isNone(engine.sign(digest, odd)), `${engine.engine} ${length}`)
          assert.isTrue(Option.isNone(engine.sign(odd, key)), `${engine.engine} ${length}`)
          assert.isTrue(Option.isNone(engine.recover(odd, signature)), `${engine.engine} ${length}`)
        }
        assert.isTrue(Option.isNone(engine.recover(digest, { ...signature, bytes: signature.bytes.slice(1) })))
      }
    }))

  const Text = Schema.Union([
    Schema.Literals([
      "",
      "0x",
      "0x0",
      `0x${"0".repeat(64)}`,
      `0x${"f".repeat(64)}`,
      `0x${"1".repeat(65)}`,
      "zz",
      "0x5"
    ]),
    Schema.BigInt.check(Schema.isBetweenBigInt({ minimum: 1n, maximum: 2n ** 256n - 1n }))
  ])

  const spell = (text: string | bigint) => typeof text === "string" ? text : `0x${text.toString(16)}`

  it.effect.prop(
    "answer the same to any spelling of a signature",
    { r: Text, s: Text, v: Schema.Literals([0, 1, 2, 26, 27, 28, 29, -1]) },
    ({ r, s, v }) =>
      Effect.gen(function*() {
        const { native, noble } = yield* engines
        const signature = { r: spell(r), s: spell(s), v }
        const digest = singles[0]?.digest ?? ""
        const found = [native, noble].map((engine) =>
          Result.match(Secp256k1.recoverResult(digest, signature, engine), {
            onFailure: ({ reason }): string => reason,
            onSuccess: (address) => address
          })
        )
        assert.deepStrictEqual(...pair(found))
      }),
    { arbitrary: { runs: sampleRuns(150) } }
  )

  it.effect("recover the signer of every recorded action", () =>
    Effect.gen(function*() {
      for (const { digest, signature, signer } of singles) {
        for (const layer of [Secp256k1.layer, Secp256k1.layerNoble]) {
          assert.strictEqual(yield* Secp256k1.recover(digest, signature).pipe(Effect.provide(layer)), signer)
        }
      }
    }))
})

function pair<A>([first, second]: ReadonlyArray<A>): [A, A] {
  assert(first !== undefined && second !== undefined)
  return [first, second]
}

describe("a recoverer", () => {
  it.effect.prop(
    "gives the signers of a digest by either v",
    { digest: Word, key: Word, signed: Word, v: Schema.Literals([27, 28]) },
    ({ digest, key, signed, v }) =>
      Effect.gen(function*() {
        const both = yield* engines
        const made = both.noble.sign(bytesOf(signed), bytesOf(key))
        if (Option.isNone(made) || digest % order === 0n) return
        const hex = bytesToHex(made.value.bytes)
        const halves = { r: hex.slice(0, 66), s: `0x${hex.slice(66)}` }
        for (const engine of [both.native, both.noble]) {
          const signerBy = (v: number) =>
            Result.getOrUndefined(Secp256k1.recoverResult(bytesToHex(bytesOf(digest)), { ...halves, v }, engine))
          const recoverer = Secp256k1.recoverer({ ...halves, v }, engine)
          assert.strictEqual(recoverer?.signer(bytesOf(digest)), signerBy(v), engine.engine)
          assert.deepStrictEqual(
            recoverer?.signers(bytesOf(digest)),
            [signerBy(v), signerBy(55 - v)],
            engine.engine
          )
        }
      }),
    { arbitrary: { runs: sampleRuns(40) } }
  )
})
