import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import { transactionAdvice } from "@trigate/domain/unstable/evm/EvmMethods"
import type { FaultyUpstream } from "@trigate/testing/FaultyUpstream"
import { faultyUpstream, idIn } from "@trigate/testing/FaultyUpstream"
import { post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import type { LeftOpen } from "@trigate/testing/Reactions"
import { leftOpen, say } from "@trigate/testing/Reactions"
import { refusingUrl } from "@trigate/testing/RecordingUpstream"
import { samplePairs } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import { askedOf, gatewayOver, isAsked, secretKey } from "./faultyGateway.ts"
import { assertFailure, result } from "./routes.ts"
import { deadline, endsAfter } from "./time.ts"

const bytes = "0x02F8aB"
const hash = `0x${"ab".repeat(32)}`
const call = (id = "1", method = "eth_sendRawTransaction"): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":[ "${bytes}" ]}`

const ok = { body: result(`"${hash}"`) }
const html: ReadonlyArray<readonly [string, string]> = [["content-type", "text/html"]]

const paths = [
  { path: "/evm", kind: "node", label: "trading-node" },
  { path: "/some-key/evm", kind: "node", label: "trading-node" },
  { path: "/l2", kind: "layer2", label: "layer2" },
  { path: "/some-key/l2", kind: "layer2", label: "layer2" },
  { path: "/some-key", kind: "layer2", label: "layer2" }
] as const

type Addresses = ReadonlyArray<FaultyUpstream | string>

const started = (kind: "node" | "layer2", addresses: Addresses) =>
  gatewayOver(kind === "node" ? { node: addresses } : { layer2: addresses })

/** What leaves open whether the transaction was taken. */
const unknown: ReadonlyArray<LeftOpen> = [
  ...leftOpen(ok),
  ["is answered with HTML", say({ headers: html, body: "<html></html>" }), false],
  ["is answered with a 503 in JSON", say({ status: 503, body: `{"error":"busy"}` }), false],
  [
    "is answered with a JSON-RPC error under HTTP 500",
    say({
      status: 500,
      body: ({ body }) => `{"jsonrpc":"2.0","id":${idIn(body)},"error":{"code":-32603,"message":"x"}}`
    }),
    false
  ],
  ["is answered under another id", say({ body: `{"jsonrpc":"2.0","id":999999,"result":"${hash}"}` }), false],
  ["is answered with a batch", say({ body: "[]" }), false],
  [
    "is answered with neither result nor error",
    say({ body: ({ body }) => `{"jsonrpc":"2.0","id":${idIn(body)}}` }),
    false
  ]
]

const methods = ["eth_sendRawTransaction", "eth_sendRawTransactionSync"]
const unknownOn = samplePairs("unknown outcomes of a raw transaction", paths, unknown)

for (const route of paths) {
  const { kind, label, path } = route
  describe(`${path}: a raw transaction`, () => {
    it.effect("is sent as it came, to the first address only", () =>
      Effect.gen(function*() {
        const first = yield* faultyUpstream(say(ok))
        const second = yield* faultyUpstream(say(ok))
        const { url } = yield* started(kind, [first, second])
        const answer = yield* post(`${url}${path}`, call("\"a\"", "eth\\u005fsendRawTransaction"))
        assert.strictEqual(answer.text, `{"jsonrpc":"2.0","id":"a","result":"${hash}"}`)
        assert.deepStrictEqual(askedOf(first, second), [1, 0])
        assert.strictEqual(first.requests[0]?.body.replace(/"id":\d+/u, `"id":0`), call("0"))
      }))

    const unknownOf = samplePairs(`methods of a raw transaction, ${path}`, methods, unknownOn(route))
    for (const method of methods) {
      for (const [what, react, takesDeadline] of unknownOf(method)) {
        it.effect(`that ${what} is sent once, and its outcome is unknown: ${method}`, () =>
          Effect.gen(function*() {
            const first = yield* faultyUpstream(react)
            const second = yield* faultyUpstream(say(ok))
            const { url } = yield* started(kind, [first, second])
            const sending = post(`${url}${path}`, call("1", method))
            const value = yield* takesDeadline ? endsAfter(deadline, sending, isAsked(first)) : sending
            const error = assertFailure("json-rpc", value, "OutcomeUnknown")
            assert.strictEqual(JsonParts.at(error, "upstream"), label)
            assert.strictEqual(JsonParts.at(error, "advice"), transactionAdvice)
            assert.deepStrictEqual(askedOf(first, second), [1, 0])
          }))
      }
    }

    it.effect("that the node refuses is refused in its own words, without the endpoint key", () =>
      Effect.gen(function*() {
        const first = yield* faultyUpstream(
          say({
            body: ({ body, path: asked }) =>
              `{"jsonrpc":"2.0","id":${idIn(body)},"error":{ "code":-32000,"message":"nonce too low at ${asked}" }}`
          })
        )
        const second = yield* faultyUpstream(say(ok))
        const { url } = yield* started(kind, [first, second])
        const answer = yield* post(`${url}${path}`, call())
        assert.notInclude(answer.text, secretKey)
        assert.match(
          answer.text,
          /^\{"jsonrpc":"2.0","id":1,"error":\{ "code":-32000,"message":"nonce too low at \/…[a-z/]*" \}\}$/u
        )
        assert.deepStrictEqual(askedOf(first, second), [1, 0])
      }))

    for (
      const [what, status, tag] of [
        ["a reached rate limit", 429, "UpstreamRateLimited"],
        ["a refusal", 403, "UpstreamForbidden"]
      ] as const
    ) {
      it.effect(`that is answered with ${what} is sent once, and was not taken`, () =>
        Effect.gen(function*() {
          const first = yield* faultyUpstream(say({ status, headers: [["retry-after", "0"]], body: "{}" }))
          const second = yield* faultyUpstream(say(ok))
          const { url } = yield* started(kind, [first, second])
          assertFailure("json-rpc", yield* post(`${url}${path}`, call()), tag)
          assert.deepStrictEqual(askedOf(first, second), [1, 0])
        }))
    }

    it.effect("that certainly was not sent goes to the next address", () =>
      Effect.gen(function*() {
        const second = yield* faultyUpstream(say(ok))
        const { url } = yield* started(kind, [yield* refusingUrl, second])
        const answer = yield* post(`${url}${path}`, call())
        assert.strictEqual(answer.text, `{"jsonrpc":"2.0","id":1,"result":"${hash}"}`)
        assert.deepStrictEqual(askedOf(second), [1])
      }))

    it.effect("that no address takes was not sent", () =>
      Effect.gen(function*() {
        const { url } = yield* started(kind, [yield* refusingUrl, yield* refusingUrl])
        const error = assertFailure("json-rpc", yield* post(`${url}${path}`, call()), "UpstreamUnavailable")
        assert.strictEqual(JsonParts.at(error, "attempts"), 2)
      }))

    it.effect("of a batch goes out by itself, once, and is not sent again where the batch is", () =>
      Effect.gen(function*() {
        const first = yield* faultyUpstream((socket, asked) =>
          (asked.body.startsWith("[") ? say({ status: 400, body: "no batches" }) : say(ok))(socket, asked)
        )
        const { url } = yield* started(kind, [first])
        const answer = yield* post(
          `${url}${path}`,
          `[${call("1", "eth_blockNumber")},${call("2")},${call("3", "eth_syncing")},${call("4")}]`
        )
        assert.deepStrictEqual(
          Json.elements(answer.text),
          [1, 2, 3, 4].map((id) => `{"jsonrpc":"2.0","id":${id},"result":"${hash}"}`)
        )
        const methods = first.requests.map(({ body }) =>
          [...body.matchAll(/"method":"(\w+)"/gu)].map(([, name]) => name)
        )
        assert.deepStrictEqual(methods.toSorted((one, other) => String(one).localeCompare(String(other))), [
          ["eth_blockNumber"],
          ["eth_blockNumber", "eth_syncing"],
          ["eth_sendRawTransaction"],
          ["eth_sendRawTransaction"],
          ["eth_syncing"]
        ])
      }))
  })
}
