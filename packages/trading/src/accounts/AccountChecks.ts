/**
 * Checks the watched accounts: their agents and their limits, and the pushed states against the venue's responses.
 *
 * Only the replica that owns the event log checks accounts; the others report nothing. A query weighs 20, so each
 * account is queried at most once per minute. An account is not queried in the minute after its last change. It is also
 * not queried in the minute before or after `AccountComparison` compares it with the venue's responses, which happens
 * every five minutes.
 *
 * A response must match the state that was pushed before the response or the state that was pushed after it. If the
 * response matches neither state, and the account is not known to have changed, the mirror deletes the account's
 * states. If the venue returns a fill or an order that is not in the event log, the account also begins a new epoch:
 * callers cannot resume from earlier positions. Fills are compared by their content, not by their key alone, so that a
 * key that two fills share is noticed.
 */
import * as Json from "@trigate/domain/encoding/Encoding"
import { infoOperations } from "@trigate/domain/info/InfoOperations"
import { counter, gauge } from "@trigate/domain/unstable/DeclaredMetric"
import { type ServedQuery, valueAt } from "@trigate/domain/unstable/streams/Subscription"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { parseRow } from "../streams/VenueProtocol.ts"
import type { AccountEvents } from "./AccountEvents.ts"
import * as AccountMirror from "./AccountMirror.ts"

export const metrics = {
  accountsWatched: gauge("trigate_accounts_watched", "Accounts whose events are logged"),
  accountsRefilling: gauge(
    "trigate_accounts_refilling",
    "Watched accounts whose missed events are not yet completely queried"
  ),
  accountsUnrecorded: gauge(
    "trigate_accounts_unrecorded",
    "Accounts of `TRIGATE_WATCH_ACCOUNTS`, and others whose log had begun, whose events this process does not receive"
  ),
  accountLogBytes: gauge("trigate_account_log_bytes", "Bytes of logged events"),
  accountEpochsEnded: counter(
    "trigate_account_epochs_ended_total",
    "Gaps in accounts' event logs that queries could not fill; streams cannot resume across these gaps"
  ),
  accountComparisons: counter(
    "trigate_account_comparisons_total",
    "Comparisons of the streams of watched accounts with queries, by outcome: `equal`, `drift`, `changing` if " +
      "the account changed during the comparison, or `failed`",
    ["outcome"]
  ),
  accountAgentsExpiring: gauge(
    "trigate_account_agents_expiring",
    "Agents (API wallets) that expire within a time, according to this process's latest query about `TRIGATE_WATCH_ACCOUNTS`",
    ["within"]
  ),
  accountChecksFailing: gauge(
    "trigate_account_checks_failing",
    "Accounts of `TRIGATE_WATCH_ACCOUNTS` whose latest query for agents (`extraAgents`) or for actions left " +
      "(`userRateLimit`) failed, by operation",
    ["operation"]
  ),
  accountsLowOnActions: gauge(
    "trigate_accounts_low_on_actions",
    "Accounts of `TRIGATE_WATCH_ACCOUNTS` that have less than a tenth of their granted actions left"
  )
}

/** The accounts to check, and the connection to the venue. */
export interface Options<E> {
  /** Accounts in lower case. */
  readonly accounts: ReadonlyArray<string>
  /** Whether this process owns the event log. Only the owner checks the accounts. */
  readonly isOwner: () => boolean
  /**
   * Returns the milliseconds between now and the nearest of three times: the account's next comparison, its last
   * comparison, and its last change. `AccountComparison` compares an account every five minutes with the venue's
   * responses.
   */
  readonly quietFor: (user: string) => number
  /** Sends a query to the venue. */
  readonly query: (query: object) => Effect.Effect<string, E>
}

/** The times before an agent's expiry at which the coming expiry is reported, longest first. */
const warnings = ["7 days", "1 day", "1 hour"] as const

/** Maximum number of milliseconds before a failed check of an account is repeated. */
const retryAfter = 600_000

/** An account is reported if it has less than this fraction of its granted actions left. */
const lowShare = 0.1

