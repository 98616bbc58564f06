/** The precompiles of HyperEVM that read the venue: their arguments and results are ABI words. */
import { type Address, lowerCase } from "@trigate/domain/encoding/Encoding"
import { abs, type Perpetual, type SpotPair, usdc } from "../venue/Assets.ts"
import { leverageSetting, marginSums, markPrice, withdrawable } from "../venue/Margin.ts"
import { bestPrices, ownDex } from "../venue/Matching.ts"
import { findAccount } from "../venue/TradingState.ts"
import type { TradingAccount } from "../venue/TradingState.ts"
import type { Venue } from "../venue/Venue.ts"
import { accountOrNew, type VenueState } from "../venue/VenueState.ts"

/** The state that the precompiles read. */
export interface CoreView {
  readonly trading: Venue
  readonly venue: VenueState
}

/** The result of a precompile: numbers and flags, each one word. */
type Words = ReadonlyArray<bigint | boolean>

/** Reads the venue. Returns `undefined` for arguments that the venue refuses, such as an unknown asset. */
type Precompile = (view: CoreView, args: ReadonlyArray<bigint>) => Words | undefined

const toAddress = (word: bigint | undefined): Address =>
  lowerCase(`0x${((word ?? 0n) & ((1n << 160n) - 1n)).toString(16).padStart(40, "0")}`)

const accountAt = ({ trading }: CoreView, word: bigint | undefined): TradingAccount =>
  findAccount(trading.state, toAddress(word))

const perpetual = ({ trading }: CoreView, id: bigint | undefined): Perpetual | undefined => {
  const asset = trading.listing.byId.get(Number(id))
  return asset?.kind === "perpetual" ? asset : undefined
}

const firstSpot = 10_000

const pair = ({ trading }: CoreView, index: bigint | undefined): SpotPair | undefined => {
  const asset = trading.listing.byId.get(firstSpot + Number(index))
  return asset?.kind === "spot" ? asset : undefined
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
      return view.trading.listing.tokens.has(Number(token))
        ? [total, hold, Number(token) === usdc ? 0n : entry]
        : undefined
    }
  }],
  // withdrawable dollars, in millionths
  [0x03, { count: 1, read: (view, [user]) => [withdrawable(view.trading, accountAt(view, user), ownDex)] }],
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
  // the same as the first, with wider numbers of assets, which those of builders' dexes need
  [0x13, { count: 2, read: readPosition }]
])

/** The addresses of the precompiles. */
export const addresses: ReadonlyArray<Address> = [...precompiles.keys()].map((last) =>
  lowerCase(`0x${(0x800 + last).toString(16).padStart(40, "0")}`)
)

const word = 1n << 256n

const encode = (words: Words): `0x${string}` =>
  `0x${words.map((each) => ((BigInt(each) + word) % word).toString(16).padStart(64, "0")).join("")}`

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
  return result === undefined ? "failed" : encode(result)
}
