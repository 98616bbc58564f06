/**
 * `Journal` in a SQL database, on SQLite or Postgres: an entry is written before its bytes leave, so that a crash loses none.
 *
 * Every step has a deadline. While the database is away, signed actions are refused as not sent; nothing else notices.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import type * as Schema from "effect/Schema"
import type { MigrationError } from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as Journal from "./Journal.ts"
import * as JournalMetrics from "./JournalMetrics.ts"
import * as JournalTable from "./JournalTable.ts"

/** What is kept, and for how long the database is waited for. */
export interface Options extends Journal.Options {
  /** Whose actions these are: one database may serve the gateways of several networks; `mainnet` when not given. */
  readonly network?: string
  /** After how long an entry that nobody settled counts as `unknown`; 1 minute when not given. Longer than a sending lasts. */
  readonly lease?: Duration.Input
  /** How long the database may take for one step; 1 second when not given. */
  readonly deadline?: Duration.Input
}

type Fault = SqlError | MigrationError | Schema.SchemaError

const hour = 3_600_000

const locked = Schedule.spaced("20 millis")

const isLocked = (fault: Fault): boolean => fault._tag === "SqlError" && fault.reason._tag === "LockTimeoutError"

const make = Effect.fnUntraced(function*(options: Options, prepare: boolean) {
  const sql = yield* SqlClient.SqlClient
  const scope = yield* Effect.scope
  const { keep, ...limits } = Journal.limitsOf(options)
  const lease = Duration.toMillis(Duration.fromInputUnsafe(options.lease ?? "1 minute"))
  const deadline = Duration.fromInputUnsafe(options.deadline ?? "1 second")
  const table = JournalTable.make(sql, options.network ?? "mainnet")
  const run = yield* Random.nextInt
  const start = yield* Clock.currentTimeMillis
  const isFile = sql.onDialectOrElse({ sqlite: () => true, orElse: () => false })
  let sendings = 0
  let inFlight = 0
  let prunedAt = start
  let away = false

  /** Why a step failed; a server's own words may hold a name that belongs to its address. */
  const wordsOf = (fault: Fault): string => {
    if (fault._tag !== "SqlError") return `is not readable (${fault._tag})`
    const { reason } = fault
    const words = isFile && "message" in reason ? reason.message : undefined
    return `is away (${words === undefined ? reason._tag : words})`
  }

  const tell = Effect.fnUntraced(function*(isAway: boolean, why: string) {
    if (away === isAway) return
    away = isAway
    yield* JournalMetrics.setAway(isAway)
    yield* isAway
      ? Effect.logError(`Signed actions are refused: the journal of unanswered actions ${why}`)
      : Effect.logInfo("The journal of unanswered actions is back")
  })

  /**
   * One step within the deadline.
   *
   * A late one is broken off behind the caller's back, since that can take as long as the step itself; `late` runs after it.
   */
  const step = <A>(effect: Effect.Effect<A, Fault>, late: Effect.Effect<void> = Effect.void) =>
    Effect.gen(function*() {
      const stepping = effect.pipe(
        Effect.retry({ schedule: locked, while: isLocked }),
        Effect.interruptible
      )
      const fiber = yield* Effect.forkIn(stepping, scope, { startImmediately: true })
      return yield* Fiber.join(fiber).pipe(
        Effect.mapError(wordsOf),
        Effect.onInterrupt(() => Effect.forkIn(Effect.andThen(Fiber.interrupt(fiber), late), scope)),
        Effect.interruptible,
        Effect.timeoutOrElse({
          duration: deadline,
          orElse: () => Effect.fail(`is away (no answer within ${Duration.format(deadline)})`)
        })
      )
    })

  const told = <A>(stepped: Effect.Effect<A, string>) =>
    Effect.tapError(Effect.tap(stepped, () => tell(false, "")), (why) => tell(true, why))

  const owed = new Map<string, Effect.Effect<unknown, Fault>>()
  const payOne = Effect.suspend(() => {
    const [next] = owed
    if (next === undefined) return Effect.void
    const [token, due] = next
    return Effect.andThen(told(step(due)), Effect.sync(() => owed.delete(token)))
  })
  const pay: Effect.Effect<void> = payOne.pipe(
    Effect.retry(Schedule.spaced("1 second")),
    Effect.ignore,
    Effect.repeat({ while: () => owed.size > 0 }),
    Effect.asVoid
  )

  /** Does later what could not be done now, so that the journal does not go on claiming what is settled. */
  const owe = (token: string, due: Effect.Effect<unknown, Fault>) =>
    Effect.suspend(() => {
      const isFirst = owed.size === 0
      // over the bound an answered action stays listed, which is no lie about what was sent
      if (owed.size < limits.capacity) owed.set(token, due)
      return isFirst ? Effect.asVoid(Effect.forkIn(Effect.delay(pay, "1 second"), scope)) : Effect.void
    })

  const recount = Effect.ignore(
    Effect.flatMap(step(table.countUnknown), (unknown) => JournalMetrics.report({ unknown }))
  )

  const prune = Effect.gen(function*() {
    prunedAt = yield* Clock.currentTimeMillis
    yield* Journal.tellExpired(yield* table.prune(prunedAt - keep))
  })

  let isReady = !prepare
  const prepared = Effect.gen(function*() {
    yield* JournalTable.migrate
    if (isFile) yield* table.orphan
    yield* prune
    isReady = true
  }).pipe(Effect.provideService(SqlClient.SqlClient, sql))
  const ready = Effect.suspend(() => isReady ? Effect.void : prepared)

  const settle = (id: string, token: string, isDoubtful: boolean) => (settlement: Journal.Settlement) =>
    Effect.gen(function*() {
      inFlight -= 1
      const due = table.settle(id, token, settlement)
      yield* told(step(due, owe(token, due))).pipe(Effect.catch(() => owe(token, due)))
      yield* JournalMetrics.report({ inFlight })
      if (settlement === "unknown" || isDoubtful) yield* recount
    })

  const open = Effect.fn("Journal.open")(function*(sending: Journal.Sending) {
    const now = yield* Clock.currentTimeMillis
    const id = Journal.idOf(sending)
    sendings += 1
    const token = `${start.toString(36)}.${run.toString(36)}.${sendings.toString(36)}`
    const row = { ...sending, token, openedAt: now, leaseUntil: now + lease }
    const takeBack = table.settle(id, token, "notTaken")
    const insert = table.insert(row, limits)
    const write = Effect.filterOrElse(
      Effect.andThen(ready, insert),
      (written) => written !== "full",
      () => Effect.andThen(prune, insert)
    )
    const written = yield* told(step(write, owe(token, takeBack))).pipe(
      // a connection that broke may have carried the statement through
      Effect.tapError(() => isFile ? Effect.void : owe(token, takeBack)),
      Effect.mapError(Journal.notSent)
    )
    if (written === "full") return yield* Journal.notSent(Journal.full)
    inFlight += 1
    yield* JournalMetrics.report({ inFlight })
    // a database that is away is told of by the sends; what could not be pruned is with the next hour's
    if (now - prunedAt > hour) yield* Effect.forkIn(Effect.ignore(step(prune)), scope)
    const isDoubtful = written === "doubtful"
    return yield* Journal.opened(isDoubtful, settle(id, token, isDoubtful))
  })

  const ask = <A>(effect: Effect.Effect<A, Fault>) => Effect.mapError(step(effect), Journal.unreadable)

  // the first action should not wait for tables, and a fault should be told at the start
  if (prepare) yield* Effect.ignore(Effect.andThen(told(step(ready)), recount))

  return Journal.Journal.of({
    open,
    unanswered: ask(Effect.flatMap(Clock.currentTimeMillis, table.list)),
    forget: (id) => Effect.tap(ask(table.forget(id)), () => recount)
  })
})

/**
 * The journal of a gateway; creates its table.
 *
 * A SQLite file belongs to one gateway: what another run left open there is `unknown` at once. In Postgres, which replicas
 * share, it is so after the lease.
 */
export const layer = (options: Options = {}): Layer.Layer<Journal.Journal, never, SqlClient.SqlClient> =>
  Layer.effect(Journal.Journal, make(options, true))

/** The journal as a tool sees it: changes nothing by itself, and is unavailable where no gateway has made one. */
export const layerExisting = (options: Options = {}): Layer.Layer<Journal.Journal, never, SqlClient.SqlClient> =>
  Layer.effect(Journal.Journal, make(options, false))