const decodeAgents = Schema.decodeEffect(Schema.fromJsonString(infoOperations.extraAgents.response))
const decodeLimit = Schema.decodeEffect(Schema.fromJsonString(infoOperations.userRateLimit.response))

/** Checks accounts periodically until the scope ends. */
export const start = Effect.fnUntraced(function*<E>({ accounts, query, quietFor, isOwner }: Options<E>) {
  /** The agents of each account, from the last successful query. */
  const agents = new Map<string, typeof infoOperations.extraAgents.response.Type>()
  /** The accounts that had few actions left at the last successful query. */
  const low = new Set<string>()
  /** The checks whose latest query failed, by account and name of the check. */
  const failing = new Set<string>()
  /**
   * The expiry warnings that were already reported: for each, the account, the agent, the expiry, and the warning time
   * such as `1 day`.
   */
  let reported = new Set<string>()

  const readAgents = Effect.fnUntraced(function*(user: string) {
    agents.set(user, yield* decodeAgents(yield* query({ type: "extraAgents", user })))
  })

  const readActions = Effect.fnUntraced(function*(user: string) {
    const limit = yield* decodeLimit(yield* query({ type: "userRateLimit", user }))
    const left = limit.nRequestsCap + (limit.nRequestsSurplus ?? 0) - limit.nRequestsUsed
    const isLow = left < limit.nRequestsCap * lowShare
    if (isLow && !low.has(user)) {
      const message = "An address has few actions left: the venue grants one more for each USDC traded, and sells more"
      yield* Effect.logWarning(message, { user, left })
    }
    if (isLow) low.add(user)
    else low.delete(user)
  })

  const report = Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    const counts = new Map<string, number>()
    const seen = new Set<string>()
    for (const [user, found] of agents) {
      for (const { address, name, validUntil } of found) {
        const within = warnings.filter((before) => validUntil > now && validUntil - now <= Duration.toMillis(before))
        for (const before of within) counts.set(before, (counts.get(before) ?? 0) + 1)
        const nearest = within.at(-1)
        if (nearest === undefined) continue
        const key = `${user} ${address} ${validUntil} ${nearest}`
        seen.add(key)
        if (reported.has(key)) continue
        const message = `An agent of an account expires within ${nearest}: approve the agent again`
        yield* Effect.logWarning(message, { user, agent: address, name, validUntil })
      }
    }
    reported = seen
    for (const within of warnings) {
      yield* Metric.update(metrics.accountAgentsExpiring.series({ within }), counts.get(within) ?? 0)
    }
    yield* Metric.update(metrics.accountsLowOnActions.series({}), low.size)
    for (const { name } of checks) {
      const count = accounts.filter((user) => failing.has(`${user} ${name}`)).length
      yield* Metric.update(metrics.accountChecksFailing.series({ operation: name }), count)
    }
  })

  const checks = [
    { name: "extraAgents", every: 3_600_000, read: readAgents },
    { name: "userRateLimit", every: 600_000, read: readActions }
  ]
  const dueAt = new Map<string, Json.MonotonicTime>()

  /** Runs a check. Of several consecutive failures, logs only the first. */
  const run = (user: string, { name, read }: (typeof checks)[number]) => {
    const key = `${user} ${name}`
    return Effect.matchCauseEffect(read(user), {
      onSuccess: () => Effect.sync(() => void failing.delete(key)),
      onFailure: (cause) => {
        if (failing.has(key)) return Effect.void
        failing.add(key)
        const message = `The query ${name} about an account fails: its results are not reported until it succeeds`
        return Effect.logWarning(message, { user }, cause)
      }
    })
  }

  const tick = Effect.gen(function*() {
    const now = Json.monotonicTime(yield* Clock.Clock)
    if (!isOwner()) {
      agents.clear()
      low.clear()
      failing.clear()
      dueAt.clear()
    }
    for (const user of isOwner() ? accounts : []) {
      if (quietFor(user) < 60_000) continue
      const next = checks.find(({ name }) => now >= (dueAt.get(`${user} ${name}`) ?? Json.longAgo))
      if (next === undefined) continue
      yield* run(user, next)
      const key = `${user} ${next.name}`
      dueAt.set(key, Json.addMillis(now, failing.has(key) ? Math.min(next.every, retryAfter) : next.every))
    }
    yield* report
  })

  if (accounts.length > 0) yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep("1 minute"), tick)))
})

