/**
 * Our signatures against those of `@nktkas/hyperliquid`, which signs with viem: equal signatures, and each library's
 * recovered to the key by the other's digest. Its client with a transport that keeps what it is given makes the multi-sig
 * bodies, since it gives out no inner signature otherwise.
 */
import { assert, describe, it } from "@effect/vitest"
import { ExchangeClient, type IRequestTransport } from "@nktkas/hyperliquid"
import { TokenDelegateTypes } from "@nktkas/hyperliquid/api/exchange"
import { signL1Action, signMultiSigL1, signMultiSigUserSigned, signUserSignedAction } from "@nktkas/hyperliquid/signing"
import type { Signature } from "@trigate/domain/actions/Action"
import * as ActionBuilder from "@trigate/signing/actions/ActionBuilder"
import * as Secp256k1 from "@trigate/signing/Secp256k1"
import * as Signer from "@trigate/signing/Signer"
import * as SignerRecovery from "@trigate/signing/unstable/actions/CanonicalAction"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import { sampleRuns } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { privateKeyToAccount } from "viem/accounts"

const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n

const hex = (value: bigint, bytes: number): `0x${string}` => `0x${value.toString(16).padStart(bytes * 2, "0")}`

const between = (minimum: bigint, maximum: bigint) => Schema.BigInt.check(Schema.isBetweenBigInt({ minimum, maximum }))

const Key = between(1n, order - 1n)

const Address = between(0n, 2n ** 160n - 1n)

const Millis = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }))

/** The peer signs lone surrogates as question marks; this library refuses them. */
const Text = Schema.String.check(
  Schema.isMaxLength(40),
  Schema.makeFilter((text) => text.isWellFormed() ? undefined : "Expected no lone surrogate")
)

/** Beyond this the peer takes a double for an integer of more than 64 bits, and refuses it. */
const Double = Schema.Finite.check(Schema.isBetween({ minimum: -(2 ** 62), maximum: 2 ** 62 }))

/** What an action's member may be. */
const Leaf = Schema.Union([Text, Millis, Double, Schema.Boolean, Schema.Null])

const Free = Schema.Struct({
  a: Leaf,
  list: Schema.Array(Schema.Union([Leaf, Schema.Struct({ p: Leaf, q: Schema.optionalKey(Leaf) })])),
  nested: Schema.Struct({ é: Leaf, t: Schema.Struct({ limit: Leaf }) })
})

const L1 = Schema.Union([
  Schema.Struct({ type: Schema.Literal("evmUserModify"), usingBigBlocks: Schema.Boolean }),
  Schema.Struct({ type: Schema.Literal("CSignerAction"), jailSelf: Schema.Null }),
  Schema.Struct({ type: Schema.Literal("CSignerAction"), unjailSelf: Schema.Null }),
  Schema.Struct({ type: Schema.Literals(["order", "cancel", "noop"]), body: Free })
])

const Envelope = {
  nonce: Millis,
  vault: Schema.NullOr(Address),
  expires: Schema.NullOr(Millis),
  isTestnet: Schema.Boolean
}

const Stake = {
  validator: Address,
  wei: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
  isUndelegate: Schema.Boolean,
  chain: Schema.Literals(["0x1", "0x66eee", "0xa4b1", "0x3e7"]),
  nonce: Millis,
  isTestnet: Schema.Boolean
}

const Keys = Schema.Tuple([Key, Key, Key])

const profileOf = (isTestnet: boolean) => isTestnet ? VenueProfile.testnet : VenueProfile.mainnet

const optionsOf = (
  input: { readonly nonce: number; readonly vault: bigint | null; readonly expires: number | null }
) => ({
  nonce: input.nonce,
  ...(input.vault === null ? {} : { vaultAddress: hex(input.vault, 20) }),
  ...(input.expires === null ? {} : { expiresAfter: input.expires })
})

const signerOf = (key: bigint) => Signer.makePrivateKey(Redacted.make(hex(key, 32)))

const accountOf = (key: bigint) => privateKeyToAccount(hex(key, 32))

