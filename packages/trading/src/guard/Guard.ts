/**
 * The guard: lets a signed action pass only if the policies of its account allow it, and reserves what the action can
 * lead to before its first byte is sent.
 *
 * Decisions are made one at a time, so actions that race cannot exceed a limit together. A reservation ends when the
 * outcome of its action is known and the account's state was read again afterwards. An action of unknown outcome
 * therefore stays reserved until its outcome is settled, or until an operator removes it from the action log.
 *
 * The signer's account is read from the venue (`userRole`), as are the account's positions, orders and prices. If they
 * cannot be read, only actions that reduce risk pass. The actions in `Policy.harmlessActions` always pass.
 */
import { innerAction } from "@trigate/domain/actions/Action"
import { isOpen } from "@trigate/domain/actions/ActionRecord"
import * as Policy from "@trigate/domain/actions/Policy"
import { background, CurrentCaller } from "@trigate/domain/Caller"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import { PolicyViolation } from "@trigate/domain/errors/GatewayError"
import { parseCall } from "@trigate/domain/info/InfoOperations"
import { counter } from "@trigate/domain/unstable/DeclaredMetric"
import * as ResponseCache from "@trigate/upstream/cache/ResponseCache"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import { ActionLog } from "../actionLog/ActionLog.ts"
import type { Settlement } from "../actionLog/LoggedAction.ts"
import type { Admitted } from "../admission/Admission.ts"
import { Info } from "../Info.ts"
import * as GuardedAction from "./GuardedAction.ts"
import * as Markets from "./Markets.ts"
import * as Rules from "./Rules.ts"

/** The metrics of the guard. */
export const metrics = {
  guardRefusals: counter("trigate_guard_refusals_total", "Signed actions that the guard refused, by rule", ["rule"])
} as const

/** The use of an account's limits. */
export interface AccountUse {
  readonly account: Encoding.Address
  readonly policies: ReadonlyArray<string>
  /** The new orders of the last 60 seconds. */
  readonly orders: number
  /** The number of actions whose effect the account's state does not show yet. */
  readonly reserved: number
  /** The notional of open orders and of all positions if all orders fill, by quote token; empty if no limit needs them. */
  readonly notional: ReadonlyArray<{ readonly quote: string; readonly open: number; readonly total: number }>
}

/** A refusal of the guard. */
export interface Refusal {
  /** Wall time in milliseconds. */
  readonly time: number
  readonly violation: PolicyViolation
  readonly caller: string
  readonly actionType: string
}

/** The policies in force, the use of their limits, the halts and the latest refusals. */
export interface Status {
  readonly policies: Policy.Policies
  readonly halts: ReadonlyArray<Policy.HaltTarget>
  readonly accounts: ReadonlyArray<AccountUse>
  readonly refusals: ReadonlyArray<Refusal>
}

/** What an action that passed can lead to, until {@link Reservation.end} and a later read of the account's state. */
export interface Reservation {
  /** Ends the reservation by the settlement of the attempt, or by the fact that nothing was sent. Only the first call counts. */
  readonly end: (settlement: Settlement | "notSent") => void
}

/** The queries that the guard sends. */
export type Queries =
  & Markets.Queries
  & Pick<Info["Service"], "clearinghouseState" | "frontendOpenOrders" | "relay" | "spotClearinghouseState" | "userRole">

/**
 * Decides which signed actions pass.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { Guard } from "@trigate/trading"
 * import { Sandbox } from "@trigate/sandbox"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { halt, status } = yield* Guard.Guard
 *   yield* halt({ coin: "BTC" })
 *   yield* Console.log((yield* status).halts)
 * })
 *
 * await Effect.runPromise(Effect.provide(program, Sandbox.layer()))
 * ```
 * ```text
 * [ { coin: 'BTC' } ]
 * ```
 */
