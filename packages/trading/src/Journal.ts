/** The signed actions that were sent and not answered: what a crash must not forget. */
import type { Address } from "@trigate/domain/Hex"
import { UpstreamUnavailable } from "@trigate/domain/UpstreamError"
import { fingerprint } from "@trigate/signing/NonceFingerprint"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as JournalMetrics from "./JournalMetrics.ts"

/** An action about to be sent. */
export interface Sending {
  /** Who signed, in lower case; absent where nobody can tell. */
  readonly signer?: Address
  readonly nonce: number
  readonly actionType: string
  /** The bytes as they leave: resending is safe only with exactly these. */
  readonly body: Uint8Array
}

/** An action that may have reached the venue, and of which nobody knows what became. */
export interface Unanswered extends Sending {
  /** keccak-256 of the body, in hex: identical bytes are one entry, however often they were sent. */
  readonly id: string
  /** When it was first sent, in milliseconds. */
  readonly openedAt: number
  /** `inFlight` while an answer may still come. */
  readonly state: "inFlight" | "unknown"
}

/**
 * How a sending ended.
 *
 * `decided`: the fate of these bytes is known, whichever sending it was. `notTaken`: this sending was not taken, which says
 * nothing about an earlier one. `unknown`: it may have been taken.
 */
export type Settlement = "decided" | "notTaken" | "unknown"

/** The entry of one sending; the first settlement counts. */
export interface Opened {
  /** Whether an earlier sending of the same bytes may have been taken. */
  readonly isDoubtful: boolean
  readonly settle: (settlement: Settlement) => Effect.Effect<void>
}

/** What is kept. */
export interface Options {
  /** The most entries kept; 10 000 when not given. */
  readonly capacity?: number
  /** The most bytes of bodies kept; 64 MiB when not given. */
  readonly maxBytes?: number
  /**
   * How long an entry is kept after its nonce; 2 days when not given.
   *
   * No shorter than the venue's nonce window reaches back: what is older can no longer execute.
   */
  readonly keep?: Duration.Input
}

/**
 * Remembers what was sent.
 *
 * Nothing unanswered is dropped to make room: a full journal refuses the next action. Only an entry whose nonce has left the
 * venue's window goes, with a line in the log.
 */
export class Journal extends Context.Service<Journal, {
  /**
   * Writes an entry before its bytes leave; one that is not settled when its scope closes is `unknown`.
   *
   * Fails with `UpstreamUnavailable` where it cannot be written or the journal is full: nothing was sent, nor may it be.
   */
  readonly open: (sending: Sending) => Effect.Effect<Opened, UpstreamUnavailable, Scope.Scope>
  /** All entries, oldest first. */
  readonly unanswered: Effect.Effect<ReadonlyArray<Unanswered>, UpstreamUnavailable>
  /** Drops an entry; whether there was one. */
  readonly forget: (id: string) => Effect.Effect<boolean, UpstreamUnavailable>
}>()("@trigate/trading/Journal") {}

/** What errors call the journal. */
const upstream = "journal"

/** The refusal of an action that cannot be written down. */
export const notSent = (why: string): UpstreamUnavailable =>
  new UpstreamUnavailable({
    upstream,
    attempts: 0,
    detail: `The action was not sent, since the journal of unanswered actions ${why}`
  })

/** The failure of a question to the journal. */
export const unreadable = (why: string): UpstreamUnavailable =>
  new UpstreamUnavailable({ upstream, attempts: 1, detail: `The journal of unanswered actions ${why}` })

/** Why the next action is refused when nothing may be dropped. */
export const full = "is full: resolve or forget what it holds"

/** The name of an entry. */
export const idOf = ({ body }: Sending): string => fingerprint(body)

/** Defaults filled in; `keep` in milliseconds. */
export const limitsOf = ({ capacity = 10_000, keep = "2 days", maxBytes = 64 * 1024 * 1024 }: Options) => ({
  capacity,
  maxBytes,
  keep: Duration.toMillis(Duration.fromInputUnsafe(keep))
})

/** Tells what has left with the nonce window. */
export const tellExpired = (count: number): Effect.Effect<void> =>
  count === 0
    ? Effect.void
    : Effect.logWarning(`${count} actions of unknown outcome left the journal: their nonces are too old to execute`)

/** The handle of an entry, from what a settlement does. */
export const opened = Effect.fnUntraced(function*(
  isDoubtful: boolean,
  settle: Opened["settle"]
): Effect.fn.Return<Opened, never, Scope.Scope> {
  let isOpen = true
  const once: Opened["settle"] = (settlement) =>
    Effect.suspend(() => {
      if (!isOpen) return Effect.void
      isOpen = false
      return settle(settlement)
    })
  yield* Effect.addFinalizer(() => once("unknown"))
  return { isDoubtful, settle: once }
})

const hour = 3_600_000

interface CachedResponse extends Unanswered {
  /** Whether an earlier sending of the same bytes may have been taken. */
  readonly doubtful: boolean
}

/** The journal of this process alone, lost with it; a function, so that two gateways in one process share nothing. */
export const layerMemory = (options: Options = {}): Layer.Layer<Journal> =>
  Layer.sync(Journal, () => {
    const { capacity, keep, maxBytes } = limitsOf(options)
    const entries = new Map<string, CachedResponse>()
    let bytes = 0
    let inFlight = 0
    let prunedAt = 0

    const remove = (id: string): boolean => {
      bytes -= entries.get(id)?.body.length ?? 0
      return entries.delete(id)
    }

    const prune = (now: number) =>
      Effect.suspend(() => {
        prunedAt = now
        return tellExpired([...entries.values()].filter(({ id, nonce }) => nonce + keep <= now && remove(id)).length)
      })

    const report = Effect.suspend(() =>
      JournalMetrics.report({ inFlight, unknown: Math.max(0, entries.size - inFlight) })
    )

    const settle = (entry: CachedResponse, settlement: Settlement) => {
      inFlight -= 1
      if (settlement === "decided") remove(entry.id)
      if (entries.get(entry.id) !== entry) return
      if (settlement === "notTaken" && !entry.doubtful) remove(entry.id)
      else entries.set(entry.id, { ...entry, state: "unknown" })
    }

    const open = Effect.fnUntraced(function*(sending: Sending) {
      const now = yield* Clock.currentTimeMillis
      const id = idOf(sending)
      const earlier = entries.get(id)
      if (now - prunedAt > hour) yield* prune(now)
      const isFull = () => earlier === undefined && (entries.size >= capacity || bytes + sending.body.length > maxBytes)
      if (isFull()) yield* prune(now)
      if (isFull()) return yield* notSent(full)
      const entry: CachedResponse = {
        ...sending,
        id,
        openedAt: earlier?.openedAt ?? now,
        state: "inFlight",
        doubtful: earlier !== undefined
      }
      remove(id)
      entries.set(id, entry)
      bytes += sending.body.length
      inFlight += 1
      yield* report
      return yield* opened(
        entry.doubtful,
        (settlement) => Effect.andThen(Effect.sync(() => settle(entry, settlement)), report)
      )
    })

    return Journal.of({
      open,
      unanswered: Effect.gen(function*() {
        yield* prune(yield* Clock.currentTimeMillis)
        return [...entries.values()].map(({ doubtful: _, ...entry }) => entry)
          .toSorted((one, other) => one.openedAt - other.openedAt)
      }),
      forget: (id) => Effect.tap(Effect.sync(() => remove(id)), () => report)
    })
  })
