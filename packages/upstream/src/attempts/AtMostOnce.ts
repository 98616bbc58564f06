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
import type { Cost } from "@trigate/domain/operations/Operation"
import type { UpstreamResponse } from "@trigate/domain/operations/UpstreamResponse"
import { monotonicMillis } from "@trigate/domain/Time"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Target } from "../Upstream.ts"
import * as Attempt from "./Attempt.ts"
import { meters } from "./Attempt.ts"
import type { Ended, Handler, Parts } from "./Attempt.ts"
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

const handler: Handler<Sending> = {
  answered: (response) => {
    const issue = openIssue(response)
    return issue === undefined
      ? { value: { _tag: "Answered", response }, outcome: outcomeOfStatus(response.status), rows: 0 }
      : { value: { _tag: "Unknown", detail: `the response was ${issue}` }, outcome: "malformed", rows: 0 }
  },
  broke: ({ detail, reason, sent }) => {
    if (sent === "no") return { value: { _tag: "NotSent", detail }, outcome: "not_sent", rows: 0 }
    return {
      value: { _tag: "Unknown", detail: `the connection broke (${detail})` },
      outcome: reason === "Timeout" ? "timeout" : "broken",
      rows: 0
    }
  },
  withheld: (error) => ({ _tag: "Withheld", error })
}

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

  const sendInTurn = Effect.fnUntraced(function*(call: OnceCall, identity: OnceIdentity) {
    const { operation } = call
    const context = yield* Effect.context<never>()
    const clock = Context.get(context, Clock.Clock)
    const until = monotonicMillis(clock) + deadline
    const firstCheck = parts.outliers.ready(call.targets)
    if (firstCheck !== undefined) yield* firstCheck
    // an action is sent even if all addresses are ejected: ejection only changes the order of the addresses
    const { targets: chosen } = parts.outliers.choose(call.targets)
    const targets = chosen.length > 0 ? chosen : call.targets
    let attempts = 0
    let lastDetail = "the deadline had passed"
    for (const [index, target] of targets.entries()) {
      const start = monotonicMillis(clock)
      const left = until - start
      if (left <= 0) break
      attempts++
      const sending = yield* Attempt.run(parts, {
        class: "once",
        operation: operation.name,
        number: attempts,
        start,
        cost: operation.cost,
        meter: findMeter(target.label, operation.name),
        target,
        body: call.body,
        timeout: left,
        // leaves time for the next address if this one is unreachable
        sendWithin: index === targets.length - 1 ? undefined : left / 2,
        // leaves time for the response: an action sent just before the deadline would end with an unknown outcome
        maxWait: left / 2,
        handler
      }, context)
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
    Effect.contextWith((context: Context.Context<never>) => {
      const sent = sendInTurn(call, identity)
      const name = { operation: call.operation.name, upstream: call.targets[0].label }
      return Spans.isTraced(context) ? Spans.call(name, ({ status }) => status >= 400, sent) : sent
    })
}
