import { assert, describe, it } from "@effect/vitest"
import type { Reaction } from "@trigate/testing/FaultyUpstream"
import { faultyUpstream } from "@trigate/testing/FaultyUpstream"
import { get, post } from "@trigate/testing/Gateway"
import { say, sayHalf, silence } from "@trigate/testing/Reactions"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Net from "node:net"
import { bigBlocks, bodyOf } from "../bodies.ts"
import * as RawHttp from "../rawHttp.ts"
import { askedOf, gatewayOver } from "./faultyGateway.ts"
import type { Kind } from "./routes.ts"
import { assertFailure, hashOf, receiptQuestion } from "./routes.ts"

/** Sends a request on a socket of its own, and gives the way to tear that down. */
const asking = (url: string, path: string, body: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const { hostname, port } = new URL(url)
      const socket = Net.connect({ host: hostname, port: Number(port) })
      socket.on("error", () => {})
      socket.write(
        RawHttp.headOf("POST", path, [["content-type", "application/json"], ["content-length", `${body.length}`]]) +
          body
      )
      return { leave: () => socket.resetAndDestroy() }
    }),
    ({ leave }) => Effect.sync(leave)
  )

const half = { body: `{"jsonrpc":"2.0","id":1,"result":null}` }

const reads: ReadonlyArray<readonly [path: string, kind: Kind, body: string]> = [
  ["/info", "api", `{"type":"candleSnapshot","req":{"coin":"X","interval":"1h","startTime":0,"endTime":1}}`],
  ["/evm", "node", `{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}`],
  ["/l2", "layer2", receiptQuestion(hashOf(1))],
  ["/l2", "layer2", `[${receiptQuestion(hashOf(1))},${receiptQuestion(hashOf(2), "2")}]`],
  [
    "/api/v2/jsonRPC",
    "tokens",
    `{"id":1,"method":"detectAddress","params":{"address":"EQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_sDs"}}`
  ]
]

const stages: ReadonlyArray<readonly [what: string, react: Reaction]> = [
  ["before the answer", silence],
  ["amid the answer", sayHalf(half, silence)]
]

/** Calls of the venue that were answered; the counts are those of the process, whatever ran in it before. */
const answeredOf = (url: string) =>
  Effect.map(
    get(`${url}/metrics`),
    ({ text }) =>
      [...text.matchAll(/^trigate_upstream_calls_total\{upstream="trading-api",.*outcome="ok"\} (?<count>\d+)$/gmu)]
        .reduce((sum, { groups }) => sum + Number(groups?.["count"]), 0)
  )

/** Ends when the gateway has had one more answer of the venue than now. */
const oneMoreAnswer = (url: string) =>
  Effect.map(
    answeredOf(url),
    (before) => Effect.repeat(answeredOf(url), { until: (count) => count === before + 1 })
  )

describe("a caller that leaves", () => {
  for (const [path, kind, body] of reads) {
    for (const [what, react] of stages) {
      it.effect(`${what} takes a read with it: ${path} ${body.slice(0, 1)}`, () =>
        Effect.gen(function*() {
          const only = yield* faultyUpstream(react)
          const { url } = yield* gatewayOver({ [kind]: [only] })
          const { leave } = yield* asking(url, path, body)
          yield* only.until(() => only.requests.length > 0)
          leave()
          // no deadline passes here: only the caller's leaving can close it
          yield* only.until(() => only.open() === 0)
          assert.deepStrictEqual(askedOf(only), [1])
        }))
    }

    it.effect(`does not send a read to the next address: ${path} ${body.slice(0, 1)}`, () =>
      Effect.gen(function*() {
        const first = yield* faultyUpstream(silence)
        const second = yield* faultyUpstream(silence)
        const { url } = yield* gatewayOver({ [kind]: [first, second] })
        const { leave } = yield* asking(url, path, body)
        yield* first.until(() => first.requests.length > 0)
        leave()
        yield* first.until(() => first.open() < first.connections())
        assert.deepStrictEqual(askedOf(second), [0])
      }))
  }

  it.effect("does not take an action with it, whose outcome is then known", () =>
    Effect.gen(function*() {
      const answers: Array<() => void> = []
      const only = yield* faultyUpstream((socket, asked) => {
        answers.push(() => say({ body: `{"status":"ok","response":{"type":"default"}}` })(socket, asked))
      })
      const { url } = yield* gatewayOver({ api: [only] })
      const isAnswered = yield* oneMoreAnswer(url)
      const body = bodyOf(yield* Clock.currentTimeMillis, bigBlocks)
      const { leave } = yield* asking(url, "/exchange", body)
      yield* only.until(() => only.requests.length > 0)
      leave()
      // a request that is answered after the one that left shows that the gateway has seen it leave
      yield* get(`${url}/health/live`)
      const inFlight = yield* post(`${url}/exchange`, body)
      assertFailure("http", inFlight, "NonceAlreadyUsed")
      assert.strictEqual(only.open(), 1)
      for (const answer of answers) answer()
      yield* isAnswered
      assertFailure("http", yield* post(`${url}/exchange`, body), "NonceAlreadyUsed")
      assert.deepStrictEqual(askedOf(only), [1])
    }))
})
