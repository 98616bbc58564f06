/**
 * `ActionLog` in a SQL database, SQLite or Postgres: an action is on disk before its first byte is sent.
 *
 * The primary key (network, claimant, nonce) is the claim, so replicas need only a shared Postgres. Every step has a
 * deadline. While the database is unreachable, signed actions are refused and nothing is sent.
 */
import type { ActionReference } from "@trigate/domain/actions/ActionRecord"
import { Settled } from "@trigate/domain/actions/ActionRecord"
import { Address } from "@trigate/domain/encoding/Hex"
import * as Json from "@trigate/domain/encoding/Json"
import { Millis } from "@trigate/domain/Time"
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as ActionLog from "./ActionLog.ts"
import { metrics } from "./ActionLogMetrics.ts"
import * as ActionLogQuota from "./ActionLogQuota.ts"
import * as ActionTrace from "./ActionTrace.ts"

/** The retention limits, and the timeouts of the database. */
export interface Options extends ActionLog.Options {
  /** Separates the gateways of several networks in one database. Default: `mainnet`. */
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

type StorageFault = SqlError | Migrator.MigrationError | Schema.SchemaError

const createTable = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  const bytes = sql.literal(sql.onDialectOrElse({ sqlite: () => "BLOB", orElse: () => "BYTEA" }))
  // the claimant is the signer, or the fingerprint if the signer is unknown; the body is stored until the action is
  // settled
  yield* sql`CREATE TABLE trigate_actions (
    network TEXT NOT NULL,
    claimant TEXT NOT NULL,
    nonce BIGINT NOT NULL,
    fingerprint TEXT NOT NULL,
    action_type TEXT NOT NULL,
    body ${bytes},
    size INTEGER NOT NULL,
    state TEXT NOT NULL,
    sendings INTEGER NOT NULL,
    token TEXT NOT NULL,
    opened_at BIGINT NOT NULL,
    lease_until BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (network, claimant, nonce)
  )`
  yield* sql`CREATE INDEX trigate_actions_unanswered ON trigate_actions (network, expires_at, size, state)
    WHERE body IS NOT NULL`
  yield* sql`CREATE INDEX trigate_actions_answered ON trigate_actions (network, expires_at) WHERE body IS NULL`
})

const divideActions = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  yield* sql`ALTER TABLE trigate_actions ADD COLUMN part TEXT NOT NULL DEFAULT 'familiar'`
  yield* sql`ALTER TABLE trigate_actions ADD COLUMN caller TEXT NOT NULL DEFAULT ''`
  // the signers with an accepted action
  yield* sql`CREATE TABLE trigate_signers (
    network TEXT NOT NULL,
    signer TEXT NOT NULL,
    accepted_at BIGINT NOT NULL,
    PRIMARY KEY (network, signer)
  )`
  yield* sql`INSERT INTO trigate_signers (network, signer, accepted_at)
    SELECT network, claimant, MAX(opened_at) FROM trigate_actions WHERE state = 'accepted' GROUP BY network, claimant`
})

// replicas of the preceding version neither write nor read the added columns
const settleActions = Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  // how the outcome was determined, as JSON
  yield* sql`ALTER TABLE trigate_actions ADD COLUMN settled TEXT`
  yield* sql`ALTER TABLE trigate_actions ADD COLUMN look_up_at BIGINT NOT NULL DEFAULT 0`
  yield* sql`CREATE INDEX trigate_actions_fingerprint ON trigate_actions (network, fingerprint)`
  yield* sql`CREATE TABLE trigate_action_cloids (
    network TEXT NOT NULL,
    cloid TEXT NOT NULL,
    claimant TEXT NOT NULL,
    nonce BIGINT NOT NULL,
    PRIMARY KEY (network, cloid, claimant, nonce)
  )`
})

const migrate = Migrator.make({})({
  loader: Migrator.fromRecord({
    "0002_create_actions": createTable,
    "0003_divide_actions": divideActions,
    "0004_settle_actions": settleActions
  }),
  table: "trigate_migrations"
})

