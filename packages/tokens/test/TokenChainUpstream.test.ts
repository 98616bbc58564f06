import { assert, describe, it } from "@effect/vitest"
import * as Json from "@trigate/domain/encoding/Encoding"
import { UnavailableOnNode } from "@trigate/domain/errors/GatewayError"
import { TonAddress } from "@trigate/domain/tokens/TokenData"
import { tokenRpcOperations } from "@trigate/domain/tokens/TokenOperations"
import * as TokenRpc from "@trigate/domain/unstable/tokens/TokenProtocol"
import { flipReason } from "@trigate/testing/Reason"
import * as TokenChain from "@trigate/tokens/TokenChain"
import * as TokenChainUpstream from "@trigate/tokens/TokenChainUpstream"
import * as Tokens from "@trigate/tokens/Tokens"
import * as Pipeline from "@trigate/upstream/Pipeline"
import { HttpTransport } from "@trigate/upstream/transport/HttpTransport"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"

import methods from "./fixtures/ton-address-methods.json" with { type: "json" }
import jusdt from "./fixtures/ton-getTokenData-jusdt.json" with { type: "json" }
import usdt from "./fixtures/ton-getTokenData-usdt.json" with { type: "json" }

const base = "https://node.example/KEY"
const address = TonAddress.make(usdt.request.query.address)
const raw = "0:b113a994b5024a16719f69139328eb759596c38a25f59028b146fecdc3621dfe"
const wrong = `${address.slice(0, -1)}t`

interface Sent {
  readonly method: string
  readonly url: string
  readonly body: unknown
}
interface Answer {
  readonly status: number
  readonly body: string
  readonly headers?: { readonly [name: string]: string }
}

/** What leaves, in order, and a transport that answers it. */
class Sends extends Context.Service<Sends, Array<Sent>>()("@trigate/tokens/test/Sends") {}

const transport = (answer: (sent: Sent) => Answer) =>
  Layer.effectContext(Effect.sync(() => {
    const sends: Array<Sent> = []
    return Context.make(Sends, sends).pipe(Context.add(
      HttpTransport,
      HttpTransport.of({
        send: (request) =>
          Effect.sync(() => {
            const text = request.body === undefined ? undefined : new TextDecoder().decode(request.body)
            const body = text === undefined ? undefined : Result.getOrThrow(Json.parse(text))
            const sent = { method: request.method, url: Redacted.value(request.url), body }
            sends.push(sent)
            const { body: answered, headers, status } = answer(sent)
            return {
              status,
              headers: { "content-type": "application/json", ...headers },
              body: new TextEncoder().encode(answered)
            }
          })
      })
    ))
  }))

const documents = TokenChain.layerMemory(
  new Map([
    ["https://tether.to/usdt-ton.json", { name: "Tether USD", symbol: "USD₮", decimals: 9 }],
    [jusdt.body.result.jetton_content.data.uri, { name: "jUSDT", symbol: "jUSDT" }]
  ])
)

const live = (answer: (sent: Sent) => Answer, addresses: ReadonlyArray<string> = [base]) =>
  TokenChainUpstream.layerNoDeps({ addresses }).pipe(
    Layer.provide(Pipeline.layer({ attempts: 1 })),
    Layer.provide(documents),
    Layer.provideMerge(transport(answer))
  )

const ok = (body: unknown): Answer => ({ status: 200, body: typeof body === "string" ? body : JSON.stringify(body) })

const token = {
  name: "Tether USD",
  symbol: "USD₮",
  decimals: 6,
  totalSupply: "1030000002000000",
  mintable: true,
  burnable: true,
  address,
  metadata: "offchain"
}

