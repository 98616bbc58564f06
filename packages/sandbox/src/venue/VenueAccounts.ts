/** Serves queries about an account: margin, orders and fills, fees and limits, roles, stake and signers. */
import { Address, type Hash, lowerCase } from "@trigate/domain/encoding/Encoding"
import * as InfoOperations from "@trigate/domain/info/InfoOperations"
import * as Hype from "@trigate/signing/Decimal"
import * as Schema from "effect/Schema"
import { unstakingTime } from "./AccountActions.ts"
import * as AccountReads from "./AccountReads.ts"
import { printUsd } from "./Assets.ts"
import { twapHistory } from "./Orders.ts"
import * as Reserves from "./Reserves.ts"
import { findAccount, type TradingAccount } from "./TradingState.ts"
import { vaultEquity } from "./Transfers.ts"
import { type Venue, zeroHash } from "./Venue.ts"
import * as VenueMarkets from "./VenueMarkets.ts"
import { accountOrNew, countRequests, findAgentUser, isValidAt, on } from "./VenueState.ts"
import type { Account, InfoView, VenueState } from "./VenueState.ts"

/** The state from which queries about a user are served. */
interface View {
  readonly venue: VenueState
  readonly trading: Venue
  readonly user: Address
  readonly account: Account
  readonly trader: TradingAccount
  readonly now: number
}

const amount = (wei: bigint): string => {
  const text = Hype.hypeFromWei(wei)
  return text.includes(".") ? text : `${text}.0`
}

const nothing = (): ReadonlyArray<never> => []

/** Maximum number of rows in a list that the sandbox's venue returns. */
const mostRows = 2_000

/** Makes the response to a query for sub-accounts: their names with the state that the query returns. */
const subAccountsWith =
  <State extends object>(state: (trading: Venue, account: TradingAccount) => State) => ({ trading, user }: View) => {
    const own = [...trading.state.accounts.values()].filter(({ subAccount }) => subAccount?.master === user)
    return own.length === 0 ? null : own.map((account) =>
      Object.assign({
        name: account.subAccount?.name ?? "",
        subAccountUser: account.address,
        master: user
      }, state(trading, account))
    )
  }

const subAccounts = subAccountsWith((trading, account) => ({
  clearinghouseState: AccountReads.clearinghouseState(trading, account, ""),
  spotState: AccountReads.spotState(trading, account)
}))

/** Sub-accounts with their state in the venue's own dex and in each other dex that they use. */
const subAccountsInDexes = subAccountsWith((trading, account) => ({
  dexToClearinghouseState: [...new Set(["", ...account.clearings.keys()])].map((dex) => [
    dex,
    AccountReads.clearinghouseState(trading, account, dex)
  ]),
  spotState: AccountReads.spotState(trading, account),
  ...(account.abstraction === "default" ? {} : { abstraction: account.abstraction })
}))

const listVaults = ({ trading }: Pick<View, "trading">) => [...trading.state.vaults]

const leadingVaults = (view: Pick<View, "trading" | "user">) =>
  listVaults(view).flatMap(([address, { leader, name }]) => leader === view.user ? [{ address, name }] : [])

interface StakingRow {
  readonly time: number
  readonly hash: Hash
  readonly delta: { readonly [event: string]: object }
}

/**
 * Returns delegations, staking deposits and withdrawals, newest first. A completed withdrawal from staking is listed
 * twice: at its start and at its arrival.
 */
const stakingHistory = ({ account, now, trader }: View): ReadonlyArray<StakingRow> => {
  const delegated = account.delegationHistory.map(({ hash, isUndelegate, time, validator, wei }): StakingRow => ({
    time,
    hash,
    delta: { delegate: { validator, amount: amount(wei), isUndelegate } }
  }))
  const moved = trader.ledger.flatMap(({ delta, hash, time }): ReadonlyArray<StakingRow> => {
    if (delta.type !== "cStakingTransfer") return []
    const { amount } = delta
    if (delta["isDeposit"] === true) return [{ time, hash, delta: { cDeposit: { amount } } }]
    const arrives = time + unstakingTime
    return [
      { time, hash, delta: { withdrawal: { amount, phase: "initiated" } } },
      ...(arrives > now
        ? []
        : [{ time: arrives, hash: zeroHash, delta: { withdrawal: { amount, phase: "finalized" } } }])
    ]
  })
  // the list is newest first, and the sort is stable. If a delegation and a deposit have the same time, the delegation
  // is listed first, because it was made after the deposit
  return [...delegated, ...moved.toReversed()].toSorted((one, other) => other.time - one.time).slice(0, mostRows)
}

