import { assert, describe, it } from "@effect/vitest"
import * as exchange from "@nktkas/hyperliquid/api/exchange"
import { signMultiSigUserSigned, signUserSignedAction } from "@nktkas/hyperliquid/signing"
import * as CanonicalAction from "@trigate/signing/unstable/actions/CanonicalAction"
import { mainnet } from "@trigate/signing/VenueProfile"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { privateKeyToAccount } from "viem/accounts"

/** The types that the peer library signs, by the action type that they belong to. */
const peer: { readonly [actionType: string]: object } = {
  approveAgent: exchange.ApproveAgentTypes,
  approveBuilderFee: exchange.ApproveBuilderFeeTypes,
  cDeposit: exchange.CDepositTypes,
  cWithdraw: exchange.CWithdrawTypes,
  convertToMultiSigUser: exchange.ConvertToMultiSigUserTypes,
  linkStakingUser: exchange.LinkStakingUserTypes,
  sendAsset: exchange.SendAssetTypes,
  sendToEvmWithData: exchange.SendToEvmWithDataTypes,
  spotSend: exchange.SpotSendTypes,
  stakingLinkDisableTradingUser: exchange.StakingLinkDisableTradingUserTypes,
  tokenDelegate: exchange.TokenDelegateTypes,
  usdClassTransfer: exchange.UsdClassTransferTypes,
  usdSend: exchange.UsdSendTypes,
  userDexAbstraction: exchange.UserDexAbstractionTypes,
  userPortfolioMargin: exchange.UserPortfolioMarginTypes,
  userSetAbstraction: exchange.UserSetAbstractionTypes,
  withdraw3: exchange.Withdraw3Types
}

describe("UserSignedType", () => {
  for (const [actionType, types] of Object.entries(peer)) {
    it(`${actionType} is signed with the fields of the peer library`, () => {
      const type = CanonicalAction.find(actionType)
      assert(type !== undefined)
      const { fields, primaryType } = CanonicalAction.struct(mainnet)(type)
      assert.deepStrictEqual<unknown>({ [primaryType]: fields }, types)
    })
  }

  it("tells which field repeats the nonce, in every one", () => {
    const fields = Object.keys(peer).map((actionType) => {
      const type = CanonicalAction.find(actionType)
      assert(type !== undefined)
      return [actionType, CanonicalAction.nonceField(type)?.name] as const
    })
    const times = fields.filter(([, name]) => name === "time").map(([actionType]) => actionType)
    assert.deepStrictEqual(times, ["spotSend", "usdSend", "withdraw3"])
    assert.isTrue(fields.every(([, name]) => name === "time" || name === "nonce"))
  })

  it("is not made up for types that are not known", () => {
    assert.isUndefined(CanonicalAction.find("fromTheFuture"))
    assert.isUndefined(CanonicalAction.find("order"))
  })
})

const wallet = privateKeyToAccount(`0x${"11".repeat(32)}`)
const account = `0x${"ab".repeat(20)}` as const
const nonce = 1_705_234_567_890
const chain = { signatureChainId: "0x66eee", hyperliquidChain: "Mainnet" } as const

const signerOf = (action: object, signature: CanonicalAction.SignedRequest["signature"]) =>
  Effect.map(CanonicalAction.recover(mainnet, { action, nonce, signature }), ({ signer }) => signer)

