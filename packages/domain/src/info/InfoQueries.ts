/**
 * The types of queries of `POST /info` that have no operation of their own: rate-limit weight, topic and maximum age.
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
  /** Whether only client libraries list the type. The venue may refuse such a query. */
  readonly isUndocumented?: true
  /** The members of a valid request besides `type`. Default: `user` if the topic is a user, otherwise none. */
  readonly example?: { readonly [member: string]: unknown }
}

/** The number of response rows that add 1 to the weight of a query (source: the venue's documentation). */
export const rowsPerWeight = 20

/** Maximum number of rows in the venue's response to a query over a time range. */
export const rowsOfTime = 500

/** Maximum number of fills or orders in the venue's response. */
export const rowsOfOrders = 2000

export const second = 1000
export const minute = 60 * second

/** The default maximum age of a candle window's forming bar, in milliseconds. */
export const formingFresh = second

/** The query members that contain the address of an account, or a list of them, whose state the query reads. */
export const accountMembers = ["user", "users", "source", "vaultAddress"] as const

/** An account that exists in every new sandbox. */
export const exampleUser = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"

const marketQuery = { weight: 20, about: "market" } as const
const listing = { ...marketQuery, fresh: minute } as const
export const rates = { ...marketQuery, fresh: second } as const
const userQuery = { weight: 20, about: "user" } as const
const userList = { ...userQuery, rows: rowsOfTime } as const
const userOrders = { ...userQuery, rows: rowsOfOrders } as const

const sdk = (row: InfoQuery): InfoQuery => ({ ...row, isUndocumented: true })
export const example = (row: InfoQuery, members: InfoQuery["example"] & object): InfoQuery => ({
  ...row,
  example: row.about === "user" ? { user: exampleUser, ...members } : members
})

/** The query types of which only the member `type` is validated. `InfoOperations` declares the other query types. */
export const passthroughQueries: { readonly [type: string]: InfoQuery } = {
  activeAssetData: example(userQuery, { coin: "BTC" }),
  allBorrowLendReserveStates: rates,
  approvedBuilders: userQuery,
  batchClearinghouseStates: sdk({ ...userQuery, example: { users: [exampleUser] } }),
  borrowLendReserveState: example(rates, { token: 0 }),
  borrowLendUserState: userQuery,
  delegations: userQuery,
  delegatorHistory: userList,
  delegatorRewards: userList,
  delegatorSummary: userQuery,
  exchangeStatus: { weight: 2, about: "market" },
  gossipPriorityAuctionStatus: marketQuery,
  gossipRootIps: sdk(listing),
  isVip: sdk(userQuery),
  leadingVaults: sdk(userQuery),
  legalCheck: sdk(userQuery),
  liquidatable: sdk(marketQuery),
  marginTable: sdk(example(listing, { id: 50 })),
  maxBuilderFee: example(userQuery, { builder: exampleUser }),
  maxMarketOrderNtls: sdk(listing),
  outcomeDeployerLimits: { ...userQuery, example: { venue: "abc" } },
  outcomeTemplates: listing,
  perpAnnotation: example(listing, { coin: "BTC" }),
  perpCategories: listing,
  perpConciseAnnotations: listing,
  perpDeployAuctionStatus: marketQuery,
  perpDexLimits: example(listing, { dex: "xyz" }),
  perpDexStatus: example(marketQuery, { dex: "" }),
  perpsAtOpenInterestCap: marketQuery,
  portfolio: userQuery,
  predictedFundings: marketQuery,
  preTransferCheck: sdk(example(userQuery, { source: exampleUser })),
  referral: userQuery,
  settledOutcome: example(listing, { outcome: 0 }),
  spotDeployState: userQuery,
  spotMetaAndAssetCtxs: marketQuery,
  spotPairDeployAuctionStatus: marketQuery,
  subAccounts: userQuery,
  subAccounts2: sdk(userQuery),
  tokenDetails: example(marketQuery, { tokenId: "0x6d1e7cde53ba9467b783cb7c530ce054" }),
  twapHistory: userOrders,
  usdcRouting: sdk(listing),
  userBorrowLendInterest: sdk(example(userQuery, { startTime: 0 })),
  userDexAbstraction: userQuery,
  userFunding: example(userList, { startTime: 0 }),
  userNonFundingLedgerUpdates: example(userList, { startTime: 0 }),
  userStarState: sdk(userQuery),
  userToMultiSigSigners: userQuery,
  userTwapSliceFills: userOrders,
  userTwapSliceFillsByTime: example(userOrders, { startTime: 0 }),
  userVaultEquities: userQuery,
  validatorL1Votes: sdk(marketQuery),
  validatorSummaries: marketQuery,
  vaultDetails: { ...userQuery, example: { vaultAddress: "0xdfc24b077bc1425ad1dea75bcb6f8158e10df303" } },
  vaultSummaries: marketQuery,
  webData2: userQuery
}
