/** Spot tokens that accounts deploy (HIP-1): their genesis, pairs, fees and frozen accounts, and the orders of Hyperliquidity. */
import { type Address, lowerCase } from "@trigate/domain/encoding/Encoding"
import type { SpotToken } from "@trigate/domain/info/Market"
import type { ActionOf } from "@trigate/domain/unstable/actions/ActionSchemas"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import { getContractAddress, keccak256, toHex } from "viem/utils"
import * as Random from "../Seed.ts"
import { actor, done, note, open, refuse } from "./AccountActions.ts"
import type { ActionContext, ActionDecision, Handler } from "./AccountActions.ts"
import { remember } from "./AccountReads.ts"
import * as Assets from "./Assets.ts"
import { hyperliquidity as strategist } from "./Fees.ts"
import * as Matching from "./Matching.ts"
import { list as listOutcomes } from "./Outcomes.ts"
import { spotDeployAuction } from "./Reserves.ts"
import { addTo, ensureAccount, ensureBalance, isFrozen, makeOrder } from "./TradingState.ts"
import type { DeployedPair, DeployedToken, Hyperliquidity, TradingAccount } from "./TradingState.ts"
import { relist, type Venue, withDeployed } from "./Venue.ts"
import * as Words from "./VenueRefusal.ts"
import { accountOrNew } from "./VenueState.ts"

type Deployment = ActionOf<"spotDeploy">
type Variant<Name extends string> = Extract<Deployment, { readonly [Key in Name]: unknown }>[Name]

/** The whole of a token's fees, in thousandths of a percent. */
const wholeShare = 10n ** BigInt(Assets.shareDecimals)

/** The largest supply in wei. */
const mostSupply = 2n ** 63n - 1n

const hypeDecimals = 8
const mostSizeDecimals = 2
const mostWeiDecimals = 8

/** The difference between the decimals of amounts and of sizes that a token must have at least. */
const sizeReserve = 5

/** The stake of the deployer of a quote token and of an aligned one, and of each role of AQAv2, in wei of HYPE. */
const quoteStake = { quote: 200_000n * 10n ** 8n, aligned: 1_000_000n * 10n ** 8n } as const
const roleStake = 500_000n * 10n ** 8n

const roles: ReadonlySet<string> = new Set(["technical", "treasury"])

const list = (venue: Venue): void => {
  relist(venue, venue.info, venue.state.now, true)
  listOutcomes(venue)
}

const currentMeta = ({ info, state }: Venue) => withDeployed(info, state).spotMeta

/** Returns the index after the highest one. */
const nextIndex = (listed: ReadonlyArray<{ readonly index: number }>): number =>
  listed.reduce((highest, { index }) => Math.max(highest, index), -1) + 1

/** Pays the current price of the auction, which ends it. Returns the price, or the refusal. */
const payAuction = (context: ActionContext, maxGas: bigint | undefined): Result.Result<string, string> => {
  const { venue } = context
  const { state } = venue
  const { currentGas, startTimeSeconds } = spotDeployAuction(venue)
  if (currentGas === null) return Result.fail(Words.auctionCompleted)
  const price = Assets.parseDecimal(currentGas, hypeDecimals) ?? 0n
  const isCovered = (maxGas ?? price) >= price && Matching.available(venue, actor(context), venue.listing.hype) >= price
  if (!isCovered || Matching.takeSpot(venue, actor(context), venue.listing.hype, price) === undefined) {
    return Result.fail(Words.insufficientGas)
  }
  addTo(state.deposited, venue.listing.hype, -price)
  state.spotAuction = { startTimeSeconds, gas: currentGas }
  const amount = Assets.printDecimal(price, hypeDecimals)
  note(context, [actor(context)], { type: "deployGasAuction", token: "HYPE", amount })
  return Result.succeed(amount)
}

