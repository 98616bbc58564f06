/**
 * The audit log: one entry for each attempt to send a signed action, written when its result is known.
 *
 * It wraps the action log, where every attempt is claimed and settled, so it includes attempts whose caller has
 * disconnected. An entry contains the type and the digest of the action, but neither its other members nor its
 * signature.
 */
import type { Address } from "@trigate/domain/encoding/Hex"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { ActionLog } from "./ActionLog.ts"
import type { Claim, Sending, Settlement } from "./LoggedAction.ts"

/** The audit record of one attempt to send an action. */
export interface Entry {
  /** The time at which the attempt to send the action ended, in milliseconds since 1970. */
  readonly time: number
  /** The ID of the request for which the action was sent; absent without a request. */
  readonly requestId: string | undefined
  /** The `id` of the `Caller` that sent the action. */
  readonly caller: string
  /** The recovered signer, in lower case; absent if none can be recovered. */
  readonly signer: Address | undefined
  readonly nonce: number
  /** The fingerprint of the signed content, as in the action log. */
  readonly digest: string
  readonly actionType: string
  readonly outcome: Settlement
  /** HTTP status of the response; absent without a response. */
  readonly status: number | undefined
}

/**
 * Receives the entries of the audit log.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { ActionLogMemory, AuditLog } from "@trigate/trading"
 * import { Layer } from "effect"
 *
 * const audit = Layer.succeed(AuditLog.AuditLog, {
 *   write: ({ actionType, outcome, signer }) => console.log(signer, actionType, outcome)
 * })
 *
 * export const audited = AuditLog.layerAudited().pipe(Layer.provide([ActionLogMemory.layer(), audit]))
 * ```
 */
export class AuditLog extends Context.Service<AuditLog, {
  /** Writes an entry without blocking. */
  readonly write: (entry: Entry) => void
}>()("@trigate/trading/actionLog/AuditLog") {}

const audited = ({ write }: AuditLog["Service"], sending: Sending) => (claim: Claim): Claim => {
  const { actionType, caller, fingerprint, nonce, requestId, signer } = sending
  let isOpen = true
  return {
    ...claim,
    settle: (outcome, status, entries) =>
      Effect.flatMap(Clock.currentTimeMillis, (time) => {
        if (isOpen) write({ time, requestId, caller, signer, nonce, digest: fingerprint, actionType, outcome, status })
        isOpen = false
        return claim.settle(outcome, status, entries)
      })
  }
}

/**
 * Provides the action log of the context, and adds an audit entry for each attempt to send an action.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerAudited = (): Layer.Layer<ActionLog, never, ActionLog | AuditLog> =>
  Layer.effect(
    ActionLog,
    Effect.zipWith(ActionLog, AuditLog, (log, audit) =>
      ActionLog.of({
        ...log,
        claim: (sending) => Effect.map(log.claim(sending), audited(audit, sending))
      }))
  )
