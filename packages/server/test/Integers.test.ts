import { assert, describe, it } from "@effect/vitest"
import type { SignedAction } from "@trigate/domain/actions/Action"
import { makeClient } from "@trigate/testing/Client"
import { post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { bodyOf, delegate, multiSigBody, validator } from "./bodies.ts"
import { sharedGateways } from "./sharedGateway.ts"

const shared = sharedGateways()

const ok = () => ({ body: `{"status":"ok","response":{"type":"default"}}` })
const wholes = [
  0n,
  1n,
  2n ** 53n - 1n,
  2n ** 53n,
  2n ** 53n + 1n,
  2n ** 63n,
  2n ** 64n - 1n
]

describe("wei", () => {
  for (const wei of wholes) {
    it.live(`${wei} arrives digit for digit from raw HTTP, spelled by the documents or by the wire`, () =>
      Effect.gen(function*() {
        const live = yield* shared({ api: ok })
        const now = yield* Clock.currentTimeMillis
        const spelled = `"hyperliquidChain":"Mainnet"`
        const nonces = [now, now + 1]
        for (const [index, chain] of [spelled, `"venueChain":"Mainnet"`].entries()) {
          const nonce = nonces[index] ?? 0
          yield* post(`${live.url}/exchange`, bodyOf(nonce, delegate(nonce, String(wei), chain)))
        }
        assert.deepStrictEqual(
          live.api.seen.map(({ body }) => body),
          nonces.map((nonce) => bodyOf(nonce, delegate(nonce, String(wei), spelled)))
        )
      }))

    it.live(`${wei} arrives digit for digit from the typed client`, () =>
      Effect.gen(function*() {
        const live = yield* shared({ api: ok })
        const client = yield* makeClient(live.url)
        const nonce = yield* Clock.currentTimeMillis
        const signed: SignedAction = {
          action: {
            type: "tokenDelegate",
            signatureChainId: "0x66eee",
            venueChain: "Mainnet",
            validator,
            wei,
            isUndelegate: false,
            nonce
          },
          nonce,
          signature: { r: "0x1", s: "0x2", v: 27 }
        }
        const accepted = yield* client.exchange.submit(signed)
        assert.strictEqual(accepted.status, "ok")
        assert.deepStrictEqual(live.seen(), ["api POST /exchange"])
        const body = live.api.seen[0]?.body ?? ""
        assert.strictEqual(JsonParts.raw(body, ["action", "wei"]), String(wei))
        assert.strictEqual(JsonParts.raw(body, ["action", "nonce"]), String(nonce))
        assert.strictEqual(JsonParts.raw(body, ["nonce"]), String(nonce))
        assert.strictEqual(JsonParts.raw(body, ["signature", "v"]), "27")
        assert.strictEqual(JsonParts.raw(body, ["action", "hyperliquidChain"]), `"Mainnet"`)
      }))
  }

  for (const wei of ["18446744073709551616", "-1", "1.5", `"1"`]) {
    it.live(`${wei} is refused: it is no integer of 64 bits`, () =>
      Effect.gen(function*() {
        const live = yield* shared({ api: ok })
        const now = yield* Clock.currentTimeMillis
        const answer = yield* post(`${live.url}/exchange`, bodyOf(now, delegate(now, wei)))
        assert.strictEqual(answer.status, 400)
        assert.deepStrictEqual(JsonParts.value(answer.text, "errors", 0, "path"), ["action", "wei"])
        assert.deepStrictEqual(live.seen(), [])
      }))
  }
})

describe("any integer of a body", () => {
  const big = [
    "9007199254740993",
    "-9007199254740993",
    "18446744073709551615",
    "340282366920938463463374607431768211457"
  ]

  it.live("arrives digit for digit, in members that nobody documents and inside a wrapped action", () =>
    Effect.gen(function*() {
      const live = yield* shared({ api: ok })
      const now = yield* Clock.currentTimeMillis
      const members = big.map((digits, index) => `"m${index}":${digits}`).join(",")
      // what is signed has integers of 64 bits: the venue has no larger ones
      const signed = big.slice(0, 3)
      const bodies = [
        bodyOf(now, `{"type":"evmUserModify","usingBigBlocks":true,${members}}`),
        multiSigBody(now, `{"type":"order","orders":[{"a":${big[0]},"o":[${signed.join(",")}]}]}`),
        bodyOf(
          now,
          `{"type":"CSignerAction","unjailSelf":null,"extra":[${big.join()}]}`,
          `,"expiresAfter":${now + 60_000}`
        )
      ]
      for (const body of bodies) {
        const answer = yield* post(`${live.url}/exchange`, body)
        assert.strictEqual(answer.status, 200, answer.text)
      }
      assert.deepStrictEqual(live.api.seen.map(({ body }) => body), bodies)
    }))

  it.live("arrives digit for digit in the params of the token chain, from raw HTTP", () =>
    Effect.gen(function*() {
      const live = yield* shared({ tokens: () => ({ body: `{"ok":true,"result":[]}` }) })
      const params = `{"workchain":-1,"shard":-9223372036854775808,"seqno":9007199254740991}`
      yield* post(`${live.url}/api/v2/jsonRPC`, `{"jsonrpc":"2.0","id":1,"method":"getBlockHeader","params":${params}}`)
      assert.deepStrictEqual(live.tokens.seen.map(({ body }) => JsonParts.raw(body, ["params"])), [params])
    }))

  it.live("arrives digit for digit in a storage slot of 256 bits, from the typed client", () =>
    Effect.gen(function*() {
      const slot = `0x${"f".repeat(64)}` as const
      const live = yield* shared({
        node: ({ body }) => ({ body: `{"jsonrpc":"2.0","id":${JsonParts.raw(body, ["id"])},"result":"${slot}"}` })
      })
      const client = yield* makeClient(live.url)
      const word = yield* client.evm.getStorageAt({ address: validator, slot })
      assert.strictEqual(word, slot)
      assert.deepStrictEqual(live.node.seen.map(({ body }) => JsonParts.value(body, "params")), [[
        validator,
        slot,
        "latest"
      ]])
    }))
})