export class Guard extends Context.Service<Guard, {
  /**
   * Lets an action pass and reserves what it can lead to, or fails with the rule that refuses it. Returns `undefined` if
   * no policy applies to the action.
   */
  readonly reserve: (admitted: Admitted) => Effect.Effect<Reservation | undefined, PolicyViolation>
  /** Like `reserve`, without a reservation: what the guard would say now. */
  readonly check: (admitted: Admitted) => Effect.Effect<void, PolicyViolation>
  /** Replaces the policies at once. Reservations and rates stay. */
  readonly replace: (policies: Policy.Policies) => Effect.Effect<void>
  /** Stops actions until `resume`. Actions that only reduce risk still pass. */
  readonly halt: (target: Policy.HaltTarget) => Effect.Effect<void>
  /** Ends a halt. Returns whether there was one. */
  readonly resume: (target: Policy.HaltTarget) => Effect.Effect<boolean>
  readonly status: Effect.Effect<Status>
}>()("@trigate/trading/guard/Guard") {}

/** The guard of the context, if there is one. */
export const current: Effect.Effect<Guard["Service"] | undefined> = Effect.map(
  Effect.serviceOption(Guard),
  Option.getOrUndefined
)

interface Reserved {
  readonly identity: Pick<Admitted, "nonce" | "signer">
  readonly orders: ReadonlyArray<Rules.OpenOrder>
  state: "sent" | "settled" | "unknown"
  /** The time at which the outcome became known. */
  settledAt: number
}

interface View {
  readonly readAt: number
  readonly positions: ReadonlyArray<readonly [market: Markets.GuardedMarket, size: number]>
  readonly orders: ReadonlyArray<Rules.OpenOrder>
  /** The venue's own valuation by coin, for a market without a mid price. */
  readonly values: ReadonlyMap<string, number>
}

interface GuardedAccount {
  readonly address: Encoding.Address
  readonly lock: Semaphore.Semaphore
  readonly reserved: Map<string, Reserved>
  /** The builder dexes in which the account has sent orders. */
  readonly dexes: Set<string>
  sentAt: Array<number>
  view: View | undefined
  exposure: Rules.Exposure | undefined
  builtAt: number
}

/** Milliseconds by which the venue's state can lag behind its response to an action. */
const settleFor = 2000

/** A refusal is never based on an account's state that is older, and reservations are not kept longer than needed. */
const refreshAfter = 1000

/** How long the account of a signer is known, in milliseconds. */
const roleFor = 10 * 60_000

/** How long it is known that the venue knows no account of a signer. */
const missingFor = 2000

const maxSigners = 10_000
const maxAccounts = 10_000
const maxRefusals = 50

/** Formats what a halt stops: an account, a coin, or `all`. */
export const printTarget = (target: Policy.HaltTarget): string =>
  "account" in target ? target.account.toLowerCase() : "coin" in target ? target.coin : "all"

const TwapStatus = Schema.Struct({
  twapId: Schema.NullOr(Schema.Natural),
  state: Schema.Struct({
    coin: Schema.String,
    side: Schema.Literals(["A", "B"]),
    sz: Schema.String,
    executedSz: Schema.String,
    reduceOnly: Schema.Boolean
  }),
  status: Schema.Struct({ status: Schema.String })
})
const decodeTwaps = Schema.decodeUnknownOption(Schema.Array(TwapStatus))

/** What the guard needs besides policies. */
export interface Options {
  readonly policies: Policy.Policies
  readonly info: Queries
  readonly log: Pick<ActionLog["Service"], "find">
}

