/**
 * An action in the action log: its identity, its trace, its states, its share of the log's capacity, and the errors that
 * refuse to send it. Pure rules, which are the same for every store.
 *
 * Each nonce of a signer has one entry, so the log also prevents a nonce from being sent twice. {@link nextState} lists
 * the transitions between the states of an entry.
 *
 * A random signature recovers to some address, so a client can present any number of new signers. The capacity of the
 * log is therefore divided into two parts:
 *
 * - The part for known signers, which have an accepted action or are on an allow-list. Each known signer is allowed a
 *   tenth of this part's free capacity.
 * - The part for all other signers, a tenth of the first part's size. Each caller is allowed a quarter of this part's
 *   free capacity.
 *
 * A signer or caller without an unanswered action in the log is admitted as long as its part has any free capacity.
 */
import { actionCatalog, isActionType, isSentAction, type SentAction } from "@trigate/domain/actions/Action"
import {
  type ActionEntry,
  type ActionReference,
  type ActionState,
  Cloid,
  type Settled
} from "@trigate/domain/actions/ActionOutcome"
import { local } from "@trigate/domain/Caller"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import { NonceAlreadyUsed, UpstreamUnavailable } from "@trigate/domain/errors/GatewayError"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"

/** One order of an action, as it was signed. */
export const Leg = Schema.Struct({
  cloid: Schema.optionalKey(Cloid),
  isBuy: Schema.Boolean,
  price: Schema.String,
  size: Schema.String
})
export type Leg = typeof Leg.Type

/** The expiry and the orders of an action, by which its effect can be looked up at the venue. */
export const ActionTrace = Schema.Struct({
  /** The vault or sub-account on whose behalf the action is signed, in lower case. */
  vault: Schema.optionalKey(Encoding.Address),
  /**
   * Time in milliseconds, by the venue's clock, after which the venue refuses the action; absent if the action has no
   * expiry.
   */
  expiresAfter: Schema.optionalKey(Encoding.Millis),
  /** The orders that the action places; empty for an action of another type. */
  legs: Schema.Array(Leg)
})
export type ActionTrace = typeof ActionTrace.Type

const Envelope = Schema.Struct({
  vaultAddress: Schema.optionalKey(Schema.NullOr(Schema.String)),
  expiresAfter: Schema.optionalKey(Schema.NullOr(Encoding.Millis))
})
const decodeEnvelope = Schema.decodeUnknownOption(Envelope)

const Order = Schema.Struct({
  b: Schema.Boolean,
  p: Schema.String,
  s: Schema.String,
  c: Schema.optionalKey(Schema.NullOr(Cloid))
})
const decodeOrders = Schema.decodeUnknownOption(Schema.Array(Order))

const isAddress = Schema.is(Encoding.Address)

const legFrom = ({ b, c, p, s }: typeof Order.Type): Leg => ({
  ...(c === undefined || c === null ? {} : { cloid: Encoding.lowerCase(c) }),
  isBuy: b,
  price: p,
  size: s
})

const listLegs = ({ orders, type }: SentAction): ReadonlyArray<Leg> =>
  type === "order" ? Option.getOrElse(decodeOrders(orders), () => []).map(legFrom) : []

/** Returns whether signatures of this type of action cover `expiresAfter`. */
const signsExpiry = ({ type }: SentAction): boolean => isActionType(type) && actionCatalog[type].scheme === "l1"

/** Returns the trace of a signed action. */
export const makeTrace = (signed: { readonly action: SentAction }): ActionTrace => {
  const { expiresAfter, vaultAddress }: typeof Envelope.Type = Option.getOrElse(decodeEnvelope(signed), () => ({}))
  const vault = vaultAddress?.replace(/^(?!0x)/u, "0x").toLowerCase()
  return {
    ...(isAddress(vault) ? { vault } : {}),
    ...(expiresAfter === undefined || expiresAfter === null || !signsExpiry(signed.action) ? {} : { expiresAfter }),
    legs: listLegs(signed.action)
  }
}

const isBody = (value: unknown): value is { readonly action: SentAction } =>
  Predicate.hasProperty(value, "action") && isSentAction(value.action)

/** Returns the trace of a body; an empty trace if the bytes are not a body. */
export const readTrace = (body: Uint8Array): ActionTrace => {
  const value = Encoding.of(Encoding.decodeLossy(body)).valueOrUndefined
  return isBody(value) ? makeTrace(value) : { legs: [] }
}

/** Returns the client order IDs of the orders, without duplicates. */
export const listCloids = ({ legs }: ActionTrace): ReadonlyArray<Cloid> => {
  const cloids = legs.flatMap(({ cloid }) => cloid ?? [])
  return cloids.length > 1 ? [...new Set(cloids)] : cloids
}

