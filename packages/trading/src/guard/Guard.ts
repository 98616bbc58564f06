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
import * as Fiber from "effect/Fiber"
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
  /** The exposure to which the orders were added. */
  readonly exposure: Rules.Exposure | undefined
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
  /** The prices with which the exposure was made. */
  prices: (market: Markets.GuardedMarket) => number
  builtAt: number
  isRefreshing: boolean
}

/** Milliseconds by which the venue's state can lag behind its response to an action. */
const settleFor = 2000

/** A refusal is never based on an account's state that is older, and reservations are not kept longer than needed. */
const refreshAfter = 1000

/** How long the account of a signer is known, in milliseconds. */
const roleFor = 10 * 60_000

/** How long it is known that the venue knows no account of a signer. */
const missingFor = 2000

const nothing: ReadonlySet<never> = new Set()

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

/** Returns prices that do not change: the first of each market. */
const fixed = (priceOf: (market: Markets.GuardedMarket) => number): (market: Markets.GuardedMarket) => number => {
  const prices = new Map<string, number>()
  return (market) => {
    const known = prices.get(market.coin)
    if (known !== undefined) return known
    const price = priceOf(market)
    prices.set(market.coin, price)
    return price
  }
}

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
  const fork = Effect.runForkWith(yield* Effect.context())
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
      prices: () => 0,
      builtAt: 0,
      isRefreshing: false
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

  const readRole = Effect.fnUntraced(function*(signer: Encoding.Address) {
    const { data, role } = yield* info.userRole({ user: signer })
    const master = data?.user ?? undefined
    const ofAgent = master === undefined ? undefined : Encoding.lowerCase(master)
    const account = role === "missing" ? undefined : role === "agent" ? ofAgent : signer
    if (roles.size >= maxSigners) roles.delete(roles.keys().next().value ?? signer)
    roles.set(signer, { account, until: now() + (account === undefined ? missingFor : roleFor) })
  })

  const priceOf = ({ view }: GuardedAccount) => (market: Markets.GuardedMarket): number =>
    markets.mid(market) ?? view?.values.get(market.coin) ?? 0

  /** Adds reserved orders to an account's exposure, or removes them, at the prices with which the exposure was made. */
  const count = (account: GuardedAccount, orders: ReadonlyArray<Rules.OpenOrder>, sign: 1 | -1): void => {
    for (const order of orders) account.exposure?.add(order, account.prices(order.market), sign)
  }

  /** Returns what the account has and what its open and reserved orders can lead to, at the current prices. */
  const exposureOf = (account: GuardedAccount): Rules.Exposure | undefined => {
    const { reserved, view } = account
    if (view === undefined) return undefined
    if (account.exposure !== undefined && now() - account.builtAt < refreshAfter) return account.exposure
    const exposure = new Rules.Exposure()
    const price = fixed(priceOf(account))
    for (const [market, size] of view.positions) exposure.setPosition(market, size)
    for (const order of view.orders) exposure.add(order, price(order.market))
    for (const { orders } of reserved.values()) for (const order of orders) exposure.add(order, price(order.market))
    account.exposure = exposure
    account.prices = price
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

  /** An action with its account and the policies that apply to it. */
  interface Prepared {
    readonly admitted: Admitted
    readonly action: GuardedAction.GuardedAction
    readonly account: GuardedAccount
    readonly selected: ReadonlyArray<Policy.Policy>
    readonly needsState: boolean
  }

  /** What the guard knows of an action: enough to judge it, that it passes or is refused, or what has to be read first. */
  type Looked =
    | { readonly _tag: "Passes" }
    | { readonly _tag: "Refused"; readonly violation: PolicyViolation }
    | { readonly _tag: "Ready"; readonly prepared: Prepared }
    | { readonly _tag: "Missing"; readonly what: Reading; readonly read: Effect.Effect<void> }

  /** What the guard reads, in this order, and at most once for an action. */
  type Reading = "role" | "names" | "prices" | "state"

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

  const refused = (violation: Rules.Violation, account?: Encoding.Address): Looked => ({
    _tag: "Refused",
    violation: refuse(violation, account)
  })

  /** Returns the account of a signer, and whether it is known at the moment. */
  const roleOf = (signer: Encoding.Address) => {
    const known = roles.get(signer)
    return known !== undefined && known.until > now() ? known : undefined
  }

  /** Finds the account on which an action acts and its policies, or what has to be read before. */
  const look = (
    admitted: Admitted,
    action: GuardedAction.GuardedAction | undefined,
    caller: string,
    tried: ReadonlySet<Reading>
  ): Looked => {
    const { actionType, signer } = admitted
    if (signer === undefined) {
      return refused({ rule: "signature", detail: "The signature recovers to nobody, so no policy can be selected" })
    }
    if (action === undefined) {
      return refused({
        rule: "actions",
        detail: `The members of this ${actionType.slice(0, 64)} cannot be read, so no rule can judge it`
      })
    }
    const isOwn = action.multiSigUser !== undefined || action.isSignedByAccount
    const role = isOwn ? { account: action.multiSigUser ?? signer } : roleOf(signer)
    if (role === undefined) {
      if (!tried.has("role")) return { _tag: "Missing", what: "role", read: Effect.ignore(readRole(signer)) }
      return Rules.isReducing(action)
        ? { _tag: "Passes" }
        : refused({
          rule: "account",
          retryAfter: 1,
          detail: "The account of the signer cannot be read from the venue at the moment"
        })
    }
    const master = role.account
    if (master === undefined) return refused({ rule: "account", detail: "The venue knows no account of this signer" })
    const address = action.vault ?? master
    // an action that does not trade can act on the signer's account, whatever vault it names
    const both = master === address || Policy.tradingActions.has(action.type) ? [address] : [address, master]
    const selected = both.length === 1
      ? Policy.select(policies, address, caller)
      : [...new Set(both.flatMap((each) => Policy.select(policies, each, caller)))]
    if (selected.length === 0) {
      if (policies.otherAccounts === "refuse") return refused({ rule: "account", detail: "No policy names this account" }, address)
      if (halts.size === 0) return { _tag: "Passes" }
    }
    const prepared = { admitted, action, account: accountFor(address), selected, needsState: selected.some(Rules.needsState) }
    return lookAtMarkets(prepared, tried) ?? { _tag: "Ready", prepared }
  }

  /** Returns what has to be read of the markets and of the account before an action can be judged. */
  const lookAtMarkets = (
    { account, action, needsState, selected }: Prepared,
    tried: ReadonlySet<Reading>
  ): Looked | undefined => {
    const { legs } = action
    if (legs.length === 0) return undefined
    const time = now()
    const usesPrices = selected.some((policy) => Rules.needsPrices(policy, action))
    const needsNames = usesPrices || halts.size > 0 || selected.some(({ coins }) => coins !== undefined)
    if (needsNames && !tried.has("names") && legs.some(({ asset }) => markets.find(asset) === undefined)) {
      return { _tag: "Missing", what: "names", read: markets.ensureNames(legs.map(({ asset }) => asset), time) }
    }
    if (!usesPrices) return undefined
    const dexes = new Set(legs.flatMap(({ asset }) => markets.find(asset)?.dex ?? []))
    const needsOracle = selected.some(({ oracleBand }) => oracleBand !== undefined)
    if (!tried.has("prices") && markets.isDue(dexes, needsOracle, time)) {
      return { _tag: "Missing", what: "prices", read: markets.ensurePrices(dexes, needsOracle, time) }
    }
    if (!needsState || Rules.isReducing(action)) return undefined
    for (const dex of [...dexes, ...selected.flatMap(Policy.dexesIn)]) {
      if (account.dexes.has(dex)) continue
      account.dexes.add(dex)
      account.view = undefined
    }
    const age = time - (account.view?.readAt ?? Number.NEGATIVE_INFINITY)
    const limit = Math.min(...selected.map(Policy.maxAge)) / 2
    return !tried.has("state") && age > limit
      ? { _tag: "Missing", what: "state", read: refresh(account, time) }
      : undefined
  }

  /** Returns the first violation of the policies. */
  const decide = ({ account, action, selected }: Prepared): PolicyViolation | undefined => {
    const stopped = halted(action, account.address)
    if (stopped !== undefined) return refuse(stopped, account.address)
    const situation: Rules.Situation = {
      action,
      account: account.address,
      markets,
      exposure: exposureOf(account),
      priceOf: account.prices,
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
          if (entry.exposure === account.exposure) count(account, entry.orders, -1)
          else account.exposure = undefined
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
    const { exposure } = account
    const entry: Reserved = { identity: { nonce, signer }, orders, state: "sent", exposure, settledAt: 0 }
    if (orders.length > 0) {
      account.reserved.set(fingerprint, entry)
      count(account, orders, 1)
    }
    return reservation(account, fingerprint, entry, false)
  }

  /** Reads what is missing, until the action can be judged. */
  const lookUp = Effect.fnUntraced(function*(
    admitted: Admitted,
    action: GuardedAction.GuardedAction | undefined,
    caller: string
  ) {
    const tried = new Set<Reading>()
    let looked = look(admitted, action, caller, tried)
    while (looked._tag === "Missing") {
      tried.add(looked.what)
      yield* Effect.provideService(looked.read, CurrentCaller, background("guard"))
      looked = look(admitted, action, caller, tried)
    }
    return looked
  })

  /** Judges an action again after its account's state was read, because the state may have refused it. */
  const judgeAnew = Effect.fnUntraced(function*(prepared: Prepared, first: PolicyViolation) {
    const { account } = prepared
    let violation: PolicyViolation | undefined = first
    if (now() - (account.view?.readAt ?? Number.NEGATIVE_INFINITY) > refreshAfter) {
      yield* refresh(account, now())
      violation = decideAgain(prepared)
    }
    if (violation === undefined || account.reserved.size === 0 || !Rules.stateRules.has(violation.rule)) return violation
    // by then, the effects of what was just sent are in the account's state
    yield* Effect.forkIn(Effect.delay(refresh(account, now() + settleFor), settleFor), scope)
    return new PolicyViolation({ ...violation, retryAfter: Math.ceil(settleFor / 1000) + 1 })
  })

  /** Judges an action, and reserves what it can lead to if it passes. */
  const conclude = (looked: Exclude<Looked, { readonly _tag: "Missing" }>, admitted: Admitted, isDryRun: boolean) => {
    const fail = (violation: PolicyViolation) => isDryRun ? Effect.fail(violation) : record(violation, admitted)
    if (looked._tag === "Passes") return Effect.undefined
    if (looked._tag === "Refused") return fail(looked.violation)
    const { prepared } = looked
    // nothing can happen between a decision and its reservation
    const pass = () => isDryRun ? undefined : hold(prepared)
    const violation = decideAgain(prepared)
    if (violation === undefined) {
      refreshSoon(prepared)
      return Effect.succeed(pass())
    }
    return prepared.needsState && Rules.stateRules.has(violation.rule)
      ? Effect.flatMap(judgeAnew(prepared, violation), (again) => again === undefined ? Effect.succeed(pass()) : fail(again))
      : fail(violation)
  }

  /** Reads the state of an account in the background while it has reservations that may have ended. */
  const refreshSoon = ({ account, needsState }: Prepared): void => {
    const age = now() - (account.view?.readAt ?? 0)
    if (!needsState || account.reserved.size === 0 || age <= settleFor || account.isRefreshing) return
    account.isRefreshing = true
    const done = Effect.sync(() => void (account.isRefreshing = false))
    Fiber.runIn(fork(Effect.ensuring(refresh(account, now()), done)), scope)
  }

  const judge = (admitted: Admitted, isDryRun: boolean): Effect.Effect<Reservation | undefined, PolicyViolation> =>
    Effect.contextWith((context: Context.Context<never>) => {
      const type = (innerAction(admitted.signed.action) ?? admitted.signed.action).type
      if (isIdle() || Policy.harmlessActions.has(type)) return Effect.undefined
      const { id } = Context.get(context, CurrentCaller)
      const action = GuardedAction.read(admitted)
      const looked = look(admitted, action, id, nothing)
      return looked._tag === "Missing"
        ? Effect.flatMap(lookUp(admitted, action, id), (found) => conclude(found, admitted, isDryRun))
        : conclude(looked, admitted, isDryRun)
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
          account.prices,
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
