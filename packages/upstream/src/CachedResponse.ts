/** An answer that may be given again: its content in the form in which it is handed out, and for how long. */
import type { CachePolicy } from "@trigate/domain/Operation"

/** What answers that may come from a cache have in common. */
export interface Shareable {
  /** Seconds since it was read upstream; absent where it was read just now. */
  readonly age?: number
}

/** What is kept of an answer: its body as bytes or as text, whichever the answer carries, and what else it says. */
export interface Content {
  readonly head: string
  readonly body: string | Uint8Array
}

/** How answers of one kind are kept. */
export interface Codec<A> {
  /** What to keep of an answer; nothing of one that is no success. */
  readonly keep: (answer: A) => Content | undefined
  /** The answer that a content was kept of. */
  readonly of: (content: Content, age: number) => A
  /** Whether an answer only says that the upstream could not do its part now: what is stale is better. */
  readonly isFault: (answer: A) => boolean
}

/** An answer with the time at which it came, in milliseconds. */
export interface CachedResponse {
  readonly content: Content
  readonly readAt: number
  readonly cachePolicy: CachePolicy
}

/** Milliseconds since it came; none where the clock of the replica that read it is ahead. */
export const ageOf = ({ readAt }: CachedResponse, now: number): number => Math.max(0, now - readAt)

/** Whether it may be given without asking. */
export const isFresh = (kept: CachedResponse, now: number): boolean => ageOf(kept, now) < kept.cachePolicy.fresh

/** Milliseconds until it is of no use; none or fewer when it is of none now. */
export const useLeft = (kept: CachedResponse, now: number): number =>
  kept.cachePolicy.fresh + kept.cachePolicy.stale - ageOf(kept, now)

/** Whether it may be given where the upstream fails. */
export const isUsable = (kept: CachedResponse, now: number): boolean => useLeft(kept, now) > 0