const register = (context: ActionContext, { fullName, maxGas, spec }: Variant<"registerToken2">): ActionDecision => {
  const { user, venue } = context
  const { name, szDecimals, weiDecimals } = spec
  if (spotDeployAuction(venue).currentGas === null) return refuse(Words.auctionCompleted)
  const isValid = /^\S{1,6}$/u.test(name) && szDecimals <= mostSizeDecimals && weiDecimals <= mostWeiDecimals &&
    szDecimals + sizeReserve <= weiDecimals
  if (!isValid) return refuse(Words.invalidTokenSpec)
  return Result.map(payAuction(context, BigInt(maxGas)), (gas) => {
    const index = nextIndex(currentMeta(venue).tokens)
    const token: SpotToken = {
      name,
      szDecimals,
      weiDecimals,
      index,
      tokenId: Random.hex(venue.seed, `token/${index}/${venue.state.now}`, 32),
      isCanonical: false,
      evmContract: null,
      fullName: fullName ?? null
    }
    venue.state.spotTokens.set(index, {
      token,
      deployer: user,
      deployedAt: venue.state.now,
      gas,
      userGenesis: new Map(),
      holderGenesis: new Map(),
      blacklist: new Set(),
      noHyperliquidity: false,
      feeShare: wholeShare,
      seeded: 0n,
      frozen: new Set()
    })
    list(venue)
    return { type: "spotDeploy", data: index }
  })
}

const sum = (amounts: Iterable<bigint>): bigint => [...amounts].reduce((total, wei) => total + wei, 0n)

const totalGenesis = ({ holderGenesis, userGenesis }: DeployedToken): bigint =>
  sum(userGenesis.values()) + sum(holderGenesis.values())

/** Adds amounts of wei, given as text. Returns whether all amounts are valid. */
const addAll = <Key>(amounts: Map<Key, bigint>, rows: ReadonlyArray<readonly [Key, string]>): boolean =>
  rows.every(([key, text]) => {
    const wei = Assets.parseDecimal(text, 0)
    if (wei === undefined) return false
    addTo(amounts, key, wei)
    return true
  })

const addGenesis = (venue: Venue, deployed: DeployedToken, rows: Variant<"userGenesis">): ActionDecision => {
  if (deployed.maxSupply !== undefined) return refuse(Words.genesisHappened)
  const next = {
    ...deployed,
    userGenesis: new Map(deployed.userGenesis),
    holderGenesis: new Map(deployed.holderGenesis)
  }
  const isValid =
    addAll(next.userGenesis, rows.userAndWei.map(([address, wei]) => [lowerCase(address), wei] as const)) &&
    addAll(next.holderGenesis, rows.existingTokenAndWei) && totalGenesis(next) <= mostSupply &&
    rows.existingTokenAndWei.every(([token]) => token !== deployed.token.index && venue.listing.tokens.has(token))
  if (!isValid) return refuse(Words.invalidGenesis)
  for (const [address, isBlacklisted] of rows.blacklistUsers ?? []) {
    if (isBlacklisted) next.blacklist.add(lowerCase(address))
    else next.blacklist.delete(lowerCase(address))
  }
  venue.state.spotTokens.set(deployed.token.index, next)
  return done
}

/**
 * Returns the parts of an amount for the holders of a token, in proportion to their balances. The parts are rounded down,
 * and what remains is not created.
 */
const shareOut = (
  { state }: Venue,
  token: number,
  amount: bigint,
  { blacklist }: DeployedToken
): ReadonlyArray<readonly [Address, bigint]> => {
  const balances = [...state.accounts.values()].flatMap(({ address, spot }): ReadonlyArray<[Address, bigint]> => {
    const total = spot.get(token)?.total ?? 0n
    return total <= 0n || blacklist.has(address) || address === strategist ? [] : [[address, total]]
  })
  const all = sum(balances.map(([, total]) => total))
  return balances.map(([address, total]) => [address, amount * total / all])
}

