import { assert, describe, it } from "@effect/vitest"
import { SignedAction } from "@trigate/domain/actions/Action"
import * as Json from "@trigate/domain/encoding/Encoding"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as SandboxSigner from "@trigate/sandbox/SandboxSigner"
import * as SigningWarning from "@trigate/signing/unstable/inspection/SigningMistake"
import { mainnet, testnet } from "@trigate/signing/VenueProfile"
import { makeClient } from "@trigate/testing/Client"
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
      const client = yield* makeClient(url)
      const seen = yield* client.exchange.inspect(action, trader.address)
      assert.deepInclude(seen.diagnosis, diagnosis)
      assert.match(seen.msgpack ?? "", /^0x82a4/u)
      assert.strictEqual((yield* client.exchange.inspect(action)).diagnosis.verdict, "unchecked")
    }))

  it.live("compares prices and sizes with the steps of their assets, and says what fits", () =>
    Effect.gen(function*() {
      const { url } = yield* gateway({})
      const nonce = yield* Clock.currentTimeMillis
      const order = (a: number, p: string, s: string) => ({
        a,
        b: true,
        p,
        s,
        r: false,
        t: { limit: { tif: "Gtc" as const } }
      })
      // there is no asset 9999
      const orders = [
        order(0, "650.55", "0.000001"),
        order(0, "65000", "0.00001"),
        order(9999, "1.23456", "0.123456789")
      ]
      const action = yield* SandboxSigner.signAction(trader, {
        nonce,
        action: { type: "order", orders, grouping: "na" }
      })
      const { json } = yield* post(`${url}/exchange/inspect`, Json.stringify(action))
      assert.deepNestedInclude(json, {
        warnings: [
          "action.orders.0.p: 650.55 is too precise for the price of BTC (szDecimals 5): send 650.5",
          "action.orders.0.s: 0.000001 is too precise for the size of BTC (szDecimals 5): send 0"
        ]
      })
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
