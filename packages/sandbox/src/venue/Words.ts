/**
 * The venue's messages for refused trading actions.
 *
 * Sources: the venue's documentation ("Error responses"), recorded responses, and assertions in the tests of
 * `@nktkas/hyperliquid` and other clients against the testnet. If the venue's text is not known, the text is Trigate's
 * own and is marked as such.
 */
import type { Asset } from "./Assets.ts"

const inAsset = (text: string) => ({ id }: Pick<Asset, "id">): string => `${text} asset=${id}`

export const tick = inAsset("Price must be divisible by tick size.")
export const invalidPrice = "Order has invalid price."
export const invalidSize = "Order has invalid size."
export const zeroSize = "Order has zero size."
export const minimumNotional = inAsset("Order must have minimum value of $10.")
export const minimumSpotNotional = (asset: Asset, quote: string): string =>
  inAsset(`Order must have minimum value of 10 ${quote}.`)(asset)
export const insufficientMargin = inAsset("Insufficient margin to place order.")
export const reduceOnly = inAsset("Reduce only order would increase position.")
export const postOnly = (asset: Asset, bid: string, ask: string): string =>
  inAsset(`Post only order would have immediately matched, bbo was ${bid}@${ask}.`)(asset)
export const noMatch = inAsset("Order could not immediately match against any resting orders.")
/**
 * The venue's documentation contains this text without the suffix `asset=`, and no response with the text was recorded.
 * The suffix is added here, because similar texts of the venue have it.
 */
export const openInterestCapped = inAsset("Order would increase open interest while open interest is capped")
export const triggerPrice = inAsset("Invalid TP/SL price.")
export const noLiquidity = inAsset("No liquidity available for market order.")
export const insufficientSpot = ({ id }: Asset): string => `Insufficient spot balance asset=${id}`
export const priceBand = "Order price cannot be more than 80% away from the reference price"
export const unknownOrder = inAsset("Order was never placed, already canceled, or filled.")
export const notModifiable = "Cannot modify canceled or filled order"
/** Wraps the refusal of a modified order whose original order is already canceled. Reported by clients in August 2026. */
export const duringModify = (text: string): string => `Error placing new order during modify: ${text}`
/** Refusal with Trigate's own text, because the venue's text is not known. */
export const onlyResting =
  "Modify without always_place (a: true) requires a non-trigger order with TIF Alo, or a Gtc order that does not execute."
export const mainIsTrigger = "Main order cannot be trigger order."
/** Reported by clients, for a group of a main order without take-profit and stop-loss. */
export const noTriggerOrders = "Unexpected number of trigger orders"
/** Refusal with Trigate's own text, because the venue's text is not known. */
export const tpslReduceOnly = "TP/SL orders must be reduce only."
/** Refusal of a whole action with Trigate's own text, because the venue's text is not known. */
export const emptyBatch = "Empty batch."
/** Refusal with Trigate's own text, because the venue's text is not known. */
export const fastCancel = inAsset("Trigger orders cannot be canceled with the fast flag (f: true).")
/** Asserted by the tests of `@nktkas/hyperliquid` against the testnet. */
export const priorityBalance = "Insufficient delegatable balance for priority order"
/** Refusal of a whole action with Trigate's own text, because the venue's text is not known. */
export const priorityOrders =
  "Priority grouping requires that every order is Ioc, or that every order is Alo and not reduce only."
/** Refusal of a whole action with Trigate's own text, because the venue's text is not known. */
export const priorityRate = "Priority rate cannot be more than 100%."
export const builderNotApproved = "Builder fee has not been approved."
/**
 * Refusal with Trigate's own text, because the venue's text is not known. The venue's order status for this case is
 * `tooManyOpenOrdersRejected`.
 */
export const tooManyOpenOrders = inAsset("Too many open orders.")
/** Refusal with Trigate's own text, because the venue's text is not known. */
export const unknownAsset = (id: number): string => `Unknown asset. asset=${id}`

export const twapTooSmall = (minutes: number): string =>
  `TWAP order value too small. Min is $${10 * minutes}, which is $10 per minute.`
