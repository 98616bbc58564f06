/** The order in which the venue hashes the members of an action, whatever their order in the body. */
import * as Predicate from "effect/Predicate"

/**
 * Members in the venue's order, each with its own members; those of a list are its items'.
 *
 * The forms of an action are merged. A name that ends in `?` may be left out, and `null` means the same.
 */
interface Members {
  readonly [name: string]: Members
}

const value: Members = {}

const order: Members = {
  a: value,
  b: value,
  p: value,
  s: value,
  r: value,
  t: { limit: { tif: value }, trigger: { isMarket: value, triggerPx: value, tpsl: value } },
  "c?": value
}

const perpSchema: Members = { fullName: value, collateralToken: value, oracleUpdater: value }

const perpAsset: Members = { coin: value, szDecimals: value, oraclePx: value, marginTableId: value }

const template: Members = { id: value, keywordToValue: value }

const settlement: Members = {
  outcome: value,
  settleFraction: value,
  details: value,
  nameAndDescription: value,
  sideNames: value
}

const validatorProfile = { node_ip: { Ip: value }, name: value, description: value }

/**
 * The L1 actions whose members the venue's client libraries publish; `type` comes first in each.
 *
 * Sources: hyperliquid-python-sdk 0.23.0, hyperliquid-rust-sdk aac7558, @nktkas/hyperliquid 0.33.3.
 */
const published: { readonly [type: string]: Members } = {
  activateOutcomeDeployer: { isDeactivate: value },
  agentEnableDexAbstraction: {},
  agentSendAsset: {
    destination: value,
    sourceDex: value,
    destinationDex: value,
    token: value,
    amount: value,
    fromSubAccount: value,
    nonce: value
  },
  agentSetAbstraction: { abstraction: value },
  authorizeAqav2Role: { token: value, role: value },
  batchModify: { modifies: { oid: value, order }, "a?": value },
  borrowLend: { operation: value, token: value, amount: value },
  cancel: { cancels: { a: value, o: value }, "f?": value },
  cancelByCloid: { cancels: { asset: value, cloid: value }, "f?": value },
  claimRewards: {},
  createSubAccount: { name: value },
  createVault: { name: value, description: value, initialUsd: value, nonce: value },
  CValidatorAction: {
    changeProfile: {
      ...validatorProfile,
      unjailed: value,
      disable_delegations: value,
      commission_bps: value,
      signer: value
    },
    register: {
      profile: { ...validatorProfile, delegations_disabled: value, commission_bps: value, signer: value },
      unjailed: value,
      initial_wei: value
    },
    unregister: value
  },
  finalizeEvmContract: { token: value, input: { create: { nonce: value } } },
  gossipPriorityBid: { slotId: value, ip: value, maxGas: value },
  hip3LiquidatorTransfer: { dex: value, ntl: value, isDeposit: value },
  modify: { oid: value, order, "a?": value },
  noop: {},
  order: { orders: order, grouping: { p: value }, "builder?": { b: value, f: value } },
  perpDeploy: {
    registerAsset2: {
      maxGas: value,
      assetRequest: { ...perpAsset, marginMode: value },
      dex: value,
      schema: perpSchema
    },
    registerAsset: {
      maxGas: value,
      assetRequest: { ...perpAsset, onlyIsolated: value },
      dex: value,
      schema: perpSchema
    },
    setOracle: { dex: value, oraclePxs: value, markPxs: value, externalPerpPxs: value },
    setFundingMultipliers: value,
    setFundingInterestRates: value,
    haltTrading: { coin: value, isHalted: value },
    setMarginTableIds: value,
    insertMarginTable: {
      dex: value,
      marginTable: { description: value, marginTiers: { lowerBound: value, maxLeverage: value } }
    },
    setFeeRecipient: { dex: value, feeRecipient: value },
    setOpenInterestCaps: value,
    setSubDeployers: { dex: value, subDeployers: { variant: value, user: value, allowed: value } },
    setMarginModes: value,
    setFeeScale: { dex: value, scale: value },
    setGrowthModes: value,
    setPerpAnnotation: { coin: value, category: value, description: value, displayName: value, keywords: value },
    disableDex: value
  },
  registerReferrer: { code: value },
  reserveRequestWeight: { weight: value, "destination?": value },
  scheduleCancel: { "time?": value },
  setDisplayName: { displayName: value },
  setReferrer: { code: value },
  spotDeploy: {
    registerToken2: { spec: { name: value, szDecimals: value, weiDecimals: value }, maxGas: value, "fullName?": value },
    userGenesis: { token: value, userAndWei: value, existingTokenAndWei: value, "blacklistUsers?": value },
    genesis: { token: value, maxSupply: value, "noHyperliquidity?": value },
    registerSpot: { tokens: value },
    registerHyperliquidity: { spot: value, startPx: value, orderSz: value, nOrders: value, "nSeededLevels?": value },
    setDeployerTradingFeeShare: { token: value, share: value },
    enableQuoteToken: { token: value },
    disableQuoteToken: { token: value },
    requestEvmContract: { token: value, address: value, evmExtraWeiDecimals: value },
    outcome: {
      registerStandaloneOutcomeFromTemplate: template,
      registerQuestionFromTemplate: { questionTemplateInstance: template, namedOutcomeTemplateInstances: template },
      settleOutcome: settlement,
      settleQuestion2: { question: value, outcomeSettlements: settlement, nameAndDescription: value }
    }
  },
  spotUser: { toggleSpotDusting: { optOut: value }, classTransfer: { usdc: value, toPerp: value } },
  subAccountModify: { subAccountUser: value, name: value },
  subAccountSpotTransfer: { subAccountUser: value, isDeposit: value, token: value, amount: value },
  subAccountTransfer: { subAccountUser: value, isDeposit: value, usd: value },
  topUpIsolatedOnlyMargin: { asset: value, leverage: value },
  twapCancel: { a: value, t: value },
  twapOrder: {
    twap: { a: value, b: value, s: value, r: value, m: value, t: value },
    "details?": { t: { p: value, a: value }, s: value }
  },
  updateIsolatedMargin: { asset: value, isBuy: value, ntli: value },
  updateLeverage: { asset: value, isCross: value, leverage: value },
  userOutcome: {
    splitOutcome: { outcome: value, amount: value },
    mergeOutcome: { outcome: value, amount: value },
    mergeQuestion: { question: value, amount: value },
    negateOutcome: { question: value, outcome: value, amount: value }
  },
  validatorL1Stream: { riskFreeRate: value },
  vaultDistribute: { vaultAddress: value, usd: value },
  vaultModify: { vaultAddress: value, allowDeposits: value, alwaysCloseOnWithdraw: value },
  vaultTransfer: { vaultAddress: value, isDeposit: value, usd: value }
}

