/**
 * The log of account events that replicas share, in a simulated Redis or Postgres: what the scripts of `EventStoreRedis`
 * and the statements of `EventStoreSql` do, in TypeScript.
 *
 * Both have the same state. They differ in the fencing tokens, in the entries that they drop, and after a restart: each
 * start of Redis begins a new epoch, because a Redis may have lost its newest entries.
 */
import * as SqlStore from "@trigate/stores/unstable/SqlStore"
import * as AccountEvents from "@trigate/trading/accounts/AccountEvents"
import * as EventStoreRedis from "@trigate/trading/accounts/EventStoreRedis"
import * as EventStoreSql from "@trigate/trading/accounts/EventStoreSql"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Access from "./Access.ts"

/** The event log, its lease, and the accounts that replicas have requested. */
export interface State {
  epoch: string
  /** The start of Redis in which the lease was last acquired. */
  run: number | undefined
  seq: number
  start: number
  owner: string | undefined
  token: number
  leasedUntil: number
  entries: ReadonlyArray<AccountEvents.Entry>
  readonly begun: Map<string, Pick<AccountEvents.Entry, "at" | "seq">>
  readonly wanted: Map<string, number>
}

/** The event log in one simulated store. */
export interface Store extends Access.Disk<State> {
  /** The number of starts of the store. */
  readonly run: () => number
}

const makeStore = (nextEpoch: () => string): Store => {
  const disk = Access.makeDisk((): State => ({
    epoch: nextEpoch(),
    run: undefined,
    seq: 0,
    start: 0,
    owner: undefined,
    token: 0,
    leasedUntil: -Infinity,
    entries: [],
    begun: new Map(),
    wanted: new Map()
  }))
  let run = 1
  return {
    ...disk,
    run: () => run,
    restore: (snapshot) => {
      run += 1
      disk.restore(snapshot)
    },
    clear: () => {
      run += 1
      disk.clear()
    }
  }
}

/** Drops the entries that the writer has dropped from its copy. */
const drop = (state: State, { begun, seqs }: AccountEvents.Dropped): void => {
  state.entries = state.entries.filter(({ seq }) => !seqs.includes(seq))
  for (const [user, start] of begun) {
    const known = state.begun.get(user)
    if (known !== undefined && known.seq < start.seq) state.begun.set(user, start)
  }
}

/** Appends entries if the lease is valid and the log ends at `after`, then drops entries with `trim`. */
const append = (
  state: State,
  isLeased: boolean,
  { after, at, bounds, dropped, entries, token }: AccountEvents.Appending,
  trim: (state: State, at: number, bounds: AccountEvents.Bounds, isDropped: boolean) => void
): AccountEvents.Position | undefined => {
  if (!isLeased || state.owner === undefined || state.token !== token) return undefined
  const { epoch, seq } = state
  if (seq === after + AccountEvents.totalSpan(entries)) return { epoch, seq }
  if (seq !== after) return undefined
  const numbered = entries.map((entry): AccountEvents.Entry => {
    state.seq += AccountEvents.span(entry)
    return { ...entry, seq: state.seq, at }
  })
  state.entries = [...state.entries, ...numbered]
  for (const { kind, seq, user } of numbered) {
    if (kind === "begin") state.begun.set(user, { seq, at })
    if (kind === "end") state.begun.delete(user)
  }
  if (dropped !== undefined) drop(state, dropped)
  trim(state, at, bounds, dropped !== undefined)
  return { epoch, seq: state.seq }
}

const tailAfter = (
  { begun, entries, epoch, seq, start }: State,
  after: number,
  most: number
): AccountEvents.Tail => ({
  epoch,
  seq,
  start,
  begun: new Map(begun),
  entries: entries.filter((entry) => entry.seq > after).slice(0, most)
})

const trimRedis = (state: State, at: number, bounds: AccountEvents.Bounds, isDropped: boolean): void => {
  const kept = state.entries.slice(-(isDropped ? 2 * bounds.rows : bounds.rows))
  const firstKept = kept.findIndex((entry) => entry.at >= at - bounds.age)
  const expired = firstKept < 0 ? kept.length : firstKept
  const left = kept.slice(Math.min(expired, EventStoreRedis.mostExpired))
  const isTrimmed = left.length < state.entries.length
  state.entries = left
  const [first] = left
  if (isTrimmed) state.start = first === undefined ? state.seq : first.seq - AccountEvents.span(first)
}

const trimPostgres = (state: State, at: number, bounds: AccountEvents.Bounds, isDropped: boolean): void => {
  const last = state.entries.reduce(
    (newest, entry) => entry.at < at - bounds.age ? Math.max(newest, entry.seq) : newest,
    isDropped ? 0 : state.seq - bounds.rows
  )
  const dropped = state.entries.filter(({ seq }) => seq <= last)
  state.entries = state.entries.filter(({ seq }) => seq > last)
  state.start = Math.max(state.start, dropped.at(-1)?.seq ?? 0)
}

