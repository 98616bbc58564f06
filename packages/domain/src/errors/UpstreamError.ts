/** Errors of upstreams: no response, a late response, or a malformed one. `upstream` is a label, never a URL. */
import * as ErrorReporter from "effect/ErrorReporter"
import * as Schema from "effect/Schema"
import { Address, Data } from "../encoding/Hex.ts"
import { Millis } from "../Time.ts"
import { Problem, RetryAfter } from "./Problem.ts"

const upstream = Schema.String.annotate({ description: "Label of the upstream: trading-api, trading-node, …" })

/** Nothing was sent, or a read failed at every upstream URL. It is safe to retry after `retryAfter` seconds. */
export class UpstreamUnavailable extends Problem<UpstreamUnavailable>()(
  "UpstreamUnavailable",
  { group: "retry-later", status: 503, title: "Upstream unavailable" },
  { upstream, retryAfter: Schema.optionalKey(RetryAfter), attempts: Schema.Natural }
) {}

/** The upstream's rate limit is exhausted. Retry after `retryAfter` seconds, if present. */
export class UpstreamRateLimited extends Problem<UpstreamRateLimited>()(
  "UpstreamRateLimited",
  { group: "retry-later", status: 429, title: "Upstream rate limited" },
  { upstream, retryAfter: Schema.optionalKey(RetryAfter) }
) {}

/**
 * The upstream refuses the gateway itself with HTTP 401 or 403, because of the gateway's endpoint key, plan or IP
 * address. Retries fail until the operator changes the gateway's settings or the account at the provider.
 */
export class UpstreamForbidden extends Problem<UpstreamForbidden>()(
  "UpstreamForbidden",
  { group: "fix-setup", status: 502, title: "Upstream forbidden" },
  { upstream }
) {}

/**
 * The contract reverted the call. The same call would revert again in the same state. `data` is the contract's return
 * data in 0x hex: an ABI-encoded error.
 */
export class CallReverted extends Problem<CallReverted>()(
  "CallReverted",
  { group: "fix-request", status: 422, title: "Call reverted" },
  { upstream, code: Schema.Int, data: Schema.optionalKey(Data) }
) {}

/** A read, including the response's body, did not finish within `deadline` milliseconds. */
export class UpstreamTimeout extends Problem<UpstreamTimeout>()(
  "UpstreamTimeout",
  { group: "retry-later", status: 504, title: "Upstream timeout" },
  { upstream, deadline: Schema.Natural }
) {}

/** The upstream's response cannot be decoded: HTML, a truncated body, a wrong ID, or a wrong shape. */
export class UpstreamMalformed extends Problem<UpstreamMalformed>()(
  "UpstreamMalformed",
  { group: "retry-later", status: 502, title: "Upstream malformed" },
  { upstream, issue: Schema.String }
) {}

/** The errors that a valid call can fail with because of its upstream. */
export const upstreamReasons = [
  UpstreamUnavailable,
  UpstreamRateLimited,
  UpstreamTimeout,
  UpstreamMalformed,
  UpstreamForbidden
] as const
export type UpstreamReason = (typeof upstreamReasons)[number]["Type"]

/**
 * The upstream did not serve the call; `reason` is the error. No state was changed.
 *
 * `group` indicates what to do; `retryAfter` is the number of seconds to wait, if the reason contains it. Over HTTP and
 * JSON-RPC, only the reason is sent.
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
  /** The error group of `reason`. */
  get group(): UpstreamReason["group"] {
    return this.reason.group
  }
  /** Seconds to wait before a retry; `undefined` if unknown. */
  get retryAfter(): number | undefined {
    return "retryAfter" in this.reason ? this.reason.retryAfter : undefined
  }
  override get [ErrorReporter.ignore](): boolean {
    return ErrorReporter.isIgnored(this.reason)
  }
}

/**
 * A call that changes state failed after at least one of its bytes may have reached the upstream. The call may have
 * taken effect.
 *
 * It is safe to send the identical bytes again: a "duplicate nonce" response means that the first attempt was accepted.
 * Do not sign the action again with a new nonce: both actions could execute.
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