const finishGenesis = (
  context: ActionContext,
  deployed: DeployedToken,
  { maxSupply, noHyperliquidity }: Variant<"genesis">
): ActionDecision => {
  const { venue } = context
  const { holderGenesis, token, userGenesis } = deployed
  if (deployed.maxSupply !== undefined) return refuse(Words.genesisHappened)
  const supply = Assets.parseDecimal(maxSupply, 0)
  const isWithout = noHyperliquidity === true
  if (supply === undefined || supply !== totalGenesis(deployed)) return refuse(Words.supplyMismatch)
  if (isWithout && (userGenesis.get(strategist) ?? 0n) > 0n) return refuse(Words.unwantedHyperliquidity)
  const amounts = new Map(userGenesis)
  for (const [held, wei] of holderGenesis) {
    for (const [address, part] of shareOut(venue, held, wei, deployed)) addTo(amounts, address, part)
  }
  const added = [...amounts.keys()].filter((address) => !venue.state.accounts.has(address)).length
  if (venue.state.accounts.size + added > venue.limits.accounts) return refuse(Words.tooManyAccounts)
  for (const [address, wei] of amounts) {
    const account = address === strategist ? ensureAccount(venue.state, address) : open(context, address)
    ensureBalance(account, token.index).total += wei
    addTo(venue.state.deposited, token.index, wei)
    if (wei > 0n) {
      note(context, [account], {
        type: "spotGenesis",
        token: token.name,
        amount: Assets.printDecimal(wei, token.weiDecimals)
      })
    }
  }
  deployed.maxSupply = supply
  deployed.noHyperliquidity = isWithout
  return done
}

const isQuoteToken = (venue: Venue, token: number): boolean =>
  token === Assets.usdc || venue.state.spotTokens.get(token)?.quote !== undefined ||
  venue.info.spotMeta.universe.some(({ tokens: [, quote] }) => quote === token)

/** Registers a pair. The first one of a token is included in the price of the token. */
const registerPair = (
  context: ActionContext,
  deployed: DeployedToken,
  { tokens: [base, quote] }: Variant<"registerSpot">
): ActionDecision => {
  const { venue } = context
  const { spotPairs } = venue.state
  if (deployed.maxSupply === undefined) return refuse(Words.noMaxSupply)
  if (!isQuoteToken(venue, quote) || base === quote) return refuse(Words.invalidQuote)
  const own = [...spotPairs.values()].filter((pair) => pair.base === base)
  if (own.some((pair) => pair.quote === quote)) return refuse(Words.pairExists)
  const paid = own.length === 0 ? Result.succeed("") : payAuction(context, undefined)
  return Result.map(paid, () => {
    const index = nextIndex(currentMeta(venue).universe)
    spotPairs.set(index, { index, base, quote })
    list(venue)
    return { type: "spotDeploy", data: index }
  })
}

/** The ratio of two neighboring prices of Hyperliquidity. */
const priceRatio = 1.003

/** The largest number of orders of Hyperliquidity for a pair. */
const mostLevels = 4_000

/** Returns the prices of the orders in ticks, ascending; `undefined` if two are equal because ticks are too large. */
const makeLadder = (priceDecimals: number, start: bigint, count: number): ReadonlyArray<bigint> | undefined => {
  const prices: Array<bigint> = []
  for (let px = start; prices.length < Math.min(count, mostLevels);) {
    if (px <= (prices.at(-1) ?? 0n)) return undefined
    prices.push(px)
    const next = Assets.printPrice({ priceDecimals }, Assets.toNumber(px, priceDecimals) * priceRatio)
    px = Assets.parseDecimal(next, priceDecimals) ?? 0n
  }
  return prices
}

const makeMarket = (
  venue: Venue,
  { index }: DeployedPair,
  { token: { szDecimals, tokenId } }: DeployedToken,
  price: number
): Assets.CandleMarket => ({
  coin: `@${index}`,
  asset: tokenId,
  price,
  volatility: 0,
  tradeRate: 0,
  tradeLots: 1,
  sizeDecimals: szDecimals,
  priceDecimals: Assets.spotUsdDecimals - szDecimals,
  // a coin is listed after this time
  listedAt: venue.state.now - 1,
  oracle: { px: String(price), points: [{ time: venue.state.now - 1, price }] },
  isUnquoted: true
})

/**
 * Begins the trading of a pair, with the orders of Hyperliquidity if the genesis has included it. The deployer pays the
 * dollars for the lowest levels, which begin as bids.
 */
