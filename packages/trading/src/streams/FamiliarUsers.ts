/**
 * The users whose signed actions the venue accepted through this process. When the venue's maximum number of users is
 * reached, these users have priority over others.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ActionLog } from "../actionLog/ActionLog.ts"
import type { Claim, Sending } from "../actionLog/LoggedAction.ts"

/** Maximum number of remembered users. The venue allows subscriptions for ten users at a time. */
const most = 1000

const noting = (familiar: Set<string>, { signer }: Sending) => (claim: Claim): Claim => ({
  ...claim,
  settle: (outcome, status, entries) => {
    if (outcome === "accepted" && signer !== undefined && familiar.size < most) familiar.add(signer.toLowerCase())
    return claim.settle(outcome, status, entries)
  }
})

/**
 * Provides the action log of the context, extended so that the signer of each accepted action is added to the set
 * `familiar`.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { ActionLogMemory, FamiliarUsers } from "@trigate/trading"
 * import { Layer } from "effect"
 *
 * const familiar = new Set<string>()
 *
 * export const log = Layer.provide(FamiliarUsers.layerNoting(familiar), ActionLogMemory.layer())
 * ```
 */
export const layerNoting = (familiar: Set<string>): Layer.Layer<ActionLog, never, ActionLog> =>
  Layer.effect(
    ActionLog,
    Effect.map(ActionLog, (log) =>
      ActionLog.of({
        ...log,
        claim: (sending) => Effect.map(log.claim(sending), noting(familiar, sending))
      }))
  )
