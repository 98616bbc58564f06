/** Waiting for a receipt that did not come. */
import { Hash } from "@trigate/domain/encoding/Hex"
import { Overloaded, QuotaExceeded } from "@trigate/domain/errors/CallerError"
import {
  UpstreamMalformed,
  UpstreamRateLimited,
  UpstreamTimeout,
  UpstreamUnavailable
} from "@trigate/domain/errors/UpstreamError"
import * as Schema from "effect/Schema"

/** What a poll may fail with while another one may still succeed. */
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
 * No receipt within the deadline, or before the polling schedule ended; `waited` is in milliseconds.
 *
 * The transaction may still be mined. `lastFailure` is there when the last poll had no answer at all: then the node, not
 * the transaction, may be the reason. This error does not travel over HTTP: only who waits raises it.
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
