/**
 * The signed actions of `POST /exchange`, and what the venue's answer to one means.
 *
 * An action is sent at most once, so whatever leaves open whether it took effect reads as `OutcomeUnknown`.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { ActionType } from "./Action.ts"
import { InvalidSignature, NonceAlreadyUsed, NonceMismatch, NonceOutOfWindow, SignerNotAllowed } from "./ActionError.ts"
import { ActionAccepted, ActionRejected, classifyRejection } from "./ActionOutcome.ts"
import { failureOfStatus } from "./Answer.ts"
import { commonFailures } from "./GatewayError.ts"
import type { Address } from "./Hex.ts"
import * as JsonText from "./JsonText.ts"
import * as Operation from "./Operation.ts"
import { UnsupportedAction } from "./RequestError.ts"
import { signedActionOf, SignedEnvelope } from "./SignedAction.ts"
import type { Millis } from "./Time.ts"
import { OutcomeUnknown } from "./UpstreamError.ts"
import type * as UpstreamResponse from "./UpstreamResponse.ts"

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
export const ExchangeFailure = Schema.Union([...exchangeFailures, ...commonFailures])
export type ExchangeFailure = typeof ExchangeFailure.Type

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

const VenueAnswer = Schema.Struct({ status: Schema.String, response: Schema.optionalKey(Schema.Unknown) })
const decodeAnswer = Schema.decodeUnknownOption(VenueAnswer)
const decodeAccepted = Schema.decodeUnknownOption(ActionAccepted)
const decodeProblem = Schema.decodeUnknownOption(ExchangeFailure)

const Refused = Schema.Struct({ error: Schema.String })
const BatchData = Schema.Struct({ data: Schema.Struct({ statuses: Schema.Array(Schema.Unknown) }) })
const SingleData = Schema.Struct({ data: Schema.Struct({ status: Schema.Unknown }) })
const decodeBatch = Schema.decodeUnknownOption(BatchData)
const decodeSingle = Schema.decodeUnknownOption(SingleData)
const isRefused = Schema.is(Refused)

/** The refusals that stand inside an `ok` answer: one entry of a batch each, or the single status. */
const refusalsIn = (response: unknown): ReadonlyArray<string> =>
  [
    ...Option.match(decodeBatch(response), { onNone: () => [], onSome: ({ data }) => data.statuses }),
    ...Option.match(decodeSingle(response), { onNone: () => [], onSome: ({ data }) => [data.status] })
  ].filter(isRefused).map(({ error }) => error)

const rejectionIn = (response: unknown, known: Address | undefined): Option.Option<ActionRejected> => {
  const refusals = refusalsIn(response)
  const [first] = refusals
  if (first === undefined) return Option.none()
  const { reason, recovered, signer } = classifyRejection(first, known)
  return Option.some(
    new ActionRejected({
      reason,
      message: refusals.join("; "),
      response,
      ...(signer === undefined ? {} : { signer }),
      ...(recovered === undefined ? {} : { recovered })
    })
  )
}

const wordsOf = (response: unknown, text: string): string =>
  Predicate.isString(response) ? response : response === undefined ? text : JsonText.stringify(response)

const parsed = (answer: UpstreamResponse.UpstreamResponse): Option.Option<unknown> => Result.getSuccess(answer.json)

/** What is known of an action besides its answer. */
export interface Identity {
  readonly nonce?: Millis
  /** Whom the signature recovers to. */
  readonly signer?: Address
}

const signerOf = (answer: UpstreamResponse.UpstreamResponse, identity: Identity): Address | undefined =>
  identity.signer ?? answer.signer

const unknownOutcome = (answer: UpstreamResponse.UpstreamResponse, identity: Identity): OutcomeUnknown =>
  new OutcomeUnknown({
    upstream: answer.upstream,
    ...identity,
    advice: resendAdvice,
    detail:
      `${answer.upstream} answered HTTP ${answer.status}, which does not say what became of the action: ${answer.excerpt()}`
  })

const readOk = (answer: UpstreamResponse.UpstreamResponse, identity: Identity) => {
  const text = answer.text
  const body = Option.flatMap(parsed(answer), (value) => decodeAnswer(value))
  if (Option.isNone(body)) return Effect.fail(unknownOutcome(answer, identity))
  const { response, status } = body.value
  if (status !== "ok") return Effect.fail(classifyRejection(wordsOf(response, text), signerOf(answer, identity)))
  const rejection = rejectionIn(response, signerOf(answer, identity))
  if (Option.isSome(rejection)) return Effect.fail(rejection.value)
  return Effect.fromOption(decodeAccepted(body.value), () => unknownOutcome(answer, identity))
}

/**
 * Reads the answer to a signed action, in an embedded service as in the typed client.
 *
 * HTTP 200 is not success: a refusal is `status: "err"` or stands inside an `ok` response (`data.statuses[].error`,
 * `data.status.error`). HTTP 422 is a shape that the venue refused. A server fault and an answer that does not decode fail
 * with `OutcomeUnknown`: the action may have been taken. A problem document of a gateway that stands upstream comes back as
 * the error it was.
 */
export const readOutcome = (
  answer: UpstreamResponse.UpstreamResponse,
  identity: Identity = {}
): Effect.Effect<ActionAccepted, ActionRejected | ExchangeFailure> => {
  const problem = answer.isProblem
    ? Option.flatMap(parsed(answer), (value) => decodeProblem(value))
    : Option.none()
  if (Option.isSome(problem)) return Effect.fail(problem.value)
  if (answer.status === 200) return readOk(answer, identity)
  if (answer.status === 422) {
    const { message } = classifyRejection(answer.text)
    return Effect.fail(new ActionRejected({ reason: "ShapeRefused", message }))
  }
  return Effect.fail(
    answer.status >= 400 && answer.status < 500 ? failureOfStatus(answer) : unknownOutcome(answer, identity)
  )
}
