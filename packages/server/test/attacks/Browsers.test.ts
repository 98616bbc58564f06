import { assert, describe, it } from "@effect/vitest"
import type { GatewayResponse } from "@trigate/testing/Gateway"
import { get, post } from "@trigate/testing/Gateway"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { createHash } from "node:crypto"
import { bigBlocks, bodyOf } from "../bodies.ts"
import { liveGateway } from "../liveGateway.ts"

const ok = `{"status":"ok","response":{"type":"default"}}`

const told = ({ headers }: GatewayResponse) => ({
  sniffing: headers.get("x-content-type-options"),
  policy: headers.get("content-security-policy"),
  caching: headers.get("cache-control")
})

const inert = { sniffing: "nosniff", policy: "default-src 'none'; frame-ancestors 'none'", caching: "no-store" }

describe("a browser", () => {
  it.live("shows, runs and keeps no answer of the gateway", () =>
    Effect.gen(function*() {
      const { url } = yield* liveGateway({ api: () => ({ status: 200, body: ok }) })
      const answers = yield* Effect.all([
        post(`${url}/exchange`, bodyOf(yield* Clock.currentTimeMillis, bigBlocks)),
        post(`${url}/exchange`, "{}"),
        post(`${url}/evm`, "{}"),
        post(`${url}/evm`, `{"jsonrpc":"2.0","method":"eth_chainId"}`),
        get(`${url}/api/v2/getTokenData?address=1`),
        get(`${url}/metrics`),
        get(`${url}/health/live`),
        get(`${url}/health/ready`),
        get(`${url}/no/such/route`),
        get(`${url}/evm`)
      ])
      assert.deepStrictEqual(answers.map(({ status }) => status), [200, 400, 200, 204, 400, 200, 200, 200, 404, 426])
      for (const answer of answers) assert.deepStrictEqual(told(answer), inert, answer.path)
    }))

  it.live("lets no page show the reference, and the reference load nothing from elsewhere", () =>
    Effect.gen(function*() {
      const { url } = yield* liveGateway()
      const page = yield* get(`${url}/docs`)
      const hashes = (element: RegExp) =>
        Array.from(
          page.text.matchAll(element),
          ([, text = ""]) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`
        ).join(" ")
      const scripts = hashes(/<script\b[^>]*>(.*?)<\/script>/gsu)
      const styles = hashes(/<style\b[^>]*>(.*?)<\/style>/gsu)
      const policy = `default-src 'none'; script-src ${scripts}; style-src ${styles}; img-src data:; ` +
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
      assert.deepStrictEqual(told(page), { sniffing: "nosniff", policy, caching: "no-cache" })
      assert.deepStrictEqual(told(yield* get(`${url}/docs`, { "if-none-match": "*" })), told(page))
      assert.deepStrictEqual(told(yield* get(`${url}/openapi.json`)), { ...inert, caching: "no-cache" })
    }))

  const types: ReadonlyArray<readonly [upstream: string, caller: string]> = [
    ["application/json", "application/json"],
    ["application/json; charset=utf-8", "application/json"],
    ["Application/JSON", "application/json"],
    ["application/problem+json", "application/problem+json"],
    ["text/plain", "text/plain"],
    ["text/plain;charset=utf-8", "text/plain;charset=utf-8"],
    ["application/html+json; <script>", "application/json"],
    ["application/problem+json; charset=latin1", "application/problem+json"],
    ["Application/JSON ;charset=utf-7", "application/json"],
    ["text/plain; charset=utf-7", "text/plain"],
    ["text/plain; <script>", "text/plain"],
    ["text/xml", "application/octet-stream"],
    ["text/css; application/json", "application/octet-stream"],
    ["image/svg+xml", "application/octet-stream"],
    ["text/javascript", "application/octet-stream"],
    ["application/jsonp", "application/octet-stream"],
    ["text/plainer", "application/octet-stream"]
  ]

  for (const [upstream, caller] of types) {
    it.live(`is given an upstream's ${upstream} as ${caller}`, () =>
      Effect.gen(function*() {
        const { url } = yield* liveGateway({ api: () => ({ status: 200, type: upstream, body: ok }) })
        const answer = yield* post(`${url}/exchange`, bodyOf(yield* Clock.currentTimeMillis, bigBlocks))
        assert.deepStrictEqual([answer.status, answer.type, answer.text], [200, caller, ok])
        assert.deepStrictEqual(told(answer), inert)
      }))
  }
})
