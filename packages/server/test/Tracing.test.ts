import { assert, describe, it } from "@effect/vitest"
import { gateway, get, post } from "@trigate/testing/Gateway"
import { recordingUpstream, rpcReply } from "@trigate/testing/RecordingUpstream"
import * as Effect from "effect/Effect"
import * as Tracer from "effect/Tracer"

/** Keeps every span with its attributes as text. */
const collector = () => {
  const spans: Array<Tracer.NativeSpan> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    }
  })
  const text = () => spans.map((span) => `${span.name} ${JSON.stringify([...span.attributes].map(String))}`).join("\n")
  return { tracer, spans, text }
}

describe("tracing", () => {
  it.live("spans hold neither an upstream's key nor a caller's", () => {
    const { spans, text, tracer } = collector()
    return Effect.gen(function*() {
      const upstream = yield* recordingUpstream(rpcReply("\"0x1\""))
      const { url } = yield* gateway({ TRIGATE_TRADING_NODE_URL: `${upstream.url}/UPSTREAM-SECRET` })
      const body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_gasPrice\",\"params\":[]}"
      const keyed = yield* post(`${url}/CALLER-SECRET/evm`, body)
      assert.strictEqual(keyed.status, 200)
      const plain = yield* post(`${url}/evm`, body)
      assert.strictEqual(plain.status, 200)
      yield* get(`${url}/CALLER-SECRET/nowhere`)
      yield* get(`${url}/api/v2/getMasterchainInfo?api_key=CALLER-SECRET`)
      yield* get(`${url}/api/v2/getMasterchainInfo?api%5Fkey=CALLER-SECRET`)
      yield* get(`${url}/api/v2/getMasterchainInfo`, { "x-api-key": "CALLER-SECRET" })
      assert.isAbove(spans.length, 0)
      assert.include(text(), "/evm")
      assert.notInclude(text(), "CALLER-SECRET")
      assert.notInclude(text(), "UPSTREAM-SECRET")
    }).pipe(Effect.scoped, Effect.provideService(Tracer.Tracer, tracer))
  })
})
