/** Signed actions of the venue: checked, recorded in the action log, and sent at most once. */
import * as Action from "@trigate/domain/actions/Action"
import {
  type ActionRecord,
  type ActionReference,
  type ActionRejected,
  type ActionResult,
  isOpen
} from "@trigate/domain/actions/ActionOutcome"
import * as Resolution from "@trigate/domain/actions/Resolution"
import { CurrentCaller, detached } from "@trigate/domain/Caller"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import { ActionNotFound, unwrapReason, wrapReason } from "@trigate/domain/errors/GatewayError"
import type {
  ChainNotConfigured,
  InvalidRequest,
  NonceAlreadyUsed,
  OnceFailure,
  PolicyViolation,
  UnavailableOnNode,
  UpstreamUnavailable,
  WrapReason
} from "@trigate/domain/errors/GatewayError"
import * as Operation from "@trigate/domain/operations/Operation"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as ActionLog from "./actionLog/ActionLog.ts"
import * as LoggedAction from "./actionLog/LoggedAction.ts"
import type { Admission, AdmissionFailure, Admitted, Changed } from "./admission/Admission.ts"
import type { Guard } from "./guard/Guard.ts"
import type { Reservation } from "./guard/GuardedAccounts.ts"

/**
 * A signed body to relay, and the gateway's surface that received it: the gateway's own routes, or the node routes
 * behind an endpoint key.
 */
export interface ExchangeCall {
  readonly body: Uint8Array
  readonly surface: Operation.Surface
  /**
   * The address of the key that should have signed. If an API wallet should have signed, this is the API wallet's own
   * address, not its master's.
   */
  readonly expectedSigner?: Encoding.Address
  /** The ID of the request that contains the body, for the audit log. */
  readonly requestId?: string
}

/**
 * The result of sending an action: either the accepted action with an entry for each of its orders, cancels or
 * modifies, or the reason for the rejection.
 */
export type SendOutcome = Result.Result<ActionResult, ActionRejected | Action.ExchangeFailure>

/** The venue's response as received, its meaning, and warnings for the sender. */
export interface ExchangeRelay {
  /** The action type, or `exchange` for a type outside the catalog. */
  readonly operation: string
  readonly response: Operation.UpstreamResponse
  readonly outcome: SendOutcome
  /** The recovered signer, in lower case; absent for action forms that the venue documents but does not accept. */
  readonly signer?: Encoding.Address
  readonly warnings: ReadonlyArray<string>
}

/** A failure to relay an action before the venue responded. */
export type ExchangeRelayFailure =
  | AdmissionFailure
  | NonceAlreadyUsed
  | OnceFailure
  | ChainNotConfigured
  | PolicyViolation
  | UnavailableOnNode

/** Sends an admitted body at most once. */
export type Transport = (
  admitted: Admitted
) => Effect.Effect<Operation.UpstreamResponse, OnceFailure | ChainNotConfigured | UnavailableOnNode>

/**
 * Relays and submits signed actions.
 *
 * Provided by `Trigate.layer`, `Trading.layer`, `ExchangeUpstream.layerFetch` or `ExchangeMemory.layer`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { ActionBuilder, Signer } from "@trigate/signing"
 * import { Exchange, ExchangeMemory } from "@trigate/trading"
 * import { Clock, Console, Effect, Layer, Redacted } from "effect"
 *
 * const order = { asset: 0, side: "buy", priceInQuote: "60000", sizeInBase: "0.001" } as const
 * const signer = Signer.layerPrivateKey(
 *   Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
 * )
 *
 * const program = Effect.gen(function*() {
 *   const nonce = yield* Clock.currentTimeMillis
 *   const signed = yield* ActionBuilder.placeOrders({ orders: [order] }, { nonce })
 *   const { submit } = yield* Exchange.Exchange
 *   const { entries } = yield* submit(signed)
 *   yield* Console.log(entries.map(({ _tag }) => _tag))
 * })
 *
 * await Effect.runPromise(Effect.provide(program, Layer.merge(ExchangeMemory.layer(), signer)))
 * ```
 * ```text
 * [ 'Done' ]
 * ```
 */
