/**
 * The schemas of all actions of the catalog, in the form that the venue accepts.
 *
 * The venue ignores unknown members of a body, and refuses a body that lacks a member (HTTP 422). Members are declared
 * in the order in which the venue hashes them.
 *
 * Sources: the venue's API documentation, hyperliquid-python-sdk 0.24.0, @nktkas/hyperliquid 0.33.3 and, for what these
 * lack, infinitefield/hypersdk.
 */
import * as Schema from "effect/Schema"
import { Address, Data, Millis, Natural64, Uint64 } from "../encoding/Encoding.ts"
import { EvmUserModify, JailSelf, MultiSig, SignatureChainId, TokenDelegate, UnjailSelf, VenueChain } from "./Action.ts"
import type { ActionType } from "./Action.ts"
import { Cloid, OrderId } from "./ActionOutcome.ts"

/** A decimal number as text: a price, a size or an amount. The venue does not accept a JSON number instead. */
export const Decimal = Schema.String.check(
  Schema.isPattern(/^[0-9]{1,40}(?:\.[0-9]{1,40})?$/u, { expected: "a decimal number as text" })
).annotate({ identifier: "Decimal" })

/** A decimal number as text; it can be negative. */
export const SignedDecimal = Schema.String.check(
  Schema.isPattern(/^-?[0-9]{1,40}(?:\.[0-9]{1,40})?$/u, { expected: "a decimal number as text" })
).annotate({ identifier: "SignedDecimal" })

/** A percentage as text, such as `1.5000%`. */
export const Percent = Schema.String.check(
  Schema.isPattern(/^[0-9]{1,3}(?:\.[0-9]{1,6})?%$/u, { expected: "a percentage" })
).annotate({ identifier: "Percent" })

/**
 * The asset number: a perpetual's index in `meta`, 10000 + the index of a spot pair, or the number of an asset on a
 * builder-deployed dex.
 */
export const AssetId = Schema.Natural.annotate({ identifier: "AssetId" })

/**
 * The time in force of a limit order: good till canceled (`Gtc`), immediate or cancel (`Ioc`), add liquidity only
 * (`Alo`), or `FrontendMarket`, which only the venue's web page sends.
 */
export const TimeInForce = Schema.Literals(["Gtc", "Ioc", "Alo", "FrontendMarket"]).annotate({
  identifier: "TimeInForce"
})
export type TimeInForce = typeof TimeInForce.Type

/**
 * The grouping of a batch of orders. `na`: none. `normalTpsl`: the first order has the other orders as its take-profit
 * and stop-loss. `positionTpsl`: the orders are the take-profit and stop-loss of the account's position.
 */
export const Grouping = Schema.Literals(["na", "normalTpsl", "positionTpsl"]).annotate({ identifier: "Grouping" })
export type Grouping = typeof Grouping.Type

const words = Schema.String.check(Schema.isMaxLength(1_000))
/** A member that is always present; its null is hashed. */
const nullable = Schema.NullOr
/** A member that can be absent; null means absent. */
const maybe = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))
const pairs = <A extends Schema.Top, B extends Schema.Top>(a: A, b: B) => Schema.Array(Schema.Tuple([a, b]))
/** Names with values, sorted by name before they are signed. */
const sortedPairs = <B extends Schema.Top>(b: B) => pairs(words, b).annotate({ sortedByKey: true })

/** A limit order. */
const Limit = Schema.Struct({ limit: Schema.Struct({ tif: TimeInForce }) })

/** An order that becomes active when the mark price reaches `triggerPx`. */
const Trigger = Schema.Struct({
  trigger: Schema.Struct({
    isMarket: Schema.Boolean,
    triggerPx: Decimal,
    tpsl: Schema.Literals(["tp", "sl"])
  })
})

/** One order: asset, buy flag, price, size, reduce-only flag, type, and client order ID. */
export const OrderRequest = Schema.Struct({
  a: AssetId,
  b: Schema.Boolean,
  p: Decimal,
  s: Decimal,
  r: Schema.Boolean,
  t: Schema.Union([Limit, Trigger]),
  c: maybe(Cloid)
}).annotate({ identifier: "OrderRequest" })
export type OrderRequest = typeof OrderRequest.Type

/** The address that receives a builder fee, and the fee in tenths of a basis point. */
export const BuilderFee = Schema.Struct({ b: Address, f: Schema.Natural }).annotate({ identifier: "BuilderFee" })

/** An order ID: the venue's or the client's. */
const OrderName = Schema.Union([OrderId, Cloid]).annotate({ identifier: "OrderName" })

/** JSON as text. The exact text is signed. */
const JsonText = words.annotate({ identifier: "JsonText" })