const begin = (
  context: ActionContext,
  deployed: DeployedToken,
  pair: DeployedPair,
  terms: Variant<"registerHyperliquidity">
): ActionDecision => {
  const { venue } = context
  const { nOrders, orderSz, startPx } = terms
  const seeded = terms.nSeededLevels ?? 0
  if (pair.market !== undefined) return refuse(Words.hyperliquidityExists)
  if (deployed.noHyperliquidity && nOrders > 0) return refuse(Words.unwantedHyperliquidity)
  if (nOrders > 0 && pair.quote !== Assets.usdc) return refuse(Words.hyperliquidityQuote)
  const { szDecimals, weiDecimals } = deployed.token
  const pxDecimals = Assets.spotUsdDecimals - szDecimals
  const start = Assets.parseDecimal(startPx, pxDecimals)
  const sz = Assets.parseDecimal(orderSz, szDecimals)
  const prices = start === undefined ? undefined : makeLadder(pxDecimals, start, nOrders)
  const isValid = Assets.significantDigits(startPx) <= 5 && nOrders <= mostLevels && seeded <= nOrders
  const isSize = sz !== undefined && (sz > 0n || nOrders === 0)
  if (start === undefined || start <= 0n || prices === undefined || !isSize || !isValid) {
    return refuse(Words.invalidHyperliquidity)
  }
  const perLot = 10n ** BigInt(weiDecimals - szDecimals)
  const strategy = ensureAccount(venue.state, strategist)
  const needed = sz * BigInt(nOrders - seeded) * perLot
  if ((strategy.spot.get(pair.base)?.total ?? 0n) < needed) return refuse(Words.missingHyperliquidity)
  const dollars = prices.slice(0, seeded).reduce((total, px) => total + px * sz, 0n)
  if (!Matching.moveSpot(venue, actor(context), strategy, Assets.usdc, dollars)) {
    return refuse(Words.insufficientTransfer)
  }
  deployed.seeded += dollars
  // the mark price is in the middle of the book, if it has two sides
  const bid = prices[seeded - 1] ?? start
  const mark = seeded === 0 ? start : (bid + (prices[seeded] ?? bid)) / 2n
  pair.market = makeMarket(venue, pair, deployed, Assets.toNumber(mark, pxDecimals))
  list(venue)
  if (nOrders > 0) {
    pair.hyperliquidity = { prices, sz, updatedAt: venue.state.now, tid: undefined, isComplete: true }
    placeLadder(venue, pair, pair.hyperliquidity)
  }
  return done
}

/** An order that Hyperliquidity has or wants: its price in ticks, its side and its size in lots. */
interface Rung {
  readonly px: bigint
  readonly isBuy: boolean
  readonly sz: bigint
}

/** Returns the wanted orders: full asks at the highest prices, one partial ask below them, and full bids at the other prices. */
const wantedRungs = ({ prices, sz }: Hyperliquidity, lots: bigint): ReadonlyArray<Rung> => {
  const levels = prices.length
  const full = Math.min(levels, Number(lots / sz))
  const rest = full === levels ? 0n : lots % sz
  return prices.map((px, level): Rung => {
    if (level >= levels - full) return { px, isBuy: false, sz }
    return rest > 0n && level === levels - full - 1 ? { px, isBuy: false, sz: rest } : { px, isBuy: true, sz }
  })
}

/** Places an order of Hyperliquidity, if it rests. Returns whether it does. */
const placeRung = (venue: Venue, account: TradingAccount, asset: Assets.SpotPair, { isBuy, px, sz }: Rung): boolean => {
  const { ask, bid } = Matching.bestPrices(venue, asset)
  const crosses = isBuy ? ask !== undefined && ask <= px : bid !== undefined && bid >= px
  const order = makeOrder(venue.state, {
    user: account.address,
    coin: asset.coin,
    isBuy,
    px,
    sz,
    reduceOnly: false,
    tif: "Alo"
  })
  if (crosses || !Matching.isCovered(venue, account, asset, order)) return false
  remember(venue, account, order)
  Matching.report(venue, order, "open")
  Matching.rest(venue, asset, order)
  return true
}

