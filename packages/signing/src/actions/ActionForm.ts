/**
 * Converts an action to the venue's form, and reports the differences in names, values and structure as mistakes.
 *
 * Finding these mistakes requires no signature. The members and their types are declared in `ActionOrder`.
 */
import { actionCatalog } from "@trigate/domain/actions/Action"
import * as Json from "@trigate/domain/encoding/Encoding"
import type { Mistake } from "@trigate/domain/unstable/Inspection"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Decimal from "../Decimal.ts"
import { isAddress } from "./ActionHash.ts"
import { type ActionOrder, itemShape, type Kind, type MemberPosition, type Shape } from "./CanonicalAction.ts"

/** Normalizes a name: ignores letter case, separators, plural, and a trailing number. */
const plain = (name: string): string =>
  name.toLowerCase().replaceAll(/[^a-z0-9]/g, "").replace(/v?[0-9]+$/, "").replace(/s$/, "")

type Synonyms = { readonly [name: string]: ReadonlyArray<string> }

const indexed = (synonyms: Synonyms): ReadonlyMap<string, ReadonlyArray<string>> => {
  const found = new Map<string, Array<string>>()
  for (const [name, others] of Object.entries(synonyms)) {
    for (const other of others) {
      const known = found.get(plain(other))
      if (known === undefined) found.set(plain(other), [name])
      else if (!known.includes(name)) known.push(name)
    }
  }
  return found
}

const typeSynonyms = indexed({
  order: [
    "placeOrder",
    "createOrder",
    "newOrder",
    "submitOrder",
    "limitOrder",
    "marketOrder",
    "bulkOrders",
    "orderAction",
    "trade"
  ],
  cancel: ["cancelOrder", "bulkCancel", "orderCancel", "cancelAction", "deleteOrder"],
  cancelByCloid: ["cancelCloid", "cancelByClientOrderId", "cancelByClientId", "bulkCancelByCloid"],
  modify: ["modifyOrder", "editOrder", "amendOrder", "amend", "edit"],
  batchModify: ["bulkModify", "batchModifyOrders", "modifyBatch", "modifyMany"],
  scheduleCancel: ["deadMansSwitch", "scheduleCancelAll", "cancelAllAfter", "cancelSchedule"],
  updateLeverage: ["setLeverage", "changeLeverage", "leverage"],
  updateIsolatedMargin: ["isolatedMargin", "addMargin", "updateMargin", "adjustMargin", "setIsolatedMargin"],
  usdSend: ["usdTransfer", "sendUsd", "usdcTransfer", "usdcSend", "transferUsd", "sendUsdc"],
  spotSend: ["spotTransfer", "sendSpot", "transferSpot", "tokenSend"],
  withdraw3: ["withdraw", "withdrawal", "withdrawFromBridge", "bridgeWithdraw", "initiateWithdrawal"],
  usdClassTransfer: ["classTransfer", "usdClassTransferAction", "spotPerpTransfer", "transferBetweenSpotAndPerp"],
  sendAsset: ["assetSend", "transferAsset", "sendToken"],
  tokenDelegate: ["delegate", "stake", "delegateToken", "tokenDelegation", "undelegate", "tokenUndelegate"],
  cDeposit: ["stakingDeposit", "depositStaking", "cStakingDeposit"],
  cWithdraw: ["stakingWithdraw", "withdrawStaking", "cStakingWithdraw"],
  approveAgent: ["agentApprove", "approveApiWallet", "addAgent", "approveWallet", "approveAgentWallet"],
  approveBuilderFee: ["approveBuilder", "builderFee", "setBuilderFee", "maxBuilderFee"],
  convertToMultiSigUser: ["convertToMultiSig", "multiSigConvert", "createMultiSig"],
  multiSig: ["multiSigAction", "multisignature", "sendMultiSig"],
  evmUserModify: ["useBigBlocks", "usingBigBlocks", "bigBlocks", "evmModify", "modifyEvmUser"],
  CSignerAction: ["signerAction", "cSigner", "jailSelf", "unjailSelf"],
  CValidatorAction: ["validatorAction", "cValidator"],
  twapOrder: ["twap", "placeTwap", "createTwap", "twapCreate"],
  twapCancel: ["cancelTwap", "stopTwap"],
  createSubAccount: ["newSubAccount", "addSubAccount", "subAccountCreate"],
  subAccountTransfer: ["transferSubAccount", "subAccountUsdTransfer", "transferToSubAccount"],
  vaultTransfer: ["vaultUsdTransfer", "transferVault", "vaultDeposit", "vaultWithdraw"],
  setReferrer: ["referrer", "setReferral", "useReferrer"],
  registerReferrer: ["createReferrer", "registerReferral", "createReferralCode"],
  reserveRequestWeight: ["reserveWeight", "buyRequestWeight"],
  userSetAbstraction: ["setAbstraction", "setUserAbstraction"],
  userDexAbstraction: ["dexAbstraction", "enableDexAbstraction", "setUserDexAbstraction"],
  noop: ["nop", "ping", "invalidateNonce"]
})

