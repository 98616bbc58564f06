/** Signed actions of the trading chain: checked, recorded in the action log, and sent at most once. */
import { ActionNotFound } from "@trigate/domain/actions/ActionError"
import type { NonceAlreadyUsed } from "@trigate/domain/actions/ActionError"
import type { ActionEntry, ActionRejected, ActionResult } from "@trigate/domain/actions/ActionOutcome"
import type { ActionRecord, ActionReference } from "@trigate/domain/actions/ActionRecord"
import { isOpen } from "@trigate/domain/actions/ActionRecord"
import type { ExchangeFailure, SubmitFailure } from "@trigate/domain/actions/ExchangeOperations"
import { findOperation, passthroughAction } from "@trigate/domain/actions/ExchangeOperations"
import * as ExchangeProtocol from "@trigate/domain/actions/ExchangeProtocol"
import * as Resolution from "@trigate/domain/actions/Resolution"
import type { AnySignedAction } from "@trigate/domain/actions/SignedAction"
import * as SignedAction from "@trigate/domain/actions/SignedAction"
import { CurrentCaller, detached } from "@trigate/domain/Caller"
import type { Address } from "@trigate/domain/encoding/Hex"
import { printable } from "@trigate/domain/encoding/TerminalEscape"
import * as Utf8 from "@trigate/domain/encoding/Utf8"
import { unwrapReason, type WrapReason, wrapReason } from "@trigate/domain/errors/GatewayError"
import type { ChainNotConfigured, InvalidRequest, UnavailableOnNode } from "@trigate/domain/errors/RequestError"
import type { OnceFailure } from "@trigate/domain/errors/TransportFailure"
import type { UpstreamUnavailable } from "@trigate/domain/errors/UpstreamError"
import { invalidRequest, sourcesOn, unavailableOnNode } from "@trigate/domain/operations/Operation"
import type { Surface } from "@trigate/domain/operations/Operation"
import type * as UpstreamResponse from "@trigate/domain/operations/UpstreamResponse"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as ActionLog from "./actionLog/ActionLog.ts"
import * as ActionTrace from "./actionLog/ActionTrace.ts"
import type { Changed } from "./admission/AccountChanges.ts"
import type { Admission, AdmissionFailure, Admitted } from "./admission/Admission.ts"

/** A body to relay, and which of our surfaces it came to. */
export interface ExchangeCall {
  readonly body: Uint8Array
  readonly surface: Surface
  /** Who the caller expects to have signed: the key's own address, so an API wallet's rather than its master's. */
  readonly expectedSigner?: Address
  /** The id of the request that brings the body, for the audit log. */
  readonly requestId?: string
}

/** What the venue's answer says: the action was taken, with an entry for each leg, or why it was not. */
export type SendOutcome = Result.Result<ActionResult, ActionRejected | ExchangeFailure>

/** The venue's response as received, its meaning, and warnings for the sender. */
export interface ExchangeRelay {
  /** Name of the operation: the action type, or `exchange` for one beyond the four. */
  readonly operation: string
  readonly answer: UpstreamResponse.UpstreamResponse
  readonly outcome: SendOutcome
  /** Who signed, in lower case; absent for the forms that only the documents show. */
  readonly signer?: Address
  readonly warnings: ReadonlyArray<string>
}

/** What relaying can end in before there is an answer. */
export type ExchangeRelayFailure =
  | AdmissionFailure
  | NonceAlreadyUsed
  | OnceFailure
  | ChainNotConfigured
  | UnavailableOnNode

/** Sends an admitted body at most once. */
export type Transport = (
  admitted: Admitted
) => Effect.Effect<UpstreamResponse.UpstreamResponse, OnceFailure | ChainNotConfigured | UnavailableOnNode>

