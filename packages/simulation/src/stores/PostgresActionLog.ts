/**
 * The action log that replicas share, in a simulated Postgres: what the statements of `ActionLogSql` do, in TypeScript.
 * The conditions and the policy are those of production.
 */
import * as Encoding from "@trigate/domain/encoding/Encoding"
import * as SqlStore from "@trigate/stores/unstable/SqlStore"
import * as ActionLog from "@trigate/trading/actionLog/ActionLog"
import * as ActionLogSql from "@trigate/trading/actionLog/ActionLogSql"
import * as LoggedAction from "@trigate/trading/unstable/actionLog/LoggedAction"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Access from "./Access.ts"

/** A row of the table of actions. */
interface Row extends Omit<LoggedAction.Entry, "signer" | "trace"> {
  readonly key: LoggedAction.EntryKey
  readonly holding: LoggedAction.Holding
  readonly attempts: number
}

/** The tables. */
export interface State {
  readonly rows: Map<string, Row>
  /** The keys of the actions with a client order ID. */
  readonly cloids: Map<string, Set<string>>
  /** The time of the last accepted action of each known signer. */
  readonly signers: Map<string, number>
}

const isAddress = Schema.is(Encoding.Address)

const entryFrom = ({ holding: _, key, ...row }: Row): LoggedAction.Entry => ({
  ...row,
  signer: isAddress(key.claimant) ? key.claimant : undefined,
  ...(row.body === undefined ? {} : { trace: LoggedAction.readTrace(row.body) })
})

/** Returns an entry of a list of open actions, which lacks the later columns. */
const openEntryFrom = (row: Row): LoggedAction.Entry => ({
  ...entryFrom(row),
  lookUpAt: 0,
  settled: undefined,
  vault: undefined
})

const byTimes = (...timesOf: ReadonlyArray<(row: Row) => number>) => (one: Row, other: Row): number =>
  timesOf.reduce((order, timeOf) => order === 0 ? timeOf(one) - timeOf(other) : order, 0)

const noteCloids = ({ cloids }: State, name: string, trace: LoggedAction.ActionTrace | undefined): void => {
  for (const cloid of trace === undefined ? [] : LoggedAction.listCloids(trace)) {
    cloids.set(cloid, (cloids.get(cloid) ?? new Set()).add(name))
  }
}

/** Adds a row, or marks the row as sent again; `undefined` if the row does not meet the condition. */
const upsert = (
  { rows }: State,
  { expiresAt, key, leaseUntil, now, part, sending, token }: ActionLog.Opening,
  guard: LoggedAction.Guard
): "new" | "repeat" | undefined => {
  const name = LoggedAction.formatKey(key)
  const found = rows.get(name)
  if (found !== undefined) {
    if (found.expiresAt <= now || !LoggedAction.isMet(guard, found)) return undefined
    rows.set(name, { ...found, state: "sent", attempts: found.attempts + 1, token, leaseUntil, expiresAt })
    return "repeat"
  }
  const { actionType, body, fingerprint, trace } = sending
  rows.set(name, {
    key,
    nonce: key.nonce,
    holding: LoggedAction.holdingFor(part, sending),
    fingerprint,
    actionType,
    vault: trace?.vault ?? "",
    body,
    state: "sent",
    attempts: 1,
    token,
    openedAt: now,
    leaseUntil,
    expiresAt,
    lookUpAt: 0,
    settled: undefined
  })
  return "new"
}

const update = (
  { rows }: State,
  key: LoggedAction.EntryKey,
  guard: LoggedAction.Guard,
  change: ActionLog.Change
): boolean => {
  const name = LoggedAction.formatKey(key)
  const row = rows.get(name)
  if (row === undefined || !LoggedAction.isMet(guard, row)) return false
  if ("lookUpAt" in change) rows.set(name, { ...row, lookUpAt: change.lookUpAt ?? Number.MAX_SAFE_INTEGER })
  else if (change.state === "gone") rows.delete(name)
  else if (change.state === "sent" || change.state === "unknown") rows.set(name, { ...row, state: change.state })
  else {
    const { part = row.holding.part, settled, state } = change
    rows.set(name, { ...row, state, body: undefined, settled, holding: { ...row.holding, part } })
  }
  return true
}

const select = ({ cloids, rows }: State, selection: ActionLog.Selection, now: number): ReadonlyArray<Row> => {
  const all = [...rows.values()]
  if ("key" in selection) return [rows.get(LoggedAction.formatKey(selection.key)) ?? []].flat()
  if ("open" in selection) {
    const { open } = selection
    return all
      .filter(({ body, fingerprint }) => body !== undefined && (open === "all" || fingerprint === open.fingerprint))
      .toSorted((one, other) => one.openedAt - other.openedAt || (one.fingerprint < other.fingerprint ? -1 : 1))
  }
  if ("due" in selection) {
    return all
      .filter((row) =>
        row.body !== undefined && row.lookUpAt <= now && row.expiresAt > now &&
        LoggedAction.isMet({ states: ["unknown"], now }, row)
      )
      .toSorted(byTimes(({ lookUpAt }) => lookUpAt, ({ openedAt }) => openedAt))
      .slice(0, ActionLog.lookupsAtOnce)
  }
  const signer = "id" in selection ? undefined : selection.signer?.toLowerCase()
  const isSelected = (name: string, { fingerprint, key }: Row): boolean =>
    "id" in selection
      ? fingerprint === selection.id
      : "cloid" in selection
      ? cloids.get(selection.cloid.toLowerCase())?.has(name) === true && (signer ?? key.claimant) === key.claimant
      : key.claimant === signer && key.nonce === selection.nonce
  return [...rows]
    .flatMap(([name, row]) => isSelected(name, row) && row.expiresAt > now ? [row] : [])
    .slice(0, LoggedAction.mostFound)
}

