/** `GET /docs` and `GET /openapi.json`: the API reference, in one page that loads nothing from the internet. */
import { GatewayApi } from "@trigate/api/GatewayApi"
import * as Effect from "effect/Effect"
import * as HttpApiScalar from "effect/http-api/HttpApiScalar"
import * as OpenApi from "effect/http-api/OpenApi"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Scope from "effect/Scope"

// without fonts from elsewhere, without a proxy, and without the toolbar that offers to upload the document
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

/** The two routes. The page, a script of three megabytes, and the document are built on their first request. */
export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const scope = yield* Effect.scope
  const handler = yield* Effect.cached(Scope.provide(page, scope))
  yield* router.add("GET", "/docs", Effect.flatten(handler))
  yield* router.add("GET", "/openapi.json", yield* Effect.cached(document))
}))