/** Makes the event log of a simulated Redis. */
export const makeRedis = (): Store => makeStore(() => "")

/** Makes the event log of a simulated Postgres. */
export const makePostgres = (): Store => {
  let epochs = 0
  return makeStore(() => `epoch-${++epochs}`)
}

/** Returns the commands of one replica in a simulated Redis. */
export const makeCommands = ({ current, run }: Store, access: Access.Access): EventStoreRedis.Commands => {
  const over = <A>(operation: (state: State, now: number) => A) =>
    Access.redis(access, (now) => {
      const state = current()
      if (now > state.leasedUntil) state.owner = undefined
      return operation(state, Math.floor(now))
    })
  return {
    lease: (owner, epoch) =>
      over((state, now) => {
        const isNewRun = (state.run ?? run()) !== run()
        if (isNewRun) state.owner = undefined
        if (state.owner !== undefined && state.owner !== owner) return { token: undefined, time: now }
        if (state.owner === undefined) state.token = Math.max(now, state.token + 1)
        state.owner = owner
        state.leasedUntil = now + AccountEvents.leaseFor
        if (isNewRun || state.epoch === "") state.epoch = epoch
        state.run = run()
        return { token: state.token, time: now }
      }),
    release: (token) =>
      over((state) => {
        if (state.token === token) state.owner = undefined
      }),
    append: (appending) => over((state) => append(state, true, appending, trimRedis)),
    readAfter: (seq) => over((state) => tailAfter(state, seq, EventStoreRedis.mostRead)),
    want: (user, until) => over(({ wanted }) => wanted.set(user, until)),
    wanted: (at) =>
      over(({ wanted }) => {
        for (const [user, until] of wanted) if (until <= at) wanted.delete(user)
        return [...wanted]
          .toSorted(([one, first], [other, second]) => first - second || (one < other ? -1 : 1))
          .map(([user]) => user)
      })
  }
}

/** Returns the statements of one replica in a simulated Postgres. */
export const makeStatements = ({ current }: Store, access: Access.Access): EventStoreSql.Statements => {
  const over = <A>(statement: (state: State, now: number) => A) =>
    Access.sql(access, (now) => statement(current(), now))
  return {
    lease: (owner) =>
      over((state, now) => {
        const isFree = state.owner === undefined || state.leasedUntil <= now
        const time = Math.floor(now)
        if (!isFree && state.owner !== owner) return { token: undefined, time }
        if (isFree) state.token += 1
        state.owner = owner
        state.leasedUntil = now + AccountEvents.leaseFor
        return { token: state.token, time }
      }),
    release: (token) =>
      over((state) => {
        if (state.token === token) state.owner = undefined
      }),
    append: (appending) => over((state, now) => append(state, state.leasedUntil > now, appending, trimPostgres)),
    readAfter: (seq) => over((state) => tailAfter(state, seq, EventStoreSql.maxRead)),
    want: (user, until) => over(({ wanted }) => wanted.set(user, until)),
    wanted: (at) =>
      over(({ wanted }) =>
        [...wanted].flatMap(([user, until]) => until > at ? [user] : []).toSorted((one, other) => one < other ? -1 : 1)
      )
  }
}

/**
 * Provides the event store of one replica in a simulated Redis.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import * as Access from "@trigate/simulation/unstable/stores/Access"
 * import * as EventLogs from "@trigate/simulation/unstable/stores/EventLogs"
 * import { AccountEvents } from "@trigate/trading"
 * import { Console, Effect } from "effect"
 *
 * const store = EventLogs.makeRedis()
 *
 * const lease = (owner: string) =>
 *   AccountEvents.EventStore.use((events) => events.lease(owner)).pipe(
 *     Effect.provide(EventLogs.layerRedis(store, Access.direct))
 *   )
 *
 * const program = Effect.flatMap(
 *   Effect.all([lease("one"), lease("two")]),
 *   ([one, two]) => Console.log(typeof one, typeof two)
 * )
 *
 * await Effect.runPromise(program)
 * ```
 * ```text
 * number undefined
 * ```
 */
export const layerRedis = (
  store: Store,
  access: Access.Access,
  bounds?: AccountEvents.Bounds
): Layer.Layer<AccountEvents.EventStore> =>
  Layer.succeed(AccountEvents.EventStore, EventStoreRedis.make(makeCommands(store, access), bounds))

/**
 * Provides the event store of one replica in a simulated Postgres.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerPostgres = (
  store: Store,
  access: Access.Access,
  bounds?: AccountEvents.Bounds
): Layer.Layer<AccountEvents.EventStore> =>
  Layer.sync(AccountEvents.EventStore, () =>
    EventStoreSql.make(
      {
        statements: makeStatements(store, access),
        step: SqlStore.makeStep({ isFile: false, ready: Effect.void, ...EventStoreSql.stepOptions })
      },
      bounds
    ))
