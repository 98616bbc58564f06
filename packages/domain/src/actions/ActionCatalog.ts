/**
 * The catalog of known actions: every action type that the venue's client libraries publish, its signing scheme, and
 * the member that lists the entries of a batch, if any.
 *
 * The signing package declares the members of each type; the compiler reports a type without a declaration. Operations,
 * costs, metric labels, scopes of caller keys and the default of `TRIGATE_RELAY_ACTIONS` are derived from this catalog.
 *
 * Sources: the venue's API documentation (dzmbs/hyperliquid-docs of 2026-08-22), hyperliquid-python-sdk 0.24.0,
 * @nktkas/hyperliquid 0.33.3, ccxt 4.5.84, hyperliquid-rust-sdk aac7558, infinitefield/hypersdk.
 */
import * as Predicate from "effect/Predicate"

/**
 * The date on which the catalog of actions, queries and subscriptions was last compared with its sources. What the venue
 * has added since is not known to this version.
 */
export const catalogDate = "2026-11-28"

/** Describes a type, a member or a word that the catalog lacks: one clause of ASCII that follows its name. */
export const notKnown = `is not known to this version (catalog of ${catalogDate})`

/**
 * The signing scheme of an action:
 *
 * - `l1`: the signed EIP-712 message is the venue's "phantom agent", which contains the hash of the whole action;
 * - `userSigned`: the signed EIP-712 message consists of the action's members;
 * - `multiSig`: the action contains an `l1` or `userSigned` action, which the co-signers sign.
 */
export type SigningScheme = "l1" | "userSigned" | "multiSig"

const batchMembers = ["orders", "cancels", "modifies"] as const

/** The name of the action member that lists the entries of a batch, such as `orders`. */
export type BatchMember = (typeof batchMembers)[number]

/** A known action type. */
export interface KnownAction {
  readonly scheme: SigningScheme
  /** The effect of the action, in one sentence for the documentation. */
  readonly summary: string
  /**
   * The action member that lists the entries of a batch. The venue's response has a status for each entry. Every 40
   * entries add 1 to the request's rate-limit weight.
   */
  readonly batch?: BatchMember
}

const l1 = (summary: string) => ({ scheme: "l1", summary }) as const
const batchAction = <const Member extends BatchMember>(batch: Member, summary: string) => ({ ...l1(summary), batch })
const userSigned = (summary: string) => ({ scheme: "userSigned", summary }) as const