const wordSynonyms = indexed({
  Gtc: ["goodTillCancel", "goodTilCancelled", "goodUntilCanceled", "goodTillCanceled", "goodTillCancelled", "limit"],
  Ioc: ["immediateOrCancel", "market", "immediate"],
  Alo: ["addLiquidityOnly", "postOnly", "post", "gtx", "poc", "maker", "makerOnly", "po", "pendingOrCancelled"],
  FrontendMarket: ["frontend", "marketFrontend"],
  tp: ["takeProfit", "takeProfitMarket", "takeProfitLimit", "profit"],
  sl: ["stopLoss", "stop", "stopMarket", "stopLimit", "loss"],
  na: ["none", "n/a", "null", "no", "normal", "default", ""],
  normalTpsl: ["tpsl", "normalTpAndSl", "bracket", "oco", "otoco"],
  positionTpsl: ["position", "positionTpAndSl"],
  i: ["disabled", "individual", "isolated", "none"],
  u: ["unifiedAccount", "unified", "unifiedMargin"],
  p: ["portfolioMargin", "portfolio", "pm"],
  disabled: ["i", "off", "none", "standard", "classic"],
  unifiedAccount: ["u", "unified", "unifiedMargin"],
  portfolioMargin: ["p", "portfolio", "pm"],
  supply: ["deposit", "lend"],
  withdraw: ["withdrawal", "unlend"],
  borrow: ["loan"],
  repay: ["payback", "return"],
  hex: ["0x", "evm", "ethereum", "base16"],
  base58: ["b58", "solana", "sol"],
  Mainnet: ["main", "production", "prod", "hyperliquidMainnet", "live"],
  Testnet: ["test", "hyperliquidTestnet", "sandbox"]
})

/** Words of other venues for which this venue has no equivalent. */
const foreignWords: ReadonlySet<string> = new Set([
  "fok",
  "fillorkill",
  "gtd",
  "goodtildate",
  "goodtilldate",
  "day",
  "gfd",
  "goodforday",
  "aon",
  "allornone",
  "gtt",
  "goodtilltime"
])

const memberSynonyms = indexed({
  a: ["asset", "assetId", "coin", "symbol", "market", "assetIndex"],
  asset: ["a", "assetId", "coin", "assetIndex", "symbol"],
  b: ["isBuy", "buy", "side", "is_buy", "builder", "address"],
  p: ["price", "limitPx", "px", "limitPrice", "limit_px"],
  s: ["size", "sz", "qty", "quantity", "amount", "volume"],
  r: ["reduceOnly", "reduce_only", "reduce"],
  t: ["orderType", "order_type", "type", "twapId", "randomize"],
  c: ["cloid", "clientOrderId", "clientId", "clOrdId"],
  cloid: ["c", "clientOrderId", "clientId"],
  o: ["oid", "orderId", "order_id", "id"],
  oid: ["o", "orderId", "order_id", "id"],
  f: ["fee", "feeRate", "fast"],
  m: ["minutes", "duration", "min"],
  tif: ["timeInForce", "time_in_force"],
  isMarket: ["market", "is_market"],
  triggerPx: ["triggerPrice", "stopPrice", "trigger_px", "stopPx", "trigger"],
  tpsl: ["kind", "tpSl", "triggerType"],
  isBuy: ["b", "buy", "side"],
  isCross: ["cross", "crossMargin", "is_cross"],
  ntli: ["amount", "usd", "ntl", "margin"],
  time: ["nonce", "timestamp", "ts"],
  nonce: ["time", "timestamp", "ts"],
  destination: ["to", "recipient", "address", "destinationAddress", "receiver", "user"],
  amount: ["usd", "value", "sz", "size", "quantity"],
  wei: ["amount", "value", "stake"],
  usd: ["amount", "value", "usdc"],
  toPerp: ["isPerp", "to_perp", "perp"],
  agentAddress: ["agent", "address", "agentWallet", "wallet"],
  agentName: ["name", "label"],
  maxFeeRate: ["feeRate", "maxFee", "fee", "rate"],
  builder: ["builderAddress", "address"],
  validator: ["validatorAddress", "address", "delegate"],
  isUndelegate: ["undelegate", "is_undelegate", "isUnstake"],
  signatureChainId: ["chainId", "signature_chain_id", "sigChainId"],
  hyperliquidChain: ["chain", "network", "hlChain", "hyperliquid_chain", "source"],
  usingBigBlocks: ["useBigBlocks", "bigBlocks", "using_big_blocks", "enabled"],
  subAccountUser: ["subAccount", "user", "subaccount_user"],
  vaultAddress: ["vault", "vault_address", "address"],
  isDeposit: ["deposit", "is_deposit"],
  code: ["referralCode", "referrer", "name"],
  orders: ["order", "items", "data"],
  cancels: ["cancel", "orders", "items", "data"],
  modifies: ["modify", "orders", "modifications", "items"],
  grouping: ["group", "groupType"]
})

/** Returns the stem and the version of a name that can end with a number. */
const parseVersion = (name: string): readonly [stem: string, version: number] => {
  const [stem = "", digits = "1"] = name.toLowerCase().split(/(?<![0-9])([0-9]{1,4})$/u)
  return [stem, Number(digits)]
}

