/**
 * Errors that any request can fail with: the caller's key, scope or quota does not permit the request, or the gateway
 * is overloaded.
 */
import * as Schema from "effect/Schema"
import { Problem, RetryAfter } from "./Problem.ts"

/** The caller's key is missing, malformed, unknown, expired or revoked. */
export class Unauthorized extends Problem<Unauthorized>()(
  "Unauthorized",
  { group: "fix-setup", status: 401, title: "Unauthorized" },
  {}
) {}

/**
 * The caller lacks the permission `needed`. `missing` names the list to which the operator would add `needed`: a list in
 * the key's scope, or the list of web origins that are allowed to sign and send.
 */
export class NotPermitted extends Problem<NotPermitted>()(
  "NotPermitted",
  { group: "fix-setup", status: 403, title: "Not permitted" },
  { missing: Schema.Literals(["chains", "classes", "operations", "signers", "origins"]), needed: Schema.String }
) {}

/** The caller has used up its quota, or its share of an upstream's rate limit. Retry after `retryAfter` seconds. */
export class QuotaExceeded extends Problem<QuotaExceeded>()(
  "QuotaExceeded",
  { group: "retry-later", status: 429, title: "Quota exceeded" },
  { retryAfter: RetryAfter }
) {}

/** The gateway is overloaded and did not start the request: nothing was read or sent. Retry after `retryAfter` seconds. */
export class Overloaded extends Problem<Overloaded>()(
  "Overloaded",
  { group: "retry-later", status: 503, title: "Overloaded" },
  { retryAfter: RetryAfter }
) {}
