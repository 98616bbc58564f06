/** One body of every action that the public SDKs send, made by the SDKs themselves or published as their test vectors. */
import { ExchangeClient } from "@nktkas/hyperliquid"
import type { ExchangeConfig as Config } from "@nktkas/hyperliquid/api/exchange"
import { signL1Action, signMultiSigL1 } from "@nktkas/hyperliquid/signing"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as Schema from "effect/Schema"
import * as fs from "node:fs"
import * as path from "node:path"
import { privateKeyToAccount } from "viem/accounts"
import { exchangeAt } from "../compat/ccxtVenue.ts"

const Body = Schema.Struct({
  action: Schema.StructWithRest(Schema.Struct({ type: Schema.String }), [Schema.Record(Schema.String, Schema.Unknown)]),
  nonce: Schema.Int,
  signature: Schema.Struct({ r: Schema.String, s: Schema.String, v: Schema.Int }),
  vaultAddress: Schema.optional(Schema.NullOr(Schema.String)),
  expiresAfter: Schema.optional(Schema.NullOr(Schema.Int))
})
export type Body = typeof Body.Type

const decodeBody = Schema.decodeUnknownSync(Body)

/** A body with its signer and network. */
export interface Sample {
  readonly name: string
  readonly network: "mainnet" | "testnet"
  readonly signer: string
  readonly body: Body
}

export const nonce = 1_795_230_000_123

const { multiSigUser, stranger, trader, validator } = keys
const destination = stranger.address
const user = validator.address
const cloid = "0xc1e60610f0b3d420597c88c1fed2ad5e"
const token = "PURR:0xc1fb593aeffbeb02f85e0308e9956a90"

const limit = { a: 1, b: true, p: "1100.5", s: "0.2", r: false, t: { limit: { tif: "Gtc" as const } } }
const trigger = {
  a: 2,
  b: false,
  p: "1900",
  s: "3.5",
  r: true,
  t: { trigger: { isMarket: true, triggerPx: "1895.5", tpsl: "sl" as const } },
  c: cloid
}
const template = { id: "t", keywordToValue: [["a", "b"]] as Array<[string, string]> }
const settlement = {
  outcome: 1,
  settleFraction: "0.5",
  details: "d",
  nameAndDescription: ["n", "d"] as [string, string],
  sideNames: ["Yes", "No"] as [string, string]
}
const perpAsset = { coin: "x:A", szDecimals: 2, oraclePx: "10.5", marginTableId: 10 }
const schema = { fullName: "X", collateralToken: 0, oracleUpdater: user }

type Act = (client: ExchangeClient<Config>) => Promise<unknown>

/** The SDKs sign for seconds, and always the same bytes. */
const once = (make: () => Promise<ReadonlyArray<Sample>>): () => Promise<ReadonlyArray<Sample>> => {
  let made: Promise<ReadonlyArray<Sample>> | undefined
  return () => made ??= make()
}

