import { assert, describe, it } from "@effect/vitest"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import type { Inspection, SignatureMistake } from "@trigate/domain/unstable/Inspection"
import * as ActionHash from "@trigate/signing/unstable/actions/ActionHash"
import * as CanonicalAction from "@trigate/signing/unstable/actions/CanonicalAction"
import { mainnet, testnet } from "@trigate/signing/VenueProfile"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import { sample } from "@trigate/testing/Sample"
import * as Inspector from "@trigate/trading/Inspector"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { sign } from "viem/accounts"
import { concat, hashMessage, keccak256, numberToHex, toHex } from "viem/utils"

const nonce = 1_795_230_000_000

/** Keys of a public test mnemonic. */
const trader = {
  address: "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
  privateKey: "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
} as const
const cosigner = {
  address: "0x9965507d1a55bcc2695c58ba16fb37d819b0a4dc",
  privateKey: "0x8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba"
} as const

const user = "0x90f79bf6eb2c4f870365e785982e1f101e93b906"
const vault = "0x1719884eb866cb12b2287399b15f7db5e7d775ea"

type Digest = `0x${string}`

const signature = (digest: Digest, key: typeof trader | typeof cosigner = trader) =>
  Effect.map(
    Effect.promise(() => sign({ hash: digest, privateKey: key.privateKey })),
    ({ r, s, v }) => ({ r, s, v: Number(v) })
  )

type Unsigned = Omit<CanonicalAction.SignedRequest, "signature">

/** The digest that stands for a request. */
const digestOf = (request: Unsigned, profile: VenueProfile = mainnet): Digest =>
  ActionHash.digest(Result.getOrThrow(CanonicalAction.requestSignable(profile, request)).outer)

/** The digest of an L1 action whose bytes were put together in another way. */
const agentDigest = (connectionId: Digest): Digest => ActionHash.digest(ActionHash.agentSignable(mainnet, connectionId))

const inspect = (body: unknown, expected: Digest = trader.address) =>
  Inspector.make(mainnet).inspect(Encoding.encode(Encoding.stringify(body)), expected)

const namesOf = ({ mistakes }: Inspection["diagnosis"]) => [...new Set(mistakes.map(({ mistake }) => mistake))]

const modify = { type: "evmUserModify", usingBigBlocks: true }
const unjail = { type: "CSignerAction", unjailSelf: null }
const order = {
  type: "order",
  orders: [{ a: 1, b: true, p: "1", s: "1", r: false, t: { limit: { tif: "Gtc" } } }],
  grouping: "na",
  builder: { b: "0xABCDEF7890123456789012345678901234567890", f: 1 }
}
const delegate = {
  type: "tokenDelegate",
  signatureChainId: "0x66eee",
  hyperliquidChain: "Mainnet",
  validator: vault,
  wei: 18_446_744_073_709_551_615n,
  isUndelegate: false,
  nonce
}
const lowered = { ...order, builder: { b: "0xabcdef7890123456789012345678901234567890", f: 1 } }

const l1: Unsigned = { action: modify, nonce }
const staked: Unsigned = { action: delegate, nonce }

