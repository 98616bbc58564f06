/** A sandbox behind a guard: traders sign actions, and the exchange sends or refuses them. */
import * as Policy from "@trigate/domain/actions/Policy"
import * as Encoding from "@trigate/domain/encoding/Encoding"
import { unwrapReason } from "@trigate/domain/errors/GatewayError"
import * as Sandbox from "@trigate/sandbox/Sandbox"
import { keys, type TestKey } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import { SandboxState } from "@trigate/sandbox/SandboxState"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as ActionLogMemory from "@trigate/trading/actionLog/ActionLogMemory"
import * as Admission from "@trigate/trading/admission/Admission"
import { Exchange } from "@trigate/trading/Exchange"
import { Guard } from "@trigate/trading/guard/Guard"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as TestClock from "effect/testing/TestClock"

/** Wednesday, 2026-10-14 17:46:40 UTC. */
export const start = 1_792_000_000_000

export const { agent, multiSigUser, stranger, trader } = keys

let nonces = 0

/** Signs an action under the next nonce. */
export const sign = Effect.fnUntraced(function*(
  key: TestKey,
  action: SandboxSigner.Unsigned["action"],
  envelope: Partial<SandboxSigner.Unsigned> = {}
) {
  const nonce = envelope.nonce ?? (yield* Clock.currentTimeMillis) + nonces++ % 1000
  return yield* SandboxSigner.signAction(key, { ...envelope, nonce, action })
})

/** Sends a signed body. Returns the text of the venue's response, or the reason for which there is none. */
export const send = Effect.fnUntraced(function*(signed: object) {
  const { relay } = yield* Exchange
  const sent = yield* Effect.result(relay({ body: Encoding.encode(Encoding.stringify(signed)), surface: "gateway" }))
  return Result.isSuccess(sent) ? sent.success.response.text : unwrapReason(sent.failure)
})

export const act = (
  key: TestKey,
  action: SandboxSigner.Unsigned["action"],
  envelope?: Partial<SandboxSigner.Unsigned>
) => Effect.flatMap(sign(key, action, envelope), send)

/** One order as the wire has it. */
export const orderOf = (
  a: number,
  side: "buy" | "sell",
  s: string,
  p: string,
  { c, r = false, tif = "Gtc", t = { limit: { tif } } }: {
    readonly tif?: string
    readonly r?: boolean
    readonly t?: object
    readonly c?: string
  } = {}
) => ({ a, b: side === "buy", p, s, r, t, ...(c === undefined ? {} : { c }) })

export const orders = (...orders: ReadonlyArray<object>) => ({ type: "order", orders, grouping: "na" })

/** A sandbox with a fixed seed, an admission and an action log, behind a guard without policies. */
export const sandbox = Sandbox.layerNoDeps({ seed: "guard" }).pipe(
  Layer.provideMerge(Admission.layer()),
  Layer.provideMerge(Layer.merge(VenueProfile.layer("mainnet"), ActionLogMemory.layer()))
)

/** Puts a document of policies into force. */
export const govern = Effect.fnUntraced(function*(document: unknown) {
  const { replace } = yield* Guard
  yield* replace(yield* Policy.decode(document))
})

/** Fixes the prices of BTC and ETH at 60 000 and 3 000, and the clock at {@link start}. */
export const fixPrices = Effect.gen(function*() {
  yield* TestClock.setTime(start)
  const { trading } = yield* SandboxState
  yield* trading.playPrices("BTC", [{ time: 0, price: 60_000 }])
  yield* trading.playPrices("ETH", [{ time: 0, price: 3000 }])
})

/** Returns what the guard would say to an action: its refusal; `undefined` if the action passes. */
export const judge = Effect.fnUntraced(function*(signed: object) {
  const { admit } = yield* Admission.Admission
  const { check } = yield* Guard
  const admitted = yield* admit(Encoding.encode(Encoding.stringify(signed)))
  const judged = yield* Effect.result(check(admitted))
  return Result.isFailure(judged) ? judged.failure : undefined
})
