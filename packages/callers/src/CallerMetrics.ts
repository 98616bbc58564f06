/** The metrics about callers' keys. */
import { gauge } from "@trigate/domain/DeclaredMetric"

/** The metrics, by member name. */
export const metrics = {
  callerKeysDegraded: gauge(
    "trigate_caller_keys_degraded",
    "1 while the keys of callers cannot be read, otherwise 0; keys that were read before remain valid"
  )
} as const