/** Each method of `@nktkas/hyperliquid`, and each form of those that have several, except forms that are out of date. */
const peerActions: { readonly [name: string]: Act } = {
  agentEnableDexAbstraction: (by) => by.agentEnableDexAbstraction(),
  agentSendAsset: (by) =>
    by.agentSendAsset({ destination, sourceDex: "", destinationDex: "spot", token, amount: "1.5", fromSubAccount: "" }),
  agentSetAbstraction: (by) => by.agentSetAbstraction({ abstraction: "u" }),
  approveAgent: (by) => by.approveAgent({ agentAddress: keys.agent.address, agentName: "bot" }),
  approveBuilderFee: (by) => by.approveBuilderFee({ maxFeeRate: "0.01%", builder: user }),
  authorizeAqav2Role: (by) => by.authorizeAqav2Role({ token: 5, role: "technical" }),
  batchModify: (by) =>
    by.batchModify({ modifies: [{ oid: 77_738_308, order: limit }, { oid: cloid, order: trigger }] }),
  borrowLend: (by) => by.borrowLend({ operation: "supply", token: 0, amount: "12.5" }),
  "borrowLend of all": (by) => by.borrowLend({ operation: "withdraw", token: 0, amount: null }),
  cancel: (by) => by.cancel({ cancels: [{ a: 1, o: 77_738_308 }, { a: 2, o: 8_123_456_789 }] }),
  "cancel, fast": (by) => by.cancel({ cancels: [{ a: 1, o: 77_738_308 }], f: true }),
  cancelByCloid: (by) => by.cancelByCloid({ cancels: [{ asset: 1, cloid }] }),
  cDeposit: (by) => by.cDeposit({ wei: 150_000_000 }),
  claimRewards: (by) => by.claimRewards(),
  convertToMultiSigUser: (by) =>
    by.convertToMultiSigUser({ signers: { authorizedUsers: [user, destination], threshold: 2 } }),
  createSubAccount: (by) => by.createSubAccount({ name: "example" }),
  createVault: (by) => by.createVault({ name: "vault", description: "a vault of some kind", initialUsd: 100_000_000 }),
  "cSignerAction jailSelf": (by) => by.cSignerAction({ jailSelf: null }),
  "cSignerAction unjailSelf": (by) => by.cSignerAction({ unjailSelf: null }),
  "cValidatorAction changeProfile": (by) =>
    by.cValidatorAction({
      changeProfile: {
        node_ip: { Ip: "1.2.3.4" },
        name: "v",
        description: null,
        unjailed: true,
        disable_delegations: null,
        commission_bps: 500,
        signer: null
      }
    }),
  "cValidatorAction register": (by) =>
    by.cValidatorAction({
      register: {
        profile: {
          node_ip: { Ip: "1.2.3.4" },
          name: "v",
          description: "a validator",
          delegations_disabled: false,
          commission_bps: 500,
          signer: user
        },
        unjailed: false,
        initial_wei: 1_000_000
      }
    }),
  "cValidatorAction unregister": (by) => by.cValidatorAction({ unregister: null }),
  cWithdraw: (by) => by.cWithdraw({ wei: 150_000_000 }),
  evmUserModify: (by) => by.evmUserModify({ usingBigBlocks: true }),
  "finalizeEvmContract create": (by) => by.finalizeEvmContract({ token: 5, input: { create: { nonce: 7 } } }),
  "finalizeEvmContract firstStorageSlot": (by) => by.finalizeEvmContract({ token: 5, input: "firstStorageSlot" }),
  gossipPriorityBid: (by) => by.gossipPriorityBid({ slotId: 0, ip: "1.2.3.4", maxGas: 1000 }),
  hip3LiquidatorTransfer: (by) => by.hip3LiquidatorTransfer({ dex: "x", ntl: 1_000_000, isDeposit: true }),
  linkStakingUser: (by) => by.linkStakingUser({ user, isFinalize: false }),
  modify: (by) => by.modify({ oid: 77_738_308, order: trigger }),
  noop: (by) => by.noop({ nonce }),
  order: (by) => by.order({ orders: [limit], grouping: "na" }),
  "order with a builder": (by) =>
    by.order({ orders: [limit, trigger], grouping: "normalTpsl", builder: { b: user, f: 10 } }),
  "order with a priority": (by) => by.order({ orders: [limit], grouping: { p: 50 } }),
  "perpDeploy registerAsset2": (by) =>
    by.perpDeploy({
      registerAsset2: { maxGas: 1000, assetRequest: { ...perpAsset, marginMode: "noCross" }, dex: "x", schema }
    }),
  "perpDeploy registerAsset": (by) =>
    by.perpDeploy({
      registerAsset: { maxGas: null, assetRequest: { ...perpAsset, onlyIsolated: true }, dex: "x", schema: null }
    }),
  "perpDeploy setOracle": (by) =>
    by.perpDeploy({
      setOracle: {
        dex: "x",
        oraclePxs: [["x:A", "10.5"], ["x:B", "2"]],
        markPxs: [[["x:A", "10.25"]]],
        externalPerpPxs: [["x:A", "10.5"]]
      }
    }),
  "perpDeploy setFundingMultipliers": (by) => by.perpDeploy({ setFundingMultipliers: [["x:A", "1.5"]] }),
  "perpDeploy setFundingInterestRates": (by) => by.perpDeploy({ setFundingInterestRates: [["x:A", "-0.0001"]] }),
  "perpDeploy haltTrading": (by) => by.perpDeploy({ haltTrading: { coin: "x:A", isHalted: true } }),
  "perpDeploy setMarginTableIds": (by) => by.perpDeploy({ setMarginTableIds: [["x:A", 10]] }),
  "perpDeploy insertMarginTable": (by) =>
    by.perpDeploy({
      insertMarginTable: {
        dex: "x",
        marginTable: { description: "m", marginTiers: [{ lowerBound: 0, maxLeverage: 20 }] }
      }
    }),
  "perpDeploy setFeeRecipient": (by) => by.perpDeploy({ setFeeRecipient: { dex: "x", feeRecipient: user } }),
  "perpDeploy setOpenInterestCaps": (by) => by.perpDeploy({ setOpenInterestCaps: [["x:A", 1_000_000]] }),
  "perpDeploy setSubDeployers": (by) =>
    by.perpDeploy({ setSubDeployers: { dex: "x", subDeployers: [{ variant: "setOracle", user, allowed: true }] } }),
  "perpDeploy setMarginModes": (by) => by.perpDeploy({ setMarginModes: [["x:A", "noCross"]] }),
  "perpDeploy setFeeScale": (by) => by.perpDeploy({ setFeeScale: { dex: "x", scale: "1.5" } }),
  "perpDeploy setGrowthModes": (by) => by.perpDeploy({ setGrowthModes: [["x:A", true]] }),
  "perpDeploy setPerpAnnotation": (by) =>
    by.perpDeploy({
      setPerpAnnotation: { coin: "x:A", category: "c", description: "d", displayName: null, keywords: ["k"] }
    }),
  "perpDeploy disableDex": (by) => by.perpDeploy({ disableDex: "x" }),
  registerReferrer: (by) => by.registerReferrer({ code: "CODE" }),
  reserveRequestWeight: (by) => by.reserveRequestWeight({ weight: 10 }),
  "reserveRequestWeight for another": (by) => by.reserveRequestWeight({ weight: 10, destination }),
  scheduleCancel: (by) => by.scheduleCancel({ time: nonce + 60_000 }),
  "scheduleCancel of none": (by) => by.scheduleCancel(),
  sendAsset: (by) =>
    by.sendAsset({ destination, sourceDex: "", destinationDex: "spot", token, amount: "1.5", fromSubAccount: "" }),
  sendToEvmWithData: (by) =>
    by.sendToEvmWithData({
      token: "USDC",
      amount: "1.5",
      sourceDex: "spot",
      destinationRecipient: destination,
      addressEncoding: "hex",
      destinationChainId: 998,
      gasLimit: 200_000,
      data: "0xdeadbeef"
    }),
  setDisplayName: (by) => by.setDisplayName({ displayName: "me" }),
  setReferrer: (by) => by.setReferrer({ code: "CODE" }),
  "spotDeploy registerToken2": (by) =>
    by.spotDeploy({
      registerToken2: { spec: { name: "T", szDecimals: 2, weiDecimals: 8 }, maxGas: 1000, fullName: "Token" }
    }),
  "spotDeploy userGenesis": (by) =>
    by.spotDeploy({
      userGenesis: {
        token: 5,
        userAndWei: [[user, "1000"]],
        existingTokenAndWei: [[0, "5.5"]],
        blacklistUsers: [[destination, true]]
      }
    }),
  "spotDeploy genesis": (by) => by.spotDeploy({ genesis: { token: 5, maxSupply: "1000", noHyperliquidity: true } }),
  "spotDeploy registerSpot": (by) => by.spotDeploy({ registerSpot: { tokens: [5, 0] } }),
  "spotDeploy registerHyperliquidity": (by) =>
    by.spotDeploy({
      registerHyperliquidity: { spot: 7, startPx: "1.5", orderSz: "2", nOrders: 100, nSeededLevels: 5 }
    }),
  "spotDeploy setDeployerTradingFeeShare": (by) =>
    by.spotDeploy({ setDeployerTradingFeeShare: { token: 5, share: "50%" } }),
  "spotDeploy enableQuoteToken": (by) => by.spotDeploy({ enableQuoteToken: { token: 5 } }),
  "spotDeploy disableQuoteToken": (by) => by.spotDeploy({ disableQuoteToken: { token: 5 } }),
  "spotDeploy requestEvmContract": (by) =>
    by.spotDeploy({ requestEvmContract: { token: 5, address: user, evmExtraWeiDecimals: -2 } }),
  "spotDeploy settleOutcome": (by) => by.spotDeploy({ outcome: { settleOutcome: settlement } }),
  "spotDeploy settleQuestion2": (by) =>
    by.spotDeploy({
      outcome: { settleQuestion2: { question: 1, outcomeSettlements: [settlement], nameAndDescription: ["n", "d"] } }
    }),
  spotSend: (by) => by.spotSend({ destination, token, amount: "1.5" }),
  "spotUser toggleSpotDusting": (by) => by.spotUser({ toggleSpotDusting: { optOut: true } }),
  stakingLinkDisableTradingUser: (by) => by.stakingLinkDisableTradingUser({ tradingUser: user }),
  subAccountModify: (by) => by.subAccountModify({ subAccountUser: user, name: "other" }),
  subAccountSpotTransfer: (by) =>
    by.subAccountSpotTransfer({ subAccountUser: user, isDeposit: true, token, amount: "1.5" }),
  subAccountTransfer: (by) => by.subAccountTransfer({ subAccountUser: user, isDeposit: true, usd: 1_500_000 }),
  tokenDelegate: (by) => by.tokenDelegate({ validator: user, wei: 150_000_000, isUndelegate: false }),
  topUpIsolatedOnlyMargin: (by) => by.topUpIsolatedOnlyMargin({ asset: 1, leverage: "2.5" }),
  twapCancel: (by) => by.twapCancel({ a: 1, t: 77 }),
  twapOrder: (by) => by.twapOrder({ twap: { a: 1, b: true, s: "1.5", r: false, m: 30, t: false } }),
  "twapOrder with details": (by) =>
    by.twapOrder({
      twap: { a: 1, b: true, s: "1.5", r: false, m: 30, t: false },
      details: { t: { p: "1100.5", a: true }, s: null }
    }),
  updateIsolatedMargin: (by) => by.updateIsolatedMargin({ asset: 1, isBuy: true, ntli: -5_000_000 }),
  updateLeverage: (by) => by.updateLeverage({ asset: 1, isCross: true, leverage: 20 }),
  usdClassTransfer: (by) => by.usdClassTransfer({ amount: "1.5", toPerp: true }),
  usdSend: (by) => by.usdSend({ destination, amount: "1.5" }),
  userDexAbstraction: (by) => by.userDexAbstraction({ user: trader.address, enabled: true }),
  "userOutcome splitOutcome": (by) => by.userOutcome({ splitOutcome: { outcome: 1, amount: "1.5" } }),
  "userOutcome mergeOutcome": (by) => by.userOutcome({ mergeOutcome: { outcome: 1, amount: null } }),
  "userOutcome mergeQuestion": (by) => by.userOutcome({ mergeQuestion: { question: 1, amount: "1.5" } }),
  "userOutcome negateOutcome": (by) => by.userOutcome({ negateOutcome: { question: 1, outcome: 2, amount: "1.5" } }),
  userPortfolioMargin: (by) => by.userPortfolioMargin({ user: trader.address, enabled: true }),
  userSetAbstraction: (by) => by.userSetAbstraction({ user: trader.address, abstraction: "unifiedAccount" }),
  validatorL1Stream: (by) => by.validatorL1Stream({ riskFreeRate: "0.045" }),
  vaultDistribute: (by) => by.vaultDistribute({ vaultAddress: user, usd: 1_500_000 }),
  vaultModify: (by) => by.vaultModify({ vaultAddress: user, allowDeposits: true, alwaysCloseOnWithdraw: null }),
  vaultTransfer: (by) => by.vaultTransfer({ vaultAddress: user, isDeposit: true, usd: 1_500_000 }),
  withdraw3: (by) => by.withdraw3({ destination, amount: "1.5" })
}