/** Returns whether a name differs from a known name only by a higher version, which the venue can have added. */
const isNewerVersion = (given: string, known: ReadonlyArray<string>): boolean => {
  const [stem, version] = parseVersion(given)
  const versions = known.map(parseVersion).flatMap(([other, number]) => other === stem ? [number] : [])
  return versions.length > 0 && version > Math.max(...versions)
}

const only = <A>(found: ReadonlyArray<A>): A | undefined => found.length === 1 ? found[0] : undefined

/** Returns whether two names differ by one letter (omitted, added or changed) or by two swapped adjacent letters. */
const isTypo = (a: string, b: string): boolean => {
  if (Math.abs(a.length - b.length) > 1 || Math.min(a.length, b.length) < 4) return false
  let start = 0
  while (start < a.length && a[start] === b[start]) start++
  const [restA, restB] = [a.slice(start), b.slice(start)]
  return restA.slice(1) === restB || restA === restB.slice(1) || restA.slice(1) === restB.slice(1) ||
    (restA[0] === restB[1] && restA[1] === restB[0] && restA.slice(2) === restB.slice(2))
}

const nearest = (
  given: string,
  known: ReadonlyArray<string>,
  synonyms: ReadonlyMap<string, ReadonlyArray<string>>
): string | undefined => {
  if (isNewerVersion(given, known)) return undefined
  const name = plain(given)
  const same = known.filter((each) => each.toLowerCase() === given.toLowerCase())
  const alike = known.filter((each) => plain(each) === name)
  const meant = (synonyms.get(name) ?? []).filter((each) => known.includes(each))
  return only(same) ?? only(alike) ?? only(meant) ?? only(known.filter((each) => isTypo(plain(each), name)))
}

const types = Object.keys(actionCatalog)

/** Returns the most similar action type; `undefined` if none is similar. */
export const nearestType = (given: string): string | undefined => nearest(given, types, typeSynonyms)

/** Returns the most similar word; `undefined` if none is similar. */
export const nearestWord = (given: string, words: ReadonlyArray<string>): string | undefined =>
  nearest(given, words, wordSynonyms)

/** Returns the most similar member; `undefined` if none is similar. */
export const nearestMember = (given: string, members: ReadonlyArray<string>): string | undefined =>
  nearest(given, members, memberSynonyms)

/** A value that the venue formats differently or refuses, and the expected value. */
export interface ValueFault {
  readonly mistake: Mistake["mistake"]
  /** The intended value; `undefined` if it cannot be inferred. */
  readonly repaired: unknown
  /** A description of the expected value, used if the intended value cannot be inferred. */
  readonly expected: string
}

const kinds: { readonly [K in Kind]: string } = {
  integer: "an integer",
  decimal: "a decimal number as text",
  percent: "a percentage as text, such as \"0.01%\"",
  text: "text",
  flag: "true or false",
  mark: "true, or no member",
  address: "0x and 40 hex digits",
  cloid: "0x and 32 hex digits",
  id: "an order id, or 0x and 32 hex digits",
  json: "JSON as text",
  null: "null",
  any: "any value"
}

/** Formats a list of words for a message. */
export const listed = (words: ReadonlyArray<string>): string => {
  const quoted = words.map((word) => JSON.stringify(word))
  return quoted.length < 2 ? quoted.join() : `${quoted.slice(0, -1).join(", ")} or ${quoted.at(-1)}`
}

const isInteger = (value: unknown): value is number | bigint => Predicate.isBigInt(value) || Number.isInteger(value)

const isCloid = (value: unknown): value is string => Predicate.isString(value) && /^0x[0-9a-fA-F]{32}$/.test(value)

/** Parses an integer that was sent as text. */
const integerIn = (value: unknown): unknown => {
  if (!Predicate.isString(value) || !/^-?[0-9]{1,20}$/.test(value)) return undefined
  const integer = BigInt(value)
  return Number.isSafeInteger(Number(integer)) ? Number(integer) : integer
}

/** Removes formatting from a decimal: spaces, a plus sign, thousands separators, a currency or a percent sign. */
const withoutOrnaments = (text: string): string | undefined => {
  const bare = text.trim().replace(/^\+/, "").replaceAll(/[\s$_]/g, "").replace(
    /^([0-9]{1,3})((?:,[0-9]{3})+)(?=\.|$)/,
    (all) => all.replaceAll(",", "")
  )
  return Decimal.canonical(/^[0-9]+,[0-9]+$/.test(bare) ? bare.replace(",", ".") : bare)
}

const addressIn = (value: unknown): string | undefined => {
  if (!Predicate.isString(value)) return undefined
  if (isAddress(value) || value === "") return value.toLowerCase()
  const bare = value.trim().replace(/^0[xX]/, "")
  if (/^[0-9a-fA-F]{40}$/.test(bare)) return `0x${bare.toLowerCase()}`
  return /^0{24}[0-9a-fA-F]{40}$/.test(bare) ? `0x${bare.slice(24).toLowerCase()}` : undefined
}

const cloidIn = (value: unknown): string | undefined => {
  if (isCloid(value)) return value.toLowerCase()
  const bare = Predicate.isString(value) ? value.trim().replace(/^0[xX]/, "").replaceAll("-", "") : ""
  return /^[0-9a-fA-F]{32}$/.test(bare) ? `0x${bare.toLowerCase()}` : undefined
}

