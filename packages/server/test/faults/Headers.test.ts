import { assert, describe, it } from "@effect/vitest"
import { faultyUpstream } from "@trigate/testing/FaultyUpstream"
import type { GatewayResponse } from "@trigate/testing/Gateway"
import { post } from "@trigate/testing/Gateway"
import type { Said } from "@trigate/testing/Reactions"
import { say } from "@trigate/testing/Reactions"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { bigBlocks, bodyOf } from "../bodies.ts"
import * as RawHttp from "../rawHttp.ts"
import { askedOf, gatewayOver, secretKey } from "./faultyGateway.ts"
import { assertGood, hashOf, layer2, reads, receiptQuestion } from "./routes.ts"

/** Headers of an upstream that are between it and the gateway, or that set something in a caller's browser. */
const between: ReadonlyArray<readonly [name: string, value: string]> = [
  ["set-cookie", "session=1; Path=/"],
  ["set-cookie", "other=2"],
  ["connection", "x-named, keep-alive"],
  ["x-named", "1"],
  ["keep-alive", "timeout=9, max=1"],
  ["proxy-authenticate", "Basic"],
  ["proxy-authorization", "Basic eDp5"],
  ["proxy-connection", "keep-alive"],
  ["te", "trailers"],
  ["trailer", "x-checksum"],
  ["upgrade", "h2c"],
  ["alt-svc", `h3=":443"`],
  ["strict-transport-security", "max-age=1"],
  ["access-control-allow-origin", "*"],
  ["www-authenticate", "Basic"],
  ["clear-site-data", `"*"`],
  ["refresh", "0; url=http://elsewhere.test"],
  ["location", `/${secretKey}`],
  ["link", `</${secretKey}>; rel=self`],
  ["server", "nginx"],
  ["x-powered-by", "PHP"],
  ["via", "1.1 upstream"],
  ["x-request-id", "upstream-request"],
  ["x-trigate-sandbox", "true"],
  ["x-trigate-warning", "made up"],
  ["age", "7"],
  ["etag", `"1"`]
]

const chatty = (good: Said): Said => ({ ...good, headers: between })

const assertClean = (answer: GatewayResponse): void => {
  for (const [name, value] of between) {
    if (name === "connection" || name === "keep-alive") assert.notInclude(answer.headers.get(name) ?? "", "x-named")
    else assert.notInclude(answer.headers.get(name) ?? "", value, name)
  }
  assert.deepStrictEqual(answer.headers.getSetCookie(), [])
  assert.notInclude(JSON.stringify([...answer.headers]), secretKey)
}

const ok = `{"status":"ok","response":{"type":"default"}}`

describe("headers of an upstream that are not the answer's own", () => {
  for (const route of reads) {
    it.effect(`reach no caller: ${route.name}`, () =>
      Effect.gen(function*() {
        const only = yield* faultyUpstream(say(chatty(route.good)))
        const { url } = yield* gatewayOver({ [route.kind]: [only] })
        const answer = yield* route.ask(url)
        assertGood(route, answer)
        assertClean(answer)
        assert.deepStrictEqual(askedOf(only), [1])
      }))
  }

  for (const status of [200, 400, 422, 429]) {
    it.effect(`reach no caller: /exchange ${status}`, () =>
      Effect.gen(function*() {
        const only = yield* faultyUpstream(say({ status, headers: between, body: ok }))
        const { url } = yield* gatewayOver({ api: [only] })
        const answer = yield* post(`${url}/exchange`, bodyOf(yield* Clock.currentTimeMillis, bigBlocks))
        assert.strictEqual(answer.status, status)
        assert.strictEqual(answer.text, ok)
        assertClean(answer)
        assert.deepStrictEqual(askedOf(only), [1])
      }))
  }
})

/** Headers of a caller that are not for an upstream. */
const callers: ReadonlyArray<readonly [name: string, value: string]> = [
  ["cookie", "session=caller"],
  ["authorization", "Bearer caller-secret"],
  ["proxy-authorization", "Basic caller"],
  ["x-api-key", "caller-key"],
  ["x-forwarded-for", "203.0.113.9"],
  ["forwarded", "for=203.0.113.9"],
  ["x-real-ip", "203.0.113.9"],
  ["origin", "http://localhost"],
  ["referer", "https://caller.test/page"],
  ["user-agent", "caller/1.0"],
  ["te", "trailers"],
  ["accept-encoding", "gzip, br, zstd"],
  ["accept-language", "tlh"],
  ["x-http-method-override", "DELETE"],
  ["traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"],
  ["expect", "100-continue"]
]

const namesIn = (head: string): ReadonlyArray<string> =>
  head.split("\r\n").slice(1).map((line) => line.split(":", 1)[0]?.toLowerCase() ?? "").toSorted()

describe("headers of a caller", () => {
  const asks: ReadonlyArray<readonly [path: string, body: (now: number) => string]> = [
    ["/l2", () => receiptQuestion(hashOf(1))],
    ["/info", () => `{"type":"spotMeta"}`],
    ["/exchange", (now) => bodyOf(now, bigBlocks)]
  ]
  for (const [path, body] of asks) {
    it.effect(`reach no upstream: ${path}`, () =>
      Effect.gen(function*() {
        const only = yield* faultyUpstream(say(path === "/l2" ? layer2.good : { body: `{"universe":[],"tokens":[]}` }))
        const { url } = yield* gatewayOver({ api: [only], layer2: [only] })
        const text = body(yield* Clock.currentTimeMillis)
        const answer = yield* RawHttp.exchange(url, [
          RawHttp.headOf("POST", path, [
            ["content-type", "application/json"],
            ["content-length", `${text.length}`],
            ...callers
          ]),
          text
        ])
        // the interim answer to `expect` is read as the first status here
        assert.include([100, 200], answer.status)
        yield* only.until(() => only.requests.length === 1)
        const head = only.requests[0]?.head ?? ""
        assert.deepStrictEqual(namesIn(head), ["accept", "connection", "content-length", "content-type", "host"])
        for (const [, value] of callers) assert.notInclude(head, value)
      }))
  }
})
