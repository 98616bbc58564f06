/**
 * Compares the states that the venue pushed for watched accounts (the mirror) with the venue's responses to queries,
 * every five minutes for each account.
 *
 * A response must match the state that was pushed before the response or the state that was pushed after it. If the
 * response matches neither state, and the account is not known to have changed, the mirror deletes the account's
 * states. If the venue returns a fill or an order that is not in the event log, the account also begins a new epoch:
 * callers cannot resume from earlier positions. Fills are compared by their content, not by their key alone, so that a
 * key that two fills share is noticed.
 */
import * as Json from "@trigate/domain/encoding/Json"
import { valueAt } from "@trigate/domain/streams/Subscription"
import type { AnsweredQuery } from "@trigate/domain/streams/Subscription"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Result from "effect/Result"
import { parseRow } from "../streams/VenueProtocol.ts"
import type { AccountEvents } from "./AccountEvents.ts"
import { metrics } from "./AccountMetrics.ts"
import type * as AccountMirror from "./AccountMirror.ts"
import type { MirroredStates } from "./AccountMirror.ts"
import * as MirroredQueries from "./MirroredQueries.ts"

/**
 * The event log and the account mirror, which are compared with the venue's responses, and the connection to the venue.
 */
export interface Options<E> {
  readonly events: AccountEvents
  readonly mirror: AccountMirror.AccountMirror
  /**
   * Returns the time, in milliseconds, at which the connection of a subscription last received a frame; `undefined`
   * while the subscription is not live.
   */
  readonly heardAt: (topicKey: string) => number | undefined
  /** Sends a query to the venue. */
  readonly ask: (query: object) => Effect.Effect<string, E>
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

const compared = [...MirroredQueries.answered].flatMap(([query, { answer, declaration }]) =>
  answer.compared === undefined ? [] : [{ query, parts: answer.compared, subscription: declaration.name }]
)

const parsed = (text: string): unknown => Result.getOrUndefined(Json.parse(text))

const list = (value: unknown): ReadonlyArray<unknown> => Array.isArray(value) ? value : []

/**
 * Returns the compared part of a response as text: from each row, the fields that change only if the account changes.
 */
const print = (response: string, { members, rows }: NonNullable<AnsweredQuery["compared"]>): string =>
  list(valueAt(parsed(response), rows)).map((row) => Json.stringify(members.map((member) => valueAt(row, member))))
    .toSorted().join()

/** Prints the members of an order that never change. An `oid` is one order's for ever. */
const printOrder = (order: unknown): string =>
  Json.stringify(["oid", "coin", "side"].map((member) => valueAt(order, member)))

/** Returns the responses contained in the frames that the venue pushed, by the name of their query. */
const responses = ({ frames }: MirroredStates): ReadonlyMap<string, string> =>
  new Map([...frames.values()].flatMap(MirroredQueries.responsesIn))

const count = (outcome: ComparisonOutcome | "failed") =>
  Metric.update(metrics.accountComparisons.series({ outcome }), 1)

/**
 * Compares accounts periodically until the scope ends. Returns a function that measures, in milliseconds, the time
 * between now and the nearest of three events: the account's next comparison, its last comparison, and its last change.
 */
export const start = Effect.fnUntraced(function*<E>({ ask, events, heardAt, mirror }: Options<E>) {
  const dueAt = new Map<string, number>()
  const startedAt = new Map<string, number>()
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
  const awaitReceipt = Effect.fnUntraced(function*(user: string, time: number) {
    for (let seconds = 0; seconds < longestWait; seconds++) {
      yield* Effect.sleep("1 second")
      const { frames } = mirror.states(user) ?? {}
      const hasStates = compared.every(({ subscription }) => (frames?.get(subscription)?.receivedAt ?? 0) > time)
      const hasEvents = ["userFills", "orderUpdates"].every((name) =>
        (heardAt(MirroredQueries.topicKey(name, user) ?? "") ?? 0) > time
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
    // events from before the log began are not compared, because the log does not contain them
    const since = Math.max(begunAt + clockMargin, (comparedAt.get(user) ?? 0) - clockMargin)
    const fills = yield* ask({ type: "userFillsByTime", user, startTime: since })
    const isHeard = yield* awaitReceipt(user, yield* Clock.currentTimeMillis)
    const latest = mirror.states(user)
    if (!isHeard || latest === undefined || !events.isRecording(user)) return "changing" as const
    const missing = findMissing(user, fills, answers.get("frontendOpenOrders") ?? "", since)
    if (missing.length > 0) {
      yield* Effect.logWarning("The event log of an account lacks events that the venue returns", { user, missing })
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
    yield* Effect.logWarning("The streamed state of an account differs from the venue's responses", {
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
      startedAt.delete(user)
      comparedAt.delete(user)
    }
    for (const user of recorded) {
      const due = dueAt.get(user) ?? now + every
      dueAt.set(user, due)
      const { changedAt = now } = mirror.states(user) ?? {}
      const isQuiet = now - changedAt >= quietFor || now >= due + every
      if (now < due || !isQuiet) continue
      dueAt.set(user, now + every)
      startedAt.set(user, now)
      yield* Effect.matchEffect(compare(user), { onFailure: () => count("failed"), onSuccess: count })
    }
  })
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep("5 seconds"), tick)))
  const clock = yield* Clock.Clock
  return (user: string): number => {
    const now = clock.currentTimeMillisUnsafe()
    const due = dueAt.get(user) ?? Number.POSITIVE_INFINITY
    const { changedAt = Number.NEGATIVE_INFINITY } = mirror.states(user) ?? {}
    return Math.min(Math.max(0, due - now), now - changedAt, now - (startedAt.get(user) ?? Number.NEGATIVE_INFINITY))
  }
})
