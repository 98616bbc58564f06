import { assert, describe, it } from "@effect/vitest"
import { post } from "@trigate/testing/Gateway"
import { rpcReply } from "@trigate/testing/RecordingUpstream"
import { isExhaustive, sample } from "@trigate/testing/Sample"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as V8 from "node:v8"
import * as Vm from "node:vm"
import type { LiveGateway } from "./liveGateway.ts"
import { liveGateway, upstreamKeys } from "./liveGateway.ts"
import type { Malformed } from "./malformedRequests.ts"
import { malformedRequests, validRequests } from "./malformedRequests.ts"
import { exchange } from "./rawHttp.ts"
import type { RawAnswer } from "./rawHttp.ts"

const seed = 20_240_117

const member = (value: unknown, key: string): unknown =>
  typeof value === "object" && value !== null ? Object.entries(value).find(([name]) => name === key)?.[1] : undefined

const isText = (value: unknown): value is string => typeof value === "string" && value !== ""

const isProblem = (answer: RawAnswer, value: unknown): boolean =>
  answer.type === "application/problem+json" && isText(member(value, "type")) && isText(member(value, "title")) &&
  member(value, "status") === answer.status

const isRpcError = (value: unknown): boolean =>
  member(value, "jsonrpc") === "2.0" && member(value, "result") === undefined &&
  Number.isInteger(member(member(value, "error"), "code")) && isText(member(member(value, "error"), "message"))

const isTokenError = (value: unknown): boolean =>
  member(value, "ok") === false && member(value, "result") === undefined && isText(member(value, "error")) &&
  Number.isInteger(member(value, "code"))

const isEveryError = (protocol: Malformed["protocol"], value: unknown): boolean => {
  const isError = protocol === "json-rpc" ? isRpcError : protocol === "token-rpc" ? isTokenError : () => false
  return Array.isArray(value) ? value.length > 0 && value.every(isError) : isError(value)
}

/** What is wrong with an answer to a malformed request; nothing when it is as it should be. */
const complaint = (request: Malformed, answer: RawAnswer): string | undefined => {
  const shown = `${request.name}: HTTP ${answer.status} ${answer.type} ${answer.body.slice(0, 300)}`
  if (Object.values(upstreamKeys).some((key) => (answer.head + answer.body).includes(key))) {
    return `a secret in ${shown}`
  }
  if (/packages\/|node_modules|\.ts:\d/u.test(answer.body)) return `a stack in ${shown}`
  const refused = (answer.status >= 400 && answer.status < 500) || answer.status === request.status
  const value: unknown = answer.type.includes("json") ? JSON.parse(answer.body) : undefined
  if (refused && isProblem(answer, value)) return undefined
  const isRpc = answer.type === "application/json" && isEveryError(request.protocol, value)
  return isRpc && (refused || answer.status === 200) ? undefined : shown
}

const collectGarbage = (): void => {
  V8.setFlagsFromString("--expose-gc")
  Vm.runInNewContext("gc()")
}

const megabytesHeld = (): number => {
  collectGarbage()
  const { arrayBuffers, heapUsed } = process.memoryUsage()
  return (heapUsed + arrayBuffers) / 1024 ** 2
}

const forget = (live: LiveGateway): void => {
  for (const upstream of [live.api, live.node, live.tokens, live.layer2]) upstream.seen.length = 0
}

const round = Effect.fnUntraced(function*(live: LiveGateway, requests: ReadonlyArray<Malformed>) {
  const complaints: Array<string> = []
  for (const request of requests) {
    const answer = yield* exchange(live.url, request.parts, request.breaksOff)
    const found = complaint(request, answer)
    if (found !== undefined) complaints.push(found)
    if (live.seen().length > 0) complaints.push(`${live.seen().join()} after ${request.name}`)
    forget(live)
  }
  return complaints
})

describe("malformed requests", () => {
  it.live("are broken valid ones: unbroken, each reaches its upstream", () =>
    Effect.gen(function*() {
      // answers of any kind: an upstream that fails again and again would not be asked
      const live = yield* liveGateway({
        api: () => ({ body: "[]" }),
        node: rpcReply("null"),
        tokens: () => ({ body: `{"ok":true,"result":1}` }),
        layer2: rpcReply("null")
      })
      const now = yield* Clock.currentTimeMillis
      for (const { body, path } of validRequests(now)) {
        yield* post(`${live.url}${path}`, body)
        assert.isNotEmpty(live.seen(), `${path} ${body}`)
        forget(live)
      }
    }))

  it.live(
    "are refused with a typed body and reach nobody; the gateway lives on",
    () =>
      Effect.gen(function*() {
        // a query of a wrong type is one of another type where those are relayed
        const live = yield* liveGateway({ api: () => ({ body: "[]" }) }, { TRIGATE_RELAY_INFO: "off" })
        const now = yield* Clock.currentTimeMillis
        const requests = malformedRequests(seed, now)
        // each is sent twice: templates are broken in more ways by more cases of each, not by cases without end
        assert.isAtLeast(requests.length, 1000)
        assert.isAtMost(requests.length, 1500)
        assert.strictEqual(new Set(requests.map(({ parts }) => parts)).size, requests.length)

        const sent = sample("malformed requests", requests, 100, ({ protocol }) => protocol)
        assert.deepStrictEqual(yield* round(live, sent), [])
        const before = isExhaustive ? megabytesHeld() : 0
        // a leak shows after several rounds, for which only the slow run has time
        const most = isExhaustive ? 4 : 0
        // what a collection leaves behind varies by more than this, but only what a leak leaves grows with each round
        let grown = isExhaustive ? Number.POSITIVE_INFINITY : 0
        for (let rounds = 0; rounds < most && grown >= 16; rounds++) {
          assert.deepStrictEqual(yield* round(live, requests), [])
          grown = megabytesHeld() - before
        }
        assert.isBelow(grown, 16)

        const answer = yield* post(`${live.url}/info`, `{"type":"spotMeta"}`)
        assert.strictEqual(answer.status, 200)
        assert.deepStrictEqual(live.seen(), ["api POST /info"])
      })
  )
})
