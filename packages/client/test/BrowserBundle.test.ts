import { assert, describe, it } from "@effect/vitest"
import { EvmChain } from "@trigate/testing/EvmChain"
import * as JsonParts from "@trigate/testing/JsonParts"
import * as Effect from "effect/Effect"
import * as Esbuild from "esbuild"
import * as Vm from "node:vm"

/** What a page would write. */
const page = `
  import * as Connection from "@trigate/client/Connection"
  import * as Evm from "@trigate/client/Evm"
  import * as EvmStreams from "@trigate/client/EvmStreams"
  import * as Tokens from "@trigate/client/Tokens"
  import * as Effect from "effect/Effect"
  import * as FetchHttpClient from "effect/http/FetchHttpClient"
  import * as Layer from "effect/Layer"
  import * as Option from "effect/Option"
  import * as Stream from "effect/Stream"

  const options = { baseUrl: "https://gateway.example" }
  const program = Effect.gen(function*() {
    const gas = yield* Evm.gasPrice()
    const token = yield* Effect.flip(Tokens.getTokenData({ address: "0:${"a".repeat(64)}" }))
    const head = yield* EvmStreams.EvmStreams.use(({ layer2 }) => Stream.runHead(layer2.blocks()))
    return { gas, token: token._tag, block: Option.getOrThrow(head).number }
  })
  globalThis.answer = Effect.runPromise(Effect.provide(
    program,
    Layer.merge(
      Layer.provide(Connection.layer(options), FetchHttpClient.layer),
      EvmStreams.layerWebSocket(options)
    )
  ))
`

const bundle = Effect.map(
  Effect.promise(() =>
    Esbuild.build({
      stdin: { contents: page, resolveDir: import.meta.dirname, loader: "ts" },
      bundle: true,
      minify: true,
      write: false,
      metafile: true,
      platform: "browser",
      format: "iife",
      logLevel: "silent"
    })
  ),
  ({ metafile, outputFiles, warnings }) => ({ metafile, warnings, text: outputFiles[0]?.text ?? "" })
)

const respond = (url: string, body: string): Response => {
  const id = /"id":([0-9]+)/u.exec(body)?.[1] ?? "null"
  return url.endsWith("/evm")
    ? new Response(`{"jsonrpc":"2.0","id":${id},"result":"0xde0b6b3a7640000"}`)
    : new Response(
      JSON.stringify({
        _tag: "TokenNotFound",
        type: "urn:trigate:problem:token-not-found",
        status: 404,
        title: "Token not found",
        address: "…",
        contractType: "none"
      }),
      { status: 404, headers: { "content-type": "application/problem+json" } }
    )
}

const block = new EvmChain("page", { blocks: 3 }).call("eth_getBlockByNumber", ["latest", false])

/** A WebSocket whose gateway reports one head to each subscription. */
class PageSocket extends EventTarget {
  readyState = 0

  constructor(url: string, asked: Array<string>) {
    super()
    queueMicrotask(() => {
      asked.push(`WS ${url}`)
      this.readyState = 1
      this.dispatchEvent(new Event("open"))
    })
  }

  send(text: string): void {
    const call: unknown = JSON.parse(text)
    const frames = [
      { jsonrpc: "2.0", id: JsonParts.at(call, "id"), result: "0x1" },
      { jsonrpc: "2.0", method: "eth_subscription", params: { subscription: "0x1", ...block } }
    ]
    for (const frame of frames) this.dispatchEvent(new MessageEvent("message", { data: JSON.stringify(frame) }))
  }

  close(): void {
    this.readyState = 3
  }
}

describe("a page's bundle of the client", () => {
  it.effect("holds no module of Node, and runs where there is nothing but the web's own globals", () =>
    Effect.gen(function*() {
      const { metafile, text, warnings } = yield* bundle
      assert.deepStrictEqual(warnings, [])
      const inputs = Object.entries(metafile.inputs)
      const imports = inputs.flatMap(([, { imports }]) => imports)
      assert.deepStrictEqual(imports.filter(({ external }) => external === true), [])
      const foreign = inputs.map(([path]) => path).filter((path) =>
        !/(?:^|\/)(?:packages\/(?:api|client|domain)\/src\/|node_modules\/effect\/|<stdin>)/u.test(path)
      )
      assert.deepStrictEqual(foreign, [])

      const asked: Array<string> = []
      const context = Vm.createContext({
        fetch: (url: URL, init: { readonly method: string; readonly body?: Uint8Array }) => {
          asked.push(`${init.method} ${url.href}`)
          return Promise.resolve(respond(url.href, new TextDecoder().decode(init.body)))
        },
        AbortController,
        Headers,
        WebSocket: class extends PageSocket {
          constructor(url: string) {
            super(url, asked)
          }
        },
        TextDecoder,
        TextEncoder,
        URL,
        URLSearchParams,
        atob,
        btoa,
        clearTimeout,
        setTimeout
      })
      Vm.runInContext(text, context)
      const answer: unknown = yield* Effect.promise(() => Promise.resolve(Reflect.get(context, "answer")))
      assert.deepEqual(answer, { gas: 10n ** 18n, token: "TokenNotFound", block: 2n })
      assert.deepStrictEqual(asked, [
        "POST https://gateway.example/evm",
        `GET https://gateway.example/api/v2/getTokenData?address=0%3A${"a".repeat(64)}`,
        "WS wss://gateway.example/l2"
      ])
    }))
})