/** Parses a percentage as text. A number could be a fraction. */
const percentIn = (value: unknown): string | undefined => {
  if (!Predicate.isString(value)) return undefined
  if (/^[0-9]+(?:\.[0-9]+)?%$/.test(value)) return value
  const bare = Decimal.canonical(value.replace("%", "").trim())
  return bare === undefined || bare.startsWith("-") ? undefined : `${bare}%`
}

const yes: ReadonlySet<unknown> = new Set(["true", "True", 1, "1", "buy", "B"])
const no: ReadonlySet<unknown> = new Set(["false", "False", 0, "0", "sell", "A"])

const flagIn = (value: unknown): unknown =>
  Predicate.isBoolean(value) ? value : yes.has(value) ? true : no.has(value) ? false : undefined

const intendedValues: { readonly [K in Kind]: (value: unknown) => unknown } = {
  integer: (value) => isInteger(value) ? value : integerIn(value),
  decimal: (value) =>
    Predicate.isString(value) || Predicate.isNumber(value) || Predicate.isBigInt(value)
      ? Decimal.canonical(String(value)) ?? withoutOrnaments(String(value))
      : undefined,
  percent: percentIn,
  text: (value) => Predicate.isString(value) ? value : isInteger(value) ? String(value) : undefined,
  flag: flagIn,
  mark: flagIn,
  address: addressIn,
  cloid: cloidIn,
  id: (value) => isInteger(value) ? value : cloidIn(value) ?? integerIn(value),
  json: (value) => Predicate.isString(value) ? value : undefined,
  null: (value) => value === null ? value : undefined,
  any: (value) => value
}

const mistakeIn = (kind: Kind, value: unknown, repaired: unknown): Mistake["mistake"] => {
  if (!Predicate.isString(value) || kind === "integer" || kind === "flag" || kind === "mark") return "valueType"
  if (kind === "id" && isInteger(repaired)) return "valueType"
  if (kind === "decimal") {
    if (repaired === undefined) return "unacceptedValue"
    return /^[^eE,\s]*\.[0-9]*0$|\.$/.test(value) ? "trailingZero" : "decimalText"
  }
  if (repaired === undefined) {
    return kind === "address" || kind === "cloid" || kind === "id" || kind === "percent"
      ? "unacceptedValue"
      : "valueType"
  }
  return Predicate.isString(repaired) && repaired === value.toLowerCase() ? "letterCase" : "unacceptedValue"
}

const signedDecimals = new Set(["setFundingInterestRates"])
const signedIntegers = new Set(["ntli", "evmExtraWeiDecimals"])
const prices = new Set(["p", "triggerPx"])
const tokens = new Set(["spotSend", "sendAsset", "agentSendAsset", "subAccountSpotTransfer"])
const amounts = /^[0-9]+(?:\.[0-9]+)?(?: subaccount:0x[0-9a-fA-F]{40})?$/

/** Maximum decimal places of a price or size of any asset. */
const maxPlaces = 8

/** Maximum significant digits of a price that is not an integer. */
const maxDigits = 5

const countDigits = (decimal: string): number => decimal.replace(/^-/, "").replace(".", "").replace(/^0+/, "").length

const fault = (expected: string, repaired?: unknown, mistake: Mistake["mistake"] = "unacceptedValue"): ValueFault => ({
  mistake,
  repaired,
  expected
})

const outOfRange = (
  kind: Kind,
  value: unknown,
  name: string,
  path: ReadonlyArray<string | number>
): ValueFault | undefined => {
  const isSigned = path.some((key) => signedDecimals.has(String(key)) || signedIntegers.has(String(key)))
  if (isInteger(value) && kind !== "decimal") {
    return value < 0 && !isSigned ? fault("an integer of 0 or more") : undefined
  }
  if (kind !== "decimal" || !Predicate.isString(value)) return undefined
  if (value.startsWith("-") && !isSigned) return fault("a number of 0 or more")
  const places = value.split(".")[1]?.length ?? 0
  if (places > maxPlaces) return fault(`a number of at most ${maxPlaces} decimal places`)
  return prices.has(name) && places > 0 && countDigits(value) > maxDigits
    ? fault(`a price of at most ${maxDigits} significant digits, or an integer`)
    : undefined
}

const chainIdIn = (value: unknown): string | undefined => {
  if (isInteger(value) && value >= 0) return `0x${value.toString(16)}`
  if (!Predicate.isString(value)) return undefined
  if (/^0[xX][0-9a-fA-F]{1,16}$/.test(value)) return `0x${value.slice(2).toLowerCase().replace(/^0+(?=.)/, "")}`
  if (/^[0-9]{1,16}$/.test(value)) return `0x${BigInt(value).toString(16)}`
  const caip = /^eip155:([0-9]{1,16})$/.exec(value)?.[1]
  return caip === undefined ? undefined : `0x${BigInt(caip).toString(16)}`
}

/** The position of a value: its member, its path, and the type of its action. */
export interface Position {
  readonly type: unknown
  readonly name: string
  readonly path: ReadonlyArray<string | number>
}

/**
 * Checks the format of a chain ID. The exact format matters only inside a multi-sig wrapper, where the text is hashed;
 * elsewhere, any 0x hex is valid.
 */