const Modification = Schema.Struct({ oid: OrderName, order: OrderRequest })

const define = <const Type extends ActionType, const Fields extends Schema.Struct.Fields>(type: Type, fields: Fields) =>
  Schema.Struct({ type: Schema.Literal(type), ...fields })

const userSigned = <const Type extends ActionType, const Fields extends Schema.Struct.Fields>(
  type: Type,
  fields: Fields
) => define(type, { signatureChainId: SignatureChainId, hyperliquidChain: VenueChain, ...fields })

const nonce = { nonce: Millis } as const
const time = { time: Millis } as const
/** A flag that is hashed only if it is true: a member that is false counts as absent. */
const Mark = Schema.Boolean.annotate({ identifier: "Mark" })

const Asset = { coin: words, szDecimals: Schema.Natural, oraclePx: Decimal, marginTableId: Schema.Natural } as const
const DexSchema = nullable(Schema.Struct({
  fullName: words,
  collateralToken: Schema.Natural,
  oracleUpdater: nullable(Address)
}))
const TokenIndex = Schema.Struct({ token: Schema.Natural })
const Annotation = {
  category: words,
  description: words,
  displayName: nullable(words),
  keywords: nullable(Schema.Array(words))
} as const

/** A grant of one action variant to a sub-deployer, or of one operation of a testnet dex with an allowlist. */
const SubDeployers = Schema.Array(Schema.Struct({
  variant: Schema.Union([words, Schema.Struct({ hip3Star: words })]),
  user: Address,
  allowed: Schema.Boolean
}))
const Template = Schema.Struct({ id: words, keywordToValue: sortedPairs(words) })

/** A template of a standalone outcome or of a question. Outcomes of a question have the fee of their question. */
const FeeTemplate = Schema.Struct({ ...Template.fields, deployerFeeScale: Decimal })
const Settlement = Schema.Struct({
  outcome: Schema.Natural,
  settleFraction: Decimal,
  details: words,
  nameAndDescription: Schema.Tuple([words, words]),
  sideNames: Schema.Tuple([words, words])
})

/** The operations of a deployer of outcome markets, also inside `spotDeploy`, where they were until 2026-08-25. */
const outcomeOperations = [
  Schema.Struct({ registerStandaloneOutcomeFromTemplate: FeeTemplate }),
  Schema.Struct({
    registerQuestionFromTemplate: Schema.Struct({
      questionTemplateInstance: FeeTemplate,
      namedOutcomeTemplateInstances: Schema.Array(Template)
    })
  }),
  Schema.Struct({
    registerAndAssociateNamedOutcomeFromTemplate: Schema.Struct({
      question: Schema.Natural,
      namedOutcomeTemplateInstance: Template
    })
  }),
  Schema.Struct({ settleOutcome: Settlement }),
  Schema.Struct({
    settleQuestion2: Schema.Struct({
      question: Schema.Natural,
      outcomeSettlements: Schema.Array(Settlement),
      nameAndDescription: Schema.Tuple([words, words])
    })
  })
] as const
const NodeIp = Schema.Struct({ Ip: words })

/** The members of a transfer of a token between accounts and dexes, before the sub-account. */
const assetTransfer = { destination: Address, sourceDex: words, destinationDex: words, token: words, amount: Decimal }

/** The sub-account from which a token is sent; empty for the account itself. */
const FromSubAccount = Schema.Union([Schema.Literal(""), Address])

