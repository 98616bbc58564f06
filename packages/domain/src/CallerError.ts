/** Why the caller was refused: its key or its quota. */
import * as HttpApiError from "effect/http-api/HttpApiError"
import { declare, RetryAfter, tagged } from "./Problem.ts"

/** The endpoint key is missing, malformed or unknown. */
export class Unauthorized extends HttpApiError.Problem<Unauthorized>()(
  "Unauthorized",
  declare("Unauthorized", 401, "Unauthorized"),
  tagged("Unauthorized")
) {
  get group() {
    return "fix-setup" as const
  }
}

/** The caller has used up its quota. `retryAfter` says in how many seconds to try again. */
export class QuotaExceeded extends HttpApiError.Problem<QuotaExceeded>()(
  "QuotaExceeded",
  declare("QuotaExceeded", 429, "Quota exceeded"),
  { ...tagged("QuotaExceeded"), retryAfter: RetryAfter }
) {
  get group() {
    return "retry-later" as const
  }
}
