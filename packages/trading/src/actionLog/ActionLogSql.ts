/**
 * `ActionLog` in a SQL database, SQLite or Postgres: an action is on disk before its first byte is sent.
 *
 * The primary key (network, claimant, nonce) lets only one replica claim a nonce, so a Postgres is all that replicas
 * need to share. Every step has a deadline. While the database is unreachable, signed actions are refused and nothing
 * is sent.
 */
import * as SqlStep from "@trigate/domain/SqlStep"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import * as SqlClient from "effect/sql/SqlClient"
import * as ActionLogTable from "../internal/actionLog/ActionLogTable.ts"
import * as ActionLog from "./ActionLog.ts"
import { metrics } from "./ActionLogMetrics.ts"
import * as ActionLogQuota from "./ActionLogQuota.ts"
import * as ActionTrace from "./ActionTrace.ts"
import * as LoggedAction from "./LoggedAction.ts"

/** The retention limits, and the timeouts of the database. */
export interface Options extends ActionLog.Options {
  /** A name that separates the action logs of several networks in one database. Default: `mainnet`. */
  readonly network?: string
  /**
   * The time after which an unsettled `sent` action becomes `unknown`. It must exceed the duration of an attempt.
   * Default: 1 minute.
   */
  readonly lease?: ActionLog.Lease
  /** Timeout of one step in the database. Default: 1 second. */
  readonly deadline?: Duration.Input
  /**
   * Time between two counts of the unanswered actions, for the gauges. A count includes actions of crashed replicas.
   * Default: 15 seconds.
   */
  readonly countEvery?: Duration.Input
}

// milliseconds between counts of the unsettled actions while the log is full
const countInterval = 1000

const awayGauge = metrics.actionLogDegraded.series({})

/** Returns why a database step failed. Omits the message of a Postgres server, which may contain its host name. */
const describeFault = (fault: SqlStep.SqlFault, isFile: boolean): string => {
  if (fault._tag !== "SqlError") return `is not readable (${fault._tag})`
  const { reason } = fault
  return `is unreachable (${
    isFile && "message" in reason && reason.message !== undefined ? reason.message : reason._tag
  })`
}