describe("getTokenData", () => {
  it.effect("maps the recorded USDT body, names from the document, decimals from the chain", () =>
    Effect.gen(function*() {
      const chain = yield* TokenChain.TokenChain
      assert.deepStrictEqual<unknown>(yield* chain.getTokenData({ address }), token)
      assert.deepStrictEqual(yield* Sends, [
        { method: "GET", url: `${base}/api/v2/getTokenData?address=${address}`, body: undefined }
      ])
    }).pipe(Effect.provide(live(() => ok(usdt.body)))))

  it.effect("maps the recorded jUSDT body", () =>
    Effect.gen(function*() {
      const chain = yield* TokenChain.TokenChain
      const asked = jusdt.request.body.params.address
      assert.deepStrictEqual<unknown>(yield* chain.getTokenData({ address: asked }), {
        name: "jUSDT",
        symbol: "jUSDT",
        decimals: 6,
        totalSupply: "1256732342639",
        mintable: true,
        burnable: true,
        address: asked,
        metadata: "offchain"
      })
    }).pipe(Effect.provide(live(() => ok(jusdt.body)))))

  it.effect("sends + and / of an address percent-encoded", () =>
    Effect.gen(function*() {
      const chain = yield* TokenChain.TokenChain
      yield* chain.getTokenData({ address: "EQDXZ2c5LnA12Eum+DlguTmfYkMOvNeFCh4rBD0tgmwjcFI+" })
      yield* chain.getTokenData({ address: raw })
      assert.deepStrictEqual((yield* Sends).map(({ url }) => url), [
        `${base}/api/v2/getTokenData?address=EQDXZ2c5LnA12Eum%2BDlguTmfYkMOvNeFCh4rBD0tgmwjcFI%2B`,
        `${base}/api/v2/getTokenData?address=${raw.replace(":", "%3A")}`
      ])
    }).pipe(Effect.provide(live(() => ok(usdt.body)))))

  it.effect("refuses a wrong address before anything is sent", () =>
    Effect.gen(function*() {
      const chain = yield* TokenChain.TokenChain
      const error = yield* flipReason(chain.getTokenData({ address: wrong }))
      assert(error._tag === "InvalidAddress")
      assert.strictEqual(error.reason, "checksum differs")
      assert.deepStrictEqual(yield* Sends, [])
    }).pipe(Effect.provide(live(() => ok(usdt.body)))))

  it.effect("takes the flat resource of a gateway as it is", () =>
    Effect.gen(function*() {
      const chain = yield* TokenChain.TokenChain
      assert.deepStrictEqual<unknown>(yield* chain.getTokenData({ address: raw }), {
        ...token,
        metadata: "unresolved"
      })
    }).pipe(Effect.provide(live(() => ok({ ...token, metadata: "unresolved" })))))

  const problem = {
    type: "urn:trigate:problem:token-not-found",
    status: 404,
    title: "Token not found",
    _tag: "TokenNotFound",
    detail: "The contract is a nft_item",
    address,
    contractType: "nft_item"
  }
  it.effect("gives back the typed error of a gateway", () =>
    Effect.gen(function*() {
      const chain = yield* TokenChain.TokenChain
      const error = yield* flipReason(chain.getTokenData({ address }))
      assert(error._tag === "TokenNotFound")
      assert.deepStrictEqual([error.contractType, error.detail], ["nft_item", problem.detail])
    }).pipe(Effect.provide(live(() => ({
      status: 404,
      headers: { "content-type": "application/problem+json" },
      body: JSON.stringify(problem)
    })))))

  it.effect("asks the next address when one has no node of the chain, and keeps a refusal", () =>
    Effect.gen(function*() {
      const chain = yield* TokenChain.TokenChain
      const error = yield* flipReason(chain.getTokenData({ address }))
      assert.strictEqual(error._tag, "TokenNotFound")
      assert.deepStrictEqual((yield* Sends).map(({ url }) => new URL(url).hostname), ["a.example", "b.example"])
    }).pipe(Effect.provide(live(
      ({ url }) =>
        url.startsWith("https://a.example")
          ? { status: 503, body: `{"ok":false,"error":"No working liteservers","code":503}` }
          : { status: 409, body: `{"ok":false,"error":"Smart contract is not Jetton or NFT","code":409}` },
      ["https://a.example/K", "https://b.example/K", "https://c.example/K"]
    ))))
})

