/**
 * Settles actions of unknown outcome without sending anything: their outcome follows from the venue's state of their orders, and
 * its time.
 *
 * An order is looked up by its cloid alone, and only if no other action of the log has that cloid. The signed content has to agree
 * with the order found. An action that is not found is `neverArrived` once the venue's own clock is past its `expiresAfter`.
 */
import type { ActionEntry, Cloid } from "@trigate/domain/actions/ActionOutcome"
import * as OrderOutcome from "@trigate/domain/actions/OrderOutcome"
import { CurrentCaller, local } from "@trigate/domain/Caller"
import { Address } from "@trigate/domain/encoding/Hex"
import * as Json from "@trigate/domain/encoding/Json"
import * as InfoProtocol from "@trigate/domain/info/InfoProtocol"
import type { OrderRecord } from "@trigate/domain/info/Order"
import { Millis } from "@trigate/domain/Time"
import { Freshness } from "@trigate/upstream/cache/ResponseCache"
import { IsRefresh } from "@trigate/upstream/limits/RateLimiter"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { Info } from "../Info.ts"
import { ActionLog } from "./ActionLog.ts"
import type { Conclusion, Unsettled } from "./ActionLog.ts"
import { metrics } from "./ActionLogMetrics.ts"
import * as ActionTrace from "./ActionTrace.ts"

/**
 * Milliseconds by which the venue's time has to be past `expiresAfter` before an action that is not found never arrived: servers
 * of the venue may lag behind one another.
 */
const expiryMargin = 2000

/** Milliseconds by which the clock of the gateway and that of the venue may differ. */
const clockTolerance = 60_000

/** The most signers whose accounts are remembered. */
const mostAccounts = 10_000

const decodeMaster = Schema.decodeUnknownOption(Schema.Struct({ user: Address }))
const decodeStatus = Schema.decodeUnknownOption(Schema.Struct({ time: Millis }))
const statusQuery = InfoProtocol.parseCall(Json.write({ type: "exchangeStatus" }), "gateway", true)

const numeric = (text: string): string => text.includes(".") ? text.replace(/\.?0+$/u, "") : text

/** Whether an order is the one that a leg asked for: its cloid may have named another order before. */
const agrees = (leg: ActionTrace.Leg, { order }: OrderRecord, openedAt: number): boolean =>
  order.side === (leg.isBuy ? "B" : "A") &&
  numeric(order.limitPx) === numeric(leg.price) &&
  numeric(order.origSz) === numeric(leg.size) &&
  order.timestamp >= openedAt - clockTolerance

/** A leg of which the venue's state shows nothing, in an action that took effect. */
const notShown: ActionEntry = { _tag: "Unrecognised", raw: "The venue's state does not show this leg" }

