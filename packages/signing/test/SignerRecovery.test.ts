import { assert, describe, it } from "@effect/vitest"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as ActionHash from "@trigate/signing/unstable/actions/ActionHash"
import * as SignerRecovery from "@trigate/signing/unstable/actions/CanonicalAction"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import { sampleRuns } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { readBody, type Vector, vector, vectors } from "./vectors.ts"

const profileOf = (vector: Vector) => vector.isMainnet ? VenueProfile.mainnet : VenueProfile.testnet

const body = (id: string) => readBody(vector(id).requestBody)

const recover = (request: SignerRecovery.SignedRequest) => SignerRecovery.recover(VenueProfile.mainnet, request)

const digestOf = (profile: VenueProfile.VenueProfile, request: Omit<SignerRecovery.SignedRequest, "signature">) =>
  Result.map(SignerRecovery.requestSignable(profile, request), (found) => ActionHash.digest(found.outer))

type Path = ReadonlyArray<string | number>

const leaves = (value: unknown, path: Path = []): ReadonlyArray<Path> => {
  if (Array.isArray(value)) {
    return value.flatMap((item, index) => leaves(item, [...path, index]))
  }
  return typeof value === "object" && value !== null
    ? Object.entries(value).flatMap(([key, item]) => leaves(item, [...path, key]))
    : [path]
}

const mutateLeaf = (value: unknown, key: string | number, salt: number): unknown => {
  if (key === "vaultAddress" && value === null) {
    return `0x${String(salt).padStart(40, "0")}`
  }
  switch (typeof value) {
    case "boolean":
      return !value
    case "number":
      return value + 1 + salt
    case "bigint":
      return value - 1n - BigInt(salt)
    case "string":
      return value.startsWith("0x") ? `${value.slice(0, -1)}${value.endsWith("7") ? "8" : "7"}` : `${value}${salt}`
    default:
      return salt
  }
}

const mutate = (value: unknown, [key, ...rest]: Path, salt: number): unknown => {
  const change = (name: string | number, item: unknown) =>
    name !== key ? item : rest.length === 0 ? mutateLeaf(item, key, salt) : mutate(item, rest, salt)
  if (Array.isArray(value)) {
    return value.map((item: unknown, index) => change(index, item))
  }
  return Predicate.isObject(value)
    ? Object.fromEntries(Object.entries(value).map(([name, item]) => [name, change(name, item)]))
    : value
}

const Integer = Schema.Union([Schema.Number, Schema.BigInt])

const decodeUnsigned = Schema.decodeUnknownSync(Schema.Struct({
  action: Schema.Unknown,
  nonce: Integer,
  vaultAddress: Schema.NullOr(Schema.String),
  expiresAfter: Schema.NullOr(Integer)
}))

/** The wrapper with another inner action. */
const rewrap = (wrapper: Readonly<Record<string, unknown>>, action: unknown) => {
  const { payload } = wrapper
  assert(Predicate.isObject(payload))
  return { ...wrapper, payload: { ...payload, action } }
}

const Natural = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 }))

const Index = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: vectors.length - 1 }))

