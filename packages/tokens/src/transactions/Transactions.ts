/**
 * Streams of the token chain: an account's transactions in order and without gaps, and the jetton transfers that an
 * owner receives.
 *
 * Servers return transactions newest first, in pages. Each transaction names its predecessor by logical time and hash,
 * so a walk from the newest transaction back to a known position proves that none is missing in between.
 */
import { background, CurrentCaller } from "@trigate/domain/Caller"
import * as Json from "@trigate/domain/encoding/Encoding"
import { HistoryUnavailable, Overloaded, TokenNotFound } from "@trigate/domain/errors/GatewayError"
import type { CommonFailure, InvalidAddress } from "@trigate/domain/errors/GatewayError"
import { malformed } from "@trigate/domain/operations/Operation"
import * as TonAddress from "@trigate/domain/tokens/TokenData"
import { formatPosition, genesis } from "@trigate/domain/tokens/TokenData"
import type {
  AccountTransaction,
  JettonTransfer,
  JettonTransfersRequest,
  JettonWalletRequest,
  Position,
  StartPosition,
  TransactionsRequest
} from "@trigate/domain/tokens/TokenData"
import { tokenRpcOperations } from "@trigate/domain/tokens/TokenOperations"
import * as TokenProtocol from "@trigate/domain/unstable/tokens/TokenProtocol"
import * as Arr from "effect/Array"
import * as Cache from "effect/Cache"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as PartitionedSemaphore from "effect/PartitionedSemaphore"
import * as RcMap from "effect/RcMap"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
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
export interface HistoryOptions {
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

/** Maximum number of pages in one walk through the history of a TON account. */
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
export const makeHistory = Effect.fnUntraced(function*<E extends Error>(
  readPage: ReadPage<E>,
  { address, pollInterval }: HistoryOptions
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

/** The errors of a stream of transactions. */
export type TransactionsFailure = CommonFailure | InvalidAddress | HistoryUnavailable | Overloaded

/** The errors of a stream of jetton transfers. */
export type JettonTransfersFailure = TransactionsFailure | TokenNotFound

/** The options for following accounts. */
export interface Options {
  /** Maximum requests per second, in total for all streams. */
  readonly requestsPerSecond: number
  /** Pause between two requests for the newest transactions of an account. */
  readonly pollInterval: Duration.Input
}

/** The default options. Without a key, public servers allow one request per second; a block takes a few seconds. */
export const defaults: Options = { requestsPerSecond: 1, pollInterval: "2 seconds" }

/** Maximum number of TON accounts whose transactions are streamed at the same time. */
const maxAccounts = 1_000

/** How long the gateway continues to poll an account after the last stream of the account has ended. */
const grace = "10 seconds"

const upstream = "token-chain"

const { getTransactions, runGetMethod } = tokenRpcOperations
const readTransactions = TokenProtocol.makeReader(getTransactions)
const readGetMethod = TokenProtocol.makeReader(runGetMethod)
const decodeRows = Schema.decodeUnknownResult(Schema.Array(Schema.Struct({ data: Schema.String })))
const decodeWallet = Schema.decodeUnknownOption(
  Schema.Struct({
    exit_code: Schema.Literal(0),
    stack: Schema.Tuple([Schema.Tuple([Schema.String, Schema.Struct({ bytes: Schema.String })])])
  })
)

/**
 * Returns whether an error means that the server does not have the requested position. Python and C++ servers both
 * relay the message of their node.
 */
const isAbsent = ({ message }: Error): boolean => /cannot locate|not in db|cannot find block/iu.test(message)

type ReadFailure = CommonFailure | InvalidAddress

/** Returns whether a failure is temporary, and the pause that the server requires. */
const classify = (error: JettonTransfersFailure): Omit<PageFailure<never>, "error"> => {
  switch (error._tag) {
    case "UpstreamUnavailable":
    case "UpstreamRateLimited":
    case "QuotaExceeded": {
      if (isAbsent(error)) return { kind: "absent" }
      const { retryAfter } = error
      return { kind: "retry", ...(retryAfter === undefined ? {} : { retryAfter: Duration.seconds(retryAfter) }) }
    }
    case "UpstreamTimeout":
    case "UpstreamMalformed":
      return { kind: "retry" }
    default:
      return { kind: isAbsent(error) ? "absent" : "failed" }
  }
}

/** Makes a limiter that spaces requests evenly. The callers who wait take turns. */
const makePace = (requestsPerSecond: () => number) =>
  Effect.map(PartitionedSemaphore.make<string>({ permits: 1 }), (turn) => {
    let next = Json.longAgo
    const wait = Effect.gen(function*() {
      const now = Json.monotonicTime(yield* Clock.Clock)
      if (now < next) yield* Effect.sleep(Json.millisBetween(now, next))
      next = Json.addMillis(Json.latest(now, next), 1_000 / requestsPerSecond())
    })
    return Effect.flatMap(CurrentCaller, ({ id }) => turn.withPermit(id)(wait))
  })

/**
 * Returns the owner of a read that callers share: in the name of the first caller, the caller's quota would limit it for
 * all callers.
 */
const findFollower = (context: Context.Context<never>) =>
  background(`transactions of ${Context.get(context, CurrentCaller).id}`)

/**
 * Loads the decoder of transaction cells when a stream first needs it. Programs without such streams thus do not load
 * the decoder's library, `@ton/core`.
 */
const loadCells = Effect.cached(Effect.promise(() => import("./TransactionCell.ts")))

/** The node that streams read, and the limits of these reads. */
interface Source extends Options {
  readonly backend: Pick<TokenProtocol.TokenBackend, "read">
}

const makeStreams = Effect.fnUntraced(function*(source: () => Source) {
  const pace = yield* makePace(() => source().requestsPerSecond)
  const cells = yield* loadCells
  // reads that callers share run in this context
  const context = yield* Effect.context()
  const closed = yield* Deferred.make<void>()
  yield* Effect.addFinalizer(() => Deferred.succeed(closed, undefined))

  const readPage = Effect.fnUntraced(function*(account: TonAddress.Account, request: PageRequest) {
    const { read } = yield* cells
    yield* pace
    const { archival, from, limit } = request
    const address = TonAddress.canonical(account)
    const params = {
      address,
      limit,
      ...(from === undefined ? {} : { lt: from.lt, hash: from.hash }),
      ...(archival ? { archival } : {})
    }
    const response = yield* source().backend.read({
      form: "rpc",
      operation: getTransactions,
      params: Json.write(params)
    })
    const rows = yield* readTransactions({ address }, upstream, yield* TokenProtocol.readResponse(response))
    const transactions = Result.mapError(decodeRows(rows), () => "Expected transactions with their data")
    return yield* Effect.fromResult(transactions).pipe(
      // decoding a page can take a second: other fibers run between two transactions
      Effect.flatMap((decoded) =>
        Effect.forEach(
          decoded.slice(0, limit),
          ({ data }) => Effect.andThen(Effect.yieldNow, Effect.fromResult(read(data, account)))
        )
      ),
      Effect.mapError((issue) => malformed(upstream, issue))
    )
  })

  const accounts = yield* RcMap.make({
    lookup: (address: string) =>
      Effect.flatMap(
        Effect.fromResult(TonAddress.parse(address)),
        (account) =>
          makeHistory<ReadFailure>(
            (request) => Effect.mapError(readPage(account, request), (error) => ({ ...classify(error), error })),
            { address, pollInterval: source().pollInterval }
          )
      ).pipe(
        Effect.updateContext((of: Context.Context<Scope.Scope>) =>
          Context.add(Context.add(context, Scope.Scope, Context.get(of, Scope.Scope)), CurrentCaller, findFollower(of))
        )
      ),
    capacity: maxAccounts,
    idleTimeToLive: grace
  })

  const follow = (account: TonAddress.Account) =>
    Effect.catchIf(
      RcMap.get(accounts, TonAddress.formatRaw(account)),
      Cause.isExceededCapacityError,
      () =>
        Effect.fail(
          new Overloaded({ retryAfter: 10, detail: `${maxAccounts} accounts are followed, which is the limit` })
        )
    )

  const latestPosition = ({ address }: { readonly address: string }): Effect.Effect<Position, TransactionsFailure> =>
    Effect.fromResult(TonAddress.parse(address)).pipe(
      Effect.flatMap((account) =>
        follow(account).pipe(
          Effect.flatMap((history) => history.latestPosition),
          // the account is no longer polled, so the next caller begins again
          Effect.tapError((error) =>
            classify(error).kind === "failed"
              ? RcMap.invalidate(accounts, TonAddress.formatRaw(account))
              : Effect.void
          )
        )
      ),
      Effect.scoped
    )

  const transactions = ({ address, after }: TransactionsRequest): Stream.Stream<
    AccountTransaction,
    TransactionsFailure
  > =>
    Stream.unwrap(
      Effect.fromResult(TonAddress.parse(address)).pipe(
        Effect.flatMap(follow),
        Effect.map((history) => Stream.interruptWhen(history.transactions(after), Deferred.await(closed)))
      )
    )

  const parseAccounts = ({ master, owner }: JettonWalletRequest) =>
    Effect.fromResult(Result.all([TonAddress.parse(owner), TonAddress.parse(master)]))

  /** Returns the jetton wallet of an owner, as derived by the master contract. */
  const findWallet = Effect.fnUntraced(function*(owner: TonAddress.Account, master: TonAddress.Account) {
    const { encodeAddress, readAddress } = yield* cells
    const address = TonAddress.canonical(master)
    const params = { address, method: "get_wallet_address", stack: [["tvm.Slice", encodeAddress(owner)]] }
    yield* pace
    const response = yield* source().backend.read({ form: "rpc", operation: runGetMethod, params: Json.write(params) })
    const result = yield* readGetMethod(params, upstream, yield* TokenProtocol.readResponse(response))
    const wallet = decodeWallet(result)
    const raw = wallet._tag === "None" ? undefined : readAddress(wallet.value.stack[0][1].bytes)
    return raw ?? (yield* new TokenNotFound({
      address,
      contractType: "none",
      detail: `The contract at ${address} derives no jetton wallets: its get_wallet_address returned no address`
    }))
  })

  const wallets = yield* Cache.makeWith((key: string) => {
    const [owner = "", master = ""] = key.split(" ")
    return Effect.flatMap(parseAccounts({ owner, master }), (accounts) => findWallet(...accounts)).pipe(
      Effect.updateContext((of: Context.Context<never>) => Context.add(context, CurrentCaller, findFollower(of)))
    )
  }, { capacity: maxAccounts, timeToLive: (exit) => Exit.isSuccess(exit) ? Duration.infinity : Duration.zero })

  const jettonWallet = (request: JettonWalletRequest): Effect.Effect<string, JettonTransfersFailure> =>
    Effect.flatMap(
      parseAccounts(request),
      (accounts) => Cache.get(wallets, accounts.map(TonAddress.formatRaw).join(" "))
    )

  /** Returns the same wallet as {@link jettonWallet}, but repeats the request after temporary failures. */
  const awaitWallet = (request: JettonWalletRequest, attempt = 0): Effect.Effect<string, JettonTransfersFailure> =>
    jettonWallet(request).pipe(Effect.catch((error) => {
      const { kind, retryAfter } = classify(error)
      const again = Effect.suspend(() => awaitWallet(request, attempt + 1))
      return kind === "retry"
        ? Effect.andThen(pauseAfter(attempt, retryAfter), again)
        : Effect.fail(error)
    }))

  const jettonTransfers = ({ after, master, owner }: JettonTransfersRequest): Stream.Stream<
    JettonTransfer,
    JettonTransfersFailure
  > =>
    Stream.unwrap(Effect.gen(function*() {
      const { readTransfer } = yield* cells
      const [ownerAccount, masterAccount] = yield* parseAccounts({ owner, master })
      const wallet = yield* awaitWallet({ owner, master })
      const accounts = {
        owner: TonAddress.formatRaw(ownerAccount),
        master: TonAddress.formatRaw(masterAccount),
        wallet
      }
      return transactions({ address: wallet, ...(after === undefined ? {} : { after }) }).pipe(
        Stream.map((transaction) => readTransfer(transaction, accounts)),
        Stream.filter((transfer) => transfer !== undefined)
      )
    }))

  return { latestPosition, transactions, jettonWallet, jettonTransfers }
})

/** The streams of a token chain. */
export type Streams = Effect.Success<ReturnType<typeof makeStreams>>

/** Makes the streams of the token chain over a backend. The streams end when the scope closes. */
export const make = (backend: Source["backend"], options: Options): Effect.Effect<Streams, never, Scope.Scope> =>
  makeStreams(() => ({ backend, ...options }))

/**
 * The streams of a gateway, which persist when its services are built again from new settings.
 *
 * Provided by `SharedTransactions.layer`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { Transactions } from "@trigate/tokens"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { use } = yield* Transactions.SharedTransactions
 *   const streams = use({ read: () => Effect.never }, Transactions.defaults)
 *   const later = use({ read: () => Effect.never }, { ...Transactions.defaults, requestsPerSecond: 10 })
 *   yield* Console.log(streams === later)
 * })
 *
 * await Effect.runPromise(Effect.provide(program, Transactions.SharedTransactions.layer()))
 * ```
 * ```text
 * true
 * ```
 */
export class SharedTransactions extends Context.Service<SharedTransactions, {
  /** Returns the streams. From now on, all of them, including open ones, read this backend with these limits. */
  readonly use: (backend: Source["backend"], options: Options) => Streams
}>()("@trigate/tokens/transactions/Transactions/SharedTransactions") {
  /** Provides streams whose reads wait for the first backend. Each call returns a new layer with separate streams. */
  static readonly layer = (): Layer.Layer<SharedTransactions> =>
    Layer.effect(
      SharedTransactions,
      Effect.gen(function*() {
        let source: Source = { backend: { read: () => Effect.never }, ...defaults }
        const streams = yield* makeStreams(() => source)
        return SharedTransactions.of({
          use: (backend, options) => {
            source = { backend, ...options }
            return streams
          }
        })
      })
    )
}