/** Makes the guard. */
export const make = Effect.fnUntraced(function*(options: Options) {
  const { info, log } = options
  const clock = yield* Clock.Clock
  const scope = yield* Effect.scope
  const markets = Markets.make(info)
  const accounts = new Map<string, GuardedAccount>()
  const roles = new Map<string, { readonly account: Encoding.Address | undefined; readonly until: number }>()
  const halts = new Map<string, Policy.HaltTarget>()
  let refusals: ReadonlyArray<Refusal> = []
  let { policies } = options
  const now = () => Encoding.monotonicMillis(clock)

  const accountFor = (address: Encoding.Address): GuardedAccount => {
    const known = accounts.get(address)
    if (known !== undefined) return known
    if (accounts.size >= maxAccounts) {
      for (const [each, { reserved, sentAt }] of accounts) {
        if (reserved.size === 0 && (sentAt.at(-1) ?? 0) + 60_000 < now()) accounts.delete(each)
      }
    }
    const account: GuardedAccount = {
      address,
      lock: Semaphore.makeUnsafe(1),
      reserved: new Map(),
      dexes: new Set([""]),
      sentAt: [],
      view: undefined,
      exposure: undefined,
      builtAt: 0
    }
    accounts.set(address, account)
    return account
  }

  const refuse = (violation: Rules.Violation, account?: Encoding.Address, policy?: string): PolicyViolation =>
    new PolicyViolation({
      ...violation,
      ...(account === undefined ? {} : { account }),
      ...(policy === undefined ? {} : { policy })
    })

  /** Returns the account of a signer; `undefined` if the venue knows none. */
  const masterOf = Effect.fnUntraced(function*(signer: Encoding.Address) {
    const known = roles.get(signer)
    if (known !== undefined && known.until > now()) return known.account
    const { data, role } = yield* info.userRole({ user: signer })
    const master = data?.user ?? undefined
    const ofAgent = master === undefined ? undefined : Encoding.lowerCase(master)
    const account = role === "missing" ? undefined : role === "agent" ? ofAgent : signer
    if (roles.size >= maxSigners) roles.delete(roles.keys().next().value ?? "")
    roles.set(signer, { account, until: now() + (account === undefined ? missingFor : roleFor) })
    return account
  })

  const priceOf = ({ view }: GuardedAccount) => (market: Markets.GuardedMarket): number =>
    markets.mid(market) ?? view?.values.get(market.coin) ?? 0

  /** Returns what the account has and what its open and reserved orders can lead to, at the current prices. */
  const exposureOf = (account: GuardedAccount): Rules.Exposure | undefined => {
    const { reserved, view } = account
    if (view === undefined) return undefined
    if (account.exposure !== undefined && now() - account.builtAt < refreshAfter) return account.exposure
    const exposure = new Rules.Exposure()
    const price = priceOf(account)
    for (const [market, size] of view.positions) exposure.setPosition(market, size)
    for (const order of view.orders) exposure.add(order, price(order.market))
    for (const { orders } of reserved.values()) for (const order of orders) exposure.add(order, price(order.market))
    account.exposure = exposure
    account.builtAt = now()
    return exposure
  }

  const readTwaps = Effect.fnUntraced(function*(user: string) {
    const call = yield* Effect.orDie(parseCall(Encoding.write({ type: "twapHistory", user }), "gateway", true))
    const { json: { valueOrUndefined: value } } = yield* info.relay(call)
    const latest = new Map(Option.getOrElse(decodeTwaps(value), () => []).toReversed().map((row) => [row.twapId, row]))
    return [...latest.values()].filter(({ status }) => status.status === "activated").map(({ state }) => ({
      market: markets.ofCoin(state.coin),
      isBuy: state.side === "B",
      size: Number(state.sz) - Number(state.executedSz),
      isReduceOnly: state.reduceOnly
    }))
  })

  /** Marks the reservations whose outcome the action log knows by now. */
  const settleKnown = Effect.fnUntraced(function*(account: GuardedAccount) {
    for (const entry of account.reserved.values()) {
      const { nonce, signer } = entry.identity
      if (entry.state !== "unknown" || signer === undefined) continue
      const found = yield* Effect.option(log.find({ signer, nonce }))
      if (Option.isNone(found) || found.value.some(isOpen)) continue
      entry.state = "settled"
      entry.settledAt = now()
    }
  })

  const readView = Effect.fnUntraced(function*(account: GuardedAccount) {
    yield* settleKnown(account)
    const readAt = now()
    const user = account.address
    yield* markets.ensureLists(account.dexes, readAt)
    yield* markets.ensurePrices(account.dexes, false, readAt)
    const positions: Array<readonly [Markets.GuardedMarket, number]> = []
    const values = new Map<string, number>()
    const orders: Array<Rules.OpenOrder> = [...yield* readTwaps(user)]
    for (const dex of account.dexes) {
      const { assetPositions } = yield* info.clearinghouseState({ user, dex })
      for (const { position: { coin, positionValue, szi } } of assetPositions) {
        positions.push([markets.ofCoin(coin), Number(szi)])
        values.set(coin, Math.abs(Number(positionValue) / Number(szi)))
      }
      for (const order of yield* info.frontendOpenOrders({ user, dex })) {
        const price = Math.max(Number(order.limitPx), order.isTrigger ? Number(order.triggerPx) : 0)
        orders.push({
          market: markets.ofCoin(order.coin),
          isBuy: order.side === "B",
          size: Number(order.sz),
          price,
          isReduceOnly: order.reduceOnly
        })
      }
    }
    for (const { coin, total } of (yield* info.spotClearinghouseState({ user })).balances) {
      for (const market of markets.ofBase(coin)) positions.push([market, Number(total)])
    }
    account.view = { readAt, positions, orders, values }
    for (const [fingerprint, { settledAt, state }] of account.reserved) {
      if (state === "settled" && settledAt + settleFor <= readAt) account.reserved.delete(fingerprint)
    }
    account.exposure = undefined
  })

  /** Reads the state of an account that was not read since a time. Its age tells if it cannot be read. */
  const refresh = (account: GuardedAccount, since: number) =>
    account.lock.withPermits(1)(
      Effect.suspend(() =>
        account.view !== undefined && account.view.readAt >= since ? Effect.void : Effect.ignore(readView(account))
      )
    ).pipe(
      Effect.provideService(CurrentCaller, background("guard")),
      Effect.provideService(ResponseCache.MaxAge, refreshAfter / 1000)
    )

  const recentOrders = (account: GuardedAccount): ReadonlyArray<number> => {
    const since = now() - 60_000
    const { sentAt } = account
    if ((sentAt[0] ?? Number.POSITIVE_INFINITY) <= since) account.sentAt = sentAt.filter((time) => time > since)
    return account.sentAt
  }

  /** What is known of an action before it is judged. */
  interface Prepared {
    readonly admitted: Admitted
    readonly action: GuardedAction.GuardedAction
    readonly account: GuardedAccount
    readonly selected: ReadonlyArray<Policy.Policy>
    readonly needsState: boolean
  }

  const isIdle = (): boolean => policies.policies.length === 0 && policies.otherAccounts !== "refuse" && halts.size === 0

  const halted = (action: GuardedAction.GuardedAction, account: string): Rules.Violation | undefined => {
    if (halts.size === 0 || Rules.isReducing(action)) return undefined
    const coins = action.legs.flatMap(({ asset }) => markets.find(asset)?.coin ?? [])
    const stopped = ["all", account, ...coins].find((each) => halts.has(each))
    return stopped === undefined ? undefined : {
      rule: "halt",
      detail: stopped === "all" ? "Trading is halted by the operator" : `Trading of ${stopped} is halted by the operator`
    }
  }

  const unknownAccount = (detail: string, retryAfter?: number): Rules.Violation => ({
    rule: "account",
    detail,
    ...(retryAfter === undefined ? {} : { retryAfter })
  })

  /** Finds the account on which an action acts, and its policies. Returns `undefined` if the action just passes. */
  const prepare = Effect.fnUntraced(function*(admitted: Admitted) {
    const type = (innerAction(admitted.signed.action) ?? admitted.signed.action).type
    if (isIdle() || Policy.harmlessActions.has(type)) return undefined
    const { signer } = admitted
    const action = GuardedAction.read(admitted)
    if (signer === undefined) {
      return yield* refuse({ rule: "signature", detail: "The signature recovers to nobody, so no policy can be selected" })
    }
    if (action === undefined) {
      return yield* refuse({ rule: "actions", detail: `The members of this ${type} cannot be read, so no rule can judge it` })
    }
    const caller = yield* CurrentCaller
    const found = action.multiSigUser === undefined && !action.isSignedByAccount
      ? yield* Effect.option(Effect.provideService(masterOf(signer), CurrentCaller, background("guard")))
      : Option.some(action.multiSigUser ?? signer)
    const master = Option.getOrUndefined(found)
    const address = action.vault ?? master
    if (address === undefined || (master === undefined && Option.isSome(found))) {
      if (Option.isNone(found) && Rules.isReducing(action)) return undefined
      return yield* refuse(
        Option.isNone(found)
          ? unknownAccount("The account of the signer cannot be read from the venue at the moment", 1)
          : unknownAccount("The venue knows no account of this signer")
      )
    }
    // an action that does not trade can act on the signer's account, whatever vault it names
    const others = master === undefined || master === address || Policy.tradingActions.has(action.type) ? [] : [master]
    const selected = [...new Set([address, ...others].flatMap((each) => Policy.select(policies, each, caller.id)))]
    if (selected.length === 0 && policies.otherAccounts === "refuse") {
      return yield* refuse(unknownAccount("No policy names this account"), address)
    }
    if (selected.length === 0 && halts.size === 0) return undefined
    const account = accountFor(address)
    const assets = action.legs.map(({ asset }) => asset)
    yield* ready(account, action, assets, selected)
    return { admitted, action, account, selected, needsState: selected.some(Rules.needsState) }
  })

  /** Reads the names, the prices and the account's state that the policies need. */
  const ready = Effect.fnUntraced(
    function*(
      account: GuardedAccount,
      action: GuardedAction.GuardedAction,
      assets: ReadonlyArray<number>,
      selected: ReadonlyArray<Policy.Policy>
    ) {
      const usesPrices = selected.some((policy) => Rules.needsPrices(policy, action))
      if (usesPrices || halts.size > 0 || selected.some(({ coins }) => coins !== undefined)) {
        yield* markets.ensureNames(assets, now())
      }
      if (!usesPrices) return
      const dexes = new Set(assets.flatMap((asset) => markets.find(asset)?.dex ?? []))
      for (const dex of [...dexes, ...selected.flatMap(Policy.dexesIn)]) {
        if (account.dexes.has(dex)) continue
        account.dexes.add(dex)
        account.view = undefined
      }
      yield* markets.ensurePrices(dexes, selected.some(({ oracleBand }) => oracleBand !== undefined), now())
      if (!selected.some(Rules.needsState) || Rules.isReducing(action)) return
      const age = now() - (account.view?.readAt ?? Number.NEGATIVE_INFINITY)
      if (age > Math.min(...selected.map(Policy.maxAge)) / 2) yield* refresh(account, now())
      else if (account.reserved.size > 0 && age > settleFor) yield* Effect.forkIn(refresh(account, now()), scope)
    },
    Effect.provideService(CurrentCaller, background("guard"))
  )

  /** Returns the first violation of the policies. */
  const decide = ({ account, action, selected }: Prepared): PolicyViolation | undefined => {
    const stopped = halted(action, account.address)
    if (stopped !== undefined) return refuse(stopped, account.address)
    const situation: Rules.Situation = {
      action,
      account: account.address,
      markets,
      priceOf: priceOf(account),
      exposure: exposureOf(account),
      stateAge: now() - (account.view?.readAt ?? Number.NEGATIVE_INFINITY),
      wallTime: clock.currentTimeMillisUnsafe(),
      now: now(),
      sentAt: recentOrders(account)
    }
    for (const policy of selected) {
      const violation = Rules.violation(policy, situation)
      if (violation !== undefined) return refuse(violation, account.address, policy.name)
    }
    return undefined
  }

  /** Judges an action that may be sent again: what an earlier attempt has reserved is not counted twice. */
  const decideAgain = (prepared: Prepared): PolicyViolation | undefined => {
    const { account, admitted: { fingerprint } } = prepared
    const earlier = account.reserved.get(fingerprint)
    if (earlier === undefined) return decide(prepared)
    account.reserved.delete(fingerprint)
    account.exposure = undefined
    const found = decide(prepared)
    account.reserved.set(fingerprint, earlier)
    account.exposure = undefined
    return found
  }

  const record = Effect.fnUntraced(function*(violation: PolicyViolation, { actionType }: Admitted) {
    const caller = yield* CurrentCaller
    const refusal = { time: clock.currentTimeMillisUnsafe(), violation, caller: caller.id, actionType }
    refusals = [refusal, ...refusals].slice(0, maxRefusals)
    yield* Metric.update(metrics.guardRefusals.series({ rule: violation.rule }), 1)
    yield* Effect.logWarning(`The guard refused ${Encoding.printable(actionType)}: ${violation.message}`)
    return yield* violation
  })

  const reservation = (account: GuardedAccount, fingerprint: string, entry: Reserved, isRepeat: boolean): Reservation => {
    let isEnded = false
    return {
      end: (settlement) => {
        if (isEnded) return
        isEnded = true
        if (settlement === "unknown") {
          if (entry.state === "sent") entry.state = "unknown"
        } else if (settlement === "accepted") {
          entry.state = "settled"
          entry.settledAt = now()
        } else if (!isRepeat && account.reserved.get(fingerprint) === entry) {
          account.reserved.delete(fingerprint)
          account.exposure = undefined
        }
      }
    }
  }

  /** Reserves what an action can lead to. */
  const hold = ({ account, action, admitted, needsState }: Prepared): Reservation => {
    const { fingerprint, nonce, signer } = admitted
    const earlier = account.reserved.get(fingerprint)
    if (earlier !== undefined) return reservation(account, fingerprint, earlier, true)
    const time = now()
    if (action.legs.length > 0) account.sentAt.push(...action.legs.map(() => time))
    const orders = needsState ? Rules.ordersIn(action, markets) : []
    const entry: Reserved = { identity: { nonce, signer }, orders, state: "sent", settledAt: 0 }
    if (orders.length > 0) {
      account.reserved.set(fingerprint, entry)
      const price = priceOf(account)
      for (const order of orders) account.exposure?.add(order, price(order.market))
    }
    return reservation(account, fingerprint, entry, false)
  }

  const judge = Effect.fnUntraced(function*(admitted: Admitted, isDryRun: boolean) {
    const prepared = yield* prepare(admitted).pipe(Effect.catch((violation) => record(violation, admitted)))
    if (prepared === undefined) return undefined
    const { account, needsState } = prepared
    let violation = decideAgain(prepared)
    const isOld = now() - (account.view?.readAt ?? 0) > refreshAfter
    if (violation !== undefined && needsState && isOld && Rules.stateRules.has(violation.rule)) {
      // what the account's state does not show yet may have ended by now
      yield* refresh(account, now())
      violation = decideAgain(prepared)
    }
    if (violation !== undefined && account.reserved.size > 0 && Rules.stateRules.has(violation.rule)) {
      // by then, the effects of what was just sent are in the account's state
      yield* Effect.forkIn(Effect.delay(refresh(account, now() + settleFor), settleFor), scope)
      violation = new PolicyViolation({ ...violation, retryAfter: Math.ceil(settleFor / 1000) + 1 })
    }
    if (violation !== undefined) return yield* isDryRun ? violation : record(violation, admitted)
    return isDryRun ? undefined : hold(prepared)
  })

  const useOf = (account: GuardedAccount): AccountUse => {
    const exposure = exposureOf(account)
    const quotes = new Set((account.view?.positions ?? []).map(([{ quote }]) => quote))
    for (const { market } of account.view?.orders ?? []) quotes.add(market.quote)
    for (const { orders } of account.reserved.values()) for (const { market } of orders) quotes.add(market.quote)
    const own = policies.policies.filter((policy) => Policy.covers(policy, account.address))
    return {
      account: account.address,
      policies: own.map(({ name }) => name),
      orders: recentOrders(account).length,
      reserved: account.reserved.size,
      notional: exposure === undefined ? [] : [...quotes].map((quote) => ({
        quote,
        open: exposure.openNotional(quote),
        total: exposure.totalNotional(
          quote,
          priceOf(account),
          (coin) => own.every((policy) => Policy.includesCoin(policy, coin))
        )
      }))
    }
  }

  return Guard.of({
    reserve: (admitted) => judge(admitted, false),
    check: (admitted) => Effect.asVoid(judge(admitted, true)),
    replace: (next) =>
      Effect.sync(() => {
        policies = next
      }),
    halt: (target) => Effect.sync(() => void halts.set(printTarget(target), target)),
    resume: (target) => Effect.sync(() => halts.delete(printTarget(target))),
    status: Effect.sync(() => ({
      policies,
      halts: [...halts.values()],
      accounts: [...accounts.values()].map(useOf),
      refusals
    }))
  })
})