export class Exchange extends Context.Service<Exchange, {
  /**
   * Checks a body and sends its bytes. Returns the venue's own response. The venue also sends refusals with HTTP 200.
   *
   * `OutcomeUnknown` means that the venue may have accepted the action: only a body with equal signed content may be
   * sent again. `NonceAlreadyUsed` means that an earlier action with this nonce has different content, is in flight, or
   * has a known outcome. For a call to the node routes, fails with `UnavailableOnNode` before the body is read.
   */
  readonly relay: (call: ExchangeCall) => Effect.Effect<ExchangeRelay, WrapReason<ExchangeRelayFailure>>
  /**
   * Sends a signed action of any type. Returns the venue's response, with an entry for each order, cancel or modify.
   *
   * The action is encoded unchanged: its members keep their order, and integers keep all digits. If the venue refuses
   * the whole action, the call fails with `ActionRejected`. If the venue accepts the action but refuses one of its
   * orders, cancels or modifies, the result contains an entry for that refusal. `requireAll` of
   * `@trigate/domain/actions/ActionOutcome` turns such an entry into `ActionRejected`.
   */
  readonly submit: (signed: Action.AnySignedAction) => Effect.Effect<ActionResult, Action.SubmitFailure>
  /**
   * Determines the outcome of an action after `OutcomeUnknown` by sending the action again. The gateway never does this
   * by itself.
   *
   * Accepts the body that was relayed, the body of an entry of the action log, or the signed action that was submitted.
   * `Accepted` contains the result that `submit` would have returned. Fails only with `StillUnknown`. The `reason` of
   * that error describes the new attempt, and does not show whether the first attempt was accepted.
   */
  readonly resolve: (
    action: Uint8Array | Action.AnySignedAction
  ) => Effect.Effect<Resolution.Resolution, Resolution.StillUnknown>
  /**
   * Returns the state of an action that this gateway sent, without sending anything. If `wait` is set, waits up to that
   * duration (at most {@link longestWait}) for the outcome to become known, and then returns the current state.
   *
   * After `OutcomeUnknown`, the outcome of an order with a client order ID is usually known within seconds. Fails with
   * `ActionNotFound` if the action is not in the log, or if the caller is not allowed to act for the action's signer.
   * Fails with `InvalidRequest` for a client order ID that several actions share.
   */
  readonly outcome: (
    reference: ActionReference,
    options?: { readonly wait?: Duration.Input }
  ) => Effect.Effect<ActionRecord, WrapReason<ActionNotFound | InvalidRequest | UpstreamUnavailable>>
}>()("@trigate/trading/Exchange") {}

const upstream = "trading-api"

const notKnownCounter = ActionLog.metrics.actionsNotKnown.series({})

/** The maximum time that `outcome` waits. */
export const longestWait = Duration.seconds(30)

/** Milliseconds between two lookups of the action log while `outcome` waits. */
const waitStep = 250

/**
 * How long the venue can accept an action without `expiresAfter`, in milliseconds from the time in the action's nonce.
 */
const nonceLife = 2 * 86_400_000

/** Converts an entry of the action log to the record that callers are allowed to see. */
export const recordFrom = (
  { expiresAfter, fingerprint, nonce, settled, signer, state }: LoggedAction.Recorded
): ActionRecord => ({
  id: fingerprint,
  state,
  ...(signer === undefined ? {} : { signer }),
  nonce,
  ...(isOpen({ state }) ? { mayLandUntil: expiresAfter ?? nonce + nonceLife } : {}),
  ...(settled === undefined ? {} : { settled })
})

const notFound = Effect.suspend(() =>
  Effect.fail(
    new ActionNotFound({
      detail: "The action log does not contain this action: this gateway never sent it, or its entry has expired"
    })
  )
)

const severalFound = Effect.suspend(() =>
  Effect.fail(
    Operation.invalidRequest([{
      path: ["cloid"],
      message: "Several actions have this cloid: add their signer, or identify one by its signer and nonce"
    }])
  )
)

/** Encodes a signed action as a body. Fails with `InvalidRequest` if a value of the envelope is out of range. */
const encoded = (signed: Action.AnySignedAction) => Effect.map(Action.write(signed), Encoding.encode)

/**
 * Converts the result of an attempt to the `Settlement` that the action log records; docs/reliability.md lists the
 * settlement for each status.
 */
