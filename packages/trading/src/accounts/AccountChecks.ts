/**
 * Checks the accounts of `TRIGATE_WATCH_ACCOUNTS`. Every hour, it queries which agents expire soon. Every ten minutes,
 * it queries how many more actions the venue will accept from each account.
 *
 * Only the replica that owns the event log checks accounts; the others report nothing. A query weighs 20, so each
 * account is queried at most once per minute. An account is not queried in the minute after its last change. It is also
 * not queried in the minute before or after `AccountComparison` compares it with the venue's responses, which happens
 * every five minutes.
 */
import { infoOperations } from "@trigate/domain/info/InfoOperations"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Schema from "effect/Schema"
import { metrics } from "./AccountMetrics.ts"

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
  readonly ask: (query: object) => Effect.Effect<string, E>
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
export const start = Effect.fnUntraced(function*<E>({ accounts, ask, quietFor, isOwner }: Options<E>) {
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
    agents.set(user, yield* decodeAgents(yield* ask({ type: "extraAgents", user })))
  })

  const readActions = Effect.fnUntraced(function*(user: string) {
    const limit = yield* decodeLimit(yield* ask({ type: "userRateLimit", user }))
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
  const dueAt = new Map<string, number>()

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
    const now = yield* Clock.currentTimeMillis
    if (!isOwner()) {
      agents.clear()
      low.clear()
      failing.clear()
      dueAt.clear()
    }
    for (const user of isOwner() ? accounts : []) {
      if (quietFor(user) < 60_000) continue
      const next = checks.find(({ name }) => now >= (dueAt.get(`${user} ${name}`) ?? 0))
      if (next === undefined) continue
      yield* run(user, next)
      const key = `${user} ${next.name}`
      dueAt.set(key, now + (failing.has(key) ? Math.min(next.every, retryAfter) : next.every))
    }
    yield* report
  })

  if (accounts.length > 0) yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep("1 minute"), tick)))
})
