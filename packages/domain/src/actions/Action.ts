/**
 * Signed actions and `POST /exchange`: the catalog of every action type that the venue's client libraries publish, the
 * schemas of the actions whose members the gateway decodes, the body, the operations, and the decoding of the venue's
 * responses.
 *
 * The signing package declares the members of each type; the compiler reports a type without a declaration. Operations,
 * costs, metric labels, scopes of caller keys and the default of `TRIGATE_RELAY_ACTIONS` are derived from this catalog.
 *
 * Sources: the venue's API documentation (dzmbs/hyperliquid-docs of 2026-08-22), hyperliquid-python-sdk 0.24.0,
 * @nktkas/hyperliquid 0.33.3, ccxt 4.5.84, hyperliquid-rust-sdk aac7558, infinitefield/hypersdk.
 *
 * The venue documents some actions in a form that it does not accept. The gateway relays both forms. It cannot hash the documented form, so it cannot recover the signer of an action in
 * that form.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import * as Json from "../encoding/Encoding.ts"
import * as GatewayError from "../errors/GatewayError.ts"
import * as Operation from "../operations/Operation.ts"
import { ActionAccepted, ActionRejected, classifyRejection, decodeEntry, isRejected } from "./ActionOutcome.ts"
import type { ActionEntry, ActionResult } from "./ActionOutcome.ts"

/** The `r` or `s` of a signature: 0x hex of 1 to 64 digits, because inner multi-sig signatures omit leading zeros. */
export const SignaturePart = Json.hex(/^0x[0-9a-fA-F]{1,64}$/u, "SignaturePart", "0x hex of 1 to 64 digits")
  .annotate({ description: "Up to 32 bytes, 0x hex of 1 to 64 digits" })

/** A secp256k1 signature with its recovery bit: `v` is 27 or 28; some signers send 0 or 1. */
export const Signature = Schema.Struct({
  r: SignaturePart,
  s: SignaturePart,
  v: Schema.Literals([27, 28, 0, 1])
}).annotate({ identifier: "Signature" })
export type Signature = typeof Signature.Type

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

/** The chain ID, in 0x hex, of the EIP-712 domain of a user-signed action. Any chain ID is accepted. */
export const SignatureChainId = Schema.String.check(
  Schema.isPattern(/^0x[0-9a-fA-F]{1,16}$/u, { expected: "a chain id in 0x hex" })
).annotate({
  identifier: "SignatureChainId",
  description: "Chain ID of the typed data, 0x hex"
})

/** The network of a user-signed action. */
export const VenueChain = Schema.Literals(["Mainnet", "Testnet"]).annotate({ identifier: "VenueChain" })

const namesOneChain = Schema.makeFilter<{ readonly hyperliquidChain?: string; readonly venueChain?: string }>((
  action
) =>
  (action.hyperliquidChain === undefined) === (action.venueChain === undefined)
    ? "Expected exactly one of hyperliquidChain and venueChain"
    : undefined
)

/**
 * Delegates or undelegates stake: `wei` is HYPE x 10^8, up to 2^64-1. The gateway renames `venueChain` to
 * `hyperliquidChain` before it sends the action.
 */
export const TokenDelegate = Schema.Struct({
  type: Schema.Literal("tokenDelegate"),
  signatureChainId: SignatureChainId,
  hyperliquidChain: Schema.optionalKey(VenueChain),
  venueChain: Schema.optionalKey(VenueChain),
  validator: Json.Address,
  wei: Json.Uint64.annotateKey({ description: "Stake in HYPE x 10^8" }),
  isUndelegate: Schema.Boolean,
  nonce: Json.Millis
}).check(namesOneChain).annotate({ identifier: "TokenDelegate" })