const toSettlement = (outcome: SendOutcome, isRepeat: boolean): LoggedAction.Settlement => {
  if (Result.isSuccess(outcome)) return "accepted"
  const error = outcome.failure
  switch (error._tag) {
    case "ActionRejected": {
      const resolution = Option.getOrUndefined(Resolution.ofRejection(error))
      if (resolution === undefined) return "refused"
      return resolution._tag === "Landed" && isRepeat ? "accepted" : "rejected"
    }
    // an upstream gateway has already sent this content, and knows that the venue accepted it
    case "NonceAlreadyUsed":
      return error.settled === "accepted" ? "accepted" : "unknown"
    case "OutcomeUnknown":
      return "unknown"
    // refused before the action was examined: by a rate limit, a proxy in front of the venue, or an upstream gateway
    default:
      return "released"
  }
}

/** Returns the usual cause of a rejection that the venue's text does not name. */
const usualCause = (
  { signer }: Pick<Admitted, "signer">,
  rejection: ActionRejected | Action.ExchangeFailure
): ReadonlyArray<string> => {
  if (rejection._tag !== "ActionRejected" || signer === undefined) return []
  switch (rejection.reason) {
    case "UnknownSigner":
      // the venue's other texts name their cause
      return !rejection.message.startsWith("User or API Wallet") ? [] : [
        `If ${signer} is an API wallet, it has expired, or a newer one of the same name has replaced it: approve a new one`
      ]
    case "NonceTooLow":
      return [
        `The key of ${signer} has used a hundred higher nonces, perhaps in another program: give each program an API wallet of its own, or let all take their nonces from POST /nonces`
      ]
    default:
      return []
  }
}

const identity = ({ nonce, signer }: Pick<Admitted, "nonce" | "signer">) =>
  signer === undefined ? { nonce } : { nonce, signer }

/** The services from which an `Exchange` is made. */
export interface Parts {
  readonly admission: Admission["Service"]
  readonly log: ActionLog.ActionLog["Service"]
  readonly send: Transport
  /** Is called with each action that the venue may have accepted. */
  readonly changed?: Changed
  /** Lets each action pass, or refuses it, before it is claimed and sent. Default: every action passes. */
  readonly guard?: Guard["Service"] | undefined
}

