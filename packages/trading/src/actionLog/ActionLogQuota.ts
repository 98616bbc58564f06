/**
 * The quota of each signer and each caller in the action log.
 *
 * A random signature recovers to some address, so anyone can present ever new signers. The log therefore has two parts. One is for the
 * signers that it knows: they had an action accepted, or are on a list. Each of them may use a tenth of the free room there. The
 * other part, a tenth of the first in size, is for all other signers, and each caller may use a quarter of the free room there.
 * A signer or caller without an entry is admitted while there is any room.
 */
import { local } from "@trigate/domain/Caller"

/** A part of the log. */
export type Part = "familiar" | "strangers"

/** What some actions take: the part, the signer or caller that holds them, their number and the bytes of their bodies. */
export interface Holding {
  readonly part: Part
  readonly holder: string
  readonly count: number
  readonly bytes: number
}

/** Why an action has no room: the part is full, or its owner has used its share. */
export type Scarcity = "full" | "share" | "strangers"

/** How much of each part is used, from 0 to 1. */
export type Used = { readonly [P in Part]: number }

/** The most that a part holds. */
export interface Limits {
  readonly capacity: number
  readonly maxBytes: number
}

/** The limits of the strangers' part. */
export const strangersLimits = ({ capacity, maxBytes }: Limits): Limits => ({
  capacity: Math.ceil(capacity / 10),
  maxBytes: Math.ceil(maxBytes / 10)
})

/** Returns the share of the free room that one owner may use. The program itself is alone, so it may use all. */
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

/** The room of a log. */
export interface Room {
  readonly add: (holding: Holding) => void
  readonly remove: (holding: Holding) => void
  /** Replaces the tracked use by the result of a count. */
  readonly reset: (holdings: ReadonlyArray<Holding>) => void
  /** Returns why a body of `size` bytes has no room; `undefined` if it has. */
  readonly scarcity: (part: Part, holder: string, size: number) => Scarcity | undefined
  readonly used: () => Used
}

/** An empty room; the limits are those of the familiar signers' part. */
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

/** The most signers that a log knows; over it the one goes whose last accepted action is the oldest. */
export const maxSigners = 100_000

/** How long a signer stays known after an accepted action, where that is stored beside the process. */
export const knownFor = 30 * 86_400_000

/** The signers that had an action accepted. */
export interface Signers {
  readonly has: (signer: string) => boolean
  readonly add: (signer: string) => void
}

/** No signers yet. */
export const makeSigners = (): Signers => {
  const found = new Set<string>()
  return {
    has: (signer) => found.has(signer),
    add: (signer) => {
      // the oldest comes first
      found.delete(signer)
      found.add(signer)
      if (found.size <= maxSigners) return
      const [oldest = signer] = found
      found.delete(oldest)
    }
  }
}