/** Replaces the orders that differ from the wanted ones. */
const placeLadder = (venue: Venue, { base, index }: DeployedPair, ladder: Hyperliquidity): void => {
  const asset = venue.listing.byCoin.get(`@${index}`)
  if (asset?.kind !== "spot") return
  const account = ensureAccount(venue.state, strategist)
  const lots = (account.spot.get(base)?.total ?? 0n) / asset.weiPerLot
  const wanted = new Map(wantedRungs(ladder, lots).map((rung) => [rung.px, rung]))
  ladder.updatedAt = venue.state.now
  ladder.tid = venue.state.markets.get(asset.coin)?.trades.at(-1)?.tid
  ladder.isComplete = true
  if (isFrozen(venue.state, base, strategist)) return
  for (const order of account.open.values()) {
    if (order.coin !== asset.coin) continue
    const rung = wanted.get(order.px)
    if (rung !== undefined && rung.isBuy === order.isBuy && rung.sz === order.sz) wanted.delete(order.px)
    else Matching.end(venue, order, "canceled")
  }
  for (const rung of wanted.values()) {
    if (!placeRung(venue, account, asset, rung)) ladder.isComplete = false
  }
}

/** The shortest time between two updates of Hyperliquidity's orders, in milliseconds. */
const updateEvery = 3_000

/** Returns whether an update can change the orders: after a trade, or if not all of them could be placed. */
const isStale = (venue: Venue, { index }: DeployedPair, { isComplete, tid }: Hyperliquidity): boolean =>
  !isComplete || venue.state.markets.get(`@${index}`)?.trades.at(-1)?.tid !== tid

/** Returns the time of the next update of Hyperliquidity's orders. */
export const nextUpdate = (venue: Venue): number => {
  let next = Number.POSITIVE_INFINITY
  for (const pair of venue.state.spotPairs.values()) {
    const ladder = pair.hyperliquidity
    if (ladder !== undefined && isStale(venue, pair, ladder)) next = Math.min(next, ladder.updatedAt + updateEvery)
  }
  return next
}

/** Updates the orders of Hyperliquidity that are due. */
export const updateDue = (venue: Venue): void => {
  for (const pair of venue.state.spotPairs.values()) {
    const ladder = pair.hyperliquidity
    if (ladder === undefined || !isStale(venue, pair, ladder)) continue
    if (ladder.updatedAt + updateEvery <= venue.state.now) placeLadder(venue, pair, ladder)
  }
}

/** Lowers the part of the fees that the deployer earns. */
const setShare = (deployed: DeployedToken, text: string): ActionDecision => {
  const share = Assets.parseDecimal(text.slice(0, -1), Assets.shareDecimals - 2)
  if (share === undefined || share > deployed.feeShare) return refuse(Words.invalidFeeShare)
  deployed.feeShare = share
  return done
}

/** Freezes an account, which ends its orders in pairs of the token, or unfreezes it. */
const freeze = (
  venue: Venue,
  deployed: DeployedToken,
  { freeze, user }: Variant<"freezeUser">
): ActionDecision => {
  if (deployed.canFreeze !== true) return refuse(Words.noFreezePrivilege)
  const address = lowerCase(user)
  if (!freeze) {
    deployed.frozen.delete(address)
    return done
  }
  deployed.frozen.add(address)
  for (const order of venue.state.accounts.get(address)?.open.values() ?? []) {
    const asset = venue.listing.byCoin.get(order.coin)
    const isTraded = asset?.kind === "spot" &&
      [asset.base, asset.quote].some(({ index }) => index === deployed.token.index)
    if (isTraded) Matching.endByVenue(venue, order, "canceled")
  }
  return done
}

const sumDelegated = ({ identity, user }: ActionContext): bigint =>
  sum([...accountOrNew(identity, user).delegations.values()].map(({ wei }) => wei))

/** Makes a token a quote token, for which the deployer needs stake. */
const enableQuote = (
  context: ActionContext,
  deployed: DeployedToken,
  kind: keyof typeof quoteStake
): ActionDecision => {
  const { feeShare, maxSupply, quote, token: { szDecimals, weiDecimals } } = deployed
  if (maxSupply === undefined) return refuse(Words.noMaxSupply)
  const isReady = weiDecimals === mostWeiDecimals && szDecimals === mostSizeDecimals && feeShare === 0n &&
    (kind === "quote" || quote !== undefined)
  if (!isReady) return refuse(Words.invalidQuote)
  if (sumDelegated(context) < quoteStake[kind]) return refuse(Words.insufficientStake)
  if (quote !== "aligned") deployed.quote = kind
  return done
}

