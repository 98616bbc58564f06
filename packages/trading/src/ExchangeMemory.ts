/** `Exchange` in memory: records actions instead of sending them and returns configured responses. */
import * as Json from "@trigate/domain/encoding/Encoding"
import type { OnceFailure } from "@trigate/domain/errors/GatewayError"
import * as UpstreamResponse from "@trigate/domain/operations/Operation"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as ActionLog from "./actionLog/ActionLog.ts"
import * as ActionLogMemory from "./actionLog/ActionLogMemory.ts"
import * as Admission from "./admission/Admission.ts"
import * as Exchange from "./Exchange.ts"
import * as Guard from "./guard/Guard.ts"

/**
 * The state that a test sets and inspects.
 *
 * Provided by `ExchangeMemory.layer`.
 *
 * @since 0.1.0
 * @category services
 * @example
 * ```ts
 * import { Exchange, ExchangeMemory } from "@trigate/trading"
 * import { Console, Effect, Ref } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { received } = yield* ExchangeMemory.ExchangeState
 *   const { outcome } = yield* Exchange.Exchange
 *   const signer = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
 *   yield* outcome({ signer, nonce: 1 }).pipe(Effect.catchTag("ActionNotFound", () => Console.log("never sent")))
 *   yield* Console.log((yield* Ref.get(received)).length)
 * })
 *
 * await Effect.runPromise(Effect.provide(program, ExchangeMemory.layer()))
 * ```
 * ```text
 * never sent
 * 0
 * ```
 */
export class ExchangeState extends Context.Service<ExchangeState, {
  /** The bodies that passed admission, as they would have been sent, oldest first. */
  readonly received: Ref.Ref<ReadonlyArray<Uint8Array>>
  /** The response to each action that is sent from now on. Default: `accepted`. */
  readonly response: Ref.Ref<Effect.Effect<UpstreamResponse.UpstreamResponse, OnceFailure>>
}>()("@trigate/trading/ExchangeMemory/ExchangeState") {}

/**
 * Returns the venue's response to an accepted action. For an action that places orders, `response` contains a status
 * for each order.
 *
 * @since 0.1.0
 * @category calls
 * @since 0.1.0
 * @category constructors
 * @example
 * ```ts
 * import { Exchange, ExchangeMemory } from "@trigate/trading"
 * import { Console, Effect, Ref } from "effect"
 *
 * const statuses = [{ resting: { oid: 77738308 } }, { error: "Insufficient margin to place order." }]
 *
 * const program = Effect.gen(function*() {
 *   const { response } = yield* ExchangeMemory.ExchangeState
 *   yield* Ref.set(response, Effect.succeed(ExchangeMemory.acceptedWith({ type: "order", data: { statuses } })))
 *   const { submit } = yield* Exchange.Exchange
 *   yield* Console.log(typeof submit)
 * })
 *
 * await Effect.runPromise(Effect.provide(program, ExchangeMemory.layer()))
 * ```
 */
export const acceptedWith = (response: { readonly type: string; readonly data?: unknown }) =>
  UpstreamResponse.json("trading-api", 200, Json.stringify({ status: "ok", response }))

/** The venue's response to an accepted action without further data. */
export const accepted: UpstreamResponse.UpstreamResponse = acceptedWith({ type: "default" })

const state = Effect.gen(function*() {
  return ExchangeState.of({
    received: yield* Ref.make<ReadonlyArray<Uint8Array>>([]),
    response: yield* Ref.make<Effect.Effect<UpstreamResponse.UpstreamResponse, OnceFailure>>(Effect.succeed(accepted))
  })
})

const make = Effect.fnUntraced(function*() {
  const admission = yield* Admission.Admission
  const { response, received } = yield* ExchangeState
  return Exchange.make({
    admission,
    log: yield* ActionLog.ActionLog,
    guard: yield* Guard.current,
    send: ({ body }) =>
      Effect.andThen(
        Ref.update(received, (bodies) => [...bodies, body]),
        Effect.flatten(Ref.get(response))
      )
  })
})

/**
 * Provides `Exchange` and its state, over the `Admission` and the `ActionLog` of the context. Each call returns a new
 * layer with separate state.
 *
 * @since 0.1.0
 * @category layers
 */
export const layerNoDeps = (): Layer.Layer<
  Exchange.Exchange | ExchangeState,
  never,
  ActionLog.ActionLog | Admission.Admission
> => Layer.effect(Exchange.Exchange, make()).pipe(Layer.provideMerge(Layer.effect(ExchangeState, state)))

/**
 * Provides `Exchange` and its state, with its own `Admission`. Default network: mainnet.
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (
  { network = "mainnet", ...options }: Admission.Options & { readonly network?: VenueProfile.Network } = {}
): Layer.Layer<Exchange.Exchange | ExchangeState | VenueProfile.Venue> =>
  layerNoDeps().pipe(
    Layer.provide([Admission.layer(options), ActionLogMemory.layer()]),
    Layer.provideMerge(VenueProfile.layer(network))
  )
