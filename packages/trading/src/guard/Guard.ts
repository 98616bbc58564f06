/**
 * The guard: lets a signed action pass only if the policies of its account allow it, and reserves the possible
 * effect of the action before its first byte is sent.
 *
 * Decisions are made one at a time, so actions that race cannot exceed a limit together. A reservation ends when the
 * outcome of its action is known and the account's state was read again afterwards. An action of unknown outcome
 * therefore stays reserved until its outcome is settled, or until an operator removes it from the action log.
 *
 * The signer's account is read from the venue (`userRole`), as are the account's positions, orders and prices. If they
 * cannot be read, only actions that reduce risk pass. The actions in `Policy.harmlessActions` always pass.
 */
import { innerAction } from "@trigate/domain/actions/Action"
import * as Policy from "@trigate/domain/actions/Policy"
import { background, CurrentCaller } from "@trigate/domain/Caller"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import { PolicyViolation } from "@trigate/domain/errors/GatewayError"
import { counter } from "@trigate/domain/unstable/DeclaredMetric"
import * as ActionHash from "@trigate/signing/unstable/actions/ActionHash"
import { SharedStoreUnreachable } from "@trigate/upstream/unstable/SharedState"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { ActionLog, type AuditEntry, AuditLog } from "../actionLog/ActionLog.ts"
import * as LoggedAction from "../actionLog/LoggedAction.ts"
import * as ActionDecoder from "../admission/ActionDecoder.ts"
import type { Admitted } from "../admission/Admission.ts"
import { Info } from "../Info.ts"
import * as GuardedAccounts from "./GuardedAccounts.ts"
import * as GuardStore from "./GuardStore.ts"
import * as Losses from "./Losses.ts"
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
  /** The losses since the times of day of the policies, in USDC; negative for a profit. */
  readonly losses: ReadonlyArray<Losses.Since & { readonly loss: number }>
  /** The notional of open orders and of all positions if all orders fill, by quote token; empty if no limit needs them. */
  readonly notional: ReadonlyArray<{ readonly quote: string; readonly open: number; readonly total: number }>
}

/** A refusal of the guard. */
export interface GuardRefusal {
  /** When the action was refused, in milliseconds since 1970. */
  readonly time: number
  readonly violation: PolicyViolation
  readonly caller: string
  readonly actionType: string
}

/** The policies in force, the use of their limits, the halts and the latest refusals. */
export interface Status {
  readonly policies: Policy.Policies
  /** A hash of the policies: replicas with the same policies have the same version. */
  readonly version: string
  readonly halts: ReadonlyArray<Policy.HaltTarget>
  readonly accounts: ReadonlyArray<AccountUse>
  readonly refusals: ReadonlyArray<GuardRefusal>
}

/** The queries that the guard sends. */
export type Queries =
  & GuardedAccounts.Queries
  & Markets.Queries
  & Pick<Info["Service"], "userRole">

/**
 * Decides which signed actions pass.
 *
 * Provided by `Guard.layer`.
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
  /** Whether every action passes, because there are no policies and no halts. `reserve` then need not be called. */
  readonly state: { readonly isIdle: boolean }
  /**
   * Lets an action pass and reserves its possible effect, or fails with the rule that refuses it. Returns `undefined` if
   * no policy applies to the action.
   */
  readonly reserve: (admitted: Admitted) => Effect.Effect<GuardedAccounts.Reservation | undefined, PolicyViolation>
  /** Like `reserve`, without a reservation. */
  readonly check: (admitted: Judged) => Effect.Effect<void, PolicyViolation>
  /** Like `check`, for a body with a known signer. Returns the refusal; `undefined` if the body would pass. */
  readonly inspect: (body: Uint8Array, signer: Encoding.Address) => Effect.Effect<PolicyViolation | undefined>
  /**
   * Judges the params of `eth_sendRawTransaction`: refuses a transaction of a guarded account to the contract `CoreWriter`,
   * which sends actions to the venue, unless all policies of the account name `CoreWriter` among their actions.
   */
  readonly checkTransaction: (params: unknown) => Effect.Effect<void, PolicyViolation>
  /** Replaces the policies at once. Reservations and rates stay. */
  readonly replace: (policies: Policy.Policies) => Effect.Effect<void>
  /**
   * Stops actions until `resume`. Actions that only reduce risk still pass. Fails if the store of the replicas cannot be
   * reached: this replica has halted, and the others follow when the store can be reached.
   */
  readonly halt: (target: Policy.HaltTarget) => Effect.Effect<void, SharedStoreUnreachable>
  /** Ends a halt. Returns whether there was one. Fails like `halt`. */
  readonly resume: (target: Policy.HaltTarget) => Effect.Effect<boolean, SharedStoreUnreachable>
  readonly status: Effect.Effect<Status>
}>()("@trigate/trading/guard/Guard") {}

