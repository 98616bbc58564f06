import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { faultyUpstream } from "@trigate/testing/FaultyUpstream"
import { post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import { say, silence } from "@trigate/testing/Reactions"
import * as Recordings from "@trigate/testing/Recordings"
import { samplePairs } from "@trigate/testing/Sample"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import type * as Net from "node:net"
import * as Tls from "node:tls"
import { bigBlocks, bodyOf } from "../bodies.ts"
import { assertNextAnswers } from "./failover.ts"
import { askedOf, gatewayOver } from "./faultyGateway.ts"
import { assertFailure, assertGood, evm, info, tokenData } from "./routes.ts"
import { deadline, endsAfter, firstShare, isTimed, probeDeadline } from "./time.ts"

const pem = (name: string): string => Recordings.text(`tls/${name}.pem`)
const certificate = (name: string): Tls.TlsOptions => ({ key: pem("key"), cert: pem(name) })
const trusted = Tls.getCACertificates("default")

/** Handshakes that must not succeed. */
const refused: ReadonlyArray<readonly [what: string, tls: Tls.TlsOptions]> = [
  ["a certificate that is over", certificate("expired")],
  ["a certificate of another name", certificate("wrong-name")],
  ["a certificate that is its own issuer", certificate("self-signed")],
  ["nothing newer than TLS 1.0", {
    ...certificate("good"),
    minVersion: "TLSv1",
    maxVersion: "TLSv1",
    ciphers: "DEFAULT@SECLEVEL=0"
  }],
  ["nothing newer than TLS 1.1", {
    ...certificate("good"),
    minVersion: "TLSv1",
    maxVersion: "TLSv1.1",
    ciphers: "DEFAULT@SECLEVEL=0"
  }],
  ["no certificate at all", { ciphers: "aNULL" }]
]

/** What a server does with the first message of a handshake, and whether that is nothing. */
const stalls: ReadonlyArray<readonly [what: string, stall: (socket: Net.Socket) => void, isSilent: boolean]> = [
  ["never goes on", () => {}, true],
  ["is reset", (socket) => socket.resetAndDestroy(), false],
  ["is ended", (socket) => socket.end(), false]
]

/** A server that does this with a handshake, and what ends when one has begun. */
const stalling = (stall: (socket: Net.Socket) => void) =>
  Effect.map(faultyUpstream(silence), (first) => {
    first.accept = (socket) => void socket.once("data", () => stall(socket))
    return { first, hasBegun: first.until(() => first.bytes() > 0) }
  })

const routes = [info, evm, tokenData]
const refusedOn = samplePairs("handshakes of a read", routes, refused)

const ok = `{"status":"ok","response":{"type":"default"}}`

const act = (url: string) =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => post(`${url}/exchange`, bodyOf(now, bigBlocks)))

/** The https address of a server that does not speak TLS. */
const httpsOf = (url: string): string => url.replace("http:", "https:")

