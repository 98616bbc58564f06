/**
 * An action in the action log: its identity, its states, the right to send it (a claim), and the errors that refuse a
 * claim. Every implementation of the log uses these rules.
 *
 * State transitions: `sent` → `accepted`, `rejected` or `unknown`. `unknown` → `sent` when a body with equal signed
 * content is sent again. `unknown` → `accepted` or `rejected` when the venue's state shows the outcome. `sent` or
 * `unknown` → `forgotten` by an operator. Each nonce of a signer has one entry, so the log also prevents a nonce from
 * being sent twice.
 */
import { NonceAlreadyUsed } from "@trigate/domain/actions/ActionError"
import type { ActionEntry } from "@trigate/domain/actions/ActionOutcome"
import type { ActionReference, ActionState, Settled } from "@trigate/domain/actions/ActionRecord"
import type { Address } from "@trigate/domain/encoding/Hex"
import { UpstreamUnavailable } from "@trigate/domain/errors/UpstreamError"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import type * as ActionTrace from "./ActionTrace.ts"

/** A signed action. */
export interface Signed {
  /** The recovered signer, in lower case; absent if none can be recovered. */
  readonly signer?: Address
  readonly nonce: number
  readonly actionType: string
  /** Digest of the signed content, in 0x hex. Two bodies with the same fingerprint request the same action. */
  readonly fingerprint: string
  /** The bytes of the body, as sent. */
  readonly body: Uint8Array
}

/** An action about to be sent. */
export interface Sending extends Signed {
  /** The `id` of the `Caller` for whom the action is sent. */
  readonly caller: string
  /** Whether the signer is on an allow-list. The action log treats such a signer as a known signer. */
  readonly isListed: boolean
  /** The ID of the request for which the action is sent; absent without a request. */
  readonly requestId?: string
  /**
   * The action's orders and expiry, by which its effect can be looked up at the venue; absent if the action has neither
   * orders nor expiry.
   */
  readonly trace?: ActionTrace.ActionTrace
}

/**
 * The state of an action.
 *
 * - `sent`: the action may have been sent, and the venue's response may still arrive.
 * - `accepted`: the venue accepted it.
 * - `rejected`: the venue did not accept it.
 * - `unknown`: the venue may have accepted it, and no response is expected.
 * - `forgotten`: an operator who knows the outcome removed the action from the log's unanswered actions.
 */
export type State = "sent" | "accepted" | "rejected" | "unknown" | "forgotten"

/** An action in state `sent` or `unknown`: the venue may have accepted it. */
export interface Unanswered extends Signed {
  /** The time at which the action was first sent, in milliseconds. */
  readonly openedAt: number
  readonly state: "sent" | "unknown"
}

/** An action of the action log, in any state. */
export interface Recorded extends Pick<Signed, "fingerprint" | "nonce" | "signer"> {
  readonly state: ActionState
  /**
   * How the outcome was determined. Absent while the outcome is unknown, and for an action that an earlier version of
   * the gateway settled.
   */
  readonly settled?: Settled
  /**
   * Time in milliseconds, by the venue's clock, after which the venue refuses the action. Absent if the action has no
   * expiry, or if its outcome is known.
   */
  readonly expiresAfter?: number
  /**
   * The vault or sub-account for which the action was signed, in lower case; empty for the signer's own account. Absent
   * if an earlier version of the gateway recorded the action.
   */
  readonly vault?: string
}

/** The maximum number of actions that a log finds by a client order ID. */
export const mostFound = 100

/** An action of unknown outcome, with the orders and the expiry by which its effect can be looked up at the venue. */
export interface Unsettled extends Pick<Signed, "fingerprint" | "nonce" | "signer"> {
  /** The time at which the action was first sent, in milliseconds. */
  readonly openedAt: number
  readonly trace: ActionTrace.ActionTrace
}

/** The outcome of an action, as shown by the venue's state. */
export interface Conclusion {
  readonly state: "accepted" | "neverArrived"
  readonly settled: Settled
}

/**
 * The result of one attempt to send an action.
 *
 * - `accepted`: the venue accepted the signed content, in this attempt or an earlier one.
 * - `rejected`: the venue accepted no attempt.
 * - `refused`: the venue refused this attempt, but may have accepted an earlier one.
 * - `released`: the venue did not accept this attempt, and the nonce remains unused.
 * - `unknown`: the venue may have accepted this attempt.
 */
