/**
 * The transactions of an account, in order and without gaps.
 *
 * Servers return transactions newest first, in pages. Each transaction names its predecessor by logical time and hash,
 * so a walk from the newest transaction back to a known position proves that none is missing in between.
 */
import { HistoryUnavailable } from "@trigate/domain/errors/ResourceError"
import type { AccountTransaction, Position, StartPosition } from "@trigate/domain/tokens/AccountTransaction"
import { formatPosition, genesis } from "@trigate/domain/tokens/AccountTransaction"
import * as Arr from "effect/Array"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"

/** A request for a page of transactions, newest first. */
export interface PageRequest {
  /** The first transaction of the page. Default: the account's newest transaction. */
  readonly from?: Position
  readonly limit: number
  /** Whether to use a server with the complete history. */
  readonly archival: boolean
}

/** The failure to read a page of transactions. */
export interface PageFailure<E> {
  /** `retry`: a temporary failure. `absent`: the server does not have the position. `failed`: a permanent failure. */
  readonly kind: "retry" | "absent" | "failed"
  readonly error: E
  /** The pause that the server requires before the next request. */
  readonly retryAfter?: Duration.Duration
}

/** Reads a page of one account's transactions. */
export type ReadPage<E> = (
  request: PageRequest
) => Effect.Effect<ReadonlyArray<AccountTransaction>, PageFailure<E>>

/** The options for following an account. */
export interface Options {
  /** The account's address in raw form, for messages. */
  readonly address: string
  /** Pause between two requests for the newest transactions. */
  readonly pollInterval: Duration.Input
}

/**
 * Maximum number of transactions per page: `newest` for polling new transactions, `older` for a walk back through the
 * history.
 */
const pageSizes = { newest: 16, older: 100 }

/** Maximum number of cached transactions of an account, for readers that are slightly behind. */
const maxCached = 1_000

/**
 * Maximum number of pages in memory for one walk back through the history. Further pages are read again when needed.
 */
const maxPagesInMemory = 20

/** Maximum number of pages of transactions that one walk back through the history of a TON account reads. */
const maxPages = 2_000

/** Maximum attempts to read a page that the server does not have, or that is not contiguous. */
const maxAttempts = 8

const pauses = { first: 500, most: 30_000 }

const isSame = (a: Position, b: Position): boolean => a.lt === b.lt && a.hash === b.hash

const isNewer = (a: Position, b: Position): boolean => BigInt(a.lt) > BigInt(b.lt)

/**
 * Returns the longest prefix of a page that is proven to have no gaps: the first transaction is at `from`, if given,
 * and each transaction names the next one as its predecessor. Omits duplicates.
 */
const provenPrefix = (
  page: ReadonlyArray<AccountTransaction>,
  from: Position | undefined
): ReadonlyArray<AccountTransaction> => {
  const proven: Array<AccountTransaction> = []
  let expected = from
  for (const row of page) {
    if (expected === undefined || isSame(row, expected)) {
      proven.push(row)
      expected = row.previous
    } else if (!proven.some((known) => isSame(known, row))) {
      break
    }
  }
  return proven
}

/**
 * One page of a walk back through the history: transactions in descending order from a position. `rows` is absent if
 * the transactions must be read again.
 */
interface WalkedPage {
  readonly from: Position
  readonly count: number
  rows: ReadonlyArray<AccountTransaction> | undefined
}

/**
 * The newest position in an account's history (`At`). `Unknown`: not requested yet. `Unreached`: all requests so far
 * failed. `Failed`: a permanent error, after which the account is no longer polled.
 */
type Head<E> =
  | { readonly _tag: "Unknown" }
  | { readonly _tag: "Unreached"; readonly error: E }
  | { readonly _tag: "At"; readonly position: Position }
  | { readonly _tag: "Failed"; readonly error: E }

/** An account whose new transactions are polled. */
export interface AccountHistory<E> {
  /** Returns the newest position. Fails if it is not known yet and the first requests for it failed. */
  readonly latestPosition: Effect.Effect<Position, E>
  /**
   * Streams the transactions after a position, oldest first, and then each new one. Without a position, streams only
   * new ones.
   *
   * The stream ends only with an error, such as `HistoryUnavailable` if the server's history does not reach back to the
   * position.
   */
  readonly transactions: (after?: StartPosition) => Stream.Stream<AccountTransaction, E | HistoryUnavailable>
}

