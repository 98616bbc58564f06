/**
 * The types of `POST /info` queries that the venue documents: for each, the rate-limit weight, the topic, and the
 * maximum age of a cached response.
 *
 * By default, market data that bots poll is cached for one second, and market data that changes rarely for one minute.
 * A cached response about the state of a user is served only while the rate limit is exhausted (see {@link
 * staleWhenLimitedSetting}), or if the account is watched. The setting {@link freshnessSetting} changes these ages.
 * Only equal queries share a response, so a user's responses are never returned for another user.
 */
import * as Duration from "effect/Duration"

/** The setting that defines the maximum age of cached responses for each query type. */
export const freshnessSetting = "TRIGATE_INFO_FRESHNESS"

/** The setting for the maximum age of responses while the rate limit is exhausted. */
export const staleWhenLimitedSetting = "TRIGATE_STALE_WHEN_LIMITED"

/** The default of {@link staleWhenLimitedSetting}. */
export const staleWhenLimitedDefault = "5 seconds"

/**
 * The topic of a query, which limits the maximum age of its responses:
 *
 * - `market`: data that is the same for every caller;
 * - `user`: the state of one user, on which bots act;
 * - `action`: the outcome of an action, which an older response would not contain.
 */
export type About = "market" | "user" | "action"

/** The longest maximum age that {@link freshnessSetting} accepts, by topic. */
export const oldest: { readonly [Kind in About]: Duration.Duration } = {
  market: Duration.hours(1),
  user: Duration.minutes(1),
  action: Duration.zero
}

/** The properties of a query type. */
export interface InfoQuery {
  readonly weight: 2 | 20 | 60
  readonly about: About
  /**
   * Maximum number of rows in a response. Present if rows add to the weight: 1 for every {@link rowsPerWeight} rows.
   */
  readonly rows?: number
  /** The default maximum age of a response, in milliseconds. If it is absent, responses are not cached. */
  readonly fresh?: number
}

/** The number of response rows that add 1 to the weight of a query (source: the venue's documentation). */
export const rowsPerWeight = 20

/** Maximum number of rows in the venue's response to a query over a time range. */
export const rowsOfTime = 500

/** Maximum number of fills or orders in the venue's response. */
export const rowsOfOrders = 2000

const second = 1000
const minute = 60 * second

/** The default maximum age of a candle window's forming bar, in milliseconds. */
export const formingFresh = second

/** The query members that contain the address of an account whose state the query reads. */
export const accountMembers = ["user", "vaultAddress"] as const

const market = { weight: 20, about: "market" } as const
const listing = { ...market, fresh: minute } as const
const user = { weight: 20, about: "user" } as const
const userList = { ...user, rows: rowsOfTime } as const
const userOrders = { ...user, rows: rowsOfOrders } as const

/** The query types of which only the member `type` is validated. `InfoOperations` declares the other query types. */
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

/** The final states of orders, as the venue's client libraries list them. */
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

/** The maximum age of the responses to a query type; 0 disables caching. */
export interface Freshness {
  readonly type: string
  readonly fresh: Duration.Duration
}