describe("a text that clients leave out", () => {
  const { agentName: _name, ...approval } = {
    type: "approveAgent",
    ...chain,
    agentAddress: account,
    agentName: "",
    nonce
  }
  const { fromSubAccount: _from, ...transfer } = {
    type: "sendAsset",
    ...chain,
    destination: account,
    sourceDex: "",
    destinationDex: "spot",
    token: "USDC",
    amount: "1",
    fromSubAccount: "",
    nonce
  }

  for (
    const [name, action, types] of [
      ["agentName", approval, exchange.ApproveAgentTypes],
      ["fromSubAccount", transfer, exchange.SendAssetTypes]
    ] as const
  ) {
    it.effect(`is signed as the empty text, absent or null: ${name}`, () =>
      Effect.gen(function*() {
        const signature = yield* Effect.promise(() =>
          signUserSignedAction({ wallet, action: { ...action, [name]: "" }, types })
        )
        for (const sent of [action, { ...action, [name]: null }, { ...action, [name]: "" }]) {
          assert.strictEqual(yield* signerOf(sent, signature), wallet.address.toLowerCase())
        }
        assert.notStrictEqual(yield* signerOf({ ...action, [name]: "x" }, signature), wallet.address.toLowerCase())
        const wrong = yield* Effect.flip(signerOf({ ...action, [name]: 5 }, signature))
        assert(wrong._tag === "UnsignableAction")
        assert.deepStrictEqual(wrong.path, [name])
      }))
  }

  it.effect("is refused where no client leaves it out", () =>
    Effect.gen(function*() {
      const { token: _, ...rest } = transfer
      const error = yield* Effect.flip(signerOf(rest, { r: "0x1", s: "0x1", v: 27 }))
      assert(error._tag === "UnsignableAction")
      assert.deepStrictEqual([error.reason, error.path], ["shape", ["token"]])
    }))
})

describe("sendToEvmWithData", () => {
  const action = {
    type: "sendToEvmWithData",
    ...chain,
    token: "USDC",
    amount: "1",
    sourceDex: "spot",
    destinationRecipient: account,
    addressEncoding: "hex",
    destinationChainId: 998,
    gasLimit: 200_000,
    data: "0x",
    nonce
  }

  it.effect("is signed over its bytes, however many", () =>
    Effect.gen(function*() {
      for (const data of ["0x", "0xdeadbeef", `0x${"5A".repeat(100)}`]) {
        const signature = yield* Effect.promise(() =>
          signUserSignedAction({ wallet, action: { ...action, data }, types: exchange.SendToEvmWithDataTypes })
        )
        assert.strictEqual(yield* signerOf({ ...action, data }, signature), wallet.address.toLowerCase())
      }
    }))

  it("takes whole bytes and a chain of 32 bits", () => {
    for (
      const [name, value] of [
        ["data", "0x1"],
        ["data", "5a"],
        ["data", null],
        ["destinationChainId", 2 ** 32],
        ["destinationChainId", -1],
        ["destinationChainId", "998"]
      ] as const
    ) {
      const found = CanonicalAction.requestSignable(mainnet, { action: { ...action, [name]: value }, nonce })
      const error = Result.getOrThrow(Result.flip(found))
      assert(error._tag === "UnsignableAction")
      assert.deepStrictEqual([error.reason, error.path], ["shape", [name]])
    }
    assert.isTrue(Result.isSuccess(
      CanonicalAction.requestSignable(mainnet, { action: { ...action, destinationChainId: 2 ** 32 - 1 }, nonce })
    ))
  })
})

describe("userSetAbstraction", () => {
  it.effect("is signed by co-signers in full and wrapped in short", () =>
    Effect.gen(function*() {
      for (const [short, full] of [["i", "disabled"], ["u", "unifiedAccount"], ["p", "portfolioMargin"]] as const) {
        const action = { type: "userSetAbstraction", ...chain, user: account, abstraction: full, nonce }
        const payloadAction = { ...action, abstraction: short }
        const signed = yield* Effect.promise(() =>
          signMultiSigUserSigned({
            signers: [wallet],
            multiSigUser: account,
            action,
            payloadAction,
            types: exchange.UserSetAbstractionTypes
          })
        )
        assert.deepStrictEqual<unknown>(signed.action.payload.action, payloadAction)
        const found = yield* CanonicalAction.recover(mainnet, { ...signed, nonce })
        assert(found.scheme === "multiSig")
        assert.deepStrictEqual(
          [found.signer, ...found.inner.map(({ signer }) => signer)],
          [wallet.address.toLowerCase(), wallet.address.toLowerCase()]
        )
      }
    }))
})
