/** What a caller does to get more than its quota allows. */
import { assert, describe, it } from "@effect/vitest"
import type { Quota } from "@trigate/domain/Caller"
import type { ReceivedRequest } from "@trigate/testing/FaultyUpstream"
import { faultyUpstream, idIn } from "@trigate/testing/FaultyUpstream"
import { gateway, post } from "@trigate/testing/Gateway"

import * as JsonParts from "@trigate/testing/JsonParts"
import { say } from "@trigate/testing/Reactions"
import type { Seen } from "@trigate/testing/RecordingUpstream"
import { recordingUpstream } from "@trigate/testing/RecordingUpstream"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Net from "node:net"
import { bigBlocks, bodyOf } from "../bodies.ts"
import { keyFile } from "../keyFile.ts"
import { headOf } from "../rawHttp.ts"

/** A gateway with one caller, and an upstream that answers when it is told to. */
const limited = Effect.fnUntraced(function*(quota: Quota) {
  const answers: Array<() => void> = []
  const upstream = yield* faultyUpstream((socket, asked) => {
    answers.push(() => say({ body: answerOf(asked) })(socket, asked))
  })
  const { file, keys: [key = ""] } = yield* keyFile({ name: "desk", quota })
  const running = yield* gateway({
    TRIGATE_TRADING_API_URL: upstream.url,
    TRIGATE_TRADING_NODE_URL: upstream.url,
    TRIGATE_TOKEN_CHAIN_URL: upstream.url,
    TRIGATE_LAYER2_URL: upstream.url,
    TRIGATE_CALLERS: file
  })
  return { ...running, key, upstream, answer: () => answers.splice(0).forEach((one) => one()) }
})

const answerOf = ({ body, path }: ReceivedRequest): string => {
  if (path === "/exchange") return `{"status":"ok","response":{"type":"default"}}`
  return path.startsWith("/api/v2") ? `{"ok":true,"result":{}}` : `{"jsonrpc":"2.0","id":${idIn(body)},"result":"0x1"}`
}

/** Sends a request on a connection of its own, and gives the way to tear that down. */
const sending = (url: string, path: string, key: string, body: string) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const { hostname, port } = new URL(url)
      const socket = Net.connect({ host: hostname, port: Number(port) })
      socket.on("error", () => {})
      const headers = [["content-type", "application/json"], ["content-length", `${body.length}`], ["x-api-key", key]]
      socket.write(headOf("POST", path, headers.map(([name = "", value = ""]) => [name, value] as const)) + body)
      return () => void socket.resetAndDestroy()
    }),
    (leave) => Effect.sync(leave)
  )

let last = 0

const sends: ReadonlyArray<readonly [path: string, body: Effect.Effect<string>]> = [
  ["/exchange", Effect.map(Clock.currentTimeMillis, (now) => bodyOf(now - (last += 1), bigBlocks))],
  ["/l2", Effect.succeed(`{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["0x02"]}`)],
  ["/evm", Effect.succeed(`{"jsonrpc":"2.0","id":"a","method":"eth_sendRawTransaction","params":["0x02"]}`)],
  ["/api/v2/jsonRPC", Effect.succeed(`{"id":1,"method":"sendBoc","params":{"boc":"te6cckEBAQEA"}}`)],
  ["/api/v2/sendBoc", Effect.succeed(`{"boc":"te6cckEBAQEA"}`)]
]

describe("concurrent calls", () => {
  for (const [path, body] of sends) {
    it.live(`count until they end, not until their caller leaves: ${path}`, () =>
      Effect.gen(function*() {
        const { answer, drain, key, upstream, url } = yield* limited({ concurrentCalls: 2 })
        for (let sent = 1; sent <= 2; sent++) {
          const leave = yield* sending(url, path, key, yield* body)
          yield* upstream.until(() => upstream.requests.length === sent)
          leave()
          yield* drain.current
        }
        const again = Effect.flatMap(body, (text) => post(`${url}${path}`, text, { "x-api-key": key }))
        const refused = yield* again
        assert.strictEqual(refused.status, 429)
        assert.include(refused.text, "QuotaExceeded")
        assert.strictEqual(upstream.requests.length, 2)
        answer()
        // an answer that goes to nobody ends its call as well
        const next = yield* Effect.forkChild(
          Effect.repeat(again, { until: ({ status }) => status !== 429 }),
          { startImmediately: true }
        )
        yield* upstream.until(() => upstream.requests.length === 3)
        answer()
        assert.strictEqual((yield* Fiber.join(next)).status, 200)
      }))
  }
})

const gas = (id: number) => `{"jsonrpc":"2.0","id":${id},"method":"eth_gasPrice","params":[]}`
const batchOf = (length: number) => `[${Array.from({ length }, (_, index) => gas(index)).join(",")}]`

const nodeReply = ({ body }: Seen) => {
  const answers = [...body.matchAll(/"id":(?<id>\d+)/gu)].map(({ groups }) =>
    `{"jsonrpc":"2.0","id":${groups?.["id"]},"result":"0x1"}`
  ).join(",")
  return { body: body.startsWith("[") ? `[${answers}]` : answers }
}

describe("a batch counts as all of its calls", () => {
  const over = Effect.fnUntraced(function*(quota: Quota) {
    const node = yield* recordingUpstream(nodeReply)
    const { file, keys: [key = ""] } = yield* keyFile({ name: "desk", quota })
    const { url } = yield* gateway({ TRIGATE_TRADING_NODE_URL: node.url, TRIGATE_CALLERS: file })
    return { node, ask: (length: number) => post(`${url}/evm`, batchOf(length), { "x-api-key": key }) }
  })

  it.live("of its requests, and one that is beyond the quota is refused call by call", () =>
    Effect.gen(function*() {
      const { ask, node } = yield* over({ requestsPerSecond: 0.001, burst: 10 })
      const first = yield* ask(6)
      assert.strictEqual(first.headers.get("ratelimit"), `"requests";r=4;t=6000`)
      const refused = yield* ask(6)
      assert.strictEqual(refused.headers.get("ratelimit")?.startsWith(`"requests";r=0;`), true)
      for (let index = 0; index < 6; index++) {
        assert.strictEqual(JsonParts.at(refused.json, index, "id"), index)
        assert.strictEqual(JsonParts.at(refused.json, index, "error", "code"), -32005)
        assert.strictEqual(JsonParts.at(refused.json, index, "error", "data", "_tag"), "QuotaExceeded")
      }
      assert.isUndefined(JsonParts.at(refused.json, 6))
      assert.strictEqual(node.seen.filter(({ body }) => body.includes("eth_gasPrice")).length, 1)
      // the request itself was counted
      assert.strictEqual((yield* ask(3)).headers.get("ratelimit"), `"requests";r=0;t=10000`)
    }))

  it.live("of its concurrent calls", () =>
    Effect.gen(function*() {
      const { ask } = yield* over({ concurrentCalls: 3 })
      for (let round = 0; round < 3; round++) assert.include((yield* ask(3)).text, `"result":"0x1"`)
      const refused = yield* ask(4)
      assert.include(refused.text, "QuotaExceeded")
      assert.notInclude(refused.text, `"result"`)
      assert.include((yield* ask(3)).text, `"result":"0x1"`)
    }))
})
