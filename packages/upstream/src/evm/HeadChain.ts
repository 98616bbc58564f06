/**
 * The newest blocks of a chain as a node's heads show them: without a gap, and with their reorganisations.
 *
 * A head behind the newest block comes from a slower node and changes nothing. A head on another branch that is not higher is
 * accepted when it is seen again, or at once where the node itself announced it.
 */
import type { CommonFailure } from "@trigate/domain/errors/GatewayError"
import * as Effect from "effect/Effect"
import type { Header, NodeReads } from "./NodeReads.ts"

/** Blocks that are remembered, and by which a reorganisation may go back. */
export const remembered = 256

/** Blocks before the first head that are read too. */
const before = 8

/** Blocks that are read together where a head jumps. */
const stride = 20

/** A head that jumps by more blocks begins the chain anew. */
const longestJump = 4096n

/** The most blocks that are remembered while the listener needs them. */
const most = 8192

/** What heads do to the chain. */
export interface Listener {
  readonly added: (header: Header) => void
  /** The newest blocks down to a number were replaced; the others stay. */
  readonly rewound: (to: bigint) => void
  /** The lowest number of a block that is still needed, besides the newest ones. */
  readonly needed: () => bigint | undefined
  /** The chain begins, or begins anew where nothing links a head to the known blocks. */
  readonly began: (headers: ReadonlyArray<Header>) => void
}

/** The newest blocks of a chain. */
export interface HeadChain {
  readonly head: () => Header | undefined
  readonly at: (number: bigint) => Header | undefined
  /** The remembered blocks above a number, oldest first. */
  readonly above: (number: bigint) => ReadonlyArray<Header>
  /** Takes a head. Where reads fail, the blocks found so far stay, and the next head continues from there. */
  readonly take: (header: Header, isAnnounced: boolean) => Effect.Effect<void, CommonFailure>
  /** Forgets everything. */
  readonly clear: () => void
}

/** Makes the chain of a node's heads. */
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

  /** Appends blocks up to a head as far as they link; returns whether all of them do. */
  const fill = Effect.fnUntraced(function*(to: Header) {
    for (;;) {
      const last = head()
      if (last === undefined || last.number >= to.number) return last?.hash === to.hash
      const count = Number(to.number - last.number)
      const missing = Array.from({ length: Math.min(stride, count - 1) }, (_, index) => last.number + BigInt(index + 1))
      const found = yield* Effect.forEach(missing, read, { concurrency: stride })
      const next = count - 1 <= stride ? [...found, to] : found
      for (const header of next) {
        const previous = head()
        if (header === undefined || previous === undefined || header.parentHash !== previous.hash) return false
        append(header)
      }
    }
  })

  /** Drops the blocks that are not on the branch of a head, if one of them is on it, and the node has the blocks of that branch. */
  const rewind = Effect.fnUntraced(function*(to: Header) {
    const newest = head()
    if (newest === undefined) return "unlinked"
    let number = newest.number < to.number ? newest.number : to.number
    let there = number === to.number ? to : yield* read(number)
    for (;;) {
      if (at(number) === undefined) return "unlinked"
      // a slower node
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

  const reset = (to: Header): void => {
    listener.began([])
    chain = []
    append(to)
  }

  const take = Effect.fnUntraced(function*(header: Header, isAnnounced: boolean) {
    const last = head()
    if (last === undefined) {
      // a reorganisation may replace the first blocks, too
      const earlier = Array.from(
        { length: Math.min(before, Number(header.number)) },
        (_, index) => header.number - BigInt(index + 1)
      )
      const found = yield* Effect.forEach(earlier, read, { concurrency: before })
      chain = [header]
      for (const each of found) {
        if (each === undefined || each.hash !== chain[0]?.parentHash) break
        chain.unshift(each)
      }
      listener.began(chain)
      return
    }
    if (at(header.number)?.hash === header.hash) {
      suspicions = 0
      return
    }
    if (header.number <= last.number && !isAnnounced && ++suspicions < 2) return
    suspicions = 0
    if (header.number > last.number + longestJump) return reset(header)
    if (header.number > last.number && (yield* fill(header))) return
    // two nodes that disagree may change the branch while it is read: the next head continues
    const link = yield* rewind(header)
    if (link === "linked") yield* fill(header)
    else if (link === "unlinked") reset(header)
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