// Postgres returns a BIGINT as a bigint, SQLite as a number
const Integer = Schema.Union([
  Millis,
  Schema.BigInt.pipe(Schema.decodeTo(Millis, SchemaTransformation.transform({ decode: Number, encode: BigInt })))
])
const decodeInserted = Schema.decodeUnknownEffect(Schema.Array(Schema.Struct({ sendings: Integer })))
const decodeStanding = Schema.decodeUnknownEffect(Schema.Array(Schema.Struct({
  state: Schema.Literals(["sent", "accepted", "rejected", "unknown", "forgotten"]),
  fingerprint: Schema.String,
  leaseUntil: Integer,
  expiresAt: Integer
})))
const decodeHoldings = Schema.decodeUnknownEffect(Schema.Array(Schema.Struct({
  part: Schema.Literals(["familiar", "strangers"]),
  holder: Schema.String,
  count: Integer,
  bytes: Integer,
  unknown: Integer,
  oldestUnknown: Schema.NullOr(Integer),
  firstExpiry: Integer
})))
const decodeListed = Schema.decodeUnknownEffect(Schema.Array(Schema.Struct({
  claimant: Schema.String,
  nonce: Integer,
  fingerprint: Schema.String,
  actionType: Schema.String,
  body: Schema.Uint8Array,
  openedAt: Integer,
  leaseUntil: Integer,
  state: Schema.Literals(["sent", "unknown"])
})))
const SettledText = Schema.NullOr(Schema.fromJsonString(Settled))
const decodeFound = Schema.decodeUnknownEffect(Schema.Array(Schema.Struct({
  claimant: Schema.String,
  nonce: Integer,
  fingerprint: Schema.String,
  state: Schema.Literals(["sent", "accepted", "rejected", "unknown", "forgotten"]),
  leaseUntil: Integer,
  body: Schema.NullOr(Schema.Uint8Array),
  settled: SettledText
})))
const decodeTaken = Schema.decodeUnknownEffect(Schema.Array(Schema.Struct({
  claimant: Schema.String,
  nonce: Integer,
  fingerprint: Schema.String,
  openedAt: Integer,
  body: Schema.Uint8Array
})))
const decodeDue = Schema.decodeUnknownEffect(Schema.Array(Schema.Struct({
  claimant: Schema.String,
  nonce: Integer,
  openedAt: Integer,
  lookUpAt: Integer
})))
const isAddress = Schema.is(Address)

/** Encodes how an outcome was determined; `null` if there is nothing to record. */
const printSettled = (settled: Settled | undefined): string | null =>
  settled === undefined ? null : Json.stringify(settled)

const toIdentity = ({ claimant, fingerprint, nonce }: { claimant: string; fingerprint: string; nonce: number }) => ({
  fingerprint,
  nonce,
  ...(isAddress(claimant) ? { signer: claimant } : {})
})

// milliseconds between counts of the unsettled actions while the log is full
const countInterval = 1000

