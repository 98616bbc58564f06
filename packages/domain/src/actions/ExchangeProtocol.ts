/** Decodes responses to signed actions: determines whether the venue itself responded, and the reported outcome. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Address } from "../encoding/Hex.ts"
import * as Json from "../encoding/Json.ts"
import { upstreamFailures } from "../errors/GatewayError.ts"
import type { AnyCodec } from "../operations/Operation.ts"
import { failureOfStatus, foreign, outcomeUnknown, problemReader } from "../operations/Protocol.ts"
import type { UpstreamResponse } from "../operations/UpstreamResponse.ts"
import type { Millis } from "../Time.ts"
import type { ActionResult } from "./ActionOutcome.ts"
import { ActionAccepted, ActionEntry, ActionRejected, classifyRejection } from "./ActionOutcome.ts"
import type { ExchangeFailure } from "./ExchangeOperations.ts"
import { exchangeFailures, resendAdvice } from "./ExchangeOperations.ts"

/** The nonce and signer of an action, if known before the response arrives. */
export interface Identity {
  readonly nonce?: Millis
  /** The signer that the gateway recovered from the signature. */
  readonly signer?: Address
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
export const openIssue = (response: UpstreamResponse): string | undefined => {
  const { status } = response
  if (isRefusal(status)) return undefined
  return foreign(response) ??
    ((status === 200 || lateRefusals.has(status)) && Result.isFailure(response.json.value)
      ? `a body that is not JSON (HTTP ${status})`
      : undefined)
}

const decodeAnswer = Schema.decodeUnknownOption(
  Schema.Struct({ status: Schema.String, response: Schema.optionalKey(Schema.Unknown) })
)
const decodeAccepted = Schema.decodeUnknownOption(ActionAccepted)

const isRefused = Schema.is(Schema.Struct({ error: Schema.String }))
const decodeEntry = Schema.decodeUnknownOption(ActionEntry)

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

const entryFrom = (known: Address | undefined) => (raw: unknown): ActionEntry => {
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
  known: Address | undefined
): ReadonlyArray<ActionEntry> => {
  const forEachLeg = (entry: ActionEntry) => Array.from({ length: legs }, () => entry)
  // `data` is text if there are no statuses: `default`, or the address of a new account
  if (!Predicate.isObjectOrArray(data)) return forEachLeg({ _tag: "Done" })
  const entries = statusesIn(data)?.map(entryFrom(known)) ?? []
  if (entries.length >= legs && entries.length > 0) return entries
  const [first] = entries
  return forEachLeg(
    first !== undefined && entries.every(ActionEntry.guards.Rejected) ? first : { _tag: "Unrecognised", raw: data }
  )
}

const errorText = (response: unknown, text: string): string =>
  Predicate.isString(response) ? response : response === undefined ? text : Json.stringify(response)

const unknownOutcome = (response: UpstreamResponse, identity: Identity) =>
  outcomeUnknown(response, "action", { ...identity, advice: resendAdvice })

const readOk = (answer: UpstreamResponse, legs: number, identity: Identity) => {
  const value = answer.json.valueOrUndefined
  const accepted = decodeAccepted(value)
  const body = Option.isSome(accepted) ? accepted : decodeAnswer(value)
  if (Option.isNone(body)) return Effect.fail(unknownOutcome(answer, identity))
  const signer = identity.signer ?? answer.signer
  const { response, status } = body.value
  if (status !== "ok") return Effect.fail(classifyRejection(errorText(response, answer.text), signer))
  return Option.match(accepted, {
    onNone: () => Effect.fail(unknownOutcome(answer, identity)),
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
export const outcomeReader = <S extends AnyCodec>(failures: S) => {
  const readProblem = problemReader(failures)
  return (
    response: UpstreamResponse,
    { legs = 1, ...identity }: Submission = {}
  ): Effect.Effect<ActionResult, ActionRejected | ExchangeFailure | S["Type"]> => {
    const problem = readProblem(response)
    if (Option.isSome(problem)) return Effect.fail(problem.value)
    if (response.status === 200) return readOk(response, legs, identity)
    if (response.status === 422 && foreign(response) === undefined) {
      const { message } = classifyRejection(response.text)
      return Effect.fail(new ActionRejected({ reason: "ShapeRefused", message }))
    }
    return Effect.fail(isRefusal(response.status) ? failureOfStatus(response) : unknownOutcome(response, identity))
  }
}

/** Decodes responses to signed actions for embedded services, which run in the caller's process without a gateway. */
export const readOutcome = outcomeReader(Schema.Union([...exchangeFailures, ...upstreamFailures]))