/** The documented form of `tokenDelegate`: a decimal `amount` instead of `wei`. */
export const TokenDelegateDocumented = Schema.Struct({
  type: Schema.Literal("tokenDelegate"),
  signatureChainId: Schema.optionalKey(SignatureChainId),
  hyperliquidChain: Schema.optionalKey(VenueChain),
  venueChain: Schema.optionalKey(VenueChain),
  validator: Json.Address,
  amount: Schema.String.check(Schema.isPattern(/^[0-9]{1,30}(?:\.[0-9]{1,18})?$/u)),
  isUndelegate: Schema.Boolean,
  nonce: Schema.optionalKey(Json.Millis)
}).annotate({ identifier: "TokenDelegateDocumented" })

/** Jails the validator that signs the action. */
export const JailSelf = Schema.Struct({ type: Schema.Literal("CSignerAction"), jailSelf: Schema.Null })
  .annotate({ identifier: "JailSelf" })

/** Unjails the validator that signs the action. */
export const UnjailSelf = Schema.Struct({ type: Schema.Literal("CSignerAction"), unjailSelf: Schema.Null })
  .annotate({ identifier: "UnjailSelf" })

/** The documented form of `CSignerAction`, which has a member `payload`. */
export const CSignerActionDocumented = Schema.Struct({
  type: Schema.Literal("CSignerAction"),
  payload: Schema.Union([Schema.String, Schema.Record(Schema.String, Schema.Unknown)])
}).annotate({ identifier: "CSignerActionDocumented" })

/**
 * Selects big blocks (slow, 30M gas) or small blocks for the account's EVM transactions until the next `evmUserModify`.
 */
export const EvmUserModify = Schema.Struct({
  type: Schema.Literal("evmUserModify"),
  usingBigBlocks: Schema.Boolean
}).annotate({ identifier: "EvmUserModify" })

/** The documented form of `evmUserModify`, which has a list `modifications`. */
export const EvmUserModifyDocumented = Schema.Struct({
  type: Schema.Literal("evmUserModify"),
  modifications: Schema.Array(Schema.Unknown)
}).annotate({ identifier: "EvmUserModifyDocumented" })

/** Any action inside a multi-sig: its `type` and any other members. */
export const InnerAction = Json.openStruct({ type: Schema.String.check(Schema.isBetweenLength(1, 64)) }).annotate({
  identifier: "InnerAction"
})

/** An action that requires several signatures: up to 10 co-signers sign it, and `outerSigner` sends it. */
export const MultiSig = Schema.Struct({
  type: Schema.Literal("multiSig"),
  signatureChainId: SignatureChainId,
  signatures: Schema.Array(Signature).check(Schema.isBetweenLength(1, 10)),
  payload: Schema.Struct({ multiSigUser: Json.Address, outerSigner: Json.Address, action: InnerAction })
}).annotate({ identifier: "MultiSig" })

/** The forms of each action type whose members are decoded. The form that the venue accepts is first. */
export const actionForms = {
  multiSig: Schema.Union([MultiSig]),
  tokenDelegate: Schema.Union([TokenDelegate, TokenDelegateDocumented]),
  CSignerAction: Schema.Union([JailSelf, UnjailSelf, CSignerActionDocumented]),
  evmUserModify: Schema.Union([EvmUserModify, EvmUserModifyDocumented])
} as const satisfies { readonly [Type in ActionType]?: Schema.Top }

/** The action types whose members are decoded. */
export type DecodedActionType = keyof typeof actionForms

/** Returns whether the members of an action type are decoded. */
export const isDecodedActionType = (type: string): type is DecodedActionType => Object.hasOwn(actionForms, type)

/** Any decoded action, in the form that the venue accepts or in the form that the venue documents. */
export const Action = Schema.Union([
  actionForms.multiSig,
  actionForms.tokenDelegate,
  actionForms.CSignerAction,
  actionForms.evmUserModify
])
export type Action = typeof Action.Type

