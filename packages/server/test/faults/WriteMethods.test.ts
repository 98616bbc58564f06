import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import { get, post, send } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import { rpcReply } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import { sharedGateways } from "../sharedGateway.ts"

/** The methods that an EVM route takes, as JSON may spell them; they are sent once, see `RawTransaction.test.ts`. */
const taken = ["eth_sendRawTransaction", "eth\\u005fsendRawTransaction", "eth_sendRawTransactionSync"]

/** Methods that change something, in spellings that a careless table would let through. */
const others = [
  "ETH_SENDRAWTRANSACTION",
  "eth_SendRawTransaction",
  "eth_sendRawTransaction ",
  " eth_sendRawTransaction",
  "eth_sendRawTransaction\\u0000",
  "eth_sendRawTransactionSYNC",
  "eth_sendTransaction",
  "eth_sendPrivateTransaction",
  "eth_sendBundle",
  "personal_sendTransaction",
  "zks_sendRawTransactionWithDetailedOutput",
  "SENDBOC",
  "sendBoc ",
  "sendBocUnsafe",
  "sendCellSimple",
  "sendTransaction",
  "__proto__",
  "constructor"
]

const call = (method: string, id = "1"): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":["0x02f8"]}`

const paths = [
  "/evm",
  "/l2",
  "/api/v2/jsonRPC",
  "/some-key/evm",
  "/some-key/l2",
  "/some-key/api/v2/jsonRPC",
  "/some-key"
]

const tagOf = (text: string): unknown =>
  JsonParts.value(text, "error", "data", "_tag") ?? JsonParts.value(text, "data", "_tag")

const shared = sharedGateways()
const taking = rpcReply(`"0x1"`)
const started = shared({ api: taking, node: taking, tokens: taking, layer2: taking })

for (const path of paths) {
  const isTokenChain = path.endsWith("/jsonRPC")
  const methods = isTokenChain
    ? [...taken, ...others]
    : [...others, "sendBoc", "sendBocReturnHash", "sendBocReturnHashNoError", "sendQuery", "sendQuerySimple"]
  describe(`${path}: a method that changes something`, () => {
    it.live("is refused in every spelling, and nothing is sent", () =>
      Effect.gen(function*() {
        const { seen, url } = yield* started
        for (const method of methods) {
          const answer = yield* post(`${url}${path}`, call(method))
          assert.strictEqual(answer.status, 200, method)
          assert.strictEqual(tagOf(answer.text), "UnsupportedMethod", method)
        }
        assert.deepStrictEqual(seen(), [])
      }))

    it.live("is refused in a batch in every spelling, and nothing is sent", () =>
      Effect.gen(function*() {
        const { seen, url } = yield* started
        const answer = yield* post(`${url}${path}`, `[${methods.map((method, id) => call(method, `${id}`)).join(",")}]`)
        const items = Json.elements(answer.text) ?? []
        assert.deepStrictEqual(items.map(tagOf), methods.map(() => "UnsupportedMethod"))
        assert.deepStrictEqual(seen(), [])
      }))

    it.live("is not sent as a notification, twice in one object, by GET, or by another verb", () =>
      Effect.gen(function*() {
        const { seen, url } = yield* started
        // the token chain knows no notifications
        const [method = ""] = isTokenChain ? others : taken
        yield* post(`${url}${path}`, `{"jsonrpc":"2.0","method":"${method}","params":["0x02f8"]}`)
        yield* post(
          `${url}${path}`,
          `{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","method":"${method}","params":["0x02f8"]}`
        )
        yield* get(`${url}${path}?method=${method}&params=${encodeURIComponent(`["0x02f8"]`)}&id=1&jsonrpc=2.0`)
        for (const verb of ["PUT", "PATCH", "DELETE"]) {
          yield* send(`${url}${path}`, { method: verb, body: call(method) })
        }
        assert.deepStrictEqual(seen(), [])
      }))
  })
}