/**
 * Takes signed actions.
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
   * Checks a body and sends its bytes. Returns the venue's own response; the venue also refuses with HTTP 200.
   *
   * `OutcomeUnknown` means that the action may have been accepted: only the same signed content may be sent again. Other
   * content under that nonce fails with `NonceAlreadyUsed`, as does a nonce that is in flight or settled. The node
   * surface fails with `UnavailableOnNode` before the body is read.
   */
  readonly relay: (call: ExchangeCall) => Effect.Effect<ExchangeRelay, WrapReason<ExchangeRelayFailure>>
  /**
   * Sends a signed action of any type. Returns the venue's response, with an entry for each order, cancel or modify.
   *
   * The action is encoded unchanged: its members in their order, integers with all their digits. Fails with
   * `ActionRejected` if the venue refuses the whole action. A refused leg of an action that it took is an entry: `requireAll`
   * of `@trigate/domain/actions/ActionOutcome` turns it into the error.
   */
  readonly submit: (signed: AnySignedAction) => Effect.Effect<ActionResult, SubmitFailure>
  /**
   * Finds out the outcome of an action after `OutcomeUnknown`, by sending it again; nothing else calls it.
   *
   * Takes the body that was relayed, the body of an entry of the action log, or the signed action that was submitted.
   * `Accepted` has the result that `submit` would have returned. Fails with `StillUnknown` and nothing else: an error of
   * this sending, whose `reason` it is, says nothing of the first one.
   */
  readonly resolve: (
    action: Uint8Array | AnySignedAction
  ) => Effect.Effect<Resolution.Resolution, Resolution.StillUnknown>
  /**
   * Returns the state of an action that was sent here, without sending anything. With `wait` it waits up to that long, at
   * most {@link longestWait}, for the outcome to become known; then it returns the current state.
   *
   * An order with a cloid settles within seconds of `OutcomeUnknown`. Fails with `ActionNotFound` for an action that the log does
   * not have, and for one of a signer outside the caller's scope; with `InvalidRequest` for a cloid that several actions have.
   */
  readonly outcome: (
    reference: ActionReference,
    options?: { readonly wait?: Duration.Input }
  ) => Effect.Effect<ActionRecord, WrapReason<ActionNotFound | InvalidRequest | UpstreamUnavailable>>
}>()("@trigate/trading/Exchange") {}

const upstream = "trading-api"

/** How long `outcome` waits at most. */
export const longestWait = Duration.seconds(30)

/** Milliseconds between two looks of a call that waits for an outcome. */
const waitStep = 250

/** How long after its nonce the venue may take an action that signs no `expiresAfter`, in milliseconds. */
const nonceLife = 2 * 86_400_000

/** Returns what callers may see of an action of the log. */
export const recordFrom = (
  { expiresAfter, fingerprint, nonce, settled, signer, state }: ActionLog.Recorded
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
    new ActionNotFound({ detail: "The action log has no such action: it was not sent here, or too long ago" })
  )
)

const severalFound = Effect.suspend(() =>
  Effect.fail(
    invalidRequest([{ path: ["cloid"], message: "Several actions have this cloid: name one by its signer and nonce" }])
  )
)

/** The body of a signed action. Fails with `InvalidRequest` for an envelope outside its ranges. */
const encoded = (signed: AnySignedAction) => Effect.map(SignedAction.write(signed), Utf8.encode)

/** What an outcome says about the sending, and about earlier ones of the same content; docs/reliability.md has it by status. */
const toSettlement = (outcome: SendOutcome, isRepeat: boolean): ActionLog.Settlement => {
  if (Result.isSuccess(outcome)) return "accepted"
  const error = outcome.failure
  switch (error._tag) {
    case "ActionRejected": {
      const resolution = Option.getOrUndefined(Resolution.ofRejection(error))
      if (resolution === undefined) return "refused"
      return resolution._tag === "Landed" && isRepeat ? "accepted" : "rejected"
    }
    // a gateway upstream has sent the content before, and knows that the venue took it
    case "NonceAlreadyUsed":
      return error.settled === "accepted" ? "accepted" : "unknown"
    case "OutcomeUnknown":
      return "unknown"
    // a refusal before the action was looked at: by a rate limit, by something in front of the venue, by a gateway upstream
    default:
      return "released"
  }
}