const feeTemplate = { ...template, deployerFeeScale: "1" }

/** The operations of `outcomeDeploy`; all but the last were also in `spotDeploy`. */
const outcomeOperations: ReadonlyArray<Readonly<Record<string, unknown>>> = [
  { registerStandaloneOutcomeFromTemplate: feeTemplate },
  {
    registerQuestionFromTemplate: {
      questionTemplateInstance: feeTemplate,
      namedOutcomeTemplateInstances: [template, template]
    }
  },
  { registerAndAssociateNamedOutcomeFromTemplate: { question: 3, namedOutcomeTemplateInstance: template } },
  { settleOutcome: settlement },
  { settleQuestion2: { question: 1, outcomeSettlements: [settlement], nameAndDescription: ["n", "d"] } },
  { setSubDeployers: [{ variant: "settleOutcome", user, allowed: true }] }
]

/**
 * What the venue has and `@nktkas/hyperliquid` 0.33.3 lacks, as the venue's documentation and newer client libraries write it. The
 * functions of `@nktkas/hyperliquid` sign it.
 */
const newerActions: ReadonlyArray<Body["action"]> = [
  { type: "activateOutcomeDeployer", activate: { venueName: "ab" } },
  { type: "activateOutcomeDeployer", deactivate: null },
  ...outcomeOperations.map((operation) => ({ type: "outcomeDeploy", venue: "ab", operation })),
  ...outcomeOperations.slice(0, 3).map((outcome) => ({ type: "spotDeploy", outcome })),
  {
    type: "spotDeploy",
    setTokenAnnotation: {
      token: 5,
      annotation: { category: "c", description: "d", displayName: null, keywords: ["k"] }
    }
  },
  { type: "spotDeploy", setDeployerLabel: { label: "abc" } },
  { type: "spotDeploy", enableAlignedQuoteToken: { token: 5 } },
  { type: "perpDeploy", setDeployerFees: [["x:A", { scale: "1.5", growthMode: false }]] },
  { type: "perpDeploy", setFundingClamps: [["x:A", "0.0003"]] },
  { type: "perpDeploy", setOpenInterestCaps: [["x:A", null], ["x:B", 1_000_000]] },
  { type: "perpDeploy", star: { dex: "x", operation: { setOracle: { z: "1.5", a: null } } } },
  {
    type: "perpDeploy",
    setSubDeployers: { dex: "x", subDeployers: [{ variant: { hip3Star: "setOracle" }, user, allowed: true }] }
  },
  { type: "cancel", cancels: [{ a: 1, o: 77 }], f: true },
  { type: "modify", oid: 77_738_308, order: limit, a: true },
  { type: "batchModify", modifies: [{ oid: cloid, order: limit }], a: true },
  {
    type: "trailingStop",
    asset: 2,
    isBuy: false,
    sz: "4.12",
    reduceOnly: true,
    retracement: { pct: "1.5000%" },
    activationPx: "250.5"
  },
  {
    type: "trailingStop",
    asset: 0,
    isBuy: true,
    sz: "0.1",
    reduceOnly: false,
    retracement: { px: "10" },
    activationPx: null
  }
]

