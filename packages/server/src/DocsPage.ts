/** `GET /docs` and `GET /openapi.json`: the API reference, complete in one page so that it works without the internet. */
import { GatewayApi } from "@trigate/api/GatewayApi"
import * as Effect from "effect/Effect"
import * as HttpApiScalar from "effect/http-api/HttpApiScalar"
import * as OpenApi from "effect/http-api/OpenApi"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Scope from "effect/Scope"

// no font and no proxy is fetched, and no toolbar offers to upload the document
const page = HttpRouter.toHttpEffect(
  HttpApiScalar.layer(GatewayApi, {
    path: "/docs",
    scalar: {
      withDefaultFonts: false,
      theme: "default",
      customCss: ".api-reference-toolbar { display: none !important }"
    }
  })
)

const document = Effect.sync(() => HttpServerResponse.jsonUnsafe(OpenApi.fromApi(GatewayApi)))

/** Page and document; made when they are first asked for, since the page's script is three megabytes. */
export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const scope = yield* Effect.scope
  const handler = yield* Effect.cached(Scope.provide(page, scope))
  yield* router.add("GET", "/docs", Effect.flatten(handler))
  yield* router.add("GET", "/openapi.json", yield* Effect.cached(document))
}))