/** For each action type with two forms, the members that occur in only one of the forms. */
export const formKeys: {
  readonly [Type in Exclude<DecodedActionType, "multiSig">]: {
    readonly real: ReadonlyArray<string>
    readonly documented: string
    readonly advice: string
  }
} = {
  tokenDelegate: {
    real: ["wei"],
    documented: "amount",
    advice: "tokenDelegate takes an integer `wei` (HYPE x 10^8), not `amount`"
  },
  CSignerAction: {
    real: ["unjailSelf", "jailSelf"],
    documented: "payload",
    advice: "CSignerAction takes `unjailSelf: null` or `jailSelf: null`, not `payload`"
  },
  evmUserModify: {
    real: ["usingBigBlocks"],
    documented: "modifications",
    advice: "evmUserModify takes `usingBigBlocks`, not `modifications`"
  }
}

/** Returns whether the venue documents an action type in a form that it does not accept. */
export const hasDocumentedForm = (type: string): type is keyof typeof formKeys => Object.hasOwn(formKeys, type)

/**
 * Returns advice for an action in the documented form: a message that names the accepted form. Returns `undefined` for
 * any other action.
 */
export const documentedFormAdvice = (action: { readonly type: string }): string | undefined => {
  if (!hasDocumentedForm(action.type)) return undefined
  const { advice, documented, real } = formKeys[action.type]
  return documented in action && !real.some((key) => key in action) ? advice : undefined
}

/** The vault or sub-account on whose behalf an action is signed. The 0x prefix is optional, because ccxt omits it. */
const VaultAddress = Schema.String.check(
  Schema.isPattern(/^(?:0x)?[0-9a-fA-F]{40}$/u, { expected: "a 20-byte address in hex" })
).annotate({ identifier: "VaultAddress", description: "a 20-byte address in hex, with 0x or without" }).pipe(
  Schema.decodeTo(
    Json.Address,
    SchemaTransformation.transform({
      decode: (text) => text.startsWith("0x") ? text : `0x${text}`,
      encode: (address): string => address
    })
  )
)

const envelope = {
  nonce: Json.Millis.annotateKey({
    description: "Milliseconds since the Unix epoch, between 2 days before and 1 day after now; unique per signer"
  }),
  signature: Signature,
  vaultAddress: Schema.optionalKey(Schema.NullOr(VaultAddress)),
  expiresAfter: Schema.optionalKey(Schema.NullOr(Json.Millis)),
  isFrontend: Schema.optionalKey(Schema.Boolean).annotateKey({
    description: "Set by the venue's own web page and similar clients; not covered by the signature"
  })
}

/** A signed action whose members the gateway decodes: an {@link Action} with its nonce and signature. */
export const SignedAction = Schema.Struct({ action: Action, ...envelope }).annotate({ identifier: "SignedAction" })
export type SignedAction = typeof SignedAction.Type

/** The members of every `/exchange` body. */
export const SignedEnvelope = Schema.Struct({
  action: Json.openStruct({ type: Schema.String }),
  ...envelope
})
export type SignedEnvelope = typeof SignedEnvelope.Type

/** Returns the schema of a signed action of one type. Its decoding errors describe that type only. */
export const signedActionSchema = <Type extends DecodedActionType>(type: Type) =>
  Schema.Struct({ action: actionForms[type], ...envelope })

/** A signed action of any type: the action as it was signed, and the members beside it, such as the nonce. */
export interface AnySignedAction extends Omit<SignedEnvelope, "action"> {
  // the first type accepts values whose type is an interface, the second accepts object literals with additional
  // members
  readonly action: { readonly type: string } | SignedEnvelope["action"]
}

const encodeEnvelope = Schema.encodeEffect(Schema.Struct(envelope), { errors: "all" })

/**
 * Encodes a signed action as a request body. Integers keep all digits, and the action's members keep their order,
 * because the signed hash can depend on that order.
 *
 * Fails with `InvalidRequest` if a value beside the action, such as the nonce, is out of range. The members of the
 * action are not checked.
 */
