/** Signed actions. */
import * as Paths from "@trigate/api/Paths"
import { NonceRequest, Nonces } from "@trigate/api/unstable/TradingApi"
import { legCountIn, outcomeReader, resendAdvice, ServedExchangeFailure, write } from "@trigate/domain/actions/Action"
import type { AnySignedAction, Identity, SubmitFailure } from "@trigate/domain/actions/Action"
import { ActionRecord, type ActionReference, type ActionResult } from "@trigate/domain/actions/ActionOutcome"
import { ofOutcome, type Resolution, type StillUnknown } from "@trigate/domain/actions/Resolution"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import { ActionNotFound, servedFailures, wrapReason } from "@trigate/domain/errors/GatewayError"
import type { CallFailure } from "@trigate/domain/errors/GatewayError"
import * as Operation from "@trigate/domain/operations/Operation"
import { Inspection } from "@trigate/domain/unstable/Inspection"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Connection, label } from "./Connection.ts"
import { broken, ownReader, postOwn, sendRequest } from "./internal/Served.ts"

const readOutcome = outcomeReader(ServedExchangeFailure)

const send = Effect.fnUntraced(function*(body: string, identity: Identity) {
  const sending = Connection.use(({ chains }) => chains.post(Paths.exchange, body))
  return yield* readOutcome(yield* Effect.mapError(sending, broken({ ...identity, advice: resendAdvice })), {
    ...identity,
    legs: legCountIn(body)
  })
})

/**
 * Sends a signed action of any type once, without retries. Returns the venue's response, with an entry for each order,
 * cancel or modify.
 *
 * The action is encoded unchanged: its members keep their order, and integers keep all digits. If the connection
 * breaks, the call fails with `OutcomeUnknown`.
 *
 * If the venue refuses the whole action, the call fails with `ActionRejected`. If the venue refuses only some of the
 * action's orders, cancels or modifies, the response has an entry for each refusal. `requireAll` of
 * `@trigate/domain/actions/ActionOutcome` turns such an entry into `ActionRejected`.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Exchange } from "@trigate/client"
 * import { ActionBuilder, Signer, VenueProfile } from "@trigate/signing"
 * import { Clock, Console, Effect, Layer, Redacted } from "effect"
 *
 * const order = { asset: 1, side: "buy", priceInQuote: "1100.5", sizeInBase: "0.2" } as const
 *
 * const program = Effect.gen(function*() {
 *   const nonce = yield* Clock.currentTimeMillis
 *   const signed = yield* ActionBuilder.placeOrders({ orders: [order] }, { nonce })
 *   const { entries } = yield* Exchange.submit(signed)
 *   yield* Console.log(entries.map(({ _tag }) => _tag))
 * }).pipe(Effect.provide(Layer.mergeAll(
 *   Connection.layerFetch({ baseUrl: "http://localhost:8080" }),
 *   Signer.layerPrivateKey(Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")),
 *   VenueProfile.layer("mainnet")
 * )))
 *
 * await Effect.runPromise(program)
 * ```
 * ```text
 * [ 'Resting' ]
 * ```
 */
export const submit: (
  signed: AnySignedAction
) => Effect.Effect<ActionResult, SubmitFailure, Connection> = Effect.fn(
  "GatewayClient.submit"
)(function*(signed) {
  return yield* send(yield* write(signed), { nonce: signed.nonce })
}, Effect.mapError(wrapReason))

const readText = (body: Uint8Array) =>
  Effect.fromOption(Encoding.decode(body), () => Operation.invalidRequest([{ path: [], message: "Not valid UTF-8" }]))

/**
 * Determines the outcome of an action after `OutcomeUnknown` by sending the identical bytes again. The client never
 * does this by itself.
 *
 * Accepts the submitted action, or the body that was sent. `Accepted` contains the result that `submit` would have
 * returned. Fails only with `StillUnknown`: its `reason` is the error of this attempt, and does not show whether the
 * first attempt was accepted.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Exchange } from "@trigate/client"
 * import { ActionBuilder, Signer, VenueProfile } from "@trigate/signing"
 * import { Clock, Console, Effect, Layer, Redacted } from "effect"
 *
 * const order = { asset: 1, side: "buy", priceInQuote: "1100.5", sizeInBase: "0.2" } as const
 *
 * const program = Effect.gen(function*() {
 *   const nonce = yield* Clock.currentTimeMillis
 *   const signed = yield* ActionBuilder.placeOrders({ orders: [order] }, { nonce })
 *   const outcome = yield* Exchange.submit(signed).pipe(
 *     Effect.as("accepted"),
 *     Effect.catchTag("OutcomeUnknown", () => Effect.map(Exchange.resolve(signed), ({ _tag }) => _tag))
 *   )
 *   yield* Console.log(outcome)
 * }).pipe(Effect.provide(Layer.mergeAll(
 *   Connection.layerFetch({ baseUrl: "http://localhost:8080" }),
 *   Signer.layerPrivateKey(Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")),
 *   VenueProfile.layer("mainnet")
 * )))
 *
 * await Effect.runPromise(program)
 * ```
 * ```text
 * accepted
 * ```
 */
export const resolve: (
  action: Uint8Array | AnySignedAction
) => Effect.Effect<Resolution, StillUnknown, Connection> = Effect.fn("GatewayClient.resolve")((action) => {
  const identity = action instanceof Uint8Array ? {} : { nonce: action.nonce }
  const body = action instanceof Uint8Array ? readText(action) : write(action)
  return ofOutcome(Effect.flatMap(body, (text) => send(text, identity)), { upstream: label, ...identity })
})

