/**
 * Finds the venue's name for another name in a request, which is a typo, or the name that another venue, API version or
 * programming language uses. Covers action types, members, and the words of closed sets.
 */
import { actionCatalog } from "@trigate/domain/actions/ActionCatalog"

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

/** Returns whether a word is one of other venues for which this venue has no equivalent. */
export const isForeignWord = (word: string): boolean => foreignWords.has(plain(word))

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
