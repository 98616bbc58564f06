/**
 * The document of policies: what the guard lets pass for which accounts.
 *
 * A policy names accounts and rules. A rule that is absent limits nothing, except `actions`: without it, only the actions
 * in {@link tradingActions} pass. All policies of an account apply to each of its actions. Amounts are in the quote token
 * of the market, which is USDC for the venue's own perpetuals.
 */
import * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { Address, Millis } from "../encoding/Encoding.ts"
import type { InvalidRequest } from "../errors/GatewayError.ts"
import { closestWord } from "../errors/Problem.ts"
import { parseDex } from "../info/Market.ts"
import { decodeValue } from "../operations/Operation.ts"
import * as Setting from "../Setting.ts"
import { isActionType } from "./Action.ts"

/**
 * The actions that pass under every policy: they remove orders or do nothing. They are neither counted nor
 * delayed.
 */
export const harmlessActions: ReadonlySet<string> = new Set([
  "cancel",
  "cancelByCloid",
  "twapCancel",
  "scheduleCancel",
  "noop"
])

/** The actions that a policy without `actions` lets pass, in addition to {@link harmlessActions}. */
export const tradingActions: ReadonlySet<string> = new Set([
  "order",
  "modify",
  "batchModify",
  "twapOrder",
  "trailingStop",
  "updateLeverage",
  "updateIsolatedMargin",
  "topUpIsolatedOnlyMargin"
])

const Amount = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))
const Count = Schema.Int.check(Schema.isGreaterThan(0))

/** The word for all of {@link tradingActions} in a list of actions. */
const trading = "trading"

/**
 * The name of actions that an account sends with an EVM transaction to the contract `CoreWriter`. No other rule limits
 * them.
 */
export const coreWriter = "CoreWriter"

const ActionName = Schema.String.check(
  Schema.makeFilter((name) => {
    if (name === trading || name === coreWriter || isActionType(name)) return undefined
    const meant = closestWord(name, [trading, coreWriter, ...tradingActions])
    return `${JSON.stringify(name)} is not an action type${meant === undefined ? "" : `: did you mean ${meant}?`}`
  })
)

const TimeOfDay = Schema.String.check(
  Schema.isPattern(/^(?:[01][0-9]|2[0-3]):[0-5][0-9]$/u, { expected: "a time of day like 08:00" })
)

const isZone = (zone: string): boolean =>
  Result.isSuccess(Result.try(() => new Intl.DateTimeFormat("en", { timeZone: zone })))

const Zone = Schema.String.check(
  Schema.makeFilter((zone) => isZone(zone) ? undefined : "Expected a time zone like UTC or Europe/Zurich")
)

/** The days of the week, as policies name them. */
export const Day = Schema.Literals(["mon", "tue", "wed", "thu", "fri", "sat", "sun"])

/** The hours in which orders pass. If `to` is not after `from`, the hours end on the next day. */
export const Hours = Schema.Struct({
  from: TimeOfDay,
  to: TimeOfDay,
  zone: Zone,
  days: Schema.optionalKey(Schema.NonEmptyArray(Day)).annotateKey({
    description: "The days on which the hours begin; every day if absent"
  })
})
export type Hours = typeof Hours.Type

/** The highest loss since a time of day. */
export const Loss = Schema.Struct({
  limit: Amount,
  since: TimeOfDay.annotateKey({ description: "The time of day from which losses count, such as 00:00" }),
  zone: Zone
})
export type Loss = typeof Loss.Type

const about = (description: string) => ({ description })

