/**
 * TWAP orders: one slice every 30 seconds, at a price at most 3 % worse than the mark price. The unfilled part of a
 * slice is added to later slices. An order can wait for a trigger, and can have a price at which it ends.
 */
import type { ActionOf } from "@trigate/domain/actions/ActionSchemas"
import type { Address } from "@trigate/domain/encoding/Hex"
import * as Random from "../Seed.ts"
import type { Asset } from "./Assets.ts"
import { printPx, printSz, readPx } from "./Assets.ts"
import * as Decimals from "./Decimals.ts"
import { min } from "./Decimals.ts"
import { endReducers, take } from "./Matching.ts"
import * as OrderLife from "./OrderLife.ts"
import { fundsRefusal } from "./OrderRules.ts"
import { markPrice } from "./Quotes.ts"
import type { TradingAccount, Twap, VenueOrder } from "./TradingAccount.ts"
import { none } from "./TradingAccount.ts"
import { ensureAccount, ensureMarket, findAccount } from "./TradingState.ts"
import type { Venue } from "./Venue.ts"
import { emit, zeroHash } from "./Venue.ts"
import * as Words from "./Words.ts"

const sliceEvery = 30_000
const slicesPerMinute = 2
const shortest = 5
const longest = 1_440
/**
 * Maximum size of a slice, as a multiple of an ordinary slice. The size includes the unfilled parts of earlier slices.
 */
const catchUp = 3n
const slippage = 3n
const rememberedTwaps = 200

/** The response to a TWAP order or its cancellation, in the venue's form. */
export type TwapStatus =
  | { readonly running: { readonly twapId: number } }
  | { readonly error: string }
  | "success"

/** Returns the asset of a TWAP order. */
const twapAsset = (venue: Venue, twap: Twap): Asset | undefined => venue.listing.byCoin.get(twap.coin)

const hasReached = (mark: bigint, px: bigint, isAbove: boolean): boolean => isAbove ? mark >= px : mark <= px

/** Returns whether a mark price ends a TWAP order. */
const isStopped = ({ isBuy, stopPx }: Pick<Twap, "isBuy" | "stopPx">, mark: bigint): boolean =>
  stopPx !== undefined && hasReached(mark, stopPx, isBuy)

/** Reads the trigger and the stop price of a TWAP order. */
const readDetails = (
  asset: Asset,
  details: ActionOf<"twapOrder">["details"]
): Pick<Twap, "stopPx" | "trigger"> | { readonly error: string } => {
  const read = (text: string | undefined) => text === undefined ? undefined : readPx(asset, text)
  const [px, stopPx] = [read(details?.t?.p), read(details?.s ?? undefined)]
  if (px === "tick" || stopPx === "tick") return { error: Words.tick(asset) }
  if (px === "invalid" || stopPx === "invalid") return { error: Words.triggerPrice(asset) }
  return {
    ...(px === undefined ? {} : { trigger: { px, isAbove: details?.t?.a === true } }),
    ...(stopPx === undefined ? {} : { stopPx })
  }
}

/** Starts a TWAP order: executes its first slice. */
const start = (venue: Venue, account: TradingAccount, twap: Twap): void => {
  twap.status = { status: "activated" }
  twap.startedAt = venue.state.now
  if (twap.stopPx === undefined) ensureMarket(venue.state, twap.coin).twaps.delete(twap.id)
  emitStatus(venue, twap)
  executeSlice(venue, account, twap)
}

