/** The venue's responses to signed actions: whether one is the venue's own, and what it says became of the action. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { RejectionReason } from "../ActionOutcome.ts"
import { ActionAccepted, ActionRejected, classifyRejection } from "../ActionOutcome.ts"
import { ExchangeFailure, resendAdvice } from "../ExchangeOperations.ts"
import type { Address } from "../Hex.ts"
import * as Json from "../Json.ts"
import type { Millis } from "../Time.ts"
import type { UpstreamResponse } from "../UpstreamResponse.ts"
import { failureOfStatus, foreign, outcomeUnknown, problemReader } from "./Protocol.ts"

/** What is known of an action besides its response. */
export interface Identity {
  readonly nonce?: Millis
  /** Whom the signature recovers to. */
  readonly signer?: Address
}

/**
 * Why a response leaves open what became of a call that is sent at most once: it comes from a proxy, or it is cut off.
 *
 * Undefined for an answer of the upstream's own, and for a refusal (4xx), which is final even as HTML.
 */
export const openIssue = (response: UpstreamResponse): string | undefined => {
  const { status } = response
  if (status >= 400 && status < 500) return undefined
  return foreign(response) ??
    (status === 200 && Result.isFailure(response.json.value) ? "what is not JSON (HTTP 200)" : undefined)
}

const decodeAnswer = Schema.decodeUnknownOption(
  Schema.Struct({ status: Schema.String, response: Schema.optionalKey(Schema.Unknown) })
)
const decodeAccepted = Schema.decodeUnknownOption(ActionAccepted)
const problemOf = problemReader(ExchangeFailure)

const dataWith = <Fields extends Schema.Struct.Fields>(fields: Fields) => Schema.Struct({ data: Schema.Struct(fields) })
const decodeBatch = Schema.decodeUnknownOption(dataWith({ statuses: Schema.Array(Schema.Unknown) }))
const decodeSingle = Schema.decodeUnknownOption(dataWith({ status: Schema.Unknown }))
const isRefused = Schema.is(Schema.Struct({ error: Schema.String }))

/** The refusals inside an `ok` response: those among the entries of a batch, or the single status. */
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
  Predicate.isString(response) ? response : response === undefined ? text : Json.stringify(response)

const unknownOutcome = (response: UpstreamResponse, identity: Identity) =>
  outcomeUnknown(response, "action", { ...identity, advice: resendAdvice })

const readOk = (answer: UpstreamResponse, identity: Identity) => {
  const body = Option.flatMap(Result.getSuccess(answer.json.value), (value) => decodeAnswer(value))
  if (Option.isNone(body)) return Effect.fail(unknownOutcome(answer, identity))
  const signer = identity.signer ?? answer.signer
  const { response, status } = body.value
  if (status !== "ok") return Effect.fail(classifyRejection(wordsOf(response, answer.text), signer))
  const rejection = rejectionIn(response, signer)
  if (Option.isSome(rejection)) return Effect.fail(rejection.value)
  return Effect.fromOption(decodeAccepted(body.value), () => unknownOutcome(answer, identity))
}

/**
 * Reads the response to a signed action, for embedded services and the typed client alike.
 *
 * HTTP 200 is not success: a refusal has `status: "err"` or stands inside an `ok` response (`data.statuses[].error`,
 * `data.status.error`). HTTP 422 means that the venue refused the shape. A server fault and a response that does not decode
 * fail with `OutcomeUnknown`, since the action may have been taken. A problem document of a gateway upstream comes back as
 * the error that it was.
 */
export const readOutcome = (
  response: UpstreamResponse,
  identity: Identity = {}
): Effect.Effect<ActionAccepted, ActionRejected | ExchangeFailure> => {
  const problem = problemOf(response)
  if (Option.isSome(problem)) return Effect.fail(problem.value)
  if (response.status === 200) return readOk(response, identity)
  if (response.status === 422) {
    const { message } = classifyRejection(response.text)
    return Effect.fail(new ActionRejected({ reason: "ShapeRefused", message }))
  }
  return Effect.fail(
    response.status >= 400 && response.status < 500 ? failureOfStatus(response) : unknownOutcome(response, identity)
  )
}

/**
 * What became of an action whose outcome was unknown, as the response to the identical bytes tells.
 *
 * - `Landed`: the venue has seen the nonce, so the first sending landed. If anyone signed other bytes under that nonce, one
 *   of the two landed.
 * - `Accepted`: the first sending had not landed, and this one was taken.
 * - `Rejected`: this sending was not taken. `first` is `"notTaken"` where the refusal would have met the first sending as
 *   well, and `"unknown"` where its reason can have come up since, such as an expiry.
 */
export type Resolution =
  | { readonly _tag: "Landed"; readonly rejection: ActionRejected }
  | { readonly _tag: "Accepted"; readonly answer: ActionAccepted }
  | { readonly _tag: "Rejected"; readonly rejection: ActionRejected; readonly first: "notTaken" | "unknown" }

/**
 * The refusals that follow from the bytes alone, and `NonceTooHigh`, which an earlier clock would have given as well.
 *
 * Any other depends on the venue's state, and no document says that the venue looks at the nonce before that state.
 */
const lasting: ReadonlySet<RejectionReason> = new Set([
  "ShapeRefused",
  "WrongNetwork",
  "NonceMismatch",
  "NonceTooHigh"
])

/** What a rejection of the second sending says about the first one. */
export const ofRejection = (rejection: ActionRejected): Resolution => {
  if (rejection.reason === "NonceDuplicate") return { _tag: "Landed", rejection }
  // a refusal inside an `ok` response: the venue took the nonce now, so it was free
  const first = lasting.has(rejection.reason) || rejection.response !== undefined ? "notTaken" : "unknown"
  return { _tag: "Rejected", rejection, first }
}

/** What the outcome of a second sending says about the first one. */
export const ofOutcome = (
  outcome: Effect.Effect<ActionAccepted, ActionRejected | ExchangeFailure>
): Effect.Effect<Resolution, ExchangeFailure> =>
  outcome.pipe(
    Effect.map((accepted): Resolution => ({ _tag: "Accepted", answer: accepted })),
    Effect.catchTag("ActionRejected", (rejection) => Effect.succeed(ofRejection(rejection)))
  )

/**
 * Reads the response to a second sending of the identical bytes.
 *
 * Fails with `OutcomeUnknown` where the response leaves it open, and with what the gateway or the venue says before the
 * action is looked at (`UpstreamRateLimited`, `NonceOutOfWindow`, …): the first sending is then as unknown as before.
 */
export const readResolution = (
  response: UpstreamResponse,
  identity: Identity = {}
): Effect.Effect<Resolution, ExchangeFailure> => ofOutcome(readOutcome(response, identity))

/** Whether every sending of the bytes is accounted for. */
export const isDecided = (resolution: Resolution): boolean =>
  resolution._tag !== "Rejected" || resolution.first === "notTaken"
