/**
 * The precompiles of HyperEVM that read the venue. Their arguments and results are ABI values.
 *
 * Sources: the venue's `L1Read.sol` as client libraries quote it, and what these observed of tokens and outcomes.
 */
import { type Address, lowerCase } from "@trigate/domain/encoding/Encoding"
import * as Predicate from "effect/Predicate"
import { abs, findMarginTable, findMaxLeverage, midnight, parseDecimal, usdc } from "../venue/Assets.ts"
import type { Perpetual, SpotPair } from "../venue/Assets.ts"
import { leverageSetting, marginSums, markPrice, withdrawable } from "../venue/Margin.ts"
import { bestPrices, ownDex } from "../venue/Matching.ts"
import { findOutcome, findResult, firstSide, one } from "../venue/Outcomes.ts"
import { lendingReserve } from "../venue/Reserves.ts"
import { findAccount } from "../venue/TradingState.ts"
import type { TradingAccount } from "../venue/TradingState.ts"
import { vaultEquity } from "../venue/Transfers.ts"
import { type Venue, withDeployed } from "../venue/Venue.ts"
import { tokenDetails, universe } from "../venue/VenueMarkets.ts"
import { accountOrNew, type InfoView, type VenueState } from "../venue/VenueState.ts"

/** The state that the precompiles read. */
export interface CoreView {
  readonly trading: Venue
  readonly venue: VenueState
}

/** A value of a result: a number or a flag, a text, a list of rows of numbers, or a structure with such parts. */
type AbiValue =
  | bigint
  | boolean
  | string
  | { readonly rows: ReadonlyArray<ReadonlyArray<bigint>> }
  | { readonly parts: ReadonlyArray<AbiValue> }

/** Reads the venue. Returns `undefined` for arguments that the venue refuses, such as an unknown asset. */
type Precompile = (view: CoreView, args: ReadonlyArray<bigint>) => ReadonlyArray<AbiValue> | undefined

/** Decimals of amounts of outcome tokens on the EVM. */
export const outcomeDecimals = 5

/** The number of the venue's units of an outcome token in one such unit. */
const weiPerUnit = one / 10n ** BigInt(outcomeDecimals)

/** The start of the venue's chain, which has a block every 100 milliseconds. */
const genesis = midnight("2023-02-26")
const blockMillis = 100

/** The largest number of 32 bits, also the question of an outcome without a question. */
const uint32 = 2n ** 32n - 1n

const toAddress = (word: bigint | undefined): Address =>
  lowerCase(`0x${((word ?? 0n) & ((1n << 160n) - 1n)).toString(16).padStart(40, "0")}`)

const accountAt = ({ trading }: CoreView, word: bigint | undefined): TradingAccount =>
  findAccount(trading.state, toAddress(word))

const perpetual = ({ trading }: CoreView, id: bigint | undefined): Perpetual | undefined => {
  const asset = trading.listing.byId.get(Number(id))
  return asset?.kind === "perpetual" ? asset : undefined
}

const firstSpot = 10_000

/** Returns a spot pair by its index, or the side of an outcome by its asset ID. */
const pair = ({ trading }: CoreView, index: bigint | undefined): SpotPair | undefined => {
  const asset = trading.listing.byId.get(Number(index) < firstSide ? firstSpot + Number(index) : Number(index))
  return asset?.kind === "spot" ? asset : undefined
}

const infoView = ({ trading, venue }: CoreView): InfoView =>
  withDeployed({ ...trading.info, seed: trading.seed, venue, trading, now: trading.state.now }, trading.state)

const parse = (text: string | null | undefined, decimals: number): bigint => parseDecimal(text ?? "", decimals) ?? 0n

const firstBuilderDex = 100_000
const idsPerDex = 10_000

