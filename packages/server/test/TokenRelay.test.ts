import { assert, describe, it } from "@effect/vitest"
import { get, post } from "@trigate/testing/Gateway"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Recordings from "@trigate/testing/Recordings"
import type { StatusReply } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import { liveGateway, upstreamKeys } from "./liveGateway.ts"
import { sharedGateways } from "./sharedGateway.ts"

const shared = sharedGateways()

const address = "EQCxE6mUtQJKFnGfaROTKOt1lZbDiiX1kCixRv7Nw2Id_sDs"
const raw = "0:b113a994b5024a16719f69139328eb759596c38a25f59028b146fecdc3621dfe"
const jusdt = "EQBynBO23ywHy_CgarY9NK9FTz0yDsG82PtcbSTQgGoXwiuA"
const documented = "EQDtFpEwcFAEcRe5mLVh2N6C0x-_hJEM7W61_JLnSF74p4q2"
const widest = "1329227995784915872903807060280344575"

/** A recorded body whose metadata URI is of a scheme that is never fetched: no test asks the internet. */
const bodyOf = (name: string): string =>
  JsonParts.raw(Recordings.text(`ton-getTokenData-${name}.json`), ["body"]).replaceAll(`"https://`, `"http://`)

const restPath = (of: string) => `tokens GET /${upstreamKeys.tokens}/api/v2/getTokenData?address=${of}`
const rpcPath = `tokens POST /${upstreamKeys.tokens}/api/v2/jsonRPC`

describe("token data", () => {
  const onchain = `"jetton_content":{"type":"onchain","data":{"name":"Wide","symbol":"WIDE","decimals":"18"}}`
  const bodies: ReadonlyArray<readonly [what: string, asked: string, body: string, token: object]> = [
    ["the recorded USDT, a number for its supply, names elsewhere", address, bodyOf("usdt"), {
      decimals: 6,
      totalSupply: "1030000002000000",
      mintable: true,
      burnable: true,
      address,
      metadata: "unresolved"
    }],
    ["the recorded jUSDT, without contract_type and admin", jusdt, bodyOf("jusdt"), {
      decimals: 6,
      totalSupply: "1256732342639",
      mintable: true,
      burnable: true,
      address: jusdt,
      metadata: "unresolved"
    }],
    ["the documented example, a string for its supply", documented, bodyOf("documented-onchain"), {
      name: "Example Jetton",
      symbol: "EJT",
      decimals: 9,
      totalSupply: "1000000000000000",
      mintable: false,
      burnable: true,
      address: documented,
      metadata: "onchain"
    }],
    [
      "a number above 2^53",
      address,
      `{"ok":true,"result":{"total_supply": 9007199254740993 ,"mintable":false,${onchain},"contract_type":"jetton_master"}}`,
      {
        name: "Wide",
        symbol: "WIDE",
        decimals: 18,
        totalSupply: "9007199254740993",
        mintable: false,
        burnable: true,
        address,
        metadata: "onchain"
      }
    ],
    [
      "the newer servers' dialect, a supply of 120 bits, the raw address",
      address,
      `{"ok":true,"result":{"@type":"ext.tokens.jettonMasterData","address":"${raw.toUpperCase()}",` +
      `"contract_type":"jetton_master","total_supply":"${widest}","mintable":true,${onchain}},"@extra":"1:0:2"}`,
      {
        name: "Wide",
        symbol: "WIDE",
        decimals: 18,
        totalSupply: widest,
        mintable: true,
        burnable: true,
        address,
        metadata: "onchain"
      }
    ],
    [
      "the documents' flat resource",
      address,
      `{"name":"Tether USD","symbol":"USD₮","decimals":6,"totalSupply":18446744073709551617,"mintable":true,"burnable":false}`,
      {
        name: "Tether USD",
        symbol: "USD₮",
        decimals: 6,
        totalSupply: "18446744073709551617",
        mintable: true,
        burnable: false,
        address,
        metadata: "offchain"
      }
    ]
  ]
  for (const [what, asked, body, token] of bodies) {
    it.live(`is mapped field for field: ${what}`, () =>
      Effect.gen(function*() {
        const live = yield* liveGateway({ tokens: () => ({ body }) })
        const answer = yield* get(`${live.url}/api/v2/getTokenData?address=${asked}`)
        assert.strictEqual(answer.status, 200)
        assert.strictEqual(answer.type, "application/json")
        assert.deepStrictEqual(answer.json, token)
        assert.deepStrictEqual(live.seen(), [restPath(asked)])
      }))
  }

  it.live("takes an address with a plus sign, which servers would read as a space", () =>
    Effect.gen(function*() {
      const live = yield* shared({ tokens: () => ({ body: bodyOf("usdt") }) })
      const base64 = address.replaceAll("-", "+").replaceAll("_", "/")
      const answer = yield* get(`${live.url}/api/v2/getTokenData?address=${encodeURIComponent(base64)}`)
      assert.strictEqual(answer.status, 200)
      assert.include(answer.json, { address })
      assert.deepStrictEqual(live.seen(), [restPath(encodeURIComponent(base64))])
    }))

  for (
    const [what, query] of [["no address", ""], ["an empty one", "?address="], [
      "two",
      `?address=${address}&address=${raw}`
    ]]
  ) {
    it.live(`with ${what} is refused before anything is sent`, () =>
      Effect.gen(function*() {
        const live = yield* shared()
        const answer = yield* get(`${live.url}/api/v2/getTokenData${query}`)
        assert.strictEqual(answer.status, 400)
        assert.strictEqual(answer.type, "application/problem+json")
        assert.deepStrictEqual(live.seen(), [])
      }))
  }

  it.live("of other kinds of contract is TokenNotFound with the kind", () =>
    Effect.gen(function*() {
      const live = yield* liveGateway({ tokens: () => ({ body: bodyOf("nft-item") }) })
      const answer = yield* get(`${live.url}/api/v2/getTokenData?address=${address}`)
      assert.strictEqual(answer.status, 404)
      assert.include(answer.json, { _tag: "TokenNotFound", contractType: "nft_item", address })
    }))
})

