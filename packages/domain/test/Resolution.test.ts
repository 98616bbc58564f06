import { assert, describe, it } from "@effect/vitest"
import { readOutcome, resendAdvice } from "@trigate/domain/actions/Action"
import { ActionRejected } from "@trigate/domain/actions/ActionOutcome"
import * as Resolution from "@trigate/domain/actions/Resolution"
import type { Address } from "@trigate/domain/encoding/Encoding"
import {
  ChainNotConfigured,
  NonceAlreadyUsed,
  NonceOutOfWindow,
  OutcomeUnknown,
  SignerNotAllowed,
  Unauthorized,
  UpstreamRateLimited,
  UpstreamUnavailable
} from "@trigate/domain/errors/GatewayError"
import * as UpstreamResponse from "@trigate/domain/operations/Operation"
import * as Effect from "effect/Effect"

const venue = (body: string, status = 200) => UpstreamResponse.json("trading-api", status, body)

const refused = (text: string) => venue(JSON.stringify({ status: "err", response: text }))

/** What a second sending of the identical bytes is answered, and what follows for the first. */
const answers: ReadonlyArray<readonly [answer: UpstreamResponse.UpstreamResponse, word: string]> = [
  [refused("Invalid nonce: duplicate nonce 1795230000000"), "Landed"],
  [refused("L1 error: Invalid nonce: duplicate nonce 1"), "Landed"],
  [venue(`{"status":"ok","response":{"type":"default"}}`), "Accepted"],
  [venue("Failed to deserialize the JSON body into the target type", 422), "Rejected"],
  [refused("Mainnet and testnet require different signature."), "Rejected"],
  [refused("Nonce mismatch."), "Rejected"],
  [refused("Invalid nonce: nonce too high 2 > 1"), "Rejected"],
  [
    venue(`{"status":"ok","response":{"type":"order","data":{"statuses":[{"error":"Insufficient margin"}]}}}`),
    "Accepted"
  ],
  [refused("Invalid nonce: nonce too low 1 < 2"), "StillUnknown"],
  [refused("Action already expired"), "StillUnknown"],
  [refused("User or API Wallet 0x17281460228691b044e080a5f5257dce8e47f79c does not exist."), "StillUnknown"],
  [refused("Insufficient stake"), "StillUnknown"],
  [refused("Too many cumulative requests sent (2 > 1)"), "StillUnknown"],
  [refused("Multi-sig threshold not met"), "StillUnknown"],
  [refused("Something that nobody has seen before"), "StillUnknown"]
]

const unresolved = { upstream: "trading-api", nonce: 7 }

describe("the answer to identical bytes", () => {
  for (const [answer, word] of answers) {
    it.effect(`${word}: ${answer.excerpt(70)}`, () =>
      Effect.gen(function*() {
        const tag = yield* Effect.match(Resolution.ofOutcome(readOutcome(answer), unresolved), {
          onSuccess: ({ _tag }): string => _tag,
          onFailure: ({ _tag, reason }): string => reason._tag === "ActionRejected" ? _tag : reason._tag
        })
        assert.strictEqual(tag, word)
      }))
  }
})

it.effect("accepted just now, with the entries that `submit` returns", () =>
  Effect.gen(function*() {
    const answer = venue(`{"status":"ok","response":{"type":"order","data":{"statuses":[{"resting":{"oid":7}}]}}}`)
    const resolution = yield* Resolution.ofOutcome(readOutcome(answer), unresolved)
    assert.deepStrictEqual(resolution, { _tag: "Accepted", result: yield* readOutcome(answer) })
  }))

const signer = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
const other = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"
const look = "Query the account at the venue to find out whether the action took effect"
const window = { now: 9, earliest: 8, latest: 10 }

/** What a second sending ended in, and what the error says of whom, of which nonce, and of what to do. */
const reasons: ReadonlyArray<
  readonly [Resolution.StillUnknown["reason"], { upstream?: string; nonce?: number; signer?: Address; advice: string }]
> = [
  [new UpstreamUnavailable({ upstream: "trading-api", attempts: 1, detail: "refused" }), { advice: resendAdvice }],
  [new UpstreamUnavailable({ upstream: "action-log", attempts: 0 }), { upstream: "action-log", advice: resendAdvice }],
  [new UpstreamRateLimited({ upstream: "trading-api", retryAfter: 3 }), { advice: resendAdvice }],
  [new ChainNotConfigured({ chain: "trading" }), { advice: resendAdvice }],
  [new SignerNotAllowed({ signer }), { signer, advice: resendAdvice }],
  [new Unauthorized({}), { advice: resendAdvice }],
  [new NonceOutOfWindow({ nonce: 5, ...window }), { nonce: 5, advice: look }],
  [new NonceAlreadyUsed({ nonce: 5, signer }), { nonce: 5, signer, advice: look }],
  [new ActionRejected({ reason: "UnknownSigner", message: "no account", signer: other }), { advice: look }],
  [
    new OutcomeUnknown({ upstream: "gateway", nonce: 5, signer, advice: "Ask again" }),
    { upstream: "gateway", nonce: 5, signer, advice: "Ask again" }
  ]
]

describe("a second sending that fails", () => {
  it.effect.each(reasons)("leaves the first one unknown, and says why", ([reason, told]) =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(Resolution.ofOutcome(Effect.fail(reason), unresolved))
      assert.deepStrictEqual(
        error,
        new Resolution.StillUnknown({ ...unresolved, ...told, detail: reason.message, reason })
      )
      assert.strictEqual(error.reason, reason)
      assert.strictEqual(error.group, "outcome-unknown")
      assert.strictEqual(error.message, `Still unknown: ${reason.message}`)
    }))
})