/** Places a TWAP order. Starts it immediately, unless it waits for its trigger. */
export const placeTwap = (
  venue: Venue,
  user: Address,
  { details, twap }: Pick<ActionOf<"twapOrder">, "details" | "twap">
): TwapStatus => {
  const account = ensureAccount(venue.state, user)
  const asset = venue.listing.byId.get(twap.a)
  if (asset === undefined) return { error: Words.unknownAsset(twap.a) }
  const sz = Decimals.parse(twap.s, asset.szDecimals)
  if (sz === undefined) return { error: Words.invalidSize }
  if (sz === 0n) return { error: Words.zeroSize }
  if (twap.m < shortest || twap.m > longest) return { error: Words.twapDuration(twap.m) }
  const smallest = 10n * BigInt(twap.m) * 10n ** BigInt(asset.pxDecimals + asset.szDecimals)
  if (sz * markPrice(venue, asset) < smallest) return { error: Words.twapTooSmall(twap.m) }
  const terms = readDetails(asset, details)
  if ("error" in terms) return terms
  const mark = markPrice(venue, asset)
  if (isStopped({ isBuy: twap.b, ...terms }, mark)) return { error: Words.triggerPrice(asset) }
  const id = venue.state.nextTwap++
  const made: Twap = {
    ...terms,
    id,
    user: account.address,
    coin: asset.coin,
    isBuy: twap.b,
    sz,
    reduceOnly: twap.r,
    minutes: twap.m,
    randomize: twap.t,
    startedAt: venue.state.now,
    executedSz: 0n,
    executedNtl: 0n,
    slices: 0,
    status: { status: "waitingForTrigger" },
    endedAt: undefined
  }
  account.twaps.set(id, made)
  if (account.twaps.size > rememberedTwaps) {
    const oldest = [...account.twaps.values()].find(({ endedAt }) => endedAt !== undefined)
    if (oldest !== undefined) account.twaps.delete(oldest.id)
  }
  const { stopPx, trigger } = made
  if (stopPx !== undefined || trigger !== undefined) ensureMarket(venue.state, asset.coin).twaps.set(id, made)
  if (trigger === undefined || hasReached(mark, trigger.px, trigger.isAbove)) start(venue, account, made)
  else emitStatus(venue, made)
  return { running: { twapId: id } }
}

/** Starts and ends the TWAP orders of a market whose trigger or stop the mark price has reached. */
export const fireReached = (venue: Venue, asset: Asset): void => {
  const { twaps } = ensureMarket(venue.state, asset.coin)
  if (twaps.size === 0) return
  const mark = markPrice(venue, asset)
  for (const twap of twaps.values()) {
    const { status: { status }, trigger, user } = twap
    if (isStopped(twap, mark)) finish(venue, twap, { status: "stopped" })
    else if (status === "waitingForTrigger" && trigger !== undefined && hasReached(mark, trigger.px, trigger.isAbove)) {
      start(venue, ensureAccount(venue.state, user), twap)
    }
  }
}

const emitStatus = (venue: Venue, twap: Twap): void =>
  emit(venue, { kind: "twap", user: twap.user, row: printStatus(venue, twap) })

const finish = (venue: Venue, twap: Twap, status: Twap["status"]): void => {
  twap.status = status
  twap.endedAt = venue.state.now
  ensureMarket(venue.state, twap.coin).twaps.delete(twap.id)
  emitStatus(venue, twap)
}

/** Ends a TWAP order. */
export const cancelTwap = (
  venue: Venue,
  user: Address,
  { a, t }: Pick<ActionOf<"twapCancel">, "a" | "t">
): TwapStatus => {
  const twap = findAccount(venue.state, user).twaps.get(t)
  if (twap?.endedAt !== undefined || twap === undefined || venue.listing.byId.get(a)?.coin !== twap.coin) {
    return { error: Words.unknownTwap }
  }
  finish(venue, twap, { status: "terminated" })
  return "success"
}

/** Returns the time at which the next slice of a TWAP order is due: infinity while the order waits for its trigger. */
const dueAt = (venue: Venue, { id, randomize, slices, startedAt, status: { status } }: Twap): number => {
  if (status === "waitingForTrigger") return Number.POSITIVE_INFINITY
  const shift = randomize
    ? Random.below(Random.series(venue.seed, `twap/${id}`), slices, sliceEvery / 3) - sliceEvery / 6
    : 0
  return startedAt + slices * sliceEvery + shift
}

/** Returns the time at which the next slice of any TWAP order of an account is due. */
export const nextSliceAt = (venue: Venue, { twaps }: TradingAccount): number => {
  let next = Number.POSITIVE_INFINITY
  for (const twap of twaps.values()) if (twap.endedAt === undefined) next = Math.min(next, dueAt(venue, twap))
  return next
}