/** A mistake: what the body says, and what was signed. */
const mistakes: ReadonlyArray<readonly [ReadonlyArray<SignatureMistake>, Unsigned, Digest]> = [
  [["otherNetwork"], l1, digestOf(l1, testnet)],
  [["otherNetwork"], staked, digestOf({ action: { ...delegate, hyperliquidChain: "Testnet" }, nonce }, testnet)],
  [
    ["otherNetwork"],
    { action: { ...delegate, hyperliquidChain: "Testnet" }, nonce },
    digestOf({ action: { ...delegate, hyperliquidChain: "Testnet" }, nonce }, testnet)
  ],
  [["vaultNotSigned"], { ...l1, vaultAddress: vault }, digestOf(l1)],
  [["vaultNotSent"], l1, digestOf({ ...l1, vaultAddress: trader.address })],
  [["expiresAfterNotSigned"], { ...l1, expiresAfter: nonce + 1 }, digestOf(l1)],
  [["expiresAfterNotSent"], l1, digestOf({ ...l1, expiresAfter: nonce + 30_000 })],
  [["timeUnit"], { ...l1, nonce: nonce / 1000 }, digestOf(l1)],
  [["timeUnit"], l1, digestOf({ ...l1, nonce: nonce / 1000 })],
  [["otherNonce"], l1, digestOf({ ...l1, nonce: nonce + 1 })],
  [["otherNonce"], l1, digestOf({ ...l1, nonce: 1_795_320_000_000 })],
  [["otherNonce"], { action: { ...delegate, nonce: nonce - 7 }, nonce }, digestOf(staked)],
  [["otherChainId"], staked, digestOf({ action: { ...delegate, signatureChainId: "0xa4b1" }, nonce })],
  [["letterCase"], { action: order, nonce }, digestOf({ action: lowered, nonce })],
  [
    ["fieldOrder"],
    { action: { usingBigBlocks: true, type: "evmUserModify" }, nonce },
    agentDigest(Result.getOrThrow(ActionHash.hash({ usingBigBlocks: true, type: "evmUserModify" }, { nonce })))
  ],
  [
    ["nullDropped"],
    { action: unjail, nonce },
    agentDigest(Result.getOrThrow(ActionHash.hash({ type: "CSignerAction" }, { nonce })))
  ],
  [
    ["documentedPreimage"],
    l1,
    agentDigest(
      keccak256(
        concat([
          toHex(Result.getOrThrow(ActionHash.encode(modify))),
          `0x${"00".repeat(20)}`,
          numberToHex(nonce, { size: 8 })
        ])
      )
    )
  ],
  [
    ["documentedChainField"],
    staked,
    ActionHash.digest(Result.getOrThrow(
      CanonicalAction.signable({ ...mainnet, chainField: "venueChain" }, CanonicalAction.types.tokenDelegate, {
        ...delegate,
        venueChain: "Mainnet"
      })
    ))
  ],
  [["personalSign"], l1, hashMessage({ raw: digestOf(l1) })],
  [["vaultNotSigned", "expiresAfterNotSigned"], { ...l1, vaultAddress: vault, expiresAfter: nonce + 5 }, digestOf(l1)],
  [["otherNetwork", "vaultNotSigned"], { ...l1, vaultAddress: vault }, digestOf(l1, testnet)]
]

describe("SignatureDiagnosis", () => {
  for (const [expected, request, digest] of sample("mistakes of signing", mistakes, 10)) {
    it.effect(`finds ${expected.join(" and ")}: ${Encoding.stringify(request).slice(0, 90)}`, () =>
      Effect.gen(function*() {
        const { diagnosis } = yield* inspect({ ...request, signature: yield* signature(digest) })
        assert.deepStrictEqual(
          [diagnosis.verdict, namesOf(diagnosis), diagnosis.digest],
          ["explained", expected, digest]
        )
      }))
  }

  it.effect("finds the other recovery bit", () =>
    Effect.gen(function*() {
      const { r, s, v } = yield* signature(digestOf(l1))
      const { diagnosis } = yield* inspect({ ...l1, signature: { r, s, v: v === 27 ? 28 : 27 } })
      assert.deepStrictEqual(namesOf(diagnosis), ["otherRecoveryBit"])
    }))

  it.effect("says that a signature fits, in any letter case of the expected signer", () =>
    Effect.gen(function*() {
      const seen = yield* inspect(
        { ...l1, signature: yield* signature(digestOf(l1)) },
        "0xF39FD6E51AAD88F6F4CE6AB8827279CFFFB92266"
      )
      assert.deepStrictEqual(seen.diagnosis, {
        expectedSigner: trader.address,
        verdict: "fits",
        mistakes: [],
        digest: digestOf(l1),
        detail: `The signature is by ${trader.address}`
      })
    }))

  it.effect("says that no likely mistake explains a stranger's signature, and expects nobody where nobody is named", () =>
    Effect.gen(function*() {
      const body = { ...l1, signature: yield* signature(digestOf(l1), cosigner) }
      const { diagnosis } = yield* inspect(body)
      assert.deepStrictEqual([diagnosis.verdict, namesOf(diagnosis)], ["unexplained", []])
      assert.include(diagnosis.detail, cosigner.address)
      const unasked = yield* Inspector.make(mainnet).inspect(Encoding.encode(Encoding.stringify(body)))
      assert.strictEqual(unasked.diagnosis.detail, `The signature is by ${cosigner.address}`)
    }))

  it.effect("explains nothing about a form that the venue does not take", () =>
    Effect.gen(function*() {
      const action = { type: "evmUserModify", modifications: [] }
      const { diagnosis } = yield* inspect({ action, nonce, signature: yield* signature(digestOf(l1)) })
      assert.strictEqual(diagnosis.verdict, "unexplained")
    }))
})

