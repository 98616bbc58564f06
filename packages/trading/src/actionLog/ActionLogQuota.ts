/**
 * Limits how much of the action log's capacity each signer and each caller can use.
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
import { local } from "@trigate/domain/Caller"
import type { UpstreamUnavailable } from "@trigate/domain/errors/UpstreamError"
import type { Sending } from "./LoggedAction.ts"
import { claimantId, notSent } from "./LoggedAction.ts"

/** A part of the action log's capacity: `familiar` for known signers, `strangers` for all other signers. */
export type Part = "familiar" | "strangers"

/**
 * The capacity that some actions use: the part of the action log, the signer or caller that owns the actions, the
 * number of actions, and the total size of their bodies.
 */
export interface Holding {
  readonly part: Part
  readonly holder: string
  readonly count: number
  readonly bytes: number
}

/**
 * The exceeded limit of the action log. `full`: the part for known signers is full. `share`: the known signer has used
 * its share. `strangers`: the part for unknown signers is full, or the caller has used its share of that part.
 */
export type Scarcity = "full" | "share" | "strangers"

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
const holderShare = (part: Part, holder: string): number =>
  part === "familiar" ? 1 / 10 : holder === local.id ? Infinity : 1 / 4

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
  let holders = new Map<string, Amount>()
  const change = (holding: Holding, sign: 1 | -1) => {
    held = plus(held, holding, sign)
    const own = plus(holders.get(holding.holder) ?? nothing, holding, sign)
    if (own.count === 0) holders.delete(holding.holder)
    else holders.set(holding.holder, own)
  }
  return {
    change,
    clear: () => {
      held = nothing
      holders = new Map()
    },
    used: () => Math.min(1, Math.max(held.count / capacity, held.bytes / maxBytes)),
    scarcity: (holder: string, size: number): Scarcity | undefined => {
      const free = capacity - held.count
      const freeBytes = maxBytes - held.bytes
      if (free < 1 || size > freeBytes) return part === "familiar" ? "full" : "strangers"
      const own = holders.get(holder)
      const share = holderShare(part, holder)
      return own === undefined || (own.count < free * share && own.bytes + size <= freeBytes * share)
        ? undefined
        : part === "familiar"
        ? "share"
        : "strangers"
    }
  }
}

/** Tracks how much of an action log's capacity is used. */
export interface Room {
  readonly add: (holding: Holding) => void
  readonly remove: (holding: Holding) => void
  /** Discards the tracked use, and counts the given actions instead. */
  readonly reset: (holdings: ReadonlyArray<Holding>) => void
  /** Returns why a body of `size` bytes exceeds the capacity; `undefined` if it fits. */
  readonly scarcity: (part: Part, holder: string, size: number) => Scarcity | undefined
  readonly used: () => Used
}

/**
 * Makes the tracker of an action log's used capacity, initially empty. `limits` are the limits of the part for known
 * signers.
 */
export const make = (limits: Limits): Room => {
  const parts = { familiar: makePart(limits, "familiar"), strangers: makePart(strangersLimits(limits), "strangers") }
  return {
    add: (holding) => parts[holding.part].change(holding, 1),
    remove: (holding) => parts[holding.part].change(holding, -1),
    reset: (holdings) => {
      parts.familiar.clear()
      parts.strangers.clear()
      for (const holding of holdings) parts[holding.part].change(holding, 1)
    },
    scarcity: (part, holder, size) => parts[part].scarcity(holder, size),
    used: () => ({ familiar: parts.familiar.used(), strangers: parts.strangers.used() })
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

/** The signers with an accepted action. */
export interface Signers {
  readonly has: (signer: string) => boolean
  readonly add: (signer: string) => void
}

/** Makes an empty set of known signers. */
export const makeSigners = (): Signers => {
  const found = new Set<string>()
  return {
    has: (signer) => found.has(signer),
    add: (signer) => {
      // the signer moves to the end, because the set is ordered by the last accepted action
      found.delete(signer)
      found.add(signer)
      if (found.size <= maxSigners) return
      const [oldest = signer] = found
      found.delete(oldest)
    }
  }
}

const scarcities: { readonly [S in Scarcity]: string } = {
  full: "is full of unanswered actions; resolve or forget some",
  share: "contains the maximum number of unanswered actions of this signer; resolve or forget some",
  strangers: "contains the maximum number of unanswered actions of unknown signers: a signer is known after an " +
    "accepted action, or if it is on an allow-list"
}

/** Makes the error for an action that exceeds its quota of the action log. */
export const overQuota = (scarcity: Scarcity): UpstreamUnavailable => notSent(scarcities[scarcity])

/**
 * Returns the capacity of the action log that an action uses, and the owner of the action: the signer, or the caller if
 * the signer is unknown.
 */
export const holdingFor = (part: Part, sending: Sending): Holding => ({
  part,
  holder: part === "familiar" ? claimantId(sending) : sending.caller,
  count: 1,
  bytes: sending.body.length
})