const nameOf = ({ type, ...members }: Body["action"], at: number): string =>
  `${type} ${Object.keys(members).at(-1) ?? ""}, newer ${at}`

const newer = (make: (action: Body["action"]) => Promise<object>) =>
  Promise.all(
    newerActions.map(async (action, at) =>
      signed(nameOf(action, at), decodeBody({ nonce, ...JSON.parse(JSON.stringify(await make(action))) }))
    )
  )

const done = `{"status":"ok","response":{"type":"default"}}`

const wallet = privateKeyToAccount(trader.privateKey)

/** What a client of `@nktkas/hyperliquid` sends for an action: signed by the trader, or by a multi-sig that the trader leads. */
const captured = async (act: Act, wrapped: boolean): Promise<Body> => {
  let sent: unknown
  const transport = {
    isTestnet: false,
    request: (_endpoint: string, payload: unknown) => {
      sent = payload
      return Promise.resolve(JSON.parse(done))
    }
  }
  const common = { transport, signatureChainId: "0x66eee", nonceManager: () => nonce } as const
  await act(
    new ExchangeClient<Config>(
      wrapped
        ? {
          ...common,
          signers: [wallet, privateKeyToAccount(keys.cosigner.privateKey)],
          multiSigUser: multiSigUser.address
        }
        : { ...common, wallet }
    )
  )
  return decodeBody(JSON.parse(JSON.stringify(sent)))
}