describe("SignatureDiagnosis of a multi-sig", () => {
  const context = { nonce, vaultAddress: vault, expiresAfter: nonce + 9 }

  const wrap = (signatures: ReadonlyArray<unknown>, payload: object = {}, chain: object = {}) => ({
    type: "multiSig",
    signatureChainId: "0x66eee",
    signatures,
    payload: { multiSigUser: user, outerSigner: trader.address, action: modify, ...payload },
    ...chain
  })

  const read = (action: unknown) => Result.getOrThrow(CanonicalAction.read(action))

  const placeholder = { r: "0x1", s: "0x1", v: 27 }

  const innerDigest = ActionHash.digest(
    Result.getOrThrow(CanonicalAction.cosignerSignable(mainnet, read(wrap([placeholder])), context))
  )

  /** The leader's digest over a wrapper hashed as it stands. */
  const outerDigest = (
    hashed: unknown,
    profile: VenueProfile = mainnet,
    surrounding: ActionHash.HashContext = context
  ) =>
    ActionHash.digest(
      Result.getOrThrow(
        CanonicalAction.leaderSignable(
          profile,
          "0x66eee",
          Result.getOrThrow(ActionHash.hash(hashed, surrounding)),
          surrounding.nonce
        )
      )
    )

  const padded = { r: `0x${"0a".padStart(64, "0")}`, s: `0x${"b".repeat(63).padStart(64, "0")}`, v: 27 }

  const outer: ReadonlyArray<readonly [SignatureMistake, unknown, (action: ReturnType<typeof wrap>) => Digest]> = [
    ["untrimmedSignature", wrap([padded]), ({ type: _, ...rest }) => outerDigest(rest)],
    ["vaultNotSigned", wrap([placeholder]), ({ type: _, ...rest }) => {
      const { vaultAddress: _vault, ...surrounding } = context
      return outerDigest(rest, mainnet, surrounding)
    }],
    ["otherNetwork", wrap([placeholder]), ({ type: _, ...rest }) => outerDigest(rest, testnet)],
    ["typeHashed", wrap([placeholder]), (action) => outerDigest(action)],
    [
      "letterCase",
      wrap([placeholder], { multiSigUser: "0x90F79bf6EB2c4f870365E785982E1f101E93b906" }),
      ({ type: _, ...rest }) => outerDigest(rest)
    ],
    [
      "chainIdText",
      wrap([placeholder], {}, { signatureChainId: "0x066eee" }),
      ({ type: _, ...rest }) => outerDigest({ ...rest, signatureChainId: "0x66eee" })
    ]
  ]

  for (const [mistake, action, digest] of sample("mistakes of a leader", outer, 3)) {
    it.effect(`finds ${mistake} of the leader whom the body names`, () =>
      Effect.gen(function*() {
        const wrapper = read(action)
        assert.strictEqual(wrapper.payload.outerSigner, trader.address)
        const signed = yield* signature(digest(Object.assign(wrap([]), action)))
        const body = { action, ...context, signature: signed }
        const { diagnosis } = yield* Inspector.make(mainnet).inspect(Encoding.encode(Encoding.stringify(body)))
        assert.deepStrictEqual(
          [diagnosis.verdict, diagnosis.expectedSigner, namesOf(diagnosis), diagnosis.innerIndex],
          ["explained", trader.address, [mistake], undefined]
        )
      }))
  }

  const inner: ReadonlyArray<readonly [ReadonlyArray<SignatureMistake>, Digest]> = [
    [[], innerDigest],
    [["notWrapped"], digestOf({ action: modify, ...context })],
    [
      ["vaultNotSigned", "expiresAfterNotSigned"],
      ActionHash.digest(
        Result.getOrThrow(CanonicalAction.cosignerSignable(mainnet, read(wrap([placeholder])), { nonce }))
      )
    ]
  ]

  for (const [expected, digest] of inner) {
    it.effect(`tells of a co-signer: ${expected.length === 0 ? "fits" : expected.join(" and ")}`, () =>
      Effect.gen(function*() {
        const leaders = yield* signature(innerDigest)
        const theirs = yield* signature(digest, cosigner)
        const action = wrap([leaders, theirs])
        const signed = yield* signature(digestOf({ action, ...context }))
        const { diagnosis } = yield* inspect({ action, ...context, signature: signed }, cosigner.address)
        assert.deepStrictEqual(
          [diagnosis.verdict, namesOf(diagnosis), diagnosis.innerIndex],
          [expected.length === 0 ? "fits" : "explained", expected, 1]
        )
      }))
  }
})
