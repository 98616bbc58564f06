/**
 * Determines the outcomes of actions in state `unknown` from the orders, the fills and the time that the venue reports.
 * Sends no action.
 *
 * An order is looked up by its account and its client order ID. The order found must match the signed content, and no
 * other action of the log may have placed it: an account can use an ID again. Actions of other accounts can have the same
 * ID. An action that is not found becomes `neverArrived` after the venue's own clock has passed the action's
 * `expiresAfter`.
 *
 * Lookups are periodic. If an event of a watched account contains the client order ID, an additional lookup follows
 * immediately.
 */
import type { ActionEntry, Cloid } from "@trigate/domain/actions/ActionOutcome"
import * as Resolution from "@trigate/domain/actions/Resolution"
import { CurrentCaller, local } from "@trigate/domain/Caller"
import * as Json from "@trigate/domain/encoding/Encoding"
import { Address, lowerCase, Millis } from "@trigate/domain/encoding/Encoding"
import { unwrapReason } from "@trigate/domain/errors/GatewayError"
import type { OrderRecord } from "@trigate/domain/info/Account"
import * as InfoProtocol from "@trigate/domain/info/InfoOperations"
import type { ReadOperation } from "@trigate/domain/operations/Operation"
import { Freshness } from "@trigate/upstream/cache/ResponseCache"
import { IsRefresh } from "@trigate/upstream/limits/RateLimiter"
import { makePriorityWeight } from "@trigate/upstream/unstable/limits/RateWindow"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import type { OrderEvents } from "../accounts/AccountEvents.ts"
import { Info } from "../Info.ts"
import { ActionLog, metrics } from "./ActionLog.ts"
import {
  type Conclusion,
  expiryMargin,
  type Leg,
  listCloids,
  mostFound,
  type Recorded,
  type Unsettled
} from "./LoggedAction.ts"

/** Tolerance for the difference between the gateway's clock and the venue's, in milliseconds. */
const clockTolerance = 60_000

/** Maximum number of signers whose accounts are cached. */
const maxAccounts = 10_000

/** Maximum number of client order IDs whose events cause a lookup. */
const mostAwaited = 1000

/** Maximum number of actions with one client order ID whose events cause a lookup. */
const mostOfCloid = 10

/**
 * Maximum number of signers, of other actions with the same client order ID, whose accounts one lookup queries. The
 * accounts are cached, so the next lookup queries others.
 */
const mostRivals = 10

/**
 * The weight per minute of the queries that precede refreshes of cached responses, so that outcomes are known within
 * seconds also while callers use the whole limit. Further queries use only what callers leave.
 */
const promptWeight = 120

const decodeMaster = Schema.decodeUnknownOption(Schema.Struct({ user: Address }))
const decodeStatus = Schema.decodeUnknownOption(Schema.Struct({ time: Millis }))
const statusQuery = InfoProtocol.parseCall(Json.write({ type: "exchangeStatus" }), "gateway", true)

const numeric = (text: string): string => text.includes(".") ? text.replace(/\.?0+$/u, "") : text

/**
 * Returns whether an order at the venue matches an order as it was signed. The client order ID alone is not sufficient,
 * because an earlier order may have had that ID.
 */
const agrees = (leg: Leg, { order }: OrderRecord, openedAt: number): boolean =>
  order.side === (leg.isBuy ? "B" : "A") &&
  numeric(order.limitPx) === numeric(leg.price) &&
  numeric(order.origSz) === numeric(leg.size) &&
  order.timestamp >= openedAt - clockTolerance

/** Returns whether an action of the log may have placed an order at the venue, according to its outcome. */
const mayHavePlaced = ({ settled, state }: Recorded, record: OrderRecord): boolean =>
  state !== "rejected" && state !== "neverArrived" &&
  (settled?.entries?.some((entry) => {
    switch (entry._tag) {
      case "Filled":
      case "Resting":
        return String(entry.oid) === String(record.order.oid)
      case "Rejected":
        return Resolution.isRejected(record)
      default:
        return true
    }
  }) ?? true)

/**
 * The result of an order, cancel or modify that took effect with its action, but that the venue's state does not show.
 */
const notShown: ActionEntry = {
  _tag: "Unrecognised",
  raw: "The venue's state does not show the result of this order, cancel or modify"
}

/** The sources of outcomes other than periodic queries. */
export interface Options {
  /**
   * Events of watched accounts. Each event causes an immediate lookup of the action that placed the order. Default:
   * none.
   */
  readonly orders?: OrderEvents | undefined
}

/**
 * A lookup for which there is no weight is made again for ten seconds. The next one would otherwise follow after half of
 * the action's age.
 */