const sliceOrder = (venue: Venue, asset: Asset, twap: Twap, sz: bigint): VenueOrder => {
  const mark = markPrice(venue, asset)
  return {
    oid: venue.state.nextOid++,
    user: twap.user,
    coin: twap.coin,
    isBuy: twap.isBuy,
    px: mark * (twap.isBuy ? 100n + slippage : 100n - slippage) / 100n,
    origSz: sz,
    sz,
    reduceOnly: twap.reduceOnly,
    tif: "Ioc",
    cloid: null,
    timestamp: venue.state.now,
    isPositionTpsl: false,
    children: none,
    siblings: none,
    place: "gone",
    status: "open",
    statusTimestamp: venue.state.now,
    twapId: twap.id
  }
}

const executeSlice = (venue: Venue, account: TradingAccount, twap: Twap): void => {
  const asset = twapAsset(venue, twap)
  const total = BigInt(twap.minutes * slicesPerMinute)
  twap.slices += 1
  const left = twap.sz - twap.executedSz
  if (asset === undefined) return finish(venue, twap, { status: "error", description: "Asset is not listed" })
  const isLast = twap.slices >= Number(total)
  const ordinary = Decimals.max(1n, twap.sz / total)
  const planned = isLast ? twap.sz : twap.sz * BigInt(twap.slices) / total
  const wanted = min(left, min(Decimals.max(0n, planned - twap.executedSz), isLast ? left : ordinary * catchUp))
  if (wanted > 0n) {
    const order = sliceOrder(venue, asset, twap, wanted)
    if (twap.reduceOnly) order.sz = min(order.sz, OrderLife.reducible(account, asset, order))
    const refused = fundsRefusal(venue, account, asset, order)
    if (refused !== undefined) return finish(venue, twap, { status: "error", description: refused.text })
    const met = take(venue, asset, order, { hash: zeroHash })
    if (met.sz > 0n) endReducers(venue, asset, twap.user)
    twap.executedSz += met.sz
    twap.executedNtl += met.paid
  }
  if (isLast || twap.executedSz === twap.sz) finish(venue, twap, { status: "finished" })
}

/** Executes the due slices of an account's TWAP orders. */
export const executeDue = (venue: Venue, account: TradingAccount): void => {
  for (const twap of account.twaps.values()) {
    if (twap.endedAt === undefined && dueAt(venue, twap) <= venue.state.now) executeSlice(venue, account, twap)
  }
}

/** Encodes a TWAP order for queries and streams. */
export const printTwap = (venue: Venue, twap: Twap) => {
  const asset = twapAsset(venue, twap)
  const decimals = asset === undefined ? 0 : asset.pxDecimals + asset.szDecimals
  return {
    coin: twap.coin,
    user: twap.user,
    side: twap.isBuy ? "B" : "A",
    sz: asset === undefined ? "0.0" : printSz(asset, twap.sz),
    executedSz: asset === undefined ? "0.0" : printSz(asset, twap.executedSz),
    executedNtl: Decimals.print(twap.executedNtl, decimals),
    minutes: twap.minutes,
    reduceOnly: twap.reduceOnly,
    randomize: twap.randomize,
    timestamp: twap.startedAt,
    trigger: asset === undefined || twap.trigger === undefined
      ? null
      : { px: printPx(asset, twap.trigger.px), above: twap.trigger.isAbove },
    stopPx: asset === undefined || twap.stopPx === undefined ? null : printPx(asset, twap.stopPx)
  }
}

/** Encodes the status of a TWAP order, and the time of the last change of its status in seconds. */
const printStatus = (venue: Venue, twap: Twap) => ({
  time: Math.floor((twap.endedAt ?? twap.startedAt) / 1000),
  state: printTwap(venue, twap),
  status: twap.status,
  twapId: twap.id
})

/** Returns the response to the query `twapHistory`: the TWAP orders of an account with their status, newest first. */
export const twapHistory = (venue: Venue, account: TradingAccount) =>
  [...account.twaps.values()].toReversed().map((twap) => printStatus(venue, twap))
