import { assert, describe, it } from "@effect/vitest"
import type { Environment } from "@trigate/testing/Gateway"
import { gateway } from "@trigate/testing/Gateway"
import * as Effect from "effect/Effect"
import * as AsyncHooks from "node:async_hooks"
import * as Http from "node:http"
import * as Zlib from "node:zlib"
import { oncePerFile } from "./oncePerFile.ts"

/** A gateway that may have compressed its pages before. */
const sandbox = oncePerFile((environment: Environment) => gateway(environment))

interface Answer {
  readonly status: number
  readonly headers: Http.IncomingHttpHeaders
  readonly body: Buffer
}

/** Reads without decompressing, on a connection of its own. */
const read = (url: string, headers: Record<string, string> = {}, method = "GET") =>
  Effect.callback<Answer>((resume) => {
    Http.request(url, { agent: false, headers, method }, (response) => {
      const chunks: Array<Buffer> = []
      response.on("data", (chunk: Buffer) => chunks.push(chunk))
      response.on("end", () => {
        const { headers, statusCode = 0 } = response
        resume(Effect.succeed({ status: statusCode, headers, body: Buffer.concat(chunks) }))
      })
    }).end()
  })

const compressors = Effect.map(
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

const choices: ReadonlyArray<readonly [accepted: string, coding: string | undefined]> = [
  ["gzip", "gzip"],
  ["br", "br"],
  ["gzip, deflate, br, zstd", "br"],
  ["GZIP;q=0.8, br;q=0.5", "gzip"],
  ["gzip;q=0, br;q=0", undefined],
  ["*", "br"],
  ["*;q=0.5, br;q=0", "gzip"],
  ["identity", undefined],
  ["compress, ;q=1", undefined],
  ["", undefined]
]

for (const path of ["/docs", "/openapi.json"]) {
  describe(`GET ${path}`, () => {
    it.live("is compressed as the reader takes it", () =>
      Effect.gen(function*() {
        const { url } = yield* sandbox({})
        const plain = yield* read(`${url}${path}`)
        assert.notProperty(plain.headers, "content-encoding")
        for (const [accepted, coding] of choices) {
          const answer = yield* read(`${url}${path}`, { "accept-encoding": accepted })
          assert.strictEqual(answer.status, 200)
          assert.strictEqual(answer.headers["content-encoding"], coding, accepted)
          assert.strictEqual(answer.headers.vary, "accept-encoding")
          const decode = coding === "br"
            ? Zlib.brotliDecompressSync
            : coding === "gzip"
            ? Zlib.gunzipSync
            : (body: Buffer) => body
          assert.isTrue(plain.body.equals(decode(answer.body)), accepted)
        }
      }))

    it.live("is compressed once, however many ask for it at the same time", () =>
      Effect.gen(function*() {
        const { url } = yield* gateway({})
        const made = yield* compressors
        const asking = Effect.forEach(
          Array.from({ length: 20 }),
          () => read(`${url}${path}`, { "accept-encoding": "gzip" }),
          { concurrency: "unbounded" }
        )
        const lengths = (yield* asking).map(({ body }) => body.length)
        assert.strictEqual(new Set(lengths).size, 1)
        yield* asking
        assert.strictEqual(made.count, 1)
      }))

    it.live("is sent again only when it has changed", () =>
      Effect.gen(function*() {
        const { url } = yield* sandbox({})
        const tags = new Set<string | undefined>()
        for (const coding of ["identity", "gzip", "br"]) {
          const headers = { "accept-encoding": coding }
          const { headers: { etag = "" } } = yield* read(`${url}${path}`, headers)
          assert.match(etag, /^"[\w-]{22}"$/u)
          tags.add(etag)
          for (const validators of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
            const same = yield* read(`${url}${path}`, { ...headers, "if-none-match": validators })
            assert.strictEqual(same.status, 304)
            assert.strictEqual(same.headers.etag, etag)
            assert.strictEqual(same.headers.vary, "accept-encoding")
            assert.strictEqual(same.body.length, 0)
          }
          assert.strictEqual((yield* read(`${url}${path}`, { ...headers, "if-none-match": `"other"` })).status, 200)
        }
        assert.strictEqual(tags.size, 3)
      }))

    it.live("says to caches that it differs by the reader's origin too", () =>
      Effect.gen(function*() {
        const { url } = yield* sandbox({ TRIGATE_CORS_ORIGINS: "https://page.example" })
        const { headers } = yield* read(`${url}${path}`, { origin: "https://page.example" })
        assert.strictEqual(headers.vary, "accept-encoding, origin")
      }))
  })
}