interface Place {
  readonly at: number
  readonly optional: boolean
  readonly members: ActionOrder
}

/** The place of each member, in order. */
export type ActionOrder = ReadonlyMap<string, Place>

const places = (members: Members): ActionOrder =>
  new Map(
    Object.entries(members).map(([name, inner], at) => {
      const optional = name.endsWith("?")
      return [optional ? name.slice(0, -1) : name, { at, optional, members: places(inner) }]
    })
  )

/** The order of members that have no members of their own. */
export const flat = (names: ReadonlyArray<string>): ActionOrder =>
  places(Object.fromEntries(names.map((name) => [name, value])))

/** The orders of L1 actions by their type. */
export const l1: ReadonlyMap<string, ActionOrder> = new Map(
  Object.entries(published).map(([type, members]) => [type, places({ type: value, ...members })])
)

const isLeftOut = ({ optional }: Place, item: unknown): boolean => optional && item === null

type Standing = "inOrder" | "otherOrder" | "notNamed"

/** How a value stands to its order: it makes nothing, as nearly every body is in order. */
const standing = (order: ActionOrder, given: unknown): Standing => {
  let found: Standing = "inOrder"
  if (Array.isArray(given)) {
    for (const item of given) {
      const inner = standing(order, item)
      if (inner === "notNamed") return inner
      if (inner === "otherOrder") found = inner
    }
    return found
  }
  if (!Predicate.isReadonlyObject(given)) return found
  let last = -1
  for (const name of Object.keys(given)) {
    const place = order.get(name)
    if (place === undefined) return "notNamed"
    const item = given[name]
    const inner = standing(place.members, item)
    if (inner === "notNamed") return inner
    if (inner === "otherOrder" || place.at < last || isLeftOut(place, item)) found = "otherOrder"
    last = place.at
  }
  return found
}

const put = (order: ActionOrder, given: unknown): unknown => {
  if (Array.isArray(given)) return given.map((item: unknown) => put(order, item))
  return Predicate.isReadonlyObject(given) ? putMembers(order, given) : given
}

const putMembers = (
  order: ActionOrder,
  given: Readonly<Record<string, unknown>>
): Readonly<Record<string, unknown>> => {
  const members: Array<readonly [string, unknown]> = []
  for (const [name, place] of order) {
    const item = given[name]
    if (Object.hasOwn(given, name) && !isLeftOut(place, item)) members.push([name, put(place.members, item)])
  }
  return Object.fromEntries(members)
}

/**
 * The action in an order, at every level.
 *
 * An action with a member that the order does not name comes back as it is: the venue may have learnt that member, and then
 * only the sender knows its place.
 */
export const arrange = (
  order: ActionOrder,
  action: Readonly<Record<string, unknown>>
): Readonly<Record<string, unknown>> => standing(order, action) === "otherOrder" ? putMembers(order, action) : action