export const write = ({ action, ...envelope }: AnySignedAction): Effect.Effect<string, GatewayError.InvalidRequest> =>
  Effect.mapBoth(encodeEnvelope(envelope), {
    onFailure: (error) => Operation.invalidRequest(Operation.decodeFaults(error)),
    onSuccess: (encoded) => Json.stringify({ action, ...encoded })
  })

/** Returns the number of legs ({@link legCount}) of the action in a request body; 1 if the body is not valid. */
export const legCountIn = (body: string): number => {
  const value = Json.of(body).valueOrUndefined
  return Predicate.hasProperty(value, "action") && isSentAction(value.action) ? legCount(value.action) : 1
}

/** The errors with which only signed actions fail. `CommonFailure` contains the errors of all operations. */
export const exchangeFailures = [
  GatewayError.UnsupportedAction,
  GatewayError.NonceOutOfWindow,
  GatewayError.NonceMismatch,
  GatewayError.NonceAlreadyUsed,
  GatewayError.InvalidSignature,
  GatewayError.SignerNotAllowed,
  GatewayError.PolicyViolation,
  GatewayError.OutcomeUnknown
] as const

/** The errors of an embedded service for a signed action, except `ActionRejected`. */
export const ExchangeFailure = Schema.Union([
  ...exchangeFailures,
  GatewayError.NotPermitted,
  ...GatewayError.commonFailures
])
export type ExchangeFailure = typeof ExchangeFailure.Type

/**
 * The errors of a gateway for a signed action. `ActionRejected` is not among them: clients make it from the venue's
 * response.
 */
export const ServedExchangeFailure = Schema.Union([...exchangeFailures, ...GatewayError.servedFailures])
export type ServedExchangeFailure = typeof ServedExchangeFailure.Type

/**
 * The errors of the methods that submit an action and decode the venue's response, in an embedded service and in the
 * typed client. If the venue refuses the action, they fail with `ActionRejected`.
 */
export type SubmitFailure = GatewayError.WrapReason<ServedExchangeFailure> | ActionRejected

/** The advice to a caller whose action has an unknown outcome. */
export const resendAdvice =
  "Resend the identical bytes: a duplicate-nonce response then means that the first attempt was accepted. " +
  "Do not sign the action again under a fresh nonce before you know its outcome"

const signed = <const Name extends string, Request extends Operation.AnyCodec>(
  name: Name,
  summary: string,
  request: Request,
  cost: Operation.Cost = { weight: 1, requestUnits: 1 }
) =>
  Operation.once({
    name,
    chain: "trading",
    protocol: "exchange",
    summary,
    sources: ["official-api"],
    cost,
    request,
    response: ActionAccepted,
    failures: exchangeFailures,
    advice: resendAdvice
  })

/** The operation of any signed action. */
export type ExchangeOperation = Operation.OnceOperation<
  string,
  Operation.AnyCodec,
  typeof ActionAccepted,
  typeof exchangeFailures
>

const operations = new Map<string, ExchangeOperation>(
  Object.entries(actionCatalog).map(([type, action]: readonly [string, KnownAction]) => [
    type,
    signed(
      type,
      action.summary,
      isDecodedActionType(type) ? signedActionSchema(type) : SignedEnvelope,
      action.batch === undefined && action.scheme !== "multiSig"
        ? { weight: 1, requestUnits: 1 }
        : { weight: 1, entriesPerWeight: 40, requestUnits: 1 }
    )
  ])
)

/** The operations of the catalog's actions, in the order of the catalog. */
export const exchangeOperations: ReadonlyArray<ExchangeOperation> = [...operations.values()]

/**
 * An action of a type outside the catalog. All such types share one operation name, because the name is a metric label,
 * and a label needs a bounded set of values.
 */
export const passthroughAction: ExchangeOperation = signed(
  "exchange",
  "A signed action of a type outside the catalog",
  SignedEnvelope
)