const make = Effect.fnUntraced(function*(options: Options, prepare: boolean) {
  const sql = yield* SqlClient.SqlClient
  const scope = yield* Effect.scope
  const inScope = SqlStep.runIn(scope)
  const { capacity, keep, maxBytes, settledCapacity } = ActionLog.resolveLimits(options)
  const lease = ActionLog.leaseMillis(options.lease)
  const deadline = Duration.fromInputUnsafe(options.deadline ?? "1 second")
  const table = ActionLogTable.make(sql, options.network ?? "mainnet")
  const isFile = sql.onDialectOrElse({ sqlite: () => true, orElse: () => false })
  const start = yield* Clock.currentTimeMillis
  const run = `${start.toString(36)}.${(yield* Random.nextInt).toString(36)}`
  const claimsBetweenPrunes = Math.min(1000, settledCapacity.familiar)
  const signers = ActionLogQuota.makeSigners()
  let claims = 0
  let inFlight = 0
  // the unanswered actions of all replicas: counted in the table, then updated with this process's own claims
  const room = ActionLogQuota.make({ capacity, maxBytes })
  let countedAt = 0
  // the earliest time at which a counted action expires
  let firstExpiry = 0
  let prunedAt = start
  let isAway = false

  const tell = Effect.fnUntraced(function*(isNowAway: boolean, why: string) {
    if (isAway === isNowAway) return
    isAway = isNowAway
    yield* Metric.update(awayGauge, isAway ? 1 : 0)
    yield* isAway
      ? Effect.logError(`Signed actions are refused: the action log ${why}`)
      : Effect.logInfo("The action log is reachable again")
  })

  /**
   * Runs one step within the deadline. Fails with a message. If the step exceeds the deadline, the effect `late` runs
   * after the step has ended.
   */
  const step = <A>(effect: Effect.Effect<A, SqlStep.SqlFault>, late?: Effect.Effect<void>) =>
    inScope(Effect.retry(effect, { schedule: SqlStep.lockedSchedule, while: SqlStep.isLocked }), late).pipe(
      Effect.mapError((fault) => describeFault(fault, isFile)),
      Effect.interruptible,
      Effect.timeoutOrElse({
        duration: deadline,
        orElse: () => Effect.fail(`is unreachable (no response within ${Duration.format(deadline)})`)
      })
    )

  const told = <A>(stepped: Effect.Effect<A, string>) =>
    Effect.tapError(Effect.tap(stepped, () => tell(false, "")), (why) => tell(true, why))

  const deferred = new Map<string, Effect.Effect<unknown, SqlStep.SqlFault>>()
  const writeFirst = Effect.suspend(() => {
    const [first] = deferred
    if (first === undefined) return Effect.void
    const [token, write] = first
    return Effect.andThen(told(step(write)), Effect.sync(() => deferred.delete(token)))
  })
  const writeDeferred = writeFirst.pipe(
    Effect.retry(Schedule.spaced("1 second")),
    Effect.ignore,
    Effect.repeat({ while: () => deferred.size > 0 })
  )

  /** Retries a failed write later. */
  const defer = (token: string, write: Effect.Effect<unknown, SqlStep.SqlFault>) =>
    Effect.suspend(() => {
      const isFirst = deferred.size === 0
      // if too many writes are deferred, this write is dropped: the settled action stays `sent`, and becomes `unknown`
      // after its lease
      if (deferred.size < capacity) deferred.set(token, write)
      return isFirst ? Effect.asVoid(Effect.forkIn(Effect.delay(writeDeferred, "1 second"), scope)) : Effect.void
    })

  const reportInFlight = (change: number) => {
    inFlight += change
    return Metric.update(ActionLog.gauges.sent, inFlight)
  }

  const counting = Effect.gen(function*() {
    countedAt = yield* Clock.currentTimeMillis
    const holdings = yield* table.holdings(countedAt)
    room.reset(holdings)
    firstExpiry = holdings.reduce((first, holding) => Math.min(first, holding.firstExpiry), Infinity)
    yield* Metric.update(ActionLog.gauges.unknown, holdings.reduce((sum, { unknown }) => sum + unknown, 0))
    const oldest = holdings.flatMap(({ oldestUnknown }) => oldestUnknown ?? [])
    yield* Metric.update(ActionLog.gauges.oldest, ActionLog.oldestSeconds(oldest))
  })
  const recount = Effect.ignore(step(counting))

  const makeRoom = Effect.gen(function*() {
    yield* ActionLog.warnExpired(yield* table.dropExpired(yield* Clock.currentTimeMillis))
    yield* counting
  })
  // limits how often the actions are counted while the log is full
  const makeRoomAgain = Effect.flatMap(
    Clock.currentTimeMillis,
    (now) => now < firstExpiry && now - countedAt < countInterval ? Effect.void : makeRoom
  )
  const prune = Effect.gen(function*() {
    yield* table.dropAnswered("familiar", settledCapacity.familiar)
    yield* table.dropAnswered("strangers", settledCapacity.strangers)
    yield* table.dropSigners(yield* Clock.currentTimeMillis)
    yield* makeRoom
    yield* table.dropCloids
  })

  let isReady = !prepare
  const prepared = Effect.gen(function*() {
    yield* ActionLogTable.migrate
    if (isFile) yield* table.orphan
    yield* prune
    isReady = true
  }).pipe(Effect.provideService(SqlClient.SqlClient, sql))
  const ready = Effect.suspend(() => isReady ? Effect.void : prepared)

  const quotaPart = Effect.fnUntraced(function*({ isListed, signer }: LoggedAction.Sending) {
    if (signer === undefined) return "strangers"
    if (isListed || signers.has(signer.toLowerCase())) return "familiar"
    if (!(yield* table.isKnown(signer))) return "strangers"
    signers.add(signer.toLowerCase())
    return "familiar"
  })

  /**
   * Claims a nonce. On success, returns the number of attempts including this one, and the log capacity that they use.
   * Otherwise returns the state of the action that has the nonce, or the exceeded limit of the action log.
   */
  const write = Effect.fnUntraced(function*(sending: LoggedAction.Sending, token: string, now: number) {
    yield* ready
    const part = yield* quotaPart(sending)
    const holding = ActionLogQuota.holdingFor(part, sending)
    let scarcity: ActionLogQuota.Scarcity | undefined
    for (const isLast of [false, true]) {
      scarcity = room.scarcity(part, holding.holder, holding.bytes)
      // an action that is already in the log needs no capacity
      if (scarcity === undefined || (yield* table.standing(sending)).length > 0) {
        const [inserted] = yield* table.insert(sending, part, token, now, lease(), keep)
        if (inserted !== undefined) {
          const cloids = sending.trace === undefined ? [] : ActionTrace.cloids(sending.trace)
          const { nonce } = sending
          if (inserted.sendings === 1) {
            yield* table.noteCloids({ claimant: LoggedAction.claimantId(sending), nonce }, cloids)
          }
          return { sendings: inserted.sendings, holding }
        }
        const [standing] = yield* table.standing(sending)
        if (standing !== undefined && standing.expiresAt > now) {
          return {
            state: standing.state === "sent" && standing.leaseUntil <= now ? "unknown" as const : standing.state,
            isSame: standing.fingerprint === sending.fingerprint
          }
        }
        // the entry that has the nonce has expired
        if (!isLast) yield* makeRoom
      } else if (!isLast) yield* makeRoomAgain
    }
    return { scarcity: scarcity ?? "full" }
  })

  const claim = Effect.fn("ActionLog.claim")(
    function*(sending: LoggedAction.Sending): Effect.fn.Return<LoggedAction.Claim, LoggedAction.ClaimRefusal> {
      const now = yield* Clock.currentTimeMillis
      claims += 1
      const token = `${run}.${claims.toString(36)}`
      const withdrawal = defer(token, table.withdraw(sending, token))
      const written = yield* told(step(write(sending, token, now), withdrawal)).pipe(
        // the statement may have been executed even though the connection broke
        Effect.tapError(() => isFile ? Effect.void : withdrawal),
        Effect.mapError(LoggedAction.notSent)
      )
      const { nonce, signer } = sending
      if ("state" in written) {
        return yield* signer === undefined
          ? ActionLogQuota.overQuota("full")
          : LoggedAction.alreadyUsed(signer, nonce, written.state, written.isSame === true)
      }
      if ("scarcity" in written) return yield* ActionLogQuota.overQuota(written.scarcity)
      yield* reportInFlight(1)
      if (now - prunedAt > ActionLog.pruneInterval || claims % claimsBetweenPrunes === 0) {
        prunedAt = now
        yield* Effect.forkIn(Effect.ignore(step(prune)), scope)
      }
      const isRepeat = written.sendings > 1
      if (!isRepeat) room.add(written.holding)
      return LoggedAction.makeClaim(sending, isRepeat, (remains, settled) =>
        Effect.gen(function*() {
          const isNew = remains === "accepted" && signer !== undefined && !signers.has(signer.toLowerCase())
          const settlement = isNew
            ? Effect.andThen(
              table.settle(sending, token, remains, settled),
              table.know(signer, yield* Clock.currentTimeMillis)
            )
            : table.settle(sending, token, remains, settled)
          yield* reportInFlight(-1)
          if (remains !== "unknown") room.remove(written.holding)
          if (isNew) signers.add(signer.toLowerCase())
          const later = defer(token, settlement)
          yield* told(step(settlement, later)).pipe(Effect.catch(() => later))
          if (remains === "unknown" || isRepeat) yield* recount
        }))
    }
  )

  const probe = Effect.andThen(ready, sql`SELECT 1`)

  const ask = <A>(effect: Effect.Effect<A, SqlStep.SqlFault>) => Effect.mapError(step(effect), LoggedAction.unreadable)

  // creates the table before the first action, so that a failure is reported at startup
  if (prepare) {
    yield* Effect.ignore(told(step(ready)))
    const watch = Effect.suspend(() => isReady ? recount : Effect.void)
    yield* Effect.forkScoped(Effect.forever(Effect.delay(watch, options.countEvery ?? "15 seconds")))
  }

  return ActionLog.ActionLog.of({
    backing: isFile ? "SQLite" : "Postgres",
    tryClaim: () => undefined,
    claim,
    unanswered: ask(Effect.flatMap(Clock.currentTimeMillis, table.list)),
    forget: (fingerprint) => Effect.tap(ask(table.forget(fingerprint)), () => recount),
    find: (reference) => ask(Effect.flatMap(Clock.currentTimeMillis, (now) => table.find(reference, now))),
    // before the table exists, there are no actions
    takeUnknown: Effect.suspend(() =>
      isReady && !isAway ? ask(Effect.flatMap(Clock.currentTimeMillis, table.takeUnknown)) : Effect.succeed([])
    ),
    untilTurn: Effect.sleep(ActionLog.turnEvery),
    conclude: (fingerprint, conclusion) =>
      Effect.tap(
        ask(Effect.flatMap(Clock.currentTimeMillis, (now) => table.conclude(fingerprint, conclusion, now))),
        () => recount
      ),
    used: Effect.sync(room.used),
    // a file that can be read may refuse writes, for example if the disk is full, so a successful read does not reset
    // `isAway` for a file
    isUp: Effect.map(Effect.isSuccess(isFile ? step(probe) : told(step(probe))), (answers) => answers && !isAway)
  })
})

