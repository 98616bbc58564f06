/** Why the caller was refused: its key or its quota. */
import { Problem, RetryAfter } from "./Problem.ts"

/** The endpoint key is missing, malformed or unknown. */
export class Unauthorized extends Problem<Unauthorized>()(
  "Unauthorized",
  { group: "fix-setup", status: 401, title: "Unauthorized" },
  {}
) {}

/** The caller has used up its quota. `retryAfter` says in how many seconds to try again. */
export class QuotaExceeded extends Problem<QuotaExceeded>()(
  "QuotaExceeded",
  { group: "retry-later", status: 429, title: "Quota exceeded" },
  { retryAfter: RetryAfter }
) {}