/**
 * The event log and the account mirror, which are compared with the venue's responses, and the connection to the venue.
 */
export interface ComparisonOptions<E> {
  readonly events: AccountEvents
  readonly mirror: AccountMirror.AccountMirror
  /**
   * Returns the time at which the connection of a subscription last received a frame; `undefined`
   * while the subscription is not live.
   */
  readonly heardAt: (topicKey: string) => Json.MonotonicTime | undefined
  /** Sends a query to the venue. */
  readonly query: (query: object) => Effect.Effect<string, E>
}

/**
 * The result of one comparison of an account with the venue's responses. `drift`: they differ. `changing`:
 * inconclusive, because the account changed during the comparison.
 */
export type ComparisonOutcome = "equal" | "drift" | "changing"

/** Milliseconds between two comparisons of an account. */
const every = 300_000

/**
 * Milliseconds without a change after which a due comparison of an account begins. If the account changes more often,
 * the comparison begins at the latest five minutes after it was due.
 */
const quietFor = 60_000

/** Tolerance for clock differences, in milliseconds. */
const clockMargin = 5000

/** Maximum number of seconds to wait for a frame after the queries. An idle connection is pinged after 20 seconds. */
const longestWait = 30

const compared = [...AccountMirror.servedQueries].flatMap(([query, { served, declaration }]) =>
  served.compared === undefined ? [] : [{ query, parts: served.compared, subscription: declaration.name }]
)

const parsed = (text: string): unknown => Result.getOrUndefined(Json.parse(text))

const list = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []

/**
 * Returns the compared part of a response as text: from each row, the fields that change only if the account changes.
 */
const print = (response: string, { members, rows }: NonNullable<ServedQuery["compared"]>): string =>
  list(valueAt(parsed(response), rows)).map((row) => Json.stringify(members.map((member) => valueAt(row, member))))
    .toSorted().join()

/** Prints the members of an order that never change. An `oid` is one order's for ever. */
const printOrder = (order: unknown): string =>
  Json.stringify(["oid", "coin", "side"].map((member) => valueAt(order, member)))

/** Returns the responses contained in the frames that the venue pushed, by the name of their query. */
const responses = ({ frames }: AccountMirror.MirroredStates): ReadonlyMap<string, string> =>
  new Map([...frames.values()].flatMap(AccountMirror.responsesIn))

const count = (outcome: ComparisonOutcome | "failed") =>
  Metric.update(metrics.accountComparisons.series({ outcome }), 1)

/**
 * Compares accounts periodically until the scope ends. Returns a function that measures, in milliseconds, the time
 * between now and the nearest of three events: the account's next comparison, its last comparison, and its last change.
 */