/** The statements on the entries of one network, valid in SQLite and Postgres. */
const statements = (sql: SqlClient.SqlClient, network: string) => {
  const ours = sql`network = ${network}`
  const entry = (sending: ActionLog.Sending) =>
    sql`${ours} AND claimant = ${ActionLog.claimantId(sending)} AND nonce = ${sending.nonce}`
  const held = (sending: ActionLog.Sending, token: string) =>
    sql`${entry(sending)} AND token = ${token} AND state = 'sent'`

  /** Stores the client order IDs of an action, by which `find` looks it up. */
  const noteCloids = (
    { claimant, nonce }: { readonly claimant: string; readonly nonce: number },
    cloids: ReadonlyArray<string>
  ): Effect.Effect<unknown, SqlError> => {
    const rows: ReadonlyArray<Record<string, unknown>> = cloids.map((cloid) => ({ network, cloid, claimant, nonce }))
    return Arr.isReadonlyArrayNonEmpty(rows)
      ? sql`INSERT INTO trigate_action_cloids ${sql.insert(rows)} ON CONFLICT DO NOTHING`
      : Effect.void
  }

  return {
    /**
     * Inserts an action, or takes over an action with the same content that is not being sent. Returns no row if
     * neither is possible.
     */
    insert: (
      sending: ActionLog.Sending,
      part: ActionLogQuota.Part,
      token: string,
      now: number,
      lease: number,
      keep: number
    ) =>
      Effect.flatMap(
        sql`INSERT INTO trigate_actions ${
          sql.insert({
            network,
            claimant: ActionLog.claimantId(sending),
            part,
            caller: sending.caller,
            nonce: sending.nonce,
            fingerprint: sending.fingerprint,
            action_type: sending.actionType,
            body: sending.body,
            size: sending.body.length,
            state: "sent",
            sendings: 1,
            token,
            opened_at: now,
            lease_until: now + lease,
            expires_at: ActionLog.expiryTime(sending.nonce, now, keep)
          })
        }
        ON CONFLICT (network, claimant, nonce) DO UPDATE SET
          state = 'sent', sendings = trigate_actions.sendings + 1, token = excluded.token,
          lease_until = excluded.lease_until, expires_at = excluded.expires_at
        WHERE trigate_actions.fingerprint = excluded.fingerprint
          AND trigate_actions.expires_at > excluded.opened_at
          AND (trigate_actions.state = 'unknown' OR (trigate_actions.state = 'sent'
            AND (trigate_actions.lease_until <= excluded.opened_at
              OR trigate_actions.claimant = trigate_actions.fingerprint)))
        RETURNING sendings`,
        decodeInserted
      ),
    standing: (sending: ActionLog.Sending) =>
      Effect.flatMap(
        sql`SELECT state, fingerprint, lease_until AS "leaseUntil", expires_at AS "expiresAt"
          FROM trigate_actions WHERE ${entry(sending)}`,
        decodeStanding
      ),
    settle: (
      sending: ActionLog.Sending,
      token: string,
      remains: ActionLog.Remains,
      settled: Settled | undefined
    ): Effect.Effect<unknown, SqlError> => {
      if (remains === "gone") return sql`DELETE FROM trigate_actions WHERE ${held(sending, token)}`
      if (remains === "unknown") return sql`UPDATE trigate_actions SET state = 'unknown' WHERE ${held(sending, token)}`
      if (remains === "accepted") {
        return sql`UPDATE trigate_actions SET state = 'accepted', part = 'familiar', body = NULL, size = 0,
            settled = ${printSettled(settled)}
          WHERE ${held(sending, token)}`
      }
      return sql`UPDATE trigate_actions SET state = ${remains}, body = NULL, size = 0, settled = ${
        printSettled(settled)
      } WHERE ${held(sending, token)}`
    },
    /** Reverts an insert that may have been executed after its caller stopped waiting. */
    withdraw: (sending: ActionLog.Sending, token: string) =>
      Effect.andThen(
        sql`DELETE FROM trigate_actions WHERE ${held(sending, token)} AND sendings = 1`,
        sql`UPDATE trigate_actions SET state = 'unknown' WHERE ${held(sending, token)}`
      ),
    /** Drops expired actions. Returns the number of unsettled ones among them. */
    dropExpired: Effect.fnUntraced(function*(now: number) {
      yield* sql`DELETE FROM trigate_actions WHERE ${ours} AND body IS NULL AND expires_at <= ${now}`
      const gone = yield* sql`DELETE FROM trigate_actions
        WHERE ${ours} AND body IS NOT NULL AND expires_at <= ${now} RETURNING nonce`
      return gone.length
    }),
    /** Drops the oldest settled actions of a part beyond its limit. */
    dropAnswered: (part: ActionLogQuota.Part, limit: number) =>
      sql`DELETE FROM trigate_actions WHERE ${ours} AND part = ${part} AND body IS NULL AND expires_at <= (
        SELECT expires_at FROM trigate_actions WHERE ${ours} AND part = ${part} AND body IS NULL
        ORDER BY expires_at DESC LIMIT 1 OFFSET ${limit})`,
    isKnown: (signer: Address) =>
      Effect.map(
        sql`SELECT 1 FROM trigate_signers WHERE ${ours} AND signer = ${signer.toLowerCase()}`,
        (rows) => rows.length > 0
      ),
    know: (signer: Address, now: number) =>
      sql`INSERT INTO trigate_signers ${sql.insert({ network, signer: signer.toLowerCase(), accepted_at: now })}
        ON CONFLICT (network, signer) DO UPDATE SET accepted_at = excluded.accepted_at`,
    dropSigners: (now: number) =>
      sql`DELETE FROM trigate_signers WHERE ${ours} AND (accepted_at <= ${
        now - ActionLogQuota.knownFor
      } OR accepted_at <= (
        SELECT accepted_at FROM trigate_signers WHERE ${ours}
        ORDER BY accepted_at DESC LIMIT 1 OFFSET ${ActionLogQuota.maxSigners}))`,
    forget: Effect.fnUntraced(function*(fingerprint: string) {
      const found = sql`${ours} AND body IS NOT NULL AND fingerprint = ${fingerprint}`
      const gone = yield* sql`DELETE FROM trigate_actions WHERE ${found} AND claimant = fingerprint RETURNING nonce`
      const kept = yield* sql`UPDATE trigate_actions SET state = 'forgotten', body = NULL, size = 0
        WHERE ${found} RETURNING nonce`
      return gone.length + kept.length > 0
    }),
    noteCloids,
    dropCloids: sql`DELETE FROM trigate_action_cloids WHERE ${ours} AND NOT EXISTS (
      SELECT 1 FROM trigate_actions WHERE trigate_actions.network = trigate_action_cloids.network
        AND trigate_actions.claimant = trigate_action_cloids.claimant
        AND trigate_actions.nonce = trigate_action_cloids.nonce)`,
    find: (reference: ActionReference, now: number) => {
      const named = "id" in reference
        ? sql`fingerprint = ${reference.id}`
        : "cloid" in reference
        ? sql`(claimant, nonce) IN (SELECT claimant, nonce FROM trigate_action_cloids
            WHERE ${ours} AND cloid = ${reference.cloid.toLowerCase()})`
        : sql`claimant = ${reference.signer.toLowerCase()} AND nonce = ${reference.nonce}`
      return Effect.map(
        Effect.flatMap(
          sql`SELECT claimant, nonce, fingerprint, state, lease_until AS "leaseUntil", body, settled
            FROM trigate_actions WHERE ${ours} AND ${named} AND expires_at > ${now} LIMIT 100`,
          decodeFound
        ),
        (rows) =>
          rows.map(({ body, leaseUntil, settled, state, ...row }): ActionLog.Recorded => {
            const shown = state === "sent" && leaseUntil <= now ? "unknown" : state
            const expiresAfter = body === null ? undefined : ActionTrace.read(body).expiresAfter
            return {
              ...toIdentity(row),
              state: ActionLog.shownState(shown, settled ?? undefined),
              ...(settled === null ? {} : { settled }),
              ...(expiresAfter === undefined ? {} : { expiresAfter })
            }
          }).filter((each) => ActionLog.isNamed(reference, each))
      )
    },
    /** Takes the actions of unknown outcome that are due. Concurrent calls never take the same action. */
    takeUnknown: Effect.fnUntraced(function*(now: number) {
      const isUnknown = sql`(state = 'unknown' OR (state = 'sent' AND lease_until <= ${now}))`
      const due = yield* Effect.flatMap(
        sql`SELECT claimant, nonce, opened_at AS "openedAt", look_up_at AS "lookUpAt" FROM trigate_actions
          WHERE ${ours} AND body IS NOT NULL AND ${isUnknown} AND look_up_at <= ${now} AND expires_at > ${now}
          ORDER BY look_up_at, opened_at LIMIT ${ActionLog.lookupsAtOnce}`,
        decodeDue
      )
      const taken = yield* Effect.forEach(due, ({ claimant, lookUpAt, nonce, openedAt }) =>
        Effect.flatMap(
          sql`UPDATE trigate_actions SET look_up_at = ${ActionLog.nextLookup(openedAt, now)}
            WHERE ${ours} AND claimant = ${claimant} AND nonce = ${nonce} AND look_up_at = ${lookUpAt}
              AND body IS NOT NULL AND ${isUnknown}
            RETURNING claimant, nonce, fingerprint, opened_at AS "openedAt", body`,
          decodeTaken
        ))
      const unsettled = taken.flat().map(({ body, claimant, ...row }) => ({
        claimant,
        cloids: ActionTrace.cloids(ActionTrace.read(body)),
        action: {
          ...toIdentity({ claimant, ...row }),
          openedAt: row.openedAt,
          trace: ActionTrace.read(body)
        } satisfies ActionLog.Unsettled
      }))
      // replicas of the preceding version do not store them
      yield* Effect.forEach(
        unsettled,
        ({ action, claimant, cloids }) => noteCloids({ claimant, nonce: action.nonce }, cloids),
        { discard: true }
      )
      return unsettled.map(({ action }) => action)
    }),
    conclude: (fingerprint: string, conclusion: ActionLog.Conclusion, now: number) =>
      Effect.map(
        sql`UPDATE trigate_actions SET state = ${ActionLog.storedState(conclusion)}, body = NULL, size = 0,
            settled = ${printSettled(conclusion.settled)}
          WHERE ${ours} AND fingerprint = ${fingerprint} AND claimant <> fingerprint AND body IS NOT NULL
            AND (state = 'unknown' OR (state = 'sent' AND lease_until <= ${now}))
          RETURNING nonce`,
        (rows) => rows.length > 0
      ),
    /** Marks the actions that an earlier run left `sent` as `unknown`: the process that sent them has ended. */
    orphan: sql`UPDATE trigate_actions SET state = 'unknown' WHERE ${ours} AND state = 'sent'`,
    /** Counts the unanswered actions and their bytes, by owner. An action whose lease has ended counts as unknown. */
    holdings: (now: number) => {
      const unknown = sql`state = 'unknown' OR lease_until <= ${now}`
      return Effect.flatMap(
        sql`SELECT part, CASE part WHEN 'familiar' THEN claimant ELSE caller END AS holder, COUNT(*) AS count,
            SUM(size) AS bytes, SUM(CASE WHEN ${unknown} THEN 1 ELSE 0 END) AS unknown,
            MIN(CASE WHEN ${unknown} THEN opened_at END) AS "oldestUnknown", MIN(expires_at) AS "firstExpiry"
          FROM trigate_actions WHERE ${ours} AND body IS NOT NULL GROUP BY 1, 2`,
        decodeHoldings
      )
    },
    list: (now: number) =>
      Effect.map(
        Effect.flatMap(
          sql`SELECT claimant, nonce, fingerprint, action_type AS "actionType", body, opened_at AS "openedAt",
              lease_until AS "leaseUntil", state
            FROM trigate_actions WHERE ${ours} AND body IS NOT NULL ORDER BY opened_at, fingerprint`,
          decodeListed
        ),
        (rows) =>
          rows.map(({ claimant, leaseUntil, state, ...rest }): ActionLog.Unanswered => ({
            ...rest,
            ...(isAddress(claimant) ? { signer: claimant } : {}),
            state: leaseUntil > now ? state : "unknown"
          }))
      )
  }
}

