import { assert, describe, it } from "@effect/vitest"
import type { Reaction, ReceivedRequest } from "@trigate/testing/FaultyUpstream"
import { faultyUpstream } from "@trigate/testing/FaultyUpstream"
import { post } from "@trigate/testing/Gateway"
import type { Said } from "@trigate/testing/Reactions"
import { say } from "@trigate/testing/Reactions"
import { sample } from "@trigate/testing/Sample"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Zlib from "node:zlib"
import { bigBlocks, bodyOf } from "../bodies.ts"
import { askedOf, gatewayOver } from "./faultyGateway.ts"
import { assertFailure, assertGood, reads } from "./routes.ts"

const MiB = 1024 * 1024
/** What an effect gave, and by how many MiB the resident set grew beyond its start while it ran. */
const growthOf = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    globalThis.gc?.()
    const start = process.memoryUsage.rss()
    let most = start
    const timer = setInterval(() => {
      most = Math.max(most, process.memoryUsage.rss())
    }, 5)
    return effect.pipe(
      Effect.map((value) => ({
        value,
        mebibytes: (Math.max(most, process.memoryUsage.rss()) - start) / MiB
      })),
      Effect.ensuring(Effect.sync(() => clearInterval(timer)))
    )
  })

/** What an answer may have after decompression. */
const limit = 16
const piece = Buffer.alloc(MiB, " ")

const head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
const asChunk = (of: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`${of.length.toString(16)}\r\n`), of, Buffer.from("\r\n")])

/** An answer of 100 MiB, as fast as it is read and for as long as anybody reads; `poured` tells how many were taken. */
const huge = (announced: boolean) => {
  const seen = { poured: 0 }
  const framed = announced ? piece : asChunk(piece)
  const react: Reaction = (socket) => {
    const more = () => {
      while (seen.poured < 100 && !socket.destroyed) {
        seen.poured += 1
        if (!socket.write(framed)) return
      }
      if (seen.poured === 100) socket.end()
    }
    socket.on("drain", more)
    socket.write(`${head}${announced ? `content-length: ${100 * MiB}` : "transfer-encoding: chunked"}\r\n\r\n`)
    more()
  }
  return { seen, react }
}

describe("an answer of 100 MiB", () => {
  for (const [what, announced] of [["says so", true], ["comes in chunks", false]] as const) {
    for (const route of sample(`routes of an answer that ${what}`, reads, 1)) {
      it.effect(`that ${what} is refused at the limit, and memory stays flat: ${route.name}`, () =>
        Effect.gen(function*() {
          const { react, seen } = huge(announced)
          const only = yield* faultyUpstream(react)
          const { url } = yield* gatewayOver({ [route.kind]: [only] })
          const { mebibytes, value } = yield* growthOf(route.ask(url))
          assertFailure(route.protocol, value, "UpstreamMalformed")
          yield* only.until(() => only.open() === 0)
          assert.isBelow(seen.poured, 2 * limit)
          assert.isBelow(mebibytes, 64)
          assert.deepStrictEqual(askedOf(only), [1])
        }))
    }

    it.effect(`that ${what} sends a read to the next address, one request to each`, () =>
      Effect.gen(function*() {
        for (const route of sample(`second addresses of an answer that ${what}`, reads, 1)) {
          const { react } = huge(announced)
          const first = yield* faultyUpstream(react)
          const second = yield* faultyUpstream(say(route.good))
          const { url } = yield* gatewayOver({ [route.kind]: [first, second] })
          assertGood(route, yield* route.ask(url))
          assert.deepStrictEqual(askedOf(first, second), [1, 1], route.name)
        }
      }))

    it.effect(`that ${what} leaves the outcome of an action unknown, after one request`, () =>
      Effect.gen(function*() {
        const { react, seen } = huge(announced)
        const first = yield* faultyUpstream(react)
        const second = yield* faultyUpstream(say({ body: "{}" }))
        const { url } = yield* gatewayOver({ api: [first, second] })
        const body = bodyOf(yield* Clock.currentTimeMillis, bigBlocks)
        const { mebibytes, value } = yield* growthOf(post(`${url}/exchange`, body))
        assertFailure("http", value, "OutcomeUnknown")
        yield* first.until(() => first.open() === 0)
        assert.isBelow(seen.poured, 2 * limit)
        assert.isBelow(mebibytes, 64)
        assert.deepStrictEqual(askedOf(first, second), [1, 0])
      }))
  }
})