describe("the token chain's JSON-RPC", () => {
  const call = (id: string, method = "getAddressBalance") =>
    `{"jsonrpc":"2.0",${id === "" ? "" : `"id":${id},`}"method":"${method}","params":{"address":"${address}"}}`

  for (const id of [`"1"`, "1", "12345678901234567890", "-1", "1.50", "null", `"getblock.io"`, ""]) {
    it.live(`answers under the caller's own id: ${id === "" ? "none" : id}`, () =>
      Effect.gen(function*() {
        const live = yield* shared({
          tokens: () => ({ body: `{"ok":true,"result":"1400","@extra":"1791:0:0.3","id":"other","jsonrpc":"2.0"}` })
        })
        const answer = yield* post(`${live.url}/api/v2/jsonRPC`, call(id))
        assert.strictEqual(answer.status, 200)
        assert.strictEqual(answer.type, "application/json")
        assert.strictEqual(
          answer.text,
          `{"ok":true,"result":"1400","@extra":"1791:0:0.3","jsonrpc":"2.0"${id === "" ? "" : `,"id":${id}`}}`
        )
        assert.deepStrictEqual(live.seen(), [rpcPath])
        assert.deepStrictEqual(live.tokens.seen.map(({ body }) => body), [
          `{"jsonrpc":"2.0","id":1,"method":"getAddressBalance","params":{"address":"${address}"}}`
        ])
      }))
  }

  const requests = JsonParts.rows(Recordings.text("ton-client-requests.json"), ["requests"])
  requests.forEach((row, index) => {
    it.live(`takes what stock clients send (${index}) and keeps the result's own text`, () =>
      Effect.gen(function*() {
        const result = `{ "last":{"seqno":9007199254740993},"b" : [ ] }`
        const live = yield* shared({ tokens: () => ({ body: `{"ok": true, "result": ${result}}` }) })
        const body = JsonParts.raw(row, ["body"])
        const answer = yield* post(`${live.url}/api/v2/jsonRPC`, body)
        assert.strictEqual(answer.status, 200)
        assert.strictEqual(
          answer.text,
          `{"ok":true,"result":${result},"jsonrpc":"2.0","id":${JsonParts.raw(body, ["id"])}}`
        )
        const method = JsonParts.raw(body, ["method"])
        assert.deepStrictEqual(live.tokens.seen.map((seen) => seen.body), [
          `{"jsonrpc":"2.0","id":1,"method":${method},"params":${JsonParts.raw(body, ["params"])}}`
        ])
      }))
  })

  const failures: ReadonlyArray<readonly [what: string, reply: StatusReply, answer: string]> = [
    [
      "a 429 whose text is in result",
      { status: 429, body: `{"ok":false,"result":"Ratelimit exceed","code":429}` },
      `{"ok":false,"error":"Ratelimit exceed","code":429,"jsonrpc":"2.0","id":7}`
    ],
    [
      "a 404 with an extra",
      { status: 404, body: `{"ok":false,"error":"Not Found","code":404,"@extra":"_"}` },
      `{"ok":false,"error":"Not Found","code":404,"@extra":"_","jsonrpc":"2.0","id":7}`
    ],
    [
      "a failure without a code",
      { status: 422, body: `{"ok":false,"error":"Unknown method","id":"1"}` },
      `{"ok":false,"error":"Unknown method","code":422,"jsonrpc":"2.0","id":7}`
    ],
    [
      "tonlib's error in a 200",
      { body: `{"@type":"error","code":500,"message":"LITE_SERVER_NETWORK"}` },
      `{"ok":false,"error":"LITE_SERVER_NETWORK","code":500,"jsonrpc":"2.0","id":7}`
    ],
    [
      "a page of the provider",
      { status: 403, type: "text/plain", body: "Forbidden\n" },
      `{"ok":false,"error":"Forbidden","code":403,"jsonrpc":"2.0","id":7}`
    ]
  ]
  for (const [what, reply, expected] of failures) {
    it.live(`answers a failure as stock clients read it, under HTTP 200: ${what}`, () =>
      Effect.gen(function*() {
        const live = yield* shared({ tokens: () => reply })
        const answer = yield* post(`${live.url}/api/v2/jsonRPC`, call("7"))
        assert.strictEqual(answer.status, 200)
        assert.strictEqual(answer.text, expected)
        assert.deepStrictEqual(live.seen(), [rpcPath])
      }))
  }

  it.live("writes every recorded failure with its text in error and never a result", () =>
    Effect.gen(function*() {
      const live = yield* shared()
      for (const row of JsonParts.rows(Recordings.text("ton-errors.json"), ["errors"])) {
        const body = JsonParts.value(row, "body")
        const status = Number(JsonParts.value(row, "httpStatus") ?? 200)
        live.tokens.respond = () => ({ status, body: JsonParts.raw(row, ["body"]) })
        const answer = yield* post(`${live.url}/api/v2/jsonRPC`, call("7"))
        assert.strictEqual(answer.status, 200)
        assert.include(answer.json, {
          ok: false,
          error: JsonParts.at(body, "error") ?? JsonParts.at(body, "result") ?? JsonParts.at(body, "message"),
          code: JsonParts.at(body, "code") ?? status,
          id: 7
        })
        assert.notProperty(answer.json, "result")
      }
    }))

  it.live("answers a batch in its order", () =>
    Effect.gen(function*() {
      const live = yield* shared({
        tokens: ({ body }) => ({ body: `{"ok":true,"result":"${String(JsonParts.value(body, "method"))}"}` })
      })
      const answer = yield* post(
        `${live.url}/api/v2/jsonRPC`,
        `[${call("1")},${call(`"b"`, "getAddressState")},${call("3", "sendBoc")}]`
      )
      assert.isTrue(
        answer.text.startsWith(
          `[{"ok":true,"result":"getAddressBalance","jsonrpc":"2.0","id":1},` +
            `{"ok":true,"result":"getAddressState","jsonrpc":"2.0","id":"b"},{"ok":false,"error":"`
        ),
        answer.text
      )
      assert.deepStrictEqual(live.seen(), [rpcPath, rpcPath])
    }))
})
