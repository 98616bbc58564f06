/** The upstream did not respond, responded too late, or sent a malformed response. `upstream` is a label, never an address. */
import * as ErrorReporter from "effect/ErrorReporter"
import * as Schema from "effect/Schema"
import { Address, Data } from "../encoding/Hex.ts"
import { Millis } from "../Time.ts"
import { Problem, RetryAfter } from "./Problem.ts"

const upstream = Schema.String.annotate({ description: "Label of the upstream: trading-api, trading-node, …" })

/** Nothing was sent, or a read failed at every address. It is safe to try again, after `retryAfter` seconds. */
export class UpstreamUnavailable extends Problem<UpstreamUnavailable>()(
  "UpstreamUnavailable",
  { group: "retry-later", status: 503, title: "Upstream unavailable" },
  { upstream, retryAfter: Schema.optionalKey(RetryAfter), attempts: Schema.Natural }
) {}

/** The rate limit of the upstream is reached. Retry after `retryAfter` seconds, if present. */
export class UpstreamRateLimited extends Problem<UpstreamRateLimited>()(
  "UpstreamRateLimited",
  { group: "retry-later", status: 429, title: "Upstream rate limited" },
  { upstream, retryAfter: Schema.optionalKey(RetryAfter) }
) {}

/**
 * The upstream refuses the gateway itself, with HTTP 401 or 403: its endpoint key, its plan or its address. Only a change of
 * the gateway's settings, or at the provider, repairs it.
 */
export class UpstreamForbidden extends Problem<UpstreamForbidden>()(
  "UpstreamForbidden",
  { group: "fix-setup", status: 502, title: "Upstream forbidden" },
  { upstream }
) {}

/**
 * The contract reverted the call, so the same call would revert again in the same state. `data` is what the contract
 * returned, in 0x hex: an ABI-encoded error.
 */
export class CallReverted extends Problem<CallReverted>()(
  "CallReverted",
  { group: "fix-request", status: 422, title: "Call reverted" },
  { upstream, code: Schema.Int, data: Schema.optionalKey(Data) }
) {}

/** A read did not finish within its deadline, in milliseconds. The deadline includes the response's body. */
export class UpstreamTimeout extends Problem<UpstreamTimeout>()(
  "UpstreamTimeout",
  { group: "retry-later", status: 504, title: "Upstream timeout" },
  { upstream, deadline: Schema.Natural }
) {}

/** The upstream's response cannot be decoded: HTML, half a body, a wrong id, a wrong shape. */
export class UpstreamMalformed extends Problem<UpstreamMalformed>()(
  "UpstreamMalformed",
  { group: "retry-later", status: 502, title: "Upstream malformed" },
  { upstream, issue: Schema.String }
) {}

/** What a call to an upstream can end in, where the call itself is in order. */
export const upstreamReasons = [
  UpstreamUnavailable,
  UpstreamRateLimited,
  UpstreamTimeout,
  UpstreamMalformed,
  UpstreamForbidden
] as const
export type UpstreamReason = (typeof upstreamReasons)[number]["Type"]

/**
 * The upstream did not serve the call; `reason` says why. No state was changed.
 *
 * `group` says what to do about it, and `retryAfter` after how many seconds, if the reason does. Over HTTP and JSON-RPC the reason
 * alone is sent.
 *
 * @since 0.1.0
 * @category errors
 * @example
 * ```ts
 * import { Info } from "@trigate/trading/Info"
 * import * as Effect from "effect/Effect"
 *
 * export const mids = Effect.gen(function*() {
 *   const info = yield* Info
 *   return yield* info.allMids()
 * }).pipe(
 *   Effect.catchReason("UpstreamError", "UpstreamRateLimited", ({ retryAfter }) => Effect.succeed({ retryAfter })),
 *   Effect.catchTag("UpstreamError", ({ retryAfter }) => Effect.succeed({ retryAfter }))
 * )
 * ```
 */
export class UpstreamError extends Schema.TaggedError<UpstreamError>()("UpstreamError", {
  reason: Schema.Union(upstreamReasons)
}) {
  override get message(): string {
    return this.reason.message
  }
  /** The group of the reason. */
  get group(): UpstreamReason["group"] {
    return this.reason.group
  }
  /** Seconds to wait before asking again; undefined if unknown. */
  get retryAfter(): number | undefined {
    return "retryAfter" in this.reason ? this.reason.retryAfter : undefined
  }
  override get [ErrorReporter.ignore](): boolean {
    return ErrorReporter.isIgnored(this.reason)
  }
}

/**
 * A call that changes state failed after a byte may have reached the upstream. It may or may not have taken effect.
 *
 * You may resend the identical bytes: if the answer is "duplicate nonce", the first sending was accepted. Do not sign
 * again with a new nonce: both could execute.
 */
export class OutcomeUnknown extends Problem<OutcomeUnknown>()(
  "OutcomeUnknown",
  { group: "outcome-unknown", status: 504, title: "Outcome unknown" },
  {
    upstream,
    nonce: Schema.optionalKey(Millis),
    signer: Schema.optionalKey(Address),
    advice: Schema.String
  }
) {}
