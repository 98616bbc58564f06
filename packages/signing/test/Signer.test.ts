import { assert, describe, it } from "@effect/vitest"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as Signer from "@trigate/signing/Signer"
import * as Signable from "@trigate/signing/unstable/actions/ActionHash"
import { sampleRuns } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { createWalletClient, custom, type Hex, parseSignature } from "viem"
import { privateKeyToAccount, sign } from "viem/accounts"
import { mainnet } from "viem/chains"

const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n

const key = "0x8f2a55949038a9610f50fb23b5883af3b4ecb3c3bb792cbcefbd1542c692be63"

const account = privateKeyToAccount(key)

const address = "0xfe3b557e8fb62b89f4916b721be55ceb828dbd73"

const otherKey = `0x${"11".repeat(32)}` as const

const struct = Signable.structType("HyperliquidTransaction:Test", [
  { name: "text", type: "string" },
  { name: "amount", type: "uint64" }
])

const domain = Signable.domain("Test", 1)

const signableOf = (text: string, amount: bigint): Signable.Signable => ({
  domain,
  struct,
  members: [{ name: "text", type: "string", value: text }, { name: "amount", type: "uint64", value: amount }]
})

const signable = signableOf("hello", 2n ** 64n - 1n)

const digest = Signable.digest(signable)

/** What viem makes of the same digest. */
const expected = Effect.map(
  Effect.promise(() => sign({ hash: digest, privateKey: key })),
  ({ r, s, v }) => ({ r, s, v: v === 27n ? 27 : 28 })
)

const signWith = <E, R>(signer: Effect.Effect<Signer.Signer["Service"], E, R>) =>
  Effect.flatMap(signer, (signer) => signer.sign(signable))

const external = (answer: Signer.GivenSignature) =>
  Signer.makeExternal({ address, signDigest: () => Effect.succeed(answer) })

describe("Signer.layerPrivateKey", () => {
  it.effect("signs as viem does, with either engine, and knows its address", () =>
    Effect.gen(function*() {
      for (const layer of [Secp256k1.layer, Secp256k1.layerNoble]) {
        for (const text of [key, key.slice(2), key.toUpperCase().replace("0X", "0x")]) {
          const signer = yield* Effect.provide(Signer.makePrivateKey(Redacted.make(text)), layer)
          assert.strictEqual(signer.address, address)
          assert.deepStrictEqual<unknown>(yield* signer.sign(signable), yield* expected)
        }
      }
      const layer = Signer.layerPrivateKey(Redacted.make(key))
      assert.deepStrictEqual<unknown>(yield* Effect.provide(signWith(Signer.Signer), layer), yield* expected)
    }))

  it.effect("refuses what is no private key", () =>
    Effect.gen(function*() {
      const bad = ["", "0x", "0x12", `${key}00`, ` ${key}`, "z".repeat(64), "0".repeat(64), order.toString(16)]
      for (const text of [...bad, "f".repeat(64)]) {
        const error = yield* Effect.flip(Signer.makePrivateKey(Redacted.make(text)))
        assert.strictEqual(error._tag, "InvalidPrivateKey")
      }
      const largest = (order - 1n).toString(16)
      assert.strictEqual(
        (yield* Signer.makePrivateKey(Redacted.make(largest))).address,
        privateKeyToAccount(`0x${largest}`).address.toLowerCase()
      )
    }))

  it.effect("gives out nothing of an engine that signs with another key", () =>
    Effect.gen(function*() {
      const other = new Uint8Array(32).fill(0x11)
      const broken: Secp256k1.Engine = {
        ...Secp256k1.noble,
        sign: (digest) => Secp256k1.noble.sign(digest, other)
      }
      const error = yield* Effect.flip(
        Effect.provideService(Signer.makePrivateKey(Redacted.make(key)), Secp256k1.Secp256k1, broken)
      )
      assert(error._tag === "SignerMismatch")
      assert.strictEqual(error.expected, address)
      assert.strictEqual(error.recovered, privateKeyToAccount(otherKey).address.toLowerCase())
    }))

  const Text = Schema.String
  const Amount = Schema.BigInt.check(Schema.isBetweenBigInt({ minimum: 0n, maximum: 2n ** 64n - 1n }))
  const Key = Schema.BigInt.check(Schema.isBetweenBigInt({ minimum: 1n, maximum: order - 1n }))

  it.effect.prop(
    "sign, then recover, is the identity, for any key and message",
    { amount: Amount, key: Key, text: Text },
    ({ amount, key, text }) =>
      Effect.gen(function*() {
        const signer = yield* Signer.makePrivateKey(Redacted.make(key.toString(16).padStart(64, "0")))
        const signable = signableOf(text, amount)
        const signature = yield* signer.sign(signable)
        assert.strictEqual(yield* Secp256k1.recover(Signable.digest(signable), signature), signer.address)
        assert.isTrue(BigInt(signature.s) <= order / 2n)
        assert.strictEqual(signature.r.length, 66)
      }).pipe(Effect.provide(Secp256k1.layer)),
    { arbitrary: { runs: sampleRuns(200) } }
  )
})

