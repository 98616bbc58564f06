/**
 * The venue's refusals and messages, verbatim.
 *
 * Sources: the venue's documentation ("Error responses"), recorded responses, and assertions in the tests of
 * `@nktkas/hyperliquid` and other clients against the testnet. If the venue's text is not known, the text is Trigate's
 * own and is marked as such.
 */
import type { Address } from "@trigate/domain/encoding/Encoding"
import type { Asset } from "./Assets.ts"

/** Refusal: the signature recovers to an address that is neither an account nor an API wallet. */
export const unknownUser = (signer: Address) => `User or API Wallet ${signer} does not exist.`

/** Refusal: an API wallet signed an action that only the key of the account itself can sign. */
export const mustDeposit = (signer: Address) => `Must deposit before performing actions. User: ${signer}`

export const duplicateNonce = (nonce: number) => `Invalid nonce: duplicate nonce ${nonce}`

/** Refusal: the nonce is too old for the venue's nonce window, or below the signer's lowest stored nonce. */
export const nonceTooLow = (nonce: number, lowest: number) => `Invalid nonce: nonce too low ${nonce} < ${lowest}`

/** Refusal: the nonce is too far in the future for the venue's nonce window. */
export const nonceTooHigh = (nonce: number, highest: number) => `Invalid nonce: nonce too high ${nonce} > ${highest}`

/** Refusal: the nonce in the action differs from the nonce of the body. */
export const nonceMismatch = "Nonce mismatch."

export const wrongNetwork = "Mainnet and testnet require different signature."
export const expired = "Action already expired"
export const multiSigRequired = "Multi-sig required"
export const thresholdNotMet = "Multi-sig threshold not met"

/** Refusal: the signature of a co-signer recovers to an address that is not authorized. */
export const invalidInnerSigner = "Invalid multi-sig inner signer"

/** Refusal: the outer signature is not from the leader, or the leader is not authorized. */
export const invalidOuterSigner = "Invalid multi-sig outer signer"

export const outerSignerUnknown = "Multi-sig outer signer must be an L1 user."

/** Refusal: the account named in the wrapper is not a multi-sig account. */
export const invalidMultiSigUser = "Invalid multi-sig user"

/** Refusal: the rule of a multi-sig account names more than ten users. */
export const tooManySigners = "Too many multi-sig signers"

/** Refusal: the threshold of a multi-sig account is below one, or above the number of users. */
export const invalidThreshold = "Invalid multi-sig threshold"

export const authorizedUserUnknown = "Multi-sig authorized user must exist on L1"
export const selfAuthorized = "Cannot register self as multi-sig authorized user"

/** Refusal: `vaultAddress` is not a vault or sub-account that the signer leads. */
export const unknownVault = (vault: Address) => `Vault not registered: ${vault}`

/** Refusal: the account that sent a `CSignerAction` is not a validator. */
export const notValidator = "Signer invalid or inactive for current epoch"

export const unknownValidator = "Unknown validator"

/** Refusal: the amount to delegate or undelegate exceeds the stake. */
export const insufficientStake = "Insufficient stake"

const cents = (usd: string): string => {
  const [whole = "0", fraction = ""] = usd.split(".")
  return `${whole}.${fraction.slice(0, 2).padEnd(2, "0")}`
}

/** Refusal: the account has reached its request limit. */
export const tooManyRequests = (sent: number, limit: number, volume: string) =>
  `Too many cumulative requests sent (${sent} > ${limit}) for cumulative volume traded $${cents(volume)}. ` +
  "Place taker orders to free up 1 request per USDC traded."

/** Refusal (HTTP 422, plain text): the body is JSON, but it does not have the shape of a known query or action. */
export const wrongShape = "Failed to deserialize the JSON body into the target type"

/** Refusal (HTTP 400, plain text): the body is not JSON. */
export const notJson = "Failed to parse the request body as JSON"

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
export const reduceOnlyTwap = "Reduce-only TWAP order would increase position."
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

/**
 * Refusal: the account has not traded enough for the action. `required` is in whole dollars. Recorded responses, and
 * assertions of `@nktkas/hyperliquid` for sub-accounts and referral codes.
 */
export const volumeTooLow = (action: string, required: number, traded: string): string =>
  `Cannot ${action} until enough volume traded. Required: $${required}. Traded: $${
    cents(traded).replace(/\.?0+$/u, "")
  }.`

export const tooManySubAccounts = "Too many sub-accounts."
export const unknownSubAccount = (sub: string, user: Address): string =>
  `Sub-account ${sub} is not registered to ${user}`
export const subAccountTransfer = (from: string, to: string): string =>
  `Invalid sub-account transfer from ${from} to ${to}`
/** Refusal: an API wallet sends funds to another user. */
export const agentDestination = "Agent can only send asset to same user or their sub-accounts."
/** Refusal with Trigate's own text, because the venue's text is not known. */
export const invalidName = "Invalid name"

export const vaultBalance = "Insufficient balance to create vault"
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
export const tooManyAgents = (limit: number): string =>
  `Too many extra agents for cumulative volume traded. Current limit is ${limit}`
/** Refusal: the time `valid_until` is in the past, or more than 180 days in the future. */
export const agentExpired = "Agent valid_until already expired."
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
/** The tests of `@nktkas/hyperliquid` assert the words before the colon. The rest is Trigate's own text. */
export const stakingLink = (why: string): string => `Staking link error: ${why}`

/** Refusal: the account cannot change from its abstraction mode to the other one. */
export const abstractionTransition = "Abstraction transition not allowed"
/** Refusal: the action moves funds between balances that are one. Recorded by clients. */
export const unifiedDisabled = "Action disabled when unified account is active"
export const portfolioMarginThreshold = "Portfolio margin requires account value of $10000 or total volume of $5000000."

