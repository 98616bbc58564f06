/**
 * The audit log: one entry for each sending of a signed action, written when it is known how the sending ended.
 *
 * It stands on the action log, where every sending is claimed and settled, so it also has those whose caller has left. It holds no
 * signature, and nothing of the action but its type and its digest.
 */
import type { Address } from "@trigate/domain/encoding/Hex"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { ActionLog, type Claim, type Sending, type Settlement } from "./ActionLog.ts"

/** What the audit log says of one sending. */
export interface Entry {
  /** When the sending ended, in milliseconds since 1970. */
  readonly time: number
  /** The id of the request that the sending was for; absent where no request was. */
  readonly requestId: string | undefined
  /** Who had it sent: the `id` of a `Caller`. */
  readonly caller: string
  /** Who signed, in lower case; absent if the signer cannot be recovered. */
  readonly signer: Address | undefined
  readonly nonce: number
  /** The fingerprint of the signed content, by which the action log knows it as well. */
  readonly digest: string
  readonly actionType: string
  readonly outcome: Settlement
  /** HTTP status of the response; absent where none came. */
  readonly status: number | undefined
}

/**
 * Takes entries.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { ActionLog, AuditLog } from "@trigate/trading"
 * import { Layer } from "effect"
 *
 * const audit = Layer.succeed(AuditLog.AuditLog, {
 *   write: ({ actionType, outcome, signer }) => console.log(signer, actionType, outcome)
 * })
 *
 * export const audited = AuditLog.layerAudited().pipe(Layer.provide([ActionLog.layerMemory(), audit]))
 * ```
 */
export class AuditLog extends Context.Service<AuditLog, {
  /** Takes an entry and returns at once. */
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
 * The action log of the context, with an entry in the audit log for each sending; a function, as the layers of the action log are.
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
        tryClaim: (sending, now) => {
          const claimed = log.tryClaim(sending, now)
          return claimed === undefined ? undefined : Result.map(claimed, audited(audit, sending))
        },
        claim: (sending) => Effect.map(log.claim(sending), audited(audit, sending))
      }))
  )
