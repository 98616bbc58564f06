/** Dead man's switches: signed actions that the gateway sends if the heartbeats of this program stop. */
import * as Paths from "@trigate/api/Paths"
import { type AnySignedAction, write } from "@trigate/domain/actions/Action"
import { SwitchState } from "@trigate/domain/actions/Policy"
import { decodeLossy, stringify } from "@trigate/domain/encoding/Encoding"
import { type CallFailure, wrapReason } from "@trigate/domain/errors/GatewayError"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Connection } from "./Connection.ts"
import { ownReader, postOwn, readOwn, sendRequest } from "./internal/Served.ts"

const readState = ownReader(SwitchState)

/** The time after which a switch fires, and its heartbeats. */
export interface Options {
  /** Seconds without a heartbeat after which the actions are sent; 5 to 3600. */
  readonly after: number
  /** Whether an open WebSocket to the gateway is a heartbeat too. Default: false. */
  readonly presence?: boolean
}

/**
 * Arms a switch: if no heartbeat arrives for `after` seconds, the gateway sends the actions in order, each at most once.
 * Only cancels, `scheduleCancel` and reduce-only orders are accepted. A switch of the same name is replaced.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Switches } from "@trigate/client"
 * import { ActionBuilder, Signer, VenueProfile } from "@trigate/signing"
 * import { Clock, Console, Effect, Layer, Redacted } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const nonce = yield* Clock.currentTimeMillis
 *   const cancel = yield* ActionBuilder.cancelOrders([{ asset: 0, orderId: 1 }], { nonce })
 *   yield* Switches.arm("bot", [cancel], { after: 10 })
 *   // repeat this every few seconds
 *   yield* Console.log((yield* Switches.beat("bot")).state)
 *   yield* Switches.disarm("bot")
 * })
 *
 * const layers = Layer.mergeAll(
 *   Connection.layerFetch({ baseUrl: "http://localhost:8080" }),
 *   Signer.layerPrivateKey(Redacted.make("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")),
 *   VenueProfile.layer("mainnet")
 * )
 *
 * await Effect.runPromise(Effect.provide(program, layers))
 * ```
 * ```text
 * armed
 * ```
 */
export const arm: (
  name: string,
  actions: ReadonlyArray<Uint8Array | AnySignedAction>,
  options: Options
) => Effect.Effect<SwitchState, CallFailure, Connection> = Effect.fn("GatewayClient.armSwitch")(
  function*(name, actions, { after, presence = false }) {
    const texts = yield* Effect.forEach(
      actions,
      (each) => each instanceof Uint8Array ? Effect.succeed(decodeLossy(each)) : write(each)
    )
    const body = `{"after":${stringify(after)},"presence":${presence},"actions":[${texts.join(",")}]}`
    const path = Paths.armSwitch.replace(":name", encodeURIComponent(name))
    return yield* readState(yield* sendRequest(({ own }) => own.post(path, body)))
  },
  Effect.mapError(wrapReason)
)

const postTo = (called: string, path: string) => {
  const post = postOwn(called, Schema.Struct({}), SwitchState)
  return (name: string) => post(path.replace(":name", encodeURIComponent(name)), {})
}

/**
 * Notes a heartbeat. Returns `armed`, or why the switch is not armed: then arm it again.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Switches } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.flatMap(Switches.beat("bot"), ({ state }) => Console.log(state))
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * absent
 * ```
 */
export const beat = postTo("beatSwitch", Paths.beatSwitch)

/**
 * Removes a switch. One that is firing is not stopped.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Switches } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.flatMap(Switches.disarm("bot"), ({ state }) => Console.log(state))
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * absent
 * ```
 */
export const disarm = postTo("disarmSwitch", Paths.disarmSwitch)

/**
 * Returns the state of a switch, without a heartbeat.
 *
 * @since 0.1.0
 * @category calls
 * @example
 * ```ts
 * import { Connection, Switches } from "@trigate/client"
 * import { Console, Effect } from "effect"
 *
 * const program = Effect.flatMap(Switches.get("bot"), ({ state }) => Console.log(state))
 *
 * await Effect.runPromise(Effect.provide(program, Connection.layerFetch({ baseUrl: "http://localhost:8080" })))
 * ```
 * ```text
 * absent
 * ```
 */
export const get = (name: string): Effect.Effect<SwitchState, CallFailure, Connection> =>
  readOwn("switch", () => Paths.armSwitch.replace(":name", encodeURIComponent(name)), SwitchState)()
