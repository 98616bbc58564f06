import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { faultyUpstream, idIn } from "@trigate/testing/FaultyUpstream"
import { post } from "@trigate/testing/Gateway"
import { say } from "@trigate/testing/Reactions"
import * as Recordings from "@trigate/testing/Recordings"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Http2 from "node:http2"
import * as Tls from "node:tls"
import { bigBlocks, bodyOf } from "../bodies.ts"
import { gatewayOver } from "./faultyGateway.ts"
import { assertGood, layer2 } from "./routes.ts"

const pem = (name: string): string => Recordings.text(`tls/${name}.pem`)
const trusted = Tls.getCACertificates("default")
const ok = `{"status":"ok","response":{"type":"default"}}`

/** What a server over HTTP/2 does with a request whose body has come. */
type Deed = (stream: Http2.ServerHttp2Stream, body: string) => void

const answer: Deed = (stream, body) => {
  stream.respond({ ":status": 200, "content-type": "application/json" })
  stream.end(
    stream.session === undefined || body.includes("signature")
      ? ok
      : `{"jsonrpc":"2.0","id":${idIn(body)},"result":null}`
  )
}

const deeds: ReadonlyArray<readonly [what: string, deed: Deed]> = [
  ["GOAWAY instead of an answer", (stream) => stream.session?.goaway(Http2.constants.NGHTTP2_ENHANCE_YOUR_CALM)],
  ["GOAWAY and the end of the connection", (stream) => {
    stream.session?.goaway()
    stream.session?.destroy()
  }],
  ["GOAWAY that says that nothing was taken", (stream) => {
    stream.session?.goaway(Http2.constants.NGHTTP2_NO_ERROR, 0)
    stream.session?.destroy()
  }],
  ["the stream refused", (stream) => stream.close(Http2.constants.NGHTTP2_REFUSED_STREAM)],
  ["the stream reset", (stream) => stream.close(Http2.constants.NGHTTP2_INTERNAL_ERROR)],
  ["a head and then the stream reset", (stream) => {
    stream.respond({ ":status": 200, "content-type": "application/json" })
    stream.close(Http2.constants.NGHTTP2_INTERNAL_ERROR)
  }],
  ["silence", () => {}]
]

/** A server that offers HTTP/2 beside HTTP/1.1 and counts the requests over either. */
const http2Upstream = (deed: Deed) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<
        {
          readonly server: Http2.Http2SecureServer
          readonly port: number
          readonly asked: Array<string>
          readonly sessions: Array<Http2.ServerHttp2Session>
        }
      >(
        (resume) => {
          const asked: Array<string> = []
          const sessions: Array<Http2.ServerHttp2Session> = []
          const server = Http2.createSecureServer({ key: pem("key"), cert: pem("good"), allowHTTP1: true })
          server.on("session", (session) => {
            sessions.push(session)
            session.on("error", () => {})
          })
          server.on("stream", (stream) => {
            let body = ""
            stream.on("error", () => {})
            stream.on("data", (chunk: Buffer) => {
              body += chunk.toString("utf8")
            })
            stream.on("end", () => {
              asked.push(body)
              deed(stream, body)
            })
          })
          server.on("request", (request, response) => {
            if (request.httpVersionMajor === 2) return
            let body = ""
            request.on("data", (chunk: Buffer) => {
              body += chunk.toString("utf8")
            })
            request.on("end", () => {
              asked.push(body)
              response.writeHead(200, { "content-type": "application/json" })
              response.end(body.includes("signature") ? ok : `{"jsonrpc":"2.0","id":${idIn(body)},"result":null}`)
            })
          })
          server.listen(0, "127.0.0.1", () => {
            const address = server.address()
            resume(
              Effect.succeed({ server, asked, sessions, port: typeof address === "object" ? address?.port ?? 0 : 0 })
            )
          })
        }
      ),
      ({ server }) => Effect.sync(() => void server.close())
    ),
    ({ asked, port, sessions }) => ({ asked, sessions, url: `https://127.0.0.1:${port}` })
  )

/** What of the requests was no question which chain this is. */
const own = (asked: ReadonlyArray<string>): number => asked.filter((body) => !body.includes("eth_chainId")).length

describe("an upstream that offers HTTP/2", () => {
  beforeAll(() => Tls.setDefaultCACertificates([...trusted, pem("authority")]))
  afterAll(() => Tls.setDefaultCACertificates(trusted))

  it.effect("answers reads and actions, one request each", () =>
    Effect.gen(function*() {
      const only = yield* http2Upstream(answer)
      const { url } = yield* gatewayOver({ api: [only.url], layer2: [only.url] })
      assertGood(layer2, yield* layer2.ask(url))
      assert.strictEqual((yield* post(`${url}/exchange`, bodyOf(yield* Clock.currentTimeMillis, bigBlocks))).text, ok)
      assert.strictEqual(own(only.asked), 2)
      // over HTTP/2, undici sends a refused stream again
      assert.strictEqual(only.sessions.length, 0)
    }))

  for (const [what, deed] of deeds) {
    it.effect(`costs a read no more than the next address: ${what}`, () =>
      Effect.gen(function*() {
        const first = yield* http2Upstream(deed)
        const second = yield* faultyUpstream(say(layer2.good))
        const { url } = yield* gatewayOver({ layer2: [first.url, second] })
        const value = yield* layer2.ask(url)
        assertGood(layer2, value)
        assert.strictEqual(own(first.asked), 1)
        assert.isAtMost(second.requests.length, 1)
      }))

    it.effect(`gets an action once, also over HTTP/2: ${what}`, () =>
      Effect.gen(function*() {
        const first = yield* http2Upstream(deed)
        const second = yield* faultyUpstream(say({ body: ok }))
        const { url } = yield* gatewayOver({ api: [first.url, second] })
        const body = bodyOf(yield* Clock.currentTimeMillis, bigBlocks)
        const value = yield* post(`${url}/exchange`, body)
        assert.deepStrictEqual(first.asked, [body])
        assert.deepStrictEqual(second.requests.map(({ body, path }) => ({ path, body })), [])
        if (value.status !== 200) assert.include(value.json, { _tag: "OutcomeUnknown" })
      }))
  }
})