/** Functions that make the responses to queries whose only parameter is `user`. */
const answers = {
  approvedBuilders: ({ trader }: View) => [...trader.builders.keys()],
  borrowLendUserState: ({ trader }: View) => Reserves.lendingUserState(trader),
  delegations: ({ account }: View) =>
    [...account.delegations].flatMap(([validator, { lockedUntil, wei }]) =>
      wei === 0n ? [] : [{ validator, amount: amount(wei), lockedUntilTimestamp: lockedUntil }]
    ),
  delegatorHistory: stakingHistory,
  delegatorRewards: nothing,
  delegatorSummary: ({ account, trader }: View) => ({
    delegated: amount([...account.delegations.values()].reduce((sum, { wei }) => sum + wei, 0n)),
    undelegated: amount(account.stake),
    totalPendingWithdrawal: amount(trader.unstaking.reduce((sum, { wei }) => sum + wei, 0n)),
    nPendingWithdrawals: trader.unstaking.length
  }),
  isVip: () => false,
  legalCheck: () => ({ acceptedTerms: true, userAllowed: true, restrictions: "n" }),
  leadingVaults,
  portfolio: ({ trader, trading }: View) => AccountReads.portfolio(trading, trader),
  referral: ({ trader, trading }: View) => AccountReads.referral(trading, trader),
  subAccounts,
  subAccounts2: subAccountsInDexes,
  twapHistory: ({ trader, trading }: View) => twapHistory(trading, trader),
  userDexAbstraction: ({ trader }: View) => trader.abstraction === "dexAbstraction" ? true : null,
  userToMultiSigSigners: ({ account }: View) => account.multiSig ?? null,
  userTwapSliceFills: ({ trader }: View) => trader.twapFills.slice(-mostRows).toReversed(),
  userVaultEquities: (view: View) =>
    listVaults(view).flatMap(([vaultAddress, vault]) => {
      const owned = vault.shares.get(view.user)
      return owned === undefined || owned.shares === 0n ? [] : [{
        vaultAddress,
        equity: printUsd(vaultEquity(view.trading, vaultAddress, vault, view.user)),
        lockedUntilTimestamp: owned.lockedUntil
      }]
    })
} satisfies { readonly [type: string]: (view: View) => unknown }

/** Queries for an account's rows since a start time. For `userBorrowLendInterest`, the list is always empty. */
const sinceTypes = ["userBorrowLendInterest", "userTwapSliceFillsByTime"] as const

/** Queries for an account's rows whose start time may be omitted. */
const ledgerTypes = ["userFunding", "userNonFundingLedgerUpdates"] as const

const types = Object.keys(answers).filter((type): type is keyof typeof answers => Object.hasOwn(answers, type))

/** The queries about a user that this module serves. They have no response schema. */
export const AccountRead = Schema.Union([
  Schema.Struct({ type: Schema.Literals(types), user: Address }),
  Schema.Struct({
    type: Schema.Literals(sinceTypes),
    user: Address,
    startTime: Schema.Natural,
    endTime: Schema.optionalKey(Schema.NullOr(Schema.Natural))
  }),
  Schema.Struct({
    type: Schema.Literals(ledgerTypes),
    user: Address,
    startTime: Schema.optionalKey(Schema.NullOr(Schema.Natural)),
    endTime: Schema.optionalKey(Schema.NullOr(Schema.Natural))
  }),
  Schema.Struct({ type: Schema.Literal("maxBuilderFee"), user: Address, builder: Address }),
  Schema.Struct({ type: Schema.Literal("preTransferCheck"), user: Address, source: Address })
])