/** The rules of a policy. The name of a rule is the `rule` of a `PolicyViolation`. */
export const rules = {
  actions: Schema.optionalKey(Schema.NonEmptyArray(ActionName)).annotateKey(
    about("the action types that pass; `trading` stands for orders, changes of orders, leverage and margin")
  ),
  coins: Schema.optionalKey(Schema.NonEmptyArray(Schema.NonEmptyString)).annotateKey(
    about("the coins that can be traded: `BTC`, `PURR/USDC`, `@107`, `#50`, or `xyz:*` for all coins of a dex")
  ),
  reduceOnly: Schema.optionalKey(Schema.Boolean).annotateKey(about("whether only reduce-only orders pass")),
  cloidRequired: Schema.optionalKey(Schema.Boolean).annotateKey(about("whether each order needs a client order ID")),
  expiresWithin: Schema.optionalKey(Setting.Deadline).annotateKey(
    about("the longest time until `expiresAfter`, which each action then needs")
  ),
  hours: Schema.optionalKey(Hours).annotateKey(about("the hours in which actions pass")),
  destinations: Schema.optionalKey(Schema.Array(Address)).annotateKey(
    about("the accounts to which transfers and withdrawals pass")
  ),
  builderFee: Schema.optionalKey(Amount).annotateKey(about("the highest builder fee of an order, in basis points")),
  leverage: Schema.optionalKey(Count).annotateKey(about("the highest leverage that can be set")),
  marginMode: Schema.optionalKey(Schema.Literals(["cross", "isolated"])).annotateKey(
    about("the only margin mode that can be set")
  ),
  orderNotional: Schema.optionalKey(Amount).annotateKey(about("the highest notional of one order")),
  actionNotional: Schema.optionalKey(Amount).annotateKey(about("the highest notional of all orders of one action")),
  priceBand: Schema.optionalKey(Amount).annotateKey(
    about("how far the price of a limit order can be from the mid price, in basis points")
  ),
  oracleBand: Schema.optionalKey(Amount).annotateKey(
    about("how far the price of a perpetual's limit order can be from the oracle price, in basis points")
  ),
  marketSlippage: Schema.optionalKey(Amount).annotateKey(
    about("how far beyond the mid price an immediate or market order can trade, in basis points")
  ),
  ordersPerMinute: Schema.optionalKey(Count).annotateKey(about("the highest number of new orders in any 60 seconds")),
  openNotional: Schema.optionalKey(Amount).annotateKey(
    about("the highest notional of all orders that rest or are on their way, without reduce-only orders")
  ),
  positionNotional: Schema.optionalKey(Schema.Union([Amount, Schema.Record(Schema.String, Amount)])).annotateKey(
    about(
      "the highest notional of a position if all of its orders fill: one amount, or an amount per coin (`*`: others)"
    )
  ),
  totalNotional: Schema.optionalKey(Amount).annotateKey(
    about("the highest notional of all positions together if all orders fill")
  ),
  loss: Schema.optionalKey(Loss).annotateKey(
    about(
      "the highest loss since a time of day, net of deposits and transfers, in USDC; beyond, only reduce-only orders pass"
    )
  )
} as const

/** The name of a rule. */
export type RuleName = keyof typeof rules

/** The names of all rules, in the order in which the guard checks them. */
export const ruleNames = Struct.keys(rules)

/** The limits of the actions of some accounts. */
export const Policy = Schema.Struct({
  name: Schema.String.check(Schema.isPattern(/^[\w .-]{1,64}$/u, { expected: "a name of 1 to 64 letters" })),
  accounts: Schema.Union([Setting.Any, Schema.NonEmptyArray(Address)]).annotateKey(
    about("the accounts on which the actions act, not their API wallets; `*` for all accounts")
  ),
  callers: Schema.optionalKey(Schema.NonEmptyArray(Schema.NonEmptyString)).annotateKey(
    about("the names of the callers' keys to which the policy applies; all callers if absent")
  ),
  maxAge: Schema.optionalKey(Setting.Deadline).annotateKey(
    about("the highest age of the prices and of the account's state; 10 seconds if absent")
  ),
  ...rules
}).annotate({ identifier: "Policy" })
export type Policy = typeof Policy.Type

/** The policies of a guard. */
export const Policies = Schema.Struct({
  policies: Schema.Array(Policy),
  otherAccounts: Schema.optionalKey(Schema.Literals(["relay", "refuse"])).annotateKey(
    about("what happens to actions of accounts without a policy; `relay` if absent")
  )
}).annotate({ identifier: "Policies" })
export type Policies = typeof Policies.Type

/** No policies: every action passes. */
export const none: Policies = { policies: [] }

const decodeDocument = decodeValue(Policies, [], { onExcessProperty: "error" })

/** Decodes a parsed document. Fails with all of its mistakes, also if it has members that no rule knows. */
export const decode = (document: unknown): Effect.Effect<Policies, InvalidRequest> => decodeDocument(document)

/** The highest age of prices and of an account's state, in milliseconds. */
export const maxAge = ({ maxAge }: Policy): number => maxAge === undefined ? 10_000 : Duration.toMillis(maxAge)

/** Returns whether a policy names an action type. Types in {@link harmlessActions} do not need to be named. */
export const permits = ({ actions = [trading] }: Policy, type: string): boolean =>
  actions.includes(type) || (actions.includes(trading) && tradingActions.has(type))