/** A signed action. */
export interface Signed {
  /** The recovered signer, in lower case; absent if none can be recovered. */
  readonly signer?: Encoding.Address
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
  readonly trace?: ActionTrace
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

/** A part of the action log's capacity: `familiar` for known signers, `strangers` for all other signers. */
export type Part = "familiar" | "strangers"

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
  readonly trace: ActionTrace
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
export const alreadyUsed = (signer: Encoding.Address, nonce: number, state: State, isSame: boolean): NonceAlreadyUsed =>
  new NonceAlreadyUsed({
    signer,
    nonce,
    ...(isSame && (state === "accepted" || state === "rejected") ? { settled: state } : {}),
    detail: `An action of ${signer} with nonce ${nonce} ${reasons[state]}`
  })

/** The parts of an action that identify it. */
export interface Identity {
  readonly signer?: Encoding.Address | undefined
  readonly nonce: number
  readonly fingerprint: string
}

/** The key of an entry: the ID under which the nonce is claimed, and the nonce. */
export interface EntryKey {
  /** The signer, or the fingerprint if the signer is unknown. */
  readonly claimant: string
  readonly nonce: number
}

/** Returns the key of an action's entry. Each nonce of a signer has one key. */
export const entryKey = ({ fingerprint, nonce, signer }: Identity): EntryKey => ({
  claimant: signer?.toLowerCase() ?? fingerprint,
  nonce
})

/** Returns the text of a key, as one flat string: an index would retain the parts of a template. */
export const formatKey = ({ claimant, nonce }: EntryKey): string => [claimant, nonce].join(":")

/** Returns whether a reference identifies an action. */
export const isNamed = (
  reference: ActionReference,
  { fingerprint, signer }: Identity
): boolean =>
  "id" in reference
    ? fingerprint === reference.id
    : reference.signer === undefined || signer?.toLowerCase() === reference.signer.toLowerCase()

/**
 * Returns the time at which the log entry of an action expires: `keep` after its nonce or the current time, whichever
 * is later. All values are in milliseconds.
 */
export const expiryTime = (nonce: number, now: number, keep: number): number => Math.max(nonce, now) + keep

/**
 * Milliseconds after an action's `expiresAfter`, by the venue's clock, at which an action that is not found counts as
 * `neverArrived`. The margin is necessary because the venue's servers can lag behind one another.
 */
export const expiryMargin = 2000

/**
 * Returns the next time at which an action of unknown outcome is looked up at the venue; all times are in milliseconds.
 * The wait is half of the action's age, but ends soon after the action has expired, because its outcome is then known.
 */
export const nextLookup = (openedAt: number, now: number, expiresAfter = 0): number => {
  const next = now + Math.max(1000, Math.min(300_000, Math.ceil((now - openedAt) / 2)))
  const hasExpired = expiresAfter + 2 * expiryMargin
  return hasExpired > now ? Math.min(next, hasExpired) : next
}

/**
 * An event in the life of an action.
 *
 * - `sent`: a body with this signed content is about to be sent.
 * - A {@link Settlement}: the result of the attempt that is being sent.
 * - `orderStatus`: the venue's state shows the action; `expiry`: it does not, and the action can no longer take effect.
 * - `forgotten`: an operator removes the action.
 */
export type Attempted = "sent" | Settlement | "orderStatus" | "expiry" | "forgotten"

/**
 * Returns the state of an action after an event, `gone` if the entry is removed, or `undefined` if the event must not
 * happen in this state. `isRepeat`: the venue may have accepted an earlier attempt.
 */
export const nextState = (
  state: State | undefined,
  isRepeat: boolean,
  attempted: Attempted
): State | "gone" | undefined => {
  if (attempted === "sent") return state === undefined || state === "unknown" ? "sent" : undefined
  if (attempted === "forgotten") return state === "sent" || state === "unknown" ? "forgotten" : undefined
  // an earlier version of the gateway can also read these states
  if (attempted === "orderStatus") return state === "unknown" ? "accepted" : undefined
  if (attempted === "expiry") return state === "unknown" ? "rejected" : undefined
  if (state !== "sent") return undefined
  switch (attempted) {
    case "refused":
      return isRepeat ? "unknown" : "rejected"
    case "released":
      return isRepeat ? "unknown" : "gone"
    default:
      return attempted
  }
}

/** The states of an entry. */
export const states: ReadonlyArray<State> = ["sent", "accepted", "rejected", "unknown", "forgotten"]

const before = (attempted: Attempted): ReadonlyArray<State> =>
  states.filter((state) => nextState(state, false, attempted) !== undefined)

/** The states in which each event can happen. */
export const statesBefore: { readonly [A in Attempted]: ReadonlyArray<State> } = {
  sent: before("sent"),
  accepted: before("accepted"),
  rejected: before("rejected"),
  refused: before("refused"),
  released: before("released"),
  unknown: before("unknown"),
  orderStatus: before("orderStatus"),
  expiry: before("expiry"),
  forgotten: before("forgotten")
}

/** An entry of the action log, as a store returns it. Times are in milliseconds. */
export interface Entry extends Identity {
  readonly actionType?: string
  /** The bytes of the body; absent if the outcome is known, or if the store does not have them. */
  readonly body?: Uint8Array | undefined
  /** The stored state; see {@link stateAt}. */
  readonly state: State
  /** The attempt that sends the action, or sent it last. */
  readonly token: string
  /** The number of attempts; absent if the store does not count them. */
  readonly attempts?: number
  readonly openedAt: number
  readonly leaseUntil: number
  readonly expiresAt: number
  /** The time at which the action is looked up at the venue next. */
  readonly lookUpAt: number
  /** Absent if the outcome is known, or if an earlier version of the gateway recorded the action. */
  readonly trace?: ActionTrace | undefined
  readonly vault?: string | undefined
  readonly settled?: Settled | undefined
}

/** Returns the state of an entry at the time `now`: an action whose lease has ended is `unknown`. */
export const stateAt = ({ leaseUntil, state }: Pick<Entry, "leaseUntil" | "state">, now: number): State =>
  state === "sent" && leaseUntil <= now ? "unknown" : state

/** A condition on a stored entry. A write changes nothing unless the entry meets it. */
export interface Guard {
  readonly states: ReadonlyArray<State>
  /** If given, an action whose lease has ended at this time is `unknown`; otherwise the stored state counts. */
  readonly now?: number
  readonly fingerprint?: string
  readonly token?: string
  readonly lookUpAt?: number
}

/** Returns whether an entry meets a condition. */
export const isMet = (
  guard: Guard,
  entry: Pick<Entry, "fingerprint" | "leaseUntil" | "lookUpAt" | "state" | "token">
) =>
  guard.states.includes(guard.now === undefined ? entry.state : stateAt(entry, guard.now)) &&
  (guard.fingerprint ?? entry.fingerprint) === entry.fingerprint &&
  (guard.token ?? entry.token) === entry.token &&
  (guard.lookUpAt ?? entry.lookUpAt) === entry.lookUpAt

/** Returns the state that callers see for a stored state: `neverArrived` if the action expired without effect. */
const shownState = (state: State, settled: Settled | undefined): ActionState =>
  state === "rejected" && settled?.by === "expiry" ? "neverArrived" : state

/** Converts an entry to the form in which callers of the action log see an action. */
export const recordedFrom = (entry: Entry, now: number): Recorded => {
  const { fingerprint, nonce, settled, signer, trace, vault } = entry
  const state = stateAt(entry, now)
  const expiresAfter = state === "sent" || state === "unknown" ? trace?.expiresAfter : undefined
  return {
    fingerprint,
    nonce,
    ...(signer === undefined ? {} : { signer }),
    state: shownState(state, settled),
    ...(settled === undefined ? {} : { settled }),
    ...(expiresAfter === undefined ? {} : { expiresAfter }),
    ...(vault === undefined ? {} : { vault })
  }
}

/**
 * The capacity that some actions use: the part of the action log, the signer or caller that owns the actions, the
 * number of actions, and the total size of their bodies.
 */
export interface Holding {
  readonly part: Part
  readonly owner: string
  readonly count: number
  readonly bytes: number
}

/**
 * The exceeded limit of the action log. `full`: the part for known signers is full. `share`: the known signer has used
 * its share. `strangers`: the part for unknown signers is full, or the caller has used its share of that part.
 */
export type Excess = "full" | "share" | "strangers"

/** The used fraction of each part of the action log's capacity, from 0 to 1. */
export type Used = { readonly [P in Part]: number }

/** The capacity of one part of the action log. */
export interface Limits {
  readonly capacity: number
  readonly maxBytes: number
}

/** Returns the limits of the action log's part for unknown signers: a tenth of the given limits. */
export const strangersLimits = ({ capacity, maxBytes }: Limits): Limits => ({
  capacity: Math.ceil(capacity / 10),
  maxBytes: Math.ceil(maxBytes / 10)
})

/**
 * Returns the fraction that one signer or caller is allowed to use of the free capacity of a part of the action log.
 * Actions that the program itself submits, without a client, have no such limit.
 */
const ownerShare = (part: Part, owner: string): number =>
  part === "familiar" ? 1 / 10 : owner === local.id ? Infinity : 1 / 4

interface Amount {
  readonly count: number
  readonly bytes: number
}

const nothing: Amount = { count: 0, bytes: 0 }

const plus = (one: Amount, other: Amount, sign: 1 | -1): Amount => ({
  count: Math.max(0, one.count + sign * other.count),
  bytes: Math.max(0, one.bytes + sign * other.bytes)
})

const makePart = ({ capacity, maxBytes }: Limits, part: Part) => {
  let held = nothing
  let owners = new Map<string, Amount>()
  const change = (holding: Holding, sign: 1 | -1) => {
    held = plus(held, holding, sign)
    const own = plus(owners.get(holding.owner) ?? nothing, holding, sign)
    if (own.count === 0) owners.delete(holding.owner)
    else owners.set(holding.owner, own)
  }
  return {
    change,
    clear: () => {
      held = nothing
      owners = new Map()
    },
    used: () => Math.min(1, Math.max(held.count / capacity, held.bytes / maxBytes)),
    excess: (owner: string, size: number): Excess | undefined => {
      const free = capacity - held.count
      const freeBytes = maxBytes - held.bytes
      if (free < 1 || size > freeBytes) return part === "familiar" ? "full" : "strangers"
      const own = owners.get(owner)
      const share = ownerShare(part, owner)
      return own === undefined || (own.count < free * share && own.bytes + size <= freeBytes * share)
        ? undefined
        : part === "familiar"
        ? "share"
        : "strangers"
    }
  }
}

/**
 * Makes the tracker of an action log's used capacity, initially empty. `limits` are the limits of the part for known
 * signers.
 */
export const makeQuotas = (limits: Limits) => {
  const parts = { familiar: makePart(limits, "familiar"), strangers: makePart(strangersLimits(limits), "strangers") }
  return {
    add: (holding: Holding) => parts[holding.part].change(holding, 1),
    remove: (holding: Holding) => parts[holding.part].change(holding, -1),
    /** Discards the tracked use, and counts the given actions instead. */
    reset: (holdings: ReadonlyArray<Holding>) => {
      parts.familiar.clear()
      parts.strangers.clear()
      for (const holding of holdings) parts[holding.part].change(holding, 1)
    },
    /** Returns why a body of `size` bytes exceeds the capacity; `undefined` if it fits. */
    excess: (part: Part, owner: string, size: number) => parts[part].excess(owner, size),
    used: (): Used => ({ familiar: parts.familiar.used(), strangers: parts.strangers.used() })
  }
}

/**
 * Maximum number of signers known to the action log. Above this number, the signer whose latest accepted action is the
 * oldest is dropped.
 */
export const maxSigners = 100_000

/**
 * How long a signer remains known after an accepted action, in milliseconds. Applies only to an action log that stores
 * its known signers outside the process.
 */
export const knownFor = 30 * 86_400_000

/** Makes an empty set of known signers: those with an accepted action. */
export const makeSigners = () => {
  const found = new Set<string>()
  return {
    has: (signer: string): boolean => found.has(signer),
    add: (signer: string): void => {
      // the signer moves to the end, because the set is ordered by the last accepted action
      found.delete(signer)
      found.add(signer)
      if (found.size <= maxSigners) return
      const [oldest = signer] = found
      found.delete(oldest)
    }
  }
}

const excesses: { readonly [S in Excess]: string } = {
  full: "is full of unanswered actions; resolve or forget some",
  share: "contains the maximum number of unanswered actions of this signer; resolve or forget some",
  strangers: "contains the maximum number of unanswered actions of unknown signers: a signer is known after an " +
    "accepted action, or if it is on an allow-list"
}

/** Makes the error for an action that exceeds its quota of the action log. */
export const overQuota = (excess: Excess): UpstreamUnavailable => notSent(excesses[excess])

/**
 * Returns the capacity of the action log that an action uses, and the owner of the action: the signer, or the caller if
 * the signer is unknown.
 */
export const holdingFor = (part: Part, sending: Sending): Holding => ({
  part,
  owner: part === "familiar" ? entryKey(sending).claimant : sending.caller,
  count: 1,
  bytes: sending.body.length
})

/** The part of an action log that records actions before they are sent. */
export interface Claims {
  /**
   * Records an action as `sent`. Must succeed before any byte of the action is sent.
   *
   * Fails with `NonceAlreadyUsed` if the action log has an action with this nonce that is `sent` or settled, or that is
   * `unknown` and has different signed content. For an action whose signer is unknown, only an action with the same
   * signed content counts. Fails with `UpstreamUnavailable` if the log is full or cannot be written.
   */
  readonly claim: (sending: Sending) => Effect.Effect<Claim, ClaimRefusal>
}

/**
 * Claims the right to send an action for the duration of an effect. If the result is not recorded when the effect ends,
 * the action becomes `unknown`.
 */
export const claimed = <A, E>(
  log: Claims,
  sending: Sending,
  use: (claim: Claim) => Effect.Effect<A, E>
): Effect.Effect<A, E | ClaimRefusal> =>
  Effect.acquireUseRelease(log.claim(sending), use, (claim) => claim.settle("unknown"))
