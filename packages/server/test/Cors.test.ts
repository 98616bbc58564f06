import { assert, describe, it } from "@effect/vitest"
import type { Environment } from "@trigate/testing/Gateway"
import { rpcReply } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import { liveGateway } from "./liveGateway.ts"
import type { RawAnswer } from "./rawHttp.ts"
import { exchange } from "./rawHttp.ts"

const app = "https://app.example"

/** A preflight as Chromium sends it before a JSON-RPC call of a page. */
const preflight = (path: string, origin: string): string =>
  [
    `OPTIONS ${path} HTTP/1.1`,
    "Host: localhost",
    "Connection: close",
    "Accept: */*",
    "Access-Control-Request-Method: POST",
    "Access-Control-Request-Headers: content-type,x-trigate-expected-signer",
    `Origin: ${origin}`,
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
    "Sec-Fetch-Mode: cors",
    "Sec-Fetch-Site: cross-site",
    "Sec-Fetch-Dest: empty",
    `Referer: ${origin}/`,
    "Accept-Encoding: gzip, deflate, br, zstd",
    "Accept-Language: en-US,en;q=0.9",
    "\r\n"
  ].join("\r\n")

const call = `{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}`

const posted = (path: string, origin: string | undefined, body = call): string =>
  [
    `POST ${path} HTTP/1.1`,
    "Host: localhost",
    "Connection: close",
    "Content-Type: application/json",
    `Content-Length: ${body.length}`,
    ...(origin === undefined ? [] : [`Origin: ${origin}`]),
    `\r\n${body}`
  ].join("\r\n")

const header = ({ head }: RawAnswer, name: string): string | undefined =>
  new RegExp(`^${name}: (.*?)\\r?$`, "imu").exec(head)?.[1]

/** The headers of an answer that are about origins. */
const told = (answer: RawAnswer) => ({
  origin: header(answer, "access-control-allow-origin"),
  methods: header(answer, "access-control-allow-methods"),
  headers: header(answer, "access-control-allow-headers"),
  exposed: header(answer, "access-control-expose-headers"),
  vary: header(answer, "vary")
})

const nothing = { origin: undefined, methods: undefined, headers: undefined, exposed: undefined, vary: undefined }
const methods = "GET, POST"
const headers = "authorization, cache-control, content-type, x-api-key, x-request-id, x-trigate-expected-signer, *"
const exposed =
  "age, ratelimit, ratelimit-policy, retry-after, x-request-id, x-trigate-candles, x-trigate-sandbox, x-trigate-signer, x-trigate-upstream, x-trigate-warning"

const started = (environment: Environment) => liveGateway({ node: rpcReply(`"0x3e7"`) }, environment)

describe("without origins", () => {
  it.live("a preflight is a method that the route does not take, and no answer says anything of origins", () =>
    Effect.gen(function*() {
      const live = yield* started({})
      const asked = yield* exchange(live.url, [preflight("/evm", app)])
      assert.strictEqual(asked.status, 405)
      assert.deepStrictEqual(told(asked), nothing)
      const answer = yield* exchange(live.url, [posted("/evm", app)])
      assert.strictEqual(answer.body, `{"jsonrpc":"2.0","id":1,"result":"0x3e7"}`)
      assert.deepStrictEqual(told(answer), nothing)
    }))
})

describe("with some origins", () => {
  const environment = { TRIGATE_CORS_ORIGINS: `${app}, http://localhost:3000` }

  for (const origin of [app, "http://localhost:3000"]) {
    for (const path of ["/evm", "/exchange", "/caller-key-1/l2", "/caller-key-1"]) {
      it.live(`a preflight of ${origin} to ${path} is answered without a body, and reaches nobody`, () =>
        Effect.gen(function*() {
          const live = yield* started(environment)
          const answer = yield* exchange(live.url, [preflight(path, origin)])
          assert.strictEqual(answer.status, 204)
          assert.strictEqual(answer.body, "")
          assert.deepStrictEqual(told(answer), { origin, methods, headers, exposed, vary: "origin" })
          assert.strictEqual(header(answer, "access-control-max-age"), "600")
          assert.isDefined(header(answer, "x-request-id"))
          assert.deepStrictEqual(live.seen(), [])
        }))
    }
  }

  for (
    const [path, status] of [["/evm", 200], ["/info", 400], ["/nothing/else", 404], ["/health/live", 405]] as const
  ) {
    it.live(`the answer ${status} of ${path} can be read by a page of theirs`, () =>
      Effect.gen(function*() {
        const live = yield* started(environment)
        const answer = yield* exchange(live.url, [posted(path, app)])
        assert.strictEqual(answer.status, status)
        assert.deepStrictEqual(told(answer), { ...nothing, origin: app, exposed, vary: "origin" })
      }))
  }

  for (const origin of ["https://evil.example", "https://app.example.evil.example", "http://app.example", "null", ""]) {
    it.live(`a page of another origin is told nothing: ${JSON.stringify(origin)}`, () =>
      Effect.gen(function*() {
        const live = yield* started(environment)
        const asked = yield* exchange(live.url, [preflight("/evm", origin)])
        assert.strictEqual(asked.status, 405)
        assert.deepStrictEqual(told(asked), { ...nothing, vary: "origin" })
        const answer = yield* exchange(live.url, [posted("/evm", origin)])
        assert.strictEqual(answer.status, 200)
        assert.deepStrictEqual(told(answer), { ...nothing, vary: "origin" })
      }))
  }

  it.live("a request that is no page's is answered as ever, and an OPTIONS that is no preflight too", () =>
    Effect.gen(function*() {
      const live = yield* started(environment)
      const answer = yield* exchange(live.url, [posted("/evm", undefined)])
      assert.strictEqual(answer.status, 200)
      assert.deepStrictEqual(told(answer), { ...nothing, vary: "origin" })
      const options = `OPTIONS /evm HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nOrigin: ${app}\r\n\r\n`
      assert.strictEqual((yield* exchange(live.url, [options])).status, 405)
    }))
})

describe("with any origin", () => {
  it.live("every page reads, and none is named", () =>
    Effect.gen(function*() {
      const live = yield* started({ TRIGATE_CORS_ORIGINS: "*" })
      const asked = yield* exchange(live.url, [preflight("/evm", "null")])
      assert.strictEqual(asked.status, 204)
      assert.deepStrictEqual(told(asked), { origin: "*", methods, headers, exposed, vary: undefined })
      const answer = yield* exchange(live.url, [posted("/evm", app)])
      assert.deepStrictEqual(told(answer), { ...nothing, origin: "*", exposed })
      assert.deepStrictEqual(told(yield* exchange(live.url, [posted("/evm", undefined)])), nothing)
    }))
})
