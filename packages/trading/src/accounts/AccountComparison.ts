/**
 * Compares the streams of watched accounts with queries, each account every five minutes.
 *
 * A response has to be as the state that was received before it, or after it. If neither is so although nothing is known to have
 * happened to the account, the mirror is emptied. If the log does not have a fill or an order that the venue has, its epoch ends too.
 */
import * as Json from "@trigate/domain/encoding/Json"
import { valueAt } from "@trigate/domain/streams/Subscription"
import type { AnsweredQuery } from "@trigate/domain/streams/Subscription"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Result from "effect/Result"
import type { AccountEvents } from "./AccountEvents.ts"
import { metrics } from "./AccountMetrics.ts"
import * as AccountMirror from "./AccountMirror.ts"
import type { MirroredStates } from "./AccountMirror.ts"

/** The log and the mirror that are compared, and the venue. */
export interface Options<E> {
  readonly events: AccountEvents
  readonly mirror: AccountMirror.AccountMirror
  /** Returns when the connection of a subscription last received anything, in milliseconds; undefined while it is not live. */
  readonly heardAt: (topicKey: string) => number | undefined
  /** Asks the venue. */
  readonly ask: (query: object) => Effect.Effect<string, E>
}

/** How a comparison ends. `changing`: the account changed meanwhile, so that nothing can be said. */
export type ComparisonOutcome = "equal" | "drift" | "changing"

/** Milliseconds between two comparisons of an account. */
const every = 300_000

/** Milliseconds without a change after which an account is compared, if it has them before the next comparison is due. */
const quietFor = 60_000

/** Milliseconds by which clocks may differ. */
const clockMargin = 5000

/** Seconds in which something has to be received after the queries: a quiet connection is pinged after 20. */
const longestWait = 30

/** Rows of the log that are compared. */
const mostRows = 2000

const compared = [...AccountMirror.answered].flatMap(([query, { answer, declaration }]) =>
  answer.compared === undefined ? [] : [{ query, parts: answer.compared, subscription: declaration.name }]
)

const parsed = (text: string): unknown => Result.getOrUndefined(Json.parse(text))

const list = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []

/** The members of a response that only a change of the account changes, in one spelling. */
const print = (response: string, { members, rows }: NonNullable<AnsweredQuery["compared"]>): string =>
  list(valueAt(parsed(response), rows)).map((row) => Json.stringify(members.map((member) => valueAt(row, member))))
    .toSorted().join()

/** The responses that were received, by query. */
const responses = ({ frames }: MirroredStates): ReadonlyMap<string, string> =>
  new Map([...frames.values()].flatMap(AccountMirror.responsesIn))

const count = (outcome: ComparisonOutcome | "failed") =>
  Metric.update(metrics.accountComparisons.series({ outcome }), 1)

/** Compares accounts from now on, until the scope ends. */
export const start = Effect.fnUntraced(function*<E>({ ask, events, heardAt, mirror }: Options<E>) {
  const dueAt = new Map<string, number>()
  const comparedAt = new Map<string, number>()

  /** Fills and open orders since a time that the venue has and the log does not have. */
  const findMissing = (user: string, fills: string, orders: string, since: number): ReadonlyArray<string> => {
    const { log } = events
    const ids = (name: string) => new Set(log.newest(user, name, mostRows).map(({ id }) => id.split(" ")[0]))
    const filled = ids("userFills")
    const updated = ids("orderUpdates")
    const rows = (text: string, id: string, time: string, known: ReadonlySet<string | undefined>) =>
      list(parsed(text)).filter((row) =>
        Number(valueAt(row, time)) >= since && !known.has(Json.stringify(valueAt(row, id)))
      ).map((row) => `${id} ${Json.stringify(valueAt(row, id))}`)
    return [...rows(fills, "tid", "time", filled), ...rows(orders, "oid", "timestamp", updated)]
  }

  /** Waits until all that happened before a time was received. Returns false if that is not certain. */
  const awaitReceipt = Effect.fnUntraced(function*(user: string, time: number) {
    for (let seconds = 0; seconds < longestWait; seconds++) {
      yield* Effect.sleep("1 second")
      const { frames } = mirror.states(user) ?? {}
      const hasStates = compared.every(({ subscription }) => (frames?.get(subscription)?.receivedAt ?? 0) > time)
      const hasEvents = ["userFills", "orderUpdates"].every((name) =>
        (heardAt(AccountMirror.topicKey(name, user) ?? "") ?? 0) > time
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
    const answers = new Map<string, string>()
    for (const { query } of compared) answers.set(query, yield* ask({ type: query, user }))
    // what happened before the log began is not in it
    const since = Math.max(begunAt + clockMargin, (comparedAt.get(user) ?? 0) - clockMargin)
    const fills = yield* ask({ type: "userFillsByTime", user, startTime: since })
    const isHeard = yield* awaitReceipt(user, yield* Clock.currentTimeMillis)
    const latest = mirror.states(user)
    if (!isHeard || latest === undefined || !events.isRecording(user)) return "changing" as const
    const missing = findMissing(user, fills, answers.get("frontendOpenOrders") ?? "", since)
    if (missing.length > 0) {
      yield* Effect.logWarning("The event log of an account lacks events that the venue has", { user, missing })
      events.interrupt(user)
      mirror.empty(user)
      return "drift" as const
    }
    comparedAt.set(user, began)
    const after = responses(latest)
    const drifted = compared.filter(({ parts, query }) => {
      const answer = print(answers.get(query) ?? "", parts)
      return [before, after].every((found) => print(found.get(query) ?? "", parts) !== answer)
    })
    if (drifted.length === 0) return "equal" as const
    if (latest.changes !== changes) return "changing" as const
    yield* Effect.logWarning("States that the venue has sent of an account differ from its responses", {
      user,
      queries: drifted.map(({ query }) => query)
    })
    mirror.empty(user)
    return "drift" as const
  })

  const tick = Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    const recorded = events.status().accounts.filter(({ user }) => events.isRecording(user)).map(({ user }) => user)
    for (const user of dueAt.keys()) {
      if (recorded.includes(user)) continue
      dueAt.delete(user)
      comparedAt.delete(user)
    }
    for (const user of recorded) {
      const due = dueAt.get(user) ?? now + every
      dueAt.set(user, due)
      const { changedAt = now } = mirror.states(user) ?? {}
      const isQuiet = now - changedAt >= quietFor || now >= due + every
      if (now < due || !isQuiet) continue
      dueAt.set(user, now + every)
      yield* Effect.matchEffect(compare(user), { onFailure: () => count("failed"), onSuccess: count })
    }
  })
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep("5 seconds"), tick)))
})
