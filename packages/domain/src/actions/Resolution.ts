/** Determines the unknown outcome of an action from the result of sending the identical bytes again. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Address, Millis } from "../encoding/Encoding.ts"
import type { NonceAlreadyUsed } from "../errors/GatewayError.ts"
import type { ErrorGroup } from "../errors/Problem.ts"
import type { Fill, OrderRecord } from "../info/Account.ts"
import { resendAdvice, ServedExchangeFailure } from "./Action.ts"
import { type ActionEntry, ActionRejected, type ActionResult, type RejectionReason } from "./ActionOutcome.ts"

/**
 * The outcome of an action after its bytes were sent more than once.
 *
 * - `Landed`: the venue has seen the nonce, so the first attempt took effect. If the signer also signed other bytes
 *   with that nonce, one of the two actions took effect.
 * - `Accepted`: the first attempt never arrived, and the venue accepted the resend; `result` is the resend's result, as
 *   `submit` returns it.
 * - `Rejected`: the venue refused the resend for a reason that also applied to the first attempt.
 */
export type Resolution =
  | { readonly _tag: "Landed"; readonly rejection: ActionRejected }
  | { readonly _tag: "Accepted"; readonly result: ActionResult }
  | { readonly _tag: "Rejected"; readonly rejection: ActionRejected }

/**
 * The outcome of the action is still unknown. `reason` is the error of the latest attempt.
 *
 * For every `reason`, the first attempt may have taken effect, even if the latest attempt sent nothing. Do not sign the
 * action again before you know its outcome. Embedded services and the typed client raise this error; the HTTP route
 * responds with the error in `reason`.
 */
export class StillUnknown extends Schema.TaggedError<StillUnknown>()("StillUnknown", {
  upstream: Schema.String,
  nonce: Schema.optionalKey(Millis),
  signer: Schema.optionalKey(Address),
  advice: Schema.String,
  detail: Schema.String,
  reason: Schema.Union([ActionRejected, ...ServedExchangeFailure.members]).annotate({
    description: "The error of the latest attempt"
  })
}) {
  override get message() {
    return `Still unknown: ${this.detail}`
  }
  get group() {
    return "outcome-unknown" as const
  }
}

type Reason = StillUnknown["reason"]

const checkAccount = "Query the account at the venue to find out whether the action took effect"

/** The advice for a failed resend of the identical bytes, by error group. */
const resendAdviceByGroup: { readonly [Group in ErrorGroup]: string } = {
  "retry-later": resendAdvice,
  "fix-setup": resendAdvice,
  "fix-request": checkAccount,
  "outcome-unknown": checkAccount
}

/** The known properties of an action whose outcome is unknown. */
export interface Unresolved {
  /** The label of the upstream. */
  readonly upstream: string
  readonly nonce?: Millis
  readonly signer?: Address
}

/** Makes the error for an action whose outcome is still unknown after its bytes were sent again. */
export const stillUnknown = ({ upstream, ...identity }: Unresolved) => (reason: Reason): StillUnknown => {
  // uses the signer of a gateway error only: the address in a rejection is from the venue's text
  const named = reason._tag !== "ActionRejected" && "signer" in reason ? reason.signer : undefined
  return new StillUnknown({
    upstream: "upstream" in reason ? reason.upstream : upstream,
    ...identity,
    ...("nonce" in reason && reason.nonce !== undefined ? { nonce: reason.nonce } : {}),
    ...(named === undefined ? {} : { signer: named }),
    advice: "advice" in reason ? reason.advice : resendAdviceByGroup[reason.group],
    detail: reason.message,
    reason
  })
}

/**
 * The rejection reasons that also apply to the first attempt: the reasons that depend only on the bytes of the action,
 * and `NonceTooHigh`.
 *
 * Any other rejection depends on the venue's state, which may have changed since the first attempt. The venue can check
 * that state before it checks the nonce, so the first attempt may have been accepted.
 */
const lasting: ReadonlySet<RejectionReason> = new Set([
  "ShapeRefused",
  "WrongNetwork",
  "NonceMismatch",
  "NonceTooHigh"
])

/**
 * Returns the outcome that a rejected resend implies; `None` if the reason for the rejection might not apply to the
 * first attempt.
 */
export const ofRejection = (rejection: ActionRejected): Option.Option<Resolution> => {
  if (rejection.reason === "NonceDuplicate") return Option.some({ _tag: "Landed", rejection })
  return lasting.has(rejection.reason) ? Option.some({ _tag: "Rejected", rejection }) : Option.none()
}

/**
 * Returns the outcome that `NonceAlreadyUsed` from an upstream gateway implies: `Landed` if that gateway knows that the
 * venue accepted the same signed content, otherwise `None`.
 *
 * If that gateway knows that the venue rejected the content, the outcome is still unknown, because a different gateway
 * can also have sent the action.
 */
const ofNonceUsed = (error: NonceAlreadyUsed): Option.Option<Resolution> =>
  error.settled === "accepted"
    ? Option.some({
      _tag: "Landed",
      rejection: new ActionRejected({ reason: "NonceDuplicate", message: error.message })
    })
    : Option.none()

/**
 * Returns the outcome that the result of a resend implies. Fails with `StillUnknown` if the result implies no outcome.
 */
export const ofOutcome = <R>(
  outcome: Effect.Effect<ActionResult, Reason, R>,
  unresolved: Unresolved
): Effect.Effect<Resolution, StillUnknown, R> =>
  outcome.pipe(
    Effect.map((response): Resolution => ({ _tag: "Accepted", result: response })),
    Effect.catchTags({
      ActionRejected: (rejection) => Effect.fromOption(ofRejection(rejection), () => rejection),
      NonceAlreadyUsed: (error) => Effect.fromOption(ofNonceUsed(error), () => error)
    }),
    Effect.mapError(stillUnknown(unresolved))
  )

