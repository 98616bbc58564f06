/** Limits of nodes that the gateway learns from their responses. */
import * as Duration from "effect/Duration"

/** How long a limit is used after it was learned, in milliseconds. Another node may not have it. */
const learnedFor = Duration.toMillis("1 hour")

/** A limit that was learned from a node's response, and that expires. Times are in milliseconds. */
export class Learned<A> {
  #value: A | undefined
  #until = 0

  /** Returns the limit; `undefined` if none was learned, or if it has expired. */
  at(now: number): A | undefined {
    return now < this.#until ? this.#value : undefined
  }

  /** Replaces the limit, and starts its period anew. */
  learn(value: A, now: number): void {
    this.#value = value
    this.#until = now + learnedFor
  }
  /** Removes the limit. */
  forget(): void {
    this.#until = 0
  }
}