/**
 * Waits before attempt number `attempt`, counted from 0: 0.5 seconds for the first attempt, and twice as long for each
 * further attempt, up to 30 seconds. Waits longer if the server requires it.
 */
export const pauseAfter = (attempt: number, after?: Duration.Duration): Effect.Effect<void> => {
  const millis = Math.min(pauses.first * 2 ** attempt, pauses.most)
  return Effect.sleep(after === undefined ? millis : Math.max(Duration.toMillis(after), millis))
}

/** Follows an account until the scope closes. Any number of readers share one request per poll. */
export const make = Effect.fnUntraced(function*<E extends Error>(
  readPage: ReadPage<E>,
  { address, pollInterval }: Options
): Effect.fn.Return<AccountHistory<E>, never, Scope.Scope> {
  const head = yield* SubscriptionRef.make<Head<E>>({ _tag: "Unknown" })
  const cached = new Map<string, AccountTransaction>()

  const remember = (rows: ReadonlyArray<AccountTransaction>): void => {
    for (const row of rows) cached.set(row.lt, row)
    const excess = cached.size - maxCached
    if (excess <= 0) return
    const oldestFirst = [...cached.values()].toSorted((a, b) => isNewer(a, b) ? 1 : -1)
    for (const { lt } of oldestFirst.slice(0, excess)) cached.delete(lt)
  }

  const unavailable = (after: Position, detail: string) =>
    new HistoryUnavailable({ address, after: formatPosition(after), detail })

  const cachedFrom = (from: Position): ReadonlyArray<AccountTransaction> => {
    const rows: Array<AccountTransaction> = []
    let next = cached.get(from.lt)
    while (next !== undefined && rows.length < pageSizes.older) {
      rows.push(next)
      next = cached.get(next.previous.lt)
    }
    return provenPrefix(rows, from)
  }

  /** Reads at least one transaction, in descending order from a position. */
  const older = Effect.fnUntraced(function*(from: Position, after: Position) {
    const known = cachedFrom(from)
    if (known.length > 0) return known
    let outages = 0
    let attempt = 0
    while (true) {
      const read = yield* Effect.result(readPage({ from, limit: pageSizes.older, archival: attempt % 2 === 1 }))
      if (read._tag === "Success") {
        const rows = provenPrefix(read.success, from)
        remember(rows)
        if (rows.length > 0) return rows
        attempt += 1
        if (attempt === maxAttempts) {
          return yield* unavailable(
            after,
            `The node's pages of transactions are not contiguous before ${formatPosition(from)}`
          )
        }
        yield* pauseAfter(attempt)
        continue
      }
      const { error, kind, retryAfter } = read.failure
      if (kind === "failed") return yield* Effect.fail(error)
      if (kind === "retry") {
        yield* pauseAfter(outages, retryAfter)
        outages += 1
        continue
      }
      attempt += 1
      if (attempt === maxAttempts) return yield* unavailable(after, error.message)
      yield* pauseAfter(attempt)
    }
  })

  const poll = Effect.gen(function*() {
    let failures = 0
    while (true) {
      const read = yield* Effect.result(readPage({ limit: pageSizes.newest, archival: false }))
      if (read._tag === "Failure") {
        const { error, kind, retryAfter } = read.failure
        if (kind === "failed") return error
        if ((yield* SubscriptionRef.get(head))._tag !== "At") {
          yield* SubscriptionRef.set(head, { _tag: "Unreached", error })
        }
        yield* pauseAfter(failures, retryAfter)
        failures += 1
        continue
      }
      failures = 0
      const rows = provenPrefix(read.success, undefined)
      const position = rows[0] ?? genesis
      const known = yield* SubscriptionRef.get(head)
      // a server that lags behind another server returns an older position
      if (known._tag !== "At" || isNewer(position, known.position)) {
        remember(rows)
        yield* SubscriptionRef.set(head, { _tag: "At", position: { lt: position.lt, hash: position.hash } })
      }
      yield* Effect.sleep(pollInterval)
    }
  })

  yield* Effect.forkScoped(
    Effect.flatMap(poll, (error) => SubscriptionRef.set(head, { _tag: "Failed", error }))
  )

  /**
   * Waits until the newest position of the account is later than `cursor`. Without `cursor`, waits for the first known
   * position.
   */
  const headAfter = (cursor: Position | undefined): Effect.Effect<Position, E | HistoryUnavailable> =>
    SubscriptionRef.changes(head).pipe(
      Stream.filter((now): now is Extract<Head<E>, { readonly _tag: "At" | "Failed" }> =>
        now._tag === "Failed" ||
        now._tag === "At" && (cursor === undefined || isNewer(now.position, cursor) ||
            now.position.lt === cursor.lt && !isSame(now.position, cursor))
      ),
      Stream.runHead,
      Effect.flatMap(Effect.fnUntraced(function*(found) {
        if (Option.isNone(found)) return yield* Effect.never
        if (found.value._tag === "Failed") return yield* Effect.fail(found.value.error)
        const { position } = found.value
        return cursor !== undefined && position.lt === cursor.lt
          ? yield* unavailable(cursor, `The account's transaction at ${cursor.lt} does not have the requested hash`)
          : position
      }))
    )

  const latestPosition: Effect.Effect<Position, E> = SubscriptionRef.changes(head).pipe(
    Stream.filter((now) => now._tag !== "Unknown"),
    Stream.runHead,
    Effect.flatMap((found) => {
      if (Option.isNone(found)) return Effect.never
      return found.value._tag === "At" ? Effect.succeed(found.value.position) : Effect.fail(found.value.error)
    })
  )

  /** Reads the pages between a position and a newer one, newest first. */
  const walk = Effect.fnUntraced(function*(newest: Position, after: Position) {
    const pages: Array<WalkedPage> = []
    let next = newest
    while (true) {
      const rows = (yield* older(next, after)).filter((row) => isNewer(row, after))
      pages.push({ from: next, count: rows.length, rows })
      const dropped = pages[pages.length - 1 - maxPagesInMemory]
      if (dropped !== undefined) dropped.rows = undefined
      const last = rows[rows.length - 1]
      if (last === undefined || isSame(last.previous, after)) return pages
      if (!isNewer(last.previous, after)) {
        return yield* unavailable(after, "The account has no transaction at this position")
      }
      if (pages.length === maxPages) {
        return yield* unavailable(after, `More than ${maxPages} pages of transactions follow this position`)
      }
      next = last.previous
    }
  })

  /** Returns the transactions of a walked page, oldest first. Reads them again if they are no longer in memory. */
  const readAgain = Effect.fnUntraced(function*({ count, from, rows }: WalkedPage, after: Position) {
    const read: Array<AccountTransaction> = [...rows ?? []]
    let next = from
    while (read.length < count) {
      const more = yield* older(next, after)
      read.push(...more.slice(0, count - read.length))
      next = read[read.length - 1]?.previous ?? next
    }
    return read.toReversed()
  })

  interface Reader {
    readonly cursor: Position | undefined
    /** The pages that remain to be emitted, newest first. The last page is emitted next. */
    readonly pages: ReadonlyArray<WalkedPage>
  }

  const step = Effect.fnUntraced(function*({ cursor, pages }: Reader) {
    const page = Arr.last(pages)
    if (Option.isSome(page)) {
      const rows = yield* readAgain(page.value, cursor ?? genesis)
      const newest = rows[rows.length - 1]
      return [rows, { cursor: newest ?? cursor, pages: pages.slice(0, -1) }] as const
    }
    const newest = yield* headAfter(cursor)
    if (cursor === undefined) return [[], { cursor: newest, pages }] as const
    return [[], { cursor, pages: yield* walk(newest, cursor) }] as const
  })

  return {
    latestPosition,
    transactions: (after) =>
      Stream.paginate<Reader, AccountTransaction, E | HistoryUnavailable>(
        { cursor: after === "genesis" ? genesis : after, pages: [] },
        (reader) => Effect.map(step(reader), ([rows, next]) => [rows, Option.some(next)] as const)
      )
  }
})