describe("relay", () => {
  const shards = tokenRpcOperations.shards

  it.effect("sends the caller's params as they are and gives the answer back raw", () =>
    Effect.gen(function*() {
      const chain = yield* TokenChain.TokenChain
      const answer = yield* chain.relay({
        operation: shards,
        params: Json.strict(`{"seqno": 40000000}`),
        surface: "node"
      })
      assert.deepStrictEqual(answer, {
        _tag: "Result",
        result: Json.of(`{"shards":[{"shard":-9223372036854775808}]}`),
        extras: [["@extra", `"x"`]]
      })
      assert.deepStrictEqual(yield* Sends, [{
        method: "POST",
        url: `${base}/api/v2/jsonRPC`,
        body: { jsonrpc: "2.0", id: 1, method: "shards", params: { seqno: 40000000 } }
      }])
    }).pipe(
      Effect.provide(live(() => ok(`{"ok":true,"result":{"shards":[{"shard":-9223372036854775808}]},"@extra":"x"}`)))
    ))

  it.effect("sends an object for an empty array, which the older servers refuse", () =>
    Effect.gen(function*() {
      const chain = yield* TokenChain.TokenChain
      yield* chain.relay({
        operation: tokenRpcOperations.getMasterchainInfo,
        params: Json.strict("[]"),
        surface: "gateway"
      })
      assert.deepStrictEqual((yield* Sends)[0]?.body, {
        jsonrpc: "2.0",
        id: 1,
        method: "getMasterchainInfo",
        params: {}
      })
    }).pipe(Effect.provide(live(() => ok({ ok: true, result: {} })))))

  it.effect("refuses params before anything is sent", () =>
    Effect.gen(function*() {
      const chain = yield* TokenChain.TokenChain
      const refused = [
        [`{"address":"${wrong}"}`, "InvalidAddress"],
        [`{"address":"${address}","x":1}`, "InvalidRequest"],
        [`["${address}"]`, "InvalidRequest"],
        ["[]", "InvalidRequest"]
      ] as const
      for (const [params, tag] of refused) {
        const operation = tokenRpcOperations.packAddress
        const error = yield* flipReason(chain.relay({ operation, params: Json.strict(params), surface: "gateway" }))
        assert.strictEqual(error._tag, tag)
      }
      const operation = { ...shards, sources: ["official-api"] } as const
      const error = yield* flipReason(chain.relay({ operation, params: Json.strict(`{"seqno":1}`), surface: "node" }))
      assert.instanceOf(error, UnavailableOnNode)
      assert.deepStrictEqual(yield* Sends, [])
    }).pipe(Effect.provide(live(() => ok({ ok: true, result: {} })))))

  it.effect("gives a failure of the chain as an answer", () =>
    Effect.gen(function*() {
      const chain = yield* TokenChain.TokenChain
      const answer = yield* chain.relay({ operation: shards, params: Json.strict(`{"seqno":1}`), surface: "gateway" })
      assert.strictEqual(
        TokenRpc.answerText(`"1"`, answer),
        `{"ok":false,"error":"Ratelimit exceed","code":429,"jsonrpc":"2.0","id":"1"}`
      )
      const error = yield* flipReason(Effect.asVoid(TokenRpc.makeReader(shards)({ seqno: 1 }, "token-chain", answer)))
      assert(error._tag === "UpstreamRateLimited")
      assert.strictEqual(error.retryAfter, 1)
    }).pipe(Effect.provide(live(() => ({
      status: 429,
      headers: { "retry-after": "1" },
      body: `{"ok":false,"result":"Ratelimit exceed","code":429}`
    })))))
})

describe("the typed methods", () => {
  const recorded = (sent: Sent): Answer => {
    const call = methods.calls.find((call) =>
      JSON.stringify(sent.body).includes(`"${call.method}"`) &&
      JSON.stringify(sent.body).includes(call.address ?? call.addressRaw)
    )
    return call === undefined ? { status: 500, body: "{}" } : ok(call.body)
  }

  it.effect("read the recorded answers", () =>
    Effect.gen(function*() {
      const chain = yield* TokenChain.TokenChain
      for (const call of methods.calls) {
        const request = { address: call.address ?? call.addressRaw }
        const answer = call.method === "packAddress"
          ? yield* chain.packAddress(request)
          : call.method === "unpackAddress"
          ? yield* chain.unpackAddress(request)
          : yield* chain.detectAddress(request)
        assert.deepStrictEqual<unknown>(answer, call.body.result)
      }
      assert.strictEqual((yield* Sends).length, methods.calls.length)
    }).pipe(Effect.provide(live(recorded))))

  it.effect("read any kind of contract, and send the block that was asked for", () =>
    Effect.gen(function*() {
      const chain = yield* TokenChain.TokenChain
      const contract = yield* chain.getTokenContract({ address, seqno: 7 })
      assert(contract.contract_type === "nft_item")
      assert.strictEqual(contract.index, 2n ** 200n)
      assert.deepStrictEqual((yield* Sends)[0]?.body, {
        jsonrpc: "2.0",
        id: 1,
        method: "getTokenData",
        params: { address, seqno: 7 }
      })
    }).pipe(Effect.provide(live(() =>
      ok(`{"ok":true,"result":{"contract_type":"nft_item","init":true,"index":${2n ** 200n}}}`)
    ))))

  it.effect("refuse a wrong address before anything is sent", () =>
    Effect.gen(function*() {
      const chain = yield* TokenChain.TokenChain
      const request = { address: wrong }
      const errors = yield* Effect.all([
        flipReason(chain.packAddress(request)),
        flipReason(chain.unpackAddress(request)),
        flipReason(chain.detectAddress(request)),
        flipReason(chain.getTokenContract(request))
      ])
      assert.deepStrictEqual(errors.map(({ _tag }) => _tag), Array.from(errors, () => "InvalidAddress"))
      assert.deepStrictEqual(yield* Sends, [])
    }).pipe(Effect.provide(live(recorded))))
})