describe("SignerRecovery.recover", () => {
  it.effect("takes null for absent, either spelling of the chain, any key order and any case", () =>
    Effect.gen(function*() {
      const l1 = body("l1-001")
      const expected = yield* recover(l1)
      assert.deepStrictEqual(
        yield* recover({
          ...l1,
          action: { usingBigBlocks: true, type: "evmUserModify" },
          nonce: BigInt(l1.nonce),
          vaultAddress: null,
          expiresAfter: null
        }),
        expected
      )
      const delegate = body("us-053")
      const { hyperliquidChain, type, validator, ...rest } = delegate.action
      const upper = `0x${String(validator).slice(2).toUpperCase()}`
      const action = { ...rest, validator: upper, venueChain: hyperliquidChain, type }
      assert.deepStrictEqual(yield* recover({ ...delegate, action }), yield* recover(delegate))
    }))

  it.effect("recovers a stranger from what was signed for the other network", () =>
    Effect.gen(function*() {
      const l1 = vector("l1-001")
      assert(l1.scheme === "l1")
      const { signer } = yield* SignerRecovery.recover(VenueProfile.testnet, body("l1-001"))
      assert.notStrictEqual(signer, l1.signer)
      const error = yield* Effect.flip(SignerRecovery.recover(VenueProfile.testnet, body("us-053")))
      assert(error._tag === "UnsignableAction")
      assert.strictEqual(error.reason, "otherNetwork")
    }))

  it.effect("refuses the documented forms as such", () =>
    Effect.gen(function*() {
      const request = body("l1-001")
      const wrapper = body("msl1-097")
      const actions = [
        { type: "tokenDelegate", validator: "0x5ac99df645f3414876c816caa18b2d234024b487", amount: "1" },
        { type: "CSignerAction", payload: {} },
        { type: "evmUserModify", modifications: [] }
      ]
      for (const action of actions) {
        for (const refused of [action, rewrap(wrapper.action, action)]) {
          const error = yield* Effect.flip(recover({ ...request, action: refused }))
          assert(error._tag === "UnsignableAction")
          assert.strictEqual(error.reason, "documentedForm")
        }
      }
    }))

  it.effect("refuses to guess at user-signed actions that it does not know", () =>
    Effect.gen(function*() {
      const request = body("l1-001")
      const unknown = { type: "usdMystery", signatureChainId: "0x66eee", hyperliquidChain: "Mainnet", amount: "1" }
      const error = yield* Effect.flip(recover({ ...request, action: unknown }))
      assert(error._tag === "UnsignableAction")
      assert.deepStrictEqual([error.reason, error.path], ["unknownType", ["type"]])
      const wrapper = body("msl1-097")
      const inner = yield* Effect.flip(recover({ ...wrapper, action: rewrap(wrapper.action, unknown) }))
      assert(inner._tag === "UnsignableAction")
      assert.deepStrictEqual([inner.reason, inner.path], ["unknownType", ["payload", "action", "type"]])
    }))

  it.effect("says which inner signature cannot be recovered", () =>
    Effect.gen(function*() {
      const wrapper = body("msl1-097")
      const { r, s, v } = wrapper.signature
      const signatures = [{ r, s, v }, { r, s: "0x0", v }]
      const error = yield* Effect.flip(recover({ ...wrapper, action: { ...wrapper.action, signatures } }))
      assert(error._tag === "UnrecoverableSignature")
      assert.deepStrictEqual([error.reason, error.innerIndex], ["invalidS", 1])
      const outer = yield* Effect.flip(recover({ ...wrapper, signature: { r: "0x0", s, v } }))
      assert(outer._tag === "UnrecoverableSignature")
      assert.deepStrictEqual([outer.reason, outer.innerIndex], ["invalidR", undefined])
    }))

  it.effect("passes on what cannot be encoded, with its path", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(recover({ ...body("l1-001"), action: { type: "order", a: [2n ** 64n] } }))
      assert(error._tag === "MsgPackUnencodable")
      assert.deepStrictEqual([error.reason, error.path], ["integerRange", ["a", 0]])
    }))

  it.effect("recovers the same signers whether inner signatures come padded or trimmed", () =>
    Effect.gen(function*() {
      for (const id of ["msl1-155", "msus-157", "msus-159"]) {
        const request = body(id)
        const profile = profileOf(vector(id))
        const found = yield* Effect.fromResult(SignerRecovery.requestSignable(profile, request))
        assert(found.scheme === "multiSig")
        const signatures = found.innerSignatures.map(({ r, s, v }) => ({
          v,
          r: `0x${r.slice(2).padStart(64, "0")}`,
          s: `0x${s.slice(2).padStart(64, "0")}`
        }))
        assert.notDeepEqual<unknown>(signatures, found.innerSignatures)
        assert.deepStrictEqual(
          yield* SignerRecovery.recover(profile, { ...request, action: { ...request.action, signatures } }),
          yield* SignerRecovery.recover(profile, request)
        )
      }
    }))

  it.effect.prop(
    "has another digest and another signer, or none, after any change of any field that is signed",
    { index: Index, leaf: Natural, salt: Natural },
    ({ index, leaf, salt }) =>
      Effect.gen(function*() {
        const chosen = vectors[index]
        assert(chosen !== undefined)
        const profile = profileOf(chosen)
        const { action, expiresAfter = null, nonce, signature, vaultAddress = null } = readBody(chosen.requestBody)
        const request = { action, nonce, vaultAddress, expiresAfter }
        const paths = leaves(chosen.scheme === "userSigned" ? { action } : request)
        const path = paths[leaf % paths.length]
        assert(path !== undefined)
        const mutated = decodeUnsigned(mutate(request, path, salt))
        const before = Result.getOrThrow(digestOf(profile, request))
        const after = digestOf(profile, mutated)
        const name = path.at(-1)
        if (Result.isFailure(after)) {
          assert(name === "type" || name === profile.chainField, path.join("."))
        } else {
          assert.notStrictEqual(after.success, before, path.join("."))
        }
        const { signer } = yield* SignerRecovery.recover(profile, { ...request, signature })
        const found = yield* Effect.result(SignerRecovery.recover(profile, { ...mutated, signature }))
        assert(Result.isFailure(found) || found.success.signer !== signer, path.join("."))
      }).pipe(Effect.provide(Secp256k1.layer)),
    { arbitrary: { runs: sampleRuns(1000) } }
  )
})

describe("ActionHash.preimage", () => {
  it("refuses a nonce, an expiry or a vault that it cannot spell", () => {
    const refusal = (context: ActionHash.HashContext) => {
      const error = Result.getOrThrow(Result.flip(ActionHash.preimage({}, context)))
      assert(error._tag === "UnsignableAction")
      return [error.reason, error.path]
    }
    for (const value of [-1, 1.5, 2 ** 64, 2n ** 64n, -1n, Number.NaN]) {
      assert.deepStrictEqual(refusal({ nonce: value }), ["shape", ["nonce"]])
      assert.deepStrictEqual(refusal({ nonce: 1, expiresAfter: value }), ["shape", ["expiresAfter"]])
    }
    for (const vaultAddress of ["", "0x", "0x12", `0x${"g".repeat(40)}`]) {
      assert.deepStrictEqual(refusal({ nonce: 1, vaultAddress }), ["shape", ["vaultAddress"]])
    }
  })
})