export type Settlement = "accepted" | "rejected" | "refused" | "released" | "unknown"

/** The right to make one attempt to send an action. */
export interface Claim {
  /** Whether the venue may have accepted an earlier attempt with equal signed content. */
  readonly isRepeat: boolean
  /**
   * Records the result of the attempt. If the venue responded, also records the HTTP status and the result of each
   * order, cancel or modify. Only the first call has an effect.
   */
  readonly settle: (
    settlement: Settlement,
    status?: number,
    entries?: ReadonlyArray<ActionEntry>
  ) => Effect.Effect<void>
}

/**
 * The reason why an action must not be sent.
 *
 * `NonceAlreadyUsed`: the nonce was sent before. `UpstreamUnavailable`: the action log is full or cannot be written.
 */
export type ClaimRefusal = NonceAlreadyUsed | UpstreamUnavailable

const upstream = "action-log"

/** Makes the error for an action that the action log cannot record. */
export const notSent = (why: string): UpstreamUnavailable =>
  new UpstreamUnavailable({ upstream, attempts: 0, detail: `The action was not sent: the action log ${why}` })

/** Makes the error for an action log that cannot be read. */
export const unreadable = (why: string): UpstreamUnavailable =>
  new UpstreamUnavailable({ upstream, attempts: 1, detail: `The action log ${why}` })

const reasons: { readonly [S in State]: string } = {
  sent: "is being sent right now",
  accepted: "was sent before, and its outcome is known",
  rejected: "was sent before, and its outcome is known",
  unknown: "was sent before, and its outcome is unknown: only the same signed content may be sent again",
  forgotten: "was sent before, and was removed from the action log"
}

/**
 * Makes the error for a nonce that was sent before; `isSame` means that the earlier action has equal signed content.
 */
export const alreadyUsed = (signer: Address, nonce: number, state: State, isSame: boolean): NonceAlreadyUsed =>
  new NonceAlreadyUsed({
    signer,
    nonce,
    ...(isSame && (state === "accepted" || state === "rejected") ? { settled: state } : {}),
    detail: `An action of ${signer} with nonce ${nonce} ${reasons[state]}`
  })

/** Returns the ID under which an action's nonce is claimed: the signer, or the fingerprint if the signer is unknown. */
export const claimantId = ({ fingerprint, signer }: Pick<Signed, "fingerprint" | "signer">): string =>
  signer?.toLowerCase() ?? fingerprint

/** Returns the key of an entry in the action log. Each nonce of a signer has one key; see {@link claimantId}. */
export const entryKey = (sending: Signed): string => `${claimantId(sending)}:${sending.nonce}`

/**
 * Returns the keys of the entries that a reference can identify. `find` returns the keys for a fingerprint or a client
 * order ID.
 */
export const entryKeys = (
  reference: ActionReference,
  find: (by: string) => ReadonlyArray<string>
): ReadonlyArray<string> => {
  if ("id" in reference) return find(reference.id)
  return "cloid" in reference
    ? find(reference.cloid.toLowerCase())
    : [`${reference.signer.toLowerCase()}:${reference.nonce}`]
}

/** Returns whether a reference identifies an action. */
export const isNamed = (
  reference: ActionReference,
  { fingerprint, signer }: Pick<Signed, "fingerprint" | "signer">
): boolean =>
  "id" in reference
    ? fingerprint === reference.id
    : reference.signer === undefined || signer?.toLowerCase() === reference.signer.toLowerCase()

/**
 * Returns the time at which the log entry of an action expires: `keep` after its nonce or the current time, whichever
 * is later. All values are in milliseconds.
 */
export const expiryTime = (nonce: number, now: number, keep: number): number => Math.max(nonce, now) + keep

/** The state of an entry in the action log after an attempt to send the action. `gone`: the entry is removed. */
export type Remains = "accepted" | "rejected" | "unknown" | "gone"

/**
 * Returns the next time at which an action of unknown outcome is looked up at the venue; all times are in milliseconds.
 */
export const nextLookup = (openedAt: number, now: number): number =>
  now + Math.max(1000, Math.min(300_000, Math.ceil((now - openedAt) / 2)))

/**
 * Returns the state to store for an action whose outcome was looked up at the venue. An earlier version of the gateway
 * can also read that state.
 */
export const storedState = ({ state }: Conclusion): "accepted" | "rejected" =>
  state === "accepted" ? "accepted" : "rejected"

