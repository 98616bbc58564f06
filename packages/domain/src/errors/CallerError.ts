/** Why the caller was refused, whatever the request: its key, its scope, its quota, or a busy gateway. */
import * as Schema from "effect/Schema"
import { Problem, RetryAfter } from "./Problem.ts"

/** The endpoint key is missing, malformed or unknown. */
export class Unauthorized extends Problem<Unauthorized>()(
  "Unauthorized",
  { group: "fix-setup", status: 401, title: "Unauthorized" },
  {}
) {}

/**
 * The caller may not do this: `needed` is absent from what `missing` names, a member of the scope of its key, or the origins whose
 * pages may sign and send.
 */
export class NotPermitted extends Problem<NotPermitted>()(
  "NotPermitted",
  { group: "fix-setup", status: 403, title: "Not permitted" },
  { missing: Schema.Literals(["chains", "classes", "operations", "signers", "origins"]), needed: Schema.String }
) {}

/** The caller has used up its quota, or its share of an upstream's rate limit. `retryAfter` says in how many seconds to try again. */
export class QuotaExceeded extends Problem<QuotaExceeded>()(
  "QuotaExceeded",
  { group: "retry-later", status: 429, title: "Quota exceeded" },
  { retryAfter: RetryAfter }
) {}

/** The gateway is busy and has not begun with the request: nothing was read, nothing sent. Try again after `retryAfter` seconds. */
export class Overloaded extends Problem<Overloaded>()(
  "Overloaded",
  { group: "retry-later", status: 503, title: "Overloaded" },
  { retryAfter: RetryAfter }
) {}