const disableQuote = (venue: Venue, deployed: DeployedToken): ActionDecision => {
  const { quote: _before, token: { index }, ...others } = deployed
  const isUsed = [...venue.state.spotPairs.values()].some(({ quote }) => quote === index)
  if (_before === undefined || isUsed) return refuse(Words.invalidQuote)
  venue.state.spotTokens.set(index, { ...others, token: deployed.token })
  return done
}

const requestContract = (
  deployed: DeployedToken,
  { address, evmExtraWeiDecimals }: Variant<"requestEvmContract">
): ActionDecision => {
  if (deployed.evmContract !== undefined || evmExtraWeiDecimals < -2 || evmExtraWeiDecimals > 18) {
    return refuse(Words.invalidEvmContract)
  }
  deployed.pendingContract = { address: lowerCase(address), evm_extra_wei_decimals: evmExtraWeiDecimals }
  return done
}

/** The slots in which a contract stores its finalizer. */
const finalizerSlots = { firstStorageSlot: 0n, customStorageSlot: BigInt(keccak256(toHex("HyperCore deployer"))) }

/** Executes the action `finalizeEvmContract`. The account has created the contract, or is the finalizer in its storage. */
export const finalize: Handler<"finalizeEvmContract"> = ({ user, venue }, { input, token }) => {
  const deployed = venue.state.spotTokens.get(token)
  const contract = deployed?.pendingContract
  if (deployed === undefined || contract === undefined) return refuse(Words.noEvmContract)
  const isFinalizer = Predicate.isString(input)
    ? venue.readStorage(contract.address, finalizerSlots[input]).endsWith(lowerCase(user).slice(2))
    : lowerCase(getContractAddress({ from: user, nonce: BigInt(input.create.nonce) })) === contract.address
  if (!isFinalizer) return refuse(Words.invalidEvmContract)
  const { pendingContract: _linked, ...others } = deployed
  venue.state.spotTokens.set(token, { ...others, evmContract: contract })
  list(venue)
  return done
}

/** Executes the action `authorizeAqav2Role`: an account with stake takes a role for a quote token. */
export const authorize: Handler<"authorizeAqav2Role"> = (context, { role, token }) => {
  const { user, venue } = context
  if (sumDelegated(context) < roleStake) return refuse(Words.insufficientStake)
  const key = `${token}/${role}`
  if (!roles.has(role) || !isQuoteToken(venue, token)) return refuse(Words.invalidQuote)
  if ((venue.state.quoteRoles.get(key) ?? user) !== user) return refuse(Words.roleTaken)
  venue.state.quoteRoles.set(key, user)
  return done
}

/** Returns the token of an action, if the acting account has deployed it. */
const findOwn = ({ user, venue }: ActionContext, token: number): DeployedToken | undefined => {
  const deployed = venue.state.spotTokens.get(token)
  return deployed?.deployer === user ? deployed : undefined
}

/** Returns the token that an action is about; `undefined` if it names an unknown pair, or none. */
const findToken = ({ venue }: ActionContext, action: Deployment): number | undefined => {
  if ("registerSpot" in action) return action.registerSpot.tokens[0]
  if ("registerHyperliquidity" in action) return venue.state.spotPairs.get(action.registerHyperliquidity.spot)?.base
  const named = Object.values<unknown>(action).find(Predicate.isObject)?.["token"]
  return Predicate.isNumber(named) ? named : undefined
}