const recovers = Effect.fnUntraced(function*(
  profile: VenueProfile.VenueProfile,
  body: SignerRecovery.SignedRequest,
  signer: string
) {
  const recovered = yield* SignerRecovery.recover(profile, body)
  assert.strictEqual(recovered.signer, signer)
  return recovered
})

/** A multi-sig body that the peer made: our inner and outer signatures equal its, and ours recover from its. */
const multiSigAgrees = Effect.fnUntraced(function*(
  profile: VenueProfile.VenueProfile,
  body: SignerRecovery.SignedRequest & {
    readonly action: { readonly signatures: ReadonlyArray<Secp256k1.Signature> }
  },
  keys: ReadonlyArray<bigint>
) {
  const signers = yield* Effect.forEach(keys, signerOf)
  const [leader] = signers
  assert(leader !== undefined)
  const found = yield* Effect.fromResult(SignerRecovery.requestSignable(profile, body))
  assert(found.scheme === "multiSig")
  const inner = yield* Effect.forEach(signers, (signer) => Effect.map(signer.sign(found.inner), Secp256k1.trimmed))
  assert.deepStrictEqual<unknown>(inner, body.action.signatures)
  assert.deepStrictEqual<unknown>(yield* leader.sign(found.outer), body.signature)
  const recovered = yield* recovers(profile, body, leader.address)
  assert(recovered.scheme === "multiSig")
  assert.deepStrictEqual(recovered.inner.map(({ signer }) => signer), signers.map(({ address }) => address))
})

const walletsOf = ([leader, ...others]: readonly [bigint, bigint, bigint]) =>
  [accountOf(leader), ...others.map(accountOf)] as const

const Body = Schema.Struct({
  action: Schema.StructWithRest(
    Schema.Struct({ signatures: Schema.Array(Schema.Struct({ r: Schema.String, s: Schema.String, v: Schema.Int })) }),
    [Schema.Record(Schema.String, Schema.Unknown)]
  ),
  nonce: Schema.Int,
  signature: Schema.Struct({ r: Schema.String, s: Schema.String, v: Schema.Int }),
  vaultAddress: Schema.optional(Schema.String),
  expiresAfter: Schema.optional(Schema.Int)
})

/** What the peer's client would send. */
const capture = <A>(isTestnet: boolean, use: (transport: IRequestTransport) => Promise<A>) =>
  Effect.gen(function*() {
    let sent: unknown
    yield* Effect.promise(() =>
      use({
        isTestnet,
        request: (_endpoint: string, payload: unknown) => {
          sent = payload
          return Promise.resolve(JSON.parse("{\"status\":\"ok\",\"response\":{\"type\":\"default\"}}"))
        }
      })
    )
    return yield* Schema.decodeUnknownEffect(Body)(sent)
  })

const native = Effect.provide(Secp256k1.layer)

