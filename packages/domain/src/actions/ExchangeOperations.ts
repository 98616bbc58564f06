/** The signed actions of `POST /exchange`. Each action is sent at most once. */
import * as Schema from "effect/Schema"
import { NotPermitted } from "../errors/CallerError.ts"
import { commonFailures, servedFailures, type WrapReason } from "../errors/GatewayError.ts"
import { UnsupportedAction } from "../errors/RequestError.ts"
import { OutcomeUnknown } from "../errors/UpstreamError.ts"
import * as Operation from "../operations/Operation.ts"
import { isDecodedActionType } from "./Action.ts"
import { actionCatalog, batchEntries } from "./ActionCatalog.ts"
import type { KnownAction, SentAction } from "./ActionCatalog.ts"
import { InvalidSignature, NonceAlreadyUsed, NonceMismatch, NonceOutOfWindow, SignerNotAllowed } from "./ActionError.ts"
import { ActionAccepted, type ActionRejected } from "./ActionOutcome.ts"
import { signedActionSchema, SignedEnvelope } from "./SignedAction.ts"

/** The errors with which only signed actions fail. `CommonFailure` contains the errors of all operations. */
export const exchangeFailures = [
  UnsupportedAction,
  NonceOutOfWindow,
  NonceMismatch,
  NonceAlreadyUsed,
  InvalidSignature,
  SignerNotAllowed,
  OutcomeUnknown
] as const

/** The errors of an embedded service for a signed action, except `ActionRejected`. */
export const ExchangeFailure = Schema.Union([...exchangeFailures, NotPermitted, ...commonFailures])
export type ExchangeFailure = typeof ExchangeFailure.Type

/**
 * The errors of a gateway for a signed action. `ActionRejected` is not among them: clients make it from the venue's
 * response.
 */
export const ServedExchangeFailure = Schema.Union([...exchangeFailures, ...servedFailures])
export type ServedExchangeFailure = typeof ServedExchangeFailure.Type

/**
 * The errors of the methods that submit an action and decode the venue's response, in an embedded service and in the
 * typed client. If the venue refuses the action, they fail with `ActionRejected`.
 */
export type SubmitFailure = WrapReason<ServedExchangeFailure> | ActionRejected

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