/** Returns the operation of an action type. */
export const findOperation = (type: string): ExchangeOperation => operations.get(type) ?? passthroughAction

/** Returns the operation of an action with its actual cost: a batch of n entries has weight 1 + floor(n / 40). */
export const operationFor = (action: SentAction): ExchangeOperation => {
  const operation = findOperation(action.type)
  const { entriesPerWeight, weight } = operation.cost
  const extra = entriesPerWeight === undefined
    ? 0
    : Math.floor((batchEntries(action)?.length ?? 0) / entriesPerWeight)
  return extra === 0 ? operation : { ...operation, cost: { ...operation.cost, weight: weight + extra } }
}

/** The nonce and signer of an action, if known before the response arrives. */
export interface Identity {
  readonly nonce?: Json.Millis
  /** The signer that the gateway recovered from the signature. */
  readonly signer?: Json.Address
}

/** The identity of an action, and its number of legs (orders, cancels or modifies). Default number of legs: 1. */
export interface Submission extends Identity {
  readonly legs?: number
}

/**
 * The 4xx statuses that a proxy can send after it forwarded the request: 408 (timeout), 409 (conflict), and 460 and 499
 * (the client disconnected). Any other 4xx status means that the request was not executed.
 */
const lateRefusals: ReadonlySet<number> = new Set([408, 409, 460, 499])

/** Returns whether an HTTP status means that the call was refused before any part of the call was executed. */
const isRefusal = (status: number): boolean => status >= 400 && status < 500 && !lateRefusals.has(status)

/**
 * Returns the reason why a response leaves the outcome of a call unknown: the response is from a proxy, or is
 * truncated.
 *
 * Returns `undefined` for a response of the upstream itself. Also returns `undefined` for a refusal (4xx) from any
 * intermediate server: for example, a firewall's page with HTTP 403 means that nothing was forwarded.
 */
export const openIssue = (response: Operation.UpstreamResponse): string | undefined => {
  const { status } = response
  if (isRefusal(status)) return undefined
  return Operation.foreign(response) ??
    ((status === 200 || lateRefusals.has(status)) && Result.isFailure(response.json.value)
      ? `a body that is not JSON (HTTP ${status})`
      : undefined)
}

const decodeReply = Schema.decodeUnknownOption(
  Schema.Struct({ status: Schema.String, response: Schema.optionalKey(Schema.Unknown) })
)
const decodeAccepted = Schema.decodeUnknownOption(ActionAccepted)

const isRefused = Schema.is(Schema.Struct({ error: Schema.String }))
/** The members that a status object of the venue can have, each with the tag of the corresponding `ActionEntry`. */
const tags = [["resting", "Resting"], ["filled", "Filled"], ["running", "Done"]] as const

/**
 * Converts one of the venue's statuses to an `ActionEntry` by adding its tag. Returns `undefined` if the status has an
 * unknown form.
 */
const tagged = (raw: unknown): unknown => {
  if (Predicate.isString(raw)) return { _tag: "Waiting", kind: raw }
  for (const [member, _tag] of tags) {
    const found = Predicate.hasProperty(raw, member) ? raw[member] : undefined
    if (Predicate.isObject(found)) return { ...found, _tag }
  }
  return undefined
}

const entryFrom = (known: Json.Address | undefined) => (raw: unknown): ActionEntry => {
  if (raw === "success") return { _tag: "Done" }
  if (isRefused(raw)) {
    return { _tag: "Rejected", reason: classifyRejection(raw.error, known).reason, message: raw.error }
  }
  return Option.getOrElse(decodeEntry(tagged(raw)), (): ActionEntry => ({ _tag: "Unrecognised", raw }))
}

/**
 * Returns the statuses in the venue's response data: the list of statuses for a batch, or the single status for any
 * other action. Returns `undefined` if the data contains neither.
 */
const statusesIn = (data: object): ReadonlyArray<unknown> | undefined => {
  if (Predicate.hasProperty(data, "statuses")) return Array.isArray(data.statuses) ? data.statuses : undefined
  return Predicate.hasProperty(data, "status") ? [data.status] : undefined
}