/** Returns whether a policy lets a coin be traded. */
export const includesCoin = ({ coins }: Policy, coin: string): boolean =>
  coins === undefined ||
  coins.some((each) => each === coin || (each.endsWith(":*") && coin.startsWith(each.slice(0, -1))))

/** Returns the builder dexes whose coins a policy names; the empty name is the venue's own dex. */
export const dexesIn = ({ coins }: Policy): ReadonlyArray<string> =>
  (coins ?? []).flatMap((coin) => coin.includes(":") ? [parseDex(coin)] : [])

/** Returns the highest notional of a position in a coin. */
export const positionLimit = ({ positionNotional }: Policy, coin: string): number | undefined =>
  typeof positionNotional === "object" ? positionNotional[coin] ?? positionNotional["*"] : positionNotional

/** Returns whether a policy applies to an account, whose address is in lower case. */
export const covers = ({ accounts }: Policy, account: string): boolean =>
  accounts === "*" || accounts.some((each) => each.toLowerCase() === account)

/** Returns the policies that apply to an account and a caller. */
export const select = ({ policies }: Policies, account: string, caller: string): ReadonlyArray<Policy> =>
  policies.filter((policy) =>
    covers(policy, account) && (policy.callers === undefined || policy.callers.some((each) => caller === `key:${each}`))
  )

/** The scope of a halt: every action, the actions of an account, or orders in a coin. */
export const HaltTarget = Schema.Union([
  Schema.Struct({ account: Address }),
  Schema.Struct({ coin: Schema.NonEmptyString.check(Schema.isMaxLength(64)) }),
  Schema.Struct({ all: Schema.Literal(true) })
]).annotate({ identifier: "HaltTarget" })
export type HaltTarget = typeof HaltTarget.Type

/** The name of a switch. A caller's switches have different names. */
export const SwitchName = Schema.String.check(
  Schema.isPattern(/^[\w.-]{1,64}$/u, { expected: "a name of 1 to 64 letters, digits, dots, hyphens and underscores" })
).annotate({
  identifier: "SwitchName",
  description: "The name of the switch, which the caller chooses",
  examples: ["bot"]
})

/** Maximum number of actions of a switch. */
export const mostActions = 20

/** A request that arms a switch. */
export const SwitchRequest = Schema.Struct({
  after: Schema.Int.check(Schema.isBetween({ minimum: 5, maximum: 3600 })).annotateKey({
    description: "Seconds without a heartbeat after which the actions are sent; 5 to 3600"
  }),
  presence: Schema.optionalKey(Schema.Boolean).annotateKey({
    description: "Whether an open WebSocket of the caller is a heartbeat too; false if absent"
  }),
  actions: Schema.NonEmptyArray(Schema.Unknown).check(Schema.isMaxLength(mostActions)).annotateKey({
    description:
      "Signed bodies of POST /exchange, in the order in which they are sent: cancels, `scheduleCancel` and reduce-only orders. " +
      "All are signed by one key. At most 20"
  })
}).annotate({ identifier: "SwitchRequest" })
export type SwitchRequest = typeof SwitchRequest.Type

/** An action of a switch, and its outcome after the switch has fired. */
export const SwitchAction = Schema.Struct({
  nonce: Millis,
  actionType: Schema.String,
  outcome: Schema.optionalKey(Schema.Literals(["accepted", "rejected", "unknown", "notSent"])).annotateKey({
    description: "`notSent`: the venue could not be reached for ten minutes. Absent until the action was sent"
  }),
  detail: Schema.optionalKey(Schema.String)
}).annotate({ identifier: "SwitchAction" })
export type SwitchAction = typeof SwitchAction.Type

/** The state of a switch. */
export const SwitchState = Schema.Struct({
  name: SwitchName,
  state: Schema.Literals(["armed", "useless", "firing", "fired", "absent"]).annotateKey({
    description:
      "`armed`: the actions will be sent if the heartbeats stop. `useless`: the venue would refuse them, see `reason`. `firing` and " +
      "`fired`: the heartbeats stopped. `absent`: there is no such switch"
  }),
  reason: Schema.optionalKey(Schema.String).annotateKey({ description: "Why the switch is not armed" }),
  after: Schema.optionalKey(Schema.Int),
  presence: Schema.optionalKey(Schema.Boolean),
  heartbeats: Schema.optionalKey(Schema.Natural).annotateKey({
    description: "The number of heartbeats since the name was first used; arming the switch again counts as one"
  }),
  signer: Schema.optionalKey(Address),
  actions: Schema.Array(SwitchAction)
}).annotate({ identifier: "SwitchState" })
export type SwitchState = typeof SwitchState.Type