const whileLimited = {
  times: 10,
  schedule: Schedule.spaced("1 second"),
  while: (error: unknown) => Predicate.isTagged(unwrapReason(error), "UpstreamRateLimited")
}

const turns = Effect.fnUntraced(function*({ orders }: Options) {
  const log = yield* ActionLog
  const info = yield* Info
  const accounts = new Map<string, Address | undefined>()
  const priority = makePriorityWeight(promptWeight)

  /** Sends a query before refreshes of cached responses while weight for such queries is left. */
  const promptly = <A, E, R>({ cost }: ReadOperation, query: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.flatMap(priority.take(cost.weight), (isPrompt) => Effect.provideService(query, IsRefresh, !isPrompt))

  /**
   * Returns the account for which a signer trades: its own, or its master's; `undefined` if the venue does not know the
   * signer.
   */
  const tradingAccount = Effect.fnUntraced(function*(signer: Address) {
    if (accounts.has(signer)) return accounts.get(signer)
    const found = yield* promptly(InfoProtocol.infoOperations.userRole, info.userRole({ user: signer }))
    const data = found.role === "agent" ? found["data"] : undefined
    const master = Option.getOrUndefined(Option.map(decodeMaster(data), ({ user }) => lowerCase(user)))
    const account = found.role === "agent" ? master : found.role === "missing" ? undefined : signer
    if (account !== undefined && accounts.size < maxAccounts) accounts.set(signer, account)
    return account
  })

  /** Returns the venue's time, in milliseconds. */
  const venueTime = Effect.gen(function*() {
    const query = yield* statusQuery
    const response = yield* promptly(query.operation, info.relay(query))
    return Option.getOrUndefined(decodeStatus(response.json.valueOrUndefined))?.time
  })

  /** Returns whether an action of the log is for the account `user`, for which the action `own` is. */
  const isFor = Effect.fnUntraced(function*(user: Address, { signer, vault }: Recorded, own: Unsettled) {
    if (vault !== undefined && vault !== "") return vault === user
    if (signer === undefined) return true
    const account = yield* tradingAccount(signer)
    // it is not known for which vault an earlier version recorded the action: only the vault's leader acts for it
    return account === (vault === undefined && own.signer !== undefined ? yield* tradingAccount(own.signer) : user)
  })

  /**
   * Returns whether another action in the action log may have placed the order `record` of an account. The order then
   * cannot be attributed to one action.
   */
  const isShared = Effect.fnUntraced(function*(user: Address, cloid: Cloid, record: OrderRecord, own: Unsettled) {
    const found = yield* log.find({ cloid })
    // there may be more
    if (found.length >= mostFound) return true
    let queries = 0
    for (const rival of found) {
      if (rival.fingerprint === own.fingerprint || !mayHavePlaced(rival, record)) continue
      if (rival.signer !== undefined && !accounts.has(rival.signer) && ++queries > mostRivals) return true
      if (yield* isFor(user, rival, own)) return true
    }
    return false
  })

  const lookUp = Effect.fnUntraced(
    function*(user: Address, leg: Leg, own: Unsettled) {
      const { cloid } = leg
      if (cloid === undefined) return "unknowable" as const
      const response = yield* promptly(InfoProtocol.infoOperations.orderStatus, info.orderStatus({ user, oid: cloid }))
      if (response.status === "unknownOid") return "absent" as const
      const isOther = !agrees(leg, response.order, own.openedAt) || (yield* isShared(user, cloid, response.order, own))
      return isOther ? "unknowable" as const : response.order
    }
  )

  const findEntry = Effect.fnUntraced(function*(user: Address, record: OrderRecord) {
    const { oid, timestamp } = record.order
    if (Resolution.isRejected(record) || Resolution.isOpen(record)) return Resolution.entryFrom(record, [])
    const times = { startTime: timestamp, endTime: record.statusTimestamp }
    const fills = yield* promptly(InfoProtocol.infoOperations.userFillsByTime, info.userFillsByTime({ user, ...times }))
    return Resolution.entryFrom(record, fills.filter((fill) => fill.oid === oid))
  })

  const findEntries = Effect.fnUntraced(function*(action: Unsettled, past: boolean) {
    const { signer, trace } = action
    const user = trace.vault ?? (signer === undefined ? undefined : yield* tradingAccount(signer))
    if (user === undefined) return undefined
    const search = (leg: Leg) => lookUp(user, leg, action)
    const first = yield* Effect.forEach(trace.legs, search)
    if (!first.some(Predicate.isObject)) {
      return past && first.every((found) => found === "absent") ? "absent" as const : undefined
    }
    // the venue accepts or refuses an action as a whole: after one leg is found, no further leg can take effect later
    const found = yield* Effect.forEach(
      trace.legs,
      (leg, at) => first[at] === "absent" ? search(leg) : Effect.succeed(first[at])
    )
    return yield* Effect.forEach(
      found,
      (each) => Predicate.isObject(each) ? findEntry(user, each) : Effect.succeed(notShown)
    )
  })

  const findConclusion = Effect.fnUntraced(function*(action: Unsettled) {
    const { trace } = action
    if (listCloids(trace).length === 0) return undefined
    const { expiresAfter } = trace
    // the time must be read before the orders are looked up, so that an order that arrives between the two steps is
    // found
    const time = expiresAfter === undefined ? undefined : yield* venueTime
    const isPast = expiresAfter !== undefined && time !== undefined && time > expiresAfter + expiryMargin
    const entries = yield* findEntries(action, isPast)
    if (entries === undefined) return undefined
    return entries === "absent"
      ? { state: "neverArrived", settled: { by: "expiry" } } satisfies Conclusion
      : { state: "accepted", settled: { by: "orderStatus", entries } } satisfies Conclusion
  })

  /** The actions whose orders have not been found, by client order ID. Actions of several accounts can have one ID. */
  const awaited = new Map<string, ReadonlyArray<Unsettled>>()

  const stopAwaiting = ({ fingerprint, trace }: Unsettled): void => {
    for (const cloid of listCloids(trace)) {
      const others = (awaited.get(cloid) ?? []).filter((each) => each.fingerprint !== fingerprint)
      if (others.length === 0) awaited.delete(cloid)
      else awaited.set(cloid, others)
    }
  }

  const awaitEvents = (action: Unsettled): void => {
    stopAwaiting(action)
    for (const cloid of listCloids(action.trace)) {
      awaited.set(cloid, [...awaited.get(cloid) ?? [], action].slice(-mostOfCloid))
    }
    for (const oldest of awaited.keys()) {
      if (awaited.size <= mostAwaited) break
      awaited.delete(oldest)
    }
  }

  const settle = Effect.fnUntraced(function*(action: Unsettled) {
    const conclusion = yield* findConclusion(action)
    if (conclusion === undefined) return
    stopAwaiting(action)
    if (!(yield* log.conclude(action.fingerprint, conclusion))) return
    yield* Metric.update(metrics.actionLogSettled.series({ state: conclusion.state }), 1)
    yield* Effect.logInfo(
      `The action ${action.fingerprint} of unknown outcome ${
        conclusion.state === "accepted" ? "was accepted" : "never arrived"
      }, according to the venue's state`
    )
  })

  const settleAll = Effect.fnUntraced(
    function*(actions: ReadonlyArray<Unsettled>) {
      for (const action of actions) yield* Effect.ignore(Effect.retry(settle(action), whileLimited))
    },
    Effect.provideService(Freshness, "none"),
    Effect.provideService(CurrentCaller, local)
  )

  const turn = Effect.flatMap(log.takeUnknown, (actions) => {
    // events are awaited before the lookup, because an order may take effect during the lookup
    if (orders !== undefined) actions.forEach(awaitEvents)
    return settleAll(actions)
  })
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(log.untilTurn, Effect.ignore(turn))))
  if (orders === undefined) return
  const prompted = yield* Queue.sliding<Unsettled>(mostAwaited)
  yield* orders.listen((user, readCloid) => {
    for (const action of awaited.size === 0 ? [] : awaited.get(readCloid() ?? "") ?? []) {
      const { signer, trace: { vault } } = action
      const account = vault ?? (signer === undefined ? undefined : accounts.get(signer))
      if (account !== undefined && account !== user) continue
      // at most one event of each action causes a lookup before the next periodic lookup
      stopAwaiting(action)
      Queue.offerUnsafe(prompted, action)
    }
  })
  yield* Effect.forkScoped(Effect.forever(Effect.flatMap(Queue.take(prompted), (action) => settleAll([action]))))
})

/**
 * Periodically looks up the action log's actions of unknown outcome at the venue, while the layer is open.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { ActionLogMemory, ActionSettlement, InfoUpstream } from "@trigate/trading"
 * import { Layer } from "effect"
 *
 * export const settling = ActionSettlement.layer().pipe(
 *   Layer.provideMerge(ActionLogMemory.layer()),
 *   Layer.provide(InfoUpstream.layerUndici({ url: "https://api.hyperliquid.xyz" }))
 * )
 * ```
 */
export const layer = (options: Options = {}): Layer.Layer<never, never, ActionLog | Info> =>
  Layer.effectDiscard(turns(options))