describe("the layers", () => {
  it.effect("fail with ChainNotConfigured when there is no address", () =>
    Effect.gen(function*() {
      const chain = yield* TokenChain.TokenChain
      const rest = yield* flipReason(chain.getTokenData({ address }))
      assert(rest._tag === "ChainNotConfigured")
      assert.strictEqual(rest.chain, "tokens")
      assert.strictEqual((yield* flipReason(chain.packAddress({ address })))._tag, "ChainNotConfigured")
    }).pipe(Effect.provide(live(() => ok({}), []))))

  it.effect("take an address as providers show it", () =>
    Effect.gen(function*() {
      for (const shown of ["", "/", "/api/v2", "/api/v2/", "/api/v2/jsonRPC"]) {
        const urls = yield* Effect.gen(function*() {
          const chain = yield* TokenChain.TokenChain
          yield* chain.packAddress({ address })
          return (yield* Sends).map(({ url }) => url)
        }).pipe(Effect.provide(live(() => ok({ ok: true, result: "x" }), [`${base}${shown}`])))
        assert.deepStrictEqual(urls, [`${base}/api/v2/jsonRPC`])
      }
    }))

  it.effect("of two chains in one program stay apart", () =>
    Effect.gen(function*() {
      const answer = ({ url }: Sent) =>
        ok({ ok: true, result: { total_supply: url.startsWith("https://one") ? "1" : "2", mintable: true } })
      const supplyAt = (address_: string) =>
        TokenChain.TokenChain.use((chain) => chain.getTokenData({ address })).pipe(
          Effect.map(({ totalSupply }) => totalSupply),
          Effect.provide(TokenChainUpstream.layerNoDeps({ addresses: [address_] }))
        )
      const both = Effect.all([supplyAt("https://one.example/K"), supplyAt("https://two.example/K")])
      const layers = Layer.merge(Pipeline.layer({ attempts: 1 }).pipe(Layer.provideMerge(transport(answer))), documents)
      assert.deepStrictEqual(yield* Effect.provide(both, layers), ["1", "2"])

      class One extends Context.Service<One, TokenChain.TokenChain["Service"]>()("@trigate/tokens/test/One") {}
      class Two extends Context.Service<Two, TokenChain.TokenChain["Service"]>()("@trigate/tokens/test/Two") {}
      const at = (addresses: ReadonlyArray<string>) => TokenChainUpstream.layerNoDeps({ addresses })
      const graph = Layer.merge(
        Layer.effect(One, TokenChain.TokenChain).pipe(Layer.provide(at(["https://one.example/K"]))),
        Layer.effect(Two, TokenChain.TokenChain).pipe(Layer.provide(at(["https://two.example/K"])))
      ).pipe(Layer.provide(layers))
      const together = Effect.gen(function*() {
        const one = yield* (yield* One).getTokenData({ address })
        const two = yield* (yield* Two).getTokenData({ address })
        return [one.totalSupply, two.totalSupply]
      })
      assert.deepStrictEqual(yield* Effect.provide(together, graph), ["1", "2"])
    }))

  const configured = (settings: { readonly [name: string]: string }) =>
    Layer.unwrap(Effect.map(Tokens.config, TokenChainUpstream.layerNoDeps)).pipe(
      Layer.provide(Pipeline.layer({ attempts: 1 })),
      Layer.provide(documents),
      Layer.provideMerge(transport(() => ok({ ok: true, result: "x" }))),
      Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(settings)))
    )
  const pack = TokenChain.TokenChain.use((chain) => chain.packAddress({ address }))

  it.effect("read their addresses from the configuration", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* pack, "x")
      assert.deepStrictEqual((yield* Sends).map(({ url }) => url), ["https://n.example/SECRET/api/v2/jsonRPC"])
    }).pipe(Effect.provide(configured({ TRIGATE_TOKEN_CHAIN_URL: "https://n.example/SECRET/, https://m.example/K" }))))

  it.effect("without a setting know that the chain is not configured", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* flipReason(pack))._tag, "ChainNotConfigured")
    }).pipe(Effect.provide(configured({}))))
})