/** The schema of each action of the catalog. */
export const actionSchemas = {
  order: define("order", {
    orders: Schema.Array(OrderRequest),
    grouping: Schema.Union([Grouping, Schema.Struct({ p: Schema.Natural })]),
    builder: maybe(BuilderFee)
  }),
  cancel: define("cancel", {
    cancels: Schema.Array(Schema.Struct({ a: AssetId, o: OrderId })),
    f: maybe(Mark)
  }),
  cancelByCloid: define("cancelByCloid", {
    cancels: Schema.Array(Schema.Struct({ asset: AssetId, cloid: Cloid })),
    f: maybe(Mark)
  }),
  modify: define("modify", { ...Modification.fields, a: maybe(Mark) }),
  batchModify: define("batchModify", { modifies: Schema.Array(Modification), a: maybe(Mark) }),
  scheduleCancel: define("scheduleCancel", { time: maybe(Millis) }),
  twapOrder: define("twapOrder", {
    twap: Schema.Struct({
      a: AssetId,
      b: Schema.Boolean,
      s: Decimal,
      r: Schema.Boolean,
      m: Schema.Natural,
      t: Schema.Boolean
    }),
    details: maybe(Schema.Struct({
      t: nullable(Schema.Struct({ p: Decimal, a: Schema.Boolean })),
      s: nullable(Decimal)
    }))
  }),
  twapCancel: define("twapCancel", { a: AssetId, t: Schema.Natural }),
  trailingStop: define("trailingStop", {
    asset: AssetId,
    isBuy: Schema.Boolean,
    sz: Decimal,
    reduceOnly: Schema.Boolean,
    retracement: Schema.Union([Schema.Struct({ pct: Percent }), Schema.Struct({ px: Decimal })]),
    activationPx: nullable(Decimal)
  }),
  noop: define("noop", {}),
  updateLeverage: define("updateLeverage", { asset: AssetId, isCross: Schema.Boolean, leverage: Schema.Natural }),
  updateIsolatedMargin: define("updateIsolatedMargin", { asset: AssetId, isBuy: Schema.Boolean, ntli: Schema.Int }),
  topUpIsolatedOnlyMargin: define("topUpIsolatedOnlyMargin", { asset: AssetId, leverage: Decimal }),
  multiSig: MultiSig,
  tokenDelegate: TokenDelegate,
  CSignerAction: Schema.Union([JailSelf, UnjailSelf]),
  evmUserModify: EvmUserModify,
  usdSend: userSigned("usdSend", { destination: Address, amount: Decimal, ...time }),
  spotSend: userSigned("spotSend", { destination: Address, token: words, amount: Decimal, ...time }),
  sendAsset: userSigned("sendAsset", { ...assetTransfer, fromSubAccount: maybe(FromSubAccount), ...nonce }),
  withdraw3: userSigned("withdraw3", { destination: Address, amount: Decimal, ...time }),
  usdClassTransfer: userSigned("usdClassTransfer", { amount: words, toPerp: Schema.Boolean, ...nonce }),
  cDeposit: userSigned("cDeposit", { wei: Uint64, ...nonce }),
  cWithdraw: userSigned("cWithdraw", { wei: Uint64, ...nonce }),
  approveAgent: userSigned("approveAgent", { agentAddress: Address, agentName: maybe(words), ...nonce }),
  approveBuilderFee: userSigned("approveBuilderFee", {
    maxFeeRate: Percent,
    builder: Address,
    ...nonce
  }),
  convertToMultiSigUser: userSigned("convertToMultiSigUser", { signers: JsonText, ...nonce }),
  sendToEvmWithData: userSigned("sendToEvmWithData", {
    token: words,
    amount: Decimal,
    sourceDex: words,
    destinationRecipient: words,
    addressEncoding: Schema.Literals(["hex", "base58"]),
    destinationChainId: Schema.Natural,
    gasLimit: Schema.Natural,
    data: Data,
    ...nonce
  }),
  linkStakingUser: userSigned("linkStakingUser", { user: Address, isFinalize: Schema.Boolean, ...nonce }),
  stakingLinkDisableTradingUser: userSigned("stakingLinkDisableTradingUser", { tradingUser: Address, ...nonce }),
  userDexAbstraction: userSigned("userDexAbstraction", { user: Address, enabled: Schema.Boolean, ...nonce }),
  userPortfolioMargin: userSigned("userPortfolioMargin", { user: Address, enabled: Schema.Boolean, ...nonce }),
  userSetAbstraction: userSigned("userSetAbstraction", {
    user: Address,
    abstraction: Schema.Literals(["disabled", "unifiedAccount", "portfolioMargin", "i", "u", "p"]),
    ...nonce
  }),
  agentEnableDexAbstraction: define("agentEnableDexAbstraction", {}),
  agentSendAsset: define("agentSendAsset", { ...assetTransfer, fromSubAccount: FromSubAccount, ...nonce }),
  agentSetAbstraction: define("agentSetAbstraction", { abstraction: Schema.Literals(["i", "u", "p"]) }),
  createSubAccount: define("createSubAccount", { name: words }),
  subAccountModify: define("subAccountModify", { subAccountUser: Address, name: words }),
  subAccountTransfer: define("subAccountTransfer", {
    subAccountUser: Address,
    isDeposit: Schema.Boolean,
    usd: Schema.Natural
  }),
  subAccountSpotTransfer: define("subAccountSpotTransfer", {
    subAccountUser: Address,
    isDeposit: Schema.Boolean,
    token: words,
    amount: Decimal
  }),
  createVault: define("createVault", { name: words, description: words, initialUsd: Schema.Natural, ...nonce }),
  vaultModify: define("vaultModify", {
    vaultAddress: Address,
    allowDeposits: nullable(Schema.Boolean),
    alwaysCloseOnWithdraw: nullable(Schema.Boolean)
  }),
  vaultTransfer: define("vaultTransfer", { vaultAddress: Address, isDeposit: Schema.Boolean, usd: Schema.Natural }),
  vaultDistribute: define("vaultDistribute", { vaultAddress: Address, usd: Schema.Natural }),
  registerReferrer: define("registerReferrer", { code: words }),
  setReferrer: define("setReferrer", { code: words }),
  claimRewards: define("claimRewards", {}),
  setDisplayName: define("setDisplayName", { displayName: words }),
  reserveRequestWeight: define("reserveRequestWeight", { weight: Schema.Natural, destination: maybe(Address) }),
  spotUser: Schema.Union([
    define("spotUser", { toggleSpotDusting: Schema.Struct({ optOut: Schema.Boolean }) }),
    define("spotUser", { classTransfer: Schema.Struct({ usdc: Schema.Natural, toPerp: Schema.Boolean }) })
  ]),
  borrowLend: define("borrowLend", {
    operation: Schema.Literals(["supply", "withdraw", "borrow", "repay"]),
    token: Schema.Natural,
    amount: nullable(Decimal)
  }),
  userOutcome: Schema.Union([
    define("userOutcome", { splitOutcome: Schema.Struct({ outcome: Schema.Natural, amount: Decimal }) }),
    define("userOutcome", { mergeOutcome: Schema.Struct({ outcome: Schema.Natural, amount: nullable(Decimal) }) }),
    define("userOutcome", { mergeQuestion: Schema.Struct({ question: Schema.Natural, amount: nullable(Decimal) }) }),
    define("userOutcome", {
      negateOutcome: Schema.Struct({ question: Schema.Natural, outcome: Schema.Natural, amount: Decimal })
    })
  ]),
  perpDeploy: Schema.Union([
    define("perpDeploy", {
      registerAsset2: Schema.Struct({
        maxGas: nullable(Schema.Natural),
        assetRequest: Schema.Struct({ ...Asset, marginMode: words }),
        dex: words,
        schema: DexSchema
      })
    }),
    define("perpDeploy", {
      registerAsset: Schema.Struct({
        maxGas: nullable(Schema.Natural),
        assetRequest: Schema.Struct({ ...Asset, onlyIsolated: Schema.Boolean }),
        dex: words,
        schema: DexSchema
      })
    }),
    define("perpDeploy", {
      setOracle: Schema.Struct({
        dex: words,
        oraclePxs: sortedPairs(Decimal),
        markPxs: Schema.Array(sortedPairs(Decimal)),
        externalPerpPxs: sortedPairs(Decimal)
      })
    }),
    define("perpDeploy", { setFundingMultipliers: sortedPairs(Decimal) }),
    define("perpDeploy", { setFundingInterestRates: sortedPairs(SignedDecimal) }),
    define("perpDeploy", { haltTrading: Schema.Struct({ coin: words, isHalted: Schema.Boolean }) }),
    define("perpDeploy", { setMarginTableIds: sortedPairs(Schema.Natural) }),
    define("perpDeploy", {
      insertMarginTable: Schema.Struct({
        dex: words,
        marginTable: Schema.Struct({
          description: words,
          marginTiers: Schema.Array(Schema.Struct({ lowerBound: Schema.Natural, maxLeverage: Schema.Natural }))
        })
      })
    }),
    define("perpDeploy", { setFeeRecipient: Schema.Struct({ dex: words, feeRecipient: Address }) }),
    define("perpDeploy", { setOpenInterestCaps: sortedPairs(nullable(Schema.Natural)) }),
    define("perpDeploy", {
      setSubDeployers: Schema.Struct({ dex: words, subDeployers: SubDeployers })
    }),
    define("perpDeploy", { setMarginModes: sortedPairs(words) }),
    define("perpDeploy", { setFeeScale: Schema.Struct({ dex: words, scale: Decimal }) }),
    define("perpDeploy", { setGrowthModes: sortedPairs(Schema.Boolean) }),
    define("perpDeploy", {
      setDeployerFees: sortedPairs(Schema.Struct({ scale: Decimal, growthMode: Schema.Boolean }))
    }),
    define("perpDeploy", { setFundingClamps: sortedPairs(Decimal) }),
    define("perpDeploy", { setPerpAnnotation: Schema.Struct({ coin: words, ...Annotation }) }),
    define("perpDeploy", { disableDex: words }),
    define("perpDeploy", { star: Schema.Struct({ dex: words, operation: Schema.Unknown }) })
  ]),
  spotDeploy: Schema.Union([
    define("spotDeploy", {
      registerToken2: Schema.Struct({
        spec: Schema.Struct({ name: words, szDecimals: Schema.Natural, weiDecimals: Schema.Natural }),
        maxGas: Schema.Natural,
        fullName: maybe(words)
      })
    }),
    define("spotDeploy", {
      userGenesis: Schema.Struct({
        token: Schema.Natural,
        userAndWei: pairs(Address, Decimal),
        existingTokenAndWei: pairs(Schema.Natural, Decimal),
        blacklistUsers: maybe(pairs(Address, Schema.Boolean))
      })
    }),
    define("spotDeploy", {
      genesis: Schema.Struct({ token: Schema.Natural, maxSupply: Decimal, noHyperliquidity: maybe(Schema.Boolean) })
    }),
    define("spotDeploy", { registerSpot: Schema.Struct({ tokens: Schema.Tuple([Schema.Natural, Schema.Natural]) }) }),
    define("spotDeploy", {
      registerHyperliquidity: Schema.Struct({
        spot: Schema.Natural,
        startPx: Decimal,
        orderSz: Decimal,
        nOrders: Schema.Natural,
        nSeededLevels: maybe(Schema.Natural)
      })
    }),
    define("spotDeploy", { setDeployerTradingFeeShare: Schema.Struct({ token: Schema.Natural, share: Percent }) }),
    define("spotDeploy", { enableQuoteToken: TokenIndex }),
    define("spotDeploy", { enableAlignedQuoteToken: TokenIndex }),
    define("spotDeploy", { disableQuoteToken: TokenIndex }),
    define("spotDeploy", {
      requestEvmContract: Schema.Struct({ token: Schema.Natural, address: Address, evmExtraWeiDecimals: Schema.Int })
    }),
    define("spotDeploy", { outcome: Schema.Union(outcomeOperations) }),
    define("spotDeploy", {
      freezeUser: Schema.Struct({ token: Schema.Natural, user: Address, freeze: Schema.Boolean })
    }),
    define("spotDeploy", { enableFreezePrivilege: TokenIndex }),
    define("spotDeploy", { revokeFreezePrivilege: TokenIndex }),
    define("spotDeploy", {
      setTokenAnnotation: Schema.Struct({ token: Schema.Natural, annotation: Schema.Struct(Annotation) })
    }),
    define("spotDeploy", { setDeployerLabel: Schema.Struct({ label: words }) })
  ]),
  finalizeEvmContract: define("finalizeEvmContract", {
    token: Schema.Natural,
    input: Schema.Union([
      Schema.Struct({ create: Schema.Struct({ nonce: Schema.Natural }) }),
      Schema.Literals(["firstStorageSlot", "customStorageSlot"])
    ])
  }),
  hip3LiquidatorTransfer: define("hip3LiquidatorTransfer", {
    dex: words,
    ntl: Schema.Natural,
    isDeposit: Schema.Boolean
  }),
  activateOutcomeDeployer: Schema.Union([
    define("activateOutcomeDeployer", { activate: Schema.Struct({ venueName: words }) }),
    define("activateOutcomeDeployer", { deactivate: Schema.Null })
  ]),
  outcomeDeploy: define("outcomeDeploy", {
    venue: words,
    operation: Schema.Union([...outcomeOperations, Schema.Struct({ setSubDeployers: SubDeployers })])
  }),
  authorizeAqav2Role: define("authorizeAqav2Role", { token: Schema.Natural, role: words }),
  gossipPriorityBid: define("gossipPriorityBid", { slotId: Schema.Natural, ip: words, maxGas: Schema.Natural }),
  CValidatorAction: Schema.Union([
    define("CValidatorAction", {
      changeProfile: Schema.Struct({
        node_ip: nullable(NodeIp),
        name: nullable(words),
        description: nullable(words),
        unjailed: Schema.Boolean,
        disable_delegations: nullable(Schema.Boolean),
        commission_bps: nullable(Schema.Natural),
        signer: nullable(Address)
      })
    }),
    define("CValidatorAction", {
      register: Schema.Struct({
        profile: Schema.Struct({
          node_ip: NodeIp,
          name: words,
          description: words,
          delegations_disabled: Schema.Boolean,
          commission_bps: Schema.Natural,
          signer: Address
        }),
        unjailed: Schema.Boolean,
        initial_wei: Natural64
      })
    }),
    define("CValidatorAction", { unregister: Schema.Null })
  ]),
  validatorL1Stream: define("validatorL1Stream", { riskFreeRate: Decimal })
} as const satisfies { readonly [Type in ActionType]: Schema.Top }

/** A decoded action of one type. */
export type ActionOf<Type extends ActionType> = (typeof actionSchemas)[Type]["Type"]
