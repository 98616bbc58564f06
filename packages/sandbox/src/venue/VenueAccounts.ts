/** Queries about a user without a type: stake, signers, and the empty lists of what the sandbox does not have. */
import { Address, lowerCase } from "@trigate/domain/encoding/Hex"
import * as Hype from "@trigate/signing/Hype"
import * as Schema from "effect/Schema"
import { type Account, accountOf, type VenueState } from "./VenueState.ts"

/** What a query is answered from. */
interface View {
  readonly venue: VenueState
  readonly user: Address
  readonly account: Account
  readonly now: number
}

const amount = (wei: bigint): string => {
  const text = Hype.hypeFromWei(wei)
  return text.includes(".") ? text : `${text}.0`
}

const nothing = (): ReadonlyArray<never> => []

const periods = ["day", "week", "month", "allTime", "perpDay", "perpWeek", "perpMonth", "perpAllTime"]

/** The answer to each query whose only parameter that counts is `user`. */
const answers = {
  approvedBuilders: nothing,
  borrowLendUserState: () => ({ tokenToState: [], health: "healthy", healthFactor: null }),
  delegations: ({ account }: View) =>
    [...account.delegations].flatMap(([validator, { lockedUntil, wei }]) =>
      wei === 0n ? [] : [{ validator, amount: amount(wei), lockedUntilTimestamp: lockedUntil }]
    ),
  delegatorHistory: ({ account }: View) =>
    account.delegationHistory.map(({ hash, isUndelegate, time, validator, wei }) => ({
      time,
      hash,
      delta: { delegate: { validator, amount: amount(wei), isUndelegate } }
    })),
  delegatorRewards: nothing,
  delegatorSummary: ({ account }: View) => ({
    delegated: amount([...account.delegations.values()].reduce((sum, { wei }) => sum + wei, 0n)),
    undelegated: amount(account.stake),
    totalPendingWithdrawal: "0.0",
    nPendingWithdrawals: 0
  }),
  isVip: () => false,
  leadingVaults: nothing,
  maxBuilderFee: () => 0,
  portfolio: () => periods.map((period) => [period, { accountValueHistory: [], pnlHistory: [], vlm: "0.0" }]),
  referral: () => ({
    referredBy: null,
    cumVlm: "0.0",
    unclaimedRewards: "0.0",
    claimedRewards: "0.0",
    builderRewards: "0.0",
    referrerState: { stage: "needToTrade", data: { required: "10000.0" } },
    rewardHistory: [],
    tokenToState: []
  }),
  subAccounts: () => null,
  subAccounts2: () => null,
  twapHistory: nothing,
  userAbstraction: () => "default",
  userDexAbstraction: () => null,
  userToMultiSigSigners: ({ account }: View) => account.multiSig ?? null,
  userTwapSliceFills: nothing,
  userVaultEquities: nothing
} satisfies { readonly [type: string]: (view: View) => unknown }

/** The lists of an account that begin at an instant: nothing happened since. */
const sinceTypes = [
  "userBorrowLendInterest",
  "userFunding",
  "userNonFundingLedgerUpdates",
  "userTwapSliceFillsByTime"
] as const

const types = Object.keys(answers).filter((type): type is keyof typeof answers => Object.hasOwn(answers, type))

/** The queries about a user without a type that are answered here. */
export const AccountRead = Schema.Union([
  Schema.Struct({ type: Schema.Literals(types), user: Address }),
  Schema.Struct({ type: Schema.Literals(sinceTypes), user: Address, startTime: Schema.Natural })
])

/** Answers a query about a user at the instant `now`. An address that the venue does not know has an empty account. */
export const answer = (venue: VenueState, read: typeof AccountRead.Type, now: number): unknown => {
  switch (read.type) {
    case "userBorrowLendInterest":
    case "userFunding":
    case "userNonFundingLedgerUpdates":
    case "userTwapSliceFillsByTime":
      return []
    default: {
      const user = lowerCase(read.user)
      return answers[read.type]({ venue, user, account: accountOf(venue, user), now })
    }
  }
}

/** `validatorSummaries`: the validators; nothing is known of their blocks. */
export const validators = ({ validators }: VenueState) =>
  [...validators].map(([validator, { jailed, name, stake }]) => ({
    validator,
    signer: validator,
    name,
    description: "A validator of the sandbox",
    nRecentBlocks: 0,
    stake: Number(stake),
    isJailed: jailed,
    unjailableAfter: jailed ? 0 : null,
    isActive: !jailed,
    commission: "0.04",
    stats: ["day", "week", "month"].map((period) => [
      period,
      { uptimeFraction: jailed ? "0.0" : "1.0", predictedApr: "0.0", nSamples: 0 }
    ])
  }))
