import { assert, describe, it } from "@effect/vitest"
import { faultyUpstream } from "@trigate/testing/FaultyUpstream"
import type { ReceivedRequest } from "@trigate/testing/FaultyUpstream"
import * as JsonParts from "@trigate/testing/JsonParts"
import type { Said } from "@trigate/testing/Reactions"
import { say } from "@trigate/testing/Reactions"
import { samplePairs } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import { assertNextAnswers } from "./failover.ts"
import { askedOf, gatewayOver, secretKey } from "./faultyGateway.ts"
import { assertFailure, reads } from "./routes.ts"

const utf8 = new TextEncoder()

const goodBytes = (good: Said, asked: ReceivedRequest): Uint8Array => {
  const body = typeof good.body === "function" ? good.body(asked) : good.body
  return typeof body === "string" ? utf8.encode(body) : body
}

const around = (before: Uint8Array | string, after: Uint8Array | string) => (good: Said): Said => ({
  body: (asked) => Buffer.concat([Buffer.from(before), goodBytes(good, asked), Buffer.from(after)])
})

const html: ReadonlyArray<readonly [string, string]> = [["content-type", "text/html; charset=utf-8"]]
const page = `<!doctype html><html><body>${"no such path /" + secretKey} ${"x".repeat(2_000)}</body></html>`

const bodies: ReadonlyArray<readonly [what: string, of: (good: Said) => Said]> = [
  ["HTML", () => ({ headers: html, body: page })],
  ["HTML that says it is JSON", () => ({ body: page })],
  ["nothing at all", () => ({ body: "" })],
  ["nothing but blanks", () => ({ body: " \r\n\t" })],
  ["plain words", () => ({ headers: [["content-type", "text/plain"]], body: "upstream connect error" })],
  ["JSON that is cut", (good) => ({ body: (asked) => goodBytes(good, asked).slice(0, -1) })],
  ["JSON with more behind it", around("", "}")],
  ["two JSON texts", around("", "{}")],
  ["JSON behind a byte order mark", around(Uint8Array.of(0xef, 0xbb, 0xbf), "")],
  ["JSON behind a prefix against inclusion", around(")]}',\n", "")],
  ["bytes that are no UTF-8", () => ({ body: Uint8Array.of(0x22, 0xff, 0xfe, 0x22) })],
  [
    "JSON in UTF-16",
    (good) => ({ body: (asked) => Buffer.from(Buffer.from(goodBytes(good, asked)).toString(), "utf16le") })
  ]
]

const bodiesOn = samplePairs("malformed bodies", reads, bodies)

for (const route of reads) {
  describe(`${route.name}: an answer that is`, () => {
    for (const [what, of] of bodiesOn(route)) {
      it.effect(`${what} sends a read to the next address, one request to each`, () =>
        Effect.gen(function*() {
          const first = yield* faultyUpstream(say(of(route.good)))
          yield* assertNextAnswers(route, first, 1)
        }))

      it.effect(`${what} is a typed error from a single address, after one request`, () =>
        Effect.gen(function*() {
          const only = yield* faultyUpstream(say(of(route.good)))
          const { url } = yield* gatewayOver({ [route.kind]: [only] })
          const value = yield* route.ask(url)
          const error = assertFailure(route.protocol, value, "UpstreamMalformed")
          assert.strictEqual(JsonParts.at(error, "upstream"), route.label)
          assert.isBelow(value.text.length, 1_200)
          assert.notInclude(value.text, secretKey)
          assert.deepStrictEqual(askedOf(only), [1])
        }))
    }
  })
}
