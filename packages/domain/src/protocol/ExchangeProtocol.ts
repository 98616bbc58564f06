/** The venue's responses to signed actions: whether one is the venue's own, and what it says became of the action. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { ActionAccepted, ActionRejected, classifyRejection } from "../ActionOutcome.ts"
import type { ExchangeFailure } from "../ExchangeOperations.ts"
import { exchangeFailures, resendAdvice } from "../ExchangeOperations.ts"
import { upstreamFailures } from "../GatewayError.ts"
import type { Address } from "../Hex.ts"
import * as Json from "../Json.ts"
import type { AnyCodec } from "../Operation.ts"
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
 * The refusals (4xx) that may come after the request was passed on: a timeout, a conflict with what has happened, and two that
 * proxies give for a client that they think has left. Any other is given instead of doing what was asked.
 */
const lateRefusals: ReadonlySet<number> = new Set([408, 409, 460, 499])

/** Whether a status says that the call was refused before any of it can have been carried out. */
const isRefusal = (status: number): boolean => status >= 400 && status < 500 && !lateRefusals.has(status)

/**
 * Why a response leaves open what became of a call that is sent at most once: it comes from a proxy, or it is cut off.
 *
 * Undefined for an answer of the upstream's own, and for a refusal, whoever gives it: a firewall's page with HTTP 403 means that
 * nothing was passed on.
 */
export const openIssue = (response: UpstreamResponse): string | undefined => {
  const { status } = response
  if (isRefusal(status)) return undefined
  return foreign(response) ??
    ((status === 200 || lateRefusals.has(status)) && Result.isFailure(response.json.value)
      ? `what is not JSON (HTTP ${status})`
      : undefined)
}

const decodeAnswer = Schema.decodeUnknownOption(
  Schema.Struct({ status: Schema.String, response: Schema.optionalKey(Schema.Unknown) })
)
const decodeAccepted = Schema.decodeUnknownOption(ActionAccepted)

const dataWith = <Fields extends Schema.Struct.Fields>(fields: Fields) => Schema.Struct({ data: Schema.Struct(fields) })
const decodeBatch = Schema.decodeUnknownOption(dataWith({ statuses: Schema.Array(Schema.Unknown) }))
const decodeSingle = Schema.decodeUnknownOption(dataWith({ status: Schema.Unknown }))
const isRefused = Schema.is(Schema.Struct({ error: Schema.String }))

/** The refusals inside an `ok` response: those among the entries of a batch, or the single status. */
const refusalsIn = (response: unknown): ReadonlyArray<string> => {
  // most responses have no data, and to find out why they do not decode would cost more than to read them
  if (!Predicate.hasProperty(response, "data")) return []
  return [
    ...Option.match(decodeBatch(response), { onNone: () => [], onSome: ({ data }) => data.statuses }),
    ...Option.match(decodeSingle(response), { onNone: () => [], onSome: ({ data }) => [data.status] })
  ].filter(isRefused).map(({ error }) => error)
}

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
  const value = answer.json.valueOrUndefined
  const accepted = decodeAccepted(value)
  const body = Option.isSome(accepted) ? accepted : decodeAnswer(value)
  if (Option.isNone(body)) return Effect.fail(unknownOutcome(answer, identity))
  const signer = identity.signer ?? answer.signer
  const { response, status } = body.value
  if (status !== "ok") return Effect.fail(classifyRejection(wordsOf(response, answer.text), signer))
  const rejection = rejectionIn(response, signer)
  if (Option.isSome(rejection)) return Effect.fail(rejection.value)
  return Effect.fromOption(accepted, () => unknownOutcome(answer, identity))
}

/**
 * Reads the response to a signed action; `failures` are the errors that a problem document of a gateway upstream comes back
 * as.
 *
 * HTTP 200 is not success: a refusal has `status: "err"` or stands inside an `ok` response (`data.statuses[].error`,
 * `data.status.error`). HTTP 422 with a text means that the venue refused the shape. Any other 4xx is a refusal before the
 * action was looked at, unless it may have come later: such a one, a server fault, and a response that does not decode fail with
 * `OutcomeUnknown`, since the action may have been taken.
 */
export const outcomeReader = <S extends AnyCodec>(failures: S) => {
  const problemOf = problemReader(failures)
  return (
    response: UpstreamResponse,
    identity: Identity = {}
  ): Effect.Effect<ActionAccepted, ActionRejected | ExchangeFailure | S["Type"]> => {
    const problem = problemOf(response)
    if (Option.isSome(problem)) return Effect.fail(problem.value)
    if (response.status === 200) return readOk(response, identity)
    if (response.status === 422 && foreign(response) === undefined) {
      const { message } = classifyRejection(response.text)
      return Effect.fail(new ActionRejected({ reason: "ShapeRefused", message }))
    }
    return Effect.fail(isRefusal(response.status) ? failureOfStatus(response) : unknownOutcome(response, identity))
  }
}

/** The reader of the embedded services. */
export const readOutcome = outcomeReader(Schema.Union([...exchangeFailures, ...upstreamFailures]))
