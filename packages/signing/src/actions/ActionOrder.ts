/** The order in which the venue hashes the members of an action, independent of their order in the body. */
import type { ActionTypeOf } from "@trigate/domain/actions/ActionCatalog"
import * as Predicate from "effect/Predicate"

/** The type of a value. `id` is an order ID or a client order ID; `json` is a string that contains JSON. */
export type Kind = "integer" | "decimal" | "text" | "flag" | "address" | "cloid" | "id" | "json" | "null"

/** A closed set of words, as one text in which bars separate the words. */
export type Words = `${string}|${string}`

/** The declared content of a member: a kind of value, a closed set of words, an object with members, or a tuple. */
export type Shape = Kind | Words | Members | ReadonlyArray<Shape>

/**
 * Members in the venue's order, each with its shape. If an action has several forms, the members of all forms are in
 * one object.
 *
 * The suffix of a name states the properties of the member:
 *
 * - `[]`: a list, whose items have the shape. One of the following suffixes can follow it.
 * - `?`: optional; `null` means absent.
 * - `!`: may be `null`, and the `null` is then hashed.
 * - `|`: one of the members marked this way is required.
 *
 * All other members are required. The empty name declares a shape that is accepted instead of the object.
 */
export interface Members {
  readonly [name: string]: Shape
}

const order: Members = {
  a: "integer",
  b: "flag",
  p: "decimal",
  s: "decimal",
  r: "flag",
  t: {
    "limit|": { tif: "Gtc|Ioc|Alo|FrontendMarket" },
    "trigger|": { isMarket: "flag", triggerPx: "decimal", tpsl: "tp|sl" }
  },
  "c?": "cloid"
}

const perpSchema: Members = { fullName: "text", collateralToken: "integer", "oracleUpdater!": "address" }

const perpAsset: Members = { coin: "text", szDecimals: "integer", oraclePx: "decimal", marginTableId: "integer" }

const template: Members = { id: "text", "keywordToValue[]": ["text", "text"] }

const settlement: Members = {
  outcome: "integer",
  settleFraction: "decimal",
  details: "text",
  nameAndDescription: ["text", "text"],
  sideNames: ["text", "text"]
}

const token: Members = { token: "integer" }