/** The parts of an action by which the guard judges it. */
export type Judged = Pick<
  Admitted,
  "action" | "actionType" | "fingerprint" | "nonce" | "signed" | "signer" | "trace"
>

/** The guard of the context, if there is one. */
export const current: Effect.Effect<Guard["Service"] | undefined> = Effect.map(
  Effect.serviceOption(Guard),
  Option.getOrUndefined
)

/** How long the account of a signer is known, in milliseconds. */
const roleFor = 10 * 60_000

/** How long it is known that the venue knows no account of a signer. */
const missingFor = 2000

const nothing: ReadonlySet<never> = new Set()

const maxSigners = 10_000
const maxRefusals = 50

/** The time within which a period of losses begins. */
const lossesEvery = "30 seconds"

/** The time after which a replica knows what another one has halted. */
const haltsEvery = "1 second"

const decodeHalts = Schema.decodeEffect(Schema.fromJsonString(Schema.Array(Policy.HaltTarget)))

const { settleFor } = GuardedAccounts

/** The contract of HyperEVM through which an account sends actions to the venue. */
const coreWriter = "0x3333333333333333333333333333333333333333"

const isData = Schema.is(Encoding.Data)

const isViolation = Schema.is(PolicyViolation)

/** Formats the scope of a halt: an account, a coin, or `all`. */
export const printTarget = (target: Policy.HaltTarget): string =>
  "account" in target ? target.account.toLowerCase() : "coin" in target ? target.coin : "all"

/** The policies, and the services from which the guard reads. */
export interface Options {
  readonly policies: Policy.Policies
  readonly info: Queries
  readonly log: Pick<ActionLog["Service"], "find">
  /** The store that replicas share, and that outlives a process. Default: none. */
  readonly store?: GuardStore.GuardStore["Service"] | undefined
  /** The audit log of refusals, halts and new policies. Default: none. */
  readonly audit?: AuditLog["Service"] | undefined
}

const encodePolicies = Schema.encodeSync(Policy.Policies)

/** Returns a hash of policies that does not depend on the format of their file. */
const hashPolicies = (policies: Policy.Policies): string =>
  ActionHash.toHex(ActionHash.keccak256(Encoding.encode(Encoding.stringify(encodePolicies(policies))))).slice(2, 18)