interface Coding {
  readonly name: string
  readonly press: (plain: Uint8Array) => Uint8Array
}

const codings: ReadonlyArray<Coding> = [
  { name: "gzip", press: (plain) => Zlib.gzipSync(plain) },
  { name: "deflate", press: (plain) => Zlib.deflateSync(plain) },
  {
    name: "br",
    press: (plain) => Zlib.brotliCompressSync(plain, { params: { [Zlib.constants.BROTLI_PARAM_QUALITY]: 1 } })
  },
  { name: "zstd", press: (plain) => Zlib.zstdCompressSync(plain) },
  { name: "gzip, gzip", press: (plain) => Zlib.gzipSync(Zlib.gzipSync(plain)) }
]

const pressed = (good: Said, { name, press }: Coding): Said => ({
  headers: [["content-encoding", name]],
  body: (asked: ReceivedRequest) => press(Buffer.from(typeof good.body === "function" ? good.body(asked) : good.body))
})

describe("an answer that was compressed although nobody asked for it", () => {
  for (const coding of sample("codings of a bomb", codings, 1)) {
    it.effect(`with ${coding.name} is refused when it is a bomb, and memory stays flat`, () =>
      Effect.gen(function*() {
        const bomb = coding.press(Buffer.alloc(96 * MiB, " "))
        for (const route of sample(`routes of a bomb in ${coding.name}`, reads, 1)) {
          const only = yield* faultyUpstream(say({ headers: [["content-encoding", coding.name]], body: bomb }))
          const { url } = yield* gatewayOver({ [route.kind]: [only] })
          const { mebibytes, value } = yield* growthOf(route.ask(url))
          assertFailure(route.protocol, value, "UpstreamMalformed")
          assert.isBelow(mebibytes, 64, route.name)
          assert.deepStrictEqual(askedOf(only), [1], route.name)
        }
      }))
  }

  for (const coding of sample("codings of an answer", codings, 2)) {
    it.effect(`with ${coding.name} is read, or else asked of the next address: never relayed as it is`, () =>
      Effect.gen(function*() {
        for (const route of sample(`routes of ${coding.name}`, reads, 3)) {
          const first = yield* faultyUpstream(say(pressed(route.good, coding)))
          const second = yield* faultyUpstream(say(route.good))
          const { url } = yield* gatewayOver({ [route.kind]: [first, second] })
          const answer = yield* route.ask(url)
          assertGood(route, answer)
          assert.isNull(answer.headers.get("content-encoding"))
          assert.strictEqual(first.requests.length, 1, route.name)
        }
      }))
  }

  const damaged: ReadonlyArray<readonly [what: string, said: (good: Said) => Said]> = [
    ["and was cut", (good) => ({
      headers: [["content-encoding", "gzip"]],
      body: (asked) => {
        const whole = pressed(good, { name: "gzip", press: (plain) => Zlib.gzipSync(plain) }).body
        return typeof whole === "function" ? Buffer.from(whole(asked)).subarray(0, -9) : whole
      }
    })],
    ["so it says, and was not", (good) => ({ ...good, headers: [["content-encoding", "gzip"]] })],
    ["in a way that nobody knows", (good) => ({ ...good, headers: [["content-encoding", "compress"]] })],
    ["in a way that is named like a property", (good) => ({ ...good, headers: [["content-encoding", "constructor"]] })]
  ]
  for (const [what, said] of damaged) {
    it.effect(`${what} sends a read to the next address, one request to each`, () =>
      Effect.gen(function*() {
        for (const route of sample(`routes of an answer ${what}`, reads, 2)) {
          const first = yield* faultyUpstream(say(said(route.good)))
          const second = yield* faultyUpstream(say(route.good))
          const { url } = yield* gatewayOver({ [route.kind]: [first, second] })
          assertGood(route, yield* route.ask(url))
          assert.deepStrictEqual(askedOf(first, second), [1, 1], route.name)
        }
      }))
  }
})