/**
 * Provides the action log of a gateway. Creates its table.
 *
 * A SQLite file belongs to one gateway: actions that an earlier run left `sent` become `unknown` immediately. In
 * Postgres, which several replicas can share, they become `unknown` after the lease.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { SqliteClient } from "@trigate/archive"
 * import { ActionLog, ActionLogSql } from "@trigate/trading"
 * import { Console, Effect, Layer } from "effect"
 *
 * const log = Layer.provide(ActionLogSql.layer(), SqliteClient.layer({ file: "actions.sqlite", mode: "create" }))
 *
 * const program = ActionLog.ActionLog.use(({ unanswered }) => Effect.flatMap(unanswered, Console.log))
 *
 * await Effect.runPromise(Effect.provide(program, log))
 * ```
 * ```text
 * []
 * ```
 */
export const layer = (options: Options = {}): Layer.Layer<ActionLog.ActionLog, never, SqlClient.SqlClient> =>
  Layer.effect(ActionLog.ActionLog, make(options, true))

/**
 * Provides the action log for a tool that does not send actions, such as `trigate actions`. Creates no table, and
 * changes an entry only if the tool calls `forget` or `conclude`.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerExisting = (options: Options = {}): Layer.Layer<ActionLog.ActionLog, never, SqlClient.SqlClient> =>
  Layer.effect(ActionLog.ActionLog, make(options, false))
