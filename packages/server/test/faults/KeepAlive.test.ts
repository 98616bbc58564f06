import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import { unwrapReason } from "@trigate/domain/errors/GatewayError"
import { layer2Operations } from "@trigate/domain/evm/Layer2Operations"
import type { FaultyUpstream, Reaction, ReceivedRequest } from "@trigate/testing/FaultyUpstream"
import { faultyUpstream, idIn } from "@trigate/testing/FaultyUpstream"
import { post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import { hangUp, reset, say } from "@trigate/testing/Reactions"
import { isExhaustive } from "@trigate/testing/Sample"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { bigBlocks, bodyOf } from "../bodies.ts"
import { services } from "./embedded.ts"
import { askedOf, gatewayOver } from "./faultyGateway.ts"
import { hashOf, receiptQuestion } from "./routes.ts"

const utf8 = new TextEncoder()
const rounds = Array.from({ length: isExhaustive ? 1_000 : 150 }, (_, round) => round)
const concurrency = 8
const operation = layer2Operations.getTransactionReceipt

/**
 * Answers, and closes the connection that it did not say it would close: at once, a little later, or as it is used again.
 *
 * `dropped` counts the requests that came on a connection which the server had given up: it takes no notice of them.
 * `closed` counts the connections that it closes after an response, each of which may break one more call.
 */
const closing = (words: (asked: ReceivedRequest) => string) => {
  const response = say({ body: words })
  const seen = { dropped: 0, closed: 0 }
  let count = 0
  let reused = 0
  const react: Reaction = (socket, asked) => {
    count += 1
    if (asked.turn > 1) reused += 1
    if (asked.turn > 1 && reused % 8 === 0) {
      seen.dropped += 1
      socket.resetAndDestroy()
      return
    }
    response(socket, asked)
    if (count % 3 > 0 && count % 7 > 1) return
    seen.closed += 1
    if (count % 3 === 0) socket.end()
    else if (count % 7 === 0) setImmediate(() => socket.end())
    // a request that comes in this millisecond is never read, and answered with a reset
    else setTimeout(() => socket.destroy(), 1)
  }
  return { react, seen }
}

const noReceipt = ({ body }: ReceivedRequest): string => `{"jsonrpc":"2.0","id":${idIn(body)},"result":null}`
const ok = `{"status":"ok","response":{"type":"default"}}`

/** How often each nonce came. */
const nonces = (...upstreams: ReadonlyArray<FaultyUpstream>): ReadonlyMap<number, number> => {
  const times = new Map<number, number>()
  for (const { body } of upstreams.flatMap(({ requests: asked }) => asked)) {
    const nonce = Number(JsonParts.value(body, "nonce"))
    times.set(nonce, (times.get(nonce) ?? 0) + 1)
  }
  return times
}

describe("an upstream that closes idle connections without a word", () => {
  it.live(`fails no read of ${rounds.length}, and asks again only after a broken connection`, () =>
    Effect.gen(function*() {
      const { react, seen } = closing(noReceipt)
      const only = yield* faultyUpstream(react)
      const { layer2 } = yield* services({ layer2: [only] })
      const tags = yield* Effect.forEach(
        rounds,
        (round) =>
          Effect.match(layer2.relay({ operation, params: Json.of(`["${hashOf(round)}"]`), surface: "gateway" }), {
            onFailure: ({ message }) => message,
            onSuccess: ({ _tag }) => _tag
          }),
        { concurrency }
      )
      assert.deepStrictEqual([...new Set(tags)], ["Result"])
      assert.isAbove(seen.dropped, isExhaustive ? 10 : 5)
      assert.isAtLeast(only.requests.length, rounds.length + seen.dropped)
      assert.isAtMost(only.requests.length, rounds.length + seen.dropped + seen.closed)
    }))

  it.live("is asked on a new connection for a read that broke on a kept one, however many are kept", () =>
    Effect.gen(function*() {
      const held: Array<() => void> = []
      const response = say({ body: noReceipt })
      const only = yield* faultyUpstream((socket, asked) => void held.push(() => response(socket, asked)))
      const { layer2 } = yield* services({ layer2: [only] })
      const read = (round: number) =>
        layer2.relay({ operation, params: Json.of(`["${hashOf(round)}"]`), surface: "gateway" })
      const reads = yield* Effect.forkChild(Effect.forEach(rounds.slice(0, concurrency), read, { concurrency }))
      yield* only.until(() => held.length === concurrency)
      for (const release of held) release()
      yield* Fiber.join(reads)
      only.react = response
      yield* Effect.repeat(Effect.suspend(() => read(only.requests.length)), {
        until: () => (only.requests.at(-1)?.turn ?? 0) > 1
      })
      const { length } = only.requests
      const connections = only.connections()
      only.react = (socket, asked) => (asked.turn > 1 ? reset : response)(socket, asked)
      assert.strictEqual((yield* read(length))._tag, "Result")
      assert.deepStrictEqual(only.requests.slice(length).map(({ turn }) => turn > 1), [true, false])
      assert.strictEqual(only.connections(), connections + 1)
    }))

  it.live(`sees none of ${rounds.length} actions twice, and each that was answered once`, () =>
    Effect.gen(function*() {
      const { react, seen } = closing(() => ok)
      const first = yield* faultyUpstream(react)
      const second = yield* faultyUpstream(say({ body: ok }))
      const { exchange } = yield* services({ api: [first, second] })
      const now = yield* Clock.currentTimeMillis
      const outcomes = yield* Effect.forEach(rounds, (round) =>
        Effect.match(
          exchange.relay({ body: utf8.encode(bodyOf(now - round, bigBlocks)), surface: "gateway" }),
          {
            onFailure: (error) => ({ nonce: now - round, tag: unwrapReason(error)._tag }),
            onSuccess: ({ response }) => ({ nonce: now - round, tag: `${response.status}` })
          }
        ), { concurrency })
      const times = nonces(first, second)
      assert.deepStrictEqual([...times].filter(([, count]) => count > 1), [])
      const answered = outcomes.filter(({ tag }) => tag === "200")
      const unknown = outcomes.filter(({ tag }) => tag === "OutcomeUnknown")
      const unsent = outcomes.filter(({ tag }) => tag === "UpstreamUnavailable")
      assert.strictEqual(answered.length + unknown.length + unsent.length, rounds.length)
      for (const { nonce } of answered) assert.strictEqual(times.get(nonce), 1)
      for (const { nonce } of unsent) assert.isUndefined(times.get(nonce))
      assert.isAbove(seen.dropped, isExhaustive ? 10 : 5)
      assert.isAtLeast(unknown.length, seen.dropped)
      assert.isAtMost(unknown.length, seen.dropped + seen.closed)
    }))

  it.effect("fails no read and doubles no action through the gateway", () =>
    Effect.gen(function*() {
      const layer2 = yield* faultyUpstream(closing(noReceipt).react)
      const api = yield* faultyUpstream(closing(() => ok).react)
      const { url } = yield* gatewayOver({ api: [api], layer2: [layer2] })
      const now = yield* Clock.currentTimeMillis
      yield* Effect.forEach(rounds.slice(0, isExhaustive ? 200 : 50), (round) =>
        Effect.gen(function*() {
          const read = yield* post(`${url}/l2`, receiptQuestion(hashOf(round)))
          assert.strictEqual(read.text, `{"jsonrpc":"2.0","id":1,"result":null}`)
          const acted = yield* post(`${url}/exchange`, bodyOf(now + round, bigBlocks))
          if (acted.status === 503) assert.isUndefined(nonces(api).get(now + round))
          else if (acted.status !== 200) assert.include(acted.json, { _tag: "OutcomeUnknown", nonce: now + round })
        }), { concurrency })
      assert.deepStrictEqual([...nonces(api)].filter(([, count]) => count > 1), [])
    }))

  it.effect("is asked on a new connection when it said that it would close", () =>
    Effect.gen(function*() {
      const polite: Reaction = (socket, asked) => {
        say({ headers: [["connection", "close"]], body: noReceipt })(socket, asked)
        hangUp(socket, asked)
      }
      const only = yield* faultyUpstream(polite)
      const { url } = yield* gatewayOver({ layer2: [only] })
      const asked = rounds.slice(0, isExhaustive ? 100 : 20)
      for (const round of asked) {
        assert.strictEqual((yield* post(`${url}/l2`, receiptQuestion(hashOf(round)))).status, 200)
      }
      assert.deepStrictEqual(askedOf(only), [asked.length])
      assert.strictEqual(only.connections(), asked.length)
    }))
})
