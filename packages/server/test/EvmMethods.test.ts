import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import { evmMethods } from "@trigate/domain/evm/EvmProtocol"
import { layer2Methods } from "@trigate/domain/evm/Layer2Operations"
import { families, filterMethods } from "@trigate/domain/unstable/evm/EvmMethods"
import { post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import { rpcReply } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import type { LiveGateway } from "./liveGateway.ts"
import { upstreamKeys } from "./liveGateway.ts"
import { sharedGateways } from "./sharedGateway.ts"

const shared = sharedGateways()

interface Path {
  readonly path: string
  readonly upstream: "node" | "layer2"
  readonly upstreamPath: string
}

const evmPaths: ReadonlyArray<Path> = ["/evm", "/caller-key-1/evm"].map((path) => ({
  path,
  upstream: "node",
  upstreamPath: `/${upstreamKeys.node}/evm`
}))
const layer2Paths: ReadonlyArray<Path> = ["/l2", "/caller-key-1/l2", "/caller-key-1"].map((path) => ({
  path,
  upstream: "layer2",
  upstreamPath: `/${upstreamKeys.layer2}`
}))

const relayedNames = (methods: typeof evmMethods) =>
  methods.flatMap(({ name, verbatim }) => verbatim === true && !Object.hasOwn(filterMethods, name) ? [name] : [])

const call = (method: string, params: string, id = "7"): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`

/** The envelopes that reached an upstream, their ids blanked out: those are the gateway's own. */
const sent = (upstream: LiveGateway["node"]): ReadonlyArray<string> =>
  upstream.seen.map(({ body }) => body.replaceAll(/"id":\d+/gu, `"id":0`))

const answer = `{ "big":123456789012345678901234567890, "n":1.50, "odd\\u0041":[null] }`
const params = `[ {"to" : "0xAb", "n":123456789012345678901234567890} ,"latest"]`

for (const { path, upstream, upstreamPath } of [...evmPaths, ...layer2Paths]) {
  describe(`${path}: a method that is relayed as it is`, () => {
    it.live("goes out with its own params and comes back with the node's own text", () =>
      Effect.gen(function*() {
        const live = yield* shared({ node: rpcReply(answer), layer2: rpcReply(answer) })
        const names = relayedNames(path.endsWith("evm") ? evmMethods : layer2Methods)
        assert.isAtLeast(names.length, 35)
        for (const name of names) {
          const said = yield* post(`${live.url}${path}`, call(name, name === "eth_getProof" ? `["0xAb",[]]` : params))
          assert.strictEqual(said.status, 200)
          assert.strictEqual(said.text, `{"jsonrpc":"2.0","id":7,"result":${answer}}`)
        }
        const seen = live[upstream].seen
        assert.deepStrictEqual(
          sent(live[upstream]),
          names.map((name) => call(name, name === "eth_getProof" ? `["0xAb",[]]` : params, "0"))
        )
        assert.deepStrictEqual([...new Set(seen.map((each) => `${each.method} ${each.path}`))], [
          `POST ${upstreamPath}`
        ])
        assert.strictEqual(live.seen().length, names.length)
      }))

    it.live("without params goes out with none", () =>
      Effect.gen(function*() {
        const live = yield* shared({ node: rpcReply(`"0x3e7"`), layer2: rpcReply(`"0x3e7"`) })
        yield* post(`${live.url}${path}`, `{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}`)
        assert.deepStrictEqual(sent(live[upstream]), [call("eth_chainId", "[]", "0")])
      }))

    it.live("is never kept", () =>
      Effect.gen(function*() {
        const live = yield* shared({ node: rpcReply(`"0x1"`), layer2: rpcReply(`"0x1"`) })
        for (const _ of [1, 2, 3]) yield* post(`${live.url}${path}`, call("eth_blockNumber", "[]"))
        assert.strictEqual(live[upstream].seen.length, 3)
      }))

    it.live("is refused with params that are no list, or too long a one", () =>
      Effect.gen(function*() {
        const live = yield* shared()
        for (const bad of [`{"to":"0x"}`, `[{},"latest",3,4,5]`]) {
          const said = yield* post(`${live.url}${path}`, call("eth_call", bad))
          assert.strictEqual(JsonParts.value(said.text, "error", "code"), -32602)
          assert.strictEqual(JsonParts.value(said.text, "error", "data", "_tag"), "InvalidRequest")
        }
        assert.deepStrictEqual(live.seen(), [])
      }))

    it.live("is told by its exact name", () =>
      Effect.gen(function*() {
        const live = yield* shared()
        const names = [
          "ETH_CALL",
          "eth_Call",
          "eth_call ",
          "eth_subscribe",
          "eth_sign",
          "debug_traceTransaction",
          "trace_block",
          "admin_peers",
          "personal_listAccounts",
          "anvil_setBalance",
          "hardhat_reset",
          "evm_mine",
          "txpool_content",
          "miner_stop",
          "engine_newPayloadV4"
        ]
        for (const name of names) {
          const said = yield* post(`${live.url}${path}`, call(name, "[]"))
          assert.strictEqual(JsonParts.value(said.text, "error", "data", "_tag"), "UnsupportedMethod", name)
          assert.strictEqual(
            JsonParts.value(said.text, "error", "message"),
            `the method ${name} does not exist on this route`
          )
        }
        assert.deepStrictEqual(live.seen(), [])
      }))
  })
}

describe("state at another block than latest", () => {
  const requests = evmMethods.flatMap(({ blockParam, name, verbatim }) =>
    blockParam === undefined || verbatim !== true ?
      [] :
      [`"0x1"`, `"pending"`, `{"blockNumber":"0x1"}`, `{"blockHash":"0x1"}`]
        .filter((block) => !blockParam.supported.some((tag) => block === `"${tag}"`))
        .map((block) => [name, `[${`"0xab",`.repeat(blockParam.position)}${block}]`] as const)
  )

  it.live("is refused by the venue's route, and nothing is sent", () =>
    Effect.gen(function*() {
      const live = yield* shared()
      assert.strictEqual(requests.length, 9 * 4 - 3)
      for (const [name, params] of requests) {
        const said = yield* post(`${live.url}/evm`, call(name, params))
        assert.strictEqual(JsonParts.value(said.text, "error", "code"), -32602)
        const error = JsonParts.value(said.text, "error", "data")
        assert.strictEqual(JsonParts.at(error, "_tag"), "UnsupportedBlock", name)
        assert.strictEqual(JsonParts.at(error, "method"), name)
      }
      assert.deepStrictEqual(live.seen(), [])
    }))

  for (const name of ["eth_getTransactionCount", "eth_estimateGas", "eth_getCode"]) {
    it.live(`is relayed where a wallet asks for it before it sends: ${name}`, () =>
      Effect.gen(function*() {
        const live = yield* shared({ node: rpcReply(`"0x7"`) })
        const said = yield* post(`${live.url}/evm`, call(name, `["0xab","pending"]`))
        assert.strictEqual(JsonParts.value(said.text, "result"), "0x7")
        assert.deepStrictEqual(sent(live.node), [call(name, `["0xab","pending"]`, "0")])
      }))
  }

  it.live("is relayed to a layer 2", () =>
    Effect.gen(function*() {
      const live = yield* shared({ layer2: rpcReply("null") })
      for (const [name, params] of requests) yield* post(`${live.url}/l2`, call(name, params))
      assert.deepStrictEqual(sent(live.layer2), requests.map(([name, params]) => call(name, params, "0")))
    }))

  it.live("is a block of its own where a method names one", () =>
    Effect.gen(function*() {
      const live = yield* shared({ node: rpcReply("null") })
      const named = [["eth_getBlockByNumber", `["0x1",false]`], [
        "eth_getLogs",
        `[{"fromBlock":"0x1","toBlock":"0x2"}]`
      ]]
      for (const [name = "", params = ""] of named) yield* post(`${live.url}/evm`, call(name, params))
      assert.deepStrictEqual(sent(live.node), named.map(([name = "", params = ""]) => call(name, params, "0")))
    }))
})

describe("calls of a batch that are relayed as they are", () => {
  it.live("go out as one batch", () =>
    Effect.gen(function*() {
      const live = yield* shared({
        node: ({ body }) => ({
          body: `[${
            (Json.elements(body) ?? []).map((each) =>
              `{"jsonrpc":"2.0","id":${/"id":(\d+)/u.exec(each)?.[1] ?? ""},"result":"0x1"}`
            ).join(",")
          }]`
        })
      })
      const said = yield* post(
        `${live.url}/evm`,
        `[${call("eth_chainId", "[]", "1")},${call("eth_blockNumber", "[]", "2")},${call("eth_mine", "[]", "3")}]`
      )
      const rows = Json.elements(said.text) ?? []
      assert.deepStrictEqual(rows.slice(0, 2), [
        `{"jsonrpc":"2.0","id":1,"result":"0x1"}`,
        `{"jsonrpc":"2.0","id":2,"result":"0x1"}`
      ])
      assert.strictEqual(JsonParts.value(rows[2] ?? "", "error", "data", "_tag"), "UnsupportedMethod")
      assert.deepStrictEqual(sent(live.node), [
        `[${call("eth_chainId", "[]", "0")},${call("eth_blockNumber", "[]", "0")}]`
      ])
    }))
})

describe("a method of the configuration", () => {
  it.live("passes through on both routes, whatever its params; a declared one stays what it is", () =>
    Effect.gen(function*() {
      const live = yield* shared({ node: rpcReply("[]"), layer2: rpcReply("[]") }, {
        TRIGATE_RELAY_METHODS: "debug_traceCall, zks_getSomething,eth_call"
      })
      const odd = `[{"to":"0x"},"0x1",{"tracer":"callTracer"},4,5]`
      for (const path of ["/evm", "/l2", "/caller-key-1/evm", "/caller-key-1"]) {
        const said = yield* post(`${live.url}${path}`, call("debug_traceCall", odd))
        assert.strictEqual(said.text, `{"jsonrpc":"2.0","id":7,"result":[]}`)
      }
      const named = yield* post(`${live.url}/l2`, call("zks_getSomething", `{"a":1}`))
      assert.strictEqual(named.text, `{"jsonrpc":"2.0","id":7,"result":[]}`)
      const state = yield* post(`${live.url}/evm`, call("eth_call", `[{},"0x1"]`))
      assert.strictEqual(JsonParts.value(state.text, "error", "data", "_tag"), "UnsupportedBlock")
      const other = yield* post(`${live.url}/evm`, call("debug_traceTransaction", "[]"))
      assert.strictEqual(JsonParts.value(other.text, "error", "data", "_tag"), "UnsupportedMethod")
      assert.deepStrictEqual(sent(live.node), [call("debug_traceCall", odd, "0"), call("debug_traceCall", odd, "0")])
      assert.deepStrictEqual(sent(live.layer2), [
        call("debug_traceCall", odd, "0"),
        call("debug_traceCall", odd, "0"),
        call("zks_getSomething", `{"a":1}`, "0")
      ])
    }))
})

describe("a family of the configuration", () => {
  const named = Object.entries(families)

  it("holds no method that sends, and none that another family has", () => {
    const names = named.flatMap(([, methods]) => Object.keys(methods))
    assert.strictEqual(names.length, 55)
    assert.strictEqual(new Set(names).size, names.length)
    assert.deepStrictEqual(names.filter((name) => /send|submit|subscri|trigger/iu.test(name)), [])
  })

  for (const [family, methods] of named) {
    it.live(`is relayed as it is, on both routes, and no method of another one: ${family}`, () =>
      Effect.gen(function*() {
        const live = yield* shared({ node: rpcReply(answer), layer2: rpcReply(answer) }, {
          TRIGATE_RELAY_METHODS: `debug_traceCall,${family}`
        })
        const names = [...Object.keys(methods), "debug_traceCall"]
        for (const name of names) {
          for (const path of ["/evm", "/caller-key-1"]) {
            const said = yield* post(`${live.url}${path}`, call(name, `[ 1.0 ]`))
            assert.strictEqual(said.text, `{"jsonrpc":"2.0","id":7,"result":${answer}}`)
          }
        }
        for (const other of named.flatMap(([name, methods]) => name === family ? [] : Object.keys(methods))) {
          const said = yield* post(`${live.url}/l2`, call(other, "[]"))
          assert.strictEqual(JsonParts.value(said.text, "error", "data", "_tag"), "UnsupportedMethod")
        }
        for (const upstream of [live.node, live.layer2]) {
          assert.deepStrictEqual(sent(upstream), names.map((name) => call(name, `[ 1.0 ]`, "0")))
        }
      }))
  }

  it.live.each(["trace_*", "trace_call"])(
    "reads the state of the venue at its latest block only: %s",
    (name) =>
      Effect.gen(function*() {
        const live = yield* shared({ node: rpcReply("[]"), layer2: rpcReply("[]") }, {
          TRIGATE_RELAY_METHODS: name
        })
        const old = call("trace_call", `[{},["trace"],"0x1"]`)
        const refused = yield* post(`${live.url}/evm`, old)
        assert.strictEqual(JsonParts.value(refused.text, "error", "data", "_tag"), "UnsupportedBlock")
        assert.deepStrictEqual(live.seen(), [])
        const relayed = yield* post(`${live.url}/l2`, old)
        assert.strictEqual(relayed.text, `{"jsonrpc":"2.0","id":7,"result":[]}`)
        assert.strictEqual(live.layer2.seen.length, 1)
      })
  )

  it.live("is none of a gateway that does not name it", () =>
    Effect.gen(function*() {
      const live = yield* shared()
      const said = yield* post(`${live.url}/l2`, call("zks_L1ChainId", "[]"))
      assert.strictEqual(JsonParts.value(said.text, "error", "data", "_tag"), "UnsupportedMethod")
      assert.deepStrictEqual(live.seen(), [])
    }))
})
