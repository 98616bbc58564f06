/** The signed actions of `POST /exchange`. Each is sent at most once. */
import * as Schema from "effect/Schema"
import type { ActionType } from "./Action.ts"
import { InvalidSignature, NonceAlreadyUsed, NonceMismatch, NonceOutOfWindow, SignerNotAllowed } from "./ActionError.ts"
import { ActionAccepted } from "./ActionOutcome.ts"
import { NotPermitted } from "./CallerError.ts"
import { commonFailures, servedFailures } from "./GatewayError.ts"
import * as Operation from "./Operation.ts"
import { UnsupportedAction } from "./RequestError.ts"
import { signedActionOf, SignedEnvelope } from "./SignedAction.ts"
import { OutcomeUnknown } from "./UpstreamError.ts"

/** Errors that a signed action has besides those that every call can end in. */
export const exchangeFailures = [
  UnsupportedAction,
  NonceOutOfWindow,
  NonceMismatch,
  NonceAlreadyUsed,
  InvalidSignature,
  SignerNotAllowed,
  OutcomeUnknown
] as const

/** Whatever a signed action can end in before or instead of the venue's word on it. */
export const ExchangeFailure = Schema.Union([...exchangeFailures, NotPermitted, ...commonFailures])
export type ExchangeFailure = typeof ExchangeFailure.Type

/** The same where a gateway takes the action. */
export const ServedExchangeFailure = Schema.Union([...exchangeFailures, ...servedFailures])
export type ServedExchangeFailure = typeof ServedExchangeFailure.Type

const summaries: { readonly [Type in ActionType]: string } = {
  multiSig: "An action signed by several, sent by one of them",
  tokenDelegate: "Delegate or undelegate stake",
  CSignerAction: "A validator jails or unjails itself",
  evmUserModify: "Choose big or small blocks for EVM transactions"
}

/** What to do when the outcome of an action is not known. */
export const resendAdvice =
  "Resend the identical bytes: a duplicate-nonce answer then means that the first one landed. " +
  "Do not sign the action again under a fresh nonce before you know"

const signed = <const Name extends string, Request extends Operation.AnyCodec>(
  name: Name,
  summary: string,
  request: Request
) =>
  Operation.once({
    name,
    chain: "trading",
    protocol: "exchange",
    summary,
    sources: ["official-api"],
    cost: { weight: 1, requestUnits: 1 },
    request,
    response: ActionAccepted,
    failures: exchangeFailures,
    advice: resendAdvice
  })

const actionOf = <const Type extends ActionType>(type: Type) => signed(type, summaries[type], signedActionOf(type))

/** Signs with several keys for one account. */
export const multiSig = actionOf("multiSig")

/** Delegates or undelegates stake. */
export const tokenDelegate = actionOf("tokenDelegate")

/** Jails or unjails the signing validator. */
export const CSignerAction = actionOf("CSignerAction")

/** Chooses the account's EVM blocks. */
export const evmUserModify = actionOf("evmUserModify")

/** The four signed actions by their `type`. */
export const exchangeOperations = { multiSig, tokenDelegate, CSignerAction, evmUserModify } as const

/** An action of a further type that a gateway was configured to relay; all of them share one name, so that it can label. */
export const passthroughAction = signed("exchange", "A signed action of another type", SignedEnvelope)

/** Any operation of `POST /exchange`. */
export type ExchangeOperation = (typeof exchangeOperations)[ActionType] | typeof passthroughAction

/** Whether a type is one of the four. */
export const isActionType = (type: string): type is ActionType => Object.hasOwn(exchangeOperations, type)

/** The operation of an action type. */
export const operationOf = (type: string): ExchangeOperation =>
  isActionType(type) ? exchangeOperations[type] : passthroughAction
