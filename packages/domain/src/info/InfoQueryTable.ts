/**
 * The types of `POST /info` queries that the venue documents, as data: the weight of each, its topic, and the maximum age of a
 * cached response.
 *
 * By default, market data that bots poll is fresh for a second, and data that changes rarely for a minute. The state of a user is
 * always read upstream, unless the rate limit is exhausted ({@link staleWhenLimitedSetting}). The setting {@link freshnessSetting}
 * changes these times. Only equal queries share a response, so a user's responses are never returned for another user.
 */
import * as Duration from "effect/Duration"

/** The setting for the maximum age of responses, by type of query. */
export const freshnessSetting = "TRIGATE_INFO_FRESHNESS"

/** The setting for the maximum age of responses while the rate limit is exhausted, and its default. */
export const staleWhenLimitedSetting = "TRIGATE_STALE_WHEN_LIMITED"
export const staleWhenLimitedDefault = "5 seconds"

/**
 * The topic of a query, which bounds the age of its responses:
 *
 * - `market`: the same for every caller;
 * - `user`: one user, and a bot acts on it;
 * - `action`: the outcome of an action; an older response would deny it.
 */
export type About = "market" | "user" | "action"

/** The maximum ages that the setting can allow. */
export const oldest: { readonly [Kind in About]: Duration.Duration } = {
  market: Duration.hours(1),
  user: Duration.minutes(1),
  action: Duration.zero
}

/** A type of query. */
export interface InfoQuery {
  readonly weight: 2 | 20 | 60
  readonly about: About
  /** Rows that an answer holds at most, for a type whose rows cost weight: one for each {@link rowsPerWeight}. */
  readonly rows?: number
  /** How long an answer is fresh unless the setting says otherwise, in milliseconds; not cached when not given. */
  readonly fresh?: number
}

/** Rows of a list that cost one weight more (the venue's documents, rate limits). */
export const rowsPerWeight = 20

/** The most rows that the venue returns of what happened in a time. */
export const rowsOfTime = 500

/** The most fills and orders that the venue returns. */
export const rowsOfOrders = 2000

const second = 1000
const minute = 60 * second

/** How long the bar of a candle window that is forming is fresh unless the setting says otherwise, in milliseconds. */
export const formingFresh = second

/** The members of a query that name the accounts whose state it reads. */
export const accountMembers = ["user", "vaultAddress"] as const

const market = { weight: 20, about: "market" } as const
const listing = { ...market, fresh: minute } as const
const user = { weight: 20, about: "user" } as const
const userList = { ...user, rows: rowsOfTime } as const
const userOrders = { ...user, rows: rowsOfOrders } as const

/** The types whose content is not checked. `InfoOperations` declares the others. */
export const passthroughQueries: { readonly [type: string]: InfoQuery } = {
  activeAssetData: user,
  alignedQuoteTokenInfo: market,
  delegations: user,
  delegatorHistory: userList,
  delegatorRewards: userList,
  delegatorSummary: user,
  exchangeStatus: { weight: 2, about: "market" },
  legalCheck: user,
  maxBuilderFee: user,
  perpDeployAuctionStatus: market,
  perpDexLimits: listing,
  perpDexStatus: market,
  perpsAtOpenInterestCap: market,
  portfolio: user,
  predictedFundings: market,
  referral: user,
  spotDeployState: user,
  spotMetaAndAssetCtxs: market,
  spotPairDeployAuctionStatus: market,
  subAccounts: user,
  tokenDetails: market,
  twapHistory: userOrders,
  userFunding: userList,
  userNonFundingLedgerUpdates: userList,
  userToMultiSigSigners: user,
  userTwapSliceFills: userOrders,
  userTwapSliceFillsByTime: userOrders,
  userVaultEquities: user,
  validatorSummaries: market,
  vaultDetails: user,
  vaultSummaries: market,
  webData2: user
}

/** The states in which nothing happens to an order any more, as the venue's clients list them. */
export const finalOrderStates: ReadonlySet<unknown> = new Set([
  "filled",
  "canceled",
  "rejected",
  "marginCanceled",
  "vaultWithdrawalCanceled",
  "openInterestCapCanceled",
  "selfTradeCanceled",
  "reduceOnlyCanceled",
  "siblingFilledCanceled",
  "delistedCanceled",
  "liquidatedCanceled",
  "outcomeSettledCanceled",
  "scheduledCancel",
  "internalCancel",
  "tickRejected",
  "minTradeNtlRejected",
  "perpMarginRejected",
  "reduceOnlyRejected",
  "badAloPxRejected",
  "iocCancelRejected",
  "badTriggerPxRejected",
  "marketOrderNoLiquidityRejected",
  "positionIncreaseAtOpenInterestCapRejected",
  "positionFlipAtOpenInterestCapRejected",
  "tooAggressiveAtOpenInterestCapRejected",
  "openInterestIncreaseRejected",
  "insufficientSpotBalanceRejected",
  "oracleRejected",
  "perpMaxPositionRejected"
])

/** How old the responses to a type of query may be; 0 caches none. */
export interface Freshness {
  readonly type: string
  readonly fresh: Duration.Duration
}
