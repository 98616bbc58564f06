import { assert, describe, it } from "@effect/vitest"
import { gateway } from "@trigate/testing/Gateway"
import * as Effect from "effect/Effect"
import type { FuzzAnswer, Missing } from "./connection.ts"
import { Connection, send } from "./connection.ts"
import * as Corpus from "./corpus.ts"
import { generator } from "./generate.ts"
import { complaintOf, secrets } from "./judge.ts"
import { upstreams } from "./plan.ts"
import type { FuzzRequest, Target } from "./request.ts"
import { bytesOf, minimised } from "./request.ts"

const now = 1_767_323_045_000

const request: FuzzRequest = {
  method: "POST",
  target: "/l2",
  headers: [["host", "localhost"], ["content-type", "application/json"], ["x-a", "b"]],
  body: new TextEncoder().encode("[1,2,3,4,5,6,7,8,9]"),
  framing: "length"
}

const answer = (status: number, type: string, body: string, more: Record<string, string> = {}): FuzzAnswer => ({
  head: "",
  status,
  headers: new Map(Object.entries({
    "content-type": type,
    "x-request-id": "1",
    "x-content-type-options": "nosniff",
    ...more
  })),
  body: Buffer.from(body)
})

const problem = (status: number, more: object = {}) =>
  answer(
    status,
    "application/problem+json",
    JSON.stringify({ type: "about:blank", title: "No", status, detail: "", ...more })
  )

const unavailable = { _tag: "UpstreamUnavailable", upstream: "layer2" }
const rpc = (value: unknown) => answer(200, "application/json", JSON.stringify(value))
const rpcError = (data: object) => rpc({ jsonrpc: "2.0", id: 1, error: { code: -32603, message: "no", data } })

const verdicts: ReadonlyArray<readonly [answer: FuzzAnswer | Missing, target: Target, complaint: string | undefined]> =
  [
    [rpc({ jsonrpc: "2.0", id: 1, result: null }), "sandbox", undefined],
    [problem(400), "sandbox", undefined],
    [answer(204, "", ""), "sandbox", undefined],
    ["closed", "sandbox", "an answer that is closed"],
    ["silent", "upstreams", "an answer that is silent"],
    [problem(500), "upstreams", "HTTP 500"],
    [answer(500, "text/plain", "null"), "upstreams", undefined],
    [answer(500, "application/json", "null"), "sandbox", "HTTP 500"],
    [problem(503, unavailable), "upstreams", "UpstreamUnavailable that nothing upstream explains"],
    [problem(503, { ...unavailable, upstream: "trading-api" }), "upstreams", undefined],
    [
      problem(503, { ...unavailable, upstream: "trading-api" }),
      "sandbox",
      "UpstreamUnavailable that nothing upstream explains"
    ],
    [rpcError({ ...unavailable, status: 503 }), "upstreams", "UpstreamUnavailable that nothing upstream explains"],
    [rpcError({ ...unavailable, _tag: "InvalidRequest", status: 400 }), "upstreams", undefined],
    [rpc({ id: 1, result: null }), "sandbox", "a JSON-RPC answer that is none"],
    [rpc([{ jsonrpc: "2.0", id: 1, result: 1 }, 2]), "sandbox", "a JSON-RPC answer that is none"],
    [answer(400, "application/problem+json", "{}"), "sandbox", "a problem document that is none"],
    [problem(400, { status: 401 }), "sandbox", "a problem with another status than its answer"],
    [answer(200, "text/html", "<p>"), "sandbox", "HTML"],
    [answer(404, "", ""), "sandbox", "an empty answer"],
    [answer(200, "image/png", "x"), "sandbox", "an answer of type image/png"],
    [problem(400, { detail: secrets.layer2 }), "upstreams", "an endpoint key"],
    [problem(400, { detail: "at x (a/node_modules/b.js)" }), "sandbox", "a stack"],
    [answer(204, "", "", { "x-injected": "1" }), "sandbox", "a header of the caller's making"],
    [answer(204, "", "", { "x-content-type-options": "" }), "sandbox", "an answer without nosniff"]
  ]

describe("the fuzzer", () => {
  it("makes the same requests from the same seed, and others from another", () => {
    const [one, same, other] = [generator(1, now, bytesOf), generator(1, now, bytesOf), generator(2, now, bytesOf)]
    const indices = Array.from({ length: 300 }, (_, index) => index)
    assert.deepStrictEqual(indices.map(one), indices.map(same))
    assert.notDeepEqual(indices.map(one), indices.map(other))
  })

  it("judges answers", () => {
    for (const [given, target, complaint] of verdicts) {
      assert.strictEqual(complaintOf(request, given, target), complaint, JSON.stringify(given))
    }
    // bytes that are no HTTP need no answer
    assert.isUndefined(complaintOf({ ...request, raw: request.body }, "closed", "sandbox"))
  })

  it("makes a request as small as it can be", () =>
    Effect.runPromise(Effect.promise(async () => {
      const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes)
      const smallest = await minimised(request, ({ body }) => Promise.resolve(text(body).includes("5")))
      assert.deepStrictEqual([text(smallest.body), smallest.target, smallest.headers.length], ["5", "/", 1])
    })))

  it.live("gets a right answer to each request of the corpus, and to a hundred others", () =>
    Effect.gen(function*() {
      const plan = yield* upstreams(1)
      const gateways = { sandbox: yield* gateway({}), upstreams: yield* gateway(plan.environment) }
      const complaints = (target: Target, requests: ReadonlyArray<FuzzRequest>) =>
        Effect.promise(async () => {
          const connection = new Connection(gateways[target].url)
          const answers = await send(connection, ...requests)
          connection.close()
          return answers.flatMap(([asked, answer]) => complaintOf(asked, answer, target) ?? [])
        })
      for (const { requests, target } of Corpus.read()) {
        assert.deepStrictEqual(yield* complaints(target, requests), [], JSON.stringify(requests))
      }
      const make = generator(7, Date.now(), bytesOf)
      for (let index = 0; index < 100; index++) {
        const request = make(index)
        assert.deepStrictEqual(
          yield* complaints("sandbox", [request]),
          [],
          Buffer.from(bytesOf(request)).toString("latin1")
        )
      }
    }))
})
