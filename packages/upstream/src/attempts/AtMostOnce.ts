/**
 * Sends a call at most once.
 *
 * Fails over to the next address only while it is certain that no byte was sent; later failures are `OutcomeUnknown`. A
 * call that may have reached the upstream is never sent again. Modules that retry do not accept once-only operations.
 */
import { openIssue } from "@trigate/domain/actions/ExchangeProtocol"
import type { QuotaExceeded } from "@trigate/domain/errors/CallerError"
import type { OnceFailure } from "@trigate/domain/errors/TransportFailure"
import { OutcomeUnknown, UpstreamUnavailable } from "@trigate/domain/errors/UpstreamError"
import type { UpstreamRateLimited } from "@trigate/domain/errors/UpstreamError"
import * as Continuation from "@trigate/domain/operations/Continuation"
import type { Cost } from "@trigate/domain/operations/Operation"
import type { UpstreamResponse } from "@trigate/domain/operations/UpstreamResponse"
import { monotonicMillis } from "@trigate/domain/Time"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { TransportError } from "../transport/HttpTransport.ts"
import type { Target } from "../Upstream.ts"
import * as Attempt from "./Attempt.ts"
import type { Ended, Parts } from "./Attempt.ts"
import { meters } from "./AttemptMetrics.ts"
import * as Spans from "./Spans.ts"

/** A once-only call: its operation, its targets in order of preference, and its bytes. */
export interface OnceCall {
  readonly operation: {
    readonly name: string
    readonly class: "once"
    readonly cost: Cost
    /** The text of `OutcomeUnknown` that explains how the caller can determine the outcome. */
    readonly advice: string
  }
  readonly targets: readonly [Target, ...ReadonlyArray<Target>]
  readonly body: Uint8Array
}

/** The signer and the nonce of the call, for `OutcomeUnknown`. */
export interface OnceIdentity {
  readonly nonce?: number
  readonly signer?: `0x${string}`
}

/** The result of one attempt. */
type Sending =
  | { readonly _tag: "Answered"; readonly response: UpstreamResponse }
  | { readonly _tag: "NotSent"; readonly detail: string }
  | { readonly _tag: "Unknown"; readonly detail: string }
  | { readonly _tag: "Withheld"; readonly error: QuotaExceeded | UpstreamRateLimited }

const outcomeOfStatus = (status: number): Ended<unknown>["outcome"] => {
  if (status === 429) return "rate_limited"
  return status >= 500 ? "server_fault" : status >= 400 ? "refused" : "ok"
}

const answered = (response: UpstreamResponse): Ended<Sending> => {
  const issue = openIssue(response)
  return issue === undefined
    ? { value: { _tag: "Answered", response }, outcome: outcomeOfStatus(response.status), rows: 0 }
    : { value: { _tag: "Unknown", detail: `the response was ${issue}` }, outcome: "malformed", rows: 0 }
}

const broke = ({ detail, reason, sent }: TransportError): Ended<Sending> => {
  if (sent === "no") return { value: { _tag: "NotSent", detail }, outcome: "not_sent", rows: 0 }
  return {
    value: { _tag: "Unknown", detail: `the connection broke (${detail})` },
    outcome: reason === "Timeout" ? "timeout" : "broken",
    rows: 0
  }
}

const withheld = (error: QuotaExceeded | UpstreamRateLimited): Sending => ({ _tag: "Withheld", error })

const outcomeUnknown = ({ label }: Target, { operation }: OnceCall, identity: OnceIdentity, detail: string) =>
  new OutcomeUnknown({ upstream: label, ...identity, advice: operation.advice, detail: `${label}: ${detail}` })

const notSent = (upstream: string, attempts: number, detail: string) =>
  new UpstreamUnavailable({
    upstream,
    attempts,
    detail: `${upstream} could not be reached (${detail}); nothing was sent`
  })

/**
 * Makes the function that sends calls at most once; `deadline` is the maximum duration of a whole call, in
 * milliseconds.
 */
export const make = (parts: Parts, deadline: number) => {
  const findMeter = meters()

  const send = (
    call: OnceCall,
    target: Target,
    number: number,
    time: number,
    isLast: boolean
  ): Effect.Effect<Sending> =>
    Attempt.run(parts, {
      class: "once",
      operation: call.operation.name,
      number,
      cost: call.operation.cost,
      meter: findMeter(target.label, call.operation.name),
      target,
      body: call.body,
      timeout: time,
      // leaves time for the next address if this one is unreachable
      ...(isLast ? {} : { sendWithin: time / 2 }),
      // leaves time for the response: an action sent just before the deadline would end with an unknown outcome
      maxWait: time / 2,
      answered,
      broke,
      withheld
    })

  const sendInTurn = Effect.fnUntraced(function*(call: OnceCall, identity: OnceIdentity) {
    const clock = yield* Clock.Clock
    const until = monotonicMillis(clock) + deadline
    const firstCheck = parts.outliers.ready(call.targets)
    if (firstCheck !== undefined) yield* firstCheck
    // an action is sent even if all addresses are ejected: ejection only changes the order of the addresses
    const { targets: chosen } = parts.outliers.choose(call.targets)
    const targets = chosen.length > 0 ? chosen : call.targets
    let attempts = 0
    let lastDetail = "the deadline had passed"
    for (const [index, target] of targets.entries()) {
      const left = until - monotonicMillis(clock)
      if (left <= 0) break
      attempts++
      const sending = yield* send(call, target, attempts, left, index === targets.length - 1)
      switch (sending._tag) {
        case "Answered":
          return sending.response
        case "Unknown":
          return yield* outcomeUnknown(target, call, identity, sending.detail)
        case "Withheld":
          return yield* sending.error
        case "NotSent":
          lastDetail = sending.detail
      }
    }
    return yield* notSent(call.targets[0].label, attempts, lastDetail)
  })

  return (call: OnceCall, identity: OnceIdentity): Effect.Effect<UpstreamResponse, OnceFailure> =>
    Continuation.withContext((context) =>
      Continuation.isTraced(context)
        ? Spans.call(
          { operation: call.operation.name, upstream: call.targets[0].label },
          ({ status }) => status >= 400,
          sendInTurn(call, identity)
        )
        : sendInTurn(call, identity)
    )
}