/** Returns the state that callers see for a stored state: `neverArrived` if the action expired without effect. */
const shownState = (state: State, settled: Settled | undefined): ActionState =>
  state === "rejected" && settled?.by === "expiry" ? "neverArrived" : state

/** Converts an entry of the action log to the form that `find` returns. */
export const recordedFrom = (
  { expiresAfter, fingerprint, nonce, settled, signer, state, vault }:
    & Pick<Signed, "fingerprint" | "nonce" | "signer">
    & {
      readonly state: State
      readonly settled: Settled | undefined
      readonly expiresAfter: number | undefined
      readonly vault: string | undefined
    }
): Recorded => ({
  fingerprint,
  nonce,
  ...(signer === undefined ? {} : { signer }),
  state: shownState(state, settled),
  ...(settled === undefined ? {} : { settled }),
  ...(expiresAfter === undefined ? {} : { expiresAfter }),
  ...(vault === undefined ? {} : { vault })
})

const entryRemains = (signer: Address | undefined, isRepeat: boolean, settlement: Settlement): Remains => {
  if (settlement === "unknown") return "unknown"
  if (isRepeat && (settlement === "refused" || settlement === "released")) return "unknown"
  // an action without a signer does not claim a nonce
  if (settlement === "released" || signer === undefined) return "gone"
  return settlement === "accepted" ? "accepted" : "rejected"
}

/**
 * Makes a claim (the right to make one attempt to send an action). Its first `settle` calls `write` with the resulting
 * state of the log entry; later calls do nothing.
 */
export const makeClaim = (
  { signer }: Signed,
  isRepeat: boolean,
  write: (remains: Remains, settled: Settled | undefined) => Effect.Effect<void>
): Claim => {
  let isOpen = true
  return {
    isRepeat,
    settle: (settlement, _status, entries) =>
      Effect.suspend(() => {
        if (!isOpen) return Exit.void
        isOpen = false
        const remains = entryRemains(signer, isRepeat, settlement)
        return write(
          remains,
          remains === "accepted" || remains === "rejected"
            ? { by: "response", ...(entries === undefined ? {} : { entries }) }
            : undefined
        )
      })
  }
}

/** The functions of an action log that record actions before they are sent. */
export interface Claims {
  /**
   * Records an action as `sent` at the time `now` (milliseconds), like `claim`, but synchronously. Returns `undefined`
   * if the log cannot record the action synchronously.
   */
  readonly tryClaim: (sending: Sending, now: number) => Result.Result<Claim, ClaimRefusal> | undefined
  /**
   * Records an action as `sent`. Must succeed before any byte of the action is sent.
   *
   * Fails with `NonceAlreadyUsed` if the action log has an action with this nonce that is `sent` or settled, or that is
   * `unknown` and has different signed content. For an action whose signer is unknown, only an action with the same
   * signed content counts. Fails with `UpstreamUnavailable` if the log is full or cannot be written.
   */
  readonly claim: (sending: Sending) => Effect.Effect<Claim, ClaimRefusal>
}

/** Returns the functions of an action log, extended so that `wrap` converts each claim. */
export const wrapClaims = (
  log: Claims,
  wrap: (sending: Sending) => (claim: Claim) => Claim
): Claims => ({
  tryClaim: (sending, now) => {
    const claimed = log.tryClaim(sending, now)
    return claimed === undefined ? undefined : Result.map(claimed, wrap(sending))
  },
  claim: (sending) => Effect.map(log.claim(sending), wrap(sending))
})

/** Records an action as `sent`, in one synchronous step if possible; see {@link Claims}. */
export const take = (log: Claims, sending: Sending): Effect.Effect<Claim, ClaimRefusal> =>
  Effect.contextWith((context) => {
    const claimed = log.tryClaim(sending, Context.get(context, Clock.Clock).currentTimeMillisUnsafe())
    return claimed === undefined ? log.claim(sending) : Effect.fromResult(claimed)
  })

/**
 * Claims the right to send an action for the duration of an effect. If the result is not recorded when the effect ends,
 * the action becomes `unknown`.
 */
export const claimed = <A, E>(
  log: Claims,
  sending: Sending,
  use: (claim: Claim) => Effect.Effect<A, E>
): Effect.Effect<A, E | ClaimRefusal> =>
  Effect.acquireUseRelease(take(log, sending), use, (claim) => claim.settle("unknown"))
