/** The backend's routes and the gateway's on one server, and the trace of a request through both. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, describe, it } from "@effect/vitest"
import { keys } from "@trigate/sandbox/SandboxExamples"
import * as Effect from "effect/Effect"
import { constTrue } from "effect/Function"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"
import * as Server from "../src/Server.ts"
import { trader } from "./signers.ts"
import { answered, type Chains, over, sandbox } from "./upstreams.ts"

const post = (path: string, body: unknown) =>
  HttpClientRequest.post(path).pipe(HttpClientRequest.bodyJsonUnsafe(body), HttpClient.execute)

const served = (chains: Chains) =>
  Server.layer({ folder: "archive" }).pipe(
    Layer.provide([chains, trader]),
    Layer.provideMerge(NodeHttpServer.layerTest)
  )

/** A tracer that keeps its spans. */
const recorded = () => {
  const spans: Array<Tracer.NativeSpan> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    }
  })
  const pathOf = (span: Tracer.AnySpan): string => {
    const name = span._tag === "Span" ? span.name : "elsewhere"
    const parent = span._tag === "Span" ? Option.getOrUndefined(span.parent) : undefined
    return parent === undefined ? name : `${pathOf(parent)} > ${name}`
  }
  return { layer: Layer.succeed(Tracer.Tracer, tracer), paths: () => spans.map(pathOf), spans }
}

describe("the server", () => {
  it.live("answers the backend's routes and, below its path, the gateway's", () =>
    Effect.gen(function*() {
      const stake = { validator: keys.validator.address, hype: "1.5" }
      assert.strictEqual((yield* post("/stakes", stake)).status, 200)
      assert.strictEqual((yield* post("/stakes", { ...stake, hype: "1.123456789" })).status, 422)
      assert.strictEqual((yield* post("/gateway/info", { type: "spotMeta" })).status, 200)
      assert.strictEqual((yield* HttpClient.get("/gateway/health/ready")).status, 200)
      assert.strictEqual((yield* HttpClient.get("/gateway/docs")).status, 404)
      const document = yield* (yield* HttpClient.get("/openapi.json")).text
      assert.include(document, `"/deposits/{hash}"`)
      assert.notInclude(document, "spotMeta")
    }).pipe(Effect.provide(served(sandbox()))))

  it.live("traces a request down to the attempt at an upstream, and no key of a caller", () =>
    Effect.gen(function*() {
      const recording = recorded()
      const { layer } = over((path) =>
        answered(path === "/exchange" ? `{"status":"ok","response":{"type":"default"}}` : `{"universe":[],"tokens":[]}`)
      )
      yield* Effect.gen(function*() {
        yield* post("/stakes", { validator: keys.validator.address, hype: "1.5" })
        yield* post("/gateway/callers-key/info", { type: "spotMeta" })
      }).pipe(
        Effect.provideService(HttpClient.TracerDisabledWhen, constTrue),
        Effect.provide(served(layer).pipe(Layer.provideMerge(recording.layer)))
      )
      const delegation = "POST > Staking.delegate > Exchange.submit > tokenDelegate"
      assert.deepStrictEqual(recording.paths(), [
        "POST",
        "POST > Staking.delegate",
        "POST > Staking.delegate > Exchange.submit",
        delegation,
        `${delegation} > trading-api#0`,
        "POST",
        "POST > node.info",
        "POST > node.info > spotMeta",
        "POST > node.info > spotMeta > trading-node#0"
      ])
      const told = recording.spans.flatMap(({ attributes, name }) => [name, JSON.stringify([...attributes])])
      assert.include(told.join(" "), "/stakes")
      assert.notInclude(told.join(" "), "callers-key")
    }))
})