export const startComparison = Effect.fnUntraced(
  function*<E>({ query: send, events, heardAt, mirror }: ComparisonOptions<E>) {
    const dueAt = new Map<string, Json.MonotonicTime>()
    const startedAt = new Map<string, Json.MonotonicTime>()
    const comparedAt = new Map<string, number>()

    /**
     * Returns the fills and the open orders, at or after the time `since`, that the venue returned but the event log does
     * not contain.
     */
    const findMissing = (user: string, fills: string, orders: string, since: number): ReadonlyArray<string> => {
      const { log } = events
      // after the query, the log could have dropped old entries
      const from = Math.max(since, (log.begunAt(user) ?? 0) + clockMargin)
      const filled = (Json.elements(fills) ?? []).map((text) => parseRow("userFills", text))
        .filter(({ time }) => time >= from)
      const updated = new Set(
        log.newest(user, "orderUpdates", Number.POSITIVE_INFINITY)
          .map(({ text }) => printOrder(valueAt(parsed(text), "order")))
      )
      const opened = list(parsed(orders)).filter((order) =>
        Number(valueAt(order, "timestamp")) >= from && !updated.has(printOrder(order))
      )
      return [
        ...log.unseen(user, "userFills", filled).map(({ text }) => `fill ${text}`),
        ...opened.map((order) => `order ${printOrder(order)}`)
      ]
    }

    /**
     * Waits until all events of an account before a given time have been received. Returns `false` if some of these
     * events may still be missing.
     */
    const awaitReceipt = Effect.fnUntraced(function*(user: string, time: Json.MonotonicTime) {
      for (let seconds = 0; seconds < longestWait; seconds++) {
        yield* Effect.sleep("1 second")
        const { frames } = mirror.states(user) ?? {}
        const hasStates = compared.every(({ subscription }) =>
          (frames?.get(subscription)?.receivedAt ?? Json.longAgo) > time
        )
        const hasEvents = ["userFills", "orderUpdates"].every((name) =>
          (heardAt(AccountMirror.topicKey(name, user) ?? "") ?? Json.longAgo) > time
        )
        if (hasStates && hasEvents) return true
      }
      return false
    })

    const compare = Effect.fnUntraced(function*(user: string) {
      const began = yield* Clock.currentTimeMillis
      const states = mirror.states(user)
      const begunAt = events.log.begunAt(user)
      if (states === undefined || begunAt === undefined) return "changing" as const
      const { changes } = states
      const before = responses(states)
      const venueResponses = new Map<string, string>()
      for (const { query } of compared) venueResponses.set(query, yield* send({ type: query, user }))
      // events from before the log began are not compared, because the log does not contain them
      const since = Math.max(begunAt + clockMargin, (comparedAt.get(user) ?? 0) - clockMargin)
      const fills = yield* send({ type: "userFillsByTime", user, startTime: since })
      const isHeard = yield* awaitReceipt(user, Json.monotonicTime(yield* Clock.Clock))
      const latest = mirror.states(user)
      if (!isHeard || latest === undefined || !events.isRecording(user)) return "changing" as const
      const missing = findMissing(user, fills, venueResponses.get("frontendOpenOrders") ?? "", since)
      if (missing.length > 0) {
        yield* Effect.logWarning("The event log of an account lacks events that the venue returns", { user, missing })
        events.interrupt(user)
        mirror.empty(user)
        return "drift" as const
      }
      comparedAt.set(user, began)
      const after = responses(latest)
      const drifted = compared.filter(({ parts, query }) => {
        const response = print(venueResponses.get(query) ?? "", parts)
        return [before, after].every((found) => print(found.get(query) ?? "", parts) !== response)
      })
      if (drifted.length === 0) return "equal" as const
      if (latest.changes !== changes) return "changing" as const
      yield* Effect.logWarning("The streamed state of an account differs from the venue's responses", {
        user,
        queries: drifted.map(({ query }) => query)
      })
      mirror.empty(user)
      return "drift" as const
    })

    const tick = Effect.gen(function*() {
      const now = Json.monotonicTime(yield* Clock.Clock)
      const recorded = events.status().accounts.filter(({ user }) => events.isRecording(user)).map(({ user }) => user)
      for (const user of dueAt.keys()) {
        if (recorded.includes(user)) continue
        dueAt.delete(user)
        startedAt.delete(user)
        comparedAt.delete(user)
      }
      for (const user of recorded) {
        const due = dueAt.get(user) ?? Json.addMillis(now, every)
        dueAt.set(user, due)
        const { changedAt = now } = mirror.states(user) ?? {}
        const isQuiet = Json.millisBetween(changedAt, now) >= quietFor || Json.millisBetween(due, now) >= every
        if (now < due || !isQuiet) continue
        dueAt.set(user, Json.addMillis(now, every))
        startedAt.set(user, now)
        yield* Effect.matchEffect(compare(user), { onFailure: () => count("failed"), onSuccess: count })
      }
    })
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep("5 seconds"), tick)))
    const clock = yield* Clock.Clock
    return (user: string): number => {
      const now = Json.monotonicTime(clock)
      const due = dueAt.get(user)
      const past = [mirror.states(user)?.changedAt, startedAt.get(user)].map((time = Json.longAgo) =>
        Json.millisBetween(time, now)
      )
      return Math.min(due === undefined ? Infinity : Math.max(0, Json.millisBetween(now, due)), ...past)
    }
  }
)