/** The members of each L1 action in the catalog of action types, without `type`, which is always the first member. */
const published: { readonly [Type in ActionTypeOf<"l1">]: Members } = {
  activateOutcomeDeployer: { isDeactivate: "flag" },
  agentEnableDexAbstraction: {},
  agentSendAsset: {
    destination: "address",
    sourceDex: "text",
    destinationDex: "text",
    token: "text",
    amount: "decimal",
    fromSubAccount: "address",
    nonce: "integer"
  },
  agentSetAbstraction: { abstraction: "i|u|p" },
  authorizeAqav2Role: { token: "integer", role: "text" },
  batchModify: { "modifies[]": { oid: "id", order }, "a?": "flag" },
  borrowLend: { operation: "supply|withdraw|borrow|repay", token: "integer", "amount!": "decimal" },
  cancel: { "cancels[]": { a: "integer", o: "integer" }, "f?": "flag" },
  cancelByCloid: { "cancels[]": { asset: "integer", cloid: "cloid" }, "f?": "flag" },
  claimRewards: {},
  createSubAccount: { name: "text" },
  createVault: { name: "text", description: "text", initialUsd: "integer", nonce: "integer" },
  CSignerAction: { "jailSelf|": "null", "unjailSelf|": "null" },
  CValidatorAction: {
    "changeProfile|": {
      "node_ip!": { Ip: "text" },
      "name!": "text",
      "description!": "text",
      unjailed: "flag",
      "disable_delegations!": "flag",
      "commission_bps!": "integer",
      "signer!": "address"
    },
    "register|": {
      profile: {
        node_ip: { Ip: "text" },
        name: "text",
        description: "text",
        delegations_disabled: "flag",
        commission_bps: "integer",
        signer: "address"
      },
      unjailed: "flag",
      initial_wei: "integer"
    },
    "unregister|": "null"
  },
  evmUserModify: { usingBigBlocks: "flag" },
  finalizeEvmContract: {
    token: "integer",
    input: { "": "firstStorageSlot|customStorageSlot", "create|": { nonce: "integer" } }
  },
  gossipPriorityBid: { slotId: "integer", ip: "text", maxGas: "integer" },
  hip3LiquidatorTransfer: { dex: "text", ntl: "integer", isDeposit: "flag" },
  modify: { oid: "id", order, "a?": "flag" },
  noop: {},
  order: {
    "orders[]": order,
    grouping: { "": "na|normalTpsl|positionTpsl", p: "integer" },
    "builder?": { b: "address", f: "integer" }
  },
  perpDeploy: {
    "registerAsset2|": {
      "maxGas!": "integer",
      assetRequest: { ...perpAsset, marginMode: "text" },
      dex: "text",
      "schema!": perpSchema
    },
    "registerAsset|": {
      "maxGas!": "integer",
      assetRequest: { ...perpAsset, onlyIsolated: "flag" },
      dex: "text",
      "schema!": perpSchema
    },
    "setOracle|": {
      dex: "text",
      "oraclePxs[]": ["text", "decimal"],
      "markPxs[][]": ["text", "decimal"],
      "externalPerpPxs[]": ["text", "decimal"]
    },
    "setFundingMultipliers[]|": ["text", "decimal"],
    "setFundingInterestRates[]|": ["text", "decimal"],
    "haltTrading|": { coin: "text", isHalted: "flag" },
    "setMarginTableIds[]|": ["text", "integer"],
    "insertMarginTable|": {
      dex: "text",
      marginTable: { description: "text", "marginTiers[]": { lowerBound: "integer", maxLeverage: "integer" } }
    },
    "setFeeRecipient|": { dex: "text", feeRecipient: "address" },
    "setOpenInterestCaps[]|": ["text", "integer"],
    "setSubDeployers|": { dex: "text", "subDeployers[]": { variant: "text", user: "address", allowed: "flag" } },
    "setMarginModes[]|": ["text", "text"],
    "setFeeScale|": { dex: "text", scale: "decimal" },
    "setGrowthModes[]|": ["text", "flag"],
    "setPerpAnnotation|": {
      coin: "text",
      category: "text",
      description: "text",
      "displayName!": "text",
      "keywords[]!": "text"
    },
    "disableDex|": "text"
  },
  registerReferrer: { code: "text" },
  reserveRequestWeight: { weight: "integer", "destination?": "address" },
  scheduleCancel: { "time?": "integer" },
  setDisplayName: { displayName: "text" },
  setReferrer: { code: "text" },
  spotDeploy: {
    "registerToken2|": {
      spec: { name: "text", szDecimals: "integer", weiDecimals: "integer" },
      maxGas: "integer",
      "fullName?": "text"
    },
    "userGenesis|": {
      token: "integer",
      "userAndWei[]": ["address", "decimal"],
      "existingTokenAndWei[]": ["integer", "decimal"],
      "blacklistUsers[]?": ["address", "flag"]
    },
    "genesis|": { token: "integer", maxSupply: "decimal", "noHyperliquidity?": "flag" },
    "registerSpot|": { tokens: ["integer", "integer"] },
    "registerHyperliquidity|": {
      spot: "integer",
      startPx: "decimal",
      orderSz: "decimal",
      nOrders: "integer",
      "nSeededLevels?": "integer"
    },
    "setDeployerTradingFeeShare|": { token: "integer", share: "text" },
    "enableQuoteToken|": token,
    "disableQuoteToken|": token,
    "requestEvmContract|": { token: "integer", address: "address", evmExtraWeiDecimals: "integer" },
    "outcome|": {
      "registerStandaloneOutcomeFromTemplate|": template,
      "registerQuestionFromTemplate|": {
        questionTemplateInstance: template,
        "namedOutcomeTemplateInstances[]": template
      },
      "settleOutcome|": settlement,
      "settleQuestion2|": {
        question: "integer",
        "outcomeSettlements[]": settlement,
        nameAndDescription: ["text", "text"]
      }
    },
    "freezeUser|": { token: "integer", user: "address", freeze: "flag" },
    "enableFreezePrivilege|": token,
    "revokeFreezePrivilege|": token
  },
  spotUser: {
    "toggleSpotDusting|": { optOut: "flag" },
    "classTransfer|": { usdc: "integer", toPerp: "flag" }
  },
  subAccountModify: { subAccountUser: "address", name: "text" },
  subAccountSpotTransfer: { subAccountUser: "address", isDeposit: "flag", token: "text", amount: "decimal" },
  subAccountTransfer: { subAccountUser: "address", isDeposit: "flag", usd: "integer" },
  topUpIsolatedOnlyMargin: { asset: "integer", leverage: "decimal" },
  twapCancel: { a: "integer", t: "integer" },
  twapOrder: {
    twap: { a: "integer", b: "flag", s: "decimal", r: "flag", m: "integer", t: "flag" },
    "details?": { "t!": { p: "decimal", a: "flag" }, "s!": "decimal" }
  },
  updateIsolatedMargin: { asset: "integer", isBuy: "flag", ntli: "integer" },
  updateLeverage: { asset: "integer", isCross: "flag", leverage: "integer" },
  userOutcome: {
    "splitOutcome|": { outcome: "integer", amount: "decimal" },
    "mergeOutcome|": { outcome: "integer", "amount!": "decimal" },
    "mergeQuestion|": { question: "integer", "amount!": "decimal" },
    "negateOutcome|": { question: "integer", outcome: "integer", amount: "decimal" }
  },
  validatorL1Stream: { riskFreeRate: "decimal" },
  vaultDistribute: { vaultAddress: "address", usd: "integer" },
  vaultModify: { vaultAddress: "address", "allowDeposits!": "flag", "alwaysCloseOnWithdraw!": "flag" },
  vaultTransfer: { vaultAddress: "address", isDeposit: "flag", usd: "integer" }
}

