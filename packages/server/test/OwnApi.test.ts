/** An HttpApi of a team's own that declares an error of ours answers with it as the gateway does. */
import { assert, describe, it } from "@effect/vitest"
import { UpstreamUnavailable } from "@trigate/domain/errors/GatewayError"
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import * as Layer from "effect/Layer"

class OwnApi extends HttpApi.make("own").add(
  HttpApiGroup.make("prices").add(HttpApiEndpoint.get("price", "/price", { error: UpstreamUnavailable }))
) {}

const failure = new UpstreamUnavailable({ upstream: "layer2", attempts: 2, retryAfter: 3, detail: "nobody answers" })

const handlers = HttpApiBuilder.group(
  OwnApi,
  "prices",
  (handlers) => handlers.handle("price", () => Effect.fail(failure))
)

describe("an HttpApi that declares an error of ours", () => {
  it.effect("answers with its status, as a problem document", () =>
    Effect.gen(function*() {
      const { dispose, handler } = HttpRouter.toWebHandler(
        HttpApiBuilder.layer(OwnApi).pipe(Layer.provide(handlers), Layer.provideMerge(HttpServer.layerServices)),
        { disableLogger: true }
      )
      yield* Effect.addFinalizer(() => Effect.promise(dispose))
      const response = yield* Effect.promise(() => handler(new Request("http://own.example/price")))
      assert.strictEqual(response.status, 503)
      assert.strictEqual(response.headers.get("content-type"), "application/problem+json")
      assert.deepStrictEqual(yield* Effect.promise(() => response.json()), {
        detail: "nobody answers",
        _tag: "UpstreamUnavailable",
        upstream: "layer2",
        attempts: 2,
        retryAfter: 3,
        type: "urn:trigate:problem:upstream-unavailable",
        status: 503,
        title: "Upstream unavailable"
      })
    }))
})
