/** How each chain is served: what readiness tells and the first lines print. */
import type { Readiness } from "@trigate/api/HealthApi"
import * as Context from "effect/Context"

/** The gateway's make-up, fixed at its start. */
export class GatewayStatus extends Context.Service<GatewayStatus, Omit<Readiness, "status" | "actionLog" | "redis">>()(
  "@trigate/server/GatewayStatus"
) {}