export const chainIdFault = (value: unknown, isHashed: boolean): ValueFault | undefined => {
  const repaired = chainIdIn(value)
  if (repaired === value) return undefined
  if (!isHashed && Predicate.isString(value) && /^0x[0-9a-fA-F]{1,16}$/.test(value)) return undefined
  return fault("a chain id as text in 0x hex, such as \"0xa4b1\" for Arbitrum One", repaired, "chainIdText")
}

const tokenFault = ({ name, type }: Position, value: unknown): ValueFault | undefined =>
  name === "token" && tokens.has(String(type)) && Predicate.isString(value) && !/^[^:]+:0x[0-9a-fA-F]{32}$/.test(value)
    ? fault("name and id of the token, such as \"PURR:0xc1fb593aeffbeb02f85e0308e9956a90\"")
    : undefined

const destinations = new Set(["usdSend", "spotSend", "withdraw3", "sendAsset"])

/** Checks a string in a user-signed action. The exact text of the string is signed. */
const textFault = (position: Position, value: unknown): ValueFault | undefined => {
  const { name, type } = position
  if (!Predicate.isString(value)) return undefined
  if (name === "destination" && destinations.has(String(type)) && !isAddress(value)) {
    return fault(kinds.address, addressIn(value))
  }
  if (name === "amount" && !amounts.test(value)) {
    const repaired = Decimal.canonical(value) ?? withoutOrnaments(value)
    return fault("a positive decimal number as text", repaired?.startsWith("-") === true ? undefined : repaired)
  }
  return tokenFault(position, value)
}

/** Returns the mistake in a value of a kind; `undefined` for a valid value. */
export const valueFault = (kind: Kind, value: unknown, position: Position): ValueFault | undefined => {
  const repaired = intendedValues[kind](value)
  if (repaired === value) {
    return kind === "text" ? textFault(position, value) : outOfRange(kind, value, position.name, position.path)
  }
  return { mistake: mistakeIn(kind, value, repaired), repaired, expected: kinds[kind] }
}

/**
 * Returns the mistake in a value that must be one word of a closed set; `undefined` for a valid value, and for a word that
 * resembles none of the set, because the venue can have added it.
 */
export const wordFault = (words: ReadonlyArray<string>, value: unknown): ValueFault | undefined => {
  if (!Predicate.isString(value)) return fault(listed(words), undefined, "valueType")
  const repaired = nearestWord(value, words)
  return words.includes(value) || (repaired === undefined && !foreignWords.has(plain(value)))
    ? undefined
    : fault(listed(words), repaired, "unknownWord")
}

/** The path of a value in a body. */
export type Path = Mistake["path"]

/**
 * An action or a part of it, with only the members that the venue would serialize, and the mistakes that were found.
 */
export interface Form {
  readonly value: unknown
  readonly faults: ReadonlyArray<Mistake>
}

/** A value of an action, the value's path, and the kind that `ActionOrder` declares for the value. */
export interface Leaf {
  readonly path: Path
  readonly kind: Kind
  readonly value: unknown
}

const longest = 80

/** Formats a value for a message: JSON, truncated if too long. */
export const quoted = (value: unknown): string => {
  const text = value === undefined ? "nothing" : Json.stringify(value)
  return text.length > longest ? `${text.slice(0, longest)}...` : text
}

/** Describes the expected content of a member. */
const described = (shape: Shape): string => {
  switch (shape._tag) {
    case "List":
      return "a list"
    case "Tuple":
      return `a list of ${shape.items.length} values`
    case "Value":
      return kinds[shape.kind]
    case "Words":
      return listed(shape.words)
    case "Members": {
      if (shape.otherwise !== undefined) return described(shape.otherwise)
      const names = [...shape.order.keys()]
      return names.length === 0 ? "an object" : `an object with ${names.slice(0, 8).join(", ")}`
    }
  }
}

/** The type of the action to normalize, and whether the exact format of its values is hashed. */
interface Reading {
  readonly type: unknown
  readonly isHashed: boolean
}

/** Returns the form of a value that may have a mistake. */
const withFault = (value: unknown, path: Path, fault: ValueFault | undefined): Form => {
  if (fault === undefined) return sound(value)
  const { expected, mistake, repaired = value } = fault
  const right = fault.repaired === undefined ? expected : quoted(repaired)
  return { value: repaired, faults: [{ mistake, path, found: quoted(value), expected: right }] }
}

const joined = (forms: ReadonlyArray<readonly [key: string, form: Form]>): Form => ({
  value: Object.fromEntries(forms.map(([key, { value }]) => [key, value])),
  faults: forms.flatMap(([, { faults }]) => faults)
})

const listForm = (items: ReadonlyArray<unknown>, formOf: (item: unknown, index: number) => Form): Form => {
  const forms = items.map(formOf)
  return { value: forms.map(({ value }) => value), faults: forms.flatMap(({ faults }) => faults) }
}

const wrongShape = (shape: Shape, value: unknown, path: Path, repaired = value): Form => ({
  value: repaired,
  faults: [{ mistake: "wrongShape", path, found: quoted(value), expected: described(shape) }]
})