const readRecord = Operation.decodeJson(ActionRecord)
const outcomeProblem = Operation.problemReader(Schema.Union([...servedFailures, ActionNotFound]))

/** Returns the path of an outcome request. A gateway waits for at most 30 seconds. */
const actionPath = (reference: ActionReference, wait: Duration.Input): string => {
  const seconds = Math.min(30, Math.ceil(Duration.toSeconds(wait)))
  const named = "id" in reference ? {} : reference
  const members = Object.entries({ ...named, ...(seconds > 0 ? { wait: seconds } : {}) })
  const query = new URLSearchParams(members.map(([name, value]) => [name, String(value)])).toString()
  const path = "id" in reference ? Paths.actionOutcome.replace(":id", reference.id) : Paths.actionOutcomes
  return query === "" ? path : `${path}?${query}`
}

/**
 * Returns the gateway's record of an action, without sending anything to the venue. If `wait` is set, waits up to that
 * long (at most 30 seconds) for the outcome to become known, and then returns the current record.
 *
 * After `OutcomeUnknown`, the outcome of an order with a client order ID is usually known within seconds. Fails with
 * `ActionNotFound` for an action that the gateway did not send.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Exchange } from "@trigate/client"
 * import { ActionBuilder, Signer, VenueProfile } from "@trigate/signing"
 * import { Clock, Console, Effect, Layer, Redacted } from "effect"
 *
 * const order = { asset: 1, side: "buy", priceInQuote: "1100.5", sizeInBase: "0.2" } as const
 *
 * const program = Effect.gen(function*() {
 *   const nonce = yield* Clock.currentTimeMillis
 *   const signed = yield* ActionBuilder.placeOrders({ orders: [order] }, { nonce })
 *   yield* Exchange.submit(signed)
 *   const { address: signer } = yield* Signer.Signer
 *   const { state } = yield* Exchange.outcome({ signer, nonce }, { wait: "10 seconds" })
 *   yield* Console.log(state)
 * }).pipe(Effect.provide(Layer.mergeAll(
 *   Connection.layerFetch({ baseUrl: "http://localhost:8080" }),
 *   Signer.layerPrivateKey(Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")),
 *   VenueProfile.layer("mainnet")
 * )))
 *
 * await Effect.runPromise(program)
 * ```
 * ```text
 * accepted
 * ```
 */
export const outcome: (
  reference: ActionReference,
  options?: { readonly wait?: Duration.Input }
) => Effect.Effect<ActionRecord, CallFailure | ActionNotFound, Connection> = Effect.fn("GatewayClient.outcome")(
  function*(reference, { wait = 0 } = {}) {
    const response = yield* sendRequest(({ own }) => own.get(actionPath(reference, wait)))
    if (response.status === 200) return yield* readRecord(response.upstream, response.json)
    return yield* Option.getOrElse(outcomeProblem(response), () => Operation.servedResponseFailure(response))
  },
  Effect.mapError(wrapReason)
)

const readInspection = ownReader(Inspection)

/**
 * Describes a signed action as the gateway decodes it: its form, its signers and its nonce. Relays nothing.
 *
 * If the address of the expected signer is passed, the result also explains why the recovered signer differs. Accepts
 * an action or the bytes of a body, including malformed ones.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Exchange } from "@trigate/client"
 * import { ActionBuilder, Signer, VenueProfile } from "@trigate/signing"
 * import { Clock, Console, Effect, Layer, Redacted } from "effect"
 *
 * const order = { asset: 1, side: "buy", priceInQuote: "1100.5", sizeInBase: "0.2" } as const
 *
 * const program = Effect.gen(function*() {
 *   const nonce = yield* Clock.currentTimeMillis
 *   const signed = yield* ActionBuilder.placeOrders({ orders: [order] }, { nonce })
 *   const { diagnosis } = yield* Exchange.inspect(signed, "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266")
 *   yield* Console.log(diagnosis.verdict)
 * }).pipe(Effect.provide(Layer.mergeAll(
 *   Connection.layerFetch({ baseUrl: "http://localhost:8080" }),
 *   Signer.layerPrivateKey(Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")),
 *   VenueProfile.layer("mainnet")
 * )))
 *
 * await Effect.runPromise(program)
 * ```
 * ```text
 * fits
 * ```
 */
export const inspect: (
  signed: Uint8Array | AnySignedAction,
  expectedSigner?: Encoding.Address
) => Effect.Effect<Inspection, CallFailure, Connection> = Effect.fn("GatewayClient.inspect")(
  function*(signed, expectedSigner) {
    const body = yield* (signed instanceof Uint8Array ? readText(signed) : write(signed))
    const query = expectedSigner === undefined ? "" : `?x-trigate-expected-signer=${expectedSigner}`
    return yield* readInspection(yield* sendRequest(({ own }) => own.post(`${Paths.inspect}${query}`, body)))
  },
  Effect.mapError(wrapReason)
)

const issueNonces = postOwn("nonces", NonceRequest, Nonces)

/**
 * Returns the next nonces of a signer, which no other request gets: programs that share a key sign with different
 * nonces. Default: one nonce.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Exchange } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const signer = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
 * const program = Effect.flatMap(Exchange.nonces(signer, 3), (nonces) => Console.log(nonces.length))
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * 3
 * ```
 */
export const nonces = (
  signer: Encoding.Address,
  count = 1
): Effect.Effect<ReadonlyArray<number>, CallFailure, Connection> =>
  Effect.map(issueNonces(Paths.nonces, { signer, count }), ({ nonces }) => nonces)