/** A guard that was made before, or the policies of a new one. Default: no policies. */
export interface GuardOptions {
  /** The policies by which signed actions are judged. */
  readonly policies?: Policy.Policies | undefined
  /** A guard to use instead of a new one, so that its state outlives the services. */
  readonly guard?: Guard["Service"] | undefined
}

/**
 * Provides the guard, over the queries and the action log of the context. The layers of `Trading` and of the sandbox
 * contain it: give them `policies`.
 *
 * @since 0.1.0
 * @category layers
 * @example
 * ```ts
 * import { Policy } from "@trigate/domain"
 * import { Exchange } from "@trigate/trading"
 * import { Sandbox } from "@trigate/sandbox"
 * import { ActionBuilder, Signer } from "@trigate/signing"
 * import { Clock, Console, Effect, Layer, Redacted } from "effect"
 *
 * const order = { asset: 0, side: "buy", priceInQuote: "60000", sizeInBase: "1" } as const
 * const signer = Signer.layerPrivateKey(
 *   Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
 * )
 *
 * const program = Effect.gen(function*() {
 *   const nonce = yield* Clock.currentTimeMillis
 *   const signed = yield* ActionBuilder.placeOrders({ orders: [order] }, { nonce })
 *   const { submit } = yield* Exchange.Exchange
 *   yield* submit(signed)
 * }).pipe(Effect.catchReason("RequestError", "PolicyViolation", ({ limit, rule }) => Console.log(rule, limit)))
 *
 * const policies = Effect.runSync(Policy.decode({ policies: [{ name: "desk", accounts: "*", orderNotional: 5000 }] }))
 *
 * await Effect.runPromise(Effect.provide(program, Layer.merge(Sandbox.layer({ policies }), signer)))
 * ```
 * ```text
 * orderNotional 5000
 * ```
 */
export const layer = (
  { guard, policies = Policy.none }: GuardOptions = {}
): Layer.Layer<Guard, never, ActionLog | Info> =>
  guard === undefined
    ? Layer.effect(Guard, Effect.flatMap(Effect.all([Info, ActionLog]), ([info, log]) => make({ policies, info, log })))
    : Layer.succeed(Guard, guard)
