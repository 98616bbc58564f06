/**
 * Schemas of the actions whose members the gateway decodes. Most of these actions have two forms: the form that the
 * venue accepts, and the form in the venue's documentation. For every other action of the catalog, the gateway decodes
 * only the members beside the action, such as the nonce and the signature.
 *
 * The gateway relays both forms. It cannot hash the documented form, so it cannot recover the signer of an action in
 * that form.
 */
import * as Schema from "effect/Schema"
import { Address } from "../encoding/Hex.ts"
import { Uint64 } from "../encoding/Integer.ts"
import { openStruct } from "../encoding/OpenStruct.ts"
import { Millis } from "../Time.ts"
import type { ActionType } from "./ActionCatalog.ts"
import { Signature } from "./Signature.ts"

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
  validator: Address,
  wei: Uint64.annotateKey({ description: "Stake in HYPE x 10^8" }),
  isUndelegate: Schema.Boolean,
  nonce: Millis
}).check(namesOneChain).annotate({ identifier: "TokenDelegate" })

/** The documented form of `tokenDelegate`: a decimal `amount` instead of `wei`. */
export const TokenDelegateDocumented = Schema.Struct({
  type: Schema.Literal("tokenDelegate"),
  signatureChainId: Schema.optionalKey(SignatureChainId),
  hyperliquidChain: Schema.optionalKey(VenueChain),
  venueChain: Schema.optionalKey(VenueChain),
  validator: Address,
  amount: Schema.String.check(Schema.isPattern(/^[0-9]{1,30}(?:\.[0-9]{1,18})?$/u)),
  isUndelegate: Schema.Boolean,
  nonce: Schema.optionalKey(Millis)
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
export const InnerAction = openStruct({ type: Schema.String.check(Schema.isBetweenLength(1, 64)) }).annotate({
  identifier: "InnerAction"
})

/** An action that requires several signatures: up to 10 co-signers sign it, and `outerSigner` sends it. */
export const MultiSig = Schema.Struct({
  type: Schema.Literal("multiSig"),
  signatureChainId: SignatureChainId,
  signatures: Schema.Array(Signature).check(Schema.isBetweenLength(1, 10)),
  payload: Schema.Struct({ multiSigUser: Address, outerSigner: Address, action: InnerAction })
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