/**
 * Returns the result of each leg (order, cancel or modify) of the action.
 *
 * If there are fewer statuses than legs, the statuses cannot be assigned to legs. If all of those statuses are errors,
 * every leg gets the first error; otherwise every leg is `Unrecognised`.
 */
const entriesIn = (
  { data }: ActionAccepted["response"],
  legs: number,
  known: Json.Address | undefined
): ReadonlyArray<ActionEntry> => {
  const forEachLeg = (entry: ActionEntry) => Array.from({ length: legs }, () => entry)
  // `data` is text if there are no statuses: `default`, or the address of a new account
  if (!Predicate.isObjectOrArray(data)) return forEachLeg({ _tag: "Done" })
  const entries = statusesIn(data)?.map(entryFrom(known)) ?? []
  if (entries.length >= legs && entries.length > 0) return entries
  const [first] = entries
  return forEachLeg(
    first !== undefined && entries.every(isRejected) ? first : { _tag: "Unrecognised", raw: data }
  )
}

const errorText = (response: unknown, text: string): string =>
  Predicate.isString(response) ? response : response === undefined ? text : Json.stringify(response)

const unknownOutcome = (response: Operation.UpstreamResponse, identity: Identity) =>
  Operation.outcomeUnknown(response, "action", { ...identity, advice: resendAdvice })

const readOk = (received: Operation.UpstreamResponse, legs: number, identity: Identity) => {
  const value = received.json.valueOrUndefined
  const accepted = decodeAccepted(value)
  const body = Option.isSome(accepted) ? accepted : decodeReply(value)
  if (Option.isNone(body)) return Effect.fail(unknownOutcome(received, identity))
  const signer = identity.signer ?? received.signer
  const { response, status } = body.value
  if (status !== "ok") return Effect.fail(classifyRejection(errorText(response, received.text), signer))
  return Option.match(accepted, {
    onNone: () => Effect.fail(unknownOutcome(received, identity)),
    onSome: (taken) => Effect.succeed({ ...taken, entries: entriesIn(taken.response, legs, signer) })
  })
}

/**
 * Makes a reader of responses to signed actions; `failures` are the errors that a problem document of an upstream
 * gateway can contain.
 *
 * HTTP 200 is not success: a refused action has `status: "err"`, and a refused leg is an entry of the result
 * (`data.statuses[].error`, `data.status.error`). HTTP 422 with plain text means that the venue could not decode the
 * action.
 *
 * Any other 4xx status is a refusal before execution, except the statuses that a proxy can send after it forwarded the
 * request. Those statuses, 5xx statuses, and responses that do not decode fail with `OutcomeUnknown`, because the venue
 * may have accepted the action.
 */
export const outcomeReader = <S extends Operation.AnyCodec>(failures: S) => {
  const readProblem = Operation.problemReader(failures)
  return (
    response: Operation.UpstreamResponse,
    { legs = 1, ...identity }: Submission = {}
  ): Effect.Effect<ActionResult, ActionRejected | ExchangeFailure | S["Type"]> => {
    const problem = readProblem(response)
    if (Option.isSome(problem)) return Effect.fail(problem.value)
    if (response.status === 200) return readOk(response, legs, identity)
    if (response.status === 422 && Operation.foreign(response) === undefined) {
      const { message } = classifyRejection(response.text)
      return Effect.fail(new ActionRejected({ reason: "ShapeRefused", message }))
    }
    return Effect.fail(
      isRefusal(response.status) ? Operation.failureOfStatus(response) : unknownOutcome(response, identity)
    )
  }
}

/** Decodes responses to signed actions for embedded services, which run in the caller's process without a gateway. */
export const readOutcome = outcomeReader(Schema.Union([...exchangeFailures, ...GatewayError.upstreamFailures]))
