import { assert, describe, it } from "@effect/vitest"
import * as exchange from "@nktkas/hyperliquid/api/exchange"
import * as UserSigned from "@trigate/signing/UserSigned"
import { mainnet } from "@trigate/signing/VenueProfile"

/** The types that the peer library signs, by the action type that they belong to. */
const peer: { readonly [actionType: string]: object } = {
  approveAgent: exchange.ApproveAgentTypes,
  approveBuilderFee: exchange.ApproveBuilderFeeTypes,
  cDeposit: exchange.CDepositTypes,
  cWithdraw: exchange.CWithdrawTypes,
  convertToMultiSigUser: exchange.ConvertToMultiSigUserTypes,
  linkStakingUser: exchange.LinkStakingUserTypes,
  sendAsset: exchange.SendAssetTypes,
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
      const type = UserSigned.find(actionType)
      assert(type !== undefined)
      const { fields, primaryType } = UserSigned.struct(mainnet)(type)
      assert.deepStrictEqual<unknown>({ [primaryType]: fields }, types)
    })
  }

  it("tells which field repeats the nonce, in every one", () => {
    const fields = Object.keys(peer).map((actionType) => {
      const type = UserSigned.find(actionType)
      assert(type !== undefined)
      return [actionType, UserSigned.nonceField(type)?.name] as const
    })
    const times = fields.filter(([, name]) => name === "time").map(([actionType]) => actionType)
    assert.deepStrictEqual(times, ["spotSend", "usdSend", "withdraw3"])
    assert.isTrue(fields.every(([, name]) => name === "time" || name === "nonce"))
  })

  it("is not made up for types that are not known", () => {
    assert.isUndefined(UserSigned.find("sendToEvmWithData"))
    assert.isUndefined(UserSigned.find("order"))
  })
})