/** The service over some admission, some action log and some way to send; `changed` learns of actions that the venue may have taken. */
export const make = (
  admission: Admission["Service"],
  log: ActionLog.ActionLog["Service"],
  send: Transport,
  changed: Changed = () => Effect.void
): Exchange["Service"] => {
  const sendOnce = (admitted: Admitted, requestId?: string) =>
    Effect.flatMap(CurrentCaller, (caller) => {
      const { actionType, body, fingerprint, nonce, signed, signer } = admitted
      const identity = signer === undefined ? { nonce } : { nonce, signer }
      const isListed = admitted.isListed || caller.scope.signers?.some((each) => each.toLowerCase() === signer) === true
      const sending: ActionLog.Sending = {
        actionType,
        body,
        caller: caller.id,
        fingerprint,
        isListed,
        ...identity,
        ...(requestId === undefined ? {} : { requestId }),
        trace: ActionTrace.make(signed)
      }
      return ActionLog.claimed(log, sending, ({ isRepeat, settle }) =>
        Effect.gen(function*() {
          const settled = (
            settlement: ActionLog.Settlement,
            status?: number,
            entries?: ReadonlyArray<ActionEntry>
          ) =>
            Effect.andThen(
              // the venue may have taken it
              settlement === "accepted" || settlement === "unknown"
                ? changed(admitted, settlement === "accepted")
                : Effect.void,
              settle(settlement, status, entries)
            )
          const answer = yield* Effect.tapError(
            send(admitted),
            // every other failure says that nothing was sent
            (error) => settled(error._tag === "OutcomeUnknown" ? "unknown" : "released")
          )
          const legs = SignedAction.legCount(signed.action)
          const outcome = yield* Effect.result(ExchangeProtocol.readOutcome(answer, { ...identity, legs }))
          yield* settled(
            toSettlement(outcome, isRepeat),
            answer.status,
            Result.isSuccess(outcome) ? outcome.success.entries : undefined
          )
          return { answer, outcome }
        }))
    })

  // a caller that leaves ends neither the sending nor the claim
  const sendDetached = (admitted: Admitted, requestId?: string) => detached(sendOnce(admitted, requestId))

  /** Logs and returns what the body of a refused action shows to be wrong with it; nothing for an action that was accepted. */
  const logSentences = Effect.fnUntraced(function*(admitted: Admitted, outcome: Result.Result<unknown, unknown>) {
    const sentences = Result.isFailure(outcome) ? admitted.sentences() : []
    if (sentences.length > 0) {
      yield* Effect.logWarning(`The venue refused ${printable(admitted.actionType)}: ${sentences.join("; ")}`)
    }
    return sentences
  })

  const relay = Effect.fnUntraced(function*({ body, expectedSigner, requestId, surface }: ExchangeCall) {
    if (sourcesOn(passthroughAction, surface).length === 0) return yield* unavailableOnNode(passthroughAction)
    const admitted = yield* admission.admit(body, expectedSigner)
    const { answer, outcome } = yield* sendDetached(admitted, requestId)
    // the venue's own words stay as they are; what is wrong with the body is said beside them
    const sentences = yield* logSentences(admitted, outcome)
    return {
      operation: findOperation(admitted.actionType).name,
      answer,
      outcome,
      ...(admitted.signer === undefined ? {} : { signer: admitted.signer }),
      warnings: [...admitted.warnings, ...sentences]
    }
  }, Effect.mapError(wrapReason))

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
    submit: Effect.fn("Exchange.submit")(function*(signed: AnySignedAction) {
      return yield* sendOutcome(yield* admission.admit(yield* encoded(signed)))
    }, Effect.mapError(wrapReason)),
    resolve: Effect.fn("Exchange.resolve")(function*(action: Uint8Array | AnySignedAction) {
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
