/** Errors for a resource that does not exist at the upstream. */
import * as Schema from "effect/Schema"
import { Problem } from "./Problem.ts"

/** The address is not the master contract of a fungible token. `contractType` is the type of the contract found. */
export class TokenNotFound extends Problem<TokenNotFound>()(
  "TokenNotFound",
  { group: "fix-request", status: 404, title: "Token not found" },
  { address: Schema.String, contractType: Schema.String }
) {}

/**
 * The venue does not list the coin. The venue itself responds with HTTP 500 and `null`, which client libraries would
 * retry.
 */
export class UnknownAsset extends Problem<UnknownAsset>()(
  "UnknownAsset",
  { group: "fix-request", status: 404, title: "Unknown asset" },
  { coin: Schema.String }
) {}

/**
 * The node cannot return the account's transactions that follow the position `after`. The node does not know this
 * position, its pages of transactions are not contiguous, or too many pages follow the position.
 * To resume at a different node, pass `after` as the position.
 */
export class HistoryUnavailable extends Problem<HistoryUnavailable>()(
  "HistoryUnavailable",
  { group: "fix-request", status: 410, title: "History unavailable" },
  { address: Schema.String, after: Schema.String }
) {}
