import { assert, describe, it } from "@effect/vitest"
import { post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Recordings from "@trigate/testing/Recordings"
import type { Seen } from "@trigate/testing/RecordingUpstream"
import { recordingUpstream, rpcFailure, rpcId, rpcReply } from "@trigate/testing/RecordingUpstream"
import { sample } from "@trigate/testing/Sample"
import * as Effect from "effect/Effect"
import type { LiveGateway } from "./liveGateway.ts"
import { liveGateway, upstreamKeys } from "./liveGateway.ts"
import { sharedGateways } from "./sharedGateway.ts"

const shared = sharedGateways()

const nodePath = `node POST /${upstreamKeys.node}/evm`
const layer2Path = `layer2 POST /${upstreamKeys.layer2}`
const hash = `0x${"ab".repeat(32)}`
const receiptCall = (id: string, of = hash) =>
  `{"jsonrpc":"2.0","id":${id},"method":"eth_getTransactionReceipt","params":["${of}"]}`

/** The envelopes that reached an upstream, their ids blanked out: those are the gateway's own. */
const sent = (upstream: LiveGateway["node"]): ReadonlyArray<string> =>
  upstream.seen.map(({ body }) => body.replace(/"id":\d+/u, `"id":0`))

describe("a recorded receipt", () => {
  const receipts = ["l2-op-stack.json", "l2-zksync.json", "l2-arbitrum.json"].flatMap((family) =>
    JsonParts.rows(Recordings.text(family), ["receipts"]).map((row, index) => ({ family, row, index }))
  )
  // a gateway of its own: after a receipt, a gateway asks which block is final
  for (const { family, index, row } of sample("recorded receipts", receipts, 6, (receipt) => receipt.family)) {
    it.live(`comes back with its own text: ${family} ${index}`, () =>
      Effect.gen(function*() {
        const result = JsonParts.raw(row, ["response", "result"])
        const params = JsonParts.raw(row, ["request", "params"])
        const live = yield* liveGateway({ layer2: rpcReply(result) })
        const answer = yield* post(
          `${live.url}/l2`,
          `{"jsonrpc":"2.0","id":1,"method":"eth_getTransactionReceipt","params":${params}}`
        )
        assert.strictEqual(answer.status, 200)
        assert.strictEqual(answer.type, "application/json")
        assert.strictEqual(answer.text, `{"jsonrpc":"2.0","id":1,"result":${result}}`)
        assert.deepStrictEqual(live.seen(), [layer2Path])
        assert.deepStrictEqual(sent(live.layer2), [
          `{"jsonrpc":"2.0","id":0,"method":"eth_getTransactionReceipt","params":${params}}`
        ])
      }))
  }

  // only calls that this route takes and a node can answer; the others of the session are refused before
  const session = JsonParts.rows(Recordings.text("l2-anvil.json"), ["records"]).filter((row) => {
    const hash = JsonParts.value(row, "request", "params", 0)
    return JsonParts.value(row, "request", "method") === "eth_getTransactionReceipt" &&
      /^0x[0-9a-fA-F]{64}$/u.test(String(hash))
  })

  it("is told from a session of a local node", () => {
    assert.strictEqual(session.length, 8)
  })

  for (const row of sample("receipts of a session", session, 3)) {
    it.live(`comes back with its own text: ${String(JsonParts.value(row, "name"))}`, () =>
      Effect.gen(function*() {
        const result = JsonParts.raw(row, ["body", "result"])
        const live = yield* liveGateway({ layer2: rpcReply(result) })
        const answer = yield* post(`${live.url}/l2`, JsonParts.raw(row, ["request"]))
        assert.strictEqual(answer.text, `{"jsonrpc":"2.0","id":1,"result":${result}}`)
        assert.deepStrictEqual(live.seen(), [layer2Path])
      }))
  }
})

describe("a sample of HyperEVM", () => {
  for (const row of JsonParts.rows(Recordings.text("evm-rpc-samples.json"), ["samples"])) {
    const id = String(JsonParts.value(row, "id"))
    if (id === "bad-block") continue
    it.live(`comes back as the node answered it: ${id}`, () =>
      Effect.gen(function*() {
        const failed = JsonParts.value(row, "response", "error") !== undefined
        const outcome = JsonParts.raw(row, ["response", failed ? "error" : "result"])
        const live = yield* liveGateway({ node: (failed ? rpcFailure : rpcReply)(outcome) })
        const answer = yield* post(`${live.url}/evm`, JsonParts.raw(row, ["request"]))
        assert.strictEqual(answer.status, 200)
        assert.strictEqual(answer.text, `{"jsonrpc":"2.0","id":1,"${failed ? "error" : "result"}":${outcome}}`)
        assert.deepStrictEqual(live.seen(), [nodePath])
      }))
  }
})

describe("an id", () => {
  const ids = [
    `"abc"`,
    `""`,
    `"\\u0061\\"\\ud83d\\ude00"`,
    "0",
    "-7",
    "12345678901234567890123",
    "1.50",
    "-0.25",
    "1e2",
    "null"
  ]
  for (const id of ids) {
    it.live(`goes back as it came: ${id}`, () =>
      Effect.gen(function*() {
        const live = yield* shared({ layer2: rpcReply("null"), node: rpcReply(`"0x1"`) })
        const one = yield* post(`${live.url}/l2`, receiptCall(id))
        assert.strictEqual(one.text, `{"jsonrpc":"2.0","id":${id},"result":null}`)
        const other = yield* post(
          `${live.url}/evm`,
          `{ "params" : ["0x0123456789abcdef0123456789abcdef01234567"], "id" : ${id} , "jsonrpc":"2.0","method":"eth_usingBigBlocks"}`
        )
        assert.strictEqual(other.text, `{"jsonrpc":"2.0","id":${id},"result":"0x1"}`)
        const refused = yield* post(`${live.url}/evm`, `{"jsonrpc":"2.0","id":${id},"method":"eth_noSuchMethod"}`)
        assert.isTrue(refused.text.startsWith(`{"jsonrpc":"2.0","id":${id},"error":{"code":-32601,`), refused.text)
        assert.deepStrictEqual(live.seen(), [nodePath, layer2Path])
      }))
  }

  it.live("of a call that cannot be told is null", () =>
    Effect.gen(function*() {
      const live = yield* shared()
      for (const id of ["{}", "[1]", "true"]) {
        const answer = yield* post(`${live.url}/l2`, receiptCall(id))
        assert.isTrue(answer.text.startsWith(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`), answer.text)
      }
      assert.deepStrictEqual(live.seen(), [])
    }))
})

describe("a batch", () => {
  const hashes = Array.from({ length: 20 }, (_, index) => `0x${index.toString(16).padStart(64, "0")}`)
  const asked = (request: Seen): string => /0x[0-9a-f]{64}/u.exec(request.body)?.[0] ?? ""

  it.live("is answered in its order, each call under its id, whatever the order of the upstream", () =>
    Effect.gen(function*() {
      const live = yield* shared({
        layer2: (request) => {
          const calls = JsonParts.rows(`{"all":${request.body}}`, ["all"])
          const answers = calls.map((body) => rpcReply(`"${asked({ ...request, body })}"`)({ ...request, body }).body)
          return { body: `[${answers.toReversed().join(",")}]` }
        }
      })
      const ids = hashes.map((_, index) => index % 2 === 0 ? `${100 - index}` : `"n${index}"`)
      const answer = yield* post(
        `${live.url}/l2`,
        `[ ${hashes.map((of, index) => receiptCall(ids[index] ?? "", of)).join(" ,\n")} ]`
      )
      assert.strictEqual(
        answer.text,
        `[${hashes.map((of, index) => `{"jsonrpc":"2.0","id":${ids[index]},"result":"${of}"}`).join(",")}]`
      )
      assert.deepStrictEqual(live.seen(), [layer2Path])
    }))

  it.live("of as many calls as viem puts together goes out in batches that providers take", () =>
    Effect.gen(function*() {
      const sizes: Array<number> = []
      const live = yield* shared({
        layer2: (request) => {
          const calls = JsonParts.rows(`{"all":${request.body}}`, ["all"])
          sizes.push(calls.length)
          const answers = calls.map((body) => rpcReply(`"${asked({ ...request, body })}"`)({ ...request, body }).body)
          return { body: `[${answers.join(",")}]` }
        }
      }, { TRIGATE_BATCH_LIMIT: "1000" })
      const count = 1_000
      const all = Array.from({ length: count }, (_, index) => `0x${index.toString(16).padStart(64, "0")}`)
      const filter = (of: string) =>
        `[{"fromBlock":"0x1","toBlock":"0x2","address":["${of.slice(0, 42)}"],"topics":["${of}",null,["${of}"]]}]`
      const call = (of: string, index: number) =>
        `{"jsonrpc":"2.0","id":${index},"method":"eth_getLogs","params":${filter(of)}}`
      const answer = yield* post(`${live.url}/l2`, `[${all.map(call).join(",")}]`)
      assert.strictEqual(
        answer.text,
        `[${all.map((of, id) => `{"jsonrpc":"2.0","id":${id},"result":"${of}"}`).join(",")}]`
      )
      assert.deepStrictEqual(sizes, Array.from({ length: 10 }, () => 100))
    }))

  it.live("is asked call by call of a node that takes none, and keeps the failure of a call to that call", () =>
    Effect.gen(function*() {
      const [good, wrong, failed, broken] = hashes
      const live = yield* shared({
        layer2: (request) => {
          if (request.body.startsWith("[")) return { status: 400, type: "text/plain", body: "no batches here" }
          const of = asked(request)
          if (of === wrong) return { body: `{"jsonrpc":"2.0","id":999999,"result":"0x0"}` }
          if (of === failed) {
            return rpcFailure(`{"code":-32000, "message":"header not found","data":{"n":9007199254740993}}`)(request)
          }
          if (of === broken) return "hang-up"
          return rpcReply("null")(request)
        }
      })
      const answer = yield* post(
        `${live.url}/l2`,
        `[${receiptCall("1", good)},${receiptCall("2", wrong)},${receiptCall("3", failed)},${
          receiptCall("4", broken)
        },` +
          `{"jsonrpc":"2.0","id":5,"method":"debug_traceTransaction"},` +
          `{"jsonrpc":"2.0","method":"eth_getTransactionReceipt","params":["${good}"]},7]`
      )
      assert.strictEqual(answer.status, 200)
      const rows = JsonParts.rows(`{"all":${answer.text}}`, ["all"])
      assert.strictEqual(rows.length, 6)
      assert.strictEqual(rows[0], `{"jsonrpc":"2.0","id":1,"result":null}`)
      assert.strictEqual(
        rows[2],
        `{"jsonrpc":"2.0","id":3,"error":{"code":-32000, "message":"header not found","data":{"n":9007199254740993}}}`
      )
      const errors = [rows[1], rows[3], rows[4], rows[5]].map((row) => {
        const answered: unknown = JSON.parse(row ?? "")
        return [
          JsonParts.at(answered, "id"),
          JsonParts.at(answered, "error", "code"),
          JsonParts.at(answered, "error", "data", "_tag")
        ]
      })
      assert.deepStrictEqual(errors, [
        [2, -32603, "UpstreamMalformed"],
        [4, -32603, "UpstreamUnavailable"],
        [5, -32601, "UnsupportedMethod"],
        [null, -32600, "InvalidRequest"]
      ])
      // the batch, its four calls, and the one that was hung up on twice more
      assert.strictEqual(live.layer2.seen.length, 7)
    }))

  it.live("of notifications only is answered with nothing and relayed to nobody", () =>
    Effect.gen(function*() {
      const live = yield* shared()
      const call = `{"jsonrpc":"2.0","method":"eth_gasPrice","params":[]}`
      for (const body of [call, `[${call},${call}]`]) {
        const answer = yield* post(`${live.url}/evm`, body)
        assert.strictEqual(answer.status, 204)
        assert.strictEqual(answer.text, "")
      }
      assert.deepStrictEqual(live.seen(), [])
    }))

  it.live("of no call is one error, and nothing is sent", () =>
    Effect.gen(function*() {
      const live = yield* shared()
      const answer = yield* post(`${live.url}/l2`, "[]")
      assert.match(
        answer.text,
        /^\{"jsonrpc":"2.0","id":null,"error":\{"code":-32600,"message":"[^"]*at least one call/u
      )
      assert.deepStrictEqual(live.seen(), [])
    }))
})

describe("a batch of more calls than the gateway takes", () => {
  const problem = (limit: string) =>
    `"data":{"detail":"the request: A batch has at most ${limit}","_tag":"InvalidRequest",` +
    `"errors":[{"path":[],"message":"A batch has at most ${limit}"}],` +
    `"type":"urn:trigate:problem:invalid-request","status":400,"title":"Invalid request"}`
  const rpcError = (limit: string) => (id: string) =>
    `{"jsonrpc":"2.0","id":${id},"error":{"code":-32600,"message":"the request: A batch has at most ${limit}",${
      problem(limit)
    }}}`
  const tokenError = (limit: string) => (id: string) =>
    `{"ok":false,"error":"the request: A batch has at most ${limit}","code":-32602,${
      problem(limit)
    },"jsonrpc":"2.0","id":${id}}`
  const ids = (size: number) => Array.from({ length: size }, (_, index) => index % 2 === 0 ? `${index}` : `"${index}"`)
  const batchOf = (calls: ReadonlyArray<string>) => `[${calls.join(",")}]`

  const refused = [
    ["/l2", 101, {}, rpcError("100 calls")],
    ["/evm", 101, {}, rpcError("100 calls")],
    ["/l2", 1_001, { TRIGATE_BATCH_LIMIT: "1000" }, rpcError("1000 calls")],
    ["/l2", 2, { TRIGATE_BATCH_LIMIT: "1" }, rpcError("1 call")],
    ["/api/v2/jsonRPC", 101, { TRIGATE_BATCH_LIMIT: "1000" }, tokenError("100 calls")]
  ] as const
  for (const [route, size, environment, error] of refused) {
    it.live(`is an error for each id, in their order, and nothing is sent: ${size} to ${route}`, () =>
      Effect.gen(function*() {
        const live = yield* shared({}, environment)
        const answer = yield* post(`${live.url}${route}`, batchOf(ids(size).map((id) => receiptCall(id))))
        assert.strictEqual(answer.status, 200)
        assert.strictEqual(answer.text, batchOf(ids(size).map(error)))
        assert.deepStrictEqual(live.seen(), [])
      }))
  }

  it.live("is told so also where its calls have more values than are read", () =>
    Effect.gen(function*() {
      const live = yield* shared()
      const answer = yield* post(`${live.url}/evm`, batchOf(ids(5_000).map((id) => receiptCall(id))))
      assert.isTrue(answer.text === batchOf(ids(5_000).map(rpcError("100 calls"))))
    }))

  it.live("has no answer to a call without an id, and keeps an id as it came", () =>
    Effect.gen(function*() {
      const live = yield* shared({}, { TRIGATE_BATCH_LIMIT: "1" })
      const call = `{"jsonrpc":"2.0","method":"eth_gasPrice","params":[]}`
      const answer = yield* post(`${live.url}/evm`, `[${call},7,{"id":{"a":1}},{ "id" : 123456789012345678901 }]`)
      assert.strictEqual(answer.text, batchOf([rpcError("1 call")("123456789012345678901")]))
      const none = yield* post(`${live.url}/evm`, `[${call},${call}]`)
      assert.strictEqual(none.text, rpcError("1 call")("null"))
    }))

  it.live("is one error where an error for each id would be too long", () =>
    Effect.gen(function*() {
      const live = yield* shared()
      const answer = yield* post(`${live.url}/evm`, batchOf(Array.from({ length: 50_000 }, () => `{"id":1}`)))
      assert.strictEqual(answer.text, rpcError("100 calls")("null"))
    }))
})

describe("an upstream's own words", () => {
  const answers: ReadonlyArray<readonly [what: string, reply: (request: Seen) => { status: number; body: string }]> = [
    ["an error under HTTP 400", (request) => ({
      status: 400,
      body: `{"id":${rpcId(request)},"jsonrpc":"2.0","error":{ "message":"invalid argument 0","code":-32602 }}`
    })],
    ["an error with a null id", () => ({
      status: 200,
      body: `{"id":null,"jsonrpc":"2.0","error":{ "message":"invalid argument 0","code":-32602 }}`
    })],
    ["members that nobody documents", (request) => ({
      status: 200,
      body: `{"node":"a","error":{ "message":"invalid argument 0","code":-32602 },"id":${
        rpcId(request)
      },"jsonrpc":"2.0"}`
    })]
  ]
  for (const [what, reply] of answers) {
    it.live(`are passed on: ${what}`, () =>
      Effect.gen(function*() {
        const live = yield* shared({ layer2: reply })
        const answer = yield* post(`${live.url}/l2`, receiptCall("5"))
        assert.strictEqual(answer.status, 200)
        assert.strictEqual(
          answer.text,
          `{"jsonrpc":"2.0","id":5,"error":{ "message":"invalid argument 0","code":-32602 }}`
        )
      }))
  }

  it.live("lose the endpoint key that they quote", () =>
    Effect.gen(function*() {
      const live = yield* shared({
        layer2: (request) => ({ status: 404, type: "text/plain", body: `no such path ${request.path}` })
      })
      const answer = yield* post(`${live.url}/l2`, receiptCall("5"))
      assert.notInclude(answer.text, upstreamKeys.layer2)
      assert.include(answer.text, "no such path /…")
    }))

  it.live("lose the endpoint key that they quote in a JSON-RPC error under HTTP 200", () =>
    Effect.gen(function*() {
      const live = yield* shared({
        layer2: (request) => rpcFailure(`{"code":-32000,"message":"no upstream for ${request.path}"}`)(request)
      })
      const answer = yield* post(`${live.url}/l2`, receiptCall("5"))
      assert.strictEqual(
        answer.text,
        `{"jsonrpc":"2.0","id":5,"error":{"code":-32000,"message":"no upstream for /…"}}`
      )
    }))

  it.live("keep in a result a word of the upstream's address: a result is data", () =>
    Effect.gen(function*() {
      const result = `{"note":"hyperliquid"}`
      const node = yield* recordingUpstream(rpcReply(result))
      const live = yield* shared({}, { TRIGATE_LAYER2_URL: `${node.url}/hyperliquid/${upstreamKeys.layer2}` })
      const answer = yield* post(`${live.url}/l2`, receiptCall("5"))
      assert.strictEqual(answer.text, `{"jsonrpc":"2.0","id":5,"result":${result}}`)
    }))
})
