import { assert, describe, it } from "@effect/vitest"
import type { Resolution } from "@trigate/domain/protocol/ExchangeProtocol"
import { isDecided, readResolution } from "@trigate/domain/protocol/ExchangeProtocol"
import * as UpstreamResponse from "@trigate/domain/UpstreamResponse"
import * as Effect from "effect/Effect"

const venue = (body: string, status = 200) => UpstreamResponse.json("trading-api", status, body)

const refused = (text: string) => venue(JSON.stringify({ status: "err", response: text }))

const wordOf = (resolution: Resolution): string =>
  resolution._tag === "Rejected" ? `${resolution._tag} ${resolution.first}` : resolution._tag

/** What a second sending of the identical bytes is answered, and what follows for the first. */
const answers: ReadonlyArray<readonly [answer: UpstreamResponse.UpstreamResponse, word: string, decided: boolean]> = [
  [refused("Invalid nonce: duplicate nonce 1795230000000"), "Landed", true],
  [refused("L1 error: Invalid nonce: duplicate nonce 1"), "Landed", true],
  [venue(`{"status":"ok","response":{"type":"default"}}`), "Accepted", true],
  [venue("Failed to deserialize the JSON body into the target type", 422), "Rejected notTaken", true],
  [refused("Mainnet and testnet require different signature."), "Rejected notTaken", true],
  [refused("Nonce mismatch."), "Rejected notTaken", true],
  [refused("Invalid nonce: nonce too high 2 > 1"), "Rejected notTaken", true],
  [
    venue(`{"status":"ok","response":{"type":"order","data":{"statuses":[{"error":"Insufficient margin"}]}}}`),
    "Rejected notTaken",
    true
  ],
  [refused("Invalid nonce: nonce too low 1 < 2"), "Rejected unknown", false],
  [refused("Action already expired"), "Rejected unknown", false],
  [refused("User or API Wallet 0x17281460228691b044e080a5f5257dce8e47f79c does not exist."), "Rejected unknown", false],
  [refused("Insufficient stake"), "Rejected unknown", false],
  [refused("Too many cumulative requests sent (2 > 1)"), "Rejected unknown", false],
  [refused("Multi-sig threshold not met"), "Rejected unknown", false],
  [refused("Something that nobody has seen before"), "Rejected unknown", false]
]

describe("the answer to identical bytes", () => {
  for (const [answer, word, decided] of answers) {
    it.effect(`${word}: ${answer.excerpt(70)}`, () =>
      Effect.gen(function*() {
        const resolution = yield* readResolution(answer)
        assert.strictEqual(wordOf(resolution), word)
        assert.strictEqual(isDecided(resolution), decided)
      }))
  }

  it.effect("leaves it unknown where it says nothing, and tells what kept the bytes from the venue", () =>
    Effect.gen(function*() {
      const unknown = yield* Effect.flip(readResolution(venue("null", 500), { nonce: 7 }))
      assert.deepInclude(unknown, { _tag: "OutcomeUnknown", nonce: 7 })
      assert.strictEqual((yield* Effect.flip(readResolution(venue("null", 429))))._tag, "UpstreamRateLimited")
    }))
})
