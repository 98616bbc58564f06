/** The venue's `POST /info` about a user: stake, balances, roles, and the empty lists of an account without trades. */
import { Address, lowerCase } from "@trigate/domain/Hex"
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

const margin = { accountValue: "0.0", totalNtlPos: "0.0", totalRawUsd: "0.0", totalMarginUsed: "0.0" }

const periods = ["day", "week", "month", "allTime", "perpDay", "perpWeek", "perpMonth", "perpAllTime"]

/** Fee rates of an account without volume, as the venue's documents list them. */
const feeSchedule = {
  cross: "0.00045",
  add: "0.00015",
  spotCross: "0.0007",
  spotAdd: "0.0004",
  tiers: {
    vip: [
      { ntlCutoff: "5000000.0", cross: "0.0004", add: "0.00012", spotCross: "0.0006", spotAdd: "0.0003" },
      { ntlCutoff: "25000000.0", cross: "0.00035", add: "0.00008", spotCross: "0.0005", spotAdd: "0.0002" },
      { ntlCutoff: "100000000.0", cross: "0.0003", add: "0.00004", spotCross: "0.0004", spotAdd: "0.0001" },
      { ntlCutoff: "500000000.0", cross: "0.00028", add: "0.0", spotCross: "0.00035", spotAdd: "0.0" },
      { ntlCutoff: "2000000000.0", cross: "0.00026", add: "0.0", spotCross: "0.0003", spotAdd: "0.0" },
      { ntlCutoff: "7000000000.0", cross: "0.00024", add: "0.0", spotCross: "0.00025", spotAdd: "0.0" }
    ],
    mm: [
      { makerFractionCutoff: "0.005", add: "-0.00001" },
      { makerFractionCutoff: "0.015", add: "-0.00002" },
      { makerFractionCutoff: "0.03", add: "-0.00003" }
    ]
  },
  referralDiscount: "0.04",
  stakingDiscountTiers: [
    { bpsOfMaxSupply: "0.0", discount: "0.0" },
    { bpsOfMaxSupply: "0.0001", discount: "0.05" },
    { bpsOfMaxSupply: "0.001", discount: "0.1" },
    { bpsOfMaxSupply: "0.01", discount: "0.15" },
    { bpsOfMaxSupply: "0.1", discount: "0.2" },
    { bpsOfMaxSupply: "1.0", discount: "0.3" },
    { bpsOfMaxSupply: "5.0", discount: "0.4" }
  ]
}

const noDiscount = { bpsOfMaxSupply: "0.0", discount: "0.0" }

/** Actions that the venue lets an account without volume send. */
const startingRequests = 10_000

const roleOf = ({ account, user, venue }: View) => {
  const master = venue.agents.get(user)
  if (master !== undefined) return { role: "agent", data: { user: master } }
  if (account.leader !== undefined) return { role: "vault" }
  return { role: venue.accounts.has(user) ? "user" : "missing" }
}

/** The answer to each query whose only parameter that counts is `user`. */
const answers = {
  approvedBuilders: nothing,
  borrowLendUserState: () => ({ tokenToState: [], health: "healthy", healthFactor: null }),
  clearinghouseState: ({ now }: View) => ({
    marginSummary: margin,
    crossMarginSummary: margin,
    crossMaintenanceMarginUsed: "0.0",
    withdrawable: "0.0",
    assetPositions: [],
    time: now
  }),
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
  // the API wallets here have no names, and the venue lists only those with one
  extraAgents: nothing,
  frontendOpenOrders: nothing,
  historicalOrders: nothing,
  isVip: () => false,
  leadingVaults: nothing,
  maxBuilderFee: () => 0,
  openOrders: nothing,
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
  spotClearinghouseState: ({ account }: View) => ({
    balances: account.spot.map(({ coin, token, total }) => ({ coin, token, total, hold: "0.0", entryNtl: "0.0" }))
  }),
  subAccounts: () => null,
  subAccounts2: () => null,
  twapHistory: nothing,
  userAbstraction: () => "default",
  userDexAbstraction: () => null,
  userFees: () => ({
    dailyUserVlm: [],
    feeSchedule,
    userCrossRate: feeSchedule.cross,
    userAddRate: feeSchedule.add,
    userSpotCrossRate: feeSchedule.spotCross,
    userSpotAddRate: feeSchedule.spotAdd,
    activeReferralDiscount: "0.0",
    trial: null,
    feeTrialEscrow: "0.0",
    nextTrialAvailableTimestamp: null,
    stakingLink: null,
    activeStakingDiscount: noDiscount
  }),
  userFills: nothing,
  userRateLimit: ({ account: { requests } }: View) => ({
    cumVlm: "0.0",
    nRequestsUsed: requests.sent,
    nRequestsCap: Number.isFinite(requests.limit) ? requests.limit : startingRequests,
    nRequestsSurplus: 0
  }),
  userRole: roleOf,
  userToMultiSigSigners: ({ account }: View) => account.multiSig ?? null,
  userTwapSliceFills: nothing,
  userVaultEquities: nothing
} satisfies { readonly [type: string]: (view: View) => unknown }

/** The lists of an account that begin at an instant: nothing happened since. */
const sinceTypes = [
  "userBorrowLendInterest",
  "userFillsByTime",
  "userFunding",
  "userNonFundingLedgerUpdates",
  "userTwapSliceFillsByTime"
] as const

const types = Object.keys(answers).filter((type): type is keyof typeof answers => Object.hasOwn(answers, type))

/** The queries about a user that are answered here. */
export const AccountRead = Schema.Union([
  Schema.Struct({ type: Schema.Literals(types), user: Address }),
  Schema.Struct({ type: Schema.Literals(sinceTypes), user: Address, startTime: Schema.Natural }),
  Schema.Struct({
    type: Schema.Literal("orderStatus"),
    user: Address,
    oid: Schema.Union([Schema.Natural, Schema.String.check(Schema.isPattern(/^0x[0-9a-fA-F]{32}$/u))])
  })
])

/** Answers a query about a user at the instant `now`. An address that the venue does not know has an empty account. */
export const answer = (venue: VenueState, read: typeof AccountRead.Type, now: number): unknown => {
  switch (read.type) {
    case "orderStatus":
      return { status: "unknownOid" }
    case "userBorrowLendInterest":
    case "userFillsByTime":
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