const advice: { readonly [Reason in RejectionReason]?: string } = {
  AddressRateLimited: "The account has sent more actions than its traded volume allows: trade more volume, or wait.",
  InsufficientBalance: "The available spot balance does not cover the order: lower the size, or cancel open orders.",
  InsufficientMargin:
    "The account's free margin does not cover the order: lower the size, raise the leverage, or cancel open orders.",
  LotSize: "The size has more decimal places than the asset allows: round it to the asset's szDecimals.",
  MinimumNotional: "The order value (size x price) must be at least 10 USDC: raise the size.",
  NoImmediateMatch:
    "No resting order matched the limit price: change the price, or let the order rest on the book (gtc).",
  OpenInterestCap: "The asset is at its open-interest cap: only orders that reduce a position are accepted.",
  PositionLimit: "The position would exceed the asset's limit: lower the size.",
  PostOnlyWouldCross:
    "A post-only order (alo) must not match immediately: move the price away from the other side of the book.",
  PriceBand: "The price is too far from the oracle price: move it closer.",
  ReduceOnly:
    "The account has no position that this reduce-only order would reduce: check the side, or remove the reduce-only flag.",
  TickSize:
    "A price has at most 5 significant digits, and at most 6 - szDecimals (perpetuals) or 8 - szDecimals (spot) decimal places.",
  TriggerPrice:
    "The trigger price is on the wrong side of the market for this kind of order: move it to the other side.",
  UnknownOrder: "The order was already filled or canceled, or was never placed: check its ID, or query the open orders."
}

/** Returns one sentence of advice; `undefined` if there is no advice for the reason. */
export const adviceFor = (reason: RejectionReason): string | undefined => advice[reason]

/**
 * Maps the order states in the venue's documentation of `orderStatus` to rejection reasons; any other state is
 * `Unclassified`.
 */
const reasons: ReadonlyMap<string, RejectionReason> = new Map([
  ["tickRejected", "TickSize"],
  ["minTradeNtlRejected", "MinimumNotional"],
  ["perpMarginRejected", "InsufficientMargin"],
  ["insufficientSpotBalanceRejected", "InsufficientBalance"],
  ["reduceOnlyRejected", "ReduceOnly"],
  ["badAloPxRejected", "PostOnlyWouldCross"],
  ["iocCancelRejected", "NoImmediateMatch"],
  ["marketOrderNoLiquidityRejected", "NoImmediateMatch"],
  ["badTriggerPxRejected", "TriggerPrice"],
  ["oracleRejected", "PriceBand"],
  ["positionIncreaseAtOpenInterestCapRejected", "OpenInterestCap"],
  ["positionFlipAtOpenInterestCapRejected", "OpenInterestCap"],
  ["tooAggressiveAtOpenInterestCapRejected", "OpenInterestCap"],
  ["openInterestIncreaseRejected", "OpenInterestCap"],
  ["perpMaxPositionRejected", "PositionLimit"]
])

/** Returns whether the venue refused the order on arrival: `rejected`, `badAloPxRejected`, … */
export const isRejected = ({ status }: Pick<OrderRecord, "status">): boolean => /rejected$/iu.test(status)

/** Returns whether the order can still be filled. */
export const isOpen = ({ status }: Pick<OrderRecord, "status">): boolean => status === "open" || status === "triggered"

const places = (text: string): number => text.split(".")[1]?.length ?? 0

const scaled = (text: string, scale: number): bigint => {
  const [whole = "0", fraction = ""] = text.split(".")
  return BigInt(whole + fraction.padEnd(scale, "0"))
}

const print = (value: bigint, scale: number): string => {
  const digits = value.toString().padStart(scale + 1, "0")
  const text = scale === 0 ? digits : `${digits.slice(0, -scale)}.${digits.slice(-scale)}`
  return text.includes(".") ? text.replace(/\.?0+$/u, "") : text
}

/** Decimal places of an average price. */
const averagePlaces = 8

/** Returns the total size and the average price of fills, as decimal text; `undefined` if there are no fills. */
const sumFills = (fills: ReadonlyArray<Pick<Fill, "px" | "sz">>) => {
  const pxScale = Math.max(0, ...fills.map(({ px }) => places(px)))
  const szScale = Math.max(0, ...fills.map(({ sz }) => places(sz)))
  let size = 0n
  let value = 0n
  for (const { px, sz } of fills) {
    size += scaled(sz, szScale)
    value += scaled(sz, szScale) * scaled(px, pxScale)
  }
  if (size === 0n) return undefined
  const scale = Math.max(pxScale, averagePlaces)
  const average = value * 10n ** BigInt(scale - pxScale) / size
  return { totalSz: print(size, szScale), avgPx: print(average, scale) }
}

const isCloid = (cloid: string | null | undefined): cloid is `0x${string}` => cloid?.startsWith("0x") === true

/**
 * Returns the result of the leg that placed an order: `Rejected` if the venue refused it, `Filled` if the order is no
 * longer open and has fills, otherwise `Resting`. A canceled order without fills is `Resting`, because it was on the
 * book before it was canceled.
 */
export const entryFrom = (
  { order: { cloid, oid }, status }: OrderRecord,
  fills: ReadonlyArray<Pick<Fill, "px" | "sz">>
): ActionEntry => {
  if (isRejected({ status })) {
    return { _tag: "Rejected", reason: reasons.get(status) ?? "Unclassified", message: status }
  }
  const identity = { oid, ...(isCloid(cloid) ? { cloid } : {}) }
  const sum = isOpen({ status }) ? undefined : sumFills(fills)
  return sum === undefined ? { _tag: "Resting", ...identity } : { _tag: "Filled", ...identity, ...sum }
}
