/** Refusals of the caller: its key and its quota. */
import * as HttpApiError from "effect/http-api/HttpApiError"
import { declare, RetryAfter, tagged } from "./Problem.ts"

/** The caller's endpoint key is missing, malformed or unknown. */
export class Unauthorized extends HttpApiError.Problem<Unauthorized>()(
  "Unauthorized",
  declare("Unauthorized", 401, "Unauthorized"),
  tagged("Unauthorized")
) {}

/** The caller is over its quota; `retryAfter` is in seconds. */
export class QuotaExceeded extends HttpApiError.Problem<QuotaExceeded>()(
  "QuotaExceeded",
  declare("QuotaExceeded", 429, "Quota exceeded"),
  { ...tagged("QuotaExceeded"), retryAfter: RetryAfter }
) {}