describe("Signer.layerViem", () => {
  it.effect("takes a local account and a wallet client", () =>
    Effect.gen(function*() {
      const client = createWalletClient({ account, chain: mainnet, transport: custom({ request: async () => null }) })
      for (const wallet of [account, client]) {
        const layer = Signer.layerViem(wallet)
        assert.strictEqual((yield* Effect.provide(Signer.Signer, layer)).address, address)
        assert.deepStrictEqual<unknown>(yield* Effect.provide(signWith(Signer.Signer), layer), yield* expected)
      }
    }))

  it.effect("asks a wallet behind JSON-RPC for the typed data, domain included", () =>
    Effect.gen(function*() {
      const asked: Array<unknown> = []
      const signature = yield* Effect.promise(() => account.signTypedData(Signable.typedData(signable)))
      const client = createWalletClient({
        account: account.address,
        transport: custom({
          request: async (request: unknown) => {
            asked.push(request)
            return signature
          }
        })
      })
      assert.deepStrictEqual<unknown>(yield* signWith(Signer.makeViem(client)), yield* expected)
      const [request] = asked
      const { method, params } = Schema.decodeUnknownSync(
        Schema.Struct({ method: Schema.String, params: Schema.Tuple([Schema.String, Schema.String]) })
      )(request)
      assert.strictEqual(method, "eth_signTypedData_v4")
      const { message } = Schema.decodeUnknownSync(Schema.Struct({ message: Schema.Unknown }))(JSON.parse(params[1]))
      assert.deepStrictEqual(message, { text: "hello", amount: "18446744073709551615" })
    }))

  it.effect("tells another account's signature, and a wallet that does not sign", () =>
    Effect.gen(function*() {
      const other = privateKeyToAccount(otherKey)
      const mismatch = yield* Effect.flip(
        signWith(Signer.makeViem({ address, signTypedData: (data) => other.signTypedData(data) }))
      )
      assert(mismatch._tag === "SignerMismatch")
      assert.deepStrictEqual(
        [mismatch.expected, mismatch.recovered],
        [address, other.address.toLowerCase() as Hex]
      )
      for (
        const signTypedData of [() => Promise.reject(new Error("User rejected the request")), () => {
          throw new Error("User rejected the request")
        }]
      ) {
        const error = yield* Effect.flip(signWith(Signer.makeViem({ address, signTypedData })))
        assert(error._tag === "SignerUnavailable")
        assert.deepStrictEqual([error.signer, error.detail], [address, "User rejected the request"])
      }
    }))
})

describe("Signer.layerExternal", () => {
  it.effect("takes 65 bytes, padded or trimmed numbers, with any v or none, and a high s", () =>
    Effect.gen(function*() {
      const wanted = yield* expected
      const { r, s, v } = wanted
      const wire = yield* Effect.promise(() => account.sign({ hash: digest }))
      const high = `0x${(order - BigInt(s)).toString(16).padStart(64, "0")}`
      const answers: ReadonlyArray<Signer.GivenSignature> = [
        wire,
        `${wire.slice(0, 130)}${v === 27 ? "00" : "01"}`,
        { r, s },
        { r, s, v: 55 - v },
        { r, s, v: BigInt(v) },
        { r, s: high },
        { r, s: high, v: 55 - v },
        { r: `0x${BigInt(r).toString(16)}`, s: `0x${BigInt(s).toString(16).toUpperCase()}` }
      ]
      for (const answer of answers) {
        assert.deepStrictEqual<unknown>(yield* signWith(external(answer)), wanted)
      }
    }))

  it.effect("gives a key store the digest, or the typed data where it takes that", () =>
    Effect.gen(function*() {
      const { r, s } = parseSignature(yield* Effect.promise(() => account.sign({ hash: digest })))
      const byDigest = Signer.layerExternal({
        address: account.address,
        signDigest: (asked) => asked === digest ? Effect.succeed({ r, s }) : Effect.die("another digest")
      })
      assert.deepStrictEqual<unknown>(yield* Effect.provide(signWith(Signer.Signer), byDigest), yield* expected)
      const byData = Signer.layerExternal({
        address,
        signTypedData: (data) => Effect.promise(() => account.signTypedData(data))
      })
      assert.deepStrictEqual<unknown>(yield* Effect.provide(signWith(Signer.Signer), byData), yield* expected)
    }))

  it.effect("refuses what is no signature of the key", () =>
    Effect.gen(function*() {
      const { r, s, v } = yield* expected
      const answers: ReadonlyArray<Signer.GivenSignature> = ["", "0x", "0x1234", { r: "0x0", s, v }, { r, s: "0x0" }]
      for (const answer of [...answers, { r: "zz", s }, { r, s: `0x${order.toString(16)}` }, { r: "0x5", s }]) {
        const error = yield* Effect.flip(signWith(external(answer)))
        assert(error._tag === "SignerMismatch")
        assert.deepStrictEqual([error.expected, error.recovered], [address, undefined])
      }
      const error = yield* Effect.flip(signWith(external({ r: s, s: r, v })))
      assert.strictEqual(error._tag, "SignerMismatch")
    }))

  it.effect("turns its failure into SignerUnavailable, in its own words", () =>
    Effect.gen(function*() {
      class KeyStoreDown extends Schema.TaggedError<KeyStoreDown>()("KeyStoreDown", {}) {}
      const error = yield* Effect.flip(
        signWith(Signer.makeExternal({ address, signDigest: () => Effect.fail(new KeyStoreDown()) }))
      )
      assert(error._tag === "SignerUnavailable")
      assert.strictEqual(error.detail, "KeyStoreDown")
    }))
})
