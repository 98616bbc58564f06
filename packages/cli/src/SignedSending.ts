/** The way of a signed action: whose key, is the gateway there, what is signed, then send it once. */
import { resendAdvice } from "@trigate/domain/ExchangeOperations"
import type { Address } from "@trigate/domain/Hex"
import * as JsonText from "@trigate/domain/JsonText"
import type { SignedAction } from "@trigate/domain/SignedAction"
import { OutcomeUnknown } from "@trigate/domain/UpstreamError"
import type * as Signer from "@trigate/signing/Signer"
import type { VenueProfile } from "@trigate/signing/VenueProfile"
import { mainnet, testnet } from "@trigate/signing/VenueProfile"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as GatewayAccess from "./GatewayAccess.ts"
import * as KeyOption from "./KeyOption.ts"
import * as Output from "./Output.ts"
import * as Report from "./Report.ts"
import * as Table from "./Table.ts"
import { UsageFault } from "./UsageFault.ts"

/** Prints the body instead of sending it. */
export const dryRun = Flag.Boolean("dry-run").pipe(
  Flag.withDefault(false),
  Flag.withDescription("Sign, print the body for POST /exchange, send nothing")
)

/** A signed action, and what a person has to know about it. */
export interface Signed {
  readonly body: SignedAction
  readonly signer: Address
  /** What is signed, in plain sentences. */
  readonly says: ReadonlyArray<string>
}

/** The spelling of a network. */
export const profileOf = (network: VenueProfile["name"]): VenueProfile => network === "mainnet" ? mainnet : testnet

const tell = ({ says }: Signed) => Effect.forEach(says, (sentence) => Console.error(sentence), { discard: true })

const checkNetwork = Effect.fnUntraced(function*(connection: GatewayAccess.Connection, network: VenueProfile["name"]) {
  const ready = yield* GatewayAccess.over(connection, ({ health }) => health.ready())
  if (ready.network !== network) {
    return yield* new UsageFault({
      message:
        `The gateway expects signatures for ${ready.network}, and this one would be for ${network}; nothing was sent. ` +
        `Name the network with --network, or another gateway with --gateway`
    })
  }
  return ready.sandbox ? "the sandbox, nothing here is real" : `a gateway for ${network}`
})

/** Sends once; whatever leaves open what became of it, an interruption too, names the signer and keeps the bytes. */
const send = Effect.fnUntraced(function*(connection: GatewayAccess.Connection, { body, signer }: Signed) {
  const unknown = (upstream: string, detail: string) =>
    new OutcomeUnknown({ upstream, nonce: body.nonce, signer, advice: resendAdvice, detail })
  const keep = Console.error(`The bytes that may be sent again: ${JsonText.stringify(body)}`)
  return yield* connection.client.exchange.submit(body).pipe(
    Effect.catchTag("OutcomeUnknown", ({ message, upstream }) => unknown(upstream, message)),
    Effect.timeoutOrElse({
      duration: GatewayAccess.maxWait,
      orElse: () => unknown("gateway", `The gateway did not answer within ${GatewayAccess.maxWait / 1000} seconds`)
    }),
    Effect.tapErrorTag("OutcomeUnknown", () => keep),
    Effect.onInterrupt(() =>
      Effect.andThen(keep, Report.error(unknown("gateway", "Interrupted while the action was under way")))
    )
  )
})

/** How to sign and send. */
export interface Options extends KeyOption.KeyOption {
  readonly dryRun: boolean
  readonly network: VenueProfile["name"]
}

/**
 * Signs with the key of the options and sends for a network.
 *
 * A key that is not there is told before anybody is asked; `sign` comes after the gateway has been found to be there, and to be
 * the right one.
 */
export const run = Effect.fnUntraced(function*<E, R>(
  { dryRun, network, ...key }: Options,
  sign: (signer: Signer.Signer["Service"]) => Effect.Effect<Signed, E, R>
) {
  const by = yield* KeyOption.signer(key)
  if (dryRun) {
    const signed = yield* sign(by)
    yield* tell(signed)
    return yield* Console.log(JsonText.stringify(signed.body))
  }
  const connection = yield* GatewayAccess.connect
  const behind = yield* checkNetwork(connection, network)
  const signed = yield* sign(by)
  yield* tell(signed)
  yield* Console.error(`Sending it to ${connection.origin}: ${behind}.`)
  const answer = yield* send(connection, signed)
  const { body: { nonce }, signer } = signed
  return yield* Output.print({
    json: { ...answer, nonce, signer },
    table: Table.facts([["venue", "accepted"], ["signer", signer], ["nonce", String(nonce)]])
  })
})