/** Returns the rows of an account's list in a window, oldest first. */
const windowed = <Row>(
  rows: ReadonlyArray<Row>,
  window: { readonly startTime?: number | null; readonly endTime?: number | null },
  now: number,
  timeOf: (row: Row) => number
): ReadonlyArray<Row> =>
  rows.filter((row) => timeOf(row) >= (window.startTime ?? 0) && timeOf(row) <= (window.endTime ?? now))
    .slice(0, mostRows)

const ownTime = ({ time }: { readonly time: number }): number => time

/** Serves a query about a user at the time `now`. For an unknown address, returns the data of an empty account. */
export const answer = (
  venue: VenueState,
  trading: Venue,
  read: typeof AccountRead.Type,
  now: number
): unknown => {
  const user = lowerCase(read.user)
  const trader = findAccount(trading.state, user)
  switch (read.type) {
    case "maxBuilderFee":
      return Number(trader.builders.get(lowerCase(read.builder)) ?? 0n)
    case "preTransferCheck":
      // a transfer to a new account costs nothing
      return {
        fee: "0.0",
        isSanctioned: false,
        userExists: venue.accounts.has(user),
        userHasSentTx: countRequests(venue, user) > 0
      }
    case "userBorrowLendInterest":
      return []
    case "userFunding":
      return windowed(trader.fundings, read, now, ownTime).map(({ time, ...delta }) => ({
        time,
        hash: zeroHash,
        delta: { type: "funding", ...delta, nSamples: null }
      }))
    case "userNonFundingLedgerUpdates":
      return windowed(trader.ledger, read, now, ownTime)
    case "userTwapSliceFillsByTime":
      return windowed(trader.twapFills, read, now, ({ fill }) => fill.time)
    default:
      return answers[read.type]({ venue, trading, user, account: accountOrNew(venue, user), trader, now })
  }
}

const accountIn = ({ trading }: InfoView, user: Address): TradingAccount => findAccount(trading.state, user)

/**
 * The request limit that `userRateLimit` returns for an account without traded volume if no test has set a limit. The
 * sandbox does not enforce this limit.
 */
const startingRequests = 10_000

const findRole = (view: InfoView, user: Address) => {
  const { venue } = view
  const master = findAgentUser(venue, user, view.now)
  if (master !== undefined) return { role: "agent", data: { user: master } }
  const { subAccount } = accountIn(view, user)
  if (subAccount !== undefined) return { role: "subAccount", data: { master: subAccount.master } }
  if (accountOrNew(venue, user).leader !== undefined) return { role: "vault" }
  return { role: venue.accounts.has(user) ? "user" : "missing" }
}

/** The states of a TWAP order that has not ended. */
const unfinishedTwaps: ReadonlySet<string> = new Set(["activated", "waitingForTrigger"])

/** Returns the response to the query `webData2`: the venue's own dex and spot, as an account sees them. */
export const webData2 = (view: InfoView, address: Address) => {
  const { now, trading, venue } = view
  const user = lowerCase(address)
  const trader = accountIn(view, user)
  const { leader, mainAgent } = accountOrNew(venue, user)
  const agent = mainAgent !== undefined && isValidAt(now)(mainAgent) ? mainAgent : undefined
  const [meta, assetCtxs] = VenueMarkets.metaAndContexts(view, "") ?? []
  const [, spotAssetCtxs] = VenueMarkets.spotMetaAndContexts(view)
  return {
    clearinghouseState: AccountReads.clearinghouseState(trading, trader, ""),
    leadingVaults: leadingVaults({ trading, user }),
    totalVaultEquity: printUsd(
      listVaults(view).reduce((sum, [vaultAddress, vault]) => sum + vaultEquity(trading, vaultAddress, vault, user), 0n)
    ),
    openOrders: AccountReads.openIn(trading, trader, "").map(([asset, order]) => AccountReads.printOrder(asset, order)),
    agentAddress: agent?.address ?? null,
    agentValidUntil: agent?.validUntil ?? null,
    cumLedger: printUsd(trader.deposited),
    meta,
    assetCtxs,
    serverTime: now,
    isVault: leader !== undefined && trader.subAccount === undefined,
    user,
    twapStates: twapHistory(trading, trader).flatMap(({ state, status: { status }, twapId }) =>
      unfinishedTwaps.has(status) ? [[twapId, state]] : []
    ),
    spotState: AccountReads.spotState(trading, trader),
    spotAssetCtxs,
    ...(trader.optedOutOfDusting ? { optOutOfSpotDusting: true } : {}),
    perpsAtOpenInterestCap: VenueMarkets.cappedCoins(view, "")
  }
}