/** Whether a member can be absent or null; see {@link Members}. */
export type Presence = "required" | "optional" | "nullable" | "oneOf"

/** The position of a member, and its shape. */
export interface MemberPosition {
  readonly at: number
  readonly optional: boolean
  readonly presence: Presence
  readonly shape: Shape
  /** The number of nested lists around a value of the shape. */
  readonly lists: number
  readonly members: ActionOrder
}

/** The position of each member of an object, in the venue's order of the members. */
export type ActionOrder = ReadonlyMap<string, MemberPosition>

const marks: { readonly [mark: string]: Presence } = { "?": "optional", "!": "nullable", "|": "oneOf" }

const none: ActionOrder = new Map()

/** Returns whether a shape is an object. */
export const isMembers = (shape: Shape): shape is Members => Predicate.isObject(shape)

const named = /^(?<name>[^[?!|]*)(?<lists>(?:\[\])*)(?<mark>[?!|]?)$/u

/** Returns the positions of an object's members. */
export const places = (members: Members): ActionOrder =>
  new Map(
    Object.entries(members).filter(([marked]) => marked !== "").map(([marked, shape], at) => {
      const { lists = "", mark = "", name = marked } = named.exec(marked)?.groups ?? {}
      const presence = marks[mark] ?? "required"
      return [name, {
        at,
        optional: presence === "optional",
        presence,
        shape,
        lists: lists.length / 2,
        members: isMembers(shape) ? places(shape) : none
      }]
    })
  )

/** The member order of each L1 action, by the action's type. */
export const l1: ReadonlyMap<string, ActionOrder> = new Map(
  Object.entries<Members>(published).map(([type, members]) => [type, places({ type: "text", ...members })])
)

const isLeftOut = ({ optional }: MemberPosition, item: unknown): boolean => optional && item === null

type Standing = "inOrder" | "otherOrder" | "notNamed"

/**
 * Compares the members of a value with the venue's order. Allocates nothing, because nearly every body is already in
 * order.
 */
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
 * Sorts the members of an action into the given member order, at every level.
 *
 * An action with an unknown member is returned unchanged: the venue might support that member, and only the sender
 * knows its position.
 */
export const arrange = (
  order: ActionOrder,
  action: Readonly<Record<string, unknown>>
): Readonly<Record<string, unknown>> => standing(order, action) === "otherOrder" ? putMembers(order, action) : action