describe("an upstream over TLS", () => {
  beforeAll(() => Tls.setDefaultCACertificates([...trusted, pem("authority")]))
  afterAll(() => Tls.setDefaultCACertificates(trusted))

  it.effect("with a good certificate answers reads and actions, one request each", () =>
    Effect.gen(function*() {
      const node = yield* faultyUpstream(say(evm.good), { tls: certificate("good") })
      const api = yield* faultyUpstream(say({ body: ok }), { tls: certificate("good") })
      const { url } = yield* gatewayOver({ node: [node], api: [api] })
      assertGood(evm, yield* evm.ask(url))
      assert.strictEqual((yield* act(url)).text, ok)
      assert.deepStrictEqual(askedOf(node, api), [1, 1])
    }))

  for (const [what, tls] of refused) {
    for (const route of routes.filter((each) => refusedOn(each).some(([name]) => name === what))) {
      it.effect(`with ${what} is passed over: ${route.name}`, () =>
        Effect.gen(function*() {
          const first = yield* faultyUpstream(say(route.good), { tls })
          yield* assertNextAnswers(route, first, 0)
          assert.strictEqual(first.bytes(), 0)
        }))

      it.effect(`with ${what} is a named error where it is the only one: ${route.name}`, () =>
        Effect.gen(function*() {
          const only = yield* faultyUpstream(say(route.good), { tls })
          const { url } = yield* gatewayOver({ [route.kind]: [only] })
          const value = yield* route.ask(url)
          const error = assertFailure(route.protocol, value, "UpstreamUnavailable")
          assert.match(String(JsonParts.at(error, "detail")), /CERT|TLS|SSL|SIGNATURE/u)
          assert.strictEqual(only.bytes(), 0)
        }))
    }

    it.effect(`with ${what} gets no action, which goes to the next address, once`, () =>
      Effect.gen(function*() {
        const first = yield* faultyUpstream(say({ body: ok }), { tls })
        const second = yield* faultyUpstream(say({ body: ok }))
        const { url } = yield* gatewayOver({ api: [first, second] })
        assert.strictEqual((yield* act(url)).text, ok)
        assert.deepStrictEqual(askedOf(first, second), [0, 1])
      }))

    it.effect(`with ${what} gets no action, which is certainly not sent where it is the only one`, () =>
      Effect.gen(function*() {
        const only = yield* faultyUpstream(say({ body: ok }), { tls })
        const { url } = yield* gatewayOver({ api: [only] })
        assertFailure("http", yield* act(url), "UpstreamUnavailable")
        assert.strictEqual(only.bytes(), 0)
      }))
  }

  for (const [what, stall, isSilent] of stalls) {
    it.effect(`whose handshake ${what} is passed over by a read`, () =>
      Effect.gen(function*() {
        const { first, hasBegun } = yield* stalling(stall)
        const second = yield* faultyUpstream(say(evm.good))
        const { url } = yield* gatewayOver({ node: [httpsOf(first.url), second] })
        const asking = evm.ask(url)
        if (isSilent) {
          // calls wait until each of several addresses was asked for its chain
          yield* isTimed(probeDeadline)
          yield* TestClock.adjust(probeDeadline)
        }
        assertGood(evm, yield* isSilent ? endsAfter(firstShare, asking, hasBegun) : asking)
        assert.deepStrictEqual(askedOf(first, second), [0, 1])
      }))

    it.effect(`whose handshake ${what} leaves an action certainly not sent`, () =>
      Effect.gen(function*() {
        const { first: only, hasBegun } = yield* stalling(stall)
        const { url } = yield* gatewayOver({ api: [httpsOf(only.url)] })
        const value = yield* isSilent ? endsAfter(deadline, act(url), hasBegun) : act(url)
        assertFailure("http", value, "UpstreamUnavailable")
        assert.deepStrictEqual(askedOf(only), [0])
      }))
  }

  it.effect("whose handshake never goes on does not keep an action from the next address", () =>
    Effect.gen(function*() {
      const { first, hasBegun } = yield* stalling(() => {})
      const second = yield* faultyUpstream(say({ body: ok }))
      const { url } = yield* gatewayOver({ api: [httpsOf(first.url), second] })
      assert.strictEqual((yield* endsAfter(firstShare, act(url), hasBegun)).text, ok)
      assert.deepStrictEqual(askedOf(first, second), [0, 1])
    }))

  it.effect("that turns out to speak plain HTTP gets nothing in the clear", () =>
    Effect.gen(function*() {
      const first = yield* faultyUpstream(silence)
      first.accept = (socket) => void socket.end("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
      const second = yield* faultyUpstream(say({ body: ok }))
      const { url } = yield* gatewayOver({ api: [httpsOf(first.url), second] })
      assert.strictEqual((yield* act(url)).text, ok)
      assert.deepStrictEqual(askedOf(first, second), [0, 1])
    }))
})
