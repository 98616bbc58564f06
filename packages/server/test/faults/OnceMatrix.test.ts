import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { assert, describe, it } from "@effect/vitest"
import type { FaultyUpstream, Reaction } from "@trigate/testing/FaultyUpstream"
import { faultyUpstream } from "@trigate/testing/FaultyUpstream"
import { post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import { drip, hangUp, reset, say, sayHalf, sayHead, silence, write } from "@trigate/testing/Reactions"
import { refusingUrl } from "@trigate/testing/RecordingUpstream"
import { samplePairs } from "@trigate/testing/Sample"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import { bigBlocks, bodyOf } from "../bodies.ts"
import { embeddedExchange } from "./embedded.ts"
import { askedOf, gatewayOver, isAsked } from "./faultyGateway.ts"
import { assertFailure } from "./routes.ts"
import { deadline, endsAfter } from "./time.ts"

type Addresses = ReadonlyArray<FaultyUpstream | string>

/** Every way out, and whether it can tell that nothing was sent. */
const wires = [
  { name: "undici", start: (api: Addresses) => gatewayOver({ api }), knowsUnsent: true },
  { name: "fetch", start: (api: Addresses) => embeddedExchange(FetchHttpClient.layer, api), knowsUnsent: false },
  {
    name: "Node's own client",
    start: (api: Addresses) => embeddedExchange(NodeHttpClient.layerNodeHttp, api),
    knowsUnsent: false
  }
]

const ok = { body: `{"status":"ok","response":{"type":"default"}}` }
const html: ReadonlyArray<readonly [string, string]> = [["content-type", "text/html"]]

/** Faults after the whole request came; the last two columns: whether it takes the whole deadline. */
const afterRequest: ReadonlyArray<readonly [what: string, react: Reaction, takesDeadline: boolean]> = [
  ["is never answered", silence, true],
  ["is answered with a head and then silence", sayHead(ok, silence), true],
  ["is answered with half a body and then silence", sayHalf(ok, silence), true],
  ["is answered byte by byte", drip(ok), true],
  ["is answered with half a body and then a reset", sayHalf(ok, reset), false],
  ["is answered with half a body and then an end", sayHalf(ok, hangUp), false],
  ["is answered with a head and then a reset", sayHead(ok, reset), false],
  ["is reset", reset, false],
  ["is ended", hangUp, false],
  ["is answered with HTML", say({ headers: html, body: "<html></html>" }), false],
  ["is answered with a 502 in HTML", say({ status: 502, headers: html, body: "<html></html>" }), false],
  ["is answered with an empty 503", say({ status: 503, body: "" }), false],
  ["is answered with an empty 200", say({ body: "" }), false],
  ["is answered with JSON that is cut", say({ body: `{"status":` }), false],
  [
    "is answered with a chunk that is junk",
    write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"),
    false
  ],
  ["is answered in another protocol", write("SSH-2.0-OpenSSH_9.9\r\n"), false],
  ["is answered with 204", write("HTTP/1.1 204 No Content\r\n\r\n"), false],
  ["is answered with a status that HTTP does not know", say({ ...ok, status: 999 }), false],
  ["is answered with the first status that HTTP does not know", say({ status: 600, body: "no" }), false]
]

/** Answers of the venue itself. */
const refusals = [
  ["a reached rate limit", 429, `"slow down"`],
  ["a refusal in HTML", 403, "<html></html>"],
  ["a refused shape", 422, "Failed to deserialize"],
  ["a fault of its own", 500, `{"error":"internal"}`]
] as const

const act = Effect.fnUntraced(function*(url: string) {
  const nonce = yield* Clock.currentTimeMillis
  const body = bodyOf(nonce, bigBlocks)
  return { nonce, body, value: yield* post(`${url}/exchange`, body) }
})

const assertUnknown = (answer: Parameters<typeof assertFailure>[1], nonce: number): void => {
  const error = assertFailure("http", answer, "OutcomeUnknown")
  assert.strictEqual(JsonParts.at(error, "upstream"), "trading-api")
  assert.strictEqual(JsonParts.at(error, "nonce"), nonce)
  assert.match(String(JsonParts.at(error, "signer")), /^0x[0-9a-f]{40}$/u)
  assert.match(String(JsonParts.at(error, "advice")), /^Resend the identical bytes/u)
}

const refusalsOver = samplePairs("refusals of an action", wires, refusals)
const afterRequestOver = samplePairs("faults after an action came", wires, afterRequest)

for (const wire of wires) {
  describe(`an action over ${wire.name}`, () => {
    for (const [what, react, takesDeadline] of afterRequestOver(wire)) {
      it.effect(`that ${what} is sent once, and its outcome is unknown`, () =>
        Effect.gen(function*() {
          const first = yield* faultyUpstream(react)
          const second = yield* faultyUpstream(say(ok))
          const { url } = yield* wire.start([first, second])
          const { body, nonce, value } = yield* takesDeadline
            ? endsAfter(deadline, act(url), isAsked(first))
            : act(url)
          assertUnknown(value, nonce)
          assert.deepStrictEqual(askedOf(first, second), [1, 0])
          assert.strictEqual(first.requests[0]?.body, body)
          assert.strictEqual(first.bytes(), first.requests[0]?.bytes.length)
          assert.strictEqual(second.connections(), 0)
        }))
    }

    for (const [what, status, body] of refusalsOver(wire)) {
      it.effect(`that is answered with ${what} is sent once, and gets that answer`, () =>
        Effect.gen(function*() {
          const first = yield* faultyUpstream(say({ status, headers: [["retry-after", "0"]], body }))
          const second = yield* faultyUpstream(say(ok))
          const { url } = yield* wire.start([first, second])
          const { value } = yield* act(url)
          assert.strictEqual(value.status, status)
          assert.strictEqual(value.text, body)
          assert.deepStrictEqual(askedOf(first, second), [1, 0])
        }))
    }

    it.effect("whose connection is reset at its first bytes is not sent again, and its outcome is unknown", () =>
      Effect.gen(function*() {
        const first = yield* faultyUpstream(say(ok))
        first.accept = (socket) => void socket.once("data", () => socket.resetAndDestroy())
        const second = yield* faultyUpstream(say(ok))
        const { url } = yield* wire.start([first, second])
        const { nonce, value } = yield* act(url)
        assertUnknown(value, nonce)
        assert.strictEqual(first.connections(), 1)
        assert.deepStrictEqual(askedOf(second), [0])
      }))

    it.effect("whose connection is reset before its first bytes is sent at most once, and said to be", () =>
      Effect.gen(function*() {
        const first = yield* faultyUpstream(say(ok))
        first.accept = (socket) => socket.resetAndDestroy()
        const second = yield* faultyUpstream(say(ok))
        const { url } = yield* wire.start([first, second])
        const { nonce, value } = yield* act(url)
        assert.strictEqual(first.connections(), 1)
        assert.deepStrictEqual(askedOf(first), [0])
        // whether the reset overtook the request is for the kernel to say: both are true, a mixture is not
        if (second.requests.length === 0) assertUnknown(value, nonce)
        else assert.strictEqual(value.text, ok.body)
        assert.isAtMost(second.requests.length, 1)
      }))

    it.effect("whose connection is refused goes to the next address only if it certainly was not sent", () =>
      Effect.gen(function*() {
        const second = yield* faultyUpstream(say(ok))
        const { url } = yield* wire.start([yield* refusingUrl, second])
        const { nonce, value } = yield* act(url)
        if (wire.knowsUnsent) assert.strictEqual(value.text, ok.body)
        else assertUnknown(value, nonce)
        assert.deepStrictEqual(askedOf(second), [wire.knowsUnsent ? 1 : 0])
      }))

    it.effect("whose every connection is refused was not sent, as far as its way out can tell", () =>
      Effect.gen(function*() {
        const { url } = yield* wire.start([yield* refusingUrl, yield* refusingUrl])
        const { nonce, value } = yield* act(url)
        if (!wire.knowsUnsent) return assertUnknown(value, nonce)
        const error = assertFailure("http", value, "UpstreamUnavailable")
        assert.strictEqual(JsonParts.at(error, "attempts"), 2)
      }))

    it.effect("that is known to have been sent is not sent again when the next address fails too", () =>
      Effect.gen(function*() {
        const first = yield* faultyUpstream(reset)
        const second = yield* faultyUpstream(reset)
        const { url } = yield* wire.start([yield* refusingUrl, first, second])
        const { nonce, value } = yield* act(url)
        assertUnknown(value, nonce)
        assert.deepStrictEqual(askedOf(first, second), [wire.knowsUnsent ? 1 : 0, 0])
      }))
  })
}