export const noEvmContract = "Error deploying spot: Pending EVM contract missing"
/** The tests of `@nktkas/hyperliquid` assert the first word. */
export const invalidOutcome = "Invalid outcome"
export const invalidQuestion = "Invalid question"
export const notOutcomeDeployer = "Error deploying outcome: not an outcome deployer"
/** The venue's documentation contains this text. */
export const deployerFeeScale = "Deployer fee scale cannot be negative or greater than 10."
// The texts of the other refusals of deployers are Trigate's own, because the venue's texts are not known.
export const deployerExists = "Error deploying outcome: already an outcome deployer"
export const deployerAbstraction = "Error deploying outcome: deployers must use the standard abstraction"
export const venueName = "Error deploying outcome: invalid venue name"
export const deployedTooBriefly = "Error deploying outcome: deployed less than 183 days ago"
export const hasOutcomes = "Error deploying outcome: the deployer has active outcomes"
export const unknownTemplate = (id: string): string => `Error deploying outcome: unknown template ${id}`
export const templateValues = "Error deploying outcome: the values do not fit the template"
export const tooManyOutcomes = "Error deploying outcome: too many outcomes"
export const invalidSettlement = "Error deploying outcome: invalid settlement"
export const namedOutcomes = "Error deploying outcome: a question has 1 to 100 named outcomes"
export const sameOutcome = "Error deploying outcome: the question has this outcome already"
export const unknownGrant = "Error deploying outcome: unknown operation of a sub-deployer"
// The texts of the refusals of deployers of dexes are Trigate's own, because the venue's texts are not known.
export const dexName = "Error deploying perp: invalid dex name"
export const oneDex = "Error deploying perp: the account has deployed another dex"
export const unplayedCollateral = "Error deploying perp: the sandbox supports only USDC as collateral"
export const invalidPerpetual = "Error deploying perp: invalid asset"
export const oracleTooSoon = "Error deploying perp: oracle was updated less than 2.5 seconds ago"
export const invalidOracle = "Error deploying perp: invalid oracle prices"
export const dexIsTrading = "Error deploying perp: the dex has assets that are not halted"
export const unplayedDexAction = (variant: string): string =>
  `Error deploying perp: the sandbox does not support ${variant}`
/** Refusal with Trigate's own text, because the venue's text is not known. */
export const notDeployer = "Error deploying perp: not a deployer"
// The next four texts are asserted by the tests of `@nktkas/hyperliquid` against the testnet or recorded by clients.
export const auctionCompleted = "Error deploying spot: Gas auction completed. Try again later"
export const genesisHappened = "Genesis error: genesis already happened"
export const incorrectDeployer = "Error deploying spot: incorrect deployer"
export const noMaxSupply = "Error deploying spot: missing token max_supply"
// The texts of the other refusals of deployers of tokens are Trigate's own, because the venue's texts are not known.
export const invalidTokenSpec = "Error deploying spot: invalid token spec"
export const invalidGenesis = "Genesis error: invalid amounts"
export const supplyMismatch = "Genesis error: max supply does not match the genesis balances"
export const unwantedHyperliquidity = "Error deploying spot: genesis without Hyperliquidity"
export const missingHyperliquidity = "Error deploying spot: insufficient Hyperliquidity balance"
export const invalidHyperliquidity = "Error deploying spot: invalid Hyperliquidity orders"
export const hyperliquidityQuote = "Error deploying spot: Hyperliquidity requires USDC as quote token"
export const hyperliquidityExists = "Error deploying spot: Hyperliquidity already registered"
export const invalidQuote = "Error deploying spot: invalid quote token"
export const roleTaken = "Error deploying spot: role already authorized"
export const pairExists = "Error deploying spot: pair already registered"
export const invalidFeeShare = "Error deploying spot: deployer trading fee share cannot increase"
/** Refusal: an amount that the EVM contract of a token cannot represent. Reported by clients. */
export const tooManyDecimals = "Invalid number of decimals"
export const invalidEvmContract = "Error deploying spot: invalid EVM contract"
export const noFreezePrivilege = "Error deploying spot: no freeze privilege"
export const unplayedSpotAction = (variant: string): string =>
  `Error deploying spot: the sandbox does not support ${variant}`
/** Refusal with Trigate's own text, because the venue's text is not known. */
export const frozen = "User is frozen for this token"
/** Refusal: a validator with `disable_delegations` gets stake. Asserted by the tests of `@nktkas/hyperliquid`. */
export const delegationsDisabled = "Validator has delegations disabled"
// The texts of the other refusals of validators are Trigate's own, because the venue's texts are not known.
export const validatorExists = "Validator already registered"
export const signerUsed = "Validator signer already used"
export const invalidCommission = "Invalid validator commission"
export const liquidatorDeposit = "Insufficient funds available to deposit."
/** Refusal with Trigate's own text, because the venue's text is not known. */
export const notLiquidator = "Only the deployer of a dex can fund its liquidator."
export const insufficientGas = "Insufficient gas at current auction price."
/** Refusal with Trigate's own text, because the venue's text is not known. */
export const unknownSlot = (slot: number): string => `Unknown auction slot ${slot}`
/** Refusal with Trigate's own text, because the venue's text is not known. */
export const notLent = (operation: string, token: string): string => `Cannot ${operation} token ${token}`
/** Refusal with Trigate's own text, because the venue's text is not known. */
export const invalidSigners = "Invalid multi-sig signers"