/** Makes the guard. */
export const make = Effect.fnUntraced(function*(options: Options) {
  const { audit, info, log, store } = options
  const clock = yield* Clock.Clock
  const scope = yield* Effect.scope
  const markets = Markets.make(info)
  const accounts = yield* GuardedAccounts.make({ info, log, markets, store })
  const roles = new Map<string, { readonly account: Encoding.Address | undefined; readonly until: number }>()
  const halts = new Map<string, Policy.HaltTarget>()
  /** The changes of halts that the store does not have; `undefined` for a halt that has ended. */
  const haltChanges = new Map<string, Policy.HaltTarget | undefined>()
  /** False until the halts that were made before this process started are known. */
  let areHaltsKnown = store === undefined
  let refusals: ReadonlyArray<GuardRefusal> = []
  let policies = Policy.none
  let version = ""
  const now = () => Encoding.monotonicMillis(Encoding.monotonicTime(clock))

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

  /** An action with its account and the policies that apply to it. */
  interface Prepared {
    readonly admitted: Judged
    readonly action: Rules.GuardedAction
    readonly account: GuardedAccounts.GuardedAccount
    readonly selected: ReadonlyArray<Policy.Policy>
    readonly needsState: boolean
  }

  /** The result of a look at an action: it passes, is refused, can be judged, or needs a read first. */
  type Looked =
    | { readonly _tag: "Passes" }
    | { readonly _tag: "Refused"; readonly violation: PolicyViolation }
    | { readonly _tag: "Ready"; readonly prepared: Prepared }
    | { readonly _tag: "Missing"; readonly what: Reading; readonly read: Effect.Effect<void> }

  /** The reads of the guard, in this order, and at most once for an action. */
  type Reading = "role" | "names" | "prices" | "state"

  const state = { isIdle: false }
  /** Follows a change of the policies or of the halts. */
  const followChange = (): void => {
    state.isIdle = policies.policies.length === 0 && policies.otherAccounts !== "refuse" && halts.size === 0
  }

  const writeAudit = (entry: (at: { readonly time: number; readonly caller: string }) => AuditEntry) =>
    Effect.map(CurrentCaller, ({ id }) => audit?.write(entry({ time: clock.currentTimeMillisUnsafe(), caller: id })))

  let areLossesCounted = false
  /** Counts losses from their time of day also for accounts without an action since. */
  const countLosses = Effect.suspend(() => {
    for (const { accounts: named, loss } of policies.policies) {
      if (loss === undefined || named === "*") continue
      for (const address of named) accounts.countLosses(accounts.find(Encoding.lowerCase(address)), loss)
    }
    return accounts.beginPeriods
  })

  const replace = (next: Policy.Policies): Effect.Effect<void> =>
    Effect.suspend(() => {
      const earlier = version
      policies = next
      version = hashPolicies(next)
      followChange()
      if (version === earlier || (earlier === "" && state.isIdle)) return Effect.void
      const audited = writeAudit((at) => ({ ...at, message: "policies", version, policies: next.policies.length }))
      if (areLossesCounted || next.policies.every(({ loss }) => loss === undefined)) return audited
      areLossesCounted = true
      return Effect.andThen(audited, Effect.forkIn(Effect.repeat(countLosses, Schedule.spaced(lossesEvery)), scope))
    })
  yield* replace(options.policies)

  const halted = (action: Rules.GuardedAction, account: string): Rules.Violation | undefined => {
    if (Rules.isReducing(action)) return undefined
    if (!areHaltsKnown) {
      return { rule: "store", retryAfter: 1, detail: "It is not known yet whether the operator has halted trading" }
    }
    if (halts.size === 0) return undefined
    const coins = action.legs.flatMap(({ asset }) => markets.find(asset)?.coin ?? [])
    const stopped = ["all", account, ...coins].find((each) => halts.has(each))
    return stopped === undefined ? undefined : {
      rule: "halt",
      detail: stopped === "all"
        ? "Trading is halted by the operator"
        : `Trading of ${stopped} is halted by the operator`
    }
  }

  const refused = (violation: Rules.Violation, account?: Encoding.Address): Looked => ({
    _tag: "Refused",
    violation: refuse(violation, account)
  })

  /** Returns the account of a signer, and whether it is known at the moment. */
  const findRole = (signer: Encoding.Address) => {
    const known = roles.get(signer)
    return known !== undefined && known.until > now() ? known : undefined
  }

  /** Finds the account on which an action acts and its policies, or what has to be read before. */
  const look = (
    admitted: Judged,
    action: Rules.GuardedAction | undefined,
    caller: string,
    tried: ReadonlySet<Reading>
  ): Looked => {
    const { actionType, signer } = admitted
    if (signer === undefined) {
      return refused({
        rule: "signature",
        detail: "No signer can be recovered from the signature, so no policy can be selected"
      })
    }
    if (action === undefined) {
      return refused({
        rule: "actions",
        detail: `The members of this ${actionType.slice(0, 64)} cannot be read, so no rule can judge it`
      })
    }
    const isOwn = action.multiSigUser !== undefined || action.isSignedByAccount
    const role = isOwn ? { account: action.multiSigUser ?? signer } : findRole(signer)
    if (role === undefined) {
      if (!tried.has("role")) return { _tag: "Missing", what: "role", read: Markets.logFailure(readRole(signer)) }
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
      if (policies.otherAccounts === "refuse") {
        return refused({ rule: "account", detail: "No policy names this account" }, address)
      }
      if (halts.size === 0) return { _tag: "Passes" }
    }
    const prepared = {
      admitted,
      action,
      account: accounts.find(address),
      selected,
      needsState: selected.some(Rules.needsState)
    }
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
    for (const { loss } of selected) if (loss !== undefined) accounts.countLosses(account, loss)
    const age = time - (account.view?.readAt ?? Number.NEGATIVE_INFINITY)
    const limit = Math.min(...selected.map(Policy.maxAge)) / 2
    return !tried.has("state") && age > limit
      ? { _tag: "Missing", what: "state", read: accounts.refresh(account, time) }
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
      exposure: accounts.exposure(account),
      priceOf: account.prices,
      lossSince: (loss) => account.view?.losses?.get(Losses.sinceKey(loss)),
      stateAge: accounts.isBehind(account)
        ? Number.POSITIVE_INFINITY
        : now() - (account.view?.readAt ?? Number.NEGATIVE_INFINITY),
      wallTime: clock.currentTimeMillisUnsafe(),
      now: now(),
      orders: accounts.orders(account),
      waitFor: (more, limit) => accounts.wait(account, more, limit)
    }
    for (const policy of selected) {
      const violation = Rules.violation(policy, situation)
      if (violation !== undefined) return refuse(violation, account.address, policy.name)
    }
    return undefined
  }

  /** Judges an action that may be sent again: the reservation of an earlier attempt is not counted twice. */
  const decideAgain = (prepared: Prepared): PolicyViolation | undefined =>
    accounts.without(prepared.account, prepared.admitted.fingerprint, () => decide(prepared))

  const record = Effect.fnUntraced(function*(
    violation: PolicyViolation,
    { actionType, fingerprint: digest, nonce, signer }: Pick<Judged, "actionType"> & Partial<Judged>
  ): Effect.fn.Return<never, PolicyViolation> {
    const caller = yield* CurrentCaller
    const refusal = { time: clock.currentTimeMillisUnsafe(), violation, caller: caller.id, actionType }
    refusals = [refusal, ...refusals].slice(0, maxRefusals)
    const { account, limit, measured, policy, rule } = violation
    yield* writeAudit((at) => ({
      ...at,
      message: "refusal",
      signer,
      nonce,
      digest,
      actionType: Encoding.printable(actionType),
      account,
      policy,
      rule,
      measured,
      limit
    }))
    yield* Metric.update(metrics.guardRefusals.series({ rule: violation.rule }), 1)
    yield* Effect.logWarning(`The guard refused ${Encoding.printable(actionType)}: ${violation.message}`)
    return yield* violation
  })

  /** Reserves the possible effect of an action. */
  const hold = ({ account, action, admitted, needsState }: Prepared): GuardedAccounts.Reservation =>
    accounts.hold(account, admitted, needsState ? Rules.ordersIn(action, markets) : [], action.legs.length)

  /** Reads until the action can be judged. */
  const lookUp = Effect.fnUntraced(function*(
    admitted: Judged,
    action: Rules.GuardedAction | undefined,
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
    if (now() - (account.view?.readAt ?? Number.NEGATIVE_INFINITY) > GuardedAccounts.refreshAfter) {
      yield* accounts.refresh(account, now())
      violation = decideAgain(prepared)
    }
    if (violation === undefined || account.reservations.entries.size === 0) return violation
    // by then, the account's state contains the effects of the latest actions
    yield* Effect.forkIn(Effect.delay(accounts.refresh(account, now() + settleFor), settleFor), scope)
    return new PolicyViolation(Object.assign({}, violation, { retryAfter: Math.ceil(settleFor / 1000) + 1 }))
  })

  const dependsOnState = ({ needsState }: Prepared, { rule }: PolicyViolation): boolean =>
    needsState && Rules.stateRules.has(rule)

  /** Reserves the possible effect of an action in the store that replicas share, or refuses the action. */
  const holdShared = Effect.fnUntraced(function*(prepared: Prepared, shared: GuardStore.GuardStore["Service"]) {
    const { account, selected } = prepared
    const judged = accounts.holdShared(account, shared, () => decideAgain(prepared), () => hold(prepared))
    const detail = "The store that the replicas share cannot be reached, so nothing can be reserved"
    const orRefusal = Effect.orElseSucceed(
      judged,
      () => refuse({ rule: "store", retryAfter: 1, detail }, account.address, selected[0]?.name)
    )
    const held = yield* orRefusal
    if (!isViolation(held)) {
      if (prepared.needsState) accounts.refreshSoon(account)
      return held
    }
    const again = dependsOnState(prepared, held) ? yield* judgeAnew(prepared, held) : held
    if (again !== undefined) return yield* again
    const last = yield* orRefusal
    return isViolation(last) ? yield* last : last
  })

  /** Judges an action, and reserves its possible effect if it passes. */
  const conclude = (looked: Exclude<Looked, { readonly _tag: "Missing" }>, admitted: Judged, isDryRun: boolean) => {
    const fail = (violation: PolicyViolation) => isDryRun ? Effect.fail(violation) : record(violation, admitted)
    if (looked._tag === "Passes") return Effect.undefined
    if (looked._tag === "Refused") return fail(looked.violation)
    const { prepared } = looked
    if (store !== undefined && !isDryRun && prepared.selected.length > 0) {
      return holdShared(prepared, store).pipe(Effect.catch(fail))
    }
    // nothing can happen between a decision and its reservation
    const pass = () => isDryRun ? undefined : hold(prepared)
    const violation = decideAgain(prepared)
    if (violation === undefined) {
      if (prepared.needsState) accounts.refreshSoon(prepared.account)
      return Effect.succeed(pass())
    }
    return dependsOnState(prepared, violation)
      ? Effect.flatMap(
        judgeAnew(prepared, violation),
        (again) => again === undefined ? Effect.succeed(pass()) : fail(again)
      )
      : fail(violation)
  }

  const judge = (
    admitted: Judged,
    isDryRun: boolean
  ): Effect.Effect<GuardedAccounts.Reservation | undefined, PolicyViolation> =>
    Effect.contextWith((context: Context.Context<never>) => {
      const type = (innerAction(admitted.signed.action) ?? admitted.signed.action).type
      if (state.isIdle || Policy.harmlessActions.has(type)) return Effect.undefined
      const { id } = Context.get(context, CurrentCaller)
      const { agentAddress } = admitted.signed.action
      // the address may have been another account's API wallet
      if (type === "approveAgent" && Predicate.isString(agentAddress)) roles.delete(agentAddress.toLowerCase())
      const action = Rules.read(admitted)
      const looked = look(admitted, action, id, nothing)
      return looked._tag === "Missing"
        ? Effect.flatMap(lookUp(admitted, action, id), (found) => conclude(found, admitted, isDryRun))
        : conclude(looked, admitted, isDryRun)
    })

  const inspect = Effect.fnUntraced(function*(body: Uint8Array, signer: Encoding.Address) {
    const read = Result.getOrUndefined(Result.flatMap(ActionDecoder.decodeText(body), ActionDecoder.readText))
    if (read === undefined) return undefined
    const { action, signed } = read
    const judged: Judged = {
      action,
      actionType: signed.action.type,
      fingerprint: "0x",
      nonce: signed.nonce,
      signed,
      signer,
      trace: LoggedAction.makeTrace(signed)
    }
    return Option.getOrUndefined(Result.getFailure(yield* Effect.result(judge(judged, true))))
  })

  const checkTransaction = Effect.fnUntraced(function*(params: unknown) {
    const raw: unknown = Array.isArray(params) ? params[0] : undefined
    if (state.isIdle || !isData(raw) || !raw.toLowerCase().includes(coreWriter.slice(2))) return undefined
    // a gateway whose guarded accounts send no such transactions does not load the module
    const { readParties } = yield* Effect.promise(() => import("@trigate/signing/unstable/EvmTransaction"))
    const parties = yield* readParties(raw)
    const sent = { actionType: Policy.coreWriter }
    if (parties === undefined) {
      const detail = "The transaction cannot be read, so no policy can be selected"
      return yield* record(refuse({ rule: "signature", detail }), sent)
    }
    if (parties.to !== coreWriter) return undefined
    const { from } = parties
    const { id } = yield* CurrentCaller
    if (["all", from].some((each) => halts.has(each))) {
      return yield* record(
        refuse({ rule: "halt", detail: "The operator has halted the actions of this account" }, from),
        sent
      )
    }
    const policy = Policy.select(policies, from, id).find((each) => !Policy.permits(each, Policy.coreWriter))
    const detail = "The policy does not name CoreWriter, the contract that sends actions to the venue"
    return policy === undefined
      ? undefined
      : yield* record(refuse({ rule: "actions", detail }, from, policy.name), sent)
  })

  const measureUse = (account: GuardedAccounts.GuardedAccount): AccountUse => {
    const { address, reservations, view } = account
    const exposure = accounts.exposure(account)
    const entries = [...reservations.entries.values()]
    const quotes = new Set([
      ...(view?.positions ?? []).map(([{ quote }]) => quote),
      ...(view?.orders ?? []).map(({ market }) => market.quote),
      ...entries.flatMap(({ orders }) => orders.map(({ market }) => market.quote))
    ])
    const own = policies.policies.filter((policy) => Policy.covers(policy, address))
    const isTraded = (coin: string): boolean => own.every((policy) => Policy.includesCoin(policy, coin))
    return {
      account: address,
      policies: own.map(({ name }) => name),
      orders: accounts.orders(account),
      reserved: entries.length,
      losses: [...account.lossTimes].flatMap(([key, since]) => {
        const loss = view?.losses?.get(key)
        return loss === undefined ? [] : [{ since: since.since, zone: since.zone, loss }]
      }),
      notional: exposure === undefined ? [] : [...quotes].map((quote) => ({
        quote,
        open: exposure.openNotional(quote),
        total: exposure.totalNotional(quote, account.prices, isTraded)
      }))
    }
  }

  const addHalt = (target: Policy.HaltTarget): void => void halts.set(printTarget(target), target)

  /** Takes over the halts in the store, and stores the changes that it lacks. */
  const syncHalts = Effect.fnUntraced(function*(shared: GuardStore.GuardStore["Service"]) {
    for (;;) {
      const document = yield* shared.get(GuardStore.haltsKey)
      const stored = document === undefined ? [] : yield* Effect.mapError(
        decodeHalts(document.text),
        () => new SharedStoreUnreachable({ detail: "The stored halts cannot be read" })
      )
      const changes = new Map(haltChanges)
      halts.clear()
      for (const target of stored) addHalt(target)
      for (const [name, target] of changes) {
        if (target === undefined) halts.delete(name)
        else addHalt(target)
      }
      areHaltsKnown = true
      followChange()
      if (changes.size === 0) return
      if (yield* shared.put(GuardStore.haltsKey, document?.version ?? 0, Encoding.stringify([...halts.values()]))) {
        for (const [name, target] of changes) if (haltChanges.get(name) === target) haltChanges.delete(name)
        return
      }
    }
  })

  /** Changes a halt in this process at once, and in the store. Fails if the other replicas cannot learn of it yet. */
  const changeHalt = (target: Policy.HaltTarget, isHalted: boolean) =>
    Effect.suspend(() => {
      const name = printTarget(target)
      const isChanged = halts.has(name) !== isHalted
      if (isHalted) addHalt(target)
      else halts.delete(name)
      followChange()
      const audited = writeAudit((at) => ({ ...at, message: isHalted ? "halt" : "resume", target: name }))
      if (store === undefined) return Effect.as(audited, isChanged)
      haltChanges.set(name, isHalted ? target : undefined)
      return Effect.as(Effect.andThen(audited, syncHalts(store)), isChanged)
    })

  if (store !== undefined) {
    let isAway = false
    /** Logs when the store goes away and when it is back, not each attempt. */
    const follow = Effect.matchEffect(syncHalts(store), {
      onFailure: ({ detail }) => {
        if (isAway) return Effect.void
        isAway = true
        return Effect.logWarning(`The guard cannot read the halts of other replicas: ${detail}`)
      },
      onSuccess: () => {
        if (!isAway) return Effect.void
        isAway = false
        return Effect.logInfo("The guard reads the halts of other replicas again")
      }
    })
    yield* follow
    yield* Effect.forkScoped(Effect.repeat(follow, Schedule.spaced(haltsEvery)))
  }

  return Guard.of({
    state,
    reserve: (admitted) => judge(admitted, false),
    check: (admitted) => Effect.asVoid(judge(admitted, true)),
    inspect,
    checkTransaction,
    replace,
    halt: (target) => Effect.asVoid(changeHalt(target, true)),
    resume: (target) => changeHalt(target, false),
    status: Effect.sync(() => ({
      policies,
      version,
      halts: [...halts.values()],
      accounts: [...accounts.all()].map(measureUse),
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
 * import { Clock, Console, Effect, Layer, Logger, Redacted } from "effect"
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
 * // the guard logs each refusal
 * const log = Layer.succeed(Logger.LogToStderr, true)
 *
 * await Effect.runPromise(Effect.provide(program, Layer.mergeAll(Sandbox.layer({ policies }), signer, log)))
 * ```
 * ```text
 * orderNotional 5000
 * ```
 */
export const layer = (
  { guard, policies = Policy.none }: GuardOptions = {}
): Layer.Layer<Guard, never, ActionLog | Info> =>
  guard === undefined
    ? Layer.effect(
      Guard,
      Effect.gen(function*() {
        const store = Option.getOrUndefined(yield* Effect.serviceOption(GuardStore.GuardStore))
        const audit = Option.getOrUndefined(yield* Effect.serviceOption(AuditLog))
        return yield* make({ policies, info: yield* Info, log: yield* ActionLog, store, audit })
      })
    )
    : Layer.succeed(Guard, guard)
