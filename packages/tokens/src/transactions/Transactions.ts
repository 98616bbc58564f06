/** Streams of the token chain: an account's transactions, and the jetton transfers that an owner receives. */
import * as Json from "@trigate/domain/encoding/Json"
import { Overloaded } from "@trigate/domain/errors/CallerError"
import type { CommonFailure } from "@trigate/domain/errors/GatewayError"
import type { InvalidAddress } from "@trigate/domain/errors/RequestError"
import type { HistoryUnavailable } from "@trigate/domain/errors/ResourceError"
import { TokenNotFound } from "@trigate/domain/errors/ResourceError"
import { malformed } from "@trigate/domain/operations/Protocol"
import type {
  AccountTransaction,
  JettonTransfer,
  JettonTransfersRequest,
  JettonWalletRequest,
  Position,
  TransactionsRequest
} from "@trigate/domain/tokens/AccountTransaction"
import { tokenRpcOperations } from "@trigate/domain/tokens/TokenOperations"
import type { TokenBackend } from "@trigate/domain/tokens/TokenProtocol"
import * as TokenRpc from "@trigate/domain/tokens/TokenRpc"
import * as TonAddress from "@trigate/domain/tokens/TonAddress"
import * as Cache from "effect/Cache"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as RcMap from "effect/RcMap"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import type { PageFailure, PageRequest } from "./AccountHistory.ts"
import * as AccountHistory from "./AccountHistory.ts"

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
const readTransactions = TokenRpc.makeReader(getTransactions)
const readGetMethod = TokenRpc.makeReader(runGetMethod)
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

/** Makes a limiter that spaces requests evenly, in order of arrival. */
const makePace = (requestsPerSecond: () => number) =>
  Effect.map(Semaphore.make(1), (turn) => {
    let next = 0
    return turn.withPermits(1)(Effect.gen(function*() {
      const now = yield* Clock.currentTimeMillis
      if (now < next) yield* Effect.sleep(next - now)
      next = Math.max(now, next) + 1_000 / requestsPerSecond()
    }))
  })

/**
 * Loads the decoder of transaction cells when a stream first needs it. Programs without such streams thus do not load
 * the decoder's library, `@ton/core`.
 */
const loadCells = Effect.cached(Effect.promise(() => import("./TransactionCell.ts")))

/** The node that streams read, and the limits of these reads. */
interface Source extends Options {
  readonly backend: Pick<TokenBackend, "read">
}

const makeStreams = Effect.fnUntraced(function*(source: () => Source) {
  const pace = yield* makePace(() => source().requestsPerSecond)
  const cells = yield* loadCells
  // reads that callers share run in this context: in that of the first caller, its quota would limit them for all callers
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
    const rows = yield* readTransactions({ address }, upstream, yield* TokenRpc.readAnswer(response))
    const transactions = Result.flatMap(
      Result.mapError(decodeRows(rows), () => "Expected transactions with their data"),
      (decoded) => Result.all(decoded.map(({ data }) => read(data, account)))
    )
    return yield* Effect.mapError(Effect.fromResult(transactions), (issue) => malformed(upstream, issue))
  })

  const accounts = yield* RcMap.make({
    lookup: (address: string) =>
      Effect.flatMap(
        Effect.fromResult(TonAddress.parse(address)),
        (account) =>
          AccountHistory.make<ReadFailure>(
            (request) => Effect.mapError(readPage(account, request), (error) => ({ ...classify(error), error })),
            { address, pollInterval: source().pollInterval }
          )
      ).pipe(
        Effect.updateContext((of: Context.Context<Scope.Scope>) =>
          Context.add(context, Scope.Scope, Context.get(of, Scope.Scope))
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

  /** Returns the jetton wallet of an owner, as derived by the master contract. */
  const findWallet = Effect.fnUntraced(function*(owner: TonAddress.Account, master: TonAddress.Account) {
    const { encodeAddress, readAddress } = yield* cells
    const address = TonAddress.canonical(master)
    const params = { address, method: "get_wallet_address", stack: [["tvm.Slice", encodeAddress(owner)]] }
    yield* pace
    const response = yield* source().backend.read({ form: "rpc", operation: runGetMethod, params: Json.write(params) })
    const result = yield* readGetMethod(params, upstream, yield* TokenRpc.readAnswer(response))
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
    return Effect.flatMap(
      Effect.fromResult(Result.all([TonAddress.parse(owner), TonAddress.parse(master)])),
      ([ownerAccount, masterAccount]) => findWallet(ownerAccount, masterAccount)
    ).pipe(Effect.updateContext((_: Context.Context<never>) => context))
  }, { capacity: maxAccounts, timeToLive: (exit) => Exit.isSuccess(exit) ? Duration.infinity : Duration.zero })

  const jettonWallet = ({ master, owner }: JettonWalletRequest): Effect.Effect<string, JettonTransfersFailure> =>
    Effect.fromResult(Result.all([TonAddress.parse(owner), TonAddress.parse(master)])).pipe(
      Effect.flatMap(([ownerAccount, masterAccount]) =>
        Cache.get(wallets, `${TonAddress.formatRaw(ownerAccount)} ${TonAddress.formatRaw(masterAccount)}`)
      )
    )

  /** Returns the same wallet as {@link jettonWallet}, but repeats the request after temporary failures. */
  const awaitWallet = (request: JettonWalletRequest, attempt = 0): Effect.Effect<string, JettonTransfersFailure> =>
    jettonWallet(request).pipe(Effect.catch((error) => {
      const { kind, retryAfter } = classify(error)
      const again = Effect.suspend(() => awaitWallet(request, attempt + 1))
      return kind === "retry"
        ? Effect.andThen(AccountHistory.pauseAfter(attempt, retryAfter), again)
        : Effect.fail(error)
    }))

  const jettonTransfers = ({ after, master, owner }: JettonTransfersRequest): Stream.Stream<
    JettonTransfer,
    JettonTransfersFailure
  > =>
    Stream.unwrap(Effect.gen(function*() {
      const { readTransfer } = yield* cells
      const ownerAccount = yield* Effect.fromResult(TonAddress.parse(owner))
      const masterAccount = yield* Effect.fromResult(TonAddress.parse(master))
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
