import { assert, describe, it } from "@effect/vitest"
import { messageAdvice } from "@trigate/domain/tokens/TokenOperations"
import type { Reaction } from "@trigate/testing/FaultyUpstream"
import { faultyUpstream } from "@trigate/testing/FaultyUpstream"
import { post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import type { LeftOpen } from "@trigate/testing/Reactions"
import { leftOpen, say } from "@trigate/testing/Reactions"
import { refusingUrl } from "@trigate/testing/RecordingUpstream"
import { sample } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import { askedOf, gatewayOver, isAsked, secretKey } from "./faultyGateway.ts"
import { assertFailure } from "./routes.ts"
import { deadline, endsAfter } from "./time.ts"

const address = "EQClb6WL4TgcNsmu7KdNii5mw330v-k_cl6jCKyPj9pWNfJz"
const boc = `{ "boc" : "te6cckEBAQEA" }`
const params: ReadonlyArray<readonly [method: string, params: string]> = [
  ["sendBoc", boc],
  ["sendBocReturnHash", `{"boc":"te6cckEBAQEA"}`],
  ["sendBocReturnHashNoError", `{"boc":"te6cckEBAQEA"}`],
  ["sendQuery", `{"address":"${address}","body":"te6cc","init_code":"","init_data":""}`],
  ["sendQuerySimple", `{"address":"${address}","body":{"data":{"b64":"AA==","len":8},"refs":[]},"init_data":""}`]
]
const call = (method: string, named: string, id = "7"): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${named}}`

const ok = { body: `{"ok":true,"result":{"@type":"ok"},"@extra":"1"}` }
const failed = (status: number, error: string): Reaction =>
  say({ status, body: JSON.stringify({ ok: false, error, code: status }) })

/** What leaves open whether the message was taken. */
const unknown: ReadonlyArray<LeftOpen> = [
  ...leftOpen(ok),
  ["is answered with neither result nor error", say({ body: "{}" }), false],
  ["is answered with a server's time-out", failed(504, "Liteserver timeout"), false],
  ["is answered with a fault of the server's", failed(500, "LITE_SERVER_NETWORK"), false],
  ["is answered with a fault under HTTP 200", say({ body: `{"ok":false,"error":"timeout","code":504}` }), false]
]

for (const path of ["/api/v2/jsonRPC", "/some-key/api/v2/jsonRPC"]) {
  describe(`${path}: a message`, () => {
    for (const [method, named] of sample(`messages to ${path}`, params, 2)) {
      it.effect(`is sent as it came, to the first address only: ${method}`, () =>
        Effect.gen(function*() {
          const first = yield* faultyUpstream(say(ok))
          const second = yield* faultyUpstream(say(ok))
          const { url } = yield* gatewayOver({ tokens: [first, second] })
          const answer = yield* post(`${url}${path}`, call(method, named))
          assert.strictEqual(answer.text, `{"ok":true,"result":{"@type":"ok"},"@extra":"1","jsonrpc":"2.0","id":7}`)
          assert.deepStrictEqual(askedOf(first, second), [1, 0])
          assert.strictEqual(first.requests[0]?.body, call(method, named, "1"))
          assert.strictEqual(first.requests[0]?.path, `/${secretKey}/api/v2/jsonRPC`)
        }))
    }

    for (const [what, react, takesDeadline] of sample(`unknown outcomes of ${path}`, unknown, 6)) {
      it.effect(`that ${what} is sent once, and its outcome is unknown`, () =>
        Effect.gen(function*() {
          const first = yield* faultyUpstream(react)
          const second = yield* faultyUpstream(say(ok))
          const { url } = yield* gatewayOver({ tokens: [first, second] })
          const sending = post(`${url}${path}`, call("sendBoc", boc))
          const value = yield* takesDeadline ? endsAfter(deadline, sending, isAsked(first)) : sending
          const error = assertFailure("token-rpc", value, "OutcomeUnknown")
          assert.strictEqual(JsonParts.at(error, "upstream"), "token-chain")
          assert.strictEqual(JsonParts.at(error, "advice"), messageAdvice)
          assert.deepStrictEqual(askedOf(first, second), [1, 0])
        }))
    }

    for (
      const [status, words] of [
        [500, "LITE_SERVER_UNKNOWN: cannot apply external message to current state"],
        [422, "failed to parse boc"],
        [429, "Ratelimit exceed"]
      ] as const
    ) {
      it.effect(`that is refused is sent once, and refused in the server's words: ${words}`, () =>
        Effect.gen(function*() {
          const first = yield* faultyUpstream(failed(status, `${words} /${secretKey}`))
          const second = yield* faultyUpstream(say(ok))
          const { url } = yield* gatewayOver({ tokens: [first, second] })
          const answer = yield* post(`${url}${path}`, call("sendBoc", boc))
          assert.strictEqual(answer.status, 200)
          assert.deepStrictEqual(answer.json, {
            ok: false,
            error: `${words} /…`,
            code: status,
            jsonrpc: "2.0",
            id: 7
          })
          assert.deepStrictEqual(askedOf(first, second), [1, 0])
        }))
    }

    it.effect("that certainly was not sent goes to the next address", () =>
      Effect.gen(function*() {
        const second = yield* faultyUpstream(say(ok))
        const { url } = yield* gatewayOver({ tokens: [yield* refusingUrl, second] })
        const answer = yield* post(`${url}${path}`, call("sendBoc", boc))
        assert.strictEqual(JsonParts.value(answer.text, "ok"), true)
        assert.deepStrictEqual(askedOf(second), [1])
      }))

    it.effect("that no address takes was not sent", () =>
      Effect.gen(function*() {
        const { url } = yield* gatewayOver({ tokens: [yield* refusingUrl, yield* refusingUrl] })
        const answer = yield* post(`${url}${path}`, call("sendBoc", boc))
        assert.strictEqual(JsonParts.at(assertFailure("token-rpc", answer, "UpstreamUnavailable"), "attempts"), 2)
      }))

    it.effect("of a wrong shape is refused, and nothing is sent", () =>
      Effect.gen(function*() {
        const first = yield* faultyUpstream(say(ok))
        const { url } = yield* gatewayOver({ tokens: [first] })
        const wrong: ReadonlyArray<readonly [method: string, params: string, tag: string]> = [
          ["sendBoc", `["te6"]`, "InvalidRequest"],
          ["sendBoc", "[]", "InvalidRequest"],
          ["sendBoc", `{"boc":""}`, "InvalidRequest"],
          ["sendBoc", `{"boc":"te6","boc":"te7"}`, "InvalidRequest"],
          ["sendBocReturnHash", `{"boc":"te6","more":1}`, "InvalidRequest"],
          ["sendQuery", `{"address":"EQ","body":"te6"}`, "InvalidAddress"]
        ]
        for (const [method, named, tag] of wrong) {
          const answer = yield* post(`${url}${path}`, call(method, named))
          assert.strictEqual(JsonParts.value(answer.text, "data", "_tag"), tag, named)
        }
        assert.deepStrictEqual(askedOf(first), [0])
      }))
  })
}