const signed = (name: string, body: Body): Sample => ({ name, network: "mainnet", signer: trader.address, body })

/** Every action of `@nktkas/hyperliquid` 0.33.3, and the actions that it lacks. */
export const ofPeer = once(async () => [
  ...await Promise.all(
    Object.entries(peerActions).map(async ([name, act]) => signed(name, await captured(act, false)))
  ),
  ...await newer(async (action) => ({ action, signature: await signL1Action({ wallet, action, nonce }) }))
])

/** Every one of them inside a multi-sig; the co-signer has signed too. */
export const wrapped = once(async () => [
  ...await Promise.all(
    Object.entries(peerActions).map(async ([name, act]) => signed(`multiSig of ${name}`, await captured(act, true)))
  ),
  ...await newer((action) =>
    signMultiSigL1({
      signers: [wallet, privateKeyToAccount(keys.cosigner.privateKey)],
      multiSigUser: multiSigUser.address,
      signatureChainId: "0x66eee",
      action,
      nonce
    })
  )
])

const symbol = "BTC/USDC:USDC"

const market = {
  id: "3",
  baseId: "3",
  symbol,
  base: "BTC",
  quote: "USDC",
  settle: "USDC",
  type: "swap",
  swap: true,
  spot: false,
  contract: true,
  precision: { amount: 0.001, price: 0.001 }
}

