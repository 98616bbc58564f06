import { assert, describe, it } from "@effect/vitest"
import type { Reaction, ReceivedRequest } from "@trigate/testing/FaultyUpstream"
import { faultyUpstream } from "@trigate/testing/FaultyUpstream"
import type { Said } from "@trigate/testing/Reactions"
import { hangUp, say, silence, write } from "@trigate/testing/Reactions"
import { samplePairs } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import { assertNextAnswers } from "./failover.ts"
import { askedOf, gatewayOver } from "./faultyGateway.ts"
import { assertGood, reads } from "./routes.ts"

const textOf = (good: Said, asked: ReceivedRequest): string => {
  const body = typeof good.body === "function" ? good.body(asked) : good.body
  return String(body)
}

const json = "content-type: application/json\r\n"

/** An answer made by hand of its status line, its headers and its body. */
const raw = (make: (body: string, size: number) => string, then: Reaction = silence) => (good: Said): Reaction =>
  write((asked) => {
    const body = textOf(good, asked)
    return make(body, body.length)
  }, then)

const plain = (body: string, size: number, more = ""): string =>
  `HTTP/1.1 200 OK\r\n${json}${more}content-length: ${size}\r\n\r\n${body}`

const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`
const chunked = (chunks: string, more = ""): string =>
  `HTTP/1.1 200 OK\r\n${json}${more}transfer-encoding: chunked\r\n\r\n${chunks}`

type Table = ReadonlyArray<readonly [what: string, react: (good: Said) => Reaction]>

const sound: Table = [
  ["102 Processing before it", raw((body, size) => `HTTP/1.1 102 Processing\r\n\r\n${plain(body, size)}`)],
  [
    "early hints before it",
    raw((body, size) => `HTTP/1.1 103 Early Hints\r\nlink: </x.css>; rel=preload\r\n\r\n${plain(body, size)}`)
  ],
  ["chunks and trailers", raw((body) => chunked(`${chunk(body)}0\r\nx-checksum: 1\r\nset-cookie: a=b\r\n\r\n`))],
  [
    "a chunk for each byte",
    raw((body) =>
      chunked(
        `${Array.from(body.slice(0, 200), chunk).join("")}${body.length > 200 ? chunk(body.slice(200)) : ""}0\r\n\r\n`
      )
    )
  ],
  ["chunk extensions", raw((body, size) => chunked(`${size.toString(16)};name=value\r\n${body}\r\n0\r\n\r\n`))],
  ["Connection: close", raw((body, size) => plain(body, size, "connection: close\r\n"), hangUp)],
  ["HTTP/1.0 and its length", raw((body, size) => plain(body, size).replace("HTTP/1.1", "HTTP/1.0"), hangUp)],
  ["HTTP/1.0 and its end", raw((body) => `HTTP/1.0 200 OK\r\n${json}\r\n${body}`, hangUp)],
  ["neither length nor chunks, and its end", raw((body) => `HTTP/1.1 200 OK\r\n${json}\r\n${body}`, hangUp)],
  ["no reason phrase", raw((body, size) => plain(body, size).replace(" OK", ""))],
  ["no content type", raw((body, size) => plain(body, size).replace(json, ""))]
]

const broken: Table = [
  // undici takes it for an answer that it did not ask for; a clean failure is as good as an answer
  ["100 Continue before it", raw((body, size) => `HTTP/1.1 100 Continue\r\n\r\n${plain(body, size)}`)],
  ["a chunk size that is no number", raw((body) => chunked(`zz\r\n${body}\r\n0\r\n\r\n`))],
  ["a chunk size beyond 2^64", raw((body) => chunked(`fffffffffffffffff\r\n${body}\r\n0\r\n\r\n`))],
  ["chunks without the last one", raw((body) => chunked(chunk(body)), hangUp)],
  [
    "a chunk that is shorter than it says",
    raw((body, size) => chunked(`${(size + 5).toString(16)}\r\n${body}`), hangUp)
  ],
  ["two lengths that differ", raw((body, size) => plain(body, size, `content-length: ${size - 1}\r\n`))],
  ["a length that is no number", raw((body) => `HTTP/1.1 200 OK\r\n${json}content-length: abc\r\n\r\n${body}`, hangUp)],
  ["a negative length", raw((body) => `HTTP/1.1 200 OK\r\n${json}content-length: -1\r\n\r\n${body}`, hangUp)],
  ["a length that cuts the body", raw((body, size) => plain(body, size - 1), hangUp)],
  ["a length that its end belies", raw((body, size) => plain(body, size + 10), hangUp)],
  ["a status line of another protocol", raw((body) => `SSH-2.0-OpenSSH_9.9\r\n${body}`)],
  ["a body without any head", raw((body) => body, hangUp)],
  ["HTTP/3.7", raw((body, size) => plain(body, size).replace("HTTP/1.1", "HTTP/3.7"))],
  ["a status that HTTP does not know", raw((body, size) => plain(body, size).replace("200", "999"))],
  ["a status below all others", raw((body, size) => plain(body, size).replace("200", "042"))],
  ["a status that is a word", raw((body, size) => plain(body, size).replace("200", "two"))],
  [
    "101 Switching Protocols",
    raw(() => "HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n")
  ],
  ["204 No Content", raw(() => "HTTP/1.1 204 No Content\r\n\r\n")],
  ["a header without a colon", raw((body, size) => plain(body, size, "no colon here\r\n"))],
  ["a header of 100 kB", raw((body, size) => plain(body, size, `x-long: ${"a".repeat(100_000)}\r\n`))],
  [
    "a thousand headers of 100 bytes",
    raw((body, size) => plain(body, size, `x-many: ${"a".repeat(90)}\r\n`.repeat(1_000)))
  ],
  ["NUL in a header", raw((body, size) => plain(body, size, "x-nul: a\0b\r\n"))]
]

const soundOn = samplePairs("sound framings", reads, sound)
const brokenOn = samplePairs("broken framings", reads, broken)

for (const route of reads) {
  describe(`${route.name}: an answer with`, () => {
    for (const [what, react] of soundOn(route)) {
      it.effect(`${what} is an answer, after one request`, () =>
        Effect.gen(function*() {
          const first = yield* faultyUpstream(react(route.good))
          const second = yield* faultyUpstream(say(route.good))
          const { url } = yield* gatewayOver({ [route.kind]: [first, second] })
          const answer = yield* route.ask(url)
          assertGood(route, answer)
          assert.isNull(answer.headers.get("x-checksum"))
          assert.deepStrictEqual(askedOf(first, second), [1, 0])
        }))
    }

    for (const [what, react] of brokenOn(route)) {
      it.effect(`${what} sends a read to the next address, one request to each`, () =>
        Effect.gen(function*() {
          const first = yield* faultyUpstream(react(route.good))
          yield* assertNextAnswers(route, first, 1)
        }))
    }

    it.effect("another answer behind it, which nobody asked for, is not the next caller's", () =>
      Effect.gen(function*() {
        const evil = plain(`{"evil":true}`, 13)
        const only = yield* faultyUpstream(raw((body, size) => `${plain(body, size)}${evil}`)(route.good))
        const { url } = yield* gatewayOver({ [route.kind]: [only] })
        for (let round = 0; round < 3; round++) assertGood(route, yield* route.ask(url))
      }))
  })
}