/** The handlers of queries about an account. For an unknown address, they return the data of an empty account. */
export const tradingAnswers = {
  clearinghouseState: on(
    InfoOperations.clearinghouseState,
    (view, { dex, user }) => AccountReads.clearinghouseState(view.trading, accountIn(view, user), dex ?? "")
  ),
  spotClearinghouseState: on(
    InfoOperations.spotClearinghouseState,
    (view, { user }) => AccountReads.spotState(view.trading, accountIn(view, user))
  ),
  userAbstraction: on(InfoOperations.userAbstraction, (view, { user }) => accountIn(view, user).abstraction),
  openOrders: on(
    InfoOperations.openOrders,
    (view, { dex, user }) =>
      AccountReads.openIn(view.trading, accountIn(view, user), dex ?? "").map(([asset, order]) =>
        AccountReads.printOpen(asset, order)
      )
  ),
  frontendOpenOrders: on(
    InfoOperations.frontendOpenOrders,
    (view, { dex, user }) =>
      AccountReads.openIn(view.trading, accountIn(view, user), dex ?? "").map(([asset, order]) =>
        AccountReads.printOrder(asset, order)
      )
  ),
  orderStatus: on(InfoOperations.orderStatus, (view, { oid, user }) => {
    const found = AccountReads.findRecord(view.trading, accountIn(view, user), oid)
    return found === undefined ? { status: "unknownOid" as const } : { status: "order" as const, order: found }
  }),
  historicalOrders: on(
    InfoOperations.historicalOrders,
    (view, { user }) => AccountReads.history(view.trading, accountIn(view, user), mostRows)
  ),
  userFills: on(
    InfoOperations.userFills,
    (view, { aggregateByTime, user }) =>
      AccountReads.listFills(
        accountIn(view, user),
        { isAggregated: aggregateByTime === true, isReversed: true },
        mostRows
      )
  ),
  userFillsByTime: on(
    InfoOperations.userFillsByTime,
    (view, { aggregateByTime, endTime, reversed, startTime, user }) => {
      const period = { startTime: Number(startTime), endTime: Number(endTime ?? view.now) }
      const order = { isAggregated: aggregateByTime === true, isReversed: reversed === true }
      return AccountReads.listFills(accountIn(view, user), { ...period, ...order }, mostRows)
    }
  ),
  userRole: on(InfoOperations.userRole, (view, { user }) => findRole(view, lowerCase(user))),
  userRateLimit: on(InfoOperations.userRateLimit, (view, { user }) => {
    const { requestLimit } = accountOrNew(view.venue, user)
    const account = accountIn(view, user)
    const limit = Number.isFinite(requestLimit) ? requestLimit : startingRequests
    return {
      cumVlm: AccountReads.formatVolume(account),
      nRequestsUsed: countRequests(view.venue, user),
      nRequestsCap: limit + account.reserved + AccountReads.wholeDollars(account),
      nRequestsSurplus: 0
    }
  }),
  userFees: on(InfoOperations.userFees, (view, { user }) => AccountReads.userFees(accountIn(view, user), view.now)),
  extraAgents: on(
    InfoOperations.extraAgents,
    (view, { user }) => accountOrNew(view.venue, user).extraAgents.filter(isValidAt(view.now))
  )
}