/** Reads the terms of a perpetual, also of a delisted one: coin, margin table, size decimals, leverage, isolated only. */
const readPerpetual: Precompile = (view, [id]) => {
  const number = Number(id)
  const dexAt = number < firstSpot ? 0 : Math.floor((number - firstBuilderDex) / idsPerDex)
  const dex = ["", ...view.trading.listing.dexes][dexAt]
  const market = perpetual(view, id)?.market ??
    (dex === undefined ? undefined : universe(infoView(view), dex)[number % idsPerDex])
  if (market === undefined) return undefined
  const numbers = [findMarginTable(market).id, market.sizeDecimals, findMaxLeverage(market)].map(BigInt)
  return [{ parts: [market.coin, ...numbers, market.marginMode !== undefined] }]
}

/** Finds a spot token by its index, with its supply. */
const findToken = (view: CoreView, index: bigint | undefined) => {
  const info = infoView(view)
  const token = info.spotMeta.tokens.find((each) => each.index === Number(index))
  const details = token === undefined ? undefined : tokenDetails(info, token.tokenId.toLowerCase())
  return token === undefined || details === undefined ? undefined : { details, token, pairs: info.spotMeta.universe }
}

/** Returns the mark price of a perpetual, which the oracle price equals. */
const perpetualPx: Precompile = (view, [id]) => {
  const asset = perpetual(view, id)
  return asset === undefined ? undefined : [markPrice(view.trading, asset)]
}

/** Reads a position: size, entry value, margin of an isolated position, leverage, whether it is isolated. */
const readPosition: Precompile = (view, [user, id]) => {
  const asset = perpetual(view, id)
  if (asset === undefined) return undefined
  const account = accountAt(view, user)
  const position = account.clearings.get(asset.dex)?.positions.get(asset.coin)
  const { isCross, value } = leverageSetting(account, asset)
  return position === undefined
    ? [0n, 0n, 0n, BigInt(value), !isCross]
    : [position.size, abs(position.entry), position.raw, BigInt(position.leverage), !position.isCross]
}