const turns = Effect.gen(function*() {
  const log = yield* ActionLog
  const info = yield* Info
  const accounts = new Map<string, Address | undefined>()

  /** The account that a signer trades for: its own, or that of its master; undefined for a signer that the venue does not know. */
  const tradingAccount = Effect.fnUntraced(function*(signer: Address) {
    if (accounts.has(signer)) return accounts.get(signer)
    const found = yield* info.userRole({ user: signer })
    const data = found.role === "agent" ? found["data"] : undefined
    const master = Option.getOrUndefined(decodeMaster(data))?.user
    const account = found.role === "agent" ? master : found.role === "missing" ? undefined : signer
    if (account !== undefined && accounts.size < mostAccounts) accounts.set(signer, account)
    return account
  })

  /** The venue's time, in milliseconds. */
  const venueTime = Effect.gen(function*() {
    const response = yield* info.relay(yield* statusQuery)
    return Option.getOrUndefined(decodeStatus(response.json.valueOrUndefined))?.time
  })

  /** Returns whether another action of the log may have placed an order under the cloid: the order then cannot be attributed. */
  const isShared = (cloid: Cloid, own: string) =>
    Effect.map(
      log.find({ cloid }),
      (found) =>
        found.some(({ fingerprint, state }) => fingerprint !== own && state !== "rejected" && state !== "neverArrived")
    )

  const lookUp = Effect.fnUntraced(
    function*(user: Address, leg: ActionTrace.Leg, { fingerprint, openedAt }: Unsettled) {
      const { cloid } = leg
      if (cloid === undefined) return "unknowable" as const
      const answer = yield* info.orderStatus({ user, oid: cloid })
      if (answer.status === "unknownOid") return "absent" as const
      if (!agrees(leg, answer.order, openedAt) || (yield* isShared(cloid, fingerprint))) return "unknowable" as const
      return answer.order
    }
  )

  const findEntry = Effect.fnUntraced(function*(user: Address, record: OrderRecord) {
    const { oid, timestamp } = record.order
    if (OrderOutcome.isRejected(record) || OrderOutcome.isOpen(record)) return OrderOutcome.entryFrom(record, [])
    const fills = yield* info.userFillsByTime({ user, startTime: timestamp, endTime: record.statusTimestamp })
    return OrderOutcome.entryFrom(record, fills.filter((fill) => fill.oid === oid))
  })

  const findEntries = Effect.fnUntraced(function*(action: Unsettled, past: boolean) {
    const { signer, trace } = action
    const user = trace.vault ?? (signer === undefined ? undefined : yield* tradingAccount(signer))
    if (user === undefined) return undefined
    const search = (leg: ActionTrace.Leg) => lookUp(user, leg, action)
    const first = yield* Effect.forEach(trace.legs, search)
    if (!first.some(Predicate.isObject)) {
      return past && first.every((found) => found === "absent") ? "absent" as const : undefined
    }
    // the venue takes or refuses an action as a whole: what shows of it now is all that will
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
    if (ActionTrace.cloids(trace).length === 0) return undefined
    const { expiresAfter } = trace
    // read before the orders are looked up
    const time = expiresAfter === undefined ? undefined : yield* venueTime
    const isPast = expiresAfter !== undefined && time !== undefined && time > expiresAfter + expiryMargin
    const entries = yield* findEntries(action, isPast)
    if (entries === undefined) return undefined
    return entries === "absent"
      ? { state: "neverArrived", settled: { by: "expiry" } } satisfies Conclusion
      : { state: "accepted", settled: { by: "orderStatus", entries } } satisfies Conclusion
  })

  const settle = Effect.fnUntraced(function*(action: Unsettled) {
    const conclusion = yield* findConclusion(action)
    if (conclusion === undefined || !(yield* log.conclude(action.fingerprint, conclusion))) return
    yield* Metric.update(metrics.actionLogSettled.series({ state: conclusion.state }), 1)
    yield* Effect.logInfo(
      `The action ${action.fingerprint} of unknown outcome ${
        conclusion.state === "accepted" ? "was accepted" : "never arrived"
      }: the venue's state shows it`
    )
  })

  const turn = Effect.flatMap(
    log.takeUnknown,
    (actions) => Effect.forEach(actions, (action) => Effect.ignore(settle(action)), { discard: true })
  ).pipe(
    // within what callers leave of the rate limit
    Effect.provideService(IsRefresh, true),
    Effect.provideService(Freshness, "none"),
    Effect.provideService(CurrentCaller, local),
    Effect.ignore
  )
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(log.untilTurn, turn)))
})

/**
 * Looks up the actions of unknown outcome of the log in turns, for as long as the layer lives.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { ActionLog, ActionSettlement, InfoUpstream } from "@trigate/trading"
 * import { Layer } from "effect"
 *
 * export const settling = ActionSettlement.layer.pipe(
 *   Layer.provideMerge(ActionLog.layerMemory()),
 *   Layer.provide(InfoUpstream.layerUndici({ url: "https://api.hyperliquid.xyz" }))
 * )
 * ```
 */
export const layer: Layer.Layer<never, never, ActionLog | Info> = Layer.effectDiscard(turns)
