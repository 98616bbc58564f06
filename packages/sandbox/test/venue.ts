/** A venue that tests talk to: signed actions in, the venue's words out. */

import * as Encoding from "@trigate/domain/encoding/Encoding"
import type { TestKey } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import * as SandboxState from "@trigate/sandbox/SandboxState"
import * as EvmNode from "@trigate/sandbox/unstable/evm/EvmNode"
import * as VenueEvm from "@trigate/sandbox/unstable/evm/VenueEvm"
import * as VenueExchange from "@trigate/sandbox/unstable/venue/VenueExchange"
import * as VenueProfile from "@trigate/signing/VenueProfile"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"

/** 2026-10-14T13:46:40Z */
export const start = 1_792_000_000_000

const decodeAnswer = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Union([
  Schema.Struct({
    status: Schema.Literal("ok"),
    response: Schema.Struct({ type: Schema.String, data: Schema.optionalKey(Schema.Unknown) })
  }),
  Schema.Struct({ status: Schema.Literal("err"), response: Schema.String })
])))

/** What the venue answers to a body: the word "ok" or the data of a batch, its refusal, or the HTTP status with the text. */
export const post = Effect.fnUntraced(function*(body: string) {
  const state = yield* SandboxState.SandboxState
  const answer = yield* VenueExchange.submit(VenueProfile.mainnet, state, Encoding.encode(body))
  const text = answer.text
  if (answer.status !== 200) return `${answer.status} ${text}`
  const { response, status } = decodeAnswer(text)
  return typeof response === "string" ? `${status}: ${response}` : status
})

export const submit = (signed: object) => post(Encoding.stringify(signed))

/** Signs an action at the clock's time, or under another nonce, and submits it. */
export const act = Effect.fnUntraced(function*(
  key: TestKey,
  action: SandboxSigner.Unsigned["action"],
  envelope: Partial<SandboxSigner.Unsigned> = {}
) {
  const nonce = yield* Clock.currentTimeMillis
  return yield* submit(yield* SandboxSigner.signAction(key, { nonce, ...envelope, action }))
})

export const bigBlocks = (usingBigBlocks: boolean) => ({ type: "evmUserModify", usingBigBlocks }) as const

export const delegate = (validator: `0x${string}`, wei: bigint, nonce: number, isUndelegate = false) => ({
  type: "tokenDelegate",
  signatureChainId: "0x66eee",
  hyperliquidChain: "Mainnet",
  validator,
  wei,
  isUndelegate,
  nonce
} as const)

/** Runs a test against a fresh venue whose clock stands at `start`. */
export const atStart = <A, E, R>(effect: Effect.Effect<A, E, R>, seed?: string) =>
  TestClock.setTime(start).pipe(
    Effect.andThen(Effect.provide(effect, SandboxState.layer({ seed })))
  )

/** What HyperEVM answers while the clock stands at `start`. */
export const askEvm = Effect.fnUntraced(function*(name: string, params: string) {
  const { evm, info, seed, trading, venue } = yield* SandboxState.SandboxState
  const listed = yield* Ref.get(info.state)
  const view = {
    seed,
    profile: VenueProfile.mainnet,
    evm: yield* Ref.get(evm.state),
    venue: yield* Ref.get(venue.state),
    trading: () => trading.at(listed, start),
    now: start
  }
  return yield* VenueEvm.answer(view, yield* EvmNode.makeMachine(999), name, params)
})