/** The precompiles by the last byte of their address, with the number of their arguments. */
const precompiles: ReadonlyMap<number, { readonly count: number; readonly read: Precompile }> = new Map([
  [0x00, { count: 2, read: readPosition }],
  // spot balance: total, hold, entry value
  [0x01, {
    count: 2,
    read: (view, [user, token]) => {
      const { entry, hold, total } = accountAt(view, user).spot.get(Number(token)) ?? { entry: 0n, hold: 0n, total: 0n }
      const unit = Number(token) < firstSide ? 1n : weiPerUnit
      return view.trading.listing.tokens.has(Number(token))
        ? [total / unit, hold / unit, Number(token) === usdc ? 0n : entry]
        : undefined
    }
  }],
  // deposit in a vault: its value in millionths of a dollar, the time until which it is locked
  [0x02, {
    count: 2,
    read: ({ trading }, [user, address]) => {
      const [depositor, vaultAddress] = [toAddress(user), toAddress(address)]
      const vault = trading.state.vaults.get(vaultAddress)
      return vault === undefined
        ? undefined
        : [vaultEquity(trading, vaultAddress, vault, depositor), BigInt(vault.shares.get(depositor)?.lockedUntil ?? 0)]
    }
  }],
  // withdrawable dollars, in millionths
  [0x03, { count: 1, read: (view, [user]) => [withdrawable(view.trading, accountAt(view, user), ownDex)] }],
  // delegations: validator, amount, the time until which it is locked
  [0x04, {
    count: 1,
    read: ({ venue }, [user]) => {
      const delegations = [...accountOrNew(venue, toAddress(user)).delegations].filter(([, { wei }]) => wei > 0n)
      return [{
        rows: delegations.map(([validator, { lockedUntil, wei }]) => [BigInt(validator), wei, BigInt(lockedUntil)])
      }]
    }
  }],
  // stake: delegated, undelegated, in pending withdrawals, and their number
  [0x05, {
    count: 1,
    read: (view, [user]) => {
      const { delegations, stake } = accountOrNew(view.venue, toAddress(user))
      const { unstaking } = accountAt(view, user)
      const sum = (parts: Iterable<{ readonly wei: bigint }>) => [...parts].reduce((all, { wei }) => all + wei, 0n)
      return [sum(delegations.values()), stake, sum(unstaking), BigInt(unstaking.length)]
    }
  }],
  [0x06, { count: 1, read: perpetualPx }],
  [0x07, { count: 1, read: perpetualPx }],
  // spot price
  [0x08, {
    count: 1,
    read: (view, [index]) => {
      const asset = pair(view, index)
      return asset === undefined ? undefined : [markPrice(view.trading, asset)]
    }
  }],
  [0x09, {
    count: 0,
    read: ({ trading }) => [BigInt(Math.floor((trading.state.now - genesis) / blockMillis))]
  }],
  [0x0a, { count: 1, read: readPerpetual }],
  // spot pair: name, base token, quote token
  [0x0b, {
    count: 1,
    read: (view, [index]) => {
      const listed = infoView(view).spotMeta.universe.find((each) => each.index === Number(index))
      return listed === undefined ? undefined : [{ parts: [listed.name, ...listed.tokens.map(BigInt)] }]
    }
  }],
  // token: name, pairs of which it is the base, part of the fees for its deployer, deployer, contract, decimals
  [0x0c, {
    count: 1,
    read: (view, [index]) => {
      const found = findToken(view, index)
      if (found === undefined) return undefined
      const { details, pairs, token: { deployerTradingFeeShare, evmContract, name, szDecimals, weiDecimals } } = found
      const spots = pairs.filter(({ tokens: [base] }) => base === Number(index)).map((each) => [BigInt(each.index)])
      const decimals = [szDecimals, weiDecimals, evmContract?.evm_extra_wei_decimals ?? 0].map(BigInt)
      const addresses = [details.deployer, evmContract?.address].map((each) => BigInt(each ?? 0))
      return [{ parts: [name, { rows: spots }, parse(deployerTradingFeeShare, 5), ...addresses, ...decimals] }]
    }
  }],
  // supply of a token: maximum, total, circulating, future emissions, balances that do not circulate
  [0x0d, {
    count: 1,
    read: (view, [index]) => {
      const found = findToken(view, index)
      if (found === undefined) return undefined
      const { circulatingSupply, futureEmissions, maxSupply, totalSupply } = found.details
      const supplies = [maxSupply, totalSupply, circulatingSupply, futureEmissions]
      return [{ parts: [...supplies.map((text) => parse(text, found.token.weiDecimals)), { rows: [] }] }]
    }
  }],
  // best bid and ask
  [0x0e, {
    count: 1,
    read: (view, [id]) => {
      const asset = view.trading.listing.byId.get(Number(id))
      if (asset === undefined) return undefined
      const { ask = 0n, bid = 0n } = bestPrices(view.trading, asset)
      return [bid, ask]
    }
  }],
  // margin summary of a dex: account value, margin used, value of the positions, raw dollars
  [0x0f, {
    count: 2,
    read: (view, [index, user]) => {
      const dex = ["", ...view.trading.listing.dexes][Number(index)]
      if (dex === undefined) return undefined
      const clearing = accountAt(view, user).clearings.get(dex) ?? { cash: 0n, positions: new Map() }
      const { marginUsed, notional, raw, value } = marginSums(view.trading, clearing)
      return [value, marginUsed, notional, raw]
    }
  }],
  // whether the venue knows the account
  [0x10, { count: 1, read: ({ venue }, [user]) => [venue.accounts.has(toAddress(user))] }],
  // loan and supply of a token: the basis and the value of each; an account without them is refused
  [0x11, {
    count: 2,
    read: (view, [user, token]) => {
      const supplied = accountAt(view, user).supplied.get(Number(token))
      return supplied === undefined ? undefined : [0n, 0n, supplied, supplied]
    }
  }],
  // reserve: yearly rates, balance, utilization, oracle price, loan to value, supplies and loans; ratios in basis points
  [0x12, {
    count: 1,
    read: ({ trading }, [index]) => {
      const token = trading.listing.tokens.get(Number(index))
      const reserve = lendingReserve(trading.state, Number(index))
      if (token === undefined || reserve === undefined) return undefined
      const [borrowRate, supplyRate, utilization, ltv] = [
        reserve.borrowYearlyRate,
        reserve.supplyYearlyRate,
        reserve.utilization,
        reserve.ltv
      ].map((text) => parse(text, 4))
      const [balance, supplied, borrowed] = [reserve.balance, reserve.totalSupplied, reserve.totalBorrowed]
        .map((text) => parse(text, token.weiDecimals))
      const px = parse(reserve.oraclePx, 8 - token.szDecimals)
      return [borrowRate, supplyRate, balance, utilization, px, ltv, supplied, borrowed].map((each) => each ?? 0n)
    }
  }],
  // the same as the first, with wider numbers of assets, which those of builders' dexes need
  [0x13, { count: 2, read: readPosition }],
  // outcome: status (0 unknown, 1 active, 2 settled), price of side 0 at the settlement, question
  [0x14, {
    count: 1,
    read: ({ trading }, [number = 0n]) => {
      if (number > uint32) return undefined
      const outcome = findOutcome(trading, Number(number))
      if (outcome === undefined) return [0n, 0n, uint32]
      const result = findResult(trading, outcome)
      const question = BigInt(outcome.question?.question ?? uint32)
      return result === undefined ? [1n, 0n, question] : [2n, result.fraction, question]
    }
  }]
])