/** The known actions by `type`. */
export const actionCatalog = {
  order: batchAction("orders", "Place orders"),
  cancel: batchAction("cancels", "Cancel orders by order id"),
  cancelByCloid: batchAction("cancels", "Cancel orders by client order id"),
  modify: l1("Replace an order"),
  batchModify: batchAction("modifies", "Replace orders"),
  scheduleCancel: l1("Schedule the cancellation of all orders, or remove the schedule"),
  twapOrder: l1("Place a TWAP order"),
  twapCancel: l1("Cancel a TWAP order"),
  trailingStop: l1("Place a trailing stop order"),
  noop: l1("Use a nonce without any other effect"),
  updateLeverage: l1("Set the leverage and margin mode of an asset"),
  updateIsolatedMargin: l1("Add or remove margin of an isolated position"),
  topUpIsolatedOnlyMargin: l1("Add margin to an isolated position to reach a leverage"),
  multiSig: { scheme: "multiSig", summary: "A multi-sig action, sent by its leader" },
  tokenDelegate: userSigned("Delegate or undelegate stake"),
  CSignerAction: l1("A validator jails or unjails itself"),
  evmUserModify: l1("Choose big or small blocks for EVM transactions"),
  usdSend: userSigned("Send USDC to another account"),
  spotSend: userSigned("Send a spot token to another account"),
  sendAsset: userSigned("Send a token between accounts, dexes and sub-accounts"),
  withdraw3: userSigned("Withdraw USDC to Arbitrum"),
  usdClassTransfer: userSigned("Transfer USDC between the spot and perpetual balances"),
  cDeposit: userSigned("Move HYPE from the spot balance to staking"),
  cWithdraw: userSigned("Move HYPE from staking to the spot balance"),
  approveAgent: userSigned("Approve an API wallet"),
  approveBuilderFee: userSigned("Approve a maximum fee for a builder"),
  convertToMultiSigUser: userSigned("Convert an account to multi-sig, or back"),
  sendToEvmWithData: userSigned("Send a token to a contract on HyperEVM with call data"),
  linkStakingUser: userSigned("Link a trading account to a staking account"),
  stakingLinkDisableTradingUser: userSigned("Disable the trading account of a staking link"),
  userDexAbstraction: userSigned("Enable or disable an account's dex abstraction"),
  userPortfolioMargin: userSigned("Enable or disable an account's portfolio margin"),
  userSetAbstraction: userSigned("Set an account's abstraction mode"),
  agentEnableDexAbstraction: l1("An API wallet enables the account's dex abstraction"),
  agentSendAsset: l1("An API wallet sends a token between the account's own balances"),
  agentSetAbstraction: l1("An API wallet sets the account's abstraction mode"),
  createSubAccount: l1("Create a sub-account"),
  subAccountModify: l1("Rename a sub-account"),
  subAccountTransfer: l1("Transfer USDC to or from a sub-account"),
  subAccountSpotTransfer: l1("Transfer a spot token to or from a sub-account"),
  createVault: l1("Create a vault"),
  vaultModify: l1("Change the settings of a vault"),
  vaultTransfer: l1("Deposit into or withdraw from a vault"),
  vaultDistribute: l1("Distribute a vault's USDC to its depositors"),
  registerReferrer: l1("Register a referral code"),
  setReferrer: l1("Set the account's referrer"),
  claimRewards: l1("Claim referral rewards"),
  setDisplayName: l1("Set the account's name on the leaderboard"),
  reserveRequestWeight: l1("Buy requests beyond the address-based rate limit"),
  spotUser: l1("Enable or disable spot dusting, or transfer USDC between spot and perpetuals"),
  borrowLend: l1("Supply, withdraw, borrow or repay a token"),
  userOutcome: l1("Split, merge or negate outcome tokens"),
  perpDeploy: l1("Deploy and operate a perpetuals dex"),
  spotDeploy: l1("Deploy and operate a spot token or pair"),
  finalizeEvmContract: l1("Link a spot token to its EVM contract"),
  hip3LiquidatorTransfer: l1("Transfer USDC to or from a dex's liquidator"),
  activateOutcomeDeployer: l1("Activate or deactivate a deployer of outcome markets"),
  outcomeDeploy: l1("Deploy and settle outcome markets"),
  authorizeAqav2Role: l1("Authorize a role of a quote token"),
  gossipPriorityBid: l1("Bid for gossip priority"),
  CValidatorAction: l1("Register, change or unregister a validator"),
  validatorL1Stream: l1("A validator votes on the risk-free rate")
} as const satisfies { readonly [type: string]: KnownAction }

type Catalog = typeof actionCatalog

/** The `type` of a known action. */
export type ActionType = keyof Catalog

/** The known action types that have the signing scheme `Scheme`. */
export type ActionTypeOf<Scheme extends SigningScheme> = {
  [Type in ActionType]: Catalog[Type]["scheme"] extends Scheme ? Type : never
}[ActionType]

/** Returns whether a type is in the catalog. */
export const isActionType = (type: string): type is ActionType => Object.hasOwn(actionCatalog, type)

/** An action as it occurs in a request body. */
export interface SentAction {
  readonly type: string
  readonly [member: string]: unknown
}

/** Returns whether a value is an object whose `type` is text. */
export const isSentAction = (action: unknown): action is SentAction =>
  Predicate.isReadonlyObject(action) && Predicate.isString(action["type"])

/** Returns the action inside a multi-sig; `undefined` if the action is not a multi-sig. */
export const innerAction = ({ payload, type }: SentAction): SentAction | undefined => {
  if (type !== "multiSig" || !Predicate.isReadonlyObject(payload)) return undefined
  const { action } = payload
  return isSentAction(action) ? action : undefined
}

const isList = (value: unknown): value is ReadonlyArray<unknown> => Array.isArray(value)

/** Returns the entries of a batch, including a batch inside a multi-sig; `undefined` for an action that is not a batch. */
export const batchEntries = (action: SentAction): ReadonlyArray<unknown> | undefined => {
  const executed = innerAction(action) ?? action
  // uses `batchMembers` rather than the catalog, so that a browser bundle does not include the catalog
  for (const member of batchMembers) {
    const entries = executed[member]
    if (isList(entries)) return entries
  }
  return undefined
}

/**
 * Returns the number of legs of an action: the entries of its batch, including a batch inside a multi-sig; 1 for any other
 * action.
 */
export const legCount = (action: SentAction): number => batchEntries(action)?.length ?? 1