/** Every signed call of ccxt 4.5.84. */
export const ofCcxt = once(async () => {
  const exchange = exchangeAt("http://localhost:1", trader)
  let sent = ""
  exchange.setMarkets([market])
  exchange.incrementingNonce = () => nonce
  exchange.initializeClient = () => Promise.resolve(true)
  exchange.fetch = (_url: string, _method: string, _headers: unknown, body: string) => {
    sent = body
    return Promise.resolve({ status: "ok", response: { type: "order", data: { statuses: ["success"], status: {} } } })
  }
  const order = { symbol, type: "limit", side: "buy", amount: 0.01, price: 60_000.5 }
  const calls: { readonly [name: string]: () => Promise<unknown> } = {
    createOrder: () => exchange.createOrder(symbol, "limit", "buy", 0.01, 60_000.5),
    createOrders: () =>
      exchange.createOrders([
        { ...order, params: { clientOrderId: cloid } },
        { ...order, side: "sell", params: { clientOrderId: cloid, stopLossPrice: 59_000, reduceOnly: true } }
      ]),
    createTwapOrder: () => exchange.createTwapOrder(symbol, "BUY", 0.5, 1_800_000),
    cancelOrders: () => exchange.cancelOrders(["77738308"], symbol),
    "cancelOrders by cloid": () => exchange.cancelOrders([], symbol, { clientOrderId: [cloid] }),
    cancelTwapOrder: () => exchange.cancelTwapOrder("77", symbol),
    cancelAllOrdersAfter: () => exchange.cancelAllOrdersAfter(60_000),
    editOrder: () => exchange.editOrder("77738308", symbol, "limit", "buy", 0.01, 60_000.5),
    createVault: () => exchange.createVault("vault", "a vault of some kind", 100),
    setMarginMode: () => exchange.setMarginMode("isolated", symbol, { leverage: 5 }),
    setLeverage: () => exchange.setLeverage(5, symbol),
    addMargin: () => exchange.addMargin(symbol, 5),
    "transfer to perp": () => exchange.transfer("USDC", 1.5, "spot", "swap"),
    "transfer to a sub-account": () => exchange.transfer("USDC", 1.5, "main", user),
    withdraw: () => exchange.withdraw("USDC", 10, destination),
    "withdraw of a vault": () => exchange.withdraw("USDC", 10, destination, undefined, { vaultAddress: user }),
    reserveRequestWeight: () => exchange.reserveRequestWeight(10),
    createSubAccount: () => exchange.createSubAccount("example"),
    approveBuilderFee: () => exchange.approveBuilderFee(user, "0.01%"),
    setUserAbstraction: () => exchange.setUserAbstraction("unifiedAccount", { user: trader.address }),
    enableUserDexAbstraction: () => exchange.enableUserDexAbstraction(true, { user: trader.address }),
    setAgentAbstraction: () => exchange.setAgentAbstraction("u"),
    setRef: () => exchange.setRef()
  }
  const samples: Array<Sample> = []
  for (const [name, call] of Object.entries(calls)) {
    sent = ""
    // what it makes of the answer does not count
    await call().catch(() => undefined)
    samples.push(signed(`ccxt ${name}`, decodeBody(JSON.parse(sent))))
  }
  return samples
})

const Published = Schema.Struct({
  cases: Schema.Array(Schema.Struct({
    id: Schema.String,
    network: Schema.Literals(["mainnet", "testnet"]),
    signer: Schema.String,
    body: Schema.String
  }))
})

/** Test vectors that the SDKs publish, see `fixtures/README.md`. */
export const published = (): ReadonlyArray<Sample> =>
  Schema.decodeUnknownSync(Schema.fromJsonString(Published))(
    fs.readFileSync(path.join(import.meta.dirname, "fixtures/signing.json"), "utf8")
  ).cases.map(({ body, id, network, signer }) => ({ name: id, network, signer, body: decodeBody(JSON.parse(body)) }))