export const twapDuration = (minutes: number): string => `Invalid TWAP duration: ${minutes} min(s)`
export const unknownTwap = "TWAP was never placed, already canceled, or filled."

export const cancelTooEarly = "Scheduled cancel time too early, must be at least 5 seconds from now."

export const invalidLeverage = "Invalid leverage value"
export const leverageType = "Cannot switch leverage type with open position."
export const crossNotAllowed = "Cross margin is not allowed for this asset."
export const crossLeverage =
  "Cross position does not have sufficient margin available to decrease leverage. To decrease leverage, deposit more " +
  "collateral."
export const isolatedLeverage =
  "Isolated position does not have sufficient margin available to decrease leverage. To decrease leverage, add margin " +
  "to the position."
export const emptyPosition = "Cannot update margin for empty position."
export const notIsolated = "Position does not use isolated margin."
export const zeroMargin = "Update to isolated margin cannot be zero."
export const marginIncrease = "Account does not have sufficient margin available for increase."
export const marginReduction = "Position does not have sufficient margin for reduction."
export const strictReduction = "Cannot remove isolated margin for this asset. To remove margin, reduce the position."
export const notStrictIsolated = "Asset not strict isolated"

export const insufficientWithdrawal = "Insufficient balance for withdrawal."
export const insufficientTransfer = "Insufficient balance for token transfer"
/** Refusal with Trigate's own text, because the venue's text is not known. */
export const unknownToken = (token: string): string => `Unknown token ${token}`
/** Refusal with Trigate's own text, because the venue's text is not known. */
export const tooManyAccounts = "The venue has reached its maximum number of accounts"
/** Refusal with Trigate's own text, because the venue's text is not known. */
export const invalidAmount = "Invalid amount"
/** Refusal with Trigate's own text, because the venue's text is not known. */
export const unknownDex = (dex: string): string => `Unknown dex ${dex}`
/** Refusal with Trigate's own text, because the venue's text is not known. */
export const selfTransfer = "Cannot self-transfer"

export const tooManySubAccounts = "Too many sub-accounts."
/** Refusal with Trigate's own text, because the venue's text is not known. */
export const unknownSubAccount = "Unregistered sub-account"
/** Refusal with Trigate's own text, because the venue's text is not known. */
export const invalidName = "Invalid name"

export const smallVaultDeposit = "Vault deposits must be at least $5."
export const emptyVault = "Cannot withdraw with zero balance in vault."
export const vaultLockup = "Cannot withdraw during lockup period after depositing."
export const notVaultLeader = "Only leader can perform this vault action."
export const vaultClosed = "Vault is not accepting deposits"
/** Refusal with Trigate's own text, because the venue's text is not known. */
export const vaultTooSmall = "Vault must be created with at least $100."
export const leaderShare = "Deposit causes leader share to drop below 5%."
/** Refusal with Trigate's own text, because the venue's text is not known. */
export const leaderWithdrawal = "Withdrawal causes leader share to drop below 5%."

export const agentUsed = "Extra agent already used."
export const tooManyAgents = "Too many extra agents."
/** Refusal with Trigate's own text, because the venue's text is not known. */
export const agentExpired = "Agent valid_until must not be in the past."
/** Refusal with Trigate's own text, because the venue's text is not known. */
export const agentIsUser = "Agent address is already a user."

export const poorBuilder = "Builder has insufficient balance to be approved."
export const builderFeeTooHigh = "Builder fee is too high."

export const codeTaken = "Referral code already registered"
export const codeUnknown = "Referral code not registered"
export const referrerSet = "Referrer already set"
export const selfReferral = "Cannot self-refer"
export const nothingToClaim = "No rewards to claim"
export const insufficientStaking = "Insufficient staking balance available"
/** Refusal with Trigate's own text, because the venue's text is not known. */
export const stakingLink = "Invalid staking link"
/** Refusal with Trigate's own text, because the venue's text is not known. */
export const invalidSigners = "Invalid multi-sig signers"
