/**
 * Sends a call that must happen at most once.
 *
 * It moves to the next address only while it is certain that no byte was sent, and afterwards fails with
 * `OutcomeUnknown`. Nothing here sends again, and nothing that could do so takes an operation of this class.
 */
import type { Cost } from "@trigate/domain/Operation"
import type { OnceFailure } from "@trigate/domain/TransportFailure"
import { OutcomeUnknown, UpstreamUnavailable } from "@trigate/domain/UpstreamError"
import type * as UpstreamResponse from "@trigate/domain/UpstreamResponse"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import { foreign } from "./AttemptResult.ts"
import { meters } from "./CallMetrics.ts"
import type { Judged, Parts } from "./Exchanges.ts"
import * as Exchanges from "./Exchanges.ts"
import type { TransportError } from "./HttpTransport.ts"
import { millisOf } from "./internal/Monotonic.ts"
import type { Target } from "./Upstream.ts"

/** A call: its operation, where it can go, in order of preference, and its bytes. */
export interface OnceCall {
  readonly operation: {
    readonly name: string
    readonly class: "once"
    readonly cost: Cost
    /** What an unknown outcome is told with. */
    readonly advice: string
  }
  readonly targets: readonly [Target, ...ReadonlyArray<Target>]
  readonly body: Uint8Array
}

/** What an unknown outcome has to be told with: who signed, and under which nonce. */
export interface OnceIdentity {
  readonly nonce?: number
  readonly signer?: `0x${string}`
}

/** What became of one sending: an answer of the upstream's own, nothing sent, or nobody knows. */
type Sending =
  | { readonly _tag: "Answered"; readonly answer: UpstreamResponse.UpstreamResponse }
  | { readonly _tag: "NotSent"; readonly detail: string }
  | { readonly _tag: "Unknown"; readonly detail: string }

/** Why an answer leaves open whether the call got through: it is from something in between, or cut. */
const issueOf = (answer: UpstreamResponse.UpstreamResponse): string | undefined => {
  // a refusal is final even in HTML
  if (answer.status >= 400 && answer.status < 500) return undefined
  return foreign(answer) ??
    (answer.status === 200 && Result.isFailure(answer.json)
      ? "what is not JSON (HTTP 200)"
      : undefined)
}

const outcomeOfStatus = (status: number): Judged<unknown>["outcome"] => {
  if (status === 429) return "rate_limited"
  return status >= 500 ? "server_fault" : status >= 400 ? "refused" : "ok"
}

const answered = (answer: UpstreamResponse.UpstreamResponse): Judged<Sending> => {
  const issue = issueOf(answer)
  return issue === undefined
    ? { value: { _tag: "Answered", answer }, outcome: outcomeOfStatus(answer.status), rows: 0 }
    : { value: { _tag: "Unknown", detail: `the answer was ${issue}` }, outcome: "malformed", rows: 0 }
}

const broke = ({ detail, reason, sent }: TransportError): Judged<Sending> => {
  if (sent === "no") return { value: { _tag: "NotSent", detail }, outcome: "not_sent", rows: 0 }
  return {
    value: { _tag: "Unknown", detail: `the exchange broke (${detail})` },
    outcome: reason === "Timeout" ? "timeout" : "broken",
    rows: 0
  }
}

/** The once calls of a gateway; `deadline` is milliseconds for the whole of one. */
export const make = (parts: Parts, deadline: number) => {
  const meterOf = meters()

  const send = (
    { body, operation }: OnceCall,
    target: Target,
    time: number,
    isLast: boolean
  ): Effect.Effect<Sending, OnceFailure> =>
    Effect.map(
      Exchanges.run(parts, {
        class: "once",
        cost: operation.cost,
        meter: meterOf(target.label, operation.name),
        target,
        body,
        timeout: time,
        // an address that cannot be reached must leave time for the next one
        ...(isLast ? {} : { sendWithin: time / 2 }),
        // an action that has waited to the last moment would go out only to end with an unknown outcome
        maxWait: time / 2,
        answered,
        broke
      }),
      ({ value }) => value
    )

  const unknown = (upstream: string, advice: string, identity: OnceIdentity, detail: string) =>
    new OutcomeUnknown({ upstream, ...identity, advice, detail: `${upstream}: ${detail}` })

  const notSent = (upstream: string, attempts: number, detail: string) =>
    new UpstreamUnavailable({
      upstream,
      attempts,
      detail: `${upstream} could not be reached (${detail}); nothing was sent`
    })

  const sendInTurn = Effect.fnUntraced(function*(call: OnceCall, identity: OnceIdentity) {
    const clock = yield* Clock.Clock
    const until = millisOf(clock) + deadline
    const firstCheck = parts.outliers.ready(call.targets)
    if (firstCheck !== undefined) yield* firstCheck
    // ejection only orders the addresses of an action: it never refuses one
    const { targets } = parts.outliers.choose(call.targets)
    let attempts = 0
    let said = "no time was left"
    const inTurn = targets.length > 0 ? targets : call.targets
    for (const [index, target] of inTurn.entries()) {
      const left = until - millisOf(clock)
      if (left <= 0) break
      attempts++
      const sending = yield* send(call, target, left, index === inTurn.length - 1)
      switch (sending._tag) {
        case "Answered":
          return sending.answer
        case "Unknown":
          return yield* unknown(target.label, call.operation.advice, identity, sending.detail)
        case "NotSent":
          said = sending.detail
      }
    }
    return yield* notSent(call.targets[0].label, attempts, said)
  })

  // a caller that leaves must not tear down an exchange whose bytes may be out
  return (call: OnceCall, identity: OnceIdentity): Effect.Effect<UpstreamResponse.UpstreamResponse, OnceFailure> =>
    Effect.flatMap(Effect.forkDetach(sendInTurn(call, identity)), Fiber.join)
}
