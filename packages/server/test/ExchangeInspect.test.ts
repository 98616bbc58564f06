import { assert, describe, it } from "@effect/vitest"
import { SignedAction } from "@trigate/domain/actions/SignedAction"
import * as Json from "@trigate/domain/encoding/Json"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import * as SigningWarning from "@trigate/signing/inspection/SigningWarning"
import { mainnet, testnet } from "@trigate/signing/VenueProfile"
import { clientOf } from "@trigate/testing/Client"
import { gateway, post } from "@trigate/testing/Gateway"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const { trader } = keys

/** An action that is signed for the test network and shown to a gateway of the main one. */
const signed = Effect.gen(function*() {
  const nonce = yield* Clock.currentTimeMillis
  return yield* SandboxSigner.signAction(
    trader,
    { nonce, action: { type: "evmUserModify", usingBigBlocks: true } },
    testnet
  )
})

const textOf = (action: SignedAction) => Effect.map(Schema.encodeEffect(SignedAction)(action), Json.stringify)

const header = "x-trigate-expected-signer"

describe("POST /exchange/inspect", () => {
  it.live("names the mistake that makes another signer appear, asked in a header, in the query or by the client", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const action = yield* signed
      const body = yield* textOf(action)
      const diagnosis = {
        expectedSigner: trader.address,
        verdict: "explained" as const,
        mistakes: [{ mistake: "otherNetwork" as const, path: [], found: "testnet", expected: "mainnet" }],
        detail: `The signature is by ${trader.address}, but it is ${SigningWarning.ofNetwork(mainnet)}`
      }
      const inHeader = yield* post(`${url}/exchange/inspect`, body, { [header]: trader.address })
      assert.strictEqual(inHeader.status, 200)
      assert.deepNestedInclude(inHeader.json, diagnosisOf(diagnosis))
      const inQuery = yield* post(
        `${url}/exchange/inspect?${header}=${trader.address.toUpperCase().replace("X", "x")}`,
        body
      )
      assert.deepNestedInclude(inQuery.json, diagnosisOf(diagnosis))
      const client = yield* clientOf(url)
      const seen = yield* client.exchange.inspect(action, trader.address)
      assert.deepInclude(seen.diagnosis, diagnosis)
      assert.match(seen.msgpack ?? "", /^0x82a4/u)
      assert.strictEqual((yield* client.exchange.inspect(action)).diagnosis.verdict, "unchecked")
    }))

  it.live("refuses an expected signer that is no address", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const body = yield* Effect.flatMap(signed, textOf)
      for (
        const answer of [
          yield* post(`${url}/exchange/inspect`, body, { [header]: "0x12" }),
          yield* post(`${url}/exchange/inspect?${header}=me`, body)
        ]
      ) {
        assert.strictEqual(answer.status, 400)
        assert.deepNestedInclude(answer.json, { "errors[0].path[0]": header })
      }
    }))
})

const diagnosisOf = (diagnosis: { readonly [field: string]: unknown }) =>
  Object.fromEntries(Object.entries(diagnosis).map(([field, value]) => [`diagnosis.${field}`, value]))
