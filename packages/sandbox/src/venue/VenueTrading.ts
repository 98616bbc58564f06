/**
 * Serves queries about an account: margin and balances, orders and fills, fees and limits, roles and API wallets. Each
 * query type has a response schema.
 */
import { type Address, lowerCase } from "@trigate/domain/encoding/Hex"
import * as InfoOperations from "@trigate/domain/info/InfoOperations"
import * as AccountReads from "./AccountReads.ts"
import * as OrderReads from "./OrderReads.ts"
import type { TradingAccount } from "./TradingAccount.ts"
import { findAccount } from "./TradingState.ts"
import { type InfoView, on } from "./VenueAnswer.ts"
import { accountOrNew, countRequests, findAgentUser, isValidAt } from "./VenueState.ts"

const accountIn = ({ trading }: InfoView, user: Address): TradingAccount => findAccount(trading.state, user)

/** Maximum number of rows in a list that the venue returns. */
const mostRows = 2_000

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

/** The handlers of queries about an account. For an unknown address, they return the data of an empty account. */
export const answers = {
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
      OrderReads.openIn(view.trading, accountIn(view, user), dex ?? "").map(([asset, order]) =>
        OrderReads.printOpen(asset, order)
      )
  ),
  frontendOpenOrders: on(
    InfoOperations.frontendOpenOrders,
    (view, { dex, user }) =>
      OrderReads.openIn(view.trading, accountIn(view, user), dex ?? "").map(([asset, order]) =>
        OrderReads.printOrder(asset, order)
      )
  ),
  orderStatus: on(InfoOperations.orderStatus, (view, { oid, user }) => {
    const found = OrderReads.findRecord(view.trading, accountIn(view, user), oid)
    return found === undefined ? { status: "unknownOid" as const } : { status: "order" as const, order: found }
  }),
  historicalOrders: on(
    InfoOperations.historicalOrders,
    (view, { user }) => OrderReads.history(view.trading, accountIn(view, user), mostRows)
  ),
  userFills: on(
    InfoOperations.userFills,
    (view, { aggregateByTime, user }) => {
      const { fills } = accountIn(view, user)
      return (aggregateByTime === true ? OrderReads.aggregateFills(fills) : fills).slice(-mostRows).toReversed()
    }
  ),
  userFillsByTime: on(
    InfoOperations.userFillsByTime,
    (view, { aggregateByTime, endTime, reversed, startTime, user }) => {
      const found = accountIn(view, user).fills.filter(({ time }) => time >= startTime && time <= (endTime ?? view.now))
      const fills = aggregateByTime === true ? OrderReads.aggregateFills(found) : found
      return (reversed === true ? fills.toReversed() : fills).slice(0, mostRows)
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
