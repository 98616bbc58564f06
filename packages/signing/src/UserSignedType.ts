/** The user-signed actions whose signed fields are known. */
import type { Field } from "./Signable.ts"

/** A user-signed action as data; the field that names the network comes before `fields`, in every one of them. */
export interface UserSignedType {
  readonly actionType: string
  /** Type name without the profile's prefix. */
  readonly name: string
  readonly fields: ReadonlyArray<Field>
}

/** Delegation of stake to a validator. */
export const tokenDelegate: UserSignedType = {
  actionType: "tokenDelegate",
  name: "TokenDelegate",
  fields: [
    { name: "validator", type: "address" },
    { name: "wei", type: "uint64" },
    { name: "isUndelegate", type: "bool" },
    { name: "nonce", type: "uint64" }
  ]
}

/** A transfer, met inside multi-sig wrappers; its addresses are signed as text, letter case included. */
export const sendAsset: UserSignedType = {
  actionType: "sendAsset",
  name: "SendAsset",
  fields: [
    { name: "destination", type: "string" },
    { name: "sourceDex", type: "string" },
    { name: "destinationDex", type: "string" },
    { name: "token", type: "string" },
    { name: "amount", type: "string" },
    { name: "fromSubAccount", type: "string" },
    { name: "nonce", type: "uint64" }
  ]
}

const nonce: Field = { name: "nonce", type: "uint64" }

const time: Field = { name: "time", type: "uint64" }

const text = (name: string): Field => ({ name, type: "string" })

const address = (name: string): Field => ({ name, type: "address" })

const flag = (name: string): Field => ({ name, type: "bool" })

const wei: Field = { name: "wei", type: "uint64" }

/** The other user-signed actions of flat fields, as the venue's documentation and client libraries sign them. */
const further: ReadonlyArray<UserSignedType> = [
  { actionType: "usdSend", name: "UsdSend", fields: [text("destination"), text("amount"), time] },
  { actionType: "spotSend", name: "SpotSend", fields: [text("destination"), text("token"), text("amount"), time] },
  { actionType: "withdraw3", name: "Withdraw", fields: [text("destination"), text("amount"), time] },
  { actionType: "usdClassTransfer", name: "UsdClassTransfer", fields: [text("amount"), flag("toPerp"), nonce] },
  { actionType: "cDeposit", name: "CDeposit", fields: [wei, nonce] },
  { actionType: "cWithdraw", name: "CWithdraw", fields: [wei, nonce] },
  { actionType: "approveAgent", name: "ApproveAgent", fields: [address("agentAddress"), text("agentName"), nonce] },
  {
    actionType: "approveBuilderFee",
    name: "ApproveBuilderFee",
    fields: [text("maxFeeRate"), address("builder"), nonce]
  },
  { actionType: "convertToMultiSigUser", name: "ConvertToMultiSigUser", fields: [text("signers"), nonce] },
  { actionType: "linkStakingUser", name: "LinkStakingUser", fields: [address("user"), flag("isFinalize"), nonce] },
  {
    actionType: "stakingLinkDisableTradingUser",
    name: "StakingLinkDisableTradingUser",
    fields: [address("tradingUser"), nonce]
  },
  { actionType: "userDexAbstraction", name: "UserDexAbstraction", fields: [address("user"), flag("enabled"), nonce] },
  { actionType: "userPortfolioMargin", name: "UserPortfolioMargin", fields: [address("user"), flag("enabled"), nonce] },
  {
    actionType: "userSetAbstraction",
    name: "UserSetAbstraction",
    fields: [address("user"), text("abstraction"), nonce]
  }
]

const known = new Map([tokenDelegate, sendAsset, ...further].map((type) => [type.actionType, type]))

/** The type that signs actions of this `type`, if it is a known user-signed one. */
export const find = (actionType: unknown): UserSignedType | undefined =>
  typeof actionType === "string" ? known.get(actionType) : undefined

/** The field in which an action repeats the nonce of its body: transfers and withdrawals call it their time. */
export const nonceField = ({ fields }: UserSignedType): Field | undefined =>
  fields.find(({ name }) => name === nonce.name || name === time.name)