const count = ({ rows }: State, now: number): ReadonlyArray<ActionLog.Counted> =>
  [...rows.values()].flatMap(({ body, expiresAt: firstExpiry, holding, leaseUntil, openedAt, state }) => {
    if (body === undefined) return []
    const isUnknown = state === "unknown" || leaseUntil <= now
    return [{ ...holding, unknown: isUnknown ? 1 : 0, oldestUnknown: isUnknown ? openedAt : null, firstExpiry }]
  })

const trim = (
  { cloids, rows, signers }: State,
  now: number,
  settled?: { readonly [P in LoggedAction.Part]: number }
) => {
  if (settled !== undefined) {
    for (const part of ["familiar", "strangers"] as const) {
      const settledRows = [...rows].filter(([, { body, holding }]) => body === undefined && holding.part === part)
      const [limit = -Infinity] = settledRows.map(([, { expiresAt }]) => expiresAt)
        .toSorted((one, other) => other - one).slice(settled[part])
      for (const [name, { expiresAt }] of settledRows) if (expiresAt <= limit) rows.delete(name)
    }
    const [limit = -Infinity] = [...signers.values()].toSorted((one, other) => other - one)
      .slice(LoggedAction.maxSigners)
    for (const [signer, acceptedAt] of signers) {
      if (acceptedAt <= Math.max(limit, now - LoggedAction.knownFor)) signers.delete(signer)
    }
  }
  let unanswered = 0
  for (const [name, { body, expiresAt }] of rows) {
    if (expiresAt > now) continue
    rows.delete(name)
    if (body !== undefined) unanswered += 1
  }
  if (settled !== undefined) {
    for (const names of cloids.values()) for (const name of names) if (!rows.has(name)) names.delete(name)
  }
  return unanswered
}

/** The action log in one simulated Postgres. */
export type Store = Access.Disk<State>

/** Makes the store. Replicas that use it share their log. */
export const make = (): Store =>
  Access.makeDisk((): State => ({ rows: new Map(), cloids: new Map(), signers: new Map() }))

/** Returns the statements of one replica. The clients' clocks determine the times, as in the real Postgres. */
export const makeStatements = ({ current }: Store, access: Access.Access): ActionLogSql.Statements => {
  const run = <A>(operation: () => A) => Access.sql(access, operation)
  return {
    // several statements without a transaction, as in the real Postgres
    insert: Effect.fnUntraced(function*(opening, guard) {
      const { key, sending } = opening
      const written = yield* run(() => upsert(current(), opening, guard))
      if (written === undefined) {
        const [standing] = yield* run(() => select(current(), { key }, opening.now))
        return standing ??
          { state: "forgotten" as const, fingerprint: sending.fingerprint, leaseUntil: 0, expiresAt: 0 }
      }
      const hasCloids = sending.trace?.legs.some(({ cloid }) => cloid !== undefined) === true
      if (written === "new" && hasCloids) {
        yield* run(() => noteCloids(current(), LoggedAction.formatKey(key), sending.trace))
      }
      return written
    }),
    update: (key, guard, change) => run(() => update(current(), key, guard, change)),
    find: (selection, now) =>
      run(() => {
        const entries = select(current(), selection, now)
        if ("due" in selection) {
          for (const { body, key } of entries) {
            if (body !== undefined) noteCloids(current(), LoggedAction.formatKey(key), LoggedAction.readTrace(body))
          }
        }
        return entries.map("open" in selection ? openEntryFrom : entryFrom)
      }),
    count: (now) => run(() => count(current(), now)),
    trim: (now, settled) => run(() => trim(current(), now, settled)),
    isKnown: (signer) => run(() => current().signers.has(signer)),
    know: (signer, now) => run(() => current().signers.set(signer, now)),
    ping: run(() => true)
  }
}

/**
 * Provides the action log of one replica.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import * as Access from "@trigate/simulation/unstable/stores/Access"
 * import * as PostgresActionLog from "@trigate/simulation/unstable/stores/PostgresActionLog"
 * import { ActionLog } from "@trigate/trading"
 * import { Console, Effect } from "effect"
 *
 * const replica = PostgresActionLog.layer(PostgresActionLog.make(), Access.direct)
 *
 * const program = ActionLog.ActionLog.use(({ backing, unanswered }) =>
 *   Effect.flatMap(unanswered, ({ length }) => Console.log(backing, length))
 * )
 *
 * await Effect.runPromise(Effect.provide(program, replica))
 * ```
 * ```text
 * Postgres 0
 * ```
 */
export const layer = (
  store: Store,
  access: Access.Access,
  options: ActionLogSql.Options = {}
): Layer.Layer<ActionLog.ActionLog> =>
  Layer.effect(
    ActionLog.ActionLog,
    ActionLogSql.make(
      options,
      {
        isFile: false,
        statements: makeStatements(store, access),
        step: SqlStore.makeStep({
          isFile: false,
          ready: Effect.void,
          deadline: options.deadline ?? ActionLogSql.defaultDeadline,
          toError: ActionLogSql.toReason
        })
      },
      true
    )
  )
