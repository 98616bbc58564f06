import { assert, describe, it } from "@effect/vitest"
import * as RequestBody from "@trigate/server/unstable/requests/Request"
import { gateway } from "@trigate/testing/Gateway"
import * as Effect from "effect/Effect"
import * as AsyncHooks from "node:async_hooks"
import * as Zlib from "node:zlib"
import { oncePerFile } from "../oncePerFile.ts"
import { exchange, headOf } from "../rawHttp.ts"

const gasCall = `{"jsonrpc":"2.0","id":1,"method":"eth_gasPrice","params":[]}`

const sandbox = oncePerFile(() => gateway({}))

/** Counts the decompressors of the process from here to the end of the scope. */
const decompressors = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => {
      const made = { count: 0 }
      const hook = AsyncHooks.createHook({
        init: (_id, type) => {
          if (type === "ZLIB") made.count++
        }
      }).enable()
      return { made, hook }
    }),
    ({ hook }) => Effect.sync(() => hook.disable())
  ),
  ({ made }) => made
)

const sent = (path: string, coding: string, body: Uint8Array): ReadonlyArray<string | Uint8Array> => [
  headOf("POST", path, [
    ["content-type", "application/json"],
    ["content-encoding", coding],
    ["content-length", String(body.length)]
  ]),
  body
]

const codings: ReadonlyArray<readonly [name: string, encode: (body: Uint8Array) => Uint8Array]> = [
  ["gzip", Zlib.gzipSync],
  ["x-gzip", Zlib.gzipSync],
  ["GZIP", Zlib.gzipSync],
  ["deflate", Zlib.deflateSync],
  ["br", (body) => Zlib.brotliCompressSync(body, { params: { [Zlib.constants.BROTLI_PARAM_QUALITY]: 1 } })],
  ["zstd", Zlib.zstdCompressSync]
]

const plain = new TextEncoder().encode(gasCall)

const times = (count: number, encode: (body: Uint8Array) => Uint8Array, body: Uint8Array): Uint8Array =>
  count === 0 ? body : times(count - 1, encode, encode(body))

describe("a compressed body", () => {
  for (const [name, encode] of codings) {
    it.live(`is read through one decompressor: ${name}`, () =>
      Effect.gen(function*() {
        const { url } = yield* sandbox()
        const body = encode(plain)
        const made = yield* decompressors
        const answer = yield* exchange(url, sent("/evm", name, body))
        assert.strictEqual(answer.status, 200)
        assert.include(answer.body, `"result":"0x`)
        assert.strictEqual(made.count, 1)
      }))

    it.live(`stops at the limit of a body: ${name}`, () =>
      Effect.gen(function*() {
        const { url } = yield* sandbox()
        const bomb = encode(new Uint8Array(8 * RequestBody.bodyLimit).fill(0x20))
        const answer = yield* exchange(url, sent("/exchange", name, bomb))
        assert.strictEqual(answer.status, 413)
        assert.include(answer.body, `"_tag":"PayloadTooLarge"`)
      }))
  }

  it.live("may say that it is not compressed", () =>
    Effect.gen(function*() {
      const { url } = yield* sandbox()
      const answer = yield* exchange(url, sent("/evm", "identity", plain))
      assert.include(answer.body, `"result":"0x`)
    }))

  it.live("is refused when it is not what its header says", () =>
    Effect.gen(function*() {
      const { url } = yield* sandbox()
      for (const [name] of codings) {
        const answer = yield* exchange(url, sent("/exchange", name, plain))
        assert.strictEqual(answer.status, 400, name)
        assert.include(answer.body, "The body cannot be decompressed with its content encoding")
      }
    }))

  // a frame that asks its decoder for 16 MiB, by the byte after its magic number and its descriptor
  it.live("is refused when its decoder would take more than eight megabytes", () =>
    Effect.gen(function*() {
      const { url } = yield* sandbox()
      const frame = Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd, 0x00, 14 << 3, 0x13, 0x00, 0x00, 0x7b, 0x7d)
      const smaller = Uint8Array.from(frame, (byte, index) => index === 5 ? 13 << 3 : byte)
      const refused = yield* exchange(url, sent("/exchange", "zstd", frame))
      assert.include(refused.body, "The body cannot be decompressed with its content encoding")
      const read = yield* exchange(url, sent("/exchange", "zstd", smaller))
      assert.notInclude(read.body, "decompress")
    }))

  const stacks: ReadonlyArray<readonly [what: string, coding: string, body: Uint8Array]> = [
    ["two codings", "gzip, gzip", times(2, Zlib.gzipSync, plain)],
    ["two kinds of codings", "br, gzip", Zlib.gzipSync(Zlib.brotliCompressSync(plain))],
    ["one and none", "gzip, identity", Zlib.gzipSync(plain)],
    ["250 codings", Array.from({ length: 250 }, () => "gzip").join(","), times(250, Zlib.gzipSync, plain)],
    ["2 500 codings", Array.from({ length: 2500 }, () => "gzip").join(","), plain],
    ["an unknown coding", "compress", plain],
    ["the name of a property", "constructor", plain]
  ]
  for (const [what, coding, body] of stacks) {
    for (const path of ["/exchange", "/exchange/inspect", "/info"]) {
      it.live(`is refused before it is decompressed, on ${path}: ${what}`, () =>
        Effect.gen(function*() {
          const { url } = yield* sandbox()
          const made = yield* decompressors
          const answer = yield* exchange(url, sent(path, coding, body))
          assert.strictEqual(answer.status, 400)
          assert.include(answer.body, `"_tag":"InvalidRequest"`)
          assert.include(answer.body, "The content encoding must be one of identity, gzip, deflate, br and zstd")
          assert.strictEqual(made.count, 0)
        }))
    }
  }

  it.live("costs nothing on a route that reads no body", () =>
    Effect.gen(function*() {
      const { url } = yield* sandbox()
      const made = yield* decompressors
      const head = headOf("GET", "/health/live", [
        ["content-encoding", Array.from({ length: 2500 }, () => "gzip").join(",")]
      ])
      assert.strictEqual((yield* exchange(url, [head])).status, 200)
      assert.strictEqual(made.count, 0)
    }))
})
