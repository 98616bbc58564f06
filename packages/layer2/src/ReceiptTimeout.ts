/** The error of waiting for a receipt. */
import { Hash } from "@trigate/domain/encoding/Hex"
import { Overloaded, QuotaExceeded } from "@trigate/domain/errors/CallerError"
import {
  UpstreamMalformed,
  UpstreamRateLimited,
  UpstreamTimeout,
  UpstreamUnavailable
} from "@trigate/domain/errors/UpstreamError"
import * as Schema from "effect/Schema"

/** Errors of a failed poll after which the next poll can still succeed. */
export const TransientFailure = Schema.Union([
  UpstreamUnavailable,
  UpstreamRateLimited,
  UpstreamTimeout,
  UpstreamMalformed,
  QuotaExceeded,
  Overloaded
])
export type TransientFailure = typeof TransientFailure.Type

/**
 * No receipt was found before the deadline, or before the polling schedule ended. `waited` is in milliseconds.
 *
 * The transaction might still be mined. `lastFailure` is present if the last poll failed; the cause of the timeout can
 * then be the node instead of the transaction. The error is raised locally and never sent over HTTP.
 */
export class ReceiptTimeout extends Schema.TaggedError<ReceiptTimeout>()("ReceiptTimeout", {
  hash: Hash,
  waited: Schema.Natural,
  lastFailure: Schema.optionalKey(TransientFailure)
}) {
  get group() {
    return "outcome-unknown" as const
  }
  override get message() {
    return `No receipt of ${this.hash} within ${this.waited} ms`
  }
}