/** Executes the action `spotDeploy`. */
export const deploy: Handler<"spotDeploy"> = (context, action) => {
  const { user, venue } = context
  if ("registerToken2" in action) return register(context, action.registerToken2)
  if ("setDeployerLabel" in action) {
    venue.state.deployerLabels.set(user, action.setDeployerLabel.label)
    return done
  }
  const token = findToken(context, action)
  const isGenesis = "userGenesis" in action || "genesis" in action
  const isListed = token !== undefined && venue.listing.tokens.has(token) && !venue.state.spotTokens.has(token)
  if (isGenesis && isListed) return refuse(Words.genesisHappened)
  const deployed = token === undefined ? undefined : findOwn(context, token)
  if (deployed === undefined) return refuse(Words.incorrectDeployer)
  if ("userGenesis" in action) return addGenesis(venue, deployed, action.userGenesis)
  if ("genesis" in action) return finishGenesis(context, deployed, action.genesis)
  if ("registerSpot" in action) return registerPair(context, deployed, action.registerSpot)
  if ("registerHyperliquidity" in action) {
    const pair = venue.state.spotPairs.get(action.registerHyperliquidity.spot)
    return pair === undefined
      ? refuse(Words.incorrectDeployer)
      : begin(context, deployed, pair, action.registerHyperliquidity)
  }
  if ("setDeployerTradingFeeShare" in action) return setShare(deployed, action.setDeployerTradingFeeShare.share)
  if ("enableFreezePrivilege" in action) {
    if (deployed.maxSupply !== undefined || deployed.canFreeze === false) return refuse(Words.genesisHappened)
    deployed.canFreeze = true
    return done
  }
  if ("freezeUser" in action) return freeze(venue, deployed, action.freezeUser)
  if ("revokeFreezePrivilege" in action) {
    if (deployed.canFreeze !== true) return refuse(Words.noFreezePrivilege)
    deployed.canFreeze = false
    return done
  }
  if ("enableQuoteToken" in action) return enableQuote(context, deployed, "quote")
  if ("enableAlignedQuoteToken" in action) return enableQuote(context, deployed, "aligned")
  if ("disableQuoteToken" in action) return disableQuote(venue, deployed)
  if ("requestEvmContract" in action) return requestContract(deployed, action.requestEvmContract)
  if ("setTokenAnnotation" in action) {
    deployed.annotation = action.setTokenAnnotation.annotation
    return done
  }
  return refuse(Words.unplayedSpotAction(Object.keys(action).find((name) => name !== "type") ?? ""))
}

/** Returns the genesis of a token: the amounts of accounts, of the holders of other tokens, and the excluded accounts. */
const printGenesis = ({ blacklist, holderGenesis, token: { weiDecimals }, userGenesis }: DeployedToken) => {
  const print = <Key>(amounts: ReadonlyMap<Key, bigint>) =>
    [...amounts].map(([key, wei]) => [key, Assets.printDecimal(wei, weiDecimals)] as const)
  return { users: print(userGenesis), holders: print(holderGenesis), blacklistUsers: [...blacklist] }
}

/** Returns the deployed tokens of an account, as in the response to the query `spotDeployState`. */
export const deployStates = ({ state: { spotPairs, spotTokens } }: Venue, user: Address) =>
  [...spotTokens.values()].filter(({ deployer }) => deployer === lowerCase(user)).map((deployed) => {
    const { feeShare, maxSupply, token: { fullName, index, name, szDecimals, weiDecimals }, userGenesis } = deployed
    const { blacklistUsers, holders, users } = printGenesis(deployed)
    return {
      token: index,
      spec: { name, szDecimals, weiDecimals },
      fullName: fullName ?? null,
      deployerTradingFeeShare: Assets.printDecimal(feeShare, Assets.shareDecimals),
      spots: [...spotPairs.values()].flatMap((pair) => pair.base === index ? [pair.index] : []),
      maxSupply: maxSupply === undefined ? null : Assets.printDecimal(maxSupply, weiDecimals),
      hyperliquidityGenesisBalance: Assets.printDecimal(userGenesis.get(strategist) ?? 0n, weiDecimals),
      totalGenesisBalanceWei: String(totalGenesis(deployed)),
      userGenesisBalances: users,
      existingTokenGenesisBalances: holders,
      blacklistUsers
    }
  })

/** Returns what the query `tokenDetails` lists of a deployed token and not of others; `undefined` for another token. */
export const deploymentDetails = ({ state }: Venue, token: number) => {
  const deployed = state.spotTokens.get(token)
  if (deployed === undefined) return undefined
  const { deployedAt, deployer, gas, maxSupply, seeded, token: { weiDecimals } } = deployed
  const { blacklistUsers, holders, users } = printGenesis(deployed)
  return {
    maxSupply: Assets.printDecimal(maxSupply ?? 0n, weiDecimals),
    genesis: { userBalances: users, existingTokenBalances: holders, blacklistUsers },
    deployer,
    deployGas: gas,
    deployedAt,
    seededUsdc: Assets.printDecimal(seeded, Assets.spotUsdDecimals)
  }
}