const awayGauge = metrics.actionLogDegraded.series({})

const isLocked = (fault: StorageFault): boolean => fault._tag === "SqlError" && fault.reason._tag === "LockTimeoutError"

/** Returns why a step failed, without the message of a Postgres server, which may contain its host name. */
const describeFault = (fault: StorageFault, isFile: boolean): string => {
  if (fault._tag !== "SqlError") return `is not readable (${fault._tag})`
  const { reason } = fault
  return `is unreachable (${
    isFile && "message" in reason && reason.message !== undefined ? reason.message : reason._tag
  })`
}

const make = Effect.fnUntraced(function*(options: Options, prepare: boolean) {
  const sql = yield* SqlClient.SqlClient
  const scope = yield* Effect.scope
  const { capacity, keep, maxBytes, settledCapacity } = ActionLog.resolveLimits(options)
  const lease = ActionLog.leaseMillis(options.lease)
  const deadline = Duration.fromInputUnsafe(options.deadline ?? "1 second")
  const table = statements(sql, options.network ?? "mainnet")
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
   * Runs one step within the deadline. Fails with a message.
   *
   * A late step is interrupted in the background, because interruption can take as long as the step itself; `late` runs after it.
   */
  const step = Effect.fnUntraced(
    function*<A>(effect: Effect.Effect<A, StorageFault>, late: Effect.Effect<void> = Effect.void) {
      const stepping = effect.pipe(
        Effect.retry({ schedule: Schedule.spaced("20 millis"), while: isLocked }),
        Effect.interruptible
      )
      const fiber = yield* Effect.forkIn(stepping, scope, { startImmediately: true })
      return yield* Fiber.join(fiber).pipe(
        Effect.mapError((fault) => describeFault(fault, isFile)),
        Effect.onInterrupt(() => Effect.forkIn(Effect.andThen(Fiber.interrupt(fiber), late), scope)),
        Effect.interruptible,
        Effect.timeoutOrElse({
          duration: deadline,
          orElse: () => Effect.fail(`is unreachable (no response within ${Duration.format(deadline)})`)
        })
      )
    }
  )

  const told = <A>(stepped: Effect.Effect<A, string>) =>
    Effect.tapError(Effect.tap(stepped, () => tell(false, "")), (why) => tell(true, why))

  const deferred = new Map<string, Effect.Effect<unknown, StorageFault>>()
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
  const defer = (token: string, write: Effect.Effect<unknown, StorageFault>) =>
    Effect.suspend(() => {
      const isFirst = deferred.size === 0
      // beyond the limit, the write is dropped: the settled action stays `sent`, and becomes `unknown` after its lease
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
    yield* migrate
    if (isFile) yield* table.orphan
    yield* prune
    isReady = true
  }).pipe(Effect.provideService(SqlClient.SqlClient, sql))
  const ready = Effect.suspend(() => isReady ? Effect.void : prepared)

  const quotaPart = Effect.fnUntraced(function*({ isListed, signer }: ActionLog.Sending) {
    if (signer === undefined) return "strangers"
    if (isListed || signers.has(signer.toLowerCase())) return "familiar"
    if (!(yield* table.isKnown(signer))) return "strangers"
    signers.add(signer.toLowerCase())
    return "familiar"
  })

  /**
   * Claims a nonce. On success, returns the number of attempts including this one, and the quota that they use.
   * Otherwise returns the conflicting state or the exceeded quota.
   */
  const write = Effect.fnUntraced(function*(sending: ActionLog.Sending, token: string, now: number) {
    yield* ready
    const part = yield* quotaPart(sending)
    const holding = ActionLog.quotaHolding(part, sending)
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
            yield* table.noteCloids({ claimant: ActionLog.claimantId(sending), nonce }, cloids)
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
        // the conflicting entry has expired
        if (!isLast) yield* makeRoom
      } else if (!isLast) yield* makeRoomAgain
    }
    return { scarcity: scarcity ?? "full" }
  })

  const claim = Effect.fn("ActionLog.claim")(
    function*(sending: ActionLog.Sending): Effect.fn.Return<ActionLog.Claim, ActionLog.ClaimRefusal> {
      const now = yield* Clock.currentTimeMillis
      claims += 1
      const token = `${run}.${claims.toString(36)}`
      const withdrawal = defer(token, table.withdraw(sending, token))
      const written = yield* told(step(write(sending, token, now), withdrawal)).pipe(
        // the statement may have been executed even though the connection broke
        Effect.tapError(() => isFile ? Effect.void : withdrawal),
        Effect.mapError(ActionLog.notSent)
      )
      const { nonce, signer } = sending
      if ("state" in written) {
        return yield* signer === undefined
          ? ActionLog.noRoom("full")
          : ActionLog.alreadyUsed(signer, nonce, written.state, written.isSame === true)
      }
      if ("scarcity" in written) return yield* ActionLog.noRoom(written.scarcity)
      yield* reportInFlight(1)
      if (now - prunedAt > ActionLog.pruneInterval || claims % claimsBetweenPrunes === 0) {
        prunedAt = now
        yield* Effect.forkIn(Effect.ignore(step(prune)), scope)
      }
      const isRepeat = written.sendings > 1
      if (!isRepeat) room.add(written.holding)
      return ActionLog.makeClaim(sending, isRepeat, (remains, settled) =>
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

  const ask = <A>(effect: Effect.Effect<A, StorageFault>) => Effect.mapError(step(effect), ActionLog.unreadable)

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
    // a readable file may still refuse writes, for example if the disk is full: the last claim determines the state
    isUp: Effect.map(Effect.isSuccess(isFile ? step(probe) : told(step(probe))), (answers) => answers && !isAway)
  })
})

/**
 * Provides the log of a gateway. Creates its table.
 *
 * A SQLite file belongs to one gateway: actions that an earlier run left `sent` become `unknown` immediately. In
 * Postgres, which several replicas may share, they become `unknown` after the lease.
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
 * Provides the log for a tool that only reads it. Creates no table and changes no entries by itself.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerExisting = (options: Options = {}): Layer.Layer<ActionLog.ActionLog, never, SqlClient.SqlClient> =>
  Layer.effect(ActionLog.ActionLog, make(options, false))