/** Adds the mistake that a value has another shape to the form of the value that it contains. */
const reshaped = (shape: Shape, value: unknown, path: Path, inner: Form): Form => ({
  value: inner.value,
  faults: [...wrongShape(shape, value, path).faults, ...inner.faults]
})

/** Parses a string as JSON if an object or a list is expected. */
const parsed = (value: unknown): unknown =>
  Predicate.isString(value) && /^\s*[[{]/.test(value)
    ? Result.getOrUndefined(Json.parseStrict(value, { maxDepth: 16, maxValues: 1000 }))
    : undefined

/** Returns whether a value has the outer form of a shape: an object for members, no object or list for another shape. */
const isOfForm = (shape: Shape, value: unknown): boolean =>
  shape._tag === "Members" ? Predicate.isReadonlyObject(value) : !Predicate.isObjectOrArray(value)

/** Returns the item of a list that has exactly one; otherwise `undefined`. */
const onlyItem = (items: ReadonlyArray<unknown>): unknown => items.length === 1 ? items[0] : undefined

type Given = Readonly<Record<string, unknown>>

const sound = (value: unknown): Form => ({ value, faults: [] })

const kindForm = (reading: Reading, shape: Shape & { readonly _tag: "Value" }, value: unknown, path: Path): Form => {
  if (shape.kind === "any" || (value === null && shape.orNull)) return sound(value)
  const name = String(path.findLast(Predicate.isString))
  if (name !== "signatureChainId" && Predicate.isObjectOrArray(value)) {
    const only = onlyItem(Object.values(value))
    const isWrapped = only !== undefined && !Predicate.isObjectOrArray(only)
    return wrongShape(shape, value, path, isWrapped ? only : undefined)
  }
  const fault = name === "signatureChainId"
    ? chainIdFault(value, reading.isHashed)
    : valueFault(shape.kind, value, { name, path, type: reading.type })
  return withFault(value, path, fault)
}

const objectForm = (
  reading: Reading,
  shape: Shape & { readonly _tag: "Members" },
  value: unknown,
  path: Path
): Form => {
  if (Predicate.isReadonlyObject(value)) return membersForm(reading, shape.order, value, path)
  if (shape.otherwise !== undefined && !Array.isArray(value) && parsed(value) === undefined) {
    return valueForm(reading, shape.otherwise, value, path)
  }
  const only = Array.isArray(value) ? onlyItem(value) : parsed(value)
  return Predicate.isReadonlyObject(only)
    ? reshaped(shape, value, path, membersForm(reading, shape.order, only, path))
    // the value is a word, such as "Limit" or "limit", instead of an object with that member
    : wrongShape(shape, value, path)
}

/** The correct form of a list with an {@link unsortedPair}. */
export const sortedList = "the list sorted by key"

const readKey = (pair: unknown): string => Array.isArray(pair) ? String(pair[0]) : ""

/** Returns a list of pairs, sorted by the first values of the pairs. */
export const sortedByKey = (pairs: ReadonlyArray<unknown>): ReadonlyArray<unknown> =>
  pairs.toSorted((one, other) => {
    const [first, second] = [readKey(one), readKey(other)]
    return first < second ? -1 : first > second ? 1 : 0
  })

/** Describes the first pair of a list that is not in the order of the keys; `undefined` if the list is sorted. */
export const unsortedPair = (pairs: ReadonlyArray<unknown>): string | undefined => {
  const keys = pairs.map(readKey)
  const at = keys.findIndex((key, index) => key < (keys[index - 1] ?? ""))
  return at < 0 ? undefined : `${quoted(keys[at])} after ${quoted(keys[at - 1])}`
}

const listValueForm = (
  reading: Reading,
  shape: Shape & { readonly _tag: "List" },
  value: unknown,
  path: Path
): Form => {
  const { item } = shape
  if (Array.isArray(value)) {
    const isFlat = item._tag === "Tuple" && value.length === item.items.length &&
      item.items.every((each, index) => isOfForm(each, value[index]))
    if (isFlat) {
      const inner = valueForm(reading, item, value, path)
      return reshaped(shape, value, path, { ...inner, value: [inner.value] })
    }
    const form = listForm(value, (each, index) => valueForm(reading, item, each, [...path, index]))
    const found = shape.isSorted ? unsortedPair(value) : undefined
    return found === undefined || !Array.isArray(form.value) ? form : {
      value: sortedByKey(form.value),
      faults: [...form.faults, { mistake: "unsortedList", path, found, expected: sortedList }]
    }
  }
  const text = parsed(value)
  if (Array.isArray(text)) return reshaped(shape, value, path, valueForm(reading, shape, text, path))
  if (
    Predicate.isReadonlyObject(value) ||
    (item._tag === "Value" && !Predicate.isObjectOrArray(value) && value !== null)
  ) {
    const keys = Predicate.isReadonlyObject(value) ? Object.keys(value) : []
    const isIndexed = keys.length > 0 && keys.every((key, index) => key === String(index))
    const list = isIndexed && Predicate.isReadonlyObject(value) ? Object.values(value) : [value]
    return reshaped(shape, value, path, valueForm(reading, shape, list, path))
  }
  return wrongShape(shape, value, path)
}

const valueForm = (reading: Reading, shape: Shape, value: unknown, path: Path): Form => {
  switch (shape._tag) {
    case "List":
      return listValueForm(reading, shape, value, path)
    case "Tuple":
      return Array.isArray(value) && value.length === shape.items.length
        ? listForm(value, (each, index) => valueForm(reading, itemShape(shape, index), each, [...path, index]))
        : wrongShape(shape, value, path)
    case "Words":
      return withFault(value, path, wordFault(shape.words, value))
    case "Value":
      return kindForm(reading, shape, value, path)
    case "Members":
      return objectForm(reading, shape, value, path)
  }
}

/** Returns a mistake if an object has several of the members of which it can have one. */
const several = (order: ActionOrder, given: Given, path: Path): ReadonlyArray<Mistake> => {
  const names = [...order].flatMap(([name, { presence }]) =>
    presence === "oneOf" && Object.hasOwn(given, name) ? [name] : []
  )
  return names.length < 2 ? [] : [{
    mistake: "wrongShape",
    path,
    found: `an object with ${names.slice(0, 8).join(" and ")}`,
    expected: `an object with one of ${names.slice(0, 8).join(", ")}`
  }]
}

/** Describes the value to send for an absent member. */
const absentValue = ({ presence, shape }: MemberPosition): string =>
  presence === "nullable" ? `null or ${described(shape)}` : described(shape)

const missing = (order: ActionOrder, given: Given, path: Path): ReadonlyArray<Mistake> => {
  const absent = [...order].filter(([name]) => !Object.hasOwn(given, name))
  const ones = absent.filter(([, { presence }]) => presence === "oneOf").map(([name]) => name)
  // an unknown member can be a further form of the object
  const isNone = ones.length > 0 && unknownIn(order, given).length === 0 &&
    [...order].every(([name, { presence }]) => presence !== "oneOf" || ones.includes(name))
  return [
    ...absent.flatMap(([name, place]): ReadonlyArray<Mistake> =>
      place.presence === "required" || place.presence === "nullable"
        ? [{ mistake: "missingMember", path: [...path, name], expected: absentValue(place) }]
        : []
    ),
    ...(isNone ? [{ mistake: "missingMember" as const, path, expected: `one of ${ones.slice(0, 8).join(", ")}` }] : [])
  ]
}

const isNull = ({ presence }: MemberPosition, value: unknown): boolean =>
  value === null && (presence === "nullable" || presence === "optional")

interface Moved {
  readonly given: Given
  readonly faults: ReadonlyArray<Mistake>
}

const moveFault = (path: Path, from: string, to: string): Mistake => ({
  mistake: "misplacedMember",
  path: [...path, from],
  found: from,
  expected: to
})

const needed = (order: ActionOrder, given: Given): ReadonlyArray<string> =>
  [...order].flatMap(([name, { presence }]) => Object.hasOwn(given, name) || presence === "optional" ? [] : [name])

const unknownIn = (order: ActionOrder, given: Given): ReadonlyArray<string> =>
  Object.keys(given).filter((name) => !order.has(name))

const without = (given: Given, names: ReadonlyArray<string>): Given =>
  Object.fromEntries(Object.entries(given).filter(([name]) => !names.includes(name)))

/**
 * Returns the members of an unknown wrapper object that belong into the object that contains it: required ones that it
 * lacks, or any if it has none of its own, because the venue would ignore all of them.
 */
const liftable = (order: ActionOrder, given: Given, inner: Given): ReadonlyArray<string> => {
  const wants = needed(order, given)
  const isEmpty = Object.keys(given).every((name) => name === "type" || !order.has(name))
  return Object.keys(inner).filter((name) =>
    isEmpty ? order.has(name) && !Object.hasOwn(given, name) : wants.includes(name)
  )
}

/** Moves members out of an unknown wrapper object into the object that contains it. */
const lifted = (order: ActionOrder, { faults, given }: Moved, path: Path): Moved => {
  for (const name of unknownIn(order, given)) {
    const inner = given[name]
    const only = Array.isArray(inner) ? onlyItem(inner) : inner
    if (!Predicate.isReadonlyObject(only)) continue
    const held = liftable(order, given, only)
    if (held.length === 0) continue
    const moved = Object.fromEntries(Object.entries(only).filter(([key]) => order.has(key)))
    return {
      given: { ...without(given, [name]), ...moved },
      faults: [
        ...faults,
        ...held.slice(0, 4).map((key) => moveFault([...path, name], key, [...path, key].join(".")))
      ]
    }
  }
  return { faults, given }
}

/** Moves members into the object to which they belong, if the action lacks that object. */
const lowered = (order: ActionOrder, { faults, given }: Moved, path: Path): Moved => {
  const unknown = unknownIn(order, given)
  const move = (held: ReadonlyArray<string>, name: string, isList: boolean): Moved => {
    const object = Object.fromEntries(held.map((key) => [key, given[key]]))
    return {
      given: { ...without(given, [...held, name]), [name]: isList ? [object] : object },
      faults: [...faults, ...held.slice(0, 4).map((key) => moveFault(path, key, [...path, name, key].join(".")))]
    }
  }
  const listHeld = ({ members }: MemberPosition) => unknown.filter((key) => members.has(key))
  const isWhole = ({ members }: MemberPosition, held: ReadonlyArray<string>): boolean =>
    [...members].every(([key, { presence }]) => presence === "optional" || held.includes(key))
  for (const [name, place] of order) {
    if (place.members.size === 0 || (Object.hasOwn(given, name) && Predicate.isObjectOrArray(given[name]))) continue
    const held = listHeld(place)
    const isOne = [...place.members.values()].some(({ presence }) => presence === "oneOf")
    if (held.length > 0 && (isOne || isWhole(place, held))) return move(held, name, place.shape._tag === "List")
  }
  // the action has the members of a nested object directly, without the member that contains the object
  const ones = [...order].filter(([, { members, presence }]) => presence === "oneOf" && members.size > 0)
  for (const [name, place] of ones) {
    const held = listHeld(place)
    const isFree = !ones.some(([key]) => Object.hasOwn(given, key))
    if (held.length > 0 && isFree && isWhole(place, held)) return move(held, name, false)
  }
  return { faults, given }
}

/** Renames members that were sent under a known alternative name. */
const renamed = (order: ActionOrder, { faults, given }: Moved, path: Path): Moved => {
  const wants = [...order.keys()].filter((name) => !Object.hasOwn(given, name))
  const names = new Map<string, string>()
  for (const name of unknownIn(order, given)) {
    const meant = nearestMember(name, wants.filter((each) => ![...names.values()].includes(each)))
    if (meant !== undefined) names.set(name, meant)
  }
  return names.size === 0 ? { faults, given } : {
    given: Object.fromEntries(Object.entries(given).map(([name, value]) => [names.get(name) ?? name, value])),
    faults: [...faults, ...[...names].slice(0, 8).map(([from, to]) => moveFault(path, from, [...path, to].join(".")))]
  }
}

const inOrder = (order: ActionOrder, given: Given): Given => {
  const known = [...order.keys()].filter((name) => Object.hasOwn(given, name))
  return Object.fromEntries([...known, ...unknownIn(order, given)].map((name) => [name, given[name]]))
}

const placed = (order: ActionOrder, given: Given, path: Path): Moved => {
  const start: Moved = { given, faults: [] }
  if (unknownIn(order, given).length === 0) return start
  const found = renamed(order, lowered(order, lifted(order, start, path), path), path)
  return found.faults.length === 0 ? start : { ...found, given: inOrder(order, found.given) }
}

const membersForm = (reading: Reading, order: ActionOrder, sent: Given, path: Path): Form => {
  const { faults, given } = placed(order, sent, path)
  const read = joined(
    Object.entries(given).flatMap(([name, value]): ReadonlyArray<readonly [string, Form]> => {
      const place = order.get(name)
      const at = [...path, name]
      if (place === undefined || isNull(place, value)) return [[name, sound(value)]]
      const form = valueForm(reading, place.shape, value, at)
      const isEmpty = Array.isArray(value) && value.length === 0 && mayNotBeEmpty.has(name)
      const empty: Mistake = { mistake: "emptyList", path: at, found: "[]", expected: "at least one item" }
      return [[name, isEmpty ? { ...form, faults: [empty] } : form]]
    })
  )
  const members = Object.entries(Predicate.isReadonlyObject(read.value) ? read.value : {})
  const nulls = [...order].flatMap(([name, { presence }]): ReadonlyArray<[string, unknown]> =>
    presence === "nullable" && !Object.hasOwn(given, name) ? [[name, null]] : []
  )
  return {
    // the venue hashes an absent value as null
    value: Object.fromEntries([...members, ...nulls]),
    faults: [...faults, ...read.faults, ...missing(order, given, path), ...several(order, given, path)]
  }
}

/** Lists that the venue refuses if empty. */
const mayNotBeEmpty = new Set(["orders", "cancels", "modifies", "marginTiers", "tokens", "outcomeSettlements"])

/**
 * Returns an object of an action in the venue's form, and its mistakes. Unknown members are not mistakes.
 *
 * `isHashed` means that the exact text of each value is hashed, as inside a multi-sig wrapper. If it is false, a chain
 * ID is accepted in any 0x hex format, because only its numeric value is signed.
 */
export const normalizeAction = (order: ActionOrder, given: Given, path: Path, isHashed = true): Form =>
  membersForm({ type: given["type"], isHashed }, order, given, path)

const listShapeLeaves = (shape: Shape, value: unknown, path: Path): ReadonlyArray<Leaf> => {
  if (Array.isArray(value)) {
    return value.flatMap((item: unknown, index) => listShapeLeaves(itemShape(shape, index), item, [...path, index]))
  }
  if (shape._tag === "Value") return [{ path, kind: shape.kind, value }]
  if (shape._tag === "Tuple") return []
  return shape._tag === "Members" && Predicate.isObject(value)
    ? listLeaves(shape.order, value, path)
    : [{ path, kind: "text", value }]
}

/** Returns every value of an action that `order` declares, in the venue's member order. */
export const listLeaves = (order: ActionOrder, given: unknown, path: Path = []): ReadonlyArray<Leaf> =>
  Predicate.isReadonlyObject(given)
    ? [...order].flatMap(([name, { shape }]) =>
      Object.hasOwn(given, name) ? listShapeLeaves(shape, given[name], [...path, name]) : []
    )
    : []
