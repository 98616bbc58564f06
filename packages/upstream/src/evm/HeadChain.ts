/**
 * Tracks the newest blocks of a chain without gaps, based on the newest block (head) that a node reports. Detects
 * reorgs.
 *
 * A head lower than the newest stored block is from a slower node, and is ignored. A head on a different branch that is
 * not higher than the newest block is accepted only if the node pushed it, or when it is received a second time. If a
 * head is not linked to the stored blocks, the chain starts again, and reports which blocks were lost.
 */
import type { CommonFailure } from "@trigate/domain/errors/GatewayError"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Header, NodeReads } from "./NodeReads.ts"

/** The number of stored blocks, which is also the maximum depth of a reorg. */
export const remembered = 256

/** The number of earlier blocks that are read together with the first head (newest block). */
const before = 8

/** The number of blocks that are read concurrently after a jump of the head. */
const stride = 20

/** Maximum jump of a head, in blocks. After a longer jump the chain starts again. */
const longestJump = 4096n

/** Maximum number of stored blocks, while the listener still needs older ones. */
export const most = 8192

/** The number of consecutive heads below the stored blocks after which the chain starts again. */
const mostStale = 30

/** The handlers of changes to the stored chain. */
export interface Listener {
  readonly added: (header: Header) => void
  /** Reports that the blocks after block `to` were replaced; the blocks up to `to` remain. */
  readonly rewound: (to: bigint) => void
  /** Returns the lowest block number that the listener still needs, in addition to the newest blocks. */
  readonly needed: () => bigint | undefined
  /** Reports that the stored chain starts with the given blocks. */
  readonly began: (headers: ReadonlyArray<Header>) => void
  /**
   * Reports that the chain will start again, because a head is not linked to the stored blocks. Blocks from `first` on
   * were missed or replaced.
   */
  readonly lost: (first: bigint) => void
}

/** The newest blocks of a chain. */
export interface HeadChain {
  readonly head: () => Header | undefined
  readonly at: (number: bigint) => Header | undefined
  /** Returns the stored blocks whose number is greater than `number`, oldest first. */
  readonly above: (number: bigint) => ReadonlyArray<Header>
  /** Adds a head. If reads fail, the blocks read so far remain, and the next head continues from there. */
  readonly take: (header: Header, isAnnounced: boolean) => Effect.Effect<void, CommonFailure>
  /** Removes all blocks. */
  readonly clear: () => void
}

/** Makes an empty chain, to which `take` adds the newest blocks (heads) that a node reports. */
export const make = ({ header: read }: Pick<NodeReads, "header">, listener: Listener): HeadChain => {
  let chain: Array<Header> = []
  let suspicions = 0

  const head = () => chain.at(-1)
  const at = (number: bigint): Header | undefined => {
    const first = chain[0]
    return first === undefined || number < first.number ? undefined : chain[Number(number - first.number)]
  }

  const append = (header: Header): void => {
    chain.push(header)
    const isNeeded = chain.length <= most && (listener.needed() ?? header.number) < (chain[0]?.number ?? 0n) + 8n
    if (chain.length > remembered && !isNeeded) chain.shift()
    listener.added(header)
  }

  /**
   * Appends blocks up to a head, as long as each block is linked to its predecessor. Returns whether all of the blocks
   * are linked.
   */
  const fill = Effect.fnUntraced(function*(to: Header) {
    for (;;) {
      const last = head()
      if (last === undefined || last.number >= to.number) return last?.hash === to.hash
      const count = Number(to.number - last.number)
      const missing = Array.from({ length: Math.min(stride, count - 1) }, (_, index) => last.number + BigInt(index + 1))
      // handles the result of each read separately, because a rate limit may permit only the first reads
      const found = yield* Effect.forEach(missing, (number) => Effect.result(read(number)), { concurrency: stride })
      const next = count - 1 <= stride ? [...found, Result.succeed(to)] : found
      for (const each of next) {
        const header = yield* Effect.fromResult(each)
        const previous = head()
        if (header === undefined || previous === undefined || header.parentHash !== previous.hash) return false
        append(header)
      }
    }
  })

  /**
   * Removes the stored blocks that are not on the branch of a head. Changes nothing if no stored block is on that
   * branch, or if the node does not have the branch's blocks.
   */
  const rewind = Effect.fnUntraced(function*(to: Header) {
    const newest = head()
    if (newest === undefined) return "unlinked"
    let number = newest.number < to.number ? newest.number : to.number
    let there = number === to.number ? to : yield* read(number)
    for (;;) {
      if (at(number) === undefined) return "unlinked"
      // the head is from a slower node
      if (there === undefined) return "unknown"
      if (there.hash === at(number)?.hash) break
      number--
      if (there.parentHash === at(number)?.hash) break
      there = yield* read(number)
    }
    if (number < newest.number) {
      const first = chain[0]?.number ?? 0n
      chain = chain.slice(0, Number(number - first) + 1)
      listener.rewound(number)
    }
    return "linked"
  })

  const begin = Effect.fnUntraced(function*(to: Header) {
    // blocks before the first head are read too, because a reorg may replace them
    const earlier = Array.from(
      { length: Math.min(before, Number(to.number)) },
      (_, index) => to.number - BigInt(index + 1)
    )
    const found = yield* Effect.forEach(earlier, (number) => Effect.orElseSucceed(read(number), () => undefined), {
      concurrency: before
    })
    chain = [to]
    for (const each of found) {
      if (each === undefined || each.hash !== chain[0]?.parentHash) break
      chain.unshift(each)
    }
    listener.began(chain)
  })

  const beginAgain = (to: Header, first: bigint) => {
    chain = []
    listener.lost(first)
    return begin(to)
  }

  const take = Effect.fnUntraced(function*(header: Header, isAnnounced: boolean) {
    const last = head()
    const oldest = chain[0]
    if (last === undefined || oldest === undefined) return yield* begin(header)
    if (at(header.number)?.hash === header.hash) {
      suspicions = 0
      return
    }
    const isStale = header.number < oldest.number
    if (header.number <= last.number && (isStale || !isAnnounced) && ++suspicions < (isStale ? mostStale : 2)) return
    suspicions = 0
    if (header.number > last.number + longestJump) return yield* beginAgain(header, last.number + 1n)
    if (header.number > last.number && (yield* fill(header))) return
    // if two nodes disagree, the branch can change between the following reads; they then stop early, and the next head
    // resumes them
    const link = yield* rewind(header)
    if (link === "linked") yield* fill(header)
    else if (link === "unlinked") yield* beginAgain(header, oldest.number)
  })

  return {
    head,
    at,
    above: (number) => chain.filter((each) => each.number > number),
    take,
    clear: () => {
      chain = []
    }
  }
}