/** The addresses of the precompiles. */
export const addresses: ReadonlyArray<Address> = [...precompiles.keys()].map((last) =>
  lowerCase(`0x${(0x800 + last).toString(16).padStart(40, "0")}`)
)

const maxWord = 1n << 256n

const toWord = (value: bigint | boolean | number): string =>
  ((BigInt(value) + maxWord) % maxWord).toString(16).padStart(64, "0")

/** Encodes a value that has no fixed length. */
const encodeTail = (value: Exclude<AbiValue, bigint | boolean>): string => {
  if (Predicate.isString(value)) {
    const bytes = new TextEncoder().encode(value)
    const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")
    return toWord(bytes.length) + hex.padEnd(64 * Math.ceil(hex.length / 64), "0")
  }
  return "rows" in value
    ? toWord(value.rows.length) + value.rows.flat().map(toWord).join("")
    : encodeAll(value.parts)
}

/** Encodes values: the words of those with a fixed length and the positions of the others, and then the others. */
const encodeAll = (values: ReadonlyArray<AbiValue>): string => {
  let tails = ""
  const heads = values.map((value) => {
    if (Predicate.isBigInt(value) || Predicate.isBoolean(value)) return toWord(value)
    const position = 32 * values.length + tails.length / 2
    tails += encodeTail(value)
    return toWord(position)
  })
  return heads.join("") + tails
}

/** Matches the addresses of the precompiles that read the venue's state: 0x800 and up. */
export const address = /^0x0{37}8([0-9a-f]{2})$/u

/**
 * Calls a precompile. Returns its result, `failed` for arguments that it refuses, and `undefined` for an address at which
 * the sandbox has no precompile.
 */
export const call = (view: CoreView, to: string, data: string): `0x${string}` | "failed" | undefined => {
  const known = precompiles.get(Number.parseInt(address.exec(to)?.[1] ?? "", 16))
  if (known === undefined) return undefined
  const words = data.slice(2).match(/.{64}/gu) ?? []
  if (words.length !== known.count || data.length !== 2 + 64 * known.count) return "failed"
  const result = known.read(view, words.map((each) => BigInt(`0x${each}`)))
  return result === undefined ? "failed" : `0x${encodeAll(result)}`
}
