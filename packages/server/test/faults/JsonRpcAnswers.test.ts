import { assert, describe, it } from "@effect/vitest"
import { faultyUpstream, idIn } from "@trigate/testing/FaultyUpstream"
import { say } from "@trigate/testing/Reactions"
import { sample } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import { assertNextAnswers } from "./failover.ts"
import { askedOf, gatewayOver } from "./faultyGateway.ts"
import { assertFailure, assertGood, jsonRpcReads, tokenRpc } from "./routes.ts"

const rpc = (members: string) => `{"jsonrpc":"2.0",${members}}`

const foreign: ReadonlyArray<readonly [what: string, body: (id: string) => string]> = [
  ["another id", () => rpc(`"id":999999,"result":"0x1"`)],
  ["its id as a text", (id) => rpc(`"id":"${id}","result":"0x1"`)],
  ["its id as a list", (id) => rpc(`"id":[${id}],"result":"0x1"`)],
  ["its id and a fraction", (id) => rpc(`"id":${id}.5,"result":"0x1"`)],
  ["no id", () => rpc(`"result":"0x1"`)],
  ["a null id and a result", () => rpc(`"id":null,"result":"0x1"`)],
  ["another id and an error", () => rpc(`"id":999999,"error":{"code":-32000,"message":"other"}`)],
  ["both result and error", (id) => rpc(`"id":${id},"result":"0x1","error":{"code":-32000,"message":"both"}`)],
  ["neither result nor error", (id) => rpc(`"id":${id}`)],
  ["an error that is null and no result", (id) => rpc(`"id":${id},"error":null`)],
  ["its id twice", (id) => rpc(`"id":${id},"id":999999,"result":"0x1"`)],
  ["two results", (id) => rpc(`"id":${id},"result":"0x1","result":"0x2"`)],
  ["a list of one answer", (id) => `[${rpc(`"id":${id},"result":"0x1"`)}]`],
  ["an empty list", () => "[]"],
  ["null", () => "null"],
  ["a text", () => `"0x1"`]
]

const own: ReadonlyArray<readonly [what: string, error: string]> = [
  ["a server error", `{"code":-32000,"message":"header not found"}`],
  ["a reverted call", `{"code":3,"message":"execution reverted: no","data":"0x08c379a0"}`],
  ["a code beyond 2^53 in its data", `{"code":-32015,"message":"odd","data":{"block":9007199254740993}}`]
]

/** Errors that are none of JSON-RPC, and the node's words as clients can read them. */
const oddErrors: ReadonlyArray<readonly [what: string, error: string, told: string]> = [
  ["that is a text", `"overloaded"`, `{"code":-32000,"message":"overloaded"}`],
  ["without a code", `{"message":"overloaded"}`, `{"message":"overloaded","code":-32000}`],
  ["whose code is a text", `{"code":"-32001","message":"overloaded"}`, `{"code":-32001,"message":"overloaded"}`],
  ["without a message", `{"code":-32001}`, `{"code":-32001,"message":"{\\"code\\":-32001}"}`]
]

for (const route of jsonRpcReads) {
  describe(`${route.name}: a JSON-RPC answer with`, () => {
    for (const [what, body] of sample(`answers to no call, ${route.name}`, foreign, 4)) {
      it.effect(`${what} sends a read to the next address, one request to each`, () =>
        Effect.gen(function*() {
          const first = yield* faultyUpstream(say({ body: (asked) => body(idIn(asked.body)) }))
          yield* assertNextAnswers(route, first, 1)
        }))

      it.effect(`${what} is a typed error from a single address, after one request`, () =>
        Effect.gen(function*() {
          const only = yield* faultyUpstream(say({ body: (asked) => body(idIn(asked.body)) }))
          const { url } = yield* gatewayOver({ [route.kind]: [only] })
          assertFailure(route.protocol, yield* route.ask(url), "UpstreamMalformed")
          assert.deepStrictEqual(askedOf(only), [1])
        }))
    }

    for (const [what, error] of sample(`errors of a node, ${route.name}`, own, 1)) {
      it.effect(`${what} is the node's own answer and goes back as it is, after one request`, () =>
        Effect.gen(function*() {
          const first = yield* faultyUpstream(
            say({ body: (asked) => rpc(`"id":${idIn(asked.body)},"error":${error}`) })
          )
          const second = yield* faultyUpstream(say(route.good))
          const { url } = yield* gatewayOver({ [route.kind]: [first, second] })
          const answer = yield* route.ask(url)
          assert.strictEqual(answer.status, 200)
          assert.strictEqual(answer.text, rpc(`"id":1,"error":${error}`))
          assert.deepStrictEqual(askedOf(first, second), [1, 0])
        }))
    }

    for (const [what, error, told] of sample(`odd errors, ${route.name}`, oddErrors, 2)) {
      it.effect(`an error ${what} sends a read to the next address, and reaches the caller where there is none`, () =>
        Effect.gen(function*() {
          const react = say({ body: (asked) => rpc(`"id":${idIn(asked.body)},"error":${error}`) })
          const first = yield* faultyUpstream(react)
          yield* assertNextAnswers(route, first, 1)
          const only = yield* faultyUpstream(react)
          const { url } = yield* gatewayOver({ [route.kind]: [only] })
          assert.strictEqual((yield* route.ask(url)).text, rpc(`"id":1,"error":${told}`))
          assert.deepStrictEqual(askedOf(only), [1])
        }))
    }

    it.effect("an error beside a null result is the error, as Erigon writes it", () =>
      Effect.gen(function*() {
        const error = `{"code":-32000,"message":"reverted","data":"0x08c379a0"}`
        const only = yield* faultyUpstream(
          say({ body: (asked) => rpc(`"id":${idIn(asked.body)},"result":null,"error":${error}`) })
        )
        const { url } = yield* gatewayOver({ [route.kind]: [only] })
        assert.strictEqual((yield* route.ask(url)).text, rpc(`"id":1,"error":${error}`))
      }))

    it.effect("an error that is null beside its result is the result", () =>
      Effect.gen(function*() {
        const only = yield* faultyUpstream(
          say({ body: (asked) => rpc(`"error":null,"id":${idIn(asked.body)},"result":null`) })
        )
        const { url } = yield* gatewayOver({ [route.kind]: [only] })
        assert.strictEqual((yield* route.ask(url)).text, rpc(`"id":1,"result":null`))
        assert.deepStrictEqual(askedOf(only), [1])
      }))
  })
}

const notTheChains = ["null", "[]", "{}", `"1400"`, `{"ok":true}`]

describe("the token chain's envelope", () => {
  for (const body of notTheChains) {
    it.effect(`that is ${body} sends a read to the next address, one request to each`, () =>
      Effect.gen(function*() {
        const first = yield* faultyUpstream(say({ body }))
        const second = yield* faultyUpstream(say(tokenRpc.good))
        const { url } = yield* gatewayOver({ tokens: [first, second] })
        assertGood(tokenRpc, yield* tokenRpc.ask(url))
        assert.deepStrictEqual(askedOf(first, second), [1, 1])
      }))

    it.effect(`that is ${body} is a typed error from a single address, after one request`, () =>
      Effect.gen(function*() {
        const only = yield* faultyUpstream(say({ body }))
        const { url } = yield* gatewayOver({ tokens: [only] })
        assertFailure("token-rpc", yield* tokenRpc.ask(url), "UpstreamMalformed")
        assert.deepStrictEqual(askedOf(only), [1])
      }))
  }
})