/** Makes the service `Exchange`. */
export const make = ({ admission, changed = () => Effect.void, guard, log, send }: Parts): Exchange["Service"] => {
  /** Sends an action that the log has claimed, and settles its entry. */
  const attempt = Effect.fnUntraced(function*(
    admitted: Admitted,
    reservation: Reservation | undefined,
    { isRepeat, settle }: LoggedAction.Claim
  ) {
    const sent = yield* Effect.result(send(admitted))
    if (Result.isFailure(sent)) {
      const isUnknown = sent.failure._tag === "OutcomeUnknown"
      // the venue may have accepted the action; every other failure means that nothing was sent
      if (isUnknown) yield* changed(admitted, false)
      reservation?.end(isUnknown ? "unknown" : "released")
      yield* settle(isUnknown ? "unknown" : "released")
      return yield* sent.failure
    }
    const response = sent.success
    const outcome = yield* Effect.result(Action.readOutcome(response, { ...identity(admitted), legs: admitted.legs }))
    const settlement = toSettlement(outcome, isRepeat)
    if (settlement === "accepted" || settlement === "unknown") yield* changed(admitted, settlement === "accepted")
    reservation?.end(settlement)
    yield* settle(settlement, response.status, Result.isSuccess(outcome) ? outcome.success.entries : undefined)
    return { response, outcome }
  })

  const sendOnce = Effect.fnUntraced(function*(admitted: Admitted, requestId?: string) {
    const reservation = guard === undefined || guard.state.isIdle ? undefined : yield* guard.reserve(admitted)
    const { actionType, body, fingerprint, signer } = admitted
    const caller = yield* CurrentCaller
    const sending: LoggedAction.Sending = {
      actionType,
      body,
      caller: caller.id,
      fingerprint,
      isListed: admitted.isListed || caller.scope.signers?.some((each) => each.toLowerCase() === signer) === true,
      ...identity(admitted),
      ...(requestId === undefined ? {} : { requestId }),
      trace: admitted.trace
    }
    const claimed = LoggedAction.claimed(log, sending, (claim) => attempt(admitted, reservation, claim))
    // an action that was not claimed was not sent
    return yield* reservation === undefined
      ? claimed
      : Effect.onError(claimed, () => Effect.sync(() => reservation.end("notSent")))
  })

  // if the caller disconnects, neither the request to the venue nor its entry in the action log is interrupted
  const sendDetached = (admitted: Admitted, requestId?: string) => {
    const sent = detached(sendOnce(admitted, requestId))
    return admitted.isKnown ? sent : Effect.andThen(Metric.update(notKnownCounter, 1), sent)
  }

  /**
   * Logs and returns the mistakes in the body of a rejected action, and the usual cause of the rejection; returns an empty
   * list if the action was accepted.
   */
  const logSentences = (admitted: Admitted, outcome: SendOutcome): Effect.Effect<ReadonlyArray<string>> => {
    const sentences = Result.isFailure(outcome)
      ? [...admitted.sentences(), ...usualCause(admitted, outcome.failure)]
      : []
    return sentences.length === 0 ? Exit.succeed(sentences) : Effect.as(
      Effect.logWarning(`The venue refused ${Encoding.printable(admitted.actionType)}: ${sentences.join("; ")}`),
      sentences
    )
  }

  const relay = Effect.fnUntraced(function*({ body, expectedSigner, requestId, surface }: ExchangeCall) {
    if (Operation.sourcesOn(Action.passthroughAction, surface).length === 0) {
      return yield* wrapReason(Operation.unavailableOnNode(Action.passthroughAction))
    }
    const admitted = yield* admission.admit(body, expectedSigner)
    const { response, outcome } = yield* Effect.mapError(sendDetached(admitted, requestId), wrapReason)
    // the venue's message stays unchanged; the mistakes are reported separately
    const sentences = yield* logSentences(admitted, outcome)
    const relayed: ExchangeRelay = {
      operation: admitted.operation.name,
      response,
      outcome,
      ...(admitted.signer === undefined ? {} : { signer: admitted.signer }),
      warnings: [...admitted.warnings, ...sentences]
    }
    return relayed
  })

  const sendOutcome = (admitted: Admitted) =>
    Effect.flatMap(
      sendDetached(admitted),
      ({ outcome }) => Effect.andThen(logSentences(admitted, outcome), Effect.fromResult(outcome))
    )

  const find = Effect.fnUntraced(function*(reference: ActionReference) {
    const { scope } = yield* CurrentCaller
    const found = (yield* log.find(reference)).filter(({ signer }) =>
      scope.signers === undefined || scope.signers.some((each) => each.toLowerCase() === signer)
    )
    const [first, second] = found
    if (first === undefined) return yield* notFound
    return second === undefined ? recordFrom(first) : yield* severalFound
  })

  return Exchange.of({
    relay,
    outcome: Effect.fn("Exchange.outcome")(
      function*(reference: ActionReference, options?: { readonly wait?: Duration.Input }) {
        const wait = Duration.toMillis(Duration.min(Duration.fromInputUnsafe(options?.wait ?? 0), longestWait))
        let left = Math.ceil(wait / waitStep)
        let record = yield* find(reference)
        while (left > 0 && isOpen(record)) {
          left -= 1
          yield* Effect.sleep(waitStep)
          record = yield* find(reference)
        }
        return record
      },
      Effect.mapError(wrapReason)
    ),
    submit: Effect.fn("Exchange.submit")(function*(signed: Action.AnySignedAction) {
      return yield* sendOutcome(yield* admission.admit(yield* encoded(signed)))
    }, Effect.mapError(wrapReason)),
    resolve: Effect.fn("Exchange.resolve")(function*(action: Uint8Array | Action.AnySignedAction) {
      const admitted = yield* Effect.flatMap(
        action instanceof Uint8Array ? Effect.succeed(action) : encoded(action),
        (body) => admission.admit(body)
      ).pipe(Effect.mapError((error) => Resolution.stillUnknown({ upstream })(unwrapReason(error))))
      const { nonce, signer } = admitted
      return yield* Resolution.ofOutcome(
        sendOutcome(admitted),
        signer === undefined ? { upstream, nonce } : { upstream, nonce, signer }
      )
    })
  })
}
