/** The venue's responses to signed actions: whether a response is the venue's own, and the outcome it reports. */
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

/** The known identity of an action besides its response. */
export interface Identity {
  readonly nonce?: Millis
  /** Whom the signature recovers to. */
  readonly signer?: Address
}

/** The same, with the number of legs that its response has to cover; one if not given. */
export interface Submission extends Identity {
  readonly legs?: number
}

/**
 * The refusals (4xx) that may follow after the request was forwarded: a timeout, a conflict with a past event, and two that
 * proxies return for a client that they consider gone. Any other one means that the request was not executed.
 */
const lateRefusals: ReadonlySet<number> = new Set([408, 409, 460, 499])

/** Whether a status says that the call was refused before any of it can have been carried out. */
const isRefusal = (status: number): boolean => status >= 400 && status < 500 && !lateRefusals.has(status)

/**
 * Why a response leaves the outcome open of a call that is sent at most once: it is from a proxy, or truncated.
 *
 * Returns `undefined` for a response of the upstream's own, and for a refusal of any origin: a firewall's page with HTTP 403
 * means that nothing was forwarded.
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

/** The entries that a status becomes by the member which it has. */
const tags = [["resting", "Resting"], ["filled", "Filled"], ["running", "Done"]] as const

/** A status with the tag of its entry; undefined for one of another form. */
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

/** Returns the statuses of a batch, or the single one; `undefined` without any. */
const statusesIn = (data: object): ReadonlyArray<unknown> | undefined => {
  if (Predicate.hasProperty(data, "statuses")) return Array.isArray(data.statuses) ? data.statuses : undefined
  return Predicate.hasProperty(data, "status") ? [data.status] : undefined
}

/**
 * An entry for each leg.
 *
 * One error for a whole batch rejects every leg. Any other statuses that are fewer than the legs cannot be assigned to them.
 */
const entriesIn = (
  { data }: ActionAccepted["response"],
  legs: number,
  known: Address | undefined
): ReadonlyArray<ActionEntry> => {
  const forEachLeg = (entry: ActionEntry) => Array.from({ length: legs }, () => entry)
  // `{"type":"default"}`, or the address of an account that was made
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
 * Reads the response to a signed action; `failures` are the errors that a problem document of a gateway upstream comes back
 * as.
 *
 * HTTP 200 is not success: a refusal of the action has `status: "err"`, and one of a leg is an entry of the result
 * (`data.statuses[].error`, `data.status.error`). HTTP 422 with a text means that the venue refused the shape. Any other 4xx
 * is a refusal before the action was looked at, unless it may have come later: such a one, a server fault, and a response that
 * does not decode fail with `OutcomeUnknown`, since the action may have been taken.
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

/** The reader of the embedded services. */
export const readOutcome = outcomeReader(Schema.Union([...exchangeFailures, ...upstreamFailures]))