describe("against @nktkas/hyperliquid", () => {
  it.effect.prop(
    "L1 actions: the same signature, and ours recovers from theirs",
    { action: L1, key: Key, ...Envelope },
    ({ action, isTestnet, key, ...envelope }) =>
      Effect.gen(function*() {
        const profile = profileOf(isTestnet)
        const options = optionsOf(envelope)
        const signer = yield* signerOf(key)
        const ours = yield* ActionBuilder.signL1(action, options).pipe(
          Effect.provideService(Signer.Signer, signer),
          Effect.provideService(VenueProfile.Venue, profile)
        )
        const theirs: Signature = yield* Effect.promise(() =>
          signL1Action({ wallet: accountOf(key), action, isTestnet, ...options })
        )
        assert.deepStrictEqual(ours.signature, theirs)
        yield* recovers(profile, { ...ours, signature: theirs }, signer.address)
      }).pipe(native),
    { arbitrary: { runs: sampleRuns(300) } }
  )

  it.effect.prop(
    "tokenDelegate: the same signature, and ours recovers from theirs",
    { key: Key, ...Stake },
    ({ chain, isTestnet, isUndelegate, key, nonce, validator, wei }) =>
      Effect.gen(function*() {
        const profile = profileOf(isTestnet)
        const signer = yield* signerOf(key)
        const stake = { validator: hex(validator, 20), wei: BigInt(wei), nonce, signatureChainId: chain }
        const build = isUndelegate ? ActionBuilder.undelegate : ActionBuilder.delegate
        const ours = yield* build(stake).pipe(
          Effect.provideService(Signer.Signer, signer),
          Effect.provideService(VenueProfile.Venue, profile)
        )
        const theirs: Signature = yield* Effect.promise(() =>
          signUserSignedAction({
            wallet: accountOf(key),
            types: TokenDelegateTypes,
            action: {
              type: "tokenDelegate",
              signatureChainId: chain,
              hyperliquidChain: profile.chainName,
              validator: hex(validator, 20),
              wei,
              isUndelegate,
              nonce
            }
          })
        )
        assert.deepStrictEqual(ours.signature, theirs)
        yield* recovers(profile, { ...ours, signature: theirs }, signer.address)
      }).pipe(native),
    { arbitrary: { runs: sampleRuns(200) } }
  )

  it.effect.prop(
    "multiSig over L1 actions: the same inner and outer signatures",
    { action: L1, keys: Keys, user: Address, chain: Stake.chain, ...Envelope },
    ({ action, chain, isTestnet, keys, user, ...envelope }) =>
      Effect.gen(function*() {
        const options = optionsOf(envelope)
        const theirs = yield* Effect.promise(() =>
          signMultiSigL1({
            signers: walletsOf(keys),
            multiSigUser: hex(user, 20),
            signatureChainId: chain,
            action,
            isTestnet,
            ...options
          })
        )
        const body = yield* Schema.decodeUnknownEffect(Body)({ ...theirs, ...options })
        yield* multiSigAgrees(profileOf(isTestnet), body, keys)
      }).pipe(native),
    { arbitrary: { runs: sampleRuns(80) } }
  )

  it.effect.prop(
    "multiSig over tokenDelegate: the same inner and outer signatures",
    { keys: Keys, user: Address, ...Stake },
    ({ chain, isTestnet, isUndelegate, keys, nonce, user, validator, wei }) =>
      Effect.gen(function*() {
        const profile = profileOf(isTestnet)
        const theirs = yield* Effect.promise(() =>
          signMultiSigUserSigned({
            signers: walletsOf(keys),
            multiSigUser: hex(user, 20),
            types: TokenDelegateTypes,
            action: {
              type: "tokenDelegate",
              signatureChainId: chain,
              hyperliquidChain: profile.chainName,
              validator: hex(validator, 20),
              wei,
              isUndelegate,
              nonce
            }
          })
        )
        const body = yield* Schema.decodeUnknownEffect(Body)({ ...theirs, nonce })
        yield* multiSigAgrees(profile, body, keys)
      }).pipe(native),
    { arbitrary: { runs: sampleRuns(80) } }
  )

  it.effect.prop(
    "bodies that its client sends, of one key and of several",
    { keys: Keys, user: Address, big: Schema.Boolean, ...Stake },
    ({ big, chain, isTestnet, isUndelegate, keys, nonce, user, validator, wei }) =>
      Effect.gen(function*() {
        const profile = profileOf(isTestnet)
        const config = { signatureChainId: chain, nonceManager: () => nonce }
        const several = (transport: IRequestTransport) =>
          new ExchangeClient({ transport, signers: walletsOf(keys), multiSigUser: hex(user, 20), ...config })
        const delegation = { validator: hex(validator, 20), wei, isUndelegate }
        for (
          const body of [
            yield* capture(isTestnet, (transport) => several(transport).evmUserModify({ usingBigBlocks: big })),
            yield* capture(isTestnet, (transport) => several(transport).cSignerAction({ jailSelf: null })),
            yield* capture(isTestnet, (transport) => several(transport).tokenDelegate(delegation))
          ]
        ) {
          yield* multiSigAgrees(profile, body, keys)
        }
      }).pipe(native),
    { arbitrary: { runs: sampleRuns(20) } }
  )
})
