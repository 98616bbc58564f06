import { assert, describe, it } from "@effect/vitest"
import * as ActionHash from "@trigate/signing/unstable/actions/ActionHash"
import * as UserSigned from "@trigate/signing/unstable/actions/CanonicalAction"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { bytesToHex, hashTypedData } from "viem/utils"

const Uint64 = Schema.BigInt.check(Schema.isBetweenBigInt({ minimum: 0n, maximum: 2n ** 64n - 1n }))

const bytes = (size: number) =>
  Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 255 }))).check(
    Schema.isBetweenLength(size, size)
  )

const Text = Schema.String.check(Schema.makeFilter((text) => text.isWellFormed()))

const hex = (values: ReadonlyArray<number>) => bytesToHex(Uint8Array.from(values))

/** viem hashes the displayed object from scratch: it shares no line with the digest. */
const hashedByViem = (signable: ActionHash.Signable) => {
  const { domain, message, primaryType, types } = ActionHash.typedData(signable)
  return hashTypedData({
    domain: { ...domain, chainId: BigInt(domain.chainId) },
    types: Object.fromEntries(Object.entries(types).map(([name, fields]) => [name, [...fields]])),
    primaryType,
    message: { ...message }
  })
}

const delegate = {
  type: "tokenDelegate",
  signatureChainId: "0x66eee",
  hyperliquidChain: "Mainnet",
  validator: "0x5ac99df645f3414876c816caa18b2d234024b487",
  wei: 5,
  isUndelegate: false,
  nonce: 1
}

const built = (action: Readonly<Record<string, unknown>>) =>
  UserSigned.signable(VenueProfile.mainnet, UserSigned.types.tokenDelegate, action)

const refusal = (action: Readonly<Record<string, unknown>>) => {
  const { path, reason } = Result.getOrThrow(Result.flip(built(action)))
  return { reason, path }
}

describe("Signable", () => {
  it.effect.prop(
    "has the digest that viem computes from its typed data",
    {
      chainId: Uint64,
      validator: bytes(20),
      user: bytes(20),
      leader: bytes(20),
      wei: Uint64,
      nonce: Uint64,
      isUndelegate: Schema.Boolean,
      text: Text,
      connectionId: bytes(32)
    },
    ({ chainId, connectionId, isUndelegate, leader, nonce, text, user, validator, wei }) =>
      Effect.sync(() => {
        const signatureChainId = `0x${chainId.toString(16)}`
        const parties = { multiSigUser: hex(user), outerSigner: hex(leader) }
        const action = { ...delegate, signatureChainId, validator: hex(validator), wei, isUndelegate, nonce }
        const transfer = {
          signatureChainId,
          hyperliquidChain: "Testnet",
          destination: text,
          sourceDex: "",
          destinationDex: text,
          token: "USDC",
          amount: "1",
          fromSubAccount: "",
          nonce
        }
        const signables = [
          ActionHash.agentSignable(VenueProfile.testnet, hex(connectionId)),
          Result.getOrThrow(built(action)),
          Result.getOrThrow(
            UserSigned.innerSignable(VenueProfile.mainnet, UserSigned.types.tokenDelegate, action, parties)
          ),
          Result.getOrThrow(
            UserSigned.innerSignable(VenueProfile.testnet, UserSigned.types.sendAsset, transfer, parties)
          )
        ]
        for (const signable of signables) {
          assert.strictEqual(ActionHash.digest(signable), hashedByViem(signable))
        }
      }),
    { arbitrary: { runs: 100 } }
  )
})

describe("UserSigned.signable", () => {
  it("reads a chain id as a number whatever its spelling, and as a bigint beyond 2^53", () => {
    const chainId = (signatureChainId: string) =>
      ActionHash.typedData(Result.getOrThrow(built({ ...delegate, signatureChainId }))).domain.chainId
    assert.strictEqual(chainId("0x66eee"), 421614)
    assert.strictEqual(chainId("0x00066EEE"), 421614)
    assert.strictEqual(chainId("0x1fffffffffffff"), 9007199254740991)
    assert.strictEqual(chainId("0x20000000000000"), 9007199254740992n)
  })

  it("hashes right for more chain ids than it remembers", () => {
    for (let chainId = 1; chainId <= 200; chainId++) {
      const signable = Result.getOrThrow(built({ ...delegate, signatureChainId: `0x${chainId.toString(16)}` }))
      assert.strictEqual(ActionHash.digest(signable), hashedByViem(signable))
    }
  })

  it("refuses members that are missing, of the wrong type or out of range", () => {
    const cases: ReadonlyArray<readonly [string, ReadonlyArray<unknown>]> = [
      ["signatureChainId", [undefined, 1, "0x", "421614", "0xg", `0x1${"0".repeat(16)}`, { toString: 1 }]],
      ["validator", [undefined, "0x12", "5ac99df645f3414876c816caa18b2d234024b487", 1n]],
      ["wei", [undefined, "5", -1, 1.5, 2 ** 64, 2n ** 64n, -1n, Number.NaN]],
      ["isUndelegate", [undefined, 0, "false", null]],
      ["nonce", [undefined, null, "1", -1]],
      ["hyperliquidChain", [undefined, null, 1, { toString: 1 }]]
    ]
    for (const [name, values] of cases) {
      for (const value of values) {
        assert.deepStrictEqual(refusal({ ...delegate, [name]: value }), { reason: "shape", path: [name] })
      }
    }
  })

  it("refuses an action for another network", () => {
    assert.deepStrictEqual(refusal({ ...delegate, hyperliquidChain: "Testnet" }), {
      reason: "otherNetwork",
      path: ["hyperliquidChain"]
    })
  })
})
