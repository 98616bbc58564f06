/** Auctions and their bids, and lending reserves and their supplies. */
import * as Random from "../Seed.ts"
import { actor, done, refuse } from "./AccountActions.ts"
import type { Handler } from "./AccountActions.ts"
import { parseDecimal, printDecimal, usdc } from "./Assets.ts"
import { available, readAmount, takeSpot } from "./Matching.ts"
import { addTo, ensureBalance } from "./TradingState.ts"
import type { TradingAccount, TradingState } from "./TradingState.ts"
import type { Venue } from "./Venue.ts"
import * as Words from "./VenueRefusal.ts"
import type { InfoView, Listing } from "./VenueState.ts"

/**
 * Duration of an auction for the right to deploy a perpetual or a spot pair, in seconds. When an auction ends, the next
 * one begins.
 */
const auctionSeconds = 111_600

/** The price at the end of every such auction, in HYPE. */
const lowestGas = 500

/**
 * Returns the status of an auction without a bidder: the price falls linearly from an initial price, which depends on
 * the auction's number, to the lowest price.
 */
const auction = (now: number, durationSeconds: number, lowest: number, initial: (index: number) => number) => {
  const seconds = now / 1_000
  const index = Math.floor(seconds / durationSeconds)
  const start = initial(index)
  const passed = seconds / durationSeconds - index
  return {
    startTimeSeconds: index * durationSeconds,
    durationSeconds,
    startGas: start.toFixed(8),
    currentGas: (start - (start - lowest) * passed).toFixed(8),
    endGas: null
  }
}

/** Returns the initial price of an auction without a winner before it, which depends on the seed. */
const makeStart = (seed: Random.Seed, name: "perp" | "spot") => (index: number): number =>
  lowestGas * (1 + 3 * Random.fraction(Random.series(seed, `auction/${name}`), index))

/** Returns the response to the query `perpDeployAuctionStatus`. */
export const deployAuction = ({ now, seed }: Pick<Listing, "now" | "seed">) =>
  auction(now, auctionSeconds, lowestGas, makeStart(seed, "perp"))

/**
 * Returns the response to the query `spotPairDeployAuctionStatus`. An auction ends when an account pays its price, and the
 * next one starts at twice that price.
 */
export const spotDeployAuction = ({ seed, state: { now, spotAuction: won } }: Pick<Venue, "seed" | "state">) => {
  const start = makeStart(seed, "spot")
  const status = auction(
    now,
    auctionSeconds,
    lowestGas,
    (index) => won?.startTimeSeconds === (index - 1) * auctionSeconds ? 2 * Number(won.gas) : start(index)
  )
  return won?.startTimeSeconds === status.startTimeSeconds
    ? { ...status, currentGas: null, endGas: won.gas }
    : status
}

/** The number of auctions for gossip priority, their duration in seconds, and their lowest price in HYPE. */
const gossip = { slots: 5, seconds: 180, lowest: 0.1 }

const hypeDecimals = 8

/** Returns the auctions for gossip priority as they are without bidders. They start at ten times the lowest price. */
const openAuction = (now: number) => auction(now, gossip.seconds, gossip.lowest, () => 10 * gossip.lowest)

const bidKey = (slot: number, startTimeSeconds: number): string => `${slot}/${startTimeSeconds}`

/**
 * Returns the response to the query `gossipPriorityAuctionStatus`: the winners of the previous auctions, and the
 * current auctions.
 */
export const gossipAuctions = ({ now, trading }: InfoView) => {
  const { bids } = trading.state
  const status = openAuction(now)
  const ended = (endGas: string) => ({ ...status, currentGas: null, endGas })
  const slots = Array.from({ length: gossip.slots }, (_, slot) => slot)
  return [
    slots.map((slot) => bids.get(bidKey(slot, status.startTimeSeconds - gossip.seconds))?.ip ?? null),
    slots.map((slot) => {
      const won = bids.get(bidKey(slot, status.startTimeSeconds))
      return won === undefined ? status : ended(won.gas)
    })
  ]
}

/** Executes the action `gossipPriorityBid`: buys a slot at the current price of its auction, paid in HYPE of the spot balance. */
export const bid: Handler<"gossipPriorityBid"> = (context, { ip, maxGas, slotId }) => {
  const { listing: { hype }, state } = context.venue
  const { currentGas, startTimeSeconds } = openAuction(state.now)
  if (slotId >= gossip.slots) return refuse(Words.unknownSlot(slotId))
  const key = bidKey(slotId, startTimeSeconds)
  const price = parseDecimal(currentGas, hypeDecimals) ?? 0n
  if (
    state.bids.has(key) || BigInt(maxGas) < price || takeSpot(context.venue, actor(context), hype, price) === undefined
  ) return refuse(Words.insufficientGas)
  addTo(state.deposited, hype, -price)
  state.bids.set(key, { ip, gas: currentGas })
  const [oldest] = state.bids.keys()
  if (state.bids.size > 2 * gossip.slots && oldest !== undefined) state.bids.delete(oldest)
  return done
}

/** The rates of the reserve, of which nothing is borrowed. */
const unused = {
  borrowYearlyRate: "0.05",
  supplyYearlyRate: "0.0",
  utilization: "0.0",
  ltv: "0.0",
  totalBorrowed: "0.0"
}

/** The token that accounts can supply: its index and its decimals. */
const reserve = { token: usdc, decimals: 8 }

/** Returns the response to the query `borrowLendReserveState`; `undefined` for a token that is not lent. */
export const lendingReserve = ({ accounts }: TradingState, token: number) => {
  if (token !== reserve.token) return undefined
  const supplied = [...accounts.values()].reduce((sum, account) => sum + (account.supplied.get(token) ?? 0n), 0n)
  const printed = printDecimal(supplied, reserve.decimals)
  return { ...unused, balance: printed, oraclePx: "1.0", totalSupplied: printed }
}

/** Returns the response to the query `allBorrowLendReserveStates`. */
export const lendingReserves = (state: TradingState) => [[reserve.token, lendingReserve(state, reserve.token)]]

/** Returns the response to the query `borrowLendUserState`. Supplies earn nothing, because nothing is borrowed. */
export const lendingUserState = ({ supplied }: TradingAccount) => ({
  tokenToState: [...supplied].map(([token, wei]) => {
    const value = printDecimal(wei, reserve.decimals)
    return [token, { borrow: { basis: "0.0", value: "0.0" }, supply: { basis: value, value } }]
  }),
  health: "healthy",
  healthFactor: null
})

/** Executes the action `borrowLend`: supplies USDC, or withdraws it. Nothing can be borrowed. */
export const borrowLend: Handler<"borrowLend"> = (context, { amount, operation, token }) => {
  const account = actor(context)
  const supplied = account.supplied.get(token) ?? 0n
  if (token !== reserve.token || operation !== "supply" && operation !== "withdraw") {
    return refuse(Words.notLent(operation, String(token)))
  }
  const isSupply = operation === "supply"
  const balance = ensureBalance(account, token)
  const most = isSupply ? available(context.venue, account, token) : supplied
  const wei = amount === null ? most : readAmount(amount, reserve.decimals)
  if (wei === undefined || wei === 0n) return refuse(Words.invalidAmount)
  if (wei > most) return refuse(Words.insufficientTransfer)
  if (isSupply) takeSpot(context.venue, account, token, wei)
  else balance.total += wei
  const left = supplied + (isSupply ? wei : -wei)
  if (left === 0n) account.supplied.delete(token)
  else account.supplied.set(token, left)
  return done
}
